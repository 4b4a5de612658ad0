r"""Beliefs about a person after their answers (Pan 2025, Sections 2 and 3).

An adversary's :class:`Belief` is a probability :math:`Q(x)` for each of some values x that the person may have.
Answers y turn it into :math:`Q(x \mid y)`, by Bayes' rule; a statement f about the person is believed with
:math:`Q(f) = \sum_x P(f(x)) Q(x)`; and the realized loss
bounds what any belief can have learnt about any statement:

.. math:: e^{-L(y)} \le \frac{Q(f \mid y)}{Q(f)} \le e^{L(y)}

(Lemma 3.1), which some belief and statement come as near as one likes (Lemma 3.2).
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

#: Pairs of a query and its output, as filters keep them, or what a ledger's ``history`` returns.
History = Sequence[tuple[Query, int]] | Sequence[Mapping[str, Any]]


def pairs_of(history: History) -> list[tuple[Query, int]]:
    """Return the checked queries and outputs of a history."""
    pairs = [(one["query"], one["output"]) if isinstance(one, Mapping) else one for one in history]
    return [(checked_query(query), output_index(output, query.n_outputs)) for query, output in pairs]


def loss_of(history: History, bounds: Bounds | None, domain: npt.ArrayLike | None, tol: float) -> LossBounds:
    """Bound what the answers of a history have cost together."""
    pairs = pairs_of(history)
    queries, outputs = [query for query, _ in pairs], [output for _, output in pairs]
    return realized_loss(queries, outputs, bounds=bounds, domain=domain, tol=tol)


@dataclass(frozen=True)
class LossHistory:
    """Privacy loss of a person after each of their answers, in nats.

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
    """Return a person's privacy loss after each answer: the odometer of Section 4.2.

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


#: How true a statement is at each value: probabilities, or a function that takes the values and returns them.
Statement = npt.ArrayLike | Callable[[Any], npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class Belief:
    r"""Belief about a person's values: a distribution on points.

    Parameters
    ----------
    probabilities : array-like of shape (n_points,)
        :math:`Q(x)` of each point: at least 0, adding up to 1 within 1e-9.
    points : array-like of shape (n_points, n_features), default=None
        The values that the person may have, within the domain. None takes the points of finite queries, by their index.

    Raises
    ------
    ValueError
        If the probabilities are none, or do not fit the points.

    Notes
    -----
    With V for :meth:`vulnerability` and g for its gains, the functions of this class are Eq. 2, Eq. 3 and the
    definitions of Section 2.3. They are computed in floating point from the law of the answers, within about 1e-12 of
    themselves; what is certified is :func:`learning_limit`.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Sections 2.1 to 2.3.

    Examples
    --------
    Three questions about a number from 0 to 10 (Example 2 of the paper), answered 1, 0 and 1:

    >>> import numpy as np
    >>> from skldp.accounting import Belief, FiniteQuery
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
                f"probabilities must be a vector of finite numbers >= 0. Got an array of shape {chances.shape}."
            )
        if abs(math.fsum(chances) - 1) > 1e-9:
            raise ValueError(f"probabilities must add up to 1. Got {math.fsum(chances)!r} instead.")
        object.__setattr__(self, "probabilities", read_only(chances / math.fsum(chances)))
        if self.points is None:
            return
        points = np.array(self.points, dtype=np.float64)
        if points.ndim != 2 or len(points) != len(chances) or not np.isfinite(points).all():
            raise ValueError(
                f"points must be finite numbers of shape ({len(chances)}, n_features), one row for each probability. "
                f"Got an array of shape {points.shape} instead."
            )
        object.__setattr__(self, "points", read_only(points))

    def after(self, history: History) -> "Belief":
        """Return the posterior after some answers: Bayes' rule, Eq. 2 of the paper.

        Parameters
        ----------
        history : sequence of (query, output), or what a ledger's ``history`` returns
            In any order.

        Returns
        -------
        Belief
            About the same points.
        """
        # Divide by the largest, so that a long history does not underflow.
        likelihood = self._log_likelihood(history)
        most = likelihood[self.probabilities > 0].max()
        weights = self.probabilities * np.exp(np.minimum(likelihood - most, 0.0))
        return replace(self, probabilities=weights / math.fsum(weights))

    def confidence(self, statement: Statement) -> float:
        """Return the confidence in a statement: Q(f).

        Parameters
        ----------
        statement : array-like of shape (n_points,), or callable
            For each point whether the statement is true of it, or with what probability; or a function that takes the
            points, of shape (n_points, n_features), and returns that.

        Returns
        -------
        float
            From 0 to 1.
        """
        return min(1.0, math.fsum(self.probabilities * self._truth(statement)))

    def odds(self, statement: Statement) -> float:
        """Return the odds of a statement: Q(f) / (1 - Q(f)); infinity if certain.

        Parameters
        ----------
        statement : array-like of shape (n_points,), or callable
            As in :meth:`confidence`.

        Returns
        -------
        float
        """
        truth = self._truth(statement)
        against = math.fsum(self.probabilities * (1 - truth))
        return math.fsum(self.probabilities * truth) / against if against > 0 else math.inf

    def vulnerability(self, gain: npt.ArrayLike | None = None) -> float:
        r"""Return the expected gain of the best guess: :math:`V_g(Q) = \max_w \sum_x Q(x) g(w, x)`.

        Parameters
        ----------
        gain : array-like of shape (n_guesses, n_points), default=None
            What each guess gains at each point, at least 0. None is for guessing the point itself: 1 where right, else
            0.

        Returns
        -------
        float
        """
        if gain is None:
            return float(self.probabilities.max())
        gains = np.asarray(gain, dtype=np.float64)
        if gains.ndim != 2 or not len(gains) or gains.shape[1] != len(self.probabilities):
            raise ValueError(
                f"gain must have shape (n_guesses, {len(self.probabilities)}). Got shape {gains.shape} instead."
            )
        if not np.isfinite(gains).all() or (gains < 0).any():
            raise ValueError("gain must be finite numbers >= 0, since a leakage is a ratio. Got some that are not.")
        return float((gains @ self.probabilities).max())

    def knowledge_gain(self, history: History, statement: Statement) -> float:
        r"""Return the factor by which answers change the confidence in a statement: :math:`Q(f \mid y) / Q(f)`.

        Parameters
        ----------
        history : sequence of (query, output), or what a ledger's ``history`` returns
        statement : array-like of shape (n_points,), or callable
            As in :meth:`confidence`.

        Returns
        -------
        float
            Within :func:`learning_limit`, for every belief and statement (Lemma 3.1).

        Raises
        ------
        ValueError
            If the confidence in the statement is 0.

        References
        ----------
        M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Section 2.2 and Lemma 3.1.

        Examples
        --------
        >>> from skldp.accounting import Belief, RegressionQuery
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
        >>> prior = Belief([0.25, 0.25, 0.25, 0.25], points=[[-1.0], [-0.5], [0.5], [1.0]])
        >>> is_positive = lambda points: points[:, 0] > 0
        >>> [round(prior.knowledge_gain([(query, 1)] * n, is_positive), 4) for n in (0, 1, 5)]
        [1.0, 1.1837, 1.7234]
        """
        before = self.confidence(statement)
        if before == 0:
            raise ValueError("The statement must have a confidence above 0 before the answers. Got 0.")
        return self.after(history).confidence(statement) / before

    def g_leakage(self, history: History, gain: npt.ArrayLike | None = None) -> float:
        r"""Return the factor by which answers change the gain of the best guess: :math:`V_g(Q \mid y) / V_g(Q)`.

        Parameters
        ----------
        history : sequence of (query, output), or what a ledger's ``history`` returns
        gain : array-like of shape (n_guesses, n_points), default=None
            As in :meth:`vulnerability`.

        Returns
        -------
        float
            At most :func:`g_leakage_bound` of the realized loss, for every gain and belief (Theorem 3.3).

        Raises
        ------
        ValueError
            If the best guess gains 0 before the answers.

        References
        ----------
        M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Section 2.3 and Theorem 3.3.

        Examples
        --------
        >>> from skldp.accounting import Belief, RegressionQuery
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
        >>> prior = Belief([0.25, 0.5, 0.25], points=[[-1.0], [0.0], [1.0]])
        >>> [round(prior.g_leakage([(query, output) for output in answers]), 4) for answers in ([1], [1] * 8)]
        [1.0, 1.4652]
        """
        before = self.vulnerability(gain)
        if before == 0:
            raise ValueError("The gain must be above 0 for a guess and a possible point. Got none.")
        return self.after(history).vulnerability(gain) / before

    def _log_likelihood(self, history: History) -> Floats:
        total = np.zeros(len(self.probabilities))
        for query, output in pairs_of(history):
            if isinstance(query, FiniteQuery):
                if query.n_points != len(total):
                    raise ValueError(
                        f"A belief about {len(total)} points needs queries about as many. Got one about "
                        f"{query.n_points}."
                    )
                total += query.log_likelihood(output, np.arange(len(total)))
            elif isinstance(query, ReleaseQuery):
                raise ValueError(
                    "The outputs of releases are not recorded, so their effect on a belief is unknown. Got a history "
                    "with one: its learning_limit counts it in full."
                )
            elif self.points is None:
                raise ValueError("A belief that regressions are to change needs its points. Got points=None.")
            else:
                total += query.log_likelihood(output, self.points)
        if np.isneginf(total[self.probabilities > 0]).all():
            raise ValueError("Answers must be possible for a point that is believed in. Got some that are not.")
        return total

    def _truth(self, statement: Statement) -> Floats:
        known = np.arange(len(self.probabilities)) if self.points is None else self.points
        truth = np.asarray(statement(known) if callable(statement) else statement, dtype=np.float64)
        if truth.shape != self.probabilities.shape or not ((truth >= 0) & (truth <= 1)).all():
            raise ValueError(
                f"A statement must have a truth from 0 to 1 for each of the {len(self.probabilities)} points. "
                f"Got an array of shape {truth.shape}."
            )
        return truth


def learning_limit(
    history: History, *, bounds: Bounds | None = None, domain: npt.ArrayLike | None = None, tol: float = 1e-3
) -> tuple[float, float]:
    r"""Bound the change of any confidence in any statement by a person's answers.

    Parameters
    ----------
    history : sequence of (query, output), or what a ledger's ``history`` returns
    bounds : tuple (low, high), default=None
        The domain of the person's values, as in :func:`realized_loss`.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead.
    tol : float, default=1e-3
        Within which the loss is bounded, in nats.

    Returns
    -------
    low, high : float
        :math:`e^{-L}` and :math:`e^{L}` with the certified upper bound of the realized loss, rounded outward.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Definition 3.1, Lemma 3.1 and
    Theorem 3.1.

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery, learning_limit
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> low, high = learning_limit([(query, 1), (query, 0), (query, 1)], bounds=(-1, 1))
    >>> round(low, 4), round(high, 4)
    (0.6065, 1.6487)
    """
    loss = loss_of(history, bounds, domain, tol).upper
    # The rounding error of exp is far smaller.
    return math.exp(-loss) * (1 - 2.0**-50), math.exp(loss) * (1 + 2.0**-50)
