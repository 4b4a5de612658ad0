"""What gradients of a likelihood tell: against formulas written out, and derivatives."""

import math

import numpy as np
import pytest

from skldp.learning._likelihood import Likelihood, normal_people
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
def test_clipped_gradients_and_what_they_show_are_those_of_the_formula(n_classes, radius):
    terms = np.column_stack([np.ones(20), RNG.standard_normal((20, 2))])
    beta = RNG.standard_normal((n_classes - 1, 3))
    mean, shown = Likelihood(terms, contrasts(n_classes)).clipped(beta, radius)
    np.testing.assert_allclose(mean, naive(terms, beta, beta, radius), rtol=0, atol=1e-13)

    # By central differences, of the truth and not of the model at which people are asked.
    def trace(limit):
        total = 0.0
        for j in range(n_classes - 1):
            for term in range(3):
                moved = np.zeros_like(beta)
                moved[j, term] = 1e-5
                slope = (naive(terms, beta, beta + moved, limit) - naive(terms, beta, beta - moved, limit)) / 2e-5
                total += slope[j, term]
        return total

    assert shown == pytest.approx(trace(radius) / trace(1e9), abs=1e-7)
    if radius == 50.0:
        np.testing.assert_allclose(mean, 0, atol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_gradients_at_0_and_their_curvature_are_those_of_the_formula(n_classes):
    terms = np.column_stack([np.ones(20), RNG.standard_normal((20, 2))])
    beta, likelihood = RNG.standard_normal((n_classes - 1, 3)), Likelihood(terms, contrasts(n_classes))
    turned = np.linalg.qr(RNG.standard_normal((n_classes - 1, n_classes - 1)))[0]
    zero = np.zeros_like(beta)
    np.testing.assert_allclose(likelihood.at_zero(beta), naive(terms, zero, beta, 1e9), atol=1e-12)
    others = Likelihood(terms, contrasts(n_classes) @ turned)
    curvature = others.curvature(turned.T @ beta)
    for k in range(n_classes - 1):
        for term in range(3):
            step = 1e-5 * np.outer(turned[:, k], np.eye(3)[term])
            slope = (likelihood.at_zero(beta + step) - likelihood.at_zero(beta - step)) / 2e-5
            np.testing.assert_allclose(curvature[k][:, term], turned[:, k] @ slope, atol=1e-9)
    # Several models at once, and others in between, change nothing.
    several = np.array([zero, turned.T @ beta])
    np.testing.assert_allclose(others.curvature(several)[1], curvature, rtol=1e-12)
    np.testing.assert_allclose(others.at_zero(several)[1], turned.T @ likelihood.at_zero(beta), atol=1e-14)
    np.testing.assert_allclose(others.traces(several)[1], np.trace(curvature, axis1=1, axis2=2), rtol=1e-12)
    np.testing.assert_array_equal(others.curvature(turned.T @ beta), curvature)


def test_residuals_are_those_of_the_classes():
    terms = np.column_stack([np.ones(50), RNG.standard_normal((50, 2))])
    beta, shares = RNG.standard_normal((2, 3)), np.array([0.2, 0.3, 0.5])
    likelihood = Likelihood(terms, contrasts(3))
    sizes, chances = likelihood.residuals(beta, shares)
    assert chances.sum() == pytest.approx(1)
    logits = terms @ (contrasts(3) @ beta).T
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    distances = np.linalg.norm(np.eye(3)[None] - p[:, None], axis=2)
    np.testing.assert_allclose(likelihood.sizes(beta), distances.T, atol=1e-12)
    expected = ((p + shares) / 2 * np.log(distances)).sum() / 50
    # Sizes are rounded to a factor of 2^(1/8).
    assert abs(chances @ np.log(sizes) - expected) < math.log(2) / 8


@pytest.mark.parametrize("d", [1, 4, 30])
def test_made_up_people_have_the_moments_that_are_asked_for(d):
    root = RNG.standard_normal((d, d)) / math.sqrt(d)
    mean = RNG.standard_normal(d)
    second = root @ root.T + np.outer(mean, mean)
    # In any unit: the constant's own moment says which.
    moments = 3 * np.block([[np.ones((1, 1)), mean[None]], [mean[:, None], second]])
    people = normal_people(moments)
    assert people.shape == (1_000, d + 1)
    np.testing.assert_array_equal(people, normal_people(moments))
    np.testing.assert_allclose(people[:, 0], math.sqrt(3))
    # In units of the constant.
    features = people[:, 1:] / math.sqrt(3)
    np.testing.assert_allclose(features.mean(axis=0), mean, rtol=0, atol=1e-12)
    # Whitened, pairs of normal numbers: 500 of them, whose sums of squares are chi-square.
    centred = features - features.mean(axis=0)
    whitened = np.linalg.solve(root @ root.T, centred[:500].T) * centred[:500].T
    assert abs(whitened.sum() / (500 * d) - 1) < 6 * math.sqrt(2 / (500 * d))


def test_moments_of_nothing_make_people_of_nothing():
    np.testing.assert_array_equal(normal_people(np.zeros((3, 3)))[:, 1:], 0)
    assert np.isfinite(normal_people(-np.eye(3))).all()
