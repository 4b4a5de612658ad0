"""Steps that tell nothing about the rows that they were fitted on, by a list that this package keeps.

A step is on it if its fit learns nothing from values, and its transform is a function of one row alone that raises at
no value but NaN, infinity or one of another type. scikit-learn's tag of stateless estimators is not enough: a
FunctionTransformer may subtract the mean of a table. Types are compared exactly, because a subclass may do more.
"""

from numbers import Real

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

from skldp.estimators._bounds_scaler import BoundsScaler

__all__ = [
    "ignores_labels",
    "is_public",
    "is_row_wise",
    "largest_after",
    "may_be_sparse",
    "may_overflow",
    "stretch_of",
]


def is_public(step):
    """Whether a fitted step is on the list.

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
    >>> from skldp.estimators._public_steps import is_public
    >>> is_public(Normalizer()), is_public(StandardScaler()), is_public(OneHotEncoder())
    (True, False, False)
    """
    condition = _PUBLIC.get(type(step))
    return condition is not None and condition(step)


def stretch_of(step):
    """How far a step on the list can stretch a Euclidean distance, at most; None where that is not known."""
    if isinstance(step, FunctionTransformer):
        return 1.0
    return step.max_stretch_ if isinstance(step, BoundsScaler) else None


def may_overflow(step):
    """Whether a step on the list makes infinity, which the step behind refuses, of large numbers."""
    return isinstance(step, PolynomialFeatures | GaussianRandomProjection | SparseRandomProjection)


def largest_after(step, largest):
    """The largest magnitude of what a step on the list gives, for numbers of at most `largest`; may be infinite."""
    if isinstance(step, BoundsScaler):
        return max(float(np.abs(end).max()) for end in step.feature_range_)
    if isinstance(step, PolynomialFeatures):
        with np.errstate(over="ignore"):
            return float(np.power(max(largest, 1.0), np.max(step.degree)))
    if isinstance(step, GaussianRandomProjection | SparseRandomProjection):
        return largest * float(abs(step.components_).sum(axis=1).max())
    if isinstance(step, FunctionTransformer):
        return largest
    if isinstance(step, SimpleImputer):
        return max(largest, abs(step.fill_value)) if isinstance(step.fill_value, Real) else largest
    if isinstance(step, OrdinalEncoder):
        codes = [abs(code) for code in (step.unknown_value, step.encoded_missing_value) if code == code]
        return float(max([*codes, *map(len, step.categories_)]))
    # Ones at most, or the counts of words of a text.
    return 1.0 if getattr(step, "norm", True) else 2.0**63


def may_be_sparse(step):
    """Whether what a step on the list gives is a sparse matrix."""
    return isinstance(step, HashingVectorizer) or bool(getattr(step, "sparse_output", False))


def is_row_wise(step):
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


def ignores_labels(step):
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


def _is_of_scikit_learn(step):
    return type(step).__module__.partition(".")[0] == "sklearn"


def _always(step):
    return True


def _is_declared_one_hot(step):
    return (
        _has_declared_categories(step)
        # "warn" prints the unknown category, "error" refuses it. With `drop` there is a warning too.
        and step.handle_unknown == "ignore"
        and step.drop is None
    )


def _is_declared_ordinal(step):
    if not _has_declared_categories(step) or step.handle_unknown != "use_encoded_value":
        return False
    # A code that is NaN is refused by the step behind.
    missing = any(value is None or value != value for values in step.categories for value in values)
    codes = [step.unknown_value, *([step.encoded_missing_value] if missing else [])]
    return all(code == code for code in codes)


def _has_declared_categories(step):
    return not isinstance(step.categories, str) and step.min_frequency is None and step.max_categories is None


def _is_constant_imputer(step):
    # Without keep_empty_features a column is dropped if nobody has a value there.
    by_number = isinstance(step.fill_value, Real)
    return (
        step.strategy == "constant"
        and step.keep_empty_features
        and not step.add_indicator
        and (not by_number or bool(np.isfinite(step.fill_value)))
    )


def _hashes_text(step):
    own = (step.strip_accents, step.preprocessor, step.tokenizer, step.analyzer)
    return step.input == "content" and step.decode_error != "strict" and not any(map(callable, own))


def _counts_columns_only(step):
    return isinstance(step.n_components, Real)


_PUBLIC = {
    Binarizer: _always,
    BoundsScaler: _always,
    FunctionTransformer: lambda step: step.func is None,
    GaussianRandomProjection: _counts_columns_only,
    HashingVectorizer: _hashes_text,
    Normalizer: _always,
    OneHotEncoder: _is_declared_one_hot,
    OrdinalEncoder: _is_declared_ordinal,
    PolynomialFeatures: _always,
    SimpleImputer: _is_constant_imputer,
    SparseRandomProjection: _counts_columns_only,
}
