"""How large the numbers of a question may be, and what is made of a person's values, so that nothing can overflow."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import is_number

__all__ = ["LARGEST", "MAX_EPSILON", "checked_epsilon", "finite_number", "saturated"]

# A sum of products of two such numbers, divided by a span of 1e-100, stays below 1e301: nothing can overflow.
LARGEST = 1e100
# Beyond this a 64-bit threshold no longer resolves 1 / (e^epsilon + 1) to the accuracy that the accounting allows for.
MAX_EPSILON = 30.0


def saturated(X: Any, n_features: int) -> npt.NDArray[np.float64]:
    """Turn rows into numbers of at most 1e100; NaN becomes -1e100.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    n_features : int

    Returns
    -------
    ndarray of float64, shape (n_samples, n_features)

    Raises
    ------
    ValueError
        If they are no numbers or have another shape. The text says nothing of what they are.
    """
    with np.errstate(all="ignore"):
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"X must be an array of numbers. Got {type(X).__name__} instead.") from None
        if rows.ndim != 2 or rows.shape[1] != n_features:
            raise ValueError(
                f"X must have shape (n_samples, {n_features}), one column per coefficient of the query. "
                f"Got shape {rows.shape} instead."
            )
        return np.nan_to_num(np.clip(rows, -LARGEST, LARGEST), copy=False, nan=-LARGEST)


def finite_number(value: Any, name: str) -> float:
    """Refuse what is no finite number; -0.0 becomes 0.0."""
    if not is_number(value):
        raise ValueError(f"{name} must be a finite number. Got {value!r} instead.")
    return float(value) + 0.0


def checked_epsilon(value: Any) -> float:
    """Refuse what no answer may cost."""
    epsilon = finite_number(value, "epsilon")
    if not 0 < epsilon <= MAX_EPSILON:
        raise ValueError(f"epsilon must be above 0 and at most {MAX_EPSILON:g}. Got {value!r} instead.")
    return epsilon
