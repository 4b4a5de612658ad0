"""Measure questions within a budget, planned epsilons, and losses of mixed histories.

``python benchmarks/questions.py [runs]`` prints three tables; everything is drawn from fixed seeds.
``python benchmarks/questions.py --time [people]`` prints what a decision costs if histories are certified together and
one by one, in one process.
"""

import sys
import time
import warnings

import numpy as np

from skldp.accounting import BayesianPrivacyFilter, RegressionQuery, realized_loss
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._decide import Rule, decide
from skldp.accounting._filters import BasicPrivacyFilter
from skldp.domains._columns import Columns
from skldp.domains._constraints import OneHot
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import Column, noise_from
from skldp.study import plan_questions

N_FEATURES, EPSILON, BUDGET = 4, 0.1, 1.0


def question(rng, kind, epsilon=EPSILON):
    """One question over [-1, 1]^d whose linear form reaches from -1 to 1."""
    coef = rng.uniform(-1, 1, N_FEATURES)
    coef /= np.abs(coef).sum()
    bounds = (-1.0, 1.0) if kind == "linear" else (float(np.exp(-1)), float(np.exp(1)))
    return RegressionQuery(kind, coef, 0.0, bounds, epsilon)


def answered(kind, run, rule, most=200):
    """How many questions in a row somebody answers before one is refused."""
    rng, noise = np.random.default_rng(run), noise_from(run)
    person = rule(BUDGET) if rule is BasicPrivacyFilter else rule(BUDGET, bounds=(-1, 1), tol=1e-2)
    row = rng.uniform(-1, 1, (1, N_FEATURES))
    for count in range(most):
        query = question(rng, kind)
        if not person.admits(query):
            return count
        person.record(query, int(query.sample(row, noise)[0]))
    return most


def mixed_history(run):
    """Exact loss on a grid, certified loss and sum of losses of one history, with its epsilons added up."""
    rng, noise, jobs = np.random.default_rng(run), noise_from(run), ("a", "b", "c")
    domain = Columns.of({"x": Column(-1.0, 1.0), jobs: OneHot(3)})
    records = np.array([[x, *own] for x in np.linspace(-1, 1, 401) for own in np.eye(3)])
    row, asked = records[rng.integers(len(records), size=1)], []
    for _ in range(4):
        coef = rng.uniform(-1, 1, 4)
        ends = coef[1:].min() - abs(coef[0]), coef[1:].max() + abs(coef[0])
        asked.append(RegressionQuery("linear", coef, 0.0, ends, 0.3))
    coef, none = rng.uniform(-2, 2, (3, 4)), np.zeros(3)
    asked += [SoftmaxQuery(coef, none, of_class, 0.3) for of_class in range(3)]
    asked += [ClassQuery(coef, none, 0.3)] * 2 + [ClassQuery(np.eye(4)[1:], none, 0.3)] * 3
    outputs = [int(query.sample(row, noise)[0]) for query in asked]
    exact = np.ptp(sum(query.log_likelihood(output, records) for query, output in zip(asked, outputs, strict=True)))
    groups = {}
    for query, output in zip(asked, outputs, strict=True):
        key = "regressions" if isinstance(query, RegressionQuery) else query.key
        groups.setdefault(key, []).append((query, output))
    added = sum(realized_loss(*zip(*own, strict=True), bounds=domain).upper for own in groups.values())
    certified = realized_loss(asked, outputs, bounds=domain).upper
    return exact, certified, added, sum(query.exact_epsilon for query in asked)


def drawn_histories(kind, n_people, n_features, n_questions):
    """Questions, of which the last comes next, and answers to the others of records drawn uniformly from the box."""
    rng, noise = np.random.default_rng(0), noise_from(0)
    rows, queries = rng.uniform(-1, 1, (n_people, n_features)), []
    for number in range(n_questions + 1):
        coef = rng.uniform(-1, 1, n_features)
        coef /= np.abs(coef).sum()
        if kind == "logistic":
            queries.append(RegressionQuery(kind, 4 * coef, 0.0, (0, 1), EPSILON))
        elif kind == "mixed" and number % 5 == 0:
            queries.append(RegressionQuery("truncated", 1.3 * coef, 0.0, (-1, 1), EPSILON))
        else:
            queries.append(RegressionQuery("linear", coef, 0.0, (-1, 1), EPSILON))
    outputs = np.stack([query.sample(rows, noise) for query in queries[:-1]], axis=1).tolist()
    return queries, [(list(range(n_questions)), own) for own in outputs]


def decision_cost(queries, histories, n_runs=5, *, together=True):
    """Median processor time of a decision in microseconds, and the share that is admitted."""
    seconds, rule = [], Rule("bayesian", BUDGET, (-1.0, 1.0))
    for _ in range(n_runs):
        table, start = rule.table_for(queries[-1]) if together else None, time.process_time()
        admitted = decide(rule, queries[:-1], histories, queries[-1], table=table)
        seconds.append((time.process_time() - start) / len(histories))
    return float(np.median(seconds)) * 1e6, np.mean(admitted)


def time_decisions(n_people=1000):
    """Print the cost of a decision by kind, and how it grows with people, questions and features."""
    print(f"microseconds a history, {n_people} people, 5 features: certified together, one by one (20 of them)")
    for kind in ("linear", "mixed", "logistic"):
        for n_questions in (12, 15, 20):
            queries, histories = drawn_histories(kind, n_people, 5, n_questions)
            cost, admitted = decision_cost(queries, histories)
            alone = decision_cost(queries, histories[:20], 1, together=False)[0]
            print(f"  {kind:8} question {n_questions + 1:2}: {cost:6.0f} {alone:8.0f}, {admitted:.3f} admitted")
    print("growth of mixed questions, microseconds a history")
    for name, sizes in (
        ("people", [(n_people * times, 5, 15) for times in (1, 2, 4)]),
        ("questions", [(n_people, 5, n) for n in (10, 20, 40, 80)]),
        ("features", [(n_people, d, 12) for d in (2, 5, 10, 20)]),
    ):
        costs = [decision_cost(*drawn_histories("mixed", *size))[0] for size in sizes]
        print(f"  {name:9}", ", ".join(f"{size}: {cost:.0f}" for size, cost in zip(sizes, costs, strict=True)))


def main(n_runs=10):
    """Print what the module says."""
    print(f"questions of epsilon {EPSILON} answered at a budget of {BUDGET}, {N_FEATURES} features, {n_runs} people:")
    for kind in ("linear", "exponential"):
        basic = answered(kind, 0, BasicPrivacyFilter)
        counts = [answered(kind, run, BayesianPrivacyFilter) for run in range(n_runs)]
        print(f"  {kind:12} basic {basic}, Bayesian median {np.median(counts):g} (from {min(counts)} to {max(counts)})")
    rng = np.random.default_rng(0)
    people = rng.uniform(-1, 1, (50, N_FEATURES))
    print(f"largest epsilon of each question at which 9 of 10 people answer all, at a budget of {BUDGET}:")
    for n_questions in (5, 10, 20):
        queries = [question(rng, "linear") for _ in range(n_questions)]
        plan = plan_questions(queries, people, total_epsilon=BUDGET, bounds=(-1, 1))
        print(f"  {n_questions:2} questions: {plan.epsilon:.3f}, by adding up {plan.added_up:.3f}")
    losses = np.array([mixed_history(run) for run in range(n_runs)])
    print(f"loss of 12 answers about one record (regressions, classes, probabilities, releases), {n_runs} people:")
    for name, own in zip(("on a grid", "certified", "sum of losses", "epsilons"), losses.T, strict=True):
        print(f"  {name:14} {own.mean():.2f} +- {own.std(ddof=1):.2f}")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        timed = sys.argv[1:2] == ["--time"]
        (time_decisions if timed else main)(*(int(argument) for argument in sys.argv[1 + timed :]))
