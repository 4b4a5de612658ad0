"""The release of a table column by column, for studies, whose rows are encoded as numbers between -1 and 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._base import LocalTransformer
from skldp.estimators._schema import DeclaredColumn
from skldp.estimators._table_encoding import as_estimates, as_one_hot
from skldp.estimators._validation import Seed, StrOptions
from skldp.mechanisms._categorical.catalogue import CATEGORICAL_MECHANISMS
from skldp.mechanisms._columns import Categories, Columns, Interval
from skldp.mechanisms._record import MixedRecord, share_out

__all__ = ["TABLE_MECHANISMS", "EncodedTablePrivatizer"]

#: How a study calls the release of a table by its columns, with each mechanism of categories.
TABLE_MECHANISMS = {f"table-{name}": name for name in (*CATEGORICAL_MECHANISMS, "best")}


class EncodedTablePrivatizer(OneToOneFeatureMixin, LocalTransformer):
    """What :class:`~skldp.TablePrivatizer` releases, of rows that a study has encoded, as unbiased estimates.

    Parameters
    ----------
    epsilon : float, default=1.0
        Natural log, of one record, shared out equally over the columns of the table.
    widths : sequence of int, default=(1,)
        How many numbers of a row each column is: one of a number, two of a number and whether it is missing, and
        more of categories, of which the largest is the one.
    category_mechanism : str, default="krr"
    transform_noise : bool, default=True
    seed : None, int, Generator or RandomState, default=None
    n_jobs : int, default=None

    Attributes
    ----------
    mechanism_ : MixedRecord
    privacy_guarantee_ : PrivacyGuarantee
    n_features_in_ : int

    Examples
    --------
    >>> from skldp.estimators._encoded_table import EncodedTablePrivatizer
    >>> people = EncodedTablePrivatizer(4.0, widths=[1, 3], category_mechanism="oue")
    >>> people.fit_transform([[0.5, -1.0, 1.0, -1.0]]).shape
    (1, 4)
    >>> print(people.privacy_guarantee_)
    epsilon 4 per record (stated 4, per feature 2); sum over 2 columns: x0 2, x1 2
    """

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

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, then release every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features)
        """
        return as_estimates(self._release(self._fit_rows(X)), self.mechanism_, self._columns)

    def transform(self, X: Any) -> np.ndarray:
        """Release every row, or with ``transform_noise=False`` encode it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        encode = as_estimates if self.transform_noise else as_one_hot
        return encode(self._release_into(X, None), self.mechanism_, self._columns)

    @property
    def _columns(self) -> list[DeclaredColumn]:
        return [_declared(int(width)) for width in self.widths]

    def _rows(self, X, *, reset):
        rows = super()._rows(X, reset=reset)
        self._check_widths()
        ends = np.cumsum(self.widths)
        groups = [rows[:, end - width : end] for end, width in zip(ends, self.widths, strict=True)]
        return np.column_stack([_column(group) for group in groups]).astype(np.float64)

    def _check_widths(self):
        if sum(self.widths) != self.n_features_in_:
            raise ValueError(f"widths must add up to {self.n_features_in_} columns. Got {list(self.widths)} instead.")

    def _make_mechanism(self, X):
        self._check_widths()
        named = tuple("best" if width <= 2 else self.category_mechanism for width in self.widths)
        coded = Columns.of({f"x{j}": column.coded for j, column in enumerate(self._columns)})
        return MixedRecord(coded, share_out(float(self.epsilon), [1] * len(named)), named)


def _declared(width: int) -> DeclaredColumn:
    if width <= 2:
        return DeclaredColumn(Interval(-1.0, 1.0), "category" if width == 2 else None)
    return DeclaredColumn(Categories(tuple(range(width))))


def _column(group: np.ndarray) -> np.ndarray:
    """A column of the table, of what encodes it."""
    if group.shape[1] == 1:
        return group[:, 0]
    return np.where(group[:, 1] > 0, np.nan, group[:, 0]) if group.shape[1] == 2 else group.argmax(axis=1)
