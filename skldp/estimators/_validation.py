"""Checks of parameters and input; the only module that uses scikit-learn's private validation."""

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from inspect import currentframe
from numbers import Integral, Real
from traceback import walk_stack
from typing import Any, TypeVar

import joblib
import numpy as np
import sklearn
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import _param_validation, assert_all_finite
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skldp._arrays import has_dates, kind_of, not_numbers, refuse_masked
from skldp._checks import did_you_mean, is_number
from skldp._tables import require
from skldp.domains._domain import column_not_finite

_Method = TypeVar("_Method", bound=Callable[..., Any])
# Typed, so that decorated methods keep their types.
fit_context: Callable[..., Callable[[_Method], _Method]] = _fit_context
HasMethods: Any = _param_validation.HasMethods
InvalidParameterError = _param_validation.InvalidParameterError


class NumberRange(_param_validation.Interval):
    """scikit-learn's interval of finite numbers, without bools and with fractions."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether `val` is a number in the interval."""
        # scikit-learn asks numpy whether a fraction is NaN.
        return is_number(val) and super().is_satisfied_by(float(val) if isinstance(val, Fraction) else val)


class StrOptions(_param_validation.StrOptions):
    """scikit-learn's set of strings, whose error sorts them and suggests close ones."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether `val` is an option; keep a string for the error, which is made next."""
        self.given = val if isinstance(val, str) else ""
        return bool(super().is_satisfied_by(val))

    def __str__(self) -> str:
        near = did_you_mean(self.given, self.options).strip()
        return f"one of {', '.join(map(repr, sorted(self.options)))}{near and f' ({near})'}"


class Form(HasMethods):
    """Constraint on the type of a parameter, whose error says how to write it."""

    def __init__(self, form: str, *types: type) -> None:
        super().__init__([])
        self.form, self.types = form, types

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether `val` has one of the types."""
        return isinstance(val, self.types)

    def __str__(self) -> str:
        return self.form


# Products of four larger magnitudes, or of four widths below the inverse, leave the range of double precision.
_MAX_MAGNITUDE = 1e70
_HINTS = {"X": " A ColumnEncoder encodes categories and dates."}
FLOATS = (np.float64, np.float32)
EPSILON = [NumberRange(Real, 0, None, closed="neither")]
_PAIRS = "(low, high), a list of one pair per column"
BOUNDS: list = [Form(_PAIRS, tuple, list, np.ndarray)]
BOUNDS_BY_COLUMN: list = [Form(f"{_PAIRS}, or a dict of pairs by column name", tuple, list, np.ndarray, dict)]
Seed = None | int | np.random.Generator | np.random.RandomState
NOISE_PARAMETERS: dict = {
    "seed": [None, NumberRange(Integral, 0, None, closed="left"), np.random.Generator, np.random.RandomState],
    "n_jobs": [None, Integral],
}
_HERE = os.path.dirname(os.path.dirname(__file__))
_LIBRARIES = tuple(os.path.join(folder, "") for folder in (_HERE, *sklearn.__path__, *joblib.__path__))


def warn(message: str, category: type[Warning], once: set[Any] | None = None) -> None:
    """Warn at the line that called the libraries; with `once`, unless the line is in it."""
    level, place = 0, ("", 0)
    for frame, line in walk_stack(currentframe()):
        level, place = level + 1, (frame.f_code.co_filename, line)
        if not place[0].startswith(_LIBRARIES):
            break
    once = set() if once is None else once
    if place not in once:
        once.add(place)
        warnings.warn(message, category, stacklevel=level)


def in_family(estimator: Any, copy: Any = None) -> Any:
    """Return a clone that, with clones of it, warns once at a line: a search fits clones of one clone."""
    copy = BaseEstimator.__sklearn_clone__(estimator) if copy is None else copy
    copy._family = vars(estimator).get("_family", set())
    return copy


def check_bounds(bounds: Any, n_features: int, name: str = "bounds", of: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Return declared bounds as two arrays; `of` names a single column in errors."""
    if not _are_pairs(bounds, n_features):
        return _from_ends(bounds, n_features, name, of)
    readings = []
    for ends in (tuple(bounds), tuple(zip(*bounds, strict=True))):
        broken = None
        try:
            readings.append(_from_ends(ends, n_features, name, of))
        except InvalidParameterError as error:
            broken = error
    # Of a list, a pair in the wrong order would be read as (low, high).
    if broken is not None and (not readings or isinstance(bounds, list)):
        raise InvalidParameterError(f"{broken} A list is one pair per column; write a tuple for (low, high).")
    if not np.array_equal(readings[0], readings[-1]):
        raise InvalidParameterError(
            f"`{name}` must not be a list that can be read as one pair per feature and as (low, high): for the first "
            f"write a dict by column or tuple(zip(*{name})), for the second a tuple; got {bounds!r}."
        )
    return readings[0]


def _are_pairs(bounds: Any, n_features: int) -> bool:
    """Return whether bounds may be a list of one (low, high) per feature, which a tuple of two never is."""
    if isinstance(bounds, tuple) and len(bounds) == 2:
        return False
    try:
        return np.shape(bounds) == (n_features, 2)
    except ValueError:
        return False


def _from_ends(bounds: Any, n_features: int, name: str, of: str) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds that are given as (low, high), each of shape (n_features,); single numbers are checked once."""
    is_pair = hasattr(bounds, "__len__") and not isinstance(bounds, str) and len(bounds) == 2
    low, high = (_end(one, n_features) for one in bounds) if is_pair else (None, None)
    if low is None or high is None:
        raise InvalidParameterError(
            f"`{name}` must be (low, high){of}, each a finite number or one number for each of {n_features} "
            f"features, or a list of one such pair per feature; got {bounds!r}."
        )
    low, high = np.broadcast_arrays(low, high)
    wrong = np.flatnonzero(low >= high)
    if wrong.size:
        j = wrong[0]
        verb, of = "exceeds" if low[j] > high[j] else "equals", of or f" for feature {j}" * (n_features > 1)
        raise InvalidParameterError(f"`{name}` must satisfy low < high; low {low[j]:g} {verb} high {high[j]:g}{of}.")
    if max(np.abs(low).max(), np.abs(high).max()) > _MAX_MAGNITUDE or (high - low).min() < 1 / _MAX_MAGNITUDE:
        raise InvalidParameterError(
            f"{name} must be at most {_MAX_MAGNITUDE:.0e} in magnitude and at least {1 / _MAX_MAGNITUDE:.0e} apart; "
            f"got {bounds!r}."
        )
    # A number for a million features takes no memory.
    return np.broadcast_to(low, n_features), np.broadcast_to(high, n_features)


def _end(given: Any, n_features: int) -> np.ndarray | None:
    """Return the lower or upper end of each feature, or of all; None unless it is finite numbers of the right shape."""
    try:
        values = np.asarray(given)
    except (TypeError, ValueError):
        return None
    # numpy reads True and "1" as numbers.
    if values.dtype.kind not in "iuf" or values.shape not in ((), (n_features,)):
        return None
    end = np.atleast_1d(values).astype(np.float64)
    return end if np.isfinite(end).all() else None


def check_bounds_by_column(
    bounds: Any, estimator: BaseEstimator, name: str = "bounds"
) -> tuple[np.ndarray, np.ndarray]:
    """Return declared bounds, of all features or by column name, as two arrays in the order of the columns."""
    if not isinstance(bounds, dict):
        return check_bounds(bounds, estimator.n_features_in_, name)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise InvalidParameterError(
            f"`{name}` by column name need a DataFrame; got a table without names. Ensembles such as BaggingClassifier "
            "and steps without set_output(transform='pandas') pass arrays: write a list of one (low, high) per column."
        )
    for what, some in (("name unknown", set(bounds) - set(names)), ("miss", set(names) - set(bounds))):
        if some:
            near = did_you_mean(min(map(str, some)), set(names) - set(bounds)) if what != "miss" else ""
            all_of = sorted(map(str, some))
            raise InvalidParameterError(f"`{name}` must name every column once; they {what} {all_of}.{near}")
    ends = [check_bounds(bounds[column], 1, name, f" for {column!r}") for column in names]
    low, high = (np.concatenate(end) for end in zip(*ends, strict=True))
    return low, high


def is_fitted(estimator: Any) -> bool:
    """Return whether an estimator is fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def output_container(estimator: Any) -> str:
    """Return the container of ``set_output``: "default", "pandas" or "polars"; ImportError if it is not installed."""
    container = getattr(estimator, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
    if container != "default":
        require(container)
    return str(container)


def validate_finite(estimator: BaseEstimator, X: Any, *, reset: bool, **kwargs: Any) -> np.ndarray:
    """Validate floats by scikit-learn's ``validate_data``; refuse NaN and infinity whatever the global setting.

    ``sklearn.set_config(assume_finite=True)`` is a promise about speed that a release must not depend on.
    """
    settings = {"dtype": FLOATS, **kwargs, "ensure_all_finite": False}
    checked = _checked(lambda: validate_data(estimator, X, reset=reset, **settings), X, **kwargs)
    if kwargs.get("ensure_all_finite", True):
        check_finite(checked[0] if isinstance(checked, tuple) else checked, estimator=estimator)
    return checked


def validate_mixed(estimator: BaseEstimator, X: Any, *, reset: bool, **kwargs: Any) -> Any:
    """Validate a table whose columns have types of their own: return a frame unchanged, anything else as an array."""
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not X.shape[0] or not X.shape[1]:
            raise ValueError(f"X must have at least one row and one column; got the shape {X.shape}.")
        return X
    # numpy would turn a list of mixed types into strings.
    dtype = None if hasattr(X, "dtype") or np.asarray(X).dtype.kind != "U" else object
    return validate_finite(estimator, X, reset=reset, dtype=dtype, **kwargs)


def as_table(X: Any, name: str = "X", n_columns: int | None = None, **kwargs: Any) -> np.ndarray:
    """Validate by scikit-learn's ``check_array``; refuse NaN and infinity whatever the global setting."""
    table = _checked(lambda: check_array(X, input_name=name, **kwargs), X, name, **kwargs)
    if n_columns not in (None, table.shape[1]):
        raise ValueError(f"{name} must have {n_columns} columns; got {table.shape[1]}.")
    return table


def _checked(check: Callable[[], Any], X: Any, name: str = "X", **given: Any) -> Any:
    """Run a check of scikit-learn; raise our error for what is no table or no numbers, since its own show values."""
    refuse_masked(X, name)
    refuse_masked(given.get("y"), "y")
    of_numbers, is_dated = given.get("dtype", FLOATS) not in (None, object), False
    with suppress(Exception):
        # Polars and Arrow have columns, and make numbers of dates beside numbers.
        head = X if getattr(X, "dtype", None) == np.dtype(object) else X[:1]
        is_dated = of_numbers and any(map(has_dates, map(np.asarray, (*X[:1], head))))
    if is_dated:
        raise ValueError(not_numbers(X, name) + _HINTS.get(name, ""))
    try:
        # scikit-learn adds up all numbers first: a sum of 1e308 and -1e308, many of each, is inf - inf.
        with config_context(assume_finite=False), np.errstate(invalid="ignore"):
            return check()
    except Exception as error:
        failed = error
    # Outside the clause above: its error would be the context of ours.
    if np.ndim(X) != 2:
        raise ValueError(f"{name} must be a 2D array, with a row for each record; got {kind_of(X)}. Reshape your data.")
    check_numbers(X, name, or_text=not of_numbers)
    check_numbers(given.get("y"), "y", or_text=not given.get("y_numeric"))
    raise failed


def check_numbers(values: Any, name: str, *, or_text: bool = False) -> None:
    """Raise an error for complex numbers, and for what scikit-learn cannot convert unless text is allowed."""
    refuse_masked(values, name)
    is_complex, refusal = False, None
    try:
        is_complex = np.iscomplexobj(values)
        if not is_complex and not or_text and getattr(getattr(values, "dtype", None), "kind", "O") not in "biuf":
            # scikit-learn refuses repeated names.
            table = values if getattr(getattr(values, "columns", None), "is_unique", True) else np.asarray(values)
            as_any = {"accept_sparse": True, "ensure_2d": False, "allow_nd": True, "ensure_all_finite": False}
            check_array(table, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0, **as_any)
    except Exception as error:
        refusal = None if or_text else TypeError if isinstance(error, TypeError) else ValueError
    if is_complex:
        raise ValueError(not_numbers(values, name) + " Complex data not supported.")
    if refusal is not None:
        rule = " Each argument must be a number or the string of a number." if refusal is TypeError else ""
        raise refusal(not_numbers(values, name) + rule + _HINTS.get(name, ""))


def check_finite(X: Any, name: str = "X", estimator: Any = None) -> None:
    """Raise ValueError for NaN and infinity, whatever the global setting; columns have the names of an estimator."""
    try:
        with config_context(assume_finite=False), np.errstate(invalid="ignore"):
            assert_all_finite(X, input_name=name)
    except ValueError as error:
        # scikit-learn advises an imputer, which would learn from private rows.
        of_table = "Replace missing values by a public constant, or declare them in the schema of a ColumnEncoder."
        hint = of_table if name == "X" else "Leave these records out."
        where = column_not_finite(X, getattr(estimator, "feature_names_in_", None))
        raise ValueError(f"Input {name} contains NaN or infinity{where}. {hint}") from error


def input_names(estimator: Any, given: Any = None) -> list[Any]:
    """Return the names of the columns at fit, or x0, x1, ...; `given` names must be the same."""
    default = [f"x{j}" for j in range(estimator.n_features_in_)]
    own = list(getattr(estimator, "feature_names_in_", default))
    names = own if given is None else list(given)
    if len(names) != len(own):
        raise ValueError(
            f"input_features should have length equal to number of features ({len(own)}), got {len(names)}"
        )
    if hasattr(estimator, "feature_names_in_") and names != own:
        raise ValueError("input_features is not equal to feature_names_in_")
    return names
