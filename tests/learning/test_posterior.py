"""The update of a model by gradients, against formulas written out."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from skldp.learning import _posterior as module
from skldp.learning._posterior import Gradients, positive_means, positive_part, posterior, shrunk_means

RNG = np.random.default_rng(0)


def gradients(moments, beta, noise, n, unknown=0.0, rows=None):
    """Gradients of a linear model at models near 0, as reported in some rows."""
    d = len(beta)
    rows = np.eye(d) if rows is None else rows
    at_zero = beta @ np.linalg.inv(rows) @ moments
    values = at_zero + noise * RNG.standard_normal((n, 1, d))
    at = 0.1 * RNG.standard_normal((n, 1, d))
    return Gradients(rows, moments, np.full((d, d), unknown), values, np.full(n, noise), at)


def learn(reports, unknown, known=None):
    known = np.zeros_like(unknown) if known is None else known
    return posterior(reports, known[None], np.diag(unknown)[None, None], np.zeros((1, len(unknown))), None)


@pytest.mark.parametrize("turn", [np.eye(2), np.array([[2.0, 0.5], [0.0, 0.7]])])
def test_with_one_scale_it_is_the_linear_gaussian_formula(monkeypatch, turn):
    monkeypatch.setattr(module, "_PRIOR_SCALES", np.ones(1))
    moments, beta, prior = np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([0.4, -0.2]), np.array([0.2, 0.1])
    reports = [gradients(moments, beta, 0.3, 5, rows=turn), gradients(moments, beta, 0.6, 3)]
    found = learn(reports, prior / 2, prior / 2)
    precision, weighted = np.diag(1 / prior), 0.0
    for report, error in zip(reports, (0.3, 0.6), strict=True):
        design = moments @ np.linalg.inv(report.rows).T
        precision = precision + len(report.values) * design.T @ design / error**2
        weighted = weighted + design.T @ report.values[:, 0].sum(axis=0) / error**2
    np.testing.assert_allclose(found.mean_if_any[0], np.linalg.solve(precision, weighted), rtol=1e-8)


def test_the_prior_that_fits_better_is_found():
    """One slope explains all, in a basis that one of two priors knows."""
    turn = np.linalg.qr(RNG.standard_normal((8, 8)))[0]
    beta, known, base = 2 * turn[0], np.zeros((1, 8)), np.zeros((1, 8))
    columns, turned = np.eye(8) / 8, turn.T @ np.diag([1.0, *[1e-3] * 7]) @ turn
    reports = [gradients(np.eye(8), beta, 1.0, 10)]
    found = posterior(reports, known, np.array([columns, turned])[:, None], base, None)
    alone = posterior(reports, known, columns[None, None], base, None)
    assert len(special.softmax(found.logs)) == 7
    assert special.softmax(found.logs)[4:].sum() > 0.9
    assert np.square(found.mean - beta).sum() < np.square(alone.mean - beta).sum() / 2


@pytest.mark.few(3)
@pytest.mark.parametrize("rarer", [0.0, 1.0])
@pytest.mark.parametrize("ratio", [0.5, 2.0, 6.0])
def test_shrunk_means_and_variances_are_those_of_the_posterior(ratio, rarer):
    """Of one number, whose prior is a mixture of normal densities, by integration."""
    error = 0.05
    value = ratio * error
    at = np.linspace(-4, 4, 2_000_001)
    prior = sum(2.0 ** (rarer * k) * stats.norm.pdf(at, scale=2.0**-k) for k in range(12))
    weights = prior * stats.norm.pdf(value, at, error)
    mean = (weights * at).sum() / weights.sum()
    variance = (weights * (at - mean) ** 2).sum() / weights.sum()
    found = shrunk_means(np.array([value]), error, rarer)
    np.testing.assert_allclose(np.ravel(found), [mean, variance], rtol=1e-3)


def test_noise_alone_is_not_fitted():
    moments, prior = np.eye(6), np.ones(6) / 6
    sizes = []
    for _ in range(50):
        reports = gradients(moments, np.zeros(6), 1.0, 4)
        found = learn([reports], prior)
        sizes.append(((found.mean**2).sum(), (reports.values.mean(axis=0) ** 2).sum()))
    shrunk, plain = np.mean(sizes, axis=0)
    assert shrunk < 0.1 * plain


def test_the_evidence_is_that_of_an_integral():
    prior, noise, value = 0.5, 0.4, 0.9
    report = Gradients(
        np.eye(1), np.eye(1), np.zeros((1, 1)), np.full((1, 1, 1), value), np.array([noise]), np.zeros((1, 1, 1))
    )
    found = learn([report], np.array([prior]))

    def likelihood(scale):
        deviation = np.sqrt(scale * prior)
        return integrate.quad(
            lambda b: stats.norm.pdf(value, b, noise) * stats.norm.pdf(b, 0, deviation),
            -12 * deviation,
            12 * deviation,
            points=[0, value],
            limit=200,
        )[0]

    nothing = stats.norm.pdf(value, 0, noise) / 2
    something = [likelihood(scale) / 2 / len(module._PRIOR_SCALES) for scale in module._PRIOR_SCALES]
    expected = np.array([nothing, *something]) / (nothing + sum(something))
    np.testing.assert_allclose(special.softmax(found.logs), expected, rtol=1e-6)


def test_what_is_unknown_counts_by_the_distance(monkeypatch):
    """A report from far away, whose slope is uncertain, counts less than one nearby: by the formula."""
    monkeypatch.setattr(module, "_PRIOR_SCALES", np.ones(1))
    before = np.array([[[0.0]], [[1.0]]])
    values, at = np.array([[[1.2]], [[0.8]]]), np.array([[[0.0]], [[0.9]]])
    report = Gradients(np.eye(1), np.eye(1), np.full((1, 1), 0.3), values, np.array([0.05, 0.05]), at)
    found = posterior([report], np.zeros((1, 1)), np.ones((1, 1, 1, 1)), np.zeros((1, 1)), before)
    errors = 0.05**2 + 0.3 * np.array([1.0, 0.1]) ** 2
    expected = (values.ravel() / errors).sum() / (1 + (1 / errors).sum())
    assert found.mean_if_any[0, 0] == pytest.approx(expected, rel=1e-9)


def test_reports_at_two_models_that_contradict_both_have_an_estimate_between_them():
    """The attack: second moments of 1.9 that are taken as 1, so that every estimate is as far on the other side."""
    models = np.array([0.0, 1.9] * 10)
    values = 1.9 * (1 - models) + models
    unknown = np.full((1, 1), 0.5)
    report = Gradients(np.eye(1), np.eye(1), unknown, values[:, None, None], np.full(20, 0.05), models[:, None, None])
    before = np.full((1 + len(module._PRIOR_SCALES), 1, 1), 1.9)
    found = posterior([report], np.zeros((1, 1)), np.full((1, 1, 1, 1), 10.0), np.zeros((1, 1)), before)
    assert abs(found.mean[0, 0] - 1) < 0.2


def test_the_likeliest_step_is_taken(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "_PRIOR_SCALES", np.ones(1))
    for _ in range(200):
        values, models = rng.normal(size=(2, 3, 1, 1))
        unknown, before = rng.exponential(size=(1, 1)), np.zeros((2, 1, 1)) + 3 * rng.normal()
        report = Gradients(np.eye(1), np.eye(1), unknown, values, rng.uniform(0.05, 1, 3), models)

        def estimate(steps, report=report, before=before):
            monkeypatch.setattr(module, "_STEPS", np.array(steps))
            return posterior([report], np.zeros((1, 1)), np.ones((1, 1, 1, 1)), np.zeros((1, 1)), before).models[
                1, 0, 0
            ]

        def likelihood(model, report=report, unknown=unknown):
            errors = np.sqrt(report.noises**2 + unknown[0] * (model - report.models.ravel()) ** 2)
            return stats.norm.logpdf(report.values.ravel(), model, errors).sum() + stats.norm.logpdf(model)

        steps = (1.0, 0.5, 0.25, 0.125)
        assert estimate(steps) == max((estimate((one,)) for one in steps), key=likelihood)


def test_means_of_positive_variables_are_those_of_a_truncated_normal():
    values, error = np.array([-2.0, -0.5, 0.0, 0.3, 5.0]), 0.7
    expected = stats.truncnorm.mean(-values / error, np.inf, loc=values, scale=error)
    np.testing.assert_allclose(positive_means(values, error), expected, rtol=1e-9)
    assert (positive_means(np.array([-1e6, -40.0]), 1.0) >= 0).all()
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.linalg.eigvalsh(positive_part(matrix, 0.1)).min() > 0


def test_priors_are_weighed_alike_one_by_one_and_together(monkeypatch):
    rng = np.random.default_rng(1)
    values, models = rng.normal(size=(2, 4, 1, 3))
    report = Gradients(np.eye(3), np.eye(3) + 0.1, np.full((3, 3), 0.2), values, rng.uniform(0.1, 1, 4), models)
    priors = np.array([np.diag(one) for one in rng.exponential(size=(2, 3))])[:, None]
    before = rng.normal(size=(1 + 2 * len(module._PRIOR_SCALES), 1, 3))
    together = posterior([report], np.full((1, 3), 1e-3), priors, np.zeros((1, 3)), before)
    monkeypatch.setattr(module, "_CELLS", 1)
    alone = posterior([report], np.full((1, 3), 1e-3), priors, np.zeros((1, 3)), before)
    np.testing.assert_allclose(alone.models, together.models, rtol=1e-12)
    np.testing.assert_allclose(alone.logs, together.logs, rtol=1e-12)
