"""The private steps of a fitted estimator, what they state together, and the estimator without them."""

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._composition import privacy_guarantee
from skldp.exceptions import ChangedAfterFitError
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study._rivals import ReleasedRowsRegressor

__all__ = ["has_seed", "majority_estimator", "private_steps", "stated_together", "without_privacy"]


def majority_estimator(estimator: Any) -> Any:
    """Make the estimator that learns nothing: the most frequent class, or the mean for a regressor.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skldp.study._private_steps import majority_estimator
    >>> majority_estimator(LogisticRegression())
    DummyClassifier(strategy='most_frequent')
    """
    return DummyRegressor() if is_regressor(estimator) else DummyClassifier(strategy="most_frequent")


def without_privacy(fitted: Any) -> Any:
    """Make an unfitted copy of a fitted estimator that leaves out everything that has a privacy guarantee.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BitRandTransformer
    >>> from skldp.study._private_steps import without_privacy
    >>> model = make_pipeline(BitRandTransformer(calibration="exact"), LogisticRegression())
    >>> without_privacy(model.fit([[0.5], [-0.5]], [0, 1])).steps[0]
    ('bitrandtransformer', 'passthrough')
    """
    if isinstance(fitted, Pipeline):
        steps = [(name, _step_without_privacy(step)) for name, step in fitted.steps]
        return _shallow(fitted, steps=steps)
    model = _model_without_privacy(fitted)
    if model is not None:
        return model
    if hasattr(fitted, "privacy_guarantee_"):
        inner = fitted.get_params(deep=False).get("estimator")
        if inner is None:
            raise ValueError(
                "The clean baseline needs an estimator to take the place of a private one: pass clean_estimator. "
                f"Got {type(fitted).__name__} instead."
            )
        return clone(inner)
    return clone(fitted)


def _model_without_privacy(model: Any) -> Any:
    """What scikit-learn has for a linear model that learns under privacy, within the same bounds; None for others."""
    if isinstance(model, ReleasedRowsRegressor):
        return clone(model).set_params(mechanism=None)
    parameters = model.get_params(deep=False) if hasattr(model, "privacy_guarantee_") else {}
    if {"bounds", "target_bounds"} <= parameters.keys():
        clean = LinearRegression(fit_intercept=parameters.get("fit_intercept", True))
        return ReleasedRowsRegressor(None, clean, bounds=model.bounds, target_bounds=model.target_bounds)
    if {"bounds", "classes"} <= parameters.keys() and is_classifier(model):
        # On features between -1 and 1, for which the default C is of the size of one record.
        return make_pipeline(BoundsScaler(bounds=model.bounds), LogisticRegression(max_iter=1000))
    return None


def _step_without_privacy(step: Any) -> Any:
    if step is None or isinstance(step, str):
        return step
    if isinstance(step, ColumnTransformer):
        kept = {name: _step_without_privacy(branch) for name, branch, _ in step.transformers_}
        branches = [(name, kept.get(name, branch), columns) for name, branch, columns in step.transformers]
        return _shallow(step, transformers=branches)
    if isinstance(step, FeatureUnion):
        parts = [(name, _step_without_privacy(branch)) for name, branch in step.transformer_list]
        return _shallow(step, transformer_list=parts)
    if hasattr(step, "privacy_guarantee_") and "estimator" not in step.get_params(deep=False):
        return "passthrough"
    return without_privacy(step)


def _shallow(composite: Any, **replaced: Any) -> Any:
    own = composite.get_params(deep=False)
    return clone(type(composite)(**(own | replaced)))


def private_steps(fitted: Any) -> tuple[tuple[str, PrivacyGuarantee], ...]:
    """Give the private steps of a Pipeline, or the whole of anything else, each with its guarantee.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skldp import BitRandTransformer
    >>> from skldp.study._private_steps import private_steps
    >>> pipeline = make_pipeline(BitRandTransformer(calibration="exact"), StandardScaler())
    >>> [name for name, _ in private_steps(pipeline.fit([[0.5], [-0.5]]))]
    ['bitrandtransformer']
    """
    if not isinstance(fitted, Pipeline):
        return ((type(fitted).__name__, privacy_guarantee(fitted)),)
    found = []
    for name, step in fitted.steps:
        try:
            found.append((name, privacy_guarantee(step)))
        except ChangedAfterFitError:
            raise
        except (ValueError, TypeError):
            # Nothing in it is private: a scaler, or "passthrough".
            continue
    return tuple(found)


def has_seed(estimator: Any) -> bool:
    """Whether the noise of any part of an estimator, however deep, comes from a seed.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study._private_steps import has_seed
    >>> has_seed(make_pipeline(NumericPrivatizer())), has_seed(make_pipeline(NumericPrivatizer(seed=1)))
    (False, True)
    """
    return any(value is not None for name, value in estimator.get_params().items() if name.split("__")[-1] == "seed")


def stated_together(steps: Iterable[tuple[str, PrivacyGuarantee]]) -> float | None:
    """Add up what the steps state, over the declared diameter where one states it per unit of distance.

    Examples
    --------
    >>> from skldp import PrivacyGuarantee
    >>> from skldp.study._private_steps import stated_together
    >>> vector = PrivacyGuarantee(0.5, unit="distance", stated=0.5, diameter=4.0)
    >>> stated_together((("vector", vector), ("label", PrivacyGuarantee(1.0, unit="label", stated=1.0))))
    3.0
    """
    total = 0.0
    for _, guarantee in steps:
        stated = _stated_plainly(guarantee)
        if stated is None:
            return None
        total += stated
    return total


def _stated_plainly(guarantee: PrivacyGuarantee) -> float | None:
    if guarantee.unit != "distance" or guarantee.stated is None:
        return guarantee.stated
    return None if guarantee.diameter is None else guarantee.stated * guarantee.diameter
