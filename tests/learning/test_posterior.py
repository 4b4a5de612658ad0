"""The update of a model by gradients, against formulas written out."""

import numpy as np
import pytest
from scipy import integrate, stats

from skldp.learning import _posterior as module
from skldp.learning._posterior import Gradient, Posterior, errors_of_slopes, positive_means, positive_part, posterior

RNG = np.random.default_rng(0)


def gradients(moments, beta, noise, n, unknown=0.0):
    d = len(beta)
    at = 0.1 * RNG.standard_normal((n, d))
    return [
        Gradient(
            np.eye(d),
            moments @ (beta - one) + noise * RNG.standard_normal(d),
            moments,
            np.full((d, d), unknown),
            noise,
            one,
        )
        for one in at
    ]


def test_with_one_scale_it_is_the_linear_gaussian_formula(monkeypatch):
    monkeypatch.setattr(module, "_PRIOR_SCALES", np.ones(1))
    monkeypatch.setattr(module, "_NOTHING_TO_LEARN", 1e-300)
    moments, beta, prior = np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([0.4, -0.2]), np.diag([0.2, 0.1])
    reports = gradients(moments, beta, 0.3, 5)
    found = posterior(reports, prior, 0, Posterior(np.zeros(2), prior, 1.0))
    precision = np.linalg.inv(prior) + 5 * moments @ moments / 0.09
    weighted = sum(moments @ (one.value + moments @ one.at) for one in reports) / 0.09
    np.testing.assert_allclose(found.covariance, np.linalg.inv(precision), rtol=1e-8)
    np.testing.assert_allclose(found.mean, np.linalg.solve(precision, weighted), rtol=1e-8)


def test_more_reports_find_the_model():
    moments, beta = np.diag([1.0, 0.7, 0.4]), np.array([0.3, -0.2, 0.1])
    misses = []
    for n in (10, 100, 1_000):
        found = posterior(gradients(moments, beta, 0.5, n), np.eye(3), 1, Posterior(np.zeros(3), np.eye(3), 1.0))
        misses.append(np.abs(found.mean - beta).max())
    assert misses[-1] < 0.1
    assert found.evidence > 0.99


def test_noise_alone_is_not_fitted():
    moments, prior = np.eye(6), np.eye(6) / 6
    sizes = []
    for _ in range(50):
        reports = gradients(moments, np.zeros(6), 1.0, 4)
        found = posterior(reports, prior, 0, Posterior(np.zeros(6), prior, 1.0))
        fitted = sum(one.value + one.at for one in reports) / 4
        sizes.append(((found.mean**2).sum(), (fitted**2).sum()))
    shrunk, plain = np.mean(sizes, axis=0)
    assert shrunk < 0.1 * plain


def test_the_evidence_is_that_of_an_integral():
    prior, noise, value = 0.5, 0.4, 0.9
    report = Gradient(np.eye(1), np.array([value]), np.eye(1), np.zeros((1, 1)), noise, np.zeros(1))
    found = posterior([report], np.array([[prior]]), 0, Posterior(np.zeros(1), np.eye(1), 1.0))

    def likelihood(scale):
        deviation = np.sqrt(scale * prior)
        return integrate.quad(
            lambda b: stats.norm.pdf(value, b, noise) * stats.norm.pdf(b, 0, deviation),
            -12 * deviation,
            12 * deviation,
            points=[0, value],
            limit=200,
        )[0]

    nothing = module._NOTHING_TO_LEARN * stats.norm.pdf(value, 0, noise)
    something = (1 - module._NOTHING_TO_LEARN) * np.mean([likelihood(scale) for scale in module._PRIOR_SCALES])
    assert found.evidence == pytest.approx(something / (something + nothing), rel=1e-6)


def test_what_is_unknown_counts_by_the_distance():
    """A report from far away, whose slope is uncertain, moves the model less than one nearby."""
    beta, before = np.array([1.0]), Posterior(np.ones(1), np.eye(1) * 0.01, 1.0)
    errors = []
    for at in (0.0, 0.9):
        report = Gradient(np.eye(1), beta - at, np.eye(1), np.full((1, 1), 0.3), 0.05, np.array([at]))
        errors.append(posterior([report], np.eye(1), 0, before).covariance[0, 0])
    assert errors[0] > 3 * errors[1]


def test_means_of_positive_variables_are_those_of_a_truncated_normal():
    values, error = np.array([-2.0, -0.5, 0.0, 0.3, 5.0]), 0.7
    expected = stats.truncnorm.mean(-values / error, np.inf, loc=values, scale=error)
    np.testing.assert_allclose(positive_means(values, error), expected, rtol=1e-9)
    assert (positive_means(np.array([-1e6, -40.0]), 1.0) >= 0).all()
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.linalg.eigvalsh(positive_part(matrix, 0.1)).min() > 0


def test_errors_of_slopes_are_those_of_random_matrices():
    rng = np.random.default_rng(1)
    unknown = np.array([[0.5, 0.2, 0.1], [0.2, 0.3, 0.4], [0.1, 0.4, 0.6]])
    root = rng.standard_normal((3, 3))
    total, n = np.zeros((3, 3)), 40_000
    for _ in range(n):
        upper = np.triu(rng.standard_normal((3, 3)) * np.sqrt(unknown))
        slopes = upper + np.triu(upper, 1).T
        step = slopes @ root @ rng.standard_normal(3)
        total += np.outer(step, step) / n
    expected = errors_of_slopes(unknown, root @ root.T)
    assert np.abs(total - expected).max() < 0.05 * np.abs(expected).max()
