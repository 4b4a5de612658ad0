"""Released columns of a table as numbers: categories one-hot, or everything as unbiased estimates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skldp.estimators._schema import DeclaredColumn
from skldp.mechanisms._categorical.frequency import unbiased_share
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._categorical.unary import OneHotMechanism
from skldp.mechanisms._number_or_missing import NumberOrMissing
from skldp.mechanisms._record import MixedRecord
from skldp.mechanisms._rows import RowMechanism

__all__ = ["as_estimates", "as_one_hot", "as_sparse", "widths"]


def widths(columns: Sequence[DeclaredColumn]) -> list[int]:
    """How many columns each is, encoded."""
    return [len(column.feature_names("")) for column in columns]


def as_one_hot(released: np.ndarray, record: MixedRecord, columns: Sequence[DeclaredColumn]) -> np.ndarray:
    """Numbers as they are, a 1 for each category that is answered, and for a number answered as missing.

    Parameters
    ----------
    released : ndarray of shape (n, record.n_outputs)
        By the mechanism, or encoded as it does without noise.
    record : MixedRecord
    columns : sequence of DeclaredColumn

    Returns
    -------
    ndarray of shape (n, sum(widths(columns)))
        `released` itself where nothing is to be written out. For a missing number stands the middle of its bounds.
    """
    sizes = widths(columns)
    if all(size == 1 and column.values is None for size, column in zip(sizes, columns, strict=True)):
        return released
    encoded = np.zeros((len(released), sum(sizes)))
    ends = np.cumsum(sizes)
    for part, place, end, size in zip(record.parts, record.places, ends, sizes, strict=True):
        _write(part, released[:, place], encoded[:, end - size : end])
    return encoded


def as_sparse(released: np.ndarray, record: MixedRecord, columns: Sequence[DeclaredColumn]) -> Any:
    """What :func:`as_one_hot` gives as a CSR matrix, of which no array is made.

    Returns
    -------
    csr_matrix
        One number is stored for each number and each answered category.
    """
    n_rows = len(released)
    places, entries, starts = [], [], np.zeros(n_rows + 1, dtype=np.int64)
    start = 0
    for part, place, size in zip(record.parts, record.places, widths(columns), strict=True):
        own = released[:, place]
        if isinstance(part, RandomizedResponse):
            rows, held, written = np.arange(n_rows), own[:, 0].astype(np.int64), np.ones(n_rows)
        else:
            if isinstance(part, NumberOrMissing):
                block = np.zeros((n_rows, size))
                _write(part, own, block)
            else:
                block = own
            stored = block != 0
            rows, held = np.nonzero(stored)
            written = block[rows, held]
        places.append(np.column_stack([rows, held + start]))
        entries.append(written)
        starts[1:] += np.bincount(rows, minlength=n_rows)
        start += size
    cells, numbers = np.concatenate(places), np.concatenate(entries)
    order = np.argsort(cells[:, 0], kind="stable")
    return sparse.csr_matrix((numbers[order], cells[order, 1], np.cumsum(starts)), shape=(n_rows, start))


def as_estimates(released: np.ndarray, record: MixedRecord, columns: Sequence[DeclaredColumn]) -> np.ndarray:
    """Each number, category and being missing as a number whose mean is the true one's, for what is released noisily.

    Parameters
    ----------
    released : ndarray of shape (n, record.n_outputs)
    record : MixedRecord
    columns : sequence of DeclaredColumn

    Returns
    -------
    ndarray of shape (n, sum(widths(columns)))
    """
    encoded = as_one_hot(released, record, columns)
    estimates = np.array(encoded, dtype=np.float64)
    ends = np.cumsum(widths(columns))
    for part, place, end in zip(record.parts, record.places, ends, strict=True):
        if isinstance(part, NumberOrMissing):
            estimates[:, end - 2 : end] = part.unbiased(released[:, place.start])
        elif (support := support_of(part)) is not None:
            p, q = support
            size = part.domain.sizes[0]  # type: ignore[attr-defined]  # of codes
            estimates[:, end - size : end] = unbiased_share(encoded[:, end - size : end], p, q)
    return estimates


def support_of(part: RowMechanism) -> tuple[float, float] | None:
    """The probabilities that the true category, and any single other, is answered; None of a number."""
    if isinstance(part, RandomizedResponse):
        return part.support_probabilities()
    return (part.p, part.q) if isinstance(part, OneHotMechanism) else None


def _write(part: RowMechanism, released: np.ndarray, out: npt.NDArray[np.float64]) -> None:
    """Write one column, of which `out` is zero."""
    if isinstance(part, RandomizedResponse):
        np.put_along_axis(out, released.astype(np.int64), 1.0, axis=1)
    elif isinstance(part, NumberOrMissing):
        missing = np.isnan(released[:, 0])
        out[:, 0] = np.where(missing, part.domain.middle, released[:, 0])
        out[:, 1] = missing
    else:
        out[...] = released
