"""What gradients of a likelihood tell: against formulas written out, derivatives, and Bayes' rule."""

import math

import numpy as np
import pytest

from skldp.learning._likelihood import Likelihood, normal_people, step
from skldp.learning._vectors import contrasts

RNG = np.random.default_rng(0)


def naive(terms, beta, truth, radius):
    """The mean of shortened gradients at `beta` where `truth` is true."""
    k = beta.shape[0] + 1
    columns, total = contrasts(k), np.zeros(beta.shape)
    for w in terms:
        p, q = (np.exp(columns @ one @ w) for one in (beta, truth))
        p, q = p / p.sum(), q / q.sum()
        for code in range(k):
            gradient = np.outer(columns.T @ (np.eye(k)[code] - p), w)
            total += q[code] * gradient * min(1, radius / math.sqrt((gradient**2).sum()))
    return total / len(terms)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("radius", [0.1, 0.9, 50.0])
def test_expected_gradients_and_their_growth_are_those_of_the_formula(n_classes, radius):
    terms = np.column_stack([np.ones(20), RNG.standard_normal((20, 2))])
    beta = RNG.standard_normal((n_classes - 1, 3))
    mean, curvature = Likelihood(terms, n_classes).expected(terms @ beta.T, radius)
    np.testing.assert_allclose(mean, naive(terms, beta, beta, radius), rtol=0, atol=1e-13)
    # By central differences, of the truth and not of the model at which people are asked.
    expected = np.zeros_like(curvature)
    for j in range(n_classes - 1):
        for term in range(3):
            moved = np.zeros_like(beta)
            moved[j, term] = 1e-5
            slope = (naive(terms, beta, beta + moved, radius) - naive(terms, beta, beta - moved, radius)) / 2e-5
            expected[:, j] += slope[:, term] / 3
    np.testing.assert_allclose(curvature, expected, rtol=0, atol=1e-9)
    if radius == 50.0:
        np.testing.assert_allclose(mean, 0, atol=1e-14)


@pytest.mark.parametrize("has_constant", [True, False])
@pytest.mark.parametrize("d", [1, 4, 30])
def test_made_up_people_have_the_moments_that_are_asked_for(d, has_constant):
    root = RNG.standard_normal((d, d)) / math.sqrt(d)
    mean = RNG.standard_normal(d)
    moments = root @ root.T
    if has_constant:
        # In any unit: the constant's own moment says which.
        with_mean = np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], moments + np.outer(mean, mean)]])
        moments = 3 * with_mean
    people = normal_people(moments, has_constant)
    assert people.shape == (1_000, d + has_constant)
    np.testing.assert_array_equal(people, normal_people(moments, has_constant))
    features = people[:, has_constant:]
    np.testing.assert_allclose(features.mean(axis=0), mean if has_constant else 0, rtol=0, atol=1e-12)
    if has_constant:
        np.testing.assert_array_equal(people[:, 0], 1)
    # Whitened, pairs of normal numbers: 500 of them, whose sums of squares are chi-square.
    centred = features - features.mean(axis=0)
    whitened = np.linalg.solve(root @ root.T, centred[:500].T) * centred[:500].T
    assert abs(whitened.sum() / (500 * d) - 1) < 6 * math.sqrt(2 / (500 * d))


def test_moments_of_nothing_make_people_of_nothing():
    np.testing.assert_array_equal(normal_people(np.zeros((3, 3)), False), 0)
    assert np.isfinite(normal_people(np.zeros((3, 3)), True)).all()
    assert np.isfinite(normal_people(-np.eye(3), True)).all()


@pytest.mark.parametrize("variance", [1e-9, 0.3, 1e6])
def test_a_step_is_what_bayes_rule_says(variance):
    for _ in range(20):
        root = RNG.standard_normal((3, 3))
        covariance, curvature = root @ root.T, root.T @ root + 0.1 * np.eye(3)
        gradient = RNG.standard_normal((3, 5))
        moved, left = step(covariance, gradient, curvature, variance)
        posterior = np.linalg.inv(np.linalg.inv(covariance) + curvature @ curvature / variance)
        np.testing.assert_allclose(moved, posterior @ curvature @ gradient / variance, rtol=1e-4, atol=1e-9)
        unknown = 0.25 * (moved**2).mean() * np.eye(3)
        np.testing.assert_allclose(left, posterior + unknown, rtol=1e-4, atol=1e-7 * np.abs(covariance).max())


def test_where_there_is_no_curvature_nothing_is_learnt():
    moved, left = step(np.eye(2), np.ones((2, 4)), np.zeros((2, 2)), 0.0)
    np.testing.assert_array_equal(moved, 0)
    np.testing.assert_array_equal(left, np.eye(2))
