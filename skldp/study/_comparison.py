"""One study over many mechanisms: the same data, folds, labels and model for all of them."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.study._catalogue import METRIC_MECHANISMS, feature_mechanism, label_mechanism
from skldp.study._curve import privacy_utility_curve
from skldp.study._datasets import StudyData, StudyInputError
from skldp.study._results import CurvePoint, PrivacyUtilityCurve, ResultTable

__all__ = ["ComparisonSettings", "MechanismComparison", "compare_mechanisms", "study_pipeline"]

# Above rounding, so that a mechanism that spends exactly what it states counts as one that keeps to it.
_KEEPS = 1 + 1e-6


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
        Of ``FEATURE_MECHANISMS``, or "none" for features that are not private.
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
    folds = StratifiedKFold(settings.folds, shuffle=True, random_state=0)
    per_curve = settings.folds * (settings.repeats * len(settings.epsilons) + 1)
    total, done = per_curve * len(names) + settings.folds, 0
    clean = _model(data)
    curves: dict[str, PrivacyUtilityCurve] = {}
    left_out: dict[str, str] = {}
    with warnings.catch_warnings():
        # Both epsilons are in the result, and the seed in its caption.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
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
                    epsilons=settings.epsilons,
                    cv=folds,
                    scoring=settings.scoring,
                    n_repeats=settings.repeats,
                    n_jobs=n_jobs,
                    clean_estimator=None if curves else clean,
                    seed=settings.seed,
                    progress=count,
                )
            except ValueError as error:
                if not skip_unfit or str(error).startswith("scoring"):
                    raise
                left_out[name] = str(error).strip().splitlines()[0]
            done += per_curve + (clean_fits if name in curves else 0)
    if not curves:
        raise StudyInputError(f"No mechanism works on {data.name}: {next(iter(left_out.values()))}")
    first = next(iter(curves.values()))
    curves = {
        name: replace(curve, clean_mean=first.clean_mean, clean_std=first.clean_std) for name, curve in curves.items()
    }
    return MechanismComparison(data, settings, n_moved, curves, left_out)


def study_pipeline(name: str, data: StudyData, settings: "ComparisonSettings") -> tuple[Pipeline, list[str]]:
    """Make the pipeline of one mechanism, and the names of the parameters that take the epsilon.

    Parameters
    ----------
    name : str
    data : StudyData
    settings : ComparisonSettings

    Returns
    -------
    pipeline : Pipeline
        The release, a StandardScaler, and a logistic regression: the noises differ in size by factors of hundreds,
        and what is fitted on a release costs no privacy.
    param_names : list of str
    """
    steps: list[tuple[str, Any]] = []
    param_names: list[str] = []
    if name != "none":
        options: dict[str, Any] = {"transform_noise": not settings.clean_test, "n_bits": settings.bits}
        if name in METRIC_MECHANISMS:
            # Rows are made at most one apart, by public numbers: epsilon per unit of distance is epsilon per record.
            shrink = 0.5 / settings.scaled_radius(data)
            steps.append(("to unit diameter", BoundsScaler(bounds=(-1, 1), feature_range=(-shrink, shrink))))
            options["radius"] = 0.5
        steps.append(("features", feature_mechanism(name, **options)))
        param_names.append("features__epsilon")
    model = _model(data)
    if settings.labels != "none":
        fixed = settings.label_epsilon
        randomised = label_mechanism(settings.labels, epsilon=1.0 if fixed is None else fixed, classes=data.classes)
        private = LabelPrivateClassifier(model[-1], label_mechanism=randomised)
        model = Pipeline([*model.steps[:-1], ("labels", private)])
        if fixed is None:
            param_names.append("labels__label_mechanism__epsilon")
    if not param_names:
        raise StudyInputError("Nothing takes the epsilons: choose a --mechanism, or --labels without --label-epsilon.")
    return Pipeline([*steps, *model.steps]), param_names


def _model(data: StudyData) -> Pipeline:
    # On standardised features it is the default C = 1 on rows of unit norm: with more features, less weight for each.
    # C = 1 overfits so much where features are many that noise in them serves better than none.
    model = LogisticRegression(C=1 / data.X.shape[1], max_iter=1000)
    return Pipeline([("standardise", StandardScaler()), ("model", model)])


@dataclass(frozen=True)
class ComparisonSettings:
    """How a study over mechanisms is run.

    Attributes
    ----------
    epsilons : tuple of float
        The budgets of a record's features.
    labels : str
        "none" or one of ``LABEL_MECHANISMS``.
    label_epsilon : float or None
        A fixed budget of the label; None gives it the features' budget.
    bits : int
        Of a feature, for the bit-flipping mechanisms.
    folds, repeats : int
        Of the cross-validation.
    clean_test : bool
        Whether test rows are encoded without noise.
    scoring : str or None
        A scorer of scikit-learn; None is the accuracy.
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

    def scaled_radius(self, data: StudyData) -> float:
        """The largest norm of a scaled row: the corner of the bounds, or the declared radius.

        Raises
        ------
        StudyInputError
            If a radius is declared beside bounds that do not scale all features alike around 0.
        """
        corner = float(np.sqrt(data.X.shape[1]))
        if self.radius is None:
            return corner
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
        return sorted({point.stated_epsilon for curve in self.curves.values() for point in curve})

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
            f"{data.name}: {n_rows:,} rows, {n_features} features, {len(data.classes)} classes; {settings.folds} folds"
            + (f" x {settings.repeats} releases." if settings.repeats > 1 else "."),
            f"Features are scaled to [-1, 1] by their {data.bounds_source}"
            + (f"; {self.n_moved:,} values lay outside and were clipped." if self.n_moved else "."),
            "Training rows are released; test rows stay with their people (--clean-test)."
            if settings.clean_test
            else "Training and test rows are released (--private-test).",
            f"The model is a logistic regression with C = 1/{n_features} (of the number of features) on standardised "
            "releases; nothing is tuned for any mechanism.",
        ]
        if settings.labels == "none":
            lines.append("Training labels are not private.")
        else:
            fixed = settings.label_epsilon
            budget = "the same epsilon as the features" if fixed is None else f"epsilon {fixed:g}"
            lines.append(
                f"Training labels are randomised by {settings.labels} with {budget}; both epsilons count the sum."
            )
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
        return lines
