"""Time and gap of one certified realized loss, by number of queries and features, and a cohort of filters.

Run with ``python benchmarks/realized_loss.py``; ``--cohort 300`` sets the number of people asked linear queries until
refused; ``--growth`` fits how cost grows with the number of answers and of people instead. Times depend on the machine;
the ratio to one pass over the answers' log-likelihoods at 512 points does not.
"""

import argparse
import itertools
import resource
import time

import numpy as np
from measure import load

from skldp.accounting import BasicPrivacyFilter, BayesianPrivacyFilter, PrivacyLedger, RegressionQuery, realized_loss

KINDS = {"linear": ("linear",), "mixture": ("linear", "truncated", "logistic")}


def random_query(kind, n_features, rng):
    theta = rng.uniform(-1, 1, n_features + 1)
    theta /= np.abs(theta).sum()
    if kind == "logistic":
        return RegressionQuery(kind, 10 * theta[1:], 10 * theta[0], (0, 1), 0.1)
    bounds = (-1, 1) if kind == "linear" else (-0.3, 0.3)
    return RegressionQuery(kind, theta[1:], theta[0], bounds, 0.1)


def solves(sizes, widths, tol):
    print(f"one solve at tol {tol:g}: user seconds (times one pass), gap, converged")
    for name, n_features, n_queries in itertools.product(KINDS, widths, sizes):
        rng = np.random.default_rng(n_queries + 100 * n_features)
        kinds = KINDS[name]
        queries = [random_query(kinds[i % len(kinds)], n_features, rng) for i in range(n_queries)]
        outputs = rng.integers(0, 2, n_queries).tolist()
        points = rng.uniform(-1, 1, (512, n_features))
        began = time.process_time()
        for _ in range(10):
            sum(query.log_likelihood(output, points) for query, output in zip(queries, outputs, strict=True))
        one_pass = (time.process_time() - began) / 10
        began = time.process_time()
        found = realized_loss(queries, outputs, bounds=(-1, 1), tol=tol)
        spent = time.process_time() - began
        print(
            f"{name:8} d={n_features:<3} n={n_queries:<3} {spent:8.3f} s ({spent / one_pass:8.0f}x)  "
            f"gap {found.gap:.1e}  {found.converged}",
            flush=True,
        )


def cohort(n_people):
    began = time.process_time()
    answered = []
    for person in range(n_people):
        rng = np.random.default_rng(person)
        bayesian = BayesianPrivacyFilter(1.0, bounds=(-1, 1))
        while bayesian.admits(query := random_query("linear", 9, rng)):
            # The person's x is 0, where the answer is b with probability 1/2 up to the intercept.
            output = int(rng.uniform() < query.probability_of_high(np.zeros((1, 9)))[0])
            bayesian.record(query, output)
        answered.append(len(bayesian.history))
    basic = BasicPrivacyFilter(1.0)
    while basic.admits(query):
        basic.record(query, 0)
    low, median, high = np.percentile(answered, [10, 50, 90])
    print(f"{n_people} people until refused: {time.process_time() - began:.1f} s of processor time, peak memory of the")
    print(f"process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB; accepted: median {median:g},")
    print(f"10th to 90th percentile {low:g} to {high:g}; basic composition {len(basic.history)}")
    for number in (10, 25, 50, 100, 200):
        print(f"  still answering at query {number}: {np.mean(np.array(answered) >= number):.0%}")


def least_seconds(work, repeats=5):
    times = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def growth():
    """Least processor times and the fitted exponent e of cost ~ size^e."""
    ladders = {}
    for name, n_features, sizes in (("linear", 9, (100, 200, 400, 800)), ("mixture", 2, (5, 10, 20, 40, 80))):
        ladders[f"answers, {name} d={n_features}"] = {}
        for size in sizes:
            rng = np.random.default_rng(size)
            kinds = KINDS[name]
            queries = [random_query(kinds[i % len(kinds)], n_features, rng) for i in range(size)]
            outputs = rng.integers(0, 2, size).tolist()
            ladders[f"answers, {name} d={n_features}"][size] = least_seconds(
                lambda queries=queries, outputs=outputs: realized_loss(queries, outputs, bounds=(-1, 1))
            )
    ladders["people, 15 linear queries d=9"] = {
        n: least_seconds(lambda n=n: survey(n), 3) for n in (100, 200, 400, 800)
    }
    for name, ladder in ladders.items():
        exponent = np.polyfit(np.log(list(ladder)), np.log(list(ladder.values())), 1)[0]
        cells = ", ".join(f"{size:,}: {seconds * 1e3:.1f} ms" for size, seconds in ladder.items())
        print(f"{name}: e = {exponent:.2f}   {cells}; {load()}", flush=True)


def survey(n_people):
    """Ask as many people 15 linear queries under one ledger, at the budget of ten."""
    rng = np.random.default_rng(0)
    ledger = PrivacyLedger(1.0, bounds=(-1, 1))
    for _ in range(15):
        ledger.answer(random_query("linear", 9, rng), range(n_people), lambda rows: rng.integers(0, 2, len(rows)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohort", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20, 40])
    parser.add_argument("--widths", type=int, nargs="+", default=[2, 4, 9, 30])
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--growth", action="store_true", help="only the table of cost growth")
    options = parser.parse_args()
    if options.growth:
        growth()
    else:
        solves(options.sizes, options.widths, options.tol)
        cohort(options.cohort)
        print(load())
