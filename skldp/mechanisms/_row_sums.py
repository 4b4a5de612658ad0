"""Weighted sums of the columns of rows, each row's the same to the bit in any batch, order and memory layout."""

import numpy as np
import numpy.typing as npt

__all__ = ["weighted_sums"]


def weighted_sums(
    rows: np.ndarray, coef: npt.NDArray[np.float64], start: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return ``start + rows @ coef.T``, of shape (n, n_sums), added from the first column to the last.

    Parameters
    ----------
    rows : ndarray of numbers, shape (n, n_features)
    coef : ndarray of shape (n_sums, n_features)
    start : ndarray of shape (n_sums,)
    """
    # A matrix product adds in an order that depends on the number of rows, the memory layout and the library: at a
    # tie a record would change its class with the batch. A ufunc rounds one IEEE operation for each element, and the
    # multiplication and the addition are two calls that no compiler fuses: every machine and numpy gives these bits.
    totals = np.tile(start, (len(rows), 1))
    with np.errstate(all="ignore"):
        for column, weights in zip(rows.T, coef.T, strict=True):
            totals += column[:, None].astype(np.float64) * weights
    return totals
