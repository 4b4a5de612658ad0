r"""Upper bounds on the central delta and epsilon of one shuffled release, in floating point.

The first of n people has one of two inputs, with laws :math:`R_0` and :math:`R_1` of the answer. Every other law is
at least :math:`\omega` for any input, and answers are independent. Their mixture then satisfies

.. math:: \delta(\varepsilon) \le \frac1n E\Bigl[\Bigl(\sum_{i=1}^n X_i\Bigr)_+\Bigr], \qquad
          X = \frac{R_0(y) - e^\varepsilon R_1(y)}{\omega(y)} \text{ with probability } \omega(y) \text{ for each } y,
          \text{ else } 0,

with independent copies of X (Balle, Bell, Gascon and Nissim, CRYPTO 2019, Lemma 5.3, written as one sum).

**Bound from epsilon only.** If all ratios of the mechanism are at most :math:`p = e^{\varepsilon_0}`, then
:math:`\omega = \max(R_0, R_1) / p` is valid, and :math:`(R_0, R_1, \omega)` at any y is a sum of multiples of
(p, 1, 1), (1, p, 1) and (1, 1, 1/p). So X is a mixture of two laws. The first is :math:`p - e^\varepsilon` and
:math:`1 - p e^\varepsilon` with probability 1 / (p + 1) each, else 0. The second is :math:`p (1 - e^\varepsilon)` with
probability 1 / p, else 0. Both have the mean :math:`1 - e^\varepsilon`. For :math:`1 \le e^\varepsilon \le p`, the
second is below the first in convex order. For k < 0, :math:`E(k - X)_+` is :math:`(k + p e^\varepsilon - p)_+ / p` for
the second and at least :math:`(k + p e^\varepsilon - 1)_+ / (p + 1)` for the first, which is not smaller if
:math:`k \le p (p - e^\varepsilon)`. For k > 0, the second has no mass above k. A sum of copies preserves the order. The
worst mechanism is therefore binary randomized response, with :math:`2 / (e^{\varepsilon_0} + 1)` clones per person.
This is the result of Feldman, McMillan and Talwar, SODA 2023, whose erratum withdraws the proof for any mechanism.

**Two answers.** The analyst sees how many answers are the second one. Delta is jointly convex in the two laws of this
number, and both laws are linear in the chance of each other person's answer. So delta is largest where every other
person has the smallest or the largest chance, and it only matters how many have the largest one. For all numbers of a
block, fewer people cover delta: those who may have either chance are left out, and adding people is post-processing.
With the number B of others, chances l and h of the first person and thresholds t,

.. math:: \delta(\varepsilon) = \max_t (h - l) P(B = t - 1) - (e^\varepsilon - 1) (P(B \ge t) + l P(B = t - 1)),

because the ratio of the two laws increases with the number (a sum of independent bits has a log-concave law). This is
linear in :math:`e^\varepsilon` for each t, and is solved for it.
"""

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count

import numpy as np
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import ndtr

from skldp._arrays import Floats

_UNIT = 2.0**-53
# Bound on the sum of products below the smallest float.
_UNDERFLOW = 1e-280


@dataclass(frozen=True)
class LossLattice:
    """Masses at the positions first, first + 1, ... of a lattice, with a bound on their relative error."""

    masses: Floats
    first: int
    error: float

    def plus(self, other: "LossLattice") -> "LossLattice":
        """Return the law of the sum of two independent numbers."""
        # The relative error of a sum of n products of positive numbers is below n + 1 units in any order.
        terms = min(self.masses.size, other.masses.size) + 2
        masses = np.convolve(self.masses, other.masses)
        return LossLattice(masses, self.first + other.first, self.error + other.error + 2 * terms * _UNIT)

    def coarser(self, down: float, up: float) -> "LossLattice":
        """Return the law on every other position; masses between go to both neighbors by these shares."""
        odd_start = self.first % 2
        masses = np.concatenate([np.zeros(odd_start), self.masses])
        even, odd = masses[0::2], masses[1::2]
        spread = np.zeros(masses.size // 2 + 1)
        spread[: even.size] = even
        spread[: odd.size] += down * odd
        spread[1 : 1 + odd.size] += up * odd
        return LossLattice(spread, (self.first - odd_start) // 2, self.error + 8 * _UNIT)


class Measure(ABC):
    """Functional of a sum, increasing and convex along the splits of :meth:`shares`."""

    @abstractmethod
    def shares(self, level: int) -> tuple[float, float]:
        """Return the shares that go down and up when the step doubles from 2^level."""

    @abstractmethod
    def worth(self, law: LossLattice, single: LossLattice, level: int, n_copies: int) -> Floats:
        """Bound the contribution of a unit of mass at each position of a law of `n_copies` to the sum's measure."""


def sum_of_copies(
    single: LossLattice, n: int, measure: Measure, *, budget: float, most: int
) -> tuple[LossLattice, int, float]:
    """Return the law of a sum of n independent copies."""
    bits = bin(n)[3:]
    level, lost, share = 0, _UNDERFLOW, budget / (2 * len(bits) + 2)
    law, n_copies = single, 1
    for done, bit in enumerate(["", *bits]):
        if done:
            law, n_copies = law.plus(law), 2 * n_copies
        if bit == "1":
            law, n_copies = law.plus(single), n_copies + 1
        # The sum consists of this many such sums, and of single copies.
        n_blocks = 2 ** (len(bits) - done)
        law, cost = _trimmed(law, n_blocks, measure.worth(law, single, level, n_copies), share)
        lost += cost
        while law.masses.size > most:
            down, up = measure.shares(level)
            law, single, level = law.coarser(down, up), single.coarser(down, up), level + 1
    return law, level, lost


def _trimmed(law: LossLattice, n_blocks: int, worth: Floats, share: float) -> tuple[LossLattice, float]:
    """Remove the ends of a law, each about `share` in all blocks: the left end moves up, the right end is dropped."""
    masses = law.masses
    # The error includes the rounding of the sums and the error of the masses.
    costs = np.cumsum((masses * worth)[::-1]) * (n_blocks * (1 + 2 * law.error + 2.0**-30))
    n_right = min(int(np.searchsorted(costs, share, side="right")), masses.size - 1)
    n_left = int(np.searchsorted(np.cumsum(masses) * n_blocks, share, side="right"))
    n_left = min(n_left, masses.size - n_right - 1)
    kept = masses[n_left : masses.size - n_right].copy()
    kept[0] += masses[:n_left].sum()
    cost = float(costs[n_right - 1]) if n_right else 0.0
    return LossLattice(kept, law.first + n_left, law.error + masses.size * _UNIT), cost


# Beyond this epsilon, the blanket is too thin for any supported number of people.
MOST_EPSILON = 30.0
# Larger numbers of people count as this number. Smaller deltas use the local guarantee.
MOST_PEOPLE = 2**40
_LEAST_DELTA = 1e-100
# Numbers of positions between the largest and the smallest X, and of the law of a sum.
_RESOLUTION = 128
# Values below -64 times the largest X are raised to it.
_DEPTH = 64
_PLACES, _FEW_PLACES = 2048, 256
# Relative precision of delta.
_CLOSE = 2.0**-10


@dataclass(frozen=True)
class BlanketLaw:
    r"""Laws of the answers to two inputs, as ratios to the common part of all laws (the blanket)."""

    own: Floats
    other: Floats
    weights: Floats
    error: float = 2.0**-50

    def times(self, others: "BlanketLaw") -> "BlanketLaw":
        """Return the law of two independent answers of one person; answers of equal ratios are merged."""
        own = np.outer(self.own, others.own).ravel()
        other = np.outer(self.other, others.other).ravel()
        weights = np.outer(self.weights, others.weights).ravel()
        grid = np.rint(np.log2(np.stack([own, other])) * 2.0**36)
        kinds, which = np.unique(grid, axis=1, return_inverse=True)
        size, error = kinds.shape[1], self.error + others.error + own.size * 2.0**-52
        merged = BlanketLaw(np.zeros(size), np.full(size, np.inf), np.zeros(size), error)
        # Rounding makes X larger.
        np.maximum.at(merged.own, which.ravel(), own)
        np.minimum.at(merged.other, which.ravel(), other)
        np.add.at(merged.weights, which.ravel(), weights)
        return merged


def any_law(epsilon: float) -> BlanketLaw:
    """Return the worst law of all mechanisms of an epsilon: binary randomized response."""
    odds = math.exp(epsilon) * (1 + 2.0**-50)
    share = 1 / (odds + 1)
    return BlanketLaw(np.array([odds, 1.0]), np.array([1.0, odds]), np.array([share, share]))


@dataclass(frozen=True)
class _MeanExcess(Measure):
    """Mean of the positive part of a sum of n numbers ``shift + step * place``, divided by n."""

    n: int
    step: float
    shift: float

    def shares(self, level: int) -> tuple[float, float]:
        return 0.5, 0.5

    def worth(self, law: LossLattice, single: LossLattice, level: int, n_copies: int) -> Floats:
        excess = self.excess(law, level, n_copies)
        # The sum's positive part is at most the sum of the positive parts of all blocks.
        means = float(excess @ law.masses) / n_copies, float(self.excess(single, level, 1) @ single.masses)
        return excess / self.n + max(means) * (1 + 2 * law.error + 2.0**-30)

    def excess(self, law: LossLattice, level: int, n_copies: int) -> Floats:
        """Return the positive part of a sum of copies at each position, rounded up."""
        along = np.arange(law.first, law.first + law.masses.size) * (self.step * 2.0**level)
        fixed = n_copies * self.shift
        return np.asarray(np.maximum(along + fixed + 2.0**-48 * (np.abs(along) + abs(fixed)), 0.0))


def shuffled_delta(law: BlanketLaw, odds_excess: float, n: int, *, budget: float, places: int = _PLACES) -> float:
    r"""Return an upper bound on delta after shuffling."""
    values, masses = law.own - law.other - odds_excess * law.other, law.weights
    # Values and masses are rounded up.
    values = values + (law.error + 2.0**-50) * (law.own + (1 + odds_excess) * law.other)
    values = np.append(values, 0.0)
    masses = np.append(masses, max(0.0, 1 - float(masses.sum())) + law.error + masses.size * 2.0**-52)
    if values.max() <= 0:
        return 0.0
    # A very low value would make the lattice coarse; raising it keeps the bound valid.
    values = np.maximum(values, -_DEPTH * values.max())
    # The most likely value and the largest value are positions of the lattice.
    shift = float(values[masses.argmax()])
    least, most = float(values.min()) - shift, float(values.max()) - shift
    step = most / math.ceil(_RESOLUTION * most / (most - least)) if most > 0 else -least / _RESOLUTION
    position = (values - shift) / step
    below = np.floor(position)
    up = np.minimum(position - below + 2.0**-38, 1.0)
    up[values == shift] = 0.0
    place = (below - below.min()).astype(np.int64)
    on_lattice = np.zeros(int(place.max()) + 2)
    np.add.at(on_lattice, place, masses * (1 - up))
    np.add.at(on_lattice, place + 1, masses * up)
    single = LossLattice(on_lattice, int(below.min()), law.error + masses.size * 2.0**-52)
    measure = _MeanExcess(n, step, shift)
    total, level, lost = sum_of_copies(single, n, measure, budget=budget, most=places)
    mean = float(total.masses @ measure.excess(total, level, n)) / n
    return min(1.0, mean * math.exp(total.error) * (1 + 2.0**-30) + lost)


def shuffled_epsilon(law: BlanketLaw, n: int, delta: float, most: float) -> float:
    r"""Return the smallest proved epsilon after shuffling, rounded up."""
    if most > MOST_EPSILON or delta < _LEAST_DELTA or most == 0:
        return most
    n = min(n, MOST_PEOPLE)

    def height(odds_excess: float, places: int) -> float:
        # A slight increase keeps rounding from making the logarithm 0 if the bound exceeds delta.
        bound = shuffled_delta(law, odds_excess, n, budget=delta * 2.0**-14, places=places) * (1 + 2.0**-40)
        return math.log(bound / delta) if bound > 0 else -math.inf

    end = math.expm1(most)
    guess, slope = _normal_guess(law, n, delta)
    # A bound with few positions costs a tenth, so it comes first.
    near, slope = _root(partial(height, places=_FEW_PLACES), min(guess, end / 2), end, slope)
    found, _ = _root(partial(height, places=_PLACES), min(near, end * (1 - _CLOSE)), end, slope)
    # Two operations have an error of one unit in the last place each.
    return min(most, math.log1p(found) * (1 + 2.0**-50))


def _root(height: Callable[[float], float], guess: float, end: float, slope: float) -> tuple[float, float]:
    """Return a point up to `end` where a falling function is just below 0, and its slope there."""
    low, high, at_low, at_high = 0.0, end, math.inf, -math.inf
    for n_tried in range(1, 80):
        now = height(guess)
        if now <= 0:
            high, at_high = guess, now
        else:
            low, at_low = guess, now
        known = math.isfinite(at_low - at_high)
        if known:
            slope = (at_high - at_low) / (high - low)
        if at_high > -_CLOSE or high - low <= _CLOSE / 8 * high or high == 0:
            break
        # The target is slightly on the safe side.
        newton = guess - (now + _CLOSE / 2) / slope if math.isfinite(now) else math.nan
        margin = (high - low) * 2.0**-7 if known else 0.0
        # Bisection may be faster far from a normal law.
        inside = low + margin < newton < high - margin and (n_tried <= 6 or n_tried % 2)
        guess = newton if inside else (low + high) / 2 if high > 1e-12 else 0.0
    return high, slope


def _normal_guess(law: BlanketLaw, n: int, delta: float) -> tuple[float, float]:
    """Return the point where a normal law of the same variance has this delta, and its logarithmic slope."""
    spread = math.sqrt(float((law.weights * (law.own - law.other) ** 2).sum()) / n)
    if spread * _normal_excess(0.0) <= delta:
        return 0.0, -1 / max(spread, 1e-300)
    t = float(brentq(lambda t: math.log(spread * _normal_excess(t) / delta), 0.0, 37.0))
    return spread * t, -float(ndtr(-t)) / (_normal_excess(t) * spread)


def _normal_excess(t: float) -> float:
    """Return the mean of the positive part of a standard normal variable minus t."""
    return max(math.exp(-t * t / 2) / math.sqrt(2 * math.pi) - t * float(ndtr(-t)), 1e-300)


# Larger numbers of people take the bound of the blanket.
MOST_COUNTED = 2**24
# A block is split until its epsilon is this close to the one of certain numbers, or there are so many blocks.
_CLOSE_BLOCKS, _MOST_BLOCKS = 1 + 2.0**-9, 1024
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
            if -ratio <= _CLOSE_BLOCKS or len(heap) >= _MOST_BLOCKS or first == last:
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
