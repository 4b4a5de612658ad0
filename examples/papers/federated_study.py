"""Federated learning over settings, epsilons and seeds: the tables, t-tests and figures of the BitRand paper."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from scipy.special import stdtr
from sklearn.metrics import roc_auc_score

from skldp import PrivacyGuarantee
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import noise_from
from skldp.study import federated_learning
from skldp.study._curve import has_seed
from skldp.study._displays import draw_epsilon_axis
from skldp.study._federated_learning import FederatedRun
from skldp.study._results import ResultTable, columns_of_records, result_columns

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


def _summary(runs: list[FederatedRun]) -> dict[str, Any]:
    """Return the epsilons of the worst of like trainings, and the means and deviations of their scores."""
    # The guarantees differ between runs if a mechanism draws its sensitivity at random: report the worst.
    worst = max(runs, key=lambda run: run.guarantee.epsilon)
    accuracies, areas = [run.accuracy for run in runs], [run.auc for run in runs]
    return {
        "published_epsilon": worst.published_epsilon,
        "exact_epsilon": worst.guarantee.epsilon,
        "delta": worst.guarantee.delta,
        "shuffled_epsilon": math.nan if worst.shuffled is None else worst.shuffled.epsilon,
        "shuffled_delta": math.nan if worst.shuffled is None else worst.shuffled.delta,
        "closed_form_epsilon": worst.closed_form_epsilon,
        "accuracy_mean": float(np.mean(accuracies)),
        "accuracy_std": float(np.std(accuracies)),
        "auc_mean": float(np.mean(areas)),
        "auc_std": float(np.std(areas)),
        "n_runs": len(runs),
        "seconds": float(np.sum([run.seconds for run in runs])),
    }


@dataclass(frozen=True)
class FederatedSetting:
    """One line of a figure: a name, and the arguments of :func:`skldp.study.federated_learning`.

    `perturbs` may be "everything" as well: scores are drawn at random. `correction` divides the epsilon that the
    mechanism is given, and multiplies what is published of it.
    """

    name: str
    perturbs: str
    mechanism: Any = None
    label_mechanism: Any = None
    n_rounds: int | None = None
    correction: float = 1.0

    @property
    def unit(self) -> str:
        """Unit of the guarantee: a row, its label, or all rows of a client."""
        if self.perturbs not in ("nothing", "everything", "features"):
            return "client"
        return "label" if self.mechanism is None and self.label_mechanism is not None else "record"

    @property
    def has_epsilon(self) -> bool:
        """Whether a mechanism takes the epsilons of a study."""
        return self.mechanism is not None or self.label_mechanism is not None

    def train(self, X: Any, y: Any, X_test: Any, y_test: Any, *, epsilon: float = 1.0, **learning: Any) -> FederatedRun:
        """Train once; further parameters are those of :func:`skldp.study.federated_learning`."""
        if self.perturbs == "everything":
            return _guessed(y_test, learning.get("seed"))
        if self.n_rounds is not None:
            learning["n_rounds"] = self.n_rounds
        given = {"perturbs": self.perturbs, "mechanism": self.mechanism, "label_mechanism": self.label_mechanism}
        run = federated_learning(X, y, X_test, y_test, epsilon=epsilon / self.correction, **given, **learning)
        return run if self.correction == 1 else replace(run, published_epsilon=run.published_epsilon * self.correction)


def _guessed(y_test: Any, seed: Any) -> FederatedRun:
    """The lower bound of every figure: scores drawn without a look at the data."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        noise = noise_from(seed)
    y_test = np.asarray(y_test)
    classes = np.unique(y_test)
    own = y_test == 1 if y_test.ndim == 2 else y_test[:, None] == classes
    scores = noise.uniform(own.shape)
    right = (scores > 0.5) == own if y_test.ndim == 2 else classes[scores.argmax(axis=1)] == y_test
    area = float(np.mean([roc_auc_score(column, score) for column, score in zip(own.T, scores.T, strict=True)]))
    nothing = PrivacyGuarantee(0.0, basis="nothing is used")
    return FederatedRun(float(np.mean(right)), area, nothing, 0.0, None, math.nan, time.perf_counter() - started)


def noiseless() -> FederatedSetting:
    """Perturb nothing: the upper bound of every figure."""
    return FederatedSetting("noiseless", "nothing")


def random_guess() -> FederatedSetting:
    """Use nothing: the lower bound of every figure."""
    return FederatedSetting("random guess", "everything")


def features_perturbed(
    mechanism: Any, *, label_mechanism: Any = None, name: str | None = None, n_rounds: int | None = None
) -> FederatedSetting:
    """Release the features of every row once, and the labels by their own mechanism."""
    return FederatedSetting(name or _name(mechanism), "features", mechanism, label_mechanism, n_rounds)


def labels_perturbed(label_mechanism: Any, *, name: str | None = None) -> FederatedSetting:
    """Release the labels alone."""
    return FederatedSetting(name or _name(label_mechanism), "nothing", None, label_mechanism)


def gradients_perturbed(mechanism: Any, *, name: str | None = None, n_rounds: int | None = None) -> FederatedSetting:
    """Release every client's gradient in every round, each round with its share of the budget."""
    return FederatedSetting(name or _name(mechanism), "gradients", mechanism, n_rounds=n_rounds)


def gradients_anonymised(mechanism: Any, *, message: str = "coordinate", name: str | None = None) -> FederatedSetting:
    """Release gradients with the full budget in every round: an anonymiser mixes gradients, or their coordinates.

    "coordinate" is the BitRand paper's Table 2 and LDP-FL, "gradient" its Figures 17 and 20.
    """
    return FederatedSetting(name or _name(mechanism), f"anonymised {message}s", mechanism)


def weights_anonymised(mechanism: Any, *, name: str | None = None) -> FederatedSetting:
    """Release weights after one step of each client, number by number, as LDP-FL does (its Equation 2)."""
    return FederatedSetting(name or _name(mechanism), "anonymised weights", mechanism)


def _name(mechanism: Any) -> str:
    kind = mechanism.get_params(deep=False).get("mechanism")
    return f"{type(mechanism).__name__}({kind})" if isinstance(kind, str) else type(mechanism).__name__


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

    `n_seeds` is the number of trainings of each setting at each epsilon, each with its own assignment of rows to
    clients and its own noise. `seed` makes the study repeatable. `progress` is called as ``progress(done, total)``.
    `learning` are further parameters of :func:`skldp.study.federated_learning`. The table has a row for each setting
    and epsilon.
    """
    settings, epsilons = list(settings), list(epsilons)
    names = [setting.name for setting in settings]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"settings must be at least one FederatedSetting, each with its own name; got {names!r}.")
    points = [
        (setting, epsilon) for setting in settings for epsilon in (epsilons if setting.has_epsilon else epsilons[:1])
    ]
    seeds = _seeds(seed, len(points) * n_seeds)
    given = [one for setting in settings for one in (setting.mechanism, setting.label_mechanism) if one is not None]
    if seed is None and any(map(has_seed, given)):
        # Warnings of worker processes are not shown.
        warnings.warn("A mechanism has a seed: its releases are repeatable.", SeededNoiseWarning, stacklevel=2)
    calls = (
        delayed(setting.train)(X, y, X_test, y_test, epsilon=epsilon, seed=run_seed, **learning)
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
    return FederatedRow(
        setting=setting.name,
        perturbs=setting.perturbs,
        unit=setting.unit,
        epsilon=float(epsilon) if setting.has_epsilon else math.inf,
        **_summary(runs),
    )


@dataclass(frozen=True)
class FederatedRow:
    """One setting at one epsilon; its columns are those of the table."""

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
    """Mean of the paired differences of two settings, its standard error, and the two-sided p-value."""

    mean: float
    standard_error: float
    p_value: float
    n_pairs: int


@dataclass(frozen=True)
class FederatedTable(ResultTable):
    """Result of :func:`federated_study`: its rows, and the trainings of each."""

    rows: tuple[FederatedRow, ...]
    runs: tuple[tuple[FederatedRun, ...], ...] = ()

    def t_test(self, first: str, second: str, *, metric: str = "accuracy") -> "MeanDifference":
        """Two-sided t-test of two settings, paired by epsilon and by the order of trainings.

        The paper reports two-tailed t-tests without their pairs. Trainings here do not share their noise, so that a
        pair has its epsilon in common and nothing else. A setting without an epsilon is paired with every one.
        """
        if metric not in _METRICS:
            raise ValueError(f"metric must be one of {tuple(_METRICS)}; got {metric!r}.")
        one, two = (self._scores(name, metric) for name in (first, second))
        one = dict.fromkeys(two, one[math.inf]) if math.inf in one else one
        two = dict.fromkeys(one, two[math.inf]) if math.inf in two else two
        pairs = [pair for epsilon in one.keys() & two.keys() for pair in zip(one[epsilon], two[epsilon], strict=True)]
        if len(pairs) < 2:
            raise ValueError(f"A t-test needs at least two pairs of trainings; got {len(pairs)}.")
        differences = np.array([a - b for a, b in pairs])
        if not differences.any():
            return MeanDifference(0.0, 0.0, 1.0, len(pairs))
        error = float(differences.std(ddof=1) / math.sqrt(len(pairs)))
        ratio = float(differences.mean()) / error if error else math.copysign(math.inf, differences[0])
        return MeanDifference(
            float(differences.mean()), error, float(2 * stdtr(len(pairs) - 1, -abs(ratio))), len(pairs)
        )

    def _scores(self, name: str, metric: str) -> dict[float, list[float]]:
        """Scores of the trainings of a setting, at each epsilon."""
        found = {
            row.epsilon: [getattr(run, metric) for run in runs]
            for row, runs in zip(self.rows, self.runs, strict=False)
            if row.setting == name
        }
        if not found:
            raise ValueError(
                f"A setting must be one of {[*dict.fromkeys(r.setting for r in self.rows)]}; got {name!r}."
            )
        return found

    def __iter__(self) -> Iterator[FederatedRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def to_dict(self) -> dict[str, np.ndarray]:
        """Give the table as a dict of arrays, one entry a field of a row."""
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
    """Draw test accuracy or AUC over epsilon: "published", "exact" (what is guaranteed) or "shuffled"."""

    def __init__(self, frame: Any, *, metric: str = "accuracy", epsilon_axis: str = "published") -> None:
        self.frame = frame
        self.metric = metric
        self.epsilon_axis = epsilon_axis

    @classmethod
    def from_frame(
        cls, frame: Any, *, metric: str = "accuracy", epsilon_axis: str = "published", ax: Any = None
    ) -> Self:
        """Draw a study that was run before, into `ax` or a new figure."""
        return cls(frame, metric=metric, epsilon_axis=epsilon_axis).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw into `ax` or a new figure."""
        for name, value, known in (
            ("metric", self.metric, _METRICS),
            ("epsilon_axis", self.epsilon_axis, FEDERATED_AXES),
        ):
            if value not in known:
                raise ValueError(f"{name} must be one of {tuple(known)}; got {value!r}.")
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        table = result_columns(self.frame)
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
