"""The long steps of a release as loops, which numba compiles where it is installed (the extra ``fast``).

numpy's passes over a block are the reference: for the same noise the loops give the same bits. What one loop does takes
numpy several passes, between which threads wait for the interpreter's lock; a compiled loop runs without it.

Compiled loops do not check bounds: whoever calls them has checked that their arrays are of one length.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bits.buffers import OPEN, Buffers, Shared
from skldp.mechanisms._bits.fixed_point import FixedPoint

__all__ = ["INTERPRETED", "CompiledBuffers", "Loops", "compiled_loops"]

# What is encoded is an int32 before it is limited to the largest magnitude.
REACH = 2.0**31


def _encode(values: np.ndarray, low: Any, high: Any, scale: Any, largest: Any, codes: np.ndarray) -> int:
    """Write one's-complement codes of values times `scale`, moved to `low` or `high` where they lie outside.

    Magnitudes are rounded down, and to `largest` where they are larger. Says how many values were moved; less than 0 if
    one is NaN or infinite.
    """
    outside = False
    for i in range(values.size):
        value = values[i]
        outside |= not ((low <= value) & (value <= high))
        value = low if value < low else value
        # This moves a NaN as well, which no integer stands for.
        value = value if value <= high else high
        codes[i] = min(max(np.int32(value * scale), -largest), largest) - (value < 0)
    if not outside:
        return 0
    # Counting at the same time would take twice as long, and is seldom needed.
    n_moved = 0
    for i in range(values.size):
        if not abs(values[i]) < np.inf:
            return -1
        n_moved += not ((low <= values[i]) & (values[i] <= high))
    return n_moved


def _look_up_words(table: np.ndarray, words: np.ndarray, n_closed: int, masks: np.ndarray, left: np.ndarray) -> int:
    """Write the mask of every word, and the places of words of `n_closed` and more; say how many these are."""
    n_left = 0
    for i in range(words.size):
        masks[i] = table[words[i]]
        if words[i] >= n_closed:
            left[n_left] = i
            n_left += 1
    return n_left


def _divide(
    words: np.ndarray,
    drawn: np.ndarray,
    in_order: np.ndarray,
    boundaries: np.ndarray,
    pieces: np.ndarray,
    after_piece: Any,
    first: Any,
    after_value: Any,
    several: Any,
    left: np.ndarray,
    masks: np.ndarray,
    tied: np.ndarray,
) -> int:
    """Write masks to the places `left`, and the numbers of draws at a boundary to `tied`; say how many these are.

    The random words `drawn` become places on the line; `several` stands for a piece of it that masks share.
    """
    n_tied = 0
    for k in range(drawn.size):
        value = np.uint64(words[left[k]] - first)
        drawn[k] = (drawn[k] >> (np.uint64(64) - after_value)) | (value << after_value)
        mask = pieces[drawn[k] >> after_piece]
        if mask == several:
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
    """Write what one's-complement codes stand for after masks were added, in units of `step`."""
    for i in range(out.size):
        code = codes[i] ^ masks[i]
        out[i] = np.int16(code + (code < 0)) * step


class Loops(NamedTuple):
    """The functions above."""

    encode: Callable[..., int]
    look_up_words: Callable[..., int]
    divide: Callable[..., int]
    decode: Callable[..., None]


INTERPRETED = Loops(_encode, _look_up_words, _divide, _decode)
_FLOATS = ("float32", "float64")
# Of each loop in turn. Input may be read-only; all that is compiled is listed, so that no release waits for more.
_TYPES = (
    [
        f"int64(Array({kind}, 1, 'C', readonly={fixed}), {kind}, {kind}, {kind}, int32, int16[::1])"
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
    """Give the loops compiled, or None where numba is not installed, does not work or is switched off.

    ``NUMBA_DISABLE_JIT=1`` switches it off. The compiled code is kept beside this file or, where that cannot be
    written, in the user's cache.
    """
    try:
        import numba
    except Exception:
        # A numba that is broken, or does not fit the numpy that is installed, fails in many ways; numpy serves as well.
        return None
    if numba.config.DISABLE_JIT:
        return None
    try:
        return _compile(numba.njit, cache=True)
    except (RuntimeError, OSError):
        # There is no place to keep it, or no room: every process compiles for itself.
        return _compile(numba.njit, cache=False)


def _compile(njit: Callable[..., Any], **options: Any) -> Loops:
    compiled = (
        njit(types, nogil=True, error_model="numpy", **options)(loop)
        for types, loop in zip(_TYPES, INTERPRETED, strict=True)
    )
    return Loops(*compiled)


class CompiledBuffers(Buffers):
    """Working arrays whose long steps are compiled.

    Parameters
    ----------
    size : int
        Numbers in a block.
    code_dtype : dtype
        Of the codes.
    loops : Loops

    Attributes
    ----------
    left : ndarray of int32, shape (size,)
        The places of the words that decide nothing by themselves.
    """

    def __init__(self, size: int, code_dtype: npt.DTypeLike, loops: Loops) -> None:
        super().__init__(size, code_dtype)
        self.loops = loops
        self.left = np.empty(size, dtype=np.int32)

    def look_up_words(self, table: np.ndarray, n_closed: int) -> np.ndarray:
        """Fill `mask` with ``table[words]``, and give the places of the words from `n_closed` on."""
        return self.left[: self.loops.look_up_words(table, self.words, n_closed, self.mask, self.left)]

    def divide(self, left: np.ndarray, drawn: np.ndarray, shared: Shared) -> np.ndarray:
        """Fill ``mask[left]`` by where words and random bits fall on the line, and give the numbers of the undecided.

        The random words `drawn` become the places on the line.
        """
        tied = np.empty(left.size, dtype=np.intp)
        return tied[: self.loops.divide(self.words, drawn, *shared, OPEN, left, self.mask, tied)]

    def encode(self, grid: FixedPoint, values: np.ndarray, low: np.floating, high: np.floating) -> int:
        """Fill `signed` with one's-complement codes of values, moved to `low` or `high` where they lie outside.

        Both ends are less than `REACH` steps from 0. Says how many were moved; less than 0, and the codes mean nothing,
        if a value is NaN or infinite.
        """
        largest = np.int32((1 << (grid.n_bits - 1)) - 1)
        return self.loops.encode(values, low, high, values.dtype.type(1 / grid.step), largest, self.signed)

    def decode(self, grid: FixedPoint, out: np.ndarray) -> None:
        """Fill `out` with the numbers of the codes `signed` after `mask` was added."""
        self.loops.decode(self.signed, self.mask.view(np.int16), out.dtype.type(grid.step), out)
