"""Comparison of mechanisms on the same data, folds, labels and model."""

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skldp._checks import check_choice
from skldp.domains._column import Column
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.laws._odds import split_epsilon
from skldp.study._catalogue import FEATURE_MECHANISMS, LABEL_MECHANISMS, METRIC_MECHANISMS, PRIVATE_MODELS, make_named
from skldp.study._curve import privacy_utility_curve
from skldp.study._datasets import StudyData
from skldp.study._released_rows import ReleasedRowsRegressor
from skldp.study._results import CurvePoint, PrivacyUtilityCurve, ResultTable, score_label, stacked
from skldp.study._table_files import StudyInputError, looks_skewed, some_names

# Allowance for rounding: a mechanism that spends exactly its stated epsilon keeps to it.
_TOLERANCE = 1 + 1e-6
# Largest epsilon of the mechanisms that are shown first: odds about a person then grow at most 55-fold.
HEADLINE_EPSILON = 4.0
# Score of a study.
_SCORES = {"classification": "accuracy", "regression": "r2"}


@dataclass(frozen=True)
class ComparisonSettings:
    """Settings of a study over mechanisms."""

    epsilons: tuple[float, ...]  # of a record with its target
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


def compare_mechanisms(
    data: StudyData,
    names: Iterable[str],
    settings: ComparisonSettings,
    *,
    skip_unfit: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> "MechanismComparison":
    """Compute the curve of every mechanism, "none" of features that are not private, and the baselines once."""
    names = list(names)
    if not names:
        raise StudyInputError("A study needs at least one mechanism.")
    plans = {name: study_pipeline(name, data, settings) for name in names}
    X, n_clipped = data.scaled()
    kind = KFold if data.task == "regression" else StratifiedKFold
    folds = kind(settings.folds, shuffle=True, random_state=0)
    curves: dict[str, PrivacyUtilityCurve] = {}
    left_out: dict[str, str] = {}
    first_error: ValueError | None = None
    with warnings.catch_warnings():
        # The result holds both epsilons; its caption names the seed, small groups and clipped values.
        for category in (PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning, OutOfDomainWarning):
            warnings.simplefilter("ignore", category)
        for i, (name, (pipeline, param_names)) in enumerate(plans.items(), 1):
            try:
                curves[name] = privacy_utility_curve(
                    pipeline,
                    X,
                    data.y,
                    param_name=param_names,
                    epsilons=settings.budgets(name, data),
                    cv=folds,
                    scoring=settings.scoring or _SCORES[data.task],
                    n_repeats=settings.repeats,
                    n_jobs=n_jobs,
                    # The clean baseline is fitted once, with the first curve.
                    clean_estimator=None if curves else clean_model(data),
                    seed=settings.seed,
                    verbose=verbose and f"{name} ({i} of {len(plans)}), fits",
                )
            except StudyInputError:
                raise
            except ValueError as error:
                if not skip_unfit:
                    raise
                first_error = first_error or error
                # The text of another library may contain a value.
                left_out[name] = f"it raised {type(error).__name__}; study {name} alone to see the error."
    if first_error is not None and not curves:
        raise first_error
    first = next(iter(curves.values()))
    curves = {
        name: replace(curve, clean_mean=first.clean_mean, clean_std=first.clean_std) for name, curve in curves.items()
    }
    return MechanismComparison(data, settings, n_clipped, curves, left_out)


@dataclass(frozen=True)
class MechanismComparison(ResultTable):
    """Curves of all mechanisms on the same baselines."""

    data: StudyData
    settings: ComparisonSettings
    n_clipped: int
    curves: dict[str, PrivacyUtilityCurve]
    left_out: dict[str, str]  # reason, by mechanism

    @property
    def first(self) -> PrivacyUtilityCurve:
        """First of the curves, whose baselines and score are those of all."""
        return next(iter(self.curves.values()))

    def stated_budgets(self) -> list[float]:
        """Return the stated epsilons in order, with the share of the label."""
        stated = sorted({point.stated_epsilon for curve in self.curves.values() for point in curve})
        # Of budgets that differ by rounding, keep the largest.
        return [one for one, following in pairwise([*stated, math.inf]) if following > one * _TOLERANCE]

    def to_dict(self) -> dict[str, np.ndarray]:
        """Return all curves as one dict of arrays, the first columns the names of the data and of the mechanism."""
        columns = stacked("mechanism", self.curves)
        # It is of one release. Stated and exact epsilons are of the record.
        del columns["epsilon"]
        return {"data": np.full(len(columns["mechanism"]), self.data.name)} | columns

    def ranking(self, budget: float) -> list[tuple[str, CurvePoint]]:
        """Return the best point of each mechanism with an exact epsilon of at most `budget`, the best score first."""
        best = {
            name: max(kept, key=lambda point: point.score_mean)
            for name, curve in self.curves.items()
            # "none" spends its epsilon only on the label.
            if name != "none" and (kept := [point for point in curve if point.exact_epsilon <= budget * _TOLERANCE])
        }
        return sorted(best.items(), key=lambda item: -item[1].score_mean)

    def weaker_than_stated(self) -> list[str]:
        """Return the mechanisms whose exact epsilon exceeds the stated one at some point."""
        return [
            name
            for name, curve in self.curves.items()
            if any(point.exact_epsilon > point.stated_epsilon * _TOLERANCE for point in curve)
        ]

    def headline(self) -> list[str]:
        """Describe the data, and name the best mechanism within a small exact epsilon."""
        data = self.data
        target = "a numeric target" if data.task == "regression" else f"{len(data.classes)} classes"
        about = f"{data.name}: {len(data.X):,} rows, {data.X.shape[1]} feature{'s' * (data.X.shape[1] > 1)}, {target}."
        return [about, self._best(HEADLINE_EPSILON)]

    def notes(self) -> list[str]:
        """Return what a reader of the scores must know, one sentence a line."""
        data = self.data
        columns = f" ({some_names(data.columns_clipped()[:4])})" if data.of_column else ""
        settings, left_out = self.settings, [f"{name} was left out: {why}" for name, why in self.left_out.items()]
        lines = {
            f"Values clipped to the {data.bounds_source}{columns}: {self.n_clipped:,}.": self.n_clipped,
            f"Values of the target clipped for training: {data.n_targets_clipped:,}.": data.n_targets_clipped,
            f"The categories of {some_names(data.found)} come from the file, and no epsilon covers that: declare them "
            "by --schema unless they are public.": data.found,
            f"Missing or undeclared values: {data.n_filled:,}. Columns of a schema take them as declared, other "
            "numbers as the middle of their bounds, other texts as the category 'missing'.": data.n_filled,
            f"The rows ascend by {some_names(data.row_numbers())}, as row numbers do, from which a model learns the "
            "order of the file: name the other columns by --columns, unless it is known of a person.": (
                data.row_numbers()
            ),
            f"Values of {some_names(data.skewed)} lie near the low end of their bounds, or the bounds span a factor of "
            '100: if they are skewed, declare them in --schema with "scale": "log" and a low above 0.': data.skewed,
            "Values of the target lie near the low end of its bounds, or these span a factor of 100: if it is skewed, "
            "predict its logarithm by --target-transform log.": (
                data.target_bounds is not None and looks_skewed(Column(*data.target_bounds), data.y)
            ),
            "Training labels are not private.": settings.labels == "none" and data.task == "classification",
            "With none the features are not private: its epsilon counts only the label.": "none" in self.curves,
            **dict.fromkeys(left_out, True),
            f"The noise comes from seed {settings.seed}: no privacy against anyone who knows it.": (
                settings.seed is not None
            ),
        }
        return [line for line, applies in lines.items() if applies]

    def caption(self) -> list[str]:
        """Describe the study below its headline, one sentence a line."""
        data, settings = self.data, self.settings
        lines = [
            *self.notes(),
            f"{settings.folds} folds x {settings.repeats} releases; features are scaled to [-1, 1] by their "
            f"{data.bounds_source}. Training rows are released; test rows are not.",
        ]
        if data.target_bounds is not None:
            low, high = data.target_bounds
            lines.append(
                f"The declared bounds of the target are {low:g} and {high:g}. On rows released with their target the "
                "model is ridge regression."
            )
        else:
            lines.append(
                f"On released, standardized rows the model is logistic regression with C = 1/{data.X.shape[1]}."
            )
            if settings.labels != "none":
                lines.append(
                    f"Labels are randomized by {settings.labels}. Features and label have half of epsilon each."
                )
        if models := [name for name in self.curves if name in PRIVATE_MODELS[data.task]]:
            lines.append(
                f"{', '.join(models)}: no rows are released; each person answers one question of the model, at the "
                "epsilon of the complete record with its target."
            )
        if any(name in METRIC_MECHANISMS for name in self.curves):
            lines.append("Guarantees per unit of distance are counted over the diameter of the bounds.")
        return [*lines, '"Exact" is the worst case over one complete record. Only the exact epsilon is a guarantee.']

    def _best(self, budget: float) -> str:
        """Return a sentence on the best mechanism within a budget, or on the smallest exact epsilon."""
        first = self.first
        if not (ranking := self.ranking(budget)):
            private = [(min(p.exact_epsilon for p in curve), name) for name, curve in self.curves.items()]
            if private == [one for one in private if one[1] == "none"]:
                return f"No exact epsilon is at most {budget:g}: the features are not private."
            least, name = min(one for one in private if one[1] != "none")
            return (
                f"No exact epsilon is at most {budget:g}; the smallest is {least:.4g}, of {name}. Set smaller "
                "--epsilons; mechanisms named -exact keep the stated epsilon."
            )
        name, point = ranking[0]
        kept, most = point.score_mean - first.majority_mean, first.clean_mean - first.majority_mean
        if kept <= 0:
            return f"At an exact epsilon of at most {budget:g} nothing is better than a constant prediction."
        learnt = f", {kept / most:.0%} of what is learnt without privacy" if kept <= most else ""
        return (
            f"Best at an exact epsilon of at most {budget:g}: {name}, {score_label(first.scoring)} "
            f"{point.score_mean:.3f} at {point.exact_epsilon:.4g}{learnt}."
        )


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
        ("to unit diameter", BoundsScaler(bounds=(-1 / shrink, 1 / shrink))),
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
