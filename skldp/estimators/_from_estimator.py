"""Queries from fitted scikit-learn models."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._regression_query import MAX_GROWTH, Kind, RegressionQuery
from skldp.accounting.losses._region import Bounds, Region, region_of
from skldp.estimators._validation import check_bounds_by_column, warn
from skldp.exceptions import OutOfDomainWarning

_ROUNDING = 2.0**-50
_Link = Literal["identity", "decision", "log", "logistic"]
# Kind of query if the model stays within its output bounds, and if it may leave them.
_KINDS: dict[_Link, tuple[Kind, Kind]] = {
    "identity": ("linear", "truncated"),
    "decision": ("linear", "truncated"),
    "log": ("exponential", "exponential"),
}
# Largest exponent of a query.
_LARGEST_EXPONENT = 200.0


def query_from_estimator(
    estimator: Any,
    *,
    epsilon: float,
    bounds: Bounds | dict[str, Any] | None = None,
    output_bounds: tuple[float, float] | None = None,
    of_class: Any = None,
) -> RegressionQuery | ClassQuery | SoftmaxQuery:
    r"""Make a query from a fitted linear model; raise ValueError for another one, as a comparison of predictions says.

    The model is one that ``predict`` gives :math:`\theta x + c` or the exponential of it, or a classifier by the
    logistic function of it, by its sign or by the largest of several. The maps of scalers are folded into the
    coefficients. `bounds` are the domain of x and `output_bounds` the two values of an answer, by default the exact
    range over `bounds`. `of_class` is the class of a softmax model whose probability is asked.
    """
    if isinstance(bounds, dict):
        bounds = check_bounds_by_column(bounds, estimator)
    steps, target, model = _unwrap(estimator)
    if is_classifier(model) and len(getattr(model, "classes_", [])) > 2:
        if output_bounds is not None:
            raise ValueError(f"output_bounds must be None for a query of classes; got {output_bounds!r}.")
        return _class_query(estimator, steps, model, epsilon, bounds, of_class)
    if of_class is not None:
        raise ValueError(
            "of_class needs a classifier with more than two classes; with two, a query is about the second; "
            f"got of_class={of_class!r} and {type(model).__name__}."
        )
    coef, intercept, link = _model_map(model)
    coef, intercept, link = _with_target(target, coef, intercept, link)
    coef, intercept = _folded(steps, coef, intercept)
    RegressionQuery("logistic", coef, intercept, (0.0, 1.0), epsilon)
    region = None if bounds is None else region_of(bounds, n_features=coef.size)
    _check_predictions(estimator, coef, intercept, link, None if region is None else region.box)
    if link == "logistic":
        wanted = (0.0, 1.0) if output_bounds is None else output_bounds
        return RegressionQuery("logistic", coef, intercept, wanted, epsilon)
    if region is None:
        if output_bounds is None:
            raise ValueError("A regressor needs bounds or output_bounds, from public knowledge; got None for both.")
        return RegressionQuery(_KINDS[link][1], coef, intercept, output_bounds, epsilon)
    low, high = _output_range(coef, intercept, region)
    if output_bounds is None:
        if low == high:
            raise ValueError(f"The model must depend on x; got one that predicts {low!r} everywhere within the bounds.")
        ends = _exponentials(low, high) if link == "log" else (low, high)
        return RegressionQuery(_KINDS[link][0], coef, intercept, ends, epsilon)
    query = RegressionQuery(_KINDS[link][1], coef, intercept, output_bounds, epsilon)
    a, b = query.argument_bounds
    slack = _ROUNDING * coef.size * (np.abs(coef) @ np.abs(region.box).max(axis=0) + abs(intercept))
    if a <= low + slack and high - slack <= b:
        return RegressionQuery(_KINDS[link][0], coef, intercept, output_bounds, epsilon)
    what = "logarithm over the bounds reaches" if link == "log" else "predictions over the bounds reach"
    warn(
        f"The model's {what} from {low:.6g} to {high:.6g}, beyond output_bounds (there {a:.6g} to {b:.6g}). "
        "Predictions beyond are truncated to them.",
        OutOfDomainWarning,
    )
    return query


def imputed_values(estimator: Any) -> npt.NDArray[np.float64] | None:
    """Return the values of a frozen SimpleImputer that is the first step, shape (n_features,); else None."""
    is_frozen = False
    while True:
        if isinstance(estimator, FrozenEstimator):
            is_frozen, estimator = True, estimator.estimator
        elif isinstance(estimator, Pipeline):
            estimator = estimator.steps[0][1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, TransformedTargetRegressor):
            estimator = estimator.regressor_
        else:
            filled = is_frozen and isinstance(estimator, SimpleImputer)
            # scikit-learn keeps a constant as a Python object.
            return np.asarray(estimator.statistics_, dtype=np.float64) if filled else None


def _folded(steps: list[Any], coef: Any, intercept: Any) -> tuple[Any, Any]:
    """Fold the maps of the steps into coefficients and intercepts of one or several linear forms."""
    # The query refuses overflowed coefficients.
    with np.errstate(all="ignore"):
        for step in reversed(steps):
            scale, shift = _step_map(step, coef.shape[-1])
            intercept = intercept + coef @ shift
            coef = coef * scale
    return coef, intercept


def _class_query(
    estimator: Any, steps: list[Any], model: Any, epsilon: float, bounds: Bounds | None, of_class: Any
) -> ClassQuery | SoftmaxQuery:
    """Return the query of the predicted class, or of the probability of one."""
    name, n_classes = type(model).__name__, len(model.classes_)
    coef = getattr(model, "coef_", np.zeros(0))
    coef = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef, dtype=np.float64)
    if coef.ndim != 2 or len(coef) != n_classes:
        raise ValueError(
            "A query of classes needs a linear model with one row of coef_ per class. Or fit "
            "sklearn.multiclass.OneVsRestClassifier and make one query per class from its estimators_; "
            f"got {name}."
        )
    intercept = np.broadcast_to(np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64), n_classes)
    coef, intercept = _folded(steps, coef.astype(np.float64), intercept)
    query = ClassQuery(coef, intercept, epsilon)
    points = _probes(None if bounds is None else region_of(bounds, n_features=query.n_features).box, query.n_features)
    with _without_names():
        predicted = np.searchsorted(model.classes_, estimator.predict(points))
    scores = points @ coef.T + intercept
    short = scores.max(axis=1) - scores[np.arange(len(points)), predicted]
    if not (short <= 1e-5 * (np.abs(points) @ np.abs(coef).max(axis=0) + np.abs(intercept).max())).all():
        raise ValueError(
            f"The model must predict the class whose theta x + c is largest; got other predictions from {name}."
        )
    return query if of_class is None else _softmax_query(estimator, model, query, points, of_class)


def _softmax_query(
    estimator: Any, model: Any, query: ClassQuery, points: npt.NDArray[np.float64], of_class: Any
) -> SoftmaxQuery:
    """Return the query of one class's probability; raise ValueError unless the model is a softmax."""
    classes = list(model.classes_)
    if of_class not in classes:
        raise ValueError(f"of_class must be one of the model's classes {classes!r}; got {of_class!r}.")
    found = SoftmaxQuery(query.coef, query.intercept, classes.index(of_class), query.epsilon)
    is_softmax = hasattr(model, "predict_proba")
    if is_softmax:
        with _without_names():
            theirs = estimator.predict_proba(points)[:, found.position]
        is_softmax = bool((np.abs(found.unit_response(points) - theirs) <= 1e-5).all())
    if not is_softmax:
        raise ValueError(
            "of_class needs a model whose predict_proba is the softmax of theta x + c, such as LogisticRegression; "
            f"got {type(model).__name__}."
        )
    return found


def _unwrap(estimator: Any) -> tuple[list[Any], Any, Any]:
    """Split into transformers, first to last, the transformer of the target (None for none), and the final model."""
    steps: list[Any] = []
    target = None
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            steps += [step for _, step in estimator.steps[:-1]]
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, TransformedTargetRegressor):
            check_is_fitted(estimator)
            if target is not None:
                raise ValueError(f"The target must be transformed once; got {estimator!r} within another one.")
            target, estimator = estimator.transformer_, estimator.regressor_
        else:
            return steps, target, estimator


def _with_target(
    target: Any, coef: npt.NDArray[np.float64], intercept: float, link: _Link
) -> tuple[npt.NDArray[np.float64], float, _Link]:
    """Undo the transformation of the target."""
    if target is None or (isinstance(target, FunctionTransformer) and target.inverse_func is None is target.func):
        return coef, intercept, link
    if link != "identity":
        raise ValueError(f"A transformed target needs a linear regressor; got {target!r} around another model.")
    if isinstance(target, FunctionTransformer):
        if target.func is np.log and target.inverse_func is np.exp:
            return coef, intercept, "log"
        raise ValueError(
            "A function of the target must be its logarithm, func=np.log with inverse_func=np.exp, because the loss of "
            f"others cannot be certified; got {target!r}."
        )
    scale, shift = _step_map(target, 1)
    # y = (z - shift) / scale.
    return coef / scale[0], float((intercept - shift[0]) / scale[0]), link


def _link_of(model: Any) -> _Link:
    """Return the link between the linear form and the prediction."""
    if is_classifier(model):
        return "logistic" if hasattr(model, "predict_proba") else "decision"
    if isinstance(model, PoissonRegressor | GammaRegressor):
        return "log"
    if isinstance(model, TweedieRegressor):
        return "log" if model.link == "log" or (model.link == "auto" and model.power > 0) else "identity"
    return "identity"


def _exponentials(low: float, high: float) -> tuple[float, float]:
    """Return the range of the exponential, rounded outward; raise ValueError if it is too wide."""
    if not -_LARGEST_EXPONENT <= low <= high <= _LARGEST_EXPONENT or high - low > MAX_GROWTH:
        raise ValueError(
            f"Predictions over the bounds must not range from e^{low:.6g} to e^{high:.6g}: a two-valued answer would "
            "carry no information. Give narrower output_bounds."
        )
    return math.exp(low) * (1 - _ROUNDING), math.exp(high) * (1 + _ROUNDING)


def _model_map(model: Any) -> tuple[npt.NDArray[np.float64], float, _Link]:
    name = type(model).__name__
    check_is_fitted(model)
    if not hasattr(model, "coef_"):
        raise ValueError(
            "A query needs a linear model with coef_, because the loss of others cannot be certified. Fit a linear "
            f"model to its predictions on public data; got {name}."
        )
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_, dtype=np.float64)
    intercept = np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64)
    if coef.size == 0 or coef.size != coef.shape[-1] or intercept.size != 1:
        raise ValueError(f"The model must have one output; got {name} with coef_ of shape {coef.shape}.")
    return coef.reshape(-1).astype(np.float64), float(intercept.reshape(-1)[0]), _link_of(model)


def _step_map(step: Any, n_features: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return scale and shift of an elementwise affine step, x -> scale * x + shift."""
    ones, zeros = np.ones(n_features), np.zeros(n_features)
    if isinstance(step, FrozenEstimator):
        step = step.estimator
    if isinstance(step, SimpleImputer):
        # Rows are imputed before the query.
        _check_imputer(step, n_features)
        return ones, zeros
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
            "clipping, or a SimpleImputer, because only affine maps can be folded into the query. Apply other steps to "
            f"the rows beforehand; got {step!r}."
        )
    check_is_fitted(step)
    if isinstance(step, MinMaxScaler):
        return step.scale_, step.min_
    scale = ones if getattr(step, "scale_", None) is None else 1.0 / step.scale_
    # StandardScaler has a mean_ even if it does not subtract it.
    center = step.mean_ if isinstance(step, StandardScaler) and step.with_mean else getattr(step, "center_", None)
    return scale, zeros if center is None else -center * scale


def _check_imputer(step: SimpleImputer, n_features: int) -> None:
    """Raise ValueError unless an imputer leaves rows without NaN as they are."""
    check_is_fitted(step)
    marks_nan = isinstance(step.missing_values, float) and math.isnan(step.missing_values)
    values = np.asarray(step.statistics_, dtype=np.float64)
    if not marks_nan or step.add_indicator or np.isnan(values).any() or len(values) != n_features:
        raise ValueError(
            "A SimpleImputer must fill in NaN alone, without an indicator and without dropping a feature; "
            f"got {step!r}."
        )


def _output_range(coef: np.ndarray, intercept: float, region: Region) -> tuple[float, float]:
    """Return the range of the prediction over the domain, rounded outward."""
    slack = _ROUNDING * coef.size * (np.abs(coef * region.box).max(axis=0).sum() + abs(intercept))
    low, high = region.range_of(coef)
    return float(low + intercept - slack), float(high + intercept + slack)


def _probes(box: np.ndarray | None, n_features: int) -> npt.NDArray[np.float64]:
    """Return a few points of the domain."""
    low, high = (np.zeros(n_features), np.ones(n_features)) if box is None else box
    fractions = np.linspace(0, 1, 5)
    points: npt.NDArray[np.float64] = low + (high - low) * np.stack(
        [np.roll(np.resize(fractions, n_features), k) for k in range(5)]
    )
    return points


@contextmanager
def _without_names() -> Iterator[None]:
    """Ignore warnings of feature names: probes are arrays."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*feature names", category=UserWarning)
        yield


def _check_predictions(estimator: Any, coef: np.ndarray, intercept: float, link: _Link, box: np.ndarray | None) -> None:
    points = _probes(box, coef.size)
    with _without_names():
        if link == "logistic":
            theirs = estimator.predict_proba(points)[:, 1]
        else:
            theirs = np.ravel(estimator.decision_function(points) if link == "decision" else estimator.predict(points))
    z = points @ coef + intercept
    magnitude = np.abs(points) @ np.abs(coef) + abs(intercept) + 1e-300
    with np.errstate(all="ignore"):
        if link == "logistic":
            ours, magnitude = expit(z), np.ones_like(z)
        elif link == "log":
            ours, theirs = z, np.log(theirs)
        else:
            ours = z
    # Overflow and underflow of a log link cannot be compared.
    comparable = np.isfinite(theirs) if link == "log" else np.ones(len(z), dtype=bool)
    if not comparable.any() or not (np.abs(ours - theirs) <= 1e-5 * magnitude)[comparable].all():
        raise ValueError(
            "The model's predictions must be theta x + c, or the logistic function or the exponential of it; "
            f"got other predictions from {estimator!r}."
        )
