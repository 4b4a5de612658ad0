"""Federated learning over settings, epsilons and seeds: the table and the pictures of the BitRand paper."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import stdtr

from skldp._checks import check_whole
from skldp.estimators._validation import check_epsilon
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms._noise import noise_from
from skldp.study._display import draw_epsilon_axis
from skldp.study._extras import require
from skldp.study._federated.learning import FederatedRun, federated_learning
from skldp.study._federated.settings import FederatedSetting
from skldp.study._private_steps import has_seed
from skldp.study._results import ResultTable, columns_of, columns_of_records

__all__ = ["FEDERATED_AXES", "FederatedDisplay", "FederatedRow", "FederatedTable", "MeanDifference", "federated_study"]

FEDERATED_AXES = {
    "published": ("published_epsilon", "epsilon as the papers count it"),
    "exact": ("exact_epsilon", "exact local epsilon of the whole training"),
    "shuffled": ("shuffled_epsilon", "central epsilon behind a trusted shuffler"),
}
_METRICS = {"accuracy": "test accuracy", "auc": "test AUC"}
_STYLES = {
    "nothing": ("d", "-."),
    "features": ("o", "-"),
    "gradients": ("s", "--"),
    "anonymised gradients": ("v", ":"),
    "anonymised coordinates": ("^", ":"),
    "anonymised weights": ("<", ":"),
}


def federated_study(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    settings: Iterable[FederatedSetting],
    *,
    epsilons: Iterable[float] = (1.0, 2.0, 5.0, 10.0),
    n_seeds: int = 3,
    n_jobs: int | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **learning: Any,
) -> "FederatedTable":
    """Train a federated model for every setting, epsilon and seed.

    Parameters
    ----------
    X, y, X_test, y_test : array-like
        As for :func:`federated_learning`.
    settings : iterable of FederatedSetting
    epsilons : iterable of float, default=(1.0, 2.0, 5.0, 10.0)
        Natural-log epsilons, as each setting counts them.
    n_seeds : int, default=3
        Trainings of each setting at each epsilon, each with its own dealing of rows to clients and its own noise.
    n_jobs : int, default=None
        Trainings that run at once.
    seed : None or int, default=None
        None gives secure noise. An int makes the study repeatable.
    progress : callable, default=None
        Called as ``progress(done, total)`` after each training.
    **learning
        Further parameters of :func:`federated_learning`.

    Returns
    -------
    FederatedTable
        One row for each setting and epsilon; one for a setting with nothing to vary.

    Raises
    ------
    ValueError
        If there is no setting, two have one name, an epsilon is not a finite number > 0, or a training refuses its
        input.

    Warns
    -----
    SeededNoiseWarning
        If `seed` is given, or a mechanism of a setting has one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skldp.study import federated_study, noiseless
    >>> X, y = load_iris(return_X_y=True)
    >>> table = federated_study(X[::2], y[::2], X[1::2], y[1::2], [noiseless()], n_seeds=2, n_clients=25)
    >>> len(table), table[0].n_runs
    (1, 2)
    """
    settings, epsilons = list(settings), list(epsilons)
    _check(settings, epsilons, n_seeds)
    points = [
        (setting, epsilon) for setting in settings for epsilon in (epsilons if setting.has_epsilon else epsilons[:1])
    ]
    seeds = _seeds(seed, len(points) * n_seeds)
    given = [one for setting in settings for one in (setting.mechanism, setting.label_mechanism) if one is not None]
    if seed is None and any(map(has_seed, given)):
        # Workers warn where nobody reads it.
        warnings.warn("A mechanism has a seed: its releases are repeatable.", SeededNoiseWarning, stacklevel=2)
    calls = (
        delayed(federated_learning)(X, y, X_test, y_test, setting=setting, epsilon=epsilon, seed=run_seed, **learning)
        for (setting, epsilon), run_seed in zip((p for p in points for _ in range(n_seeds)), seeds, strict=True)
    )
    runs = []
    for run in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
        runs.append(run)
        if progress is not None:
            progress(len(runs), len(seeds))
    by_point = tuple(tuple(runs[i * n_seeds : (i + 1) * n_seeds]) for i in range(len(points)))
    rows = (_row(setting, epsilon, list(own)) for (setting, epsilon), own in zip(points, by_point, strict=True))
    return FederatedTable(tuple(rows), by_point)


def _seeds(seed: int | None, n_runs: int) -> list[int | None]:
    if seed is None:
        return [None] * n_runs
    warnings.warn("seed makes every release of this study repeatable.", SeededNoiseWarning, stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return noise_from(seed).integers(2**31, n_runs).tolist()


def _row(setting: FederatedSetting, epsilon: float, runs: list[FederatedRun]) -> "FederatedRow":
    # Counted alike in every run, but a mechanism that draws its own sensitivity may differ: the worst is reported.
    worst = max(runs, key=lambda run: run.guarantee.epsilon)
    shuffled = worst.shuffled
    accuracies, areas = [run.accuracy for run in runs], [run.auc for run in runs]
    return FederatedRow(
        setting=setting.name,
        perturbs=setting.perturbs,
        unit=setting.unit,
        epsilon=float(epsilon) if setting.has_epsilon else math.inf,
        published_epsilon=worst.published_epsilon,
        exact_epsilon=worst.guarantee.epsilon,
        delta=worst.guarantee.delta,
        shuffled_epsilon=math.nan if shuffled is None else shuffled.epsilon,
        shuffled_delta=math.nan if shuffled is None else shuffled.delta,
        closed_form_epsilon=worst.closed_form_epsilon,
        accuracy_mean=float(np.mean(accuracies)),
        accuracy_std=float(np.std(accuracies)),
        auc_mean=float(np.mean(areas)),
        auc_std=float(np.std(areas)),
        n_runs=len(runs),
        seconds=float(np.sum([run.seconds for run in runs])),
    )


def _check(settings: list[FederatedSetting], epsilons: list[float], n_seeds: Any) -> None:
    names = [setting.name for setting in settings]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"settings must be at least one FederatedSetting, each with its own name. Got {names!r}.")
    if not epsilons:
        raise ValueError("epsilons must hold at least one finite number > 0. Got none.")
    for epsilon in epsilons:
        check_epsilon(epsilon)
    check_whole("n_seeds", n_seeds, least=1)


@dataclass(frozen=True)
class FederatedRow:
    """One setting at one epsilon.

    Attributes
    ----------
    setting, perturbs : str
    unit : {"record", "label", "client"}
        Whose change the epsilons are about.
    epsilon : float
        What the setting's mechanism was given.
    published_epsilon : float
        As the papers count the whole training.
    exact_epsilon, delta : float
        What the whole training guarantees without trusting anyone.
    shuffled_epsilon, shuffled_delta : float
        What a trusted shuffler guarantees in the central model; NaN where there is none.
    closed_form_epsilon : float
        The same by the published formula; NaN where its theorem is silent.
    accuracy_mean, accuracy_std, auc_mean, auc_std : float
        On test data, over the seeds.
    n_runs : int
    seconds : float
        Of all runs together.
    """

    setting: str
    perturbs: str
    unit: str
    epsilon: float
    published_epsilon: float
    exact_epsilon: float
    delta: float
    shuffled_epsilon: float
    shuffled_delta: float
    closed_form_epsilon: float
    accuracy_mean: float
    accuracy_std: float
    auc_mean: float
    auc_std: float
    n_runs: int
    seconds: float


@dataclass(frozen=True)
class MeanDifference:
    """What a t-test says about two settings.

    Attributes
    ----------
    mean : float
        The first setting's mean less the second's.
    standard_error : float
        Of that mean.
    p_value : float
        Two-sided.
    n_pairs : int
    """

    mean: float
    standard_error: float
    p_value: float
    n_pairs: int


@dataclass(frozen=True)
class FederatedTable(ResultTable):
    """What :func:`federated_study` found: a sequence of :class:`FederatedRow`.

    Attributes
    ----------
    rows : tuple of FederatedRow
    runs : tuple of tuple of FederatedRun
        The trainings of each row.
    """

    rows: tuple[FederatedRow, ...]
    runs: tuple[tuple[FederatedRun, ...], ...] = ()

    def t_test(self, first: str, second: str, *, metric: str = "accuracy") -> "MeanDifference":
        """Two-sided t-test of two settings, paired by epsilon and by the order of trainings.

        Parameters
        ----------
        first, second : str
            Names of settings.
        metric : {"accuracy", "auc"}, default="accuracy"

        Returns
        -------
        MeanDifference

        Raises
        ------
        ValueError
            If a name or the metric is unknown, or there are fewer than two pairs.

        Notes
        -----
        The paper reports two-tailed t-tests and not what it pairs. Trainings here do not share their noise, so that a
        pair has its epsilon in common and nothing else. A setting without an epsilon is paired with every one.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skldp.study import federated_study, noiseless, random_guess
        >>> X, y = load_iris(return_X_y=True)
        >>> table = federated_study(
        ...     X[::2], y[::2], X[1::2], y[1::2], [noiseless(), random_guess()], n_seeds=5, n_clients=25
        ... )
        >>> table.t_test("noiseless", "random guess").n_pairs
        5
        """
        if metric not in _METRICS:
            raise ValueError(f"metric must be one of {tuple(_METRICS)}. Got {metric!r} instead.")
        one, two = (self._scores(name, metric) for name in (first, second))
        one = dict.fromkeys(two, one[math.inf]) if math.inf in one else one
        two = dict.fromkeys(one, two[math.inf]) if math.inf in two else two
        pairs = [pair for epsilon in one.keys() & two.keys() for pair in zip(one[epsilon], two[epsilon], strict=True)]
        if len(pairs) < 2:
            raise ValueError(f"A t-test needs at least two pairs of trainings. Got {len(pairs)} instead.")
        differences = np.array([a - b for a, b in pairs])
        if not differences.any():
            return MeanDifference(0.0, 0.0, 1.0, len(pairs))
        error = float(differences.std(ddof=1) / math.sqrt(len(pairs)))
        ratio = float(differences.mean()) / error if error else math.copysign(math.inf, differences[0])
        return MeanDifference(
            float(differences.mean()), error, float(2 * stdtr(len(pairs) - 1, -abs(ratio))), len(pairs)
        )

    def _scores(self, name: str, metric: str) -> dict[float, list[float]]:
        """What the trainings of a setting came to, at each epsilon."""
        found = {
            row.epsilon: [getattr(run, metric) for run in runs]
            for row, runs in zip(self.rows, self.runs, strict=False)
            if row.setting == name
        }
        if not found:
            raise ValueError(
                f"A setting must be one of {[*dict.fromkeys(r.setting for r in self.rows)]}. Got {name!r}."
            )
        return found

    def __iter__(self) -> Iterator[FederatedRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def to_dict(self) -> dict[str, np.ndarray]:
        """Give the table as a dict of arrays, one entry a field of :class:`FederatedRow`."""
        return columns_of_records(FederatedRow, self.rows)

    def __str__(self) -> str:
        width = max(len(row.setting) for row in self.rows)
        lines = [
            f"{'setting':<{width}}  {'perturbs':<21}  {'eps':>6}  {'published':>10}  {'exact local':>12}  {'per':<6}  "
            f"{'shuffled':>10}  {'closed form':>11}  {'accuracy':>15}  {'AUC':>6}"
        ]
        lines += [
            f"{row.setting:<{width}}  {row.perturbs:<21}  {_number(row.epsilon):>6}  "
            f"{_number(row.published_epsilon):>10}  {_number(row.exact_epsilon):>12}  {row.unit:<6}  "
            f"{'' if math.isnan(row.shuffled_epsilon) else _number(row.shuffled_epsilon):>10}  "
            f"{'' if math.isnan(row.closed_form_epsilon) else _number(row.closed_form_epsilon):>11}  "
            f"{row.accuracy_mean:>6.3f} +- {row.accuracy_std:.3f}  {row.auc_mean:>6.3f}"
            for row in self.rows
        ]
        return "\n".join(lines)


class FederatedDisplay:
    """Draw a federated study: test accuracy or AUC over epsilon, on the axis that one chooses.

    Parameters
    ----------
    frame : FederatedTable, DataFrame or dict of arrays
        With the columns of :meth:`FederatedTable.to_frame`.
    metric : {"accuracy", "auc"}, default="accuracy"
    epsilon_axis : {"published", "exact", "shuffled"}, default="published"
        A setting without that epsilon is left out; "exact" is what is guaranteed.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, frame: Any, *, metric: str = "accuracy", epsilon_axis: str = "published") -> None:
        self.frame = frame
        self.metric = metric
        self.epsilon_axis = epsilon_axis

    @classmethod
    def from_frame(
        cls, frame: Any, *, metric: str = "accuracy", epsilon_axis: str = "published", ax: Any = None
    ) -> Self:
        """Draw a study that was run before.

        Parameters
        ----------
        frame : FederatedTable, DataFrame or dict of arrays
        metric : {"accuracy", "auc"}, default="accuracy"
        epsilon_axis : {"published", "exact", "shuffled"}, default="published"
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        FederatedDisplay

        Raises
        ------
        ValueError
            If `metric` or `epsilon_axis` is none of these.
        ImportError
            If matplotlib is missing.
        """
        return cls(frame, metric=metric, epsilon_axis=epsilon_axis).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        self : object
        """
        for name, value, known in (
            ("metric", self.metric, _METRICS),
            ("epsilon_axis", self.epsilon_axis, FEDERATED_AXES),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {tuple(known)}. Got {value!r} instead.")
        plt = require("matplotlib.pyplot")
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        table = columns_of(self.frame)
        column, label = FEDERATED_AXES[self.epsilon_axis]
        for name in dict.fromkeys(table["setting"].tolist()):
            rows = table["setting"] == name
            epsilon, mean, std = (table[key][rows] for key in (column, f"{self.metric}_mean", f"{self.metric}_std"))
            if np.isinf(table["epsilon"][rows][0]):
                self.ax_.axhline(mean[0], color="0.4", linewidth=1, label=name)
            elif np.isfinite(epsilon).any():
                marker, line = _STYLES[str(table["perturbs"][rows][0])]
                look = {"marker": marker, "linestyle": line, "markersize": 4, "capsize": 2, "label": name}
                self.ax_.errorbar(epsilon, mean, std, **look)
        draw_epsilon_axis(self.ax_)
        self.ax_.set_xlabel(label)
        self.ax_.set_ylabel(_METRICS[self.metric])
        self.ax_.legend(fontsize="x-small")
        return self


def _number(value: float) -> str:
    return f"{value:.4g}" if not 1e4 <= value < 1e15 else f"{value:,.0f}"
