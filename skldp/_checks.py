"""Checks of parameters: numbers, integers, and their ranges."""

import math
from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from numbers import Integral, Real
from typing import Any


def is_number(value: Any) -> bool:
    """Return whether a value is a finite real number; bools are excluded."""
    # numpy's bool is no Real.
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # An integer or a fraction beyond the largest double.
        return False


def is_integer(value: Any) -> bool:
    """Return whether a value has an integer type; bools are excluded."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_integer(name: str, value: Any, *, least: int, most: int | None = None) -> None:
    """Raise ValueError unless a value is an integer from `least` to `most`."""
    if not is_integer(value) or value < least or (most is not None and value > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        kind = ", a float" if isinstance(value, float) else ""
        raise ValueError(f"{name} must be a whole number {span}; got {value!r}{kind}.")


check_dimension = partial(check_integer, "The dimension")


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError unless a value is a finite number > 0."""
    if not is_number(value) or not value > 0:
        raise ValueError(f"{name} must be a finite number > 0; got {value!r}.")


check_epsilon = partial(check_positive, "epsilon")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Raise ValueError unless a value is a number from `low` to `high`, which may be infinite."""
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}; got {value!r}.")


def did_you_mean(given: Any, names: Iterable[Any]) -> str:
    """Return a sentence with the names that are close to a misspelt one; empty if none is."""
    known = {str(name).casefold(): str(name) for name in sorted(map(str, names))}
    near = [known[name] for name in get_close_matches(str(given).casefold(), known)]
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def check_choice(name: str, value: Any, choices: Iterable[str], error: type[ValueError] = ValueError) -> None:
    """Raise an error unless a value is one of the choices."""
    if value not in tuple(choices):
        near = did_you_mean(value, choices)
        raise error(f"{name} must be one of {', '.join(sorted(choices))}; got {value!r:.80}.{near}")


def check_fraction(name: str, value: Any) -> None:
    """Raise ValueError unless a value lies inside (0, 1)."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie inside (0, 1); got {value!r}.")
