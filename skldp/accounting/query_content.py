"""What all kinds of queries share: read-only content, its key, outputs by their index, and limits on numbers."""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST", "SMALLEST_SPAN", "content_key", "output_index", "read_only", "saturated"]

# A sum of products of two such numbers, divided by such a span, stays below 1e301: nothing can overflow.
LARGEST = 1e100
SMALLEST_SPAN = 1e-100


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


def read_only(values: np.ndarray) -> np.ndarray:
    """The same array, which nobody can change any more."""
    values.flags.writeable = False
    return values


def output_index(output: Any, n_outputs: int) -> int:
    """Check that an output is the index of one."""
    if isinstance(output, bool | np.bool_) or not isinstance(output, int | np.integer) or not 0 <= output < n_outputs:
        raise ValueError(f"output must be an integer from 0 to {n_outputs - 1}. Got {output!r} instead.")
    return int(output)


def content_key(text: str) -> str:
    """SHA-256 of a query written as text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
