"""Integer laws of a category: randomized response, and a bit for each code by unary encoding or subset selection."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Bools, Floats, Ints, Words
from skldp.laws._integers import MOST_BITS, AnswerProducts, Answers, CodeLaw, Noise, uniform_subset
from skldp.laws._odds import TWO_64


def bernoulli(noise: Noise, count: int, out: np.ndarray, workspace: Any) -> None:
    """Write True with probability exactly ``count / 2**64`` to `out` (n, k); 16 bits decide all but one in 65,536."""
    leading, rest = np.uint16(count >> 48), np.uint64(count & (2**48 - 1))
    draws = noise.fill(workspace.take("words", out.shape, np.uint16))
    np.less(draws, leading, out=out)
    undecided = np.flatnonzero(draws == leading)
    further = noise.at(undecided, draws.size).words(undecided.size) >> np.uint64(16)
    out[np.divmod(undecided, out.shape[1])] = further < rest


class FavouringLaw(CodeLaw):
    """Base class of laws that answer uniformly from a code's own answers or, for `miss_count` of 2^64 words, others."""

    miss_count: int

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Numbers of own answers and of others, up to a common factor."""

    @property
    def own_count(self) -> int:
        """Number of words that give one of the code's own answers."""
        return TWO_64 - self.miss_count

    @property
    def ratio(self) -> tuple[int, int]:
        """Chances of an own answer and of another one, up to a common factor."""
        own, others = self.sizes
        return self.own_count * others, self.miss_count * own

    def _draw_held(self, codes: Ints, noise: Noise, workspace: Any) -> Bools:
        """Draw for which codes of shape (n, 1) the answer is one of their own."""
        held: Bools = workspace.take("held", codes.shape, bool)
        bernoulli(noise, self.own_count, held, workspace)
        return held

    def _favours(self) -> bool:
        held, missed = self.ratio
        return 1 <= self.miss_count < TWO_64 and held >= missed


@dataclass(frozen=True)
class ResponseLaw(CodeLaw):
    """Law of randomized response: each other code has `other_count` of 2^64 words, the true code the rest."""

    name: ClassVar[str] = "randomized_response"
    # With more codes, too many 16-bit values would be undecided.
    _MOST_TABLED: ClassVar[int] = 4096
    other_count: int

    def _check(self) -> None:
        if self.n_codes < 2 or not 1 <= self.other_count * self.n_codes <= TWO_64:
            self._refuse("keep the true one of 2 codes or more at least as often as it gives another")

    @property
    def own_count(self) -> int:
        return TWO_64 - self.other_count * (self.n_codes - 1)

    @property
    def ratio(self) -> tuple[int, int]:
        return self.own_count, self.other_count

    @property
    def support(self) -> tuple[float, float]:
        return self.own_count / TWO_64, self.other_count / TWO_64

    def draw(self, code: int, words: Iterator[int]) -> int:
        shift = next(words) // self.other_count + 1
        return (code + shift) % self.n_codes if shift < self.n_codes else code

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        if self._table is None:
            out[...] = self._shift(noise.words(codes.shape))
        else:
            words = workspace.take("words", codes.shape, np.uint16)
            decided = workspace.take("decided", codes.shape, np.int16)
            out[...] = self._table.take(noise.fill(words), mode="clip", out=decided)
            undecided = np.flatnonzero(decided < 0)
            further = noise.at(undecided, codes.size).words(undecided.size) >> np.uint64(16)
            draws = (words.reshape(-1)[undecided].astype(np.uint64) << np.uint64(48)) | further
            out.reshape(-1)[undecided] = self._shift(draws)
        out += codes
        # Modulo n_codes: below 0, an unsigned integer wraps to a large one.
        unsigned = out.view(np.uint64)
        np.minimum(unsigned, unsigned - np.uint64(self.n_codes), out=unsigned)

    def write_bits(self, answers: Ints, out: Bools) -> None:
        out[...] = False
        out[np.arange(len(answers)), answers[:, 0]] = True

    def supports(self, answers: Answers, code: int) -> Bools:
        return np.equal(answers, code)

    def supporting(self, answers: Answers, weights: Floats) -> Floats:
        return np.bincount(answers, weights, self.n_codes).astype(np.float64)

    def _supported(self, answers: Ints, shares: Floats) -> Floats:
        return shares[answers]

    def _shift(self, draws: Words) -> Ints:
        """Return what is added to the code: each of 1 to C - 1 with one probability, else 0."""
        return self._shifts[np.searchsorted(self._edges, draws, side="right")]

    @cached_property
    def _shifts(self) -> Ints:
        return np.append(np.arange(1, self.n_codes), 0)

    @cached_property
    def _edges(self) -> Words:
        # Draws below edges[s] and not below edges[s - 1] add s + 1; draws from the last edge on add nothing.
        return np.arange(1, self.n_codes, dtype=np.uint64) * np.uint64(self.other_count)

    @cached_property
    def _table(self) -> npt.NDArray[np.int16] | None:
        """The shift that each value of a draw's leading 16 bits decides, or -1 where an edge lies within."""
        if self.n_codes > self._MOST_TABLED:
            return None
        leading, rest = self._edges >> np.uint64(48), self._edges & np.uint64(2**48 - 1)
        first = (leading + (rest > 0)).astype(np.intp)
        table = np.repeat(self._shifts.astype(np.int16), np.diff(first, prepend=0, append=2**16))
        table[leading[rest > 0].astype(np.int64)] = -1
        return table


# Answers whose bits are in memory at once.
_ROWS = 1 << 16
_BITS_OF_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)


def bits(answers: Answers, n_codes: int) -> npt.NDArray[np.uint8]:
    if answers.ndim == 1:
        width = answers.dtype.itemsize
        answers = answers.astype(answers.dtype.newbyteorder(">")).view(np.uint8).reshape(len(answers), width)
    return np.unpackbits(answers, axis=1)[:, -n_codes:]


@dataclass(frozen=True)
class BitsOfCodes(CodeLaw):
    """Base class of laws that answer with a bit for each code, the first code's highest."""

    most_codes: ClassVar[int] = MOST_BITS

    @property
    def n_answers(self) -> int:
        return 1 << self.n_codes

    def draw_bits(self, codes: Ints, noise: Noise, out: Bools, workspace: Any) -> None:
        self.draw_many(codes, noise, out, workspace)

    def write_bits(self, answers: Ints, out: Bools) -> None:
        out[...] = answers

    def supports(self, answers: Answers, code: int) -> Bools:
        place = self.n_codes - 1 - code
        if answers.ndim == 1:
            return np.asarray(answers >> answers.dtype.type(place) & answers.dtype.type(1), dtype=bool)
        return np.asarray(answers[:, -1 - place // 8] >> place % 8 & 1, dtype=bool)

    def supporting(self, answers: Answers, weights: Floats) -> Floats:
        blocks = (slice(start, start + _ROWS) for start in range(0, len(answers), _ROWS))
        return sum((weights[i] @ bits(answers[i], self.n_codes) for i in blocks), np.zeros(self.n_codes))

    def products(self, answers: Answers) -> AnswerProducts:
        """Return the distinct answers (of few bytes), with their two products, by tables over each two bytes."""
        counts, n_codes = np.ones(len(answers)), self.n_codes
        if answers.ndim == 1:
            answers, found = np.unique(answers, return_counts=True)
            counts, answers = found.astype(np.float64), answers.astype(answers.dtype.newbyteorder(">")).view(np.uint8)
        in_bytes = answers.reshape(len(counts), -1)
        padded = np.pad(in_bytes, ((0, 0), (in_bytes.shape[1] % 2, 0)))
        pairs = np.ascontiguousarray(padded.view(">u2").T, dtype=np.uint16)
        n_bytes = 2 * len(pairs)

        def supported(shares: Floats) -> Floats:
            tables = np.pad(shares, (8 * n_bytes - n_codes, 0)).reshape(n_bytes, 8) @ _BITS_OF_BYTES.T
            total = np.zeros(len(counts))
            for pair, high, low in zip(pairs, tables[::2], tables[1::2], strict=True):
                total += np.add.outer(high, low).reshape(-1)[pair]
            return total

        def supporting(parts: Floats) -> Floats:
            sums = np.empty((n_bytes, 256))
            for i, pair in enumerate(pairs):
                held = np.bincount(pair, parts, 1 << 16).reshape(256, 256)
                sums[2 * i], sums[2 * i + 1] = held.sum(axis=1), held.sum(axis=0)
            return np.asarray((sums @ _BITS_OF_BYTES).reshape(-1)[-n_codes:])

        return AnswerProducts(counts, supported, supporting)


@dataclass(frozen=True)
class UnaryLaw(BitsOfCodes):
    """Law of unary encoding: a bit per code, 1 for `own_count` words if the code is true, else `other_count`."""

    name: ClassVar[str] = "unary_encoding"
    own_count: int
    other_count: int

    def _check(self) -> None:
        if self.n_codes < 2 or not 1 <= self.other_count < self.own_count < TWO_64:
            self._refuse("give 2 bits or more, of which the true one is 1 more often than another")

    @property
    def ratio(self) -> tuple[int, int]:
        """Products of the counts of the two bits that differ between two codes."""
        own, other = self.own_count, self.other_count
        return own * (TWO_64 - other), (TWO_64 - own) * other

    @property
    def support(self) -> tuple[float, float]:
        return self.own_count / TWO_64, self.other_count / TWO_64

    @property
    def report_bits(self) -> int:
        return self.n_codes

    def draw(self, code: int, words: Iterator[int]) -> int:
        answer = 0
        for place in range(self.n_codes):
            answer = 2 * answer + (next(words) < (self.own_count if place == code else self.other_count))
        return answer

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        bernoulli(noise, self.other_count, out, workspace)
        own = workspace.take("own", codes.shape, bool)
        bernoulli(noise, self.own_count, own, workspace)
        out[np.arange(len(codes)), codes[:, 0]] = own[:, 0]


@dataclass(frozen=True)
class SubsetLaw(FavouringLaw, BitsOfCodes):
    """Law of subset selection: `set_size` codes as bits, without the true code for `miss_count` of 2^64 words."""

    name: ClassVar[str] = "subset"
    set_size: int
    miss_count: int

    def _check(self) -> None:
        if self.n_codes < 2 or not 1 <= self.set_size < self.n_codes or not self._favours():
            self._refuse("have sets of some of 2 codes or more and favour those with the true one")

    @property
    def sizes(self) -> tuple[int, int]:
        """There are (k - w) / w times as many sets without the true code as with it."""
        return self.set_size, self.n_codes - self.set_size

    @property
    def support(self) -> tuple[float, float]:
        others = Fraction(self.set_size * TWO_64 - self.own_count, (self.n_codes - 1) * TWO_64)
        return self.own_count / TWO_64, float(others)

    @property
    def report_bits(self) -> int:
        """Length of an answer in bits: its members' codes, or a bit for each code if that is shorter."""
        return min(self.n_codes, self.set_size * (self.n_codes - 1).bit_length())

    def is_answer(self, answer: int) -> bool:
        return super().is_answer(answer) and answer.bit_count() == self.set_size

    def draw(self, code: int, words: Iterator[int]) -> int:
        held = next(words) >= self.miss_count
        others = uniform_subset(self.n_codes - 1, self.set_size - held, words)
        # Other codes are numbered without the true one.
        members = [code] * held + [other + (other >= code) for other in others]
        return sum(1 << (self.n_codes - 1 - member) for member in members)

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        # Draw other codes only; the true one then replaces any of them.
        members = noise.subsets(len(codes), self.n_codes - 1, self.set_size)
        members += members >= codes
        places = noise.integers(self.set_size, len(codes))
        holders = np.flatnonzero(self._draw_held(codes, noise, workspace))
        members[holders, places[holders]] = codes[holders, 0]
        out[...] = False
        out[np.arange(len(codes))[:, None], members] = True
