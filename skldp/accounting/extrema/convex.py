"""Certified maxima where the sum is concave or convex over the whole box: linear queries asked within their bounds.

A linear query's log-likelihood is the logarithm of an affine function of x. Its sum is concave, so that the value at
any point plus the most that the tangent plane can gain over the box bounds the maximum, however the point was found;
and the minimum of a concave function over a box is attained at a vertex.
"""

import numpy as np
import numpy.typing as npt

from skldp.accounting.extrema.sigmoid_sum import SigmoidSum

__all__ = ["maximum_of_concave", "maximum_of_convex", "n_vertex_evaluations", "tangent_bound"]

Floats = npt.NDArray[np.float64]

_BLOCK = 1 << 20


def tangent_bound(problem: SigmoidSum, point: Floats) -> tuple[float, float]:
    """Value at a point, and the upper bound of a concave sum that the tangent plane there gives."""
    value = float(problem.total(point[None, :])[0])
    gradient = problem.gradient(point)
    return value, value + float(np.abs(gradient).sum() - gradient @ point)


def maximum_of_concave(
    problem: SigmoidSum, *, tol: float, start: Floats | None = None, max_iter: int = 100
) -> tuple[float, float, Floats]:
    """Projected Newton, until the tangent bound is within `tol` of the value.

    Parameters
    ----------
    problem : SigmoidSum
        With ``is_concave``.
    tol : float
    start : ndarray of shape (d,), default=None
        A point of [-1, 1]^d near the maximum; None starts in the middle.
    max_iter : int, default=100

    Returns
    -------
    lower : float
        The sum at `point`.
    upper : float
        A bound on the maximum, valid whether the iteration converged or not.
    point : ndarray of shape (d,)
    """
    n_features = problem.weights.shape[1]
    point = np.zeros(n_features) if start is None else np.clip(start, -1.0, 1.0)
    best_upper = np.inf
    value = -np.inf
    for _ in range(max_iter):
        value, upper = tangent_bound(problem, point)
        best_upper = min(best_upper, upper)
        if best_upper - value <= tol:
            break
        arguments = problem.weights @ point + problem.offset
        gradient = (problem.count * problem.slope(arguments)) @ problem.weights
        free = ~(((point >= 1.0) & (gradient > 0)) | ((point <= -1.0) & (gradient < 0)))
        part = problem.weights[:, free]
        hessian = (part.T * (problem.count * problem.curvature(arguments))) @ part
        ridge = 1e-9 * max(-np.trace(hessian), 1e-12) + 1e-14
        step = np.zeros(n_features)
        step[free] = np.linalg.solve(ridge * np.eye(part.shape[1]) - hessian, gradient[free])
        moved = _line_search(problem, point, step, value)
        if moved is None:
            moved = _line_search(problem, point, gradient / max(np.abs(gradient).max(), 1e-300), value)
        if moved is None:
            break
        point = moved
    return value, best_upper, point


def n_vertex_evaluations(problem: SigmoidSum) -> float:
    """Number of logarithms that :func:`maximum_of_convex` takes."""
    n_moving = int((problem.weights != 0).any(axis=0).sum())
    return len(problem.weights) * 2.0**n_moving


def maximum_of_convex(problem: SigmoidSum) -> tuple[float, Floats]:
    """Maximum over all vertices, and the vertex, for a problem with ``is_convex``."""
    n_features = problem.weights.shape[1]
    moving = np.flatnonzero((problem.weights != 0).any(axis=0))
    best, best_vertex = -np.inf, np.ones(n_features)
    n_vertices = 1 << len(moving)
    step = max(1, _BLOCK // max(1, len(problem.weights)))
    for first in range(0, n_vertices, step):
        codes = np.arange(first, min(first + step, n_vertices))
        vertices = np.ones((len(codes), n_features))
        vertices[:, moving] = 1.0 - 2.0 * ((codes[:, None] >> np.arange(len(moving))) & 1)
        totals = problem.total(vertices)
        if totals.max() > best:
            best, best_vertex = float(totals.max()), vertices[totals.argmax()]
    return best, best_vertex


def _line_search(problem: SigmoidSum, point: Floats, step: Floats, value: float) -> Floats | None:
    """The best point of a projected path, if any improves on the value."""
    path = np.clip(point + 0.5 ** np.arange(12.0)[:, None] * step, -1.0, 1.0)
    totals = problem.total(path)
    best = int(totals.argmax())
    return path[best] if totals[best] > value + 1e-16 * abs(value) else None
