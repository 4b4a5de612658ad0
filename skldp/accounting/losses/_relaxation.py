r"""Simultaneous concave relaxations of many nodes, which give the multipliers of their bounds.

A node restricts every argument :math:`v_i = w_i s + c_i` to an interval and replaces its function by the least concave
majorant there: a smooth concave function minus a few kinks :math:`J \max(0, v - p)`. The ends of an interval are kinks
too, steep enough to keep the argument inside, so every node has a solution. A primal-dual interior-point method finds
the maximum over the box (Wright 1997). Each kink has two slacks, y and y - J (v - p), whose multipliers add up to 1.
All nodes take their steps together, as one stack of small matrices.

The solutions prove nothing by themselves. The slopes of the majorants at the current point are multipliers, and
:func:`dual_bound` is valid for any multipliers.

References
----------
S. J. Wright, "Primal-Dual Interior-Point Methods", 1997, Chapters 1 and 5.
"""

from dataclasses import dataclass

import numpy as np

from skldp._arrays import Floats, Positions
from skldp.accounting.losses._ascent import solved
from skldp.accounting.losses._certificate import Tree
from skldp.accounting.losses._sigmoid_sum import SigmoidSum

# Beyond half the range the loss is the maximum possible one.
_STEEPNESS = 2.0
_LAST_GAP = 1e-5
_ROUGHLY = 0.5
# Share of the complementarity that remains after a full step.
_CENTRING = 0.2
_MAX_STEPS = 16


def dual_bound(
    problem: SigmoidSum, multipliers: Floats, low: Floats, high: Floats, offset: Floats | None = None
) -> Floats:
    """Return upper bounds of the sum over nodes, valid for any multipliers."""
    # Shapes: multipliers, low, high (k, n), offset (k, n); returns (k,).
    height = problem.conjugate(multipliers, low, high)
    scaled = multipliers * problem.count
    tilt = np.abs(scaled @ problem.weights).sum(axis=1)
    still = scaled @ problem.offset if offset is None else (scaled * offset).sum(axis=1)
    bounds: Floats = height @ problem.count + still + tilt + problem.slack(multipliers)
    return bounds


def relaxed(
    problem: SigmoidSum,
    low: Floats,
    high: Floats,
    tangent: Floats,
    start: Floats,
    goal: float,
    offset: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Solve the relaxations of nodes, each until its bound is at most `goal` or stops improving."""
    # Shapes: low, high (k, n), tangent (k, n), start (k, d), offset (k, n); returns bounds (k,), multipliers (k, n),
    # peaks (k, d).
    bounds, multipliers, peaks = np.full(len(low), np.inf), np.zeros(low.shape), start.copy()
    own = np.broadcast_to(problem.offset, low.shape) if offset is None else offset
    active, path = np.arange(len(low)), _Path(problem, low, high, tangent, start, own)
    for _ in range(_MAX_STEPS):
        slopes = path.slopes
        found = dual_bound(problem, slopes, path.low, path.high, path.offset)
        better = found < bounds[active]
        rows = active[better]
        bounds[rows], multipliers[rows] = found[better], slopes[better]
        peaks[active] = path.point
        # Nodes well above the goal will be cut anyway, so a rough bound suffices.
        enough = np.maximum(_LAST_GAP, _ROUGHLY * (bounds[active] - goal) if np.isfinite(goal) else 0.0)
        going = np.flatnonzero((bounds[active] > goal) & (path.gap > enough))
        if not len(going):
            break
        if len(going) < len(active):
            active = active[going]
            path.keep(going)
        path.step()
    return bounds, multipliers, peaks


class _Path:
    """State of each node's interior-point search. Shapes: `point` (k, d); `slopes` (k, n); `gap` (k,)."""

    def __init__(
        self, problem: SigmoidSum, low: Floats, high: Floats, tangent: Floats, start: Floats, offset: Floats
    ) -> None:
        self.problem, self.low, self.high, self._tangent, self.offset = problem, low, high, tangent, offset
        last = np.where(problem.logistic, np.inf, 0.0 if problem.flipped else 1.0)
        # Point at which a majorant becomes flat or its interval ends.
        self._end = np.maximum(np.minimum(high, last), low)
        run = tangent - low
        with np.errstate(divide="ignore", invalid="ignore"):
            self._chord = np.where(run > 0, (problem.value(tangent) - problem.value(low)) / run, 0.0)
        steep = _STEEPNESS * (problem.count @ problem.epsilon) / np.maximum(2 * problem.spread, 1e-6)
        drop = np.where((tangent >= self._end) & (run > 0), self._chord, problem.slope(self._end))
        # The kinks of each majorant, J and p: at either end of the interval, and where a ramp ends.
        jumps = (
            np.where(low > offset - problem.spread, -steep, 0.0),
            np.where(high < offset + problem.spread, steep, 0.0),
            np.where((low < last) & (last < high), drop, 0.0),
        )
        self._jump, self._place = np.stack(jumps, axis=1), np.stack([low, high, self._end], axis=1)
        self.point = np.clip(start, -0.95, 0.95)
        self._move_to(self.point)
        # Start with each slack times its multiplier equal to the maximum of an answer.
        each = float(problem.count @ problem.epsilon) / len(problem.count)
        first = each / problem.count
        self._over = (self._passed + 2 * first + np.hypot(self._passed, 2 * first)) / 2
        with np.errstate(divide="ignore"):
            # Use the form without cancellation.
            beyond = first * self._over / (self._over - first)
        self._under = np.where(self._passed > 0, beyond, self._over - self._passed)
        self._over_dual, self._under_dual = first / self._over, first / self._under
        self._low_dual = each / (1 + self.point)
        self._high_dual = each / (1 - self.point)

    def keep(self, rows: Positions) -> None:
        """Continue with a subset of the nodes."""
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, values[rows])

    @property
    def slopes(self) -> Floats:
        slopes: Floats = self._smooth - (self._jump * self._under_dual).sum(axis=1)
        return slopes

    @property
    def gap(self) -> Floats:
        kinks = self._over * self._over_dual + self._under * self._under_dual
        sides = (1 + self.point) * self._low_dual + (1 - self.point) * self._high_dual
        gap: Floats = (kinks @ self.problem.count).sum(axis=1) + sides.sum(axis=1)
        return gap

    def step(self) -> None:
        """Take one Newton step towards a smaller complementarity that keeps all slacks positive."""
        count, weights = self.problem.count, self.problem.weights
        aim = _CENTRING * self.gap[:, None] / (2 * (self._over[0].size + self.point.shape[1]))
        each = (aim / count)[:, None, :]
        softness = self._under / self._under_dual + self._over / self._over_dual
        excess = each / self._under_dual - each / self._over_dual + self._passed
        pull = self._smooth - (self._jump * (self._under_dual + excess / softness)).sum(axis=1)
        bent = self._curvature - (self._jump**2 / softness).sum(axis=1)
        below, above = 1 + self.point, 1 - self.point
        gradient = (count * pull) @ weights + aim / below - aim / above
        stiffness = self._low_dual / below + self._high_dual / above
        move = solved(stiffness, -count * bent, weights, gradient)
        passed = self._jump * (move @ weights.T)[:, None, :]
        under_dual = (passed + excess) / softness
        over = (each + self._over * under_dual) / self._over_dual - self._over
        under = over - passed
        low_dual = (aim - self._low_dual * move) / below - self._low_dual
        high_dual = (aim + self._high_dual * move) / above - self._high_dual
        share = np.ones(len(move))
        for now, change in (
            (self._over, over),
            (self._under, under),
            (self._over_dual, -under_dual),
            (self._under_dual, under_dual),
            (self._low_dual, low_dual),
            (self._high_dual, high_dual),
            (below, move),
            (above, -move),
        ):
            # 0.95 of the step at which the first slack would be 0.
            fastest = (-change / now).reshape(len(move), -1).max(axis=1)
            share = np.minimum(share, 0.95 / np.maximum(fastest, 0.95))
        self.point = self.point + share[:, None] * move
        self._low_dual += share[:, None] * low_dual
        self._high_dual += share[:, None] * high_dual
        share = share[:, None, None]
        self._over += share * over
        self._under += share * under
        self._over_dual -= share * under_dual
        self._under_dual += share * under_dual
        self._move_to(self.point)

    def _move_to(self, point: Floats) -> None:
        problem = self.problem
        arguments = point @ problem.weights.T + self.offset
        self._passed = self._jump * (arguments[:, None, :] - self._place)
        inside = np.clip(arguments, self.low, self._end)
        on_chord = (inside <= self._tangent) & (self._tangent > self.low)
        is_flat = ~problem.logistic & (self.low >= (0.0 if problem.flipped else 1.0))
        self._smooth = np.where(is_flat, 0.0, np.where(on_chord, self._chord, problem.slope(inside)))
        straight = on_chord | is_flat | (arguments <= self.low) | (arguments >= self._end)
        self._curvature = np.where(straight, 0.0, problem.curvature(inside))


# Number of nodes cut together: smaller batches have more numpy overhead, larger ones cut more nodes than necessary.
_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Roots:
    """Initial boxes of a search; they differ in the contribution of integer columns to the arguments."""

    # Shapes: `offsets` (r, n); `multipliers` (n,).

    tree: Tree
    nodes: Positions
    offsets: Floats
    multipliers: Floats


class DualBranching:
    """Resumable best-first search. Shapes: `point` (d,); `multipliers` (n_nodes, n)."""

    def __init__(
        self, problem: SigmoidSum, start: tuple[float, Floats], goal: float = -np.inf, roots: Roots | None = None
    ) -> None:
        self._problem = problem
        self.lower, self.point = start
        n, d = problem.weights.shape
        first = roots or Roots(Tree(d), np.zeros(1, dtype=np.intp), problem.offset[None, :], np.zeros(n))
        self.tree, self.root, self.n_seen = first.tree, -1, 0
        self._offsets, at = first.offsets, first.nodes
        # Indexed by position in the tree; rows are added as needed.
        size = max(64, self.tree.size)
        self._bounds, self._multipliers = np.full(size, -np.inf), np.zeros((size, n))
        self._low, self._high, self._tangent = (np.zeros((size, n)) for _ in range(3))
        self._points, self._root = np.zeros((size, d)), np.zeros(size, dtype=np.intp)
        # Nodes whose bounds use the slopes of other nodes.
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
        """Upper bound on the maximum."""
        return max(self.lower, float(self._bounds.max()))

    @property
    def multipliers(self) -> Floats:
        """Slopes of each node of the tree."""
        return self._multipliers[: self.tree.size]

    def step(self, goal: float) -> None:
        """Solve the nodes with the largest bounds above a goal, or cut them if they are solved."""
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

    def _halves(self, nodes: Positions) -> Positions:
        """Cut nodes in two."""
        problem = self._problem
        which, cut = self._cuts(nodes)
        # Arguments of a flipped problem are the negatives of those in the tree.
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

    def _cuts(self, nodes: Positions) -> tuple[Positions, Floats]:
        """Return the loosest answer of each node at the relaxation's maximum, and its cut."""
        # A ramp is cut at its convex kink, since it is concave or nearly straight on either side. Other functions are
        # cut in the middle of the majorant's straight piece; a cut at the maximum would leave one side as loose as
        # before.
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

    def _enter(self, nodes: Positions, goal: float) -> None:
        """Bound new nodes and evaluate the maxima of their relaxations."""
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
