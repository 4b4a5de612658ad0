r"""Exact losses of shuffled answers that are one of two, in groups of people with different laws.

The analyst sees how many answers are the second one. Delta is jointly convex in the two laws of this number, and both
laws are linear in the chance of each other person's answer. So delta is largest where every other person has the
smallest or the largest chance of their group, and it only matters how many of a group have the largest one. For all
numbers of a block, a smaller group covers delta: the people who may have either chance are left out, and adding people
is post-processing.

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
from itertools import count, product

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
# Numbers of a group who have the largest chance: at least the first, at most the second.
Block = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Group:
    """People whose chance of the second of two answers is between `low` and `high`, whatever they hold."""

    low: Fraction
    high: Fraction
    n: int


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
        """Return delta at this e^epsilon - 1."""
        return float((self.gain - odds_excess * self.cost).max(initial=0.0))


@dataclass(frozen=True)
class TwoAnswers:
    """Answers of a person of the first group, shuffled with those of all others of the groups."""

    groups: tuple[Group, ...]

    def cover(self, delta: float, *, rounds: bool) -> tuple[float, Callable[[float], float]]:
        """Return epsilon at this delta, rounded up, and delta at each e^epsilon - 1, close if there are rounds."""
        budget = delta * 2.0**-12
        levels = delta ** np.array([1.0, 0.5, 0.25, 0.125][: 4 if rounds else 1]) - budget
        sizes = [group.n - (group is self.groups[0]) for group in self.groups]

        def bound(block: Block) -> tuple[Floats, list[Terms]]:
            terms = self._terms(block, sizes, budget)
            excess = np.array([[one.odds_excess(level) for level in levels] for one in terms], dtype=np.float64)
            most: Floats = excess.max(axis=0)
            return most, terms

        corners = product(*({(0, 0), (size, size)} for size in sizes))
        least = np.maximum(np.max([bound(corner)[0] for corner in corners], axis=0), 1e-300)
        order = count()
        start: Block = tuple((0, size) for size in sizes)
        above, terms = bound(start)
        heap = [(-float((above / least).max()), next(order), start, above[0], terms)]
        while -heap[0][0] > _CLOSE and len(heap) < _MOST_BLOCKS:
            block = heap[0][2]
            widest = max(range(len(block)), key=lambda place: block[place][1] - block[place][0])
            first, last = block[widest]
            if first == last:
                break
            heapq.heappop(heap)
            middle = (first + last) // 2
            for part in ((first, middle), (middle + 1, last)):
                child = (*block[:widest], part, *block[widest + 1 :])
                above, terms = bound(child)
                heapq.heappush(heap, (-float((above / least).max()), next(order), child, above[0], terms))
        covering = [one for entry in heap for one in entry[4]]

        def curve(odds_excess: float) -> float:
            return min(1.0, max(one.delta(odds_excess) for one in covering) + budget)

        return math.log1p(max(entry[3] for entry in heap)) * (1 + 2.0**-50), curve

    def _terms(self, block: Block, sizes: list[int], budget: float) -> list[Terms]:
        """Return the terms that cover all numbers of a block, in both orders of the inputs."""
        share = budget / (4 * len(sizes))
        law, error = np.ones(1), 0.0
        for group, size, (first, last) in zip(self.groups, sizes, block, strict=True):
            for n, chance in ((first, group.high), (size - last, group.low)):
                law, more = _sum(law, _binomial(n, chance, share))
                error += more
        own, found = self.groups[0], []
        spread = float(own.high - own.low) * (1 + _ERROR)
        for masses, low in ((law, own.low), (law[::-1], 1 - own.high)):
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
