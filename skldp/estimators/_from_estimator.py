"""Read a regression query off a fitted scikit-learn model."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skldp.accounting._extrema.region import Region, region_of
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._query import RegressionQuery
from skldp.exceptions import OutOfDomainWarning, warn_user

__all__ = ["query_from_estimator"]

_ROUNDING = 2.0**-50


def query_from_estimator(
    estimator: Any,
    *,
    epsilon: float,
    bounds: Bounds | None = None,
    output_bounds: tuple[float, float] | None = None,
) -> RegressionQuery:
    r"""Make a query of a fitted linear model.

    Parameters
    ----------
    estimator : estimator
        Any fitted model with ``coef_`` and ``intercept_`` whose ``predict`` is :math:`\theta x + c`, or a binary
        classifier whose ``predict_proba`` is the logistic function of it. A `Pipeline` may put StandardScaler,
        MinMaxScaler, MaxAbsScaler or RobustScaler before it; their maps are folded into the coefficients. A
        `FrozenEstimator` is unwrapped.
    epsilon : float
        Natural-log budget of one answer.
    bounds : tuple (low, high) or Domain, default=None
        The domain of x: a number or one per feature each, or a :class:`~skldp.mechanisms.Domain` as in
        :func:`~skldp.accounting.realized_loss`.
    output_bounds : tuple (a, b), default=None
        The range of the two-valued answer. For a regressor, None takes the exact range of :math:`\theta x + c` over
        `bounds`. A classifier has (0, 1).

    Returns
    -------
    RegressionQuery
        ``"linear"`` where the model stays within `output_bounds` over `bounds`, ``"truncated"`` where it may leave
        them, ``"logistic"`` for a classifier.

    Raises
    ------
    ValueError
        If the model is not linear, is multiclass, has several outputs, or has another number of features than
        `bounds`; if neither `bounds` nor `output_bounds` is given for a regressor.
    NotFittedError
        If it is not fitted.

    Warns
    -----
    OutOfDomainWarning
        If the model can leave `output_bounds`: its predictions are then truncated.

    Notes
    -----
    The model's own predictions at a few points are compared with the query's: a model with another link (a Poisson
    regression has ``coef_`` as well) is refused.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skldp.estimators._from_estimator import query_from_estimator
    >>> model = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
    >>> query = query_from_estimator(model, epsilon=1.0, bounds=(0, 2))
    >>> query.kind, [round(v, 6) for v in query.output_bounds]
    ('linear', [1.0, 5.0])
    """
    steps, model = _unwrap(estimator)
    coef, intercept, logistic = _model_map(model)
    # What overflows here is refused by the query, in its own words, before anything is predicted.
    with np.errstate(all="ignore"):
        for step in reversed(steps):
            scale, shift = _step_map(step, coef.size)
            intercept = float(intercept + coef @ shift)
            coef = coef * scale
    RegressionQuery("logistic", coef, intercept, (0.0, 1.0), epsilon)
    region = None if bounds is None else region_of(bounds, n_features=coef.size)
    _check_predictions(estimator, coef, intercept, logistic, None if region is None else region.box)
    if logistic:
        wanted = (0.0, 1.0) if output_bounds is None else output_bounds
        return RegressionQuery("logistic", coef, intercept, wanted, epsilon)
    if region is None:
        if output_bounds is None:
            raise ValueError("A regressor needs bounds or output_bounds, which no private value may decide. Got None.")
        return RegressionQuery("truncated", coef, intercept, output_bounds, epsilon)
    low, high = _output_range(coef, intercept, region)
    if output_bounds is None:
        if low == high:
            raise ValueError(f"The model is constant, {low!r}, over the bounds: there is nothing to ask.")
        return RegressionQuery("linear", coef, intercept, (low, high), epsilon)
    query = RegressionQuery("truncated", coef, intercept, output_bounds, epsilon)
    a, b = query.output_bounds
    slack = _ROUNDING * coef.size * (np.abs(coef) @ np.abs(region.box).max(axis=0) + abs(intercept))
    if a <= low + slack and high - slack <= b:
        return RegressionQuery("linear", coef, intercept, output_bounds, epsilon)
    warn_user(
        f"The model's predictions over the bounds reach from {low:.6g} to {high:.6g}, beyond output_bounds "
        f"({a:.6g}, {b:.6g}): they are truncated to them.",
        OutOfDomainWarning,
    )
    return query


def _unwrap(estimator: Any) -> tuple[list[Any], Any]:
    """Split into transformers, first to last, and the final model."""
    steps: list[Any] = []
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            steps += [step for _, step in estimator.steps[:-1]]
            estimator = estimator.steps[-1][1]
        else:
            return steps, estimator


def _model_map(model: Any) -> tuple[npt.NDArray[np.float64], float, bool]:
    name = type(model).__name__
    check_is_fitted(model)
    logistic = is_classifier(model)
    if logistic and len(getattr(model, "classes_", [])) > 2:
        raise ValueError(
            f"A multiclass {name} is not one two-valued query. Fit sklearn.multiclass.OneVsRestClassifier and make one "
            f"query per class from its estimators_. Got {len(model.classes_)} classes instead of 2."
        )
    if not hasattr(model, "coef_") or (logistic and not hasattr(model, "predict_proba")):
        needed = "coef_ and predict_proba" if logistic else "coef_"
        raise ValueError(f"A query needs a linear model, with {needed}. Got {name} instead.")
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_, dtype=np.float64)
    intercept = np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64)
    if coef.size == 0 or coef.size != coef.shape[-1] or intercept.size != 1:
        raise ValueError(f"A query has one output. Got {name} with coef_ of shape {coef.shape} instead.")
    return coef.reshape(-1).astype(np.float64), float(intercept.reshape(-1)[0]), logistic


def _step_map(step: Any, n_features: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Scale and shift of an elementwise affine step: x goes to scale * x + shift."""
    ones, zeros = np.ones(n_features), np.zeros(n_features)
    if isinstance(step, FrozenEstimator):
        step = step.estimator
    if step is None or step == "passthrough":
        return ones, zeros
    if isinstance(step, Pipeline):
        scale, shift = ones, zeros
        for _, inner in step.steps:
            inner_scale, inner_shift = _step_map(inner, n_features)
            scale, shift = inner_scale * scale, inner_scale * shift + inner_shift
        return scale, shift
    clips = bool(getattr(step, "clip", False))
    if type(step) not in (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler) or clips:
        raise ValueError(
            "The steps before the model must be StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler, without "
            f"clipping, because only a known affine map can be folded into the query. Got {step!r} instead."
        )
    check_is_fitted(step)
    if isinstance(step, MinMaxScaler):
        return step.scale_, step.min_
    scale = ones if getattr(step, "scale_", None) is None else 1.0 / step.scale_
    # StandardScaler keeps a mean_ even where it does not subtract it.
    center = step.mean_ if isinstance(step, StandardScaler) and step.with_mean else getattr(step, "center_", None)
    return scale, zeros if center is None else -center * scale


def _output_range(coef: np.ndarray, intercept: float, region: Region) -> tuple[float, float]:
    """Range of the prediction over the domain, rounded outward."""
    slack = _ROUNDING * coef.size * (np.abs(coef * region.box).max(axis=0).sum() + abs(intercept))
    low, high = region.range_of(coef)
    return float(low + intercept - slack), float(high + intercept + slack)


def _check_predictions(
    estimator: Any, coef: np.ndarray, intercept: float, logistic: bool, box: np.ndarray | None
) -> None:
    low, high = (np.zeros(coef.size), np.ones(coef.size)) if box is None else box
    fractions = np.linspace(0, 1, 5)
    points = low + (high - low) * np.stack([np.roll(np.resize(fractions, coef.size), k) for k in range(5)])
    with warnings.catch_warnings():
        # The probe is an array even where the model was trained on a data frame.
        warnings.filterwarnings("ignore", message=".*feature names", category=UserWarning)
        theirs = estimator.predict_proba(points)[:, 1] if logistic else np.ravel(estimator.predict(points))
    z = points @ coef + intercept
    ours = expit(z) if logistic else z
    magnitude = 1.0 if logistic else np.abs(points) @ np.abs(coef) + abs(intercept) + 1e-300
    if not (np.abs(ours - theirs) <= 1e-5 * magnitude).all():
        raise ValueError(
            "The model's predictions must be theta x + c, or the logistic function of it. "
            f"Got other predictions from {estimator!r} instead."
        )
