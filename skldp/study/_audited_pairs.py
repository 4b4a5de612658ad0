"""Audits of estimators: choice of the two inputs, and the audit of them."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp.study._audit import AuditResult, audit_epsilon, trials_needed

# Pair all categories up to this number, else the first and last ones.
_MOST_VALUES = 4
# A pilot certifies nothing; a low confidence lets it detect rare events.
_PILOT_CONFIDENCE = 0.8


def audit_estimator(
    estimator: Any,
    *,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    n_trials: int = 20_000,
    confidence: float = 0.95,
    **options: Any,
) -> AuditResult:
    """Audit a fitted estimator on the worst of some pairs of inputs.

    A pilot of half the trials runs for each pair; the audit uses fresh outputs of the pair with the largest bound, so
    that the choice costs no validity.

    Parameters
    ----------
    estimator : fitted estimator
    pairs : list of (x, x_prime), default=None
        None takes pairs from `bounds_`, `categories_` or `classes_` (for bounds: all low, all high, all in the middle,
        and all just below 0 if that lies inside); without them, opposite vectors of the norm `radius_`, or 1.
    n_trials : int, default=20_000
        Number of outputs of the audit itself.
    confidence : float, default=0.95
    **options
        Further parameters of :func:`~skldp.study.audit_epsilon`.

    Returns
    -------
    result : AuditResult
        As of :func:`~skldp.study.audit_epsilon`.

    Raises
    ------
    ValueError
        As :func:`~skldp.study.audit_epsilon`.

    Examples
    --------
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from skldp.study import audit_estimator
    >>> audit_estimator(OrdinalEncoder().fit([["a"], ["b"]]), n_trials=2_000).epsilon_lower > 4
    True
    """
    pairs = _candidate_pairs(estimator) if pairs is None else list(pairs)
    worst = pairs[0]
    needed = trials_needed(confidence=_PILOT_CONFIDENCE, delta=options.get("delta", 0.0))
    if len(pairs) > 1 and n_trials >= needed:
        pilot = {**options, "n_trials": max(n_trials // 2, needed), "confidence": _PILOT_CONFIDENCE}
        results = [audit_epsilon(estimator, *pair, **pilot) for pair in pairs]
        # The claim depends on the distance of a pair: compare the bounds relative to their claims.
        shares = [result.epsilon_lower / (result.claimed or 1.0) for result in results]
        worst = pairs[int(np.argmax(shares))]
    return audit_epsilon(estimator, *worst, n_trials=n_trials, confidence=confidence, **options)


def _candidate_pairs(estimator: Any) -> list[tuple[Any, Any]]:
    """Return pairs of inputs from the domain that a fitted estimator declares."""
    check_is_fitted(estimator)
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
        raise ValueError(f"An audit needs two different inputs; the domain of {estimator} has one.")
    return pairs


def _ends(values: Any) -> np.ndarray:
    values = np.asarray(values)
    if len(values) <= _MOST_VALUES:
        return values
    half = _MOST_VALUES // 2
    return np.concatenate([values[:half], values[-half:]])
