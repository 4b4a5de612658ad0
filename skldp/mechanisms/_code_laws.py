"""Laws of a category whose report is a category or a row of bits, given by their integers alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from skldp.mechanisms._integer_laws import CodeLaw
from skldp.mechanisms._odds import TWO_64, log_ratio

__all__ = ["MOST_BITS", "MOST_CODES", "ResponseLaw", "UnaryLaw"]

#: What a device has room for: answers of a list, and bits of one report's field.
MOST_CODES = 2**20
MOST_BITS = 4096


@dataclass(frozen=True)
class ResponseLaw(CodeLaw):
    """Randomized response: each other code has `other_count` of 2^64 words, the true one all the rest.

    Examples
    --------
    >>> from skldp.mechanisms._code_laws import ResponseLaw
    >>> from skldp.mechanisms._integer_laws import words_of
    >>> law = ResponseLaw(n_codes=3, other_count=2**62)
    >>> round(law.epsilon, 4), [law.draw(1, words_of(bytes([first] + 7 * [0]))) for first in (0, 64, 128)]
    (0.6931, [2, 0, 1])
    """

    name: ClassVar[str] = "randomized_response"
    other_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_CODES or not 1 <= self.other_count * self.n_codes <= TWO_64:
            self._refuse(f"keep the true one of 2 to {MOST_CODES} codes at least as often as it gives another")

    @property
    def n_answers(self) -> int:
        """As many as there are codes."""
        return self.n_codes

    @property
    def epsilon(self) -> float:
        """Of the true code and another one."""
        return log_ratio(TWO_64 - self.other_count * (self.n_codes - 1), self.other_count)

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Answer for a code, from one word."""
        shift = next(words) // self.other_count + 1
        return (code + shift) % self.n_codes if shift < self.n_codes else code


@dataclass(frozen=True)
class UnaryLaw(CodeLaw):
    """A bit for each code, the first one the highest: 1 for `own_count` of 2^64 words if true, else `other_count`."""

    name: ClassVar[str] = "unary_encoding"
    own_count: int
    other_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= MOST_BITS or not 1 <= self.other_count < self.own_count < TWO_64:
            self._refuse(f"give 2 to {MOST_BITS} bits, of which the true one is 1 more often than another")

    @property
    def n_answers(self) -> int:
        """One for every row of bits."""
        return 1 << self.n_codes

    @property
    def epsilon(self) -> float:
        """Of the two bits in which two codes differ."""
        own, other = self.own_count, self.other_count
        return log_ratio(own * (TWO_64 - other), (TWO_64 - own) * other)

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Answer for a code, from a word for each bit."""
        answer = 0
        for place in range(self.n_codes):
            answer = 2 * answer + (next(words) < (self.own_count if place == code else self.other_count))
        return answer
