"""Made-up tables with the declared columns, on which models are tried before any person is asked."""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import entr, rel_entr, softmax
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skldp._arrays import Floats
from skldp.domains._column import Column
from skldp.estimators._column_encoder import encoded

# Deviation of an even number, in halves of the width of its bounds, and the factor by which a skewed one is narrower.
_DEVIATION, _NARROWER = 1 / 6, 4


def made_up(
    columns: Iterable[Column], target: Any, n: int, explained: float, shares: Any, skew: float, seed: int
) -> tuple[Floats, np.ndarray, Floats]:
    """Draw encoded features, targets, and what a linear model without privacy predicts, of classes their probabilities.

    Features and numeric targets are within -1 and 1; `skew` is from 0 (even) to 1.
    """
    rng = np.random.default_rng(seed)
    common, alike, blocks = rng.standard_normal(n), 0.9 - 0.8 * skew, []
    for column in columns:
        if not column.has_codes:
            normal = math.sqrt(alike) * common + math.sqrt(1 - alike) * rng.standard_normal(n)
            numbers = column.center + column.radius * _places(column, normal, skew, skew * rng.uniform(-0.6, 1))
        else:
            k = len(column.values)
            numbers = rng.choice(k, n, p=(1 - skew) / k + skew * rng.dirichlet([2.0] * k)).astype(np.float64)
        features, low, high = encoded(column, numbers)
        blocks.append((2 * features - low - high) / (high - low))
    X = np.hstack(blocks)
    weights = rng.normal(1 - skew, 1.0, (X.shape[1], 1 if shares is None else len(shares)))
    signal = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9) @ weights
    signal = (signal - signal.mean(axis=0)) / np.maximum(signal.std(axis=0), 1e-9)
    if shares is None:
        if _is_positive(target):
            # A linear model explains less of a lognormal number than of its logarithm.
            explained = min(1.0, explained * math.expm1((0.1 + skew) ** 2) / (0.1 + skew) ** 2)
        normal = math.sqrt(explained) * signal[:, 0] + math.sqrt(1 - explained) * rng.standard_normal(n)
        y = _places(target, normal, skew, skew)
        return X, y, LinearRegression().fit(X, y).predict(X)
    strength = 0.0
    for step in 2.0 ** np.arange(6, -8, -1):
        p = softmax((strength + step) * signal + np.log(shares), axis=1)
        if 1 - entr(p).sum(axis=1).mean() / entr(p.mean(axis=0)).sum() < explained:
            strength += step
    p = softmax(strength * signal + np.log(shares), axis=1)
    return X, (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1), p


def loss(model: Any, n: int, X: Floats, y: np.ndarray, expected: Floats, seed: int) -> float:
    """Return the fraction, at most 1, of what is to be learnt that a private fit to the first n rows does not learn."""
    is_number = expected.ndim == 1
    own: dict[str, Any] = {"target_bounds": (-1, 1)} if is_number else {"classes": range(expected.shape[1])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(model).set_params(seed=seed, **own).fit(X[:n], y[:n])
    if is_number:
        lost, learnt = (fitted.predict(X) - expected) ** 2, expected.var()
    else:
        lost, learnt = (rel_entr(expected, q).sum(axis=1) for q in (fitted.predict_proba(X), expected.mean(axis=0)))
    return min(1.0, float(lost.mean() / learnt.mean())) if learnt.mean() > 0 else 1.0


def _is_positive(column: Column) -> bool:
    is_linear = not column.has_codes and column.scale == "linear" and not column.is_date
    return is_linear and 0 <= 10 * column.low <= column.high


def _places(column: Column, normal: Floats, skew: float, narrower: float) -> Floats:
    """Return values between -1 and 1, normal, or lognormal from -1 on for a positive column."""
    width, variance = _DEVIATION / _NARROWER**narrower, (0.1 + skew) ** 2
    if _is_positive(column):
        deviation = math.exp(variance / 2) * math.sqrt(math.expm1(variance))
        return np.clip(width / deviation * np.exp(math.sqrt(variance) * normal) - 1, -1, 1)
    return np.clip(width * normal, -1, 1)
