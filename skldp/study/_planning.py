"""How large each question's epsilon can be, if people are to answer all of them: a simulation on public data."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skldp._arrays import as_numbers
from skldp._checks import check_fraction, check_positive, check_whole
from skldp.accounting import PrivacyLedger, RegressionQuery
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms._odds import split_epsilon

__all__ = ["QuestionPlan", "plan_questions"]


@dataclass(frozen=True)
class QuestionPlan:
    """What each question may cost if people are to answer all of them.

    Attributes
    ----------
    epsilon : float
        The largest epsilon of a question that was tried, at which enough of the simulated people answered all.
    added_up : float
        That at which the epsilons add up to the budget: what holds for everybody, whatever is answered.
    share : float
        How many of the simulated people answered all at `epsilon`.
    tried : tuple of (float, float)
        Every epsilon that was tried, in increasing order, with the share of the people who answered all.
    """

    epsilon: float
    added_up: float
    share: float
    tried: tuple[tuple[float, float], ...]


def plan_questions(
    queries: Sequence[RegressionQuery],
    X: Any,
    *,
    total_epsilon: float,
    bounds: Any,
    rule: str = "bayesian",
    share: float = 0.9,
    tol: float = 1e-2,
    n_steps: int = 6,
    seed: int = 0,
) -> QuestionPlan:
    """Find the largest epsilon of a question at which people answer a whole series of them.

    Parameters
    ----------
    queries : sequence of RegressionQuery
        What is to be asked, in this order; a question that comes twice is asked afresh. Their own epsilons do not
        matter. Those of a :class:`~skldp.BayesianFilter` are in its ``query_``; of a fitted model,
        :func:`~skldp.query_from_estimator` makes one.
    X : array-like of shape (n_people, n_features)
        PUBLIC rows, like those of the people who will be asked: what is found here depends on them.
    total_epsilon : float
        Each person's budget.
    bounds : tuple (low, high)
        The domain of their values.
    rule : {"basic", "simplified", "bayesian"}, default="bayesian"
        As of the ledger that will be used.
    share : float, default=0.9
        How many of the people are to answer all questions, in (0, 1).
    tol : float, default=1e-2
        As of the ledger.
    n_steps : int, default=6
        How often the range of epsilons is halved, on a log scale. It begins as the factor `n_queries` wide.
    seed : int, default=0
        For the simulated answers, the same at each epsilon.

    Returns
    -------
    QuestionPlan

    Raises
    ------
    ValueError
        If a parameter is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting import RegressionQuery
    >>> from skldp.study import plan_questions
    >>> rng = np.random.default_rng(0)
    >>> directions = rng.normal(size=(6, 3))
    >>> queries = [
    ...     RegressionQuery("linear", d, 0.0, (-np.abs(d).sum(), np.abs(d).sum()), epsilon=1.0) for d in directions
    ... ]
    >>> plan = plan_questions(queries, rng.uniform(-1, 1, (50, 3)), total_epsilon=1.0, bounds=(-1, 1))
    >>> round(plan.added_up, 3), round(plan.epsilon, 3), plan.share
    (0.167, 0.233, 0.96)
    """
    rows = as_numbers(X, "X")
    check_positive("total_epsilon", total_epsilon)
    check_fraction("share", share)
    check_whole("n_steps", n_steps, least=1)
    check_whole("seed", seed, least=0)
    wrong = [query for query in queries if not isinstance(query, RegressionQuery)]
    if not queries or wrong:
        raise ValueError(f"queries must be a sequence of RegressionQuery. Got {queries!r} instead.")
    if rows.ndim != 2 or not len(rows) or not np.isfinite(rows).all():
        raise ValueError(f"X must be finite numbers of shape (n_people, n_features). Got shape {rows.shape} instead.")

    def answering(epsilon: float) -> float:
        """The share of the people who answer all questions."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            noise = noise_from(seed)
        low, high = bounds
        people, left = np.clip(rows, low, high), np.arange(len(rows))
        with PrivacyLedger(total_epsilon, bounds=bounds, rule=rule, tol=tol) as ledger:
            for query in queries:
                asked = replace(query, epsilon=epsilon)
                # Everybody draws, so that one person's noise does not depend on who else is left.
                outputs = asked.sample(people, noise)[left]
                answers = ledger.answer(asked, left.tolist(), outputs.__getitem__, repeat=True)
                left = left[answers.accepted]
        return len(left) / len(rows)

    # A hair below the budget's share, since sums of epsilons are rounded up.
    low, high = total_epsilon / len(queries) * (1 - 1e-9), float(total_epsilon)
    tried = {low: answering(low)}
    best = low
    for _ in range(n_steps):
        middle = float(np.sqrt(low * high))
        tried[middle] = answering(middle)
        if tried[middle] >= share:
            best = low = middle
        else:
            high = middle
    return QuestionPlan(best, split_epsilon(total_epsilon, len(queries)), tried[best], tuple(sorted(tried.items())))
