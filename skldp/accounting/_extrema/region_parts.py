"""Maximum of a sum of S-shaped functions over a domain, by cutting many of its parts at a time.

As :func:`~skldp.accounting._extrema.branching.maximum_by_branching`, over a region: a part is cut in half along the
column that loosens its bound most, and a one-hot column between its two values. The work grows with the number of
columns that are not whole, of which there must be few; a part costs little.
"""

import heapq
from itertools import count

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.certificate import Tree
from skldp.accounting._extrema.sampled_law import Floats, SampledLaw
from skldp.accounting._extrema.sigmoid_sum import SigmoidSum

__all__ = ["RegionParts"]

# About so many numbers in each temporary array.
_BLOCK = 1 << 16


class RegionParts:
    """Best-first branch and bound over a region, a batch of parts in each step.

    Parameters
    ----------
    law : SampledLaw
        With a region.
    sign : {1, -1}
    problem : SigmoidSum
        The law's sum, or for sign -1 the reversed one.
    prices : ndarray of shape (n_inequalities,)
        Any prices of the inequalities.
    start : tuple (value, point)
        A member of the domain and the sum there.

    Attributes
    ----------
    lower, upper : float
        The sum at `point`, and a bound on the maximum, up to rounding.
    point : ndarray of shape (d,)
    tree : Tree
    n_seen : int
        Parts looked at.
    is_done : bool
        Whether nothing is left that could hold more than `point`.
    """

    def __init__(
        self, law: SampledLaw, sign: int, problem: SigmoidSum, prices: Floats, start: tuple[float, Floats]
    ) -> None:
        assert law.region is not None
        self.law, self.sign, self.problem, self.region, self.prices = law, sign, problem, law.region, prices
        self.lower, self.point = start
        self.tree, self.n_seen = Tree(len(self.region.whole)), 1
        self._batch = max(16, _BLOCK // max(1, len(law), len(self.region.whole)))
        # Parts by their bounds, largest first: lowest and highest corner, node of the tree, and where to cut.
        self._heap: list[tuple[float, int, Floats, Floats, int, int]] = []
        self._order = count()
        # What a part may still hold that is left alone: it bounds the maximum together with the others.
        self._settled = -np.inf
        low, high = self.region.tightened(law.box[:1], law.box[1:])
        self._push(low, high, np.zeros(1, dtype=np.intp))

    @property
    def is_done(self) -> bool:
        """Whether no part is left that could hold more than `point`."""
        return not self._heap or -self._heap[0][0] <= self.lower

    def step(self) -> None:
        """Cut the parts with the largest bounds."""
        chosen: list[tuple[Floats, Floats, int, int]] = []
        while not self.is_done and len(chosen) < self._batch:
            bound, _, lowest, highest, node, side = heapq.heappop(self._heap)
            if lowest[side] < highest[side]:
                chosen.append((lowest, highest, node, side))
            else:
                # A part that no cut can make smaller is a point, and as good as it gets.
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

    def _push(self, low: Floats, high: Floats, nodes: npt.NDArray[np.intp]) -> None:
        """Keep parts, with their bounds."""
        if len(nodes):
            bounds, sides = self._bounded(low, high)
            kept = np.flatnonzero(bounds > self.lower)
            for row, bound, node, side in zip(
                kept, bounds[kept].tolist(), nodes[kept].tolist(), sides[kept].tolist(), strict=True
            ):
                heapq.heappush(self._heap, (-bound, next(self._order), low[row], high[row], node, side))
        self._conclude()

    def _conclude(self) -> None:
        """Bound the maximum by what is left."""
        self.upper = max(self.lower, self._settled, -self._heap[0][0] if self._heap else -np.inf)

    def _bounded(self, low: Floats, high: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Bound the sum over parts, from the majorants' slopes in the middle of each argument's range; where to cut."""
        law, sign, problem, region = self.law, self.sign, self.problem, self.region
        least, most = law.ranges(low, high)
        least, most = (least, most) if sign > 0 else (-most, -least)
        middle, spread = (least + most) / 2, (most - least) / 2
        slope = problem.envelope_slope(least, most, middle)
        height = problem.conjugate(slope, least, most)
        weighted = sign * slope * problem.count
        rest = region.largest_priced(weighted @ law.coef, np.tile(self.prices, (len(low), 1)), low, high)
        bounds = height @ problem.count + weighted @ law.offset + rest + problem.slack(slope)
        gap = np.maximum(
            np.abs(height + slope * middle - problem.value(middle)),
            np.maximum(
                np.abs(height + slope * least - problem.value(least)),
                np.abs(height + slope * most - problem.value(most)),
            ),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(spread > 0, problem.count * gap / spread**2, 0.0)
        looseness = np.where(high > low, (share @ law.coef**2) * ((high - low) / 2) ** 2 + 1e-300, -1.0)
        return bounds, looseness.argmax(axis=1)

    def _halves(
        self, low: Floats, high: Floats, nodes: npt.NDArray[np.intp], sides: npt.NDArray[np.intp]
    ) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
        """Both halves of each part, as far as they can hold somebody."""
        rows, whole = np.arange(len(nodes)), self.region.whole[sides]
        middle = low[rows, sides] / 2 + high[rows, sides] / 2
        cut = np.where(whole, np.floor(middle), middle)
        first = self.tree.split(nodes, sides, cut)
        low, high = np.tile(low, (2, 1)), np.tile(high, (2, 1))
        high[rows, sides] = cut
        low[len(rows) + rows, sides] = np.where(whole, cut + 1, cut)
        low, high = self.region.tightened(low, high)
        held = self.region.is_possible(low, high)
        return low[held], high[held], np.concatenate([first, first + 1])[held]
