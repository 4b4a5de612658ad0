"""Columns as tables have them: redundant ones, and ones that fill little of their bounds."""

import numpy as np
import pytest
from laws import seeded

from skldp.learning import ClassificationProtocol, RegressionProtocol
from skldp.learning._person import simulate

N = 30_000


def r2(protocol, X, y):
    return 1 - np.mean((y - X @ protocol.coefficients - protocol.intercept) ** 2) / y.var()


def accuracy(X, y, epsilon, seed):
    learnt = ClassificationProtocol(X.shape[1], N, 2, epsilon=epsilon, low=X.min(axis=0), high=X.max(axis=0))
    simulate(learnt, X, y, seeded(seed))
    return np.mean((X @ np.diff(learnt.coefficients, axis=0)[0] + np.diff(learnt.intercepts)[0] > 0) == y)


def voters(n_groups):
    """Three numbers and a category: about 60% are of class 1, which a model predicts with an accuracy of .66."""
    rng = np.random.default_rng(1)
    z, group = rng.uniform(-1, 1, (N, 3)), rng.integers(0, n_groups, N)
    chances = 1 / (1 + np.exp(-0.4 - z[:, 0] + 0.8 * z[:, 1] - 0.3 * (group == 0)))
    return np.column_stack([z, np.eye(n_groups)[group]]), (rng.random(N) < chances).astype(float)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_groups", "epsilon"), [(2, 4.0), (2, 8.0), (5, 8.0), (2, 16.0), (5, 4.0), (5, 64.0)])
def test_a_redundant_column_leaves_a_classifier_alike(n_groups, epsilon, seed):
    X, y = voters(n_groups)
    with_all, without_last = accuracy(X, y, epsilon, seed), accuracy(X[:, :-1], y, epsilon, seed)
    assert with_all > without_last - 0.01
    assert with_all > y.mean() + 0.04


@pytest.mark.few(1)
@pytest.mark.parametrize("redundant", ["copy", "nearly a copy", "tenfold", "sum of two"])
@pytest.mark.parametrize("epsilon", [8.0, 30.0])
def test_a_redundant_column_leaves_a_regression_alike(redundant, epsilon):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 3))
    y = X @ [0.4, -0.3, 0.1] + 0.2 * rng.standard_normal(N)
    differ = np.where(rng.random(N) < 0.02, -X[:, 0], X[:, 0])
    added = {
        "copy": X[:, [0]],
        "nearly a copy": differ[:, None],
        "tenfold": np.repeat(X[:, [0]], 10, axis=1),
        "sum of two": X[:, [0]] / 2 + X[:, [1]] / 2,
    }[redundant]
    scores = []
    for records in (X, np.column_stack([X, added])):
        d = records.shape[1]
        learnt = RegressionProtocol(d, N, epsilon=epsilon, low=[-1] * (d + 1), high=[1] * (d + 1))
        simulate(learnt, records, y, seeded(1))
        scores.append(r2(learnt, records, y))
    assert scores[1] > scores[0] - 0.01


def test_a_column_that_fills_little_of_its_bounds_is_learnt():
    rng, n = np.random.default_rng(0), 60_000
    small, group = rng.uniform(0, 0.08, n), rng.integers(0, 5, n)
    X, y = np.column_stack([small, np.eye(5)[group]]), small / 0.08 + 0.2 * rng.standard_normal(n)
    learnt = RegressionProtocol(6, n, epsilon=8.0, low=[0] * 6 + [-3], high=[1] * 6 + [4])
    simulate(learnt, X, y, seeded())
    widths = learnt._widths[1:]
    # Twice its deviation, as bounds are 2 wide; noise of the squares may hide larger values.
    assert 2 * small.std() < widths[0] < widths[1:].min() / 3
    assert r2(learnt, X, y) > 0.97 * (1 - 0.04 / y.var())


def test_columns_keep_the_common_width_where_few_people_would_report_each():
    def squares(n, epsilon):
        return [
            n
            for name, n in RegressionProtocol(5, n, epsilon=epsilon, low=[-1] * 6, high=[1] * 6)._steps
            if name == "squares"
        ]

    assert squares(3_000, 1.0) == []
    # Three percent of those who report features.
    assert 0.02 * 60_000 < squares(60_000, 2.0)[0] < 0.03 * 60_000
