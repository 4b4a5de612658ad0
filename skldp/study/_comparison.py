"""One study over many mechanisms: the same data, folds, labels and model for all of them."""

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold

from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning._protocol import n_people_needed
from skldp.mechanisms._odds import round_down
from skldp.study._catalogue import METRIC_MECHANISMS, PRIVATE_MODELS
from skldp.study._curve import privacy_utility_curve
from skldp.study._datasets import StudyData, StudyInputError
from skldp.study._results import CurvePoint, PrivacyUtilityCurve, ResultTable
from skldp.study._study_pipeline import clean_model, study_pipeline

__all__ = ["PROTECTS", "ComparisonSettings", "MechanismComparison", "compare_mechanisms", "notes_on_table"]

# Above rounding, so that a mechanism that spends exactly what it states counts as one that keeps to it.
_KEEPS = 1 + 1e-6
#: The largest epsilon of what is shown first: odds about a person then grow 55-fold at most.
PROTECTS = 4.0
# The score of a study, and those beside it.
_SCORES = {"classification": ("accuracy",), "regression": ("r2", "neg_mean_absolute_error")}
# Of attributes that a record has or has not: the mean of the areas, and each.
_OF_ATTRIBUTES = "roc_auc"


def compare_mechanisms(
    data: StudyData,
    names: Iterable[str],
    settings: "ComparisonSettings",
    *,
    skip_unfit: bool = False,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> "MechanismComparison":
    """Run :func:`~skldp.privacy_utility_curve` for every mechanism, and the baselines once.

    Parameters
    ----------
    data : StudyData
        Its features are scaled to [-1, 1] by their declared bounds, for all mechanisms alike.
    names : iterable of str
        Of ``FEATURE_MECHANISMS``, or of the ``PRIVATE_MODELS`` of the task, of a table with categories also
        ``"table-"`` and a mechanism of them, or "none" for features that are not private.
    settings : ComparisonSettings
    skip_unfit : bool, default=False
        Leave out a mechanism that cannot work on these data at these epsilons, and say why, instead of raising.
    n_jobs : int, default=None
        Fits at once.
    progress : callable, default=None
        Called as ``progress(name, done, total)`` after each fit, over all mechanisms.

    Returns
    -------
    MechanismComparison

    Raises
    ------
    ValueError
        As `privacy_utility_curve` does, or if there is nothing to compare.

    Examples
    --------
    >>> from skldp.study import ComparisonSettings, compare_mechanisms, load_study_data
    >>> settings = ComparisonSettings(epsilons=(1.0, 20.0), folds=2)
    >>> found = compare_mechanisms(load_study_data("wine"), ["duchi", "privunit"], settings)
    >>> sorted(name for name, _ in found.ranking(40.0))
    ['duchi', 'privunit']
    """
    names = list(names)
    if not names:
        raise StudyInputError("A study needs at least one mechanism.")
    plans = {name: study_pipeline(name, data, settings) for name in names}
    X, n_moved = data.scaled()
    kind = KFold if data.task == "regression" or data.attributes else StratifiedKFold
    folds = kind(settings.folds, shuffle=True, random_state=0)
    per_curve = settings.folds * (settings.repeats * len(settings.epsilons) + 1)
    total, done = per_curve * len(names) + settings.folds, 0
    clean = clean_model(data)
    curves: dict[str, PrivacyUtilityCurve] = {}
    left_out: dict[str, str] = {}
    errors: list[ValueError] = []
    with warnings.catch_warnings():
        # Both epsilons are in the result, and the seed in its caption.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        # Who they are too few for, and how many values were moved, is in the caption.
        warnings.simplefilter("ignore", TooFewPeopleWarning)
        warnings.simplefilter("ignore", OutOfDomainWarning)
        for name, (pipeline, param_names) in plans.items():
            # The clean baseline is fitted once, beside the first curve.
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
                    scoring=settings.scoring or (_OF_ATTRIBUTES if data.attributes else _SCORES[data.task][0]),
                    also=_also(data, settings.scoring),
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
                errors.append(error)
                # The text may be of another library, with a value in it.
                left_out[name] = f"it raised {type(error).__name__}, which a study of {name} alone shows."
            done += per_curve + (clean_fits if name in curves else 0)
    if not curves:
        raise errors[0]
    first = next(iter(curves.values()))
    curves = {
        name: replace(curve, clean_mean=first.clean_mean, clean_std=first.clean_std, clean_also=first.clean_also)
        for name, curve in curves.items()
    }
    return MechanismComparison(data, settings, n_moved, curves, left_out)


def _also(data: StudyData, scoring: str | None) -> dict[str, Any]:
    """The further scores of a study."""
    if data.attributes:
        return {f"auc_{name}": partial(_area, j) for j, name in enumerate(data.attributes)}
    return {score: score for score in _SCORES[data.task][1:] if score != scoring}


def _area(j: int, estimator: Any, X: Any, y: Any) -> float:
    """The area under the ROC curve of one attribute."""
    chances = estimator.predict_proba(X)[j]
    # What was never seen is as likely for all.
    return float(roc_auc_score(y[:, j], chances[:, 1] if chances.shape[1] == 2 else np.zeros(len(chances))))


def _in_columns(data: StudyData) -> str:
    """Where they lay, of a file."""
    names = data.columns_moved() if data.of_column else []
    return f" ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})" if names else ""


def _target(data: StudyData) -> str:
    """What is learnt, in a few words."""
    if data.task == "regression":
        return "a target of numbers"
    return f"attributes {', '.join(data.attributes)}" if data.attributes else f"{len(data.classes)} classes"


def notes_on_table(data: StudyData) -> list[str]:
    """Say what must be known of a table's categories and of its missing values."""
    lines = []
    if data.found:
        lines.append(
            f"The categories of {', '.join(data.found)} are those in the file, which no epsilon covers: declare them "
            "by --schema where they are not public."
        )
    if data.n_filled:
        lines.append(f"For {data.n_filled:,} missing values stands the middle of the bounds, or a category of its own.")
    return lines


@dataclass(frozen=True)
class ComparisonSettings:
    """How a study over mechanisms is run.

    Attributes
    ----------
    epsilons : tuple of float
        The budgets of a record's features; of a regression those of the whole record.
    labels : str
        "none" or one of ``LABEL_MECHANISMS``. A regression has none: a row is released with its target.
    label_epsilon : float or None
        A fixed budget of the label; None gives it the features' budget.
    bits : int
        Of a feature, for the bit-flipping mechanisms.
    folds, repeats : int
        Of the cross-validation.
    clean_test : bool
        Whether test rows are encoded without noise.
    scoring : str or None
        A scorer of scikit-learn; None is the accuracy, or R2 beside the mean absolute error.
    seed : int or None
        Of the noise.
    radius : float or None
        Declares that rows have norms of at most this, in the units of the data.
    """

    epsilons: tuple[float, ...]
    labels: str = "label-rr"
    label_epsilon: float | None = None
    bits: int = 10
    folds: int = 5
    repeats: int = 1
    clean_test: bool = True
    scoring: str | None = None
    seed: int | None = None
    radius: float | None = None

    def budgets(self, name: str, data: StudyData) -> tuple[float, ...]:
        """What a mechanism is given: a model, which protects the label as well, both shares together.

        Parameters
        ----------
        name : str
        data : StudyData

        Returns
        -------
        tuple of float
        """
        if self.labels == "none" or name not in PRIVATE_MODELS["classification"] or data.task == "regression":
            return self.epsilons
        labels = self.epsilons if self.label_epsilon is None else [self.label_epsilon] * len(self.epsilons)
        return tuple(round_down(Fraction(e) + Fraction(label)) for e, label in zip(self.epsilons, labels, strict=True))

    def scaled_radius(self, data: StudyData) -> float:
        """The largest norm of a scaled row, with its target where it has one: the corner, or the declared radius.

        Raises
        ------
        StudyInputError
            If a radius is declared beside bounds that do not scale all features alike around 0, or for a regression.
        """
        corner = float(np.sqrt(data.X.shape[1] + (data.task == "regression")))
        if self.radius is None:
            return corner
        if data.task == "regression":
            raise StudyInputError("A radius is of rows without a target. Got one for a regression.")
        high = float(data.high[0])
        if not 0 < self.radius < np.inf:
            raise StudyInputError(f"The radius must be a finite number > 0. Got {self.radius!r} instead.")
        if (data.high != high).any() or (data.low != -high).any():
            raise StudyInputError("A radius needs the same bounds -b,b for all features, which keep its ball a ball.")
        return min(corner, self.radius / high)


@dataclass(frozen=True)
class MechanismComparison(ResultTable):
    """What :func:`compare_mechanisms` found: the curves of all mechanisms, on the same baselines.

    Attributes
    ----------
    data : StudyData
    settings : ComparisonSettings
    n_moved : int
        Values that lay outside their bounds and were clipped.
    curves : dict of str to PrivacyUtilityCurve
    left_out : dict of str to str
        The mechanisms that cannot work on these data, with the reason.
    """

    data: StudyData
    settings: ComparisonSettings
    n_moved: int
    curves: dict[str, PrivacyUtilityCurve]
    left_out: dict[str, str]

    @property
    def first(self) -> PrivacyUtilityCurve:
        """Any of the curves: the baselines and the score's name are the same in all."""
        return next(iter(self.curves.values()))

    def stated_budgets(self) -> list[float]:
        """The budgets on the stated axis, in order, the label's share included."""
        budgets: list[float] = []
        for stated in sorted({point.stated_epsilon for curve in self.curves.values() for point in curve}):
            # What differs by rounding is one budget.
            if budgets and stated <= budgets[-1] * _KEEPS:
                budgets.pop()
            budgets.append(stated)
        return budgets

    def to_dict(self) -> dict[str, np.ndarray]:
        """Give all curves as one dict of arrays, with the name of the mechanism before their own columns."""
        tables = [{"mechanism": np.array([name] * len(curve))} | curve.to_dict() for name, curve in self.curves.items()]
        return {column: np.concatenate([table[column] for table in tables]) for column in tables[0]}

    def ranking(self, budget: float) -> list[tuple[str, CurvePoint]]:
        """Order the mechanisms that keep within a budget, the best score first.

        A curve counts with its best point whose exact epsilon is at most `budget`, whatever was stated.

        Parameters
        ----------
        budget : float
            On the exact axis.

        Returns
        -------
        list of (str, CurvePoint)
            Without those that have no such point, and without "none".
        """
        best = {
            name: max(kept, key=lambda point: point.score_mean)
            for name, curve in self.curves.items()
            # Whose features are not private spends its epsilon on the label alone.
            if name != "none" and (kept := [point for point in curve if point.exact_epsilon <= budget * _KEEPS])
        }
        return sorted(best.items(), key=lambda item: -item[1].score_mean)

    def weaker_than_stated(self) -> list[str]:
        """The names of the mechanisms whose exact epsilon is above the stated one somewhere."""
        return [
            name
            for name, curve in self.curves.items()
            if any(point.exact_epsilon > point.stated_epsilon * _KEEPS for point in curve)
        ]

    def caption(self) -> list[str]:
        """What the figures are about, one sentence a line."""
        data, settings = self.data, self.settings
        n_rows, n_features = data.X.shape
        lines = [
            f"{data.name}: {n_rows:,} rows, {n_features} features, "
            + _target(data)
            + f"; {settings.folds} folds"
            + (f" x {settings.repeats} releases." if settings.repeats > 1 else "."),
            f"Features are scaled to [-1, 1] by their {data.bounds_source}"
            + (f"; {self.n_moved:,} values lay outside and were clipped{_in_columns(data)}." if self.n_moved else "."),
            *notes_on_table(data),
            "Training rows are released; test rows stay with their people (--clean-test)."
            if settings.clean_test
            else "Training and test rows are released (--private-test).",
            *(self._of_regression() if data.task == "regression" else self._of_classification()),
            *self._of_models(),
        ]
        if any(name in METRIC_MECHANISMS for name in self.curves):
            declared = (
                "the corner of the bounds" if settings.radius is None else f"the declared radius {settings.radius:g}"
            )
            lines.append(
                f"Mechanisms for distances are counted over {declared}: plain epsilon between any two records."
            )
        if "none" in self.curves:
            lines.append("With none the features are not private at all: its epsilons count the label alone.")
        lines.append("Exact is the worst-case loss of one person's whole record. Only exact is a guarantee.")
        lines += [f"{name} was left out: {reason}" for name, reason in self.left_out.items()]
        if settings.seed is not None:
            lines.append(f"The noise comes from seed {settings.seed}: void against whoever knows it.")
        lines.append(self._within(PROTECTS))
        return lines

    def _within(self, budget: float) -> str:
        """What is best among those that keep within a budget."""
        ranking = self.ranking(budget)
        if not ranking:
            return f"Nothing keeps within an exact epsilon of {budget:g}: {self._why_nothing(budget)}"
        name, point = ranking[0]
        return (
            f"Best at an exact epsilon of at most {budget:g}: {name}, {point.score_mean:.3f} "
            f"at {point.exact_epsilon:.4g}."
        )

    def _why_nothing(self, budget: float) -> str:
        """What was asked for that is more than a budget, and what to ask for."""
        weaker, settings = self.weaker_than_stated(), self.settings
        private = {name: curve for name, curve in self.curves.items() if name != "none"}
        if not private:
            return "the features are not private."
        if all(name in weaker for name in private):
            least, name = min((min(point.exact_epsilon for point in curve), name) for name, curve in private.items())
            return (
                f"the least is {least:.4g}, of {name}, which was stated as less; those named -exact keep what they "
                "state."
            )
        asked, fixed = min(settings.epsilons), settings.label_epsilon
        if settings.labels == "none" or self.data.task == "regression":
            return f"{asked:g} is the least that was asked for; try --epsilons {budget:g}."
        summed = f"{asked:g} for the features and {asked if fixed is None else fixed:g} for the label sum to"
        if fixed is None:
            left = f"--epsilons {budget / 2:g}"
        elif fixed < budget:
            left = f"--epsilons {budget - fixed:g}"
        else:
            left = "a smaller --label-epsilon"
        return f"{summed} {asked + (asked if fixed is None else fixed):g}; try {left}."

    def _of_regression(self) -> list[str]:
        low, high = self.data.target_bounds or (0.0, 0.0)
        moved = self.data.n_targets_moved
        return [
            f"The target's declared bounds are {low:g} and {high:g}"
            + (f"; {moved:,} lay outside and were clipped for training." if moved else "."),
            "On released rows, with their target released in the same vector, the model is a ridge regression; nothing "
            "is tuned for any mechanism.",
        ]

    def _of_classification(self) -> list[str]:
        n_features, settings = self.data.X.shape[1], self.settings
        line = (
            f"On released, standardised rows the model is a logistic regression with C = 1/{n_features} (of the number "
            "of features); nothing is tuned for any mechanism."
        )
        if settings.labels == "none":
            return [line, "Training labels are not private."]
        fixed = settings.label_epsilon
        budget = "the same epsilon as the features" if fixed is None else f"epsilon {fixed:g}"
        if self.data.attributes:
            budget += f", shared out equally over {len(self.data.attributes)} attributes"
        return [
            line,
            f"Training labels are randomised by {settings.labels} with {budget}; both epsilons count the sum.",
        ]

    def _of_models(self) -> list[str]:
        """What must be known of models that learn from a release made for them, where there are any."""
        data, settings = self.data, self.settings
        models = [name for name in self.curves if name in PRIVATE_MODELS[data.task]]
        if not models:
            return []
        lines = [
            f"{' and '.join([', '.join(models[:-1]), models[-1]] if models[1:] else models)}: no rows are released; "
            "each person answers one question of the model's, at the whole epsilon of the record with its target."
        ]
        n_people = len(data.X) - math.ceil(len(data.X) / settings.folds)
        contrasts = 1 if data.task == "regression" else len(data.classes) - 1
        needed = {e: n_people_needed(data.X.shape[1], e) * contrasts for e in settings.budgets(models[0], data)}
        few = [f"{epsilon:g} ({people:,} are needed)" for epsilon, people in needed.items() if people > n_people]
        if few and any(name.startswith(("linear", "logistic")) for name in models):
            lines.append(
                f"The {n_people:,} people of a fold are too few for linear and logistic models at epsilon "
                f"{', '.join(few)}: there they predict the mean or the classes' shares."
            )
        return lines
