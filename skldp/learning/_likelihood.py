r"""Gradients of a multinomial likelihood, expected from simulated public people.

How a gradient grows with the error of the model, and how much of it is lost to clipping, follows from people whose
features are normal with the moments that were reported. No person is asked for it.
"""

import math
from functools import lru_cache

import numpy as np
from scipy import special

from skldp._arrays import Floats
from skldp.mechanisms._noise import public_stream

# Number of simulated people. More of them change a curvature by less than its error.
_N_PEOPLE = 1_000
# Floor of divisors.
_LEAST = 1e-12
# Least fraction of a gradient that clipping is taken to leave.
_LEAST_SHOWN = 1e-4
# Sizes of residuals, relative to the largest, four for each factor of two.
_SIZES = math.sqrt(2) * 2.0 ** (-np.arange(80) / 4)


@lru_cache(maxsize=16)
def _standard_normal(n_features: int) -> Floats:
    """Return normal numbers of half of the people, with second moments of exactly 1 if there are enough people."""
    normal = special.ndtri(public_stream(0).uniform((_N_PEOPLE // 2, n_features)))
    if 4 * n_features > _N_PEOPLE:
        return np.asarray(normal)
    return np.linalg.solve(np.linalg.cholesky(normal.T @ normal / len(normal)), normal.T).T


def normal_people(moments: Floats) -> Floats:
    """Return 1,000 fixed simulated people in pairs around their mean, by second moments with a constant first."""
    constant = math.sqrt(max(moments[0, 0], _LEAST))
    mean = moments[0, 1:] / constant
    values, vectors = np.linalg.eigh(moments[1:, 1:] - np.outer(mean, mean))
    half = _standard_normal(len(mean)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
    people = np.vstack([mean + half, mean - half])
    return np.column_stack([np.full(_N_PEOPLE, constant), people])


class Likelihood:
    """Expected gradients at simulated people, by the contrasts of the classes; a model has a row for each contrast."""

    def __init__(self, terms: Floats, contrasts: Floats) -> None:
        self._terms, self._contrasts = terms, contrasts
        self._norms = np.sqrt(np.einsum("ij,ij->i", terms, terms))
        self._known: dict[bytes, Floats] = {}

    def at_zero(self, model: Floats) -> Floats:
        """Return the mean of the contrasts of the class times the terms, in the shape (..., n_classes - 1, n_terms)."""
        return self._contrasts.T @ (self._probabilities(model) @ self._terms) / len(self._terms)

    def curvature(self, model: Floats) -> Floats:
        """Return the derivative of `at_zero` within each contrast, shape (..., n_classes - 1, n_terms, n_terms)."""
        variances = self._variances(model) / len(self._terms)
        found = [(self._terms.T * one) @ self._terms for one in variances.reshape(-1, len(self._terms))]
        return np.reshape(found, (*model.shape, -1))

    def traces(self, model: Floats) -> Floats:
        """Return the traces of `curvature`, shape (..., n_classes - 1)."""
        return self._variances(model) @ self._norms**2 / len(self._terms)

    def clipped(self, model: Floats, radius: float) -> tuple[Floats, float]:
        """Return the mean sum_k p_k c_k g_k of gradients clipped by c = min(1, r / |g|), and the share shown."""
        probabilities = self._probabilities(model)
        norms = self.sizes(model) * self._norms
        kept = np.minimum(1, radius / np.maximum(norms, _LEAST))
        weights = probabilities * kept
        # Axes: contrast, person.
        errors = self._contrasts.T @ weights - weights.sum(axis=0) * (self._contrasts.T @ probabilities)
        mean = errors @ self._terms / len(self._terms)
        information = probabilities * norms**2
        shown = float((information * kept).sum() / max(information.sum(), _LEAST))
        return mean, max(shown, _LEAST_SHOWN)

    def sizes(self, model: Floats) -> Floats:
        """Return the norms of the contrasts of residuals for each class and person, shape (n_classes, n)."""
        probabilities = self._probabilities(model)
        squares = (probabilities**2).sum(axis=0) + 1 - 2 * probabilities
        return np.asarray(np.sqrt(np.maximum(squares, 0)))

    def residuals(self, model: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Return 80 sizes of residuals and their probabilities, half by the model and half by the classes' shares."""
        weights = (self._probabilities(model) + shares[:, None]) / (2 * len(self._terms))
        places = np.rint(-4 * np.log2(np.maximum(self.sizes(model), _LEAST) / math.sqrt(2)))
        at = np.clip(places, 0, len(_SIZES) - 1).astype(np.intp)
        chances = np.bincount(at.ravel(), weights.ravel(), minlength=len(_SIZES))
        return _SIZES, chances.astype(np.float64)

    def _variances(self, model: Floats) -> Floats:
        """Return the variances of the contrasts of the class for each person, shape (..., n_classes - 1, n)."""
        probabilities, directions = self._probabilities(model), self._contrasts.T
        return np.asarray(directions**2 @ probabilities - (directions @ probabilities) ** 2)

    def _probabilities(self, model: Floats) -> Floats:
        """Return the probabilities of the classes for each person, shape (..., n_classes, n)."""
        key = model.tobytes()
        if key not in self._known:
            # Reductions over the classes' axis are many times faster. The methods ask for one model after the other.
            self._known = {key: special.softmax(self._contrasts @ model @ self._terms.T, axis=-2)}
        return self._known[key]
