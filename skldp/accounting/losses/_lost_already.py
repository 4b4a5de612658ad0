"""Fast detection of histories whose loss between two points of the box exceeds a budget.

Two points suffice for a refusal, without a proof. Histories with the same few answers share their values at scattered
points, and ascend together from the best points. The exact decision would refuse these people too, since a certified
bound exceeds every loss between two points.
"""

from collections.abc import Sequence

import numpy as np

from skldp._arrays import Bools, Floats
from skldp.accounting._query import Query
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._ascent import ascended, scattered
from skldp.accounting.losses._sampled_law import answer_law
from skldp.accounting.losses._sigmoid_sum import SigmoidSum, sigmoid_sum

_N_SCATTERED = 512
_N_CLIMBS = 16
_MAX_CLIMB_STEPS = 30
# Approximate number of entries in a temporary array.
_BLOCK = 1 << 21


def have_lost_more(answers: Sequence[tuple[Sequence[Query], Sequence[int]]], box: Floats, threshold: float) -> Bools:
    """Return a mask of the histories whose realized loss is certainly above a threshold.

    Shapes: box (2, d).
    """
    found = np.zeros(len(answers), dtype=bool)
    different = {query.key: query for queries, _ in answers for query in queries}.values()
    regressions = [query for query in different if isinstance(query, RegressionQuery)]
    if len(regressions) < len(different) or any(query.n_features != box.shape[1] for query in regressions):
        return found
    both = [(query, output) for query in regressions for output in (0, 1)]
    law = answer_law([query for query, _ in both], [output for _, output in both], box)
    if not len(law):
        return found
    moving = box[0] < box[1]
    places = sorted((query.key, output) for query, output in both if query.coef[moving].any())
    column = {place: position for position, place in enumerate(places)}
    problem = sigmoid_sum(law)
    points = scattered(_N_SCATTERED, box.shape[1])
    points = np.concatenate([points, np.sign(points)])
    values = problem.value(points @ problem.weights.T + problem.offset)
    n_at_once = max(1, _BLOCK // (2 * _N_CLIMBS * max(len(points), len(law), box.shape[1] ** 2)))
    for first in range(0, len(answers), n_at_once):
        some = answers[first : first + n_at_once]
        counts = np.zeros((len(some), len(law)))
        for row, (queries, outputs) in zip(counts, some, strict=True):
            for query, output in zip(queries, outputs, strict=True):
                if (query.key, output) in column:
                    row[column[query.key, output]] += 1
        # Rounding of both ends.
        limits = threshold + 2 * counts @ law.allowances
        seen = counts @ values.T
        lost = np.ptp(seen, axis=1) > limits
        left = np.flatnonzero(~lost)
        tops = _climbed(problem, counts[left], points, seen[left])
        bottoms = _climbed(problem.reversed(), counts[left], points, -seen[left])
        lost[left] = tops + bottoms > limits[left]
        found[first : first + n_at_once] = lost
    return found


def _climbed(problem: SigmoidSum, counts: Floats, points: Floats, seen: Floats) -> Floats:
    """Return the largest sum found by ascent from the best point, for each row of counts."""
    best = np.argsort(-seen, axis=1, kind="stable")[:, :_N_CLIMBS]
    _, values = ascended(problem, counts.repeat(_N_CLIMBS, axis=0), points[best.ravel()], _MAX_CLIMB_STEPS)
    tops: Floats = values.reshape(-1, _N_CLIMBS).max(axis=1)
    return tops
