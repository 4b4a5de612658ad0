"""Score of a private model over the number of people."""

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import ShuffleSplit, check_cv

from skldp._checks import is_integer, is_number
from skldp.exceptions import SeededNoiseWarning, TooFewPeopleWarning
from skldp.study._curve import privacy_utility_curve, warn_if_seeded
from skldp.study._results import PrivacyUtilityCurve, ResultTable, stacked


def private_learning_curve(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    n_people: Iterable[int] | None = None,
    epsilons: Iterable[float] = (1.0, 2.0, 4.0, 8.0),
    cv: Any = None,
    seed: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> "PrivateLearningCurve":
    """Score a private estimator at every epsilon, fitted on more and more people.

    Parameters
    ----------
    estimator : estimator
        For example :class:`~skldp.PrivateLinearRegression`.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_people : iterable of int, default=None
        Numbers of training rows of a split; larger sets contain the smaller ones. None takes five numbers, each twice
        the previous one, up to all rows.
    epsilons : iterable of float, default=(1.0, 2.0, 4.0, 8.0)
        Natural-log epsilons to set.
    cv : int, cross-validation generator or iterable, default=None
        As in scikit-learn. None holds out a random quarter of the rows, once.
    seed : None or int, default=None
        None gives secure noise. An int makes the study repeatable, with other noise in every fit.
    progress : callable, default=None
        Called as ``progress(done, total)`` after each number of people.
    **options
        `param_name`, `scoring`, `n_repeats`, `n_jobs`, `params` and `clean_estimator` of
        :func:`~skldp.privacy_utility_curve`.

    Returns
    -------
    curve : PrivateLearningCurve
        Table with ``to_frame()``, ``to_dict()`` and ``to_csv(path)``, the numbers `n_people`, and `curves`, the result
        of
        :func:`~skldp.privacy_utility_curve` for each of them.

        ``curve.people_needed(score)`` returns for every epsilon the number of people that a mean score takes. Scores
        are interpolated linearly in the logarithm of the number, and never decrease. Beyond the largest number, the gap
        to the fit without privacy is taken to fall as 1 / n. It is infinite if the fit without privacy does not reach
        the score, and NaN if there is no such fit.

    Raises
    ------
    ValueError
        If a number of people is not an integer from 2 to the number of training rows, or as in
        :func:`~skldp.privacy_utility_curve`.

    Warns
    -----
    SeededNoiseWarning
        If `seed` is given, or a step of the estimator has one.

    See Also
    --------
    sklearn.model_selection.learning_curve : The same without privacy.
    skldp.learning.n_people_needed : Number of people before anything is learnt, without any data.

    Notes
    -----
    Fits do not warn of too few people, which the curve shows.

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
    warn_if_seeded(estimator, seed)
    seeds = [None] * len(sizes) if seed is None else np.random.SeedSequence(seed).generate_state(len(sizes)).tolist()
    curves = []
    for size, own in zip(sizes, seeds, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            warnings.simplefilter("ignore", TooFewPeopleWarning)
            cut = [(train[:size], test) for train, test in splits]
            curves.append(privacy_utility_curve(estimator, X, y, epsilons=epsilons, cv=cut, seed=own, **options))
        if progress is not None:
            progress(len(curves), len(sizes))
    return PrivateLearningCurve(tuple(sizes), tuple(curves))


def _splits(X: Any, y: Any, cv: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return splits whose training rows are in random order."""
    generator = ShuffleSplit(1, test_size=0.25, random_state=0) if cv is None else check_cv(cv, y)
    splits = list(generator.split(X, y))
    if not splits:
        raise ValueError(f"cv must give at least one split; got {cv!r}.")
    rng = np.random.default_rng(0)
    return [(rng.permutation(train), test) for train, test in splits]


def _sizes(n_people: Iterable[int] | None, most: int) -> list[int]:
    sizes = [math.ceil(most / 2**halvings) for halvings in range(4, -1, -1)] if n_people is None else list(n_people)
    if not sizes or not all(is_integer(size) and 2 <= size <= most for size in sizes):
        raise ValueError(f"n_people must be integers from 2 to {most}, the number of training rows; got {sizes}.")
    return sorted({int(size) for size in sizes})


@dataclass(frozen=True)
class PrivateLearningCurve(ResultTable):
    """Scores over epsilon for each number of people; :func:`private_learning_curve` describes it."""

    n_people: tuple[int, ...]
    curves: tuple[PrivacyUtilityCurve, ...]

    @property
    def scoring(self) -> str:
        """Name of the score."""
        return self.curves[0].scoring

    def to_dict(self) -> dict[str, np.ndarray]:
        """Return the table as a dict of arrays: the number of people, and the columns of each of the curves."""
        return stacked("n_people", dict(zip(self.n_people, self.curves, strict=True)))

    def people_needed(self, score: float) -> dict[float, float]:
        """Return the number of people that a mean score takes, at every epsilon."""
        if not is_number(score):
            raise ValueError(f"score must be a finite number; got {score!r}.")
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
    """Return the number of people for a score: interpolated in the logarithm, or extrapolated with a gap of 1 / n."""
    best = np.maximum.accumulate(scores)
    reached = int(np.searchsorted(best, wanted))
    if reached == 0:
        return sizes[0]
    if reached < len(sizes):
        ends, logs = best[reached - 1 : reached + 1], np.log(sizes[reached - 1 : reached + 1])
        needed = math.exp(np.interp(wanted, ends, logs))
    elif wanted >= clean:
        return math.inf
    else:
        needed = sizes[-1] * (clean - best[-1]) / (clean - wanted)
    # Rounding must not add a person.
    return math.nan if math.isnan(needed) else math.ceil(needed * (1 - 1e-9))
