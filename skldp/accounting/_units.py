r"""Integer units of budgets, and composition of epsilons and of zero-concentrated privacy."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from skldp._arrays import Bools, Floats, Ints
from skldp._checks import is_number
from skldp.laws._odds import round_down, round_up

# A sum of products of two such numbers, divided by a span of 1e-100, stays below 1e301: nothing can overflow.
LARGEST = 1e100
# Beyond this a 64-bit threshold no longer resolves 1 / (e^epsilon + 1) to the accuracy that the accounting allows for.
MAX_EPSILON = 30.0


def saturated(X: Any, n_features: int) -> Floats:
    """Clip rows to magnitudes of at most 1e100; NaN becomes -1e100. Shapes: `X` (n_samples, n_features)."""
    with np.errstate(all="ignore"):
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"X must be an array of numbers; got {type(X).__name__}.") from None
        if rows.ndim != 2 or rows.shape[1] != n_features:
            raise ValueError(
                f"X must have shape (n_samples, {n_features}), one column per coefficient of the query; "
                f"got shape {rows.shape}."
            )
        return np.nan_to_num(np.clip(rows, -LARGEST, LARGEST), copy=False, nan=-LARGEST)


def finite_number(value: Any, name: str) -> float:
    """Return a finite number as a float; -0.0 becomes 0.0. Raise ValueError otherwise."""
    if not is_number(value):
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    return float(value) + 0.0


def checked_epsilon(value: Any) -> float:
    """Return a valid epsilon of a query as a float. Raise ValueError otherwise."""
    epsilon = finite_number(value, "epsilon")
    if not 0 < epsilon <= MAX_EPSILON:
        raise ValueError(f"epsilon must be above 0 and at most {MAX_EPSILON:g}; got {value!r}.")
    return epsilon


UNITS = 2**60
# Bits of the lower of the two parts of a sum.
_LOW_BITS = 30
# The upper part saturates here, above a billion nats.
_MOST_HIGH = 2**60
BEYOND_SUMS = _MOST_HIGH << _LOW_BITS


def units_above(nats: float | Fraction) -> int:
    """Convert nats to units, rounded up."""
    return math.ceil(Fraction(nats) * UNITS)


def units_below(nats: float | Fraction) -> int:
    """Convert nats to units, rounded down."""
    return math.floor(Fraction(nats) * UNITS)


def zcdp_of_pure(charge: int) -> int:
    """Return the zCDP rho of a pure epsilon, half of its square, in units, rounded up."""
    return -(-charge * charge // (2 * UNITS))


def nats_above(units: int) -> float:
    """Convert units to nats, rounded up."""
    return round_up(Fraction(units, UNITS))


def nats_below(units: int) -> float:
    """Convert a non-negative number of units to nats, rounded down."""
    return round_down(Fraction(units, UNITS))


def as_parts(units: float) -> Ints:
    """Split a number of units into an upper and a lower int64, at most :data:`BEYOND_SUMS`."""
    if units >= BEYOND_SUMS:
        return np.array([_MOST_HIGH, 0], dtype=np.int64)
    return np.array(divmod(int(units), 1 << _LOW_BITS), dtype=np.int64)


def both_parts(charge: float, rho: int) -> Ints:
    """Split an epsilon and a zCDP rho, both in units, by :func:`as_parts`; shape (2, 2)."""
    parts = np.stack([as_parts(charge), as_parts(rho)])
    parts.setflags(write=False)
    return parts


def parts_of_pure(epsilon: float) -> Ints:
    """Split a pure epsilon in nats, and its zCDP rho, by :func:`both_parts`."""
    charge = units_above(epsilon)
    return both_parts(charge, zcdp_of_pure(charge))


def saturated_sum(sums: Ints, parts: Ints) -> Ints:
    """Add two split numbers to two split sums of each person; exact below :data:`BEYOND_SUMS`, saturated above."""
    # Shapes: `sums` (n, 4); `parts` (2, 2).
    limited: Ints = np.minimum(sums.reshape(-1, 2, 2) + parts, [_MOST_HIGH, 2**63 - 1])
    return limited.reshape(-1, 4)


def nats_of_sums(sums: Ints) -> Floats:
    """Convert split sums to nats, rounded up; infinite where they are saturated. Shapes: result (n,)."""
    units = [(high << _LOW_BITS) + low for high, low in sums.tolist()]
    return np.array([math.inf if one >= BEYOND_SUMS else nats_above(one) for one in units], dtype=np.float64)


def is_within(sums: Ints, budget: int) -> Bools:
    """Return a mask of the sums that are at most a budget; a saturated sum never is."""
    high, low = as_parts(min(budget, BEYOND_SUMS - 1)).tolist()
    carried = sums[..., 0] + (sums[..., 1] >> _LOW_BITS)
    rest = sums[..., 1] & ((1 << _LOW_BITS) - 1)
    within_budget: Bools = (carried < high) | ((carried == high) & (rest <= low))
    return within_budget


# Decimal precision, and a bound on the relative error of a few operations.
_DECIMALS = Context(prec=80)
_DECIMAL_ERROR = Decimal(10) ** -60


def zcdp_budget(epsilon: float, delta: float) -> int:
    """Return the zCDP budget (sqrt(epsilon + ln(1/delta)) - sqrt(ln(1/delta)))^2 in units, rounded down."""
    # A filter that accepts adaptive queries while the sum of their rho is at most this is (epsilon, delta)-LDP for each
    # pair of values (Bun and Steinke 2016, Lemma 3.5, for a fixed alpha: e^((alpha - 1)(L_k - alpha (rho_1 + ... +
    # rho_k))) is a supermartingale). With rho_i = epsilon_i^2 / 2 it is the filter of Whitehouse et al. (2022).
    with localcontext(_DECIMALS):
        inverse = -Decimal(delta).ln()
        # epsilon / (sum of the roots) is their difference without cancellation.
        root = Decimal(epsilon) / ((inverse + Decimal(epsilon)).sqrt() + inverse.sqrt())
        return math.floor(root * root * UNITS * (1 - _DECIMAL_ERROR))


def loss_of_zcdp(rho: int, delta: float) -> float:
    r"""Return :math:`\rho + 2 \sqrt{\rho \ln(1/\delta)}` in nats, rounded up, for a rho in units."""
    with localcontext(_DECIMALS):
        loss = Decimal(rho) / UNITS
        return round_up(Fraction((loss + 2 * (loss * -Decimal(delta).ln()).sqrt()) * (1 + _DECIMAL_ERROR)))
