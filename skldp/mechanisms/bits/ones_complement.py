"""One's-complement codes: the quick way for short codes whose bits are flipped alike from 0 and from 1.

A number of sign-magnitude code (sign, magnitude) stands as the 16-bit integer `magnitude` where it is not negative and
as its complement where it is. Flipping the sign then is flipping all bits, so that a mask is still added by exclusive
or, and a code is a signed integer but for one subtraction: no table is needed to encode or to decode.
"""

import numpy as np

from skldp.mechanisms.bits.buffers import Buffers
from skldp.mechanisms.bits.fixed_point import SAFE_EXPONENT, FixedPoint

__all__ = ["LONGEST", "complement_codes", "decode_complement", "encode_complement", "is_exact"]

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
