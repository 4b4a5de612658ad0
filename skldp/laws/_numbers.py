"""Integer laws of numbers by bins, knots and bits, and of groups of numbers.

The epsilon of bins, knots and bits is that of the code, since a mapping before the randomization cannot increase it.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from skldp._arrays import Bools, Floats, Words
from skldp.laws._categories import ResponseLaw
from skldp.laws._few_answers import rounded_uniform, write_signs
from skldp.laws._integers import (
    MOST_ANSWER_BITS,
    GroupLaw,
    IntegerLaw,
    Noise,
    UnitLaw,
    ascending,
    rank_of_subset,
    subset_of_rank,
    uniform_subset,
    whole,
)
from skldp.laws._odds import TWO_64, calibration_epsilon, log_ratio, round_up, sum_above

_TWO_63 = 2**63


#: Positions in [-1, 1] and answers are integer multiples of 1 / PLACES.
PLACES = 2**53
_MOST_BINS = 4096
_MOST_BITS = 53


@dataclass(frozen=True)
class _ResponseOnNumbers(UnitLaw):
    """Base class of laws that answer by randomized response to the code of a number."""

    response: ResponseLaw

    @property
    def n_answers(self) -> int:
        return self.response.n_codes

    @property
    def ratio(self) -> tuple[int, int]:
        return self.response.ratio


@dataclass(frozen=True)
class BinsLaw(_ResponseOnNumbers):
    """Law of randomized response to a bin's index; each answer has its own public number, with bias."""

    name: ClassVar[str] = "bins"
    has_bias: ClassVar[bool] = True
    edges: tuple[int, ...]
    answers: tuple[int, ...]

    def _check(self) -> None:
        listed = whole(self.edges, PLACES) and whole(self.answers, PLACES) and ascending(self.edges)
        if not isinstance(self.response, ResponseLaw) or not listed:
            self._refuse("answer for bins, whose edges ascend, within [-1, 1]")
        if not self.response.n_codes == len(self.answers) == len(self.edges) + 1 <= _MOST_BINS:
            self._refuse(f"have as many answers as bins, at most {_MOST_BINS}, and an edge between each two")

    def draw(self, x: float, words: Iterator[int]) -> int:
        # A double times a power of two, and its comparison with an integer, are exact.
        return self.response.draw(sum(edge <= x * PLACES for edge in self.edges), words)

    def value(self, answer: int) -> float:
        return self.answers[answer] / PLACES


@dataclass(frozen=True)
class KnotsLaw(_ResponseOnNumbers):
    """Law of randomized response to a knot, after random rounding to one of the two adjacent knots."""

    name: ClassVar[str] = "knots"
    knots: tuple[int, ...]

    def _check(self) -> None:
        listed = whole(self.knots, PLACES) and ascending(self.knots) and len(self.knots) >= 2
        if not listed or (self.knots[0], self.knots[-1]) != (-PLACES, PLACES):
            self._refuse("have knots that ascend from -1 to 1")
        if not isinstance(self.response, ResponseLaw) or not self.response.n_codes == len(self.knots) <= _MOST_BINS:
            self._refuse(f"answer for its knots, at most {_MOST_BINS}")
        if self._gain < 1:
            self._refuse("keep a knot more often than it gives another")

    def draw(self, x: float, words: Iterator[int]) -> int:
        place = round(x * PLACES)
        below = sum(knot <= place for knot in self.knots[1:-1])
        low, high = self.knots[below], self.knots[below + 1]
        upward = next(words) * (high - low) < (place - low) * TWO_64
        return self.response.draw(below + upward, words)

    def value(self, answer: int) -> float:
        other = self.response.other_count
        return (self.knots[answer] * TWO_64 - other * self._sum) / (self._gain * PLACES)

    @property
    def usual_square(self) -> float:
        rounded, other = rounded_uniform(np.diff(np.array(self.knots, float))), self.response.other_count / TWO_64
        squares = np.array([self.value(answer) for answer in range(self.n_answers)]) ** 2
        return float((other + (1 - len(rounded) * other) * rounded) @ squares)

    @cached_property
    def _sum(self) -> int:
        return sum(self.knots)

    @property
    def _gain(self) -> int:
        return TWO_64 - self.response.n_codes * self.response.other_count


@dataclass(frozen=True)
class BitsLaw(UnitLaw):
    """Law of independently flipped sign and magnitude bits of a randomly rounded number."""

    name: ClassVar[str] = "sign_and_bits"
    flip_counts: tuple[int, ...]

    def _check(self) -> None:
        flips = self.flip_counts
        if not whole(flips, _TWO_63) or not 1 <= len(flips) <= _MOST_BITS or not all(0 < t < _TWO_63 for t in flips):
            self._refuse(f"flip 1 to {_MOST_BITS} bits, each less than half the time and sometimes")

    @property
    def n_answers(self) -> int:
        return 1 << len(self.flip_counts)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest estimate: of both signs, with no bit and with all bits of the magnitude."""
        half = self.n_answers // 2
        found = [self.value(answer) for answer in (0, half - 1, half, self.n_answers - 1)]
        return min(found), max(found)

    @property
    def usual_square(self) -> float:
        flips = [count / TWO_64 for count in self.flip_counts]
        of_sign, last = 1 / (1 - 2 * flips[0]) ** 2, self._last
        if not last:
            return of_sign
        of_bits = sum(4**place * q * (1 - q) / (1 - 2 * q) ** 2 for place, q in enumerate(reversed(flips[1:])))
        # Random rounding to a magnitude adds r (1 - r), r uniform.
        return float(of_sign * (1 / 3 + (1 / 6 + of_bits) / last**2))

    @property
    def epsilon(self) -> float:
        """Sum over all bits, since two numbers may differ in each of them."""
        return sum_above(*(log_ratio(TWO_64 - t, t) for t in self.flip_counts))

    def draw(self, x: float, words: Iterator[int]) -> int:
        n_magnitude = len(self.flip_counts) - 1
        position, sign = (abs(x) * self._last, x >= 0) if n_magnitude else ((1 + x) / 2, False)
        magnitude = int(position)
        magnitude += next(words) < int((position - magnitude) * 2.0**64)
        code = (sign << n_magnitude) + magnitude
        for flip_count in self.flip_counts:
            n_magnitude, code = n_magnitude - 1, code ^ (next(words) < flip_count) << n_magnitude
        return code

    def value(self, answer: int) -> float:
        n_magnitude = len(self.flip_counts) - 1
        # The estimate of a bit is (b - q) / (1 - 2 q); the sign is twice this, minus 1.
        means = [
            Fraction((answer >> n_magnitude - i & 1) * TWO_64 - flips, TWO_64 - 2 * flips)
            for i, flips in enumerate(self.flip_counts)
        ]
        magnitude = sum((mean * 2 ** (n_magnitude - i) for i, mean in enumerate(means) if i), Fraction(0))
        return float((2 * means[0] - 1) * (magnitude / self._last if n_magnitude else 1))

    @property
    def _last(self) -> int:
        return (1 << len(self.flip_counts) - 1) - 1


_MOST_VALUES = 2**16
#: Most numbers that a mechanism releases together; an answer of a document has at most MOST_ANSWER_BITS signs.
MOST_TOGETHER = 100_000


@dataclass(frozen=True)
class SignsLaw(GroupLaw):
    """Law of Duchi's vectors: rows of signs that agree, for `agreeing_count` words, with most of the rounded signs."""

    name: ClassVar[str] = "signs"
    agreeing_count: int

    def _check(self) -> None:
        if not 1 <= self.n_values <= MOST_TOGETHER or not 1 <= self.agreeing_count < TWO_64:
            self._refuse(f"have 1 to {MOST_TOGETHER} signs, and a chance of both kinds of answers")
        if operator.le(*self.ratio):
            self._refuse("give an answer that agrees more often than another one")

    @property
    def n_answers(self) -> int:
        return 1 << self.n_values

    @property
    def ratio(self) -> tuple[int, int]:
        """Probabilities of an agreeing row of signs and of another row, times a common factor."""
        own, other = self._sizes
        return self.agreeing_count * other, (TWO_64 - self.agreeing_count) * own

    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        own = 0
        for x in places:
            own = 2 * own + int((next(words) >> 1) < round(x * 2.0**62) + 2**62)
        agree = next(words) < self.agreeing_count
        while True:
            answer: int = 0
            for _ in range(-(-self.n_values // 64)):
                answer = answer * TWO_64 + next(words)
            answer >>= -self.n_values % 64
            if (2 * (self.n_values - (own ^ answer).bit_count()) > self.n_values) == agree:
                return answer

    def draw_many(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        """Write the estimates of many rows, from one word per number, one more, and a bit per number."""
        # A uniform row of signs is negated if it is of the wrong kind and their number is odd. If it is even, ties are
        # redrawn where agreement is wanted, and rows that agree where the other kind is.
        values = x.reshape(-1, self.n_values)
        disagree = (noise.words(values.shape) >> np.uint64(1)) < _sign_threshold(values)
        disagree ^= self._signs(len(values), noise)
        write_signs(disagree, self.largest, out.reshape(values.shape))

    def values(self, answer: int) -> list[float]:
        """Return the estimates, plus or minus one magnitude; the first number's sign is the highest bit."""
        return [self.largest * (2 * (answer >> place & 1) - 1) for place in reversed(range(self.n_values))]

    @cached_property
    def largest(self) -> float:
        return float(1 / self.agreement)

    @property
    def two_valued(self) -> bool:
        return True

    @property
    def usual_square(self) -> float:
        return self.largest**2

    @property
    def moments(self) -> tuple[float, float, float]:
        return self.largest**2, 0.0, -1.0

    def mean(self, x: float) -> Fraction:
        sign = Fraction(int(_sign_threshold(np.array([x]))[0]), 2**62) - 1
        return Fraction(self.largest) * self.agreement * sign

    @cached_property
    def agreement(self) -> Fraction:
        """Mean product of a number's sign and its answer."""
        own, other = self._sizes
        share = Fraction(self.agreeing_count, own) - Fraction(TWO_64 - self.agreeing_count, other)
        # The product of a position's sign and its number's sign sums to this binomial over all agreeing rows, and to
        # its negative over all others.
        return share * math.comb(self.n_values - 1, self.n_values // 2) / TWO_64

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        own = n_agreeing(self.n_values)
        return own, (1 << self.n_values) - own

    def _signs(self, n: int, noise: Noise) -> Bools:
        """Draw where answers disagree with the rounded numbers: uniform in one half or the other, by a coin."""
        d = self.n_values
        want = noise.bernoulli(np.uint64(self.agreeing_count), n)
        disagree = _random_bits(n, d, noise)
        n_disagree = np.count_nonzero(disagree, axis=1)
        again = np.arange(n if d % 2 == 0 else 0)
        while again.size:
            twice = 2 * n_disagree[again]
            again = again[np.where(want[again], twice == d, twice < d)]
            disagree[again] = _random_bits(again.size, d, noise.at(again, n))
            n_disagree[again] = np.count_nonzero(disagree[again], axis=1)
        negate = (2 * n_disagree < d) != want
        # Ties, which are left only where the other side is wanted, stay as they are.
        negate &= 2 * n_disagree != d
        disagree ^= negate[:, None]
        return disagree


def n_agreeing(n_values: int) -> int:
    """Return how many rows of signs agree with a given one in more than half of the positions."""
    return (1 << n_values - 1) - (0 if n_values % 2 else math.comb(n_values, n_values // 2) // 2)


def duchi_vector(epsilon: float, n_values: int) -> SignsLaw:
    share = float(Fraction(n_agreeing(n_values), 1 << n_values))
    # p = 1 - (1 - share) / (1 + (E - 1) share), whose complement keeps its digits where E is large.
    other = (1 - share) / (1 + math.expm1(calibration_epsilon(epsilon)) * share)
    return SignsLaw(n_values, TWO_64 - math.ceil(other * 2.0**64))


def _random_bits(n: int, d: int, noise: Noise) -> Bools:
    return np.unpackbits(noise.words((n, -(-d // 8)), np.uint8), axis=1, count=d).view(np.bool_)


def _sign_threshold(x: Floats) -> Words:
    """Return the chance that a number is rounded to 1, out of 2^63; -1 and 1 are certain."""
    return (np.rint(x * 2.0**62).astype(np.int64) + 2**62).astype(np.uint64)


@dataclass(frozen=True)
class SampledLaw(GroupLaw):
    """Law of a uniform sample of a record's numbers. The highest digit of the answer is the rank of the sample."""

    name: ClassVar[str] = "sampled"
    n_sampled: int
    of_sampled: UnitLaw | GroupLaw

    def _check(self) -> None:
        if not 1 <= self.n_sampled < self.n_values <= _MOST_VALUES:
            self._refuse(f"choose some of 2 to {_MOST_VALUES} numbers, and not all")
        one = self.of_sampled
        fits = isinstance(one, UnitLaw | GroupLaw) and not isinstance(one, SampledLaw)
        if not fits or one.n_values not in ({1} if isinstance(one, UnitLaw) else {self.n_sampled}):
            self._refuse("have a law of one number, or of all that are chosen")
        if self.n_answers.bit_length() > MOST_ANSWER_BITS:
            self._refuse(f"have answers of at most {MOST_ANSWER_BITS} bits")

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.of_sampled.version

    @cached_property
    def n_answers(self) -> int:
        return math.comb(self.n_values, self.n_sampled) * self._of_chosen

    @cached_property
    def epsilon(self) -> float:
        """Sum over the sampled numbers, since the choice of the sample is independent of the values."""
        return round_up(self._n_draws * Fraction(self.of_sampled.epsilon))

    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        chosen = uniform_subset(self.n_values, self.n_sampled, words)
        answer = rank_of_subset(self.n_values, chosen)
        own, size = [places[place] for place in chosen], self.of_sampled.n_values
        for start in range(0, len(own), size):
            answer = answer * self.of_sampled.n_answers + self.of_sampled.draw_group(own[start : start + size], words)
        return answer

    def values(self, answer: int) -> list[float]:
        """Return the estimates of sampled numbers times n_values / n_sampled, and 0 for the others."""
        choice, rest = divmod(answer, self._of_chosen)
        runs = []
        for _ in range(self._n_draws):
            rest, digit = divmod(rest, self.of_sampled.n_answers)
            runs.append(self.of_sampled.values(digit))
        numbers = [number for run in reversed(runs) for number in run]
        all_numbers = [0.0] * self.n_values
        for place, number in zip(subset_of_rank(self.n_values, self.n_sampled, choice), numbers, strict=True):
            all_numbers[place] = number * self.n_values / self.n_sampled
        return all_numbers

    @property
    def _n_draws(self) -> int:
        return self.n_sampled // self.of_sampled.n_values

    @property
    def largest(self) -> float:
        return self.of_sampled.largest * self.n_values / self.n_sampled

    @property
    def usual_square(self) -> float:
        return self.of_sampled.usual_square * self.n_values / self.n_sampled

    @cached_property
    def _of_chosen(self) -> int:
        answers: int = self.of_sampled.n_answers**self._n_draws
        return answers


def sampled_law(n_values: int, n_sampled: int, law: IntegerLaw) -> IntegerLaw:
    """Return the law itself if every value is released, else a :class:`SampledLaw`."""
    assert isinstance(law, UnitLaw | GroupLaw)
    return SampledLaw(n_values, n_sampled, law) if n_sampled < n_values else law
