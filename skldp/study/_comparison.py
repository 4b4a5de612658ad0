"""Comparison of mechanisms on the same data, folds, labels and model."""

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning._protocol import n_people_needed
from skldp.study._curve import privacy_utility_curve
from skldp.study._datasets import StudyData
from skldp.study._pipelines import METRIC_MECHANISMS, PRIVATE_MODELS, ComparisonSettings, clean_model, study_pipeline
from skldp.study._results import CurvePoint, PrivacyUtilityCurve, ResultTable, stacked
from skldp.study._table_files import StudyInputError

# Allowance for rounding: a mechanism that spends exactly its stated epsilon keeps to it.
_TOLERANCE = 1 + 1e-6
# Largest epsilon of the mechanisms that are shown first: odds about a person then grow at most 55-fold.
HEADLINE_EPSILON = 4.0
# Score of a study.
_SCORES = {"classification": "accuracy", "regression": "r2"}


def compare_mechanisms(
    data: StudyData,
    names: Iterable[str],
    settings: ComparisonSettings,
    *,
    skip_unfit: bool = False,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> "MechanismComparison":
    """Run :func:`~skldp.privacy_utility_curve` for every mechanism, and the baselines once.

    `names` are keys of ``FEATURE_MECHANISMS``, of the ``PRIVATE_MODELS`` of the task or of ``TABLE_MECHANISMS``, or
    "none" for features that are not private. `skip_unfit` leaves out mechanisms that cannot be fitted. `progress` is
    called as ``progress(name, done, total)`` after each fit.
    """
    names = list(names)
    if not names:
        raise StudyInputError("A study needs at least one mechanism.")
    plans = {name: study_pipeline(name, data, settings) for name in names}
    X, n_clipped = data.scaled()
    kind = KFold if data.task == "regression" else StratifiedKFold
    folds = kind(settings.folds, shuffle=True, random_state=0)
    per_curve = settings.folds * (settings.repeats * len(settings.epsilons) + 1)
    total, done = per_curve * len(names) + settings.folds, 0
    clean = clean_model(data)
    curves: dict[str, PrivacyUtilityCurve] = {}
    left_out: dict[str, str] = {}
    first_error: ValueError | None = None
    with warnings.catch_warnings():
        # The result holds both epsilons; its caption names the seed, small groups and clipped values.
        for category in (PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning, OutOfDomainWarning):
            warnings.simplefilter("ignore", category)
        for name, (pipeline, param_names) in plans.items():
            # The clean baseline is fitted once, with the first curve.
            clean_fits = 0 if curves else settings.folds

            def count(part: int, _: int, name: str = name, before: int = done) -> None:
                if progress is not None:
                    progress(name, before + part, total)

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
                    clean_estimator=None if curves else clean,
                    seed=settings.seed,
                    progress=count,
                )
            except StudyInputError:
                raise
            except ValueError as error:
                if not skip_unfit:
                    raise
                first_error = first_error or error
                # The text of another library may contain a value.
                left_out[name] = f"it raised {type(error).__name__}; study {name} alone to see the error."
            done += per_curve + (clean_fits if name in curves else 0)
    if first_error is not None and not curves:
        raise first_error
    first = next(iter(curves.values()))
    curves = {
        name: replace(curve, clean_mean=first.clean_mean, clean_std=first.clean_std) for name, curve in curves.items()
    }
    return MechanismComparison(data, settings, n_clipped, curves, left_out)


def _notes_on_table(data: StudyData) -> list[str]:
    """Return notes on the categories of a table and on its missing values."""
    found = (
        f"The categories of {', '.join(data.found)} come from the file, and no epsilon covers that: declare "
        "them by --schema unless they are public."
    )
    filled = f"{data.n_filled:,} missing values are the middle of the bounds, or a category of their own."
    return [line for line, applies in ((found, data.found), (filled, data.n_filled)) if applies]


@dataclass(frozen=True)
class MechanismComparison(ResultTable):
    """Curves of all mechanisms on the same baselines.

    `n_clipped` is the number of clipped values, `left_out` maps mechanisms that could not be fitted to the reason.
    """

    data: StudyData
    settings: ComparisonSettings
    n_clipped: int
    curves: dict[str, PrivacyUtilityCurve]
    left_out: dict[str, str]

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
        """Return all curves as one dict of arrays, the first column the name of the mechanism."""
        return stacked("mechanism", self.curves)

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

    def caption(self) -> list[str]:
        """Describe the study, one sentence a line."""
        data, settings = self.data, self.settings
        n_rows, n_features = data.X.shape
        regression = data.task == "regression"
        columns = ", ".join(data.columns_clipped()[:4]) if data.of_column else ""
        lines = [
            f"{data.name}: {n_rows:,} rows, {n_features} features, "
            f"{'a numeric target' if regression else f'{len(data.classes)} classes'}; "
            f"{settings.folds} folds x {settings.repeats} releases.",
            f"Features are scaled to [-1, 1] by their {data.bounds_source}; {self.n_clipped:,} values were clipped"
            f"{f' ({columns})' if self.n_clipped and columns else ''}.",
            *_notes_on_table(data),
            "Training rows are released; test rows are not.",
        ]
        if regression:
            low, high = data.target_bounds or (0.0, 0.0)
            lines.append(
                f"The declared bounds of the target are {low:g} and {high:g}; {data.n_targets_clipped:,} values were "
                "clipped for training. On rows released with their target the model is ridge regression."
            )
        else:
            lines += [
                f"On released, standardized rows the model is logistic regression with C = 1/{n_features}.",
                "Training labels are not private."
                if settings.labels == "none"
                else f"Training labels are randomized by {settings.labels} at the epsilon of the features; both "
                "epsilons are sums.",
            ]
        lines += self._on_models()
        if any(name in METRIC_MECHANISMS for name in self.curves):
            lines.append("Guarantees per unit of distance are counted over the diameter of the bounds.")
        if "none" in self.curves:
            lines.append("With none the features are not private: its epsilons count only the label.")
        lines.append("Exact is the worst-case loss of one complete record. Only exact is a guarantee.")
        lines += [f"{name} was left out: {reason}" for name, reason in self.left_out.items()]
        if settings.seed is not None:
            lines.append(f"The noise comes from seed {settings.seed}: no privacy against anyone who knows it.")
        return [*lines, self._within(HEADLINE_EPSILON)]

    def _within(self, budget: float) -> str:
        """Return a sentence on the best mechanism within a budget, or on the smallest exact epsilon."""
        if ranking := self.ranking(budget):
            name, point = ranking[0]
            return (
                f"Best at an exact epsilon of at most {budget:g}: {name}, {point.score_mean:.3f} "
                f"at {point.exact_epsilon:.4g}."
            )
        private = [(curve, name) for name, curve in self.curves.items() if name != "none"]
        if not private:
            return f"No exact epsilon is at most {budget:g}: the features are not private."
        least, name = min((min(point.exact_epsilon for point in curve), name) for curve, name in private)
        return (
            f"No exact epsilon is at most {budget:g}; the smallest is {least:.4g}, of {name}. Set smaller --epsilons; "
            "mechanisms named -exact keep the stated epsilon."
        )

    def _on_models(self) -> list[str]:
        """Describe the models that learn without released rows."""
        data, settings = self.data, self.settings
        models = [name for name in self.curves if name in PRIVATE_MODELS[data.task]]
        if not models:
            return []
        lines = [
            f"{', '.join(models)}: no rows are released; each person answers one question of the model, at the epsilon "
            "of the complete record with its target."
        ]
        n_people = len(data.X) - math.ceil(len(data.X) / settings.folds)
        contrasts = 1 if data.task == "regression" else len(data.classes) - 1
        needed = {e: n_people_needed(data.X.shape[1], e) * contrasts for e in settings.budgets(models[0], data)}
        few = [f"{epsilon:g} ({people:,} are needed)" for epsilon, people in needed.items() if people > n_people]
        if few and any(name.startswith(("linear", "logistic")) for name in models):
            lines.append(
                f"The {n_people:,} people of a fold are too few for linear and logistic models at epsilon "
                f"{', '.join(few)}: there they predict the mean or the class shares."
            )
        return lines
