"""Integer law of Hadamard response: a column of a Hadamard matrix, mostly one with a plus in the row of the code."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skldp._arrays import Bools, Floats, Ints
from skldp.laws._categories import FavouringLaw
from skldp.laws._integers import MOST_CODES, AnswerProducts, Answers, Noise, uniform_below
from skldp.laws._odds import TWO_64


@dataclass(frozen=True)
class HadamardLaw(FavouringLaw):
    """Law of Hadamard response: a report where row ``1 + x`` of Sylvester's matrix is 1, else, by `miss_count`, not."""

    name: ClassVar[str] = "hadamard"
    n_blocks: int
    block_size: int
    miss_count: int

    def _check(self) -> None:
        size = self.block_size
        if self.n_blocks != 1 or not 2 <= size <= 2 * MOST_CODES or size & (size - 1):
            self._refuse("have one block of a power of two reports")
        if not 2 <= self.n_codes < min(size, MOST_CODES + 1):
            self._refuse(f"have a row of the block for each of 2 to {MOST_CODES} codes")
        if not self._favours():
            self._refuse("favour the code's own reports and allow all others")

    @property
    def n_answers(self) -> int:
        return self.block_size

    @property
    def sizes(self) -> tuple[int, int]:
        return self.block_size // 2, self.block_size // 2

    @property
    def support(self) -> tuple[float, float]:
        return self.own_count / TWO_64, 0.5

    def draw(self, code: int, words: Iterator[int]) -> int:
        """Draw the answer to a code from one word and those of a choice of one report."""
        held = next(words) >= self.miss_count
        return int(self._report(np.int64(code), held, uniform_below(self.block_size // 2, words)))

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        own, other = (noise.integers(size, codes.shape) for size in self.sizes)
        held = self._draw_held(codes, noise, workspace)
        out[...] = self._report(codes, held, np.where(held, own, other))

    def _report(self, codes: Any, held: Any, numbers: Any) -> Any:
        """Return the reports of numbers among the codes' own reports, if `held`, or else among all other ones."""
        # A bit is inserted where the row has its lowest one, and decides the sign.
        rows = codes + 1
        lowest = rows & -rows
        below = numbers & (lowest - 1)
        columns = ((numbers - below) << 1) + below
        return columns + np.where(is_odd(columns & rows) != ~np.asarray(held), lowest, 0)

    def write_bits(self, answers: Ints, out: Bools) -> None:
        # Short integers, of which there are many.
        np.logical_not(is_odd(answers.astype(np.uint32) & np.arange(1, self.n_codes + 1, dtype=np.uint32)), out=out)

    def supports(self, answers: Answers, code: int) -> Bools:
        return np.asarray(~is_odd(answers.astype(np.uint32) & np.uint32(code + 1)))

    def supporting(self, answers: Answers | Ints, weights: Floats) -> Floats:
        sums = np.asarray(np.bincount(answers.astype(np.int64, copy=False), weights, self.n_answers), dtype=np.float64)
        return np.asarray((sums.sum() + hadamard_transform(sums)[1 : self.n_codes + 1]) / 2)

    def products(self, answers: Answers) -> AnswerProducts:
        counts = np.bincount(answers, minlength=self.n_answers).astype(np.float64)
        given = np.flatnonzero(counts).astype(np.int64)

        def supported(shares: Floats) -> Floats:
            table = np.zeros(self.block_size)
            table[1 : self.n_codes + 1] = shares
            return np.asarray((shares.sum() + hadamard_transform(table))[given] / 2)

        return AnswerProducts(counts[given], supported, lambda parts: self.supporting(given, parts))


def is_odd(numbers: Any) -> Any:
    """Return whether the number of one bits is odd, for numbers below 2^32."""
    folded = numbers
    for shift in (16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return np.asarray(folded & 1, dtype=bool)


def hadamard_transform(values: Floats) -> Floats:
    """Multiply numbers, of which there are a power of two, by Sylvester's Hadamard matrix."""
    step = 1
    while step < values.size:
        pairs = values.reshape(-1, 2, step)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        step *= 2
    return values
