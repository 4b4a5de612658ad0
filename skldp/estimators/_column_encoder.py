"""ColumnEncoder: declared columns as features in [-1, 1]."""

from collections import Counter
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldp._checks import is_number
from skldp.domains._column import Column
from skldp.estimators._base import warn_out_of_domain
from skldp.estimators._schema import check_feature_names, check_unknown, columns_of, read_schema, schema_by_column
from skldp.estimators._validation import StrOptions, fit_context, in_family, validate_finite, validate_mixed


def encoded_names(column: Column, name: str, drop: str | None = None) -> list[str]:
    """Return the names of a column's features: one for a number, ordered categories or two, else one a category."""
    first = int(drop == "first" and column.values is not None)
    return [name] if _is_one_code(column) else column.feature_names(name)[first:]


def encoded(column: Column, numbers: np.ndarray, drop: str | None = None) -> tuple[np.ndarray, float, float]:
    """Return the features of a column, shape (n, n_features), and their bounds."""
    if column.values is not None:
        if _is_one_code(column):
            # A single category has only code 0.
            return numbers[:, None], 0.0, float(max(len(column.values) - 1, 1))
        return (numbers[:, None] == np.arange(int(drop == "first"), len(column.values))).astype(np.float64), 0.0, 1.0
    low, high = column.ends
    if column.missing != "category":
        return numbers[:, None], low, high
    # Both features lie between the bounds of the number.
    missing = np.isnan(numbers)
    return np.column_stack([np.where(missing, column.center, numbers), np.where(missing, high, low)]), low, high


def _is_one_code(column: Column) -> bool:
    is_ordered = column.ordered and column.missing == "refuse"
    return column.values is not None and (is_ordered or len(column.values) <= 2)


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Encode the declared columns of a table as features in [-1, 1] for a private model; nothing is learnt.

    A number, with ``"scale": "log"`` its logarithm, is scaled by its bounds; if it may be missing, it has a second
    feature. Two categories, or ordered ones that are never missing, become one feature. Others become one each.

    Parameters
    ----------
    schema : (low, high), dict by column or JSON text, default=(-1, 1)
        Domains of the columns, by name for a frame and by place for an array, as for :class:`TablePrivatizer`; one pair
        of bounds is for all columns. Columns that a dict does not name are left out. A number outside its bounds is
        clipped.
    handle_unknown : {"error", "missing"}, default="error"
        An undeclared category is an error, or a missing value, which each column of categories must then declare.
    drop : {"first"} or None, default=None
        ``"first"`` leaves out the first of the features of categories, which is a function of the others. Predictions
        of private models are alike with and without it; intervals of coefficients (``inference=True``) need it.

    Attributes
    ----------
    columns_ : dict of Column
        Declared columns.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If a declared column is absent, two features have one name, or a value is undeclared. No value is shown.

    Warns
    -----
    OutOfDomainWarning
        Reports the number of values that were clipped or replaced.

    See Also
    --------
    BoundsScaler : Scales columns of numbers alone.
    TablePrivatizer : Releases the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldp import ColumnEncoder
    >>> people = pd.DataFrame({"age": [20, 60], "city": ["Ulm", "Bonn"]})
    >>> encoder = ColumnEncoder({"age": (0, 100), "city": ["Bonn", "Kiel", "Ulm"]})
    >>> encoder.fit_transform(people).tolist()
    [[-0.6, -1.0, -1.0, 1.0], [0.2, 1.0, -1.0, -1.0]]
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'city_Bonn', 'city_Kiel', 'city_Ulm']
    """

    __sklearn_clone__ = in_family
    _parameter_constraints: dict = {
        "schema": [dict, tuple, str],
        "handle_unknown": [StrOptions({"error", "missing"})],
        "drop": [StrOptions({"first"}), None],
    }

    def __init__(self, schema: Any = (-1, 1), *, handle_unknown: str = "error", drop: str | None = None) -> None:
        self.schema = schema
        self.handle_unknown = handle_unknown
        self.drop = drop

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check that the table has the columns; its values are not used.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Table, of which only the columns are checked.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._read(X, reset=True)
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the encoded rows, shape (n_samples, n_features_out).

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self, "columns_")
        blocks, moved, n_values = [], {}, 0
        for name, column, cells in self._read(X, reset=False):
            block, low, high = encoded(column, column.as_numbers(cells, refuse_unknown=self._refuses), self._drop)
            n_unknown = 0 if column.values is None else sum(column.replaced(cells, text=False).values())
            moved[str(name)] = n_unknown + int(np.count_nonzero((block < low) | (block > high)))
            n_values += len(cells)
            blocks.append(np.clip((block - (low / 2 + high / 2)) / (high / 2 - low / 2), -1.0, 1.0))
        where = [f"{count:,} in {name!r}" for name, count in moved.items() if count]
        warn_out_of_domain(self, sum(moved.values()), n_values, "Declare a wider schema", names=lambda: where)
        return np.column_stack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features: a column's, or a column's and a category's.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored: the schema names the columns.
        """
        check_is_fitted(self, "columns_")
        return np.array(self._features, dtype=object)

    def _read(self, X: Any, *, reset: bool) -> list[tuple[Any, Column, Any]]:
        """Return the name, the declaration and the values of each declared column."""
        if isinstance(self.schema, tuple) and all(map(is_number, self.schema)):
            table = validate_finite(self, X, reset=reset, dtype=np.float64)
        else:
            # A frame may lack columns that are not declared.
            by_name = not reset and hasattr(X, "columns") and all(isinstance(name, str) for name in self.columns_)
            table = X if by_name else validate_mixed(self, X, reset=reset, ensure_all_finite=False)
        if reset:
            every = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
            by_column = schema_by_column(self.schema, every)
            # Nothing that a table holds can change the columns.
            columns = read_schema(by_column)
            check_unknown(self.handle_unknown, columns)
            own = dict(zip(by_column, columns, strict=True))
            features = [one for name, column in own.items() for one in encoded_names(column, str(name), self.drop)]
            check_feature_names(features)
            self.columns_: dict[Any, Column] = own
            self._features, self._refuses, self._drop = features, self.handle_unknown == "error", self.drop
        names = list(X.columns) if hasattr(X, "columns") else []
        counts = Counter(names)
        once = {name: place for place, name in enumerate(names) if counts[name] == 1}
        places = [once.get(name, -1) if isinstance(name, str) else name for name in self.columns_]
        absent = [repr(name) for name, at in zip(self.columns_, places, strict=True) if at not in range(table.shape[1])]
        if absent:
            raise ValueError(f"X must have each declared column once; got none or several for {', '.join(absent[:4])}.")
        cells = columns_of(table, places)
        return [(*declared, own) for declared, own in zip(self.columns_.items(), cells, strict=True)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = not isinstance(self.schema, tuple)
        return tags
