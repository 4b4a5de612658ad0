"""Calls in threads: as many as joblib would use, in the order of their arguments."""

import multiprocessing
import threading
import time
import warnings

import pytest
from joblib import cpu_count

from skldp.estimators._base import in_threads


def are_in_threads(expected, n_jobs, n_calls=12):
    """Whether the calls are in so many threads: the first call of each waits for those of the others."""
    used = set()
    all_began = threading.Barrier(expected, timeout=30)

    def call(_):
        if threading.get_ident() not in used:
            used.add(threading.get_ident())
            all_began.wait()
        # Long enough that a thread too many would take a call as well.
        time.sleep(0.01)

    in_threads(call, range(n_calls), n_jobs=n_jobs)
    return len(used) == expected


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, 1), (1, 1), (2, 2), (5, 5), (-1, min(12, cpu_count()))])
def test_as_many_threads_as_asked_for(n_jobs, expected):
    assert are_in_threads(expected, n_jobs)


def test_two_calls_run_at_the_same_time():
    barrier = threading.Barrier(2, timeout=30)
    assert sorted(in_threads(lambda _: barrier.wait(), [0, 1], n_jobs=2)) == [0, 1]


def test_results_are_in_order_and_the_first_error_is_raised():
    assert in_threads(lambda x: time.sleep((5 - x) / 100) or x, list(range(5)), n_jobs=5) == list(range(5))
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda x: 1 // x, [1, 0, 2, 3], n_jobs=2)


def in_daemon(queue):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        queue.put((are_in_threads(2, 2), [str(warning.message) for warning in caught]))


@pytest.mark.slow
def test_daemonic_processes_have_threads_too_and_no_warning():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_daemon, args=(queue,), daemon=True)
    child.start()
    assert queue.get(timeout=120) == (True, [])
    child.join()
