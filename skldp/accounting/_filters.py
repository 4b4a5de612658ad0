"""Privacy filters, which decide whether a person may answer one more query: one person's view of the one decision."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from skldp.accounting._composition import OutputIndependentRule
from skldp.accounting._decide import Rule, decide
from skldp.accounting._extrema.realized_loss import LossBounds
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._finite_query import output_index
from skldp.accounting._query import Query, checked_query

if TYPE_CHECKING:
    from skldp.accounting._extrema.linear_cohort import LinearTable
    from skldp.accounting._extrema.point_cohort import PointTable

__all__ = [
    "ApproximateBayesianPrivacyFilter",
    "BasicPrivacyFilter",
    "BayesianPrivacyFilter",
    "PrivacyFilter",
    "SimplifiedBayesianPrivacyFilter",
]


class PrivacyFilter(ABC):
    """What every filter can do.

    Parameters
    ----------
    rule : Rule
        The person's whole budget, and how it is accounted for.
    """

    @abstractmethod
    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._queries: list[Query] = []
        self._outputs: list[int] = []
        self._known: dict[tuple[tuple[tuple[str, int], ...], float | None], LossBounds] = {}
        self._table: LinearTable | PointTable | None = None

    @property
    def epsilon(self) -> float:
        """The person's whole budget, in nats."""
        return self._rule.epsilon

    @property
    def history(self) -> tuple[tuple[Query, int], ...]:
        """The recorded (query, output) pairs, in order."""
        return tuple(zip(self._queries, self._outputs, strict=True))

    @property
    def loss_bounds(self) -> LossBounds:
        """Bounds on what the recorded answers have cost, as the filter counts it, within `tol` where it can be."""
        return self._loss(self._queries, self._outputs)

    @property
    def realized_loss(self) -> float:
        """The odometer: a certified upper bound on the loss of the recorded answers, or their epsilons added up."""
        return self.loss_bounds.upper

    @property
    def remaining(self) -> float:
        """What is left of the budget, in nats: never negative."""
        return max(0.0, self.epsilon - self.realized_loss)

    def admits(self, query: Query) -> bool:
        """Whether one more answer to this query, whatever it will be, is within the budget. Changes nothing.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            If it is no query, or not about the same features or points as the filter.
        """
        checked_query(query)
        if self._table is None:
            self._table = self._rule.table_for(query)
        history = (range(len(self._queries)), self._outputs)
        return decide(self._rule, self._queries, [history], query, table=self._table, loss=self._loss)[0]

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
        self._outputs.append(output_index(output, checked_query(query).n_outputs))
        self._queries.append(query)
        # Of all that was looked at before this answer, only what it leads to will be asked for again.
        if self._known:
            now = self._answers(self._queries, self._outputs)
            self._known = {known: loss for known, loss in self._known.items() if known[0] == now}

    def _loss(self, queries: Sequence[Query], outputs: Sequence[int], threshold: float | None = None) -> LossBounds:
        """Bound the loss of some answers, each once: their order does not matter."""
        place = (self._answers(queries, outputs), threshold)
        if place not in self._known:
            self._known[place] = self._rule.loss_bounds(queries, outputs, threshold)
        return self._known[place]

    @staticmethod
    def _answers(queries: Sequence[Query], outputs: Sequence[int]) -> tuple[tuple[str, int], ...]:
        return tuple(sorted((query.key, output) for query, output in zip(queries, outputs, strict=True)))


class BasicPrivacyFilter(PrivacyFilter):
    """Basic composition: accept while the epsilons add up to at most the budget.

    Parameters
    ----------
    epsilon : float
        The person's whole budget, in nats.

    Examples
    --------
    >>> from skldp.accounting import BasicPrivacyFilter, RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> person = BasicPrivacyFilter(0.9)
    >>> person.admits(query)
    True
    >>> person.record(query, 1)
    >>> person.admits(query)
    False
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__(Rule("basic", epsilon))


class SimplifiedBayesianPrivacyFilter(PrivacyFilter):
    """Algorithm 3: accept while the realized loss and the next epsilon add up to at most the budget.

    Parameters
    ----------
    epsilon : float
        The person's whole budget, in nats.
    bounds : tuple (low, high) or Domain, default=None
        The box of x, each side a number or one per feature, or another domain, as in
        :func:`skldp.accounting.realized_loss`. Not needed for finite queries.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead of a box.
    tol : float, default=1e-3
        Width within which the loss is bounded, in nats; the upper end decides.
    group_size : int, default=None
        See :func:`skldp.accounting.realized_loss`.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Algorithm 3.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        domain: npt.ArrayLike | None = None,
        tol: float = 1e-3,
        group_size: int | None = None,
    ) -> None:
        super().__init__(Rule("simplified", epsilon, bounds, tol, domain, group_size))


class BayesianPrivacyFilter(PrivacyFilter):
    """Algorithm 2: accept if every output of the next query keeps the realized loss within the budget.

    Parameters
    ----------
    epsilon : float
        The person's whole budget, in nats.
    bounds : tuple (low, high) or Domain, default=None
        The box of x, each side a number or one per feature, or another domain, as in
        :func:`skldp.accounting.realized_loss`. Not needed for finite queries.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead of a box.
    tol : float, default=1e-3
        Width within which the loss is bounded, in nats; the upper end decides.
    group_size : int, default=None
        See :func:`skldp.accounting.realized_loss`.

    Notes
    -----
    The composition is epsilon-LDP for people whose x lies within the domain. What the search cannot prove is refused.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Algorithm 2 and Theorem 4.1.

    Examples
    --------
    >>> from skldp.accounting import BayesianPrivacyFilter, RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> person = BayesianPrivacyFilter(0.6, bounds=(-1, 1))
    >>> for output in (1, 0, 1):
    ...     print(person.admits(query))
    ...     person.record(query, output)
    True
    False
    True
    """

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        domain: npt.ArrayLike | None = None,
        tol: float = 1e-3,
        group_size: int | None = None,
    ) -> None:
        super().__init__(Rule("bayesian", epsilon, bounds, tol, domain, group_size))


class ApproximateBayesianPrivacyFilter(PrivacyFilter):
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
        super().__init__(Rule("approximate", epsilon, bounds, tol, domain, group_size, delta, rule))

    @property
    def delta(self) -> float:
        """The probability with which the budget may be passed."""
        assert self._rule.delta is not None
        return self._rule.delta
