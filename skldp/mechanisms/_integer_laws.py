r"""Laws given by their integers alone, for one value at a time: what a person's own device samples with.

A mechanism for tables chooses integers from an epsilon, and samples many rows. A law here is handed the integers,
perhaps by a stranger: it computes the epsilon that they give, over all inputs and with nothing assumed of how they
were chosen, and refuses those of which it cannot. A draw reads 64-bit words in their order, so that the same words give
the same answer in every language; nothing is needed but integers, and for numbers IEEE double precision.
"""

import math
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from skldp._checks import is_whole
from skldp.mechanisms._odds import TWO_64, log_ratio

__all__ = [
    "CodeLaw",
    "GroupLaw",
    "IntegerLaw",
    "LatticeLaw",
    "MixtureLaw",
    "ResponseLaw",
    "ThreeAnswersLaw",
    "TwoAnswersLaw",
    "UnaryLaw",
    "UnitLaw",
    "secure_words",
    "uniform_below",
    "uniform_subset",
    "words_of",
]

_TWO_63 = 2**63
# What a device has room for: answers of a list, and bits of one report's field.
_MOST_CODES = 2**20
_MOST_BITS = 4096
_MOST_EXPONENT = 64


def secure_words() -> Iterator[int]:
    """64-bit words from the operating system's secure source; made anew for every release."""
    while True:
        yield from struct.unpack(">16Q", os.urandom(128))


def words_of(data: bytes) -> Iterator[int]:
    """The big-endian 64-bit words of chosen bytes, for test vectors.

    Raises
    ------
    ValueError
        When more of them are asked for than there are.
    """
    for start in range(0, len(data) - 7, 8):
        yield int.from_bytes(data[start : start + 8], "big")
    raise ValueError(f"A draw must find a word of 8 bytes. Got {len(data)} bytes in all, which are too few.")


def uniform_below(n: int, words: Iterator[int]) -> int:
    """A whole number below n <= 2^64, each as likely: words are drawn anew while they would favour some.

    Examples
    --------
    >>> from skldp.mechanisms._integer_laws import uniform_below
    >>> uniform_below(10, iter([2**64 - 1, 123]))
    3
    """
    most = TWO_64 - TWO_64 % n
    word = next(words)
    while word >= most:
        word = next(words)
    return word % n


def uniform_subset(n: int, size: int, words: Iterator[int]) -> list[int]:
    """A set of so many numbers below n, in ascending order; each set is as likely (Floyd's algorithm).

    Examples
    --------
    >>> from skldp.mechanisms._integer_laws import uniform_subset
    >>> uniform_subset(5, 3, iter([1, 1, 0]))
    [0, 1, 3]
    """
    chosen: set[int] = set()
    for last in range(n - size, n):
        number = uniform_below(last + 1, words)
        chosen.add(last if number in chosen else number)
    return sorted(chosen)


@dataclass(frozen=True)
class IntegerLaw(ABC):
    """A law of one answer, a whole number below `n_answers`. A subclass is a frozen dataclass of integers.

    Raises
    ------
    ValueError
        If the integers are none of such a law: each answer must have a chance under each input.
    """

    name: ClassVar[str]

    def __post_init__(self) -> None:
        given = [getattr(self, one.name) for one in fields(self) if one.type is int]
        if not all(map(is_whole, given)) or not all(-_MOST_EXPONENT <= number <= TWO_64 for number in given):
            self._refuse("have integers of at most 64 bits")
        self._check()

    @property
    @abstractmethod
    def n_answers(self) -> int:
        """Answers are from 0 to below this; there may be fewer, see :meth:`is_answer`."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The largest log-likelihood ratio over all answers and pairs of inputs, rounded up."""

    @abstractmethod
    def _check(self) -> None:
        """Refuse integers for which `epsilon` or a draw would not be what it says."""

    def is_answer(self, answer: int) -> bool:
        """Whether a number, perhaps a stranger's, is an answer of the law."""
        return 0 <= answer < self.n_answers

    def to_dict(self) -> dict[str, Any]:
        """Describe the law; integers are decimal texts, which every reader of JSON keeps."""
        return {"law": self.name} | {one.name: _text(getattr(self, one.name)) for one in fields(self)}

    def _refuse(self, rule: str) -> None:
        raise ValueError(f"A law {self.name!r} must {rule}. Got {self!r} instead.")


@dataclass(frozen=True)
class CodeLaw(IntegerLaw):
    """Base of the laws of a code from 0 to ``n_codes - 1``."""

    n_codes: int

    @abstractmethod
    def draw(self, code: int, words: Iterator[int]) -> int:
        """Answer for a code."""


@dataclass(frozen=True)
class UnitLaw(IntegerLaw):
    """Base of the laws of a number in [-1, 1]."""

    @abstractmethod
    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a double in [-1, 1]."""

    @abstractmethod
    def value(self, answer: int) -> float:
        """The number that an answer stands for, whose mean is that of x but for rounding."""


@dataclass(frozen=True)
class GroupLaw(IntegerLaw):
    """Base of the laws of `n_values` numbers in [-1, 1]."""

    n_values: int

    @abstractmethod
    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Answer for as many doubles in [-1, 1]."""

    @abstractmethod
    def values(self, answer: int) -> list[float]:
        """The numbers that an answer stands for, each of which has the mean of its place but for rounding."""


@dataclass(frozen=True)
class ResponseLaw(CodeLaw):
    """Randomized response: each other code has `other_count` of 2^64 words, the true one all the rest.

    Examples
    --------
    >>> from skldp.mechanisms._integer_laws import ResponseLaw, words_of
    >>> law = ResponseLaw(n_codes=3, other_count=2**62)
    >>> round(law.epsilon, 4), [law.draw(1, words_of(bytes([first] + 7 * [0]))) for first in (0, 64, 128)]
    (0.6931, [2, 0, 1])
    """

    name: ClassVar[str] = "randomized_response"
    other_count: int

    def _check(self) -> None:
        if not 2 <= self.n_codes <= _MOST_CODES or not 1 <= self.other_count * self.n_codes <= TWO_64:
            self._refuse(f"keep the true one of 2 to {_MOST_CODES} codes at least as often as it gives another")

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
        if not 2 <= self.n_codes <= _MOST_BITS or not 1 <= self.other_count < self.own_count < TWO_64:
            self._refuse(f"give 2 to {_MOST_BITS} bits, of which the true one is 1 more often than another")

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


@dataclass(frozen=True)
class TwoAnswersLaw(UnitLaw):
    """Duchi's: the answer is 1 for ``2**63 + x * slope`` of 2^64 words, rounded half to even, else 0."""

    name: ClassVar[str] = "two_answers"
    slope: int

    def _check(self) -> None:
        if not 1 <= self.slope < _TWO_63 or int(float(self.slope)) != self.slope:
            self._refuse("have a slope below 2**63 that is a double")

    @property
    def n_answers(self) -> int:
        """Two."""
        return 2

    @property
    def epsilon(self) -> float:
        """Of the two ends."""
        return log_ratio(_TWO_63 + self.slope, _TWO_63 - self.slope)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word."""
        return int(next(words) < _TWO_63 + round(x * float(self.slope)))

    def value(self, answer: int) -> float:
        """Plus or minus ``2**63 / slope``."""
        return (2 * answer - 1) * (2.0**63 / self.slope)


@dataclass(frozen=True)
class ThreeAnswersLaw(UnitLaw):
    """Three-Outputs: minus, zero or plus.

    The answer is 1, zero, for ``zero - |x| * zero_lost`` of 2^64 words, and has the wrong sign for the next
    ``wrong - |x| * wrong_lost``, products rounded half to even; 0 is minus and 2 plus.
    """

    name: ClassVar[str] = "three_answers"
    zero: int
    zero_lost: int
    wrong: int
    wrong_lost: int

    def _check(self) -> None:
        lost = (self.zero_lost, self.wrong_lost)
        kept = self.zero_lost >= 0 and (self.zero_lost < self.zero or self.zero == 0 == self.zero_lost)
        if not kept or not 0 <= self.wrong_lost < self.wrong or self.zero + 2 * self.wrong != TWO_64 or not any(lost):
            self._refuse("share out 2**64 words evenly at 0, and leave some for each answer at 1")
        if any(int(float(number)) != number for number in lost):
            self._refuse("lose as many words as a double holds")

    @property
    def n_answers(self) -> int:
        """Three."""
        return 3

    @property
    def epsilon(self) -> float:
        """The larger of: of zero, and of one sign. All chances are monotone in abs(x), so that the ends decide."""
        zero_end, wrong_end = self.zero - self.zero_lost, self.wrong - self.wrong_lost
        of_sign = log_ratio(TWO_64 - zero_end - wrong_end, wrong_end)
        return max(of_sign, log_ratio(self.zero, zero_end)) if self.zero else of_sign

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word."""
        word, size = next(words), abs(x)
        to_zero = self.zero - round(size * float(self.zero_lost))
        if word < to_zero:
            return 1
        against = word < to_zero + self.wrong - round(size * float(self.wrong_lost))
        return 2 if against == (x < 0) else 0

    def value(self, answer: int) -> float:
        """Minus, zero or plus ``2**64 / (zero_lost + 2 * wrong_lost)``."""
        return (answer - 1) * (TWO_64 / (self.zero_lost + 2 * self.wrong_lost))


@dataclass(frozen=True)
class LatticeLaw(UnitLaw):
    """Piecewise on a lattice of cells: each has the weight `base`, and `extra` more within an interval about x.

    A word without its lowest bit is drawn anew until it is below ``n_cells * base + n_inner * extra``. The answer is
    the number of a cell; the cells are ``2**step_exponent`` wide and have their middle one at 0.
    """

    name: ClassVar[str] = "lattice"
    n_cells: int
    n_inner: int
    base: int
    extra: int
    step_exponent: int

    def _check(self) -> None:
        odd = bool(self.n_cells % 2 and self.n_inner % 2) and 1 <= self.n_inner < self.n_cells <= 2**32
        if not odd or self.base < 1 or self.extra < 1 or not 2**60 < self._total <= _TWO_63:
            self._refuse("have odd numbers of cells whose weights add up to more than 2**60 and at most 2**63")
        if abs(self.step_exponent) > _MOST_EXPONENT or self.reach > (self.n_cells - self.n_inner) // 2:
            self._refuse("keep its inner interval among its cells")

    @property
    def n_answers(self) -> int:
        """As many as there are cells."""
        return self.n_cells

    @property
    def epsilon(self) -> float:
        """Of a cell wholly inside the inner interval and of one outside."""
        return log_ratio(self.base + self.extra, self.base)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word, or with a chance below 7/8 from one more each time."""
        drawn = next(words) >> 1
        while drawn >= self._total:
            drawn = next(words) >> 1
        near = drawn - self.n_cells * self.base
        if near < 0:
            return drawn // self.base
        position = x * self.reach + (self.n_cells - self.n_inner) // 2
        start = math.floor(position)
        part = min(self.extra, round((position - start) * float(self.extra)))
        return start + (near + part) // self.extra

    def value(self, answer: int) -> float:
        """The middle of a cell."""
        return math.ldexp(answer - self.n_cells // 2, self.step_exponent)

    @property
    def _total(self) -> int:
        return self.n_cells * self.base + self.n_inner * self.extra

    @property
    def reach(self) -> float:
        """How many cells the inner interval moves as x goes from 0 to 1: one quotient, rounded to a double."""
        return math.ldexp(self._total / (self.n_inner * self.extra), -self.step_exponent)


@dataclass(frozen=True)
class MixtureLaw(UnitLaw):
    """The lattice for `lattice_count` of 2^64 words, whatever x is, else the few answers, numbered after its cells."""

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
        """Those of both."""
        return self.lattice.n_answers + self.few.n_answers

    @property
    def epsilon(self) -> float:
        """The larger of both: the chance of each tells nothing."""
        return max(self.lattice.epsilon, self.few.epsilon)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word and what one of the laws takes."""
        if next(words) < self.lattice_count:
            return self.lattice.draw(x, words)
        return self.lattice.n_answers + self.few.draw(x, words)

    def value(self, answer: int) -> float:
        """The number of the law that an answer is of."""
        n = self.lattice.n_answers
        return self.lattice.value(answer) if answer < n else self.few.value(answer - n)


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_text, value))
    return value.to_dict() if isinstance(value, IntegerLaw) else str(value)
