r"""Beliefs about a person after their answers (Pan 2025, Sections 2 and 3).

An adversary's :class:`Belief` is a distribution :math:`Q(x)` on the values x that the person may have. Bayes' rule
updates it to :math:`Q(x \mid y)` after answers y. The confidence in a statement f about the person is
:math:`Q(f) = \sum_x P(f(x)) Q(x)`. The realized loss bounds its change, for any belief and any statement (Lemma 3.1):

.. math:: e^{-L(y)} \le \frac{Q(f \mid y)}{Q(f)} \le e^{L(y)}

Some belief and statement come arbitrarily close to these bounds (Lemma 3.2).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp.accounting._query import Query, ReleaseQuery, checked_query
from skldp.accounting.losses._realized_loss import LossBounds, realized_loss
from skldp.accounting.losses._region import Bounds
from skldp.mechanisms._finite_query import FiniteQuery, output_index, read_only

#: Pairs of a query and its output, as filters keep them, or the result of a ledger's ``history``.
History = Sequence[tuple[Query, int]] | Sequence[Mapping[str, Any]]


def pairs_of(history: History) -> list[tuple[Query, int]]:
    """Return the checked queries and outputs of a history."""
    pairs = [(one["query"], one["output"]) if isinstance(one, Mapping) else one for one in history]
    return [(checked_query(query), output_index(output, query.n_outputs)) for query, output in pairs]


def loss_of(history: History, bounds: Bounds | None, domain: npt.ArrayLike | None, tol: float) -> LossBounds:
    """Bound the loss of a history."""
    pairs = pairs_of(history)
    queries, outputs = [query for query, _ in pairs], [output for _, output in pairs]
    return realized_loss(queries, outputs, bounds=bounds, domain=domain, tol=tol)


@dataclass(frozen=True)
class LossHistory:
    """Privacy loss of a person after each of their answers, in nats.

    Attributes
    ----------
    realized : ndarray of shape (n_answers + 1,)
        Certified upper bound on the realized loss after 0, 1, ... answers.
    added_up : ndarray of shape (n_answers + 1,)
        Sum of the queries' epsilons, rounded up: the loss under basic composition.
    """

    realized: Floats
    added_up: Floats


def loss_history(
    history: History, *, bounds: Bounds | None = None, domain: npt.ArrayLike | None = None, tol: float = 1e-3
) -> LossHistory:
    """Return a person's privacy loss after each answer: the odometer of Section 4.2.

    Parameters
    ----------
    history : sequence of (query, output), or result of a ledger's ``history``
        Answers in chronological order.
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
    >>> from skldp.accounting import RegressionQuery
    >>> from skldp.accounting._learned import loss_history
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


#: Probability of a statement at each value, as an array or as a function of the values.
Statement = npt.ArrayLike | Callable[[Any], npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Belief:
    r"""Belief about a person's values, as a distribution on points.

    Parameters
    ----------
    probabilities : array-like of shape (n_points,)
        :math:`Q(x)` of each point: at least 0, adding up to 1 within 1e-9.
    points : array-like of shape (n_points, n_features), default=None
        Values that the person may have, within the domain. None means the points of finite queries, by index.

    Raises
    ------
    ValueError
        If the probabilities are invalid or their number differs from that of the points.

    Notes
    -----
    The methods implement Eq. 2, Eq. 3 and the definitions of Section 2.3, with V for :meth:`vulnerability` and g for
    its gains. They use floating-point arithmetic, with relative errors of about 1e-12. Only :func:`learning_limit` is
    certified.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Sections 2.1 to 3.4.

    Examples
    --------
    Three questions about a number from 0 to 10 (Example 2 of the paper), answered 1, 0 and 1:

    >>> import numpy as np
    >>> from skldp.accounting import FiniteQuery
    >>> from skldp.accounting._learned import Belief
    >>> values = np.arange(11)
    >>> high = [0.4 + 0.2 * (values / 10) ** power for power in (1, 2, 3)]
    >>> queries = [FiniteQuery.from_probabilities(np.column_stack([1 - p, p])) for p in high]
    >>> before = Belief(np.full(11, 1 / 11))
    >>> after = before.after(list(zip(queries, [1, 0, 1])))
    >>> round(before.confidence(values > 8), 4), round(after.confidence(values > 8), 4)
    (0.1818, 0.2169)
    >>> round(after.odds(values > 8) / before.odds(values > 8), 4)
    1.2463
    """

    probabilities: Floats
    points: Floats | None = None

    def __post_init__(self) -> None:
        chances = np.array(self.probabilities, dtype=np.float64)
        if chances.ndim != 1 or not chances.size or not np.isfinite(chances).all() or (chances < 0).any():
            raise ValueError(
                f"probabilities must be a vector of finite numbers >= 0; got an array of shape {chances.shape}."
            )
        if abs(math.fsum(chances) - 1) > 1e-9:
            raise ValueError(f"probabilities must add up to 1; got {math.fsum(chances)!r}.")
        object.__setattr__(self, "probabilities", read_only(chances / math.fsum(chances)))
        if self.points is None:
            return
        points = np.array(self.points, dtype=np.float64)
        if points.ndim != 2 or len(points) != len(chances) or not np.isfinite(points).all():
            raise ValueError(
                f"points must be finite numbers of shape ({len(chances)}, n_features), one row for each probability; "
                f"got an array of shape {points.shape}."
            )
        object.__setattr__(self, "points", read_only(points))

    def after(self, history: History) -> "Belief":
        """Return the posterior belief after some answers (Bayes' rule, Eq. 2 of the paper).

        Parameters
        ----------
        history : sequence of (query, output), or result of a ledger's ``history``
            Answers in any order.

        Returns
        -------
        Belief
            Posterior on the same points.
        """
        # Dividing by the largest value keeps long histories from underflowing.
        likelihood = self._log_likelihood(history)
        most = likelihood[self.probabilities > 0].max()
        weights = self.probabilities * np.exp(np.minimum(likelihood - most, 0.0))
        return replace(self, probabilities=weights / math.fsum(weights))

    def confidence(self, statement: Statement) -> float:
        """Return the confidence in a statement: Q(f).

        Parameters
        ----------
        statement : array-like of shape (n_points,), or callable
            Truth value or probability of the statement at each point, or a function that computes them from the
            points, shape (n_points, n_features).

        Returns
        -------
        float
            Probability from 0 to 1.
        """
        return min(1.0, math.fsum(self.probabilities * self._truth(statement)))

    def odds(self, statement: Statement) -> float:
        """Return the odds of a statement, as in :meth:`confidence`: Q(f) / (1 - Q(f)), or infinity if Q(f) is 1."""
        truth = self._truth(statement)
        against = math.fsum(self.probabilities * (1 - truth))
        return math.fsum(self.probabilities * truth) / against if against > 0 else math.inf

    def vulnerability(self, gain: npt.ArrayLike | None = None) -> float:
        r"""Return the expected gain of the best guess: :math:`V_g(Q) = \max_w \sum_x Q(x) g(w, x)`.

        Parameters
        ----------
        gain : array-like of shape (n_guesses, n_points), default=None
            Gain of each guess at each point, at least 0. None means the identity: a guess of the point gains 1 if
            right, else 0.

        Returns
        -------
        float
        """
        if gain is None:
            return float(self.probabilities.max())
        gains = np.asarray(gain, dtype=np.float64)
        if gains.ndim != 2 or not len(gains) or gains.shape[1] != len(self.probabilities):
            raise ValueError(f"gain must have shape (n_guesses, {len(self.probabilities)}); got shape {gains.shape}.")
        if not np.isfinite(gains).all() or (gains < 0).any():
            raise ValueError("gain must hold finite numbers >= 0; got a negative, infinite or missing value.")
        return float((gains @ self.probabilities).max())

    def knowledge_gain(self, history: History, statement: Statement) -> float:
        r"""Return the factor by which answers change the confidence in a statement: :math:`Q(f \mid y) / Q(f)`.

        Parameters
        ----------
        history : sequence of (query, output), or result of a ledger's ``history``
        statement : array-like of shape (n_points,), or callable
            As in :meth:`confidence`.

        Returns
        -------
        float
            Factor within :func:`learning_limit`, for every belief and statement (Lemma 3.1).

        Raises
        ------
        ValueError
            If the confidence in the statement is 0.

        Examples
        --------
        >>> from skldp.accounting import RegressionQuery
        >>> from skldp.accounting._learned import Belief
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
        >>> prior = Belief([0.25, 0.25, 0.25, 0.25], points=[[-1.0], [-0.5], [0.5], [1.0]])
        >>> is_positive = lambda points: points[:, 0] > 0
        >>> [round(prior.knowledge_gain([(query, 1)] * n, is_positive), 4) for n in (0, 1, 5)]
        [1.0, 1.1837, 1.7234]
        """
        before = self.confidence(statement)
        if before == 0:
            raise ValueError("The confidence in the statement must be above 0 before the answers; got 0.")
        return self.after(history).confidence(statement) / before

    def g_leakage(self, history: History, gain: npt.ArrayLike | None = None) -> float:
        r"""Return the factor by which answers change the gain of the best guess: :math:`V_g(Q \mid y) / V_g(Q)`.

        Parameters
        ----------
        history : sequence of (query, output), or result of a ledger's ``history``
        gain : array-like of shape (n_guesses, n_points), default=None
            As in :meth:`vulnerability`.

        Returns
        -------
        float
            Factor of at most :func:`g_leakage_bound` of the realized loss, for every gain and belief (Theorem 3.3).

        Raises
        ------
        ValueError
            If the expected gain of the best guess is 0 before the answers.

        Examples
        --------
        >>> from skldp.accounting import RegressionQuery
        >>> from skldp.accounting._learned import Belief
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
        >>> prior = Belief([0.25, 0.5, 0.25], points=[[-1.0], [0.0], [1.0]])
        >>> [round(prior.g_leakage([(query, output) for output in answers]), 4) for answers in ([1], [1] * 8)]
        [1.0, 1.4652]
        """
        before = self.vulnerability(gain)
        if before == 0:
            raise ValueError("The expected gain of the best guess must be above 0 before the answers; got 0.")
        return self.after(history).vulnerability(gain) / before

    def _log_likelihood(self, history: History) -> Floats:
        total = np.zeros(len(self.probabilities))
        for query, output in pairs_of(history):
            if isinstance(query, FiniteQuery):
                if query.n_points != len(total):
                    raise ValueError(
                        f"Finite queries must have the belief's number of points, {len(total)}; got a query of "
                        f"{query.n_points} points."
                    )
                total += query.log_likelihood(output, np.arange(len(total)))
            elif isinstance(query, ReleaseQuery):
                raise ValueError(
                    "history must not contain releases, since their outputs are not recorded; got a release. "
                    "learning_limit bounds its effect."
                )
            elif self.points is None:
                raise ValueError("A belief must have points to be updated by regression queries; got points=None.")
            else:
                total += query.log_likelihood(output, self.points)
        if np.isneginf(total[self.probabilities > 0]).all():
            raise ValueError(
                "The answers must be possible at a point of positive probability; got answers that are not."
            )
        return total

    def _truth(self, statement: Statement) -> Floats:
        known = np.arange(len(self.probabilities)) if self.points is None else self.points
        truth = np.asarray(statement(known) if callable(statement) else statement, dtype=np.float64)
        if truth.shape != self.probabilities.shape or not ((truth >= 0) & (truth <= 1)).all():
            raise ValueError(
                f"A statement must have a probability from 0 to 1 for each of the {len(self.probabilities)} points; "
                f"got an array of shape {truth.shape}."
            )
        return truth


def learning_limit(
    history: History, *, bounds: Bounds | None = None, domain: npt.ArrayLike | None = None, tol: float = 1e-3
) -> tuple[float, float]:
    r"""Bound the factor by which a person's answers change the confidence in any statement.

    Parameters
    ----------
    history : sequence of (query, output), or result of a ledger's ``history``
    bounds : tuple (low, high), default=None
        Bounds of the person's values, as in :func:`realized_loss`.
    domain : array-like of shape (n_points, n_features), default=None
        Finite domain, as an alternative to `bounds`.
    tol : float, default=1e-3
        Largest distance between the bounds on the loss, in nats.

    Returns
    -------
    low, high : float
        :math:`e^{-L}` and :math:`e^{L}` for the certified upper bound L on the realized loss, rounded outward.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Definition 3.1, Lemma 3.1 and
    Theorem 3.1.

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery
    >>> from skldp.accounting._learned import learning_limit
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> low, high = learning_limit([(query, 1), (query, 0), (query, 1)], bounds=(-1, 1))
    >>> round(low, 4), round(high, 4)
    (0.6065, 1.6487)
    """
    loss = loss_of(history, bounds, domain, tol).upper
    # The rounding error of exp is far smaller.
    return math.exp(-loss) * (1 - 2.0**-50), math.exp(loss) * (1 + 2.0**-50)
