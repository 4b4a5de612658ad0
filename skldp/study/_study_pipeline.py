"""What a study fits: for the name of a mechanism or a model, the pipeline from a person's record to a prediction."""

from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._encoded_table import TABLE_MECHANISMS, EncodedTablePrivatizer
from skldp.estimators._label_matrix import LabelMatrixRR
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.study._catalogue import (
    METRIC_MECHANISMS,
    PRIVATE_MODELS,
    epsilon_of,
    feature_mechanism,
    label_mechanism,
    private_model,
)
from skldp.study._datasets import StudyData, StudyInputError
from skldp.study._rivals import ReleasedRowsRegressor

if TYPE_CHECKING:
    from skldp.study._comparison import ComparisonSettings

__all__ = ["clean_model", "study_pipeline"]


def study_pipeline(name: str, data: StudyData, settings: "ComparisonSettings") -> tuple[Any, list[str]]:
    """Make what is fitted for one mechanism, and the names of the parameters that take the epsilon."""
    regression = data.task == "regression"
    if name in PRIVATE_MODELS[data.task]:
        if data.attributes:
            raise StudyInputError(
                f"{name} learns one target of a record. Several attributes need a --mechanism that releases rows."
            )
        of_target = {"target_bounds": data.target_bounds} if regression else {"classes": data.classes}
        model = private_model(name, **of_target)
        return model, [epsilon_of(model)]
    steps = _release(name, data, settings)
    if not regression:
        return _with_labels(steps, data, settings)
    if not steps:
        raise StudyInputError("Nothing takes the epsilons: a regression needs a --mechanism.")
    model = clean_model(data)
    # Of one step, so that its epsilon has the same name whatever stands before it.
    return model.set_params(mechanism=Pipeline(steps)), ["mechanism__features__epsilon"]


def clean_model(data: StudyData) -> Any:
    """Make what is fitted on rows that are not private."""
    if data.task == "regression":
        ridge = Pipeline([("standardise", StandardScaler()), ("model", Ridge())])
        return ReleasedRowsRegressor(None, ridge, target_bounds=data.target_bounds)
    # On standardised features it is the default C = 1 on rows of unit norm: with more features, less weight for each.
    # C = 1 overfits so much where features are many that noise in them serves better than none.
    model = LogisticRegression(C=1 / data.X.shape[1], max_iter=1000)
    several = MultiOutputClassifier(model) if data.attributes else model
    return Pipeline([("standardise", StandardScaler()), ("model", several)])


def _release(name: str, data: StudyData, settings: "ComparisonSettings") -> list[tuple[str, Any]]:
    """The steps that release rows; none where they are not private."""
    if name == "none":
        return []
    if name in TABLE_MECHANISMS:
        widths = [len(list(of_one)) for _, of_one in groupby(data.of_column)]
        if max(widths, default=1) == 1:
            raise StudyInputError(f"{name} releases the columns of a table with categories, at least three. Got none.")
        # The target of a regression is the last column.
        widths += [1] * (data.task == "regression")
        release = EncodedTablePrivatizer(widths=widths, category_mechanism=TABLE_MECHANISMS[name])
        return [("features", release.set_params(transform_noise=not settings.clean_test))]
    options: dict[str, Any] = {"transform_noise": not settings.clean_test, "n_bits": settings.bits}
    if data.task == "regression":
        # Vectors, not directions: the target is in the row, and a direction divides it by the row's norm.
        options["norm"] = settings.scaled_radius(data)
    if name not in METRIC_MECHANISMS:
        return [("features", feature_mechanism(name, **options))]
    # Rows are made at most one apart, by public numbers: epsilon per unit of distance is epsilon per record.
    shrink = 0.5 / settings.scaled_radius(data)
    back = FunctionTransformer(partial(np.multiply, 1 / shrink))
    return [
        ("to unit diameter", BoundsScaler(bounds=(-1, 1), feature_range=(-shrink, shrink))),
        ("features", feature_mechanism(name, radius=0.5, **options)),
        ("from unit diameter", back.set_params(feature_names_out="one-to-one")),
    ]


def _with_labels(
    steps: list[tuple[str, Any]], data: StudyData, settings: "ComparisonSettings"
) -> tuple[Pipeline, list[str]]:
    param_names = ["features__epsilon"] if steps else []
    model = clean_model(data)
    if settings.labels != "none":
        fixed = settings.label_epsilon
        epsilon = 1.0 if fixed is None else fixed
        if data.attributes and settings.labels != "label-rr":
            raise StudyInputError(f"Several attributes are released by label-rr. Got {settings.labels!r} instead.")
        randomised = (
            LabelMatrixRR(epsilon, classes=[0, 1])
            if data.attributes
            else label_mechanism(settings.labels, epsilon=epsilon, classes=data.classes)
        )
        private = LabelPrivateClassifier(model[-1], label_mechanism=randomised)
        model = Pipeline([*model.steps[:-1], ("labels", private)])
        if fixed is None:
            param_names.append("labels__label_mechanism__epsilon")
    if not param_names:
        raise StudyInputError("Nothing takes the epsilons: choose a --mechanism, or --labels without --label-epsilon.")
    return Pipeline([*steps, *model.steps]), param_names
