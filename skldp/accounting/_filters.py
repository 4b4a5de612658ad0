"""Privacy filters of one person and of a household: whether one more query may be answered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Positions, kind_of
from skldp._checks import check_integer, is_integer
from skldp.accounting._decide import Rule, RuleName, decide
from skldp.accounting._query import Query, checked_query
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._realized_loss import LossBounds
from skldp.accounting.losses._region import Bounds, checked_box
from skldp.mechanisms._finite_query import output_index

if TYPE_CHECKING:
    from skldp.accounting.losses._cohorts import LinearTable, PointTable


class PrivacyFilter:
    """Base class of privacy filters."""

    _rule_name: ClassVar[RuleName]

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        domain: npt.ArrayLike | None = None,
        tol: float = 1e-3,
        group_size: int | None = None,
    ) -> None:
        self._set_up(Rule(self._rule_name, epsilon, bounds, tol, domain, group_size))

    def _set_up(self, rule: Rule) -> None:
        self._rule = rule
        self._queries: list[Query] = []
        self._outputs: list[int] = []
        self._known: dict[tuple[tuple[tuple[str, int], ...], float | None], LossBounds] = {}
        self._table: LinearTable | PointTable | None = None

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

        Returns
        -------
        bool

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
    """Filter of Algorithm 3: the realized loss plus the next epsilon must be within the budget.

    The parameters are those of :class:`BayesianPrivacyFilter`.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Algorithm 3.
    """

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

    Parameters
    ----------
    epsilon, delta : float
        Budget of the person; delta above 0 and below 1/e.
    bounds, domain, tol, group_size
        As in :class:`BayesianPrivacyFilter`.

    Notes
    -----
    The first stage ignores outputs: it adds up zero-concentrated privacy (Whitehouse et al.).

    Line 15 of the printed algorithm compares a ratio with its logarithm: it must read :math:`L > e^{\varepsilon_g}`.

    Proof of :math:`(\varepsilon, \delta)`-LDP. Take two values x and x'. While the first stage accepts, the log-ratio
    of their probabilities exceeds epsilon only on an event of probability delta under x. The sum of the first stage
    grows with every answer, so it never accepts again once it has refused. The second stage accepts only if every
    output keeps the loss of all pairs within epsilon. Outside the event, the final log-ratio of x and x' is therefore
    at most epsilon. The event may differ between pairs. Definition 4.7 of the paper requires one event for all pairs,
    which is sufficient but not necessary.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Algorithm 4.
    J. Whitehouse, A. Ramdas, R. Rogers and Z. S. Wu, "Fully Adaptive Composition in Differential Privacy", 2022.
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
    ) -> None:
        self._set_up(Rule("approximate", epsilon, bounds, tol, domain, group_size, delta))

    @property
    def delta(self) -> float:
        """Probability that the budget is exceeded."""
        assert self._rule.delta is not None
        return self._rule.delta


@dataclass(frozen=True)
class Household:
    r"""Household whose members share some features and one privacy budget.

    Each member's answer reveals shared features. With a budget per member, a statement about shared features could be
    learnt at the sum of the budgets. The accounting therefore treats a household as one person. Its common record holds
    the shared features once, followed by each member's own features. A query about a member becomes a query about the
    common record, which any filter, ledger or certified loss accepts.

    Parameters
    ----------
    n_members : int
        Number of members, at least 1. All households of a ledger have the same number; some places may be empty.
    n_features : int
        Number of features of one person's record.
    shared : sequence of int, default=()
        Positions of the shared features, from 0.

    Attributes
    ----------
    n_record : int
        Number of features of the common record.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    The learning limit then holds for statements about the household, such as "a member smokes". Members without shared
    features still have one budget. Members who share all features count as one person who was asked several times.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Section 3.2.

    Examples
    --------
    Two people at one address share the rent but not the age:

    >>> from skldp.accounting import BayesianPrivacyFilter, RegressionQuery
    >>> from skldp.accounting._filters import Household
    >>> home = Household(2, 2, shared=[0])
    >>> rent = RegressionQuery("linear", coef=[1.0, 0.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.5)
    >>> together = BayesianPrivacyFilter(0.6, bounds=home.bounds((0, 1)))
    >>> together.record(home.query(0, rent), 1)
    >>> together.admits(home.query(1, rent))
    False
    """

    n_members: int
    n_features: int
    shared: Sequence[int] = ()

    def __post_init__(self) -> None:
        check_integer("n_members", self.n_members, least=1)
        check_integer("n_features", self.n_features, least=1)
        places = list(self.shared)
        wrong = [place for place in places if not is_integer(place) or not 0 <= place < self.n_features]
        if wrong or len(set(places)) != len(places):
            raise ValueError(
                f"shared must be different positions from 0 to {self.n_features - 1}; got {self.shared!r}."
            )
        object.__setattr__(self, "shared", tuple(sorted(int(place) for place in places)))

    @property
    def n_record(self) -> int:
        """Number of features of the common record."""
        return len(self.shared) + self.n_members * len(self._own)

    @property
    def _own(self) -> list[int]:
        return [place for place in range(self.n_features) if place not in self.shared]

    def _places(self, member: int) -> Positions:
        """Return the position of each feature of a member in the common record."""
        n_own = len(self._own)
        places = np.empty(self.n_features, dtype=np.intp)
        places[list(self.shared)] = np.arange(len(self.shared))
        places[self._own] = len(self.shared) + member * n_own + np.arange(n_own)
        return places

    def query(self, member: int, query: RegressionQuery) -> RegressionQuery:
        """Convert a query about one member to a query about the common record.

        Parameters
        ----------
        member : int
            Position of the member, from 0.
        query : RegressionQuery
            Query about one person's record.

        Returns
        -------
        RegressionQuery
            Query about the common record, with the same law.

        Raises
        ------
        ValueError
            If `member` is out of range, or the query's number of features differs from `n_features`.
        """
        check_integer("member", member, least=0, most=self.n_members - 1)
        if not isinstance(query, RegressionQuery) or query.n_features != self.n_features:
            raise ValueError(f"query must be a RegressionQuery of {self.n_features} features; got {query!r}.")
        coef = np.zeros(self.n_record)
        coef[self._places(member)] = query.coef
        return replace(query, coef=coef)

    def bounds(self, bounds: Bounds) -> tuple[Floats, Floats]:
        """Return the bounds of the common record, given those of one person's record.

        Parameters
        ----------
        bounds : tuple (low, high)
            Bounds of one person's record, each a number or one number per feature.

        Returns
        -------
        low, high : ndarray of shape (n_record,)
        """
        box = checked_box(bounds, n_features=self.n_features)
        low, high = (np.concatenate([side[list(self.shared)], *[side[self._own]] * self.n_members]) for side in box)
        return low, high

    def records(self, X: Any) -> Floats:
        """Return the common record of each household.

        Parameters
        ----------
        X : array-like of shape (n_households, n_members, n_features)
            Records of the members. Shared features are taken from the first member.

        Returns
        -------
        ndarray of float64, shape (n_households, n_record)

        Raises
        ------
        ValueError
            If X has the wrong shape. The message contains no value of X.
        """
        rows = np.asarray(X)
        if rows.ndim != 3 or rows.shape[1:] != (self.n_members, self.n_features) or rows.dtype.kind not in "iufb":
            raise ValueError(
                f"X must be numbers of shape (n_households, {self.n_members}, {self.n_features}); got {kind_of(rows)}."
            )
        common = np.empty((len(rows), self.n_record))
        for member in reversed(range(self.n_members)):
            common[:, self._places(member)] = rows[:, member]
        return common
