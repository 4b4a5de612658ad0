r"""Tables for decisions about many people with answers to the same queries."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np

from skldp._arrays import Bools, Floats, Positions
from skldp.accounting._query import Query
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._ascent import ascended, scattered, stepped
from skldp.accounting.losses._certificate import (
    Cover,
    bounds_at,
    leaf_bounds,
    peaks_at_vertices,
    vertex_bounds,
    vertex_rounding,
)
from skldp.accounting.losses._region import Region, middle_and_half
from skldp.accounting.losses._sampled_law import AnswerLaw, answer_law
from skldp.accounting.losses._sigmoid_sum import SigmoidSum, sigmoid_sum

History = tuple[Sequence[int], Sequence[int]]
# The built-in map, or the map of an executor.
Workers = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]

_MOST_MOVING = 10
_MAX_STEPS = 12
# Histories that share their parts.
_MOST_TOGETHER = 1000
# Parts of a history that are divided further, and how often; the search takes over beyond them. More features need so
# many parts that few are worth a try.
_MOST_PARTS, _MOST_LEVELS = 512, 60
_MOST_HALVED, _PARTS_OF_MANY_FEATURES = 8, 32
# Levels between ascents, and every so many of the scattered points from which the first one starts.
_BETWEEN_ASCENTS, _SPARSE = 4, 8
# Approximate number of entries in a temporary array.
_BLOCK = 1 << 21
# A margin above the tolerance of a single history's search makes both methods decide alike.
MARGIN = 1e-6
# Answers with more rounding could exhaust the margin, so the search decides them.
_FINEST = 1e-9


def _counted(histories: Sequence[History], places: Positions, n_places: int) -> Floats:
    """Return the count of each answer in each history."""
    sizes = [len(outputs) for _, outputs in histories]
    asked = np.fromiter(chain.from_iterable(numbers for numbers, _ in histories), np.intp, sum(sizes))
    given = np.fromiter(chain.from_iterable(outputs for _, outputs in histories), np.intp, sum(sizes))
    rows = np.arange(len(histories)).repeat(sizes)
    flat = np.bincount(rows * n_places + places[asked] + given, minlength=len(histories) * n_places)
    return flat.reshape(len(histories), n_places).astype(np.float64)


def _decided_part(
    decided: Callable[[AnswerLaw, Floats, Floats, Floats, float], tuple[list[bool | None], Floats]],
    law: AnswerLaw,
    bounds: Floats,
    places: Positions,
    next_places: Positions,
    every_output: bool,
    budget: float,
    histories: Sequence[History],
) -> tuple[list[bool | None], Floats]:
    """Decide for some histories, by the answers that they have."""
    counts = _counted(histories, places, len(law))
    # Those of the next query are never left out, so that a person without answers has a law as well.
    needed = np.union1d(np.flatnonzero(counts.any(axis=0)), next_places)
    more = np.eye(len(needed))[np.searchsorted(needed, next_places)] if every_output else np.zeros((1, len(needed)))
    return decided(law.part(needed), counts[:, needed], more, bounds[needed], budget)


class AnswerTable(ABC):
    """Base class of thread-safe tables of answers, with bounds on their log-likelihoods at points."""

    def __init__(self, points_shape: tuple[int, ...]) -> None:
        self._lock = threading.Lock()
        self._place: dict[str, int | None] = {}
        self._law: AnswerLaw | None = None
        self._bounds = np.empty((0, *points_shape))

    def __len__(self) -> int:
        return 0 if self._law is None else len(self._law)

    def decisions(
        self,
        queries: Sequence[Query],
        histories: Sequence[History],
        query: Query,
        *,
        epsilon: float,
        every_output: bool = True,
        after: Floats | None = None,
        workers: Workers = map,
    ) -> list[bool | None]:
        """Decide for many histories whether every output of one more query keeps the realized loss within a budget."""
        # None is undecided. `after`, shape (n_histories, 2), gets the certified losses of those that do.
        used = {number for numbers, _ in histories for number in numbers}
        if not all(self.add(one) for one in (*(queries[number] for number in used), query)):
            return [None] * len(histories)
        places = np.zeros(len(queries), dtype=np.intp)
        places[list(used)] = [cast("int", self._place[queries[number].key]) for number in used]
        next_places = cast("int", self._place[query.key]) + np.arange(2)
        budget = epsilon if every_output or not isinstance(query, RegressionQuery) else epsilon - query.exact_epsilon
        with self._lock:
            assert self._law is not None
            law, bounds = self._law, self._bounds[: len(self._law)]
        n_at_once = min(_MOST_TOGETHER, max(1, _BLOCK // max(self._bounds.shape[-1], 4 * len(law))))
        parts = [histories[first : first + n_at_once] for first in range(0, len(histories), n_at_once)]
        some = partial(_decided_part, self._decided, law, bounds, places, next_places, every_output, budget)
        found = list((workers if len(parts) > 1 else map)(some, parts))
        if after is not None and found:
            after[:] = np.concatenate([losses for _, losses in found]) + (epsilon - budget)
        return list(chain.from_iterable(decided for decided, _ in found))

    def add(self, query: Query) -> bool:
        """Add a new query; return whether the table has its answers."""
        with self._lock:
            if query.key not in self._place:
                part, n_rows = self._part_of(query), len(self)
                self._place[query.key] = None if part is None else n_rows
                if part is not None:
                    if n_rows == len(self._bounds):
                        more = np.empty((max(64, n_rows), *self._bounds.shape[1:]))
                        self._bounds = np.concatenate([self._bounds, more])
                    self._bounds[n_rows : n_rows + 2] = self._bounds_of(part)
                    self._law = part if self._law is None else self._law.joined(part)
            return self._place[query.key] is not None

    @abstractmethod
    def _part_of(self, query: Query) -> AnswerLaw | None:
        """Return the law of the two answers to a query, or None if the table does not support it."""

    @abstractmethod
    def _bounds_of(self, part: AnswerLaw) -> Floats:
        """Return the bounds on the answers, one row per answer."""

    @staticmethod
    @abstractmethod
    def _decided(
        law: AnswerLaw, counts: Floats, more: Floats, bounds: Floats, epsilon: float
    ) -> tuple[list[bool | None], Floats]:
        """Decide for each row of counts whether it is within the budget with every row of `more`; bound its losses."""


class BoxTable(AnswerTable):
    """Table of regression queries over a box, with bounds at each vertex for concave ones."""

    def __init__(self, box: Floats) -> None:
        # Shapes: `box` (2, n_features).
        self._box = box
        moving = np.flatnonzero(box[0] < box[1])
        moving = moving if len(moving) <= _MOST_MOVING else moving[:0]
        self.n_vertices = 1 << len(moving)
        super().__init__((self.n_vertices,))
        at_the_top = (np.arange(self.n_vertices)[:, None] >> np.arange(len(moving))) & 1 == 1
        self._vertices = np.tile(box[0], (self.n_vertices, 1))
        self._vertices[:, moving] = np.where(at_the_top, box[1, moving], box[0, moving])

    @staticmethod
    def _decided(
        law: AnswerLaw, counts: Floats, more: Floats, bounds: Floats, epsilon: float
    ) -> tuple[list[bool | None], Floats]:
        # True is certified by :mod:`~skldp.accounting.losses._certificate`. False means that the loss between two
        # points exceeds the budget, up to rounding, with any row of `more`.
        shape = len(more), len(counts)
        after = (counts[None] + more[:, None]).reshape(-1, len(law))
        if np.isfinite(bounds).all():
            depths = ((counts @ bounds)[None] + (more @ bounds)[:, None]).max(axis=2).ravel()
            depths += vertex_rounding(law, after)
            proved, exceeds = _from_vertices(law, after, depths, epsilon, len(counts))
        else:
            proved, exceeds = _searched_together(law, after, epsilon, len(counts))
        fits = np.asarray((proved.reshape(shape) + MARGIN <= epsilon).all(axis=0))
        lost = np.asarray(exceeds.reshape(shape).any(axis=0))
        decided = [False if no else (True if yes else None) for no, yes in zip(lost, fits, strict=True)]
        fits &= ~lost & np.all((2 * after @ law.allowances).reshape(shape) <= MARGIN, axis=0)
        return decided, np.where(fits, proved.reshape(shape), np.inf).T

    def _bounds_of(self, part: AnswerLaw) -> Floats:
        if len(self._vertices) < 2 or not (sigmoid_sum(part).is_concave and peaks_at_vertices(part, -1)):
            return np.full((2, self.n_vertices), np.inf)
        return vertex_bounds(part, -1, self._vertices)

    def _part_of(self, query: Query) -> AnswerLaw | None:
        if not isinstance(query, RegressionQuery) or query.n_features != self._box.shape[1]:
            return None
        part = answer_law([query, query], [0, 1], self._box)
        return None if len(part) != 2 or part.allowance >= min(query.epsilon, _FINEST) else part


def _from_vertices(
    law: AnswerLaw, counts: Floats, depths: Floats, epsilon: float, n_histories: int
) -> tuple[Floats, Bools]:
    """Certify concave sums from their least values at vertices and the slopes at a point near the maximum."""
    problem, slack = sigmoid_sum(law), 2 * counts @ law.allowances
    exceeds = np.zeros(len(counts), dtype=bool)
    proved = np.full(len(counts), np.inf)
    active = np.arange(len(counts))
    ends = law.box[:1], law.box[1:], *law.ranges(law.box[:1], law.box[1:])
    # All ascents start in the middle, with one row of arguments.
    points = np.zeros((1, problem.weights.shape[1]))
    for _ in range(_MAX_STEPS):
        arguments = points @ problem.weights.T + problem.offset
        values = (counts[active] * problem.value(arguments)).sum(axis=1)
        each = problem.slope(arguments)
        slopes = (counts[active] * each) @ problem.weights
        uppers = values + np.abs(slopes).sum(axis=1) - (slopes * points).sum(axis=1)
        seem = np.flatnonzero(uppers + depths[active] + slack[active] + MARGIN <= epsilon)
        if len(seem):
            rows = active[seem]
            # The independent check proves this from one slope per answer.
            proved[rows] = (
                leaf_bounds(law, 1, counts[rows], each if len(each) == 1 else each[seem], *ends) + depths[rows]
            )
        exceeds[active] = values + depths[active] - slack[active] > epsilon
        going = np.flatnonzero((proved[active] + MARGIN > epsilon) & ~_spread(exceeds, n_histories)[active])
        if not len(going):
            break
        same = len(points) == 1
        points, arguments = (np.tile(one, (len(going), 1)) if same else one[going] for one in (points, arguments))
        active = active[going]
        points, _ = stepped(problem, counts[active], points, values[going], arguments)
    return proved, exceeds


def _spread(exceeds: Bools, n_histories: int) -> Bools:
    """Extend a mask of rows to all rows of the same histories."""
    return np.tile(exceeds.reshape(-1, n_histories).any(axis=0), len(exceeds) // n_histories)


class _Side:
    """Search for one extremum of each row's sum: proposals for a cover of the box, and sums at points."""

    def __init__(self, law: AnswerLaw, problem: SigmoidSum, sign: int, counts: Floats) -> None:
        self.law, self.problem, self.sign, self.counts = law, problem, sign, counts
        self.cover = Cover(law, sign, counts)
        self.lower = np.full(len(counts), -np.inf)

    def bound(self) -> None:
        """Bound every row over its parts, by the slopes of the majorants in the middle of each part."""
        problem, (low, high) = self.problem, self.cover.ranges
        low, high = (low, high) if self.sign > 0 else (-high, -low)
        # Most answers are convex or concave over a part: their majorants are chords, or the functions themselves.
        is_concave = low >= problem.bend - 4 * problem.error
        tangent = np.where(is_concave, low, high)
        part, answer = np.nonzero(~is_concave & (high > problem.bend + 4 * problem.error))
        tangent[part, answer] = problem.part(answer).tangent_point(low[part, answer], high[part, answer])
        middle = (low + high) / 2
        self.cover.bound(self.sign * problem.envelope_slope(low, high, middle, tangent))
        first, center, last = (problem.slope(at) for at in (low, middle, high))
        change = np.maximum(np.abs(center - first), np.abs(center - last))
        self._share = change / np.maximum(high - low, 1e-300)

    def ascend(self, rows: Positions) -> Floats:
        """Return the largest sum found for some rows, by ascents from the best of some points or the worst part."""
        problem, cover, counts = self.problem, self.cover, self.counts[rows]
        points = scattered(problem.weights.shape[1])[::_SPARSE]
        values = problem.value(points @ problem.weights.T + problem.offset)
        starts = points[(counts @ values.T).argmax(axis=1)]
        if len(cover.low) > 2 and len(cover.row):
            middle, half = middle_and_half(self.law.box)
            centers = (cover.low / 2 + cover.high / 2 - middle) / np.where(half > 0, half, 1.0)
            order = np.lexsort((cover.bounds, cover.row))
            worst = order[np.maximum(np.searchsorted(cover.row[order], rows, side="right") - 1, 0)]
            starts = np.where((cover.row[worst] == rows)[:, None], centers[cover.leaf[worst]], starts)
        self.lower[rows] = np.maximum(self.lower[rows], ascended(problem, counts, starts, _MAX_STEPS)[1])
        return self.lower[rows]

    def split(self, goal: Floats, going: Bools) -> None:
        """Keep the parts whose bounds are above the goal, and halve each along its loosest feature."""
        cover = self.cover
        keep = (cover.bounds > goal[cover.row]) & going[cover.row]
        cover.keep(keep)
        if len(cover.row):
            first = np.flatnonzero(np.diff(cover.leaf, prepend=-1))
            held = np.add.reduceat(self.counts[cover.row], first, axis=0) * self._share[cover.kept]
            cover.halve(((held @ self.law.coef**2) * (cover.high - cover.low) ** 2).argmax(axis=1))


def _searched_together(law: AnswerLaw, counts: Floats, epsilon: float, n_histories: int) -> tuple[Floats, Bools]:
    """Return the proved loss of each row, and a mask of those that exceed the budget, by parts of the box."""
    problem, goal = sigmoid_sum(law), epsilon - MARGIN
    high, low = sides = [_Side(law, own, sign, counts) for own, sign in ((problem, 1), (problem.reversed(), -1))]
    slack = 2 * counts @ law.allowances
    most = _MOST_PARTS if np.count_nonzero(law.used) <= _MOST_HALVED else _PARTS_OF_MANY_FEATURES
    going, exceeds = np.ones(len(counts), dtype=bool), np.zeros(len(counts), dtype=bool)
    for level in range(_MOST_LEVELS):
        for side in sides:
            side.bound()
        upper = high.cover.upper, low.cover.upper
        going &= upper[0] + upper[1] > goal
        if level % _BETWEEN_ASCENTS == 1:
            rows = np.flatnonzero(going)
            exceeds[rows] = high.ascend(rows) + low.ascend(rows) - slack[rows] > epsilon
            going &= ~_spread(exceeds, n_histories)
        n_parts = np.bincount(np.concatenate([high.cover.row, low.cover.row]), minlength=len(counts))
        # A few histories may take more parts than many.
        going &= n_parts <= max(most, (most << 4) // max(1, int(np.count_nonzero(going))))
        if not going.any():
            break
        high.split(np.maximum(goal - upper[1], high.lower), going)
        low.split(np.maximum(goal - upper[0], low.lower), going)
    return high.cover.upper + low.cover.upper, exceeds


def is_proved_within(queries: Sequence[RegressionQuery], outputs: Sequence[int], box: Floats, threshold: float) -> bool:
    """Return whether the loss of one history is proved to be at most a threshold. Shapes: box (2, d)."""
    law = answer_law(queries, outputs, box)
    if not len(law):
        return threshold >= 0
    # Half of the margin of a table's decisions proves what they admitted.
    return bool(_searched_together(law, law.count[None], threshold + MARGIN / 2, 1)[0][0] <= threshold)


_MOST_POINTS = 1 << 12


class PointTable(AnswerTable):
    """Table of regression queries over a finite domain, with bounds at each record."""

    def __init__(self, region: Region) -> None:
        if not self.serves(region):
            raise ValueError(f"A table needs a finite domain of at most {_MOST_POINTS} records; got a larger one.")
        self._region = region
        self._all = np.ones(len(region.integer), dtype=bool)
        # Upper bounds on each answer's log-likelihood and on its negative.
        super().__init__((2, sum(len(part) for _, part in region.sums(region.box[:1], self._all, _MOST_POINTS))))

    @staticmethod
    def serves(region: Region) -> bool:
        """Return whether the domain has few enough records."""
        return region.is_finite and region.n_points(np.ones(len(region.integer), dtype=bool)) <= _MOST_POINTS

    @staticmethod
    def _decided(
        law: AnswerLaw, counts: Floats, more: Floats, bounds: Floats, epsilon: float
    ) -> tuple[list[bool | None], Floats]:
        fits = np.ones(len(counts), dtype=bool)
        exceeds: Bools = np.zeros(len(counts), dtype=bool)
        before = [counts @ bounds[:, side] for side in (0, 1)]
        for row in more:
            after, loss = counts + row, np.zeros(len(counts))
            for sums, own in zip(before, bounds[row.argmax()], strict=True):
                loss += (sums + own).max(axis=1)
            # Rounding of both sides, and of each sum.
            fits &= loss + 2 * vertex_rounding(law, after) * (1 + 2.0**-20) + MARGIN <= epsilon
            exceeds |= loss - 4 * (after @ law.allowances) > epsilon
        decided = [False if no else (True if yes else None) for no, yes in zip(exceeds, fits, strict=True)]
        return decided, np.full((len(counts), len(more)), np.inf)

    def _bounds_of(self, part: AnswerLaw) -> Floats:
        sums = np.concatenate([own for _, own in self._region.sums(part.coef, self._all, _MOST_POINTS)])
        return np.stack([bounds_at(part, sign, sums, kinked=True).T for sign in (1, -1)], axis=1)

    def _part_of(self, query: Query) -> AnswerLaw | None:
        box = self._region.box
        if not isinstance(query, RegressionQuery) or query.n_features != box.shape[1]:
            return None
        law = answer_law([query, query], [0, 1], box, self._region)
        return None if len(law) != 2 or 2 * law.allowance >= query.epsilon else law
