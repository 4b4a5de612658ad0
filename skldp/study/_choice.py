"""A `refit` rule for scikit-learn's searches, and a scorer that adds the exact epsilon to their results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring

from skldp._checks import is_number
from skldp.estimators._composition import privacy_guarantee
from skldp.study._curve import check_scorer

__all__ = ["smallest_epsilon", "with_exact_epsilon"]

_EXACT = "exact_epsilon"
# Score of a fit without a finite epsilon: means and standard deviations of such scores are still finite.
_WITHOUT_BOUND = 1e150


def with_exact_epsilon(scoring: str | Callable[..., float] | None = None) -> Callable[..., dict[str, float]]:
    """Make the `scoring` of a search, or of a cross-validation, which gives each candidate's exact epsilon as well.

    Parameters
    ----------
    scoring : str or callable, default=None
        A scorer, as scikit-learn takes one; None is the estimator's own `score`.

    Returns
    -------
    callable
        For `scoring` of :class:`sklearn.model_selection.GridSearchCV` and its like: the columns are ``score``, and
        ``exact_epsilon`` of :func:`~skldp.privacy_guarantee`, plain over the declared domain; 1e150 where nothing
        bounds it, or the estimator promises nothing. It can be pickled.

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
    >>> from skldp import NumericPrivatizer, with_exact_epsilon
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(NumericPrivatizer(epsilon=2.0, bounds=(0, 8)), GaussianNB())
    >>> found = cross_validate(model, X, y, cv=3, scoring=with_exact_epsilon("accuracy"))
    >>> found["test_exact_epsilon"].round(6).tolist()
    [2.0, 2.0, 2.0]
    """
    if isinstance(scoring, str):
        check_scorer(scoring)
    elif scoring is not None and not callable(scoring):
        raise ValueError(f"scoring must be None, the name of one scorer, or a callable. Got {scoring!r} instead.")
    return _WithExactEpsilon(scoring)


@dataclass(frozen=True)
class _WithExactEpsilon:
    scoring: Any

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> dict[str, float]:
        exact = _exact_epsilon(estimator)
        score = check_scoring(estimator, scoring=self.scoring)(estimator, X, y)
        return {"score": score, _EXACT: exact if np.isfinite(exact) else _WITHOUT_BOUND}


def smallest_epsilon(
    tolerance: float = 0.0, *, param_name: str | None = None, metric: str = "score"
) -> Callable[[Mapping[str, Any]], int]:
    """Make a `refit` rule for GridSearchCV: the smallest epsilon whose mean score is close enough to the best.

    Parameters
    ----------
    tolerance : float, default=0.0
        Largest difference between the best mean score and the one of the chosen candidate, in units of the score.
    param_name : str, default=None
        The searched parameter to compare. None compares exact epsilons if the search scored them, else the searched
        parameter that is called ``epsilon`` or ends with ``__epsilon``.
    metric : str, default="score"
        With several metrics, the name of the one to compare.

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
    - Otherwise it compares the parameter as it was set. That is the order of the exact epsilons if candidates differ
      in nothing else that a private step depends on. Score exact epsilons if they do, for example if `calibration`
      or `n_bits` is searched as well.

    A candidate without a finite epsilon sets the best score like any other, but is chosen only if no other one is
    within the tolerance. Searches by successive halving never call a `refit` rule; call it with their `cv_results_`.

    ``privacy_guarantee(search.best_estimator_)`` is the guarantee of the last fit alone, not of the search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BitRandTransformer, smallest_epsilon, with_exact_epsilon
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
        raise ValueError(f"tolerance must be a finite number >= 0. Got {tolerance!r} instead.")
    return _SmallestEpsilon(float(tolerance), param_name, metric)


def _exact_epsilon(fitted: Any) -> float:
    """Return the exact epsilon of a fitted estimator; infinity if it promises none."""
    try:
        return privacy_guarantee(fitted).plain_epsilon
    except (AttributeError, TypeError, ValueError):
        return np.inf


@dataclass(frozen=True)
class _SmallestEpsilon:
    tolerance: float
    param_name: str | None
    metric: str

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        key = f"mean_test_{self.metric}"
        if key not in cv_results:
            there = sorted(name.removeprefix("mean_test_") for name in cv_results if name.startswith("mean_test_"))
            raise ValueError(f"metric must be one of {there}. Got {self.metric!r} instead.")
        scores = np.asarray(cv_results[key], dtype=np.float64)
        if np.isnan(scores).all():
            raise ValueError("smallest_epsilon needs a score. Got only NaN instead: every fit or every score failed.")
        # One ulp-sized allowance: a mean that equals the best but was summed in another order is not below it.
        enough = np.nanmax(scores) - self.tolerance
        eligible = np.flatnonzero(scores >= enough - 1e-12 * max(1.0, abs(enough)))
        epsilons = self._epsilons(cv_results)
        return int(min(eligible, key=lambda index: (epsilons[index], -scores[index])))

    def _epsilons(self, cv_results: Mapping[str, Any]) -> np.ndarray:
        """Return the exact epsilon of each candidate where it was scored, else its epsilon parameter."""
        folds = [
            column
            for name, column in cv_results.items()
            if name.startswith("split") and name.endswith(f"_test_{_EXACT}")
        ]
        if folds and self.param_name is None:
            worst = np.max(np.asarray(folds, dtype=np.float64), axis=0)
            # A failed fit is NaN.
            return np.where(worst < _WITHOUT_BOUND, worst, np.inf)
        candidates = cv_results["params"]
        searched = sorted({name for candidate in candidates for name in candidate})
        if self.param_name is None:
            names = [name for name in searched if name.rsplit("__", 1)[-1] == "epsilon"]
        else:
            names = [name for name in searched if name == self.param_name]
        if len(names) != 1:
            rule = "exactly one searched parameter that is called epsilon or ends with __epsilon"
            raise ValueError(
                f"smallest_epsilon needs {rule if self.param_name is None else f'the parameter {self.param_name!r}'}, "
                f"or scoring=with_exact_epsilon(...) and param_name=None. Got {searched} instead."
            )
        return np.array([float(candidate.get(names[0], np.inf)) for candidate in candidates])
