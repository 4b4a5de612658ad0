"""What answers have cost together: after each of one person's, and over all outputs that some queries can have."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.realized_loss import LossBounds, realized_loss
from skldp.accounting._extrema.sampled_law import Bounds, Floats
from skldp.accounting._finite_query import output_index
from skldp.accounting._query import Query, checked_query

__all__ = ["History", "LossHistory", "Utilization", "budget_utilization", "loss_history", "loss_of", "pairs_of"]

#: Pairs of a query and its output, as filters keep them, or what a ledger's ``history`` returns.
History = Sequence[tuple[Query, int]] | Sequence[Mapping[str, Any]]
_MOST_COMBINATIONS = 4096


def pairs_of(history: History) -> list[tuple[Query, int]]:
    """The queries and outputs of a history, checked."""
    pairs = [(one["query"], one["output"]) if isinstance(one, Mapping) else one for one in history]
    return [(checked_query(query), output_index(output, query.n_outputs)) for query, output in pairs]


def loss_of(history: History, bounds: Bounds | None, domain: npt.ArrayLike | None, tol: float) -> LossBounds:
    """Bound what the answers of a history have cost together."""
    pairs = pairs_of(history)
    queries, outputs = [query for query, _ in pairs], [output for _, output in pairs]
    return realized_loss(queries, outputs, bounds=bounds, domain=domain, tol=tol)


@dataclass(frozen=True)
class Utilization:
    """How much of what some queries may cost their outputs really cost.

    Attributes
    ----------
    least, most : float
        The smallest and the largest realized loss over all outputs, in nats, each a certified upper bound.
    epsilon : float
        What the queries may cost by adding up, in nats.
    """

    least: float
    most: float
    epsilon: float

    @property
    def share(self) -> float:
        """The smallest loss over the epsilon: 1 for queries that fully utilize their budget (Definition 3.3)."""
        return min(1.0, self.least / self.epsilon)


def budget_utilization(
    queries: Sequence[Query],
    *,
    bounds: Bounds | None = None,
    domain: npt.ArrayLike | None = None,
    tol: float = 1e-3,
) -> Utilization:
    """Whether every output of some queries costs what they may cost.

    Parameters
    ----------
    queries : sequence of RegressionQuery or FiniteQuery
        One, or a composition.
    bounds, domain, tol
        As in :func:`realized_loss`.

    Returns
    -------
    Utilization

    Raises
    ------
    ValueError
        If there are no queries, or more than 4,096 combinations of outputs.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Definition 3.3.

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery, budget_utilization
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> [round(budget_utilization([query] * n, bounds=(-1, 1)).share, 4) for n in (1, 2, 3)]
    [1.0, 0.0619, 0.3333]
    """
    n_combinations = math.prod(checked_query(query).n_outputs for query in queries)
    if not queries or n_combinations > _MOST_COMBINATIONS:
        raise ValueError(
            f"queries must have from 2 to {_MOST_COMBINATIONS:,} combinations of outputs. Got {n_combinations:,}."
        )
    losses = [
        realized_loss(queries, outputs, bounds=bounds, domain=domain, tol=tol).upper
        for outputs in itertools.product(*(range(query.n_outputs) for query in queries))
    ]
    return Utilization(min(losses), max(losses), _added_up([query.exact_epsilon for query in queries]))


@dataclass(frozen=True)
class LossHistory:
    """A person's privacy loss after each of their answers, in nats.

    Attributes
    ----------
    realized : ndarray of shape (n_answers + 1,)
        Certified upper bound of the realized loss, from no answer on.
    added_up : ndarray of shape (n_answers + 1,)
        The sum of the queries' epsilons, rounded up: what basic composition charges.
    """

    realized: Floats
    added_up: Floats


def loss_history(
    history: History, *, bounds: Bounds | None = None, domain: npt.ArrayLike | None = None, tol: float = 1e-3
) -> LossHistory:
    """How a person's privacy loss grew, and shrank, with their answers: the odometer of Section 4.2.

    Parameters
    ----------
    history : sequence of (query, output), or what a ledger's ``history`` returns
        In the order in which the answers were given.
    bounds, domain, tol
        As in :func:`realized_loss`.

    Returns
    -------
    LossHistory

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Definition 4.5.

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery, loss_history
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> losses = loss_history([(query, output) for output in (1, 1, 0)], bounds=(-1, 1))
    >>> losses.realized.round(2).tolist(), losses.added_up.round(2).tolist()
    ([0.0, 0.5, 1.0, 0.5], [0.0, 0.5, 1.0, 1.5])
    """
    pairs = pairs_of(history)
    known = [loss_of(pairs[:n], bounds, domain, tol).upper for n in range(len(pairs) + 1)]
    epsilons = [query.exact_epsilon for query, _ in pairs]
    return LossHistory(np.array(known), np.array([_added_up(epsilons[:n]) for n in range(len(pairs) + 1)]))


def _added_up(epsilons: Sequence[float]) -> float:
    return math.nextafter(math.fsum(epsilons), math.inf) if epsilons else 0.0
