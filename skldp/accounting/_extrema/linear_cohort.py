"""Decisions about many histories of linear answers at once.

Histories that are made of the same few queries differ only in how often each answer was given. So the values of all
sums at all vertices of the box are one product of matrices, and all maxima are found by one Newton iteration that
works on many histories at a time. Each history is left alone as soon as its bounds decide, which is mostly at once.
Those that seem to fit are handed to the independent check, with the slopes where the iteration stands.
"""

import threading
from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.ascent import stepped, totals
from skldp.accounting._extrema.certificate import leaf_bounds, peaks_at_vertices, vertex_bounds, vertex_rounding
from skldp.accounting._extrema.sampled_law import Bounds, Floats, SampledLaw, checked_box, sampled_law
from skldp.accounting._extrema.sigmoid_sum import sigmoid_sum
from skldp.accounting._query import Query, RegressionQuery

__all__ = ["History", "LinearTable", "linear_decisions"]

History = tuple[Sequence[int], Sequence[int]]

_MOST_MOVING = 10
_MAX_STEPS = 12
# About so many numbers in each temporary array.
_BLOCK = 1 << 21
# Wider than the tolerance to which one history alone is solved, so that both ways always decide alike.
_MARGIN = 1e-6


def linear_decisions(
    queries: Sequence[Query],
    histories: Sequence[History],
    query: Query,
    *,
    epsilon: float,
    bounds: Bounds | None,
    table: "LinearTable | None" = None,
) -> list[bool | None]:
    """Decide for many histories whether every output of one more query keeps the realized loss within a budget.

    Parameters
    ----------
    queries : sequence of RegressionQuery or FiniteQuery
        Those that the histories speak of, by their position.
    histories : sequence of tuple (positions, outputs)
    query : RegressionQuery or FiniteQuery
    epsilon : float
        The budget.
    bounds : tuple (low, high) or None
        The box of x.
    table : LinearTable, default=None
        To be kept for the next decisions within the same box.

    Returns
    -------
    list of bool or None
        None where this way does not decide: unless all queries are linear and stay within their output bounds, the
        features are few, and the loss is not a hair from the budget.

    Notes
    -----
    True is certified by :mod:`~skldp.accounting._extrema.certificate`: the maximum from the slopes at a point near it,
    the minimum from all vertices. False means that two points differ by more, up to rounding.

    Examples
    --------
    >>> from skldp.accounting._extrema.linear_cohort import linear_decisions
    >>> from skldp.accounting import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> linear_decisions([query], [([], []), ([0], [1]), ([0, 0], [0, 1])], query, epsilon=0.6, bounds=(-1, 1))
    [True, False, True]
    """
    undecided: list[bool | None] = [None] * len(histories)
    if bounds is None or not isinstance(query, RegressionQuery):
        return undecided
    if table is None:
        table = LinearTable(checked_box(bounds, n_features=query.n_features))
    used = {number for numbers, _ in histories for number in numbers}
    if not all(table.add(one) for one in (*(queries[number] for number in used), query)):
        return undecided
    next_places = table.place(query) + np.arange(2)
    places = {number: table.place(queries[number]) for number in used}
    n_at_once = max(1, _BLOCK // max(table.n_vertices, 4 * len(table)))
    decided: list[bool | None] = []
    for first in range(0, len(histories), n_at_once):
        counts = np.zeros((len(histories[first : first + n_at_once]), len(table)))
        for row, (numbers, outputs) in zip(counts, histories[first : first + n_at_once], strict=True):
            for number, output in zip(numbers, outputs, strict=True):
                row[places[number] + output] += 1
        needed = np.union1d(np.flatnonzero(counts.max(axis=0)), next_places)
        law, vertices = table.law(needed)
        columns = np.searchsorted(needed, next_places)
        decided += _decided(law, counts[:, needed], columns, vertices, epsilon)
    return decided


def _decided(
    law: SampledLaw, counts: Floats, next_places: npt.NDArray[np.intp], vertices: Floats, epsilon: float
) -> list[bool | None]:
    """Decide for each row of counts: True only if both outputs fit, False as soon as one does not."""
    problem = sigmoid_sum(law)
    n_histories = len(counts)
    before = counts @ vertices
    depths = np.concatenate([(before + vertices[place]).max(axis=1) for place in next_places])
    counts = np.concatenate([counts, counts])
    for part, place in enumerate(next_places):
        counts[part * n_histories : (part + 1) * n_histories, place] += 1
    depths += vertex_rounding(law, counts)
    slack = 2 * counts @ law.allowances
    fits, exceeds = np.zeros(2 * n_histories, dtype=bool), np.zeros(2 * n_histories, dtype=bool)
    active = np.arange(2 * n_histories)
    points = np.zeros((len(active), problem.weights.shape[1]))
    values = totals(problem, counts, points)
    for _ in range(_MAX_STEPS):
        arguments = points @ problem.weights.T + problem.offset
        each = problem.slope(arguments)
        slopes = (counts[active] * each) @ problem.weights
        uppers = values + np.abs(slopes).sum(axis=1) - (slopes * points).sum(axis=1)
        seem = np.flatnonzero(uppers + depths[active] + slack[active] + _MARGIN <= epsilon)
        if len(seem):
            proved = _proved(law, counts[active[seem]], each[seem]) + depths[active[seem]]
            fits[active[seem]] = proved + _MARGIN <= epsilon
        exceeds[active] = values + depths[active] - slack[active] > epsilon
        lost = exceeds[:n_histories] | exceeds[n_histories:]
        going = ~fits[active] & ~np.tile(lost, 2)[active]
        active, points, values = active[going], points[going], values[going]
        if not len(active):
            break
        points, values = stepped(problem, counts[active], points, values, arguments[going])
    exceeds_one, fits_both = exceeds[:n_histories] | exceeds[n_histories:], fits[:n_histories] & fits[n_histories:]
    return [False if no else (True if yes else None) for no, yes in zip(exceeds_one, fits_both, strict=True)]


def _proved(law: SampledLaw, counts: Floats, slopes: Floats) -> Floats:
    """Let the independent check bound each sum's maximum, from one slope per answer."""
    low, high = law.box[:1], law.box[1:]
    return leaf_bounds(law, 1, counts, slopes, low, high, *law.ranges(low, high))


class LinearTable:
    """Linear queries over one box, and how unlikely each of their answers is at each vertex; threads may share one.

    Parameters
    ----------
    box : ndarray of shape (2, n_features)

    Attributes
    ----------
    n_vertices : int
    """

    def __init__(self, box: Floats) -> None:
        self._box = box
        self._lock = threading.Lock()
        self._moving = np.flatnonzero(box[0] < box[1])
        self._place: dict[str, int | None] = {}
        self._law: SampledLaw | None = None
        self._bounds = np.empty((0, self.n_vertices))
        moving = self._moving[:_MOST_MOVING]
        at_the_top = (np.arange(1 << len(moving))[:, None] >> np.arange(len(moving))) & 1 == 1
        self._vertices = np.tile(box[0], (self.n_vertices, 1))
        self._vertices[:, moving] = np.where(at_the_top, box[1, moving], box[0, moving])

    def __len__(self) -> int:
        return 0 if self._law is None else len(self._law)

    @property
    def n_vertices(self) -> int:
        """Number of vertices of the box, for as many features as there may be."""
        return 1 << min(len(self._moving), _MOST_MOVING)

    def add(self, query: Query) -> bool:
        """Take in a query, unless it is known; say whether it is one whose sums are concave over the box."""
        with self._lock:
            if query.key not in self._place:
                self._take_in(query)
            return self._place[query.key] is not None

    def place(self, query: Query) -> int:
        """Row of a query's output 0; that of output 1 is the next."""
        return cast("int", self._place[query.key])

    def law(self, rows: npt.NDArray[np.intp]) -> tuple[SampledLaw, Floats]:
        """The law of some of the answers, given once each, and the certified bounds at the vertices."""
        with self._lock:
            assert self._law is not None
            return self._law.part(rows), self._bounds[rows]

    def _take_in(self, query: Query) -> None:
        part, n_rows = self._part_of(query), len(self)
        self._place[query.key] = None if part is None else n_rows
        if part is not None:
            if n_rows == len(self._bounds):
                more = np.empty((max(64, n_rows), self.n_vertices))
                self._bounds = np.concatenate([self._bounds, more])
            self._bounds[n_rows : n_rows + 2] = vertex_bounds(part, -1, self._vertices)
            self._law = part if self._law is None else self._law.joined(part)

    def _part_of(self, query: Query) -> SampledLaw | None:
        if not isinstance(query, RegressionQuery) or query.kind != "linear" or len(self._moving) > _MOST_MOVING:
            return None
        if query.n_features != self._box.shape[1]:
            return None
        part = sampled_law([query, query], [0, 1], self._box)
        if len(part) != 2 or part.allowance >= query.epsilon or not peaks_at_vertices(part, -1):
            return None
        return part if sigmoid_sum(part).is_concave else None
