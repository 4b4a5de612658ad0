"""Turn randomized codes back into numbers: each bit contributes one of two values, looked up many bits at a time."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bits.fixed_point import FixedPoint
from skldp.mechanisms._bits.flip_laws import BitLaw
from skldp.mechanisms._rows import SampledFeatures, Workspace

__all__ = [
    "BitDecoder",
    "BitFeatures",
    "code_moments",
    "fixed_point_decoder",
    "original_squares",
    "plain_bits",
    "unbiased_bits",
]

_TABLE_BITS = 16


def plain_bits(n_bits: int) -> npt.NDArray[np.float64]:
    """What an output bit of 0 and of 1 counts as in the published decoding, shape (n_bits, 2): 0 and 1."""
    return np.tile([0.0, 1.0], (n_bits, 1))


def unbiased_bits(law: BitLaw) -> npt.NDArray[np.float64]:
    r"""What an output bit of 0 and of 1 counts as, such that its mean is the input bit, shape (n_bits, 2).

    Notes
    -----
    .. math:: \hat b = \frac{b' - P(0 \to 1)}{P(1 \to 1) - P(0 \to 1)}
    """
    zero = law.ones[0]
    # The integers differ, but the difference of their doubles may still be 0: take it before rounding.
    apart = np.where(law.from_one >= law.from_zero, law.from_one - law.from_zero, law.from_zero - law.from_one)
    if not apart.all():
        lost = np.flatnonzero(apart == 0).tolist()
        raise ValueError(
            "debias=True needs every bit to tell something, but bits "
            f"{lost} come out alike from 0 and from 1. Use calibration='exact', or another epsilon or alpha."
        )
    gain = np.where(law.from_one >= law.from_zero, 1.0, -1.0) * apart.astype(np.float64) * 2.0**-64
    return np.stack([-zero / gain, (1 - zero) / gain], axis=1)


def fixed_point_decoder(encoding: FixedPoint, bits: npt.NDArray[np.float64]) -> "BitDecoder":
    """Give the decoder of sign-magnitude codes whose output bits count as `bits`, of shape (n_bits, 2)."""
    return BitDecoder(signs=2 * bits[0] - 1, contributions=encoding.weights[:, None] * bits[1:])


def code_moments(
    codes: np.ndarray, law: BitLaw, decoder: "BitDecoder"
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean and mean square of the decoded number, given codes before randomization."""
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


def original_squares(squares: npt.NDArray[np.float64], law: BitLaw, decoder: "BitDecoder") -> npt.NDArray[np.float64]:
    r"""From the mean square of the unbiased decoded number to that of the number which was encoded.

    Notes
    -----
    With flips as likely from 0 as from 1, neither the square of the sign's estimate nor the variance of the magnitude's
    depends on the code:

    .. math:: \mathbb{E}[\hat x^2 \mid x] = \frac{1}{(1 - 2 q_0)^2} \Bigl(x^2
              + \sum_{i \ge 1} \frac{w_i^2 q_i (1 - q_i)}{(1 - 2 q_i)^2}\Bigr)
    """
    flips = law.ones[0, 1:]
    variance = float((np.diff(decoder.contributions, axis=1)[:, 0] ** 2 * flips * (1 - flips)).sum())
    return squares / float(decoder.signs[1]) ** 2 - variance


def _sums(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    sums = np.zeros(1)
    for pair in values:
        sums = (sums[:, None] + pair).reshape(-1)
    return sums


@dataclass(frozen=True, eq=False)
class BitDecoder:
    """A number for every code: a factor of the sign bit times a sum over the other bits.

    Parameters
    ----------
    signs : ndarray of shape (2,)
        Factor for an output sign bit of 0 and of 1.
    contributions : ndarray of shape (n_bits - 1, 2)
        What the other bits add to the magnitude when they come out 0 and 1.
    base : float, default=0.0
        What the magnitude starts from.
    """

    signs: npt.NDArray[np.float64]
    contributions: npt.NDArray[np.float64]
    base: float = 0.0

    @cached_property
    def magnitude_tables(self) -> tuple[npt.NDArray[np.float64], ...]:
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
    """Base of the releases of features by their bits: mean and variance from those of a feature's code."""

    def bias(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of the released numbers minus the values, for values of shape (n, n_features)."""
        rows = np.asarray(self._as_rows(values), dtype=np.float64)
        mean, _ = self._feature_moments(self.domain.clip(rows).rows)
        return mean - rows if self.center is None else self.center + mean - rows

    def variance(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released numbers, for values of shape (n, n_features)."""
        rows = np.asarray(self._as_rows(values), dtype=np.float64)
        mean, square = self._feature_moments(self.domain.clip(rows).rows)
        return square * (self.n_outputs / self.n_sampled) - mean**2

    @abstractmethod
    def _feature_moments(
        self, rows: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean and mean square of M(x) - c of every feature, for rows inside the domain."""
