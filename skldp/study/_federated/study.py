"""Federated learning over settings, epsilons and seeds: the table behind the BitRand paper's Figs. 8 and 15 to 21."""

import csv
import math
import warnings
from dataclasses import asdict, dataclass, fields
from numbers import Integral
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from skldp.estimators._validation import check_epsilon
from skldp.exceptions import SeededNoiseWarning, warn_user
from skldp.mechanisms._noise import noise_from
from skldp.study._curve import has_seed
from skldp.study._federated.learning import federated_learning

__all__ = ["FederatedRow", "FederatedTable", "federated_study"]


def federated_study(
    X,
    y,
    X_test,
    y_test,
    settings,
    *,
    epsilons=(1.0, 2.0, 5.0, 10.0),
    n_seeds=3,
    n_jobs=None,
    seed=None,
    progress=None,
    **learning,
):
    """Train a federated model for every setting, epsilon and seed.

    Parameters
    ----------
    X, y, X_test, y_test : array-like
        As for :func:`skldp.study._federated.learning.federated_learning`.
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
        Further parameters of :func:`skldp.study._federated.learning.federated_learning`.

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
    >>> from skldp.study._federated.settings import noiseless
    >>> from skldp.study._federated.study import federated_study
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
        warn_user("A mechanism has a seed: its releases are repeatable.", SeededNoiseWarning)
    calls = (
        delayed(federated_learning)(X, y, X_test, y_test, setting=setting, epsilon=epsilon, seed=run_seed, **learning)
        for (setting, epsilon), run_seed in zip((p for p in points for _ in range(n_seeds)), seeds, strict=True)
    )
    runs = []
    for run in Parallel(n_jobs=n_jobs, return_as="generator")(calls):
        runs.append(run)
        if progress is not None:
            progress(len(runs), len(seeds))
    return FederatedTable(
        tuple(
            _row(setting, epsilon, runs[i * n_seeds : (i + 1) * n_seeds]) for i, (setting, epsilon) in enumerate(points)
        )
    )


def _seeds(seed, n_runs):
    if seed is None:
        return [None] * n_runs
    warn_user("seed makes every release of this study repeatable.", SeededNoiseWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return noise_from(seed).integers(2**31, n_runs).tolist()


def _row(setting, epsilon, runs):
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
        accuracy_mean=float(np.mean(accuracies)),
        accuracy_std=float(np.std(accuracies)),
        auc_mean=float(np.mean(areas)),
        auc_std=float(np.std(areas)),
        n_runs=len(runs),
        seconds=float(np.sum([run.seconds for run in runs])),
    )


def _check(settings, epsilons, n_seeds):
    names = [setting.name for setting in settings]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"settings must be at least one FederatedSetting, each with its own name. Got {names!r}.")
    if not epsilons:
        raise ValueError("epsilons must hold at least one finite number > 0. Got none.")
    for epsilon in epsilons:
        check_epsilon(epsilon)
    if not isinstance(n_seeds, Integral) or isinstance(n_seeds, bool) or n_seeds < 1:
        raise ValueError(f"n_seeds must be a whole number, at least 1. Got {n_seeds!r} instead.")


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
        What a trusted shuffler guarantees in the central model; NaN where there is none or its theorem is silent.
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
    accuracy_mean: float
    accuracy_std: float
    auc_mean: float
    auc_std: float
    n_runs: int
    seconds: float


@dataclass(frozen=True)
class FederatedTable:
    """What :func:`federated_study` found: a sequence of :class:`FederatedRow`.

    Attributes
    ----------
    rows : tuple of FederatedRow
    """

    rows: tuple[FederatedRow, ...]

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

    def to_frame(self):
        """Give the table as a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError('to_frame needs pandas: pip install "skldp[study]".') from None
        return pd.DataFrame([asdict(row) for row in self.rows])

    def to_csv(self, path):
        """Write the table as CSV."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(FederatedRow)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in self.rows)

    def __str__(self):
        width = max(len(row.setting) for row in self.rows)
        lines = [
            f"{'setting':<{width}}  {'perturbs':<21}  {'eps':>6}  {'published':>10}  {'exact local':>12}  {'per':<6}  "
            f"{'shuffled':>10}  {'accuracy':>15}  {'AUC':>6}"
        ]
        lines += [
            f"{row.setting:<{width}}  {row.perturbs:<21}  {_number(row.epsilon):>6}  "
            f"{_number(row.published_epsilon):>10}  {_number(row.exact_epsilon):>12}  {row.unit:<6}  "
            f"{'' if math.isnan(row.shuffled_epsilon) else _number(row.shuffled_epsilon):>10}  "
            f"{row.accuracy_mean:>6.3f} +- {row.accuracy_std:.3f}  {row.auc_mean:>6.3f}"
            for row in self.rows
        ]
        return "\n".join(lines)


def _number(value):
    return f"{value:.4g}" if not 1e4 <= value < 1e15 else f"{value:,.0f}"
