"""Maximum of a sum of S-shaped functions by branching on the box, thousands of boxes at a time.

A box's bound replaces every g by a majorant that is affine in x (one slope per answer, its intercept by
:meth:`~skldp.accounting.extrema.sigmoid_sum.SigmoidSum.conjugate`), and maximises their sum in closed form. The gap
shrinks with the square of the box's width, so that few dimensions close fast. A convex sum peaks at a vertex: its
boxes are cut into opposite faces, which makes even thirty dimensions few.
"""

import numpy as np
import numpy.typing as npt

from skldp.accounting.extrema.certificate import Tree
from skldp.accounting.extrema.sigmoid_sum import SigmoidSum

__all__ = ["box_bounds", "maximum_by_branching"]

Floats = npt.NDArray[np.float64]

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
