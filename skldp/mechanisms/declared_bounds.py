"""Declared bounds in another floating-point type."""

import numpy as np
import numpy.typing as npt

__all__ = ["round_inward"]


def round_inward(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], dtype: npt.DTypeLike
) -> tuple[np.ndarray, np.ndarray]:
    """The tightest interval of another dtype that stays within the declared one.

    A bound that were rounded outward would let values through that the guarantee does not cover.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms.declared_bounds import round_inward
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
