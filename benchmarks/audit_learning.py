"""What an attacker proves about the releases that models are learnt from, beside what they guarantee.

Usage: python benchmarks/audit_learning.py [--trials 100000] [--people 20000] [--features 5]

All protocols are carried out on made-up people, and the last task of every kind is attacked at the two records within
the declared bounds that it tells apart best: lower bounds on epsilon at a confidence of 99.9%. Then faults are planted.
"""

import argparse

import numpy as np

from skldp.learning import ClassificationProtocol, DiscriminantProtocol, MomentsProtocol, RegressionProtocol, Task
from skldp.mechanisms import PrivUnitBall, noise_from
from skldp.study import audit_epsilon, audit_task, worst_records

EPSILONS = (1.0, 2.0, 4.0, 8.0)
CONFIDENCE = 0.999


def carried_out(protocol, X, y):
    """The last task of each kind, by the form and the answer."""
    task, asked, tasks = protocol.first(), 0, {}
    while task is not None:
        tasks[task.form, task.answer, task.n_outputs] = task
        cohort = slice(asked, asked + protocol.n_wanted)
        task, asked = protocol.next(task.release(X[cohort], y[cohort], noise_from())), cohort.stop
    return tasks


def protocols(epsilon, n, d):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    y = np.clip(X @ rng.normal(0, 0.5 / np.sqrt(d), d) + 0.1 * rng.standard_normal(n), -1, 1)
    bounds = {"low": [-1] * (d + 1), "high": [1] * (d + 1)}
    yield "regression", RegressionProtocol(d, n, epsilon=epsilon, **bounds), X, y
    yield "once", RegressionProtocol(d, n, epsilon=epsilon, **bounds, kind="once"), X, y
    bounds, codes = {"low": [-1] * d, "high": [1] * d}, np.digitize(y, [-0.2, 0.2]).astype(float)
    yield "three classes", ClassificationProtocol(d, n, 3, epsilon=epsilon, **bounds), X, codes
    yield "discriminant", DiscriminantProtocol(d, n, 3, epsilon=epsilon, **bounds), X, codes
    yield "moments", MomentsProtocol(d, n, epsilon=epsilon, **bounds), X, 0 * y


def show_tasks(n_trials, n, d):
    print(f"Lower bound / guarantee, {n_trials:,} trials each, {CONFIDENCE:.1%} confidence")
    print(f"{'protocol':14}{'form':16}{'answer':10}{'length':>6}  " + "".join(f"{epsilon:>17}" for epsilon in EPSILONS))
    found = {}
    for epsilon in EPSILONS:
        for name, *protocol in protocols(epsilon, n, d):
            for kind, task in carried_out(*protocol).items():
                result = audit_task(task, n_trials=n_trials, confidence=CONFIDENCE)
                found.setdefault((name, *kind), {})[epsilon] = f"{result.epsilon_lower:.3f} / {result.claimed:.6f}"
    for (name, form, answer, length), bounds in found.items():
        line = "".join(f"{bounds.get(epsilon, ''):>17}" for epsilon in EPSILONS)
        print(f"{name:14}{form:16}{answer:10}{length:>6}  {line}")


def show_faults(n_trials):
    """Each fault at epsilon 2, beside the same attack without it."""
    functionals = ((0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    task = Task(2.0, (-1.0,) * 3, (1.0,) * 3, "linear", functionals, "vector", 1.0)
    records = np.array(worst_records(task))
    told, ball = task.told(records[:, :-1], records[:, -1]), PrivUnitBall(3, 2.0, 1.0)

    def answers(rows, radius=1.0, mechanism=ball):
        return mechanism.release(task.told(rows[:, :-1], rows[:, -1]) / radius, noise_from()).rows * radius

    def read_radius(rows):
        return float(np.linalg.norm(rows, axis=1).max()) + 0.01

    def ratio(outputs):
        parts = np.split(outputs, outputs.shape[1] // 3, axis=1)
        return sum(ball.log_likelihood(part, told[:1]) - ball.log_likelihood(part, told[1:]) for part in parts)

    planted = {
        "none": (answers, records, {}),
        "noise of epsilon 3": (lambda rows: answers(rows, mechanism=PrivUnitBall(3, 3.0, 1.0)), records, {}),
        "a person in two cohorts": (lambda rows: np.hstack([answers(rows), answers(rows)]), records, {}),
        "a radius read from the rows": (
            lambda rows: answers(rows, read_radius(rows)),
            records * [[1.0], [0.5]],
            {"rows_per_call": 1},
        ),
    }
    print(f"\nPlanted faults, at epsilon 2, {CONFIDENCE:.1%} confidence")
    for name, (release, pair, options) in planted.items():
        trials = 4_000 if options else n_trials
        result = audit_epsilon(
            release,
            *pair,
            n_trials=trials,
            confidence=CONFIDENCE,
            scores={"the ratio of likelihoods": ratio},
            **options,
        ).against(2.0)
        print(f"{name:30}{result}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=5)
    chosen = parser.parse_args()
    show_tasks(chosen.trials, chosen.people, chosen.features)
    show_faults(chosen.trials)
