"""Choice of an epsilon: a scorer and a refit rule for searches, and the budget of a series of queries."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from skldp._arrays import as_numbers
from skldp._checks import check_choice, check_fraction, check_integer, check_positive, is_number
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.estimators._composition import privacy_guarantee
from skldp.exceptions import SeededNoiseWarning
from skldp.laws._odds import split_epsilon
from skldp.mechanisms._noise import noise_from
from skldp.study._curve import check_scorer

_EXACT = "exact_epsilon"
# Score of a fit without a finite epsilon: means and standard deviations of such scores are still finite.
_WITHOUT_BOUND = 1e150


def with_exact_epsilon(scoring: str | Callable[..., float] | None = None) -> Callable[..., dict[str, float]]:
    """Make the `scoring` of a search or a cross-validation that returns the exact epsilon of each candidate as well.

    Parameters
    ----------
    scoring : str or callable, default=None
        A scorer of scikit-learn; None is the estimator's own `score`.

    Returns
    -------
    scorer : callable
        For `scoring` of :class:`sklearn.model_selection.GridSearchCV` and the like. The columns are ``score``, and
        ``exact_epsilon`` of :func:`~skldp.privacy_guarantee` over the declared domain; 1e150 if nothing bounds it.
        It can be pickled.

    Raises
    ------
    ValueError
        If there is no scorer of that name, or `scoring` is several.

    See Also
    --------
    smallest_epsilon : The rule that chooses by it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study import with_exact_epsilon
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(NumericPrivatizer(epsilon=2.0, bounds=(0, 8)), GaussianNB())
    >>> found = cross_validate(model, X, y, cv=3, scoring=with_exact_epsilon("accuracy"))
    >>> found["test_exact_epsilon"].round(6).tolist()
    [2.0, 2.0, 2.0]
    """
    if isinstance(scoring, str):
        check_scorer(scoring)
    elif scoring is not None and not callable(scoring):
        raise ValueError(f"scoring must be None, the name of one scorer, or a callable; got {scoring!r}.")
    return partial(_score_and_epsilon, scoring)


def _score_and_epsilon(scoring: Any, estimator: Any, X: Any, y: Any = None) -> dict[str, float]:
    exact = privacy_guarantee(estimator).plain_epsilon
    score = check_scoring(estimator, scoring=scoring)(estimator, X, y)
    return {"score": score, _EXACT: exact if np.isfinite(exact) else _WITHOUT_BOUND}


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

    - With ``scoring=with_exact_epsilon(...)`` it compares the exact epsilons of the folds' fits, the largest of each
      candidate.
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
    >>> from skldp import BitRandTransformer
    >>> from skldp.study import smallest_epsilon
    >>> from skldp.study import with_exact_epsilon
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(BitRandTransformer(bounds=(0, 8), calibration="exact"), GaussianNB())
    >>> grid = {"bitrandtransformer__epsilon": [20, 40]}
    >>> search = GridSearchCV(model, grid, refit=smallest_epsilon(1.0)).fit(X, y)
    >>> search.best_params_
    {'bitrandtransformer__epsilon': 20}

    More than the epsilon is searched:

    >>> grid["bitrandtransformer__n_bits"] = [4, 8]
    >>> scoring = with_exact_epsilon("accuracy")
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
    folds = [cv_results[name] for name in cv_results if name.startswith("split") and name.endswith(f"_test_{_EXACT}")]
    if folds:
        worst = np.max(np.asarray(folds, dtype=np.float64), axis=0)
        # A failed fit is NaN.
        return np.where(worst < _WITHOUT_BOUND, worst, np.inf)
    candidates = cv_results["params"]
    searched = sorted({name for candidate in candidates for name in candidate})
    names = [name for name in searched if name.split("__")[-1] == "epsilon"]
    if len(names) != 1:
        raise ValueError(
            "smallest_epsilon needs exactly one searched parameter that is called epsilon or ends with __epsilon, "
            f"or scoring=with_exact_epsilon(...); got {searched}."
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
    for _ in range(n_steps):
        middle = float(np.sqrt(low * high))
        found = answering(middle)
        if found >= share:
            low, share_at_low = middle, found
        else:
            high = middle
    return QuestionPlan(low, split_epsilon(total_epsilon, len(queries)), share_at_low)
