"""Search for one side of a loss over a box."""

import math

import numpy as np

from skldp._arrays import Floats, Positions
from skldp.accounting.losses._ascent import ascended, scattered
from skldp.accounting.losses._branching import BoxBranching, maximum_of_concave
from skldp.accounting.losses._certificate import Proof, Proposal, Tree, peaks_at_vertices, vertex_maximum
from skldp.accounting.losses._region import middle_and_half
from skldp.accounting.losses._relaxation import DualBranching
from skldp.accounting.losses._sampled_law import AnswerLaw
from skldp.accounting.losses._sigmoid_sum import sigmoid_sum

# Up to this size (about 0.1 s), the vertex table is the fastest exact minimum.
_MOST_VERTEX_EVALUATIONS = 2.0**23
# Branching on the box is faster than branching on the answers with at most this many features and at least this many
# answers per feature. It is slower if the maximum is a face or a kink across the box.
_FEW_FEATURES = 4
_FEW_ANSWERS = 3
_FIRST_BOX_NODES = 10_000
_MAX_BOX_NODES = 200_000
_MAX_DUAL_NODES = 20_000
_N_SCATTERED = 512
_N_CLIMBS = 8
_MAX_CLIMB_STEPS = 20


class BoxSearch:
    """Search for one side of the loss, a maximum over the box, with `lower`, `upper` and a `point`.

    `upper` is not proved. Only the independent check of `proof` gives a bound.
    """

    def __init__(self, law: AnswerLaw, sign: int) -> None:
        self.law, self.sign = law, sign
        problem = sigmoid_sum(law)
        self.problem = problem if sign > 0 else problem.reversed()
        problem = self.problem
        self._to_the_ends = peaks_at_vertices(law, sign)
        n_moving = int((problem.weights != 0).any(axis=0).sum())
        self._by_vertices = self._to_the_ends and len(law) * 2.0**n_moving <= _MOST_VERTEX_EVALUATIONS
        self._boxes: BoxBranching | None = None
        self._answers: DualBranching | None = None
        # Methods with their node limits, and the method with the best upper bound.
        self._methods: list[tuple[bool, int]] = []
        self._best: BoxBranching | DualBranching | None = None
        # Slopes of the answers for the complete box.
        self._slopes = np.zeros((1, len(law)))
        self.upper = float(problem.count @ problem.value(problem.high))
        self.point = np.zeros(problem.weights.shape[1])
        self.lower = float(problem.total(self.point[None, :])[0])
        if self._by_vertices:
            self.upper, vertex = vertex_maximum(law, sign)
            point = np.where(vertex > law.box[0], 1.0, -1.0)
            self._keep(float(problem.total(point[None, :])[0]), math.inf, point)
        elif problem.is_concave:
            lower, upper, point, slopes = maximum_of_concave(problem, tol=1e-7, start=self.point)
            if upper < self.upper:
                self._slopes = slopes[None, :]
            self._keep(lower, upper, point)
        else:
            self._climb()
            self._methods = [(False, _MAX_DUAL_NODES)]
            if (n_moving <= _FEW_FEATURES and len(law) > _FEW_ANSWERS * n_moving) or self._to_the_ends:
                self._methods = [(True, min(_FIRST_BOX_NODES, _MAX_BOX_NODES)), *self._methods, (True, _MAX_BOX_NODES)]

    @property
    def is_exhausted(self) -> bool:
        """True if the maximum is known or a limit of nodes was reached."""
        return not self._methods or self.upper <= self.lower

    def step(self, goal: float) -> None:
        """Examine more nodes; no node needs a bound below the goal."""
        on_boxes, max_nodes = self._methods[0]
        start, goal = (self.lower, self.point), max(goal, self.lower)
        method: BoxBranching | DualBranching | None = self._boxes if on_boxes else self._answers
        if method is not None:
            method.step(goal)
        elif on_boxes:
            method = self._boxes = BoxBranching(self.problem, start, to_the_ends=self._to_the_ends)
        else:
            method = self._answers = DualBranching(self.problem, start, goal)
        self._keep(method.lower, method.upper, method.point, method)
        if method.n_seen >= max_nodes:
            del self._methods[0]

    @property
    def end(self) -> Floats:
        """Point of the lower bound, as a record."""
        middle, half = middle_and_half(self.law.box)
        return np.clip(middle + half * self.point, *self.law.box)

    @property
    def proof(self) -> Proof:
        """Result of the search, for the independent check."""
        if self._by_vertices:
            return Proof(None, self._majorants)
        if isinstance(self._best, DualBranching):
            return Proof(self._best.tree, self._recorded(self._best.multipliers))
        if isinstance(self._best, BoxBranching):
            middle, half = middle_and_half(self.law.box)
            return Proof(self._best.tree.scaled(middle, half), self._majorants)
        return Proof(Tree(self.law.box.shape[1]), self._recorded(self._slopes))

    def _recorded(self, slopes: Floats) -> Proposal:
        # The arguments of the problem are those of the law, or their negatives.
        return lambda leaves, low, high: self.sign * slopes[leaves]

    def _majorants(self, leaves: Positions, low: Floats, high: Floats) -> Floats:
        low, high = (low, high) if self.sign > 0 else (-high, -low)
        return self.sign * self.problem.envelope_slope(low, high, (low + high) / 2)

    def _keep(
        self, lower: float, upper: float, point: Floats, method: BoxBranching | DualBranching | None = None
    ) -> None:
        if upper < self.upper:
            self.upper, self._best = upper, method
        if lower > self.lower:
            self.lower, self.point = lower, point

    def _climb(self) -> None:
        """Ascend from the best of points scattered over the box and of nearby corners."""
        points = scattered(_N_SCATTERED, self.problem.weights.shape[1])
        points = np.concatenate([points, np.sign(points)])
        order = np.argsort(-self.problem.total(points), kind="stable")[:_N_CLIMBS]
        counts = np.tile(self.problem.count, (len(order), 1))
        points, values = ascended(self.problem, counts, points[order], _MAX_CLIMB_STEPS)
        self._keep(float(values.max()), math.inf, points[values.argmax()])
