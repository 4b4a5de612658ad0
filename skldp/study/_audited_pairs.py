"""Audits of estimators and of tasks: choice of the two inputs, and the audit of them."""

import itertools
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from skldp.domains._norms import row_norms
from skldp.learning._tasks import N_LEVELS, Task
from skldp.mechanisms._noise import noise_from, public_stream
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.study._audit import AuditResult, audit_epsilon, trials_needed

# Pair all categories up to this number, else the first and last ones.
_MOST_VALUES = 4
# A pilot certifies nothing; a low confidence lets it detect rare events.
_PILOT_CONFIDENCE = 0.8


def candidate_pairs(estimator: Any) -> list[tuple[Any, Any]]:
    """Return pairs of inputs from the domain that a fitted estimator declares.

    Parameters
    ----------
    estimator : fitted estimator
        With `bounds_`, `classes_` or `categories_`; without them the domain is taken to be vectors of the norm
        `radius_`, or 1.

    Returns
    -------
    pairs : list of (x, x_prime)
        For bounds: all low, all high, all in the middle, and all just below 0 if that lies inside.

    Examples
    --------
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from skldp.study import candidate_pairs
    >>> candidate_pairs(OrdinalEncoder().fit([["a"], ["b"]]))
    [(array(['a'], dtype=object), array(['b'], dtype=object))]
    """
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
        None takes :func:`candidate_pairs`.
    n_trials : int, default=20_000
        Number of outputs of the audit itself.
    confidence : float, default=0.95
    **options
        Further parameters of :func:`~skldp.audit_epsilon`.

    Returns
    -------
    result : AuditResult
        As of :func:`~skldp.audit_epsilon`.

    Raises
    ------
    ValueError
        As :func:`~skldp.audit_epsilon`.

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
        results = [audit_epsilon(estimator, *pair, **pilot) for pair in pairs]
        # The claim depends on the distance of a pair: compare the bounds relative to their claims.
        shares = [result.epsilon_lower / (result.claimed or 1.0) for result in results]
        worst = pairs[int(np.argmax(shares))]
    return audit_epsilon(estimator, *worst, n_trials=n_trials, confidence=confidence, **options)


def _ends(values: Any) -> np.ndarray:
    values = np.asarray(values)
    if len(values) <= _MOST_VALUES:
        return values
    half = _MOST_VALUES // 2
    return np.concatenate([values[:half], values[-half:]])


# Largest number of corners of the bounds that are tried.
_MOST_CORNERS = 1 << 10
# Coordinate search: rounds over all coordinates of both records, and positions between the bounds.
_ROUNDS, _PLACES = 8, np.linspace(-1, 1, 17)


def worst_records(task: Task) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    r"""Return two records within the declared bounds whose releases for a task differ most.

    Parameters
    ----------
    task : Task

    Returns
    -------
    x, x_prime : ndarray of shape (n_features + 1,)
        Features and, last, the target.

    Notes
    -----
    Vectors of norm at most 1 are released through their lifts to a sphere, whose caps overlap least if the lifts have
    the smallest inner product: for opposite vectors at the radius. Products of :math:`u` and of :math:`u'` have the
    inner product :math:`\langle u, u' \rangle^2`, so that a right angle is the largest distance. The result is
    the best of the corners of the bounds and of some points within, each then moved number by number.

    Examples
    --------
    >>> from skldp.learning import Task
    >>> from skldp.study import worst_records
    >>> task = Task(1.0, (0.0, 0.0), (1.0, 10.0), "linear", ((0.0, 0.0, 1.0),), "number", 1.0)
    >>> sorted(record[-1].item() for record in worst_records(task))
    [0.0, 10.0]
    """
    points = _candidates(task)
    vectors = _lifted(task, points)
    first, second = divmod(int((vectors @ vectors.T).argmin()), len(vectors))
    pair, least = [points[first], points[second]], float(vectors[first] @ vectors[second])
    for _ in range(_ROUNDS):
        before = least
        for side, j in itertools.product((0, 1), range(len(task.low))):
            moved = np.tile(pair[side], (len(_PLACES), 1))
            moved[:, j] = _PLACES
            products = _lifted(task, moved) @ _lifted(task, pair[1 - side][None])[0]
            if products.min() < least:
                least, pair[side] = float(products.min()), moved[products.argmin()]
        if least >= before:
            break
    x, x_prime = (_as_record(task, point) for point in pair)
    return x, x_prime


def audit_task(
    task: Task,
    *,
    records: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    n_trials: int = 20_000,
    confidence: float = 0.95,
    seed: Any = None,
) -> AuditResult:
    """Lower-bound the epsilon of one release for a task, by an attack on two records.

    Parameters
    ----------
    task : Task
    records : (x, x_prime), default=None
        Two records of features and, last, the target. None takes :func:`worst_records`.
    n_trials : int, default=20_000
        Large epsilons take more: see :func:`trials_needed`.
    confidence : float, default=0.95
    seed : None, int, Generator or RandomState, default=None
        Seeds the coins, never the release.

    Returns
    -------
    result : AuditResult
        As of :func:`~skldp.audit_epsilon`, with the task's own guarantee as its `claimed`. For a vector the attacker
        knows the mechanism, and uses the ratio of its likelihoods as well.

    Raises
    ------
    ValueError
        As :func:`~skldp.audit_epsilon`, for example for two equal records.

    Examples
    --------
    >>> from skldp.learning import Task
    >>> from skldp.study import audit_task
    >>> task = Task(1.0, (0.0, 0.0), (1.0, 10.0), "linear", ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), "vector", 1.0)
    >>> result = audit_task(task, confidence=1 - 1e-9)
    >>> round(result.claimed, 4), result.refutes_claim
    (1.0, False)
    """
    x, x_prime = worst_records(task) if records is None else map(np.asarray, records)

    def release(rows: np.ndarray) -> np.ndarray:
        return task.answers(rows[:, :-1], rows[:, -1], noise_from())

    scores = {}
    if task.answer == "vector":
        ball = PrivUnitBall(task.n_outputs, task.epsilon, 1.0)
        vectors = task.encode(np.stack([x, x_prime])[:, :-1], np.array([x[-1], x_prime[-1]]))

        def likelihood_ratio(outputs: np.ndarray) -> np.ndarray:
            return ball.log_likelihood(outputs, vectors[:1]) - ball.log_likelihood(outputs, vectors[1:])

        scores["the likelihood ratio"] = likelihood_ratio
    elif task.answer == "levels":
        pair = np.stack([x, x_prime])
        own, other = np.rint(task.encode(pair[:, :-1], pair[:, -1])[:, 0]).astype(np.intp)
        scores["the difference of the two levels"] = lambda outputs: outputs[:, own] - outputs[:, other]
    result = audit_epsilon(release, x, x_prime, n_trials=n_trials, confidence=confidence, scores=scores, seed=seed)
    return result.against(task.guarantee().epsilon)


def _candidates(task: Task) -> npt.NDArray[np.float64]:
    """Return points of the domain, scaled to [-1, 1]."""
    width = len(task.low)
    if 2**width <= _MOST_CORNERS:
        corners = np.array(list(itertools.product((-1.0, 1.0), repeat=width)))
    else:
        # Pairs of opposite corners.
        half = np.where(public_stream(0).words((_MOST_CORNERS // 2, width), np.uint8) & 1, 1.0, -1.0)
        corners = np.concatenate([half, -half])
    matrix = np.array(task.matrix)
    # The point with the shortest vector.
    shortest = np.clip(-np.linalg.pinv(matrix[:, 1:]) @ matrix[:, 0], -1, 1)
    inside = np.concatenate([np.zeros((1, width)), shortest[None], np.eye(width), -np.eye(width)])
    return np.concatenate([corners, inside])


def _as_record(task: Task, point: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = np.array(task.low), np.array(task.high)
    record: npt.NDArray[np.float64] = np.clip(low / 2 + high / 2 + point * (high / 2 - low / 2), low, high)
    return record


def _lifted(task: Task, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Lift the encoded vectors to the unit sphere, or numbers and levels to a half circle."""
    records = _as_record(task, points)
    vectors = task.encode(records[:, :-1], records[:, -1])
    if task.answer == "levels":
        vectors = 2 * vectors / (N_LEVELS - 1) - 1
    vectors = vectors / np.maximum(row_norms(vectors), 1)[:, None]
    return np.column_stack([vectors, np.sqrt(np.maximum(1 - row_norms(vectors) ** 2, 0))])
