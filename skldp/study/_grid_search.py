"""The refit rule for a grid search over epsilon."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldp._checks import is_number

__all__ = ["smallest_epsilon"]


def smallest_epsilon(
    tolerance: float = 0.0, *, param_name: str | Iterable[str] | None = None, metric: str = "score"
) -> Callable[[Mapping[str, Any]], int]:
    """Make a `refit` rule for GridSearchCV: the smallest epsilon whose mean score is close enough to the best.

    Parameters
    ----------
    tolerance : float, default=0.0
        How far below the best mean score the chosen one may lie, in units of the score.
    param_name : str or list of str, default=None
        The parameters to read as epsilon. None takes all that are called ``epsilon`` or end with ``__epsilon``. Where
        a candidate has several, their sum counts.
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

    Notes
    -----
    With several grids, a candidate without an epsilon parameter counts as not private: it sets the best score like
    any other, but is chosen only if no private one is within the tolerance. The sum is of the epsilons as set;
    ``privacy_guarantee(search.best_estimator_)`` gives the exact one of what was chosen. That of the search itself is
    infinite where true labels, or rows without noise, choose among the candidates, as they usually do.

    Examples
    --------
    >>> from skldp import smallest_epsilon
    >>> rule = smallest_epsilon(0.02)
    >>> rule({"params": [{"epsilon": 1}, {"epsilon": 4}, {"epsilon": 9}], "mean_test_score": [0.6, 0.79, 0.8]})
    1
    """
    if not is_number(tolerance) or tolerance < 0:
        raise ValueError(f"tolerance must be a finite number >= 0. Got {tolerance!r} instead.")
    names = (param_name,) if isinstance(param_name, str) else param_name
    return _SmallestEpsilon(float(tolerance), None if names is None else tuple(names), metric)


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
        epsilons = np.array([self._epsilon(candidate) for candidate in cv_results["params"]])
        if not np.isfinite(epsilons).any():
            searched = sorted({name for candidate in cv_results["params"] for name in candidate})
            rule = "that ends with epsilon" if self.names is None else f"among {list(self.names)}"
            raise ValueError(
                f"smallest_epsilon needs a searched parameter {rule}; param_name names another one. "
                f"Got {searched} instead."
            )
        if np.isnan(scores).all():
            raise ValueError("smallest_epsilon needs a score. Got only NaN instead: every fit failed.")
        # One ulp-sized allowance: a mean that equals the best but was summed in another order is not below it.
        enough = np.nanmax(scores) - self.tolerance
        eligible = np.flatnonzero(scores >= enough - 1e-12 * max(1.0, abs(enough)))
        return int(min(eligible, key=lambda index: (epsilons[index], -scores[index])))

    def _epsilon(self, candidate: dict[str, Any]) -> float:
        searched = [value for name, value in candidate.items() if self._counts(name)]
        return float(sum(searched)) if searched else np.inf

    def _counts(self, name: str) -> bool:
        return _is_epsilon(name) if self.names is None else name in self.names
