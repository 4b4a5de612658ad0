r"""Log-likelihood of many answers as a sum of S-shaped functions of one variable each.

Every two-valued answer has the log-likelihood :math:`h(v) = \ln(q + t S(v))` with :math:`q = 1/(e^\varepsilon + 1)`,
:math:`t = (e^\varepsilon - 1)/(e^\varepsilon + 1)`, an affine :math:`v = \pm(\theta x + c)` and S the ramp
:math:`\min(1, \max(0, v))` or the logistic function. Each function increases, and is convex up to a bend and concave
beyond it. The ramp bends at 0. The logistic function bends at :math:`-\varepsilon/2`, because
:math:`h'(v) = \sigma(v + \varepsilon) - \sigma(v)`. A curved ramp :math:`S(v) = (e^{k v} - 1)/(e^k - 1)` bends at 0 or
at 1, since :math:`h'' = h' (k - h')` has one sign between its kinks. The minimum is minus the maximum of
:math:`-h(-v)`, which has the same shape. Both extrema are therefore maxima of a sum of S-shaped functions over a box
(Udell and Boyd 2013).

For any number s, :math:`g(v) \le s v + \max_{l \le w \le u} (g(w) - s w)` on [l, u], and the maximum has a closed form
(:meth:`SigmoidSum.conjugate`). These bounds only guide the search. :mod:`~skldp.accounting.losses._certificate` proves
the returned bounds, including rounding.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import cast

import numpy as np
from scipy.special import expit

from skldp._arrays import Bools, Floats
from skldp.accounting.losses._region import middle_and_half
from skldp.accounting.losses._sampled_law import AnswerLaw, PerAnswer

# e^-600 is far from underflow.
_DEEPEST = 600.0


def sigmoid_sum(law: AnswerLaw) -> "SigmoidSum":
    """Return the log-likelihood of the answers as a function of coordinates in [-1, 1]."""
    middle, half = middle_and_half(law.box)
    with np.errstate(under="ignore"):
        weights = law.coef * half
        # Smaller coefficients do not change sums of doubles, and their squares underflow.
        weights = np.where(np.abs(weights) > 1e-100, weights, 0.0)
        return SigmoidSum(
            weights=weights,
            offset=law.coef @ middle + law.offset,
            count=law.count,
            epsilon=law.epsilon,
            logistic=law.logistic,
            growth=law.growth,
            error=law.error,
            flipped=False,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SigmoidSum(PerAnswer):
    """Sum ``sum(count * g(weights @ s + offset))`` over s in [-1, 1]^d, with every g S-shaped and increasing."""

    # Shapes: `weights` (n, d).

    weights: Floats
    flipped: bool

    _columns = ("weights", *PerAnswer._columns)

    @cached_property
    def bend(self) -> Floats:
        """Argument at which each g changes from convex to concave."""
        bend = np.where(self.logistic, -self.epsilon / 2, np.where(self._is_convex, 1.0, 0.0))
        return -bend if self.flipped else bend

    @cached_property
    def _is_convex(self) -> Bools:
        """True if the log-likelihood of a curved ramp is convex between its kinks."""
        return self.smallest * np.expm1(self.growth) > self.reach

    @cached_property
    def _height(self) -> Floats:
        """Divisor of each ramp."""
        return cast("Floats", np.where(self.growth == 0, 1.0, np.expm1(self.growth)))

    def _ramp(self, w: Floats) -> Floats:
        """Return the response of a straight or curved ramp."""
        inside = np.clip(w, 0.0, 1.0)
        if not self.growth.any():
            return inside
        return cast("Floats", np.where(self.growth == 0, inside, np.expm1(self.growth * inside) / self._height))

    @cached_property
    def spread(self) -> Floats:
        """Largest distance of each g's argument from its offset."""
        return cast("Floats", np.abs(self.weights).sum(axis=1))

    @cached_property
    def low(self) -> Floats:
        """Least argument of each g over the box."""
        return self.offset - self.spread

    @cached_property
    def high(self) -> Floats:
        """Largest argument of each g over the box."""
        return self.offset + self.spread

    def slack(self, slopes: Floats) -> Floats:
        """Bound the rounding of a bound from these slopes, shape (..., n)."""
        # The bound sums slopes times arguments. These terms cancel, so their errors grow with the slopes.
        return np.abs(slopes) @ (4.0 * self.count * self.error)

    @cached_property
    def _runs(self) -> list[slice]:
        """Neighbouring answers whose probabilities multiply to more than e^-600."""
        ends, depth = [0], 0.0
        for i, worst in enumerate(-np.log(self.smallest) * self.count):
            if depth + worst > _DEEPEST and i > ends[-1]:
                ends.append(i)
                depth = 0.0
            depth += worst
        ends.append(len(self.count))
        return [slice(first, last) for first, last in pairwise(ends)]

    @cached_property
    def is_concave(self) -> bool:
        """True if every g is concave over the box, up to the rounding that the allowance covers."""
        smooth_ramp = (self.low >= -self.error) & (self.high <= 1 + self.error) & (not self.flipped) & ~self._is_convex
        return bool(np.where(self.logistic, self.low >= self.bend, smooth_ramp).all())

    def reversed(self) -> "SigmoidSum":
        """Return the problem whose maximum is minus the minimum of this one."""
        return replace(self, weights=-self.weights, offset=-self.offset, flipped=not self.flipped)

    def total(self, points: Floats, offset: Floats | None = None) -> Floats:
        """Return the sum at each row of points, shape (k, d), with optional offsets per row, shape (k, n)."""
        # Probabilities are multiplied in runs that cannot underflow, since a logarithm costs as much as twenty
        # products.
        v = points @ self.weights.T + (self.offset if offset is None else offset)
        if (self.count * -np.log(self.smallest)).max(initial=0.0) > _DEEPEST:
            return self.value(v) @ self.count
        probability = self._probability(-v if self.flipped else v)
        if (self.count != 1).any():
            probability **= self.count
        total = np.zeros(len(v))
        for run in self._runs:
            total += np.log(probability[:, run].prod(axis=1))
        return -total if self.flipped else total

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient of the sum at one point."""
        slopes = self.slope(self.weights @ point + self.offset)
        return (self.count * slopes) @ self.weights

    def value(self, v: Floats) -> Floats:
        """Return the value of each g at its argument, shape (..., n)."""
        h = np.log(self._probability(-v if self.flipped else v))
        return -h if self.flipped else h

    def _probability(self, w: Floats) -> Floats:
        if not self.logistic.any():
            response = self._ramp(w)
        elif self.logistic.all():
            response = expit(w)
        else:
            response = np.where(self.logistic, expit(w), self._ramp(w))
        response *= self.reach
        response += self.smallest
        return response

    def slope(self, v: Floats) -> Floats:
        """Return the derivative of each g; 0 outside a ramp, except for a concave sum that is outside by rounding."""
        w = -v if self.flipped else v
        hair = 0.0 if self.flipped else self.error
        inside = (w >= -hair) & (w <= 1 + hair)
        ramp = np.where(inside, self.reach / (self.smallest + self.reach * self._ramp(w)), 0.0)
        if self.growth.any():
            steepness = self.growth * np.exp(self.growth * np.clip(w, 0.0, 1.0)) / self._height
            ramp = np.where(self.growth == 0, ramp, ramp * steepness)
        return np.where(self.logistic, expit(w + self.epsilon) - expit(w), ramp)

    def curvature(self, v: Floats) -> Floats:
        """Return the second derivative of each g; 0 outside a ramp."""
        w = -v if self.flipped else v
        first, second = expit(w + self.epsilon), expit(w)
        bent = first * (1 - first) - second * (1 - second)
        slope = self.slope(v)
        curvature = np.where(self.logistic, bent, slope * (self.growth - slope))
        return -curvature if self.flipped else curvature

    def conjugate(self, slope: Floats, low: Floats, high: Floats) -> Floats:
        """Return the maximum of g(v) - slope * v over low <= v <= high."""
        stationary = np.clip(self._stationary(slope), np.minimum(np.maximum(low, self.bend), high), high)
        best = self.value(low) - slope * low
        for v in (stationary, high):
            best = np.maximum(self.value(v) - slope * v, best)
        return best

    def envelope_slope(self, low: Floats, high: Floats, at: Floats, tangent: Floats | None = None) -> Floats:
        """Return the slope of the least concave majorant of g over [low, high] at an argument."""
        # `tangent` is the tangent point, if it is known.
        tangent = self.tangent_point(low, high) if tangent is None else tangent
        run = tangent - low
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = np.where(run > 0, (self.value(tangent) - self.value(low)) / run, 0.0)
        # Rounding can put an argument just outside its range, where a convex g has no tangent point.
        at = np.minimum(at, high)
        # Both slopes at a kink are tangents with different bounds, so rounding must not choose between them.
        return np.where((at <= tangent + self.error) & (run > 0), chord, self.slope(at))

    def majorants(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the slope of each majorant in the middle, its conjugate, and its looseness over the squared range."""
        middle, spread = (low + high) / 2, (high - low) / 2
        slope = self.envelope_slope(low, high, middle)
        height = self.conjugate(slope, low, high)
        gaps = [np.abs(height + slope * at - self.value(at)) for at in (middle, low, high)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return slope, height, np.where(spread > 0, self.count * np.max(gaps, axis=0) / spread**2, 0.0)

    def tangent_point(self, low: Floats, high: Floats) -> Floats:
        """Return the tangent point of the majorant's straight piece from (low, g(low))."""
        last = high if self.flipped else np.where(self.logistic, high, np.minimum(high, 1.0))
        first = np.minimum(np.maximum(low, self.bend), last)
        if self.flipped:
            ramp_ends = np.where(self._is_convex, np.maximum(np.minimum(high, 0.0), first), first)
            last = np.where(self.logistic, last, ramp_ends)
        left, right = np.broadcast_arrays(first, last)
        left, right = left.copy(), right.copy()
        g_low = self.value(low)
        t = right.copy()
        for _ in range(12):
            # Newton step on the concave part, or a bisection if it would leave the bracket.
            excess = self.slope(t) * (t - low) - (self.value(t) - g_low)
            left, right = np.where(excess > 0, t, left), np.where(excess > 0, right, t)
            bend = self.curvature(t) * (t - low)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = t - excess / bend
            # Newton has converged at an end of the bracket; a bisection would leave the solution.
            t = np.where((step >= left) & (step <= right), step, (left + right) / 2)
        t = np.where(left >= last, last, t)
        return np.where(low >= self.bend, low, t)

    def _stationary(self, slope: Floats) -> Floats:
        """Return the argument at which the concave part of g has a slope, else infinity."""
        s = np.maximum(slope, 1e-300)
        ramp = np.zeros_like(s) if self.flipped else np.clip(1.0 / s - self.smallest / self.reach, 0.0, 1.0)
        if self.growth.any():
            ramp = np.where(self.growth == 0, ramp, self._curved_stationary(s))
        half = self.epsilon / 2
        beyond = np.arccosh(np.maximum(np.sinh(half) / s - np.cosh(half), 1.0))
        found = np.where(self.logistic, self.bend + beyond, ramp)
        return np.where(slope > 1e-300, found, np.inf)

    def _curved_stationary(self, slope: Floats) -> Floats:
        """Return the argument at which the concave part of a curved ramp's g has a slope."""
        with np.errstate(all="ignore"):
            ratio = slope * (self.smallest * self._height - self.reach) / (self.reach * (self.growth - slope))
            w = np.clip(np.where(ratio > 0, np.log(ratio) / self.growth, 1.0), 0.0, 1.0)
        if self.flipped:
            return np.where(self._is_convex, -w, 0.0)
        return np.where(self._is_convex, 1.0, w)
