"""Least squares of released rows: against its formula in plain loops, and what noise hides."""

import numpy as np
import pytest

from skldp.learning._errors_in_variables import least_squares_of_releases
from skldp.mechanisms import Piecewise
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures

# What is compared with a threshold cannot fail by chance.
pytestmark = pytest.mark.usefixtures("fixed_noise")


RNG = np.random.default_rng(0)


def law(d, n_sampled, epsilon=6.0):
    return BoundedFeatures(Piecewise(epsilon), low=(-1.0,) * d, high=(2.0,) * d, n_sampled=n_sampled, stated=epsilon)


def released(n, d, n_sampled, seed=0, epsilon=6.0):
    x = RNG.uniform(-1, 2, (n, d))
    return law(d, n_sampled, epsilon).release(x, Noise(bytes([seed]) * 32, secure=False)).rows


def naive(rows, target, mechanism, together):
    """Coefficients and their sandwich, person by person."""
    n, d = rows.shape

    def of(people):
        table = [[1.0, *rows[i], target[i]] for i in people]
        moments = [[sum(v[a] * v[b] for v in table) / len(table) for b in range(d + 2)] for a in range(d + 2)]
        moments = np.array(moments)
        own = slice(1, d + 2 if together else d + 1)
        moments[own, own] = mechanism.original_second_moment(moments[own, own], moments[0, own])
        return moments

    whole = of(range(n))
    gram = whole[:-1, :-1]
    beta = np.linalg.solve(gram, whole[:-1, -1])
    scores = []
    for i in range(n):
        one = of([i])
        scores.append(one[:-1, -1] - one[:-1, :-1] @ beta)
    inverse = np.linalg.inv(gram)
    return beta, inverse @ np.cov(np.array(scores).T) @ inverse.T / n


@pytest.mark.parametrize("together", [True, False])
def test_is_what_the_formula_says(together):
    n, d = 150, 2
    width = d + together
    # A law of little noise, with which 150 people are enough.
    mechanism = law(width, width, 30.0)
    table = released(n, width, width, epsilon=30.0)
    target = table[:, 2] + table[:, 0] if together else table[:, 0] - 0.5 * table[:, 1] + RNG.normal(size=n)
    rows = table[:, :d]
    fit = least_squares_of_releases(rows, target, mechanism, together=together)
    beta, covariance = naive(rows, target, mechanism, together)
    np.testing.assert_allclose(np.append(fit.intercept, fit.coef), beta, rtol=1e-9)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-8, atol=1e-14)
    assert fit.n_needed == n


def test_attenuation_is_undone_where_features_are_sampled():
    n = 60_000
    x = RNG.uniform(-1, 2, (n, 4))
    y = x @ [0.5, -0.3, 0.2, 0.0] + 0.2 * RNG.normal(size=n)
    mechanism = law(4, 2, 3.0)
    rows = mechanism.release(x, Noise(bytes(32), secure=False)).rows
    fit = least_squares_of_releases(rows, y, mechanism, together=False)
    errors = np.sqrt(np.diag(fit.covariance))
    assert (np.abs(fit.coef - [0.5, -0.3, 0.2, 0.0]) < 5 * errors[1:]).all()
    assert errors.max() < 0.05
    plain = np.linalg.lstsq(rows - rows.mean(axis=0), y - y.mean(), rcond=None)[0]
    assert abs(plain[0]) < 0.15


def test_what_noise_hides_is_shrunk_and_said():
    rows = released(400, 3, 2, epsilon=1.0)
    fit = least_squares_of_releases(rows, rows[:, 0], law(3, 2, 1.0), together=False)
    assert fit.n_needed > 400
    assert np.isnan(fit.covariance).all()
    assert np.isfinite(fit.coef).all()
    with pytest.raises(ValueError, match="at least 2"):
        least_squares_of_releases(rows, rows[:, 0], law(3, 1), together=False)


@pytest.mark.statistical
def test_intervals_cover():
    hits, beta, n = [], np.array([0.4, -0.3, 0.2]), 20_000
    mechanism = law(3, 2, 4.0)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 2, (n, 3))
        y = x @ beta + 0.1 + 0.1 * rng.normal(size=n)
        rows = mechanism.release(x, Noise(seed.to_bytes(32, "little"), secure=False)).rows
        fit = least_squares_of_releases(rows, y, mechanism, together=False)
        errors = np.append(fit.intercept, fit.coef) - np.append(0.1, beta)
        hits.append(np.abs(errors) < 1.96 * np.sqrt(np.diag(fit.covariance)))
    covered = np.mean(hits, axis=0)
    # Of 400, at a chance of .95, between .905 and .99 but for one in ten thousand.
    assert (covered > 0.905).all()
    assert (covered < 0.99).all()
