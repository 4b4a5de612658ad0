"""Mechanisms and models by name, the pipelines of a study, and its baselines."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skldp._checks import check_choice
from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.laws._odds import split_epsilon
from skldp.study._datasets import StudyData
from skldp.study._released_rows import ReleasedRowsRegressor
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
