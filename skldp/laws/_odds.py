r"""Probabilities as integers out of :math:`2^{64}`, rounded to the private side, and their exact epsilon.

The computations use decimal arithmetic with many more digits than the integers, or doubles with a bound on their error,
so the direction of every rounding is certain.
"""

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

_LARGEST = Fraction(sys.float_info.max)


LEAST_EPSILON = 1e-6
# Beyond it, exp(-epsilon) is too coarse as an integer fraction of 2^64, and such an event is never seen.
LARGEST_EPSILON = 24.0
# Relative margin for the rounding of integers and exponentials in double precision.
_MARGIN = 2.0**-24


def calibration_epsilon(epsilon: float) -> float:
    """Return the epsilon that integers of numbers are chosen for: a 2^-24 part below, and at most LARGEST_EPSILON."""
    return min(float(epsilon), LARGEST_EPSILON) * (1 - _MARGIN)


def split_epsilon(epsilon: float, n_parts: int) -> float:
    """Return the largest float whose sum over `n_parts` parts is at most `epsilon`."""
    return round_down(Fraction(float(epsilon)) / int(n_parts))


def round_up(value: Fraction) -> float:
    """Return the smallest float that is not below `value`; infinite beyond the largest one."""
    if value > _LARGEST:
        return math.inf
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """Return the largest float that is not above `value`."""
    nearest = float(min(value, _LARGEST))
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def floor_to_double(value: float | int) -> int:
    """Return the largest integer up to `value` that a double represents exactly."""
    nearest = float(value)
    return int(nearest) if int(nearest) <= value else int(np.nextafter(nearest, 0))


def sum_above(*epsilons: float) -> float:
    """Return the smallest float that is not below the exact sum of epsilons, which may be infinite."""
    if any(map(math.isinf, epsilons)):
        return math.inf
    return round_up(sum((Fraction(float(epsilon)) for epsilon in epsilons), Fraction(0)))


def float_above(number: Any) -> float:
    """Return the smallest float that is not below a declared number of any type."""
    exact = number.item() if isinstance(number, np.generic) else number
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def product_above(left: float, right: float) -> float:
    """Return the smallest float that is not below the exact product of two numbers >= 0, which may be infinite."""
    if math.isinf(left) or math.isinf(right):
        return math.inf
    return round_up(Fraction(float(left)) * Fraction(float(right)))


TWO_64 = 2**64
DIGITS = 80
# Bound on the relative error of the decimal operations behind one integer.
DECIMAL_ERROR = Decimal(10) ** -(DIGITS - 10)
_HAIR = Decimal(2) ** -50
# A float with at most this many fraction bits is used without the reduction of least_count.
_WHOLE_BITS = 20
# Generous bound on the relative error of expit in double precision, which is a few ulps.
_EXPIT_ERROR = 2.0**-48
# The integers are saturated beyond this, so a larger decimal exponential is not needed.
_LARGEST_EPSILON = 2000.0


def least_count(epsilon: float, n_others: int = 1, *, n_own: int = 1, n_counted: int = 1) -> int:
    """Return the smallest integer t with t / 2^64 >= c / (o e^epsilon + m), epsilon less one part in 2^50."""
    # A float such as 0.1 is slightly above its decimal text; with the reduction ten times 0.1 is at most 1.
    up, down = Context(prec=DIGITS, rounding=ROUND_CEILING), Context(prec=DIGITS, rounding=ROUND_FLOOR)
    least = min(float(epsilon), _LARGEST_EPSILON)
    aim = Decimal(least) if (least * 2.0**_WHOLE_BITS).is_integer() else down.multiply(Decimal(least), 1 - _HAIR)
    odds = down.multiply(down.exp(aim), 1 - DECIMAL_ERROR)
    share = up.divide(Decimal(n_counted * TWO_64), down.add(down.multiply(odds, Decimal(n_own)), Decimal(n_others)))
    return int(share.to_integral_value(rounding=ROUND_CEILING))


def log_ratio(numerator: int, denominator: int, *, in_doubles: bool = False) -> float:
    """Return the natural logarithm of a ratio of positive integers, rounded up to a float."""
    if numerator == denominator:
        return 0.0
    if in_doubles:
        return math.log1p((numerator - denominator) / denominator) * (1 + 2.0**-50)
    context = Context(prec=DIGITS)
    own, other = context.ln(Decimal(numerator)), context.ln(Decimal(denominator))
    # Most digits of a ratio near 1 cancel; the bound covers the error of the others.
    most = context.add(context.subtract(own, other), context.multiply(context.add(own, other), DECIMAL_ERROR))
    value = float(most)
    return value if Decimal(value) >= most else math.nextafter(value, math.inf)


def flip_threshold(log_odds: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Return integers t with t / 2^64 = 1 / (1 + e^L), rounded towards 1/2, so that no |log odds| grows."""
    odds = np.asarray(log_odds, dtype=np.float64)
    if not np.isfinite(odds).all():
        raise ValueError(f"log_odds must be finite; got {log_odds!r}.")
    small_side = np.exp(-np.abs(odds)) / (1 + np.exp(-np.abs(odds)))
    scaled = np.minimum(np.ceil(small_side * (1 + _EXPIT_ERROR) * 2.0**64), 2.0**63)
    # Near 1/2, the loss depends on the distance from 1/2, which must be accurate.
    distance = np.floor(np.tanh(np.minimum(np.abs(odds), 1.0) / 2) * (1 - _EXPIT_ERROR) * 2.0**63).astype(np.uint64)
    small = np.where(np.abs(odds) < 1, np.uint64(2**63) - distance, np.maximum(scaled, 1.0).astype(np.uint64))
    # 2^64 - t in unsigned arithmetic is the two's complement of t; t is never 0.
    return np.where(odds >= 0, small, ~small + np.uint64(1))


def threshold_log_odds(threshold: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the exact log odds ln((2^64 - t) / t) of integers t, rounded away from 0."""
    t = np.asarray(threshold, dtype=np.uint64)
    small = np.minimum(t, ~t + np.uint64(1))
    # (2^64 - s) / s = 1 + (2^64 - 2 s) / s: log1p keeps the logarithm accurate near s = 2^63.
    excess = (np.uint64(2**63) - small).astype(np.float64) * 2.0
    magnitude = np.log1p(excess / small.astype(np.float64))
    outward = np.where(magnitude > 0, magnitude * (1 + 8 * np.finfo(np.float64).eps), 0.0)
    return np.where(t <= np.uint64(2**63), outward, -outward)


def check_representable(epsilon: float, exact: float, least: float) -> None:
    """Raise ValueError if epsilon is too small for probabilities out of 2^64."""
    if not 0 < exact <= epsilon:
        rule = f"large enough for probabilities out of 2**64, here at least about {least:.3g}"
        raise ValueError(f"epsilon must be {rule}; got {epsilon!r}.")
