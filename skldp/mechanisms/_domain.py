"""Declared bounds: in another floating-point type, and what lies outside of them."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["NOT_FINITE", "Inside", "into_bounds", "round_inward"]

NOT_FINITE = "values must be finite. Got NaN or infinity instead."


def round_inward(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], dtype: npt.DTypeLike
) -> tuple[np.ndarray, np.ndarray]:
    """The tightest interval of another dtype that stays within the declared one.

    A bound that were rounded outward would let values through that the guarantee does not cover.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._domain import round_inward
    >>> low, high = round_inward(np.array([0.1]), np.array([0.7]), np.float32)
    >>> bool(low[0] >= 0.1), bool(high[0] <= 0.7)
    (True, True)
    """
    # A bound beyond the range of the type becomes infinite, and then its largest number.
    with np.errstate(over="ignore"):
        inner_low, inner_high = low.astype(dtype), high.astype(dtype)
    inner_low = np.where(inner_low < low, np.nextafter(inner_low, np.inf, dtype=inner_low.dtype), inner_low)
    inner_high = np.where(inner_high > high, np.nextafter(inner_high, -np.inf, dtype=inner_high.dtype), inner_high)
    return inner_low, inner_high


class Inside(NamedTuple):
    """Rows within bounds.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features)
    extent : float
        The largest magnitude among them.
    n_moved : int
        How many values were moved into the bounds.
    """

    rows: np.ndarray
    extent: float
    n_moved: int


def into_bounds(rows: np.ndarray, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> Inside:
    """Move what lies outside to the nearest bound.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features)
        Returned as they are where nothing is to be moved, and never written to.
    low, high : ndarray of shape (n_features,)

    Returns
    -------
    Inside

    Raises
    ------
    ValueError
        If a value is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._domain import into_bounds
    >>> into_bounds(np.array([[0.5, -9.0]]), np.zeros(2), np.ones(2))
    Inside(rows=array([[0.5, 0. ]]), extent=0.5, n_moved=1)
    """
    # Both are NaN if any value is.
    lowest, highest = float(rows.min(initial=math.inf)), float(rows.max(initial=-math.inf))
    if not (-math.inf < lowest and highest < math.inf):
        raise ValueError(NOT_FINITE)
    # Two passes over numbers in the cache spare most blocks the clipping, which takes several times as long.
    if low.max() <= lowest and highest <= high.min():
        return Inside(rows, max(-lowest, highest), 0)
    inner_low, inner_high = round_inward(low, high, rows.dtype)
    if (inner_low == inner_low[0]).all() and (inner_high == inner_high[0]).all():
        inner_low, inner_high = inner_low[0], inner_high[0]
    inside = np.clip(rows, inner_low, inner_high, out=np.empty(rows.shape, dtype=rows.dtype))
    extent = max(-float(inside.min(initial=math.inf)), float(inside.max(initial=-math.inf)))
    return Inside(inside, extent, int(np.count_nonzero(inside != rows)))
