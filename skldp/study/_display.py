"""The picture of what privacy costs: a score over epsilon, as proved or as stated."""

from typing import Any, Self

import numpy as np

from skldp.study._curve import privacy_utility_curve
from skldp.study._extras import require
from skldp.study._results import columns_of

__all__ = ["PrivacyUtilityDisplay", "draw_epsilon_axis"]

_AXES = {
    "stated": ("stated_epsilon", "Stated epsilon"),
    "exact": ("exact_epsilon", "Exact epsilon (worst-case loss of one record)"),
}
_BASELINES = (("clean_mean", "without privacy", "--"), ("majority_mean", "one answer for all", ":"))
# From this ratio of its ends on, an axis has room for powers of ten alone.
_WIDE = 200


def draw_epsilon_axis(ax: Any) -> None:
    """Make the horizontal axis one of epsilon, for what is drawn so far."""
    ticker = require("matplotlib.ticker")
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if high / low < _WIDE else (1.0,)))
    ax.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())


def _short(score: float) -> str:
    # Without the sign of a zero.
    return f"{round(float(score), 3) + 0.0:g}"


class PrivacyUtilityDisplay:
    """Draw a privacy-utility curve over the exact or the stated epsilon.

    Use :meth:`from_frame` or :meth:`from_estimator`. To compare estimators, draw the next one into ``display.ax_``
    with ``baselines=False``.

    Parameters
    ----------
    frame : PrivacyUtilityCurve, DataFrame or dict of arrays
        One curve, with the columns of :meth:`.PrivacyUtilityCurve.to_frame`; those of the baselines may be missing.
    epsilon_axis : {"exact", "stated"}, default="exact"
        Which epsilon the horizontal axis shows, on a log scale. Only "exact" is comparable between mechanisms.
    name : str, default=None
        The name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The mean score.
    band_ : matplotlib PolyCollection
        One standard deviation around it.
    baselines_ : list of Line2D
        The score without privacy, and that of one answer for all: the majority, or the mean. Where drawn.

    Examples
    --------
    >>> from skldp.study import PrivacyUtilityDisplay
    >>> curve = {"exact_epsilon": [43.1], "score_mean": [0.8], "score_std": [0.01]}
    >>> PrivacyUtilityDisplay.from_frame(curve).line_.get_xdata().tolist()
    [43.1]
    """

    def __init__(self, frame: Any, *, epsilon_axis: str = "exact", name: str | None = None) -> None:
        self.frame = frame
        self.epsilon_axis = epsilon_axis
        self.name = name

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        epsilon_axis: str = "exact",
        name: str | None = None,
        ax: Any = None,
        baselines: bool = True,
        **line_kwargs: Any,
    ) -> Self:
        """Draw a curve that was computed before.

        Parameters
        ----------
        frame : PrivacyUtilityCurve, DataFrame or dict of arrays
        epsilon_axis : {"exact", "stated"}, default="exact"
        name : str, default=None
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        baselines : bool, default=True
            Whether to draw the clean and the majority score.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        return cls(frame, epsilon_axis=epsilon_axis, name=name).plot(ax=ax, baselines=baselines, **line_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        epsilon_axis: str = "exact",
        name: str | None = None,
        ax: Any = None,
        baselines: bool = True,
        line_kwargs: dict[str, Any] | None = None,
        **study: Any,
    ) -> Self:
        """Compute the curve with :func:`~skldp.privacy_utility_curve` and draw it.

        Parameters
        ----------
        estimator : estimator
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        epsilon_axis : {"exact", "stated"}, default="exact"
        name : str, default=None
        ax : matplotlib Axes, default=None
        baselines : bool, default=True
        line_kwargs : dict, default=None
            Passed to ``Axes.plot``.
        **study : dict
            Passed to :func:`~skldp.privacy_utility_curve`.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        # Asked before hours of work.
        require("matplotlib.pyplot")
        curve = privacy_utility_curve(estimator, X, y, **study)
        return cls(curve, epsilon_axis=epsilon_axis, name=name).plot(ax=ax, baselines=baselines, **(line_kwargs or {}))

    def plot(self, *, ax: Any = None, baselines: bool = True, **line_kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
        baselines : bool, default=True
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If `epsilon_axis` is unknown, the table holds several mechanisms, or no point has a finite epsilon.
        """
        plt = require("matplotlib.pyplot")
        if self.epsilon_axis not in _AXES:
            raise ValueError(f"epsilon_axis must be one of {list(_AXES)}. Got {self.epsilon_axis!r} instead.")
        column, label = _AXES[self.epsilon_axis]
        table = columns_of(self.frame)
        mechanisms = np.unique(table.get("mechanism", ())).tolist()
        if len(mechanisms) > 1:
            raise ValueError(f"frame must hold the curve of one mechanism. Got {mechanisms} instead.")
        drawable = np.isfinite(table[column])
        if not drawable.any():
            raise ValueError(
                f"The {self.epsilon_axis} epsilon axis needs a point with a finite epsilon. "
                f"Got {table[column].tolist()} instead."
            )
        order = np.flatnonzero(drawable)[np.argsort(table[column][drawable], kind="stable")]
        epsilon, mean, std = (table[name][order] for name in (column, "score_mean", "score_std"))

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        (self.line_,) = self.ax_.plot(epsilon, mean, **({"marker": "o", "label": self.name} | line_kwargs))
        band = {"alpha": 0.2, "color": self.line_.get_color(), "lw": 0}
        self.band_ = self.ax_.fill_between(epsilon, mean - std, mean + std, **band)
        self.baselines_ = [
            self.ax_.axhline(table[key][0], color="0.4", ls=style, lw=1.2, label=f"{name} ({_short(table[key][0])})")
            for key, name, style in _BASELINES
            if baselines and key in table and np.isfinite(table[key][0])
        ]
        draw_epsilon_axis(self.ax_)
        self.ax_.set_xlabel(label)
        self.ax_.set_ylabel(str(table["scoring"][0]) if "scoring" in table else "score")
        if self.ax_.get_legend_handles_labels()[1]:
            self.ax_.legend(loc="best")
        return self
