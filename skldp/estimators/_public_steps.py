"""Public steps, which learn nothing from rows, and steps that do not read labels.

A step is public if its fit learns nothing from values, and its transform is a function of one row alone that raises at
no value but NaN, infinity or one of another type. scikit-learn's tag of stateless estimators is not enough: a
FunctionTransformer may subtract the mean of a table. Types are compared exactly, because a subclass may do more, and
the fitted state of an encoder is compared with its parameters, which may be set after fit.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags

from skldp._checks import is_number
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._column_encoder import ColumnEncoder
from skldp.laws._odds import float_above


@dataclass(frozen=True)
class PublicEffect:
    """Effect of a public step on rows."""

    stretch: float | None = None
    sparse: bool = False


def effect_of_public(step: Any) -> PublicEffect | None:
    """Return the effect of a fitted public step; None for any other step."""
    effect, _ = _EFFECTS.get(type(step), (None, ""))
    return None if effect is None else effect(step)


def public_instead_of(step: Any) -> str:
    """Return how a step learns nothing, or the steps that never learn."""
    kind = type(step)
    _, parameters = _EFFECTS.get(kind, (None, ""))
    return f"{kind.__name__}({parameters})" if parameters else "BoundsScaler or ColumnEncoder"


def declared_public(public: Iterable[str] | Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the steps that a caller declares to be public, each with the factor by which it stretches distances."""
    if isinstance(public, str):
        raise TypeError(f"public must be a collection of names, such as ({public!r},); got a single string.")
    declared = dict(public) if isinstance(public, Mapping) else dict.fromkeys(public)
    for name, stretch in declared.items():
        if stretch is not None and not (is_number(stretch) and 0 < float_above(stretch) < math.inf):
            raise ValueError(
                f"Values of public must be a stretch, a finite number > 0, or None; got {name!r}: {stretch!r}."
            )
    return declared


def repeats(columns: Any, n_columns: int) -> bool:
    """Return whether a branch of a ColumnTransformer lists a column twice, which stretches distances."""
    is_list = hasattr(columns, "__len__") and not isinstance(columns, str)
    if not is_list or np.asarray(columns).dtype == bool:
        return False
    # The last column is -1 as well.
    return len({column if isinstance(column, str) else column % n_columns for column in columns}) < len(columns)


def selects_none(columns: Any) -> bool:
    """Return whether a branch of a ColumnTransformer has no column, and so is not fitted."""
    if not hasattr(columns, "__len__"):
        return False
    selected = np.asarray(columns)
    return not (selected.any() if selected.dtype == bool else selected.size)


def ignores_labels(step: Any) -> bool:
    """Return whether the fit of a step ignores y, as in scikit-learn's clusterers and most transformers."""
    if type(step) in (BoundsScaler, ColumnEncoder):
        return True
    package, *modules = type(step).__module__.split(".")
    if package != "sklearn" or "estimator" in step.get_params(deep=False):
        return False
    tags = get_tags(step)
    # SelectKBest has the tag that a target is not required, and reads it.
    of_rows = tags.estimator_type in ("clusterer", "outlier_detector", "density_estimator")
    return of_rows or (modules[0] in _WITHOUT_LABELS and not tags.target_tags.required)


_WITHOUT_LABELS = {
    "decomposition",
    "feature_extraction",
    "impute",
    "kernel_approximation",
    "manifold",
    "preprocessing",
    "random_projection",
}


def _identity(step: Any) -> PublicEffect | None:
    return PublicEffect(1.0) if step.func is None else None


def _declared_one_hot(step: Any) -> PublicEffect | None:
    # "warn" prints the unknown category, "error" raises for it, and `drop` warns as well.
    if not _has_declared_categories(step) or step.handle_unknown != "ignore" or step.drop is not None:
        return None
    return PublicEffect(sparse=step.sparse_output)


def _declared_ordinal(step: Any) -> PublicEffect | None:
    if not _has_declared_categories(step) or step.handle_unknown != "use_encoded_value":
        return None
    # The next step refuses a NaN code.
    missing = any(value is None or value != value for values in step.categories for value in values)
    codes = [step.unknown_value, *([step.encoded_missing_value] if missing else [])]
    return None if any(code != code for code in codes) else PublicEffect()


def _has_declared_categories(step: Any) -> bool:
    if isinstance(step.categories, str) or step.min_frequency is not None or step.max_categories is not None:
        return False
    declared, kept = (
        [value for values in categories for value in [len(values), *values]]
        for categories in (step.categories, step.categories_)
    )
    return len(declared) == len(kept) and all(map(_is_same, declared, kept))


def _constant_imputer(step: Any) -> PublicEffect | None:
    # Without keep_empty_features a column without values is dropped.
    if step.strategy != "constant" or not step.keep_empty_features or step.add_indicator:
        return None
    fill_value = step.fill_value
    if isinstance(fill_value, Real) and not math.isfinite(fill_value):
        return None
    constants = [0, "missing_value"] if fill_value is None else [fill_value]
    declared = all(any(_is_same(kept, constant) for constant in constants) for kept in step.statistics_)
    return PublicEffect() if declared else None


def _is_same(one: Any, other: Any) -> bool:
    # A fitted imputer may have rounded its constant to single precision.
    if isinstance(one, np.floating) and isinstance(other, Real):
        other = type(one)(other)
    # NaN equals nothing.
    return one is other or bool(one == other or (one != one and other != other))


# Effect of each type, and the parameters with which it learns nothing, if the default ones learn.
_EFFECTS: dict[type, tuple[Callable[[Any], PublicEffect | None], str]] = {
    BoundsScaler: (lambda step: PublicEffect(step.max_stretch_), ""),
    ColumnEncoder: (lambda _step: PublicEffect(), ""),
    FunctionTransformer: (_identity, ""),
    Normalizer: (lambda _step: PublicEffect(), ""),
    OneHotEncoder: (_declared_one_hot, 'categories=[...], handle_unknown="ignore"'),
    OrdinalEncoder: (_declared_ordinal, 'categories=[...], handle_unknown="use_encoded_value", unknown_value=-1'),
    SimpleImputer: (_constant_imputer, 'strategy="constant", keep_empty_features=True'),
}
