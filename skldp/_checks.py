"""Checks of the parameters that the mechanisms for vectors share."""

import math
from numbers import Integral, Real
from typing import Any

__all__ = ["check_dimension", "check_fraction", "check_positive"]


def check_dimension(d: Any, *, least: int) -> None:
    """Refuse a dimension that is no whole number of at least `least`."""
    if isinstance(d, bool) or not isinstance(d, Integral) or d < least:
        raise ValueError(f"The dimension must be a whole number of at least {least}. Got {d!r} instead.")


def check_positive(name: str, value: Any) -> None:
    """Refuse what is no finite number > 0: NaN, infinity, a bool, a string."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number > 0. Got {value!r} instead.")


def check_fraction(name: str, value: Any) -> None:
    """Refuse what does not lie inside (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must lie inside (0, 1). Got {value!r} instead.")
