"""May a person with a given history be asked one more query? Pure functions of queries and outputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldp.accounting.extrema.domain import Bounds
from skldp.accounting.extrema.linear_cohort import LinearTable, linear_decisions
from skldp.accounting.extrema.realized_loss import realized_loss
from skldp.accounting.filters import (
    BasicPrivacyFilter,
    BayesianPrivacyFilter,
    SimplifiedBayesianPrivacyFilter,
)
from skldp.accounting.query import Query

__all__ = ["RULES", "Rule"]

Filter = BasicPrivacyFilter | SimplifiedBayesianPrivacyFilter | BayesianPrivacyFilter
RULES = ("basic", "simplified", "bayesian")
# Epsilons are added up one by one here, and exactly by the filters: far more than all rounding errors together.
_SLACK = 1e-9


@dataclass(frozen=True)
class Rule:
    """A budget and the way of accounting for it.

    Parameters
    ----------
    name : {"basic", "simplified", "bayesian"}
    epsilon : float
        Each person's total budget.
    bounds : tuple (low, high) or None
    tol : float

    Examples
    --------
    >>> from skldp.accounting.ledger.decisions import Rule
    >>> from skldp.accounting.query import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> [Rule(name, 0.6, (-1, 1), 1e-3).admits([query, query], [0, 1], query) for name in ("basic", "bayesian")]
    [False, True]
    """

    name: str
    epsilon: float
    bounds: Bounds | None
    tol: float

    def history(self, queries: Sequence[Query], outputs: Sequence[int]) -> Filter:
        """Make the filter of a person with this history."""
        one: Filter
        if self.name == "basic":
            one = BasicPrivacyFilter(self.epsilon)
        elif self.name == "simplified":
            one = SimplifiedBayesianPrivacyFilter(self.epsilon, bounds=self.bounds, tol=self.tol)
        else:
            one = BayesianPrivacyFilter(self.epsilon, bounds=self.bounds, tol=self.tol)
        for query, output in zip(queries, outputs, strict=True):
            one.record(query, output)
        return one

    def admits(self, queries: Sequence[Query], outputs: Sequence[int], query: Query) -> bool:
        """Decide on one more query after this history."""
        return self.history(queries, outputs).admits(query)

    def admits_many(
        self,
        queries: Sequence[Query],
        histories: Sequence[tuple[Sequence[int], Sequence[int]]],
        query: Query,
        table: LinearTable | None = None,
    ) -> list[bool | None]:
        """Decide as :meth:`admits` would on one more query after each of many histories, where that is quick.

        Parameters
        ----------
        queries : sequence of RegressionQuery or FiniteQuery
        histories : sequence of tuple (positions in `queries`, outputs)
        query : RegressionQuery or FiniteQuery
        table : LinearTable, default=None
            To be kept from call to call.

        Returns
        -------
        list of bool or None
            None where each history has to be looked at by itself.
        """
        if self.name != "bayesian":
            return [None] * len(histories)
        return linear_decisions(queries, histories, query, epsilon=self.epsilon, bounds=self.bounds, table=table)

    def surely_admits(self, spent: npt.NDArray[np.float64], query: Query) -> npt.NDArray[np.bool_]:
        """Whether sums of epsilons so far are small enough to admit the query, whatever was answered."""
        return spent + query.epsilon + _SLACK * self.epsilon <= self.epsilon

    def is_established(self, queries: Sequence[Query], outputs: Sequence[int], query: Query) -> bool:
        """Whether the independent check proves that one more query was within the budget, whatever was answered.

        No shortcut of :meth:`admits` is taken: neither running sums, nor the table of linear queries, nor what an
        earlier decision has left. It admits no more than they should, up to the tolerance of the search.
        """
        epsilons = [one.exact_epsilon for one in (*queries, query)]
        if math.nextafter(math.fsum(epsilons), math.inf) <= self.epsilon:
            return True
        if self.name == "basic":
            return False
        if self.name == "simplified":
            loss = realized_loss(queries, outputs, bounds=self.bounds, tol=self.tol).upper
            return math.nextafter(loss + query.exact_epsilon, math.inf) <= self.epsilon
        losses = (
            realized_loss(
                [*queries, query], [*outputs, output], bounds=self.bounds, tol=self.tol, threshold=self.epsilon
            )
            for output in range(query.n_outputs)
        )
        return all(loss.upper <= self.epsilon for loss in losses)

    def loss(self, queries: Sequence[Query], outputs: Sequence[int]) -> float:
        """Certified upper bound on the loss of this history."""
        return self.history(queries, outputs).realized_loss

    def surely_exceeded(self, queries: Sequence[Query], outputs: Sequence[int]) -> bool:
        """Whether this history has provably cost more than the budget."""
        one = self.history(queries, outputs)
        lower = one.realized_loss if isinstance(one, BasicPrivacyFilter) else one.loss_bounds.lower
        return lower > self.epsilon
