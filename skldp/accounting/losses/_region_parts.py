"""Maximization of a sum of S-shaped functions over a domain, by cutting many parts at a time.

A part is cut in half along the column that loosens its bound most; a one-hot column is cut between its two values. A
part is cheap, but the number of parts grows with the number of continuous columns, which must be small.
"""

import heapq
from dataclasses import replace
from itertools import count

import numpy as np

from skldp._arrays import Bools, Floats, Positions
from skldp.accounting.losses._ascent import ascended
from skldp.accounting.losses._certificate import Tree
from skldp.accounting.losses._region import Region, middle_and_half
from skldp.accounting.losses._relaxation import DualBranching, Roots
from skldp.accounting.losses._sampled_law import AnswerLaw
from skldp.accounting.losses._sigmoid_sum import SigmoidSum

# Approximate number of entries in a temporary array.
_BLOCK = 1 << 16


class RegionParts:
    """Best-first branch and bound over a region, one batch of parts per step."""

    # Shapes: `prices` (n_inequalities,); `point` (d,).

    def __init__(
        self, law: AnswerLaw, sign: int, problem: SigmoidSum, prices: Floats, start: tuple[float, Floats]
    ) -> None:
        assert law.region is not None
        self.law, self.sign, self.problem, self.region, self.prices = law, sign, problem, law.region, prices
        self.lower, self.point = start
        self.tree, self.n_seen = Tree(len(self.region.integer)), 1
        self._batch = max(16, _BLOCK // max(1, len(law), len(self.region.integer)))
        # Heap of parts by bound, largest first: lower and upper corner, node of the tree, cut.
        self._heap: list[tuple[float, int, Floats, Floats, int, int]] = []
        self._order = count()
        # Bounds of discarded parts also bound the maximum.
        self._settled = -np.inf
        low, high = self.region.tightened(law.box[:1], law.box[1:])
        self._push(low, high, np.zeros(1, dtype=np.intp))

    @property
    def is_done(self) -> bool:
        """True if no part can exceed the value at `point`."""
        return not self._heap or -self._heap[0][0] <= self.lower

    def step(self) -> None:
        """Cut the parts with the largest bounds."""
        chosen: list[tuple[Floats, Floats, int, int]] = []
        while not self.is_done and len(chosen) < self._batch:
            bound, _, lowest, highest, node, side = heapq.heappop(self._heap)
            if lowest[side] < highest[side]:
                chosen.append((lowest, highest, node, side))
            else:
                # A part that cannot be cut is a point.
                self._settled = max(self._settled, -bound)
        if not chosen:
            self._conclude()
            return
        low, high, children = self._halves(*map(np.array, zip(*chosen, strict=True)))
        self.n_seen += len(children)
        for points in (low, high) if len(children) else ():
            moved = self.region.move(points)
            totals = self.problem.value(self.sign * (moved @ self.law.coef.T + self.law.offset)) @ self.problem.count
            if totals.max() > self.lower:
                self.lower, self.point = float(totals.max()), moved[totals.argmax()]
        self._push(low, high, children)

    def _push(self, low: Floats, high: Floats, nodes: Positions) -> None:
        """Store parts with their bounds."""
        if len(nodes):
            bounds, sides = self._bounded(low, high)
            kept = np.flatnonzero(bounds > self.lower)
            for row, bound, node, side in zip(
                kept, bounds[kept].tolist(), nodes[kept].tolist(), sides[kept].tolist(), strict=True
            ):
                heapq.heappush(self._heap, (-bound, next(self._order), low[row], high[row], node, side))
        self._conclude()

    def _conclude(self) -> None:
        """Update the bound on the maximum from the remaining parts."""
        self.upper = max(self.lower, self._settled, -self._heap[0][0] if self._heap else -np.inf)

    def _bounded(self, low: Floats, high: Floats) -> tuple[Floats, Positions]:
        """Return bounds on the sum over parts, from majorants' slopes at middle arguments, and the columns to cut."""
        law, sign, problem, region = self.law, self.sign, self.problem, self.region
        least, most = law.ranges(low, high)
        least, most = (least, most) if sign > 0 else (-most, -least)
        slope, height, share = problem.majorants(least, most)
        weighted = sign * slope * problem.count
        rest = region.largest_priced(weighted @ law.coef, np.tile(self.prices, (len(low), 1)), low, high)
        bounds = height @ problem.count + weighted @ law.offset + rest + problem.slack(slope)
        looseness = np.where(high > low, (share @ law.coef**2) * ((high - low) / 2) ** 2 + 1e-300, -1.0)
        return bounds, looseness.argmax(axis=1)

    def _halves(
        self, low: Floats, high: Floats, nodes: Positions, sides: Positions
    ) -> tuple[Floats, Floats, Positions]:
        """Return the halves of each part that can contain a record."""
        rows, integer = np.arange(len(nodes)), self.region.integer[sides]
        middle = low[rows, sides] / 2 + high[rows, sides] / 2
        cut = np.where(integer, np.floor(middle), middle)
        first = self.tree.split(nodes, sides, cut)
        low, high = np.tile(low, (2, 1)), np.tile(high, (2, 1))
        high[rows, sides] = cut
        low[len(rows) + rows, sides] = np.where(integer, cut + 1, cut)
        low, high = self.region.tightened(low, high)
        held = self.region.is_possible(low, high)
        return low[held], high[held], np.concatenate([first, first + 1])[held]


# Limits of the number of combinations, and of combinations times answers.
_MOST_CHOICES = 2**14
_MOST_PRODUCTS = 2**20
# Integers of a wide range are enumerated up to this number of combinations, and relaxed to an interval beyond it.
_MOST_WITH_NUMBERS = 2**10
_MANY_STEPS = 8
# A round of ascent improves the continuous columns, then all choices of the others.
_CLIMBS = 4
_CLIMB_STEPS = 20


class RegionChoices:
    """Resumable best-first search over combinations of integer columns. Shapes: `slopes` (n,); `point` (d,)."""

    def __init__(self, law: AnswerLaw, sign: int, problem: SigmoidSum, slopes: Floats, start: float) -> None:
        assert law.region is not None
        self.region, self._law, self._sign = law.region, law, sign
        self._integer, self._moving = _integer_and_moving(law, self.region)
        self._middle, self._half = middle_and_half(law.box[:, self._moving])
        found = list(self.region.sums(law.coef, self._integer, _MOST_CHOICES))
        self._codes = np.concatenate([codes for codes, _ in found])
        # The sums contain the minimum of the other columns.
        still = law.coef[:, self._moving] @ self._half + law.offset
        offsets = sign * (np.concatenate([sums for _, sums in found]) + still)
        self._offsets = offsets
        self._problem = replace(problem, weights=problem.weights[:, self._moving], offset=offsets[0])
        tree, nodes = self._tree_of_choices(law.box.shape[1])
        origin = np.zeros(len(self._half))
        roots = Roots(tree, nodes[self._codes], offsets, slopes)
        self._search = DualBranching(self._problem, (start, origin), roots=roots)
        self.lower = start
        self.point: Floats | None = None
        self._climb(origin)

    @staticmethod
    def serves(law: AnswerLaw) -> bool:
        """Return whether the region has unconstrained intervals and few combinations of integer columns."""
        region = law.region
        if region is None:
            return False
        integer, moving = _integer_and_moving(law, region)
        return bool(moving.any()) and not region.coef[:, moving].any() and _are_few(law, region, integer, _MOST_CHOICES)

    @property
    def upper(self) -> float:
        """Upper bound on the maximum."""
        return max(self.lower, self._search.upper)

    @property
    def tree(self) -> Tree:
        """Tree of cuts of the domain."""
        return self._search.tree

    @property
    def n_seen(self) -> int:
        """Number of nodes examined so far."""
        return self._search.n_seen

    def proposed(self, leaves: Positions) -> Floats:
        """Return the slopes in the tree's leaves, for the law's arguments."""
        return self._sign * self._search.multipliers[leaves]

    def step(self, goal: float) -> bool:
        """Examine the nodes with the largest bounds above the goal, and return whether there were any."""
        before, n_seen = self._search.lower, self._search.n_seen
        self._search.step(goal)
        if self._search.lower > before:
            self._climb(self._search.point)
        return self._search.n_seen > n_seen

    def _climb(self, point: Floats) -> None:
        """Ascend from a point, alternating between continuous columns and choices; keep the nearest member."""
        search, problem = self._search, self._problem
        for _ in range(_CLIMBS):
            root = int(problem.total(point[None, :], self._offsets).argmax())
            own = replace(problem, offset=self._offsets[root])
            points, values = ascended(own, problem.count[None, :], point[None, :], _CLIMB_STEPS)
            if values[0] <= search.lower:
                break
            search.lower, search.point, search.root = float(values[0]), points[0], root
            point = points[0]
        if search.root < 0:
            return
        member = self.region.point(int(self._codes[search.root]), self._integer)
        member[self._moving] = self._middle + self._half * search.point
        member = self.region.move(member[None, :])[0]
        arguments = self._sign * (self._law.coef @ member + self._law.offset)
        value = float(problem.value(arguments) @ problem.count)
        if value > self.lower:
            self.lower, self.point = value, member

    def _tree_of_choices(self, n_features: int) -> tuple[Tree, Positions]:
        """Return a tree that cuts the domain by all integer columns, and the node of each code."""
        tree, nodes = Tree(n_features), np.zeros(1, dtype=np.intp)
        for choice in self.region.choices(self._integer):
            left, levels = nodes, []
            for digit in range(choice.size - 1):
                column, cut, chosen = choice.cut(digit)
                lower = tree.split(left, column, cut)
                levels.append(lower + chosen)
                left = lower + 1 - chosen
            # The first choice is the least significant digit of a code.
            nodes = np.concatenate([*levels, left])
        return tree, nodes


def _are_few(law: AnswerLaw, region: Region, integer: Bools, most: int) -> bool:
    n_choices = region.n_points(integer)
    return n_choices <= most and n_choices * len(law) <= _MOST_PRODUCTS


def _integer_and_moving(law: AnswerLaw, region: Region) -> tuple[Bools, Bools]:
    """Return masks of the columns used by an answer or an inequality: integers to combine, and intervals."""
    matters = (law.used | (region.coef != 0).any(axis=0)) & (law.box[0] < law.box[1])
    integer, numbers = matters & region.integer, np.flatnonzero(matters & region.integer & ~region.in_block)
    widths = np.ptp(law.box[:, numbers], axis=0)
    # The widest integers are closest to an interval.
    for at in np.argsort(-widths, kind="stable"):
        if _are_few(law, region, integer, _MOST_WITH_NUMBERS if widths[at] >= _MANY_STEPS else _MOST_CHOICES):
            break
        integer[numbers[at]] = False
    return integer, matters & ~integer
