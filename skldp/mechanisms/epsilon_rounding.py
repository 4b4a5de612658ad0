"""Arithmetic on epsilons that rounds to the private side: shares down, totals up."""

import math
import sys
from fractions import Fraction

__all__ = ["product_above", "round_up", "split_epsilon", "sum_above"]

_LARGEST = Fraction(sys.float_info.max)


def split_epsilon(epsilon: float, n_parts: int) -> float:
    """The largest float that `n_parts` times is not above `epsilon`.

    Examples
    --------
    >>> from skldp.mechanisms.epsilon_rounding import split_epsilon
    >>> split_epsilon(1.0, 4)
    0.25
    """
    share = epsilon / n_parts
    while Fraction(share) * n_parts > Fraction(epsilon):
        share = math.nextafter(share, 0.0)
    return share


def round_up(value: Fraction) -> float:
    """The smallest float that is not below `value`; infinite beyond the largest one.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from skldp.mechanisms.epsilon_rounding import round_up
    >>> round_up(Fraction(1, 4)), round_up(Fraction(1, 10)) >= Fraction(1, 10)
    (0.25, True)
    """
    if value > _LARGEST:
        return math.inf
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def sum_above(left: float, right: float) -> float:
    """The smallest float that is not below the exact sum of two epsilons, which may be infinite.

    Examples
    --------
    >>> from skldp.mechanisms.epsilon_rounding import sum_above
    >>> sum_above(0.7, 0.1), 0.7 + 0.1
    (0.8, 0.7999999999999999)
    """
    total = float(left) + float(right)
    return total if math.isinf(total) else round_up(Fraction(float(left)) + Fraction(float(right)))


def product_above(left: float, right: float) -> float:
    """The smallest float that is not below the exact product of two numbers >= 0, which may be infinite."""
    if math.isinf(left) or math.isinf(right):
        return math.inf
    return round_up(Fraction(float(left)) * Fraction(float(right)))
