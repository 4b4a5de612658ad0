r"""Privacy filters, which decide whether a person may answer one more query.

A filter sees the queries and the outputs, never a person's values: that it refuses tells nothing new. Every decision
here is a function of the multiset of answers and the query, so that it is the same in whatever order the answers came,
on every machine, and however often it was asked before.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy.typing as npt

from skldp.accounting._composition import OutputIndependentRule, advanced_composition
from skldp.accounting._extrema.linear_cohort import LinearTable, linear_decisions
from skldp.accounting._extrema.realized_loss import LossBounds, realized_loss
from skldp.accounting._extrema.sampled_law import Bounds, checked_box
from skldp.accounting._query import FiniteQuery, Query, RegressionQuery

__all__ = [
    "ApproximateBayesianPrivacyFilter",
    "BasicPrivacyFilter",
    "BayesianPrivacyFilter",
    "PrivacyFilter",
    "SimplifiedBayesianPrivacyFilter",
]


def _positive(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0. Got {value!r} instead.")
    return float(value)


class PrivacyFilter(ABC):
    """What every filter can do.

    Parameters
    ----------
    epsilon : float
        The person's whole budget, in nats.
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = _positive(epsilon, "epsilon")
        self._history: list[tuple[Query, int]] = []

    @property
    def history(self) -> tuple[tuple[Query, int], ...]:
        """The recorded (query, output) pairs, in order."""
        return tuple(self._history)

    @property
    @abstractmethod
    def realized_loss(self) -> float:
        """The odometer: an upper bound on what the recorded answers have cost, in nats."""

    @property
    def remaining(self) -> float:
        """What is left of the budget, in nats: never negative."""
        return max(0.0, self.epsilon - self.realized_loss)

    @abstractmethod
    def admits(self, query: Query) -> bool:
        """Whether one more answer, to this query, is within the budget. Changes nothing."""

    def record(self, query: Query, output: int) -> None:
        """Take down an answer that was given.

        It is recorded whether :meth:`admits` would allow it or not: an answer that is out has its cost.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
        output : int
            Its index: 0 or 1 for a regression.

        Raises
        ------
        ValueError
            If the query has no such output.
        """
        if isinstance(output, bool) or output not in range(_checked(query).n_outputs):
            raise ValueError(f"output must be an integer from 0 to {query.n_outputs - 1}. Got {output!r} instead.")
        self._history.append((query, int(output)))

    def _exact_epsilons(self, *more: Query) -> list[float]:
        return [query.exact_epsilon for query in (*(query for query, _ in self._history), *more)]


class BasicPrivacyFilter(PrivacyFilter):
    """Basic composition: accept while the epsilons add up to at most the budget.

    Parameters
    ----------
    epsilon : float
        The person's whole budget, in nats.

    Examples
    --------
    >>> from skldp.accounting._filters import BasicPrivacyFilter
    >>> from skldp.accounting._query import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> person = BasicPrivacyFilter(0.9)
    >>> person.admits(query)
    True
    >>> person.record(query, 1)
    >>> person.admits(query)
    False
    """

    @property
    def realized_loss(self) -> float:
        """The sum of the epsilons: the worst that the recorded answers can have cost."""
        return _sum_up(self._exact_epsilons())

    def admits(self, query: Query) -> bool:
        """Whether the epsilons still add up to at most the budget."""
        return _sum_up(self._exact_epsilons(_checked(query))) <= self.epsilon


class _LossFilter(PrivacyFilter):
    """The part that the filters over realized loss share."""

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        domain: npt.ArrayLike | None = None,
        tol: float = 1e-3,
        group_size: int | None = None,
    ) -> None:
        super().__init__(epsilon)
        self.bounds = bounds
        self.domain = domain
        self.tol = _positive(tol, "tol")
        self.group_size = group_size
        self._decided: dict[tuple[str, int] | None, LossBounds] = {}
        self._reported: LossBounds | None = None
        self._table: LinearTable | None = None

    @property
    def loss_bounds(self) -> LossBounds:
        """The realized loss of the recorded answers, enclosed to within `tol`."""
        if self._reported is None:
            self._reported = self._enclosed(self._history, None)
        return self._reported

    @property
    def realized_loss(self) -> float:
        """The odometer: a certified upper bound on the realized loss of the recorded answers, in nats."""
        return self.loss_bounds.upper

    def record(self, query: Query, output: int) -> None:
        super().record(query, output)
        following = self._decided.get((query.key, int(output)))
        self._decided = {} if following is None else {None: following}
        self._reported = None

    record.__doc__ = PrivacyFilter.record.__doc__

    def _enclosed(self, history: Sequence[tuple[Query, int]], threshold: float | None) -> LossBounds:
        return realized_loss(
            [query for query, _ in history],
            [output for _, output in history],
            bounds=self.bounds,
            domain=self.domain,
            tol=self.tol,
            group_size=self.group_size,
            threshold=threshold,
        )

    def _fits(self, query: Query, output: int) -> bool:
        """Whether this very output keeps the loss within the budget."""
        place = (query.key, output)
        if place not in self._decided:
            self._decided[place] = self._enclosed([*self._history, (query, output)], self.epsilon)
        return self._decided[place].upper <= self.epsilon

    def _current_upper(self) -> float:
        """A bound on the present loss: as good as the threshold needs, and the same however it was come by."""
        if None not in self._decided:
            self._decided[None] = self._enclosed(self._history, self.epsilon)
        return self._decided[None].upper


class SimplifiedBayesianPrivacyFilter(_LossFilter):
    """Algorithm 3: accept while the realized loss and the next epsilon add up to at most the budget.

    Parameters
    ----------
    epsilon : float
        The person's whole budget, in nats.
    bounds : tuple (low, high), default=None
        The box of x, each side a number or one per feature. Not needed for finite queries.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead of a box.
    tol : float, default=1e-3
        Width to which the loss is enclosed, in nats; the upper end decides.
    group_size : int, default=None
        See :func:`skldp.accounting._extrema.realized_loss`.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Algorithm 3.
    """

    def admits(self, query: Query) -> bool:
        """Whether loss and epsilon add up to at most the budget."""
        _checked(query)
        if _sum_up(self._exact_epsilons(query)) <= self.epsilon:
            return True
        return _sum_up([self.realized_loss, query.exact_epsilon]) <= self.epsilon


class BayesianPrivacyFilter(_LossFilter):
    """Algorithm 2: accept if every output of the next query keeps the realized loss within the budget.

    Parameters
    ----------
    epsilon : float
        The person's whole budget, in nats.
    bounds : tuple (low, high), default=None
        The box of x, each side a number or one per feature. Not needed for finite queries.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead of a box.
    tol : float, default=1e-3
        Width to which the loss is enclosed, in nats; the upper end decides.
    group_size : int, default=None
        See :func:`skldp.accounting._extrema.realized_loss`.

    Notes
    -----
    The composition is epsilon-LDP for people whose x lies within the domain. What the search cannot prove is refused.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Algorithm 2 and Theorem 4.1.

    Examples
    --------
    >>> from skldp.accounting._filters import BayesianPrivacyFilter
    >>> from skldp.accounting._query import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> person = BayesianPrivacyFilter(0.6, bounds=(-1, 1))
    >>> for output in (1, 0, 1):
    ...     print(person.admits(query))
    ...     person.record(query, output)
    True
    False
    True
    """

    def admits(self, query: Query) -> bool:
        """Whether every output of the query keeps the certified loss within the budget."""
        _checked(query)
        # The shortcuts only decide as the bounds of every output would: they save the search.
        if _sum_up(self._exact_epsilons(query)) <= self.epsilon:
            return True
        quick = self._quickly_admits(query)
        if quick is not None:
            return quick
        if _sum_up([self._current_upper(), query.exact_epsilon]) <= self.epsilon:
            return True
        return all(self._fits(query, output) for output in range(query.n_outputs))

    def _quickly_admits(self, query: Query) -> bool | None:
        if self.group_size is not None or self.domain is not None or self.bounds is None:
            return None
        if self._table is None and isinstance(query, RegressionQuery):
            self._table = LinearTable(checked_box(self.bounds, n_features=query.n_features))
        queries, outputs = [asked for asked, _ in self._history], [output for _, output in self._history]
        history = (range(len(queries)), outputs)
        return linear_decisions(queries, [history], query, epsilon=self.epsilon, bounds=self.bounds, table=self._table)[
            0
        ]


class ApproximateBayesianPrivacyFilter(BayesianPrivacyFilter):
    r"""Algorithm 4: an :math:`(\varepsilon, \delta)` filter that ignores outputs first, and looks at them afterwards.

    Parameters
    ----------
    epsilon, delta : float
        The person's whole budget; delta above 0 and below 1/e.
    bounds, domain, tol, group_size
        As in :class:`BayesianPrivacyFilter`.
    rule : {"whitehouse", "rogers", "basic"}, default="whitehouse"
        The output-independent filter: see :func:`skldp.accounting.advanced_composition`.

    Notes
    -----
    Line 15 of the printed algorithm compares a ratio with its logarithm: it must read :math:`L > e^{\varepsilon_g}`.

    Why it is :math:`(\varepsilon, \delta)`-LDP. Take two values x and x'. While the output-independent filter accepts,
    the log-ratio of their probabilities exceeds epsilon only on an event of probability delta under x. Its test grows
    with every answer, so that it never accepts again after an answer it would not have accepted. From there on an
    answer is given only if every output keeps the loss of all pairs within epsilon; otherwise nothing changes. So
    outside that event the final log-ratio of x and x' is at most epsilon. The event may be another one for each pair:
    the paper's Definition 4.7 asks for one event for all pairs, which is sufficient, not equivalent.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Algorithm 4.
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        bounds: Bounds | None = None,
        domain: npt.ArrayLike | None = None,
        tol: float = 1e-3,
        group_size: int | None = None,
        rule: OutputIndependentRule = "whitehouse",
    ) -> None:
        super().__init__(epsilon, bounds=bounds, domain=domain, tol=tol, group_size=group_size)
        self.delta = _positive(delta, "delta")
        if self.delta >= math.exp(-1):
            raise ValueError(f"delta must be below 1/e. Got {delta!r} instead.")
        if rule not in ("basic", "rogers", "whitehouse"):
            raise ValueError(f"rule must be 'basic', 'rogers' or 'whitehouse'. Got {rule!r} instead.")
        self.rule = rule

    def admits(self, query: Query) -> bool:
        """Whether the output-independent filter accepts the query, or else the Bayesian one does."""
        epsilons = self._exact_epsilons(_checked(query))
        spent = advanced_composition(epsilons, epsilon=self.epsilon, delta=self.delta, rule=self.rule)
        # A few sums, products and roots are right within far less.
        return spent * (1 + 2.0**-40) <= self.epsilon or super().admits(query)


def _checked(query: Query) -> Query:
    if not isinstance(query, RegressionQuery | FiniteQuery):
        raise ValueError(f"A filter needs a RegressionQuery or a FiniteQuery. Got {query!r} instead.")
    return query


def _sum_up(values: Sequence[float]) -> float:
    """Sum, rounded up."""
    return math.nextafter(math.fsum(values), math.inf) if values else 0.0
