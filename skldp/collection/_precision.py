"""Precision of a survey before anybody is asked: expected standard errors and intervals, from the laws alone."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from skldp._checks import check_fraction, check_integer, check_positive
from skldp._tables import text_table
from skldp._texts import escaped
from skldp.client._fields import Field
from skldp.client._policy import Policy, check_policy
from skldp.collection._answer_scores import CellScores, StepScores
from skldp.collection._survey_estimates import at_end
from skldp.collection._survey_fields import bins_of, estimates_of, ramps_of
from skldp.domains._column import Column
from skldp.laws._categories import ResponseLaw, SubsetLaw
from skldp.mechanisms.numeric._distribution import quantile_knots

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
    """Expected precision of the estimates of a policy; :func:`skldp.study.plan_survey` describes it."""

    policy: Policy
    n_people: int
    by: str | None
    level: float
    estimates: tuple[PlannedEstimate, ...]

    def n_people_for(self, field: str, half_width: float) -> int:
        """Return how many people must report for an interval to be as short.

        Parameters
        ----------
        field : str
            Number, for its mean, or category, for its shares.
        half_width : float
            Largest expected distance of the ends of the interval from the estimate.

        Raises
        ------
        ValueError
            If a parameter is out of range, or 10^12 people do not suffice.
        """
        check_positive("half_width", half_width)
        plans = {plan.field: plan for plan in _plans(self.policy, self.by) if isinstance(plan, _Plan)}
        if field not in plans:
            raise ValueError(f"The field of a precision must be one of {sorted(plans)}; got {field!r}.")
        people, own = range(_MOST_PEOPLE + 1), plans[field]
        enough = bisect_left(people, True, lo=2, key=lambda n: own.of(n, self.level).half_width <= half_width)
        if enough > _MOST_PEOPLE:
            raise ValueError(f"half_width must be reached by {_MOST_PEOPLE:,} people; got {half_width!r}.")
        return enough

    def __str__(self) -> str:
        head = ("", "people", "std err", "+-")
        rows = [(escaped(w), f"{n:,.0f}", f"{error:.4g}", f"{half:.4g}") for w, n, error, half in self.estimates]
        return text_table(f"{self.n_people:,} people, {100 * self.level:.4g}% intervals", [head, *rows])


class _Plan(NamedTuple):
    """Mean of scores times weights over the weight `share`; `product` and `weight` are their mean squares."""

    what: str
    field: str
    product: float
    unit: float = 1.0
    asked: float = 1.0
    share: float = 1.0
    weight: float = 1.0

    def of(self, n_people: int, level: float) -> PlannedEstimate:
        """Return the precision, with Fieller's interval."""
        n, unit = n_people * self.asked, self.unit
        critical = float(special.stdtrit(max(n - 1, 1), (1 + level) / 2))
        left = self.share**2 - critical**2 * (self.weight - self.share**2) / n
        half = unit * critical * math.sqrt(self.product / n / left) if left > 0 else math.inf
        return PlannedEstimate(self.what, n, unit * math.sqrt(self.product / n) / self.share, half)


class _Spread(NamedTuple):
    """Histogram of the default bins of a number, or its median, of the asked part of the people."""

    what: str
    field: str
    number: Field
    asked: float = 1.0

    def of(self, n_people: int, level: float) -> PlannedEstimate:
        """Return the precision for uniform numbers."""
        n, number = n_people * self.asked, self.number
        bins, range_ = bins_of(number, None, max(int(n), 2)), number.column.high - number.column.low
        upto = np.arange(1, k := bins.scores.n_parts) / k
        if isinstance(bins.scores, StepScores):
            lattice, share = number.law.lattice_part("Distributions")
            step = 1 / (len(quantile_knots(lattice, share * n)) - 1)
            below, both = bins.scores.ramps.variances(upto)
            ramp = ramps_of(number, np.array([number.column.center]), np.array([step * range_]))
            middle = float(ramp.variances(np.array([0.5]))[0][0])
            of_bins = np.append(below, 0.0) + np.append(0.0, below) - 2 * np.concatenate([[0.0], both, [0.0]])
        else:
            assert isinstance(bins.scores, CellScores)
            step, usual = 1 / k, bins.scores.response.mean(axis=0)
            of_bins = bins.scores.of_cells**2 @ usual - 1 / k**2
            middle = (
                float(bins.scores.combined(np.tri(k)[k // 2 - 1 : k // 2]).of_cells[0] ** 2 @ usual) - (k // 2 / k) ** 2
            )
        critical = float(special.stdtrit(max(n - 1, 1), (1 + level) / 2))
        if self.what.startswith("median"):
            # A quantile is located up to the knots beside it.
            half = range_ * (critical * math.sqrt(middle / n) + 1.5 * step)
            return PlannedEstimate(self.what, n, half / critical, half)
        ends = bins.scores.high - 1 / k, 1 / k - bins.scores.low
        half = critical * np.mean([np.sqrt(at_end(of_bins / n, end, n, critical)) for end in ends])
        return PlannedEstimate(self.what, n, math.sqrt(np.mean(of_bins) / n), float(half))


def plan_survey(policy: Policy, n_people: int, *, by: str | None = None, level: float = 0.95) -> SurveyPrecision:
    r"""Return the expected precision of the estimates of a survey before anybody is asked.

    Parameters
    ----------
    policy : Policy
        Policy of the survey.
    n_people : int
        Number of people who report, from 2 to 10^12.
    by : str, default=None
        Category of the policy to group by.
    level : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    SurveyPrecision
        Table with `estimates`: means of numbers and shares of categories, overall or in an average group, tables
        of pairs, and the default histogram and the median of a number whose law gives these. Each has `what`, `n`
        (expected number of people asked), `standard_error` and `half_width` of the interval, in the unit of the
        number or as a share; it is infinite if the group may be empty. ``n_people_for(field, half_width)`` is the
        number of people for which an interval is as short.

    Raises
    ------
    TypeError
        If `policy` is not a policy.
    ValueError
        If a parameter is out of range, or no person is asked both fields of a group.

    Notes
    -----
    Figures are exact for uniform and independent values, from the integers of the laws, up to the normal
    approximation of intervals (Fieller's for a group) and a fifth for columns of pairs by local hashing or Hadamard
    response, whose codes are correlated. They include the noise and the samples of fields and people.

    References
    ----------
    Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B, 1954.

    Examples
    --------
    >>> from skldp.study import plan_survey
    >>> from skldp.client import Field, Policy
    >>> from skldp.mechanisms import Column, RandomizedResponse
    >>> from skldp.mechanisms.numeric._unit_mechanisms import Duchi
    >>> age = Field("age", Column(0, 100), Duchi(1.0).integer_law)
    >>> city = Field("city", Column(values=("Bonn", "Ulm")), RandomizedResponse(1.0, 2).integer_law)
    >>> policy = Policy("where people of which age live", (age, city))
    >>> print(plan_survey(policy, 10_000))
    10,000 people, 95% intervals
                    people  std err       +-
    mean of age     10,000    1.082    2.121
    shares of city  10,000  0.01082  0.02121
    >>> print(plan_survey(policy, 10_000, by="city"))
    10,000 people, 95% intervals
                         people  std err    +-
    mean of age by city  10,000    2.579  5.06
    >>> plan_survey(policy, 10_000).n_people_for("age", 2.0)
    11246
    """
    check_policy(policy)
    check_integer("n_people", n_people, least=2, most=_MOST_PEOPLE)
    check_fraction("level", level)
    found = tuple(plan.of(n_people, level) for plan in _plans(policy, by))
    if not found:
        raise ValueError("A precision needs a category, or a number whose mean its law identifies; got none.")
    return SurveyPrecision(policy, n_people, by, level, found)


def _plans(policy: Policy, by: str | None) -> Iterator["_Plan | _Spread"]:
    """Yield the plans of a policy's estimates, in all or in each category of a field or column."""
    m, s = len(policy.fields), policy.n_sampled or len(policy.fields)
    pairs: list[Any] = [field for field in policy.fields if field.kind == "pair"]
    columns: dict[str, Any] = {column.name: column for pair in pairs for column in pair.columns}
    alone = (one for one in policy.fields if one.kind == "category")
    groups: list[Any] = [*alone, *(column for column in columns.values() if column.has_codes)]
    group = next((one for one in groups if one.name == by), None)
    if by is not None and group is None:
        raise ValueError(f"by must be one of the categories {sorted(one.name for one in groups)}; got {by!r}.")
    more: dict[str, Any] = {"asked": s / m}
    if isinstance(group, Field):
        share = 1 / group.law.n_codes
        more = {"asked": s * (s - 1) / (m * (m - 1)), "share": share, "weight": next(_scores(group)).product + share**2}
        if not more["asked"]:
            raise ValueError(
                f"An estimate of two fields together needs people who were asked both; this policy asks {s} of {m}."
            )
    for one in (plan for field in policy.fields if by not in columns for plan in _scores(field)):
        # Tables have no groups.
        if by is None or (one.field != by and not one.what.startswith("table")):
            what = one.what if by is None else f"{one.what} by {by}"
            yield one._replace(what=what, product=more.get("weight", 1.0) * one.product, **more)
    for field in policy.fields if by is None else ():
        if isinstance(field, Field) and "quantiles" in estimates_of(field):
            for what in "histogram", "median":
                yield _Spread(f"{what} of {field.name}", field.name, field, s / m)
    for column in columns.values() if group is None or by in columns else ():
        own = [pair for pair in pairs if column.name in pair.names and (by is None or by in pair.names)]
        if own and column.name != by:
            yield _pooled(own, column, by, m, s)


def _pooled(pairs: Sequence[Field], column: Any, by: str | None, m: int, s: int) -> _Plan:
    """Return the plan of a column, from all its pairs, if each person is asked s of m fields."""
    asked = 1 - math.comb(m - len(pairs), s) / math.comb(m, s)
    # Mean number of answers of an asked person, and of ordered pairs of them: they tell of one value.
    answers = s * len(pairs) / m / asked
    twice = answers * (s - 1) * (len(pairs) - 1) / max(m - 1, 1)
    products, weights, is_number, share = [], [], column.values is None, 1.0
    for pair in pairs:
        first = pair.names[0] == column.name
        size, others = pair.sizes if first else pair.sizes[::-1]
        mean = 0.0 if is_number else 1 / size
        # All categories have equal squares; all people are counted without noise.
        inside = np.ones(others) if by is None else 1.0 * (np.arange(others) == 0)
        values = np.linspace(-1, 1, size) if is_number else (np.arange(size) == 0) - (0.0 if by is None else mean)
        own, counted = (
            _square_of_sum(pair, np.outer(one, inside) if first else np.outer(inside, one))
            for one in (values, np.ones(size))
        )
        share = 1.0 if by is None else 1 / others
        products.append(own - (mean**2 if by is None else 0.0))
        weights.append(1.0 if by is None else counted)
    what = f"{'mean' if is_number else 'shares'} of {column.name}" + ("" if by is None else f" by {by}")
    product = answers * float(np.mean(products)) + twice * (_SQUARE if is_number else mean * (1 - mean))
    weight = (answers + twice) * float(np.mean(weights))
    return _Plan(what, column.name, product, column.radius if is_number else 1.0, asked, answers * share, weight)


def _square_of_sum(pair: Field, weights: npt.NDArray[np.float64]) -> float:
    """Return the mean square of a weighted sum of the scores of all codes: nearly uncorrelated, or 1 in sum."""
    k, w = pair.law.n_codes, weights.reshape(-1)
    # Random rounding of a uniform number gives an end half of the chance.
    chances = [np.ones(size) for size in pair.sizes]
    for one, column in zip(chances, pair.columns, strict=True):
        one[[0, -1]] = 0.5 if column.values is None else 1.0
    codes = np.outer(*chances).reshape(-1)
    own, other = pair.law.square_of_scores
    mixed = (1 - own) / (k - 1) if isinstance(pair.law, ResponseLaw | SubsetLaw) else 0.0
    apart = -(other + mixed) / max(k - 2, 1) if mixed else 0.0
    rest, squares = w.sum() - w, (w**2).sum() - w**2
    found = own * w**2 + other * squares + 2 * mixed * w * rest + apart * (rest**2 - squares)
    return float(codes @ found / codes.sum())


def _scores(field: Any) -> Iterator[_Plan]:
    """Yield the scores of a field's shares or means; none where a law identifies neither."""
    if field.kind in ("category", "pair"):
        (own, other), k = field.law.square_of_scores, field.law.n_codes
        what = f"{'table' if field.kind == 'pair' else 'shares'} of {field.name}"
        yield _Plan(what, field.name, other + (own - other) / k - 1 / k**2)
    elif field.kind == "numbers":
        for column in field.columns:
            yield _Plan(_mean_of(column), column.name, field.law.usual_square, column.radius)
    elif field.kind == "vector":
        # Of vectors at the bound whose directions are uniform.
        law = field.law
        square = (law.largest**2 - (law.across if law.square_radius else 0.0)) / law.n_values
        yield _Plan(f"mean of {field.name}", field.name, square, field.bound or 1.0)
    elif not field.law.has_bias:
        yield _Plan(_mean_of(field.column), field.name, field.law.usual_square, field.column.radius)


def _mean_of(column: Column) -> str:
    return f"mean of {column.name}{' in days' if column.is_date else ''}"
