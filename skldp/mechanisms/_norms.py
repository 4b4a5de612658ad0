"""Norms of rows without overflow, and rows shortened to a radius with every rounding counted."""

import numpy as np
import numpy.typing as npt

__all__ = [
    "factors_of_norms",
    "row_norms",
    "scaled_norms",
    "shorten_rows",
    "shortening_by_rounding",
    "shrink_factors",
]

# A row normalised by other code may be this many units in the last place too long.
_ROUNDING = 64


def row_norms(values: np.ndarray) -> npt.NDArray[np.float64]:
    """Euclidean norms of the rows, in the precision of the values, without overflow or underflow of the squares.

    Parameters
    ----------
    values : ndarray of shape (n, d)

    Returns
    -------
    ndarray of shape (n,)
    """
    with np.errstate(over="ignore", under="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", values, values), dtype=np.float64)
        extreme = _extreme(norms, values.dtype)
        if extreme.size:
            wide = values[extreme].astype(np.float64)
            largest = np.abs(wide).max(axis=1, initial=0.0)
            wide /= np.where(largest > 0, largest, 1)[:, None]
            norms[extreme] = largest * np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return norms


def scaled_norms(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Bring rows, in place, to a scale at which their squares neither overflow nor underflow; return their norms then.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
        Rows of a norm below 1e-150 or above 1e150 are multiplied by a power of two, which is exact.

    Returns
    -------
    ndarray of shape (n,)
        0 for a row of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._norms import scaled_norms
    >>> scaled_norms(np.array([[3.0, 4.0], [0.0, 5e-324], [0.0, 0.0]])).tolist()
    [5.0, 0.5, 0.0]
    """
    with np.errstate(over="ignore", under="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        extreme = _extreme(norms, rows.dtype)
        if extreme.size:
            far = rows[extreme]
            far = np.ldexp(far, -np.frexp(np.abs(far).max(axis=1, initial=0.0))[1][:, None])
            rows[extreme], norms[extreme] = far, np.sqrt(np.einsum("ij,ij->i", far, far))
    return norms


def shrink_factors(values: np.ndarray, radius: float) -> npt.NDArray[np.float64]:
    """Factors, at most 1, that bring the rows to norms of at most `radius`, with every rounding counted.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    radius : float

    Returns
    -------
    ndarray of shape (n,)
    """
    norms = row_norms(values)
    # Only rows that rounding leaves near the radius, or beyond it, need their norms in double precision.
    near = np.flatnonzero(norms > radius * (1 - (values.shape[1] + 8) * float(np.finfo(values.dtype).eps)))
    norms[near] = row_norms(values[near].astype(np.float64, copy=False))
    return factors_of_norms(norms, radius, values.dtype, values.shape[1])


def factors_of_norms(norms: npt.NDArray[np.float64], radius: float, dtype: np.dtype, d: int) -> npt.NDArray[np.float64]:
    """The same for rows of d numbers whose norms have been found in double precision."""
    with np.errstate(over="ignore"):
        factors = radius / np.maximum(norms * (1 + _norm_error(d)), radius)
    # A row that is shortened must not end up longer than the radius by the rounding of its own type.
    return np.where(factors < 1, factors * (1 - 2 * np.finfo(dtype).eps), 1.0)


def shortening_by_rounding(dtype: np.dtype, d: int) -> float:
    """How far below 1 the factor of a row may be that was normalised to the radius itself."""
    return _ROUNDING * float(np.finfo(dtype).eps) + 2 * _norm_error(d)


def shorten_rows(values: np.ndarray, radius: float) -> int:
    """Shorten, in place, the rows that are longer than `radius`.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    radius : float

    Returns
    -------
    int
        How many values were changed by more than rounding: a row normalised to the radius itself does not count.
    """
    factors = shrink_factors(values, radius)
    longer = np.flatnonzero(factors < 1)
    # In double precision: a factor that is subnormal in single precision has too few bits to keep within the radius.
    values[longer] = values[longer] * factors[longer, None]
    return int(np.count_nonzero(values[factors < 1 - shortening_by_rounding(values.dtype, values.shape[1])]))


def _norm_error(d: int) -> float:
    """By what part the norm of d numbers, added up in double precision, may be too small: twice the worst case."""
    return (d + 8) * 2.0**-53


def _extreme(norms: npt.NDArray[np.float64], dtype: np.dtype) -> npt.NDArray[np.intp]:
    """Rows whose squares may have left the range of the type, or lost their digits."""
    limit = 1e-15 if dtype == np.float32 else 1e-150
    return np.flatnonzero((norms < limit) | (norms > 1 / limit))
