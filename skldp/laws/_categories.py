"""Integer laws of a category: randomized response, unary encoding, subsets, local hashing and Hadamard response."""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from skldp.laws._integers import CodeLaw, is_prime, number_of_digits, uniform_below, uniform_subset
from skldp.laws._odds import TWO_64

#: Limits of a law from a document: number of codes, and of bits in one field of a report.
MOST_CODES = 2**20
MOST_BITS = 4096


@dataclass(frozen=True)
class ResponseLaw(CodeLaw):
    """Law of randomized response: each other code has `other_count` of 2^64 words, the true code the rest."""

    name: ClassVar[str] = "randomized_response"
    other_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_CODES or not 1 <= self.other_count * self.n_codes <= TWO_64:
            self._refuse(f"keep the true one of 2 to {MOST_CODES} codes at least as often as it gives another")

    @property
    def ratio(self) -> tuple[int, int]:
        """Words of the true code and of any other code."""
        return TWO_64 - self.other_count * (self.n_codes - 1), self.other_count

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code from one word."""
        shift = next(words) // self.other_count + 1
        return (code + shift) % self.n_codes if shift < self.n_codes else code


@dataclass(frozen=True)
class UnaryLaw(CodeLaw):
    """Law of unary encoding: a bit per code, the first code's highest, with separate odds for the true code.

    The true code's bit is 1 for `own_count` of 2^64 words, the others for `other_count`.
    """

    name: ClassVar[str] = "unary_encoding"
    own_count: int
    other_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_BITS or not 1 <= self.other_count < self.own_count < TWO_64:
            self._refuse(f"give 2 to {MOST_BITS} bits, of which the true one is 1 more often than another")

    @property
    def n_answers(self) -> int:
        """Number of rows of bits."""
        return 1 << self.n_codes

    @property
    def ratio(self) -> tuple[int, int]:
        """Ratio of the two bits that differ between two codes."""
        own, other = self.own_count, self.other_count
        return own * (TWO_64 - other), (TWO_64 - own) * other

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code from one word per bit."""
        answer = 0
        for place in range(self.n_codes):
            answer = 2 * answer + (next(words) < (self.own_count if place == code else self.other_count))
        return answer


# The largest prime whose square is below 2^24, as in the mechanism.
_MOST_BUCKETS = 4093


@dataclass(frozen=True)
class SubsetLaw(CodeLaw):
    """Law of subset selection: a set of `set_size` codes as bits, the first code's highest.

    For `miss_count` of 2^64 words, the set is uniform among those without the true code, else among those with it.
    """

    name: ClassVar[str] = "subset"
    set_size: int
    miss_count: int

    def _check(self) -> None:
        sizes = 2 <= self.n_codes <= MOST_BITS and 1 <= self.set_size < self.n_codes
        if not sizes or not 1 <= self.miss_count < TWO_64 or operator.lt(*self.ratio):
            self._refuse(f"have sets of some of 2 to {MOST_BITS} codes and favour those with the true one")

    @property
    def n_answers(self) -> int:
        """Number of rows of bits, not all of which are answers."""
        return 1 << self.n_codes

    @property
    def ratio(self) -> tuple[int, int]:
        """Ratio of a set with the true code and a set without it."""
        # There are (k - w) / w times as many sets without the true code as with it.
        held, missed = TWO_64 - self.miss_count, self.miss_count
        return held * (self.n_codes - self.set_size), missed * self.set_size

    def is_answer(self, answer: int) -> bool:
        """Return whether the bits have as many ones as a set has members."""
        return super().is_answer(answer) and answer.bit_count() == self.set_size

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code from one word and those of a choice of other codes."""
        held = next(words) >= self.miss_count
        others = uniform_subset(self.n_codes - 1, self.set_size - held, words)
        # Other codes are numbered without the true one.
        members = [code] * held + [other + (other >= code) for other in others]
        return sum(1 << (self.n_codes - 1 - member) for member in members)


@dataclass(frozen=True)
class HashingLaw(CodeLaw):
    """Law of local hashing: a uniform linear hash function, and randomized response to the code's bucket.

    `n_buckets` is a prime g. Codes have m digits in base g, the least possible number. Hash function a, from 1 to
    g^m - 1, maps a code to the sum of the products of their digits, modulo g. The answer is
    ``(a - 1) * n_buckets + bucket``.
    """

    name: ClassVar[str] = "local_hashing"
    n_buckets: int
    other_count: int

    def _check(self) -> None:
        codes = 2 <= self.n_codes <= MOST_CODES and 2 <= self.n_buckets <= _MOST_BUCKETS
        if not codes or not is_prime(self.n_buckets):
            self._refuse(f"hash 2 to {MOST_CODES} codes to a prime number of buckets, at most {_MOST_BUCKETS}")
        # Raises on an invalid response.
        _ = self._response

    @property
    def n_answers(self) -> int:
        """Number of pairs of a hash function and a bucket."""
        return self.n_hashes * self.n_buckets

    @cached_property
    def n_hashes(self) -> int:
        """Number of hash functions."""
        digits: int = self.n_buckets**self._n_digits
        return digits - 1

    @property
    def ratio(self) -> tuple[int, int]:
        """Ratio of the randomized response over buckets; the hash function is independent of the code."""
        return self._response.ratio

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code from the words of the hash function and one more word."""
        chosen = self.choose(words)
        return chosen * self.n_buckets + self._response.draw(self.bucket(chosen, code), words)

    def choose(self, words: Iterator[int]) -> int:
        """Draw the hash function, numbered from 0."""
        return uniform_below(self.n_hashes, words)

    def bucket(self, chosen: int, code: int) -> int:
        """Return the bucket of a code."""
        base, total, hash_function = self.n_buckets, 0, chosen + 1
        while code:
            total += hash_function % base * (code % base)
            hash_function, code = hash_function // base, code // base
        return total % base

    @cached_property
    def _response(self) -> ResponseLaw:
        return ResponseLaw(self.n_buckets, self.other_count)

    @cached_property
    def _n_digits(self) -> int:
        return number_of_digits(self.n_codes, self.n_buckets)


@dataclass(frozen=True)
class HadamardLaw(CodeLaw):
    """Law of Hadamard response: a report of one of the blocks, half of which belong to each code.

    There are `n_blocks` blocks of b = `block_size` reports, both powers of two. Code x has block ``x // (b - 1)`` and
    row ``1 + x % (b - 1)`` of Sylvester's matrix. Its own reports are those of its block at which the row is 1. For
    `miss_count` of 2^64 words, the answer is uniform over all other reports, else over its own reports.
    """

    name: ClassVar[str] = "hadamard"
    n_blocks: int
    block_size: int
    miss_count: int

    def _check(self) -> None:
        numbers = (self.n_blocks, self.block_size)
        powers = all(1 <= number <= MOST_CODES * 4 and not number & (number - 1) for number in numbers)
        sizes = 2 <= self.n_codes <= MOST_CODES and self.block_size >= 2
        if not powers or not sizes or self.n_codes > self.n_blocks * (self.block_size - 1):
            self._refuse(f"have a row of a block for each of 2 to {MOST_CODES} codes")
        if not 1 <= self.miss_count < TWO_64 or operator.lt(*self.ratio):
            self._refuse("favour the code's own reports and allow all others")

    @property
    def n_answers(self) -> int:
        """Number of reports in all blocks."""
        return self.n_blocks * self.block_size

    @property
    def ratio(self) -> tuple[int, int]:
        """Ratio of one of the code's own reports, half of those of its block, and any other report."""
        own = self.block_size // 2
        return (TWO_64 - self.miss_count) * (self.n_answers - own), self.miss_count * own

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code from one word and those of a choice of one report."""
        size, own = self.block_size, self.block_size // 2
        start, row = code // (size - 1) * size, code % (size - 1) + 1
        if next(words) >= self.miss_count:
            return start + _column(uniform_below(own, words), row, odd=0)
        # Other reports are numbered cyclically, starting with those of the code's own block.
        other = uniform_below(self.n_answers - own, words)
        if other < own:
            return start + _column(other, row, odd=1)
        return (start + size + other - own) % self.n_answers


def _column(number: int, row: int, *, odd: int) -> int:
    """Return the column of a number among those that share an even or odd number of ones with a row."""
    # A bit inserted at the row's lowest 1 sets the parity.
    lowest = row & -row
    below = number & (lowest - 1)
    column = ((number - below) << 1) + below
    return column + lowest * ((column & row).bit_count() % 2 != odd)
