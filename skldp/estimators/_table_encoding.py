"""Encoding of released tables for models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skldp._arrays import Floats
from skldp.domains._column import Column
from skldp.domains._domain import Codes
from skldp.mechanisms._record import MixedRecord
from skldp.mechanisms._rows import RowMechanism
from skldp.mechanisms.categorical._frequency import unbiased_share
from skldp.mechanisms.categorical._randomized_response import CategoryMechanism, RandomizedResponse
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, NumberOrMissing


def widths(columns: Sequence[Column]) -> list[int]:
    """Return the number of encoded columns of each."""
    return [len(column.feature_names("")) for column in columns]


def as_one_hot(
    released: np.ndarray, record: MixedRecord, columns: Sequence[Column], *, noisy: bool = True
) -> np.ndarray:
    """Encode released codes (n, n_outputs) one-hot, with indicators of missing numbers; without noise, all of them."""
    sizes = widths(columns)
    is_sampled = noisy and record.n_sampled is not None
    if not is_sampled and all(size == 1 and one.values is None for size, one in zip(sizes, columns, strict=True)):
        return released
    encoded = np.zeros((len(released), sum(sizes)), dtype=released.dtype)
    ends, asked = np.cumsum(sizes), record.asked(released)
    for j, (part, place, end, size) in enumerate(zip(record.parts, record.places, ends, sizes, strict=True)):
        own = encoded[:, end - size : end]
        if not is_sampled or j not in record.sampled_from:
            _write(part, released[:, place], own)
            continue
        block = np.zeros((int(asked[:, j].sum()), size))
        _write(part, released[asked[:, j], place], block)
        middle = _middle(part)
        if not isinstance(part.domain, Codes):
            block[:, 0] = middle[0] + (block[:, 0] - middle[0]) / record.sampled_share
        own[...] = middle
        own[asked[:, j]] = block
    return encoded


def as_sparse(released: np.ndarray, record: MixedRecord, columns: Sequence[Column]) -> Any:
    """Encode as :func:`as_one_hot`, as a CSR matrix without a dense array."""
    n_rows, blocks = len(released), []
    for part, place, size in zip(record.parts, record.places, widths(columns), strict=True):
        own = released[:, place]
        if isinstance(part, RandomizedResponse):
            cells = np.arange(n_rows), own[:, 0].astype(np.int64)
            blocks.append(sparse.csr_matrix((np.ones(n_rows), cells), shape=(n_rows, size)))
        else:
            block = np.zeros((n_rows, size))
            _write(part, own, block)
            blocks.append(sparse.csr_matrix(block))
    return sparse.hstack(blocks, format="csr")


def as_estimates(released: np.ndarray, record: MixedRecord, columns: Sequence[Column]) -> np.ndarray:
    """Encode a noisy release (n, n_outputs) as unbiased estimates of numbers, categories and missing indicators."""
    encoded = as_one_hot(released, record, columns)
    estimates = np.array(encoded, dtype=np.float64)
    sizes, asked = widths(columns), record.asked(released)
    parts = zip(record.parts, record.places, np.cumsum(sizes), sizes, strict=True)
    for j, (part, place, end, size) in enumerate(parts):
        own, there = estimates[:, end - size : end], asked[:, j]
        if isinstance(part, NumberOrMissing):
            center = np.array([part.domain.center, 0.5])
            own[there], own[~there] = part.unbiased(released[there, place.start]), center
        elif isinstance(part, CategoryMechanism):
            center, own[...] = np.full(size, 1 / size), unbiased_share(own, part.p, part.q)
        else:
            continue
        if j in record.sampled_from:
            own[there] = center + (own[there] - center) / record.sampled_share
    return estimates


def _middle(part: RowMechanism) -> Floats:
    """Return the encoding of a column that was not asked: its middle, or its mean bits under uniform categories."""
    if isinstance(part, CategoryMechanism):
        return np.full(part.n_classes, part.mean_bit)
    if isinstance(part, NumberOrMissing):
        return part.middle
    assert isinstance(part, BoundedFeatures)
    return part.center


def _write(part: RowMechanism, released: np.ndarray, out: npt.NDArray[np.float64]) -> None:
    """Encode one column into zeros."""
    if isinstance(part, RandomizedResponse):
        np.put_along_axis(out, released.astype(np.int64), 1.0, axis=1)
    elif isinstance(part, NumberOrMissing):
        missing = np.isnan(released[:, 0])
        out[:, 0] = np.where(missing, part.domain.center, released[:, 0])
        out[:, 1] = missing
    else:
        out[...] = released
