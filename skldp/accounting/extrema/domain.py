"""The domain of a person's values: a box of one interval per feature."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting.query_content import LARGEST

__all__ = ["Bounds", "checked_box", "middle_and_half"]

Bounds = tuple[npt.ArrayLike, npt.ArrayLike]


def checked_box(bounds: Any, *, n_features: int) -> npt.NDArray[np.float64]:
    """Check bounds and write them out, one column per feature.

    Parameters
    ----------
    bounds : tuple (low, high)
        Each a number, or one number per feature.
    n_features : int

    Returns
    -------
    ndarray of shape (2, n_features)

    Raises
    ------
    ValueError
        If they are no finite numbers with low <= high, are beyond 1e100, or are for another number of features.

    Examples
    --------
    >>> from skldp.accounting.extrema.domain import checked_box
    >>> checked_box((-1, [1, 2]), n_features=2)
    array([[-1., -1.],
           [ 1.,  2.]])
    """
    try:
        low, high = bounds
        sides = [np.asarray(side, dtype=np.float64) for side in (low, high)]
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be (low, high), of numbers. Got {bounds!r} instead.") from None
    for side in sides:
        if side.ndim > 1 or (side.ndim == 1 and side.size != n_features):
            raise ValueError(
                f"bounds must be numbers, or have one for each of the {n_features} features. Got {bounds!r} instead."
            )
    box = np.stack([np.broadcast_to(side, (n_features,)) for side in sides])
    if not np.isfinite(box).all() or (box[0] > box[1]).any():
        raise ValueError(f"bounds must be finite, with low <= high. Got {bounds!r} instead.")
    # Beyond it a person's values are moved to it: the domain that is certified must be the one that is asked.
    if (np.abs(box) > LARGEST).any():
        raise ValueError(f"bounds must lie within -{LARGEST:g} and {LARGEST:g}. Got {bounds!r} instead.")
    return box


def middle_and_half(box: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Centre and half the width of a box, without overflow, each of shape (n_features,)."""
    low, high = box / 2
    return low + high, high - low
