"""The picture of how many people a model needs: a score over how many were asked."""

from typing import Any, Self

import numpy as np

from skldp.study._extras import require
from skldp.study._learning_curve import private_learning_curve
from skldp.study._results import columns_of

__all__ = ["PrivateLearningCurveDisplay"]


class PrivateLearningCurveDisplay:
    """Draw a score over the number of people, one line for each epsilon.

    Use :meth:`from_frame` or :meth:`from_estimator`.

    Parameters
    ----------
    frame : PrivateLearningCurve, DataFrame or dict of arrays
        With the columns of :meth:`.PrivateLearningCurve.to_frame`; those of the baselines may be missing.
    name : str, default=None
        Of the estimator, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        The mean scores, in the order of epsilon.
    bands_ : list of PolyCollection
        One standard deviation around them.
    baselines_ : list of Line2D
        The scores without privacy, and of one answer for all, where drawn.

    Examples
    --------
    >>> from skldp.study import PrivateLearningCurveDisplay
    >>> curve = {"n_people": [100, 200], "epsilon": [1.0, 1.0], "score_mean": [0.3, 0.6], "score_std": [0.1, 0.1]}
    >>> PrivateLearningCurveDisplay.from_frame(curve).lines_[0].get_ydata().tolist()
    [0.3, 0.6]
    """

    def __init__(self, frame: Any, *, name: str | None = None) -> None:
        self.frame = frame
        self.name = name

    @classmethod
    def from_frame(
        cls, frame: Any, *, name: str | None = None, ax: Any = None, baselines: bool = True, **line_kwargs: Any
    ) -> Self:
        """Draw what was computed before.

        Parameters
        ----------
        frame : PrivateLearningCurve, DataFrame or dict of arrays
        name : str, default=None
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        baselines : bool, default=True
            Whether to draw the scores without privacy, and of one answer for all.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        PrivateLearningCurveDisplay
        """
        return cls(frame, name=name).plot(ax=ax, baselines=baselines, **line_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        baselines: bool = True,
        line_kwargs: dict[str, Any] | None = None,
        **study: Any,
    ) -> Self:
        """Compute the curve with :func:`private_learning_curve` and draw it.

        Parameters
        ----------
        estimator : estimator
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        name : str, default=None
        ax : matplotlib Axes, default=None
        baselines : bool, default=True
        line_kwargs : dict, default=None
            Passed to ``Axes.plot``.
        **study : dict
            Passed to :func:`private_learning_curve`.

        Returns
        -------
        PrivateLearningCurveDisplay
        """
        # Asked before hours of work.
        require("matplotlib.pyplot")
        curve = private_learning_curve(estimator, X, y, **study)
        return cls(curve, name=name).plot(ax=ax, baselines=baselines, **(line_kwargs or {}))

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
        """
        plt = require("matplotlib.pyplot")
        table = columns_of(self.frame)
        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        self.lines_, self.bands_, self.baselines_ = [], [], []
        before = "" if self.name is None else f"{self.name}, "
        order = np.argsort(table["n_people"], kind="stable")
        for epsilon in np.unique(table["epsilon"]):
            chosen = order[table["epsilon"][order] == epsilon]
            n, mean, std = (table[column][chosen] for column in ("n_people", "score_mean", "score_std"))
            label = f"{before}epsilon {epsilon:g}"
            (line,) = self.ax_.plot(n, mean, **({"marker": "o", "ms": 4, "label": label} | line_kwargs))
            self.lines_.append(line)
            band = {"alpha": 0.2, "color": line.get_color(), "lw": 0}
            self.bands_.append(self.ax_.fill_between(n, mean - std, mean + std, **band))
        # The same at every epsilon.
        chosen = order[table["epsilon"][order] == table["epsilon"][0]]
        for column, label, style in (
            ("clean_mean", "without privacy", "--"),
            ("majority_mean", "one answer for all", ":"),
        ):
            if baselines and column in table and np.isfinite(table[column][chosen]).any():
                n, score = table["n_people"][chosen], table[column][chosen]
                self.baselines_ += self.ax_.plot(n, score, color="0.4", ls=style, lw=1.2, label=label)
        self.ax_.set_xscale("log")
        asked = np.unique(table["n_people"])
        self.ax_.set_xticks(asked, labels=[f"{int(n):,}" for n in asked])
        self.ax_.minorticks_off()
        self.ax_.set_xlabel("People who are asked")
        self.ax_.set_ylabel(str(table["scoring"][0]) if "scoring" in table else "score")
        self.ax_.legend(loc="best")
        return self
