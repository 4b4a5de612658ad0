"""The one-dimensional maxima of exponential answers, for the independent check."""

import numpy as np

from skldp.accounting._extrema.sampled_law import CHANCE_ERROR, UNIT, Floats, SampledLaw

__all__ = ["curved", "curved_peaks"]


def curved(law: SampledLaw, ramp: Floats) -> Floats:
    """The responses of ramps that would be these, shape (k, n), if none of them were curved."""
    if not law.growth.any():
        return ramp
    height = np.where(law.growth == 0, 1.0, np.expm1(law.growth))
    bent: Floats = np.where(law.growth == 0, ramp, np.expm1(law.growth * ramp) / height)
    return bent


def curved_peaks(
    law: SampledLaw,
    sign: int,
    slopes: Floats,
    low: Floats,
    high: Floats,
    minorant: bool,  # noqa: ARG001 -- one signature with ramps, which alone have minorants
) -> Floats:
    r"""Maximum of sign ln(q + sign eta + t S(w)) - s w over low <= w <= high, with S a curved ramp of growth k.

    Between the kinks h = ln(q + t S) has :math:`h'' = h' (k - h')`, and :math:`k - h'` has the sign of
    :math:`(q (e^k - 1) - t) / (e^k - 1)` throughout. So sign h is either convex there, with its maximum at an end, or
    concave, where the tangent at any point is a bound. Which of the two, rounding can mistake only where h'' is below
    :math:`64 u k^2`: so much is added.
    """
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
    # Where h has the slope, or the end towards which the middle goes up.
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
