"""Maximum of a sum of S-shaped functions over a domain, by cutting many of its parts at a time.

As :func:`~skldp.accounting._extrema.branching.maximum_by_branching`, over a region: a part is cut in half along the
column that loosens its bound most, and a one-hot column between its two values. The work grows with the number of
columns that are not whole, of which there must be few; a part costs little.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.certificate import Tree
from skldp.accounting._extrema.sampled_law import Floats, SampledLaw
from skldp.accounting._extrema.sigmoid_sum import SigmoidSum

__all__ = ["RegionParts"]

# About so many numbers in each temporary array.
_BLOCK = 1 << 16


class _Parts(NamedTuple):
    """Parts of a region: their boxes, their nodes in the tree, their bounds, and what loosens each of these."""

    low: Floats
    high: Floats
    nodes: npt.NDArray[np.intp]
    bounds: Floats
    looseness: Floats

    def some(self, rows: Any) -> "_Parts":
        """Those at some positions."""
        return _Parts(*(values[rows] for values in self))

    def joined(self, other: "_Parts") -> "_Parts":
        """Both, one after the other."""
        return _Parts(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


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
        self._parts = self._bounded(*self.region.tightened(law.box[:1], law.box[1:]))
        self._batch = max(16, _BLOCK // max(1, len(law), len(self.region.whole)))
        # What a part may still hold that is left alone: it bounds the maximum together with the others.
        self._settled = -np.inf
        self._conclude()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to cut."""
        return not self._parts.bounds.size

    def step(self) -> None:
        """Cut the parts with the largest bounds."""
        order = np.argsort(-self._parts.bounds, kind="stable")
        chosen, rest = self._parts.some(order[: self._batch]), self._parts.some(order[self._batch :])
        # A part that no cut can make smaller is a point, and as good as it gets.
        is_point = (chosen.low >= chosen.high).all(axis=1)
        self._settled = max(self._settled, float(chosen.bounds[is_point].max(initial=-np.inf)))
        children = self._halves(chosen.some(~is_point))
        self.n_seen += len(children.bounds)
        for points in (children.low, children.high) if len(children.bounds) else ():
            moved = self.region.move(points)
            totals = self.problem.value(self.sign * (moved @ self.law.coef.T + self.law.offset)) @ self.problem.count
            if totals.max() > self.lower:
                self.lower, self.point = float(totals.max()), moved[totals.argmax()]
        self._parts = rest.joined(children)
        self._conclude()

    def _conclude(self) -> None:
        """Drop what cannot hold the maximum, and bound it by the rest."""
        self._parts = self._parts.some(self._parts.bounds > self.lower)
        self.upper = max(self.lower, self._settled, float(self._parts.bounds.max(initial=-np.inf)))

    def _bounded(self, low: Floats, high: Floats) -> _Parts:
        """Bound the sum over parts, from the majorants' slopes in the middle of each argument's range."""
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
        return _Parts(low, high, np.zeros(len(low), dtype=np.intp), bounds, looseness)

    def _halves(self, parts: _Parts) -> _Parts:
        """Both halves of each part, as far as they can hold somebody."""
        region = self.region
        rows, side = np.arange(len(parts.bounds)), parts.looseness.argmax(axis=1)
        middle = parts.low[rows, side] / 2 + parts.high[rows, side] / 2
        cut = np.where(region.whole[side], np.floor(middle), middle)
        first = self.tree.split(parts.nodes, side, cut)
        low, high = np.tile(parts.low, (2, 1)), np.tile(parts.high, (2, 1))
        high[rows, side] = cut
        low[len(rows) + rows, side] = np.where(region.whole[side], cut + 1, cut)
        low, high = region.tightened(low, high)
        held = region.is_possible(low, high)
        found = self._bounded(low[held], high[held])
        return found._replace(nodes=np.concatenate([first, first + 1])[held])
