r"""Exact losses of shuffled answers that are one of two.

The analyst sees how many answers are the second one. Delta is jointly convex in the two laws of this number, and both
laws are linear in the chance of each other person's answer. So delta is largest where every other person has the
smallest or the largest chance, and it only matters how many have the largest one. For all numbers of a block, fewer
people cover delta: those who may have either chance are left out, and adding people is post-processing.

With the number B of others, chances l and h of the first person and thresholds t,

.. math:: \delta(\varepsilon) = \max_t (h - l) P(B = t - 1) - (e^\varepsilon - 1) (P(B \ge t) + l P(B = t - 1)),

because the ratio of the two laws increases with the number (a sum of independent bits has a log-concave law). This is
linear in :math:`e^\varepsilon` for each t, and is solved for it.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import numpy as np
from scipy.signal import fftconvolve

from skldp._arrays import Floats

# Larger numbers of people take the bound of the blanket.
MOST_COUNTED = 2**24
# A block is split until its epsilon is this close to the one of certain numbers, or there are so many blocks.
_CLOSE, _MOST_BLOCKS = 1 + 2.0**-9, 1024
# Bound on the relative error of the masses: eight units for each of at most 2^20 positions.
_ERROR = 2.0**-30
# Product of sizes beyond which a convolution is made by Fourier transforms.
_DIRECT = 2**22


@dataclass(frozen=True)
class Terms:
    """The two terms of delta at each threshold, rounded up and down: delta is gain - (e^epsilon - 1) cost."""

    gain: Floats
    cost: Floats

    def odds_excess(self, delta: float) -> float:
        """Return the smallest e^epsilon - 1 with this delta."""
        wins = self.gain > delta
        return float(((self.gain[wins] - delta) / np.maximum(self.cost[wins], 1e-300)).max(initial=0.0))

    def delta(self, odds_excess: float) -> float:
        return float((self.gain - odds_excess * self.cost).max(initial=0.0))


@dataclass(frozen=True)
class TwoAnswers:
    """Shuffled answers of n people whose chance of the second of two answers is between `low` and `high`."""

    low: Fraction
    high: Fraction
    n: int

    def cover(self, delta: float, *, rounds: bool) -> tuple[float, Callable[[float], float]]:
        """Return epsilon at this delta, rounded up, and delta at each e^epsilon - 1, close if there are rounds."""
        budget = delta * 2.0**-12
        levels = delta ** np.array([1.0, 0.5, 0.25, 0.125][: 4 if rounds else 1]) - budget

        def bound(first: int, last: int) -> tuple[Floats, list[Terms]]:
            terms = self._terms(first, last, budget / 4)
            excess = np.array([[one.odds_excess(level) for level in levels] for one in terms], dtype=np.float64)
            most: Floats = excess.max(axis=0)
            return most, terms

        least = np.maximum(np.max([bound(corner, corner)[0] for corner in {0, self.n - 1}], axis=0), 1e-300)
        order = count()
        heap: list[tuple[float, int, int, int, float, list[Terms]]] = []
        blocks = [(0, self.n - 1)]
        while True:
            for first, last in blocks:
                above, terms = bound(first, last)
                heapq.heappush(heap, (-float((above / least).max()), next(order), first, last, above[0], terms))
            ratio, _, first, last, *_ = heap[0]
            if -ratio <= _CLOSE or len(heap) >= _MOST_BLOCKS or first == last:
                break
            heapq.heappop(heap)
            middle = (first + last) // 2
            blocks = [(first, middle), (middle + 1, last)]
        covering = [one for entry in heap for one in entry[-1]]

        def curve(odds_excess: float) -> float:
            return min(1.0, max(one.delta(odds_excess) for one in covering) + budget)

        return math.log1p(max(entry[-2] for entry in heap)) * (1 + 2.0**-50), curve

    def _terms(self, first: int, last: int, share: float) -> list[Terms]:
        """Return the terms that cover `first` to `last` others of the largest chance, in both orders of the inputs."""
        law, error = _sum(_binomial(first, self.high, share), _binomial(self.n - 1 - last, self.low, share))
        spread = float(self.high - self.low) * (1 + _ERROR)
        found = []
        for masses, low in ((law, self.low), (law[::-1], 1 - self.high)):
            at_least = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)
            cost = (at_least + float(low) * masses) * (1 - _ERROR) - masses.size * error
            found.append(Terms(spread * (masses + error), cost))
        return found


def _binomial(n: int, chance: Fraction, lost: float) -> Floats:
    """Return the masses of a binomial law but for its ends, of mass at most `lost`, scaled to a sum of 1."""
    middle, third = float(n * chance), math.log(2 / lost) / 3
    # Bernstein's inequality.
    half = third + math.sqrt(third * third + 6 * third * float(n * chance * (1 - chance)))
    start, end = max(0, math.floor(middle - half)), min(n, math.ceil(middle + half))
    mode = min(max(int((n + 1) * chance), start), end)
    odds = float(chance / (1 - chance))
    up = np.arange(mode, end)
    down = np.arange(mode, start, -1)
    above = np.cumprod((n - up) / (up + 1) * odds)
    below = np.cumprod(down / (n - down + 1) / odds)
    masses = np.concatenate([below[::-1], [1.0], above])
    return np.asarray(masses / masses.sum())


def _sum(one: Floats, two: Floats) -> tuple[Floats, float]:
    """Return the law of the sum of two independent numbers, and a bound on the error of each of its masses."""
    if one.size * two.size <= _DIRECT:
        return np.convolve(one, two), 0.0
    # The error of a transform is at most a few units for each of its log2(size) steps (Higham 2002, section 24.1).
    steps = math.log2(one.size + two.size) + 1
    error = 64 * steps * 2.0**-53 * float(np.linalg.norm(one) * np.linalg.norm(two))
    return np.asarray(np.maximum(fftconvolve(one, two), 0.0)), error
