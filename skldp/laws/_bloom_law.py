"""Integer law of RAPPOR's Bloom filter of a text."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from skldp.laws._integers import MOST_BITS, IntegerLaw, uniform_below
from skldp.laws._odds import TWO_64, log_ratio


@dataclass(frozen=True)
class BloomLaw(IntegerLaw):
    """Law of the Bloom filter of a text in a cohort, with each bit flipped for `flip_count` of 2^64 words (RAPPOR).

    Every report draws one of `n_cohorts` cohorts, each with `n_hashes` hash functions of its own. The answer is the
    cohort, followed by the bits, the first the highest.
    """

    name: ClassVar[str] = "bloom"
    version: ClassVar[int] = 5
    n_cohorts: int
    n_bits: int
    n_hashes: int
    flip_count: int

    def _check(self) -> None:
        n_hashes, k = self.n_hashes, self.n_bits
        if not (1 <= self.n_cohorts <= 2**16 and 2 <= k <= MOST_BITS and 1 <= n_hashes <= min(k, 64)):
            self._refuse(f"have 1 to 2^16 cohorts, 2 to {MOST_BITS} bits, and 1 to 64 hashes, no more than bits")
        if not 1 <= self.flip_count < TWO_64 // 2:
            self._refuse("flip a bit sometimes, and less often than not")

    @property
    def n_answers(self) -> int:
        """Number of pairs of a cohort and a row of bits."""
        return self.n_cohorts << self.n_bits

    @property
    def epsilon(self) -> float:
        """Log-ratio of the bits in which two filters differ, at most ``2 * n_hashes``."""
        n_differing = min(2 * self.n_hashes, self.n_bits)
        return log_ratio((TWO_64 - self.flip_count) ** n_differing, self.flip_count**n_differing)

    def draw(self, text: str, words: Iterator[int]) -> int:
        """Draw the cohort, then flip the bits of the text's filter with one word per bit, highest bit first."""
        cohort, flips = uniform_below(self.n_cohorts, words), 0
        for _ in range(self.n_bits):
            flips = 2 * flips + (next(words) < self.flip_count)
        return (cohort << self.n_bits) + (self.filter_of(text, cohort) ^ flips)

    def filter_of(self, text: str, cohort: int) -> int:
        """Return the bits of a text in a cohort."""
        data, bits = text.encode(), 0
        for number in range(self.n_hashes):
            digest = hashlib.sha256(cohort.to_bytes(4, "big") + number.to_bytes(4, "big") + data).digest()
            bits |= 1 << self.n_bits - 1 - int.from_bytes(digest[:8], "big") % self.n_bits
        return bits
