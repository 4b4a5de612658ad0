"""TablePrivatizer: tables of numbers, categories and dates, with one budget per record."""

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp._checks import check_epsilon, is_number
from skldp.domains._columns import Columns
from skldp.estimators._base import LEDGER, LocalTransformer, check_bounds_of_type
from skldp.estimators._guarantee_mixin import attach_guarantee
from skldp.estimators._schema import check_feature_names, check_frame, check_unknown, columns_of, framed, read_schema
from skldp.estimators._table_encoding import as_estimates, as_one_hot, as_sparse
from skldp.estimators._validation import (
    InvalidParameterError,
    Seed,
    StrOptions,
    input_names,
    output_container,
    validate_finite,
    validate_mixed,
)
from skldp.mechanisms._record import MixedRecord, number_of_sampled_columns, sampled_shares
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS
from skldp.mechanisms.numeric._bounded_features import JOINT_MECHANISMS, NUMERIC_MECHANISMS

if TYPE_CHECKING:
    from skldp.accounting.ledger._privacy_ledger import PrivacyLedger


class TablePrivatizer(LocalTransformer):
    """Release tables of numbers, categories and dates, under one epsilon per record.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its columns together.
    schema : dict by column, its JSON text, or (low, high), default=(-1, 1)
        Domain of every column, from public knowledge:

        - ``(low, high)``: numbers within bounds, or with two dates (``"2020-01-01"``, or of ``datetime``) dates;
        - a list: categories; a list of two numbers is refused as ambiguous;
        - a dict such as ``{"type": "integer", "low": 0, "high": 9}``, ``{"type": "date", "low": ...}`` or ``{"type":
          "category", "values": ["S", "M", "L"], "ordered": True}``, or a :class:`~skldp.mechanisms.Column`.
          With ``"missing": "category"`` a missing value is a category of its own, and with ``"middle"`` a missing
          number or date is the middle of its bounds. Positive numbers in ``{"type": "number", "low": 100, "high":
          500_000, "scale": "log"}`` are released as their natural logarithms; estimates are of these.

        A single (low, high) applies to all columns.
    shares : "equal" or dict by column, default="equal"
        Split of epsilon over the columns: equal, or in proportion to weights. A column with one possible value is
        released unchanged, and has no share.
    mechanism : str, default="best"
        Mechanism of numbers and dates: ``"best"`` has the least worst-case variance at a column's epsilon. At a small
        one its answers have few values, which give means but neither variances nor histograms; ``"square_wave"`` gives
        all of them. Other names as for :class:`NumericPrivatizer` and one number.
    category_mechanism : str or dict by column, default="krr"
        Mechanism of categories: ``"krr"``, ``"sue"``, ``"oue"``, ``"subset"``, ``"hashing"``, ``"hadamard"`` or
        ``"best"``, as for :class:`CategoricalPrivatizer`. Columns that a dict does not name have ``"krr"``. All but
        ``"krr"`` release a set of categories, for counts and models, and exclude ``encoding="columns"``.
    n_sampled_features : "auto", "all" or int, default="all"
        Number of columns released per row, chosen uniformly for each row and independently of its values; columns of
        one category are not counted. Each has an equal share of epsilon, so that
        less than all needs ``shares="equal"``. ``"auto"`` has the least predicted error of
        means and frequencies, from the domains alone. ``"all"`` keeps what columns have in common, for models.
    encoding : {"onehot", "estimates", "columns"}, default="onehot"
        ``"onehot"``: numbers unchanged (dates as days since 1970) and one column per category. A number that may be
        missing has a second column as its indicator, and the middle of its bounds as a stand-in. ``"estimates"``: the
        same columns without bias. ``"columns"``: the columns of the table, in a frame of the kind of X if X is one. A
        column that was not asked is the middle of its bounds, or :math:`1 / k` for each of k categories (as a mean bit
        for ``"onehot"``), and numbers that were asked are scaled away from it, without bias. ``"columns"`` has no such
        category and needs all columns.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of undeclared categories: an error before any release, or a missing value.
    sparse_output : bool, default=False
        Whether ``encoding="onehot"`` returns a CSR matrix.
    transform_noise, seed, n_jobs, ledger : optional
        As for :class:`BitRandTransformer`.

    Attributes
    ----------
    columns_ : list of Column
        Declared columns, in the order of the table.
    shares_ : dict by column
        Weights by which epsilon was split.
    epsilons_ : dict by column
        Exact epsilon of each column.
    mechanisms_ : dict by column
        Mechanism of each column; see :mod:`skldp.mechanisms`.
    mechanism_ : MixedRecord
        Sampled mechanism.
    n_sampled_features_ : int
        Number of columns released per row.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per record: the sum over the columns.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If the schema names other columns, or a value is missing or undeclared and the schema does not allow it; nothing
        is released then, and no value is shown.

    Warns
    -----
    OutOfDomainWarning
        Reports the number of clipped values.

    See Also
    --------
    PrivUnitTransformer : With `bounds`, a better release of numbers for models.
    CategoricalPrivatizer : Categories alone.
    LabelPrivateClassifier : Protects the target only.

    Notes
    -----
    Columns are released independently, so their exact epsilons add up. Numbers are unbiased, and may lie outside their
    bounds. One-hot categories are biased; ``encoding="estimates"`` removes the bias by (bit - q) / (p - q), and
    ``estimate_frequencies`` of :mod:`skldp.mechanisms` removes it from counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldp import TablePrivatizer, privacy_guarantee
    >>> people = pd.DataFrame({"age": [31.0, 64.0], "city": ["Ulm", None], "since": ["2021-03-01", "2023-11-15"]})
    >>> schema = {
    ...     "age": (0, 100),
    ...     "city": {"type": "category", "values": ["Bonn", "Ulm"], "missing": "category"},
    ...     "since": ("2020-01-01", "2024-12-31"),
    ... }
    >>> table = TablePrivatizer(epsilon=6.0, schema=schema).fit(people)
    >>> table.get_feature_names_out().tolist()
    ['age', 'city_Bonn', 'city_Ulm', 'city_missing', 'since']
    >>> print(privacy_guarantee(table))
    epsilon 6 per record (stated 6, per feature 2); sum over 3 columns: age 2, city 2, since 2
    >>> table.set_params(encoding="columns").fit_transform(people).dtypes.astype(str).tolist()
    ['float64', 'category', 'datetime64[s]']
    """

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "ledger": LEDGER,
        "schema": [dict, tuple, str],
        "shares": [StrOptions({"equal"}), dict],
        "mechanism": [StrOptions({*NUMERIC_MECHANISMS, "best"} - set(JOINT_MECHANISMS))],
        "category_mechanism": [StrOptions({*CATEGORICAL_MECHANISMS, "best"}), dict],
        "n_sampled_features": [StrOptions({"auto", "all"}), Integral],
        "encoding": [StrOptions({"onehot", "estimates", "columns"})],
        "handle_unknown": [StrOptions({"error", "missing"})],
        "sparse_output": ["boolean"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        schema: Any = (-1, 1),
        shares: Literal["equal"] | Mapping[str, float] = "equal",
        mechanism: str = "best",
        category_mechanism: str | Mapping[str, str] = "krr",
        n_sampled_features: int | Literal["auto", "all"] = "all",
        encoding: Literal["onehot", "estimates", "columns"] = "onehot",
        handle_unknown: Literal["error", "missing"] = "error",
        sparse_output: bool = False,
        transform_noise: bool = True,
        seed: Seed = None,
        n_jobs: int | None = None,
        ledger: "PrivacyLedger | None" = None,
    ) -> None:
        self.epsilon = epsilon
        self.schema = schema
        self.shares = shares
        self.mechanism = mechanism
        self.category_mechanism = category_mechanism
        self.n_sampled_features = n_sampled_features
        self.encoding = encoding
        self.handle_unknown = handle_unknown
        self.sparse_output = sparse_output
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs
        self.ledger = ledger

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of released columns: the table's, or a column's and a category's.

        Parameters
        ----------
        input_features : array-like of str, default=None
            None takes ``feature_names_in_``, or x0, x1, ...
        """
        check_is_fitted(self)
        names = input_names(self, input_features)
        if self.encoding == "columns":
            return np.array(names, dtype=object)
        listed = [one for name, column in zip(names, self.columns_, strict=True) for one in column.feature_names(name)]
        return np.array(listed, dtype=object)

    def _rows(self, X, *, reset):
        """Return the table as numbers and codes of categories; with `reset`, read the schema first."""
        rows = self._numbers(X, reset=reset)
        if self.encoding == "columns":
            # A frame that cannot be made must fail before the release.
            self._as_columns(np.zeros((1, len(self.columns_))), X[:1])
        return rows

    def _numbers(self, X, *, reset):
        # scikit-learn refuses it as well, when the release is made.
        container = output_container(self)
        if self.sparse_output and self.encoding == "onehot" and container != "default":
            raise ValueError(
                "sparse_output=True returns a matrix and needs set_output(transform='default'); "
                f"got {container!r}; nothing was released."
            )
        if isinstance(self.schema, tuple) and all(map(is_number, self.schema)):
            table = validate_finite(self, X, reset=reset)
            if reset:
                self._read_schema(input_names(self))
            return table
        if hasattr(X, "columns"):
            check_frame(X)
        table = validate_mixed(self, X, reset=reset, ensure_all_finite=False)
        names = list(X.columns) if hasattr(X, "columns") else input_names(self)
        # scikit-learn compares string names only.
        if not reset and names != self._schema_names and set(names) == set(self._schema_names):
            raise ValueError(f"Columns of X must be in the order of fit, {self._schema_names}; got {names}.")
        if reset:
            self._read_schema(names)
        refuse = self.handle_unknown == "error"
        declared = zip(self.columns_, columns_of(table), strict=True)
        numbers = [column.as_numbers(values, refuse_unknown=refuse) for column, values in declared]
        return np.column_stack(numbers).astype(np.float64, copy=False)

    def _read_schema(self, names):
        columns = read_schema(self.schema, names)
        check_unknown(self.handle_unknown, columns)
        self.columns_, self._schema_names = columns, names

    def _declare(self, X):
        check_epsilon(self.epsilon)
        names = self._schema_names
        weights = dict.fromkeys(names, 1) if isinstance(self.shares, str) else self.shares
        if set(weights) != set(names):
            raise InvalidParameterError(f"shares must name every column once; got {self.shares!r}.")
        if self.sparse_output and self.encoding == "estimates":
            raise InvalidParameterError("sparse_output=True needs encoding='onehot'; got encoding='estimates'.")
        n_sampled = self._n_sampled(names)
        self.mechanism_ = MixedRecord(
            Columns.of(dict(zip(map(str, names), self.columns_, strict=True))),
            sampled_shares(float(self.epsilon), self.columns_, [weights[name] for name in names], n_sampled),
            self._mechanisms(names),
            n_sampled=n_sampled,
        )
        self.n_sampled_features_ = n_sampled or len(names)
        self.mechanisms_ = dict(zip(names, self.mechanism_.parts, strict=True))
        if self.encoding == "columns":
            sets = [str(name) for name, part in self.mechanisms_.items() if part.n_outputs > 1]
            if sets:
                raise InvalidParameterError(
                    "encoding='columns' needs a mechanism that answers with one category, such as 'krr'; "
                    f"got sets of categories for {', '.join(sets)}."
                )
        else:
            check_feature_names(self.get_feature_names_out().tolist())
        self.shares_ = {name: float(weights[name]) for name in names}
        self.epsilons_ = dict(zip(names, self.mechanism_.exact_epsilons, strict=True))
        attach_guarantee(self, self.mechanism_.guarantee())

    def _n_sampled(self, names):
        given = self.n_sampled_features
        found = number_of_sampled_columns(given, self.columns_, float(self.epsilon), self._mechanisms(names))
        for name, needed in ("shares", "equal"), ("sparse_output", False):
            if found is not None and getattr(self, name) != needed:
                raise InvalidParameterError(
                    f"n_sampled_features={given!r} samples {found} columns and needs {name}={needed!r}; "
                    f"got {getattr(self, name)!r}."
                )
        if found is not None and self.encoding == "columns":
            raise InvalidParameterError(
                f"encoding='columns' has no value for a column that was not asked and needs n_sampled_features='all'; "
                f"got {given!r}, which samples {found} columns."
            )
        return found

    def _can_be_written_to(self, dtype):
        return np.can_cast(self._encoded(self._empty_release(0, np.float64), None).dtype, dtype, "same_kind")

    def _mechanisms(self, names):
        """Return the name of each column's mechanism, or one name if categories have the default."""
        given = self.category_mechanism
        if given == "krr":
            return self.mechanism
        of_categories = {name for name, column in zip(names, self.columns_, strict=True) if column.values is not None}
        by_column = given if isinstance(given, Mapping) else dict.fromkeys(of_categories, given)
        if set(by_column) - of_categories:
            raise InvalidParameterError(
                f"category_mechanism must name columns of categories only; got {self.category_mechanism!r}."
            )
        return tuple(by_column.get(name, "krr") if name in of_categories else self.mechanism for name in names)

    def _release(self, rows, out=None, **how):
        if rows.dtype == np.float32:
            # All columns are numbers with one pair of bounds.
            check_bounds_of_type(self.schema, rows.dtype)
        return super()._release(rows, out, **how)

    def _encoded(self, released, X, *, noisy=True):
        """Encode released rows as `encoding` says."""
        if self.encoding == "columns":
            return self._as_columns(released, X)
        if self.sparse_output:
            return as_sparse(released, self.mechanism_, self.columns_)
        # Without noise there is no bias to remove.
        if self.encoding == "estimates" and noisy:
            return as_estimates(released, self.mechanism_, self.columns_)
        return as_one_hot(released, self.mechanism_, self.columns_, noisy=noisy)

    def _as_columns(self, numbers, X):
        container = output_container(self)
        if hasattr(X, "columns") or container != "default":
            return framed(X, list(getattr(X, "columns", input_names(self))), self.columns_, numbers, container)
        if not any(column.values or column.is_date for column in self.columns_):
            return numbers
        table = np.empty(numbers.shape, dtype=object)
        for j, column in enumerate(self.columns_):
            table[:, j] = column.from_numbers(numbers[:, j])
        return table

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        of_numbers = isinstance(self.schema, tuple)
        tags.input_tags.categorical = tags.input_tags.string = not of_numbers
        tags.transformer_tags.preserves_dtype = ["float64", "float32"] if of_numbers else ["float64"]
        return tags
