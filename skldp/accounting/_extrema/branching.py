r"""Maximum of a sum of S-shaped functions by branching on the answers' arguments.

A node restricts every argument :math:`v_i = w_i s + c_i` to an interval. For any multipliers :math:`\lambda`

.. math:: \max_s \sum_i m_i g_i(v_i) \le \sum_i m_i \max_{l_i \le v \le u_i} (g_i(v) - \lambda_i v)
          + \max_{s \in [-1, 1]^d} \sum_i m_i \lambda_i (w_i s + c_i),

and both maxima have closed forms. So the bound holds whatever the multipliers are: a linear program over majorants of
the answers proposes them, and no bound rests on its tolerances. At its optimum the bound is the maximum
of the least concave majorants, the best that a node's intervals can give. The work depends on the number of answers
more than on the number of features.
"""

import heapq
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from skldp.accounting._extrema.certificate import Tree
from skldp.accounting._extrema.sampled_law import Floats
from skldp.accounting._extrema.sigmoid_sum import SigmoidSum

__all__ = [
    "box_bounds",
    "dual_bound",
    "maximum_by_branching",
    "maximum_by_dual_branching",
    "maximum_of_concave",
    "tangent_bound",
]


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


_BATCH_ELEMENTS = 1 << 16


def box_bounds(problem: SigmoidSum, center: Floats, radius: Floats) -> tuple[Floats, Floats, Floats]:
    """Upper bounds of the sum over boxes, the points where the majorants peak, and how much each side loosens them.

    Parameters
    ----------
    problem : SigmoidSum
    center, radius : ndarray of shape (k, d)

    Returns
    -------
    bounds : ndarray of shape (k,)
    peaks : ndarray of shape (k, d)
    looseness : ndarray of shape (k, d)
    """
    middle = center @ problem.weights.T + problem.offset
    spread = radius @ np.abs(problem.weights).T
    low, high = middle - spread, middle + spread
    slope = problem.envelope_slope(low, high, middle)
    intercept = problem.conjugate(slope, low, high)
    tilt = (slope * problem.count) @ problem.weights
    bounds = (intercept + slope * middle) @ problem.count + (np.abs(tilt) * radius).sum(axis=1) + problem.slack(slope)
    peaks = center + np.where(tilt >= 0, radius, -radius)
    gap = problem.count * (intercept + slope * middle - problem.value(middle))
    chord = problem.count * np.maximum(
        np.abs(intercept + slope * low - problem.value(low)), np.abs(intercept + slope * high - problem.value(high))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(spread > 0, np.maximum(gap, chord) / spread**2, 0.0)
    looseness = (share @ problem.weights**2) * radius**2
    return bounds, peaks, looseness


def maximum_by_branching(
    problem: SigmoidSum,
    *,
    tol: float,
    start: tuple[float, Floats],
    max_nodes: int,
    at_most: float = -np.inf,
    above: float = np.inf,
    to_the_ends: bool = False,
) -> tuple[float, float, Floats, Tree]:
    """Best-first branch and bound on the box [-1, 1]^d.

    Parameters
    ----------
    problem : SigmoidSum
    tol : float
    start : tuple (value, point)
        A point and the sum there.
    max_nodes : int
        Boxes looked at before giving up with a valid, wider interval.
    at_most, above : float
        Stop as soon as the maximum is known to be at most the first, or above the second.
    to_the_ends : bool, default=False
        Cut boxes into opposite faces, which is enough where the sum is convex.

    Returns
    -------
    lower, upper : float
        The sum at `point`, and a bound on the maximum.
    point : ndarray of shape (d,)
    tree : Tree
        How the box was cut, at places in [-1, 1].
    """
    n_features = problem.weights.shape[1]
    lower, point = start
    tree, nodes = Tree(n_features, to_the_ends=to_the_ends), np.zeros(1, dtype=np.intp)
    center = np.zeros((1, n_features))
    radius = (problem.weights != 0).any(axis=0).astype(np.float64)[None, :]
    bounds, _, looseness = box_bounds(problem, center, radius)
    # What a discarded box may still hold: it bounds the maximum together with the boxes that are left.
    discarded = -np.inf
    batch = max(64, _BATCH_ELEMENTS // max(1, len(problem.weights)))
    seen = 1
    while True:
        upper = max(lower, discarded, float(bounds.max(initial=-np.inf)))
        if upper - lower <= tol or upper <= at_most or lower > above or seen >= max_nodes or not bounds.size:
            return lower, upper, point, tree
        order = np.argsort(-bounds, kind="stable")
        chosen, rest = order[:batch], order[batch:]
        side = np.where(radius[chosen] > 0, looseness[chosen] + 1e-300, -1.0).argmax(axis=1)
        first = tree.split(nodes[chosen], side, center[chosen, side])
        nodes = np.concatenate([nodes[rest], first, first + 1])
        child_center, child_radius = _halves(center[chosen], radius[chosen], side, to_the_ends)
        child_bounds, peaks, child_looseness = box_bounds(problem, child_center, child_radius)
        seen += len(child_bounds)
        for points in (peaks,) if to_the_ends else (child_center, peaks):
            totals = problem.total(points)
            if totals.max() > lower:
                lower, point = float(totals.max()), points[totals.argmax()]
        bounds = np.concatenate([bounds[rest], child_bounds])
        # A box whose majorant the point already reaches within tol can only confirm it.
        keep = bounds > lower + tol
        discarded = max(discarded, float(bounds[~keep].max(initial=-np.inf)))
        center = np.concatenate([center[rest], child_center])[keep]
        radius = np.concatenate([radius[rest], child_radius])[keep]
        looseness = np.concatenate([looseness[rest], child_looseness])[keep]
        bounds, nodes = bounds[keep], nodes[keep]


def _halves(center: Floats, radius: Floats, side: npt.NDArray[np.intp], to_the_ends: bool) -> tuple[Floats, Floats]:
    """Both halves of each box along one of its sides; its two ends for a convex sum."""
    rows = np.arange(len(center))
    left, right, smaller = center.copy(), center.copy(), radius.copy()
    smaller[rows, side] = 0.0 if to_the_ends else radius[rows, side] / 2
    shift = radius[rows, side] if to_the_ends else radius[rows, side] / 2
    left[rows, side] -= shift
    right[rows, side] += shift
    return np.concatenate([left, right]), np.concatenate([smaller, smaller])


_ROOT_ROUNDS = 12
_ROUNDS = 4
# What leaves its interval by a thousandth of its range costs a tenth of all that the answers can give.
_STEEPNESS = 100.0


def dual_bound(problem: SigmoidSum, multipliers: Floats, low: Floats, high: Floats) -> Floats:
    """Upper bounds of the sum over nodes, from any multipliers.

    Parameters
    ----------
    problem : SigmoidSum
    multipliers, low, high : ndarray of shape (k, n)

    Returns
    -------
    ndarray of shape (k,)
    """
    height = problem.conjugate(multipliers, low, high)
    scaled = multipliers * problem.count
    tilt = np.abs(scaled @ problem.weights).sum(axis=1)
    bounds: Floats = height @ problem.count + scaled @ problem.offset + tilt + problem.slack(multipliers)
    return bounds


def maximum_by_dual_branching(
    problem: SigmoidSum,
    *,
    tol: float,
    start: tuple[float, Floats],
    max_nodes: int,
    at_most: float = -np.inf,
    above: float = np.inf,
) -> tuple[float, float, Floats, Tree, Floats]:
    """Best-first branch and bound over intervals of the arguments.

    Parameters and returned values are those of :func:`skldp.accounting._extrema.branching.maximum_by_branching`;
    the tree cuts arguments (of the law: unflipped), and what comes last are its nodes' multipliers, of shape
    (n_nodes, n).
    """
    lower, point = start
    tree, multipliers = Tree(problem.weights.shape[1]), {0: np.zeros(len(problem.count))}
    low, high = problem.low, problem.high
    tangent = problem.tangent_point(low, high)
    parts = low + np.array([0.0, 0.5, 1.0])[:, None] * (high - low)
    cuts = (np.tile(np.arange(len(low)), 3), problem.envelope_slope(low, high, parts, tangent).ravel())
    node = _Node(low, high, tangent, np.inf, point, cuts, multipliers[0], 0)
    node = _bounded(problem, node, max(at_most, lower + tol), _ROOT_ROUNDS)
    multipliers[0] = node.multipliers
    order = count()
    nodes = [(-node.bound, next(order), node)]
    # What a discarded node may still hold: it bounds the maximum together with the nodes that are left.
    discarded = -np.inf
    seen = 1
    while True:
        upper = max(lower, discarded, -nodes[0][0] if nodes else -np.inf)
        if not nodes or upper - lower <= tol or upper <= at_most or lower > above or seen >= max_nodes:
            return lower, upper, point, tree, np.array([multipliers[i] for i in range(tree.size)])
        node = heapq.heappop(nodes)[2]
        value = float(problem.total(node.point[None, :])[0])
        if value > lower:
            lower, point = value, node.point
        goal = max(at_most, lower + tol)
        for half in _cut_one_answer(problem, node, tree):
            child = _bounded(problem, half, goal, _ROUNDS)
            multipliers[child.number] = child.multipliers
            seen += 1
            if child.bound > goal:
                heapq.heappush(nodes, (-child.bound, next(order), child))
            else:
                discarded = max(discarded, child.bound)


@dataclass(frozen=True)
class _Node:
    """Intervals of the arguments, where their majorants turn, a bound of the sum, and where the relaxation peaks.

    `cuts` are the majorants that hold it there: the index of an answer and a slope each. `multipliers` give the bound,
    and `number` is the node's position in the tree.
    """

    low: Floats
    high: Floats
    tangent: Floats
    bound: float
    point: Floats
    cuts: tuple[npt.NDArray[np.intp], Floats]
    multipliers: Floats
    number: int


def _bounded(problem: SigmoidSum, node: _Node, goal: float, n_rounds: int) -> _Node:
    """Tighten a node's bound by cutting planes, until it is at most `goal` or about as good as it gets."""
    (which, slopes), low, high, point = node.cuts, node.low, node.high, node.point
    best, proof = np.inf, node.multipliers
    for _ in range(n_rounds):
        found = _linear_program(problem, low, high, which, slopes)
        if found is None:
            break
        peak, height, which, slopes, duals = found
        multipliers = np.bincount(which, duals * slopes, len(low)) / problem.count
        bound = float(dual_bound(problem, multipliers[None, :], low[None, :], high[None, :])[0])
        if bound < best:
            best, point, proof = bound, peak, multipliers
        held = duals > 1e-9
        which, slopes = which[held], slopes[held]
        if best <= goal:
            break
        slope, majorant = _majorants(problem, node, peak)
        excess = height - majorant
        left = float(height @ problem.count) - goal
        if excess @ problem.count < 0.1 * max(left, 1e-6):
            break
        new = np.flatnonzero(excess > 1e-6)
        which, slopes = np.concatenate([which, new]), np.concatenate([slopes, slope[new]])
    if best < node.bound:
        node = replace(node, bound=best, multipliers=proof)
    return replace(node, point=point, cuts=(which, slopes))


def _majorants(problem: SigmoidSum, node: _Node, point: Floats) -> tuple[Floats, Floats]:
    """Slope and value of each answer's least concave majorant at a point, or at the end of its interval beyond."""
    at = np.clip(problem.weights @ point + problem.offset, node.low, node.high)
    slope = problem.envelope_slope(node.low, node.high, at, node.tangent)
    return slope, problem.conjugate(slope, node.low, node.high) + slope * at


def _linear_program(
    problem: SigmoidSum, low: Floats, high: Floats, which: npt.NDArray[np.intp], slopes: Floats
) -> tuple[Floats, Floats, npt.NDArray[np.intp], Floats, Floats] | None:
    """Maximise the sum of the least of each answer's majorants.

    A majorant of great slope at either end of an interval keeps the argument inside, so that every node has a
    solution. Returned are the point, the majorants there, all cuts (answers and slopes) and their duals; None where
    the solver finds nothing.
    """
    n_answers, n_features = problem.weights.shape
    steep = _STEEPNESS * (problem.count @ problem.epsilon) / np.maximum(problem.high - problem.low, 1e-6)
    ends = np.concatenate([np.flatnonzero(low > problem.low), np.flatnonzero(high < problem.high)])
    signs = np.where(np.arange(len(ends)) < np.count_nonzero(low > problem.low), 1.0, -1.0)
    rows, lines = np.concatenate([which, ends]), np.concatenate([slopes, signs * steep[ends]])
    part = problem.part(rows)
    matrix = np.zeros((len(rows), n_features + n_answers))
    matrix[:, :n_features] = -lines[:, None] * part.weights
    matrix[np.arange(len(rows)), n_features + rows] = 1.0
    found = linprog(
        np.concatenate([np.zeros(n_features), -problem.count]),
        A_ub=matrix,
        b_ub=lines * part.offset + part.conjugate(lines, low[rows], high[rows]),
        bounds=np.array([[-1.0, 1.0]] * n_features + [[-np.inf, np.inf]] * n_answers),
        method="highs-ds",
        options={"presolve": False},
    )
    if found.x is None or not np.isfinite(found.x).all():
        return None
    return np.clip(found.x[:n_features], -1.0, 1.0), found.x[n_features:], rows, lines, -found.ineqlin.marginals


def _cut_one_answer(problem: SigmoidSum, node: _Node, tree: Tree) -> list[_Node]:
    """Cut the answer whose majorant is loosest where the relaxation peaks.

    A ramp is cut at its convex kink: on either side it is concave, or nearly straight. Anything else is cut in the
    middle of its majorant's straight piece; a cut at the peak itself leaves one side about as loose as before.
    """
    at = np.clip(problem.weights @ node.point + problem.offset, node.low, node.high)
    looseness = problem.count * (_majorants(problem, node, node.point)[1] - problem.value(at))
    i = int(looseness.argmax())
    start, end, turn = node.low[i], node.high[i], node.tangent[i]
    kink = -1.0 if problem.flipped else 0.0
    snaps = not problem.logistic[i] and start < kink < end
    cut = kink if snaps else (start + (turn if turn > start else end)) / 2
    low, high = np.tile(node.low, (2, 1)), np.tile(node.high, (2, 1))
    high[0, i] = low[1, i] = cut
    tangents = problem.tangent_point(low, high)
    slopes = problem.envelope_slope(low, high, np.clip(at, low, high), tangents)
    which = np.concatenate([node.cuts[0], np.arange(len(at))])
    # A flipped problem's arguments are the negative of those that the tree speaks of.
    number = int(tree.split(node.number, tree.n_features + i, -cut if problem.flipped else cut)[0])
    return [
        replace(
            node,
            low=low[half],
            high=high[half],
            tangent=tangents[half],
            cuts=(which, np.concatenate([node.cuts[1], slopes[half]])),
            number=number + (1 - half if problem.flipped else half),
        )
        for half in (0, 1)
    ]
