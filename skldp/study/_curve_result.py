"""What a privacy-utility study found: one point per epsilon, and two baselines."""

from dataclasses import asdict, dataclass, fields

import numpy as np

from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study._extras import require_pandas

__all__ = ["CurvePoint", "PrivacyUtilityCurve", "draw_epsilon_axis"]


# From this ratio of its ends on, an axis has room for powers of ten alone.
_WIDE = 200


def draw_epsilon_axis(ax):
    """Make the horizontal axis one of epsilon, for what is drawn so far."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < _WIDE else (1.0,)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


@dataclass(frozen=True)
class CurvePoint:
    """One epsilon of a privacy-utility curve.

    Attributes
    ----------
    epsilon : float
        What the parameters were set to.
    stated_epsilon : float
        What the whole estimator states: the sum over its private steps.
    exact_epsilon : float
        The exact worst-case loss of the whole estimator (natural log), infinite where something is unprotected.
    delta : float
        The delta that goes with it.
    score_mean, score_std : float
        Over all folds and repeats.
    fit_time, score_time : float
        Seconds, the mean of one fold; `score_time` includes the transformation of the test rows.
    n_fits : int
        Folds times repeats.
    """

    epsilon: float
    stated_epsilon: float
    exact_epsilon: float
    delta: float
    score_mean: float
    score_std: float
    fit_time: float
    score_time: float
    n_fits: int


@dataclass(frozen=True)
class PrivacyUtilityCurve:
    """What :func:`privacy_utility_curve` found: a sequence of :class:`CurvePoint` with two baselines.

    Attributes
    ----------
    points : tuple of CurvePoint
    param_names : tuple of str
    scoring : str
        The name of the score.
    majority_mean, majority_std : float
        The score of always answering the most frequent class (the mean, for a regressor).
    clean_mean, clean_std : float
        The score without privacy; NaN if it was left out.
    guarantees : tuple of tuple of (str, PrivacyGuarantee)
        For every point, the name of each private step with its guarantee.
    """

    points: tuple[CurvePoint, ...]
    param_names: tuple[str, ...]
    scoring: str
    majority_mean: float
    majority_std: float
    clean_mean: float
    clean_std: float
    guarantees: tuple[tuple[tuple[str, PrivacyGuarantee], ...], ...] = ()

    def __iter__(self):
        return iter(self.points)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return self.points[index]

    def to_dict(self):
        """Give the table as a dict of arrays, one entry a column."""
        return {field.name: np.array([getattr(p, field.name) for p in self.points]) for field in fields(CurvePoint)}

    def to_frame(self):
        """Give the table as a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return require_pandas().DataFrame([asdict(point) for point in self.points])

    def __str__(self):
        lines = [f"{'stated eps':>10}  {'exact eps':>12}  {self.scoring}"]
        lines += [
            f"{p.stated_epsilon:>10.4g}  {p.exact_epsilon:>12.6g}  {p.score_mean:.3f} +- {p.score_std:.3f}"
            for p in self
        ]
        lines.append(f"{'clean':>24}  {self.clean_mean:.3f} +- {self.clean_std:.3f}")
        lines.append(f"{'majority':>24}  {self.majority_mean:.3f} +- {self.majority_std:.3f}")
        return "\n".join(lines)
