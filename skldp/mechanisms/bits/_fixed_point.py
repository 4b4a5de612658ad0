r"""Sign-magnitude fixed-point codes of numbers: encoding, decoding of randomized codes, and weights of bits.

A number becomes one integer code of l bits. The most significant is the sign (1 when x >= 0, so for both zeros); m
integer bits and l - m - 1 fraction bits follow. m may be negative, or l and more: it only places the binary point.

Short codes are also written as one's complements, which is faster: the code (sign, magnitude) is the 16-bit integer
`magnitude` if it is not negative, else its complement. Flipping the sign then flips all bits, so that masks are still
applied by exclusive or, and a code is a signed integer up to one subtraction: no table is needed to encode or decode.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Words, as_numbers
from skldp._checks import check_integer, check_positive
from skldp.domains._domain import Box
from skldp.mechanisms._rows import SampledFeatures, Workspace
from skldp.mechanisms.bits._flip_laws import BitLaw

_MANTISSA_BITS = {np.dtype(np.float32): 24, np.dtype(np.float64): 53}
# Multiplying by a power of two up to this exponent stays within the range of the type.
_SAFE_EXPONENT: dict[np.dtype, int] = {np.dtype(np.float32): 100, np.dtype(np.float64): 900}
# Bits of the longest codes written as one's complements, and of masks drawn by one word. With more bits, undecided
# values cost more than a second draw.
LONGEST = 12


def integer_bits(bound: float) -> int:
    """Return the least m with ``2**m >= bound``, which may be negative."""
    check_positive("bound", bound)
    fraction, exponent = math.frexp(bound)
    return exponent - 1 if fraction == 0.5 else exponent


def is_exact(grid: "FixedPoint", dtype: np.dtype) -> bool:
    """Return whether one exact multiplication converts between short codes of this grid and numbers of a type."""
    return grid.n_bits <= LONGEST and abs(grid.n_bits - 1 - grid.n_integer_bits) <= _SAFE_EXPONENT[dtype]


def complement_codes(codes: np.ndarray, n_bits: int) -> npt.NDArray[np.uint16]:
    """Convert sign-magnitude masks of `n_bits` to the equivalent masks of one's-complement codes, uint16."""
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
    # Values between the largest magnitude and the next one are rounded down to it anyway.
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
    >>> from skldp.mechanisms.bits._fixed_point import FixedPoint
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
        check_integer("n_bits", self.n_bits, least=2, most=64)
        check_integer("n_integer_bits", self.n_integer_bits, least=self.n_bits - 1075, most=1022)

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
    def weights(self) -> Floats:
        """Weights of bits 1 to l-1."""
        return np.ldexp(1.0, self.n_integer_bits - np.arange(1, self.n_bits))

    @property
    def sensitivities(self) -> Floats:
        """Largest change of the decoded number by one flipped bit: twice 2^m for the sign, else the bit's weight."""
        return np.append(math.ldexp(1.0, self.n_integer_bits + 1), self.weights)

    def encode(
        self, values: npt.ArrayLike, out: np.ndarray | None = None, scratch: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the codes of numbers, with magnitudes rounded down and saturated.

        Parameters
        ----------
        values : array-like of float32 or float64
            Finite.
        out : ndarray of an unsigned integer type with at least `n_bits` bits, default=None
            Same shape; None allocates one of `code_dtype`.
        scratch : ndarray, default=None
            Shape and dtype of `values`, overwritten; may be `values` itself.

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
            raise ValueError("values must be finite; got NaN or infinity.")
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
        """Return the numbers of codes, rounded where the type holds fewer bits.

        Parameters
        ----------
        codes : array-like of unsigned integers
            Codes of numbers.
        dtype : dtype, default=float64
            Type of the numbers.
        """
        code = np.asarray(codes).astype(np.uint64)
        top = np.uint64(1 << (self.n_bits - 1))
        magnitude = np.ldexp((code & (top - np.uint64(1))).astype(np.float64), self.n_integer_bits - self.n_bits + 1)
        return np.where(code >= top, magnitude, -magnitude).astype(dtype)

    def reachable(self, codes: np.ndarray) -> Words:
        """Return the magnitudes of numbers between two codes, for either sign.

        Parameters
        ----------
        codes : ndarray of unsigned integers, shape (n, 2)
            Codes of the least and of the largest number.

        Returns
        -------
        ndarray of uint64, shape (n, 2, 2)
            ``[:, s]`` is the first and the last magnitude with sign bit s; the first exceeds the last where the
            sign is never reached.
        """
        top = np.uint64(1 << (self.n_bits - 1))
        wide = codes.astype(np.uint64)
        positive, magnitudes = wide >= top, wide & (top - np.uint64(1))
        ends = np.empty((len(codes), 2, 2), dtype=np.uint64)
        ends[:, 0] = np.where(positive, np.uint64(0), magnitudes)[:, ::-1]
        ends[:, 1] = np.where(positive, magnitudes, np.uint64(0))
        never = np.array([1, 0], dtype=np.uint64)
        ends[positive[:, 0], 0] = never
        ends[~positive[:, 1], 1] = never
        return ends

    def _scale(self, magnitude: np.ndarray, largest: float, shift: int, codes: np.ndarray) -> None:
        """Write magnitudes, which are overwritten, as integers, where their type holds every one of these."""
        top = 1 << (self.n_bits - 1)
        kind = magnitude.dtype.type
        limit = largest * 2.0**shift
        # A minimum of integers is several times as fast as one of floats, but needs a type that holds them.
        as_integers = limit < 2 * top <= 1 << (8 * codes.itemsize)
        if limit >= top and not as_integers:
            np.minimum(magnitude, kind(self.largest), out=magnitude)
        np.multiply(magnitude, kind(2.0**shift), out=magnitude)
        np.copyto(codes, magnitude, casting="unsafe")
        if limit >= top and as_integers:
            np.minimum(codes, codes.dtype.type(top - 1), out=codes)

    def _scale_far(self, magnitude: np.ndarray, shift: int, codes: np.ndarray) -> None:
        """Write magnitudes as integers, for exponents that their type does not hold."""
        top = 1 << (self.n_bits - 1)
        with np.errstate(over="ignore"):
            np.ldexp(magnitude, shift, out=magnitude)
        beyond = magnitude >= top
        magnitude[beyond] = 0
        np.copyto(codes, magnitude, casting="unsafe")
        codes[beyond] = top - 1


_TABLE_BITS = 16


def plain_bits(n_bits: int) -> Floats:
    """Return the scores of output bits in the published decoding, 0 and 1, shape (n_bits, 2)."""
    return np.tile([0.0, 1.0], (n_bits, 1))


def unbiased_bits(law: BitLaw) -> Floats:
    """Return (bit - P(0 -> 1)) / (P(1 -> 1) - P(0 -> 1)) for output bits 0 and 1, shape (n_bits, 2)."""
    zero = law.ones[0]
    # The integers differ, but the difference of their doubles may still be 0: take it before rounding.
    apart = np.where(law.from_one >= law.from_zero, law.from_one - law.from_zero, law.from_zero - law.from_one)
    if not apart.all():
        lost = np.flatnonzero(apart == 0).tolist()
        way_out = "use calibration='exact', or another epsilon or alpha"
        raise ValueError(f"Every bit must depend on its input for debias=True; got bits {lost} that do not: {way_out}.")
    gain = np.where(law.from_one >= law.from_zero, 1.0, -1.0) * apart.astype(np.float64) * 2.0**-64
    return np.stack([-zero / gain, (1 - zero) / gain], axis=1)


def fixed_point_decoder(encoding: FixedPoint, bits: Floats) -> "BitDecoder":
    """Return the decoder of sign-magnitude codes whose output bits count as `bits`, of shape (n_bits, 2)."""
    return BitDecoder(signs=2 * bits[0] - 1, contributions=encoding.weights[:, None] * bits[1:])


def code_moments(codes: np.ndarray, law: BitLaw, decoder: "BitDecoder") -> tuple[Floats, Floats]:
    """Return the mean and mean square of the decoded number, given codes before randomization."""
    ones, n_bits = law.ones, law.n_bits
    magnitude, spread = np.full(codes.shape, decoder.base), np.zeros(codes.shape)
    for place in range(1, n_bits):
        bit = (codes >> np.asarray(n_bits - 1 - place, dtype=codes.dtype)).astype(np.intp) & 1
        zero, one = decoder.contributions[place - 1]
        chance = ones[bit, place]
        magnitude = magnitude + zero + chance * (one - zero)
        spread = spread + chance * (1 - chance) * (one - zero) ** 2
    positive = ones[(codes >> np.asarray(n_bits - 1, dtype=codes.dtype)).astype(np.intp), 0]
    minus, plus = decoder.signs
    sign = minus + positive * (plus - minus)
    sign_square = minus**2 + positive * (plus**2 - minus**2)
    return sign * magnitude, sign_square * (spread + magnitude**2)


def original_squares(squares: Floats, law: BitLaw, decoder: "BitDecoder") -> Floats:
    """Invert E[x'^2] = (x^2 + sum_i w_i^2 q_i (1 - q_i) / (1 - 2 q_i)^2) / (1 - 2 q_0)^2, for a symmetric law."""
    flips = law.ones[0, 1:]
    variance = float((np.diff(decoder.contributions, axis=1)[:, 0] ** 2 * flips * (1 - flips)).sum())
    return squares / float(decoder.signs[1]) ** 2 - variance


def _sums(values: Floats) -> Floats:
    sums = np.zeros(1)
    for pair in values:
        sums = (sums[:, None] + pair).reshape(-1)
    return sums


@dataclass(frozen=True, eq=False)
class BitDecoder:
    """Decoder of codes: a factor of the sign bit times a sum over the other bits."""

    signs: Floats  # (2,)
    contributions: Floats  # (n_bits - 1, 2)
    base: float = 0.0

    @cached_property
    def magnitude_tables(self) -> tuple[Floats, ...]:
        """Magnitude of every value of successive runs of bits, the most significant first; the sign adds `base`."""
        with_sign = np.vstack([np.full((1, 2), self.base), self.contributions])
        runs = np.array_split(with_sign, -(-len(with_sign) // _TABLE_BITS))
        return tuple(_sums(run) for run in runs)

    @cached_property
    def tables(self) -> dict[np.dtype, np.ndarray]:
        """Decoded number of every code, by dtype, where one table holds them all; empty otherwise."""
        if len(self.magnitude_tables) > 1:
            return {}
        half = len(self.magnitude_tables[0]) // 2
        numbers = self.magnitude_tables[0] * np.repeat(self.signs, half)
        return {np.dtype(kind): numbers.astype(kind) for kind in (np.float32, np.float64)}

    @cached_property
    def complement_tables(self) -> dict[np.dtype, np.ndarray]:
        """The same by one's-complement codes, those below 0 counted from the end."""
        half = 1 << len(self.contributions)
        return {kind: np.concatenate([table[half:], table[half - 1 :: -1]]) for kind, table in self.tables.items()}

    def decode_complement(self, codes: np.ndarray, out: np.ndarray, workspace: Workspace) -> np.ndarray:
        """Fill `out` with the numbers of one's-complement codes, which are short."""
        return workspace.look_up(self.complement_tables[out.dtype], codes, out)

    def decode(self, codes: np.ndarray, out: np.ndarray, workspace: Workspace) -> np.ndarray:
        """Fill `out`, float32 or float64, with the numbers of codes; both one-dimensional."""
        table = self.tables.get(out.dtype)
        if table is not None:
            return workspace.look_up(table, codes, out)
        rest, places = (workspace.take(name, codes.shape, np.uint64) for name in ("rest", "places"))
        magnitude, part = (workspace.take(name, codes.shape, np.float64) for name in ("magnitude", "part"))
        np.copyto(rest, codes)
        magnitude[...] = 0
        for run in reversed(self.magnitude_tables):
            np.bitwise_and(rest, np.uint64(len(run) - 1), out=places)
            magnitude += workspace.look_up(run, places, part)
            rest >>= np.uint64(len(run).bit_length() - 1)
        np.right_shift(codes, np.asarray(len(self.contributions), dtype=codes.dtype), out=places)
        magnitude *= workspace.look_up(self.signs, places, part)
        np.copyto(out, magnitude, casting="same_kind")
        return out


@dataclass(frozen=True)
class BitFeatures(SampledFeatures):
    """Base class of releases of features by their bits: mean and variance from those of a feature's code."""

    # Each step over a block is long enough for other threads to run meanwhile; the working arrays, nine bytes a number
    # (13 with compiled steps), still stay in a third-level cache.
    block_cells: ClassVar[int] = 262_144

    bounds: Box

    @cached_property
    def domain(self) -> Box:
        """The bounds."""
        return self.bounds

    def bias(self, values: npt.ArrayLike) -> Floats:
        """Return the mean of the released numbers minus the values, for values of shape (n, n_features)."""
        rows = np.asarray(self._as_rows(values), dtype=np.float64)
        mean, _ = self._feature_moments(self.domain.clip(rows).rows)
        return mean - rows if self.center is None else self.center + mean - rows

    def variance(self, values: npt.ArrayLike) -> Floats:
        """Return the variance of the released numbers, for values of shape (n, n_features)."""
        rows = np.asarray(self._as_rows(values), dtype=np.float64)
        mean, square = self._feature_moments(self.domain.clip(rows).rows)
        return square * (self.n_outputs / self.n_sampled) - mean**2

    @abstractmethod
    def _feature_moments(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the mean and mean square of M(x) - c of every feature, for rows inside the domain."""
