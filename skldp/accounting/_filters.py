"""Privacy filters of one person: whether one more query may be answered."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy.typing as npt

from skldp.accounting._decide import Rule, RuleName, decide
from skldp.accounting._query import Query, checked_query
from skldp.accounting.losses._realized_loss import LossBounds
from skldp.accounting.losses._region import Bounds
from skldp.mechanisms._finite_query import output_index

if TYPE_CHECKING:
    from skldp.accounting.losses._cohorts import AnswerTable


class PrivacyFilter:
    """Base class of privacy filters."""

    _rule_name: ClassVar[RuleName]
    _delta: float | None = None

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        domain: npt.ArrayLike | None = None,
        tol: float = 1e-3,
        group_size: int | None = None,
    ) -> None:
        self._rule = Rule(self._rule_name, epsilon, bounds, tol, domain, group_size, self._delta)
        self._queries: list[Query] = []
        self._outputs: list[int] = []
        self._known: dict[tuple[tuple[tuple[str, int], ...], float | None], LossBounds] = {}
        self._table: AnswerTable | None = None

    @property
    def epsilon(self) -> float:
        """Budget of the person, in nats."""
        return self._rule.epsilon

    @property
    def history(self) -> tuple[tuple[Query, int], ...]:
        """Recorded (query, output) pairs, in order."""
        return tuple(zip(self._queries, self._outputs, strict=True))

    @property
    def loss_bounds(self) -> LossBounds:
        """Bounds on the loss of the recorded answers, at most `tol` apart if the search succeeds."""
        return self._loss(self._queries, self._outputs)

    @property
    def realized_loss(self) -> float:
        """Certified upper bound on the loss of the recorded answers (odometer), or the sum of their epsilons."""
        return self.loss_bounds.upper

    @property
    def remaining(self) -> float:
        """Remaining budget in nats, at least 0."""
        return max(0.0, self.epsilon - self.realized_loss)

    def admits(self, query: Query) -> bool:
        """Return whether every output of one more answer is within the budget, without recording anything.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
            Question to the person.

        Raises
        ------
        ValueError
            If the argument is not a query, or its features or points differ from the filter's.
        """
        checked_query(query)
        if self._table is None:
            self._table = self._rule.table_for(query)
        history = (range(len(self._queries)), self._outputs)
        return decide(self._rule, self._queries, [history], query, table=self._table, loss=self._loss)[0]

    def record(self, query: Query, output: int) -> None:
        """Record an answer.

        It is recorded even if :meth:`admits` would refuse it: a released answer has its cost.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
            Question to the person.
        output : int
            Index of the output: 0 or 1 for a regression.

        Raises
        ------
        ValueError
            If the query has no such output.
        """
        self._outputs.append(output_index(output, checked_query(query).n_outputs))
        self._queries.append(query)
        # Losses of earlier histories are never read again.
        if self._known:
            now = self._answers(self._queries, self._outputs)
            self._known = {known: loss for known, loss in self._known.items() if known[0] == now}

    def _loss(self, queries: Sequence[Query], outputs: Sequence[int], threshold: float | None = None) -> LossBounds:
        """Bound the loss of answers, with a cache that ignores their order."""
        place = (self._answers(queries, outputs), threshold)
        if place not in self._known:
            self._known[place] = self._rule.loss_bounds(queries, outputs, threshold)
        return self._known[place]

    @staticmethod
    def _answers(queries: Sequence[Query], outputs: Sequence[int]) -> tuple[tuple[str, int], ...]:
        return tuple(sorted((query.key, output) for query, output in zip(queries, outputs, strict=True)))


class BasicPrivacyFilter(PrivacyFilter):
    """Filter of basic composition: the sum of epsilons must be within the budget."""

    _rule_name = "basic"


class SimplifiedBayesianPrivacyFilter(PrivacyFilter):
    """Filter of Algorithm 3: the realized loss plus the next epsilon must be within the budget."""

    _rule_name = "simplified"


class BayesianPrivacyFilter(PrivacyFilter):
    """Filter of Algorithm 2: every output of the next query must keep the realized loss within the budget.

    Parameters
    ----------
    epsilon : float
        Budget of the person, in nats.
    bounds : tuple (low, high) or Domain, default=None
        Bounds of x, each a number or one per feature, or another domain, as in
        :func:`skldp.accounting.realized_loss`. Not needed for finite queries.
    domain : array-like of shape (n_points, n_features), default=None
        Finite domain, as an alternative to `bounds`.
    tol : float, default=1e-3
        Largest distance between the bounds on the loss, in nats; the upper bound decides.
    group_size : int, default=None
        See :func:`skldp.accounting.realized_loss`.

    Notes
    -----
    The composition is epsilon-LDP for people whose x lies within the domain. A query is refused unless its loss is
    proved to be within the budget.

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

    _rule_name = "bayesian"


class ApproximateBayesianPrivacyFilter(PrivacyFilter):
    r"""Filter of Algorithm 4: :math:`(\varepsilon, \delta)`-LDP, by outputs only after the zCDP budget is spent.

    The first stage ignores outputs: it adds up zero-concentrated privacy (Whitehouse et al.).

    Line 15 of the printed algorithm compares a ratio with its logarithm: it must read :math:`L > e^{\varepsilon_g}`.

    Proof of :math:`(\varepsilon, \delta)`-LDP. Take two values x and x'. While the first stage accepts, the log-ratio
    of their probabilities exceeds epsilon only on an event of probability delta under x. The sum of the first stage
    grows with every answer, so it never accepts again once it has refused. The second stage accepts only if every
    output keeps the loss of all pairs within epsilon. Outside the event, the final log-ratio of x and x' is therefore
    at most epsilon. The event may differ between pairs. Definition 4.7 of the paper requires one event for all pairs,
    which is sufficient but not necessary.

    J. Whitehouse, A. Ramdas, R. Rogers and Z. S. Wu, "Fully Adaptive Composition in Differential Privacy", 2022.
    """

    _rule_name = "approximate"

    def __init__(self, epsilon: float, delta: float, **options: Any) -> None:
        self._delta = delta
        super().__init__(epsilon, **options)

    @property
    def delta(self) -> float:
        """Probability that the budget is exceeded."""
        assert self._rule.delta is not None
        return self._rule.delta
