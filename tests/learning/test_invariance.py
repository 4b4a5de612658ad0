"""Redundant columns and units do nothing: predictions differ as much as those of two fits of one design."""

import warnings

import numpy as np
import pytest

from skldp import PrivateDiscriminant, PrivateLinearRegression, PrivateLogisticRegression

N, SEEDS = 20_000, 3
RNG = np.random.default_rng(0)
GROUP = RNG.integers(0, 3, N)
X = np.column_stack([RNG.uniform(-1, 1, (N, 3)), np.eye(3)[GROUP][:, 1:]])
SIGNAL = X @ [1.0, -0.8, 0.0, 0.6, -0.4]
LOW, HIGH = np.array([-1.0] * 3 + [0.0] * 2), np.ones(5)
UNITS = np.array([10.0, 1.0, 0.01, 1.0, 1.0])


def with_column(column, low, high):
    return np.column_stack([X, column]), np.append(LOW, low), np.append(HIGH, high)


DESIGNS = {
    "all columns of a category": with_column(GROUP == 0, 0, 1),
    "a complement": with_column(1 - X[:, -1], 0, 1),
    "a sum": with_column(X[:, 0] + X[:, 1], -2, 2),
    "units": (X * UNITS, LOW * UNITS, HIGH * UNITS),
}
MODELS = {
    "linear": lambda bounds: PrivateLinearRegression(8.0, bounds=bounds, target_bounds=(-6, 6)),
    "linear once": lambda bounds: PrivateLinearRegression(8.0, bounds=bounds, target_bounds=(-6, 6), protocol="once"),
    "logistic": lambda bounds: PrivateLogisticRegression(8.0, bounds=bounds, classes=[0, 1]),
    "logistic once": lambda bounds: PrivateLogisticRegression(8.0, bounds=bounds, classes=[0, 1], protocol="once"),
    "discriminant": lambda bounds: PrivateDiscriminant(8.0, bounds=bounds, classes=[0, 1]),
}
pytestmark = pytest.mark.statistical


def predictions(name, rows, low, high, first):
    rng = np.random.default_rng(1)
    noise = rng.logistic(0, 0.5, N)
    y = SIGNAL + noise if name.startswith("linear") else (SIGNAL - SIGNAL.mean() + noise > 0).astype(int)
    found = []
    for seed in range(first, first + SEEDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MODELS[name]((low, high)).set_params(seed=seed).fit(rows, y)
        found.append(model.predict(rows) if name.startswith("linear") else model.predict_proba(rows)[:, 1])
    return found


def distance(one, other):
    return np.mean([np.sqrt(np.mean((a - b) ** 2)) for a in one for b in other])


@pytest.mark.parametrize("name", MODELS)
def test_redundant_columns_and_units_leave_predictions_alike_within_noise(name):
    base, again = predictions(name, X, LOW, HIGH, 0), predictions(name, X, LOW, HIGH, 100)
    own = distance(base, again)
    ratios = {
        title: distance(base, predictions(name, *design, 200 + 10 * at)) / own
        for at, (title, design) in enumerate(DESIGNS.items())
    }
    assert max(ratios.values()) < 2.0, ratios
