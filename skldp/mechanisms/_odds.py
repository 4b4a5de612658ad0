r"""Probabilities as integers out of :math:`2^{64}`, rounded to the private side, and the exact epsilon they give.

Everything here is computed in decimal arithmetic with far more digits than the integers have, so that a rounding is
certain to go the way it says.
"""

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._noise import Noise

__all__ = [
    "bernoulli",
    "check_epsilon",
    "check_representable",
    "floor_to_double",
    "least_count",
    "log_ratio",
    "product_above",
    "round_up",
    "split_epsilon",
    "sum_above",
]


_LARGEST = Fraction(sys.float_info.max)


def split_epsilon(epsilon: float, n_parts: int) -> float:
    """The largest float that `n_parts` times is not above `epsilon`.

    Examples
    --------
    >>> from skldp.mechanisms._odds import split_epsilon
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
    >>> from skldp.mechanisms._odds import round_up
    >>> round_up(Fraction(1, 4)), round_up(Fraction(1, 10)) >= Fraction(1, 10)
    (0.25, True)
    """
    if value > _LARGEST:
        return math.inf
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def floor_to_double(value: float | int) -> int:
    """The largest integer up to `value` that a double holds exactly."""
    nearest = float(value)
    return int(nearest) if int(nearest) <= value else int(np.nextafter(nearest, 0))


def sum_above(left: float, right: float) -> float:
    """The smallest float that is not below the exact sum of two epsilons, which may be infinite.

    Examples
    --------
    >>> from skldp.mechanisms._odds import sum_above
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


TWO_64 = 2**64
DIGITS = 80
# A bound on the relative error of the few decimal operations that make one integer.
DECIMAL_ERROR = Decimal(10) ** -(DIGITS - 10)
# Beyond this the integers have saturated, and the decimal exponential need not grow.
_LARGEST_EPSILON = 2000.0


def least_count(epsilon: float, n_others: int = 1) -> int:
    r"""The integer t with :math:`t / 2^{64} \ge 1 / (e^\varepsilon + m)`, the smallest one.

    Parameters
    ----------
    epsilon : float
    n_others : int, default=1
        m, how many events have this probability each, beside one that is :math:`e^\varepsilon` times as likely.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from skldp.mechanisms._odds import least_count
    >>> round(1 - least_count(1.0) / 2**64, 4), least_count(700.0)
    (0.7311, 1)
    """
    up, down = Context(prec=DIGITS, rounding=ROUND_CEILING), Context(prec=DIGITS, rounding=ROUND_FLOOR)
    odds = down.multiply(down.exp(Decimal(min(float(epsilon), _LARGEST_EPSILON))), 1 - DECIMAL_ERROR)
    share = up.divide(Decimal(TWO_64), down.add(odds, Decimal(n_others)))
    return int(share.to_integral_value(rounding=ROUND_CEILING))


def log_ratio(numerator: int, denominator: int, *, in_doubles: bool = False) -> float:
    """The natural logarithm of a ratio of positive integers, rounded up to a float.

    Parameters
    ----------
    numerator, denominator : int
    in_doubles : bool, default=False
        Compute in double precision, for a numerator that is not smaller: a few units in the last place above.

    Examples
    --------
    >>> from skldp.mechanisms._odds import log_ratio
    >>> log_ratio(1, 1), round(log_ratio(3, 1), 6), round(log_ratio(3, 1, in_doubles=True), 6)
    (0.0, 1.098612, 1.098612)
    """
    if numerator == denominator:
        return 0.0
    if in_doubles:
        return math.log1p((numerator - denominator) / denominator) * (1 + 2.0**-50)
    context = Context(prec=DIGITS)
    exact = context.subtract(context.ln(Decimal(numerator)), context.ln(Decimal(denominator)))
    value = float(exact)
    return value if Decimal(value) >= exact else math.nextafter(value, math.inf)


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is no finite number > 0: NaN, infinity, a bool, a string."""
    if isinstance(epsilon, bool | np.bool_) or not isinstance(epsilon, Real) or not 0 < float(epsilon) < math.inf:
        raise ValueError(f"epsilon must be a finite number > 0. Got {epsilon!r} instead.")


def check_representable(epsilon: float, exact: float, least: float) -> None:
    """Refuse an epsilon so small that probabilities out of 2^64 give epsilon 0, or more than it."""
    if not 0 < exact <= epsilon:
        raise ValueError(
            "epsilon must be large enough for probabilities out of 2**64 to differ by it, "
            f"here at least about {least:.3g}. Got {epsilon!r} instead."
        )


def bernoulli(noise: Noise, count: int, out: np.ndarray, words: npt.NDArray[np.uint16]) -> None:
    """Write True with probability exactly ``count / 2**64``, and False otherwise, from about 16 random bits each.

    The leading 16 bits of a 64-bit draw decide all but one in 65,536; only for those are the other 48 drawn.

    Parameters
    ----------
    noise : Noise
    count : int
        From 0 to 2^64 - 1.
    out : ndarray of shape (n, k)
        Overwritten. The draws belong to n rows in their order, k to each.
    words : ndarray of uint16 of the same shape
        Where the leading bits are drawn to; memory that is not allocated anew for every block.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._odds import bernoulli
    >>> from skldp.mechanisms._noise import noise_from
    >>> drawn = np.empty((2, 2), dtype=bool)
    >>> bernoulli(noise_from(), 0, drawn, np.empty((2, 2), dtype=np.uint16))
    >>> drawn.tolist()
    [[False, False], [False, False]]
    """
    leading, rest = np.uint16(count >> 48), np.uint64(count & (2**48 - 1))
    draws = noise.fill(words)
    np.less(draws, leading, out=out)
    undecided = np.flatnonzero(draws == leading)
    further = noise.at(undecided, draws.size).words(undecided.size) >> np.uint64(16)
    out[np.divmod(undecided, out.shape[1])] = further < rest
