"""What a whole scikit-learn object guarantees: the sum over its private steps."""

import math
from dataclasses import replace
from functools import reduce
from operator import add

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp.mechanisms.guarantee import PrivacyGuarantee

__all__ = ["privacy_guarantee"]


def privacy_guarantee(estimator):
    """Add up what a fitted estimator, Pipeline or search releases about one person.

    Parameters
    ----------
    estimator : fitted estimator
        A skldp estimator, or a Pipeline, ColumnTransformer, FeatureUnion, or search (its best estimator) that
        holds some.

    Returns
    -------
    PrivacyGuarantee
        Of one record with its features, and its label where a step randomises labels too. What no step protects
        is said in `basis`; columns that pass a ColumnTransformer or FeatureUnion unprotected make epsilon infinite.

    Raises
    ------
    ValueError
        If nothing in `estimator` protects anything.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Notes
    -----
    Steps add up by basic composition, as if every step's output were released. Steps before the first private one
    must not have learnt from private data (a StandardScaler's mean is such a fact): what they learnt is not counted.
    A guarantee per unit of distance counts distances of what its own step is given: a step before it that stretches
    them, a scaler for one, weakens it as much.

    A search fits every candidate on every split, with noise of its own each time, and scores it. Whoever sees more of
    that than the best estimator sees more releases than are counted here.

    With ``Pipeline(memory=...)`` the same input is given the same release again, which is no second release. But the
    cache keeps the released rows on disk beside a hash of the private ones, against which guesses can be tried.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skldp import BitRandTransformer, privacy_guarantee
    >>> pipeline = make_pipeline(FunctionTransformer(), BitRandTransformer(epsilon=2.0, calibration="exact"))
    >>> print(privacy_guarantee(pipeline.fit([[0.5, -0.5], [0.1, 0.2]])).epsilon <= 2.0)
    True
    """
    check_is_fitted(estimator)
    parts = _guarantees(estimator)
    if not parts:
        raise ValueError(
            "privacy_guarantee needs a fitted estimator with at least one private step. "
            f"Got {type(estimator).__name__} without one instead."
        )
    total = reduce(add, parts)
    if len(parts) > 1 or not hasattr(estimator, "privacy_guarantee_") or hasattr(estimator, "label_mechanism_"):
        total = _say_what_is_unprotected(estimator, total, {part.unit for part in parts})
    return total


def _guarantees(estimator):
    if hasattr(estimator, "best_estimator_"):
        aside = "the fits of the search, which are releases too, are not counted"
        return [replace(part, basis=f"{part.basis}; {aside}") for part in _guarantees(estimator.best_estimator_)]
    if hasattr(estimator, "label_mechanism_") and hasattr(estimator, "estimator_"):
        return [estimator.privacy_guarantee_, *_guarantees(estimator.estimator_)]
    if isinstance(estimator, Pipeline):
        return [part for _, step in estimator.steps for part in _guarantees(step)]
    if isinstance(estimator, ColumnTransformer):
        return _of_branches(
            [(name, step, columns) for name, step, columns in estimator.transformers_ if _has_columns(columns)]
        )
    if isinstance(estimator, FeatureUnion):
        return _of_branches([(name, step, None) for name, step in estimator.transformer_list])
    own = getattr(estimator, "privacy_guarantee_", None)
    return [] if own is None else [own]


def _has_columns(columns):
    return not hasattr(columns, "__len__") or len(columns) > 0


def _of_branches(branches):
    """Every branch reads the record, so one that is not private leaves its columns unprotected."""
    parts, bare = [], []
    for name, step, _ in branches:
        if isinstance(step, str) and step == "drop":
            continue
        own = _guarantees(step)
        parts += own
        if not own:
            bare.append(name)
    if parts and bare:
        parts.append(PrivacyGuarantee(math.inf, basis=f"columns of {', '.join(bare)} pass unprotected"))
    return parts


def _say_what_is_unprotected(estimator, total, units):
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else None
    if "label" not in units and hasattr(last, "predict"):
        return replace(total, basis=f"{total.basis}; labels are not randomised")
    if units == {"label"}:
        return replace(total, basis=f"{total.basis}; features are not randomised")
    return total
