"""The picture of what privacy costs: a score over epsilon, as stated or as proved."""

import numpy as np

from skldp.study._curve import privacy_utility_curve
from skldp.study._curve_result import draw_epsilon_axis
from skldp.study._extras import require_pyplot

__all__ = ["PrivacyUtilityDisplay"]

_AXES = {
    "stated": ("stated_epsilon", "Stated epsilon"),
    "exact": ("exact_epsilon", "Exact epsilon (worst-case loss of one record)"),
}


class PrivacyUtilityDisplay:
    """Draw a :class:`PrivacyUtilityCurve` over the stated or the exact epsilon.

    Use :meth:`from_curve` or :meth:`from_estimator`. To compare estimators, draw the next one into ``display.ax_``
    with ``baselines=False``.

    Parameters
    ----------
    curve : PrivacyUtilityCurve
        What to draw.
    epsilon_axis : {"stated", "exact"}, default="stated"
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
        The clean and the majority baseline, where drawn.

    Examples
    --------
    >>> from skldp.study._curve_result import CurvePoint, PrivacyUtilityCurve
    >>> from skldp import PrivacyUtilityDisplay
    >>> point = CurvePoint(1.0, 1.0, 43.1, 0.0, 0.8, 0.01, 0.1, 0.1, 5)
    >>> curve = PrivacyUtilityCurve((point,), ("epsilon",), "accuracy", 0.1, 0.0, 0.9, 0.01)
    >>> PrivacyUtilityDisplay.from_curve(curve, epsilon_axis="exact").line_.get_xdata().tolist()
    [43.1]
    """

    def __init__(self, curve, *, epsilon_axis="stated", name=None):
        self.curve = curve
        self.epsilon_axis = epsilon_axis
        self.name = name

    @classmethod
    def from_curve(cls, curve, *, epsilon_axis="stated", name=None, ax=None, baselines=True, **line_kwargs):
        """Draw a curve that was computed before.

        Parameters
        ----------
        curve : PrivacyUtilityCurve
        epsilon_axis : {"stated", "exact"}, default="stated"
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
        return cls(curve, epsilon_axis=epsilon_axis, name=name).plot(ax=ax, baselines=baselines, **line_kwargs)

    @classmethod
    def from_estimator(
        cls, estimator, X, y, *, epsilon_axis="stated", name=None, ax=None, baselines=True, line_kwargs=None, **study
    ):
        """Compute the curve with :func:`privacy_utility_curve` and draw it.

        Parameters
        ----------
        estimator : estimator
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        epsilon_axis : {"stated", "exact"}, default="stated"
        name : str, default=None
        ax : matplotlib Axes, default=None
        baselines : bool, default=True
        line_kwargs : dict, default=None
            Passed to ``Axes.plot``.
        **study : dict
            Passed to :func:`privacy_utility_curve`.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        require_pyplot()
        curve = privacy_utility_curve(estimator, X, y, **study)
        return cls.from_curve(
            curve, epsilon_axis=epsilon_axis, name=name, ax=ax, baselines=baselines, **(line_kwargs or {})
        )

    def plot(self, *, ax=None, baselines=True, **line_kwargs):
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
            If `epsilon_axis` is unknown, or no point has a finite epsilon on it.
        """
        plt = require_pyplot()
        if self.epsilon_axis not in _AXES:
            raise ValueError(f"epsilon_axis must be one of {list(_AXES)}. Got {self.epsilon_axis!r} instead.")
        column, label = _AXES[self.epsilon_axis]
        table = self.curve.to_dict()
        drawable = np.isfinite(table[column])
        if not drawable.any():
            raise ValueError(
                f"The {self.epsilon_axis} epsilon axis needs a point with a finite epsilon. "
                f"Got {table[column].tolist()} instead."
            )
        order = np.flatnonzero(drawable)[np.argsort(table[column][drawable], kind="stable")]
        epsilon, mean, std = (table[name][order] for name in (column, "score_mean", "score_std"))

        if ax is None:
            _, ax = plt.subplots()
        self.ax_ = ax
        self.figure_ = ax.figure
        (self.line_,) = ax.plot(epsilon, mean, **({"marker": "o", "label": self.name} | line_kwargs))
        self.band_ = ax.fill_between(epsilon, mean - std, mean + std, alpha=0.2, color=self.line_.get_color(), lw=0)
        self.baselines_ = self._draw_baselines() if baselines else []
        draw_epsilon_axis(ax)
        ax.set_xlabel(label)
        ax.set_ylabel(self.curve.scoring)
        if ax.get_legend_handles_labels()[1]:
            ax.legend(loc="best")
        return self

    def _draw_baselines(self):
        curve = self.curve
        drawn = []
        for value, label, style in (
            (curve.clean_mean, "without privacy", "--"),
            (curve.majority_mean, "majority", ":"),
        ):
            if np.isfinite(value):
                drawn.append(self.ax_.axhline(value, color="0.4", ls=style, lw=1.2, label=f"{label} ({value:.3g})"))
        return drawn
