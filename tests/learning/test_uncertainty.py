"""Newton steps and their covariance: against sums written out, and the rules of radii against their laws."""

import math

import numpy as np
import pytest
from scipy import stats

from skldp.learning import _uncertainty as module
from skldp.learning._protocol import noise_of_moments
from skldp.learning._tasks import noise_variance
from skldp.learning._uncertainty import Estimate

RNG = np.random.default_rng(0)
EXACT = np.zeros((3, 3))


def cohorts_of(X, y, beta, scaling, n_cohorts):
    """The mean gradient and the people of each of some cohorts of unequal size."""
    edges = np.sort(RNG.choice(np.arange(1, len(y)), n_cohorts - 1, replace=False))
    parts = np.split(np.arange(len(y)), edges)
    return [((X[part] @ scaling * (y[part] - X[part] @ beta)[:, None]).mean(axis=0), len(part)) for part in parts]


def told_by(cohorts):
    return [(n, mean.tolist()) for mean, n in cohorts]


def test_without_noise_the_steps_are_least_squares_of_all_from_anywhere():
    X = np.column_stack([np.ones(500), RNG.normal(size=(500, 2))])
    y, others = (X @ [0.5, 1.0, -2.0] + RNG.normal(size=500) for _ in range(2))
    scaling = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
    gram = (X @ scaling).T @ (X @ scaling) / 500
    beta, start = np.array([5.0, -4.0, 1.0]), np.linalg.lstsq(X, y, rcond=None)[0]
    # Of the people of the second step there are three times as many.
    first = told_by(cohorts_of(X, y, beta, scaling, 12))
    second = told_by(cohorts_of(np.tile(X, (3, 1)), np.tile(others, 3), start, scaling, 20))
    found = module.newton_steps(beta, scaling, (gram, EXACT), first, second, 0.0)
    everybody = np.linalg.lstsq(np.tile(X, (4, 1)), np.concatenate([y, np.tile(others, 3)]), rcond=None)[0]
    np.testing.assert_allclose(found.values, everybody, rtol=1e-9)
    assert found.degrees == 30
    np.testing.assert_array_equal(found.noise, 0)


def test_the_covariance_is_the_sandwich_of_the_cohorts_scatter():
    X, scaling = RNG.normal(size=(400, 3)), RNG.normal(size=(3, 3)) + 3 * np.eye(3)
    y, beta = RNG.normal(size=400), np.array([0.1, 0.0, -0.2])
    gram = (X @ scaling).T @ (X @ scaling) / 400
    groups = [
        cohorts_of(X[:100], y[:100], beta, scaling, 15),
        cohorts_of(X[100:], 2 * y[100:], beta, scaling, 25),
    ]
    found = module.newton_steps(beta, scaling, (gram, EXACT), *map(told_by, groups), 0.5)
    spreads = []
    for cohorts, n in zip(groups, (100, 300), strict=True):
        mean = sum(m * one for one, m in cohorts) / n
        spreads.append(sum(m * np.outer(one - mean, one - mean) for one, m in cohorts) / (len(cohorts) - 1))
    change = scaling @ np.linalg.inv(gram)
    middle = 0.25**2 * spreads[0] / 100 + 0.75**2 * spreads[1] / 300
    np.testing.assert_allclose(found.covariance, change @ middle @ change.T, rtol=1e-9)
    np.testing.assert_allclose(found.noise, 0.5 / 400 * np.diag(change @ change.T), rtol=1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize("part", [0.5, 0.8])
@pytest.mark.parametrize("way", [0.0, 0.3])
def test_noise_of_the_second_moments_adds_what_it_makes_of_the_first_step(part, way):
    """E[(H - G) (p^2 A + (1 - p)^2 d d') (H - G)], by drawing symmetric noise of the stated variances."""
    variances = np.array([[4.0, 1.0, 2.0], [1.0, 0.5, 3.0], [2.0, 3.0, 1.0]]) * 1e-4
    rng = np.random.default_rng(1)
    n_first, n_second = round(900 * (1 - part)), round(900 * part)
    cohorts = rng.normal(size=(9, 3))
    cohorts += way * np.array([1.0, -2.0, 0.5]) - cohorts.mean(axis=0)
    first = told_by([(one, n_first // 9) for one in cohorts])
    second = told_by([(rng.normal(size=3), n_second // 9) for _ in range(9)])
    known, noisy = (
        module.newton_steps(np.zeros(3), np.eye(3), (np.eye(3), one), first, second, 0.0) for one in (EXACT, variances)
    )
    mean = cohorts.mean(axis=0)
    of_first = n_first // 9 * sum(np.outer(one - mean, one - mean) for one in cohorts) / 8 / n_first
    before = part**2 * of_first + (1 - part) ** 2 * np.outer(mean, mean)
    upper = np.triu(rng.standard_normal((200_000, 3, 3)) * np.sqrt(variances))
    noise = upper + np.swapaxes(np.triu(upper, 1), 1, 2)
    drawn = noise @ before @ noise
    error = drawn.std(axis=0) / math.sqrt(len(drawn))
    assert (np.abs(noisy.covariance - known.covariance - drawn.mean(axis=0)) < 6 * error).all()


@pytest.mark.parametrize("n_second", [100, 400])
@pytest.mark.parametrize("missing", [0.0, 0.2, 0.33])
def test_the_first_steps_error_grows_in_no_direction_of_which_a_third_was_cut_off(n_second, missing):
    """The attack: second moments that are too small, so that every step goes too far."""
    gram, error = np.diag([1 - missing, 1.0, 1.0]), np.array([0.3, 0.0, 0.0])
    first = told_by([(error + one, 50) for one in (np.eye(3)[1], -np.eye(3)[1])])
    # The truth is 0, and the second moments are 1.
    second = told_by([(-error / (1 - missing) + one, n_second // 2) for one in (np.eye(3)[1], -np.eye(3)[1])])
    found = module.newton_steps(np.zeros(3), np.eye(3), (gram, EXACT), first, second, 0.0)
    counted = (1 - n_second / (100 + n_second)) * error[0] / (1 - missing)
    assert abs(found.values[0]) <= counted * (1 + 1e-9)


def test_the_edge_is_that_of_noises_eigenvalues():
    k = 200
    variances = (1 + np.eye(k)) / 2
    upper = np.triu(np.random.default_rng(0).standard_normal((k, k)) * np.sqrt(variances))
    noise = upper + np.triu(upper, 1).T
    assert module.semicircle(variances) == pytest.approx(np.linalg.eigvalsh(noise)[-1], rel=0.05)
    # The mean of so many products has that noise, for a radius of one over its standard error.
    error = math.sqrt(noise_variance(k, 1.0, "products") / 50)
    assert noise_of_moments(k, 1.0, 50) / error == pytest.approx(module.semicircle(variances))


def test_an_estimate_is_read_by_students_law():
    found = Estimate(np.array([2.0, 0.0, 1.0]), np.diag([0.25, 1.0, 0.0]), np.array([0.16, 2.0, 0.0]), 9)
    np.testing.assert_allclose(found.statistics, [4, 0, np.nan])
    np.testing.assert_allclose(found.p_values, [2 * stats.t.sf(4, 9), 1, np.nan])
    np.testing.assert_allclose(found.intervals(0.9)[0], stats.t.interval(0.9, 9, 2, 0.5))
    # Of .25 noise has .16: without it the error were .3 in place of .5. Never more than all of it.
    np.testing.assert_allclose(found.noise_shares, [0.4, 1, np.nan])
