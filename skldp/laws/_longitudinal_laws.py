r"""Integer laws for several waves, with a permanent answer per person and a report of it in every wave.

Both steps are randomized response over g answers; a bit is the case g = 2. Every answer except the true one has
`first_count` of 2^64 words in the permanent step, and `second_count` in the step of a report.
"""

import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from skldp._checks import check_integer
from skldp.laws._categories import MOST_BITS, MOST_CODES, HashingLaw, ResponseLaw
from skldp.laws._integers import (
    CodeLaw,
    TwoStepLaw,
    UnitLaw,
    rank_of_subset,
    subset_of_rank,
    uniform_below,
    uniform_subset,
)
from skldp.laws._odds import TWO_64, log_ratio, round_up


def both_steps(first: tuple[int, int], second: tuple[int, int], n_answers: int) -> tuple[int, int]:
    """Return the probabilities of the true answer and of any other one after both steps, out of 2^128."""
    (p, q), (own, other), g = first, second, n_answers
    return p * own + (g - 1) * q * other, p * other + q * own + (g - 2) * q * other


class _ResponseTwice(TwoStepLaw):
    """Base class of laws with randomized response in both steps, over the same number of answers."""

    first_count: int
    second_count: int

    @property
    @abstractmethod
    def n_each(self) -> int:
        """Number g of answers of each step."""

    @property
    def n_differing(self) -> int:
        """Largest number of separately randomized answers in which two values differ."""
        return 1

    @property
    def n_randomized(self) -> int:
        """Number of answers that one report randomizes."""
        return 1

    @property
    def most_kept(self) -> int:
        """Largest number of different permanent answers of one person."""
        return self.n_each

    @property
    def lifetime_epsilon(self) -> float:
        """Epsilon of all reports of one value, which is that of its permanent answer."""
        return self._loss(*self._counts(self.first_count))

    def epsilon_of_values(self, n_values: int) -> float:
        """Return the epsilon of all reports of a person with `n_values` different values, in any number of waves.

        It compares people whose values repeat in the same waves. A value here is the category or its bucket, the side
        of a threshold, or the chosen bucket of the number. If values change in different waves, only
        :meth:`epsilon_of_reports` bounds the loss.
        """
        check_integer("n_values", n_values, least=1)
        return round_up(Fraction(self.lifetime_epsilon) * min(n_values, self.most_kept))

    def epsilon_of_reports(self, n_reports: int) -> float:
        """Return an upper bound on the epsilon of reports of distinct waves, for any changes between them.

        Every report spends only the epsilon of the second step. A wave must have one stored report, since two different
        reports of one wave would reveal a change.
        """
        check_integer("n_reports", n_reports, least=1)
        own, other = self._counts(self.second_count)
        return round_up(Fraction(log_ratio(own**self.n_randomized, other**self.n_randomized)) * n_reports)

    @property
    def epsilon(self) -> float:
        """Epsilon of one report through both steps."""
        return self._loss(*self._both)

    @cached_property
    def support(self) -> tuple[float, float]:
        """Probabilities of the value's true answer, and of any single other answer, in a report."""
        own, other = (Fraction(chance, TWO_64**2) for chance in self._both)
        return float(own), float(other)

    def _check(self) -> None:
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
    """Base class of laws of one code."""

    def keep(self, seen: int, choice: int, words: Iterator[int]) -> int:
        """Draw the permanent answer from one word."""
        return ResponseLaw(self.n_each, self.first_count).draw(seen, words)

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """Draw a report of the permanent answer from one word."""
        return ResponseLaw(self.n_each, self.second_count).draw(kept, words)


class _BitsTwice(_ResponseTwice):
    """Base class of laws of several bits, each flipped independently."""

    n_each = 2

    def keep(self, seen: int, choice: int, words: Iterator[int]) -> int:
        """Draw the permanent bits from one word per bit."""
        return self._flipped(seen, self.first_count, words)

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """Draw a report of the permanent bits from one word per bit, and prefix the choice."""
        return (choice << self.n_randomized) + self._flipped(kept, self.second_count, words)

    def _flipped(self, code: int, count: int, words: Iterator[int]) -> int:
        """Flip the bits of a code with one word per bit, highest bit first."""
        flips = 0
        for _ in range(self.n_randomized):
            flips = 2 * flips + (next(words) < count)
        return code ^ flips


@dataclass(frozen=True)
class LongitudinalResponseLaw(_CodeTwice, CodeLaw):
    """Law of randomized response to a code, and again to its permanent answer (L-GRR)."""

    name: ClassVar[str] = "longitudinal_response"
    first_count: int
    second_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_CODES:
            self._refuse(f"have 2 to {MOST_CODES} codes")
        super()._check()

    @property
    def n_each(self) -> int:
        """Number of codes."""
        return self.n_codes


@dataclass(frozen=True)
class LongitudinalBitsLaw(_BitsTwice, CodeLaw):
    """Law of a bit per code, the first code's highest, flipped permanently and in every report (basic RAPPOR)."""

    name: ClassVar[str] = "longitudinal_bits"
    first_count: int
    second_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_BITS:
            self._refuse(f"have 2 to {MOST_BITS} bits")
        super()._check()

    @property
    def n_answers(self) -> int:
        """Number of rows of bits."""
        return 1 << self.n_codes

    @property
    def n_differing(self) -> int:
        """Number of bits that differ between two codes, 2."""
        return 2

    @property
    def n_randomized(self) -> int:
        """Number of bits."""
        return self.n_codes

    @property
    def most_kept(self) -> int:
        """Number of codes, each with one permanent row of bits."""
        return self.n_codes

    def keep(self, seen: int, choice: int, words: Iterator[int]) -> int:
        """Draw the permanent bits from one word per bit."""
        return super().keep(1 << self.n_codes - 1 - seen, choice, words)


@dataclass(frozen=True)
class LongitudinalHashingLaw(_CodeTwice, CodeLaw):
    """Law of randomized response to a code's bucket, and again to its permanent answer (LOLOHA).

    Each person draws one hash function of :class:`~skldp.laws._categories.HashingLaw`, so the number of permanent
    answers is at most that of buckets.
    """

    name: ClassVar[str] = "longitudinal_hashing"
    n_buckets: int
    first_count: int
    second_count: int

    def _check(self) -> None:
        # Raises on an invalid number of codes or buckets.
        _ = self.hashing
        super()._check()

    @cached_property
    def hashing(self) -> HashingLaw:
        """Law of the hash functions with only the first step."""
        return HashingLaw(self.n_codes, self.n_buckets, self.first_count)

    @property
    def n_answers(self) -> int:
        """Number of pairs of a hash function and a bucket."""
        return self.hashing.n_answers

    @property
    def n_each(self) -> int:
        """Number of buckets."""
        return self.n_buckets

    def choose(self, words: Iterator[int]) -> int:
        """Draw the hash function."""
        return self.hashing.choose(words)

    def see(self, value: int, choice: int) -> int:
        """Return the bucket of a code."""
        return self.hashing.bucket(choice, value)

    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """Draw a report of the permanent answer from one word, and prefix the hash function."""
        return choice * self.n_buckets + super().report(kept, choice, words)


@dataclass(frozen=True)
class LongitudinalMeanLaw(_CodeTwice, UnitLaw):
    """Law of one bit: whether a number is above a threshold that the person draws once (dBitFlip's one-bit mean)."""

    name: ClassVar[str] = "longitudinal_mean"
    # 1 is the high end.
    n_answers = n_each = 2
    first_count: int
    second_count: int

    def choose(self, words: Iterator[int]) -> int:
        """Draw the threshold from one word."""
        return next(words)

    def see(self, value: float, choice: int) -> int:
        """Return whether a number is above the threshold."""
        return int(int((1 + value) / 2 * TWO_64) > choice)

    def value(self, answer: int) -> float:
        """Return the unbiased estimate of a bit, whose mean over thresholds and noise is the person's number."""
        own, other = self._both
        return (2 * answer - 1) * float(Fraction(TWO_64**2, own - other))


@dataclass(frozen=True)
class LongitudinalHistogramLaw(_BitsTwice, UnitLaw):
    """Law of one bit per bucket of a set that the person draws once: whether the number is in it (dBitFlip).

    The bounds are divided into `n_buckets` of equal width. The answer is the rank of the chosen set of buckets,
    followed by their bits, the lowest bucket's highest.
    """

    name: ClassVar[str] = "longitudinal_histogram"
    n_buckets: int
    n_chosen: int
    first_count: int
    second_count: int

    def _check(self) -> None:
        if not 2 <= self.n_buckets <= MOST_BITS or not 1 <= self.n_chosen <= self.n_buckets:
            self._refuse(f"choose some of 2 to {MOST_BITS} buckets")
        super()._check()

    @cached_property
    def n_answers(self) -> int:
        """Number of pairs of a choice and a row of bits."""
        return math.comb(self.n_buckets, self.n_chosen) << self.n_chosen

    @property
    def n_differing(self) -> int:
        """Number of bits that differ between two numbers, at most 2."""
        return min(self.n_chosen, 2)

    @property
    def n_randomized(self) -> int:
        """Number of chosen buckets."""
        return self.n_chosen

    @property
    def most_kept(self) -> int:
        """Number of permanent answers: one per chosen bucket, and one for all others together."""
        return self.n_chosen + (self.n_chosen < self.n_buckets)

    def choose(self, words: Iterator[int]) -> int:
        """Draw the rank of the chosen set of buckets."""
        return rank_of_subset(self.n_buckets, uniform_subset(self.n_buckets, self.n_chosen, words))

    def see(self, value: float, choice: int) -> int:
        """Return the bits of the chosen buckets: whether the number is in each."""
        own = self.bucket(value)
        return sum(1 << self.n_chosen - 1 - place for place, bucket in enumerate(self._chosen(choice)) if bucket == own)

    def bucket(self, value: float) -> int:
        """Return the bucket of a number in [-1, 1]."""
        return min(int((1 + value) / 2 * self.n_buckets), self.n_buckets - 1)

    def bits_of(self, answer: int) -> list[tuple[int, int]]:
        """Return the chosen buckets of an answer, each with its bit."""
        choice, bits = divmod(answer, 1 << self.n_chosen)
        return [(bucket, bits >> self.n_chosen - 1 - place & 1) for place, bucket in enumerate(self._chosen(choice))]

    def value(self, answer: int) -> float:
        """Return the sum of bucket middles times bit scores; the bias is at most half a bucket."""
        middles = ((2 * bucket + 1) / self.n_buckets - 1 for bucket, _ in self.bits_of(answer))
        scores = (self.score(bit) for _, bit in self.bits_of(answer))
        return sum(middle * score for middle, score in zip(middles, scores, strict=True))

    def score(self, bit: int) -> float:
        """Return the unbiased score of a bit, with mean 1 for the number's own bucket and 0 for any other."""
        own, other = self._both
        return float(Fraction((bit * TWO_64**2 - other) * self.n_buckets, (own - other) * self.n_chosen))

    def _chosen(self, choice: int) -> list[int]:
        return subset_of_rank(self.n_buckets, self.n_chosen, choice)


@dataclass(frozen=True)
class BloomLaw(_BitsTwice):
    """Law of the Bloom filter of a text in a cohort, whose bits are flipped permanently and in every report (RAPPOR).

    Every person draws a cohort once, which has `n_hashes` hash functions of its own. The answer is the cohort, followed
    by the bits, the first the highest.
    """

    name: ClassVar[str] = "longitudinal_bloom"
    version: ClassVar[int] = 5
    n_cohorts: int
    n_bits: int
    n_hashes: int
    first_count: int
    second_count: int

    def _check(self) -> None:
        n_hashes, k = self.n_hashes, self.n_bits
        if not (1 <= self.n_cohorts <= 2**16 and 2 <= k <= MOST_BITS and 1 <= n_hashes <= min(k, 64)):
            self._refuse(f"have 1 to 2^16 cohorts, 2 to {MOST_BITS} bits, and 1 to 64 hashes, no more than bits")
        super()._check()

    @property
    def n_answers(self) -> int:
        """Number of pairs of a cohort and a row of bits."""
        return self.n_cohorts << self.n_bits

    @property
    def n_differing(self) -> int:
        """Largest number of bits that differ between two filters."""
        return min(2 * self.n_hashes, self.n_bits)

    @property
    def n_randomized(self) -> int:
        """Number of bits."""
        return self.n_bits

    @property
    def most_kept(self) -> int:
        """Number of filters of a cohort, each with one permanent row of bits."""
        return sum(math.comb(self.n_bits, held) for held in range(1, self.n_hashes + 1))

    def choose(self, words: Iterator[int]) -> int:
        """Draw the cohort."""
        return uniform_below(self.n_cohorts, words)

    def see(self, value: str, choice: int) -> int:
        """Return the bits of a text in a cohort."""
        text, bits = value.encode(), 0
        for number in range(self.n_hashes):
            digest = hashlib.sha256(choice.to_bytes(4, "big") + number.to_bytes(4, "big") + text).digest()
            bits |= 1 << self.n_bits - 1 - int.from_bytes(digest[:8], "big") % self.n_bits
        return bits
