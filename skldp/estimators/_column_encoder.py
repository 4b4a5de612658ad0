"""ColumnEncoder: declared columns as features in [-1, 1]."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skldp._reading import CodeReader, Unread
from skldp.domains._declared_columns import CategoryColumn, DeclaredColumn
from skldp.estimators._base import warn_out_of_domain
from skldp.estimators._schema import columns_of
from skldp.estimators._validation import validate_mixed


def encoded_names(column: DeclaredColumn, name: str) -> list[str]:
    """Return the names of a column's features: one for a number, ordered categories or two, else one a category."""
    return [name] if _is_one_code(column) else column.feature_names(name)


def encoded(column: DeclaredColumn, numbers: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the features of a column, shape (n, n_features), and their bounds."""
    if isinstance(column, CategoryColumn):
        if _is_one_code(column):
            # A single category has only code 0.
            return numbers[:, None], 0.0, float(max(len(column.values) - 1, 1))
        return (numbers[:, None] == np.arange(len(column.values))).astype(np.float64), 0.0, 1.0
    low, high = float(column.domain.low), float(column.domain.high)
    if column.missing != "category":
        return numbers[:, None], low, high
    # Both features lie between the bounds of the number.
    missing = np.isnan(numbers)
    return np.column_stack([np.where(missing, column.center, numbers), np.where(missing, high, low)]), low, high


def _is_one_code(column: DeclaredColumn) -> bool:
    if not isinstance(column, CategoryColumn):
        return False
    return len(column.values) <= 2 or (column.ordered and column.missing == "refuse")


def _without_unknown(column: DeclaredColumn, cells: Any) -> tuple[Any, int]:
    """Return cells whose undeclared categories are replaced as the column says, and their number."""
    if not isinstance(column, CategoryColumn):
        return cells, 0
    unknown = np.isin(CodeReader(column.values).read_all(cells).state, (Unread.UNKNOWN, Unread.UNREADABLE))
    if not unknown.any():
        return cells, 0
    declared = np.array(cells, dtype=object)
    declared[unknown] = column.unknown
    return declared, int(unknown.sum())


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Encode the declared columns of a table as features in [-1, 1]; nothing is learnt.

    Parameters
    ----------
    columns : dict of NumberColumn or CategoryColumn
        By name for a frame, by place for an array; other columns of the table are left out. A number outside its bounds
        is clipped, and an undeclared category counts as the column's `unknown`.
    """

    def __init__(self, columns: Mapping[Any, DeclaredColumn]) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that the table has the columns; its values are not used."""
        self._values(X, reset=True)
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Encode a table, shape (n_samples, n_features_out)."""
        check_is_fitted(self, "n_features_in_")
        blocks, moved = [], {}
        values = self._values(X, reset=False)
        for (name, column), cells in zip(self.columns.items(), values, strict=True):
            declared, n_unknown = _without_unknown(column, cells)
            block, low, high = encoded(column, column.as_numbers(declared))
            moved[name] = n_unknown + int(np.count_nonzero((block < low) | (block > high)))
            blocks.append(np.clip((block - (low / 2 + high / 2)) / (high / 2 - low / 2), -1.0, 1.0))
        where = [str(name) for name, count in moved.items() if count]
        warn_out_of_domain(sum(moved.values()), sum(map(len, values)), names=lambda: where)
        return np.column_stack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features: a column's, or a column's and a category's."""
        names = [one for name, column in self.columns.items() for one in encoded_names(column, str(name))]
        return np.array(names, dtype=object)

    def _values(self, X: Any, *, reset: bool) -> list[Any]:
        table = validate_mixed(self, X, reset=reset, ensure_all_finite=False)
        names = list(X.columns) if hasattr(X, "columns") else []
        absent = [name for name in self.columns if name not in (names if isinstance(name, str) else range(X.shape[1]))]
        if absent:
            raise ValueError(f"X must have the declared columns; got none for {', '.join(map(repr, absent[:4]))}.")
        every = columns_of(table)
        return [every[names.index(name) if isinstance(name, str) else name] for name in self.columns]
