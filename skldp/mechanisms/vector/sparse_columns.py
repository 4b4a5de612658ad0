r"""Sparse projections with a few entries of one size in every column, kept as small whole numbers.

Kane and Nelson's block construction: the m rows are cut into s bands, and every column has one entry
:math:`\pm 1 / \sqrt s` in each of them. The *code* of an entry is twice its row, plus 1 where it is negative; the codes
of d columns are an array of shape (d, s) that takes a byte an entry for m up to 128.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skldp.mechanisms.randomness import Noise

__all__ = ["code_gram", "dense_columns", "draw_codes", "entry_size", "project_sparse", "sparse_matrix"]

# Entries that are added up at a time: few enough for the working arrays to stay in the cache.
_ENTRIES = 1 << 17
# Columns whose pairs of entries are counted at a time.
_COLUMNS = 1 << 14


def _bands(m: int) -> list[slice]:
    edges = np.linspace(0, m, math.ceil(math.sqrt(m)) + 1).astype(np.int64).tolist()
    return [slice(low, high) for low, high in pairwise(edges)]


def entry_size(n_bands: int) -> float:
    """Magnitude of every entry, in single precision, of columns with `n_bands` of them."""
    return float(np.float32(1) / np.float32(math.sqrt(n_bands)))


def draw_codes(stream: Noise, n_columns: int, m: int) -> npt.NDArray[np.unsignedinteger]:
    r"""Draw columns.

    Parameters
    ----------
    stream : Noise
    n_columns : int
    m : int
        Number of rows.

    Returns
    -------
    ndarray of the smallest unsigned type, shape (n_columns, :math:`\lceil \sqrt m \rceil`)
    """
    rows = np.stack([band.start + stream.integers(band.stop - band.start, n_columns) for band in _bands(m)])
    negative = stream.bernoulli(2**63, rows.shape)
    return np.ascontiguousarray((2 * rows + negative).T.astype(np.min_scalar_type(2 * m - 1)))


def sparse_matrix(codes: npt.NDArray[np.unsignedinteger], m: int) -> Any:
    """The columns as a sparse matrix of shape (m, n_columns), single precision."""
    n_columns, n_bands = codes.shape
    size = np.float32(entry_size(n_bands))
    data = np.where(codes & 1, -size, size).ravel()
    pointers = np.arange(0, n_bands * n_columns + 1, n_bands)
    return sparse.csc_matrix((data, (codes >> 1).ravel().astype(np.int32), pointers), shape=(m, n_columns))


def dense_columns(codes: npt.NDArray[np.unsignedinteger], m: int) -> npt.NDArray[np.float32]:
    """The columns as an array of shape (m, n_columns), stored by columns."""
    n_columns, n_bands = codes.shape
    size = np.float32(entry_size(n_bands))
    columns = np.zeros((n_columns, m), dtype=np.float32)
    columns[np.arange(n_columns)[:, None], codes >> 1] = np.where(codes & 1, -size, size)
    return columns.T


def project_sparse(values: Any, codes: npt.NDArray[np.unsignedinteger], m: int) -> np.ndarray:
    """Project sparse rows: as many additions as they have entries, times those of a column.

    Parameters
    ----------
    values : sparse matrix of shape (n, d)
    codes : ndarray of shape (d, n_bands)
    m : int

    Returns
    -------
    ndarray of shape (n, m), dtype of `values`
    """
    rows = values.tocsr()
    n_bands = codes.shape[1]
    projected = np.empty((rows.shape[0], m), dtype=values.dtype)
    size = values.dtype.type(entry_size(n_bands))
    # Entries to look up, and numbers of the dense sums.
    step = max(1, min(_ENTRIES * rows.shape[0] // max(1, rows.nnz * n_bands), _ENTRIES // (2 * m)))
    for start in range(0, rows.shape[0], step):
        pointers = rows.indptr[start : start + step + 1]
        entries = slice(pointers[0], pointers[-1])
        places = codes.take(rows.indices[entries], axis=0).ravel().astype(np.int32)
        numbers = np.repeat(rows.data[entries] * size, n_bands)
        shape = (len(pointers) - 1, 2 * m)
        # Making it dense adds up what meets in one place.
        sums = sparse.csr_matrix((numbers, places, (pointers - pointers[0]) * n_bands), shape=shape).toarray()
        np.subtract(sums[:, ::2], sums[:, 1::2], out=projected[start : start + step])
    return projected


def code_gram(codes: npt.NDArray[np.unsignedinteger], m: int) -> npt.NDArray[np.float64]:
    r""":math:`\Phi \Phi^\top`, counted in whole numbers.

    Parameters
    ----------
    codes : ndarray of shape (d, n_bands)
    m : int

    Returns
    -------
    ndarray of shape (m, m)
    """
    bands = _bands(m)
    first = np.array([[2 * band.start] for band in bands])
    width = max(band.stop - band.start for band in bands)
    counts = np.zeros((m, m), dtype=np.int64)
    for start in range(0, len(codes), _COLUMNS):
        # Codes within their band: a pair of bands has few outcomes, whatever m.
        local = codes[start : start + _COLUMNS].T.astype(np.int64) - first
        for j, across in enumerate(bands):
            height = across.stop - across.start
            counts[across, across] += np.diag(np.bincount(local[j] >> 1, minlength=height))
            left = local[j] * (2 * width)
            for k, down in enumerate(bands[j + 1 :], j + 1):
                pairs = np.bincount(left + local[k], minlength=4 * width * width).reshape(width, 2, width, 2)
                signed = np.trace(pairs - pairs[:, :, :, ::-1], axis1=1, axis2=3)
                counts[across, down] += signed[:height, : down.stop - down.start]
    counts += np.triu(counts, 1).T
    return counts.astype(np.float64) * entry_size(len(bands)) ** 2
