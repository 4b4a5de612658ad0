r"""Sign-magnitude fixed-point codes of numbers: encoding, decoding and what one bit weighs.

A number becomes one integer code of l bits. The most significant is the sign (1 when x >= 0, so for both zeros); m
integer bits and l - m - 1 fraction bits follow. m may be negative, or l and more: it only places the binary point.

Short codes are also written as one's complements, which is quicker: a number of the code (sign, magnitude) stands as
the 16-bit integer `magnitude` where it is not negative and as its complement where it is. Flipping the sign then is
flipping all bits, so that a mask is still added by exclusive or, and a code is a signed integer but for one
subtraction: no table is needed to encode or to decode.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp._arrays import as_numbers
from skldp._checks import check_positive, check_whole
from skldp.mechanisms._rows import Workspace

__all__ = [
    "LONGEST",
    "FixedPoint",
    "complement_codes",
    "decode_complement",
    "encode_complement",
    "integer_bits",
    "is_exact",
]

_MANTISSA_BITS = {np.dtype(np.float32): 24, np.dtype(np.float64): 53}
# A power of two with a smaller exponent than this multiplies without leaving the range of the type.
_SAFE_EXPONENT: dict[np.dtype, int] = {np.dtype(np.float32): 100, np.dtype(np.float64): 900}
# Bits of the longest codes that are written as one's complements, and of the masks that are drawn by one word: more
# leave more of the word's values undecided than a second draw costs.
LONGEST = 12


def integer_bits(bound: float) -> int:
    """Give the least m with ``2**m >= bound``, which may be negative.

    Examples
    --------
    >>> from skldp.mechanisms._bits.fixed_point import integer_bits
    >>> integer_bits(1.0), integer_bits(0.25), integer_bits(5.5)
    (0, -2, 3)
    """
    check_positive("bound", bound)
    fraction, exponent = math.frexp(bound)
    return exponent - 1 if fraction == 0.5 else exponent


def is_exact(grid: "FixedPoint", dtype: np.dtype) -> bool:
    """Whether short codes of this grid are made of and turned into numbers of a type by an exact multiplication."""
    return grid.n_bits <= LONGEST and abs(grid.n_bits - 1 - grid.n_integer_bits) <= _SAFE_EXPONENT[dtype]


def complement_codes(codes: np.ndarray, n_bits: int) -> npt.NDArray[np.uint16]:
    """Sign-magnitude masks of `n_bits`, uint16, as the masks that do the same to one's-complement codes."""
    top = np.uint16(1 << (n_bits - 1))
    magnitude = codes & (top - np.uint16(1))
    return np.where(codes & top, ~magnitude, magnitude)


def encode_complement(
    grid: "FixedPoint", values: np.ndarray, extent: float, scratch: np.ndarray, workspace: Workspace
) -> npt.NDArray[np.int16]:
    """Encode numbers as :meth:`FixedPoint.encode` does, as one's complements."""
    largest, kind = (1 << (grid.n_bits - 1)) - 1, values.dtype.type
    codes = workspace.take("signed", values.shape, np.int16)
    negative = np.less(values, 0, out=workspace.take("flags", values.shape, np.bool_))
    if extent >= 2.0**15 * grid.step:
        values = np.clip(values, kind(-grid.largest), kind(grid.largest), out=scratch)
    np.multiply(values, kind(1 / grid.step), out=scratch)
    np.copyto(codes, scratch, casting="unsafe")
    # What lies between the largest magnitude and the first that is too large is rounded down to it anyway.
    if grid.largest + grid.step <= extent < 2.0**15 * grid.step:
        np.clip(codes, np.int16(-largest), np.int16(largest), out=codes)
    codes -= negative.view(np.int8)
    return codes


def decode_complement(grid: "FixedPoint", codes: npt.NDArray[np.int16], out: np.ndarray, workspace: Workspace) -> None:
    """Fill `out`, float32 or float64, with the numbers of one's-complement codes; codes are overwritten."""
    codes -= np.right_shift(codes, 15, out=workspace.take("minus_one", codes.shape, np.int16))
    np.copyto(out, codes)
    np.multiply(out, out.dtype.type(grid.step), out=out)


@dataclass(frozen=True)
class FixedPoint:
    r"""Sign-magnitude binary encoding.

    Parameters
    ----------
    n_bits : int
        l, from 2 to 64.
    n_integer_bits : int
        m, such that the largest and the smallest weight are finite doubles.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Bit 0 is the sign; bit i in 1..l-1 is (Equation 1)

    .. math:: b_i = \lfloor 2^{i - m} |x| \rfloor \bmod 2,\qquad \mathcal{E}(b) = (2 b_0 - 1) \sum_i b_i 2^{m - i}

    Magnitudes of :math:`2^m` and more, which the equation would wrap, saturate at :math:`2^m - 2^{m-l+1}`.

    References
    ----------
    BitRand, Equation 1 and Lemma 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._bits.fixed_point import FixedPoint
    >>> grid = FixedPoint(n_bits=4, n_integer_bits=0)
    >>> codes = grid.encode(np.array([-1.0, -0.3, 0.0, 0.6]))
    >>> [f"{code:04b}" for code in codes]
    ['0111', '0010', '1000', '1100']
    >>> grid.decode(codes)
    array([-0.875, -0.25 ,  0.   ,  0.5  ])
    """

    n_bits: int
    n_integer_bits: int

    def __post_init__(self) -> None:
        check_whole("n_bits", self.n_bits, least=2, most=64)
        check_whole("n_integer_bits", self.n_integer_bits, least=self.n_bits - 1075, most=1022)

    def __getstate__(self) -> dict[str, int]:
        return {"n_bits": self.n_bits, "n_integer_bits": self.n_integer_bits}

    @property
    def code_dtype(self) -> np.dtype:
        """The smallest unsigned integer type that holds a code."""
        return np.dtype(f"u{1 << max(0, (self.n_bits - 1).bit_length() - 3)}")

    @cached_property
    def step(self) -> float:
        """The weight of the last bit."""
        return math.ldexp(1.0, self.n_integer_bits - self.n_bits + 1)

    @cached_property
    def largest(self) -> float:
        """The largest magnitude that is encoded, as a double (rounded where n_bits > 54)."""
        return math.ldexp(float(2 ** (self.n_bits - 1) - 1), self.n_integer_bits - self.n_bits + 1)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Weights of bits 1 to l-1."""
        return np.ldexp(1.0, self.n_integer_bits - np.arange(1, self.n_bits))

    @property
    def sensitivities(self) -> npt.NDArray[np.float64]:
        """How far one flipped bit can move the decoded number: twice 2^m for the sign, its weight for another bit."""
        return np.append(math.ldexp(1.0, self.n_integer_bits + 1), self.weights)

    def encode(
        self, values: npt.ArrayLike, out: np.ndarray | None = None, scratch: np.ndarray | None = None
    ) -> np.ndarray:
        """Encode numbers, rounding magnitudes down and saturating them.

        Parameters
        ----------
        values : array-like of float32 or float64
            Finite.
        out : ndarray of an unsigned integer type with at least `n_bits` bits, default=None
            Same shape; None allocates one of `code_dtype`.
        scratch : ndarray, default=None
            Shape and dtype of `values`, overwritten; may be `values` itself.

        Returns
        -------
        ndarray of unsigned integers, same shape

        Raises
        ------
        ValueError
            If a value is NaN or infinite.
        """
        x = np.asarray(values)
        if x.dtype not in _MANTISSA_BITS:
            x = as_numbers(values)
        codes: np.ndarray = np.empty(x.shape, dtype=self.code_dtype) if out is None else out
        positive = np.greater_equal(x, 0)
        magnitude = np.abs(x, out=np.empty_like(x) if scratch is None else scratch)
        # The maximum is NaN if any value is, so that one pass refuses both.
        largest = float(magnitude.max(initial=0.0))
        if not largest < np.inf:
            raise ValueError("values must be finite. Got NaN or infinity instead.")
        shift = self.n_bits - 1 - self.n_integer_bits
        if self.n_bits - 1 <= _MANTISSA_BITS[x.dtype] and abs(shift) <= _SAFE_EXPONENT[x.dtype]:
            self._scale(magnitude, largest, shift, codes)
        else:
            self._scale_far(magnitude, shift, codes)
        sign = positive.astype(codes.dtype)
        sign <<= self.n_bits - 1
        codes |= sign
        return codes

    def decode(self, codes: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
        """Give the numbers that codes stand for.

        Parameters
        ----------
        codes : array-like of unsigned integers
        dtype : dtype, default=float64

        Returns
        -------
        ndarray, same shape
            A magnitude with more bits than the type holds is rounded.
        """
        code = np.asarray(codes).astype(np.uint64)
        top = np.uint64(1 << (self.n_bits - 1))
        magnitude = np.ldexp((code & (top - np.uint64(1))).astype(np.float64), self.n_integer_bits - self.n_bits + 1)
        return np.where(code >= top, magnitude, -magnitude).astype(dtype)

    def reachable(self, low: npt.ArrayLike, high: npt.ArrayLike) -> npt.NDArray[np.uint64]:
        """Magnitude codes that numbers from `low` to `high` reach, for either sign.

        Parameters
        ----------
        low, high : array-like of shape (n,)

        Returns
        -------
        ndarray of uint64, shape (n, 2, 2)
            ``[:, s]`` is the first and the last magnitude with sign bit s; the first exceeds the last where the
            sign is never reached.
        """
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        mask = np.uint64((1 << (self.n_bits - 1)) - 1)
        ends = np.empty((low.size, 2, 2), dtype=np.uint64)
        ends[:, 0, 0] = self.encode(np.maximum(-high, 0.0)).astype(np.uint64) & mask
        ends[:, 0, 1] = self.encode(np.maximum(-low, 0.0)).astype(np.uint64) & mask
        ends[:, 1, 0] = self.encode(np.maximum(low, 0.0)).astype(np.uint64) & mask
        ends[:, 1, 1] = self.encode(np.maximum(high, 0.0)).astype(np.uint64) & mask
        never = np.array([1, 0], dtype=np.uint64)
        ends[low >= 0, 0] = never
        ends[high < 0, 1] = never
        return ends

    def _scale(self, magnitude: np.ndarray, largest: float, shift: int, codes: np.ndarray) -> None:
        """Write magnitudes, which are overwritten, as integers, where their type holds every one of these."""
        top = 1 << (self.n_bits - 1)
        kind = magnitude.dtype.type
        limit = largest * 2.0**shift
        if limit < top:
            np.multiply(magnitude, kind(2.0**shift), out=magnitude)
            np.copyto(codes, magnitude, casting="unsafe")
        elif limit < 2 * top <= 1 << (8 * codes.itemsize):
            # A minimum of integers is several times as fast as one of floats, but needs a type that holds them.
            np.multiply(magnitude, kind(2.0**shift), out=magnitude)
            np.copyto(codes, magnitude, casting="unsafe")
            np.minimum(codes, codes.dtype.type(top - 1), out=codes)
        else:
            np.minimum(magnitude, kind(self.largest), out=magnitude)
            np.multiply(magnitude, kind(2.0**shift), out=magnitude)
            np.copyto(codes, magnitude, casting="unsafe")

    def _scale_far(self, magnitude: np.ndarray, shift: int, codes: np.ndarray) -> None:
        """The same for integers, or for exponents, that the type of the magnitudes does not hold."""
        top = 1 << (self.n_bits - 1)
        with np.errstate(over="ignore"):
            np.ldexp(magnitude, shift, out=magnitude)
        beyond = magnitude >= top
        magnitude[beyond] = 0
        np.copyto(codes, magnitude, casting="unsafe")
        codes[beyond] = top - 1
