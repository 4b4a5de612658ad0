"""Integer laws of a category: what they have in common, and randomized response."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Bools, Floats, Ints, Words
from skldp.laws._integers import AnswerProducts, Answers, CodeLaw, Noise
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


class CodeShifts:
    """Law of the shift of a code modulo C: each of 1 to C - 1 with one probability, else 0."""

    # With more classes, too many 16-bit values would be undecided.
    _MOST_TABLED = 4096

    def __init__(self, n_codes: int, count: int) -> None:
        self._n_codes = np.uint64(n_codes)
        # Draws below edges[s] and not below edges[s - 1] add s + 1; draws from the last edge on add nothing.
        self._edges = np.arange(1, n_codes, dtype=np.uint64) * np.uint64(count)
        self._shifts = np.append(np.arange(1, n_codes), 0)
        self._table = self._by_leading_bits() if n_codes <= self._MOST_TABLED else None

    def add(self, codes: Ints, noise: Noise, out: Ints, workspace: Any) -> None:
        """Write the answers to codes of shape (n, 1), which must not overlap `out`."""
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
        np.minimum(unsigned, unsigned - self._n_codes, out=unsigned)

    def _shift(self, draws: Words) -> Ints:
        return self._shifts[np.searchsorted(self._edges, draws, side="right")]

    def _by_leading_bits(self) -> npt.NDArray[np.int16]:
        """Return the shift that each value of a draw's leading 16 bits decides, or -1 where an edge lies within."""
        leading, rest = self._edges >> np.uint64(48), self._edges & np.uint64(2**48 - 1)
        first = (leading + (rest > 0)).astype(np.intp)
        table = np.repeat(self._shifts.astype(np.int16), np.diff(first, prepend=0, append=2**16))
        table[leading[rest > 0].astype(np.int64)] = -1
        return table


@dataclass(frozen=True)
class ResponseLaw(CodeLaw):
    """Law of randomized response: each other code has `other_count` of 2^64 words, the true code the rest."""

    name: ClassVar[str] = "randomized_response"
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
        """Draw the answer to a code from one word."""
        shift = next(words) // self.other_count + 1
        return (code + shift) % self.n_codes if shift < self.n_codes else code

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        self._shifts.add(codes, noise, out, workspace)

    def write_bits(self, answers: Ints, out: Bools) -> None:
        out[...] = False
        out[np.arange(len(answers)), answers[:, 0]] = True

    def supports(self, answers: Answers, code: int) -> Bools:
        return np.equal(answers, code)

    def supporting(self, answers: Answers, weights: Floats) -> Floats:
        return np.bincount(answers, weights, self.n_codes).astype(np.float64)

    def products(self, answers: Answers) -> AnswerProducts:
        counts = np.bincount(answers, minlength=self.n_codes).astype(np.float64)
        given = np.flatnonzero(counts)
        return AnswerProducts(
            counts[given],
            lambda shares: shares[given],
            lambda parts: np.bincount(given, parts, self.n_codes).astype(np.float64),
        )

    @cached_property
    def _shifts(self) -> CodeShifts:
        return CodeShifts(self.n_codes, self.other_count)
