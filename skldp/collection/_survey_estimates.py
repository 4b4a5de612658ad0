r"""Estimates from sums of scores, with standard errors and intervals: ratios of means and functions of them."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.stats import beta

from skldp._checks import check_fraction
from skldp._tables import as_frame, html_table, text_table
from skldp._texts import escaped
from skldp._value_labels import number_label
from skldp.collection._answer_scores import PartScores, Scores
from skldp.laws._integers import Answers
from skldp.mechanisms.categorical._frequency import project_onto_simplex
from skldp.mechanisms.numeric._distribution import DistributionEstimate

_Floats = npt.NDArray[np.float64]
# Day number of 1970-01-01, and days around it that all lie in the years 1 to 9999.
_EPOCH, _MOST_DAYS = datetime.date(1970, 1, 1).toordinal(), 7e5
_PER_LABEL = "values", "standard_errors", "low", "high", "moved", "moved_square", "held", "most"


@dataclass(frozen=True)
class SurveyEstimate:
    """One or several estimates from reports, with errors.

    Attributes
    ----------
    what : str
        Such as ``"mean of age"``.
    labels : tuple of str
        Label of each number.
    values : ndarray of shape (n_labels,)
        Estimates.
    standard_errors : ndarray of shape (n_labels,)
        Standard errors, which include the noise and the sample of people.
    low, high : ndarray of shape (n_labels,)
        Ends of an interval for each; infinite where the reports say nothing.
    level : float
        Probability that one interval covers the true value in the population; intervals are not simultaneous.
    n : int
        Number of reports.
    moved, moved_square : ndarray of shape (n_labels,)
        The most that forged reports move a number by, of the odds of their share and of the square of these; see
        :meth:`moved_by`.
    held : ndarray of shape (n_labels,)
        Largest decrease of the denominator of the estimate, per share of forged reports.
    most : ndarray of shape (n_labels,)
        Upper bound on the change that any forged reports can cause.
    answered : float, default=1
        Share of all reports that `n` counts, which is below 1 where people are asked some of the fields.
    dates : bool, default=False
        Whether values and intervals are days since 1970, which tables show as dates.
    missing : str, default=""
        Replacements of missing values, which bias the estimate by their share, such as ``"missing age counts as 50"``.
    pairs : tuple of (str, str), default=()
        Group, or value of the first column of a table, and value of each number, where its label joins the two.
    """

    what: str
    labels: tuple[str, ...]
    values: _Floats
    standard_errors: _Floats
    low: _Floats
    high: _Floats
    level: float
    n: int
    moved: _Floats
    moved_square: _Floats
    held: _Floats
    most: _Floats
    answered: float = 1.0
    dates: bool = False
    missing: str = ""
    pairs: tuple[tuple[str, str], ...] = ()

    def moved_by(self, share: float) -> _Floats:
        r"""Return the largest change of each number by a fraction of forged reports.

        Parameters
        ----------
        share : float
            Of all reports, from 0 to 1. Forged reports may all answer the same fields.

        Returns
        -------
        ndarray of shape (n_labels,)
            Infinite where they may leave nothing to divide by, and for what has no such bound: variances of groups.

        Raises
        ------
        ValueError
            If the share is not from 0 to 1.

        Notes
        -----
        A forged report is an answer of the law, and moves a mean by at most the difference :math:`\Delta` of the
        largest and the least score, over n. A quotient R of two means with denominator B moves by at most
        :math:`\rho \Delta(a - R b) / (B - \rho \Delta(b))`.

        References
        ----------
        Cheu, Smith and Ullman, "Manipulation attacks in local differential privacy", IEEE Symposium on Security and
        Privacy 2021.
        """
        if not 0 <= share <= 1:
            raise ValueError(f"share must be from 0 to 1; got {share!r}.")
        if share == 0:
            return np.zeros(len(self.values))
        share = min(1.0, share / self.answered)
        left = 1 - share * self.held
        odds = share / np.where(left > 0, left, 1.0)
        moved = np.where(left > 0, odds * self.moved + odds**2 * self.moved_square, np.inf)
        return np.asarray(np.minimum(moved, self.most))

    def scaled(self, factor: float | _Floats, shift: float | _Floats = 0.0) -> Self:
        """Return the estimate times a positive factor."""
        of_factor = {
            name: getattr(self, name) * factor for name in ("standard_errors", "moved", "moved_square", "most")
        }
        of_both = {name: getattr(self, name) * factor + shift for name in ("values", "low", "high")}
        return replace(self, **of_factor, **of_both)

    def only(self, places: Sequence[int], labels: Sequence[str], what: str) -> Self:
        """Return some of the numbers under other names."""
        own: dict[str, Any] = {name: getattr(self, name)[list(places)] for name in _PER_LABEL}
        return replace(self, what=what, labels=tuple(labels), **own)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns: floats, or dates (None beyond the years 1 to 9999) and errors in days."""
        columns = {"estimate": self.values, "low": self.low, "high": self.high}
        shown = {name: [_date(one) if self.dates else one for one in ends.tolist()] for name, ends in columns.items()}
        return {"estimate": shown.pop("estimate"), "std err": self.standard_errors.tolist()} | shown

    def to_frame(self) -> Any:
        """Return the columns as a pandas DataFrame, its index named as `what`; raise ImportError without pandas."""
        return as_frame(self.to_dict(), index=list(self.labels)).rename_axis(self.what)

    @property
    def title(self) -> str:
        """Heading of the table."""
        note = f", {escaped(self.missing)}" if self.missing else ""
        return f"{escaped(self.what)}, {self.n:,} reports, {100 * self.level:.4g}% intervals{note}"

    def cells(self) -> list[list[str]]:
        """Return the rows of a text table, the header first."""
        columns = self.to_dict()
        rows = zip(self.labels, *columns.values(), strict=True)
        texts = ([f"{one:.5g}" if isinstance(one, float) else f"{one}" for one in row] for _, *row in rows)
        return [["", *columns], *([escaped(label), *row] for label, row in zip(self.labels, texts, strict=True))]

    def __repr__(self) -> str:
        return text_table(self.title, self.cells())

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        return html_table(self.title, rows, head, most=len(rows))


def _date(days: float) -> datetime.date | None:
    return datetime.date.fromordinal(_EPOCH + round(days)) if abs(days) < _MOST_DAYS else None


@dataclass(frozen=True)
class Sums:
    """Sums over reports of scores a, weights b and products; with `of_products`, the ends of a are of products."""

    a: _Floats
    aa: _Floats
    ab: _Floats
    b: float
    bb: float
    a_low: _Floats
    a_high: _Floats
    b_low: float
    b_high: float
    two_valued: bool = False
    of_products: bool = False

    @classmethod
    def of(cls, scores: Scores, weights: Scores) -> "Sums":
        """Return the sums of one number's weighted scores."""
        w, s = weights.values, scores.values
        a = w * s
        products, ends = (a.sum(), a @ a, a @ w), (scores.low, scores.high)
        of_a, of_aa, of_ab, low, high = (np.array([float(one)]) for one in (*products, *ends))
        return cls(
            of_a, of_aa, of_ab, float(w.sum()), float(w @ w), low, high, weights.low, weights.high, scores.two_valued
        )

    @classmethod
    def of_parts(cls, scores: PartScores, answers: Answers, weights: Scores | None = None) -> "Sums":
        """Return the sums of all parts, by default of all reports."""
        w = np.ones(len(answers)) if weights is None else weights.values
        (a, once), b_ends = scores.sums(answers, w), (1.0, 1.0) if weights is None else (weights.low, weights.high)
        ab, aa = (a, once) if weights is None else scores.sums(answers, w**2)
        return cls(a, aa, ab, float(w.sum()), float(w @ w), scores.low, scores.high, *b_ends, scores.two_valued)


def quotients(sums: Sums, n: int, level: float, what: str, labels: Sequence[str]) -> SurveyEstimate:
    """Return ratios R of means with intervals: Clopper-Pearson for two values, else Fieller's (JRSS B 1954)."""
    A, B, z = sums.a / n, sums.b / n, _critical(n, level)
    v_aa, v_ab, v_bb = (
        (np.asarray(products) / n - one * two) / (n - 1)
        for products, one, two in ((sums.aa, A, A), (sums.ab, A, B), (sums.bb, B, B))
    )
    b_ends = (1.0, 1.0) if sums.of_products else (sums.b_low, sums.b_high)
    products = [b * a for b in b_ends for a in (sums.a_low, sums.a_high)]
    at_bb = at_end(v_bb, max(sums.b_high - B, B - sums.b_low), n, z)
    down, up = A - np.min(products, axis=0), np.max(products, axis=0) - A
    low, high = (
        _fieller(A, B, at_end(v_aa, distance, n, z), v_ab, at_bb, z)[end] for end, distance in enumerate((down, up))
    )
    unknown, zero = np.full_like(A, np.inf), np.zeros_like(A)
    if B <= 0:
        # A nonpositive estimated number of people is noise.
        anything, nothing = (-unknown, unknown), np.full_like(A, np.nan)
        return SurveyEstimate(
            what, tuple(labels), nothing, unknown, *anything, level, n, unknown, zero, unknown, unknown
        )
    R = A / B
    if sums.two_valued and sums.b_low == sums.b_high == 1:
        # With few reports, the limits may round across the ratio.
        low, high = _clopper_pearson(sums, n, level)
        low, high = np.minimum(low, R), np.maximum(high, R)
    # Cancellation may round a variance below 0.
    errors = np.sqrt(np.maximum(v_aa - 2 * R * v_ab + R**2 * v_bb, 0.0)) / B
    ends = [b * (a - R) for b in b_ends for a in (sums.a_low, sums.a_high)]
    moved = (np.max(ends, axis=0) - np.min(ends, axis=0)) / B
    if sums.of_products:
        moved = moved + np.abs(R) * (sums.b_high - sums.b_low) / B
    errors = np.maximum(errors, moved / n)
    held = np.full_like(A, (sums.b_high - sums.b_low) / B)
    return SurveyEstimate(what, tuple(labels), R, errors, low, high, level, n, moved, zero, held, unknown)


def variance(number: Scores, square: Scores, weights: Scores, level: float, what: str) -> SurveyEstimate:
    """Return the variance of a number, from scores of it and of its square."""
    n, z = len(number.values), _critical(len(number.values), level)
    first, second = (quotients(Sums.of(one, weights), n, level, what, (what,)) for one in (number, square))
    if np.isnan(second.values).any():
        return second
    value, influence = _variance_and_influence(number, square, weights)
    # A change d of the mean m changes its square by at most 2 |m| d + d^2.
    width = second.moved + 2 * np.abs(first.values) * first.moved
    values, errors = np.array([value]), np.maximum(np.sqrt(influence @ influence) / n, width / n)
    # If the subset may be empty, the square is unknown.
    known = np.isfinite(second.low) & np.isfinite(second.high)
    reach = np.where(known, z * np.sqrt(at_end(errors**2, width, n, z)), np.inf)
    # The variance of the mean is bounded if all reports have equal weight.
    moved = width + first.moved**2 / n if weights.low == weights.high else np.full(1, np.inf)
    return replace(
        second,
        values=values,
        standard_errors=errors,
        low=values - reach,
        high=values + reach,
        moved=moved,
        moved_square=first.moved**2,
    )


def made_consistent(raw: SurveyEstimate, shares: _Floats, moved: _Floats) -> SurveyEstimate:
    """Project raw shares to a distribution, and widen their intervals to contain it."""
    low, high = (np.clip(end, 0.0, 1.0) for end in (raw.low, raw.high))
    return replace(
        raw,
        values=shares,
        low=np.minimum(low, shares),
        high=np.maximum(high, shares),
        moved=moved,
        most=np.ones(len(shares)),
    )


def projected(raw: SurveyEstimate, consistent: str | None) -> SurveyEstimate:
    """Project raw shares to the nearest distribution, unless `consistent` is None; unknown shares stay so."""
    if consistent is None:
        return raw
    named = replace(raw, what=f"projected {raw.what}")
    if not np.isfinite(raw.values).all():
        return named
    # The projection moves no further than all raw shares together.
    moved = np.full(len(raw.values), np.sqrt((raw.moved**2).sum()))
    return made_consistent(named, project_onto_simplex(raw.values[None])[0], moved)


def within(made: SurveyEstimate, least: float, most: float, consistent: str | None) -> SurveyEstimate:
    """Clip an interval to bounds, and the estimate as well unless `consistent` is None; the interval holds it."""
    values = np.clip(made.values, least, most) if consistent else made.values
    low, high = np.minimum(values, least), np.maximum(values, most)
    start, stop = (np.where(np.isfinite(end), np.clip(end, low, high), end) for end in (made.low, made.high))
    return replace(made, values=values, low=start, high=stop)


def joined(groups: Sequence[str], parts: Sequence[SurveyEstimate], what: str, *, several: bool) -> SurveyEstimate:
    """Combine estimates of groups, labelled by group and, with `several` numbers each, by number."""
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _PER_LABEL}
    pairs = tuple(product(groups, parts[0].labels)) if several else ()
    labels = tuple(f"{group}: {label}" for group, label in pairs) or tuple(groups)
    if len(set(labels)) < len(pairs):
        labels = tuple(f"{group!r}: {label!r}" for group, label in pairs)
    return replace(parts[0], what=what, labels=labels, pairs=pairs, **arrays)


def quantile_estimate(
    found: DistributionEstimate,
    upto: SurveyEstimate,
    levels: Sequence[float],
    ends: tuple[_Floats, _Floats],
    what: str,
) -> SurveyEstimate:
    """Return likeliest quantiles, with all q whose F(q-) <= p <= F(q) the unbiased shares do not refute."""
    shift = np.clip(_ascending(upto.values), 0.0, 1.0) - upto.values
    most, least = (np.append(end + shift, 1.0) for end in (upto.high, upto.low))
    critical = _critical(found.n, upto.level)
    values, places = found.quantile(levels), []
    for one in levels:
        first, last = int(np.argmax(most >= one)), np.flatnonzero(least <= one)
        places.append((ends[0][first], ends[1][last[-1] + 1 if len(last) else 0]))
    low, high = np.array(places).T
    unknown, zero = np.full(len(values), np.inf), np.zeros(len(values))
    widest = np.full(len(values), found.edges[-1] - found.edges[0])
    labels = tuple(map(number_label, levels))
    kept, spread = np.clip(values, low, high), (high - low) / (2 * critical)
    return SurveyEstimate(what, labels, kept, spread, low, high, upto.level, found.n, unknown, zero, zero, widest)


def _ascending(values: _Floats) -> _Floats:
    """Return the nearest ascending numbers, by least squares: means of neighbours that descend."""
    means, sizes = list[float](), list[int]()
    for one in values.tolist():
        mean, size = one, 1
        while means and means[-1] > mean:
            mean, size = (mean * size + means.pop() * sizes[-1]) / (size + sizes[-1]), size + sizes.pop()
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def _critical(n: int, level: float) -> float:
    """Return the half-width of an interval in standard errors, by Student's distribution."""
    check_fraction("level", level)
    return float(special.stdtrit(n - 1, (1 + level) / 2))


def at_end(variance: Any, distance: Any, n: float, z: float) -> Any:
    r"""Return the variance at the end :math:`\delta^2 = z^2 (v + \delta (D - v / D)) / n` of an interval (Wilson)."""
    of_one = n * np.maximum(variance, 0.0)
    gain = np.maximum(distance - of_one / np.where(distance > 0, distance, np.inf), 0.0)
    half = z**2 * gain / (2 * n)
    return ((half + np.sqrt(half**2 + z**2 * of_one / n)) / z) ** 2


def _clopper_pearson(sums: Sums, n: int, level: float) -> tuple[_Floats, _Floats]:
    """Return exact intervals for the means of two-valued scores."""
    width, outside = sums.a_high - sums.a_low, (1 - level) / 2
    # A constant share has one score, which rounding may split.
    count = np.rint((sums.a - n * sums.a_low) / np.where(width > 0, width, 1.0)).clip(0, n)
    # No probability lies beyond the end points.
    least = np.where(count > 0, beta.ppf(outside, np.maximum(count, 1), n - count + 1), 0.0)
    most = np.where(count < n, beta.isf(outside, count + 1, np.maximum(n - count, 1)), 1.0)
    return sums.a_low + width * least, sums.a_low + width * most


def _variance_and_influence(number: Scores, square: Scores, weights: Scores) -> tuple[float, _Floats]:
    """Return a bias-corrected variance, and the contribution of each report."""
    w, n = weights.values, len(weights.values)
    total = w.sum()
    mean, of_squares = float(w @ number.values / total), float(w @ square.values / total)
    scaled = w * (n / total)
    centred = number.values - mean
    of_mean = scaled * centred
    # The square of a noisy mean is biased by its variance.
    value = of_squares - mean**2 + float(of_mean @ of_mean) / n**2
    return value, np.asarray(scaled * (square.values - of_squares - 2 * mean * centred))


def _fieller(A: _Floats, B: float, v_aa: _Floats, v_ab: _Floats, v_bb: Any, z: float) -> tuple[_Floats, _Floats]:
    """Return the roots R of (A - R B)^2 = z^2 (v_aa - 2 R v_ab + R^2 v_bb)."""
    square, middle = B**2 - z**2 * v_bb, A * B - z**2 * v_ab
    reach = np.sqrt(np.maximum(middle**2 - square * (A**2 - z**2 * v_aa), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (middle - reach) / square, (middle + reach) / square
    bounded = square > 0
    return np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)
