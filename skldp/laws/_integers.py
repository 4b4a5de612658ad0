r"""Base classes of integer laws, which a person's device samples.

A mechanism for tables chooses integers from an epsilon and samples many rows. A law takes the integers from a document
of another party, computes their exact epsilon over all inputs, and raises ValueError for integers without one. A draw
reads 64-bit words in order, so the same words give the same answer in every programming language. It uses integer
arithmetic, and IEEE double precision for numbers.
"""

import math
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._checks import is_integer
from skldp._documents import check_names
from skldp.laws._odds import TWO_64

#: Largest exponent of a step, a power of two.
MOST_EXPONENT = 64


def secure_words() -> Iterator[int]:
    """Yield 64-bit words from the operating system's secure randomness; each release needs its own iterator."""
    while True:
        yield from struct.unpack(">16Q", os.urandom(128))


def words_of(data: bytes) -> Iterator[int]:
    """Yield the big-endian 64-bit words of given bytes, for test vectors."""
    for start in range(0, len(data) - 7, 8):
        yield int.from_bytes(data[start : start + 8], "big")
    raise ValueError(f"The random bytes of a draw must suffice for its 8-byte words; got {len(data)} bytes.")


def uniform_below(n: int, words: Iterator[int]) -> int:
    """Draw a uniform integer below n <= 2^64; words at or above the largest multiple of n are drawn again."""
    most = TWO_64 - TWO_64 % n
    word = next(words)
    while word >= most:
        word = next(words)
    return word % n


@dataclass(frozen=True)
class IntegerLaw(ABC):
    """Base class of laws of an integer answer below `n_answers`. Subclasses are frozen dataclasses of integers."""

    name: ClassVar[str]
    #: First version of a policy that can have the law.
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        given = [getattr(self, one.name) for one in fields(self) if one.type is int]
        if not all(map(is_integer, given)) or not all(-MOST_EXPONENT <= number <= TWO_64 for number in given):
            self._refuse("have integers of at most 64 bits")
        self._check()

    @property
    @abstractmethod
    def n_answers(self) -> int:
        """Upper bound of the answers, exclusive; :meth:`is_answer` may exclude more."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Largest log-likelihood ratio over all answers and pairs of inputs, rounded up."""

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError if `epsilon` or a draw would be wrong for these integers."""

    def is_answer(self, answer: int) -> bool:
        """Return whether an untrusted number is an answer of the law."""
        return 0 <= answer < self.n_answers

    def to_dict(self) -> dict[str, Any]:
        """Return the law as a dict with integers as decimal texts, which every JSON reader keeps exact."""
        return {"law": self.name} | {one.name: _text(getattr(self, one.name)) for one in fields(self)}

    def _refuse(self, rule: str) -> None:
        raise ValueError(f"A law {self.name!r} must {rule}; got {self!r}.")


@dataclass(frozen=True)
class CodeLaw(IntegerLaw):
    """Base class of laws of a code from 0 to ``n_codes - 1``."""

    n_codes: int

    @property
    def n_answers(self) -> int:
        """Number of codes."""
        return self.n_codes

    @abstractmethod
    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code."""


@dataclass(frozen=True)
class UnitLaw(IntegerLaw):
    """Base class of laws of a number in [-1, 1]."""

    @abstractmethod
    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a double in [-1, 1]."""

    @abstractmethod
    def value(self, answer: int) -> float:
        """Return the estimate of an answer, with mean x up to rounding."""


@dataclass(frozen=True)
class GroupLaw(IntegerLaw):
    """Base class of laws of `n_values` numbers in [-1, 1]."""

    n_values: int

    @abstractmethod
    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Draw the answer to `n_values` doubles in [-1, 1]."""

    @abstractmethod
    def values(self, answer: int) -> list[float]:
        """Return the estimates of an answer, with means equal to the inputs up to rounding."""

    def rows(self, answers: Sequence[int]) -> npt.NDArray[np.float64]:
        """Return the estimates of answers, shape (n, n_values)."""
        return np.array([self.values(answer) for answer in answers]).reshape(-1, self.n_values)


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_text, value))
    return value.to_dict() if isinstance(value, IntegerLaw) else str(value)


def is_prime(number: int) -> bool:
    """Return whether an integer is prime, by trial division."""
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def number_of_digits(n_codes: int, base: int) -> int:
    """Return the number of digits of codes below `n_codes` in a base."""
    digits = 0
    while base**digits < n_codes:
        digits += 1
    return digits


def uniform_subset(n: int, size: int, words: Iterator[int]) -> list[int]:
    """Draw a uniform set of `size` numbers below n, in ascending order (Floyd's algorithm)."""
    chosen: set[int] = set()
    for last in range(n - size, n):
        number = uniform_below(last + 1, words)
        chosen.add(last if number in chosen else number)
    return sorted(chosen)


def rank_of_subset(n: int, members: Collection[int]) -> int:
    """Return the rank of a set among all sets of its size: the sum of binom(i-th number, i), for i from 1."""
    held, left, rank = frozenset(members), len(members), 0
    binomial = math.comb(n - 1, left)
    # Each binomial follows from the previous one; separate computations would take seconds on a device.
    for place in range(n - 1, 0, -1):
        if place in held:
            rank += binomial
            binomial, left = binomial * left // place, left - 1
        else:
            binomial = binomial * (place - left) // place
    return rank


def subset_of_rank(n: int, size: int, rank: int) -> list[int]:
    """Return the set of a rank, in ascending order."""
    members, left = [], size
    binomial = math.comb(n - 1, left)
    for place in range(n - 1, -1, -1):
        if left and rank >= binomial:
            members.append(place)
            rank -= binomial
            binomial, left = binomial * left // max(place, 1), left - 1
        else:
            binomial = binomial * (place - left) // max(place, 1)
    return members[::-1]


#: Module and class of each law by its name in documents, so that a device imports only the laws of its policies.
LAWS = {
    "randomized_response": ("_categories", "ResponseLaw"),
    "unary_encoding": ("_categories", "UnaryLaw"),
    "two_answers": ("_numbers", "TwoAnswersLaw"),
    "three_answers": ("_numbers", "ThreeAnswersLaw"),
    "lattice": ("_numbers", "LatticeLaw"),
    "mixture": ("_numbers", "MixtureLaw"),
    "subset": ("_categories", "SubsetLaw"),
    "local_hashing": ("_categories", "HashingLaw"),
    "hadamard": ("_categories", "HadamardLaw"),
    "bins": ("_numbers", "BinsLaw"),
    "knots": ("_numbers", "KnotsLaw"),
    "points": ("_points_law", "PointsLaw"),
    "sign_and_bits": ("_numbers", "BitsLaw"),
    "signs": ("_numbers", "SignsLaw"),
    "sampled": ("_numbers", "SampledLaw"),
    "closest": ("_closest_law", "ClosestLaw"),
}


def law_from_dict(given: Any, deepest: int = 3) -> IntegerLaw:
    """Read a law from the dict of :meth:`IntegerLaw.to_dict`; the deepest nesting is a mixture in a sampled law."""
    if not deepest:
        raise ValueError("A mixture law must not contain a mixture; got one.")
    name = given.get("law") if isinstance(given, dict) else None
    if not isinstance(name, str) or name not in LAWS:
        raise ValueError(f"A law must be one of {sorted(LAWS)}; got another.")
    module, own = LAWS[name]
    kind = getattr(import_module(f"skldp.laws.{module}"), own)
    check_names(given, f"A law {name!r}", {"law"} | {one.name for one in fields(kind)})
    made: IntegerLaw = kind(**{one: _read(value, deepest) for one, value in given.items() if one != "law"})
    return made


def _read(value: Any, deepest: int) -> Any:
    """Read an integer, a list of integers or an inner law."""
    if isinstance(value, dict):
        return law_from_dict(value, deepest - 1)
    return tuple(map(_integer, value)) if isinstance(value, list) else _integer(value)


def _integer(value: Any) -> int:
    is_short = isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal()
    if not is_short or str(int(value)) != value:
        raise ValueError("The integers of a law must be canonical decimal texts of at most 20 digits; got another.")
    return int(value)
