"""Checks of what is given: numbers that are numbers, which True and False are not, and names that are there once."""

import math
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = [
    "check_between",
    "check_dimension",
    "check_epsilon",
    "check_fraction",
    "check_positive",
    "check_whole",
    "each_once",
    "is_number",
    "is_whole",
]


def is_number(value: Any) -> bool:
    """Whether something is a finite real number, which a bool, NaN, infinity or a string is not."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # A whole number or a fraction beyond the largest double.
        return False


def is_whole(value: Any) -> bool:
    """Whether something is a whole number of an integer type, which a bool is not."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, for its reader: of a name that is there twice, readers would find different values."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError(f"Every field must be there once. Got {sorted(name for name, _ in pairs)} instead.")
    return fields


def check_whole(name: str, value: Any, *, least: int, most: int | None = None) -> None:
    """Refuse what is no whole number of at least `least` and, if that is given, at most `most`."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {span}. Got {value!r} instead.")


def check_dimension(d: Any, *, least: int) -> None:
    """Refuse a dimension that is no whole number of at least `least`."""
    check_whole("The dimension", d, least=least)


def check_positive(name: str, value: Any) -> None:
    """Refuse what is no finite number > 0: NaN, infinity, a bool, a string."""
    if not is_number(value) or not value > 0:
        raise ValueError(f"{name} must be a finite number > 0. Got {value!r} instead.")


check_epsilon = partial(check_positive, "epsilon")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is no number from `low` to `high`, which may be infinite."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}. Got {value!r} instead.")


def check_fraction(name: str, value: Any) -> None:
    """Refuse what does not lie inside (0, 1)."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie inside (0, 1). Got {value!r} instead.")
