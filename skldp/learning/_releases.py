r"""A linear discriminant of rows that were released one by one, by a mechanism whose law is known."""

import math

import numpy as np
import numpy.typing as npt

from skldp.learning._linear_rule import clear_shares, linear_rule, shrunk_covariance
from skldp.mechanisms._rows import RowMechanism

__all__ = ["discriminant_of_releases", "unbiased_members"]

# By how much class means may differ, in units of the public covariance.
_LEAST_CONTRAST, _MOST_CONTRAST, _N_CONTRASTS = 1e-3, 10.0, 60
# In units of the ridge.
_LEAST_VARIANCE = 1e-3

_Array = npt.NDArray[np.float64]


def unbiased_members(codes: npt.NDArray[np.int64], flip_matrix: _Array) -> _Array:
    """Weights by which released labels belong to the classes: in the mean 1 for the true one, and 0 for others.

    Shapes: codes (n,), flip_matrix (n_classes, n_classes); returns (n, n_classes).
    """
    try:
        undone = np.linalg.inv(flip_matrix)
    except np.linalg.LinAlgError:
        raise ValueError(
            "Released labels must tell every class from the others. Got a law under which they do not."
        ) from None
    result: _Array = undone[codes].astype(np.float64)
    return result


def discriminant_of_releases(
    released: _Array, members: _Array, mechanism: RowMechanism, public: _Array | None = None
) -> tuple[_Array, _Array]:
    r"""Coefficients and intercepts of the logits of clean rows.

    Shapes: released (n, d), members (n, n_classes), public (n_public, d); returns coefficients (n_classes, d),
    intercepts (n_classes,).

    Notes
    -----
    The noise is taken out of the covariance within the classes, of which the nearest positive semidefinite matrix is
    taken. What is left of the noise has eigenvalues of about :math:`2 \sigma^2 \sqrt{d / n}` (Marchenko and Pastur),
    and that is the ridge: nothing is tuned.
    """
    n, d = released.shape
    sizes = np.maximum(members.sum(axis=0), 1.0)
    # What randomised labels add to the variance of the shares; true ones add nothing.
    shares = clear_shares(sizes / sizes.sum(), max(0.0, float((members**2 - members).sum())) / n**2)
    means = members.T @ released / sizes[:, None]
    variance = released.var(axis=0)
    noise = np.outer((members**2).sum(axis=0) / sizes**2, variance)
    moments, mean = released.T @ released / n, released.mean(axis=0)
    second = mechanism.original_second_moment(moments, mean)
    between = (means.T * shares) @ means - np.diag(shares @ noise)
    values, vectors = np.linalg.eigh(second - between)
    ridge = 2 * _gain(mechanism, moments, mean) * variance.mean() * math.sqrt(d / n)
    scale = np.sqrt(np.maximum(values, 0) + max(ridge, 1e-12 * max(values[-1], 1e-300)))
    whitening = vectors / scale
    # Where noise hides the variance, what is left of its sum tells the mean.
    hidden = values <= ridge
    mean_hidden = values[hidden].mean() if hidden.any() else 0.0
    within = np.where(hidden, max(mean_hidden, _LEAST_VARIANCE * ridge), values) / scale**2
    center = np.zeros(d)
    if public is not None:
        center = public.mean(axis=0)
        means, noise = _expected_contrasts(means - shares @ means, noise.mean(), public), np.zeros_like(noise)
    weights, intercepts = linear_rule(means @ whitening, noise @ whitening**2, within, shares)
    coefficients = weights @ whitening.T
    return coefficients, intercepts - coefficients @ center


def _gain(mechanism: RowMechanism, moments: _Array, mean: _Array) -> float:
    """By how much errors of products grow where the law is undone."""
    d = len(moments)
    probe = np.ones((d, d)) - (np.eye(d) if d > 1 else 0)
    probe *= np.trace(moments) / d
    change = mechanism.original_second_moment(moments + probe, mean) - mechanism.original_second_moment(moments, mean)
    return float(np.abs(change).sum() / probe.sum())


def _expected_contrasts(contrasts: _Array, noise: float, public: _Array) -> _Array:
    """Given that the true ones have a multiple of the public covariance, the likeliest multiple."""
    values, axes = np.linalg.eigh(shrunk_covariance(public))
    turned = contrasts @ axes
    squares = (turned**2).sum(axis=0) / (len(turned) - 1)
    signals = np.geomspace(_LEAST_CONTRAST, _MOST_CONTRAST, _N_CONTRASTS)[:, None] * np.maximum(values, 0)
    likelihood = -(np.log(signals + noise) + squares / (signals + noise)).sum(axis=1)
    signal = signals[likelihood.argmax()]
    result: _Array = (turned * signal / (signal + noise)) @ axes.T
    return result
