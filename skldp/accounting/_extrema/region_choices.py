"""Maximum of a sum of S-shaped functions over a domain, as one box for everything that its whole columns can be.

One-hot blocks and whole numbers of few values leave a box of the other columns for each of their combinations. All
boxes have the same answers with the same weights, and differ in their arguments' offsets alone. So they are nodes of
one search on the answers' arguments (:mod:`~skldp.accounting._extrema.dual_branching`): the multipliers of the whole
domain's relaxation bound each of them at once, and few are ever looked at. Whole numbers of which there would be too
many combinations are searched as intervals, which bounds them as well, and the point that is found is rounded.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.ascent import ascended
from skldp.accounting._extrema.certificate import Tree
from skldp.accounting._extrema.dual_branching import DualBranching, Roots
from skldp.accounting._extrema.region import Region
from skldp.accounting._extrema.sampled_law import Floats, SampledLaw, middle_and_half
from skldp.accounting._extrema.sigmoid_sum import SigmoidSum

__all__ = ["RegionChoices"]

Integers = npt.NDArray[np.intp]

# Combinations, and combinations times answers.
_MOST_CHOICES = 2**14
_MOST_PRODUCTS = 2**20
# Combinations to which numbers of many steps may add: with more there is little search left for each, and an interval
# is near to what such a number can be.
_MOST_WITH_NUMBERS = 2**10
_MANY_STEPS = 8
# Rounds of a climb: along the columns that are not whole, then over everything that the others can be.
_CLIMBS = 4
_CLIMB_STEPS = 20


class RegionChoices:
    """A search that can be taken up again, best combinations first.

    Parameters
    ----------
    law : SampledLaw
        With a region that it :meth:`serves`.
    sign : {1, -1}
    problem : SigmoidSum
        The law's sum, or for sign -1 the reversed one.
    slopes : ndarray of shape (n,)
        Any slopes of the problem's answers, from which all boxes are bounded at first.
    start : float
        What the sum is somewhere in the domain.

    Attributes
    ----------
    lower, upper : float
        What the sum is at `point`, or else the start, and a bound on the maximum, up to rounding.
    point : ndarray of shape (d,) or None
        A member of the domain; None where the start is the best that is known.
    tree : Tree
    n_seen : int
        Nodes looked at.
    """

    def __init__(self, law: SampledLaw, sign: int, problem: SigmoidSum, slopes: Floats, start: float) -> None:
        assert law.region is not None
        self.region, self._law, self._sign = law.region, law, sign
        self._whole, self._moving = _whole_and_moving(law, self.region)
        self._middle, self._half = middle_and_half(law.box[:, self._moving])
        found = list(self.region.sums(law.coef, self._whole, _MOST_CHOICES))
        self._codes = np.concatenate([codes for codes, _ in found])
        # What the sums hold of the other columns is their least.
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
    def serves(law: SampledLaw) -> bool:
        """Whether there are intervals without inequalities between them, and few combinations of what is whole."""
        region = law.region
        if region is None:
            return False
        whole, moving = _whole_and_moving(law, region)
        return bool(moving.any()) and not region.coef[:, moving].any() and _are_few(law, region, whole, _MOST_CHOICES)

    @property
    def upper(self) -> float:
        """A bound on the maximum."""
        return max(self.lower, self._search.upper)

    @property
    def tree(self) -> Tree:
        """How the domain was cut."""
        return self._search.tree

    @property
    def n_seen(self) -> int:
        """Nodes looked at."""
        return self._search.n_seen

    def proposed(self, leaves: Integers) -> Floats:
        """Slopes for the law's arguments in the tree's leaves."""
        return self._sign * self._search.multipliers[leaves]

    def step(self, goal: float) -> bool:
        """Look at the nodes with the largest bounds; none needs a bound below the goal. Tell whether there were any."""
        before, n_seen = self._search.lower, self._search.n_seen
        self._search.step(goal)
        if self._search.lower > before:
            self._climb(self._search.point)
        return self._search.n_seen > n_seen

    def _climb(self, point: Floats) -> None:
        """Climb from a point within the best of all boxes for it, and so on; keep the member next to where it ends."""
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
        member = self.region.point(int(self._codes[search.root]), self._whole)
        member[self._moving] = self._middle + self._half * search.point
        member = self.region.move(member[None, :])[0]
        arguments = self._sign * (self._law.coef @ member + self._law.offset)
        value = float(problem.value(arguments) @ problem.count)
        if value > self.lower:
            self.lower, self.point = value, member

    def _tree_of_choices(self, n_features: int) -> tuple[Tree, Integers]:
        """Cut the domain by whole columns until none is left to choose; the node of each code."""
        tree, nodes = Tree(n_features), np.zeros(1, dtype=np.intp)
        for choice in self.region.choices(self._whole):
            left, levels = nodes, []
            for digit in range(choice.size - 1):
                column, cut, chosen = choice.cut(digit)
                lower = tree.split(left, column, cut)
                levels.append(lower + chosen)
                left = lower + 1 - chosen
            # The first choice's digit is a code's last.
            nodes = np.concatenate([*levels, left])
        return tree, nodes


def _are_few(law: SampledLaw, region: Region, whole: npt.NDArray[np.bool_], most: int) -> bool:
    n_choices = region.n_points(whole)
    return n_choices <= most and n_choices * len(law) <= _MOST_PRODUCTS


def _whole_and_moving(law: SampledLaw, region: Region) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Columns that matter, to an answer or an inequality: those whose values are combined, and those of intervals."""
    matters = (law.used | (region.coef != 0).any(axis=0)) & (law.box[0] < law.box[1])
    whole, numbers = matters & region.whole, np.flatnonzero(matters & region.whole & ~region.in_block)
    widths = np.ptp(law.box[:, numbers], axis=0)
    # The widest numbers are the most like an interval.
    for at in np.argsort(-widths, kind="stable"):
        if _are_few(law, region, whole, _MOST_WITH_NUMBERS if widths[at] >= _MANY_STEPS else _MOST_CHOICES):
            break
        whole[numbers[at]] = False
    return whole, matters & ~whole
