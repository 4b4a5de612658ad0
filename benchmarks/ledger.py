"""How fast a ledger records, reopens and verifies, beside the same rows written by bare SQLite.

python benchmarks/ledger.py            # 100,000 people x 4 queries, and 1,000,000 answers
python benchmarks/ledger.py --quick    # a tenth of it
"""

import argparse
import os
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from skldp.accounting import PrivacyLedger, RegressionQuery
from skldp.mechanisms._noise import noise_from


def timed(work):
    """Seconds of a call, and its result."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def rate(n_answers, seconds):
    return f"{seconds:6.2f} s  {n_answers / seconds:10,.0f} answers/s"


def peak_memory():
    """Peak resident memory of this process in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def queries(n, n_features=4):
    rng = np.random.default_rng(0)
    for _ in range(n):
        coef = rng.uniform(-1, 1, n_features)
        yield RegressionQuery("linear", coef, 0.0, (-np.abs(coef).sum(), np.abs(coef).sum()), 0.25)


def bare_sqlite(path, n_people, n_queries):
    """Only the rows: the floor that SQLite sets, with the same durability."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE people (person INTEGER PRIMARY KEY, identity NOT NULL UNIQUE)")
    connection.execute(
        "CREATE TABLE answers (release INTEGER, person INTEGER, output INTEGER, PRIMARY KEY (release, person)) "
        "WITHOUT ROWID"
    )
    people = [(person, person) for person in range(n_people)]
    for release in range(n_queries):
        connection.execute("BEGIN IMMEDIATE")
        if release == 0:
            connection.executemany("INSERT INTO people VALUES (?, ?)", people)
        connection.executemany("INSERT INTO answers VALUES (?, ?, 1)", [(release, person) for person, _ in people])
        connection.execute("COMMIT")
    connection.close()


def record(path, n_people, n_queries, rule):
    ledger = PrivacyLedger(1.0, bounds=(-1, 1), path=path, rule=rule)
    X = np.random.default_rng(1).uniform(-1, 1, (n_people, 4))
    for query in queries(n_queries):
        noise = noise_from()
        answers = ledger.answer(query, range(n_people), lambda rows, q=query, n=noise: q.sample(X[rows], n))
        assert answers.accepted.all()
    ledger.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    scale = 10 if parser.parse_args().quick else 1
    with tempfile.TemporaryDirectory() as directory:
        for n_people in (100_000 // scale, 250_000 // scale):
            n_answers = 4 * n_people
            path, bare = Path(directory, f"{n_people}.ledger"), Path(directory, f"{n_people}.sqlite")
            floor, _ = timed(lambda bare=bare, n=n_people: bare_sqlite(bare, n, 4))
            seconds, _ = timed(lambda path=path, n=n_people: record(path, n, 4, "bayesian"))
            print(f"{n_people:,} people x 4 queries, {os.path.getsize(path) / n_answers:.1f} bytes an answer")
            print(f"  record   {rate(n_answers, seconds)}  {seconds / floor:.2f} x bare SQLite")

            def reopen(path=path, n=n_people):
                return PrivacyLedger.open(path).remaining(range(n))

            seconds, remaining = timed(reopen)
            print(f"  reopen   {rate(n_answers, seconds)}  (with everybody's certified loss)")
            assert (remaining >= 0).all()
            seconds, verification = timed(PrivacyLedger.open(path, read_only=True).verify)
            assert verification.ok, verification.problems
            print(f"  verify   {rate(n_answers, seconds)}")
            print(f"  peak memory so far {peak_memory():,.0f} MB")


if __name__ == "__main__":
    main()
