"""What a private estimator is compared with: itself without privacy, and always the most frequent class."""

from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

__all__ = ["majority_estimator", "without_privacy"]


def majority_estimator(estimator):
    """Make the estimator that learns nothing: the most frequent class, or the mean for a regressor.

    Parameters
    ----------
    estimator : estimator
        Only asked whether it is a regressor.

    Returns
    -------
    DummyClassifier or DummyRegressor

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skldp.study.baselines import majority_estimator
    >>> majority_estimator(LogisticRegression())
    DummyClassifier(strategy='most_frequent')
    """
    return DummyRegressor() if is_regressor(estimator) else DummyClassifier(strategy="most_frequent")


def without_privacy(fitted):
    """Make an unfitted copy of a fitted estimator that leaves out everything that has a privacy guarantee.

    Parameters
    ----------
    fitted : fitted estimator
        A private transformer or sampler in a Pipeline, ColumnTransformer or FeatureUnion becomes "passthrough"; a
        private meta-estimator becomes the estimator inside it.

    Returns
    -------
    estimator
        Not fitted.

    Raises
    ------
    ValueError
        If a private part has nothing to take its place.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BitRandTransformer
    >>> from skldp.study.baselines import without_privacy
    >>> model = make_pipeline(BitRandTransformer(calibration="exact"), LogisticRegression())
    >>> without_privacy(model.fit([[0.5], [-0.5]], [0, 1])).steps[0]
    ('bitrandtransformer', 'passthrough')
    """
    if isinstance(fitted, Pipeline):
        steps = [(name, _step_without_privacy(step)) for name, step in fitted.steps]
        return _shallow(fitted, steps=steps)
    if hasattr(fitted, "privacy_guarantee_"):
        inner = fitted.get_params(deep=False).get("estimator")
        if inner is None:
            raise ValueError(
                "The clean baseline needs an estimator to take the place of a private one: pass clean_estimator. "
                f"Got {type(fitted).__name__} instead."
            )
        return clone(inner)
    return clone(fitted)


def _step_without_privacy(step):
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


def _shallow(composite, **replaced):
    own = composite.get_params(deep=False)
    return clone(type(composite)(**(own | replaced)))
