r"""Independent check that proves a bound on a sum of log-likelihoods from the result of any search.

This module does not search and imports no search code. A search passes a :class:`Tree`, which cuts the box into leaves,
and proposes slopes for the answers in each leaf. The check rebuilds the leaves from the cuts, so they cover the box by
construction, and bounds each leaf. With slopes s, counts m and arguments w of the answers, restricted to
l <= w <= u within a leaf,

.. math:: \sum_i m_i g_i(w_i') \le \sum_i m_i \max_{l_i \le w \le u_i} (g_i(w) - s_i w)
          + \max_{x} \sum_i m_i s_i (a_i \cdot x + o_i) + \sum_i m_i |s_i| e_i .

The inequality holds for any slopes; poor slopes only loosen the bound. For an upper bound on the log-likelihood, g is
:math:`\ln(q + \eta + t S)`; for a lower bound, it is :math:`-\ln(q - \eta + t S)`. The errors e and :math:`\eta` are
those of :mod:`~skldp.accounting.losses._sampled_law`. The candidates for a one-dimensional maximum are the ends, the
kinks 0 and 1 of a ramp, and the concave part. On the concave part, the unconstrained maximum of a ramp has a closed
form; a tangent at any point bounds a logistic answer or a curved ramp. No slope is assumed to be a supergradient of
the sum.

A sum that is concave over the box has its minimum at a vertex (:func:`vertex_maximum`). A tree may then cut a box into
two opposite faces (``Tree(to_the_ends=True)``). Both properties are checked here. Near its kink at 0, a ramp is
replaced by :math:`\ln(q - \eta + t \min(w, 1))`, which is concave and not larger anywhere.

**Rounding.** `_roundings` bounds the rounding of these formulas, and the bound is added; NaN becomes infinity.

References
----------
N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, Sections 2.2, 3.1 and 4.2.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from skldp._arrays import Bools, Floats, Positions
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._region import UNIT, Region, box_region
from skldp.accounting.losses._sampled_law import CHANCE_ERROR, AnswerLaw, answer_law


def curved(law: AnswerLaw, ramp: Floats) -> Floats:
    """Convert responses of straight ramps to those of curved ones, shape (k, n)."""
    if not law.growth.any():
        return ramp
    height = np.where(law.growth == 0, 1.0, np.expm1(law.growth))
    bent: Floats = np.where(law.growth == 0, ramp, np.expm1(law.growth * ramp) / height)
    return bent


def curved_peaks(law: AnswerLaw, sign: int, slopes: Floats, low: Floats, high: Floats) -> Floats:
    """Bound sign ln(q + sign eta + t S(w)) - s w over low <= w <= high, with S a curved ramp of growth k."""
    # h = ln(q + t S) has h'' = h' (k - h') between the kinks, and k - h' the sign of (q (e^k - 1) - t) / (e^k - 1). So
    # sign h is convex there, with its maximum at an end, or concave, with a bound from any tangent. Rounding confuses
    # the two only if h'' is below 64 u k^2, which is added.
    q, t, k = law.smallest + sign * CHANCE_ERROR, law.reach, law.growth
    height = np.expm1(k)
    first, last = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)

    def value(w: Floats) -> Floats:
        inside = np.clip(w, 0.0, 1.0)
        return sign * np.log(q + t * (np.expm1(k * inside) / height)) - slopes * w

    def steepness(w: Floats) -> Floats:
        steepness: Floats = t * (k * np.exp(k * w) / height) / (q + t * (np.expm1(k * w) / height))
        return steepness

    best: Floats = np.maximum(value(low), value(high))
    for kink in (0.0, 1.0):
        best = np.where((low < kink) & (high > kink), np.maximum(best, value(np.full_like(best, kink))), best)
    # The point at which h has the slope, or the end towards which h increases.
    wanted, middle = sign * slopes, (first + last) / 2
    towards = np.where(sign * (steepness(middle) - wanted) > 0, last, first)
    ratio = wanted * (q * height - t) / (t * (k - wanted))
    w = np.clip(np.where((wanted > 0) & (ratio > 0), np.log(ratio) / k, towards), first, last)
    w = np.where(np.isnan(w), towards, w)
    uphill = sign * steepness(w) - slopes
    error = (128 + 4 * np.abs(k)) * UNIT * (steepness(w) + np.abs(slopes))
    gain = np.maximum((uphill + error) * (last - w), (error - uphill) * (w - first))
    is_concave = (q * height <= t) if sign > 0 else (q * height > t)
    on_the_curve = is_concave & (low < 1) & (high > 0)
    return np.where(on_the_curve, np.maximum(best, value(w) + gain), best) + 64 * UNIT * k**2


# Arguments: positions of leaves in the tree; least and largest argument of each answer, shape (k, n).
Proposal = Callable[[Positions, Floats, Floats], Floats]

_BLOCK = 1 << 18
# The actual error of a logistic answer's inflection point is much smaller.
_BEND_ERROR = 2.0**-44


class Tree:
    """Tree that cuts a box into leaves; each inner node cuts a feature or an answer's argument."""

    def __init__(self, n_features: int, *, to_the_ends: bool = False) -> None:
        self.n_features = n_features
        self.to_the_ends = to_the_ends
        self.axis = np.full(64, -1, dtype=np.intp)
        self.cut = np.zeros(64)
        self.child = np.zeros(64, dtype=np.intp)
        self.size = 1

    def split(self, nodes: npt.ArrayLike, axes: npt.ArrayLike, cuts: npt.ArrayLike) -> Positions:
        """Cut leaves in two and return the position of each one's first child."""
        at = np.atleast_1d(np.asarray(nodes, dtype=np.intp))
        children = self.size + 2 * np.arange(len(at))
        self.size += 2 * len(at)
        while self.size > len(self.axis):
            self.axis = np.concatenate([self.axis, np.full_like(self.axis, -1)])
            self.cut = np.concatenate([self.cut, np.zeros_like(self.cut)])
            self.child = np.concatenate([self.child, np.zeros_like(self.child)])
        self.axis[at], self.cut[at], self.child[at] = axes, cuts, children
        return children

    def scaled(self, middle: Floats, half: Floats) -> "Tree":
        """Return the tree with its cuts rescaled from [-1, 1] to the coordinates of the box."""
        tree = copy.copy(self)
        tree.cut = middle[self.axis] + half[self.axis] * self.cut
        return tree


@dataclass(frozen=True)
class Proof:
    """Unchecked result of a search for one side of a loss."""

    tree: Tree | None
    propose: Proposal
    prices: Callable[[Positions], Floats] | None = None


def certified_loss(
    queries: Sequence[RegressionQuery],
    outputs: Sequence[int],
    box: Floats,
    high: Sequence[Proof],
    low: Sequence[Proof],
    region: Region | None = None,
) -> float:
    """Return the upper bound of a realized loss that filters use. Shapes: box (2, d)."""
    law = answer_law(queries, outputs, box, region)
    ceiling = math.nextafter(math.fsum(query.exact_epsilon for query in queries), math.inf)
    if not len(law):
        return 0.0
    nothing = Proof(Tree(box.shape[1]), lambda leaves, least, most: np.zeros(least.shape))
    proved = 0.0
    for sign, proofs in ((1, high), (-1, low)):
        proved += min(
            vertex_maximum(law, sign)[0]
            if proof.tree is None
            else certified_maximum(law, sign, proof.tree, proof.propose, proof.prices)
            for proof in (nothing, *proofs)
        )
    # The slack of each side covers the rounding of their sum.
    return max(0.0, min(math.nextafter(proved, math.inf), ceiling))


def certified_maximum(
    law: AnswerLaw, sign: int, tree: Tree, propose: Proposal, prices: Callable[[Positions], Floats] | None = None
) -> float:
    """Return an upper bound on the sum's maximum over the box (sign 1) or on minus its minimum (sign -1)."""
    if tree.to_the_ends and (law.region is not None or not peaks_at_vertices(law, sign)):
        return math.inf
    worst = -math.inf
    for leaves, box_low, box_high, low, high in _leaves(law, tree):
        with np.errstate(all="ignore"):
            slopes = np.nan_to_num(np.asarray(propose(leaves, low, high), dtype=np.float64), posinf=0.0, neginf=0.0)
        ends = (box_low, box_high, low, high)
        bounds = leaf_bounds(
            law,
            sign,
            law.count,
            slopes,
            *ends,
            minorant=tree.to_the_ends,
            prices=None if prices is None else prices(leaves),
        )
        worst = max(worst, float(bounds.max()))
    return worst


def leaf_bounds(
    law: AnswerLaw,
    sign: int,
    count: Floats,
    slopes: Floats,
    box_low: Floats,
    box_high: Floats,
    low: Floats,
    high: Floats,
    *,
    minorant: bool = False,
    prices: Floats | None = None,
    leaf: Positions | None = None,
) -> Floats:
    """Return upper bounds of the sum over leaves, or of each row of counts over its own leaf, valid for any slopes."""
    # Shapes: count (n,), slopes (k, n), box_low, box_high (k, d), low, high (k, n), prices (k, n_inequalities); returns
    # (k,). With leaf (m,), count (m, n); returns (m,).
    with np.errstate(all="ignore"):
        peaks = np.empty(np.broadcast_shapes(slopes.shape, low.shape))
        is_curved = law.growth != 0
        ramp_peaks = partial(_ramp_peaks, minorant=minorant)
        kinds = ((~law.logistic & ~is_curved, ramp_peaks), (is_curved, curved_peaks), (law.logistic, _logistic_peaks))
        for kind, peak in kinds:
            if kind.all():
                peaks[:] = peak(law, sign, slopes, low, high)
            elif kind.any():
                part = law.part(np.flatnonzero(kind))
                peaks[:, kind] = peak(part, sign, slopes[:, kind], low[:, kind], high[:, kind])
        if leaf is not None:
            slopes, peaks, box_low, box_high = (values[leaf] for values in (slopes, peaks, box_low, box_high))
        weighted = count * slopes
        tilt = weighted @ law.coef
        if law.region is None:
            rest = weighted @ law.offset + np.maximum(tilt * box_low, tilt * box_high).sum(axis=1)
        else:
            rest = weighted @ law.offset + law.region.largest_priced(tilt, prices, box_low, box_high)
        bounds = (count * peaks).sum(axis=1) + rest + _roundings(law, count, slopes)
    return np.where(np.isnan(bounds), np.inf, bounds)


class Cover:
    """Parts that cover the box, each for some rows of counts; `upper` is proved for any slopes and cuts."""

    # Shapes: `low`, `high` (k, d), `leaf`, `row`, `bounds` (m,) for m pairs of a part and a row, `upper` (n_rows,).

    def __init__(self, law: AnswerLaw, sign: int, counts: Floats) -> None:
        self._law, self._sign, self._counts = law, sign, counts
        self.low, self.high = law.box[:1], law.box[1:]
        self.leaf, self.row = np.zeros(len(counts), dtype=np.intp), np.arange(len(counts))
        self.kept = np.zeros(1, dtype=np.intp)
        self.upper, self._closed = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)

    @property
    def ranges(self) -> tuple[Floats, Floats]:
        """Least and largest argument of each answer over each part, shape (k, n)."""
        return self._law.ranges(self.low, self.high)

    def bound(self, slopes: Floats) -> None:
        """Bound each row over its parts, from slopes of shape (k, n)."""
        # A single part needs no copy of its bounds for each row.
        leaf = self.leaf if len(self.low) > 1 else None
        ends = self.low, self.high, *self.ranges
        self.bounds = leaf_bounds(self._law, self._sign, self._counts[self.row], slopes, *ends, leaf=leaf)
        upper = self._closed.copy()
        np.maximum.at(upper, self.row, self.bounds)
        self.upper = np.minimum(self.upper, upper)

    def keep(self, kept: Bools) -> None:
        """Drop the pairs that are not kept: their bounds stay in `upper`; `kept` becomes the parts that are left."""
        np.maximum.at(self._closed, self.row[~kept], self.bounds[~kept])
        self.kept, leaf = np.unique(self.leaf[kept], return_inverse=True)
        order = np.argsort(leaf, kind="stable")
        self.leaf, self.row = leaf[order], self.row[kept][order]
        self.low, self.high = self.low[self.kept], self.high[self.kept]

    def halve(self, feature: Positions) -> None:
        """Halve each part along one of its features."""
        parts, n = np.arange(len(self.low)), len(self.low)
        low, high = self.low[parts, feature], self.high[parts, feature]
        # Both halves end at the same number, so they cover the part.
        cut = np.clip(low / 2 + high / 2, low, high)
        self.low, self.high = np.tile(self.low, (2, 1)), np.tile(self.high, (2, 1))
        self.high[parts, feature] = self.low[n + parts, feature] = cut
        self.leaf, self.row = np.concatenate([self.leaf, self.leaf + n]), np.tile(self.row, 2)


def _roundings(law: AnswerLaw, count: Floats, slopes: Floats) -> Floats:
    """Bound the sum of all roundings in a leaf's bound."""
    # The maximum of an answer includes a logarithm (relative error 8 u) of a probability (16 u), a product with s w, a
    # difference, and the bend of a logistic answer. A sum has one rounding per term, relative to the magnitude of the
    # terms; sums over answers and then features count twice. Arguments are at most `magnitude`.
    n, d = law.coef.shape
    still = (n + 128) * UNIT * (2 + law.epsilon)
    per_slope = law.error + (2 * n + d + 128) * UNIT * law.magnitude + np.where(law.logistic, 2 * _BEND_ERROR, 0.0)
    roundings: Floats = (count @ still + (count * np.abs(slopes)) @ per_slope) * (1 + 2.0**-20)
    return roundings


def _ramp_peaks(law: AnswerLaw, sign: int, slopes: Floats, low: Floats, high: Floats, minorant: bool = False) -> Floats:
    """Bound sign ln(q + sign eta + t min(1, max(0, w))) - s w over low <= w <= high."""
    q, t = law.smallest + sign * CHANCE_ERROR, law.reach
    lowest = -np.inf if minorant else 0.0
    # A non-positive minorant gives NaN, which becomes infinity.
    best = sign * np.log(q + t * np.clip(low, lowest, 1.0)) - slopes * low
    best = np.maximum(best, sign * np.log(q + t * np.clip(high, lowest, 1.0)) - slopes * high)
    if not minorant:
        best = np.maximum(best, np.where((low < 0) & (high > 0), sign * np.log(q), -np.inf))
    if sign > 0:
        best = np.maximum(best, np.where((low < 1) & (high > 1), np.log(q + t) - slopes, -np.inf))
        # Between the kinks, ln(q + t w) - s w is concave, with its maximum at a slope of 0.
        stationary, uncertain = 1 / slopes - q / t, 2.0**-48 * (1 / slopes + q / t)
        inside = (slopes > 0) & (stationary + uncertain >= np.maximum(low, 0.0))
        inside &= stationary - uncertain <= np.minimum(high, 1.0)
        best = np.where(inside, np.maximum(best, np.log(t / slopes) - 1 + slopes * (q / t)), best)
    return best


def _logistic_peaks(law: AnswerLaw, sign: int, slopes: Floats, low: Floats, high: Floats) -> Floats:
    """Bound sign ln(q + sign eta + t S(w)) - s w over low <= w <= high, with S the logistic function."""
    # With c = ln((q + t) / q), the derivative S(w + c) - S(w) rises up to -c/2 and then falls. On the concave part any
    # tangent is a bound, tight at the stationary point; elsewhere the maximum is at an end.
    q, t = law.smallest + sign * CHANCE_ERROR, law.reach
    steep = np.log1p(t / q)
    bend = -steep / 2
    # The concave part without a narrow margin, whose effect is added to the bound.
    turn = np.clip(bend + sign * _BEND_ERROR, low, high)
    first, last = (turn, high) if sign > 0 else (low, turn)
    rise = np.arccosh(np.maximum(np.sinh(steep / 2) / (sign * slopes) - np.cosh(steep / 2), 1.0))
    w = np.clip(np.where(sign * slopes > 0, bend + sign * rise, sign * np.inf), first, last)
    uphill = sign * (expit(w + steep) - expit(w)) - slopes
    error = 64 * UNIT * (1 + np.abs(slopes))
    gain = np.maximum((uphill + error) * (last - w), (error - uphill) * (w - first))
    best: Floats = sign * np.log(q + t * expit(w)) - slopes * w + gain
    for end in (low, high):
        best = np.maximum(best, sign * np.log(q + t * expit(end)) - slopes * end)
    return best


def _leaves(law: AnswerLaw, tree: Tree) -> Iterator[tuple[Positions, Floats, Floats, Floats, Floats]]:
    """Yield leaves with their boxes and ranges of the arguments, by following the cuts from the root."""
    nodes, d, region = np.zeros(1, dtype=np.intp), law.box.shape[1], law.region
    low, high = law.box[:1].copy(), law.box[1:].copy()
    least, most = np.full((1, len(law)), -np.inf), np.full((1, len(law)), np.inf)
    step = max(1, _BLOCK // max(1, len(law)))
    by_answers = bool((tree.axis[: tree.size] >= d).any())
    while nodes.size:
        if region is not None:
            low, high = region.tightened(low, high)
            held = region.is_possible(low, high)
            nodes = nodes[held]
            low, high, least, most = (values[held] for values in (low, high, least, most))
        is_leaf = tree.axis[nodes] < 0
        for first in range(0, int(is_leaf.sum()), step):
            part = np.flatnonzero(is_leaf)[first : first + step]
            begin, end = law.ranges(low[part], high[part])
            if by_answers:
                # Rounding can move an argument across the cut.
                begin = np.maximum(begin, least[part] - law.error)
                end = np.maximum(np.minimum(end, most[part] + law.error), begin)
            yield nodes[part], low[part], high[part], begin, end
        inner = np.flatnonzero(~is_leaf)
        axis, cut, child = (values[nodes[inner]] for values in (tree.axis, tree.cut, tree.child))
        if (child <= nodes[inner]).any() or (child + 1 >= tree.size).any():
            raise ValueError("The nodes of a tree must precede their children; got another order.")
        low, high = np.tile(low[inner], (2, 1)), np.tile(high[inner], (2, 1))
        least, most = np.tile(least[inner], (2, 1)), np.tile(most[inner], (2, 1))
        n, feature = len(inner), axis < d
        rows, column = np.flatnonzero(feature), axis[feature]
        if tree.to_the_ends:
            high[rows, column] = low[rows, column]
            low[n + rows, column] = high[n + rows, column]
        else:
            middle = np.clip(cut[feature], low[rows, column], high[rows, column])
            # No record is between two integers; the upper child of the last integer is empty.
            integer = np.zeros(len(rows), dtype=bool) if region is None else region.integer[column]
            high[rows, column] = np.where(integer, np.floor(middle), middle)
            low[n + rows, column] = np.where(integer, np.floor(middle) + 1, middle)
        rows, column = np.flatnonzero(~feature), axis[~feature] - d
        most[rows, column] = np.minimum(most[rows, column], cut[~feature])
        least[n + rows, column] = np.maximum(least[n + rows, column], cut[~feature])
        nodes = np.concatenate([child, child + 1])


def peaks_at_vertices(law: AnswerLaw, sign: int) -> bool:
    """Return whether the sum, or its minorant, is convex over the box, with its maximum at a vertex."""
    least, most = (values[0] for values in law.ranges(law.box[:1], law.box[1:]))
    q = law.smallest + sign * CHANCE_ERROR
    bend = -np.log1p(law.reach / q) / 2
    smooth = bend + _BEND_ERROR <= least if sign < 0 else most <= bend - _BEND_ERROR
    # The minorant is tight only if the ramp starts below 0 by no more than rounding. It must be positive: half of q
    # covers the rounding of this comparison.
    ramps = (sign < 0) & (least >= -4 * law.error) & (q / 2 + law.reach * least > 0) & (law.growth == 0)
    return bool(np.where(law.logistic, smooth, ramps).all())


def vertex_bounds(law: AnswerLaw, sign: int, vertices: Floats) -> Floats:
    """Return upper bounds of each answer's log-likelihood (of its negative for sign -1) at vertices of the box."""
    # Shapes: vertices (k, d); returns (n, k).
    return bounds_at(law, sign, vertices @ law.coef.T, kinked=False).T


def bounds_at(law: AnswerLaw, sign: int, sums: Floats, *, kinked: bool) -> Floats:
    """Return upper bounds of log-likelihoods (of their negatives for sign -1), with or without a ramp's kink at 0."""
    # Shapes: sums (k, n); returns (k, n).
    w = sums + (law.offset + sign * law.error)
    ramp = curved(law, np.clip(w, 0.0 if kinked else -np.inf, 1.0))
    response = np.where(law.logistic, expit(w), ramp) if law.logistic.any() else ramp
    bounds: Floats = sign * np.log((law.smallest + sign * CHANCE_ERROR) + law.reach * response)
    return bounds


def vertex_rounding(law: AnswerLaw, count: Floats) -> Floats:
    """Bound the roundings of a weighted sum of vertex bounds."""
    return (count @ ((len(law) + 128) * UNIT * (2 + law.epsilon))) * (1 + 2.0**-20)


def vertex_maximum(law: AnswerLaw, sign: int) -> tuple[float, Floats]:
    """Return the maximum over the vertices of the box, or over all points of a finite region, and its position."""
    # Shapes: returns (d,).
    region, used = box_region(law.box) if law.region is None else law.region, law.used
    best, where = -math.inf, 0
    if not region.is_finite and not peaks_at_vertices(law, sign):
        return math.inf, law.box[0]
    for codes, sums in region.sums(law.coef, used, max(1, _BLOCK // max(1, len(law)))):
        totals = bounds_at(law, sign, sums, kinked=region.is_finite) @ law.count
        if totals.max(initial=-math.inf) > best:
            best, where = float(totals.max()), int(codes[totals.argmax()])
    return best + float(vertex_rounding(law, law.count)), region.point(where, used)


def loss_between(queries: Sequence[RegressionQuery], outputs: Sequence[int], points: Floats) -> float:
    """Return a lower bound of the answers' log-likelihood ratio between two points, from the integer thresholds."""
    # Shapes: points (2, d).
    counts: dict[tuple[str, int], list[Any]] = {}
    for query, output in zip(queries, outputs, strict=True):
        counts.setdefault((query.key, int(output)), [query, 0])[1] += 1
    ratios, sizes = [], []
    for (_, output), (query, count) in sorted(counts.items()):
        chance = query.thresholds(points)
        # 2^64 - T in unsigned arithmetic is the two's complement of T, which is never 0.
        first, second = (chance if output else ~chance + np.uint64(1)).astype(np.float64).tolist()
        ratios.append(count * math.log(first / second))
        sizes.append(count * (2 + query.epsilon))
    total = math.fsum(ratios)
    return max(0.0, abs(total) - 32 * UNIT * math.fsum(sizes))
