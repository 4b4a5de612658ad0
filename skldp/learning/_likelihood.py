r"""What gradients of a multinomial likelihood tell, each shortened to a radius, and how they are put together.

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

__all__ = ["Likelihood", "normal_people", "step"]

# Made-up people: what a curvature differs by between so many and more is small beside what it may be wrong by.
_N_PEOPLE = 1_000
# What is divided by is no smaller.
_LEAST = 1e-12
# The part of a step that the curvature along it may be wrong by.
_CURVATURE_ERROR = 0.5


def normal_people(moments: npt.NDArray[np.float64], has_constant: bool) -> npt.NDArray[np.float64]:
    """Public made-up people, the same ones every time, with some second moments, in pairs about their mean.

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
    r"""Of classes, given some people's terms.

    Parameters
    ----------
    terms : ndarray of shape (n, n_terms)
    n_classes : int
    """

    def __init__(self, terms: npt.NDArray[np.float64], n_classes: int) -> None:
        self._terms, self._norms = terms, np.sqrt(np.einsum("ij,ij->i", terms, terms))
        self._contrasts = contrasts(n_classes)

    def expected(
        self, logits: npt.NDArray[np.float64], radius: float
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        r"""The mean of shortened gradients where a model is true, and how it grows as the truth moves away.

        Parameters
        ----------
        logits : ndarray of shape (n, n_classes - 1)
            The model's, of every person, in contrasts between the classes.
        radius : float

        Returns
        -------
        mean : ndarray of shape (n_classes - 1, n_terms)
            0 but for the shortening, which is not the same for all classes.
        curvature : ndarray of shape (n_classes - 1, n_classes - 1)
            Its derivative by the true coefficients, a mean over the terms.

        Notes
        -----
        With probabilities p of the classes and gradients :math:`g_k = C'(e_k - p) \otimes w`, each times
        :math:`c_k = \min(1, r / \|g_k\|)`, the mean is :math:`\sum_k p_k c_k g_k`, and since
        :math:`\partial p_k = p_k g_k`, its derivative is :math:`\sum_k p_k c_k g_k g_k'`.
        """
        n, n_terms = self._terms.shape
        probabilities = special.softmax(logits @ self._contrasts.T, axis=1)
        # Of every person and class: person, class told, contrast.
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
    """One step of a Kalman filter.

    Shapes: covariance (n_contrasts, n_contrasts), gradient (n_contrasts, n_terms), curvature (n_contrasts,
    n_contrasts); returns step (n_contrasts, n_terms), covariance (n_contrasts, n_contrasts).
    """
    spread = curvature @ covariance @ curvature + variance * np.eye(len(curvature))
    # Where classes are told apart without a doubt there is no curvature left.
    gain = (np.linalg.pinv(spread, hermitian=True) @ curvature @ covariance).T
    moved = gain @ gradient
    left = covariance - gain @ curvature @ covariance
    # The curvature holds where it was taken: the longer the step, the less is known of its end.
    unknown = _CURVATURE_ERROR**2 * float(np.mean(moved**2))
    return moved, (left + left.T) / 2 + unknown * np.eye(len(curvature))
