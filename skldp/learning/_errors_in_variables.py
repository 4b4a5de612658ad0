r"""Least squares on released rows, corrected for the noise of the release."""

import math
from dataclasses import dataclass

import numpy as np

from skldp._arrays import Floats
from skldp.learning._constants import DETECTED
from skldp.mechanisms._rows import RowMechanism

# Number of groups of moments, whose spread estimates the errors.
_MOST_GROUPS = 200


@dataclass(frozen=True)
class ReleasedFit:
    """Coefficients corrected for the noise of released rows, and the covariance of intercept and coefficients."""

    coef: Floats
    intercept: float
    covariance: Floats
    n_needed: int


def least_squares_of_releases(rows: Floats, target: Floats, mechanism: RowMechanism, *, together: bool) -> ReleasedFit:
    """Regress on released rows by unbiased moments of true ones (Fuller, "Measurement Error Models", 2.2)."""
    n, d = rows.shape
    n_groups = min(n, _MOST_GROUPS)
    moments = np.array(
        [_moments(rows[start::n_groups], target[start::n_groups], mechanism, together) for start in range(n_groups)]
    )
    weights = np.array([len(rows[start::n_groups]) for start in range(n_groups)]) / n
    mean = weights @ moments.reshape(n_groups, -1)
    whole = mean.reshape(d + 2, d + 2)
    # Centred moments separate the constant from the solve.
    shift = np.eye(d + 2)
    shift[1:, 0] = -whole[0, 1:]
    about = shift @ moments @ shift.T
    gram, products = np.tensordot(weights, about, 1)[1:-1, 1:-1], np.tensordot(weights, about, 1)[1:-1, -1]
    # Units in which the release has variance 1: the remainder is the reliability of a direction.
    deviations = rows.std(axis=0)
    scale = np.where(deviations > 0, deviations, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    turned = vectors / scale[:, None]
    errors = _error_of_mean(np.einsum("ij,gik,kj->gj", turned, about[:, 1:-1, 1:-1], turned))
    least = np.maximum(DETECTED * np.sqrt(np.diag(errors)), 1e-12)
    coef = turned @ ((turned.T @ products) / np.maximum(values, least))
    clear = bool((values >= least).all())
    # The required number of people grows with the squared error; below its own error only that bound is known.
    share = float((least / np.maximum(values, least / DETECTED)).max())
    n_needed = n if clear else max(n + 1, math.ceil(n * share**2))
    constant = whole[0, -1] - coef @ whole[0, 1:-1]
    covariance = np.full((d + 1, d + 1), np.nan)
    if clear and n_groups > d + 1:
        inverse = np.eye(d + 1)
        inverse[1:, 1:] = (turned / values) @ turned.T
        inverse[0, 1:] = -whole[0, 1:-1] @ inverse[1:, 1:]
        scores = about[:, :-1, -1] - about[:, :-1, 1:-1] @ coef
        covariance = inverse @ _error_of_mean(scores) @ inverse.T
    return ReleasedFit(coef, float(constant), covariance, n_needed)


def _moments(rows: Floats, target: Floats, mechanism: RowMechanism, together: bool) -> Floats:
    """Return the second moments of (1, x, y) of the true rows."""
    table = np.column_stack([np.ones(len(rows)), rows, target])
    result = table.T @ table / len(rows)
    last = result.shape[0] if together else result.shape[0] - 1
    own = slice(1, last)
    result[own, own] = mechanism.original_second_moment(result[own, own], result[0, own])
    return result


def _error_of_mean(of_groups: Floats) -> Floats:
    """Return the covariance of the mean of groups of equal size, except one."""
    n_groups = len(of_groups)
    centred = of_groups - of_groups.mean(axis=0)
    return centred.T @ centred / (n_groups * max(1, n_groups - 1))
