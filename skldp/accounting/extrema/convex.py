"""Where the sum is concave over the whole box: linear queries asked within their bounds.

A linear query's log-likelihood is the logarithm of an affine function of x. Its sum is concave, so that the value at
any point plus the most that the tangent plane can gain over the box bounds the maximum, however the point was found.
The slopes of that plane are the proof that :mod:`~skldp.accounting.extrema.certificate` asks for.
"""

import numpy as np
import numpy.typing as npt

from skldp.accounting.extrema.sigmoid_sum import SigmoidSum

__all__ = ["maximum_of_concave", "tangent_bound"]

Floats = npt.NDArray[np.float64]


def tangent_bound(problem: SigmoidSum, point: Floats) -> tuple[float, float]:
    """Value at a point, and the upper bound of a concave sum that the tangent plane there gives."""
    value = float(problem.total(point[None, :])[0])
    gradient = problem.gradient(point)
    return value, value + float(np.abs(gradient).sum() - gradient @ point)


def maximum_of_concave(
    problem: SigmoidSum, *, tol: float, start: Floats | None = None, max_iter: int = 100
) -> tuple[float, float, Floats, Floats]:
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
        A bound on the maximum, up to rounding, whether the iteration converged or not.
    point : ndarray of shape (d,)
    slopes : ndarray of shape (n,)
        Of the answers, where the bound was found.
    """
    n_features = problem.weights.shape[1]
    point = np.zeros(n_features) if start is None else np.clip(start, -1.0, 1.0)
    best_upper, best_slopes = np.inf, np.zeros(len(problem.weights))
    value = -np.inf
    for _ in range(max_iter):
        value, upper = tangent_bound(problem, point)
        arguments = problem.weights @ point + problem.offset
        slopes = problem.slope(arguments)
        if upper < best_upper:
            best_upper, best_slopes = upper, slopes
        if best_upper - value <= tol:
            break
        gradient = (problem.count * slopes) @ problem.weights
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
    return value, best_upper, point, best_slopes


def _line_search(problem: SigmoidSum, point: Floats, step: Floats, value: float) -> Floats | None:
    """The best point of a projected path, if any improves on the value."""
    path = np.clip(point + 0.5 ** np.arange(12.0)[:, None] * step, -1.0, 1.0)
    totals = problem.total(path)
    best = int(totals.argmax())
    return path[best] if totals[best] > value + 1e-16 * abs(value) else None
