"""Checks of parameters and input; the only module that uses scikit-learn's private validation."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import _param_validation, assert_all_finite
from sklearn.utils._param_validation import HasMethods, InvalidParameterError, Options, StrOptions
from sklearn.utils.validation import check_array, validate_data

from skldp._checks import is_number

__all__ = [
    "BOUNDS",
    "BOUNDS_BY_COLUMN",
    "EPSILON",
    "FLOATS",
    "NOISE_PARAMETERS",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "Options",
    "Seed",
    "StrOptions",
    "as_table",
    "check_bounds",
    "check_bounds_by_column",
    "check_epsilon",
    "check_finite",
    "fit_context",
    "input_names",
    "validate_finite",
]


_Method = TypeVar("_Method", bound=Callable[..., Any])
# Typed, so that decorated methods keep their types.
fit_context: Callable[..., Callable[[_Method], _Method]] = _fit_context


class Interval(_param_validation.Interval):
    """scikit-learn's interval of numbers, without bools."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether `val` is a number in the interval."""
        return not isinstance(val, bool | np.bool_) and super().is_satisfied_by(val)


# Beyond this, or nearer than one over it, products of four leave the range of double precision.
_MAX_MAGNITUDE = 1e70
FLOATS = (np.float64, np.float32)
EPSILON = [Interval(Real, 0, None, closed="neither")]
BOUNDS = [tuple, list, np.ndarray]
BOUNDS_BY_COLUMN = [*BOUNDS, dict]
Seed = None | int | np.random.Generator | np.random.RandomState
NOISE_PARAMETERS: dict = {
    "seed": [None, Interval(Integral, 0, None, closed="left"), np.random.Generator, np.random.RandomState],
    "n_jobs": [None, Integral],
}


def check_epsilon(epsilon: Any) -> None:
    """Raise ValueError unless epsilon is a finite number > 0.

    scikit-learn's own validation accepts True and can be switched off globally; a budget must not be.
    """
    if not is_number(epsilon) or not epsilon > 0:
        raise InvalidParameterError(f"epsilon must be a finite number > 0. Got {epsilon!r} instead.")


def check_bounds(bounds: Any, n_features: int, name: str = "bounds") -> tuple[np.ndarray, np.ndarray]:
    """Return declared bounds as two arrays."""
    if not _are_pairs(bounds, n_features):
        return _from_ends(bounds, n_features, name)
    readings = []
    for ends in (tuple(bounds), tuple(zip(*bounds, strict=True))):
        try:
            readings.append(_from_ends(ends, n_features, name))
        except InvalidParameterError as error:
            broken = error
    if not readings:
        raise InvalidParameterError(f"{name} must be pairs of finite numbers, low < high. Got {bounds!r}.") from broken
    if not np.array_equal(readings[0], readings[-1]):
        as_ends, by_feature = (
            ", ".join(f"feature {j} from {low:g} to {high:g}" for j, (low, high) in enumerate(zip(*ends, strict=True)))
            for ends in readings
        )
        raise InvalidParameterError(
            f"{name} must not be a list that can be read as one pair per feature ({by_feature}) and as (low, high) "
            f"({as_ends}): for the first write a dict by column or tuple(zip(*{name})), for the second a tuple. "
            f"Got {bounds!r} instead."
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


def _from_ends(bounds: Any, n_features: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    rule = f"{name} must be (low, high), each a finite number or one number per feature, with low < high"
    rule += ", or a list of one such pair per feature"
    if isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise InvalidParameterError(f"{rule}. Got {bounds!r} instead.")
    ends = []
    for end in bounds:
        try:
            values = np.asarray(end)
            # numpy reads True and "1" as numbers.
            is_number = values.dtype.kind in "iuf"
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            is_number = False
        if not is_number:
            raise InvalidParameterError(f"{rule}. Got {bounds!r} instead.")
        if values.shape not in ((), (n_features,)):
            raise InvalidParameterError(f"{rule} ({n_features} here). Got {bounds!r} instead.")
        ends.append(np.broadcast_to(values, (n_features,)).copy())
    low, high = ends
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidParameterError(f"{rule}. Got {bounds!r} instead.")
    if max(np.abs(low).max(), np.abs(high).max()) > _MAX_MAGNITUDE or (high - low).min() < 1 / _MAX_MAGNITUDE:
        raise InvalidParameterError(
            f"bounds must be at most {_MAX_MAGNITUDE:.0e} in magnitude and at least {1 / _MAX_MAGNITUDE:.0e} apart. "
            f"Got {bounds!r} instead."
        )
    return low, high


def check_bounds_by_column(
    bounds: Any, estimator: BaseEstimator, name: str = "bounds"
) -> tuple[np.ndarray, np.ndarray]:
    """Return declared bounds, of all features or by column name, as two arrays in the order of the columns."""
    if not isinstance(bounds, dict):
        return check_bounds(bounds, estimator.n_features_in_, name)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise InvalidParameterError(f"{name} by column name are those of a frame. Got a table without names instead.")
    for what, some in (("miss", set(names) - set(bounds)), ("name unknown", set(bounds) - set(names))):
        if some:
            raise InvalidParameterError(f"{name} must name every column once. They {what} {sorted(map(str, some))}.")
    ends = [check_bounds(bounds[column], 1, f"{name} of the column {column!r}") for column in names]
    low, high = (np.concatenate(end) for end in zip(*ends, strict=True))
    return low, high


def validate_finite(estimator: BaseEstimator, X: Any, *, reset: bool, **kwargs: Any) -> np.ndarray:
    """Validate floats by scikit-learn's ``validate_data``; refuse NaN and infinity whatever the global setting.

    ``sklearn.set_config(assume_finite=True)`` is a promise about speed that a release must not depend on.
    """
    # scikit-learn adds up all numbers first: a sum of 1e308 and -1e308, many of each, is inf - inf.
    with config_context(assume_finite=False), np.errstate(invalid="ignore"):
        return validate_data(estimator, X, reset=reset, **({"dtype": FLOATS} | kwargs))


def as_table(X: Any, name: str = "X", **kwargs: Any) -> np.ndarray:
    """Validate by scikit-learn's ``check_array``; refuse NaN and infinity whatever the global setting."""
    with config_context(assume_finite=False), np.errstate(invalid="ignore"):
        return check_array(X, input_name=name, **kwargs)


def check_finite(estimator: BaseEstimator, X: Any, name: str = "X") -> None:
    """Raise scikit-learn's error for NaN and infinity, whatever the global setting."""
    with config_context(assume_finite=False), np.errstate(invalid="ignore"):
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name=name)


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
