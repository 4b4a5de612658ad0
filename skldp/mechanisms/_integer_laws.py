r"""Laws given by their integers alone, for one value at a time: what a person's own device samples with.

A mechanism for tables chooses integers from an epsilon, and samples many rows. A law here is handed the integers,
perhaps by a stranger: it computes the epsilon that they give, over all inputs and with nothing assumed of how they
were chosen, and refuses those of which it cannot. A draw reads 64-bit words in their order, so that the same words give
the same answer in every language; nothing is needed but integers, and for numbers IEEE double precision.
"""

import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from skldp._checks import is_whole
from skldp.mechanisms._odds import TWO_64

__all__ = [
    "MOST_EXPONENT",
    "CodeLaw",
    "GroupLaw",
    "IntegerLaw",
    "TwoStepLaw",
    "UnitLaw",
    "secure_words",
    "uniform_below",
    "words_of",
]

#: Of the powers of two that steps are.
MOST_EXPONENT = 64


def secure_words() -> Iterator[int]:
    """64-bit words from the operating system's secure source; made anew for every release."""
    while True:
        yield from struct.unpack(">16Q", os.urandom(128))


def words_of(data: bytes) -> Iterator[int]:
    """The big-endian 64-bit words of chosen bytes, for test vectors."""
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
        if not all(map(is_whole, given)) or not all(-MOST_EXPONENT <= number <= TWO_64 for number in given):
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

    @property
    def lifetime_epsilon(self) -> float:
        """Of all answers to one value under the memo rule ``"permanent"``: that of one, since they are equal."""
        return self.epsilon

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


class TwoStepLaw(IntegerLaw):
    """Base of the laws with a permanent answer, of which every report is another randomisation.

    A person chooses something once, which is told; a value is seen through that choice; what is seen has one permanent
    answer; and a report is made of this answer and the choice. Its `epsilon` is that of one report by both steps, its
    `lifetime_epsilon` that of all reports of one value, which is the permanent answer's.
    """

    @property
    @abstractmethod
    def lifetime_epsilon(self) -> float:
        """Of the permanent answers to two values, rounded up."""

    def choose(self, words: Iterator[int]) -> int:
        """What a person chooses once, whatever their values."""
        return 0

    def see(self, value: Any, choice: int) -> int:
        """What of a value has a permanent answer."""
        return int(value)

    @abstractmethod
    def keep(self, seen: int, choice: int, words: Iterator[int]) -> int:
        """The permanent answer to what is seen."""

    @abstractmethod
    def report(self, kept: int, choice: int, words: Iterator[int]) -> int:
        """An answer that is sent, of a permanent one."""

    def draw(self, value: Any, words: Iterator[int]) -> int:
        """Choose, keep and report at once: for test vectors."""
        choice = self.choose(words)
        return self.report(self.keep(self.see(value, choice), choice, words), choice, words)


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


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_text, value))
    return value.to_dict() if isinstance(value, IntegerLaw) else str(value)
