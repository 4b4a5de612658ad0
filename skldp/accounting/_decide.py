"""Decisions on whether people with given histories may answer one more query.

A decision depends on queries and recorded outputs, never on a person's values, so a refusal reveals nothing new.
It does not depend on the order of the answers. Near the budget a search may end undecided and refuse, sooner if many
histories are decided together.

:func:`decide` serves the filters and the ledger; a ledger's verification decides independently. Decisions use sums of
epsilons, rounded up, and losses proved by the check of :mod:`~skldp.accounting.losses._certificate`. A query is refused
unless its loss is proved to be within the budget.
"""

import math
from collections.abc import Callable, Collection, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from skldp._arrays import Bools, Floats, Ints
from skldp._checks import check_choice, check_positive
from skldp.accounting._query import Query, ReleaseQuery, charge_of, charge_parts, released_loss, zcdp_of
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting._units import (
    is_within,
    loss_of_zcdp,
    nats_above,
    nats_below,
    saturated_sum,
    units_above,
    units_below,
    zcdp_budget,
)
from skldp.accounting.losses._cohorts import AnswerTable, BoxTable, History, PointTable, Workers
from skldp.accounting.losses._realized_loss import LossBounds, realized_loss
from skldp.accounting.losses._region import Bounds, region_of

RuleName = Literal["basic", "simplified", "bayesian", "approximate"]
RULES: tuple[RuleName, ...] = get_args(RuleName)
Answers = tuple[Sequence[Query], Sequence[int]]
# Bounds on the realized loss of some answers; at a threshold, only tight enough to decide.
Loss = Callable[[Sequence[Query], Sequence[int], float | None], LossBounds]


@dataclass(frozen=True)
class Rule:
    """Budget of a person and its accounting rule. Shapes: `domain` (n_points, n_features)."""

    name: RuleName
    epsilon: float
    bounds: Bounds | None = None
    tol: float = 1e-3
    domain: npt.ArrayLike | None = None
    group_size: int | None = None
    delta: float | None = None
    # Budget in units of 2^-60 nats, rounded down.
    budget: int = field(init=False)
    # Budget of zCDP in units; None without a delta.
    zcdp_budget: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        for name in ("bounds", "domain"):
            object.__setattr__(self, name, deepcopy(getattr(self, name)))
        check_positive("epsilon", self.epsilon)
        check_positive("tol", self.tol)
        check_choice("rule", self.name, RULES)
        # A fraction, or single precision, which has no exact ratio.
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "budget", units_below(self.epsilon))
        if self.name != "approximate":
            return
        check_positive("delta", self.delta)
        if self.delta is None or self.delta >= math.exp(-1):
            raise ValueError(f"delta must be below 1/e; got {self.delta!r}.")
        object.__setattr__(self, "zcdp_budget", zcdp_budget(self.epsilon, self.delta))

    def over(self, bounds: Bounds | None) -> "Rule":
        """Return the same rule for other bounds."""
        other = copy(self)
        object.__setattr__(other, "bounds", deepcopy(bounds))
        return other

    def loss_bounds(
        self, queries: Sequence[Query], outputs: Sequence[int], threshold: float | None = None
    ) -> LossBounds:
        """Bound the realized loss of answers; rule ``"basic"`` returns the sum of their epsilons."""
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
        """Return the (epsilon, delta) loss from the sum of rho; infinite above the zCDP budget."""
        rho = sum(zcdp_of(query) for query in queries)
        if self.zcdp_budget is None or self.delta is None or rho > self.zcdp_budget:
            return math.inf
        return loss_of_zcdp(rho, self.delta)

    def table_for(self, query: Query) -> AnswerTable | None:
        """Return a table that speeds up decisions on similar queries, or None if the query has none."""
        jointly = self.domain is None and self.group_size is None and self.name != "basic"
        if not jointly or self.bounds is None or not isinstance(query, RegressionQuery):
            return None
        region = region_of(self.bounds, n_features=query.n_features)
        if region.is_box:
            return BoxTable(region.box)
        return PointTable(region) if self.name != "simplified" and PointTable.serves(region) else None


def surely_admits(rule: Rule, spent: Ints, query: Query) -> Bools:
    """Return a mask of the histories whose total charge is within the budget."""
    after = saturated_sum(spent, charge_parts(query))
    admitted = is_within(after[:, :2], rule.budget)
    return admitted if rule.zcdp_budget is None else admitted | is_within(after[:, 2:], rule.zcdp_budget)


def decide(
    rule: Rule,
    queries: Sequence[Query],
    histories: Sequence[History],
    query: Query,
    *,
    table: AnswerTable | None = None,
    loss: Loss | None = None,
    workers: Workers = map,
    after: Floats | None = None,
) -> list[bool]:
    """Decide for each history whether every output of one more answer is within the budget."""
    # Shapes: `after` (n_histories, n_bounds(query)).
    costs = [(charge_of(one), zcdp_of(one)) for one in (*queries, query)]
    releases = {number for number, one in enumerate(queries) if isinstance(one, ReleaseQuery)}
    admitted = [_epsilons_admit(rule, [*(costs[number] for number in numbers), costs[-1]]) for numbers, _ in histories]
    if rule.name == "basic":
        return admitted
    by_remaining: dict[float, list[int]] = {}
    for position, already in enumerate(admitted):
        if not already:
            # The budget that the releases leave bounds the losses of the answers.
            remaining = _remaining(rule, queries, releases, histories[position], query)
            by_remaining.setdefault(remaining, []).append(position)
    left: list[tuple[int, Rule, Answers]] = []
    for remaining, positions in by_remaining.items():
        if remaining <= 0:
            for position in positions:
                # A release may use the last unit if there is no other answer.
                only_releases = releases.issuperset(histories[position][0])
                admitted[position] = remaining == 0 and isinstance(query, ReleaseQuery) and only_releases
            continue
        reduced = rule if remaining == rule.budget else replace(rule, epsilon=nats_below(int(remaining)))
        some = [_answered(histories[position], releases) for position in positions]
        losses = np.full((len(some), n_bounds(query)), np.inf)
        quick: Sequence[bool | None] = [None] * len(some)
        if table is not None and not isinstance(query, ReleaseQuery):
            every = rule.name != "simplified"
            quick = table.decisions(
                queries, some, query, epsilon=reduced.epsilon, every_output=every, after=losses, workers=workers
            )
        if after is not None and remaining == rule.budget:
            after[positions] = losses
        for position, (numbers, outputs), found in zip(positions, some, quick, strict=True):
            admitted[position] = bool(found)
            if found is None:
                left.append((position, reduced, ([queries[number] for number in numbers], outputs)))
    items = [(reduced, answers) for _, reduced, answers in left]
    searched = workers(partial(_searched, loss or rule.loss_bounds, query), items) if left else ()
    for (position, _, _), one in zip(left, searched, strict=True):
        admitted[position] = one
    return admitted


def n_bounds(query: Query) -> int:
    """Return the number of losses that a table certifies per history; a release has one, infinite."""
    return 1 if isinstance(query, ReleaseQuery) else query.n_outputs


def _remaining(
    rule: Rule, queries: Sequence[Query], releases: Collection[int], history: History, query: Query
) -> float:
    """Return the units that remain after all releases, including the worst output of the next one."""
    released = [(number, output) for number, output in zip(*history, strict=True) if number in releases]
    asked = [one for number, _ in released if isinstance(one := queries[number], ReleaseQuery)]
    outputs = [output for _, output in released]
    if not isinstance(query, ReleaseQuery):
        return rule.budget - released_loss(asked, outputs)
    if rule.name == "simplified":
        return rule.budget - released_loss(asked, outputs) - charge_of(query)
    possible = query.worst_outputs(asked, outputs)
    return rule.budget - max(released_loss([*asked, query], [*outputs, last]) for last in possible)


def _answered(history: History, releases: set[int]) -> History:
    """Keep the answers whose likelihood is known."""
    numbers, outputs = history
    if releases.isdisjoint(numbers):
        return history
    kept = [place for place, number in enumerate(numbers) if number not in releases]
    return [numbers[place] for place in kept], [outputs[place] for place in kept]


def _epsilons_admit(rule: Rule, costs: Sequence[tuple[float, int]]) -> bool:
    """Return whether the total charge, or the total rho, is within the budget."""
    if sum(charge for charge, _ in costs) <= rule.budget:
        return True
    return rule.zcdp_budget is not None and sum(zcdp for _, zcdp in costs) <= rule.zcdp_budget


def _searched(loss: Loss, query: Query, item: tuple[Rule, Answers]) -> bool:
    return _losses_admit(item[0], loss, query, item[1])


def _losses_admit(rule: Rule, loss: Loss, query: Query, answers: Answers) -> bool:
    """Return whether the certified losses of a history admit one more answer."""
    queries, outputs = answers
    if isinstance(query, ReleaseQuery):
        return _is_at_most(loss(queries, outputs, rule.epsilon), rule.budget)
    remaining = rule.budget - charge_of(query)
    # One search suffices if the present loss and epsilon together are within the budget.
    if remaining >= 0 and _is_at_most(loss(queries, outputs, nats_below(int(remaining))), remaining):
        return True
    if rule.name == "simplified":
        return False
    return all(
        _is_at_most(loss([*queries, query], [*outputs, output], rule.epsilon), rule.budget)
        for output in range(query.n_outputs)
    )


def _is_at_most(loss: LossBounds, remaining: float) -> bool:
    """Return whether a loss is proved to be at most `remaining` units."""
    return math.isfinite(loss.upper) and units_above(loss.upper) <= remaining
