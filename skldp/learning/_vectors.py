"""Encodings of records as vectors, the decoding of their sums, and the tails of their norms."""

import math

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

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


# Largest tabulated deviation of the logarithm; beyond it a few outliers dominate the mean.
_LEAST_DEVIATION, _MOST_DEVIATION = 0.05, 2.0


def mean_excess(middle: float, deviation: float, radius: float) -> float:
    r"""Return the mean excess of norms over a radius.

    :math:`E (t - R)_+ = m e^{s^2 / 2} \Phi(u + s) - R \Phi(u)`, with :math:`u = \ln(m / R) / s`: the price of a call.

    Black and Scholes, "The pricing of options and corporate liabilities", 1973, equation 13, without interest.
    """
    upper = math.log(middle / radius) / deviation
    beyond = middle * math.exp(deviation**2 / 2) * special.ndtr(upper + deviation) - radius * special.ndtr(upper)
    return max(0.0, float(beyond))


def deviation_of_tail(told: float, start: float, end: float) -> float:
    """Return the log deviation with a given mean excess over `start`, truncated at `end`."""

    def beyond(level: float, deviation: float) -> float:
        ratio = level / deviation
        density = math.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
        return deviation * density - level * float(special.ndtr(-ratio))

    def too_much(deviation: float) -> float:
        return beyond(start, deviation) - beyond(end, deviation) - told

    if too_much(_LEAST_DEVIATION) >= 0:
        return _LEAST_DEVIATION
    if too_much(_MOST_DEVIATION) <= 0:
        return _MOST_DEVIATION
    return float(optimize.brentq(too_much, _LEAST_DEVIATION, _MOST_DEVIATION))


def radius_that_keeps(middle: float, deviation: float, share: float, noise: float) -> float:
    """Return the smallest radius whose mean excess is at most a fraction of the noise."""

    def excess(logarithm: float) -> float:
        radius = math.exp(logarithm)
        return mean_excess(middle, deviation, radius) / radius - share * noise

    low = math.log(middle)
    if excess(low) <= 0:
        return middle
    # The mean excess falls faster than any power of the radius.
    high = low + deviation
    while excess(high) > 0:
        high += deviation
    return math.exp(float(optimize.brentq(excess, low, high)))
