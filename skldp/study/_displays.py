"""Figures of scores over epsilon, and of one person's privacy loss."""

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skldp._tables import require
from skldp.accounting.losses._realized_loss import realized_loss
from skldp.study._curve import privacy_utility_curve
from skldp.study._results import result_columns, score_label

_EXACT = "Exact epsilon (worst-case loss of one record)"
_BASELINES = (("clean_mean", "without privacy", "--"), ("majority_mean", "constant prediction", ":"))
_GREY: dict[str, Any] = {"color": "0.4", "lw": 1.2}
# An axis with a larger ratio of its ends shows powers of ten only.
_WIDE = 200


def draw_epsilon_axis(ax: Any) -> None:
    """Format the horizontal axis for the epsilons that are drawn."""
    ticker = require("matplotlib.ticker")
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high / low < _WIDE else (1.0,)))
    ax.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())


def _axes(ax: Any) -> tuple[Any, Any]:
    """Return the given axes or those of a new figure, and their figure."""
    ax = require("matplotlib.pyplot").subplots()[1] if ax is None else ax
    return ax, ax.figure


class PrivacyUtilityDisplay:
    """Figure of a privacy-utility curve over the exact epsilon.

    Use :meth:`from_estimator` or :meth:`from_frame`. To compare estimators, draw the next one into ``ax=display.ax_``:
    curves have names, and equal baselines are drawn once.

    Parameters
    ----------
    frame : PrivacyUtilityCurve, DataFrame or dict of arrays
        Result of :func:`~skldp.study.privacy_utility_curve`, or its columns; those of the baselines may be missing.
    name : str, default=None
        Name in the legend. None takes the mechanism of the table, or the private steps of the curve.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The drawing.
    line_ : matplotlib Line2D
        Mean score.
    band_ : matplotlib PolyCollection
        One standard deviation around it.
    baselines_ : list of Line2D
        Scores without privacy and of a constant prediction (majority class, or mean), if drawn by this curve.

    See Also
    --------
    privacy_utility_curve : Computes the curve.

    Examples
    --------
    >>> from skldp.study import PrivacyUtilityDisplay
    >>> curve = {"exact_epsilon": [43.1], "score_mean": [0.8], "score_std": [0.01]}
    >>> PrivacyUtilityDisplay.from_frame(curve).line_.get_xdata().tolist()
    [43.1]
    """

    def __init__(self, frame: Any, *, name: str | None = None) -> None:
        self.frame = frame
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        name: str | None = None,
        ax: Any = None,
        baselines: bool = True,
        line_kw: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Compute a curve and draw it.

        Parameters
        ----------
        estimator : estimator
            Private estimator, as for :func:`privacy_utility_curve`.
        X : array-like of shape (n_samples, n_features)
            Rows before any release.
        y : array-like of shape (n_samples,)
            True labels or targets.
        name : str, default=None
            Name in the legend. None takes the classes of the private steps.
        ax : matplotlib Axes, default=None
            Axes to draw into; None makes a new figure.
        baselines : bool, default=True
            Whether to draw the scores without privacy and of a constant prediction.
        line_kw : dict, default=None
            Passed to ``Axes.plot``.
        **options
            Other parameters of :func:`privacy_utility_curve`, such as `epsilons`, `cv`, `scoring` and `seed`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The figure, drawn.
        """
        # Fail before the fits, which may take long.
        require("matplotlib.pyplot")
        curve, steps = privacy_utility_curve(estimator, X, y, **options), getattr(estimator, "named_steps", {})
        if name is None:
            name = " and ".join(type(steps[one]).__name__ if one in steps else one for one, _ in curve.guarantees[0])
        return cls(curve, name=name).plot(ax=ax, baselines=baselines, **line_kw or {})

    @classmethod
    def from_frame(cls, frame: Any, *, name: str | None = None, **plot_kwargs: Any) -> Self:
        """Draw a result.

        Parameters
        ----------
        frame, name : DataFrame and str
            As in the class.
        **plot_kwargs : dict
            As in :meth:`plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The display, drawn.
        """
        return cls(frame, name=name).plot(**plot_kwargs)

    def plot(self, *, ax: Any = None, baselines: bool = True, **line_kwargs: Any) -> Self:
        """Draw the scores.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes; None makes a new figure.
        baselines : bool, default=True
            Whether to draw the scores without privacy and of a constant prediction, unless they are in `ax`.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        self : object
            The display.

        Raises
        ------
        ValueError
            If the table holds several mechanisms, or no point has a finite epsilon.
        """
        table = result_columns(self.frame)
        mechanisms = np.unique(table.get("mechanism", ())).tolist()
        if len(mechanisms) > 1:
            raise ValueError(f"frame must hold the curve of one mechanism; got {mechanisms}.")
        exact = table["exact_epsilon"]
        order = np.argsort(exact, kind="stable")[: np.isfinite(exact).sum()]
        if not len(order):
            raise ValueError(f"The exact epsilon axis needs a point with a finite epsilon; got {exact.tolist()}.")
        epsilon, mean, std = (table[name][order] for name in ("exact_epsilon", "score_mean", "score_std"))

        self.ax_, self.figure_ = _axes(ax)
        steps = [step for step, _ in next(iter(getattr(self.frame, "guarantees", ())), ())]
        name = self.name or " and ".join(map(str, mechanisms or steps)) or None
        drawn = {line.get_label() for line in self.ax_.get_lines()}
        (self.line_,) = self.ax_.plot(epsilon, mean, **({"marker": "o", "label": name} | line_kwargs))
        color = self.line_.get_color()
        self.band_ = self.ax_.fill_between(epsilon, mean - std, mean + std, alpha=0.2, color=color, lw=0)
        # Adding 0 removes the sign of a negative zero.
        levels = {
            f"{name} ({table[key][0].round(3) + 0.0:g})": (table[key][0], style)
            for key, name, style in _BASELINES
            if baselines and key in table and np.isfinite(table[key][0])
        }
        self.baselines_ = [
            self.ax_.axhline(level, ls=style, label=label, **_GREY)
            for label, (level, style) in levels.items()
            if label not in drawn
        ]
        draw_epsilon_axis(self.ax_)
        self.ax_.set(xlabel=_EXACT, ylabel=score_label(str(table["scoring"][0])) if "scoring" in table else "score")
        if self.ax_.get_legend_handles_labels()[1]:
            self.ax_.legend(loc="best")
        return self


class PrivacyLossDisplay:
    """Figure of the privacy loss of a person's answers: the realized loss and the sum of epsilons.

    Use :meth:`from_history`.

    Parameters
    ----------
    realized, added_up : array-like of shape (n_answers + 1,)
        Certified loss and sum of epsilons after 0, 1, ... answers, in nats.
    epsilon : float, default=None
        Budget of the person, drawn as a line. None draws none.
    name : str, default="realized loss"
        Name in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The drawing.
    realized_ : matplotlib Line2D
        Certified loss after each answer, which can fall.
    added_up_ : matplotlib Line2D
        Charge of basic composition.
    budget_ : matplotlib Line2D or None
        Budget, if given.

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery
    >>> from skldp.study import PrivacyLossDisplay
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> answers = [(query, 1), (query, 1), (query, 0)]
    >>> display = PrivacyLossDisplay.from_history(answers, bounds=(-1, 1), epsilon=1.0)
    >>> display.realized_.get_ydata().round(2).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        realized: npt.ArrayLike,
        added_up: npt.ArrayLike,
        *,
        epsilon: float | None = None,
        name: str = "realized loss",
    ) -> None:
        self.realized = realized
        self.added_up = added_up
        self.epsilon = epsilon
        self.name = name

    @classmethod
    def from_history(
        cls,
        history: Any,
        *,
        epsilon: float | None = None,
        name: str = "realized loss",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Certify the loss after each answer, and draw it.

        Parameters
        ----------
        history : sequence of (query, output), or the ``history`` of a filter or a ledger
            Answers of one person, in order.
        epsilon : float, default=None
            Budget.
        name : str, default="realized loss"
            Label of the curve.
        ax : matplotlib Axes, default=None
            Axes to draw into; None makes a new figure.
        **options
            Domain of the person's values and tolerance: `bounds`, `domain` and `tol` of
            :func:`~skldp.accounting.realized_loss`.

        Returns
        -------
        display : PrivacyLossDisplay
        """
        # Fail before the certification of losses, which may take long.
        require("matplotlib.pyplot")
        pairs = [(one["query"], one["output"]) if isinstance(one, Mapping) else one for one in history]
        queries, outputs = [query for query, _ in pairs], [output for _, output in pairs]
        numbers = range(len(pairs) + 1)
        realized = [realized_loss(queries[:n], outputs[:n], **options).upper for n in numbers]
        sums = [math.fsum(query.exact_epsilon for query in queries[:n]) for n in numbers]
        added_up = [math.nextafter(total, math.inf) if total else 0.0 for total in sums]
        return cls(realized, added_up, epsilon=epsilon, name=name).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the loss.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes; None makes a new figure.

        Returns
        -------
        self : object
            The display.
        """
        self.ax_, self.figure_ = _axes(ax)
        answers = np.arange(np.size(self.realized))
        # The loss is constant until the next answer.
        (self.realized_,) = self.ax_.step(answers, self.realized, where="post", label=self.name)
        grey: dict[str, Any] = {"ls": "--", "label": "epsilons added up", **_GREY}
        (self.added_up_,) = self.ax_.step(answers, self.added_up, where="post", **grey)
        self.budget_ = None
        if self.epsilon is not None:
            self.budget_ = self.ax_.axhline(self.epsilon, ls=":", label=f"budget ({self.epsilon:g})", **_GREY)
        self.ax_.set(xlabel="Answers", ylabel="Privacy loss (nats)")
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.legend(loc="best")
        return self
