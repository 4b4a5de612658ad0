"""Exact joint sampling of independent bits: one short random word for all the bits of a number.

The bits of one feature are a single draw from a product law on 2^n masks. Of the 2^16 values of a random 16-bit word,
each mask has as many to itself as fit into its probability. The few values left over are shared: what the masks still
lack of their probabilities lies end to end on them, and 48 more random bits tell where on that line a draw falls. In a
tie at 2^-48 of a value it goes on word by word. The law that comes out is therefore exactly the product law.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bits.buffers import LONGEST, OPEN, Buffers, Shared, complement_codes
from skldp.mechanisms._bits.flip_laws import BitLaw
from skldp.mechanisms._noise import Noise

__all__ = ["BitRandomizer", "JointBits", "MaskSampler"]

_WORD_BITS = 64
# Each value of the first word that is left over is cut into 2^7 pieces, few of which have a boundary in them.
_FINE_BITS = 7


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
    def shares(self) -> list[tuple[int, int]]:
        """How many values of the first word each mask has to itself, and what it lacks, over 2^(threshold_bits n)."""
        law = [1]
        for threshold in self.thresholds:
            rest = (1 << self.threshold_bits) - threshold
            law = [weight * side for weight in law for side in (rest, threshold)]
        return [divmod(weight << self.index_bits, 1 << self._law_bits) for weight in law]

    @cached_property
    def boundaries(self) -> list[int]:
        """Where one mask ends and the next begins on the values left over, over 2^(threshold_bits n)."""
        return list(accumulate(lack for _, lack in self.shares))[:-1]

    @cached_property
    def first_words(self) -> list[int]:
        """The boundaries rounded down to the bits of one word: the number of a value, and the bits after it."""
        return [self._first_bits(boundary, self._tail_bits) for boundary in self.boundaries]

    @cached_property
    def n_closed(self) -> int:
        """Values of the first word that decide by themselves; those from here on are left over."""
        return sum(whole for whole, _ in self.shares)

    @cached_property
    def table(self) -> npt.NDArray[np.uint16]:
        """The mask of every value of the first word, and ``OPEN`` for those left over."""
        table = np.full(1 << self.index_bits, OPEN, dtype=np.uint16)
        table[: self.n_closed] = np.repeat(self._masks, [whole for whole, _ in self.shares])
        return table

    @cached_property
    def shared(self) -> Shared:
        """The values left over, with the boundaries to the bits of one word."""
        truncated = np.array(self.first_words, dtype=np.uint64)
        starts = np.arange((len(self.table) - self.n_closed) << self._fine_bits, dtype=np.uint64)
        starts <<= self._after_fine
        below = np.searchsorted(truncated, starts)
        # A boundary whose first word is the last of a piece may lie anywhere in that word, so the piece holds it.
        through = np.searchsorted(truncated, starts | (np.uint64(1) << self._after_fine) - np.uint64(1), "right")
        pieces = np.where(below == through, self._masks[below], OPEN)
        return Shared(
            self._masks, truncated, pieces, self._after_fine, np.uint16(self.n_closed), np.uint64(self._tail_bits)
        )

    @property
    def _law_bits(self) -> int:
        return self.threshold_bits * len(self.thresholds)

    @property
    def _tail_bits(self) -> int:
        return self.word_bits - self.index_bits

    @property
    def _fine_bits(self) -> int:
        return min(_FINE_BITS, self._tail_bits)

    @property
    def _after_fine(self) -> np.uint64:
        return np.uint64(self._tail_bits - self._fine_bits)

    @cached_property
    def _masks(self) -> npt.NDArray[np.uint16]:
        """The masks in the order of the law, which a number of boundaries below stands for."""
        masks = np.arange(len(self.shares), dtype=np.uint16)
        return complement_codes(masks, len(self.thresholds)) if self.complement else masks

    def draw(self, noise: Noise, buffers: Buffers) -> np.ndarray:
        """Fill ``buffers.mask`` with masks, and return it."""
        words = noise.fill(buffers.words)
        if self.index_bits < 16:
            words >>= 16 - self.index_bits
        left = buffers.look_up_words(self.table, self.n_closed)
        if left.size:
            drawn = noise.words(left.size)
            for k in buffers.divide(left, drawn, self.shared):
                buffers.mask[left[k]] = self._masks[self._settle(int(drawn[k]), noise)]
        return buffers.mask

    def _settle(self, prefix: int, noise: Noise) -> int:
        """Number of boundaries at or below a uniform number that begins with the word `prefix`."""
        n_bits = self._tail_bits
        below = bisect_left(self.first_words, prefix)
        tied = list(range(below, bisect_right(self.first_words, prefix)))
        while tied and n_bits < self._law_bits:
            word = int(noise.words(1)[0]) >> (_WORD_BITS - self.word_bits)
            prefix, n_bits = prefix << self.word_bits | word, n_bits + self.word_bits
            firsts = {k: self._first_bits(self.boundaries[k], n_bits) for k in tied}
            below += sum(first < prefix for first in firsts.values())
            tied = [k for k in tied if firsts[k] == prefix]
        return below + len(tied)

    def _first_bits(self, boundary: int, n_bits: int) -> int:
        excess = self._law_bits - n_bits
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
        # More bits in one draw leave more values left over than a second draw costs.
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
