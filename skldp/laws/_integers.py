r"""Base classes of integer laws, which a person's device samples.

A law consists of integers: of a document of another party, or chosen for an epsilon. It computes their exact epsilon
over all inputs, and raises ValueError for integers without one. A draw reads 64-bit words in order, so the same words
give the same answer in every programming language. It uses integer arithmetic, and IEEE double precision for numbers.
``client/FORMAT.md`` describes each draw; mechanisms draw arrays. Everything that is known of an answer is a method of
its law: no caller asks for its type.
"""

import math
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skldp._arrays import Bools, Floats, Ints
from skldp._checks import is_integer
from skldp._documents import check_names
from skldp.laws._odds import TWO_64, log_ratio

Answers = npt.NDArray[np.unsignedinteger[Any]]

#: Largest exponent of a step, a power of two.
MOST_EXPONENT = 64
#: Limits of a law from a document: number of codes, and of bits in one field of a report.
MOST_CODES = 2**20
MOST_BITS = 4096
#: Limit of one field's answer, since a document must not exhaust a device's memory.
MOST_ANSWER_BITS = 2**16


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


class Noise(Protocol):
    """Source of random bits of a release, as ``skldp.mechanisms._noise.Noise`` describes it."""

    def words(self, size: int | tuple[int, ...], dtype: npt.DTypeLike = np.uint64) -> np.ndarray: ...
    def fill(self, buffer: np.ndarray) -> np.ndarray: ...
    def bernoulli(self, threshold: npt.ArrayLike, size: int | tuple[int, ...] | None = None) -> Bools: ...
    def integers(self, high: int, size: int | tuple[int, ...]) -> Ints: ...
    def subsets(self, n_rows: int, n: int, k: int) -> Ints: ...
    def at(self, places: npt.NDArray[np.integer], size: int) -> "Noise": ...


class AnswerProducts(NamedTuple):
    """Distinct answers: their counts, the sum of shares that each supports, and of weights that support each code."""

    counts: Floats
    supported: Callable[[Floats], Floats]
    supporting: Callable[[Floats], Floats]


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
    def ratio(self) -> tuple[int, int]:
        """Numerator and denominator of the largest likelihood ratio, where it is one of two integers."""
        raise NotImplementedError

    @property
    def epsilon(self) -> float:
        """Largest log-likelihood ratio over all answers and pairs of inputs, rounded up."""
        return log_ratio(*self.ratio)

    @property
    def two_valued(self) -> bool:
        """True if all scores of an answer are one of two values."""
        return self.n_answers == 2

    @abstractmethod
    def _check(self) -> None:
        """Raise ValueError if `epsilon` or a draw would be wrong for these integers."""

    def check_size(self) -> None:
        """Raise ValueError if the law is too large for a device."""
        if self.n_answers > 1 << MOST_ANSWER_BITS:
            self._refuse(f"have answers of at most {MOST_ANSWER_BITS} bits")

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
    """Base class of laws of a code. An answer supports the true code with probability p, any other with q."""

    #: Largest number of codes on a device.
    most_codes: ClassVar[int] = MOST_CODES
    n_codes: int

    @property
    def n_answers(self) -> int:
        return self.n_codes

    @property
    def two_valued(self) -> bool:
        return True

    @abstractmethod
    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code."""

    def check_size(self) -> None:
        if self.n_codes > self.most_codes:
            self._refuse(f"have at most {self.most_codes} codes")

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Probabilities p and q that an answer supports the true code, and any single other one."""

    @property
    def report_bits(self) -> int:
        """Length of an answer in bits."""
        return (self.n_answers - 1).bit_length()

    @abstractmethod
    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        """Write the answers to codes of shape (n, 1), which must not overlap `out`."""

    def draw_bits(self, codes: Ints, noise: Noise, out: Bools, workspace: Any) -> None:
        """Write the bits of the codes that the answers support, shape (n, n_codes)."""
        answers = workspace.take("answers", codes.shape, np.int64)
        self.draw_many(codes, noise, answers, workspace)
        self.write_bits(answers, out)

    @abstractmethod
    def write_bits(self, answers: Ints, out: Bools) -> None:
        """Write the bits of the codes that answers of shape (n, 1) support."""

    @abstractmethod
    def supports(self, answers: Answers, code: int) -> Bools:
        """Return whether each answer supports a code."""

    @abstractmethod
    def supporting(self, answers: Answers, weights: Floats) -> Floats:
        """Return the sums of weights of the answers that support each code."""

    def products(self, answers: Answers) -> AnswerProducts:
        """Return the distinct answers, with their two products."""
        counts = np.bincount(answers, minlength=self.n_answers).astype(np.float64)
        given: Any = np.flatnonzero(counts)
        return AnswerProducts(counts[given], partial(self._supported, given), partial(self.supporting, given))

    def _supported(self, answers: Ints, shares: Floats) -> Floats:
        """Return the sum of the shares of the codes that each answer supports."""
        raise NotImplementedError

    def scores(self, answers: Answers, code: int) -> Floats:
        """Return the unbiased scores of one code, one for each answer."""
        p, q = self._apart
        return np.asarray((self.supports(answers, code) - q) / (p - q))

    def score_sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """Return, for each code, the sums of weights times scores and of weights times squared scores."""
        p, q = self._apart
        held, total, gain = self.supporting(answers, weights), weights.sum(), p - q
        return (held - q * total) / gain, (held * (1 - 2 * q) + q**2 * total) / gain**2

    @property
    def score_range(self) -> tuple[float, float]:
        p, q = self._apart
        return -q / (p - q), (1 - q) / (p - q)

    @property
    def square_of_scores(self) -> tuple[float, float]:
        """Mean square of the score of a code, of people who have it and of others."""
        p, q = self._apart
        return p * (1 - p) / (p - q) ** 2 + 1, q * (1 - q) / (p - q) ** 2

    @property
    def _apart(self) -> tuple[float, float]:
        p, q = self.support
        if not p > q:
            raise ValueError("Answers must depend on the category; got a law of epsilon 0.")
        return p, q


class NumbersLaw(IntegerLaw):
    """Base class of laws of one or several numbers in [-1, 1]."""

    @abstractmethod
    def draw_group(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Draw the answer to all numbers of a group."""

    @abstractmethod
    def values(self, answer: int) -> list[float]:
        """Return the estimates of an answer, with means equal to the inputs up to rounding."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest magnitude of an estimate."""

    def draw_many(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        """Write the estimates of the answers to many numbers or rows to `out`, drawn with the words of a mechanism."""
        raise NotImplementedError

    @property
    def ratio_from_middle(self) -> tuple[int, int]:
        """Integers of the largest likelihood ratio of any input to 0, or of a larger one."""
        return self.ratio

    @property
    def moments(self) -> tuple[float, float, float]:
        """Coefficients c of the variance of an estimate, c[0] + c[1] abs(x) + c[2] x^2, or of an upper bound."""
        raise NotImplementedError

    @property
    def usual_square(self) -> float:
        """Mean square of the estimate of a uniform number."""
        constant, linear, square = self.moments
        return constant + linear / 2 + (1 + square) / 3

    def variance(self, x: Floats) -> Floats:
        """Return the variances of estimates of numbers in [-1, 1]."""
        constant, linear, square = self.moments
        size = np.abs(x)
        return np.asarray(constant + linear * size + square * size**2)

    def mean(self, x: float) -> Fraction:
        """Return the exact mean of the estimate of a number."""
        values, weights = self.support(x)
        total = sum((Fraction(value) * w for value, w in zip(values.tolist(), weights, strict=True)), Fraction(0))
        return total / sum(weights)

    def support(self, x: float) -> tuple[Floats, list[int]]:
        """Return the estimates of all answers to one number, and their integer weights."""
        raise NotImplementedError


@dataclass(frozen=True)
class UnitLaw(NumbersLaw):
    """Base class of laws of a number in [-1, 1], which are also laws of a group of one."""

    n_values: ClassVar[int] = 1
    #: Whether the mean of an answer's value may differ from the number by more than rounding.
    has_bias: ClassVar[bool] = False

    @abstractmethod
    def draw(self, x: float, words: Iterator[int]) -> int:
        """Draw the answer to a double in [-1, 1]."""

    @abstractmethod
    def value(self, answer: int) -> float:
        """Return the estimate of an answer, with mean x up to rounding."""

    def draw_group(self, places: Sequence[float], words: Iterator[int]) -> int:
        return self.draw(places[0], words)

    def values(self, answer: int) -> list[float]:
        return [self.value(answer)]

    @property
    def ends(self) -> tuple[float, float]:
        return self.value(0), self.value(self.n_answers - 1)

    @property
    def largest(self) -> float:
        return max(map(abs, self.ends))

    def responses(self, points: Floats, *, spread: bool = False) -> tuple[Floats, Callable[[Answers], Ints]]:
        """Return chances (n_points, n_groups) of groups of answers, and the function from answers to groups."""
        self.lattice_part("Distributions")
        raise NotImplementedError

    def lattice_part(self, what: str) -> tuple[Any, float]:
        """Return the lattice law of some or all answers, and their share; raise ValueError without one."""
        # An answer shows its component of a mixture. Few outputs identify neither squares nor bins.
        raise ValueError(f"{what} need mechanism='square_wave', or another law of a lattice; got {self.name!r}.")


@dataclass(frozen=True)
class GroupLaw(NumbersLaw):
    """Base class of laws of `n_values` numbers in [-1, 1]."""

    n_values: int

    @abstractmethod
    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Draw the answer to `n_values` doubles in [-1, 1]."""

    def draw_group(self, places: Sequence[float], words: Iterator[int]) -> int:
        return self.draw(places, words)

    def rows(self, answers: Sequence[int]) -> Floats:
        """Return the estimates of answers, shape (n, n_values)."""
        return np.array([self.values(answer) for answer in answers]).reshape(-1, self.n_values)


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_text, value))
    return value.to_dict() if isinstance(value, IntegerLaw) else str(value)


def whole(numbers: Any, most: int) -> bool:
    """Return whether `numbers` is a tuple of integers of magnitude at most `most`."""
    return isinstance(numbers, tuple) and all(is_integer(number) and abs(number) <= most for number in numbers)


def ascending(numbers: tuple[int, ...]) -> bool:
    return all(before < after for before, after in pairwise(numbers))


def is_prime(number: int) -> bool:
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
    "two_answers": ("_few_answers", "TwoAnswersLaw"),
    "three_answers": ("_few_answers", "ThreeAnswersLaw"),
    "lattice": ("_lattice", "LatticeLaw"),
    "mixture": ("_lattice", "MixtureLaw"),
    "subset": ("_categories", "SubsetLaw"),
    "local_hashing": ("_hashing", "HashingLaw"),
    "hadamard": ("_hashing", "HadamardLaw"),
    "bins": ("_numbers", "BinsLaw"),
    "knots": ("_numbers", "KnotsLaw"),
    "points": ("_few_answers", "PointsLaw"),
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
    made.check_size()
    return made


def _read(value: Any, deepest: int) -> Any:
    if isinstance(value, dict):
        return law_from_dict(value, deepest - 1)
    return tuple(map(_integer, value)) if isinstance(value, list) else _integer(value)


def _integer(value: Any) -> int:
    is_short = isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal()
    if not is_short or str(int(value)) != value:
        raise ValueError("The integers of a law must be canonical decimal texts of at most 20 digits; got another.")
    return int(value)
