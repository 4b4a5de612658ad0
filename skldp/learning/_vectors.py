"""Encodings of records as vectors, and the decoding of their sums."""

import math
from functools import lru_cache

import numpy as np
from scipy import linalg, special

from skldp._arrays import Floats, Positions


def n_products(k: int) -> int:
    """Return the number of distinct products of the numbers of a vector of length k."""
    return k * (k + 1) // 2


def symmetric_matrix(products: Floats, k: int) -> Floats:
    """Return the symmetric matrix of products of a vector of length k, in a task's order and scale, shape (k, k)."""
    matrix = np.zeros((k, k))
    i, j = np.triu_indices(k)
    matrix[i, j] = matrix[j, i] = products / np.where(i == j, 1.0, math.sqrt(2))
    return matrix


@lru_cache(maxsize=4)
def contrasts(n_classes: int) -> Floats:
    """Return Helmert's orthonormal contrasts of K classes, shape (K, K - 1): each column sums to 0."""
    found = linalg.helmert(n_classes).T
    found.flags.writeable = False
    return found


def class_gradients(u: Floats, target: Floats, n_classes: int) -> Floats:
    """Return the gradient of the log likelihood of the classes by the logits of the contrasts."""
    errors = -special.softmax(u[:, -n_classes:], axis=1)
    errors[np.arange(len(u)), class_codes(target, n_classes)] += 1
    residuals = errors @ contrasts(n_classes)
    return (residuals[:, :, None] * u[:, None, :-n_classes]).reshape(len(u), -1)


def class_codes(target: Floats, n_classes: int) -> Positions:
    """Return the classes, counted from 0, of targets between -1 and 1."""
    return np.rint((target + 1) / 2 * (n_classes - 1)).astype(np.intp)


def losses(u: Floats, target: Floats, n_classes: int) -> Floats:
    """Return the squared error of a prediction within the bounds, or the negative log likelihood of the class."""
    if not n_classes:
        return np.asarray((target - np.clip(u[:, 0], -1, 1)) ** 2)
    chosen = u[np.arange(len(u)), class_codes(target, n_classes)]
    return np.asarray(special.logsumexp(u, axis=1) - chosen)
