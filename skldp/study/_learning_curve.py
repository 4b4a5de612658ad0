"""How many people a model needs: its score over how many were asked, at every epsilon."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import ShuffleSplit, check_cv

from skldp._checks import is_number, is_whole
from skldp.exceptions import SeededNoiseWarning, TooFewPeopleWarning
from skldp.study._curve import privacy_utility_curve
from skldp.study._private_steps import has_seed
from skldp.study._results import PrivacyUtilityCurve, ResultTable

__all__ = ["PrivateLearningCurve", "private_learning_curve"]


def private_learning_curve(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    n_people: Iterable[int] | None = None,
    param_name: str | Iterable[str] = "epsilon",
    epsilons: Iterable[float] = (1.0, 2.0, 4.0, 8.0),
    cv: Any = None,
    scoring: str | Callable[..., float] | None = None,
    n_repeats: int = 1,
    n_jobs: int | None = None,
    params: Mapping[str, Any] | None = None,
    clean_estimator: Any = "auto",
    seed: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> "PrivateLearningCurve":
    """Score a private estimator that is fitted on more and more people, at every epsilon.

    Parameters
    ----------
    estimator : estimator
        Such as :class:`~skldp.PrivateLinearRegression`.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_people : iterable of int, default=None
        Of how many of a split's training rows, a larger number always with those of the smaller ones. None takes five
        numbers, each twice the one before and the last all of them.
    param_name : str or list of str, default="epsilon"
        The parameter, or parameters, that take each value of `epsilons`.
    epsilons : iterable of float, default=(1.0, 2.0, 4.0, 8.0)
        Natural log.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn. None holds out a quarter of the rows, once, at random.
    scoring : str or callable, default=None
        One scorer; None takes the estimator's own `score`.
    n_repeats : int, default=1
        How often each split is released and fitted, with fresh noise.
    n_jobs : int, default=None
        Fits that run at once.
    params : dict, default=None
        Metadata for fit and score.
    clean_estimator : "auto", estimator or None, default="auto"
        As in :func:`~skldp.privacy_utility_curve`.
    seed : None or int, default=None
        None gives secure noise. An int makes the whole study repeatable, with other noise in every fit.
    progress : callable, default=None
        Called as ``progress(done, total)`` after each number of people.

    Returns
    -------
    PrivateLearningCurve

    Raises
    ------
    ValueError
        If a number of people is no whole number from 2 to that of a split's training rows, or as in
        :func:`~skldp.privacy_utility_curve`.

    Warns
    -----
    SeededNoiseWarning
        If `seed` is given, or a step of the estimator has one.

    See Also
    --------
    sklearn.model_selection.learning_curve : The same without privacy.
    skldp.learning.n_people_needed : How many it takes before anything is learnt, without any data.

    Notes
    -----
    That there are too few people, of which a fit would warn, is what the curve shows.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivateLinearRegression
    >>> from skldp.study import private_learning_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (8_000, 2))
    >>> y = np.clip(X @ [0.5, 0.3] + 0.1 * rng.standard_normal(8_000), -1, 1)
    >>> model = PrivateLinearRegression()
    >>> curve = private_learning_curve(model, X, y, n_people=[100, 6_000], epsilons=[4.0])
    >>> sorted(curve.people_needed(0.5)) == [4.0], 100 <= curve.people_needed(0.5)[4.0] <= 6_000
    (True, True)
    """
    splits = _splits(X, y, cv)
    most = min(len(train) for train, _ in splits)
    sizes = _sizes(n_people, most)
    seeds: list[int | None] = [None] * len(sizes)
    if seed is not None:
        warnings.warn("seed makes every release of this study repeatable.", SeededNoiseWarning, stacklevel=2)
        seeds = np.random.SeedSequence(seed).generate_state(len(sizes)).tolist()
    elif has_seed(estimator):
        warnings.warn("A step of the estimator has a seed; its releases repeat.", SeededNoiseWarning, stacklevel=2)
    curves = []
    for size, own in zip(sizes, seeds, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            warnings.simplefilter("ignore", TooFewPeopleWarning)
            curves.append(
                privacy_utility_curve(
                    estimator,
                    X,
                    y,
                    param_name=param_name,
                    epsilons=epsilons,
                    cv=[(train[:size], test) for train, test in splits],
                    scoring=scoring,
                    n_repeats=n_repeats,
                    n_jobs=n_jobs,
                    params=params,
                    clean_estimator=clean_estimator,
                    seed=own,
                )
            )
        if progress is not None:
            progress(len(curves), len(sizes))
    return PrivateLearningCurve(tuple(sizes), tuple(curves))


def _splits(X: Any, y: Any, cv: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits whose training rows stand in a random order."""
    generator = ShuffleSplit(1, test_size=0.25, random_state=0) if cv is None else check_cv(cv, y)
    splits = list(generator.split(X, y))
    if not splits:
        raise ValueError(f"cv must give at least one split. Got {cv!r} instead.")
    rng = np.random.default_rng(0)
    return [(rng.permutation(train), test) for train, test in splits]


def _sizes(n_people: Iterable[int] | None, most: int) -> list[int]:
    sizes = [math.ceil(most / 2**halvings) for halvings in range(4, -1, -1)] if n_people is None else list(n_people)
    if not sizes or not all(is_whole(size) and 2 <= size <= most for size in sizes):
        raise ValueError(f"n_people must hold whole numbers from 2 to {most}, the training rows. Got {sizes} instead.")
    return sorted({int(size) for size in sizes})


@dataclass(frozen=True)
class PrivateLearningCurve(ResultTable):
    """What :func:`private_learning_curve` found.

    Attributes
    ----------
    n_people : tuple of int
        Sorted.
    curves : tuple of PrivacyUtilityCurve
        For each number of people the scores over epsilon, with both baselines.
    """

    n_people: tuple[int, ...]
    curves: tuple[PrivacyUtilityCurve, ...]

    @property
    def scoring(self) -> str:
        """The name of the score."""
        return self.curves[0].scoring

    def to_dict(self) -> dict[str, np.ndarray]:
        """Give the table as a dict of arrays: the number of people, and the columns of each of the curves."""
        tables = [
            {"n_people": np.full(len(curve), n)} | curve.to_dict()
            for n, curve in zip(self.n_people, self.curves, strict=True)
        ]
        return {column: np.concatenate([table[column] for table in tables]) for column in tables[0]}

    def people_needed(self, score: float) -> dict[float, float]:
        """How many people a wanted mean score takes, at every epsilon.

        Parameters
        ----------
        score : float

        Returns
        -------
        dict of float to float
            For each epsilon a whole number; infinity where not even the fit without privacy reaches the score, and NaN
            where nothing tells, because no clean fit was made.

        Raises
        ------
        ValueError
            If `score` is no finite number.

        Notes
        -----
        Between two numbers of people that were tried, scores are taken as straight in the logarithm of the number,
        and as never falling. Beyond the largest, the gap g to the fit without privacy is taken to fall as 1 / n: that
        many people, times g over the gap that is wanted. Below the smallest nothing was tried, so it is the answer
        where its score is enough.

        Examples
        --------
        >>> from skldp.study import CurvePoint, PrivacyUtilityCurve, PrivateLearningCurve
        >>> def at(score):
        ...     point = CurvePoint(1.0, 1.0, 1.0, 0.0, score, 0.0, 0.0, 0.0, 1)
        ...     return PrivacyUtilityCurve((point,), ("epsilon",), "r2", 0.0, 0.0, 0.9, 0.0)
        >>> curve = PrivateLearningCurve((1_000, 2_000), (at(0.5), at(0.7)))
        >>> [curve.people_needed(score)[1.0] for score in (0.4, 0.6, 0.8, 0.95)]
        [1000, 1415, 4000, inf]
        """
        if not is_number(score):
            raise ValueError(f"score must be a finite number. Got {score!r} instead.")
        clean = self.curves[-1].clean_mean
        return {
            point.epsilon: _needed(score, self.n_people, [curve[i].score_mean for curve in self.curves], clean)
            for i, point in enumerate(self.curves[0])
        }

    def __str__(self) -> str:
        epsilons = [point.epsilon for point in self.curves[0]]
        lines = [f"{'people':>10}" + "".join(f"{f'eps {epsilon:g}':>10}" for epsilon in epsilons) + f"{'clean':>10}"]
        for n, curve in zip(self.n_people, self.curves, strict=True):
            scores = [*(point.score_mean for point in curve), curve.clean_mean]
            lines.append(f"{n:>10,}" + "".join(f"{score:>10.3f}" for score in scores))
        return "\n".join([f"{self.scoring}", *lines])


def _needed(wanted: float, sizes: tuple[int, ...], scores: list[float], clean: float) -> float:
    best = np.maximum.accumulate(scores)
    reached = int(np.searchsorted(best, wanted))
    if reached == 0:
        return sizes[0]
    if reached < len(sizes):
        ends, logs = best[reached - 1 : reached + 1], np.log(sizes[reached - 1 : reached + 1])
        return _whole(math.exp(np.interp(wanted, ends, logs)))
    if math.isnan(clean):
        return math.nan
    return math.inf if wanted >= clean else _whole(sizes[-1] * (clean - best[-1]) / (clean - wanted))


def _whole(n: float) -> int:
    # What rounding added is nobody.
    return math.ceil(n * (1 - 1e-9))
