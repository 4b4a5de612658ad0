r"""Maximization of a sum of S-shaped functions over a domain, by branching on integer columns and answers' arguments.

A node is a part of a :class:`~skldp.accounting.losses._region.Region`, with an interval for each answer's argument. A
linear program uses the node's convex hull (blocks are simplices, inequalities are rows) and majorants of the answers.
It proposes slopes for the answers and prices for the inequalities. The bounds that they prove have closed forms, as in
:mod:`~skldp.accounting.losses._box_search`. The gap between the bound and the best record has two causes at the maximum
of the relaxation: fractions in integer columns, and loose majorants. The node is cut at the larger cause.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
from scipy.optimize import linprog

from skldp._arrays import Floats, Positions
from skldp.accounting.losses._certificate import Tree
from skldp.accounting.losses._sampled_law import AnswerLaw
from skldp.accounting.losses._sigmoid_sum import SigmoidSum

_MAX_NODES = 400
_FEWEST_NODES = 16
_MOST_COLUMNS = 20_000
_ROOT_ROUNDS = 12
_ROUNDS = 4
# An argument that exceeds its interval by 1/1000 of its range loses 1/10 of the maximum.
_STEEPNESS = 100.0
# Rounds of local search around the best record.
_CLIMBS = 3
# Distance at which a column of the relaxation counts as an integer.
_INTEGER = 1e-6


@dataclass(frozen=True, eq=False)
class _Node:
    """Part of the region, intervals of the arguments, and the solution of a linear program."""

    # `cuts` are the active majorants of the relaxation, each with the index of an answer and a slope. `slopes` and
    # `prices` prove `bound`. `peak` is the maximum of the relaxation, and `number` the node's position in the tree.

    box_low: Floats
    box_high: Floats
    cut_low: Floats
    cut_high: Floats
    low: Floats
    high: Floats
    cuts: tuple[Positions, Floats]
    number: int
    bound: float
    slopes: Floats
    prices: Floats
    peak: Floats


class RegionBranching:
    """Best-first branch and bound over a region, one node per step."""

    # Shapes: `point` (d,); `root_prices` (n_inequalities,).

    def __init__(self, law: AnswerLaw, sign: int, problem: SigmoidSum) -> None:
        assert law.region is not None
        self.law, self.sign, self.problem, self.region = law, sign, problem, law.region
        read = law.used | (self.region.coef != 0).any(axis=0)
        for block in self.region.blocks:
            read[block.columns] |= read[block.columns].any()
        self._columns = np.flatnonzero(read)
        # A program's cost grows with its columns, so more columns allow fewer nodes.
        self._max_nodes = max(_FEWEST_NODES, min(_MAX_NODES, _MOST_COLUMNS // (len(self._columns) + len(law))))
        self._n_nodes, self._order = 0, count()
        self._heap: list[tuple[float, int, _Node]] = []
        # Bounds of discarded nodes also bound the maximum.
        self._discarded = -np.inf
        self._proofs: dict[int, tuple[Floats, Floats]] = {}
        self.tree = Tree(law.box.shape[1])
        self.point: Floats = self.region.move(law.box.mean(axis=0)[None, :])[0]
        self.lower = float(self._values(self.point[None, :])[0])
        root = self._root()
        self.upper = float(problem.value(root.high) @ problem.count)
        self.climb(self.point)
        self._push(root)
        self.root_prices = root.prices

    def proposed(self, leaves: Positions) -> Floats:
        """Return the slopes of the answers in the tree's leaves, for the law's arguments."""
        return self.sign * np.array([self._proofs[int(leaf)][0] for leaf in leaves])

    def prices(self, leaves: Positions) -> Floats:
        """Return the prices of the inequalities in the tree's leaves."""
        return np.array([self._proofs[int(leaf)][1] for leaf in leaves])

    @property
    def n_seen(self) -> int:
        """Number of nodes bounded so far."""
        return self._n_nodes

    @property
    def is_done(self) -> bool:
        """True if no node can be cut, or the limit of nodes was reached."""
        return not self._heap or self._n_nodes >= self._max_nodes

    def step(self, goal: float) -> None:
        """Cut the node with the largest bound, or bound the root; no node needs a bound below the goal."""
        node = heapq.heappop(self._heap)[2]
        if not self._n_nodes:
            node = self._bounded(node, goal, _ROOT_ROUNDS)
            self.root_prices, self._n_nodes = node.prices, 1
            self._push(node)
        else:
            for child in self._halves(node):
                self._n_nodes += 1
                self._push(self._bounded(child, goal, _ROUNDS))
        self.upper = max(self.lower, self._discarded, -self._heap[0][0] if self._heap else -np.inf)

    def _push(self, node: _Node) -> None:
        """Store a node with its slopes and prices."""
        self._proofs[node.number] = node.slopes, node.prices
        heapq.heappush(self._heap, (-node.bound, next(self._order), node))

    def _values(self, points: Floats) -> Floats:
        """Return the sum at points of the region, up to rounding."""
        return self.problem.value(self._arguments(points)) @ self.problem.count

    def _arguments(self, points: Floats) -> Floats:
        """Return the arguments of the problem at points: those of the law, or their negatives."""
        return self.sign * (points @ self.law.coef.T + self.law.offset)

    def _root(self) -> _Node:
        n, box = len(self.law), self.law.box
        low, high = self.region.tightened(box[:1], box[1:])
        least, most = self._ranges(low, high)
        parts = least + np.array([0.0, 0.5, 1.0])[:, None] * (most - least)
        slopes = self.problem.envelope_slope(least, most, parts)
        return _Node(
            low[0], high[0], np.full(n, -np.inf), np.full(n, np.inf), least[0], most[0],
            (np.tile(np.arange(n), 3), slopes.ravel()), 0, np.inf, np.zeros(n), np.zeros(len(self.region.limits)),
            self.point,
        )  # fmt: skip

    def _ranges(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest argument of each answer of the problem over parts of the region."""
        least, most = self.law.ranges(low, high)
        return (least, most) if self.sign > 0 else (-most, -least)

    def _bounded(self, node: _Node, goal: float, n_rounds: int) -> _Node:
        """Tighten a node's bound by cutting planes until it is at most `goal` or stops improving."""
        which, slopes = node.cuts
        node = replace(node, bound=min(node.bound, self._proved(node, node.slopes, node.prices)))
        for _ in range(n_rounds):
            if node.bound <= goal:
                break
            found = self._linear_program(node, which, slopes)
            if found is None:
                break
            peak, height, which, slopes, duals, prices = found
            proposed = np.bincount(which, duals * slopes, len(self.law)) / self.problem.count
            bound = self._proved(node, proposed, prices)
            if bound < node.bound:
                node = replace(node, bound=bound, slopes=proposed, prices=prices)
            node = replace(node, peak=peak)
            self.climb(peak)
            held = duals > 1e-9
            which, slopes = which[held], slopes[held]
            slope, majorant = self._majorants(node)
            excess = height - majorant
            if excess @ self.problem.count < 0.1 * max(float(height @ self.problem.count) - goal, 1e-6):
                break
            new = np.flatnonzero(excess > 1e-6)
            which, slopes = np.concatenate([which, new]), np.concatenate([slopes, slope[new]])
        return replace(node, cuts=(which, slopes))

    def _proved(self, node: _Node, slopes: Floats, prices: Floats) -> float:
        """Return the bound on a node that slopes and prices prove."""
        peaks = self.problem.conjugate(slopes, node.low, node.high)
        weighted = self.sign * slopes * self.problem.count
        tilt = (weighted @ self.law.coef)[None, :]
        rest = self.region.largest_priced(tilt, prices[None, :], node.box_low[None, :], node.box_high[None, :])
        slack = self.problem.slack(slopes)
        return float(peaks @ self.problem.count + weighted @ self.law.offset + rest[0] + slack)

    def _majorants(self, node: _Node) -> tuple[Floats, Floats]:
        """Return the slope and value of each answer's least concave majorant at the relaxation's maximum."""
        at = np.clip(self._arguments(node.peak), node.low, node.high)
        slope = self.problem.envelope_slope(node.low, node.high, at)
        return slope, self.problem.conjugate(slope, node.low, node.high) + slope * at

    def climb(self, peak: Floats) -> None:
        """Improve `point` by the member nearest to a given point, with the best choices of blocks and integers."""
        region = self.region
        point = peak.copy()
        lone = region.integer & ~region.in_block
        point[lone] = np.rint(point[lone])
        for block in region.blocks:
            own = point[block.columns]
            chosen = int(own.argmax())
            is_none = block.at_most_one and own.sum() < 0.5
            point[block.columns] = 0.0
            point[block.columns.start + chosen] = 0.0 if is_none else 1.0
        point = region.move(point[None, :])[0]
        best = float(self._values(point[None, :])[0])
        for _ in range(_CLIMBS):
            before = best
            for columns, choices, totals in self._choices(point):
                tried = point.copy()
                tried[columns] = choices(int(totals.argmax()))
                tried = region.move(tried[None, :])
                value = float(self._values(tried)[0])
                if value > best:
                    best, point = value, tried[0]
            if best <= before:
                break
        if best > self.lower:
            self.lower, self.point = best, point

    def _choices(self, point: Floats) -> Iterator[tuple[slice, Callable[[int], Floats], Floats]]:
        """Yield the choices near a point of each block and integer column, with the sum for each choice."""
        coef, region = self.law.coef, self.region
        arguments = self._arguments(point[None, :])
        for block in region.blocks:
            own = coef[:, block.columns]
            each = own.T if not block.at_most_one else np.concatenate([own.T, np.zeros((1, len(own)))])
            changed = arguments + self.sign * (each - own @ point[block.columns])
            one_hot = partial(np.equal, np.arange(block.size))
            yield block.columns, one_hot, self.problem.value(changed) @ self.problem.count
        for column in np.flatnonzero(region.integer & ~region.in_block):
            low, high = region.box[:, column]
            near = np.array([low, *np.clip([point[column] - 1, point[column] + 1], low, high), high])
            changed = arguments + self.sign * ((near - point[column])[:, None] * coef[:, column])
            yield slice(column, column + 1), near.__getitem__, self.problem.value(changed) @ self.problem.count

    def _halves(self, node: _Node) -> list[_Node]:
        """Cut a node at the loosest part of its relaxation: a fraction in an integer column or an argument."""
        at = np.clip(self._arguments(node.peak), node.low, node.high)
        loose = self.problem.count * (self._majorants(node)[1] - self.problem.value(at))
        ends = (node.box_low, node.box_high, node.cut_low, node.cut_high)
        low, high, cut_low, cut_high = (np.tile(one, (2, 1)) for one in ends)
        column = self._fractional(node)
        if column is not None and (loose.sum() < 0.5 * (node.bound - self.lower) or not self._can_cut(node, loose)):
            cut = float(np.floor(node.peak[column]))
            first = int(self.tree.split(node.number, column, cut)[0])
            high[0, column], low[1, column] = cut, cut + 1
            return self._parts(node, low, high, cut_low, cut_high, first, 1)
        if not self._can_cut(node, loose):
            self._discarded = max(self._discarded, node.bound)
            return []
        answer = int(loose.argmax())
        cut = self._place_of_cut(node, answer)
        # Arguments of a flipped problem are the negatives of those in the tree.
        first = int(self.tree.split(node.number, len(self.region.integer) + answer, self.sign * cut)[0])
        cut_high[0, answer] = cut_low[1, answer] = cut
        return self._parts(node, low, high, cut_low, cut_high, first, self.sign)

    def _parts(
        self, node: _Node, low: Floats, high: Floats, cut_low: Floats, cut_high: Floats, first: int, order: int
    ) -> list[_Node]:
        """Return the halves of a node that can contain a record, in either order."""
        low, high = self.region.tightened(low, high)
        possible = self.region.is_possible(low, high)
        children = []
        for half in np.flatnonzero(possible):
            least, most = (ends[0] for ends in self._ranges(low[half : half + 1], high[half : half + 1]))
            begin = np.maximum(least, cut_low[half] - self.law.error)
            end = np.minimum(most, cut_high[half] + self.law.error)
            child = replace(
                node,
                box_low=low[half],
                box_high=high[half],
                cut_low=cut_low[half],
                cut_high=cut_high[half],
                low=begin,
                high=np.maximum(begin, end),
                number=first + int(half if order > 0 else 1 - half),
                peak=np.clip(node.peak, low[half], high[half]),
            )
            slope, _ = self._majorants(child)
            which = np.concatenate([node.cuts[0], np.arange(len(slope))])
            children.append(replace(child, cuts=(which, np.concatenate([node.cuts[1], slope]))))
        return children

    def _fractional(self, node: _Node) -> int | None:
        """Return the integer column whose rounding moves the answers' arguments most."""
        beyond = np.where(self.region.integer, np.abs(node.peak - np.rint(node.peak)), 0.0)
        beyond[(node.box_low >= node.box_high) | (beyond < _INTEGER)] = 0.0
        moved = beyond * (self.problem.count @ np.abs(self.law.coef) + 1e-300)
        column = int(moved.argmax())
        return column if beyond[column] > 0 else None

    def _can_cut(self, node: _Node, loose: Floats) -> bool:
        """Return whether the interval of the loosest answer is worth cutting."""
        answer = int(loose.argmax())
        return bool(loose[answer] > 0 and node.high[answer] - node.low[answer] > 8 * self.law.error[answer])

    def _place_of_cut(self, node: _Node, answer: int) -> float:
        """Return the kink of a ramp, or the middle of the majorant's straight piece."""
        part = self.problem.part(np.array([answer]))
        start, end = node.low[answer], node.high[answer]
        kink = -1.0 if self.problem.flipped else 0.0
        if not self.problem.logistic[answer] and start < kink < end:
            return kink
        turn = float(part.tangent_point(node.low[[answer]], node.high[[answer]])[0])
        return float(start + (turn if turn > start else end)) / 2

    def _linear_program(
        self, node: _Node, which: Positions, slopes: Floats
    ) -> tuple[Floats, Floats, Positions, Floats, Floats, Floats] | None:
        """Maximize the sum of the least of each answer's majorants over a node's convex hull."""
        # Return the point, the majorants there, all cuts (answers and slopes) with their duals, and the prices of the
        # inequalities; or None if the solver fails. Columns are in units of their width.
        region, problem, columns, n = self.region, self.problem, self._columns, len(self.law)
        root_low, root_high = self.law.box
        width = np.where(root_high > root_low, root_high - root_low, 1.0)[columns]
        # Steep majorants keep a cut argument inside, so every node is feasible.
        cut_low, cut_high = np.flatnonzero(node.cut_low > -np.inf), np.flatnonzero(node.cut_high < np.inf)
        ends = np.concatenate([cut_low, cut_high])
        steep = _STEEPNESS * (problem.count @ problem.epsilon) / np.maximum(problem.high - problem.low, 1e-6)
        rows = np.concatenate([which, ends])
        lines = np.concatenate([slopes, steep[cut_low], -steep[cut_high]])
        weights = self.sign * self.law.coef[:, columns] * width
        offset = self.sign * (self.law.coef @ root_low + self.law.offset)
        scale = np.maximum(np.abs(region.coef[:, columns] * width).sum(axis=1), 1e-300)
        matrix = np.zeros((len(rows) + len(scale), len(columns) + n))
        matrix[: len(rows), : len(columns)] = -lines[:, None] * weights[rows]
        matrix[np.arange(len(rows)), len(columns) + rows] = 1.0
        matrix[len(rows) :, : len(columns)] = region.coef[:, columns] * width / scale[:, None]
        rhs = lines * offset[rows] + problem.part(rows).conjugate(lines, node.low[rows], node.high[rows])
        rhs = np.concatenate([rhs, (region.limits - region.coef @ root_low) / scale])
        exact, at_most = (
            np.pad(rows_of[:, columns], ((0, 0), (0, n)))[rows_of[:, columns].any(axis=1)]
            for rows_of in region.block_rows
        )
        found = linprog(
            np.concatenate([np.zeros(len(columns)), -problem.count]),
            A_ub=np.concatenate([matrix, at_most]),
            b_ub=np.concatenate([rhs, np.ones(len(at_most))]),
            A_eq=exact if len(exact) else None,
            b_eq=np.ones(len(exact)) if len(exact) else None,
            bounds=np.concatenate(
                [
                    np.stack([(end - root_low)[columns] / width for end in (node.box_low, node.box_high)], axis=1),
                    np.full((n, 2), (-np.inf, np.inf)),
                ]
            ),
            method="highs-ds",
            options={"presolve": False},
        )
        if found.x is None or not np.isfinite(found.x).all():
            return None
        peak = node.peak.copy()
        peak[columns] = root_low[columns] + width * found.x[: len(columns)]
        duals = -found.ineqlin.marginals
        prices = duals[len(rows) : len(rows) + len(scale)] / scale
        peak = np.clip(peak, node.box_low, node.box_high)
        return peak, found.x[len(columns) :], rows, lines, duals[: len(rows)], prices
