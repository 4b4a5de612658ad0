r"""Maximum of a sum of S-shaped functions by branching on the answers' arguments.

A node restricts every argument :math:`v_i = w_i s + c_i` to an interval. For any multipliers :math:`\lambda`

.. math:: \max_s \sum_i m_i g_i(v_i) \le \sum_i m_i \max_{l_i \le v \le u_i} (g_i(v) - \lambda_i v)
          + \max_{s \in [-1, 1]^d} \sum_i m_i \lambda_i (w_i s + c_i),

and both maxima have closed forms. So the bound holds whatever the multipliers are:
:mod:`~skldp.accounting._extrema.relaxation` proposes them, for many nodes at once, and no bound rests on its accuracy.
At its optimum the bound is the maximum of the least concave majorants, the best that a node's intervals can give. The
work depends on the number of answers more than on the number of features.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.certificate import Tree
from skldp.accounting._extrema.relaxation import dual_bound, relaxed
from skldp.accounting._extrema.sampled_law import Floats
from skldp.accounting._extrema.sigmoid_sum import SigmoidSum

__all__ = ["DualBranching", "Roots"]

# Nodes that are cut together: fewer would waste most of a step of numpy, more would cut what need not be.
_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Roots:
    """Where a search starts: boxes of one problem that differ in what whole columns add to the arguments.

    Parameters
    ----------
    tree : Tree
        In which the boxes are leaves.
    nodes : ndarray of int, shape (r,)
        Which.
    offsets : ndarray of shape (r, n)
        In place of the problem's.
    multipliers : ndarray of shape (n,)
        What bounds each of them until it is looked at by itself.
    """

    tree: Tree
    nodes: npt.NDArray[np.intp]
    offsets: Floats
    multipliers: Floats


class DualBranching:
    """A search that can be taken up again, best nodes first.

    Parameters
    ----------
    problem : SigmoidSum
    start : tuple (value, point)
        A point of [-1, 1]^d and the sum there.
    goal : float
        No node needs a bound below this.
    roots : Roots, default=None
        None is the problem's own box, which is looked at at once.

    Attributes
    ----------
    lower, upper : float
        The sum at `point`, and a bound on the maximum.
    point : ndarray of shape (d,)
    root : int
        Which of the roots the point is in; -1 where it is the start, of which nothing is known.
    tree : Tree
        How the arguments were cut (of the law: unflipped).
    multipliers : ndarray of shape (n_nodes, n)
        Those of the tree's nodes.
    n_seen : int
        Nodes so far.
    """

    def __init__(
        self, problem: SigmoidSum, start: tuple[float, Floats], goal: float = -np.inf, roots: Roots | None = None
    ) -> None:
        self._problem = problem
        self.lower, self.point = start
        n, d = problem.weights.shape
        first = roots or Roots(Tree(d), np.zeros(1, dtype=np.intp), problem.offset[None, :], np.zeros(n))
        self.tree, self.root, self.n_seen = first.tree, -1, 0
        self._offsets, at = first.offsets, first.nodes
        # By position in the tree, in rows that are made as they are needed.
        size = max(64, self.tree.size)
        self._bounds, self._multipliers = np.full(size, -np.inf), np.zeros((size, n))
        self._low, self._high, self._tangent = (np.zeros((size, n)) for _ in range(3))
        self._points, self._root = np.zeros((size, d)), np.zeros(size, dtype=np.intp)
        # Nodes that are bounded by what others have found.
        self._is_rough = np.zeros(size, dtype=bool)
        low, high = self._offsets - problem.spread, self._offsets + problem.spread
        self._low[at], self._high[at], self._root[at] = low, high, np.arange(len(at))
        if roots is None:
            self._tangent[at] = problem.tangent_point(low, high)
            self._points[0] = self.point
            self._enter(at, goal)
            return
        self._multipliers[at], self._is_rough[at] = first.multipliers, True
        self._bounds[at] = dual_bound(problem, self._multipliers[at], low, high, self._offsets)

    @property
    def upper(self) -> float:
        """A bound on the maximum."""
        return max(self.lower, float(self._bounds.max()))

    @property
    def multipliers(self) -> Floats:
        """Those of each node of the tree."""
        return self._multipliers[: self.tree.size]

    def step(self, goal: float) -> None:
        """Look at the nodes with the largest bounds above a goal, or cut them if that has been done."""
        goal = max(goal, self.lower)
        best = np.argsort(-self._bounds[: self.tree.size], kind="stable")[:_AT_ONCE]
        nodes = best[self._bounds[best] > goal]
        rough = self._is_rough[nodes]
        fresh = nodes[rough]
        if len(fresh):
            self._is_rough[fresh] = False
            self._tangent[fresh] = self._problem.tangent_point(self._low[fresh], self._high[fresh])
        if not rough.all():
            fresh = np.concatenate([fresh, self._halves(nodes[~rough])])
        if len(fresh):
            self._enter(fresh, goal)

    def _halves(self, nodes: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Cut nodes in two."""
        problem = self._problem
        which, cut = self._cuts(nodes)
        # A flipped problem's arguments are the negative of those that the tree speaks of.
        flipped = problem.flipped
        first = self.tree.split(nodes, self.tree.n_features + which, -cut if flipped else cut)
        lower_half, upper_half = (first + 1, first) if flipped else (first, first + 1)
        self._make_room()
        children = np.concatenate([lower_half, upper_half])
        for values in (self._low, self._high, self._tangent, self._points, self._root):
            values[children] = values[np.concatenate([nodes, nodes])]
        self._high[lower_half, which] = cut
        self._low[upper_half, which] = cut
        both = np.concatenate([which, which])
        part = problem.part(both)
        self._tangent[children, both] = part.tangent_point(self._low[children, both], self._high[children, both])
        self._bounds[nodes] = -np.inf
        return children

    def _cuts(self, nodes: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], Floats]:
        """Of each node the answer whose majorant is loosest where the relaxation peaks, and where to cut it.

        A ramp is cut at its convex kink: on either side it is concave, or nearly straight. Anything else is cut in the
        middle of its majorant's straight piece; a cut at the peak itself leaves one side about as loose as before.
        """
        problem, rows = self._problem, np.arange(len(nodes))
        low, high, turn = self._low[nodes], self._high[nodes], self._tangent[nodes]
        at = np.clip(self._points[nodes] @ problem.weights.T + self._offsets[self._root[nodes]], low, high)
        slope = problem.envelope_slope(low, high, at, turn)
        majorant = problem.conjugate(slope, low, high) + slope * at
        which = (problem.count * (majorant - problem.value(at))).argmax(axis=1)
        start, end, turn = low[rows, which], high[rows, which], turn[rows, which]
        kink = -1.0 if problem.flipped else 0.0
        snaps = ~problem.logistic[which] & (start < kink) & (kink < end)
        return which, np.where(snaps, kink, (start + np.where(turn > start, turn, end)) / 2)

    def _enter(self, nodes: npt.NDArray[np.intp], goal: float) -> None:
        """Bound new nodes, and look at the points where their relaxations peak."""
        problem = self._problem
        low, high, tangent = self._low[nodes], self._high[nodes], self._tangent[nodes]
        offsets = self._offsets[self._root[nodes]]
        found = relaxed(problem, low, high, tangent, self._points[nodes], goal, offsets)
        self._bounds[nodes], self._multipliers[nodes], self._points[nodes] = found
        totals = problem.total(found[2], offsets)
        best = int(totals.argmax())
        if totals[best] > self.lower:
            self.lower, self.point, self.root = float(totals[best]), found[2][best], int(self._root[nodes[best]])
        self.n_seen += len(nodes)

    def _make_room(self) -> None:
        while self.tree.size > len(self._bounds):
            for name in ("_bounds", "_multipliers", "_low", "_high", "_tangent", "_points", "_root", "_is_rough"):
                values = getattr(self, name)
                more = np.full_like(values, -np.inf) if name == "_bounds" else np.zeros_like(values)
                setattr(self, name, np.concatenate([values, more]))
