"""Steps that tell nothing about the rows that they were fitted on, by a list that this package keeps.

A step is on it if its fit learns nothing from values, and its transform is a function of one row alone that raises at
no value but NaN, infinity or one of another type. scikit-learn's tag of stateless estimators is not enough: a
FunctionTransformer may subtract the mean of a table. Types are compared exactly, because a subclass may do more.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import get_tags

from skldp._checks import is_number
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.mechanisms._odds import float_above

__all__ = ["PublicEffect", "declared_public", "effect_of_public", "ignores_labels", "is_row_wise"]


@dataclass(frozen=True)
class PublicEffect:
    """What a fitted step on the list does to rows.

    Parameters
    ----------
    largest : float
        The largest magnitude of a number that it gives; may be infinite.
    stretch : float, default=None
        How far it can stretch a Euclidean distance, at most; None where that is not known.
    may_overflow : bool, default=False
        Whether it makes infinity, which the step behind refuses, of large numbers.
    sparse : bool, default=False
        Whether it gives a sparse matrix.
    """

    largest: float
    stretch: float | None = None
    may_overflow: bool = False
    sparse: bool = False


def effect_of_public(step: Any, largest: float = math.inf) -> PublicEffect | None:
    """What a fitted step on the list does to rows of numbers of at most `largest`; None where it is not on the list.

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
    >>> from skldp.estimators._public_steps import effect_of_public
    >>> effect_of_public(Normalizer())
    PublicEffect(largest=1.0, stretch=None, may_overflow=False, sparse=False)
    >>> effect_of_public(StandardScaler()), effect_of_public(OneHotEncoder())
    (None, None)
    """
    effect = _EFFECTS.get(type(step))
    return None if effect is None else effect(step, largest)


def is_row_wise(step: Any) -> bool:
    """Whether a step that was fitted elsewhere works on one row at a time, and is not made to refuse some values.

    All of scikit-learn's own do, except for a FunctionTransformer, whose function gets the whole table.
    """
    if isinstance(step, str) or step is None:
        return True
    if isinstance(step, Pipeline):
        return all(is_row_wise(inner) for _, inner in step.steps)
    if isinstance(step, ColumnTransformer):
        return all(is_row_wise(inner) for _, inner, _ in step.transformers_)
    if isinstance(step, FeatureUnion):
        return all(is_row_wise(inner) for _, inner in step.transformer_list)
    if isinstance(step, FunctionTransformer):
        return step.func is None
    if not _is_of_scikit_learn(step) or get_tags(step).input_tags.positive_only:
        return False
    return not any(getattr(step, name, None) in values for name, values in _REFUSING.items())


# Parameters of scikit-learn's transformers by which an error, or a warning that prints it, tells of a value.
_REFUSING = {
    "handle_unknown": ("error", "warn"),
    "out_of_bounds": ("raise",),
    "extrapolation": ("error",),
    "error_on_new": (True,),
    "method": ("box-cox",),
}


def declared_public(public: Iterable[str] | Mapping[str, float | None]) -> dict[str, float | None]:
    """The steps that a caller declares to be public, by name, each with how far it stretches distances, or None.

    Raises
    ------
    TypeError
        If it is a single name.
    ValueError
        If a stretch is no finite number above 0.
    """
    if isinstance(public, str):
        raise TypeError(f"public must be several names of steps, such as ({public!r},). Got a single string instead.")
    declared = dict(public) if isinstance(public, Mapping) else dict.fromkeys(public)
    for name, stretch in declared.items():
        if stretch is not None and not (is_number(stretch) and 0 < float_above(stretch) < math.inf):
            raise ValueError(
                f"public must say, by a finite number > 0 or None, how far a step stretches. Got {name!r}: {stretch!r}."
            )
    return declared


def ignores_labels(step: Any) -> bool:
    """Whether the fit of a step does not look at y: scikit-learn's clusterers, and most of its transformers.

    The tag that a target is not required is not enough: SelectKBest has it.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skldp.estimators._public_steps import ignores_labels
    >>> ignores_labels(StandardScaler()), ignores_labels(SelectKBest())
    (True, False)
    """
    if type(step) is BoundsScaler:
        return True
    if not _is_of_scikit_learn(step) or "estimator" in step.get_params(deep=False):
        return False
    tags = get_tags(step)
    of_rows = tags.estimator_type in ("clusterer", "outlier_detector", "density_estimator")
    return of_rows or (type(step).__module__.split(".")[1] in _WITHOUT_LABELS and not tags.target_tags.required)


_WITHOUT_LABELS = {
    "decomposition",
    "feature_extraction",
    "impute",
    "kernel_approximation",
    "manifold",
    "preprocessing",
    "random_projection",
}


def _is_of_scikit_learn(step: Any) -> bool:
    return type(step).__module__.partition(".")[0] == "sklearn"


def _bounded_by_one(_step: Any, _largest: float) -> PublicEffect:
    return PublicEffect(1.0)


def _bounds_scaler(step: Any, _largest: float) -> PublicEffect:
    return PublicEffect(max(float(np.abs(end).max()) for end in step.feature_range_), step.max_stretch_)


def _identity(step: Any, largest: float) -> PublicEffect | None:
    return PublicEffect(largest, 1.0) if step.func is None else None


def _random_projection(step: Any, largest: float) -> PublicEffect | None:
    # A size of its own choice would depend on the number of rows.
    if not isinstance(step.n_components, Real):
        return None
    return PublicEffect(largest * float(abs(step.components_).sum(axis=1).max()), may_overflow=True)


def _polynomial(step: Any, largest: float) -> PublicEffect:
    with np.errstate(over="ignore"):
        return PublicEffect(float(np.power(max(largest, 1.0), np.max(step.degree))), may_overflow=True)


def _hashed_text(step: Any, _largest: float) -> PublicEffect | None:
    own = (step.strip_accents, step.preprocessor, step.tokenizer, step.analyzer)
    if step.input != "content" or step.decode_error == "strict" or any(map(callable, own)):
        return None
    # Without a norm, the counts of words of a text.
    return PublicEffect(1.0 if step.norm else 2.0**63, sparse=True)


def _declared_one_hot(step: Any, _largest: float) -> PublicEffect | None:
    # "warn" prints the unknown category, "error" refuses it. With `drop` there is a warning too.
    if not _has_declared_categories(step) or step.handle_unknown != "ignore" or step.drop is not None:
        return None
    return PublicEffect(1.0, sparse=step.sparse_output)


def _declared_ordinal(step: Any, _largest: float) -> PublicEffect | None:
    if not _has_declared_categories(step) or step.handle_unknown != "use_encoded_value":
        return None
    # A code that is NaN is refused by the step behind.
    missing = any(value is None or value != value for values in step.categories for value in values)
    codes = [step.unknown_value, *([step.encoded_missing_value] if missing else [])]
    if any(code != code for code in codes):
        return None
    return PublicEffect(float(max([*map(abs, codes), *map(len, step.categories)])))


def _has_declared_categories(step: Any) -> bool:
    return not isinstance(step.categories, str) and step.min_frequency is None and step.max_categories is None


def _constant_imputer(step: Any, largest: float) -> PublicEffect | None:
    # Without keep_empty_features a column is dropped if nobody has a value there.
    if step.strategy != "constant" or not step.keep_empty_features or step.add_indicator:
        return None
    fill_value = step.fill_value
    if isinstance(fill_value, Real):
        largest = max(largest, abs(float(fill_value)))
        return PublicEffect(largest) if math.isfinite(fill_value) else None
    return PublicEffect(largest)


_EFFECTS: dict[type, Callable[[Any, float], PublicEffect | None]] = {
    Binarizer: _bounded_by_one,
    BoundsScaler: _bounds_scaler,
    FunctionTransformer: _identity,
    GaussianRandomProjection: _random_projection,
    HashingVectorizer: _hashed_text,
    Normalizer: _bounded_by_one,
    OneHotEncoder: _declared_one_hot,
    OrdinalEncoder: _declared_ordinal,
    PolynomialFeatures: _polynomial,
    SimpleImputer: _constant_imputer,
    SparseRandomProjection: _random_projection,
}
