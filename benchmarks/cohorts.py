"""Whole cohorts under one ledger: how many are answered, how long it takes, and how much memory.

python benchmarks/cohorts.py              # both
python benchmarks/cohorts.py health       # 10,000 people x the 4 regressions of Pan 2025, Table I
python benchmarks/cohorts.py linear       # 300 people x the linear regressions of Section 6.1, until refused
python benchmarks/cohorts.py linear --people 50
"""

import argparse
import resource
import sys
import time

import numpy as np

from skldp.accounting import PrivacyLedger, RegressionQuery
from skldp.estimators._ledgers import joblib_workers
from skldp.mechanisms._noise import noise_from

# Pan 2025, Appendix E: age, sex, blood pressure and BMI.
HEALTH_BOUNDS = ([10.0, 0.0, 50.0, 10.0], [100.0, 1.0, 200.0, 50.0])
HEALTH = {
    "heart disease": ("logistic", [-0.059, -1.456, -0.0134, 0.0], 6.177, (0, 1)),
    "stroke": ("logistic", [0.0761, 0.0952, 0.0, 0.0163], -7.989, (0, 1)),
    "diabetes": ("logistic", [0.0491, 0.0, -0.0091, 0.1039], -5.07, (0, 1)),
    "sleep": ("truncated", [0.0855, 0.4617, -0.07, 0.0], 12.323, (0, 12)),
}
MARKS = (5, 10, 11, 20, 40, 60, 80, 100, 150, 200, 300)


def peak_memory():
    """Peak resident memory of this process in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def random_linear(rng):
    theta = rng.uniform(-1, 1, 10)
    theta /= np.abs(theta).sum()
    return RegressionQuery("linear", theta[1:], theta[0], (-1, 1), 0.1)


def ask(ledger, query, X, people, n_jobs):
    noise = noise_from()
    return ledger.answer(
        query, people, lambda rows: query.sample(X[people[rows]], noise), workers=joblib_workers(n_jobs)
    ).accepted


def health(n_people, n_jobs):
    rng = np.random.default_rng(0)
    low, high = np.array(HEALTH_BOUNDS)
    X = rng.uniform(low, high, (n_people, 4))
    X[:, 1] = X[:, 1].round()
    print(f"{n_people:,} people x 4 health regressions of epsilon 1")
    print("budget  rule        seconds  MB     answered: " + ", ".join(HEALTH) + "; median and largest loss")
    for budget in (4.0, 3.0, 2.0):
        for rule in ("basic", "bayesian"):
            ledger = PrivacyLedger(budget, bounds=HEALTH_BOUNDS, rule=rule)
            began = time.perf_counter()
            shares = [
                ask(ledger, RegressionQuery(*parameters, 1.0), X, np.arange(n_people), n_jobs).mean()
                for parameters in HEALTH.values()
            ]
            seconds = time.perf_counter() - began
            losses = ledger.realized_loss(range(n_people))
            answered = " ".join(f"{share:6.1%}" for share in shares)
            print(
                f"{budget:<7g} {rule:10} {seconds:8.2f} {peak_memory():5,.0f}    {answered}   {np.median(losses):.3f} "
                f"{losses.max():.3f}"
            )


def linear(n_people, n_jobs):
    shares, summary = {}, []
    for rule in ("basic", "bayesian"):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (n_people, 9))
        ledger = PrivacyLedger(1.0, bounds=(-1, 1), rule=rule)
        answered = np.zeros(n_people, dtype=int)
        asking = np.arange(n_people)
        shares[rule] = []
        began = time.perf_counter()
        began_working = time.process_time()
        while asking.size:
            # As in the paper, nobody is asked again after a first refusal.
            asking = asking[ask(ledger, random_linear(rng), X, asking, n_jobs)]
            answered[asking] += 1
            shares[rule].append(len(asking) / n_people)
        seconds, worked = time.perf_counter() - began, time.process_time() - began_working
        low, median, high = np.percentile(answered, [10, 50, 90])
        summary.append(
            f"{rule:10} {seconds:8.1f} {worked:10.1f} {peak_memory():5,.0f} {answered.sum():8,} {median:8g}   "
            f"{low:g} to {high:g}"
        )
    print(f"{n_people:,} people x linear regressions of epsilon 0.1 until refused, budget 1")
    print("rule        seconds  processor    MB  answers   median   10th to 90th percentile")
    print("\n".join(summary))
    print("query       " + " ".join(f"{number:5}" for number in MARKS))
    for rule, share in shares.items():
        padded = [*share, *[0.0] * MARKS[-1]]
        print(f"{rule:11} " + " ".join(f"{padded[number - 1]:5.0%}" for number in MARKS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohort", nargs="?", choices=["health", "linear"], help="default: both")
    parser.add_argument("--people", type=int)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    for name, work, n_people in (("health", health, 10_000), ("linear", linear, 300)):
        if options.cohort in (None, name):
            work(options.people or n_people, options.jobs)


if __name__ == "__main__":
    main()
