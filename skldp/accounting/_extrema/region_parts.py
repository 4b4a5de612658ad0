"""Maximum of a sum of S-shaped functions over a domain, by cutting many of its parts at a time.

As :func:`~skldp.accounting._extrema.branching.maximum_by_branching`, over a region: a part is cut in half along the
column that loosens its bound most, and a one-hot column between its two values. The work grows with the number of
columns that are not whole, of which there must be few; a part costs little.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.certificate import Tree
from skldp.accounting._extrema.region import Region
from skldp.accounting._extrema.sampled_law import Floats, SampledLaw
from skldp.accounting._extrema.sigmoid_sum import SigmoidSum

__all__ = ["maximum_by_parts"]

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


def maximum_by_parts(
    law: SampledLaw,
    sign: int,
    problem: SigmoidSum,
    region: Region,
    prices: Floats,
    *,
    tol: float,
    start: tuple[float, Floats],
    max_nodes: int,
    at_most: float,
    above: float,
) -> tuple[float, float, Floats, Tree]:
    """Best-first branch and bound over a region.

    Parameters
    ----------
    law : SampledLaw
    sign : {1, -1}
    problem : SigmoidSum
        The law's sum, or for sign -1 the reversed one.
    region : Region
    prices : ndarray of shape (n_inequalities,)
        Any prices of the inequalities.
    tol : float
    start : tuple (value, point)
        A member of the domain and the sum there.
    max_nodes : int
        Parts looked at before giving up with a valid, wider interval.
    at_most, above : float
        Stop as soon as the maximum is known to be at most the first, or above the second.

    Returns
    -------
    lower, upper : float
        The sum at `point`, and a bound on the maximum.
    point : ndarray of shape (d,)
    tree : Tree
    """
    lower, point = start
    tree = Tree(len(region.whole))
    parts = _bounded(law, sign, problem, region, prices, *region.tightened(law.box[:1], law.box[1:]))
    batch = max(16, _BLOCK // max(1, len(law), len(region.whole)))
    # What a discarded part may still hold: it bounds the maximum together with the parts that are left.
    discarded, seen = -np.inf, 1
    while True:
        upper = max(lower, discarded, float(parts.bounds.max(initial=-np.inf)))
        done = upper - lower <= tol or upper <= at_most or lower > above
        if done or seen >= max_nodes or not parts.bounds.size:
            return lower, upper, point, tree
        order = np.argsort(-parts.bounds, kind="stable")
        chosen, rest = parts.some(order[:batch]), parts.some(order[batch:])
        # A part that no cut can make smaller is a point, and as good as it gets.
        settled = (chosen.low >= chosen.high).all(axis=1)
        discarded = max(discarded, float(chosen.bounds[settled].max(initial=-np.inf)))
        children = _halves(law, sign, problem, region, prices, tree, chosen.some(~settled))
        seen += len(children.bounds)
        for points in (children.low, children.high) if len(children.bounds) else ():
            moved = region.move(points)
            totals = problem.value(sign * (moved @ law.coef.T + law.offset)) @ problem.count
            if totals.max() > lower:
                lower, point = float(totals.max()), moved[totals.argmax()]
        parts = rest.joined(children)
        keep = parts.bounds > lower + tol
        discarded = max(discarded, float(parts.bounds[~keep].max(initial=-np.inf)))
        parts = parts.some(keep)


def _bounded(
    law: SampledLaw, sign: int, problem: SigmoidSum, region: Region, prices: Floats, low: Floats, high: Floats
) -> _Parts:
    """Bound the sum over parts, from the majorants' slopes in the middle of each argument's range."""
    least, most = law.ranges(low, high)
    least, most = (least, most) if sign > 0 else (-most, -least)
    middle, spread = (least + most) / 2, (most - least) / 2
    slope = problem.envelope_slope(least, most, middle)
    height = problem.conjugate(slope, least, most)
    weighted = sign * slope * problem.count
    rest = region.largest_priced(weighted @ law.coef, np.tile(prices, (len(low), 1)), low, high)
    bounds = height @ problem.count + weighted @ law.offset + rest + problem.slack(slope)
    gap = np.maximum(
        np.abs(height + slope * middle - problem.value(middle)),
        np.maximum(
            np.abs(height + slope * least - problem.value(least)), np.abs(height + slope * most - problem.value(most))
        ),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(spread > 0, problem.count * gap / spread**2, 0.0)
    looseness = np.where(high > low, (share @ law.coef**2) * ((high - low) / 2) ** 2 + 1e-300, -1.0)
    return _Parts(low, high, np.zeros(len(low), dtype=np.intp), bounds, looseness)


def _halves(
    law: SampledLaw, sign: int, problem: SigmoidSum, region: Region, prices: Floats, tree: Tree, parts: _Parts
) -> _Parts:
    """Both halves of each part, as far as they can hold somebody."""
    rows, side = np.arange(len(parts.bounds)), parts.looseness.argmax(axis=1)
    middle = parts.low[rows, side] / 2 + parts.high[rows, side] / 2
    cut = np.where(region.whole[side], np.floor(middle), middle)
    first = tree.split(parts.nodes, side, cut)
    low, high = np.tile(parts.low, (2, 1)), np.tile(parts.high, (2, 1))
    high[rows, side] = cut
    low[len(rows) + rows, side] = np.where(region.whole[side], cut + 1, cut)
    low, high = region.tightened(low, high)
    held = region.is_possible(low, high)
    found = _bounded(law, sign, problem, region, prices, low[held], high[held])
    return found._replace(nodes=np.concatenate([first, first + 1])[held])
