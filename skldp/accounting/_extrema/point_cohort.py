"""Decisions about many histories at once, over a domain of few records.

What every answer says of every record is written into a table once. Then the losses of all histories are products of
matrices, whatever the queries are: nothing has to be searched for.
"""

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.certificate import bounds_at, vertex_rounding
from skldp.accounting._extrema.linear_cohort import History
from skldp.accounting._extrema.region import Region
from skldp.accounting._extrema.sampled_law import Floats, SampledLaw, sampled_law
from skldp.accounting._query import Query, RegressionQuery

__all__ = ["PointTable"]

_MOST_POINTS = 1 << 12
# About so many numbers in each temporary array.
_BLOCK = 1 << 21
# So that this way and that of one history alone always decide alike.
_MARGIN = 1e-6


class PointTable:
    """Regression queries over one finite domain, and bounds on each answer's log-likelihood at each record.

    Threads may share one.

    Parameters
    ----------
    region : Region

    Raises
    ------
    ValueError
        If it holds too many records, or more than finitely many: see :meth:`serves`.
    """

    def __init__(self, region: Region) -> None:
        if not self.serves(region):
            raise ValueError(
                f"A table needs a finite domain of at most {_MOST_POINTS} records. Got a larger one instead."
            )
        self._region = region
        self._lock = threading.Lock()
        self._place: dict[str, int | None] = {}
        self._law: SampledLaw | None = None
        # Of each answer, what bounds its log-likelihood from above, and what bounds minus it.
        self._bounds: list[tuple[Floats, Floats]] = []

    @staticmethod
    def serves(region: Region) -> bool:
        """Whether a domain holds few enough records."""
        return region.is_finite and region.n_points(np.ones(len(region.whole), dtype=bool)) <= _MOST_POINTS

    def decisions(
        self, queries: Sequence[Query], histories: Sequence[History], query: Query, *, epsilon: float
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

        Returns
        -------
        list of bool or None
            True is certified. None where the loss is a hair from the budget, or a query is no regression over this
            domain, or one that tells nothing about it.

        Examples
        --------
        >>> import numpy as np
        >>> from skldp.accounting import RegressionQuery
        >>> from skldp.accounting._extrema.point_cohort import PointTable
        >>> from skldp.accounting._extrema.region import region_of
        >>> from skldp.mechanisms import OneHot
        >>> query = RegressionQuery("linear", coef=[1.0, 0.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.5)
        >>> table = PointTable(region_of(OneHot(2)))
        >>> table.decisions([query], [([], []), ([0], [1]), ([0, 0], [0, 1])], query, epsilon=0.6)
        [True, False, True]
        """
        used = sorted({number for numbers, _ in histories for number in numbers})
        with self._lock:
            places = {number: self._place_of(queries[number]) for number in used}
            next_place = self._place_of(query)
            law, bounds = self._law, list(self._bounds)
        if law is None or next_place is None or None in places.values():
            return [None] * len(histories)
        rows = np.array(sorted({place for place in (*places.values(), next_place) if place is not None}))
        needed = np.sort(np.concatenate([rows, rows + 1]))
        column = {int(row): position for position, row in enumerate(needed)}
        tables = [np.array([bounds[row][side] for row in needed]) for side in (0, 1)]
        counts = np.zeros((len(histories), len(needed)))
        for row, (numbers, outputs) in zip(counts, histories, strict=True):
            for number, output in zip(numbers, outputs, strict=True):
                row[column[int(places[number] or 0) + int(output)]] += 1
        next_columns = [column[next_place + output] for output in (0, 1)]
        step = max(1, _BLOCK // tables[0].shape[1])
        decided: list[bool | None] = []
        for first in range(0, len(counts), step):
            decided += _decided(law.part(needed), counts[first : first + step], next_columns, tables, epsilon)
        return decided

    def _place_of(self, query: Query) -> int | None:
        """Row of a query's output 0, of which that of output 1 is the next; None where it has none."""
        if query.key not in self._place:
            self._place[query.key] = self._take_in(query)
        return self._place[query.key]

    def _take_in(self, query: Query) -> int | None:
        box = self._region.box
        if not isinstance(query, RegressionQuery) or query.n_features != box.shape[1]:
            return None
        law = sampled_law([query, query], [0, 1], box, self._region)
        if len(law) != 2 or 2 * law.allowance >= query.epsilon:
            return None
        everything = np.ones(box.shape[1], dtype=bool)
        sums = np.concatenate([part for _, part in self._region.sums(law.coef, everything, _MOST_POINTS)])
        above, below = (bounds_at(law, sign, sums, kinked=True).T for sign in (1, -1))
        place = len(self._bounds)
        self._bounds += zip(above, below, strict=True)
        self._law = law if self._law is None else self._law.joined(law)
        return place


def _decided(
    law: SampledLaw, counts: Floats, next_columns: Sequence[int], tables: Sequence[Floats], epsilon: float
) -> list[bool | None]:
    """Decide for each row of counts: True only if both outputs fit, False as soon as one does not."""
    fits = np.ones(len(counts), dtype=bool)
    exceeds: npt.NDArray[np.bool_] = np.zeros(len(counts), dtype=bool)
    before = [counts @ table for table in tables]
    for column in next_columns:
        after = counts.copy()
        after[:, column] += 1
        loss = np.zeros(len(counts))
        for sums, table in zip(before, tables, strict=True):
            loss += (sums + table[column]).max(axis=1)
        # Either side's roundings, and one more of each sum.
        fits &= loss + 2 * vertex_rounding(law, after) * (1 + 2.0**-20) + _MARGIN <= epsilon
        exceeds |= loss - 4 * (after @ law.allowances) > epsilon
    return [False if no else (True if yes else None) for no, yes in zip(exceeds, fits, strict=True)]
