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
        """Bounds on what the recorded answers have cost, as the filter counts it, within `tol` where it can be."""
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
            If it is no query, or not about the same features or points as the filter.
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
            Its index: 0 or 1 for a regression.

        Raises
        ------
        ValueError
            If the query has no such output.
        """
        self._outputs.append(output_index(output, checked_query(query).n_outputs))
        self._queries.append(query)
        # Only the loss of the new history can be needed again.
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
    """Basic composition: accept while the epsilons add up to at most the budget."""

    _rule_name = "basic"


class SimplifiedBayesianPrivacyFilter(PrivacyFilter):
    """Algorithm 3: accept while the realized loss and the next epsilon add up to at most the budget.

    Parameters
    ----------
    epsilon : float
        Budget of the person, in nats.
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

    _rule_name = "simplified"


class BayesianPrivacyFilter(PrivacyFilter):
    """Algorithm 2: accept if every output of the next query keeps the realized loss within the budget.

    Parameters
    ----------
    epsilon : float
        Budget of the person, in nats.
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

    _rule_name = "bayesian"


class ApproximateBayesianPrivacyFilter(PrivacyFilter):
    r"""Algorithm 4: an :math:`(\varepsilon, \delta)` filter that ignores outputs first, and looks at them afterwards.

    Parameters
    ----------
    epsilon, delta : float
        Budget of the person; delta above 0 and below 1/e.
    bounds, domain, tol, group_size
        As in :class:`BayesianPrivacyFilter`.

    Notes
    -----
    The filter that ignores outputs adds up zero-concentrated privacy (Whitehouse et al.).

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
    r"""Several people who have some features in common: one record of them all, which one budget protects.

    Each member's answer reveals shared features. With a budget per member, a statement about them could be learnt at
    the sum of the budgets. A household is therefore one person, whose record holds the shared features once and then
    the own features of each member. A query about a member becomes a query about that record, which any filter, ledger
    or certified loss accepts.

    Parameters
    ----------
    n_members : int
        How many people, at least 1. The same for all households of a ledger; places may be left empty.
    n_features : int
        Of one person's record.
    shared : sequence of int, default=()
        The positions of the features that all members have in common, from 0.

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
    The learning limit then holds for statements about the household: "a member smokes". Members who share
    nothing still have one budget. Members whose records are the same in all features are one person who was asked
    several times.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Section 3.2.

    Examples
    --------
    Two people of one address, whose rent is shared, and whose age is their own:

    >>> from skldp.accounting import BayesianPrivacyFilter, Household, RegressionQuery
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
                f"shared must be different positions from 0 to {self.n_features - 1}. Got {self.shared!r} instead."
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
            From 0.
        query : RegressionQuery
            About one person's record.

        Returns
        -------
        RegressionQuery
            With the same answers, of the same law.

        Raises
        ------
        ValueError
            If there is no such member, or the query has another number of features.
        """
        check_integer("member", member, least=0, most=self.n_members - 1)
        if not isinstance(query, RegressionQuery) or query.n_features != self.n_features:
            raise ValueError(f"query must be a RegressionQuery of {self.n_features} features. Got {query!r} instead.")
        coef = np.zeros(self.n_record)
        coef[self._places(member)] = query.coef
        return replace(query, coef=coef)

    def bounds(self, bounds: Bounds) -> tuple[Floats, Floats]:
        """Return the domain of the common record, given that of a person's record.

        Parameters
        ----------
        bounds : tuple (low, high)
            Each a number, or one number per feature of a person.

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
            Row of each member. Shared features are taken from the first member.

        Returns
        -------
        ndarray of float64, shape (n_households, n_record)

        Raises
        ------
        ValueError
            If X has another shape. The message contains no value of X.
        """
        rows = np.asarray(X)
        if rows.ndim != 3 or rows.shape[1:] != (self.n_members, self.n_features) or rows.dtype.kind not in "iufb":
            raise ValueError(
                f"X must be numbers of shape (n_households, {self.n_members}, {self.n_features}). "
                f"Got {kind_of(rows)} instead."
            )
        common = np.empty((len(rows), self.n_record))
        for member in reversed(range(self.n_members)):
            common[:, self._places(member)] = rows[:, member]
        return common
