"""Precision of a survey before anybody is asked: expected standard errors and intervals, from the laws alone."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from skldp._checks import check_fraction, check_integer, check_positive
from skldp._texts import escaped
from skldp.client import CategoryField, NumbersField, PairField, Policy, TextField, VectorField
from skldp.client._fields import AnyField
from skldp.collection._answer_scores import SupportScores, code_scores
from skldp.laws._closest_law import ClosestLaw
from skldp.laws._integers import GroupLaw, UnitLaw
from skldp.laws._longitudinal_laws import LongitudinalHistogramLaw, LongitudinalMeanLaw
from skldp.laws._numbers import (
    BinsLaw,
    BitsLaw,
    KnotsLaw,
    LatticeLaw,
    MixtureLaw,
    SampledLaw,
    ThreeAnswersLaw,
    TwoAnswersLaw,
)
from skldp.laws._odds import TWO_64
from skldp.laws._points_law import PointsLaw
from skldp.mechanisms.numeric._piecewise import lattice_variance

_MOST_PEOPLE = 10**12
# Mean square of a number that is uniform in [-1, 1].
_SQUARE = 1 / 3


class PlannedEstimate(NamedTuple):
    """Expected precision of one estimate, with its people, standard error and half of the length of its interval."""

    what: str
    n: float
    standard_error: float
    half_width: float


@dataclass(frozen=True)
class SurveyPrecision:
    """Expected precision of the estimates of a policy; :meth:`skldp.Policy.precision` describes it."""

    n_people: int
    level: float
    estimates: tuple[PlannedEstimate, ...]

    def __str__(self) -> str:
        head = ("", "people", "std err", "+-")
        rows = [(escaped(w), f"{n:,.0f}", f"{error:.4g}", f"{half:.4g}") for w, n, error, half in self.estimates]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in (head, *rows)]
        return "\n".join([f"{self.n_people:,} people, {100 * self.level:.4g}% intervals", *lines])


class _Score(NamedTuple):
    """Score of an estimate in the planned population: its mean, its mean square, and the unit of a number."""

    what: str
    field: str
    mean: float
    square: float
    unit: float = 1.0


def precision_of(policy: Policy, n_people: int, *, by: str | None, level: float) -> SurveyPrecision:
    """Return the expected precision of means and shares, in all or in each category of a field."""
    check_integer("n_people", n_people, least=2, most=_MOST_PEOPLE)
    check_fraction("level", level)
    group = None if by is None else _group(policy, by)
    scores = [one for field in policy.fields if field.name != by for one in _scores(field)]
    if not scores:
        raise ValueError("A precision needs a category, or a number whose mean its law identifies; got none.")
    suffix = "" if by is None else f" by {by}"
    found = [_planned(policy, one, group, n_people, level, one.what + suffix) for one in scores]
    return SurveyPrecision(n_people, level, tuple(found))


def people_needed(policy: Policy, field: str, half_width: float, *, by: str | None, level: float) -> int:
    """Return the least number of people for which the expected interval is as short."""
    check_positive("half_width", half_width)
    check_fraction("level", level)
    group = None if by is None else _group(policy, by)
    named = {one.field: one for each in policy.fields if each.name != by for one in _scores(each)}
    if field not in named:
        raise ValueError(f"The field of a precision must be one of {sorted(named)}; got {field!r}.")

    def is_enough(n: int) -> bool:
        return _planned(policy, named[field], group, n, level, "").half_width <= half_width

    enough = bisect_left(range(_MOST_PEOPLE + 1), True, lo=2, key=is_enough)
    if enough > _MOST_PEOPLE:
        raise ValueError(f"half_width must be reached by {_MOST_PEOPLE:,} people; got {half_width!r}.")
    return enough


def _planned(
    policy: Policy, score: _Score, group: _Score | None, n_people: int, level: float, what: str
) -> PlannedEstimate:
    r"""Return the precision of a mean of scores, or of a quotient within a group.

    Fieller's interval for :math:`\sum w y / \sum w` at the expected sums: y about its mean and w are independent.
    """
    m, s = len(policy.fields), policy.n_sampled or len(policy.fields)
    chance = s / m if group is None else s * (s - 1) / (m * (m - 1))
    if chance == 0:
        raise ValueError(
            f"An estimate of two fields together needs people who were asked both; this policy asks {s} of {m}."
        )
    n = n_people * chance
    share, w_square = (1.0, 1.0) if group is None else (group.mean, group.square)
    critical = float(special.stdtrit(max(n - 1, 1), (1 + level) / 2))
    of_product = w_square * (score.square - score.mean**2) / n
    of_share = (w_square - share**2) / n
    left = share**2 - critical**2 * of_share
    error = score.unit * math.sqrt(of_product) / share
    half = score.unit * critical * math.sqrt(of_product / left) if left > 0 else math.inf
    return PlannedEstimate(what, n, error, half)


def _group(policy: Policy, by: str) -> _Score:
    categories = {field.name: field for field in policy.fields if isinstance(field, CategoryField)}
    if by not in categories:
        raise ValueError(f"by must be one of the categories {sorted(categories)}; got {by!r}.")
    return next(_scores(categories[by]))


def _scores(field: AnyField) -> Iterator[_Score]:
    """Yield the scores of a field's shares or means; none where a law identifies neither."""
    if isinstance(field, PairField):
        yield _Score(f"table of {field.name}", field.name, 1 / field.law.n_codes, _square_of_share(field))
    elif isinstance(field, CategoryField):
        yield _Score(f"shares of {field.name}", field.name, 1 / field.law.n_codes, _square_of_share(field))
    elif isinstance(field, NumbersField):
        square = _square_of_group(field.law)
        for column in field.columns:
            yield _Score(f"mean of {column.name}", column.name, 0.0, square, column.radius)
    elif isinstance(field, VectorField):
        # Of vectors at the bound whose directions are uniform.
        law = field.law
        square = (law.largest**2 - (law.across if law.square_radius else 0.0)) / law.n_values
        yield _Score(f"mean of {field.name}", field.name, 0.0, square, field.bound or 1.0)
    elif not isinstance(field, TextField) and not isinstance(field.law, BinsLaw | LongitudinalHistogramLaw):
        yield _Score(f"mean of {field.name}", field.name, 0.0, _square_of_number(field.law), field.radius)


def _square_of_share(field: CategoryField | PairField) -> float:
    """Return the mean square of the score of a category, averaged over the categories, of uniform ones."""
    scores, k = code_scores(field.law), field.law.n_codes
    if isinstance(scores, SupportScores):
        p, q = scores.p, scores.q
        supported = q + (p - q) / k
        return supported * (1 - supported) / (p - q) ** 2 + 1 / k**2
    # A sign counts where the report is of the code's block: own reports and half of the others, or others alone.
    law: Any = field.law
    half, miss = law.block_size / 2, law.miss_count / TWO_64
    elsewhere = miss * law.block_size / (law.n_answers - half)
    same = np.bincount(np.arange(k) // (law.block_size - 1)) / k
    in_block = (1 - miss + elsewhere / 2) * same + elsewhere * (1 - same)
    # A block has as many codes as its share of all, each with the same mean square.
    return float(same @ in_block) * float(scores.high[0]) ** 2


def _square_of_number(law: UnitLaw) -> float:
    """Return the mean square of the unbiased estimate of a uniform number in [-1, 1]."""
    if isinstance(law, TwoAnswersLaw | LongitudinalMeanLaw):
        return law.value(0) ** 2
    if isinstance(law, ThreeAnswersLaw):
        return law.value(0) ** 2 * (1 - (law.zero - law.zero_lost / 2) / TWO_64)
    if isinstance(law, LatticeLaw):
        constant, _, square = lattice_variance(law)
        return constant + (1 + square) * _SQUARE
    if isinstance(law, MixtureLaw):
        share = law.lattice_count / TWO_64
        return share * _square_of_number(law.lattice) + (1 - share) * _square_of_number(law.few)
    if isinstance(law, KnotsLaw):
        gaps = np.diff(np.array(law.knots, dtype=np.float64))
        # Random rounding of a uniform number gives a knot half of the length beside it.
        rounded = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / (2 * gaps.sum())
        other = law.response.other_count / TWO_64
        answered = other + (1 - len(rounded) * other) * rounded
        return float(answered @ np.array([law.value(answer) for answer in range(law.n_answers)]) ** 2)
    if isinstance(law, PointsLaw):
        rounded = np.ones(law.n_points)
        rounded[[0, -1]] = 0.5
        answered = rounded @ (np.array(law.rows) / TWO_64).astype(np.float64) / (law.n_points - 1)
        return float(answered @ np.array([law.value(answer) for answer in range(law.n_answers)]) ** 2)
    assert isinstance(law, BitsLaw)
    flips = [count / TWO_64 for count in law.flip_counts]
    of_sign, last = 1 / (1 - 2 * flips[0]) ** 2, 2 ** (len(flips) - 1) - 1
    if not last:
        return of_sign
    of_bits = sum(4**place * q * (1 - q) / (1 - 2 * q) ** 2 for place, q in enumerate(reversed(flips[1:])))
    # Random rounding to a magnitude adds r (1 - r), r uniform.
    return of_sign * (_SQUARE + (1 / 6 + of_bits) / last**2)


def _square_of_group(law: GroupLaw) -> float:
    """Return the mean square of the estimate of one of several uniform numbers."""
    if isinstance(law, ClosestLaw):
        return _SQUARE + law.across * law.square_radius
    if isinstance(law, SampledLaw):
        one = law.of_sampled
        square = _square_of_number(one) if isinstance(one, UnitLaw) else _square_of_group(one)
        return square * law.n_values / law.n_sampled
    return law.values(0)[0] ** 2
