"""What privacy costs: the score of a pipeline over epsilon, beside what was really protected."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv, cross_validate
from sklearn.utils.parallel import Parallel, delayed

from skldp._checks import is_whole
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._validation import check_epsilon
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study._private_steps import has_seed, majority_estimator, private_steps, stated_together, without_privacy
from skldp.study._results import CurvePoint, PrivacyUtilityCurve
from skldp.study._tables import StudyInputError

__all__ = ["check_scorer", "privacy_utility_curve"]

_Split = tuple[np.ndarray, np.ndarray]
# What the one score is called among several; no name of scikit-learn's.
_MAIN = "score"


def privacy_utility_curve(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    param_name: str | Iterable[str] = "epsilon",
    epsilons: Iterable[float] = (0.5, 1.0, 2.0, 4.0, 8.0),
    cv: Any = None,
    scoring: str | Callable[..., float] | None = None,
    also: Iterable[str] | Mapping[str, str | Callable[..., float]] = (),
    n_repeats: int = 1,
    n_jobs: int | None = None,
    params: Mapping[str, Any] | None = None,
    clean_estimator: Any = "auto",
    seed: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> PrivacyUtilityCurve:
    """Score a private estimator by cross-validation at every epsilon, beside its exact guarantee.

    Parameters
    ----------
    estimator : estimator
        Usually a Pipeline with a private transformer, a private label step, or both; or a model that learns under
        privacy itself.
    X : array-like of shape (n_samples, n_features)
        The data as the people hold them.
    y : array-like of shape (n_samples,)
        Their true labels. Scores are always against true labels.
    param_name : str or list of str, default="epsilon"
        The parameter, or parameters, that take each value of `epsilons`, for example
        ``"bitrandtransformer__epsilon"``.
    epsilons : iterable of float, default=(0.5, 1.0, 2.0, 4.0, 8.0)
        Natural-log epsilons to set.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn. The splits are drawn once and are the same for all epsilons.
    scoring : str or callable, default=None
        One scorer; None takes the estimator's own `score`.
    also : iterable of str, or dict of str to scorer, default=()
        Further scorers of scikit-learn by their names, or by names of your own, of the same fits; their means stand in
        the table.
    n_repeats : int, default=1
        How often each split is released and fitted, with fresh noise.
    n_jobs : int, default=None
        Fits that run at once.
    params : dict, default=None
        Metadata for fit and score, as in :func:`sklearn.model_selection.cross_validate`.
    clean_estimator : "auto", estimator or None, default="auto"
        What the clean baseline fits. "auto" takes the private steps out of `estimator`; None leaves it out.
    seed : None or int, default=None
        None gives secure noise. An int makes the whole study repeatable, with other noise in every fit.
    progress : callable, default=None
        Called as ``progress(done, total)`` after each fit.

    Returns
    -------
    PrivacyUtilityCurve
        One point per epsilon, with the clean and the majority baseline.

    Raises
    ------
    ValueError
        If `param_name` is no parameter of the estimator, an epsilon is not a finite number > 0, nothing in the
        estimator is private, y has one class, there are fewer rows than folds, or `scoring` does not fit.

    Warns
    -----
    PrivacyGuaranteeWarning
        Once, if the exact epsilon is above the stated one somewhere on the curve.
    SeededNoiseWarning
        If `seed` is given, or a step of the estimator has one.

    Notes
    -----
    A score on private data is itself a statement about those people: run this on data whose use for research is
    agreed on. Whether test rows are released with noise is the transformer's `transform_noise`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BitRandTransformer, privacy_utility_curve
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(BitRandTransformer(bounds=(0, 8), calibration="exact"), GaussianNB())
    >>> curve = privacy_utility_curve(model, X, y, param_name="bitrandtransformer__epsilon", epsilons=[1, 50])
    >>> [point.exact_epsilon <= point.stated_epsilon for point in curve]
    [True, True]
    """
    names = [param_name] if isinstance(param_name, str) else list(param_name)
    epsilons = list(epsilons)
    _check_parameters(estimator, names, epsilons, n_repeats)
    seeded = seed is not None or has_seed(estimator)
    if seed is not None:
        warnings.warn("seed makes every release of this study repeatable.", SeededNoiseWarning, stacklevel=2)
    elif seeded:
        # Workers warn where nobody reads it.
        warnings.warn("A step of the estimator has a seed; its releases repeat.", SeededNoiseWarning, stacklevel=2)

    beside = dict(also) if isinstance(also, Mapping) else {name: name for name in also}
    for name in filter(lambda one: isinstance(one, str), [scoring, *beside.values()]):
        check_scorer(name)
    score_name = scoring if isinstance(scoring, str) else _score_name(estimator, scoring)
    scorer = _FittingScorer(check_scoring(estimator, scoring=scoring), score_name)
    others = {name: _FittingScorer(check_scoring(estimator, scoring=one), name) for name, one in beside.items()}
    splits = _splits(estimator, X, y, cv)
    models = [clone(estimator).set_params(**dict.fromkeys(names, epsilon)) for epsilon in epsilons]
    task = _Task(X, y, {_MAIN: scorer} | others, params, seeded=seeded)
    if isinstance(clean_estimator, str) and clean_estimator == "auto":
        clean_estimator = without_privacy(task.fitted(models[0], splits[0]))

    jobs = [(model, split, True) for model in models for _ in range(n_repeats) for split in splits]
    jobs += [(majority_estimator(estimator), split, False) for split in splits]
    if clean_estimator is not None:
        jobs += [(clean_estimator, split, False) for split in splits]
    outcomes = iter(_run(task, jobs, n_jobs, seed, progress))

    def take(count: int) -> list[_Outcome]:
        return [next(outcomes) for _ in range(count)]

    per_epsilon = [take(len(splits) * n_repeats) for _ in epsilons]
    points = tuple(_point(epsilon, found) for epsilon, found in zip(epsilons, per_epsilon, strict=True))
    majority, clean = take(len(splits)), list(outcomes)
    _warn_where_weaker(points)
    return PrivacyUtilityCurve(
        points=points,
        param_names=tuple(names),
        scoring=score_name,
        majority_mean=_mean_and_std(majority)[0],
        majority_std=_mean_and_std(majority)[1],
        clean_mean=_mean_and_std(clean)[0],
        clean_std=_mean_and_std(clean)[1],
        guarantees=tuple(_worst(found).steps for found in per_epsilon),
        also=tuple(others),
        majority_also=_means_also(majority, len(others)),
        clean_also=_means_also(clean, len(others)),
    )


def _check_parameters(estimator: Any, names: list[str], epsilons: list[float], n_repeats: Any) -> None:
    known = estimator.get_params(deep=True)
    for name in names:
        if name not in known:
            near = [key for key in known if key.rsplit("__", 1)[-1] == "epsilon"]
            hint = f"Parameters that end with epsilon: {', '.join(near)}. " if near else ""
            raise ValueError(f"param_name must be a parameter of the estimator. {hint}Got {name!r} instead.")
    if not names or not epsilons:
        raise ValueError(f"param_name and epsilons must not be empty. Got {names!r} and {epsilons!r} instead.")
    for epsilon in epsilons:
        check_epsilon(epsilon)
    if not is_whole(n_repeats) or n_repeats < 1:
        raise ValueError(f"n_repeats must be an int >= 1. Got {n_repeats!r} instead.")


def check_scorer(name: Any) -> None:
    """Refuse what is no name of a scorer of scikit-learn, and say which are nearly it."""
    known = get_scorer_names()
    if name not in known:
        near = get_close_matches(name, known, n=4)
        hint = f", such as {', '.join(near)}" if near else " (sklearn.metrics.get_scorer_names lists them)"
        raise ValueError(f"scoring must be the name of a scorer of scikit-learn{hint}. Got {name!r} instead.")


def _splits(estimator: Any, X: Any, y: Any, cv: Any) -> list[_Split]:
    if is_classifier(estimator):
        n_classes = len(np.unique(np.asarray(y)))
        if n_classes < 2:
            raise ValueError(f"y must hold at least two classes. Got {n_classes} instead.")
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y))
    if not splits:
        raise ValueError(f"cv must give at least one split. Got {cv!r} instead.")
    return splits


def _run(
    task: "_Task",
    jobs: list[tuple[Any, _Split, bool]],
    n_jobs: int | None,
    seed: int | None,
    progress: Callable[[int, int], object] | None,
) -> "list[_Outcome]":
    seeds: list[int | None] = [None] * len(jobs)
    if seed is not None:
        seeds = [int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(len(jobs))]
    outcomes = []
    calls = (
        delayed(task)(model, split, private, own) for (model, split, private), own in zip(jobs, seeds, strict=True)
    )
    for outcome in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
        outcomes.append(outcome)
        if progress is not None:
            progress(len(outcomes), len(jobs))
    return outcomes


def _with_seeds(model: Any, seed: int) -> Any:
    """A clone whose unseeded random parts are seeded, each from its own number."""
    model = clone(model)
    names = sorted(
        name
        for name, value in model.get_params(deep=True).items()
        if value is None and name.rsplit("__", 1)[-1] in ("seed", "random_state")
    )
    numbers = np.random.SeedSequence(seed).generate_state(max(1, len(names)))
    return model.set_params(**{name: int(number) for name, number in zip(names, numbers, strict=False)})


def _point(epsilon: float, outcomes: "list[_Outcome]") -> CurvePoint:
    mean, std = _mean_and_std(outcomes)
    # What the guarantee depends on could differ between folds (learnt classes): the worst one is reported.
    worst = _worst(outcomes)
    return CurvePoint(
        epsilon=float(epsilon),
        stated_epsilon=float(epsilon) if worst.stated_epsilon is None else worst.stated_epsilon,
        exact_epsilon=worst.exact_epsilon,
        delta=max(outcome.delta for outcome in outcomes),
        score_mean=mean,
        score_std=std,
        fit_time=float(np.mean([outcome.fit_time for outcome in outcomes])),
        score_time=float(np.mean([outcome.score_time for outcome in outcomes])),
        n_fits=len(outcomes),
        score_worst=min(outcome.score for outcome in outcomes),
        also=_means_also(outcomes, len(outcomes[0].also)),
    )


def _worst(outcomes: "list[_Outcome]") -> "_Outcome":
    return max(outcomes, key=lambda outcome: outcome.exact_epsilon)


def _mean_and_std(outcomes: "list[_Outcome]") -> tuple[float, float]:
    scores = [outcome.score for outcome in outcomes]
    return (float(np.mean(scores)), float(np.std(scores))) if scores else (math.nan, math.nan)


def _means_also(outcomes: "list[_Outcome]", n_scores: int) -> tuple[float, ...]:
    if not outcomes:
        return (math.nan,) * n_scores
    return tuple(np.mean([outcome.also for outcome in outcomes], axis=0).tolist())


def _score_name(estimator: Any, scoring: Any) -> str:
    if scoring is not None:
        return getattr(scoring, "__name__", "score")
    return "accuracy" if is_classifier(estimator) else "score"


def _warn_where_weaker(points: tuple[CurvePoint, ...]) -> None:
    weaker = [point for point in points if point.exact_epsilon > point.stated_epsilon * (1 + 1e-9)]
    if weaker:
        first, last = weaker[0], weaker[-1]
        warnings.warn(
            f"At {len(weaker)} of {len(points)} points the exact epsilon is above the stated one: "
            f"{first.exact_epsilon:.4g} where {first.stated_epsilon:.4g} is stated, "
            f"{last.exact_epsilon:.4g} where {last.stated_epsilon:.4g} is stated.",
            PrivacyGuaranteeWarning,
            stacklevel=2,
        )


class _FittingScorer:
    """A scorer whose error says that it is the score that does not fit, and not the mechanism."""

    def __init__(self, scorer: Any, name: str) -> None:
        self.scorer = scorer
        self.name = name

    def __call__(self, estimator: Any, *args: Any, **kwargs: Any) -> float:
        try:
            with warnings.catch_warnings():
                # What is undefined comes as NaN, which is refused below.
                warnings.simplefilter("ignore", UndefinedMetricWarning)
                score = self.scorer(estimator, *args, **kwargs)
        except (AttributeError, TypeError, ValueError) as error:
            raise StudyInputError(
                f"scoring must fit the estimator and the target. Got {self.name!r}, which raised "
                f"{type(error).__name__}."
            ) from error
        if not np.isfinite(score):
            raise ValueError(f"scoring must give finite numbers on every fold. Got {score} from {self.name!r} instead.")
        return score

    def get_metadata_routing(self) -> Any:
        return self.scorer.get_metadata_routing()


@dataclass(frozen=True)
class _Outcome:
    score: float
    also: tuple[float, ...]
    fit_time: float
    score_time: float
    exact_epsilon: float = math.inf
    delta: float = 0.0
    stated_epsilon: float | None = None
    steps: tuple[tuple[str, PrivacyGuarantee], ...] = ()


class _Task:
    """Fits one model on one split. An object, so that parallel workers receive the data once."""

    def __init__(self, X: Any, y: Any, scorers: dict[str, _FittingScorer], params: Any, *, seeded: bool) -> None:
        self.X = X
        self.y = y
        self.scorers = scorers
        self.params = params
        self.seeded = seeded

    def __call__(self, model: Any, split: _Split, private: bool, seed: int | None) -> _Outcome:
        result = self._cross_validate(model if seed is None else _with_seeds(model, seed), split)
        measured: dict[str, Any] = {
            "score": float(result[f"test_{_MAIN}"][0]),
            "also": tuple(float(result[f"test_{name}"][0]) for name in list(self.scorers)[1:]),
            "fit_time": float(result["fit_time"][0]),
            "score_time": float(result["score_time"][0]),
        }
        if not private:
            return _Outcome(**measured)
        # Of the model itself. That it was chosen, by a search or from this curve, is another release, of the study.
        fitted = getattr(result["estimator"][0], "best_estimator_", result["estimator"][0])
        guarantee = privacy_guarantee(fitted)
        steps = private_steps(fitted)
        return _Outcome(
            **measured,
            exact_epsilon=guarantee.plain_epsilon,
            delta=guarantee.delta,
            stated_epsilon=stated_together(steps),
            steps=steps,
        )

    def fitted(self, model: Any, split: _Split) -> Any:
        return self._cross_validate(model, split)["estimator"][0]

    def _cross_validate(self, model: Any, split: _Split) -> dict[str, Any]:
        with warnings.catch_warnings():
            # The curve holds both epsilons and warns once itself.
            warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
            if self.seeded:
                warnings.simplefilter("ignore", SeededNoiseWarning)
            return cross_validate(
                model,
                self.X,
                self.y,
                cv=[split],
                scoring=self.scorers,
                params=self.params,
                return_estimator=True,
                error_score="raise",
            )
