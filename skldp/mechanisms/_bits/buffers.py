"""One's-complement codes: the quick way for short codes whose bits are flipped alike from 0 and from 1.

A number of sign-magnitude code (sign, magnitude) stands as the 16-bit integer `magnitude` where it is not negative and
as its complement where it is. Flipping the sign then is flipping all bits, so that a mask is still added by exclusive
or, and a code is a signed integer but for one subtraction: no table is needed to encode or to decode.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bits.fixed_point import SAFE_EXPONENT, FixedPoint

__all__ = [
    "LONGEST",
    "OPEN",
    "Buffers",
    "Shared",
    "complement_codes",
    "decode_complement",
    "encode_complement",
    "is_exact",
]


# What stands in a table for no mask: these have 12 bits, or are complements of 11.
OPEN = np.uint16(1 << 15)
# An index takes eight bytes, as much as all other arrays together: it is made piece by piece.
_PIECE = 131_072


class Shared(NamedTuple):
    """The values of the first word that masks share, as a line on which one mask follows the other.

    uint64 numbers are places on it.

    Parameters
    ----------
    masks : ndarray of uint16, shape (n,)
        In their order.
    boundaries : ndarray of uint64, shape (n - 1,)
        The places in which one mask ends and the next begins; a draw in such a place is undecided.
    pieces : ndarray of uint16
        The mask of every piece of the line, and ``OPEN`` for those with a boundary in them.
    after_piece : uint64
        The bits of a place that follow on the number of its piece.
    first : uint16
        The first of the values.
    after_value : uint64
        The bits of a place that follow on its value, counted from the first.
    """

    masks: npt.NDArray[np.uint16]
    boundaries: npt.NDArray[np.uint64]
    pieces: npt.NDArray[np.uint16]
    after_piece: np.uint64
    first: np.uint16
    after_value: np.uint64


class Buffers:
    """Working arrays, one block long, that all blocks of one call share.

    Parameters
    ----------
    size : int
        Numbers in a block.
    code_dtype : dtype
        Of the codes.

    Attributes
    ----------
    codes : ndarray of `code_dtype`, shape (size,)
    words, mask : ndarray of uint16, shape (size,)
    signed : ndarray of int16, shape (size,)
    flags : ndarray of bool, shape (size,)
    index : ndarray of intp, at most of shape (131072,)
        What a table is looked up with, piece by piece; `take` would copy indices of another type to a new array.
    """

    def __init__(self, size: int, code_dtype: npt.DTypeLike) -> None:
        self.codes = np.empty(size, dtype=code_dtype)
        self.words = np.empty(size, dtype=np.uint16)
        self.mask = np.empty(size, dtype=np.uint16)
        self.signed = np.empty(size, dtype=np.int16)
        self.flags = np.empty(size, dtype=bool)
        self.index = np.empty(min(size, _PIECE), dtype=np.intp)

    def of(self, size: int) -> "Buffers":
        """The same buffers, `size` long."""
        if size == self.codes.size:
            return self
        shorter = copy(self)
        vars(shorter).update((name, held[:size]) for name, held in vars(self).items() if isinstance(held, np.ndarray))
        return shorter

    def look_up(self, table: np.ndarray, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Fill `out` with ``table[places]``, for places within the table, or below 0 and counted from its end."""
        for start in range(0, places.size, self.index.size):
            piece = slice(start, start + self.index.size)
            index = self.index[: places[piece].size]
            np.copyto(index, places[piece], casting="unsafe")
            # The mode matters for its speed alone: no index is further out of range.
            table.take(index, out=out[piece], mode="wrap")
        return out

    def look_up_words(self, table: np.ndarray, n_closed: int) -> np.ndarray:
        """Fill `mask` with ``table[words]``, and give the places of the words from `n_closed` on."""
        self.look_up(table, self.words, self.mask)
        return np.greater_equal(self.words, n_closed, out=self.flags).nonzero()[0]

    def divide(self, left: np.ndarray, drawn: np.ndarray, shared: Shared) -> np.ndarray:
        """Fill ``mask[left]`` by where words and random bits fall on the line, and give the numbers of the undecided.

        The random words `drawn` become the places on the line.
        """
        drawn >>= np.uint64(64) - shared.after_value
        drawn |= (self.words[left] - shared.first).astype(np.uint64) << shared.after_value
        masks = shared.pieces.take((drawn >> shared.after_piece).astype(np.intp))
        near = (masks == OPEN).nonzero()[0]
        below = np.searchsorted(shared.boundaries, drawn[near])
        masks[near] = shared.masks[below]
        self.mask[left] = masks
        return near[shared.boundaries.take(below, mode="clip") == drawn[near]]


# Of these codes and of their masks; more bits in one draw leave more of it undecided than a second draw costs.
LONGEST = 12


def is_exact(grid: FixedPoint, dtype: np.dtype) -> bool:
    """Whether short codes of this grid are made of and turned into numbers of a type by an exact multiplication."""
    return grid.n_bits <= LONGEST and abs(grid.n_bits - 1 - grid.n_integer_bits) <= SAFE_EXPONENT[dtype]


def complement_codes(codes: np.ndarray, n_bits: int) -> np.ndarray:
    """Sign-magnitude masks of `n_bits`, uint16, as the masks that do the same to one's-complement codes."""
    top = np.uint16(1 << (n_bits - 1))
    magnitude = codes & (top - np.uint16(1))
    return np.where(codes & top, ~magnitude, magnitude)


def encode_complement(
    grid: FixedPoint, values: np.ndarray, extent: float, scratch: np.ndarray, buffers: Buffers
) -> np.ndarray:
    """Encode numbers as :meth:`FixedPoint.encode` does, to ``buffers.signed``.

    Parameters
    ----------
    grid : FixedPoint
        One that :func:`is_exact`.
    values : ndarray of float32 or float64, shape (n,)
        Finite.
    extent : float
        No magnitude is larger.
    scratch : ndarray of the same shape and dtype
        Overwritten; may be `values` itself.
    buffers : Buffers
        Of n numbers.

    Returns
    -------
    ndarray of int16, shape (n,)
    """
    negative, codes, kind = buffers.flags, buffers.signed, values.dtype.type
    np.less(values, 0, out=negative)
    # What lies between the largest magnitude and the first that is too large is rounded down to it anyway.
    if extent >= grid.largest + grid.step:
        values = np.clip(values, kind(-grid.largest), kind(grid.largest), out=scratch)
    np.multiply(values, kind(1 / grid.step), out=scratch)
    np.copyto(codes, scratch, casting="unsafe")
    return np.subtract(codes, negative.view(np.int8), out=codes)


def decode_complement(grid: FixedPoint, codes: np.ndarray, out: np.ndarray, buffers: Buffers) -> np.ndarray:
    """Fill `out`, float32 or float64, with the numbers of codes as they are published; codes are overwritten."""
    minus_one = np.right_shift(codes, 15, out=buffers.mask.view(np.int16))
    codes -= minus_one
    np.copyto(out, codes)
    return np.multiply(out, out.dtype.type(grid.step), out=out)
