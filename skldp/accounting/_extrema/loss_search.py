"""Both sides of a loss over a box: which search narrows each of them, and the proof that it hands over."""

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from skldp.accounting._extrema.branching import maximum_by_branching, maximum_by_dual_branching, maximum_of_concave
from skldp.accounting._extrema.certificate import Proof, Tree, peaks_at_vertices, vertex_maximum
from skldp.accounting._extrema.sampled_law import SampledLaw, middle_and_half
from skldp.accounting._extrema.sigmoid_sum import sigmoid_sum

__all__ = ["Search", "enclose"]

Floats = npt.NDArray[np.float64]

# The vertex table is the fastest exact minimum up to here (about 0.1 s).
_MOST_VERTEX_EVALUATIONS = 2.0**23
# Branching on the box beats branching on the answers up to so many features, unless the maximum is a whole face or
# a kink that lies across the box: then it meets more and more boxes, but cuts few answers.
_FEW_FEATURES = 4
_FIRST_BOX_NODES = 10_000
_MAX_BOX_NODES = 200_000
_MAX_DUAL_NODES = 2_000
_N_SCATTERED = 512
# Whether on boxes, and for how many nodes.
_WAYS = (
    (True, lambda: min(_FIRST_BOX_NODES, _MAX_BOX_NODES)),
    (False, lambda: _MAX_DUAL_NODES),
    (True, lambda: _MAX_BOX_NODES),
)


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
    """One side of the loss: what is known of a maximum over the box, as `lower`, `upper` and a `point`.

    `upper` is what the search believes: only what the independent check makes of `proof` is a bound.

    Parameters
    ----------
    law : SampledLaw
    sign : {1, -1}
        1 for the maximum of the log-likelihood, -1 for minus its minimum.
    """

    def __init__(self, law: SampledLaw, sign: int) -> None:
        self.law, self.sign = law, sign
        problem = sigmoid_sum(law)
        self.problem = problem if sign > 0 else problem.reversed()
        problem = self.problem
        self.is_concave = problem.is_concave
        self.to_the_ends = peaks_at_vertices(law, sign)
        n_moving = int((problem.weights != 0).any(axis=0).sum())
        self.by_vertices = self.to_the_ends and len(law) * 2.0**n_moving <= _MOST_VERTEX_EVALUATIONS
        self.is_easy = self.is_concave or self.by_vertices
        self.is_exhausted = False
        self._on_boxes = n_moving <= _FEW_FEATURES or self.to_the_ends
        self._tree = Tree(law.box.shape[1])
        # Slopes for the nodes of the tree; None where they are worked out anew for each leaf.
        self._slopes: Floats | None = np.zeros((1, len(law)))
        self.upper = float(problem.count @ problem.value(problem.high))
        self.point = np.zeros(problem.weights.shape[1])
        self.lower = float(problem.total(self.point[None, :])[0])
        if self.by_vertices:
            self.upper, vertex = vertex_maximum(law, sign)
            point = np.where(vertex > law.box[0], 1.0, -1.0)
            self._keep(float(problem.total(point[None, :])[0]), math.inf, point)
        elif self.is_concave:
            lower, upper, point, slopes = maximum_of_concave(problem, tol=1e-7, start=self.point)
            self._keep(lower, upper, point, self._tree, slopes[None, :])
        else:
            self._climb()

    def narrow(self, tol: float, at_most: float, above: float) -> None:
        """Search until the bounds meet within tol, or the maximum is known to be `at_most` or `above`.

        A search that has once reached its limit of nodes would reach it again, and is not repeated.
        """
        if self.is_easy or self.is_exhausted:
            return
        for on_boxes, max_nodes in _WAYS if self._on_boxes else _WAYS[1:2]:
            if self._has_reached(tol, at_most, above):
                return
            start, slopes = (self.lower, self.point), None
            if on_boxes:
                lower, upper, point, tree = maximum_by_branching(
                    self.problem,
                    tol=tol,
                    start=start,
                    max_nodes=max_nodes(),
                    at_most=at_most,
                    above=above,
                    to_the_ends=self.to_the_ends,
                )
                middle, half = middle_and_half(self.law.box)
                tree.cut[:] = middle[tree.axis] + half[tree.axis] * tree.cut
            else:
                lower, upper, point, tree, slopes = maximum_by_dual_branching(
                    self.problem, tol=tol, start=start, max_nodes=max_nodes(), at_most=at_most, above=above
                )
            self._keep(lower, upper, point, tree, slopes)
        self.is_exhausted = not self._has_reached(tol, at_most, above)

    @property
    def proof(self) -> Proof:
        """What the search has found, for the independent check to judge."""
        return Proof(None if self.by_vertices else self._tree, self._proposed)

    def _proposed(self, leaves: npt.NDArray[np.intp], low: Floats, high: Floats) -> Floats:
        # The problem's arguments are the law's, or minus them.
        if self._slopes is not None:
            return self.sign * self._slopes[leaves]
        low, high = (low, high) if self.sign > 0 else (-high, -low)
        return self.sign * self.problem.envelope_slope(low, high, (low + high) / 2)

    def _has_reached(self, tol: float, at_most: float, above: float) -> bool:
        return self.upper - self.lower <= tol or self.upper <= at_most or self.lower > above

    def _keep(
        self, lower: float, upper: float, point: Floats, tree: Tree | None = None, slopes: Floats | None = None
    ) -> None:
        if upper < self.upper and tree is not None:
            self.upper, self._tree, self._slopes = upper, tree, slopes
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
