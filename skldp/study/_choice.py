"""Choice of an epsilon: a refit rule for searches, and the budget of a series of queries."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skldp._arrays import as_numbers
from skldp._checks import check_choice, check_fraction, check_integer, check_positive, is_number
from skldp._progress import Progress
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.exceptions import SeededNoiseWarning
from skldp.laws._odds import split_epsilon
from skldp.mechanisms._noise import noise_from


def smallest_epsilon(tolerance: float = 0.0) -> Callable[[Mapping[str, Any]], int]:
    """Make a `refit` rule for GridSearchCV: the smallest epsilon whose mean score is close enough to the best.

    Parameters
    ----------
    tolerance : float, default=0.0
        Largest difference between the best mean score and the one of the chosen candidate, in units of the score.

    Returns
    -------
    callable
        Takes `cv_results_`, returns the index of the chosen candidate. It can be pickled.

    Raises
    ------
    ValueError
        If `tolerance` is not a number >= 0. The returned rule raises it if every fit failed, or if no epsilon or
        several are among the searched parameters while exact epsilons were not scored.

    Notes
    -----
    The rule reads `cv_results_` and nothing else; it fits no model.

    - If `scoring` is a dict with a ``score`` and an ``exact_epsilon``, it compares the exact epsilons of the folds'
      fits, the largest of each candidate.
    - Otherwise it compares the searched parameter that is called ``epsilon`` or ends with ``__epsilon``. That is the
      order of the exact epsilons if candidates differ in nothing else that a private step depends on. Score exact
      epsilons if they do, for example if `calibration` or `n_bits` is searched as well.

    A candidate without a finite epsilon sets the best score like any other, but is chosen only if no other one is
    within the tolerance. Searches by successive halving never call a `refit` rule; call it with their `cv_results_`.

    ``privacy_guarantee(search.best_estimator_)`` is the guarantee of the last fit, not of the search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BitRandTransformer, privacy_guarantee
    >>> from skldp.study import smallest_epsilon
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(BitRandTransformer(bounds=(0, 8), calibration="exact"), GaussianNB())
    >>> grid = {"bitrandtransformer__epsilon": [20, 40]}
    >>> search = GridSearchCV(model, grid, refit=smallest_epsilon(1.0)).fit(X, y)
    >>> search.best_params_
    {'bitrandtransformer__epsilon': 20}

    More than the epsilon is searched:

    >>> grid["bitrandtransformer__n_bits"] = [4, 8]
    >>> exact = lambda model, X, y: privacy_guarantee(model).plain_epsilon
    >>> scoring = {"score": "accuracy", "exact_epsilon": exact}
    >>> search = GridSearchCV(model, grid, scoring=scoring, refit=smallest_epsilon(1.0)).fit(X, y)
    >>> search.best_params_["bitrandtransformer__epsilon"]
    20
    """
    if not is_number(tolerance) or tolerance < 0:
        raise ValueError(f"tolerance must be a finite number >= 0; got {tolerance!r}.")
    return partial(_smallest, tolerance=float(tolerance))


def _smallest(cv_results: Mapping[str, Any], *, tolerance: float) -> int:
    """Return the index of the candidate with the smallest epsilon within the tolerance of the best score."""
    known = [name.removeprefix("mean_test_") for name in cv_results if name.startswith("mean_test_")]
    check_choice("metric", "score", known)
    scores = np.asarray(cv_results["mean_test_score"], dtype=np.float64)
    if np.isnan(scores).all():
        raise ValueError("smallest_epsilon needs a score; got only NaN, since every fit or every score failed.")
    # Equal means may differ by the rounding of their sums.
    enough = np.nanmax(scores) - tolerance
    eligible = np.flatnonzero(scores >= enough - 1e-12 * max(1.0, abs(enough)))
    epsilons = _epsilons(cv_results)
    return int(min(eligible, key=lambda index: (epsilons[index], -scores[index])))


def _epsilons(cv_results: Mapping[str, Any]) -> np.ndarray:
    """Return the exact epsilon of each candidate if it was scored, else its epsilon parameter."""
    folds = [found for name, found in cv_results.items() if re.fullmatch("split[0-9]+_test_exact_epsilon", name)]
    if folds:
        worst = np.max(np.asarray(folds, dtype=np.float64), axis=0)
        # A failed fit is NaN.
        return np.where(np.isnan(worst), np.inf, worst)
    candidates = cv_results["params"]
    searched = sorted({name for candidate in candidates for name in candidate})
    names = [name for name in searched if name.split("__")[-1] == "epsilon"]
    if len(names) != 1:
        raise ValueError(
            "smallest_epsilon needs exactly one searched parameter that is called epsilon or ends with __epsilon, "
            f"or an exact_epsilon in scoring; got {searched}."
        )
    return np.array([float(candidate.get(names[0], np.inf)) for candidate in candidates])


@dataclass(frozen=True)
class QuestionPlan:
    """Epsilon of a series of questions; :func:`plan_questions` describes it."""

    epsilon: float
    added_up: float
    share: float


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
    verbose: bool = False,
) -> QuestionPlan:
    """Find the largest epsilon of a question at which people answer a series of them.

    Parameters
    ----------
    queries : sequence of RegressionQuery
        Queries in order; a repeated query is answered again. Their own epsilons are ignored. The `query_` of a
        :class:`~skldp.BayesianFilter` is one.
    X : array-like of shape (n_people, n_features)
        PUBLIC rows with a distribution like that of the people: the result depends on them.
    total_epsilon : float
        Budget of each person.
    bounds : tuple (low, high)
        Domain of their values.
    rule : {"basic", "simplified", "bayesian"}, default="bayesian"
        Rule of the ledger that will be used.
    share : float, default=0.9
        Required share of people who answer all queries, in (0, 1).
    tol : float, default=1e-2
        Tolerance of the ledger.
    n_steps : int, default=6
        Number of halvings of the range of epsilons, on a log scale. The range begins as a factor of the number of
        queries.
    seed : int, default=0
        Seeds the simulated answers, the same at each epsilon.
    verbose : bool, default=False
        Show progress on standard error, from two seconds on.

    Returns
    -------
    plan : QuestionPlan
        With `epsilon` (the largest one tried at which enough of the simulated people answered all questions),
        `added_up` (the epsilon at which the sum of epsilons is the budget, which holds whatever is answered) and
        `share` (of the people who answered all questions at `epsilon`).

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
    check_integer("n_steps", n_steps, least=1)
    check_integer("seed", seed, least=0)
    wrong = [query for query in queries if not isinstance(query, RegressionQuery)]
    if not queries or wrong:
        raise ValueError(f"queries must be a sequence of RegressionQuery; got {queries!r}.")
    if rows.ndim != 2 or not len(rows) or not np.isfinite(rows).all():
        raise ValueError(f"X must be finite numbers of shape (n_people, n_features); got shape {rows.shape}.")

    def answering(epsilon: float) -> float:
        """Return the share of the people who answer all questions."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeededNoiseWarning)
            noise = noise_from(seed)
        low, high = bounds
        people, left = np.clip(rows, low, high), np.arange(len(rows))
        with PrivacyLedger(total_epsilon, bounds=bounds, rule=rule, tol=tol) as ledger:
            for query in queries:
                asked = replace(query, epsilon=epsilon)
                # Draw for everyone: a person's noise must not depend on who is left.
                outputs = asked.sample(people, noise)[left]
                answers = ledger.answer(asked, left.tolist(), outputs.__getitem__, repeat=True)
                left = left[answers.accepted]
        return len(left) / len(rows)

    # Slightly below the equal share: sums of epsilons are rounded up.
    low, high = total_epsilon / len(queries) * (1 - 1e-9), float(total_epsilon)
    share_at_low = answering(low)
    for _ in Progress("epsilons", n_steps, show=verbose).track(range(n_steps)):
        middle = float(np.sqrt(low * high))
        found = answering(middle)
        if found >= share:
            low, share_at_low = middle, found
        else:
            high = middle
    return QuestionPlan(low, split_epsilon(total_epsilon, len(queries)), share_at_low)
