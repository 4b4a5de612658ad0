"""Norms of rows without overflow, factors that keep rows within a radius, and the nearest of a set of rows."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = [
    "nearest_rows",
    "row_norms",
    "scaled_norms",
    "shortening_by_rounding",
    "shrink_factors",
]

# A row normalised by other code may be this many units in the last place too long.
_ROUNDING = 64
# Distances to this many words at a time.
_SCORES = 1 << 20
_FAR = 1e150


def row_norms(values: np.ndarray) -> npt.NDArray[np.float64]:
    """Euclidean norms of the rows, in the precision of the values, without overflow or underflow of the squares.

    Shapes: values (n, d); returns (n,).
    """
    with np.errstate(over="ignore", under="ignore"):
        norms: npt.NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", values, values), dtype=np.float64)
        extreme = _extreme(norms, values.dtype)
        if extreme.size:
            wide = values[extreme].astype(np.float64)
            largest = np.abs(wide).max(axis=1, initial=0.0)
            wide /= np.where(largest > 0, largest, 1)[:, None]
            norms[extreme] = largest * np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return norms


def scaled_norms(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Bring rows, in place, to a scale at which their squares neither overflow nor underflow; return their norms then.

    Shapes: returns (n,).

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._norms import scaled_norms
    >>> scaled_norms(np.array([[3.0, 4.0], [0.0, 5e-324], [0.0, 0.0]])).tolist()
    [5.0, 0.5, 0.0]
    """
    with np.errstate(over="ignore", under="ignore"):
        norms: npt.NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        extreme = _extreme(norms, rows.dtype)
        if extreme.size:
            far = rows[extreme]
            far = np.ldexp(far, -np.frexp(np.abs(far).max(axis=1, initial=0.0))[1][:, None])
            rows[extreme], norms[extreme] = far, np.sqrt(np.einsum("ij,ij->i", far, far))
    return norms


def shrink_factors(values: Any, radius: float) -> npt.NDArray[np.float64]:
    """Factors, at most 1, that bring the rows to norms of at most `radius`, with every rounding counted.

    Shapes: values (n, d); returns (n,).
    """
    if sparse.issparse(values):
        norms = _sparse_norms(values)
    else:
        norms = _norms_near(values, radius)
    with np.errstate(over="ignore"):
        factors = radius / np.maximum(norms * (1 + _norm_error(values.shape[1])), radius)
    # A row that is shortened must not end up longer than the radius by the rounding of its own type.
    return np.where(factors < 1, factors * (1 - 2 * np.finfo(values.dtype).eps), 1.0)


def _norms_near(values: np.ndarray, radius: float) -> npt.NDArray[np.float64]:
    norms = row_norms(values)
    if values.dtype == np.float64:
        return norms
    # Only rows that rounding leaves near the radius, or beyond it, need their norms in double precision.
    near = np.flatnonzero(norms > radius * (1 - (values.shape[1] + 8) * float(np.finfo(values.dtype).eps)))
    norms[near] = row_norms(values[near].astype(np.float64))
    return norms


def _sparse_norms(values: Any) -> npt.NDArray[np.float64]:
    """Norms of the rows of a CSR matrix, in double precision."""
    entries = np.diff(values.indptr)
    with np.errstate(over="ignore", under="ignore"):
        norms = _root_of_squares(values.data.astype(np.float64), entries)
        extreme = _extreme(norms, np.dtype(np.float64))
        extreme = extreme[entries[extreme] > 0]
        if extreme.size:
            far = values[extreme]
            exponents = np.frexp(abs(far).max(axis=1).toarray().ravel().astype(np.float64))[1]
            scaled = np.ldexp(far.data.astype(np.float64), -np.repeat(exponents, entries[extreme]))
            norms[extreme] = np.ldexp(_root_of_squares(scaled, entries[extreme]), exponents)
    return norms


def _root_of_squares(data: npt.NDArray[np.float64], entries: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Norms of rows that stand one after the other, each with so many entries."""
    rows = np.repeat(np.arange(len(entries)), entries)
    return np.sqrt(np.bincount(rows, weights=data * data, minlength=len(entries)))


def shortening_by_rounding(dtype: np.dtype, d: int) -> float:
    """How far below 1 the factor of a row may be that was normalised to the radius itself."""
    return _ROUNDING * float(np.finfo(dtype).eps) + 2 * _norm_error(d)


def nearest_rows(values: np.ndarray, vocabulary: np.ndarray) -> npt.NDArray[np.intp]:
    """Index of the vocabulary's row nearest to each row of values, by exact comparison.

    Candidates come from a matrix product; where rounding could have mixed up two of them, their distances are computed
    anew from the differences. Of equally near rows the first counts.

    Shapes: values (n, d), vocabulary (n_words, d).

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._norms import nearest_rows
    >>> nearest_rows(np.array([[0.9, 0.2]]), np.eye(2)).tolist()
    [0]
    """
    words = np.asarray(vocabulary, dtype=np.float64)
    squares = np.einsum("ij,ij->i", words, words)
    nearest = np.empty(len(values), dtype=np.intp)
    step = max(1, _SCORES // max(1, len(words)))
    for start in range(0, len(values), step):
        # From farther away the same word is as near as any, and the squares would overflow.
        block = np.clip(values[start : start + step], -_FAR, _FAR, dtype=np.float64)
        scores = squares - 2 * (block @ words.T)
        best = scores.min(axis=1)
        # A generous bound on the rounding error of a product of d terms.
        size = math.sqrt(squares.max()) * np.sqrt(np.einsum("ij,ij->i", block, block)) + squares.max()
        close = scores <= (best + 8 * words.shape[1] * np.finfo(np.float64).eps * size)[:, None]
        nearest[start : start + step] = close.argmax(axis=1)
        for row in np.flatnonzero(close.sum(axis=1) > 1):
            candidates = np.flatnonzero(close[row])
            difference = words[candidates] - block[row]
            nearest[start + row] = candidates[np.einsum("ij,ij->i", difference, difference).argmin()]
    return nearest


def _norm_error(d: int) -> float:
    """By what part the norm of d numbers, added up in double precision, may be too small: twice the worst case."""
    return (d + 8) * 2.0**-53


def _extreme(norms: npt.NDArray[np.float64], dtype: np.dtype) -> npt.NDArray[np.intp]:
    """Rows whose squares may have left the range of the type, or lost their digits."""
    limit = 1e-15 if dtype == np.float32 else 1e-150
    return np.flatnonzero((norms < limit) | (norms > 1 / limit))
