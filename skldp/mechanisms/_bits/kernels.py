"""The long steps of a release as loops, which numba compiles where it is installed (the extra ``fast``).

numpy's passes over a block are the reference: for the same noise the loops give the same bits. What one loop does takes
numpy several passes, between which threads wait for the interpreter's lock; a compiled loop runs without it.

Compiled loops do not check bounds: whoever calls them has made their arrays of one length.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

__all__ = ["INTERPRETED", "UNDECIDED", "Loops", "compiled_loops", "loops_for"]

# Marks, in tables of masks, the entries that do not decide on one; masks have 12 bits, or are complements of 11.
UNDECIDED = np.uint16(1 << 15)
# For fewer numbers than this a release takes less than a millisecond, and importing numba half a second.
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
    """Write masks to the places `left`, and the numbers of draws at a boundary to `tied`; say how many these are.

    The random words `drawn` become points of the residual law; `undecided` marks entries of the guide table in which
    one mask follows another.
    """
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
    """Write what one's-complement codes stand for after masks were added, in units of `step`."""
    for i in range(out.size):
        code = codes[i] ^ masks[i]
        out[i] = np.int16(code + (code < 0)) * step


class Loops(NamedTuple):
    """The functions above."""

    encode: Callable[..., None]
    look_up_masks: Callable[..., int]
    invert_residual: Callable[..., int]
    decode: Callable[..., None]


INTERPRETED = Loops(_encode, _look_up_masks, _invert_residual, _decode)
_FLOATS = ("float32", "float64")
# Of each loop in turn. Input may be read-only; all that is compiled is listed, so that no release waits for more.
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


def loops_for(size: int) -> Loops | None:
    """The compiled loops for steps over `size` numbers, and None for few of them or without numba."""
    return compiled_loops() if size >= _FEWEST else None


def _compile(njit: Callable[..., Any], **options: Any) -> Loops:
    compiled = (
        njit(types, nogil=True, error_model="numpy", **options)(loop)
        for types, loop in zip(_TYPES, INTERPRETED, strict=True)
    )
    return Loops(*compiled)
