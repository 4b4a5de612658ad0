"""Which epsilon to choose: a rule for scikit-learn's searches, and the scores that tell it what is really protected."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring

from skldp._checks import is_number
from skldp.estimators._composition import privacy_guarantee
from skldp.exceptions import PrivacyGuaranteeWarning, warn_user
from skldp.study._curve import check_scorer

__all__ = ["smallest_epsilon", "with_exact_epsilon"]

_EXACT = "exact_epsilon"
# What no epsilon bounds, as a score: the mean and the spread of such numbers are still numbers.
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
    tolerance: float = 0.0, *, param_name: str | Iterable[str] | None = None, metric: str = "score"
) -> Callable[[Mapping[str, Any]], int]:
    """Make a `refit` rule for GridSearchCV: the smallest epsilon whose mean score is close enough to the best.

    Parameters
    ----------
    tolerance : float, default=0.0
        How far below the best mean score the chosen one may lie, in units of the score.
    param_name : str or list of str, default=None
        The parameters to read as epsilon, whose sum counts. None compares exact epsilons.
    metric : str, default="score"
        With several metrics, the name of the one to compare.

    Returns
    -------
    callable
        Takes `cv_results_`, returns the index of the chosen candidate. It can be pickled.

    Raises
    ------
    ValueError
        If `tolerance` is not a number >= 0.

    Warns
    -----
    PrivacyGuaranteeWarning
        If epsilons as set are compared though candidates differ in what else a private step is made of.

    Notes
    -----
    Candidates that differ in epsilon alone, in parameters that are called ``epsilon`` or end with ``__epsilon``, are in
    the order of their exact epsilons, and nothing is computed. Else each one that is near enough to the best is fitted
    once more, as the search itself does with the chosen one, for its :func:`~skldp.privacy_guarantee`; what it
    releases is thrown away. ``scoring=with_exact_epsilon(...)`` has the folds' fits say it, the largest of which
    counts: for searches of other packages, and where a ledger charges for each fit, since the rule makes none then.
    A candidate that is not private sets the best score like any other, but is chosen only if no private one is within
    the tolerance.

    ``privacy_guarantee(search.best_estimator_)`` gives the exact epsilon of what was chosen. That of the search itself
    is infinite where true labels, or rows without noise, choose among the candidates, as they usually do.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BitRandTransformer, smallest_epsilon
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(BitRandTransformer(bounds=(0, 8), calibration="exact"), GaussianNB())
    >>> grid = {"bitrandtransformer__epsilon": [20, 40], "bitrandtransformer__n_bits": [4, 8]}
    >>> search = GridSearchCV(model, grid, refit=smallest_epsilon(1.0)).fit(X, y)
    >>> search.best_params_["bitrandtransformer__epsilon"]
    20
    >>> rule = smallest_epsilon(0.02)
    >>> rule({"params": [{"epsilon": 1}, {"epsilon": 4}, {"epsilon": 9}], "mean_test_score": [0.6, 0.79, 0.8]})
    1
    """
    if not is_number(tolerance) or tolerance < 0:
        raise ValueError(f"tolerance must be a finite number >= 0. Got {tolerance!r} instead.")
    names = (param_name,) if isinstance(param_name, str) else param_name
    return _SmallestEpsilon(float(tolerance), None if names is None else tuple(names), metric)


def _exact_epsilons(
    rule: "_SmallestEpsilon", candidates: list[dict[str, Any]], eligible: np.ndarray
) -> np.ndarray | None:
    """The exact epsilon of each eligible candidate of the search that asks, infinite of others; None if it can't say.

    A search hands its rule the results alone, which hold no fitted estimator: it is found among the callers.
    """
    frame = inspect.currentframe()
    while frame and not (frame.f_code.co_name == "fit" and getattr(frame.f_locals.get("self"), "refit", None) is rule):
        frame = frame.f_back
    called = frame.f_locals if frame else {}
    # Another package's search may call its rows or its model otherwise.
    if "X" not in called or not hasattr(called["self"], "estimator"):
        return None
    X, y, estimator = called["X"], called.get("y"), called["self"].estimator
    if any(name.rsplit("__", 1)[-1] == "ledger" and one is not None for name, one in estimator.get_params().items()):
        return None
    fit_params = called["routed_params"].estimator.fit if "routed_params" in called else {}
    exact = np.full(len(candidates), np.inf)
    for index in eligible:
        model = clone(estimator).set_params(**clone(candidates[index], safe=False))
        with warnings.catch_warnings():
            # All of it was said in the search.
            warnings.simplefilter("ignore")
            model.fit(X, **fit_params) if y is None else model.fit(X, y, **fit_params)
        exact[index] = _exact_epsilon(model)
    return exact


def _exact_epsilon(fitted: Any) -> float:
    try:
        return privacy_guarantee(fitted).plain_epsilon
    except (AttributeError, TypeError, ValueError):
        # Nothing in it is private, or it is a model that the composition does not know.
        return np.inf


def _is_fold_of(column: str, metric: str) -> bool:
    return column.startswith("split") and column.endswith(f"_test_{metric}")


def _is_epsilon(name: str) -> bool:
    return name.rsplit("__", 1)[-1] == "epsilon"


@dataclass(frozen=True)
class _SmallestEpsilon:
    tolerance: float
    names: tuple[str, ...] | None
    metric: str

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        key = f"mean_test_{self.metric}"
        if key not in cv_results:
            there = sorted(name.removeprefix("mean_test_") for name in cv_results if name.startswith("mean_test_"))
            raise ValueError(f"metric must be one of {there}. Got {self.metric!r} instead.")
        scores = np.asarray(cv_results[key], dtype=np.float64)
        if np.isnan(scores).all():
            raise ValueError("smallest_epsilon needs a score. Got only NaN instead: every fit failed.")
        # One ulp-sized allowance: a mean that equals the best but was summed in another order is not below it.
        enough = np.nanmax(scores) - self.tolerance
        eligible = np.flatnonzero(scores >= enough - 1e-12 * max(1.0, abs(enough)))
        epsilons = self._epsilons(cv_results, eligible)
        return int(min(eligible, key=lambda index: (epsilons[index], -scores[index])))

    def _epsilons(self, cv_results: Mapping[str, Any], eligible: np.ndarray) -> np.ndarray:
        """What is compared of the eligible ones: exact epsilons, or what the parameters were set to."""
        folds = [column for name, column in cv_results.items() if _is_fold_of(name, _EXACT)]
        if folds and self.names is None:
            worst = np.max(np.asarray(folds, dtype=np.float64), axis=0)
            # What failed is NaN, and has no score either.
            return np.where(worst < _WITHOUT_BOUND, worst, np.inf)
        candidates = cv_results["params"]
        as_set = np.array([self._epsilon(candidate) for candidate in candidates])
        others = sorted({name for candidate in candidates for name in candidate if not self._counts(name)})
        beside = [name for name in others if self._changes_the_law(name, candidates)]
        if self.names is None and (beside or not np.isfinite(as_set).any()):
            exact = _exact_epsilons(self, candidates, eligible)
            if exact is not None and np.isfinite(exact).any():
                return exact
        if not np.isfinite(as_set).any():
            searched = sorted({name for candidate in candidates for name in candidate})
            rule = "that ends with epsilon" if self.names is None else f"among {list(self.names)}"
            raise ValueError(
                f"smallest_epsilon needs a searched parameter {rule}; param_name names another one. "
                f"Got {searched} instead."
            )
        if beside:
            warn_user(
                f"The candidates differ in {', '.join(beside)}, with which the exact epsilon may differ from the one "
                "set, which is compared here: scoring=with_exact_epsilon(...) gives the exact one to smallest_epsilon.",
                PrivacyGuaranteeWarning,
            )
        return as_set

    def _changes_the_law(self, name: str, candidates: list[dict[str, Any]]) -> bool:
        """Whether another parameter is of a step whose epsilon is searched, or a step itself, and not always the same.

        A step that is left out counts as not private, which needs no warning.
        """
        values = [candidate[name] for candidate in candidates if name in candidate]
        varies = len(values) < len(candidates) or len(set(map(repr, values))) > 1
        steps = {key.rpartition("__")[0] for candidate in candidates for key in candidate if self._counts(key)}
        is_step = any(hasattr(value, "get_params") for value in values)
        return varies and (is_step or name.rpartition("__")[0] in steps)

    def _epsilon(self, candidate: dict[str, Any]) -> float:
        searched = [value for name, value in candidate.items() if self._counts(name)]
        return float(sum(searched)) if searched else np.inf

    def _counts(self, name: str) -> bool:
        return _is_epsilon(name) if self.names is None else name in self.names
