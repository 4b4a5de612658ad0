"""Both sides of a loss over a box, and which certified search narrows each of them."""

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from skldp.accounting.extrema.branch_and_bound import maximum_by_branching
from skldp.accounting.extrema.convex import maximum_of_concave, maximum_of_convex, n_vertex_evaluations
from skldp.accounting.extrema.dual_branching import maximum_by_dual_branching
from skldp.accounting.extrema.sigmoid_sum import SigmoidSum

__all__ = ["Search", "enclose"]

Floats = npt.NDArray[np.float64]

# The vertex table is the fastest exact minimum up to here (about 0.1 s).
_MOST_VERTEX_EVALUATIONS = 2.0**23
# Branching on the box beats branching on the answers up to so many features.
_FEW_FEATURES = 4
_MAX_BOX_NODES = 200_000
_MAX_DUAL_NODES = 2_000
_N_SCATTERED = 512


def enclose(high: "Search", low: "Search", tol: float, at_most: float, above: float) -> None:
    """Narrow both searches until their sum is known within tol, at most `at_most`, or above `above`.

    The easier side goes first, so that the other one knows how much is left to prove.
    """
    first, second = (low, high) if low.is_easy and not high.is_easy else (high, low)
    for share in (0.5, 0.1, 0.0):
        if high.lower + low.lower > above:
            return
        for one, other in ((first, second), (second, first)):
            total = high.upper + low.upper
            if total <= at_most or total - high.lower - low.lower <= tol:
                return
            # Prove no more than is needed: leave the other side a share of the room.
            room = at_most - one.lower - other.lower
            goal = at_most - other.upper if one is second else one.lower + share * room
            one.narrow(tol / 2, goal if share or one is second else -math.inf, above - other.lower)


def _scattered(n_points: int, n_features: int) -> Floats:
    """Points spread evenly over [-1, 1]^d: a Weyl sequence, the same every time."""
    golden = 1.0
    for _ in range(30):
        golden = (1 + golden) ** (1 / (n_features + 1))
    steps = golden ** -np.arange(1.0, n_features + 1)
    return 2.0 * (np.arange(1.0, n_points + 1)[:, None] * steps % 1.0) - 1.0


class Search:
    """One side of the loss: what is known of a maximum over the box, as `lower`, `upper` and a `point`."""

    def __init__(self, problem: SigmoidSum) -> None:
        self.problem = problem
        self.is_concave = problem.is_concave
        self.by_vertices = problem.is_convex and n_vertex_evaluations(problem) <= _MOST_VERTEX_EVALUATIONS
        self.is_easy = self.is_concave or self.by_vertices
        self.is_exhausted = False
        self.upper = float(problem.count @ problem.value(problem.high))
        self.point = np.zeros(problem.weights.shape[1])
        self.lower = float(problem.total(self.point[None, :])[0])
        if self.by_vertices:
            self.lower, self.point = maximum_of_convex(problem)
            self.upper = self.lower
        elif self.is_concave:
            self._keep(*maximum_of_concave(problem, tol=1e-7, start=self.point))
        else:
            self._climb()

    def narrow(self, tol: float, at_most: float, above: float) -> None:
        """Search until the bounds meet within tol, or the maximum is known to be `at_most` or `above`.

        A search that has once reached its limit of nodes would reach it again, and is not repeated.
        """
        if self.is_easy or self.is_exhausted or self._has_reached(tol, at_most, above):
            return
        goals = {"tol": tol, "at_most": at_most, "above": above}
        start = (self.lower, self.point)
        moving = int((self.problem.weights != 0).any(axis=0).sum())
        if moving > _FEW_FEATURES and not self.problem.is_convex:
            self._keep(*maximum_by_dual_branching(self.problem, start=start, max_nodes=_MAX_DUAL_NODES, **goals))
        else:
            self._keep(*maximum_by_branching(self.problem, start=start, max_nodes=_MAX_BOX_NODES, **goals))
        self.is_exhausted = not self._has_reached(tol, at_most, above)

    def _has_reached(self, tol: float, at_most: float, above: float) -> bool:
        return self.upper - self.lower <= tol or self.upper <= at_most or self.lower > above

    def _keep(self, lower: float, upper: float, point: Floats) -> None:
        self.upper = min(self.upper, upper)
        if lower > self.lower:
            self.lower, self.point = lower, point

    def _climb(self) -> None:
        """Local ascent from the best of some points scattered over the box and of the corners near them."""
        scattered = _scattered(_N_SCATTERED, self.problem.weights.shape[1])
        points = np.concatenate([scattered, np.sign(scattered)])
        order = np.argsort(-self.problem.total(points), kind="stable")
        limits = [(-1.0, 1.0)] * points.shape[1]
        for start in points[order[:4]]:
            found = minimize(
                lambda s: (-float(self.problem.total(s[None, :])[0]), -self.problem.gradient(s)),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=limits,
            )
            point = np.clip(found.x, -1.0, 1.0)
            self._keep(float(self.problem.total(point[None, :])[0]), math.inf, point)
