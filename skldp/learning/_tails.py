r"""What lies beyond a radius, of norms whose logarithms have the upper tail of a normal law."""

import math

from scipy import optimize, special

__all__ = ["deviation_of_tail", "mean_excess", "radius_that_keeps"]

# Deviations of the logarithm that are told apart: beyond the last, means are a matter of a few people far out.
_LEAST_DEVIATION, _MOST_DEVIATION = 0.05, 2.0


def mean_excess(middle: float, deviation: float, radius: float) -> float:
    r"""By how much norms exceed a radius in the mean.

    Notes
    -----
    :math:`E (t - R)_+ = m e^{s^2 / 2} \Phi(u + s) - R \Phi(u)`, with :math:`u = \ln(m / R) / s`: the price of a call.

    References
    ----------
    Black and Scholes, "The pricing of options and corporate liabilities", 1973, equation 13, without interest.

    Examples
    --------
    >>> from skldp.learning._tails import mean_excess
    >>> round(mean_excess(1.0, 1.0, 4.0), 3)
    0.245
    """
    upper = math.log(middle / radius) / deviation
    beyond = middle * math.exp(deviation**2 / 2) * special.ndtr(upper + deviation) - radius * special.ndtr(upper)
    return max(0.0, float(beyond))


def deviation_of_tail(told: float, start: float, end: float) -> float:
    """The deviation at which logarithms exceed `start` by so much in the mean, those beyond `end` counted as `end`."""

    def beyond(level: float, deviation: float) -> float:
        ratio = level / deviation
        density = math.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
        return deviation * density - level * float(special.ndtr(-ratio))

    def too_much(deviation: float) -> float:
        return beyond(start, deviation) - beyond(end, deviation) - told

    if too_much(_LEAST_DEVIATION) >= 0:
        return _LEAST_DEVIATION
    if too_much(_MOST_DEVIATION) <= 0:
        return _MOST_DEVIATION
    return float(optimize.brentq(too_much, _LEAST_DEVIATION, _MOST_DEVIATION))


def radius_that_keeps(middle: float, deviation: float, share: float, noise: float) -> float:
    """The least radius whose mean excess is at most a share of the noise, which grows with the radius."""

    def excess(logarithm: float) -> float:
        radius = math.exp(logarithm)
        return mean_excess(middle, deviation, radius) / radius - share * noise

    low = math.log(middle)
    if excess(low) <= 0:
        return middle
    # The mean excess of a radius falls faster than any power of it.
    high = low + deviation
    while excess(high) > 0:
        high += deviation
    return math.exp(float(optimize.brentq(excess, low, high)))
