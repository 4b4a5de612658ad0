"""Simulated people: the same results as by documents, and sums whose memory is that of one block."""

import threading
import tracemalloc

import numpy as np
import pytest

from skldp.learning import ClassificationProtocol, RegressionProtocol, Report
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._inference import InferenceProtocol
from skldp.learning._moments import MomentsProtocol
from skldp.learning._person import simulate
from skldp.learning._tasks import Task
from skldp.mechanisms._noise import Noise

D, N = 2, 8_000
ENDS = {"low": [-1.0] * D, "high": [1.0] * D}
WITH_TARGET = {"low": [-1.0] * (D + 1), "high": [1.0] * (D + 1)}
PROTOCOLS = {
    "rounds": lambda n: RegressionProtocol(D, n, epsilon=4.0, **WITH_TARGET),
    "once": lambda n: RegressionProtocol(D, n, epsilon=4.0, **WITH_TARGET, kind="once"),
    "inference": lambda n: InferenceProtocol(D, n, epsilon=4.0, **WITH_TARGET, kind="rounds"),
    "classes": lambda n: ClassificationProtocol(D, n, 2, epsilon=4.0, **ENDS),
    "classes once": lambda n: ClassificationProtocol(D, n, 2, epsilon=4.0, **ENDS, kind="once"),
    "discriminant": lambda n: DiscriminantProtocol(D, n, 2, epsilon=4.0, **ENDS),
    "moments": lambda n: MomentsProtocol(D, n, epsilon=4.0, **ENDS),
}


def people(n):
    X = np.random.default_rng(0).uniform(-1, 1, (n, D))
    return X, (X[:, 0] > 0).astype(float)


def by_documents(protocol, X, y, noise):
    """What a collector and its clients do: nothing but JSON passes between them, and the collector restarts."""
    of_cohorts, of_releases = noise.spawn(2)
    order, asked = of_cohorts.permutation(len(y)), 0
    text = protocol.to_json()
    while (here := type(protocol).from_json(text)).task is not None:
        cohort = order[asked : asked + here.n_wanted]
        asked += len(cohort)
        reports = []
        if len(cohort):
            read = Task.from_json(here.task.to_json())
            reports = [Report.from_json(read.release(X, y, of_releases, rows=cohort).to_json())]
        here.next(reports)
        text = here.to_json()
    return text


@pytest.mark.parametrize("n", [30, N])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_fit_by_arrays_is_the_one_by_documents_to_the_bit(name, n):
    X, y = people(n)
    learnt = PROTOCOLS[name](n)
    simulate(learnt, X, y, Noise(bytes(32), secure=False))
    assert learnt.to_json() == by_documents(PROTOCOLS[name](n), X, y, Noise(bytes(32), secure=False))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_memory_of_a_sum_is_that_of_a_block(n_threads, monkeypatch):
    """The fault: every block's sum was kept, 2.8 GB for 76 MB of rows."""
    monkeypatch.setattr("skldp.learning._tasks._CELLS", 1)
    d, n = 60, 800
    task = Task(4.0, (-1.0,) * d, (1.0,) * d, "products", np.eye(d + 1), "vector", float(d))
    X, y, noise = np.zeros((n, d - 1)), np.zeros(n), Noise(bytes(32), secure=False)
    task.release(X[:100], y[:100], noise)
    tracemalloc.start()
    try:
        task.release(X, y, noise, n_threads=n_threads)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A block has 1,891 sums; those of all 800 blocks would take 12 MB.
    assert peak < 4e6


def test_a_thread_with_a_small_stack_sums_many_blocks(monkeypatch):
    """The fault: sums were added by maps nested once per block, and a small stack overflowed."""
    monkeypatch.setattr("skldp.learning._tasks._CELLS", 1)
    task = Task(4.0, (-1.0,) * 2, (1.0,) * 2, "linear", np.eye(3), "vector", 2.0)
    X, y = people(6_000)
    found, before, noise = [], threading.stack_size(256 << 10), Noise(bytes(32), secure=False)
    try:
        thread = threading.Thread(target=lambda: found.append(task.release(X[:, :1], y, noise)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found[0].n_people == 6_000
    assert abs(task.mean(found[0])[0] - 1) < 0.2


@pytest.mark.parametrize("n", [300, 2_000, 50_000])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_share_that_stays_unseen_is_known_before_anybody_is_asked(name, n):
    protocol, noise = PROTOCOLS[name](n), Noise(bytes(32), secure=False)
    planned = protocol.undetected_share
    simulate(protocol, *people(n), noise)
    assert protocol.undetected_share == planned
    assert n < 50_000 or planned < 1
