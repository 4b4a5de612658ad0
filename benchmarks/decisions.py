"""Seconds of decisions: steep questions, mixtures and domains that are hard to close, long histories, many people.

    python benchmarks/decisions.py                 # all cases of this checkout
    python benchmarks/decisions.py --only wine mixture
    python benchmarks/decisions.py --against ../old --rounds 3     # two checkouts in turns, and their ratio

Figures are processor seconds. What is counted (people admitted, answers accepted) is printed beside them: on the same
noise, a faster decision must not admit fewer. Every case also tells the slowest single question.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from measure import load
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldp.accounting import BayesianPrivacyFilter, PrivacyLedger, RegressionQuery, realized_loss
from skldp.accounting._extrema.region import region_of
from skldp.estimators._from_estimator import query_from_estimator
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import Columns, Interval, OneHot, noise_from


def timed(work):
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def seeded(seed):
    with warnings.catch_warnings():
        # Both checkouts are to draw the same noise; nobody's data are at stake.
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return noise_from(seed)


def wine(scale):
    """One logistic question after another of 100 people with 13 features, epsilon 0.4, budget 2."""
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    people, public = order[: 100 // scale], order[100:]
    bounds = X.min(axis=0), X.max(axis=0)
    ledger, noise = PrivacyLedger(2.0, bounds=bounds), seeded(0)
    for number in range(1, 10):
        rows = rng.choice(public, 50)
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[rows], y[rows] == (number - 1) % 3)
        query = query_from_estimator(model, epsilon=0.4, bounds=bounds)
        seconds, answers = timed(
            lambda q=query: ledger.answer(q, range(len(people)), lambda asked: q.sample(X[people[asked]], noise))
        )
        if number > 5:
            yield f"wine, question {number}", seconds, int(answers.accepted.sum())


def steep(scale):
    """Pan 2025, Section 6.2, with coefficients of L1 norm 10: one person's decisions until refused, budget 1."""
    for run in (1, 2, 4, 6, 7)[: 5 // scale]:
        rng, noise = np.random.default_rng(run), seeded(run)
        person, slowest, admitted = BayesianPrivacyFilter(1.0, bounds=(-1, 1)), 0.0, True
        while admitted:
            theta = rng.uniform(-10, 10, 10)
            theta *= 10 / np.abs(theta).sum()
            query = RegressionQuery("logistic", theta[1:], theta[0], (0, 1), 0.1)
            seconds, admitted = timed(lambda q=query, p=person: p.admits(q))
            slowest = max(slowest, seconds)
            if admitted:
                person.record(query, int(query.sample(np.zeros((1, 9)), noise)[0]))
        yield f"section 6.2, run {run}, slowest decision", slowest, len(person.history)


def random_query(kind, n_features, rng, epsilon):
    theta = rng.uniform(-1, 1, n_features + 1)
    theta /= np.abs(theta).sum()
    if kind == "logistic":
        return RegressionQuery(kind, 10 * theta[1:], 10 * theta[0], (0, 1), epsilon)
    return RegressionQuery(kind, theta[1:], theta[0], (-1, 1) if kind == "linear" else (-0.3, 0.3), epsilon)


def mixture(scale):
    """One loss of 40 linear, truncated and logistic answers; the count is the gap that is left, in 1e-4 nats."""
    for n_features in (9, 30):
        rng = np.random.default_rng(40 + 100 * n_features)
        kinds = ("linear", "truncated", "logistic")
        queries = [random_query(kinds[i % 3], n_features, rng, 0.1) for i in range(40 // scale)]
        outputs = rng.integers(0, 2, len(queries)).tolist()
        seconds, found = timed(lambda q=queries, o=outputs: realized_loss(q, o, bounds=(-1, 1)))
        yield f"mixture of {len(queries)}, {n_features} features, gap in 1e-4", seconds, round(found.gap * 1e4)


def opposed(scale):
    """Losses of answers that pull both ways, over five numbers beside categories; the count is the gap, as above."""
    for sizes, n_answers in (((4, 3), 20), ((9, 5), 40), ((10, 8, 6), 40)):
        parts = {f"number {column}": Interval(-1.0, 1.0) for column in range(5)}
        for block, size in enumerate(sizes):
            parts |= {tuple(f"{block}={value}" for value in range(size)): OneHot(size)}
        domain = Columns.of(parts)
        for seed in range(2):
            rng = np.random.default_rng(seed)
            queries = [over_domain(domain, ("linear", "truncated", "logistic")[i % 3], rng) for i in range(n_answers)]
            outputs = rng.integers(0, 2, n_answers // scale).tolist()
            seconds, found = timed(
                lambda q=queries[: n_answers // scale], o=outputs, d=domain: realized_loss(q, o, bounds=d)
            )
            name = f"5 numbers, blocks {','.join(map(str, sizes))}, {len(outputs)} answers, seed {seed}, gap"
            yield name, seconds, round(found.gap * 1e4)


def over_domain(domain, kind, rng):
    """A question with the range that it has over a domain, with three tenths of it, or steep."""
    coef = rng.uniform(-1, 1, domain.n_features)
    if kind == "logistic":
        return RegressionQuery(kind, 10 * coef / np.abs(coef).sum(), 0.0, (0, 1), 0.2)
    low, high = region_of(domain).range_of(coef)
    middle, reach = (low + high) / 2, (high - low) / 2 * (0.3 if kind == "truncated" else 1.0) + 1e-9
    return RegressionQuery(kind, coef, 0.0, (middle - reach, middle + reach), 0.2)


def linear(scale):
    """A ledger that asks the same people linear questions of epsilon 0.02 at a budget of 1."""
    for rule, n_questions in (("bayesian", 800 // scale), ("simplified", 245 // scale)):
        rng = np.random.default_rng(0)
        ledger, total, accepted = PrivacyLedger(1.0, bounds=(-1, 1), rule=rule), 0.0, 0
        for number in range(1, n_questions + 1):
            query = random_query("linear", 9, rng, 0.02)
            seconds, answers = timed(
                lambda q=query, one=ledger, r=rng: one.answer(q, range(100), lambda rows: r.integers(0, 2, len(rows)))
            )
            total, accepted = total + seconds, accepted + int(answers.accepted.sum())
            if rule == "bayesian" and number in (100, 800 // scale):
                yield f"linear, 100 people, question {number}", seconds, accepted
        yield f"linear, 100 people, {n_questions} questions, {rule}", total, accepted


def many(scale):
    """The same of many people, whose histories part: questions of epsilon 0.1 with 4 features, budget 1."""
    n_people, rng = 100_000 // scale, np.random.default_rng(0)
    ledger = PrivacyLedger(1.0, bounds=(-1, 1))
    for number in range(1, 21):
        query = random_query("linear", 4, rng, 0.1)
        seconds, answers = timed(
            lambda q=query: ledger.answer(q, range(n_people), lambda rows: rng.integers(0, 2, len(rows)))
        )
        if number in (10, 12, 15, 20):
            yield f"linear, {n_people:,} people, question {number}", seconds, int(answers.accepted.sum())


CASES = {case.__name__: case for case in (wine, steep, mixture, opposed, linear, many)}
LINE = re.compile(r"(?P<name>.+?) +(?P<seconds>[\d.]+) s +(?P<count>\d+)")


def table(root, options):
    """Seconds and counts by case, of one run in a checkout."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), *options],
        env=os.environ | {"PYTHONPATH": str(Path(root).resolve())},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = (LINE.fullmatch(line) for line in done.stdout.splitlines())
    return {line["name"]: (float(line["seconds"]), int(line["count"])) for line in lines if line}


def in_turns(old, rounds, options):
    new = Path(__file__).resolve().parents[1]
    runs = {"old": [], "new": []}
    for number in range(rounds):
        for name, root in (("old", old), ("new", new)):
            runs[name].append(table(root, options))
        print(f"round {number + 1} of {rounds}, {load()}", file=sys.stderr, flush=True)
    print(f"{'median processor seconds':<60}{'old':>9}{'new':>9}{'old/new':>9}   count old, new")
    for case in runs["new"][0]:
        before, after = (statistics.median(run[case][0] for run in runs[name]) for name in ("old", "new"))
        counts = [runs[name][0][case][1] for name in ("old", "new")]
        print(f"{case:<60}{before:>9.3f}{after:>9.3f}{before / max(after, 1e-4):>9.1f}   {counts[0]:,}, {counts[1]:,}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--scale", type=int, default=1, help="so many times fewer people and answers")
    parser.add_argument("--against", help="another checkout")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if options.against:
        in_turns(options.against, options.rounds, ["--only", *options.only, "--scale", str(options.scale)])
        return
    for name in options.only:
        for case, seconds, count in CASES[name](options.scale):
            print(f"{case:<60} {seconds:9.3f} s {count:9}", flush=True)
    print(load())


if __name__ == "__main__":
    main()
