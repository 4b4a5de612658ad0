"""Exact joint sampling of independent bits: one short random word for all the bits of a number.

The bits of one feature are a single draw from a product law on 2^n masks. A uniform number in [0, 1) is compared with
the cumulative boundaries of that law, which are integers over 2^(64 n). Its first 16 bits nearly always decide; where a
boundary falls inside their cell, 48 more bits are drawn, and in a tie at 2^-64 it goes on word by word. The law that
comes out is therefore exactly the product law.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from skldp.mechanisms.bits.flip_laws import BitLaw
from skldp.mechanisms.bits.ones_complement import LONGEST, complement_codes
from skldp.mechanisms.buffers import Buffers
from skldp.mechanisms.randomness import Noise

__all__ = ["BitRandomizer", "JointBits", "MaskSampler"]

_WORD_BITS = 64


class OpenCells(NamedTuple):
    """The cells that a boundary falls into, one entry each.

    Parameters
    ----------
    start : ndarray of uint64
        The cell's first word.
    low, high : ndarray of uint16
        Masks below the cell's first boundary, and above its last.
    first, last : ndarray of uint64
        The cell's first and last boundary, counted from its first word.
    """

    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    last: np.ndarray


@dataclass(frozen=True, eq=False)
class MaskSampler:
    """Masks of independent bits, drawn together with their exact law.

    Parameters
    ----------
    thresholds : tuple of int
        Bit i (the most significant first) is 1 with probability ``thresholds[i] / 2**threshold_bits``.
    threshold_bits, index_bits, word_bits : int
        Sizes that tests make small, so that every branch can be enumerated.
    complement : bool, default=False
        Whether the masks are for one's-complement codes.
    """

    thresholds: tuple[int, ...]
    threshold_bits: int = 64
    index_bits: int = 16
    word_bits: int = _WORD_BITS
    complement: bool = False

    @cached_property
    def boundaries(self) -> list[int]:
        """The 2^n - 1 inner boundaries of the cumulative law, over 2^(threshold_bits n)."""
        law = [1]
        for threshold in self.thresholds:
            rest = (1 << self.threshold_bits) - threshold
            law = [weight * side for weight in law for side in (rest, threshold)]
        return list(accumulate(law))[:-1]

    @cached_property
    def first_words(self) -> list[int]:
        """The boundaries rounded down to the first `word_bits` bits."""
        return [self._first_bits(boundary, self.word_bits) for boundary in self.boundaries]

    @cached_property
    def _truncated(self) -> np.ndarray:
        return np.array(self.first_words, dtype=np.uint64)

    @cached_property
    def cells(self) -> tuple[np.ndarray, "OpenCells"]:
        """The mask of every cell of the first `index_bits` bits, and the cells with a boundary in them.

        In the first array the k-th open cell stands as ``first_place + k``, which no mask is. A boundary whose first
        word is the cell's own first word may lie anywhere in that word, so it counts as in the cell.
        """
        tail_bits = np.uint64(self.word_bits - self.index_bits)
        truncated = self._truncated
        cell_of = (truncated >> tail_bits).astype(np.intp)
        through = np.cumsum(np.bincount(cell_of, minlength=1 << self.index_bits))
        below = np.append(0, through[:-1])
        table, places = self._masks(below), np.flatnonzero(through > below)
        table[places] = self.first_place + np.arange(len(places))
        low, high, start = below[places], through[places], places.astype(np.uint64) << tail_bits
        open_cells = OpenCells(
            start,
            self._masks(low),
            self._masks(high),
            truncated[low] - start,
            truncated[high - 1] - start,
        )
        return table, open_cells

    @property
    def first_place(self) -> int:
        """What stands for the first open cell: as 16-bit integers, signed for complements, all masks are below."""
        return 1 << (len(self.thresholds) - self.complement)

    def draw(self, noise: Noise, buffers: Buffers) -> np.ndarray:
        """Fill ``buffers.mask`` with masks, and return it."""
        words, mask = noise.fill(buffers.words), buffers.mask
        if self.index_bits < 16:
            words >>= 16 - self.index_bits
        table, open_cells = self.cells
        buffers.look_up(table, words, mask)
        ordered = mask.view(np.int16) if self.complement else mask
        undecided = np.greater_equal(ordered, self.first_place, out=buffers.flags).nonzero()[0]
        if undecided.size:
            mask[undecided] = self._refine(mask[undecided].astype(np.intp) - self.first_place, open_cells, noise)
        return mask

    def _refine(self, which: np.ndarray, open_cells: "OpenCells", noise: Noise) -> np.ndarray:
        tails = noise.words(which.size)
        tails >>= np.uint64(_WORD_BITS - self.word_bits + self.index_bits)
        above = tails > open_cells.last.take(which)
        masks = np.where(above, open_cells.high.take(which), open_cells.low.take(which))
        between = ((tails >= open_cells.first.take(which)) != above).nonzero()[0]
        if between.size:
            masks[between] = self._masks(self._count(open_cells.start[which[between]] | tails[between], noise))
        return masks

    def _masks(self, counts: np.ndarray) -> np.ndarray:
        """The mask that a number of boundaries below stands for: itself, or its complement code."""
        masks = counts.astype(np.uint16)
        return complement_codes(masks, len(self.thresholds)) if self.complement else masks

    def _count(self, prefixes: np.ndarray, noise: Noise) -> np.ndarray:
        """Numbers of boundaries at or below uniform numbers that begin with the words `prefixes`."""
        counts = np.searchsorted(self._truncated, prefixes, side="left")
        for place in (np.searchsorted(self._truncated, prefixes, side="right") > counts).nonzero()[0]:
            counts[place] = self._settle(int(prefixes[place]), noise)
        return counts

    def _settle(self, prefix: int, noise: Noise) -> int:
        """Number of boundaries at or below a uniform number that begins with the word `prefix`."""
        n_bits = self.word_bits
        below = bisect_left(self.first_words, prefix)
        tied = list(range(below, bisect_right(self.first_words, prefix)))
        while tied and n_bits < self.threshold_bits * len(self.thresholds):
            word = int(noise.words(1)[0]) >> (_WORD_BITS - self.word_bits)
            prefix, n_bits = prefix << self.word_bits | word, n_bits + self.word_bits
            firsts = {k: self._first_bits(self.boundaries[k], n_bits) for k in tied}
            below += sum(first < prefix for first in firsts.values())
            tied = [k for k in tied if firsts[k] == prefix]
        return below + len(tied)

    def _first_bits(self, boundary: int, n_bits: int) -> int:
        excess = self.threshold_bits * len(self.thresholds) - n_bits
        return boundary >> excess if excess >= 0 else boundary << -excess


@dataclass(frozen=True, eq=False)
class JointBits:
    """Masks of up to 64 independent bits, split into chunks that are drawn one after the other.

    Parameters
    ----------
    thresholds : tuple of int
        Bit i (the most significant first) is 1 with probability ``thresholds[i] / 2**64``.
    """

    thresholds: tuple[int, ...]

    @cached_property
    def chunks(self) -> tuple[MaskSampler, ...]:
        """Samplers of equally long runs of bits, the most significant first."""
        # More bits in one draw leave more cells undecided than a second draw costs.
        n_chunks = -(-len(self.thresholds) // LONGEST)
        parts: Sequence[np.ndarray] = np.array_split(np.array(self.thresholds, dtype=object), n_chunks)
        return tuple(MaskSampler(tuple(int(t) for t in part)) for part in parts)

    def draw(self, noise: Noise, buffers: Buffers, dtype: np.dtype) -> np.ndarray:
        """Masks of a type that has enough bits; where all fit into one chunk, they are ``buffers.mask`` itself."""
        first, *others = self.chunks
        mask = first.draw(noise, buffers)
        if not others:
            return mask
        joined = mask.astype(dtype)
        for chunk in others:
            joined <<= len(chunk.thresholds)
            joined |= chunk.draw(noise, buffers)
        return joined


@dataclass(frozen=True, eq=False)
class BitRandomizer:
    """Randomize codes bit by bit, in place.

    Parameters
    ----------
    law : BitLaw
    """

    law: BitLaw

    @cached_property
    def masks(self) -> tuple[JointBits, ...]:
        """One law of flips where it is symmetric; else one for bits that are 1 and one for bits that are 0."""
        from_zero = JointBits(tuple(int(t) for t in self.law.from_zero))
        if self.law.symmetric:
            return (from_zero,)
        return JointBits(tuple(int(t) for t in self.law.from_one)), from_zero

    def randomize(self, codes: np.ndarray, noise: Noise, buffers: Buffers) -> np.ndarray:
        """Randomize one-dimensional codes, as many as `buffers` holds, and return them."""
        first = self.masks[0].draw(noise, buffers, codes.dtype)
        if len(self.masks) == 1:
            codes ^= first
            return codes
        from_one = codes & first
        np.invert(codes, out=codes)
        codes &= self.masks[1].draw(noise, buffers, codes.dtype)
        codes |= from_one
        return codes
