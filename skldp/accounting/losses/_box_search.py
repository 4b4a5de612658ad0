"""Search for one side of a loss over a box: at its vertices, by Newton steps if the sum is concave, else by branching.

The bound on a part of the box replaces every function by its least concave majorant over the range of the argument.
"""

import math

import numpy as np

from skldp._arrays import Floats, Positions
from skldp.accounting.losses._ascent import ascended, scattered
from skldp.accounting.losses._certificate import Proof, Proposal, Tree, peaks_at_vertices, vertex_maximum
from skldp.accounting.losses._region import middle_and_half
from skldp.accounting.losses._relaxation import DualBranching
from skldp.accounting.losses._sampled_law import AnswerLaw
from skldp.accounting.losses._sigmoid_sum import SigmoidSum, sigmoid_sum

# Up to this size (about 0.1 s), the vertex table is the fastest exact minimum.
_MOST_VERTEX_EVALUATIONS = 2.0**23
# Branching on the box is faster than branching on the answers with at most this many features and at least this many
# answers per feature. It is slower if the maximum is a face or a kink across the box.
_FEW_FEATURES = 4
_FEW_ANSWERS = 3
_FIRST_BOX_NODES = 10_000
_MAX_BOX_NODES = 200_000
_MAX_DUAL_NODES = 20_000
_N_CLIMBS = 8
_MAX_CLIMB_STEPS = 20


def tangent_bound(problem: SigmoidSum, point: Floats) -> tuple[float, float]:
    """Return the value at a point, and the upper bound of a concave sum from the tangent plane there."""
    value = float(problem.total(point[None, :])[0])
    gradient = problem.gradient(point)
    return value, value + float(np.abs(gradient).sum() - gradient @ point)


def maximum_of_concave(
    problem: SigmoidSum, *, tol: float, start: Floats | None = None, max_iter: int = 100
) -> tuple[float, float, Floats, Floats]:
    """Maximize by projected Newton steps until the tangent bound is within `tol` of the value."""
    # Shapes: start (d,); returns point (d,), slopes (n,).
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
    """Return upper bounds of the sum over boxes, the maxima of the majorants, and the looseness due to each side."""
    # Shapes: center, radius (k, d); returns bounds (k,), peaks (k, d), looseness (k, d).
    middle = center @ problem.weights.T + problem.offset
    spread = radius @ np.abs(problem.weights).T
    slope, intercept, share = problem.majorants(middle - spread, middle + spread)
    tilt = (slope * problem.count) @ problem.weights
    bounds = (intercept + slope * middle) @ problem.count + (np.abs(tilt) * radius).sum(axis=1) + problem.slack(slope)
    peaks = center + np.where(tilt >= 0, radius, -radius)
    looseness = (share @ problem.weights**2) * radius**2
    return bounds, peaks, looseness


class BoxBranching:
    """Resumable best-first branch and bound on the box [-1, 1]^d. Shapes: `point` (d,)."""

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
        halves = _halves_of(center[chosen], radius[chosen], side, self._to_the_ends)
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


def _halves_of(center: Floats, radius: Floats, side: Positions, to_the_ends: bool) -> tuple[Floats, Floats]:
    """Return both halves of each box along one of its sides, or its two faces for a convex sum."""
    rows = np.arange(len(center))
    left, right, smaller = center.copy(), center.copy(), radius.copy()
    smaller[rows, side] = 0.0 if to_the_ends else radius[rows, side] / 2
    shift = radius[rows, side] if to_the_ends else radius[rows, side] / 2
    left[rows, side] -= shift
    right[rows, side] += shift
    return np.concatenate([left, right]), np.concatenate([smaller, smaller])


class BoxSearch:
    """Search for one side of the loss, a maximum over the box, with `lower`, `upper` and a `point`."""

    # `upper` is not proved. Only the independent check of `proof` gives a bound.

    def __init__(self, law: AnswerLaw, sign: int) -> None:
        self.law, self.sign = law, sign
        problem = sigmoid_sum(law)
        self.problem = problem if sign > 0 else problem.reversed()
        problem = self.problem
        self._to_the_ends = peaks_at_vertices(law, sign)
        n_moving = int((problem.weights != 0).any(axis=0).sum())
        self._by_vertices = self._to_the_ends and len(law) * 2.0**n_moving <= _MOST_VERTEX_EVALUATIONS
        self._boxes: BoxBranching | None = None
        self._answers: DualBranching | None = None
        # Methods with their node limits, and the method with the best upper bound.
        self._methods: list[tuple[bool, int]] = []
        self._best: BoxBranching | DualBranching | None = None
        # Slopes of the answers for the complete box.
        self._slopes = np.zeros((1, len(law)))
        self.upper = float(problem.count @ problem.value(problem.high))
        self.point = np.zeros(problem.weights.shape[1])
        self.lower = float(problem.total(self.point[None, :])[0])
        if self._by_vertices:
            self.upper, vertex = vertex_maximum(law, sign)
            point = np.where(vertex > law.box[0], 1.0, -1.0)
            self._keep(float(problem.total(point[None, :])[0]), math.inf, point)
        elif problem.is_concave:
            lower, upper, point, slopes = maximum_of_concave(problem, tol=1e-7, start=self.point)
            if upper < self.upper:
                self._slopes = slopes[None, :]
            self._keep(lower, upper, point)
        else:
            self._climb()
            self._methods = [(False, _MAX_DUAL_NODES)]
            if (n_moving <= _FEW_FEATURES and len(law) > _FEW_ANSWERS * n_moving) or self._to_the_ends:
                self._methods = [(True, min(_FIRST_BOX_NODES, _MAX_BOX_NODES)), *self._methods, (True, _MAX_BOX_NODES)]

    @property
    def is_exhausted(self) -> bool:
        """True if the maximum is known or a limit of nodes was reached."""
        return not self._methods or self.upper <= self.lower

    def step(self, goal: float) -> None:
        """Examine more nodes; no node needs a bound below the goal."""
        on_boxes, max_nodes = self._methods[0]
        start, goal = (self.lower, self.point), max(goal, self.lower)
        method: BoxBranching | DualBranching | None = self._boxes if on_boxes else self._answers
        if method is not None:
            method.step(goal)
        elif on_boxes:
            method = self._boxes = BoxBranching(self.problem, start, to_the_ends=self._to_the_ends)
        else:
            method = self._answers = DualBranching(self.problem, start, goal)
        self._keep(method.lower, method.upper, method.point, method)
        if method.n_seen >= max_nodes:
            del self._methods[0]

    @property
    def end(self) -> Floats:
        """Point of the lower bound, as a record."""
        middle, half = middle_and_half(self.law.box)
        return np.clip(middle + half * self.point, *self.law.box)

    @property
    def proof(self) -> Proof:
        """Result of the search, for the independent check."""
        if self._by_vertices:
            return Proof(None, self._majorants)
        if isinstance(self._best, DualBranching):
            return Proof(self._best.tree, self._recorded(self._best.multipliers))
        if isinstance(self._best, BoxBranching):
            middle, half = middle_and_half(self.law.box)
            return Proof(self._best.tree.scaled(middle, half), self._majorants)
        return Proof(Tree(self.law.box.shape[1]), self._recorded(self._slopes))

    def _recorded(self, slopes: Floats) -> Proposal:
        # The arguments of the problem are those of the law, or their negatives.
        return lambda leaves, low, high: self.sign * slopes[leaves]

    def _majorants(self, leaves: Positions, low: Floats, high: Floats) -> Floats:
        low, high = (low, high) if self.sign > 0 else (-high, -low)
        return self.sign * self.problem.envelope_slope(low, high, (low + high) / 2)

    def _keep(
        self, lower: float, upper: float, point: Floats, method: BoxBranching | DualBranching | None = None
    ) -> None:
        if upper < self.upper:
            self.upper, self._best = upper, method
        if lower > self.lower:
            self.lower, self.point = lower, point

    def _climb(self) -> None:
        """Ascend from the best of points scattered over the box and of nearby corners."""
        points = scattered(self.problem.weights.shape[1])
        order = np.argsort(-self.problem.total(points), kind="stable")[:_N_CLIMBS]
        counts = np.tile(self.problem.count, (len(order), 1))
        points, values = ascended(self.problem, counts, points[order], _MAX_CLIMB_STEPS)
        self._keep(float(values.max()), math.inf, points[values.argmax()])
