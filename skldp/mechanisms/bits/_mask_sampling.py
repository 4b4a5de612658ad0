"""Exact joint sampling of independent bits: one short random word for all the bits of a number.

The bits of one feature are a single draw from a product law on 2^n masks, by a condensed table: each mask owns as many
of the 2^16 values of a random 16-bit word as fit into its probability. The few remaining values select the residual
law, the rest of the masks' probabilities. It is inverted with 48 more random bits and, if these equal a boundary of
the distribution function, with further words. The resulting law is exactly the product law.

Long steps are loops, which numba compiles if installed (the extra ``fast``); numpy gives the same bits for the same
noise. A compiled loop releases the interpreter lock. It does not check bounds: all arrays of a call must have one
length.

References
----------
Marsaglia, Tsang and Wang, "Fast generation of discrete random variables", Journal of Statistical Software, 2004.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp._arrays import Words
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.bits._fixed_point import LONGEST, complement_codes
from skldp.mechanisms.bits._flip_laws import BitLaw

# Marks undecided entries in tables of masks; masks have 12 bits, or are complements of 11.
UNDECIDED = np.uint16(1 << 15)
# Fewer numbers take less than a millisecond; importing numba takes half a second.
_FEWEST = 131_072


def _encode(values: np.ndarray, scale: Any, largest: Any, codes: np.ndarray) -> None:
    """Write one's-complement codes of values times `scale`, whose magnitudes are rounded down, and to `largest`."""
    for i in range(values.size):
        codes[i] = min(max(np.int32(values[i] * scale), -largest), largest) - (values[i] < 0)


def _look_up_masks(table: np.ndarray, words: np.ndarray, n_decided: int, masks: np.ndarray, left: np.ndarray) -> int:
    """Write the mask of every word, and the places of words of `n_decided` and more; say how many these are."""
    n_left = 0
    for i in range(words.size):
        masks[i] = table[words[i]]
        if words[i] >= n_decided:
            left[n_left] = i
            n_left += 1
    return n_left


def _invert_residual(
    words: np.ndarray,
    drawn: np.ndarray,
    in_order: np.ndarray,
    boundaries: np.ndarray,
    guide: np.ndarray,
    after_guide: Any,
    first: Any,
    after_word: Any,
    undecided: Any,
    left: np.ndarray,
    masks: np.ndarray,
    tied: np.ndarray,
) -> int:
    """Write masks to the places `left`, and the numbers of draws at a boundary to `tied`; say how many these are."""
    n_tied = 0
    for k in range(drawn.size):
        word = np.uint64(words[left[k]] - first)
        drawn[k] = (drawn[k] >> (np.uint64(64) - after_word)) | (word << after_word)
        mask = guide[drawn[k] >> after_guide]
        if mask == undecided:
            below, above = 0, boundaries.size
            while below < above:
                middle = (below + above) // 2
                if boundaries[middle] < drawn[k]:
                    below = middle + 1
                else:
                    above = middle
            mask = in_order[below]
            if below < boundaries.size and boundaries[below] == drawn[k]:
                tied[n_tied] = k
                n_tied += 1
        masks[left[k]] = mask
    return n_tied


def _decode(codes: np.ndarray, masks: np.ndarray, step: Any, out: np.ndarray) -> None:
    """Write the numbers of one's-complement codes after masking, in units of `step`."""
    for i in range(out.size):
        code = codes[i] ^ masks[i]
        out[i] = np.int16(code + (code < 0)) * step


class Loops(NamedTuple):
    """Loops of a release, interpreted or compiled."""

    encode: Callable[..., None]
    look_up_masks: Callable[..., int]
    invert_residual: Callable[..., int]
    decode: Callable[..., None]


INTERPRETED = Loops(_encode, _look_up_masks, _invert_residual, _decode)
_FLOATS = ("float32", "float64")
# Signatures of each loop, compiled ahead of the first release. Input may be read-only.
_TYPES = (
    [
        f"void(Array({kind}, 1, 'C', readonly={fixed}), {kind}, int32, int16[::1])"
        for kind in _FLOATS
        for fixed in (False, True)
    ],
    ["int64(uint16[::1], uint16[::1], int64, uint16[::1], int32[::1])"],
    [
        "int64(uint16[::1], uint64[::1], uint16[::1], uint64[::1], uint16[::1], uint64, uint16, uint64, uint16, "
        "int32[::1], uint16[::1], intp[::1])"
    ],
    [f"void(int16[::1], int16[::1], {kind}, {kind}[::1])" for kind in _FLOATS],
)


@cache
def compiled_loops() -> Loops | None:
    """Return the loops compiled; None if numba is not installed, does not work or is off (``NUMBA_DISABLE_JIT=1``)."""
    try:
        import numba
    except Exception:
        # A broken numba, or one that does not fit the installed numpy, fails in many ways; fall back to numpy.
        return None
    if getattr(numba.config, "DISABLE_JIT", False):
        return None
    try:
        return _compile(numba.njit, cache=True)
    except (RuntimeError, OSError):
        # No cache directory, or no space: every process compiles for itself.
        return _compile(numba.njit, cache=False)


def loops_for(size: int) -> Loops | None:
    """Return the compiled loops for steps over `size` numbers; None for few of them or without numba."""
    return compiled_loops() if size >= _FEWEST else None


def _compile(njit: Callable[..., Any], **options: Any) -> Loops:
    compiled = (
        njit(types, nogil=True, error_model="numpy", **options)(loop)
        for types, loop in zip(_TYPES, INTERPRETED, strict=True)
    )
    return Loops(*compiled)


_WORD_BITS = 64
# Each remaining value of the first word has 2^7 entries in the guide table; few of them contain a boundary.
_GUIDE_BITS = 7


class Residual(NamedTuple):
    """Distribution function, with a guide table, of points: which remaining value the first word is, and more bits."""

    masks: npt.NDArray[np.uint16]
    boundaries: Words
    guide: npt.NDArray[np.uint16]
    after_guide: np.uint64
    first: np.uint16
    after_word: np.uint64

    def invert(self, words: np.ndarray, drawn: Words, left: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """Fill ``masks[left]`` by first words and random bits, and return the numbers of the draws that are tied."""
        drawn >>= np.uint64(64) - self.after_word
        drawn |= (words[left] - self.first).astype(np.uint64) << self.after_word
        found = self.guide.take((drawn >> self.after_guide).astype(np.intp))
        near = (found == UNDECIDED).nonzero()[0]
        below = np.searchsorted(self.boundaries, drawn[near])
        found[near] = self.masks[below]
        masks[left] = found
        return np.asarray(near[self.boundaries.take(below, mode="clip") == drawn[near]])


@dataclass(frozen=True, eq=False)
class MaskSampler:
    """Sampler of masks of independent bits, drawn together with their exact law."""

    thresholds: tuple[int, ...]
    threshold_bits: int = 64
    index_bits: int = 16
    word_bits: int = _WORD_BITS
    complement: bool = False

    @cached_property
    def shares(self) -> list[tuple[int, int]]:
        """Number of values of the first word of each mask, and its residual probability over 2^(threshold_bits n)."""
        law = [1]
        for threshold in self.thresholds:
            rest = (1 << self.threshold_bits) - threshold
            law = [weight * side for weight in law for side in (rest, threshold)]
        return [divmod(weight << self.index_bits, 1 << self._law_bits) for weight in law]

    @cached_property
    def boundaries(self) -> list[int]:
        """Boundaries between the masks of the residual law, over 2^(threshold_bits n)."""
        return list(accumulate(lack for _, lack in self.shares))[:-1]

    @cached_property
    def first_words(self) -> list[int]:
        """The boundaries rounded down to points: which of the remaining values, and the bits of one word after it."""
        return [self._first_bits(boundary, self._tail_bits) for boundary in self.boundaries]

    @cached_property
    def n_decided(self) -> int:
        """Values of the first word that decide on a mask by themselves; those from here on remain."""
        return sum(whole for whole, _ in self.shares)

    @cached_property
    def table(self) -> npt.NDArray[np.uint16]:
        """The mask of every value of the first word, and ``UNDECIDED`` for those that remain."""
        table = np.full(1 << self.index_bits, UNDECIDED, dtype=np.uint16)
        table[: self.n_decided] = np.repeat(self._masks, [whole for whole, _ in self.shares])
        return table

    @cached_property
    def residual(self) -> Residual:
        """Residual law of the remaining values, with boundaries truncated to one word."""
        truncated = np.array(self.first_words, dtype=np.uint64)
        starts = np.arange((len(self.table) - self.n_decided) << self._guide_bits, dtype=np.uint64)
        starts <<= self._after_guide
        below = np.searchsorted(truncated, starts)
        # A boundary whose first word is the last of an entry may lie anywhere in that word: count it to the entry.
        through = np.searchsorted(truncated, starts | (np.uint64(1) << self._after_guide) - np.uint64(1), "right")
        guide = np.where(below == through, self._masks[below], UNDECIDED)
        return Residual(
            self._masks, truncated, guide, self._after_guide, np.uint16(self.n_decided), np.uint64(self._tail_bits)
        )

    @property
    def _law_bits(self) -> int:
        return self.threshold_bits * len(self.thresholds)

    @property
    def _tail_bits(self) -> int:
        return self.word_bits - self.index_bits

    @property
    def _guide_bits(self) -> int:
        return min(_GUIDE_BITS, self._tail_bits)

    @property
    def _after_guide(self) -> np.uint64:
        return np.uint64(self._tail_bits - self._guide_bits)

    @cached_property
    def _masks(self) -> npt.NDArray[np.uint16]:
        """Masks in the order of the law, indexed by the number of boundaries below."""
        masks = np.arange(len(self.shares), dtype=np.uint16)
        return complement_codes(masks, len(self.thresholds)) if self.complement else masks

    def draw(self, noise: Noise, size: int, workspace: Workspace) -> npt.NDArray[np.uint16]:
        """Return `size` masks, in the array ``"masks"`` of the workspace."""
        words, masks = workspace.take("words", (size,), np.uint16), workspace.take("masks", (size,), np.uint16)
        noise.fill(words)
        if self.index_bits < 16:
            words >>= 16 - self.index_bits
        loops = loops_for(size)
        if loops is None:
            workspace.look_up(self.table, words, masks)
            flags = np.greater_equal(words, self.n_decided, out=workspace.take("flags", (size,), np.bool_))
            left = flags.nonzero()[0]
        else:
            places = workspace.take("left", (size,), np.int32)
            left = places[: loops.look_up_masks(self.table, words, self.n_decided, masks, places)]
        if not left.size:
            return masks
        of_left = noise.at(left, size)
        drawn = of_left.words(left.size)
        if loops is None:
            tied = self.residual.invert(words, drawn, left, masks)
        else:
            numbers = np.empty(left.size, dtype=np.intp)
            tied = numbers[: loops.invert_residual(words, drawn, *self.residual, UNDECIDED, left, masks, numbers)]
        for k in tied:
            of_one = of_left.at(np.array([k]), left.size)
            masks[left[k]] = self._masks[self._break_tie(int(drawn[k]), of_one)]
        return masks

    def _break_tie(self, prefix: int, noise: Noise) -> int:
        """Return the number of boundaries at or below a uniform number that begins with the word `prefix`."""
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


@lru_cache(maxsize=32)
def mask_sampler(thresholds: tuple[int, ...], *, complement: bool = False) -> MaskSampler:
    """Return the sampler of a law, whose tables are kept from one fit to the next."""
    return MaskSampler(thresholds, complement=complement)


@dataclass(frozen=True, eq=False)
class BitRandomizer:
    """Randomizer of codes of up to 64 bits, bit by bit and in place."""

    law: BitLaw

    @cached_property
    def samplers(self) -> list[list[MaskSampler]]:
        """Samplers of runs of bits, in order: of flips, or of bits that are 1 and of bits that are 0."""
        # More bits in one draw leave so many values undecided that a second draw is cheaper.
        n_runs = -(-self.law.n_bits // LONGEST)
        chances = [self.law.from_zero] if self.law.symmetric else [self.law.from_one, self.law.from_zero]
        return [[mask_sampler(tuple(map(int, run))) for run in np.array_split(one, n_runs)] for one in chances]

    def randomize(self, codes: np.ndarray, noise: Noise, workspace: Workspace) -> np.ndarray:
        """Randomize one-dimensional codes, of at least 16 bits each, and return them."""
        first = self._mask(0, codes, noise, workspace)
        if len(self.samplers) == 1:
            codes ^= first
            return codes
        from_one = codes & first
        np.invert(codes, out=codes)
        codes &= self._mask(1, codes, noise, workspace)
        codes |= from_one
        return codes

    def _mask(self, which: int, codes: np.ndarray, noise: Noise, workspace: Workspace) -> np.ndarray:
        """Return masks of the codes' type, in an array of the workspace; the runs of bits are drawn in order."""
        first, *others = self.samplers[which]
        mask: np.ndarray = first.draw(noise, codes.size, workspace)
        if not others:
            return mask
        joined = workspace.take("joined", codes.shape, codes.dtype)
        np.copyto(joined, mask)
        for sampler in others:
            joined <<= len(sampler.thresholds)
            joined |= sampler.draw(noise, codes.size, workspace)
        return joined
