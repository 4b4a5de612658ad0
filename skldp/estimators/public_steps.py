"""Steps that tell nothing about the rows that they were fitted on, by a list that this package keeps.

A step is on it if its fit learns nothing from values, and its transform is a function of one row alone that raises at
no value but NaN, infinity or one of another type. scikit-learn's tag of stateless estimators is not enough: a
FunctionTransformer may subtract the mean of a table. Types are compared exactly, because a subclass may do more.
"""

from numbers import Real

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

from skldp.estimators.declared_scaler import BoundsScaler

__all__ = [
    "gives_bounded",
    "ignores_labels",
    "is_public",
    "is_row_wise",
    "may_be_sparse",
    "may_overflow",
    "stretch_of",
]


def is_public(step):
    """Whether a fitted step is on the list.

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
    >>> from skldp.estimators.public_steps import is_public
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


def gives_bounded(step):
    """Whether a step on the list gives bounded numbers, whatever it gets."""
    return not may_overflow(step) and not isinstance(step, FunctionTransformer | SimpleImputer)


def may_be_sparse(step):
    """Whether what a step on the list gives is a sparse matrix."""
    return isinstance(step, HashingVectorizer) or bool(getattr(step, "sparse_output", False))


def is_row_wise(step):
    """Whether a step that was fitted elsewhere works on one row at a time, as all of scikit-learn's own do.

    Except for a FunctionTransformer, whose function gets the whole table.
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
    return _is_of_scikit_learn(step)


def ignores_labels(step):
    """Whether the fit of a step does not look at y: scikit-learn's clusterers, and most of its transformers.

    The tag that a target is not required is not enough: SelectKBest has it.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skldp.estimators.public_steps import ignores_labels
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
    return _has_declared_categories(step) and step.handle_unknown == "use_encoded_value"


def _has_declared_categories(step):
    return not isinstance(step.categories, str) and step.min_frequency is None and step.max_categories is None


def _is_constant_imputer(step):
    # Without keep_empty_features a column is dropped if nobody has a value there.
    return step.strategy == "constant" and step.keep_empty_features and not step.add_indicator


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
