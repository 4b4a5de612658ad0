r"""Budgets and charges as integers of :math:`2^{-60}` nats: sums of them are exact, in whatever order they come.

A charge is rounded up and a budget down, each by less than 1e-18 nats, so that nobody is asked past a budget by a
rounding, and nobody is refused for one that adds up.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._odds import round_down, round_up

__all__ = [
    "BEYOND_SUMS",
    "as_parts",
    "nats_above",
    "nats_below",
    "nats_of_sums",
    "saturated_sum",
    "units_above",
    "units_below",
    "within",
]

UNITS = 2**60
# Sums of many people are kept in two parts, of which the lower one has so many bits.
_LOW_BITS = 30
# From this sum on, more than a billion nats, the upper part stays where it is.
_MOST_HIGH = 2**60
BEYOND_SUMS = _MOST_HIGH << _LOW_BITS


def units_above(nats: float | Fraction) -> int:
    """The least number of units that is not below so many nats.

    Examples
    --------
    >>> from skldp.accounting._units import units_above, units_below
    >>> units_above(1.0) == units_below(1.0) == 2**60, units_above(1e-300), units_below(1e-300)
    (True, 1, 0)
    """
    return math.ceil(Fraction(nats) * UNITS)


def units_below(nats: float | Fraction) -> int:
    """The largest number of units that is not above so many nats."""
    return math.floor(Fraction(nats) * UNITS)


def nats_above(units: int) -> float:
    """The least float of nats that is not below so many units."""
    return round_up(Fraction(units, UNITS))


def nats_below(units: int) -> float:
    """The largest float of nats that is not above so many units, of which there are at least 0."""
    return round_down(Fraction(units, UNITS))


def as_parts(units: float) -> npt.NDArray[np.int64]:
    """Split a number of units into two int64, an upper and a lower part; from :data:`BEYOND_SUMS` on it is that."""
    if units >= BEYOND_SUMS:
        return np.array([_MOST_HIGH, 0], dtype=np.int64)
    return np.array(divmod(int(units), 1 << _LOW_BITS), dtype=np.int64)


def saturated_sum(sums: npt.NDArray[np.int64], parts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add the parts of numbers, last axis, to sums of such: exact below :data:`BEYOND_SUMS`, and never back below it.

    Parameters
    ----------
    sums : ndarray of int64, shape (..., 2)
        Of at most :math:`2^{33}` numbers.
    parts : ndarray of int64, shape (..., 2)

    Returns
    -------
    ndarray of int64, shape (..., 2)
    """
    limited: npt.NDArray[np.int64] = np.minimum(sums + parts, [_MOST_HIGH, 2**63 - 1])
    return limited


def nats_of_sums(sums: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Sums in nats, rounded up; infinite where they are not exact.

    Parameters
    ----------
    sums : ndarray of int64, shape (n, 2)
        What :func:`saturated_sum` has added up.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting._units import as_parts, nats_of_sums, units_above
    >>> nats_of_sums(np.stack([as_parts(units_above(0.25)), as_parts(units_above(1e30))]))
    array([0.25,  inf])
    """
    units = [(high << _LOW_BITS) + low for high, low in sums.tolist()]
    return np.array([math.inf if one >= BEYOND_SUMS else nats_above(one) for one in units], dtype=np.float64)


def within(sums: npt.NDArray[np.int64], budget: int) -> npt.NDArray[np.bool_]:
    """Whether sums are at most a budget; no sum that is not exact is.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting._units import as_parts, saturated_sum, units_above, units_below, within
    >>> quarter, sums = as_parts(units_above(0.25)), np.zeros((1, 2), dtype=np.int64)
    >>> for _ in range(4):
    ...     sums = saturated_sum(sums, quarter)
    >>> [within(total, units_below(1.0)).tolist() for total in (sums, saturated_sum(sums, as_parts(1)))]
    [[True], [False]]
    """
    high, low = as_parts(min(budget, BEYOND_SUMS - 1)).tolist()
    carried = sums[..., 0] + (sums[..., 1] >> _LOW_BITS)
    rest = sums[..., 1] & ((1 << _LOW_BITS) - 1)
    within_budget: npt.NDArray[np.bool_] = (carried < high) | ((carried == high) & (rest <= low))
    return within_budget
