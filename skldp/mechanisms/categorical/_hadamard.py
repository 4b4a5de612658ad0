"""Hadamard response: a column of a Hadamard matrix, more often one in which the category's row is positive."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Bools, Floats, Ints
from skldp.laws._categories import HadamardLaw
from skldp.laws._integers import IntegerLaw
from skldp.laws._odds import TWO_64
from skldp.mechanisms._noise import Noise, bernoulli
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._frequency import FrequencyEstimate, ReportMechanism
from skldp.mechanisms.categorical._randomized_response import FavouringMechanism
from skldp.mechanisms.categorical._unary import OneHotOfLaw

# A larger epsilon would give more blocks than categories.
_LARGEST_EPSILON = 40.0


@dataclass(frozen=True)
class HadamardResponse(FavouringMechanism, ReportMechanism):
    r"""Hadamard response: about as many reports as categories, half a block of which are a category's own.

    There are B blocks of b reports, K = B b in all, both powers of two. Category x belongs to the row
    :math:`r = 1 + x \bmod (b - 1)` of the Hadamard matrix of order b (Sylvester's) and to block
    :math:`\lfloor x / (b - 1) \rfloor`. Its own are the b / 2 reports of its block where :math:`H_{r y} = 1`; each of
    them is :math:`e^\varepsilon` times as likely as each other report of all K:

    .. math:: p = \frac{e^\varepsilon b / 2}{e^\varepsilon b / 2 + K - b / 2}, \quad
              \hat f_x = \frac{1}{n \gamma} \sum_{y \text{ in the block of } x} H_{r y}, \quad
              \gamma = p - \frac{(1 - p) b / 2}{K - b / 2}

    1 - p is rounded up to an integer out of 2^64. B is the power of two of least variance up to the paper's.

    Acharya, Sun and Zhang, "Hadamard response: estimating distributions privately, efficiently, and with little
    communication", AISTATS 2019, Sections 3 and 5.
    """

    @cached_property
    def n_blocks(self) -> int:
        """Number B of blocks of reports."""
        odds = math.exp(min(self.epsilon, _LARGEST_EPSILON))

        def variance(n_blocks: int) -> float:
            size = _block_size(self.n_classes, n_blocks)
            each = 1 / (odds * size / 2 + n_blocks * size - size / 2)
            chances = (odds * each * size / 2, each * size / 2, each * size)
            return _mean_variance(chances, min(size - 1, self.n_classes), self.n_classes)

        most = min(odds, 2 * self.n_classes)
        return min((1 << power for power in range(22) if 1 << power < max(2.0, most)), key=variance)

    @cached_property
    def block_size(self) -> int:
        """Number b of reports in a block, which has b - 1 categories."""
        return _block_size(self.n_classes, self.n_blocks)

    @property
    def n_reports(self) -> int:
        """Number K of different reports; 1 for a single category."""
        return self.n_blocks * self.block_size if self.n_classes > 1 else 1

    @property
    def _sizes(self) -> tuple[int, int]:
        return self.block_size // 2, self.n_reports - self.block_size // 2

    def _integer_law(self) -> IntegerLaw:
        return HadamardLaw(self.n_classes, self.n_blocks, self.block_size, self.miss_count)

    @property
    def gain(self) -> float:
        """Mean sign of a report for the true category; it is 0 for all others."""
        held, missed, _ = self._chances()
        return held - missed

    @property
    def worst_case_variance(self) -> float:
        """The mean over the categories of the variance that one report gives to an unbiased frequency, at most."""
        if self.n_classes == 1:
            return 0.0
        # The variance is largest for a category of a full block, whose reports concern the others there.
        return _mean_variance(self._chances(), min(self.block_size - 1, self.n_classes), self.n_classes)

    def _frequencies(self, checked: Ints, of: Literal["sample", "population"]) -> FrequencyEstimate:
        n = checked.size
        if self.n_classes == 1:
            return FrequencyEstimate(np.ones(1), np.zeros(1), n)
        in_block = np.bincount(checked, minlength=self.n_reports).reshape(self.n_blocks, self.block_size)
        # The mean of a sign, and of its square: whether the report is of the category's block.
        squares = np.repeat(in_block.sum(axis=1), self.block_size - 1)[: self.n_classes] / n
        means = hadamard_transform(in_block)[:, 1:].reshape(-1)[: self.n_classes] / n
        frequencies = means / self.gain
        if of == "sample":
            variance = (squares - means * self.gain) / n
        else:
            variance = (squares - means**2) / (n - 1)
        return FrequencyEstimate(frequencies, np.sqrt(np.maximum(variance, 0.0)) / self.gain, n)

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return the natural log of the probability of each report given each true code (broadcast)."""
        reports, own = np.broadcast_arrays(self._reports(released), self._inside(codes))
        if self.n_classes == 1:
            return np.zeros(reports.shape)
        blocks, rows = np.divmod(own, self.block_size - 1)
        held = (reports // self.block_size == blocks) & ~is_odd((rows + 1) & (reports % self.block_size))
        n_own = self.block_size // 2
        own_log = math.log(self.own_count) - math.log(TWO_64 * n_own)
        other_log = math.log(self.miss_count) - math.log(TWO_64 * (self.n_reports - n_own))
        return np.asarray(np.where(held, own_log, other_log))

    def _chances(self) -> tuple[float, float, float]:
        """Return the probabilities of the own reports, of the others of the block, and of any other block."""
        n_own = self.block_size // 2
        each = self.miss_count / TWO_64 / max(1, self.n_reports - n_own)
        return self.own_count / TWO_64, each * n_own, each * self.block_size

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        # The first report of the block is always an own one: every row of the matrix begins with a 1.
        out[...] = rows // (self.block_size - 1) * self.block_size if self.n_classes > 1 else 0

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        if self.n_classes == 1:
            out[...] = 0
            return
        size, n_own = self.block_size, self.block_size // 2
        blocks, matrix_rows = np.divmod(rows, size - 1)
        matrix_rows += 1
        starts = blocks * size
        own = noise.integers(n_own, rows.shape)
        other = noise.integers(self.n_reports - n_own, rows.shape)
        held = workspace.take("held", rows.shape, bool)
        bernoulli(noise, self.own_count, held, workspace.take("words", rows.shape, np.uint16))
        # Others are numbered from the rest of the category's block on, around to the block before it.
        inside = np.where(held, own, other)
        signed = _place_of_sign(inside % n_own, matrix_rows, ~held)
        elsewhere = (starts + size + other - n_own) % self.n_reports
        out[...] = np.where(held | (other < n_own), starts + signed, elsewhere)


@dataclass(frozen=True)
class OneHotHadamard(OneHotOfLaw):
    """Hadamard response of one block, whose report is released as the bits of all categories that it supports.

    With several blocks a bit would have different probabilities inside and outside of the category's block.
    """

    @cached_property
    def law(self) -> HadamardResponse:
        """The Hadamard response whose reports these are."""
        return _OneBlock(self.epsilon, self.n_classes)

    def _write_bits(self, answers: Ints, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = ~is_odd(answers & np.arange(1, self.n_classes + 1))


class _OneBlock(HadamardResponse):
    n_blocks = 1

    def support_probabilities(self) -> tuple[float, float]:
        # Half of a category's own reports, and half of all others, are those of any other row of the matrix.
        return self.own_count / TWO_64, 0.5 if self.n_classes > 1 else 0.0


def _block_size(n_classes: int, n_blocks: int) -> int:
    """Return the smallest power of two with a row for each category of a block, beside the first."""
    size = 2
    while (size - 1) * n_blocks < n_classes:
        size *= 2
    return size


def _mean_variance(chances: tuple[float, float, float], n_own: int, n_classes: int) -> float:
    """Return the mean variance of a frequency, from the chances of a report and the size of a block."""
    held, missed, elsewhere = chances
    gain = held - missed
    squares = n_own * (held + missed) + (n_classes - n_own) * elsewhere
    # A gain of 0 is refused before anything is released.
    return (squares - gain**2) / (n_classes * gain**2) if gain else math.inf


def is_odd(numbers: Ints) -> Bools:
    """Return whether the number of one bits is odd, for numbers below 2^32."""
    folded = numbers
    for shift in (16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return np.asarray(folded & 1, dtype=bool)


def _place_of_sign(numbers: Ints, rows: Ints, negative: Bools) -> Ints:
    """Return the columns where rows of the Hadamard matrix have a sign, numbered from 0 in each row."""
    # A bit is inserted where the row has its lowest one, and decides the sign.
    lowest = rows & -rows
    below = numbers & (lowest - 1)
    columns = ((numbers - below) << 1) + below
    return columns + np.where(is_odd(columns & rows) != negative, lowest, 0)


def hadamard_transform(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Multiply rows, whose length is a power of two, by Sylvester's Hadamard matrix."""
    n_rows, size = rows.shape
    step = 1
    while step < size:
        pairs = rows.reshape(n_rows, -1, 2, step)
        rows = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        step *= 2
    return rows.reshape(n_rows, size)
