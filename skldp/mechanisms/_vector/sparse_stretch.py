r"""How far a projection stretches sparse vectors, with a proof: by its construction, or over the draw of it.

Let :math:`\Phi` have columns of norm 1 of which two have an inner product of at most :math:`\mu` in magnitude. A vector
u of at most k non-zero values meets a k by k part of :math:`\Phi^\top \Phi` alone, whose rows have a 1 and k - 1 other
numbers of at most :math:`\mu`. By Gershgorin's theorem

.. math:: \|\Phi u\|^2 \le (1 + (k - 1) \mu) \|u\|^2, \qquad \mu \le 1.

Two records of at most c non-zero values differ in at most 2 c.
"""

import math

import numpy as np
import numpy.typing as npt

from skldp._checks import check_dimension, check_fraction

__all__ = [
    "check_square_of_prime",
    "coherent_stretch",
    "degree_of",
    "next_prime",
    "polynomial_rows",
    "square_of_prime",
    "support_stretch",
]

_ROUNDING = 1 + 2.0**-48


def next_prime(least: int) -> int:
    """The least prime of at least this size."""
    prime = max(least, 2)
    while any(prime % factor == 0 for factor in range(2, math.isqrt(prime) + 1)):
        prime += 1
    return prime


def square_of_prime(least: int, most: int) -> int:
    """The least square of a prime that is at least so large; if it is above `most`, the largest that is not.

    Examples
    --------
    >>> from skldp.mechanisms._vector.sparse_stretch import square_of_prime
    >>> square_of_prime(83, 10**6), square_of_prime(64, 64)
    (121, 49)
    """
    prime = next_prime(math.isqrt(max(least, 1) - 1) + 1)
    while prime > 2 and (prime * prime > most or next_prime(prime) != prime):
        prime -= 1
    return prime * prime


def check_square_of_prime(m: int) -> int:
    """Give the prime whose square this is."""
    prime = math.isqrt(m)
    if prime * prime != m or prime < 2 or next_prime(prime) != prime:
        around = next_prime(max(prime, 2)) ** 2
        raise ValueError(
            f"A polynomial projection has the square of a prime as n_components, such as {around}. Got {m} instead."
        )
    return prime


def degree_of(n_columns: int, prime: int) -> int:
    """The least degree of polynomials over the field of so many numbers of which there are as many as columns."""
    degree, count = 0, prime
    while count < n_columns:
        degree, count = degree + 1, count * prime
    return degree


def polynomial_rows(first: int, n_columns: int, m: int) -> npt.NDArray[np.int64]:
    r"""Where columns have their entries: column j in band b at the value at b of the polynomial of the digits of j.

    Two polynomials of degree D agree at D places at most, so two columns share at most D rows.

    Shapes: returns (q, n_columns).

    References
    ----------
    DeVore, "Deterministic constructions of compressed sensing matrices", Journal of Complexity, 2007.
    """
    prime = check_square_of_prime(m)
    left = np.arange(first, first + n_columns)
    places = np.arange(prime)[:, None]
    values, power = np.zeros((prime, n_columns), dtype=np.int64), np.ones((prime, 1), dtype=np.int64)
    while left.any():
        left, digits = np.divmod(left, prime)
        values += digits * power
        values %= prime
        power = power * places % prime
    return values + prime * places


def coherent_stretch(k: int, n_bands: int, shared: int, entry: float) -> float:
    r"""A bound on :math:`\|\Phi u\|` for unit vectors of k non-zero values, rounded up.

    Examples
    --------
    >>> from skldp.mechanisms._vector.sparse_stretch import coherent_stretch
    >>> round(coherent_stretch(200, 11, 5, 11**-0.5), 2)
    9.56
    """
    return math.sqrt(n_bands + (k - 1) * min(shared, n_bands)) * entry * _ROUNDING


def support_stretch(m: int, d: int, k: int, delta: float) -> float:
    r"""What a Gaussian Phi stretches unit vectors of k non-zero values by at most, but for a chance of delta.

    Notes
    -----
    The largest singular value of m by k independent standard normal numbers exceeds :math:`\sqrt m + \sqrt k + t` with
    a chance of at most :math:`e^{-t^2 / 2}`, and there are at most :math:`(e d / k)^k` sets of k columns:

    .. math:: 1 + \frac{\sqrt k + \sqrt{2 k \ln(e d / k) + 2 \ln(1 / \delta)}}{\sqrt m}

    References
    ----------
    Davidson and Szarek, "Local operator theory, random matrices and Banach spaces", 2001, Theorem II.13.

    Examples
    --------
    >>> from skldp.mechanisms._vector.sparse_stretch import support_stretch
    >>> round(support_stretch(121, 1_000_000, 200, 1e-6), 2)
    7.92
    """
    for number in (m, d, k):
        check_dimension(number, least=1)
    check_fraction("delta", delta)
    choices = 0.0 if k >= d else k * (1 + math.log(d / k))
    return (1 + (math.sqrt(min(k, d)) + math.sqrt(2 * (choices - math.log(delta)))) / math.sqrt(m)) * _ROUNDING
