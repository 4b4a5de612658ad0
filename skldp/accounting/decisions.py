"""May a person with a given history be asked one more query? Pure functions of queries and outputs."""

import math
from dataclasses import dataclass

from skldp.accounting.domain import Bounds
from skldp.accounting.query import Query

__all__ = ["RULES", "Decision", "Rule"]

RULES = ("basic",)


@dataclass(frozen=True)
class Decision:
    """Whether a query is admitted, and an upper bound on the loss after each output."""

    admitted: bool
    losses: tuple[float, ...]


@dataclass(frozen=True)
class Rule:
    """A budget and the way of accounting for it."""

    name: str
    epsilon: float
    bounds: Bounds | None
    tol: float

    def decide(self, queries: list[Query], outputs: list[int], query: Query) -> Decision:
        """Decide on one more query."""
        loss = math.fsum([q.epsilon for q in queries] + [query.epsilon])
        return Decision(loss <= self.epsilon, (loss,) * query.n_outputs)

    def decide_quickly(self, loss: float, query: Query) -> Decision | None:
        """Decide from an upper bound on the loss so far, where that is enough."""
        after = loss + query.epsilon
        return Decision(True, (after,) * query.n_outputs) if after <= self.epsilon else None

    def loss(self, queries: list[Query], outputs: list[int]) -> float:
        """Certified upper bound on the loss of a history."""
        return math.fsum([q.epsilon for q in queries])
