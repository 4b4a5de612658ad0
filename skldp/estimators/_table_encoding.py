"""Encoding of released tables for models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin

from skldp.domains._columns import Columns
from skldp.domains._declared_columns import CategoryColumn, DeclaredColumn, NumberColumn
from skldp.estimators._base import LocalTransformer
from skldp.estimators._validation import Seed, StrOptions
from skldp.mechanisms._record import MixedRecord, NumberOrMissing, share_out
from skldp.mechanisms._rows import RowMechanism
from skldp.mechanisms.categorical._catalogue import CATEGORICAL_MECHANISMS
from skldp.mechanisms.categorical._frequency import unbiased_share
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.categorical._unary import OneHotMechanism


def widths(columns: Sequence[DeclaredColumn]) -> list[int]:
    """Return the number of encoded columns of each."""
    return [len(column.feature_names("")) for column in columns]


def as_one_hot(released: np.ndarray, record: MixedRecord, columns: Sequence[DeclaredColumn]) -> np.ndarray:
    """Encode released codes one-hot, with an indicator of missing numbers.

    Shapes: `released` (n, record.n_outputs); result (n, sum(widths(columns))).
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


def as_estimates(released: np.ndarray, record: MixedRecord, columns: Sequence[DeclaredColumn]) -> np.ndarray:
    """Encode a noisy release as unbiased estimates of numbers, categories and missing indicators.

    Shapes: `released` (n, record.n_outputs); result (n, sum(widths(columns))).
    """
    encoded = as_one_hot(released, record, columns)
    estimates = np.array(encoded, dtype=np.float64)
    ends = np.cumsum(widths(columns))
    for part, place, end in zip(record.parts, record.places, ends, strict=True):
        if isinstance(part, NumberOrMissing):
            estimates[:, end - 2 : end] = part.unbiased(released[:, place.start])
        elif isinstance(part, RandomizedResponse | OneHotMechanism):
            p, q = part.support_probabilities() if isinstance(part, RandomizedResponse) else (part.p, part.q)
            size = part.domain.sizes[0]
            estimates[:, end - size : end] = unbiased_share(encoded[:, end - size : end], p, q)
    return estimates


def _write(part: RowMechanism, released: np.ndarray, out: npt.NDArray[np.float64]) -> None:
    """Encode one column into zeros."""
    if isinstance(part, RandomizedResponse):
        np.put_along_axis(out, released.astype(np.int64), 1.0, axis=1)
    elif isinstance(part, NumberOrMissing):
        missing = np.isnan(released[:, 0])
        out[:, 0] = np.where(missing, part.domain.middle, released[:, 0])
        out[:, 1] = missing
    else:
        out[...] = released


#: Names in studies of the release of a table by columns, with each mechanism of categories.
TABLE_MECHANISMS = {f"table-{name}": name for name in (*CATEGORICAL_MECHANISMS, "best")}


class EncodedTablePrivatizer(OneToOneFeatureMixin, LocalTransformer):
    """Release rows that a study has encoded, as :class:`~skldp.TablePrivatizer` with unbiased estimates."""

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "widths": ["array-like"],
        "category_mechanism": [StrOptions(set(TABLE_MECHANISMS.values()))],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        widths: Sequence[int] = (1,),
        category_mechanism: str = "krr",
        transform_noise: bool = True,
        seed: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.widths = widths
        self.category_mechanism = category_mechanism
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs

    def _encoded(self, released, X, *, noisy=True):
        encode = as_estimates if noisy else as_one_hot
        return encode(released, self.mechanism_, self._columns)

    @property
    def _columns(self) -> list[DeclaredColumn]:
        return [_declared(int(width)) for width in self.widths]

    def _rows(self, X, *, reset):
        rows = super()._rows(X, reset=reset)
        if sum(self.widths) != self.n_features_in_:
            raise ValueError(f"widths must add up to {self.n_features_in_} columns. Got {list(self.widths)} instead.")
        ends = np.cumsum(self.widths)
        groups = [rows[:, end - width : end] for end, width in zip(ends, self.widths, strict=True)]
        return np.column_stack([_column(group) for group in groups]).astype(np.float64)

    def _make_mechanism(self, X):
        named = tuple("best" if width <= 2 else self.category_mechanism for width in self.widths)
        coded = Columns.of({f"x{j}": column.coded for j, column in enumerate(self._columns)})
        return MixedRecord(coded, share_out(float(self.epsilon), [1] * len(named)), named)


def _declared(width: int) -> DeclaredColumn:
    if width <= 2:
        return NumberColumn("", -1.0, 1.0, missing="category" if width == 2 else "refuse")
    return CategoryColumn("", tuple(range(width)))


def _column(group: np.ndarray) -> np.ndarray:
    """Decode a column of the table."""
    if group.shape[1] == 1:
        return group[:, 0]
    return np.where(group[:, 1] > 0, np.nan, group[:, 0]) if group.shape[1] == 2 else group.argmax(axis=1)
