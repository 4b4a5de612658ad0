"""Linear-Gaussian update of a model by noisy gradients, and of the second moments that they depend on."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

# Prior probability that the features tell nothing about the target. Smaller: pure noise is fitted. Larger: few people
# learn nothing.
_NOTHING_TO_LEARN = 0.3
# Scales of the prior of the slopes that are weighed against each other, besides 0.
_PRIOR_SCALES = np.exp(np.linspace(-4, 2, 7))
# Passes of the update: what is unknown of the moments counts by the distance to the estimate.
_N_PASSES = 2


class Moments(NamedTuple):
    """Second moments of terms, and the variances of their entries.

    Shapes: `rows` (n_terms, n_terms), functionals of the terms that the entries are about; `values, variances`
    (n_terms, n_terms).
    """

    rows: Floats
    values: Floats
    variances: Floats


class Gradient(NamedTuple):
    """Reported mean gradient at a model.

    Shapes: `rows` (n_terms, n_terms), functionals of the terms; `value` (n_terms,); `slopes` (n_terms, n_terms),
    expected second moments of the functionals; `unknown` (n_terms, n_terms), variances of their entries; `at`
    (n_terms,), the model.
    """

    rows: Floats
    value: Floats
    slopes: Floats
    unknown: Floats
    noise: float
    at: Floats


class Posterior(NamedTuple):
    """Estimate of a model, the covariance of its error, and the probability that there is something to learn."""

    mean: Floats
    covariance: Floats
    evidence: float


def combine_moments(rows: Floats, reports: Sequence[Moments]) -> Moments:
    """Combine the moments of earlier reports, entry by entry weighted by inverse variance.

    Shapes: rows (n_terms, n_terms).
    """
    total, weights = np.zeros((len(rows),) * 2), np.zeros((len(rows),) * 2)
    for report in reports:
        change = np.linalg.solve(report.rows.T, rows.T).T
        variances = change**2 @ report.variances @ (change**2).T
        total += change @ report.values @ change.T / variances
        weights += 1 / variances
    return Moments(rows, total / weights, 1 / weights)


def combine_reports(rows: Floats, told: Sequence[Sequence[Any]]) -> tuple[Floats, Floats]:
    """Combine reports of functionals, their moments and one standard error; return moments and variances."""
    size = (len(rows),) * 2
    reports = [Moments(np.array(own), np.array(values), np.full(size, error**2)) for own, values, error in told]
    return combine_moments(rows, reports)[1:]


def positive_part(matrix: Floats, error: float) -> Floats:
    """Replace eigenvalues that have an error by their means given that they are positive."""
    values, vectors = np.linalg.eigh(matrix)
    result: Floats = (vectors * positive_means(values, error)) @ vectors.T
    return result


def positive_means(values: Floats, error: float) -> Floats:
    """Return the means of normal variables with these means and this error, given that they are positive."""
    # The mean goes to 0 as the value falls below the error.
    ratios = np.maximum(values / error, -30.0)
    result: Floats = error * (ratios + np.exp(-(ratios**2) / 2) / math.sqrt(2 * math.pi) / special.ndtr(ratios))
    return np.maximum(result, 0)


def errors_of_slopes(unknown: Floats, covariance: Floats) -> Floats:
    """Return the covariance of a symmetric random matrix times a random vector.

    Shapes: unknown (n, n), variances of independent entries; covariance (n, n), second moments of the vector.
    """
    off_diagonal = unknown * covariance * (1 - np.eye(len(unknown)))
    result: Floats = np.diag(unknown @ np.diag(covariance)) + off_diagonal
    return result


def posterior(reports: Sequence[Gradient], prior: Floats, n_constants: int, before: Posterior) -> Posterior:
    r"""Return the estimate of a model from all gradients that were reported.

    Shapes: prior (n_terms, n_terms), of which `n_constants` are no slopes.

    A gradient at :math:`b_t` is :math:`A (\beta - b_t)` and noise. The second moments A have errors, which are
    multiplied by the distance from :math:`b_t`: reports far from the estimate count less. The scale of the prior of the
    slopes is unknown, and 0 with a given probability; the estimate is the mean over it. So the model is the mean of the
    target where the reports do not contradict it.

    References
    ----------
    MacKay, "Bayesian interpolation", Neural Computation 1992, equations 2.9 and 4.9.
    """
    for _ in range(_N_PASSES):
        precision, weighted = np.zeros_like(prior), np.zeros(len(prior))
        for report in reports:
            away = before.mean - report.at
            # Coordinates in which the rows are functionals of the errors.
            inverse = np.linalg.inv(report.rows).T
            moments = inverse @ (before.covariance + np.outer(away, away)) @ inverse.T
            noise = errors_of_slopes(report.unknown, moments) + report.noise**2 * np.eye(len(prior))
            design = report.slopes @ inverse
            solved = np.linalg.solve(noise, np.column_stack([design, report.value + design @ report.at]))
            precision += design.T @ solved[:, :-1]
            weighted += design.T @ solved[:, -1]
        before = _over_scales(precision, weighted, prior, n_constants)
    return before


def _over_scales(precision: Floats, weighted: Floats, prior: Floats, n_constants: int) -> Posterior:
    """Average the posterior over the scales of the prior."""
    logs, means, covariances = [], [], []
    scales = [0.0, *_PRIOR_SCALES]
    chances = [_NOTHING_TO_LEARN] + [(1 - _NOTHING_TO_LEARN) / len(_PRIOR_SCALES)] * len(_PRIOR_SCALES)
    for scale, chance in zip(scales, chances, strict=True):
        roots = np.full(len(prior), math.sqrt(scale))
        roots[:n_constants] = 1.0
        scaled = prior * np.outer(roots, roots)
        gain = np.eye(len(prior)) + scaled @ precision
        covariance = np.linalg.solve(gain, scaled)
        mean = covariance @ weighted
        logs.append(math.log(chance) - np.linalg.slogdet(gain)[1] / 2 + weighted @ mean / 2)
        means.append(mean)
        covariances.append(covariance)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    spread = np.array(means) - mean
    covariance = np.tensordot(weights, np.array(covariances), 1) + (spread.T * weights) @ spread
    return Posterior(mean, (covariance + covariance.T) / 2, float(1 - weights[0]))
