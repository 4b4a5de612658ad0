"""Integer law of Hadamard response: a column of a Hadamard matrix, mostly one with a plus in the row of the code."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Bools, Floats, Ints
from skldp.laws._categories import FavouringLaw, bernoulli
from skldp.laws._integers import MOST_CODES, AnswerProducts, Answers, Noise, uniform_below
from skldp.laws._odds import TWO_64


@dataclass(frozen=True)
class HadamardLaw(FavouringLaw):
    """Law of Hadamard response: a report of one of the blocks, half of which belong to each code.

    There are `n_blocks` blocks of b = `block_size` reports, both powers of two. Code x has block ``x // (b - 1)`` and
    row ``1 + x % (b - 1)`` of Sylvester's matrix. Its own reports are those of its block at which the row is 1. For
    `miss_count` of 2^64 words, the answer is uniform over all other reports, else over its own reports.

    The score of a code is the sign of a report in its row, or 0 for another block, over its mean for the true code.
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
        if not self._favours():
            self._refuse("favour the code's own reports and allow all others")

    @property
    def n_answers(self) -> int:
        """Number of reports in all blocks."""
        return self.n_blocks * self.block_size

    @property
    def two_valued(self) -> bool:
        """Whether scores have two values: with one block."""
        return self.n_blocks == 1

    @property
    def sizes(self) -> tuple[int, int]:
        """Half of a block's reports are a code's own."""
        return self.block_size // 2, self.n_answers - self.block_size // 2

    @property
    def support(self) -> tuple[float, float]:
        """Probabilities that a report of one block supports the true code, and any other one, which half of each do."""
        if self.n_blocks > 1:
            self._refuse("have one block to support all other codes alike")
        return self.own_count / TWO_64, 0.5

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code from one word and those of a choice of one report."""
        own, others = self.sizes
        held = next(words) >= self.miss_count
        return int(self._report(np.int64(code), held, uniform_below(own if held else others, words)))

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        """Write the answers to codes of shape (n, 1), which must not overlap `out`."""
        own, other = (noise.integers(size, codes.shape) for size in self.sizes)
        held = workspace.take("held", codes.shape, bool)
        bernoulli(noise, self.own_count, held, workspace.take("words", codes.shape, np.uint16))
        out[...] = self._report(codes, held, np.where(held, own, other))

    def _report(self, codes: Any, held: Any, numbers: Any) -> Any:
        """Return the reports of numbers among the codes' own reports, if `held`, or else among all other ones.

        Others are numbered from the rest of the code's block on, around to the block before it.
        """
        size, half = self.block_size, self.block_size // 2
        blocks, rows = np.divmod(codes, size - 1)
        starts, rows = blocks * size, rows + 1
        # A bit is inserted where the row has its lowest one, and decides the sign.
        lowest, inside = rows & -rows, numbers % half
        below = inside & (lowest - 1)
        columns = ((inside - below) << 1) + below
        columns = columns + np.where(is_odd(columns & rows) != ~np.asarray(held), lowest, 0)
        elsewhere = (starts + size + numbers - half) % self.n_answers
        return np.where(held | (numbers < half), starts + columns, elsewhere)

    def write_bits(self, answers: Ints, out: Bools) -> None:
        """Write the bits of the codes whose row is positive at each report of one block."""
        # Short integers, of which there are many.
        np.logical_not(is_odd(answers.astype(np.uint32) & np.arange(1, self.n_codes + 1, dtype=np.uint32)), out=out)

    def supports(self, answers: Answers, code: int) -> Bools:
        """Return whether each report is one of a code's own."""
        row = np.uint32(code % (self.block_size - 1) + 1)
        # A row is below the size of a block, and the last 32 bits are enough.
        return np.asarray(self._is_of_block(answers, code) & ~is_odd(answers.astype(np.uint32) & row))

    def supporting(self, answers: Answers | Ints, weights: Floats) -> Floats:
        """Return the sums of weights of each code's own reports, by one transform."""
        table = self._table(answers, weights)
        own = table.sum(axis=1, keepdims=True) + hadamard_transform(table)[:, 1:]
        return np.asarray(own.reshape(-1)[: self.n_codes] / 2)

    def products(self, answers: Answers) -> AnswerProducts:
        """Return the distinct answers, with their two products, by transforms of the blocks."""
        counts = np.bincount(answers, minlength=self.n_answers).astype(np.float64)
        given = np.flatnonzero(counts).astype(np.int64)

        def supported(shares: Floats) -> Floats:
            table = np.zeros((self.n_blocks, self.block_size - 1))
            table.reshape(-1)[: self.n_codes] = shares
            signed = hadamard_transform(np.insert(table, 0, 0.0, axis=1))
            return np.asarray((table.sum(axis=1, keepdims=True) + signed).reshape(-1)[given] / 2)

        return AnswerProducts(counts[given], supported, lambda parts: self.supporting(given, parts))

    def scores(self, answers: Answers, code: int) -> Floats:
        """Return the scores of one code."""
        return np.asarray((2.0 * self.supports(answers, code) - self._is_of_block(answers, code)) / self.gain)

    def score_sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """Return, for each code, the sums of weights times scores and of weights times squared scores."""
        table = self._table(answers, weights)
        signed = hadamard_transform(table)[:, 1:].reshape(-1)[: self.n_codes]
        squares = np.repeat(table.sum(axis=1), self.block_size - 1)[: self.n_codes]
        return signed / self.gain, squares / self.gain**2

    @property
    def score_range(self) -> tuple[float, float]:
        """Smallest and largest score."""
        return -1 / self.gain, 1 / self.gain

    @property
    def square_of_scores(self) -> tuple[float, float]:
        """Mean square of the score of a code, in the mean of all people."""
        # A sign counts where the report is of the code's block: own reports and half of the others, or others alone.
        k, miss = self.n_codes, self.miss_count / TWO_64
        elsewhere = miss * self.block_size / self.sizes[1]
        same = np.bincount(np.arange(k) // (self.block_size - 1)) / k
        in_block = (1 - miss + elsewhere / 2) * same + elsewhere * (1 - same)
        # A block has as many codes as its share of all, each with the same mean square; taken for all alike.
        return (float(same @ in_block) / self.gain**2,) * 2

    @property
    def gain(self) -> float:
        """Mean sign of a report for the true code; it is 0 for all others."""
        gain = 1 - self.miss_count / TWO_64 * (1 + self.block_size / 2 / self.sizes[1])
        if not gain > 0:
            raise ValueError("Answers must depend on the category; got a law of epsilon 0.")
        return gain

    def _table(self, answers: Answers | Ints, weights: Floats) -> Floats:
        """Return the sums of weights of each report, by block."""
        sums = np.bincount(answers.astype(np.int64, copy=False), weights, self.n_answers)
        return np.asarray(sums, dtype=np.float64).reshape(-1, self.block_size)

    def _is_of_block(self, answers: Answers, code: int) -> Bools:
        return np.asarray(answers.astype(np.int64) // self.block_size == code // (self.block_size - 1))


def is_odd(numbers: Any) -> Any:
    """Return whether the number of one bits is odd, for numbers below 2^32."""
    folded = numbers
    for shift in (16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return np.asarray(folded & 1, dtype=bool)


def hadamard_transform(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Multiply rows, whose length is a power of two, by Sylvester's Hadamard matrix."""
    n_rows, size = rows.shape
    step = 1
    while step < size:
        pairs = rows.reshape(n_rows, -1, 2, step)
        rows = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        step *= 2
    return rows.reshape(n_rows, size)
