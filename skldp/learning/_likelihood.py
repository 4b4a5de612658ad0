r"""Truncated gradients of a multinomial likelihood, and a Kalman filter of models that uses them.

A gradient is told at the model so far. What it would be if that model were true, and how it grows with the model's
error, is taken from made-up public people, whose features are normal with moments that are known; so that no person is
asked for it. The two are what a Kalman filter needs: it weighs every gradient by its known noise, and what is expected
of coefficients before the first one is a ridge that matters less the more is told.
"""

import numpy as np
import numpy.typing as npt
from scipy import special

from skldp.learning._vectors import contrasts
from skldp.mechanisms._noise import public_stream

# Number of simulated people for a curvature; more would change it less than its error.
_N_PEOPLE = 1_000
# Floor of divisors.
_LEAST = 1e-12
# Relative error of the curvature along a step.
_CURVATURE_ERROR = 0.5


def normal_people(moments: npt.NDArray[np.float64], has_constant: bool) -> npt.NDArray[np.float64]:
    """Return fixed simulated people with given second moments, in pairs around their mean.

    Shapes: moments (n_terms, n_terms); returns (1,000, n_terms).
    """
    uniform = public_stream(0).uniform((_N_PEOPLE // 2, len(moments) - has_constant))
    normal = special.ndtri(uniform)
    if not has_constant:
        values, vectors = np.linalg.eigh(moments)
        half = normal * np.sqrt(np.maximum(values, 0)) @ vectors.T
        return np.vstack([half, -half])
    scaled = moments / max(moments[0, 0], _LEAST)
    mean = scaled[0, 1:]
    values, vectors = np.linalg.eigh(scaled[1:, 1:] - np.outer(mean, mean))
    half = normal * np.sqrt(np.maximum(values, 0)) @ vectors.T
    return np.column_stack([np.ones(_N_PEOPLE), np.vstack([mean + half, mean - half])])


class Likelihood:
    r"""Return the class probabilities, given terms of people.

    Shapes: `terms` (n, n_terms).
    """

    def __init__(self, terms: npt.NDArray[np.float64], n_classes: int) -> None:
        self._terms, self._norms = terms, np.sqrt(np.einsum("ij,ij->i", terms, terms))
        self._contrasts = contrasts(n_classes)

    def expected(
        self, logits: npt.NDArray[np.float64], radius: float
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        r"""Return the mean truncated gradient at the true model, and its derivative.

        Shapes: `logits` (n, n_classes - 1); `mean` (n_classes - 1, n_terms); `curvature` (n_classes - 1, n_classes -
        1).

        With probabilities p of the classes and gradients :math:`g_k = C'(e_k - p) \otimes w`, each times
        :math:`c_k = \min(1, r / \|g_k\|)`, the mean is :math:`\sum_k p_k c_k g_k`, and since
        :math:`\partial p_k = p_k g_k`, its derivative is :math:`\sum_k p_k c_k g_k g_k'`.
        """
        n, n_terms = self._terms.shape
        probabilities = special.softmax(logits @ self._contrasts.T, axis=1)
        # Axes: person, reported class, contrast.
        errors = self._contrasts[None] - (probabilities @ self._contrasts)[:, None]
        norms = np.sqrt(np.einsum("nki,nki->nk", errors, errors)) * self._norms[:, None]
        shortened = probabilities * np.minimum(1, radius / np.maximum(norms, _LEAST))
        mean = np.einsum("nk,nki->ni", shortened, errors).T @ self._terms / n
        weights = shortened * self._norms[:, None] ** 2
        curvature = np.einsum("nk,nki,nkj->ij", weights, errors, errors, optimize=True) / (n * n_terms)
        return mean, curvature


def step(
    covariance: npt.NDArray[np.float64],
    gradient: npt.NDArray[np.float64],
    curvature: npt.NDArray[np.float64],
    variance: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return one step of a Kalman filter.

    Shapes: covariance (n_contrasts, n_contrasts), gradient (n_contrasts, n_terms), curvature (n_contrasts,
    n_contrasts); returns step (n_contrasts, n_terms), covariance (n_contrasts, n_contrasts).
    """
    spread = curvature @ covariance @ curvature + variance * np.eye(len(curvature))
    # Perfectly separated classes have no curvature.
    gain = (np.linalg.pinv(spread, hermitian=True) @ curvature @ covariance).T
    moved = gain @ gradient
    left = covariance - gain @ curvature @ covariance
    # The curvature is local: a longer step has a larger error.
    unknown = _CURVATURE_ERROR**2 * float(np.mean(moved**2))
    return moved, (left + left.T) / 2 + unknown * np.eye(len(curvature))
