"""Pipelines of a study of named mechanisms, and their baselines."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skldp._checks import check_choice
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.laws._odds import split_epsilon
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, METRIC_MECHANISMS, PRIVATE_MODELS, make_named
from skldp.study._datasets import StudyData
from skldp.study._released_rows import ReleasedRowsRegressor
from skldp.study._table_files import StudyInputError


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
        return make_named(name, target_bounds=data.target_bounds, classes=data.classes), ["epsilon"]
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
        return [("features", make_named(name, **options))]
    # Rows are scaled to a diameter of 1: epsilon per unit of distance is then epsilon per record.
    shrink = 0.5 / _radius(data)
    back = FunctionTransformer(partial(np.multiply, 1 / shrink))
    return [
        ("to unit diameter", BoundsScaler(bounds=(-1, 1), feature_range=(-shrink, shrink))),
        ("features", make_named(name, radius=0.5, **options)),
        ("from unit diameter", back.set_params(feature_names_out="one-to-one")),
    ]


def _with_labels(
    steps: list[tuple[str, Any]], data: StudyData, settings: ComparisonSettings
) -> tuple[Pipeline, list[str]]:
    """Append the release of labels and the model, and return the parameters that take the epsilon."""
    param_names = ["features__epsilon"] if steps else []
    model = clean_model(data)
    check_choice("--labels", settings.labels, ("none", *LABEL_MECHANISMS), StudyInputError)
    if settings.labels != "none":
        randomized = make_named(settings.labels, classes=data.classes)
        private = LabelPrivateClassifier(model[-1], label_mechanism=randomized)
        model = Pipeline([*model.steps[:-1], ("labels", private)])
        param_names.append("labels__label_mechanism__epsilon")
    if not param_names:
        raise StudyInputError("Nothing takes the epsilons: choose a --mechanism or --labels.")
    return Pipeline([*steps, *model.steps]), param_names


def _radius(data: StudyData) -> float:
    """Return the largest norm of a scaled row, with its target for a regression."""
    return float(np.sqrt(data.X.shape[1] + (data.task == "regression")))
