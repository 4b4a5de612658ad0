"""Checks of parameters: numbers, integers, and their ranges."""

import math
from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number; bools are excluded."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # An integer or a fraction beyond the largest double.
        return False


def is_integer(value: Any) -> bool:
    """Return whether a value has an integer type; bools are excluded."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_integer(name: str, value: Any, *, least: int, most: int | None = None) -> None:
    """Raise ValueError unless a value is an integer from `least` to `most`."""
    if not is_integer(value) or value < least or (most is not None and value > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        kind = ", a float" if isinstance(value, float) else ""
        raise ValueError(f"{name} must be a whole number {span}; got {value!r}{kind}.")


def check_dimension(d: Any, *, least: int) -> None:
    """Raise ValueError unless a dimension is an integer of at least `least`."""
    check_integer("The dimension", d, least=least)


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError unless a value is a finite number > 0."""
    if not is_number(value) or not value > 0:
        raise ValueError(f"{name} must be a finite number > 0; got {value!r}.")


check_epsilon = partial(check_positive, "epsilon")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Raise ValueError unless a value is a number from `low` to `high`, which may be infinite."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}; got {value!r}.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise ValueError unless a value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {tuple(choices)}; got {value!r}.")


def check_fraction(name: str, value: Any) -> None:
    """Raise ValueError unless a value lies inside (0, 1)."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie inside (0, 1); got {value!r}.")
