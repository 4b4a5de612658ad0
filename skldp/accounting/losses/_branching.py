"""Maximization of a sum of S-shaped functions, by Newton steps if it is concave, else by branching on the box.

The bound on a box replaces every function by its least concave majorant over the box's range of the argument.
"""

import numpy as np

from skldp._arrays import Floats, Positions
from skldp.accounting.losses._certificate import Tree
from skldp.accounting.losses._sigmoid_sum import SigmoidSum


def tangent_bound(problem: SigmoidSum, point: Floats) -> tuple[float, float]:
    """Return the value at a point, and the upper bound of a concave sum from the tangent plane there."""
    value = float(problem.total(point[None, :])[0])
    gradient = problem.gradient(point)
    return value, value + float(np.abs(gradient).sum() - gradient @ point)


def maximum_of_concave(
    problem: SigmoidSum, *, tol: float, start: Floats | None = None, max_iter: int = 100
) -> tuple[float, float, Floats, Floats]:
    """Maximize by projected Newton steps until the tangent bound is within `tol` of the value.

    Shapes: start (d,); returns point (d,), slopes (n,).
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
    """Return the best point of a projected path if it improves on the value."""
    path = np.clip(point + 0.5 ** np.arange(12.0)[:, None] * step, -1.0, 1.0)
    totals = problem.total(path)
    best = int(totals.argmax())
    return path[best] if totals[best] > value + 1e-16 * abs(value) else None


_BATCH_ELEMENTS = 1 << 16


def box_bounds(problem: SigmoidSum, center: Floats, radius: Floats) -> tuple[Floats, Floats, Floats]:
    """Return upper bounds of the sum over boxes, the maxima of the majorants, and the looseness due to each side.

    Shapes: center, radius (k, d); returns bounds (k,), peaks (k, d), looseness (k, d).
    """
    middle = center @ problem.weights.T + problem.offset
    spread = radius @ np.abs(problem.weights).T
    slope, intercept, share = problem.majorants(middle - spread, middle + spread)
    tilt = (slope * problem.count) @ problem.weights
    bounds = (intercept + slope * middle) @ problem.count + (np.abs(tilt) * radius).sum(axis=1) + problem.slack(slope)
    peaks = center + np.where(tilt >= 0, radius, -radius)
    looseness = (share @ problem.weights**2) * radius**2
    return bounds, peaks, looseness


class BoxBranching:
    """Resumable best-first branch and bound on the box [-1, 1]^d.

    Shapes: `point` (d,).
    """

    def __init__(self, problem: SigmoidSum, start: tuple[float, Floats], *, to_the_ends: bool = False) -> None:
        self._problem, self._to_the_ends = problem, to_the_ends
        self.lower, self.point = start
        n_answers, n_features = problem.weights.shape
        self.tree, self._nodes = Tree(n_features, to_the_ends=to_the_ends), np.zeros(1, dtype=np.intp)
        self._center = np.zeros((1, n_features))
        self._radius = (problem.weights != 0).any(axis=0).astype(np.float64)[None, :]
        self._bounds, _, self._looseness = box_bounds(problem, self._center, self._radius)
        # Bounds of discarded boxes also bound the maximum.
        self._discarded = -np.inf
        self._batch = max(64, _BATCH_ELEMENTS // max(1, n_answers))
        self.n_seen = 1

    @property
    def upper(self) -> float:
        """Upper bound on the maximum."""
        return max(self.lower, self._discarded, float(self._bounds.max(initial=-np.inf)))

    def step(self, goal: float) -> None:
        """Cut the boxes with the largest bounds above a goal, and discard boxes with smaller bounds."""
        problem = self._problem
        keep = self._bounds > max(goal, self.lower)
        self._discarded = max(self._discarded, float(self._bounds[~keep].max(initial=-np.inf)))
        center, radius, looseness = self._center[keep], self._radius[keep], self._looseness[keep]
        bounds, nodes = self._bounds[keep], self._nodes[keep]
        order = np.argsort(-bounds, kind="stable")
        chosen, rest = order[: self._batch], order[self._batch :]
        side = np.where(radius[chosen] > 0, looseness[chosen] + 1e-300, -1.0).argmax(axis=1)
        first = self.tree.split(nodes[chosen], side, center[chosen, side])
        halves = _halves(center[chosen], radius[chosen], side, self._to_the_ends)
        found, peaks, half_looseness = box_bounds(problem, *halves)
        for points in (peaks,) if self._to_the_ends else (halves[0], peaks):
            totals = problem.total(points)
            if totals.max(initial=-np.inf) > self.lower:
                self.lower, self.point = float(totals.max()), points[totals.argmax()]
        self._bounds, self._nodes = (
            np.concatenate([bounds[rest], found]),
            np.concatenate([nodes[rest], first, first + 1]),
        )
        self._center = np.concatenate([center[rest], halves[0]])
        self._radius = np.concatenate([radius[rest], halves[1]])
        self._looseness = np.concatenate([looseness[rest], half_looseness])
        self.n_seen += len(found)


def _halves(center: Floats, radius: Floats, side: Positions, to_the_ends: bool) -> tuple[Floats, Floats]:
    """Return both halves of each box along one of its sides, or its two faces for a convex sum."""
    rows = np.arange(len(center))
    left, right, smaller = center.copy(), center.copy(), radius.copy()
    smaller[rows, side] = 0.0 if to_the_ends else radius[rows, side] / 2
    shift = radius[rows, side] if to_the_ends else radius[rows, side] / 2
    left[rows, side] -= shift
    right[rows, side] += shift
    return np.concatenate([left, right]), np.concatenate([smaller, smaller])
