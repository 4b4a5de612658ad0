"""Which two inputs to attack: the corners of a mechanism's declared domain, the worst of them found by a pilot."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp.study._audit.lower_bound import AuditResult, audit_epsilon, trials_needed

__all__ = ["audit_estimator", "candidate_pairs"]

# Categories that are paired with each other; the first and last ones where there are more.
_MOST_VALUES = 4
# A pilot proves nothing, so it may be bold: at a high confidence it would not see a rare event.
_PILOT_CONFIDENCE = 0.8


def candidate_pairs(estimator: Any) -> list[tuple[Any, Any]]:
    """Give pairs of inputs from the domain that a fitted estimator declares.

    Parameters
    ----------
    estimator : fitted estimator
        With `bounds_`, `classes_` or `categories_`; without, the domain is taken to be vectors as long as its
        `radius_`, or 1.

    Returns
    -------
    list of (x, x_prime)
        Of bounds: all low, all high, all in the middle and all just below 0 where that lies inside.

    Examples
    --------
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from skldp.study import candidate_pairs
    >>> candidate_pairs(OrdinalEncoder().fit([["a"], ["b"]]))
    [(array(['a'], dtype=object), array(['b'], dtype=object))]
    """
    check_is_fitted(estimator)
    # Of vectors bounds are declared or not.
    if getattr(estimator, "bounds_", None) is not None:
        low, high = map(np.asarray, estimator.bounds_)
        points = [low, high, (low + high) / 2]
        if (low < 0).all() and (high > 0).all():
            # The code of a number has a sign bit: the worst pair may lie on both sides of 0.
            points.append(low * 1e-9)
    elif isinstance(by_column := getattr(estimator, "categories_", getattr(estimator, "classes_", None)), list):
        size = max(len(values) for values in by_column)
        columns = [_ends(np.resize(values, size)) for values in by_column]
        points = [np.array(row, dtype=object) for row in zip(*columns, strict=True)]
    elif hasattr(estimator, "classes_"):
        points = list(_ends(estimator.classes_))
    else:
        first = np.zeros(estimator.n_features_in_)
        first[0] = getattr(estimator, "radius_", None) or 1.0
        points = [first, -first]
    pairs = [(x, x_prime) for x, x_prime in combinations(points, 2) if not np.array_equal(x, x_prime)]
    if not pairs:
        raise ValueError(f"An audit needs two inputs, but {estimator} declares a domain of one.")
    return pairs


def audit_estimator(
    estimator: Any,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    n_trials: int = 20_000,
    confidence: float = 0.95,
    **options: Any,
) -> AuditResult:
    """Audit a fitted estimator on the worst of some pairs of inputs.

    A pilot of half the trials is run for each pair; the audit is then made of fresh outputs of the pair with the
    largest bound, so that the choice costs no validity.

    Parameters
    ----------
    estimator : fitted estimator
    pairs : list of (x, x_prime), default=None
        None takes :func:`candidate_pairs`.
    n_trials : int, default=20_000
        Of the audit itself.
    confidence : float, default=0.95
    **options
        Further parameters of :func:`~skldp.audit_epsilon`.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        As :func:`~skldp.audit_epsilon` does.

    Examples
    --------
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from skldp.study import audit_estimator
    >>> audit_estimator(OrdinalEncoder().fit([["a"], ["b"]]), n_trials=2_000).epsilon_lower > 4
    True
    """
    pairs = candidate_pairs(estimator) if pairs is None else list(pairs)
    worst = pairs[0]
    needed = trials_needed(confidence=_PILOT_CONFIDENCE, delta=options.get("delta", 0.0))
    if len(pairs) > 1 and n_trials >= needed:
        pilot = {**options, "n_trials": max(n_trials // 2, needed), "confidence": _PILOT_CONFIDENCE}
        # A pair at another distance has another claim, so what counts is how near a bound comes to it.
        worst = max(pairs, key=lambda pair: _nearness(audit_epsilon(estimator, *pair, **pilot)))
    return audit_epsilon(estimator, *worst, n_trials=n_trials, confidence=confidence, **options)


def _nearness(result: AuditResult) -> float:
    return result.epsilon_lower / result.claimed if result.claimed else result.epsilon_lower


def _ends(values: Any) -> np.ndarray:
    values = np.asarray(values)
    if len(values) <= _MOST_VALUES:
        return values
    half = _MOST_VALUES // 2
    return np.concatenate([values[:half], values[-half:]])
