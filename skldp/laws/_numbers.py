"""Integer laws of numbers: two or three answers, a lattice, a mixture, bins, knots, bits, and groups of numbers.

The epsilon of bins, knots and bits is that of the code, since a mapping before the randomization cannot increase it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from skldp._checks import is_integer
from skldp.laws._categories import ResponseLaw
from skldp.laws._integers import (
    MOST_EXPONENT,
    GroupLaw,
    IntegerLaw,
    UnitLaw,
    rank_of_subset,
    subset_of_rank,
    uniform_subset,
)
from skldp.laws._odds import TWO_64, log_ratio, round_up, sum_above

_TWO_63 = 2**63


@dataclass(frozen=True)
class TwoAnswersLaw(UnitLaw):
    """Law of Duchi's mechanism: 1 for ``2**63 + x * slope`` of 2^64 words, rounded half to even, else 0."""

    name: ClassVar[str] = "two_answers"
    n_answers = 2
    slope: int

    def _check(self) -> None:
        if not 1 <= self.slope < _TWO_63 or int(float(self.slope)) != self.slope:
            self._refuse("have a slope below 2**63 that is a double")

    @property
    def epsilon(self) -> float:
        """Log-ratio between the inputs -1 and 1."""
        return log_ratio(_TWO_63 + self.slope, _TWO_63 - self.slope)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a number from one word."""
        return int(next(words) < _TWO_63 + round(x * float(self.slope)))

    def value(self, answer: int) -> float:
        """Return plus or minus ``2**63 / slope``."""
        return (2 * answer - 1) * (2.0**63 / self.slope)


@dataclass(frozen=True)
class ThreeAnswersLaw(UnitLaw):
    """Law of Three-Outputs: 0 is minus, 1 is zero and 2 is plus.

    The answer is zero for ``zero - |x| * zero_lost`` of 2^64 words, and has the wrong sign for the next
    ``wrong - |x| * wrong_lost``, with products rounded half to even.
    """

    name: ClassVar[str] = "three_answers"
    n_answers = 3
    zero: int
    zero_lost: int
    wrong: int
    wrong_lost: int

    def _check(self) -> None:
        lost = (self.zero_lost, self.wrong_lost)
        kept = self.zero_lost >= 0 and (self.zero_lost < self.zero or self.zero == 0 == self.zero_lost)
        if not kept or not 0 <= self.wrong_lost < self.wrong or self.zero + 2 * self.wrong != TWO_64 or not any(lost):
            self._refuse("split 2**64 words evenly at 0, with some for each answer at 1")
        if any(int(float(number)) != number for number in lost):
            self._refuse("lose as many words as a double holds")

    @property
    def epsilon(self) -> float:
        """Larger log-ratio of zero and of a sign, at the ends, since all probabilities are monotone in abs(x)."""
        zero_end, wrong_end = self.zero - self.zero_lost, self.wrong - self.wrong_lost
        of_sign = log_ratio(TWO_64 - zero_end - wrong_end, wrong_end)
        return max(of_sign, log_ratio(self.zero, zero_end)) if self.zero else of_sign

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a number from one word."""
        word, size = next(words), abs(x)
        to_zero = self.zero - round(size * float(self.zero_lost))
        if word < to_zero:
            return 1
        against = word < to_zero + self.wrong - round(size * float(self.wrong_lost))
        return 2 if against == (x < 0) else 0

    def value(self, answer: int) -> float:
        """Return minus, zero or plus ``2**64 / (zero_lost + 2 * wrong_lost)``."""
        return (answer - 1) * (TWO_64 / (self.zero_lost + 2 * self.wrong_lost))


@dataclass(frozen=True)
class LatticeLaw(UnitLaw):
    """Piecewise law on a lattice of cells of weight `base`, with `extra` weight in an interval around x.

    A word without its lowest bit is redrawn until it is below ``n_cells * base + n_inner * extra``. The answer is the
    number of a cell; cells are ``2**step_exponent`` wide, and the middle one is at 0.
    """

    name: ClassVar[str] = "lattice"
    n_cells: int
    n_inner: int
    base: int
    extra: int
    step_exponent: int

    def _check(self) -> None:
        odd = bool(self.n_cells % 2 and self.n_inner % 2) and 1 <= self.n_inner < self.n_cells <= 2**32
        if not odd or self.base < 1 or self.extra < 1 or not 2**60 < self.total <= _TWO_63:
            self._refuse("have odd numbers of cells whose weights add up to more than 2**60 and at most 2**63")
        if abs(self.step_exponent) > MOST_EXPONENT or self.reach > (self.n_cells - self.n_inner) // 2:
            self._refuse("keep its inner interval among its cells")

    @property
    def n_answers(self) -> int:
        """Number of cells."""
        return self.n_cells

    @property
    def epsilon(self) -> float:
        """Log-ratio of a cell inside the inner interval and a cell outside."""
        return log_ratio(self.base + self.extra, self.base)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a number from one word; a word is redrawn with a probability below 7/8."""
        drawn = next(words) >> 1
        while drawn >= self.total:
            drawn = next(words) >> 1
        near = drawn - self.n_cells * self.base
        if near < 0:
            return drawn // self.base
        position = x * self.reach + (self.n_cells - self.n_inner) // 2
        start = math.floor(position)
        part = min(self.extra, round((position - start) * float(self.extra)))
        return start + (near + part) // self.extra

    def value(self, answer: int) -> float:
        """Return the middle of a cell."""
        return math.ldexp(answer - self.n_cells // 2, self.step_exponent)

    @property
    def step(self) -> float:
        """Width of a cell."""
        return math.ldexp(1.0, self.step_exponent)

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return self.n_cells * self.base + self.n_inner * self.extra

    @property
    def reach(self) -> float:
        """Number of cells that the inner interval moves as x goes from 0 to 1, as a double."""
        return math.ldexp(self.total / (self.n_inner * self.extra), -self.step_exponent)


@dataclass(frozen=True)
class MixtureLaw(UnitLaw):
    """Mixture of a lattice law, for `lattice_count` of 2^64 words, and a law of few answers, numbered after its cells.

    The choice of the law is independent of x.
    """

    name: ClassVar[str] = "mixture"
    lattice_count: int
    lattice: LatticeLaw
    few: TwoAnswersLaw | ThreeAnswersLaw

    def _check(self) -> None:
        parts = isinstance(self.lattice, LatticeLaw) and isinstance(self.few, TwoAnswersLaw | ThreeAnswersLaw)
        if not parts or not 1 <= self.lattice_count < TWO_64:
            self._refuse("have a chance of a lattice, and of few answers")

    @property
    def n_answers(self) -> int:
        """Total number of answers of both laws."""
        return self.lattice.n_answers + self.few.n_answers

    @property
    def epsilon(self) -> float:
        """Larger epsilon of both laws, since the choice is independent of x."""
        return max(self.lattice.epsilon, self.few.epsilon)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a number from one word and those of the chosen law."""
        if next(words) < self.lattice_count:
            return self.lattice.draw(x, words)
        return self.lattice.n_answers + self.few.draw(x, words)

    def value(self, answer: int) -> float:
        """Return the estimate of the law that gave the answer."""
        n = self.lattice.n_answers
        return self.lattice.value(answer) if answer < n else self.few.value(answer - n)


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
        """Number of codes."""
        return self.response.n_codes

    @property
    def epsilon(self) -> float:
        """Epsilon of the response."""
        return self.response.epsilon


@dataclass(frozen=True)
class BinsLaw(_ResponseOnNumbers):
    """Law of randomized response to a bin's index; each answer has its own public number, with bias."""

    name: ClassVar[str] = "bins"
    edges: tuple[int, ...]
    answers: tuple[int, ...]

    def _check(self) -> None:
        listed = whole(self.edges, PLACES) and whole(self.answers, PLACES) and ascending(self.edges)
        if not isinstance(self.response, ResponseLaw) or not listed:
            self._refuse("answer for bins, whose edges ascend, within [-1, 1]")
        if not self.response.n_codes == len(self.answers) == len(self.edges) + 1 <= _MOST_BINS:
            self._refuse(f"have as many answers as bins, at most {_MOST_BINS}, and an edge between each two")

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a number from one word."""
        # A double times a power of two, and its comparison with an integer, are exact.
        return self.response.draw(sum(edge <= x * PLACES for edge in self.edges), words)

    def value(self, answer: int) -> float:
        """Return the number of a bin."""
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
        """Draw the answer to a number from two words."""
        place = round(x * PLACES)
        below = sum(knot <= place for knot in self.knots[1:-1])
        low, high = self.knots[below], self.knots[below + 1]
        upward = next(words) * (high - low) < (place - low) * TWO_64
        return self.response.draw(below + upward, words)

    def value(self, answer: int) -> float:
        """Return the unbiased estimate of a knot, a quotient of integers."""
        other = self.response.other_count
        return (self.knots[answer] * TWO_64 - other * self._sum) / (self._gain * PLACES)

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
        """Number of rows of bits."""
        return 1 << len(self.flip_counts)

    @property
    def epsilon(self) -> float:
        """Sum over all bits, since two numbers may differ in each of them."""
        return sum_above(*(log_ratio(TWO_64 - t, t) for t in self.flip_counts))

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a number from one word for its rounding and one per bit."""
        n_magnitude = len(self.flip_counts) - 1
        position, sign = (abs(x) * self._last, x >= 0) if n_magnitude else ((1 + x) / 2, False)
        magnitude = int(position)
        magnitude += next(words) < int((position - magnitude) * 2.0**64)
        code = (sign << n_magnitude) + magnitude
        for flip_count in self.flip_counts:
            n_magnitude, code = n_magnitude - 1, code ^ (next(words) < flip_count) << n_magnitude
        return code

    def value(self, answer: int) -> float:
        """Return the product of the unbiased sign and magnitude."""
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


def whole(numbers: Any, most: int) -> bool:
    """Return whether `numbers` is a tuple of integers of magnitude at most `most`."""
    return isinstance(numbers, tuple) and all(is_integer(number) and abs(number) <= most for number in numbers)


def ascending(numbers: tuple[int, ...]) -> bool:
    return all(before < after for before, after in pairwise(numbers))


_MOST_VALUES = 2**16
# Limit of one field's answer, since a document must not exhaust a device's memory.
_MOST_ANSWER_BITS = 2**16


@dataclass(frozen=True)
class SignsLaw(GroupLaw):
    """Law of Duchi's mechanism for vectors: a sign per number.

    Each number is rounded at random to a sign. For `agreeing_count` of 2^64 words, the answer is uniform over all rows
    of signs that agree with these in more than half of the positions, else over all other rows.
    """

    name: ClassVar[str] = "signs"
    agreeing_count: int

    def _check(self) -> None:
        if not 1 <= self.n_values <= _MOST_ANSWER_BITS or not 1 <= self.agreeing_count < TWO_64:
            self._refuse(f"have 1 to {_MOST_ANSWER_BITS} signs, and a chance of both kinds of answers")
        if self._of_agreeing <= self._of_others:
            self._refuse("give an answer that agrees more often than another one")

    @property
    def n_answers(self) -> int:
        """Number of rows of signs."""
        return 1 << self.n_values

    @property
    def epsilon(self) -> float:
        """Log-ratio of the probabilities of an agreeing row of signs and of another row."""
        return log_ratio(self._of_agreeing, self._of_others)

    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Draw the answer from one word per number, one more, and those of rows until one is of the chosen kind."""
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

    def values(self, answer: int) -> list[float]:
        """Return the estimates, plus or minus one magnitude; the first number's sign is the highest bit."""
        return [self._magnitude * (2 * (answer >> place & 1) - 1) for place in reversed(range(self.n_values))]

    @cached_property
    def _n_agreeing(self) -> int:
        d = self.n_values
        return (1 << d - 1) - (0 if d % 2 else math.comb(d, d // 2) // 2)

    # Both are probabilities of one row of signs, times a common factor.
    @property
    def _of_agreeing(self) -> int:
        return self.agreeing_count * ((1 << self.n_values) - self._n_agreeing)

    @property
    def _of_others(self) -> int:
        return (TWO_64 - self.agreeing_count) * self._n_agreeing

    @cached_property
    def _magnitude(self) -> float:
        agreeing, others = self._n_agreeing, (1 << self.n_values) - self._n_agreeing
        other_count = TWO_64 - self.agreeing_count
        share = Fraction(self.agreeing_count, TWO_64 * agreeing) - Fraction(other_count, TWO_64 * others)
        # The product of a position's sign and its number's sign sums to this binomial over all agreeing rows, and to
        # its negative over all others.
        return float(1 / (share * math.comb(self.n_values - 1, self.n_values // 2)))


@dataclass(frozen=True)
class SampledLaw(GroupLaw):
    """Law of a uniform sample of a record's numbers, randomized independently or by one law.

    The highest digit of the answer is the rank of the sample: the sum of binom(i-th chosen position from 0, i), for i
    from 1. It is followed by one answer per sampled number in order of position, or by one answer for all.
    """

    name: ClassVar[str] = "sampled"
    n_sampled: int
    of_sampled: UnitLaw | GroupLaw

    def _check(self) -> None:
        if not 1 <= self.n_sampled < self.n_values <= _MOST_VALUES:
            self._refuse(f"choose some of 2 to {_MOST_VALUES} numbers, and not all")
        one = self.of_sampled
        fits = isinstance(one, UnitLaw | GroupLaw) and not isinstance(one, SampledLaw)
        if not fits or (isinstance(one, GroupLaw) and one.n_values != self.n_sampled):
            self._refuse("have a law of one number, or of all that are chosen")
        if self.n_answers.bit_length() > _MOST_ANSWER_BITS:
            self._refuse(f"have answers of at most {_MOST_ANSWER_BITS} bits")

    @property
    def version(self) -> int:  # type: ignore[override]
        """Version of a policy that can have the law of the sampled numbers."""
        return self.of_sampled.version

    @cached_property
    def n_answers(self) -> int:
        """Number of samples times the number of answers for a sample."""
        return math.comb(self.n_values, self.n_sampled) * self._of_chosen

    @cached_property
    def epsilon(self) -> float:
        """Sum over the sampled numbers, since the choice of the sample is independent of the values."""
        return round_up(self._n_draws * Fraction(self.of_sampled.epsilon))

    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Draw the answer from the words of the sample and those of the answers in order of position."""
        chosen = uniform_subset(self.n_values, self.n_sampled, words)
        answer = rank_of_subset(self.n_values, chosen)
        if isinstance(self.of_sampled, GroupLaw):
            return answer * self._of_chosen + self.of_sampled.draw([places[place] for place in chosen], words)
        for place in chosen:
            answer = answer * self.of_sampled.n_answers + self.of_sampled.draw(places[place], words)
        return answer

    def values(self, answer: int) -> list[float]:
        """Return the estimates of sampled numbers times n_values / n_sampled, and 0 for the others."""
        choice, rest = divmod(answer, self._of_chosen)
        if isinstance(self.of_sampled, GroupLaw):
            numbers = self.of_sampled.values(rest)
        else:
            numbers = []
            for _ in range(self.n_sampled):
                rest, digit = divmod(rest, self.of_sampled.n_answers)
                numbers.append(self.of_sampled.value(digit))
            numbers.reverse()
        all_numbers = [0.0] * self.n_values
        for place, number in zip(subset_of_rank(self.n_values, self.n_sampled, choice), numbers, strict=True):
            all_numbers[place] = number * self.n_values / self.n_sampled
        return all_numbers

    @property
    def _n_draws(self) -> int:
        return 1 if isinstance(self.of_sampled, GroupLaw) else self.n_sampled

    @cached_property
    def _of_chosen(self) -> int:
        answers: int = self.of_sampled.n_answers**self._n_draws
        return answers


def sampled_law(n_values: int, n_sampled: int, law: IntegerLaw) -> IntegerLaw:
    """Return the law itself if every value is released, else a :class:`SampledLaw`."""
    assert isinstance(law, UnitLaw | GroupLaw)
    return SampledLaw(n_values, n_sampled, law) if n_sampled < n_values else law
