"""Update of a model by noisy gradients, and of the second moments that they depend on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from skldp._arrays import Floats

# Scales of a prior of the slopes that are weighed against each other, besides 0. At 1 the slopes explain all.
_PRIOR_SCALES = np.exp([-2.0, -1.0, 0.0])
# Variances of the prior of means, in half widths of the bounds.
_SPREADS = 4.0 ** -np.arange(12)
# Fractions of a step, of which the likeliest is taken.
_STEPS = np.array([1.0, 0.5, 0.25, 0.125])
# Numbers of matrices of several priors in memory at a time.
_CELLS = 1 << 16


class Moments(NamedTuple):
    """Second moments of functionals (`rows`) of the terms, and the variances of their entries."""

    rows: Floats
    values: Floats
    variances: Floats


@dataclass(frozen=True)
class Gradients:
    """Gradients that cohorts reported about the same functionals of the terms, linear in the model."""

    rows: Floats  # (n_terms, n_terms)
    moments: Floats  # Expected second moments of the functionals.
    unknown: Floats  # Variances of the moments.
    values: Floats  # (n_cohorts, n_outcomes, n_terms), each a gradient at 0 with noise.
    noises: Floats  # (n_cohorts,)
    models: Floats  # Those at which people reported.

    @cached_property
    def inverse(self) -> Floats:
        """Inverse of the functionals: models times it are in their units."""
        return np.asarray(np.linalg.inv(self.rows))

    @cached_property
    def _design(self) -> Floats:
        return self.moments @ self.inverse.T

    @cached_property
    def _asked_at(self) -> Floats:
        return self.models @ self.inverse

    def at_zero(self, model: Floats) -> Floats:
        """Return the gradient at 0 if a model holds, shape (..., n_outcomes, n_terms) as the model's."""
        return model @ self._design.T

    def designs(self, model: Floats) -> Floats:
        """Return the derivative of `at_zero` by the model within each outcome, (..., n_outcomes, n_terms, n_terms)."""
        return self._design[None]

    def traces(self, model: Floats) -> Floats:
        """Return the traces of `designs` in the units of the functionals, shape (..., n_outcomes)."""
        return np.array([np.sum(self._design * self.rows)])

    def errors(self, model: Floats) -> Floats:
        """Return the variances of numbers of the gradients if a model holds, shape (..., n_cohorts, n_outcomes)."""
        away = (model @ self.inverse)[..., None, :, :] - self._asked_at
        relative = self.traces(model) / np.trace(self.moments)
        return self.noises[:, None] ** 2 + relative[..., None, :] ** 2 * (away**2 @ self.unknown.mean(axis=1))


class Posterior(NamedTuple):
    """Estimates of a model under each prior, that without slopes first, and the logarithm of each one's probability."""

    models: Floats
    logs: Floats

    @property
    def mean(self) -> Floats:
        """Estimate of the model."""
        return np.tensordot(special.softmax(self.logs), self.models, 1)

    @property
    def mean_if_any(self) -> Floats:
        """Estimate given that there is something to learn."""
        return np.tensordot(special.softmax(self.logs[1:]), self.models[1:], 1)


def combine_moments(rows: Floats, reports: Sequence[Moments]) -> Moments:
    """Combine the moments of earlier reports, entry by entry weighted by inverse variance."""
    total, weights = np.zeros((len(rows),) * 2), np.zeros((len(rows),) * 2)
    for report in reports:
        change = np.linalg.solve(report.rows.T, rows.T).T
        variances = change**2 @ report.variances @ (change**2).T
        total += change @ report.values @ change.T / variances
        weights += 1 / variances
    return Moments(rows, total / weights, 1 / weights)


def positive_part(matrix: Floats, error: float) -> Floats:
    """Replace eigenvalues that have an error by their means given that they are positive."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * positive_means(values, error)) @ vectors.T


def with_least_variances(covariance: Floats, rows: Floats, least: Floats | float) -> Floats:
    """Raise the variances of columns to a least one, in the covariance of functionals of them: it bounds leverage."""
    back = np.linalg.inv(rows)
    raised = np.maximum(0, least - np.einsum("ij,jk,ik->i", back, covariance, back))
    return covariance + rows * raised @ rows.T


def with_least_eigenvalues(covariance: Floats, rows: Floats, least: float) -> Floats:
    """Raise the eigenvalues of the covariance of columns to a least one, in the covariance of functionals of them."""
    back = np.linalg.inv(rows)
    values, vectors = np.linalg.eigh(back @ covariance @ back.T)
    turned = rows @ vectors * np.sqrt(np.maximum(values, least))
    return turned @ turned.T


def positive_means(values: Floats, error: Floats | float) -> Floats:
    """Return the means of normal variables with these means and this error, given that they are positive."""
    # The mean goes to 0 as the value falls below the error.
    ratios = np.maximum(values / error, -30.0)
    means = error * (ratios + np.exp(-(ratios**2) / 2) / math.sqrt(2 * math.pi) / special.ndtr(ratios))
    return np.maximum(means, 0)


def shrunk_means(values: Floats, errors: Floats | float, rarer: float = 0.0) -> tuple[Floats, Floats]:
    """Return means and variances of numbers in [-1, 1] given reports; a scale s is as likely as s^-rarer."""
    noise, spread = np.square(errors), _SPREADS[:, None]
    logs = -((np.log(spread + noise) + values**2 / (spread + noise)) / 2 * np.ones(len(values))).sum(axis=1)
    logs -= rarer / 2 * np.log(_SPREADS)
    kept, chances = spread / (spread + noise) * np.ones(len(values)), special.softmax(logs)
    means = chances @ kept * values
    return means, chances @ (kept * noise + (kept * values - means) ** 2)


def posterior(
    reports: Sequence[Gradients], known: Floats, unknown: Floats, base: Floats, models: Floats | None
) -> Posterior:
    """Return the estimate and the evidence by each prior known + scale * unknown (MacKay, "Bayesian interpolation")."""
    # Each scale is as likely as the others, and 0 as all of them: slopes are near 0 unless reports contradict it.
    least = known[:, :, None] * np.eye(known.shape[1])
    priors = np.array([least, *(least + scale * one for one in unknown for scale in _PRIOR_SCALES)])
    chances = np.append(1.0, np.full(len(priors) - 1, 1 / (len(priors) - 1)))
    before = np.repeat(base[None], len(priors), axis=0) if models is None else models
    some = max(1, _CELLS // (len(base) * max(known.shape[1] ** 2, _CELLS >> 6)))
    parts = [slice(start, start + some) for start in range(0, len(priors), some)]
    found, logs = zip(*(_under_priors(reports, priors[part], base, before[part]) for part in parts), strict=True)
    return Posterior(np.concatenate(found), np.log(chances) + np.concatenate(logs))


def _under_priors(reports: Sequence[Gradients], priors: Floats, base: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Return the estimates under some of the priors, and the logarithms of the probabilities of the reports."""
    precision, weighted = np.zeros(priors.shape), np.zeros(before.shape)
    for report in reports:
        designs, weights = report.designs(before), 1 / report.errors(before)
        total = weights.sum(axis=1)[:, :, None]
        center = np.einsum("pck,ckj->pkj", weights, report.values) / total
        values = center - report.at_zero(before) + (designs @ (before - base)[..., None])[..., 0]
        turned = np.swapaxes(designs, -1, -2)
        precision += total[..., None] * (turned @ designs)
        weighted += total * (turned @ values[..., None])[..., 0]
    inverses = np.linalg.pinv(priors, hermitian=True)

    def of_prior(models: Floats) -> Floats:
        away = models - base
        return np.asarray(((inverses @ away[..., None])[..., 0] * away).sum(axis=(-2, -1)))

    def squares(report: Gradients, models: Floats) -> Floats:
        return np.asarray(((report.values - report.at_zero(models)[..., None, :, :]) ** 2).sum(axis=-1))

    gain = np.eye(base.shape[1]) + priors @ precision
    best = base + np.linalg.solve(gain, priors @ weighted[..., None])[..., 0]
    # Errors and gradients depend on the model: a whole step may lead to reports that contradict it, and back again.
    ways = before + _STEPS[:, None, None, None] * (best - before)
    misfit = of_prior(ways)
    for report in reports:
        errors = report.errors(ways)
        misfit += (squares(report, ways) / errors + base.shape[1] * np.log(errors)).sum(axis=(-2, -1))
    found = ways[misfit.argmin(axis=0), np.arange(len(priors))]
    # The errors of second moments depend on the model, and noise does not: it alone says how probable the reports are.
    logs = -of_prior(found) - np.linalg.slogdet(gain)[1].sum(axis=1)
    for report in reports:
        logs -= (squares(report, found) / report.noises[:, None] ** 2).sum(axis=(-2, -1))
    return found, logs / 2
