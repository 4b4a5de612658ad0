r"""Certified bounds on the realized privacy loss of answers.

The realized loss of outputs :math:`y_1, \dots, y_n` is (Pan 2025, Eq. 10)

.. math:: L(y) = \ln \max_x \prod_i P(y_i \mid x) - \ln \min_x \prod_i P(y_i \mid x).

A search finds a point and a bound for each extremum, but the result does not depend on its correctness. The independent
check (:mod:`~skldp.accounting.losses._certificate`) proves the bound. The value at the point is computed from the
sampled integers. The search method depends only on the answers, without time limits, so a decision is the same on
every machine.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp._checks import check_positive, is_integer
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery, answers_by_question, loss_of_classes
from skldp.accounting._query import Query, ReleaseQuery, charge_of, released_loss
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting._units import nats_above, nats_below, units_above, units_below
from skldp.accounting.losses._ascent import scattered
from skldp.accounting.losses._box_search import BoxSearch
from skldp.accounting.losses._certificate import (
    certified_loss,
    loss_between,
)
from skldp.accounting.losses._joint import JointRegion
from skldp.accounting.losses._region import Bounds, Region, middle_and_half, region_of
from skldp.accounting.losses._region_search import RegionSearch
from skldp.accounting.losses._sampled_law import answer_law
from skldp.mechanisms._finite_query import FiniteQuery

_FEW_FEATURES = 4
# The gap that is left after so many steps is that of the inequalities. A linear program's cost grows with its entries.
_JOINT_STEPS, _FEWEST_JOINT_STEPS, _JOINT_ENTRIES = 32, 4, 3000


def realized_loss(
    queries: Sequence[Query],
    outputs: Sequence[int],
    *,
    bounds: Bounds | None = None,
    domain: npt.ArrayLike | None = None,
    tol: float = 1e-3,
    group_size: int | None = None,
    threshold: float | None = None,
) -> "LossBounds":
    """Bound the realized privacy loss of one person's answers from both sides.

    Parameters
    ----------
    queries : sequence of RegressionQuery, ClassQuery, SoftmaxQuery, FiniteQuery or ReleaseQuery
        Queries of the answers. The charge of a release is added in full; releases of a part are charged by their codes.
    outputs : sequence of int
        Output of each query: 0 or 1 for a regression (0 means a, 1 means b).
    bounds : tuple (low, high) or Domain, default=None
        Bounds of x, each a number or one number per feature; or a ``Domain`` of intervals, integers and one-hot
        blocks, with or without linear inequalities.
    domain : array-like of shape (n_points, n_features), default=None
        Finite domain, as an alternative to `bounds`. A FiniteQuery refers to its points by index. Finite queries alone
        need no domain.
    tol : float, default=1e-3
        Target of `upper` minus `lower`, in nats.
    group_size : int, default=None
        Number of answers per group. The bounds of groups are added (Appendix C of the paper), which is looser, but the
        time is linear in the number of answers. None bounds all answers jointly.
    threshold : float, default=None
        Loss at which to stop: the search ends when the loss is known to be at most this, or above it.

    Returns
    -------
    LossBounds
        Certified bounds, and the two records between which the lower bound is attained.

    Raises
    ------
    ValueError
        If the queries and outputs do not match, no domain is given, or its number of features differs.

    Notes
    -----
    The order of the answers does not matter. `upper` is valid whether or not the search converged.

    All answers are bounded jointly, or class and softmax queries by themselves if the sum is less. A named part and
    every other release are bounded separately and added, even if they depend on the same columns. The sum is never
    below the joint loss, since the maximum of a product is at most the product of the maxima, and likewise for minima.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Eq. 10, Sections 5.1 and 5.2,
    Appendices C and D. Algorithm 6 is misprinted there: its loop must run while LB < UB_g - delta, and
    UB_g = min(UB_g, UB).

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery, realized_loss
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> round(realized_loss([query], [1], bounds=(-1, 1)).upper, 6)
    0.5
    >>> round(realized_loss([query, query], [1, 0], bounds=(-1, 1)).upper, 3)
    0.062
    """
    check_positive("tol", tol)
    queries, outputs = list(queries), list(outputs)
    if len(queries) != len(outputs):
        raise ValueError(f"Every query needs one output; got {len(queries)} queries and {len(outputs)} outputs.")
    _check_outputs(queries, outputs)
    released = [query for query in queries if isinstance(query, ReleaseQuery)]
    if released:
        return _with_releases(
            queries,
            outputs,
            released,
            threshold,
            partial(realized_loss, bounds=bounds, domain=domain, tol=tol, group_size=group_size),
        )
    if group_size is not None:
        if not is_integer(group_size) or group_size < 1:
            raise ValueError(f"group_size must be a positive int or None; got {group_size!r}.")
        starts = range(0, len(queries), group_size)
        ends = [slice(first, first + group_size) for first in starts]
        parts = [
            realized_loss(queries[part], outputs[part], bounds=bounds, domain=domain, tol=tol / len(ends))
            for part in ends
        ]
        upper = math.nextafter(math.fsum(part.upper for part in parts), math.inf) if parts else 0.0
        groups = LossBounds(0.0, upper, None, None, not parts, "the sum of the groups' bounds")
        return parts[0] if len(parts) == 1 else groups
    pairs = list(zip(queries, outputs, strict=True))
    others = [(query, output) for query, output in pairs if not isinstance(query, ClassQuery | SoftmaxQuery)]
    if domain is not None or (len(others) == len(pairs) and any(isinstance(query, FiniteQuery) for query in queries)):
        return _loss_over_points(queries, outputs, domain)
    if len(others) < len(pairs):
        own = loss_of_classes((query, output) for query, output in pairs if isinstance(query, ClassQuery))
        shares = _loss_of_shares([(query, output) for query, output in pairs if isinstance(query, SoftmaxQuery)], tol)
        own = math.nextafter(own + shares, math.inf) if shares else own
        left = None if threshold is None else max(threshold - own, 0.0)
        asked, given = [query for query, _ in others], [output for _, output in others]
        rest = realized_loss(asked, given, bounds=bounds, tol=tol, threshold=left)
        lower, upper = max(0.0, rest.lower - own), math.nextafter(rest.upper + own, math.inf)
        reason = "questions about classes were bounded on their own"
        added = LossBounds(lower, upper, rest.x_high, rest.x_low, upper - lower <= tol, reason)
        is_decided = threshold is not None and not added.lower <= threshold < added.upper
        return added if bounds is None or is_decided else _jointly(added, pairs, bounds, tol, threshold)
    if not queries:
        return LossBounds(0.0, 0.0, None, None, True, "nothing was answered")
    if bounds is None:
        raise ValueError("Regression queries need the bounds of x, or a finite domain; got neither.")
    sizes = {query.n_features for query in queries if isinstance(query, RegressionQuery)}
    if len(sizes) != 1:
        raise ValueError(f"All queries must have the same number of features; got {sorted(sizes)}.")
    region = region_of(bounds, n_features=sizes.pop())
    return _loss_over_box([q for q in queries if isinstance(q, RegressionQuery)], outputs, region, tol, threshold)


def g_leakage_bound(loss: float) -> float:
    """Return the bound on the realized g-leakage that follows from a realized loss.

    Parameters
    ----------
    loss : float
        Realized privacy loss, or an upper bound on it, in nats.

    Returns
    -------
    float
        e^loss, the largest factor by which any g-vulnerability can have grown, for any prior.

    References
    ----------
    M. Pan, 2025, Theorem 3.3.

    Examples
    --------
    >>> from skldp.accounting import g_leakage_bound
    >>> round(g_leakage_bound(0.405465), 4)
    1.5
    """
    if not loss >= 0:
        raise ValueError(f"loss must be a number >= 0; got {loss!r}.")
    return math.nextafter(math.exp(loss), math.inf)


def _with_releases(
    queries: Sequence[Query],
    outputs: Sequence[int],
    released: Sequence[ReleaseQuery],
    threshold: float | None,
    loss: Callable[..., "LossBounds"],
) -> "LossBounds":
    """Add the loss of releases to that of the other answers."""
    own = [output for query, output in zip(queries, outputs, strict=True) if isinstance(query, ReleaseQuery)]
    charges = released_loss(released, own)
    full = sum(charge_of(query) for query in released if query.part is None)
    kept = [place for place, query in enumerate(queries) if not isinstance(query, ReleaseQuery)]
    if not math.isfinite(charges):
        return LossBounds(0.0, math.inf, None, None, False, "a release has no finite epsilon")
    rest = None if threshold is None else nats_below(max(0, units_below(threshold) - int(charges)))
    found = loss([queries[place] for place in kept], [outputs[place] for place in kept], threshold=rest)
    return LossBounds(
        max(0.0, math.nextafter(found.lower - nats_above(int(full)), 0.0)),
        nats_above(units_above(found.upper) + int(charges)),
        None,
        None,
        False,
        "with what releases cost",
    )


def _loss_over_points(queries: Sequence[Query], outputs: Sequence[int], domain: Any) -> "LossBounds":
    """Bound the loss over a finite domain by evaluating every point."""
    points = None if domain is None else np.asarray(domain, dtype=np.float64)
    if points is not None and (points.ndim != 2 or not len(points)):
        raise ValueError(f"domain must have shape (n_points, n_features); got shape {points.shape}.")
    sizes = {query.n_points for query in queries if isinstance(query, FiniteQuery)}
    if points is not None:
        sizes.add(len(points))
    if len(sizes) > 1:
        raise ValueError(f"All queries must have the same finite domain; got sizes {sorted(sizes)}.")
    size = sizes.pop() if sizes else 1
    total, error = np.zeros(size), 0.0
    # Sorting makes the sum independent of the order of the answers.
    for query, output in sorted(zip(queries, outputs, strict=True), key=lambda pair: (pair[0].key, pair[1])):
        if isinstance(query, FiniteQuery):
            own = query.log_likelihood(int(output), np.arange(size))
            # An output of probability 0 everywhere distinguishes no points.
            total += np.where(np.isinf(own), 0.0, own)
            # A logarithm below 37 is accurate to 4 units in the last place.
            error += 2.0**-44
        elif points is None:
            raise ValueError("Regression queries with finite queries need domain, the points; got domain=None.")
        elif not isinstance(query, ReleaseQuery):
            total += query.log_likelihood(int(output), points)
            # A class's probabilities are integers.
            error += 2.0**-44
            if isinstance(query, RegressionQuery):
                box = np.stack([points.min(axis=0), points.max(axis=0)])
                error += answer_law([query], [int(output)], box).allowance
            elif isinstance(query, SoftmaxQuery):
                error += query.rounding + answer_law([query.share], [int(output)], np.array([[0.0], [1.0]])).allowance
    # The error of a sum of n terms is at most n roundings of its magnitude.
    error += 2.0**-52 * len(queries) * float(np.abs(total).max(initial=0.0))
    high, low = int(total.argmax()), int(total.argmin())
    loss = float(total[high] - total[low])
    x_high, x_low = (None, None) if points is None else (points[high], points[low])
    return LossBounds(max(0.0, loss - 2 * error), loss + 2 * error, x_high, x_low, True, "every point was looked at")


def _jointly(
    added: "LossBounds", answers: Sequence[tuple[Any, int]], bounds: Bounds, tol: float, threshold: float | None
) -> "LossBounds":
    """Bound the loss of answers about classes jointly with the others, if that is less than their sum."""
    if any(isinstance(query, FiniteQuery) for query, _ in answers) or len({query.key for query, _ in answers}) == 1:
        return added
    inner = region_of(bounds, n_features=answers[0][0].n_features)
    middle, half = middle_and_half(inner.box)
    points = inner.move(middle + half * scattered(len(half)))
    known = _loss_over_points([query for query, _ in answers], [output for _, output in answers], points)
    region = JointRegion.of(answers, inner)
    if region is None or (threshold is not None and known.lower > threshold):
        return replace(added, lower=max(added.lower, known.lower), x_high=known.x_high, x_low=known.x_low)
    asked, given = map(list, zip(*region.answers, strict=True))
    left = None if threshold is None else max(threshold - region.slack, 0.0)
    found = _loss_over_box(asked, given, region, tol, left)
    lower, upper = found.lower - region.slack, math.nextafter(found.upper + region.slack, math.inf)
    best = known if known.lower > lower or found.x_high is None or found.x_low is None else found
    high, low = (None if end is None else end[: len(half)] for end in (best.x_high, best.x_low))
    lower, upper = max(added.lower, known.lower, lower), min(added.upper, upper)
    return LossBounds(lower, upper, high, low, upper - lower <= tol, found.reason)


def _loss_over_box(
    queries: Sequence[RegressionQuery],
    outputs: Sequence[int],
    region: Region,
    tol: float,
    threshold: float | None = None,
) -> "LossBounds":
    """Bound the loss over a region by a search for each extremum and the independent check of its result."""
    box, inner = region.box, None if region.is_box else region
    law = answer_law(queries, outputs, box, inner)
    middle = region.move(middle_and_half(box)[0][None, :])[0]
    if not len(law):
        return LossBounds(0.0, 0.0, middle, middle, True, "no answer depends on x")
    # The sampled integers bound the cost of each answer by its epsilon.
    ceiling = math.nextafter(math.fsum(query.exact_epsilon for query in queries), math.inf)
    # A search cannot help if the rounding allowance alone exceeds the ceiling.
    if 2 * law.allowance >= ceiling:
        return LossBounds(0.0, ceiling, middle, middle, False, "the predictions are too large for their rounding")
    at_most, above = -math.inf, math.inf
    if threshold is not None:
        # The check adds rounding, so the search aims below the threshold.
        at_most, above = threshold - 4 * law.allowance - 1e-9 * threshold, threshold
    high, low = (BoxSearch(law, sign) if inner is None else RegionSearch(law, sign) for sign in (1, -1))
    if threshold is None or ceiling > threshold:
        # A search counts rounding four times per side, which limits its accuracy.
        most_steps = sys.maxsize
        if isinstance(region, JointRegion):
            steps = max(_FEWEST_JOINT_STEPS, _JOINT_ENTRIES // max(1, region.coef.size))
            most_steps = min(steps if (~region.integer).sum() > _FEW_FEATURES else _JOINT_STEPS, _JOINT_STEPS)
        _refine(high, low, max(tol, 8 * law.allowance), at_most, above, most_steps)
    is_open = threshold is None or high.lower + low.lower <= threshold < ceiling
    # A loss above the threshold needs no proof of its upper bound.
    proofs = ([high.proof], [low.proof]) if is_open else ([], [])
    upper = certified_loss(queries, outputs, box, *proofs, region=inner)
    ends = np.stack([high.end, low.end])
    lower = min(loss_between(queries, outputs, ends), upper)
    # The rounding allowance does not count against convergence while it is below the tolerance.
    converged = upper - lower <= tol + min(4 * law.allowance, tol)
    if converged:
        reason = "the bounds meet within tol"
    elif threshold is not None and not lower <= threshold < upper:
        reason = "the threshold is decided"
    elif 4 * law.allowance > tol:
        reason = "the predictions are too large for their rounding"
    else:
        reason = "the search reached its limit of nodes"
    return LossBounds(lower, upper, ends[0], ends[1], converged, reason)


def _refine(
    high: "BoxSearch | RegionSearch",
    low: "BoxSearch | RegionSearch",
    tol: float,
    at_most: float,
    above: float,
    most_steps: int,
) -> None:
    """Refine both searches until their sum is known within tol, at most `at_most`, or above `above`."""
    # The side with the larger gap goes first, and proves only as much as the other side leaves open.
    for _ in range(most_steps):
        if high.lower + low.lower > above:
            return
        enough = max(at_most, high.lower + low.lower + tol)
        sides = [(one, other) for one, other in ((high, low), (low, high)) if not one.is_exhausted]
        if high.upper + low.upper <= enough or not sides:
            return
        one, other = max(sides, key=lambda pair: pair[0].upper - pair[0].lower)
        one.step(enough - other.upper)


def _check_outputs(queries: Sequence[Query], outputs: Sequence[int]) -> None:
    for query, output in zip(queries, outputs, strict=True):
        if not is_integer(output) or output not in range(query.n_outputs):
            raise ValueError(f"An output must be an integer from 0 to {query.n_outputs - 1}; got {output!r}.")


def _loss_of_shares(answers: Sequence[tuple[SoftmaxQuery, int]], tol: float) -> float:
    """Bound the loss of softmax queries, each over all probabilities from 0 to 1."""
    parts: list[float] = []
    for query, outputs in answers_by_question(answers):
        own = realized_loss([query.share] * len(outputs), outputs, bounds=(0.0, 1.0), tol=tol).upper
        # Each of two records may have been computed differently for each answer. Clipped thresholds still bound the
        # loss of each answer.
        own = math.nextafter(own + 2 * len(outputs) * query.rounding, math.inf)
        parts.append(min(own, nats_above(len(outputs) * int(charge_of(query)))))
    return math.nextafter(math.fsum(parts), math.inf) if parts else 0.0


@dataclass(frozen=True)
class LossBounds:
    """Bounds on a realized privacy loss, in nats.

    Attributes
    ----------
    lower, upper : float
        Bounds on the true loss. Use `upper` for accounting: the independent check has proved it. Both are rounded
        outward and include the rounding of the sampled law.
    x_high, x_low : ndarray of shape (n_features,) or None
        Points between which the loss is at least `lower`.
    converged : bool
        Whether ``upper - lower`` is within the requested tolerance.
    reason : str
        Reason for the end of the search.
    """

    lower: float
    upper: float
    x_high: Floats | None
    x_low: Floats | None
    converged: bool
    reason: str

    @property
    def gap(self) -> float:
        """Upper bound minus lower bound."""
        return self.upper - self.lower
