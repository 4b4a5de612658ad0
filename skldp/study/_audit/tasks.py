"""Attacks on what people release for a model: the two records that a task tells apart best, and the audit of these."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.learning._tasks import Task
from skldp.mechanisms._noise import noise_from, public_stream
from skldp.mechanisms._norms import row_norms
from skldp.mechanisms._vector.privunit import PrivUnitBall
from skldp.study._audit.lower_bound import AuditResult, audit_epsilon

__all__ = ["audit_task", "worst_records"]

# So many corners of the bounds are tried, all of them where there are no more.
_MOST_CORNERS = 1 << 10
# Rounds in which every number of both records is moved between its bounds, if that sets them further apart.
_ROUNDS, _PLACES = 8, np.linspace(-1, 1, 17)


def worst_records(task: Task) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    r"""Two records within the declared bounds whose releases for a task are told apart best.

    Parameters
    ----------
    task : Task

    Returns
    -------
    x, x_prime : ndarray of shape (n_features + 1,)
        Features and, last, the target.

    Notes
    -----
    Vectors of norm 1 at most are released through their lifts to a sphere, whose caps overlap least where the lifts
    have the smallest inner product: for opposite vectors at the radius. Products of :math:`u` and of :math:`u'` have
    the inner product :math:`\langle u, u' \rangle^2`, so that no two are further apart than at a right angle. What is
    found is the best of the corners of the bounds and of some points within, each then moved number by number.

    Examples
    --------
    >>> from skldp.learning import Task
    >>> from skldp.study import worst_records
    >>> task = Task(1.0, (0.0, 0.0), (1.0, 10.0), "linear", ((0.0, 0.0, 1.0),), "number", 1.0)
    >>> sorted(record[-1].item() for record in worst_records(task))
    [0.0, 10.0]
    """
    points = _candidates(task)
    told = _lifted(task, points)
    first, second = _furthest(told)
    pair, least = [points[first], points[second]], float(told[first] @ told[second])
    for _ in range(_ROUNDS):
        before = least
        for side, j in itertools.product((0, 1), range(len(task.low))):
            moved = np.tile(pair[side], (len(_PLACES), 1))
            moved[:, j] = _PLACES
            apart = _lifted(task, moved) @ _lifted(task, pair[1 - side][None])[0]
            if apart.min() < least:
                least, pair[side] = float(apart.min()), moved[apart.argmin()]
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
    """Bound from below the epsilon of what one person releases for a task, by telling two records apart.

    Parameters
    ----------
    task : Task
    records : (x, x_prime), default=None
        Two records of features and, last, the target. None takes :func:`worst_records`.
    n_trials : int, default=20_000
        Large epsilons take more: see :func:`trials_needed`.
    confidence : float, default=0.95
    seed : None, int, Generator or RandomState, default=None
        Of the coins alone, never of the release.

    Returns
    -------
    AuditResult
        Beside the task's own guarantee as its `claimed`. Of a vector the attacker knows the mechanism, and looks at the
        ratio of its likelihoods, besides what :func:`~skldp.audit_epsilon` learns from the outputs alone.

    Raises
    ------
    ValueError
        As :func:`~skldp.audit_epsilon` does, such as for two equal records.

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
        told = task.told(np.stack([x, x_prime])[:, :-1], np.array([x[-1], x_prime[-1]]))

        def likelihood_ratio(outputs: np.ndarray) -> np.ndarray:
            return ball.log_likelihood(outputs, told[:1]) - ball.log_likelihood(outputs, told[1:])

        scores["the ratio of likelihoods"] = likelihood_ratio
    result = audit_epsilon(release, x, x_prime, n_trials=n_trials, confidence=confidence, scores=scores, seed=seed)
    return result.against(task.guarantee().epsilon)


def _candidates(task: Task) -> npt.NDArray[np.float64]:
    """Points of the domain as multiples of half the width of each number's bounds, from the middle."""
    width = len(task.low)
    if 2**width <= _MOST_CORNERS:
        corners = np.array(list(itertools.product((-1.0, 1.0), repeat=width)))
    else:
        # In opposite pairs.
        half = np.where(public_stream(0).words((_MOST_CORNERS // 2, width), np.uint8) & 1, 1.0, -1.0)
        corners = np.concatenate([half, -half])
    matrix = np.array(task.matrix)
    # Where all functionals are as near zero as they come: the shortest vector there is.
    shortest = np.clip(-np.linalg.pinv(matrix[:, 1:]) @ matrix[:, 0], -1, 1)
    inside = np.concatenate([np.zeros((1, width)), shortest[None], np.eye(width), -np.eye(width)])
    return np.concatenate([corners, inside])


def _as_record(task: Task, point: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = np.array(task.low), np.array(task.high)
    record: npt.NDArray[np.float64] = np.clip(low / 2 + high / 2 + point * (high / 2 - low / 2), low, high)
    return record


def _lifted(task: Task, points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What is released about points: unit vectors in one dimension more, or numbers, which lie on a half circle."""
    records = _as_record(task, points)
    told = task.told(records[:, :-1], records[:, -1])
    told = told / np.maximum(row_norms(told), 1)[:, None]
    return np.column_stack([told, np.sqrt(np.maximum(1 - row_norms(told) ** 2, 0))])


def _furthest(told: npt.NDArray[np.float64]) -> tuple[int, int]:
    return divmod(int((told @ told.T).argmin()), len(told))
