"""Encodings of records as vectors, and the decoding of their sums."""

import math

import numpy as np
import numpy.typing as npt

_OFF_DIAGONAL = math.sqrt(2)


def n_products(k: int) -> int:
    """Return the number of distinct products of the numbers of a vector of length k."""
    return k * (k + 1) // 2


def symmetric_matrix(products: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.float64]:
    """Return the symmetric matrix of products of a vector of length k, in a task's order and scale.

    Shapes: products (k (k + 1) / 2,); returns (k, k).
    """
    matrix = np.zeros((k, k))
    i, j = np.triu_indices(k)
    matrix[i, j] = matrix[j, i] = products / np.where(i == j, 1.0, _OFF_DIAGONAL)
    return matrix


def products(u: npt.NDArray[np.float64], scale: float) -> npt.NDArray[np.float64]:
    """Return the products of all pairs of columns, off-diagonal ones times sqrt(2)."""
    n, k = u.shape
    products = np.empty((n, n_products(k)))
    weights = _OFF_DIAGONAL * (u * scale)
    start = 0
    for i in range(k):
        stop = start + k - i
        np.multiply(u[:, i:], weights[:, i : i + 1], out=products[:, start:stop])
        products[:, start] /= _OFF_DIAGONAL
        start = stop
    return products


def contrasts(n_classes: int) -> npt.NDArray[np.float64]:
    """Return Helmert's orthonormal contrasts of K classes, shape (K, K - 1): each column sums to 0."""
    columns = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        columns[:j, j - 1] = 1 / math.sqrt(j * (j + 1))
        columns[j, j - 1] = -j / math.sqrt(j * (j + 1))
    return columns


def class_gradients(
    u: npt.NDArray[np.float64], target: npt.NDArray[np.float64], n_classes: int
) -> npt.NDArray[np.float64]:
    """Return the gradient of the log likelihood of the classes by the logits of the contrasts."""
    logits = u[:, -n_classes:]
    errors = -np.exp(logits - logits.max(axis=1, keepdims=True))
    errors /= -errors.sum(axis=1, keepdims=True)
    codes = np.rint((target + 1) / 2 * (n_classes - 1)).astype(np.intp)
    errors[np.arange(len(u)), codes] += 1
    told = errors @ contrasts(n_classes)
    result: npt.NDArray[np.float64] = (told[:, :, None] * u[:, None, :-n_classes]).reshape(len(u), -1)
    return result
