"""The one decision: whether people with these histories may answer one more query.

A decision sees queries and recorded outputs, never a person's values: that somebody is refused tells nothing new. It
is a function of the multiset of answers and the query, so that it is the same in whatever order the answers came, on
every machine, and however often it was made before.

:func:`decide` makes it, for one person or a million; the filters and the ledger ask there, and a ledger's verification
decides for itself. What it rests on is sums of epsilons that are rounded up, and losses that the independent check of
:mod:`~skldp.accounting._extrema.certificate` has proved. What cannot be proved is refused.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from skldp._checks import check_positive
from skldp.accounting._composition import OutputIndependentRule, advanced_composition, loss_of_zcdp, zcdp_budget
from skldp.accounting._extrema.linear_cohort import History, LinearTable, linear_decisions
from skldp.accounting._extrema.lost_already import have_lost_more
from skldp.accounting._extrema.point_cohort import PointTable
from skldp.accounting._extrema.realized_loss import LossBounds, realized_loss
from skldp.accounting._extrema.region import region_of
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._query import Query, RegressionQuery
from skldp.accounting._release_query import ReleaseQuery, charge_of, released_loss, zcdp_of
from skldp.accounting._units import (
    as_parts,
    nats_above,
    nats_below,
    saturated_sum,
    units_above,
    units_below,
    within,
)

__all__ = [
    "RULES",
    "Answers",
    "Loss",
    "Rule",
    "RuleName",
    "Workers",
    "added",
    "decide",
    "n_bounds",
    "surely_admits",
]

RuleName = Literal["basic", "simplified", "bayesian", "approximate"]
RULES: tuple[RuleName, ...] = get_args(RuleName)
Answers = tuple[Sequence[Query], Sequence[int]]
# The realized loss of some answers, within bounds that need not be closer than a threshold asks for.
Loss = Callable[[Sequence[Query], Sequence[int], float | None], LossBounds]
# The built-in map, or that of an executor.
Workers = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Rule:
    """A person's budget, and the way of accounting for it.

    Parameters
    ----------
    name : {"basic", "simplified", "bayesian", "approximate"}
        ``"basic"`` adds up epsilons; ``"simplified"`` adds the next query's epsilon to the certified realized loss;
        ``"bayesian"`` certifies the realized loss after each output that the next query could have;
        ``"approximate"`` does so only where composition that looks at epsilons alone no longer accepts.
    epsilon : float
        The whole budget, in nats.
    bounds : tuple (low, high) or Domain, default=None
        The box of x, or another domain of its columns.
    tol : float, default=1e-3
        Width that the bounds of a loss are to have, in nats; the upper one decides.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead of a box.
    group_size : int, default=None
        See :func:`skldp.accounting.realized_loss`.
    delta : float, default=None
        For ``"approximate"``: above 0 and below 1/e.
    composition : {"whitehouse", "rogers", "basic"}, default="whitehouse"
        For ``"approximate"``: see :func:`skldp.accounting.advanced_composition`.

    Raises
    ------
    ValueError
        If a parameter is not as described; the box and the domain are checked where they are used.
    """

    name: RuleName
    epsilon: float
    bounds: Bounds | None = None
    tol: float = 1e-3
    domain: npt.ArrayLike | None = None
    group_size: int | None = None
    delta: float | None = None
    composition: OutputIndependentRule = "whitehouse"

    def __post_init__(self) -> None:
        for name in ("bounds", "domain"):
            object.__setattr__(self, name, deepcopy(getattr(self, name)))
        check_positive("epsilon", self.epsilon)
        check_positive("tol", self.tol)
        if self.name not in RULES:
            raise ValueError(f"rule must be one of {RULES}. Got {self.name!r} instead.")
        if self.name != "approximate":
            return
        check_positive("delta", self.delta)
        if self.delta is None or self.delta >= math.exp(-1):
            raise ValueError(f"delta must be below 1/e. Got {self.delta!r} instead.")
        if self.composition not in get_args(OutputIndependentRule):
            raise ValueError(f"rule must be 'basic', 'rogers' or 'whitehouse'. Got {self.composition!r} instead.")

    @cached_property
    def budget(self) -> int:
        """The whole budget in units of 2^-60 nats, rounded down."""
        return units_below(self.epsilon)

    @cached_property
    def zcdp_budget(self) -> int | None:
        """The room for zero-concentrated privacy, in units; None where no delta is allowed, or another composition."""
        if self.name != "approximate" or self.composition != "whitehouse" or self.delta is None:
            return None
        return zcdp_budget(self.epsilon, self.delta)

    def loss_bounds(
        self, queries: Sequence[Query], outputs: Sequence[int], threshold: float | None = None
    ) -> LossBounds:
        """Bound what some answers have cost: their realized loss, or the sum of their epsilons with ``"basic"``."""
        if self.name == "basic":
            charges = sum(charge_of(query) for query in queries)
            total = nats_above(int(charges)) if math.isfinite(charges) else math.inf
            return LossBounds(total, total, None, None, True, "the epsilons were added up")
        return realized_loss(
            queries,
            outputs,
            bounds=self.bounds,
            domain=self.domain,
            tol=self.tol,
            group_size=self.group_size,
            threshold=threshold,
        )

    def composed_loss(self, queries: Sequence[Query]) -> float:
        """What epsilons and delta alone say that answers have cost, but with probability delta; infinite beyond it."""
        rho = sum(zcdp_of(query) for query in queries)
        if self.zcdp_budget is None or self.delta is None or rho > self.zcdp_budget:
            return math.inf
        return loss_of_zcdp(rho, self.delta)

    def table_for(self, query: Query) -> LinearTable | PointTable | None:
        """Make the table that decides quickly about many queries like this one, where there can be one."""
        jointly = self.domain is None and self.group_size is None and self.name != "basic"
        if not jointly or self.bounds is None or not isinstance(query, RegressionQuery):
            return None
        region = region_of(self.bounds, n_features=query.n_features)
        if region.is_box:
            return LinearTable(region.box)
        return PointTable(region) if self.name != "simplified" and PointTable.serves(region) else None


def surely_admits(rule: Rule, spent: npt.NDArray[np.int64], query: Query) -> npt.NDArray[np.bool_]:
    """Whether sums of charges alone are small enough for :func:`decide` to admit, whatever was answered.

    Parameters
    ----------
    rule : Rule
    spent : ndarray of int64, shape (n, 4)
        What :func:`added` has added up of everybody's answers, from zeros.
    query : RegressionQuery, FiniteQuery or ReleaseQuery

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    after = added(spent, query)
    admitted = within(after[:, :2], rule.budget)
    return admitted if rule.zcdp_budget is None else admitted | within(after[:, 2:], rule.zcdp_budget)


def added(spent: npt.NDArray[np.int64], query: Query) -> npt.NDArray[np.int64]:
    """Add one more answer of everybody to what their charges and their zero-concentrated privacy add up to.

    Parameters
    ----------
    spent : ndarray of int64, shape (n, 4)
        Two sums, each in two parts.
    query : RegressionQuery, FiniteQuery or ReleaseQuery

    Returns
    -------
    ndarray of int64, shape (n, 4)
    """
    parts = np.stack([as_parts(charge_of(query)), as_parts(zcdp_of(query))])
    return saturated_sum(spent.reshape(-1, 2, 2), parts).reshape(-1, 4)


def decide(
    rule: Rule,
    queries: Sequence[Query],
    histories: Sequence[History],
    query: Query,
    *,
    table: LinearTable | PointTable | None = None,
    loss: Loss | None = None,
    workers: Workers = map,
    after: npt.NDArray[np.float64] | None = None,
) -> list[bool]:
    """Decide for each history whether one more answer, whatever it will be, is within the budget.

    Parameters
    ----------
    rule : Rule
    queries : sequence of RegressionQuery, FiniteQuery or ReleaseQuery
        Those that the histories speak of, by their position.
    histories : sequence of tuple (positions, outputs)
    query : RegressionQuery, FiniteQuery or ReleaseQuery
        What is to be asked.
    table : LinearTable or PointTable, default=None
        That of :meth:`Rule.table_for`, kept from call to call. None searches for every history by itself.
    loss : callable, default=None
        In place of :meth:`Rule.loss_bounds`, for somebody who remembers losses.
    workers : map-like callable, default=map
        Applies a function to the histories that need a search, in order.
    after : ndarray of shape (n_histories, n_bounds(query)), default=None
        Takes, where the table of linear queries admits and nothing was released, what it has certified of the loss
        after each output, up to rounding.

    Returns
    -------
    list of bool

    Examples
    --------
    >>> from skldp.accounting._decide import Rule, decide
    >>> from skldp.accounting import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> histories = [([], []), ([0, 0], [0, 1]), ([0, 0], [1, 1])]
    >>> [decide(Rule(name, 0.6, (-1, 1)), [query], histories, query) for name in ("basic", "bayesian")]
    [[True, False, False], [True, True, False]]
    """
    costs = [_Cost.of(one) for one in queries]
    admitted = [
        _epsilons_admit(rule, [*(costs[number] for number in numbers), _Cost.of(query)]) for numbers, _ in histories
    ]
    if rule.name == "basic":
        return admitted
    rooms: dict[float, list[int]] = {}
    for position, already in enumerate(admitted):
        if not already:
            # The losses of the answers have what the releases leave.
            rooms.setdefault(_room(rule, queries, histories[position], query), []).append(position)
    left: list[tuple[int, Rule, Answers]] = []
    for room, positions in rooms.items():
        if room <= 0:
            for position in positions:
                # What fits to the last unit is a release of who has answered nothing.
                numbers, _ = _answered(histories[position], costs)
                admitted[position] = room == 0 and isinstance(query, ReleaseQuery) and not numbers
            continue
        within_room = rule if room == rule.budget else replace(rule, epsilon=nats_below(int(room)))
        some = [_answered(histories[position], costs) for position in positions]
        losses = np.full((len(some), n_bounds(query)), np.inf)
        quick = _by_table(within_room, queries, some, query, table, losses)
        if after is not None and room == rule.budget:
            after[positions] = losses
        searches: list[tuple[int, Answers]] = []
        for position, (numbers, outputs), found in zip(positions, some, quick, strict=True):
            admitted[position] = bool(found)
            if found is None:
                searches.append((position, ([queries[number] for number in numbers], outputs)))
        refused = _surely_refused(within_room, [answers for _, answers in searches], query)
        left += [(position, within_room, one) for (position, one), no in zip(searches, refused, strict=True) if not no]
    items = [(within_room, answers) for _, within_room, answers in left]
    searched = workers(partial(_searched, loss or rule.loss_bounds, query), items) if left else ()
    for (position, _, _), one in zip(left, searched, strict=True):
        admitted[position] = one
    return admitted


def n_bounds(query: Query) -> int:
    """How many losses a table can certify of a history before the next answer: none of a release, told by infinity."""
    return 1 if isinstance(query, ReleaseQuery) else query.n_outputs


def _by_table(
    rule: Rule,
    queries: Sequence[Query],
    histories: Sequence[History],
    query: Query,
    table: LinearTable | PointTable | None,
    losses: npt.NDArray[np.float64],
) -> Sequence[bool | None]:
    """What the table decides, if there is one; None where it does not. It may bound losses after each output."""
    if table is None or isinstance(query, ReleaseQuery):
        return [None] * len(histories)
    if isinstance(table, PointTable):
        return table.decisions(queries, histories, query, epsilon=rule.epsilon)
    return linear_decisions(
        queries,
        histories,
        query,
        epsilon=rule.epsilon,
        bounds=rule.bounds,
        table=table,
        every_output=rule.name != "simplified",
        after=losses,
    )


def _room(rule: Rule, queries: Sequence[Query], history: History, query: Query) -> float:
    """How many units releases leave of the budget, with the next one, whatever it will be, if it is one."""
    pairs = [(queries[number], output) for number, output in zip(*history, strict=True)]
    released = [(one, output) for one, output in pairs if isinstance(one, ReleaseQuery)]
    asked, outputs = [one for one, _ in released], [output for _, output in released]
    if not isinstance(query, ReleaseQuery):
        return rule.budget - released_loss(asked, outputs)
    if rule.name == "simplified":
        return rule.budget - released_loss(asked, outputs) - charge_of(query)
    possible = query.worst_outputs(asked, outputs)
    return rule.budget - max(released_loss([*asked, query], [*outputs, last]) for last in possible)


class _Cost(NamedTuple):
    """What one answer to a query counts where its output is not looked at."""

    charge: float
    zcdp: int
    epsilon: float
    is_release: bool

    @classmethod
    def of(cls, query: Query) -> "_Cost":
        return cls(charge_of(query), zcdp_of(query), query.exact_epsilon, isinstance(query, ReleaseQuery))


def _answered(history: History, costs: Sequence[_Cost]) -> History:
    """What of a history has a likelihood that is known."""
    numbers, outputs = history
    if not any(costs[number].is_release for number in numbers):
        return history
    kept = [place for place, number in enumerate(numbers) if not costs[number].is_release]
    return [numbers[place] for place in kept], [outputs[place] for place in kept]


def _surely_refused(rule: Rule, answers: Sequence[Answers], query: Query) -> npt.NDArray[np.bool_]:
    """Whether two points are known already between which a history, with one more answer, loses too much."""
    no = np.zeros(len(answers), dtype=bool)
    if not answers or rule.domain is not None or rule.bounds is None or not isinstance(query, RegressionQuery):
        return no
    region = region_of(rule.bounds, n_features=query.n_features)
    if not region.is_box:
        return no
    if rule.name == "simplified":
        return have_lost_more(answers, region.box, rule.epsilon - query.exact_epsilon)
    for output in range(query.n_outputs):
        after = [([*asked, query], [*given, output]) for asked, given in answers]
        no |= have_lost_more(after, region.box, rule.epsilon)
    return no


def _epsilons_admit(rule: Rule, costs: Sequence[_Cost]) -> bool:
    """Whether answers of these costs are within the budget, whatever they are."""
    if sum(cost.charge for cost in costs) <= rule.budget:
        return True
    if rule.zcdp_budget is not None:
        return sum(cost.zcdp for cost in costs) <= rule.zcdp_budget
    if rule.name != "approximate" or rule.delta is None or math.inf in (cost.charge for cost in costs):
        return False
    epsilons = [cost.epsilon for cost in costs]
    spent = advanced_composition(epsilons, epsilon=rule.epsilon, delta=rule.delta, rule=rule.composition)
    # A few sums, products and roots are right within far less.
    return spent * (1 + 2.0**-40) <= rule.epsilon


def _searched(loss: Loss, query: Query, item: tuple[Rule, Answers]) -> bool:
    return _losses_admit(item[0], loss, query, item[1])


def _losses_admit(rule: Rule, loss: Loss, query: Query, answers: Answers) -> bool:
    """Whether the certified losses of a history leave room for one more answer."""
    queries, outputs = answers
    if isinstance(query, ReleaseQuery):
        return _is_at_most(loss(queries, outputs, rule.epsilon), rule.budget)
    room = rule.budget - charge_of(query)
    # Where the present loss leaves room for the whole epsilon, every output does; one search instead of several.
    if room >= 0 and _is_at_most(loss(queries, outputs, nats_below(int(room))), room):
        return True
    if rule.name == "simplified":
        return False
    return all(
        _is_at_most(loss([*queries, query], [*outputs, output], rule.epsilon), rule.budget)
        for output in range(query.n_outputs)
    )


def _is_at_most(loss: LossBounds, room: float) -> bool:
    """Whether a loss is certainly at most so many units."""
    return math.isfinite(loss.upper) and units_above(loss.upper) <= room
