"""Processes for the ledger's tests: each asks people in a loop and writes down what it was handed."""

import os
import threading
import time
import traceback
import warnings

import numpy as np

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery
from skldp.exceptions import LedgerError
from skldp.mechanisms._noise import noise_from


def query_number(number, epsilon=0.05, n_features=2):
    """A different query for every number, the same in every process."""
    coef = np.random.default_rng(number).uniform(-1, 1, n_features)
    reach = np.abs(coef).sum()
    return RegressionQuery("linear", coef, 0.0, (-reach, reach), epsilon)


def start(work, *arguments):
    """Fork a process that calls ``work(write, *arguments)``; return its id and a file with what it writes."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        # Newer Pythons warn of forks beside other threads, and those of numpy's libraries are always there.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read_end)
            work(lambda text: os.write(write_end, text.encode()), *arguments)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write_end)
    return child, os.fdopen(read_end)


def answer_until_killed(write, path):
    """Ask one new query after another; write each answer only after it was handed out."""
    ledger = PrivacyLedger.open(path)
    values = np.random.default_rng(0).uniform(-1, 1, (3, 2))
    number = 0
    while True:
        query = query_number(os.getpid() * 100_000 + number, epsilon=1e-4)
        answers = ledger.answer(query, range(3), lambda rows, q=query: q.sample(values[rows], noise_from()))
        for person, output in enumerate(answers.outputs):
            write(f"{query.key} {person} {output}\n")
        number += 1


def copy_until(path, stopped):
    """Back the file up again and again; each copy drops every POSIX lock that this process holds on it."""
    # A server is nobody's file.
    while not isinstance(path, str) and not stopped.wait(0.001):
        path.read_bytes()


def opened(path):
    """Open a ledger, whose server may be on its way back."""
    until = time.monotonic() + 60
    while True:
        try:
            return PrivacyLedger.open(path)
        except LedgerError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def answer_many(write, path, seed, n_queries, n_people, epsilon):
    """Ask the same people many queries, some of them also asked by other processes; write what was handed out."""
    ledger, stopped = opened(path), threading.Event()
    backup = threading.Thread(target=copy_until, args=(path, stopped))
    backup.start()
    choose = np.random.default_rng(seed)
    values = np.random.default_rng(0).uniform(-1, 1, (n_people, 2))
    for _ in range(n_queries):
        query = query_number(int(choose.integers(4 * n_queries)), epsilon=epsilon)
        answers = ledger.answer(query, range(n_people), lambda rows, q=query: q.sample(values[rows], noise_from()))
        for person in np.flatnonzero(answers.accepted):
            write(f"{query.key} {person} {answers.outputs[person]}\n")
    stopped.set()
    backup.join()
