"""Mechanisms and models by name, the pipelines of a study, and its baselines."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import as_numbers
from skldp._checks import check_choice
from skldp.domains._domain import Box
from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._learning import warn_moved
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._validation import check_bounds, check_bounds_by_column, validate_finite
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.laws._odds import split_epsilon
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study._datasets import StudyData
from skldp.study._table_files import StudyInputError

# Transformer of every named mechanism, with its parameters.
FEATURE_MECHANISMS: dict[str, tuple[type, dict[str, Any]]] = {
    "bitrand": (BitRandTransformer, {}),
    "bitrand-exact": (BitRandTransformer, {"calibration": "exact"}),
    "bitrand-unbiased": (BitRandTransformer, {"calibration": "exact", "debias": True}),
    "latent": (LatentTransformer, {}),
    "latent-exact": (LatentTransformer, {"calibration": "exact"}),
    "ome": (OMETransformer, {}),
    "ome-exact": (OMETransformer, {"calibration": "exact"}),
    "duchi": (NumericPrivatizer, {"mechanism": "duchi"}),
    "duchi-vector": (NumericPrivatizer, {"mechanism": "duchi_vector"}),
    "three-outputs": (NumericPrivatizer, {"mechanism": "three_outputs"}),
    "piecewise": (NumericPrivatizer, {"mechanism": "piecewise"}),
    "piecewise-sub": (NumericPrivatizer, {"mechanism": "piecewise_sub"}),
    "piecewise-opt": (NumericPrivatizer, {"mechanism": "piecewise_opt"}),
    "square-wave": (NumericPrivatizer, {"mechanism": "square_wave"}),
    "hybrid": (NumericPrivatizer, {"mechanism": "hybrid"}),
    "hybrid-tp": (NumericPrivatizer, {"mechanism": "hybrid_tp"}),
    "ldp-fl": (NumericPrivatizer, {"mechanism": "ldp_fl"}),
    "laplace": (NumericPrivatizer, {"mechanism": "laplace"}),
    "gaussian": (NumericPrivatizer, {"mechanism": "gaussian", "delta": 1e-6}),
    "best": (NumericPrivatizer, {"mechanism": "best"}),
    # Directions of rows, from the middle of the bounds; a study of a regression declares a norm.
    "privunit": (PrivUnitTransformer, {}),
    "privunit-projected": (RandomProjectionPrivatizer, {"noise": "privunit", "sensitivity": "orthonormal"}),
    # The epsilon of these three is per unit of distance, and plain over a declared radius.
    "multivariate-laplace": (MultivariateLaplacePrivatizer, {}),
    "random-projection": (RandomProjectionPrivatizer, {}),
    "random-projection-exact": (RandomProjectionPrivatizer, {"sensitivity": "spectral"}),
}
METRIC_MECHANISMS = ("multivariate-laplace", "random-projection", "random-projection-exact")
# For each task the models that learn from releases made for them, with their parameters.
PRIVATE_MODELS: dict[str, dict[str, tuple[type, dict[str, Any]]]] = {
    "regression": {
        "linear-rounds": (PrivateLinearRegression, {}),
        "linear-once": (PrivateLinearRegression, {"protocol": "once"}),
    },
    "classification": {
        "logistic-rounds": (PrivateLogisticRegression, {}),
        "logistic-once": (PrivateLogisticRegression, {"protocol": "once"}),
        "discriminant": (PrivateDiscriminant, {}),
    },
}
# Label mechanism of every name, with its parameters.
LABEL_MECHANISMS: dict[str, tuple[type, dict[str, Any]]] = {
    "label-rr": (LabelRR, {}),
    "label-laplace": (LabelLaplace, {}),
}


def takes_delta(name: str) -> bool:
    """Return whether a named mechanism has a delta to choose."""
    return name in FEATURE_MECHANISMS and FEATURE_MECHANISMS[name][1].get("mechanism") in ("gaussian", "best")


def feature_mechanism(
    name: str, *, epsilon: float = 1.0, bounds: Any = (-1, 1), transform_noise: bool = True, **options: Any
) -> Any:
    """Make the transformer of a name; options that it does not have are left out. Nothing in it is tuned."""
    shared = {"epsilon": epsilon, "bounds": bounds, "transform_noise": transform_noise}
    return _make(FEATURE_MECHANISMS, name, shared | options)


def label_mechanism(name: str, *, epsilon: float = 1.0, classes: Any = None) -> Any:
    """Make the label mechanism of a name."""
    return _make(LABEL_MECHANISMS, name, {"epsilon": epsilon, "classes": classes})


def private_model(
    name: str, *, epsilon: float = 1.0, bounds: Any = (-1, 1), target_bounds: Any = None, classes: Any = None
) -> Any:
    """Make the model of a name: a regression if `target_bounds` is given, else a classification."""
    task, of_target = (
        ("classification", {"classes": classes})
        if target_bounds is None
        else ("regression", {"target_bounds": target_bounds})
    )
    known = PRIVATE_MODELS[task]
    check_choice(f"The model of a {task}", name, known, StudyInputError)
    model_class, fixed = known[name]
    return model_class(epsilon=epsilon, bounds=bounds, **fixed, **of_target)


@dataclass(frozen=True)
class ComparisonSettings:
    """Settings of a study over mechanisms.

    `epsilons` are the budgets of a record with its target.
    """

    epsilons: tuple[float, ...]
    labels: str = "label-rr"
    bits: int = 10
    folds: int = 5
    repeats: int = 1
    scoring: str | None = None
    seed: int | None = None

    def budgets(self, name: str, data: StudyData) -> tuple[float, ...]:
        """Return what each release of a mechanism may cost: of a classification's rows and labels, half."""
        in_one = data.task == "regression" or name in PRIVATE_MODELS["classification"] or name == "none"
        if in_one or self.labels == "none":
            return self.epsilons
        return tuple(split_epsilon(epsilon, 2) for epsilon in self.epsilons)


def study_pipeline(name: str, data: StudyData, settings: ComparisonSettings) -> tuple[Any, list[str]]:
    """Make the pipeline of one mechanism, and the names of its parameters that take the epsilon."""
    regression = data.task == "regression"
    if name in PRIVATE_MODELS[data.task]:
        of_target = {"target_bounds": data.target_bounds} if regression else {"classes": data.classes}
        return private_model(name, **of_target), ["epsilon"]
    known = ("none", *PRIVATE_MODELS[data.task], *FEATURE_MECHANISMS)
    check_choice(f"The mechanism of a {data.task}", name, known, StudyInputError)
    steps = _release(name, data, settings)
    if not regression:
        return _with_labels(steps, data, settings)
    if not steps:
        raise StudyInputError("Nothing takes the epsilons: a regression needs a --mechanism.")
    model = clean_model(data)
    # One step: its epsilon has the same name for every mechanism.
    return model.set_params(mechanism=Pipeline(steps)), ["mechanism__features__epsilon"]


def clean_model(data: StudyData) -> Any:
    """Make the model of rows that are not private."""
    if data.task == "regression":
        ridge = Pipeline([("standardise", StandardScaler()), ("model", Ridge())])
        return ReleasedRowsRegressor(None, ridge, target_bounds=data.target_bounds)
    # On standardised features this equals the default C = 1 on rows of unit norm.
    # With many features, C = 1 overfits so much that noise improves the score.
    model = LogisticRegression(C=1 / data.X.shape[1], max_iter=1000)
    return Pipeline([("standardise", StandardScaler()), ("model", model)])


def _release(name: str, data: StudyData, settings: ComparisonSettings) -> list[tuple[str, Any]]:
    """Return the steps that release rows; none if rows are not private."""
    if name == "none":
        return []
    options: dict[str, Any] = {"transform_noise": False, "n_bits": settings.bits}
    if data.task == "regression":
        # A direction would divide the target, which is in the row, by the norm of the row.
        options["norm"] = _radius(data)
    if name not in METRIC_MECHANISMS:
        return [("features", feature_mechanism(name, **options))]
    # Rows are scaled to a diameter of 1: epsilon per unit of distance is then epsilon per record.
    shrink = 0.5 / _radius(data)
    back = FunctionTransformer(partial(np.multiply, 1 / shrink))
    return [
        ("to unit diameter", BoundsScaler(bounds=(-1, 1), feature_range=(-shrink, shrink))),
        ("features", feature_mechanism(name, radius=0.5, **options)),
        ("from unit diameter", back.set_params(feature_names_out="one-to-one")),
    ]


def _with_labels(
    steps: list[tuple[str, Any]], data: StudyData, settings: ComparisonSettings
) -> tuple[Pipeline, list[str]]:
    """Append the release of labels and the model, and return the parameters that take the epsilon."""
    param_names = ["features__epsilon"] if steps else []
    model = clean_model(data)
    if settings.labels != "none":
        randomized = label_mechanism(settings.labels, classes=data.classes)
        private = LabelPrivateClassifier(model[-1], label_mechanism=randomized)
        model = Pipeline([*model.steps[:-1], ("labels", private)])
        param_names.append("labels__label_mechanism__epsilon")
    if not param_names:
        raise StudyInputError("Nothing takes the epsilons: choose a --mechanism or --labels.")
    return Pipeline([*steps, *model.steps]), param_names


def _radius(data: StudyData) -> float:
    """Return the largest norm of a scaled row, with its target for a regression."""
    return float(np.sqrt(data.X.shape[1] + (data.task == "regression")))


def _make(catalogue: dict[str, tuple[type, dict[str, Any]]], name: str, options: dict[str, Any]) -> Any:
    check_choice("The mechanism", name, catalogue, StudyInputError)
    estimator_class, fixed = catalogue[name]
    estimator = estimator_class()
    known = estimator.get_params(deep=False)
    return estimator.set_params(**{key: value for key, value in (fixed | options).items() if key in known})


_Array = npt.NDArray[np.float64]


class ReleasedRowsRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Regression on rows that were released with their target by one mechanism.

    Parameters
    ----------
    mechanism : transformer or None
        Releases rows between -1 and 1, with the same columns and on the same scale: PrivUnit with a declared `norm`,
        since a direction divides the target by the norm of its row. None fits on the rows as they are: no privacy.
    estimator : regressor
        Cloned and fitted.
    bounds, target_bounds : (low, high), default=(-1, 1)
        Declared bounds. Rows, targets and predictions are clipped to them.

    Attributes
    ----------
    estimator_ : regressor
    mechanism_ : transformer or None
    privacy_guarantee_ : PrivacyGuarantee
        Guarantee of the mechanism, for the record with its target. There is none without a mechanism.

    Raises
    ------
    ValueError
        If a release has other columns than its row, so that none of them is the target's.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study import ReleasedRowsRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5_000, 2))
    >>> mechanism = NumericPrivatizer(40.0, mechanism="piecewise", transform_noise=False)
    >>> model = ReleasedRowsRegressor(mechanism, LinearRegression()).fit(X, X @ [0.5, 0.2])
    >>> model.score(X, X @ [0.5, 0.2]) > 0.9
    True
    """

    def __init__(self, mechanism: Any, estimator: Any, *, bounds: Any = (-1, 1), target_bounds: Any = (-1, 1)) -> None:
        self.mechanism = mechanism
        self.estimator = estimator
        self.bounds = bounds
        self.target_bounds = target_bounds

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Release the rows with their targets, and fit the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        rows, target = self._records(X, y)
        self.mechanism_ = None if self.mechanism is None else clone(self.mechanism)
        if self.mechanism_ is not None:
            released = np.asarray(self.mechanism_.fit_transform(np.column_stack([rows, target])), dtype=np.float64)
            names = [f"x{i}" for i in range(rows.shape[1] + 1)]
            if list(self.mechanism_.get_feature_names_out(names)) != names:
                raise ValueError(
                    "A release must have the columns of its row, of which the last is the target; "
                    "got a mechanism that makes other columns of them."
                )
            rows, target = released[:, :-1], released[:, -1:]
        self.estimator_ = clone(self.estimator).fit(rows, target[:, 0])
        return self

    def predict(self, X: npt.ArrayLike) -> _Array:
        """Predict within the declared bounds, from rows as the mechanism transforms them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = self._unit(validate_finite(self, X, reset=False, dtype=np.float64))
        if self.mechanism_ is not None:
            # An unknown target is the middle of its bounds.
            rows = np.asarray(self.mechanism_.transform(np.column_stack([rows, np.zeros(len(rows))])))[:, :-1]
        return self._from_unit(self.estimator_.predict(rows))

    def _records(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[_Array, _Array]:
        """Return features and targets, clipped and scaled to [-1, 1]."""
        rows, target = validate_finite(self, X, y=y, reset=True, dtype=np.float64, y_numeric=True)
        target = as_numbers(target, "y")
        low, high = check_bounds_by_column(self.bounds, self)
        of_target = self._of_target()
        box = Box.of(np.append(low, of_target.low), np.append(high, of_target.high))
        warn_moved(self, rows, target[:, None], box)
        return self._unit(rows), _to_unit(target[:, None], of_target)

    def _unit(self, rows: _Array) -> _Array:
        return _to_unit(rows, Box.of(*check_bounds_by_column(self.bounds, self)))

    def _of_target(self) -> Box:
        return Box.of(*check_bounds(self.target_bounds, 1, "target_bounds"))

    def _from_unit(self, predicted: _Array) -> _Array:
        box = self._of_target()
        result: _Array = box.center[0] + box.radius[0] * np.clip(predicted, -1, 1)
        return result

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The targets of scikit-learn's checks lie outside the default bounds and are clipped.
        tags.regressor_tags.poor_score = True
        return tags

    @property
    def privacy_guarantee_(self) -> PrivacyGuarantee:
        """Guarantee of the mechanism."""
        if getattr(self, "mechanism_", None) is None:
            raise AttributeError("Rows that were not released have no privacy guarantee.")
        return privacy_guarantee(self.mechanism_)


def _to_unit(rows: _Array, box: Box) -> _Array:
    inside: _Array = box.clip(np.ascontiguousarray(rows)).rows
    return np.clip((inside - box.center) / box.radius, -1, 1)
