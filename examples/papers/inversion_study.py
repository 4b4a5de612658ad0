"""What attackers recover at each mechanism and exact epsilon: the table, and its picture."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from inversion_tables import audit_table

from skldp import TablePrivatizer
from skldp._tables import require
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.study._catalogue import make_named
from skldp.study._inversion import audit_inversion, inversion_bound
from skldp.study._results import ResultTable, columns_of_records, result_columns

__all__ = ["InversionDisplay", "InversionRow", "InversionTable", "inversion_study"]

# Points of the curve of the bound.
_PLACES = 200
_DRAWN = ("exact_epsilon", "recovered", "low", "high")


@dataclass(frozen=True)
class InversionRow:
    """One attack on one mechanism at one epsilon.

    Attributes
    ----------
    mechanism, attack : str
    stated_epsilon : float
        What the mechanism was asked for.
    exact_epsilon : float
        The exact one, between the two candidates that are furthest apart (natural log).
    recovered, low, high : float
        The share of trials whose candidate was named, and the bounds on its probability.
    bound : float
        The most that the guarantee leaves to any attack on these candidates.
    n_candidates : int
    """

    mechanism: str
    attack: str
    stated_epsilon: float
    exact_epsilon: float
    recovered: float
    low: float
    high: float
    bound: float
    n_candidates: int


@dataclass(frozen=True)
class InversionTable(ResultTable):
    """What :func:`inversion_study` found: a row for every attack.

    Attributes
    ----------
    rows : tuple of InversionRow
    n_trials : int
        Of each audit.
    """

    rows: tuple[InversionRow, ...]
    n_trials: int

    def to_dict(self) -> dict[str, np.ndarray]:
        """Give the table as a dict of arrays: a column for each field of a row."""
        return columns_of_records(InversionRow, self.rows)

    def __str__(self) -> str:
        head = f"{'mechanism':<20} {'attack':<11} {'stated':>8} {'exact':>9}  {'recovered':>9}  {'at most':>9}"
        return "\n".join([head, *(_line(row) for row in self.rows)])


def inversion_study(
    mechanisms: Iterable[str] | Mapping[str, Callable[[float], Any]],
    candidates: Any,
    epsilons: Iterable[float],
    *,
    bounds: Any = None,
    n_trials: int = 10_000,
    **options: Any,
) -> InversionTable:
    """Audit mechanisms at several epsilons by the share of candidates that attackers recover.

    Parameters
    ----------
    mechanisms : iterable of str, or dict of str to callable
        Names of ``FEATURE_MECHANISMS``; or, by any name, a function that makes an estimator for an epsilon.
    candidates : array-like or DataFrame of shape (n_candidates, n_features)
        The vocabulary or the records, as for :func:`audit_inversion`.
    epsilons : iterable of float
        What the mechanisms are asked for.
    bounds : (low, high), default=None
        The declared domain of named mechanisms. None takes the least and the largest number of the candidates: these
        are public to the attacker.
    n_trials : int, default=10_000
    **options : dict
        Further parameters of :func:`audit_inversion`.

    Returns
    -------
    InversionTable

    Raises
    ------
    StudyInputError
        If there is no such mechanism.
    ValueError
        If `mechanisms` is one name alone, or as :func:`audit_inversion` does.

    Examples
    --------
    >>> from inversion_study import inversion_study
    >>> records = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> table = inversion_study(["duchi-vector"], records, [1.0, 4.0], n_trials=500)
    >>> sorted({row.attack for row in table.rows}), len(table.rows)
    (['decoder', 'nearest'], 4)
    """
    if isinstance(mechanisms, str):
        raise ValueError(f"mechanisms must be a list of names, or a dict; got {mechanisms!r}.")
    known = candidates
    if not isinstance(mechanisms, Mapping):
        known = np.asarray(candidates)
        domain = (known.min(), known.max()) if bounds is None else bounds
        mechanisms = {name: _named(name, domain) for name in mechanisms}
    rows: list[InversionRow] = []
    for epsilon in epsilons:
        for name, make in mechanisms.items():
            with warnings.catch_warnings():
                # The exact epsilon stands in the table.
                warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
                fitted = make(epsilon).fit(known)
            audit = audit_table if isinstance(fitted, TablePrivatizer) else audit_inversion
            found = audit(fitted, known, n_trials=n_trials, **options)
            rows += [
                InversionRow(
                    name,
                    attack.name,
                    float(epsilon),
                    found.epsilon,
                    attack.recovered,
                    attack.low,
                    attack.high,
                    found.bound,
                    found.n_candidates,
                )
                for attack in found.attacks
            ]
    return InversionTable(tuple(rows), int(n_trials))


def _named(name: str, bounds: Any) -> Callable[[float], Any]:
    def make(epsilon: float) -> Any:
        return make_named(name, epsilon=epsilon, bounds=bounds)

    return make


def _line(row: InversionRow) -> str:
    return (
        f"{row.mechanism:<20} {row.attack:<11} {row.stated_epsilon:>8.4g} {row.exact_epsilon:>9.4g}  "
        f"{row.recovered:>9.4f}  {row.bound:>9.4f}"
    )


class InversionDisplay:
    """Draw what the best attack recovers over the exact epsilon, below the bound of every attack.

    Use :meth:`from_frame`.

    Parameters
    ----------
    frame : InversionTable, DataFrame or dict of arrays

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        One a mechanism.
    bound_, chance_ : matplotlib Line2D
        What every attack stays below where any two candidates may be told apart by the whole epsilon, and guessing.

    Examples
    --------
    >>> from inversion_study import InversionDisplay, inversion_study
    >>> table = inversion_study(["duchi-vector"], [[0.0, 0.0], [1.0, 1.0]], [1.0, 4.0], n_trials=500)
    >>> len(InversionDisplay.from_frame(table).lines_)
    1
    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @classmethod
    def from_frame(cls, frame: Any, *, ax: Any = None) -> Self:
        """Draw a table.

        Parameters
        ----------
        frame : InversionTable, DataFrame or dict of arrays
            Of one set of candidates.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        InversionDisplay
        """
        return cls(frame).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the rows are of several sets of candidates, or none has a finite epsilon.
        """
        plt = require("matplotlib.pyplot")
        table = result_columns(self.frame)
        sizes = np.unique(table["n_candidates"]).tolist()
        if len(sizes) != 1:
            raise ValueError(f"frame must be of one set of candidates; got sets of {sizes}.")
        drawn = np.isfinite(table["exact_epsilon"]) & (table["exact_epsilon"] > 0)
        if not drawn.any():
            raise ValueError("frame must hold a row with a finite epsilon > 0; got none.")
        table = {name: column[drawn] for name, column in table.items()}

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        epsilons = np.geomspace(table["exact_epsilon"].min(), table["exact_epsilon"].max(), _PLACES)
        most = [inversion_bound(float(epsilon), int(sizes[0])) for epsilon in epsilons]
        (self.bound_,) = self.ax_.plot(epsilons, most, color="0.2", lw=1.2, label="most that epsilon leaves")
        self.chance_ = self.ax_.axhline(1 / sizes[0], color="0.4", ls=":", lw=1.2, label="chance")
        self.lines_ = []
        for name in dict.fromkeys(table["mechanism"].tolist()):
            best = _best_rows(table, name)
            epsilon, recovered, low, high = (table[column][best] for column in _DRAWN)
            spread = np.maximum([recovered - low, high - recovered], 0.0)
            container = self.ax_.errorbar(epsilon, recovered, yerr=spread, label=name, marker="o", ms=4, lw=1.2)
            self.lines_.append(container.lines[0])
        self.ax_.set_xscale("log")
        self.ax_.set_yscale("log")
        self.ax_.set_xlabel("Exact epsilon of one release (nats)")
        self.ax_.set_ylabel(f"Share recovered of {sizes[0]:,} candidates")
        # Beside the axes: lines and their intervals fill them.
        self.ax_.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
        return self


def _best_rows(table: dict[str, np.ndarray], mechanism: str) -> list[int]:
    """The rows of a mechanism's best attack at each epsilon, in order of the exact one."""
    own = np.flatnonzero(table["mechanism"] == mechanism)
    best: dict[float, int] = {}
    for row in own[np.argsort(-table["recovered"][own], kind="stable")].tolist():
        best.setdefault(float(table["stated_epsilon"][row]), row)
    return sorted(best.values(), key=lambda row: float(table["exact_epsilon"][row]))
