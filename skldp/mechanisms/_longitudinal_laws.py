r"""Laws of people who are asked again and again, given by their integers: a permanent answer, and a report of it.

Every step answers among g possible answers, as randomized response does, of which a bit is the case of two: any other
answer than the true one has the chance `first_count` of 2^64 in the permanent step, `second_count` in that of a report.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from skldp.mechanisms._category_laws import HashingLaw
from skldp.mechanisms._code_laws import MOST_BITS, MOST_CODES, ResponseLaw
from skldp.mechanisms._integer_laws import CodeLaw, TwoStepLaw, UnitLaw
from skldp.mechanisms._odds import TWO_64, log_ratio
from skldp.mechanisms._subsets import rank_of_subset, subset_of_rank, uniform_subset

__all__ = [
    "LongitudinalBitsLaw",
    "LongitudinalHashingLaw",
    "LongitudinalHistogramLaw",
    "LongitudinalMeanLaw",
    "LongitudinalResponseLaw",
    "both_steps",
]


def both_steps(first: tuple[int, int], second: tuple[int, int], n_answers: int) -> tuple[int, int]:
    """Of 2^128, how likely two laws after each other give the own answer, and any single other one.

    Examples
    --------
    >>> from skldp.mechanisms._longitudinal_laws import both_steps
    >>> own, other = both_steps((2**63 + 2**62, 2**62), (2**63 + 2**62, 2**62), 2)
    >>> own / 2**128, other / 2**128
    (0.625, 0.375)
    """
    (p, q), (own, other), g = first, second, n_answers
    return p * own + (g - 1) * q * other, p * other + q * own + (g - 2) * q * other


class _ResponseTwice(TwoStepLaw):
    """Base: both steps are randomized response, among as many answers."""

    first_count: int
    second_count: int

    @property
    @abstractmethod
    def n_each(self) -> int:
        """g, among how many answers each step chooses."""

    @property
    def n_differing(self) -> int:
        """In how many answers two values differ at most, each of which is randomized on its own."""
        return 1

    @property
    def lifetime_epsilon(self) -> float:
        """Of the permanent answers to two values."""
        return self._loss(*self._counts(self.first_count))

    @property
    def epsilon(self) -> float:
        """Of one report, by both steps together."""
        return self._loss(*self._both)

    @cached_property
    def support(self) -> tuple[float, float]:
        """How likely a report gives the answer that is the value's own, and any single other one."""
        own, other = (Fraction(chance, TWO_64**2) for chance in self._both)
        return float(own), float(other)

    def _check_counts(self) -> None:
        if not all(count >= 1 and count * self.n_each < TWO_64 for count in (self.first_count, self.second_count)):
            self._refuse("give the true answer more often than another one, and each sometimes, in both steps")

    def _counts(self, other: int) -> tuple[int, int]:
        return TWO_64 - (self.n_each - 1) * other, other

    @property
    def _both(self) -> tuple[int, int]:
        return both_steps(self._counts(self.first_count), self._counts(self.second_count), self.n_each)

    def _loss(self, own: int, other: int) -> float:
        return log_ratio(own**self.n_differing, other**self.n_differing)


class _CodeTwice(_ResponseTwice):
    """Base: of one code of g, which is drawn as by randomized response."""

    def keep(self, seen: int, choice: int, words: Iterator[int]) -> int:
        """The permanent answer, from one word."""
        return ResponseLaw(self.n_each, self.first_count).draw(seen, words)

    def _again(self, kept: int, words: Iterator[int]) -> int:
        return ResponseLaw(self.n_each, self.second_count).draw(kept, words)


class _BitsTwice(_ResponseTwice):
    """Base: of bits, each of which either step flips on its own."""

    @property
    def n_each(self) -> int:
        """Two."""
        return 2

    def _flipped(self, code: int, n_bits: int, count: int, words: Iterator[int]) -> int:
        """A code whose bits were flipped, from a word for each, the highest first."""
        flips = 0
        for _ in range(n_bits):
            flips = 2 * flips + (next(words) < count)
        return code ^ flips


@dataclass(frozen=True)
class LongitudinalResponseLaw(_CodeTwice, CodeLaw):
    """Randomized response to a code, and to its permanent answer: L-GRR."""

    name: ClassVar[str] = "longitudinal_response"
    first_count: int
    second_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_CODES:
            self._refuse(f"have 2 to {MOST_CODES} codes")
        self._check_counts()

    @property
    def n_answers(self) -> int:
        """As many as there are codes."""
        return self.n_codes

    @property
    def n_each(self) -> int:
        """As many as there are codes."""
        return self.n_codes

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """A report of the permanent answer, from one word."""
        return self._again(kept, words)


@dataclass(frozen=True)
class LongitudinalBitsLaw(_BitsTwice, CodeLaw):
    """A bit for each code, the first one the highest, flipped for ever and again for every report: basic RAPPOR."""

    name: ClassVar[str] = "longitudinal_bits"
    first_count: int
    second_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_BITS:
            self._refuse(f"have 2 to {MOST_BITS} bits")
        self._check_counts()

    @property
    def n_answers(self) -> int:
        """One for every row of bits."""
        return 1 << self.n_codes

    @property
    def n_differing(self) -> int:
        """The bits of two codes."""
        return 2

    def keep(self, seen: int, choice: int, words: Iterator[int]) -> int:
        """The permanent bits, from a word for each."""
        return self._flipped(1 << self.n_codes - 1 - seen, self.n_codes, self.first_count, words)

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """A report of the permanent bits, from a word for each."""
        return self._flipped(kept, self.n_codes, self.second_count, words)


@dataclass(frozen=True)
class LongitudinalHashingLaw(_CodeTwice, CodeLaw):
    """Randomized response to a code's bucket, and to its permanent answer: LOLOHA.

    The hash function is one of those of :class:`~skldp.mechanisms._category_laws.HashingLaw`, drawn once by a person:
    they have no more permanent answers than there are buckets.
    """

    name: ClassVar[str] = "longitudinal_hashing"
    n_buckets: int
    first_count: int
    second_count: int

    def _check(self) -> None:
        # Refuses what are no codes and no buckets.
        _ = self.hashing
        self._check_counts()

    @cached_property
    def hashing(self) -> HashingLaw:
        """The hash functions, with the first step alone."""
        return HashingLaw(self.n_codes, self.n_buckets, self.first_count)

    @property
    def n_answers(self) -> int:
        """A bucket for each hash function."""
        return self.hashing.n_answers

    @property
    def n_each(self) -> int:
        """As many as there are buckets."""
        return self.n_buckets

    def choose(self, words: Iterator[int]) -> int:
        """The hash function, from what such a choice takes."""
        return self.hashing.choose(words)

    def see(self, value: int, choice: int) -> int:
        """The bucket of a code."""
        return self.hashing.bucket(choice, value)

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """Which hash function, and a report of the permanent answer, from one word."""
        return choice * self.n_buckets + self._again(kept, words)


@dataclass(frozen=True)
class LongitudinalMeanLaw(_CodeTwice, UnitLaw):
    """Of which end a number counts as, by a threshold that a person draws once: dBitFlip's one-bit mean."""

    name: ClassVar[str] = "longitudinal_mean"
    first_count: int
    second_count: int

    def _check(self) -> None:
        self._check_counts()

    @property
    def n_answers(self) -> int:
        """Two: 1 is the high end."""
        return 2

    @property
    def n_each(self) -> int:
        """Two."""
        return 2

    def choose(self, words: Iterator[int]) -> int:
        """The threshold, from one word."""
        return next(words)

    def see(self, value: float, choice: int) -> int:
        """Whether a number is above the threshold."""
        return int(int((1 + value) / 2 * TWO_64) > choice)

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """A report of the permanent answer, from one word."""
        return self._again(kept, words)

    def value(self, answer: int) -> float:
        """Plus or minus the number that makes the mean over thresholds and noise that of the number."""
        own, other = self._both
        return (2 * answer - 1) * float(Fraction(TWO_64**2, own - other))


@dataclass(frozen=True)
class LongitudinalHistogramLaw(_BitsTwice, UnitLaw):
    """Of some buckets, which a person draws once, whether the number is in each: dBitFlip.

    The bounds are divided into `n_buckets` of one width; the answer is the number of the set of the chosen ones among
    all such sets, and then a bit for each of them in their order, the lowest bucket's the highest.
    """

    name: ClassVar[str] = "longitudinal_histogram"
    n_buckets: int
    n_chosen: int
    first_count: int
    second_count: int

    def _check(self) -> None:
        if not 2 <= self.n_buckets <= MOST_BITS or not 1 <= self.n_chosen <= self.n_buckets:
            self._refuse(f"choose some of 2 to {MOST_BITS} buckets")
        self._check_counts()

    @cached_property
    def n_answers(self) -> int:
        """A row of bits for every choice."""
        return math.comb(self.n_buckets, self.n_chosen) << self.n_chosen

    @property
    def n_differing(self) -> int:
        """The bits of two chosen buckets; of one alone, it."""
        return min(self.n_chosen, 2)

    def choose(self, words: Iterator[int]) -> int:
        """The number of the chosen set, from the words of a choice of so many buckets."""
        return rank_of_subset(self.n_buckets, uniform_subset(self.n_buckets, self.n_chosen, words))

    def see(self, value: float, choice: int) -> int:
        """A bit for each chosen bucket: whether the number is in it."""
        own = self.bucket(value)
        return sum(1 << self.n_chosen - 1 - place for place, bucket in enumerate(self._chosen(choice)) if bucket == own)

    def keep(self, seen: int, choice: int, words: Iterator[int]) -> int:
        """The permanent bits, from a word for each."""
        return self._flipped(seen, self.n_chosen, self.first_count, words)

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """Which buckets, and a report of the permanent bits, from a word for each."""
        return (choice << self.n_chosen) + self._flipped(kept, self.n_chosen, self.second_count, words)

    def bucket(self, value: float) -> int:
        """The bucket of a number in [-1, 1]."""
        return min(int((1 + value) / 2 * self.n_buckets), self.n_buckets - 1)

    def told(self, answer: int) -> list[tuple[int, int]]:
        """The chosen buckets of an answer, each with its bit."""
        choice, bits = divmod(answer, 1 << self.n_chosen)
        return [(bucket, bits >> self.n_chosen - 1 - place & 1) for place, bucket in enumerate(self._chosen(choice))]

    def value(self, answer: int) -> float:
        """The sum of the middles of buckets, each times the score of its bit: with bias, of half a bucket at most."""
        middles = ((2 * bucket + 1) / self.n_buckets - 1 for bucket, _ in self.told(answer))
        scores = (self.score(bit) for _, bit in self.told(answer))
        return sum(middle * score for middle, score in zip(middles, scores, strict=True))

    def score(self, bit: int) -> float:
        """What a bit counts for its bucket, whose mean over choices and noise is whether the number is in it."""
        own, other = self._both
        return float(Fraction((bit * TWO_64**2 - other) * self.n_buckets, (own - other) * self.n_chosen))

    def _chosen(self, choice: int) -> list[int]:
        return subset_of_rank(self.n_buckets, self.n_chosen, choice)
