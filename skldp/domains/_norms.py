"""Norms of rows without overflow, factors that keep rows within a radius, and the nearest of a set of rows."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import is_sparse


def weighted_sums(
    rows: np.ndarray, coef: npt.NDArray[np.float64], start: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return ``start + rows @ coef.T``, of shape (n, n_sums), added from the first column to the last."""
    # The summation order of a matrix product depends on the number of rows, the memory layout and the library, so a
    # tied record would change its class with the batch. A ufunc rounds each element once, and separate calls for
    # product and sum cannot be fused, so the result is the same on every machine.
    totals = np.tile(start, (len(rows), 1))
    with np.errstate(all="ignore"):
        for column, weights in zip(rows.T, coef.T, strict=True):
            totals += column[:, None].astype(np.float64) * weights
    return totals


# A row normalized by other code may be this many units in the last place too long.
_ROUNDING = 64
# Number of distances that are computed at a time.
_SCORES = 1 << 20
_FAR = 1e150


def row_norms(values: np.ndarray) -> npt.NDArray[np.float64]:
    """Return Euclidean norms of the rows (n, d), without overflow or underflow of the squares."""
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
    """Scale rows in place so that squares neither overflow nor underflow, and return their norms."""
    with np.errstate(over="ignore", under="ignore"):
        norms: npt.NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        extreme = _extreme(norms, rows.dtype)
        if extreme.size:
            far = rows[extreme]
            far = np.ldexp(far, -np.frexp(np.abs(far).max(axis=1, initial=0.0))[1][:, None])
            rows[extreme], norms[extreme] = far, np.sqrt(np.einsum("ij,ij->i", far, far))
    return norms


def shrink_factors(values: Any, radius: float) -> npt.NDArray[np.float64]:
    """Return factors of at most 1 that scale the rows to norms of at most `radius`, including rounding."""
    if is_sparse(values):
        norms = _sparse_norms(values)
    else:
        norms = _norms_near(values, radius)
    with np.errstate(over="ignore"):
        factors = radius / np.maximum(norms * (1 + _norm_error(values.shape[1])), radius)
    # Rounding in the type of the row must not exceed the radius.
    return np.where(factors < 1, factors * (1 - 2 * np.finfo(values.dtype).eps), 1.0)


def _norms_near(values: np.ndarray, radius: float) -> npt.NDArray[np.float64]:
    norms = row_norms(values)
    if values.dtype == np.float64:
        return norms
    # Only rows near the radius or beyond need their norms in double precision.
    near = np.flatnonzero(norms > radius * (1 - (values.shape[1] + 8) * float(np.finfo(values.dtype).eps)))
    norms[near] = row_norms(values[near].astype(np.float64))
    return norms


def _sparse_norms(values: Any) -> npt.NDArray[np.float64]:
    """Return norms of the rows of a CSR matrix, in double precision."""
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
    """Return the norms of concatenated rows with these numbers of entries."""
    rows = np.repeat(np.arange(len(entries)), entries)
    return np.sqrt(np.bincount(rows, weights=data * data, minlength=len(entries)))


def shortening_by_rounding(d: int) -> float:
    """Return the largest distance from 1 of the factor of a row that was normalized in single precision."""
    return _ROUNDING * float(np.finfo(np.float32).eps) + 2 * _norm_error(d)


def nearest_rows(values: np.ndarray, vocabulary: np.ndarray) -> npt.NDArray[np.intp]:
    """Return the vocabulary's row nearest to each row, ties to the first, as exact as the differences."""
    words = np.asarray(vocabulary, dtype=np.float64)
    squares = np.einsum("ij,ij->i", words, words)
    nearest = np.empty(len(values), dtype=np.intp)
    step = max(1, _SCORES // max(1, len(words)))
    for start in range(0, len(values), step):
        # Clipping far rows keeps squares from overflowing.
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
    """Return a bound on the relative error of the norm of d numbers: twice the worst case."""
    return (d + 8) * 2.0**-53


def _extreme(norms: npt.NDArray[np.float64], dtype: np.dtype) -> npt.NDArray[np.intp]:
    """Return the rows whose squares may overflow or underflow."""
    limit = 1e-15 if dtype == np.float32 else 1e-150
    return np.flatnonzero((norms < limit) | (norms > 1 / limit))
