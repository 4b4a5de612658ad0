"""Score of a pipeline over epsilon, with its exact guarantee."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.utils.parallel import Parallel, delayed

from skldp._checks import check_epsilon, check_integer, did_you_mean
from skldp._progress import Progress
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._column_encoder import ColumnEncoder
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._guarantee_mixin import GuaranteeMixin, holds_guarantee
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._validation import warn
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study._released_rows import ReleasedRowsRegressor
from skldp.study._results import CurvePoint, PrivacyUtilityCurve
from skldp.study._table_files import StudyInputError

_Split = tuple[np.ndarray, np.ndarray]
_Steps = tuple[tuple[str, PrivacyGuarantee], ...]


def privacy_utility_curve(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    param_name: str | Iterable[str] | None = None,
    epsilons: Iterable[float] = (0.5, 1.0, 2.0, 4.0, 8.0),
    cv: Any = None,
    scoring: str | Callable[..., float] | None = None,
    n_repeats: int = 1,
    n_jobs: int | None = None,
    params: Mapping[str, Any] | None = None,
    clean_estimator: Any = "auto",
    seed: int | None = None,
    verbose: bool | str = False,
) -> PrivacyUtilityCurve:
    """Score a private estimator by cross-validation at every epsilon, with its exact guarantee.

    Parameters
    ----------
    estimator : estimator
        Usually a Pipeline with a private transformer, a private label step, or both; or a model that learns under
        privacy itself.
    X : array-like of shape (n_samples, n_features)
        Rows before any release.
    y : array-like of shape (n_samples,)
        True labels. Scores are always against true labels.
    param_name : str or list of str, default=None
        Parameter, or parameters, that take each value of `epsilons`, for example ``"bitrandtransformer__epsilon"``.
        None takes the only one that is called epsilon or ends with ``__epsilon``.
    epsilons : iterable of float, default=(0.5, 1.0, 2.0, 4.0, 8.0)
        Natural-log epsilons to set.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn. The splits are drawn once and are the same for all epsilons.
    scoring : str or callable, default=None
        One scorer; None takes the estimator's own `score`.
    n_repeats : int, default=1
        Number of releases and fits of each split, each with fresh noise.
    n_jobs : int, default=None
        Number of fits that run at once.
    params : dict, default=None
        Metadata for fit and score, as in :func:`sklearn.model_selection.cross_validate`.
    clean_estimator : "auto", estimator or None, default="auto"
        Estimator of the clean baseline. "auto" removes the private steps from `estimator`; None leaves it out.
    seed : None or int, default=None
        None gives secure noise. An int makes the study repeatable, with other noise in every fit.
    verbose : bool or str, default=False
        Show progress on standard error, from two seconds on. A str names the line.

    Returns
    -------
    curve : PrivacyUtilityCurve
        Sequence of one point per epsilon, with ``to_frame()``, ``to_dict()`` and ``to_csv(path)``.

        - A point has `epsilon` (the value that was set), `stated_epsilon` (sum over the private steps), `exact_epsilon`
          (worst-case loss of the complete estimator in nats, infinite if a part is not private), `delta`, `score_mean`
          and `score_std` over all folds and repeats, `fit_time` and `score_time` (seconds, mean of a fold) and
          `n_fits`.
        - The curve has `points`, `param_names`, `scoring`, `guarantees` (name and guarantee of each private step, for
          every point), and the baselines `majority_mean` and `majority_std` (most frequent class, or the mean),
          `clean_mean` and `clean_std` (without privacy, NaN if left out).

    Raises
    ------
    ValueError
        If `param_name` is no parameter of the estimator, an epsilon is not a finite number > 0, y has one class, there
        are fewer rows than folds, or `scoring` does not fit.

    Warns
    -----
    PrivacyGuaranteeWarning
        Once, if the exact epsilon is above the stated one at some point of the curve.
    SeededNoiseWarning
        If `seed` is given, or a step of the estimator has one.

    Notes
    -----
    A score on private data is itself a statement about those people: use data whose use for research is agreed on.
    Whether test rows are released with noise is the transformer's `transform_noise`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BitRandTransformer
    >>> from skldp.study import privacy_utility_curve
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(BitRandTransformer(bounds=(0, 8), calibration="exact"), GaussianNB())
    >>> curve = privacy_utility_curve(model, X, y, param_name="bitrandtransformer__epsilon", epsilons=[1, 50])
    >>> [point.exact_epsilon <= point.stated_epsilon for point in curve]
    [True, True]
    """
    names, epsilons = _epsilon_names(estimator, param_name), list(epsilons)
    if not names or not epsilons:
        raise ValueError(f"param_name and epsilons must not be empty; got {names!r} and {epsilons!r}.")
    for epsilon in epsilons:
        check_epsilon(epsilon)
    check_integer("n_repeats", n_repeats, least=1)
    if seed is not None:
        warn("seed makes every release of this study repeatable.", SeededNoiseWarning)
    elif has_seed(estimator):
        # Warnings of worker processes are not shown.
        warn("A step of the estimator has a seed; its releases repeat.", SeededNoiseWarning)
    if isinstance(scoring, str) and scoring not in (known := get_scorer_names()):
        near = did_you_mean(scoring, known) or " sklearn.metrics.get_scorer_names() lists them."
        raise ValueError(f"scoring must be the name of a scorer of scikit-learn; got {scoring!r}.{near}")
    default = "accuracy" if is_classifier(estimator) and scoring is None else "score"
    score_name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", default)
    scorer = _FittingScorer(check_scoring(estimator, scoring=scoring), score_name)
    splits = _splits(estimator, X, y, cv)
    models = [clone(estimator).set_params(**dict.fromkeys(names, epsilon)) for epsilon in epsilons]
    validate = partial(_cross_validate, X=X, y=y, scoring=scorer, params=params)
    if isinstance(clean_estimator, str) and clean_estimator == "auto":
        # Parts of a composite may be known as private only after a fit.
        known = isinstance(estimator, GuaranteeMixin)
        clean_estimator = without_privacy(models[0] if known else validate(models[0], splits[0])["estimator"][0])

    constant = DummyRegressor() if is_regressor(estimator) else DummyClassifier(strategy="most_frequent")
    baselines = [constant, *([] if clean_estimator is None else [clean_estimator])]
    jobs = [(model, split, True) for model in models for _ in range(n_repeats) for split in splits]
    jobs += [(model, split, False) for model in baselines for split in splits]
    seeds: list[int | None] = [None] * len(jobs)
    if seed is not None:
        seeds = [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(len(jobs))]
    # The baselines come last in the jobs, and first in time: they are fast, and may fail.
    calls = (delayed(_fit_one)(validate, *job, own) for job, own in reversed(list(zip(jobs, seeds, strict=True))))
    line = Progress(verbose if isinstance(verbose, str) else "fits", len(jobs), show=bool(verbose))
    outcomes = list(line.track(Parallel(n_jobs=n_jobs, return_as="generator")(calls)))[::-1]
    n, size = len(splits), len(splits) * n_repeats
    groups = [outcomes[start : start + size] for start in range(0, size * len(epsilons), size)]
    # The guarantee may differ between folds (learnt classes): the worst one is reported.
    steps = tuple(max(found, key=attrgetter("exact_epsilon")).steps for found in groups)
    points = tuple(map(_point, epsilons, groups, steps))
    _warn_where_weaker(points)
    rest = outcomes[size * len(epsilons) :]
    scores = (*_mean_and_std(rest[:n]), *_mean_and_std(rest[n:]))
    return PrivacyUtilityCurve(points, tuple(names), score_name, *scores, steps)


def _epsilon_names(estimator: Any, given: str | Iterable[str] | None) -> list[str]:
    """Return the names of the parameters that take the epsilons."""
    known = estimator.get_params(deep=True)
    ends = sorted(name for name in known if name.rsplit("__", 1)[-1] == "epsilon")
    if given is None and len(ends) == 1:
        return ends
    names: list[Any] = [given] if given is None or isinstance(given, str) else list(given)
    for name in names:
        if name not in known:
            hint = f" Parameters that end with epsilon: {', '.join(ends)}." if ends else did_you_mean(name, known)
            raise ValueError(f"param_name must be a parameter of the estimator; got {name!r}.{hint}")
    return names


def _splits(estimator: Any, X: Any, y: Any, cv: Any) -> list[_Split]:
    if is_classifier(estimator) and (n_classes := len(np.unique(np.asarray(y)))) < 2:
        raise ValueError(f"y must have at least two classes; got {n_classes}.")
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y))
    if not splits:
        raise ValueError(f"cv must give at least one split; got {cv!r}.")
    return splits


@dataclass(frozen=True)
class _Outcome:
    score: float
    fit_time: float
    score_time: float
    exact_epsilon: float = math.inf
    delta: float = 0.0
    steps: _Steps = ()


def _fit_one(
    validate: Callable[..., dict[str, Any]], model: Any, split: _Split, private: bool, seed: int | None
) -> _Outcome:
    """Fit and score one model on one split, its unseeded random parts seeded each with its own number."""
    model = clone(model)
    if seed is not None:
        unseeded = sorted(
            name
            for name, value in model.get_params(deep=True).items()
            if value is None and name.rsplit("__", 1)[-1] in ("seed", "random_state")
        )
        numbers = np.random.SeedSequence(seed).generate_state(max(1, len(unseeded))).tolist()
        model.set_params(**dict(zip(unseeded, numbers, strict=False)))
    result = validate(model, split)
    score, fit_time, score_time = (float(result[name][0]) for name in ("test_score", "fit_time", "score_time"))
    measured = _Outcome(score, fit_time, score_time)
    if not private:
        return measured
    # The guarantee of the fit alone: the selection of a model by a search or a curve is another release.
    fitted = getattr(result["estimator"][0], "best_estimator_", result["estimator"][0])
    exact = privacy_guarantee(fitted)
    return replace(measured, exact_epsilon=exact.plain_epsilon, delta=exact.delta, steps=private_steps(fitted))


def _cross_validate(model: Any, split: _Split, **options: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        # The curve has both epsilons, and warns once.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        result: dict[str, Any] = cross_validate(
            model, cv=[split], return_estimator=True, error_score="raise", **options
        )
        return result


def _point(epsilon: float, outcomes: list[_Outcome], steps: _Steps) -> CurvePoint:
    mean, std = _mean_and_std(outcomes)
    stated = stated_together(steps)
    return CurvePoint(
        epsilon=float(epsilon),
        stated_epsilon=float(epsilon) if stated is None else stated,
        exact_epsilon=max(outcome.exact_epsilon for outcome in outcomes),
        delta=max(outcome.delta for outcome in outcomes),
        score_mean=mean,
        score_std=std,
        fit_time=float(np.mean([outcome.fit_time for outcome in outcomes])),
        score_time=float(np.mean([outcome.score_time for outcome in outcomes])),
        n_fits=len(outcomes),
    )


def _mean_and_std(outcomes: list[_Outcome]) -> tuple[float, float]:
    scores = [outcome.score for outcome in outcomes]
    return (float(np.mean(scores)), float(np.std(scores))) if scores else (math.nan, math.nan)


def _warn_where_weaker(points: tuple[CurvePoint, ...]) -> None:
    weaker = [point for point in points if point.exact_epsilon > point.stated_epsilon * (1 + 1e-9)]
    if weaker:
        first, last = weaker[0], weaker[-1]
        warn(
            f"At {len(weaker)} of {len(points)} points the exact epsilon is above the stated one: "
            f"{first.exact_epsilon:.4g} where {first.stated_epsilon:.4g} is stated, "
            f"{last.exact_epsilon:.4g} where {last.stated_epsilon:.4g} is stated.",
            PrivacyGuaranteeWarning,
        )


class _FittingScorer:
    """Scorer whose errors name the score that does not fit the estimator."""

    def __init__(self, scorer: Any, name: str) -> None:
        self.scorer = scorer
        self.name = name

    def __call__(self, estimator: Any, *args: Any, **kwargs: Any) -> float:
        try:
            with warnings.catch_warnings():
                # An undefined score is NaN, which raises below.
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                score = self.scorer(estimator, *args, **kwargs)
        except (AttributeError, TypeError, ValueError) as error:
            raise StudyInputError(
                f"scoring must fit the estimator and the target; {self.name!r} raised {type(error).__name__}."
            ) from error
        if not np.isfinite(score):
            raise ValueError(f"scoring must give finite numbers on every fold; {self.name!r} gave {score}.")
        return score

    def get_metadata_routing(self) -> Any:
        return self.scorer.get_metadata_routing()


def without_privacy(fitted: Any) -> Any:
    """Return an unfitted copy of a fitted estimator without its private steps."""
    if isinstance(fitted, Pipeline):
        return _shallow(fitted, steps=[(name, _step_without_privacy(step)) for name, step in fitted.steps])
    if isinstance(fitted, ReleasedRowsRegressor):
        return clone(fitted).set_params(mechanism=None)
    if not _is_private(fitted):
        return clone(fitted)
    parameters = fitted.get_params(deep=False)
    if {"bounds", "target_bounds"} <= parameters.keys():
        return ReleasedRowsRegressor(None, LinearRegression(), bounds=fitted.bounds, target_bounds=fitted.target_bounds)
    if {"bounds", "classes"} <= parameters.keys() and is_classifier(fitted):
        # On features between -1 and 1, for which the default C is of the size of one record.
        return make_pipeline(BoundsScaler(bounds=fitted.bounds), LogisticRegression(max_iter=1000))
    if parameters.get("estimator") is None:
        raise ValueError(
            f"{type(fitted).__name__} has no counterpart without privacy for the clean baseline: pass clean_estimator."
        )
    return clone(parameters["estimator"])


def _is_private(step: Any) -> bool:
    return isinstance(step, GuaranteeMixin) or hasattr(step, "privacy_guarantee_")


def _step_without_privacy(step: Any) -> Any:
    if step is None or isinstance(step, str):
        return step
    if isinstance(step, ColumnTransformer):
        kept = {name: _step_without_privacy(branch) for name, branch, _ in step.transformers_}
        branches = [(name, kept.get(name, branch), columns) for name, branch, columns in step.transformers]
        return _shallow(step, transformers=branches)
    if isinstance(step, FeatureUnion):
        parts = [(name, _step_without_privacy(branch)) for name, branch in step.transformer_list]
        return _shallow(step, transformer_list=parts)
    if isinstance(step, TablePrivatizer) and hasattr(step, "feature_names_in_"):
        # Texts, dates and missing values are no features.
        return ColumnEncoder(dict(zip(step.feature_names_in_, step.columns_, strict=True)))
    return "passthrough" if _is_private(step) and hasattr(step, "transform") else without_privacy(step)


def _shallow(composite: Any, **replaced: Any) -> Any:
    return clone(type(composite)(**(composite.get_params(deep=False) | replaced)))


def private_steps(fitted: Any) -> _Steps:
    """Return the private steps of a Pipeline, or the complete estimator, each with its guarantee."""
    if not isinstance(fitted, Pipeline):
        return ((type(fitted).__name__, privacy_guarantee(fitted)),)
    return tuple((name, privacy_guarantee(s)) for name, s in fitted.steps if _is_private(s) or holds_guarantee(s))


def has_seed(estimator: Any) -> bool:
    """Return whether the noise of any part of an estimator comes from a seed."""
    return any(value is not None for name, value in estimator.get_params().items() if name.split("__")[-1] == "seed")


def stated_together(steps: Iterable[tuple[str, PrivacyGuarantee]]) -> float | None:
    """Sum the stated epsilons of steps, over the declared diameter for epsilons per unit of distance; None of none."""
    parts = [(one.stated, one.diameter if one.unit == "distance" else 1.0) for _, one in steps]
    known = [stated * times for stated, times in parts if stated is not None and times is not None]
    return sum(known, 0.0) if known and len(known) == len(parts) else None
