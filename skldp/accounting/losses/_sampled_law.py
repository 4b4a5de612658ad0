r"""Law of sampled answers, with a bound on every rounding error.

:meth:`~skldp.accounting.RegressionQuery.sample` draws the output 1 with probability :math:`T(x) / 2^{64}`. The integer
T results from a dozen floating-point operations on a person's values. This module bounds its distance from exact
arithmetic. Let :math:`w = a \cdot x + o` be the position of an answer's prediction between the output bounds, 0 where
this answer is least likely and 1 where it is most likely. For a logistic query, w is the signed argument. For an
exponential query, it is the position of the prediction's logarithm between those of the bounds. For every x of the box,
any order of the additions, and with or without fused operations,

.. math:: P(\text{answer} \mid x) = q + t S(w') + \eta, \qquad |w' - w| \le e, \quad |\eta| \le 2^{-47},

with :math:`q = 1 / (e^\varepsilon + 1)` and t = 1 - 2 q. S is the ramp, the logistic function or, for an exponential
query, the curved ramp :math:`(e^{k w} - 1) / (e^k - 1)` between 0 and 1. Its growth k is the logarithm of the ratio of
the bounds, or its negative. The arithmetic of the right-hand side is exact in the stored doubles a, o, q, t and k.

**Derivation.** A unit is :math:`u = 2^{-53}`. The error of a sum of n products in any order is at most
:math:`n u / (1 - n u)` times the sum of their magnitudes (Higham 2002, Section 3.1). `exp`, `log` and `expit` are
assumed to be accurate to 4 units in the last place (8 u), as their authors state and their tests measure. The sampler's
argument takes d + 1 products and sums, two subtractions and a division, and so do a and o. Their total error is below
(4 d + 64) u of the sum of the magnitudes. Underflow adds less than 1e-200. The sampler's probability takes two values
of `expit`, three operations and a truncation to :math:`2^{-64}`; q and t are rounded too. Their total error is below
64 u. The same bound holds for two values of `expm1` and their ratio; the error of the product k w counts as one unit of
w.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.special import expit

from skldp._arrays import Bools, Floats, Positions
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._region import UNIT, Region

CHANCE_ERROR = 2.0**-47
_UNDERFLOW = 1e-200


def answer_law(
    queries: Sequence[RegressionQuery], outputs: Sequence[int], box: Floats, region: Region | None = None
) -> "AnswerLaw":
    """Return the law of answers over a box of shape (2, n_features), or over a region within it."""
    # Equal answers are merged, and constant ones omitted, since they cancel in every ratio.
    counts: dict[tuple[str, int], list[Any]] = {}
    for query, output in zip(queries, outputs, strict=True):
        counts.setdefault((query.key, int(output)), [query, 0])[1] += 1
    moving = box[0] < box[1]
    # Sorting makes the result independent of the order of the answers.
    merged = [(query, output, n) for (_, output), (query, n) in sorted(counts.items()) if query.coef[moving].any()]
    theta = np.array([query.coef for query, _, _ in merged]).reshape(-1, box.shape[1])
    intercept = np.array([query.intercept for query, _, _ in merged])
    logistic = np.array([query.kind == "logistic" for query, _, _ in merged], dtype=bool)
    ends = np.array([query.argument_bounds for query, _, _ in merged]).reshape(-1, 2)
    ends[logistic] = (0.0, 1.0)
    sign = np.where(np.array([output for _, output, _ in merged]) == 1, 1.0, -1.0)
    # A ramp starts at a for the answer b, and at b, downward, for the answer a.
    start = np.where(logistic, 0.0, np.where(sign > 0, ends[:, 0], ends[:, 1]))
    with np.errstate(under="ignore"):
        scale = sign / (ends[:, 1] - ends[:, 0])
        sizes = np.abs(theta) @ np.abs(box).max(axis=0) + np.abs(intercept)
        magnitude = np.abs(scale) * (sizes + np.where(logistic, 0.0, np.abs(ends).max(axis=1)))
        return AnswerLaw(
            box=box,
            coef=scale[:, None] * theta,
            offset=scale * (intercept - start),
            count=np.array([n for _, _, n in merged], dtype=np.float64),
            epsilon=np.array([query.epsilon for query, _, _ in merged]),
            logistic=logistic,
            growth=sign * np.array([query.growth for query, _, _ in merged]),
            magnitude=magnitude,
            error=(4 * box.shape[1] + 64) * UNIT * magnitude + _UNDERFLOW,
            region=region,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PerAnswer:
    """Base class of records of arrays with one entry or row per answer."""

    # Shapes: `offset, count, epsilon, logistic, growth, error` (n,).

    offset: Floats
    count: Floats
    epsilon: Floats
    logistic: Bools
    growth: Floats
    error: Floats

    _columns: ClassVar[tuple[str, ...]] = ("offset", "count", "epsilon", "logistic", "growth", "error")

    def __len__(self) -> int:
        return len(self.count)

    @cached_property
    def smallest(self) -> Floats:
        """Smallest probability q of an answer, with a relative error of at most 8 u."""
        return cast("Floats", expit(-self.epsilon))

    @cached_property
    def reach(self) -> Floats:
        """Difference t between the largest and the smallest probability."""
        return np.tanh(self.epsilon / 2)

    def part(self, rows: Positions) -> Self:
        """Return the entries of a subset of the answers."""
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in self._columns}
        return replace(self, **columns)

    def joined(self, other: Self) -> Self:
        """Concatenate the entries of both."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in self._columns)
        columns: dict[str, Any] = {name: np.concatenate([mine, theirs]) for name, mine, theirs in pairs}
        return replace(self, **columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerLaw(PerAnswer):
    """Law of answers over a box; see the module."""

    # Shapes: `box` (2, n_features); `coef` (n, n_features); `magnitude` (n,).

    box: Floats
    coef: Floats
    magnitude: Floats
    region: Region | None = None

    _columns = ("coef", "magnitude", *PerAnswer._columns)

    @cached_property
    def used(self) -> Bools:
        """Mask of the features that any answer depends on."""
        return np.asarray((self.coef != 0).any(axis=0))

    @cached_property
    def allowances(self) -> Floats:
        """Bound on the rounding error of each answer's log-likelihood at any point."""
        size = np.abs(self.growth)
        # A curved ramp is steepest at one of its ends.
        ramp = np.where(size > 0, size / -np.expm1(-np.maximum(size, 1e-300)), 1.0) * self.reach / self.smallest
        steepest = np.where(self.logistic, 1.0, ramp)
        return steepest * self.error + CHANCE_ERROR / (self.smallest - CHANCE_ERROR) + 128 * UNIT * (2 + self.epsilon)

    @cached_property
    def allowance(self) -> float:
        """Bound on the rounding error of the log-likelihood of all answers at any point."""
        return float(self.count @ self.allowances) * (1 + 2.0**-20)

    def ranges(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the least and largest w' of each answer over boxes of shape (k, d), each of shape (k, n)."""
        if self.region is not None:
            down = -self.region.largest(-self.coef, low, high) + (self.offset - self.error)
            return down, self.region.largest(self.coef, low, high) + (self.offset + self.error)
        up, down = np.maximum(self.coef, 0.0).T, np.minimum(self.coef, 0.0).T
        # `error` covers one evaluation of a . x + o and the sampler's own error.
        least = low @ up + high @ down + (self.offset - self.error)
        most = high @ up + low @ down + (self.offset + self.error)
        return least, most
