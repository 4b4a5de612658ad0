"""Search for one side of a loss over a domain."""

import sys
from collections.abc import Callable

import numpy as np

from skldp._arrays import Floats, Positions
from skldp.accounting.losses._certificate import Proof, peaks_at_vertices, vertex_maximum
from skldp.accounting.losses._region_branching import RegionBranching
from skldp.accounting.losses._region_parts import RegionChoices, RegionParts
from skldp.accounting.losses._sampled_law import AnswerLaw
from skldp.accounting.losses._sigmoid_sum import sigmoid_sum

# All points are enumerated up to this number of entries (about 0.1 s).
_MOST_POINT_EVALUATIONS = 2.0**23
# Cutting parts is faster than linear programs up to this number of continuous columns.
_FEW_FEATURES = 4
_FIRST_PARTS = 10_000
_MAX_PARTS = 100_000
# Limit of the boxes of the other columns that are evaluated or cut.
_MAX_NODES = 20_000
_NO_LIMIT = sys.maxsize
# Method that takes a step towards a goal and returns the number of parts seen so far.
_Method = Callable[[float], int]
# Limit of the pairs of an answer and a column in all parts: wide blocks allow fewer parts.
_MOST_PRODUCTS = 2**24


class RegionSearch:
    """Search for one side of the loss over a region, with `lower`, `upper` and a record at which the sum is `lower`."""

    # The method depends only on the answers and the domain. The points of a small domain are enumerated, or its
    # vertices if the maximum is at a vertex. A sum that is not concave is first cut into parts if few columns are
    # continuous. A relaxation to the convex hull follows. The last method branches on the boxes of all combinations of
    # integer columns if they are few, and otherwise solves further linear programs.

    def __init__(self, law: AnswerLaw, sign: int) -> None:
        assert law.region is not None
        self.law, self.sign, self.region = law, sign, law.region
        problem = sigmoid_sum(law)
        self.problem = problem if sign > 0 else problem.reversed()
        used = law.used
        by_points = self.region.is_finite or (peaks_at_vertices(law, sign) and not self.region.is_curbed)
        self.is_easy = by_points and len(law) * self.region.n_points(used) <= _MOST_POINT_EVALUATIONS
        if self.is_easy:
            self.upper, self._point = vertex_maximum(law, sign)
            self._proof = Proof(None, lambda leaves, low, high: np.zeros(low.shape))
            arguments = sign * (law.coef @ self._point + law.offset)
            self.lower = float(self.problem.value(arguments) @ self.problem.count)
            return
        self._branching = RegionBranching(law, sign, self.problem)
        self._parts: RegionParts | None = None
        self._choices: RegionChoices | None = None
        self.lower, self.upper, self._point = -np.inf, np.inf, self._branching.point
        self._keep_branching()
        # Methods in order, each with its limit of the total number of parts.
        self._methods: list[tuple[_Method, int]] = [(self._cut_by_programs, _NO_LIMIT)]
        if RegionChoices.serves(law):
            # The first linear program bounds all boxes; more programs would not close the remaining ones.
            self._methods = [(self._cut_by_programs, 1), (self._cut_boxes, _MAX_NODES)]
        if np.count_nonzero(used & ~self.region.integer) <= _FEW_FEATURES:
            most = min(_MAX_PARTS, _MOST_PRODUCTS // law.coef.size)
            first = [] if self.problem.is_concave else [(self._cut_parts, min(_FIRST_PARTS, most))]
            self._methods = [*first, *self._methods, (self._cut_parts, most)]

    @property
    def is_exhausted(self) -> bool:
        """True if the maximum is known or every limit was reached."""
        return self.is_easy or not self._methods or self.upper <= self.lower

    @property
    def end(self) -> Floats:
        """Record of the domain at which the sum is `lower`, up to rounding."""
        end: Floats = self.region.move(self._point[None, :])[0]
        return end

    @property
    def proof(self) -> Proof:
        """Result of the search, for the independent check."""
        return self._proof

    def step(self, goal: float) -> None:
        """Look at some more nodes; none needs a bound below the goal."""
        method, most = self._methods[0]
        if method(max(goal, self.lower)) >= most:
            del self._methods[0]

    def _cut_by_programs(self, goal: float) -> int:
        found = self._branching
        if not found.is_done:
            found.step(goal)
        self._keep_branching()
        return _NO_LIMIT if found.is_done else found.n_seen

    def _cut_boxes(self, goal: float) -> int:
        found, goes_on = self._choices, True
        if found is None:
            slopes = self.sign * self._branching.proposed(np.zeros(1, dtype=np.intp))[0]
            found = self._choices = RegionChoices(self.law, self.sign, self.problem, slopes, self.lower)
        else:
            goes_on = found.step(goal)
        if found.point is not None and found.lower > self._branching.lower:
            # Integers relaxed to an interval may improve by one step.
            self._branching.climb(found.point)
            self._keep_branching()
        proposed = found.proposed
        self._keep(found.lower, found.upper, found.point, Proof(found.tree, lambda leaves, low, high: proposed(leaves)))
        return found.n_seen if goes_on else _NO_LIMIT

    def _cut_parts(self, goal: float) -> int:
        if self._parts is None:
            start = self.lower, self._point
            self._parts = RegionParts(self.law, self.sign, self.problem, self._branching.root_prices, start)
        elif not self._parts.is_done:
            self._parts.step()
        found = self._parts
        self._keep(found.lower, found.upper, found.point, Proof(found.tree, self._in_the_middle, self._root_prices))
        return _NO_LIMIT if found.is_done else found.n_seen

    def _keep_branching(self) -> None:
        found = self._branching
        proof = Proof(found.tree, lambda leaves, low, high: found.proposed(leaves), found.prices)
        self._keep(found.lower, found.upper, found.point, proof)

    def _keep(self, lower: float, upper: float, point: Floats | None, proof: Proof) -> None:
        if upper <= self.upper:
            self.upper, self._proof = upper, proof
        if point is not None and lower > self.lower:
            self.lower, self._point = lower, point

    def _in_the_middle(self, leaves: Positions, low: Floats, high: Floats) -> Floats:
        """Return the slopes at the middle of each leaf's arguments."""
        low, high = (low, high) if self.sign > 0 else (-high, -low)
        return self.sign * self.problem.envelope_slope(low, high, (low + high) / 2)

    def _root_prices(self, leaves: Positions) -> Floats:
        assert self._parts is not None
        return np.tile(self._parts.prices, (len(leaves), 1))
