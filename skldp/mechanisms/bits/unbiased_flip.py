r"""Randomized bits that give an unbiased number with the least worst-case variance at an exact epsilon.

The domain is mapped to [-1, 1]. A number becomes a sign and J magnitude bits, rounded at random to the coarse grid of
:math:`2^J` magnitudes from 0 to 1, so that nothing is lost on average; J = 0 leaves the sign alone, on the grid
{-1, 1}, which is Duchi's mechanism. Bits are randomized on their own and decoded without bias.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp.mechanisms.bits.buffers import Buffers
from skldp.mechanisms.bits.decoding import BitDecoder, code_moments, unbiased_bits
from skldp.mechanisms.bits.flip_laws import BitLaw, symmetric_law
from skldp.mechanisms.bits.mask_sampling import BitRandomizer
from skldp.mechanisms.bits.row_release import RowRelease
from skldp.mechanisms.bits.unbiased_allocation import least_variance_costs, least_variance_sample
from skldp.mechanisms.declared_bounds import Inside
from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.randomness import Noise

__all__ = ["UnbiasedBitFlip", "unbiased_bitrand"]


def unbiased_bitrand(
    epsilon: float,
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    n_bits: int,
    n_released: int | None,
) -> "UnbiasedBitFlip":
    """Make the unbiased release of least worst-case variance whose exact level is `epsilon`.

    Parameters
    ----------
    epsilon : float
        Budget of a record.
    low, high : ndarray of shape (n_features,)
    n_bits : int
        The most bits of a code.
    n_released : int or None
        Features released per record; None takes the number with the least variance.

    Raises
    ------
    ValueError
        If epsilon is so small that every probability rounds to one half.
    """
    n_drawn = least_variance_sample(epsilon, n_bits, len(low)) if n_released is None else n_released
    costs = least_variance_costs(epsilon / n_drawn * (1 - 1e-12), n_bits, len(low), n_drawn)
    law = symmetric_law(costs)
    if (law.from_zero == np.uint64(2**63)).any():
        raise ValueError(
            "epsilon is too small: a probability rounds to one half. "
            f"The least usable one here is about {n_drawn * 2.0**-60:.3g}. Got {epsilon!r} instead."
        )
    return UnbiasedBitFlip(law, low, high, n_drawn, stated=epsilon)


@dataclass(frozen=True, eq=False)
class UnbiasedBitFlip(RowRelease):
    """Unbiased release through a sign and a few magnitude bits.

    :func:`unbiased_bitrand` makes the one of least variance.

    Parameters
    ----------
    law : BitLaw
        Symmetric; of the sign and J magnitude bits.
    low, high : ndarray of shape (n_features,)
        The declared domain; values beyond are clipped.
    n_released : int or None
        Features released per record; the others come out at the centre of their bounds.
    stated : float, default=None
        The epsilon that was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms.bits.unbiased_flip import unbiased_bitrand
    >>> release = unbiased_bitrand(4.0, np.zeros(3), np.ones(3), 10, None)
    >>> print(release.guarantee())
    epsilon 4 per record (stated 4, per feature 2); exact, over all pairs of codes
    >>> bool(np.allclose(release.bias([[0.0, 0.3, 1.0]]), 0.0))
    True
    """

    law: BitLaw
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    n_released: int | None = None
    stated: float | None = None

    def __post_init__(self) -> None:
        self._check_domain()
        if not self.law.symmetric:
            raise ValueError("law must be symmetric. Got one that is not instead.")

    @property
    def n_magnitude_bits(self) -> int:
        """J."""
        return self.law.n_bits - 1

    @cached_property
    def decoder(self) -> BitDecoder:
        """From output codes to unbiased numbers in units of half the width of the domain."""
        bits = unbiased_bits(self.law)
        n_magnitude = self.n_magnitude_bits
        weights = np.ldexp(1.0, n_magnitude - 1 - np.arange(n_magnitude)) / self._last_magnitude
        return BitDecoder(2 * bits[0] - 1, weights[:, None] * bits[1:], base=0.0 if n_magnitude else 1.0)

    def guarantee(self) -> PrivacyGuarantee:
        """Give the exact worst-case loss: every code is reachable, whatever the bounds."""
        per_feature = math.fsum(self.law.costs.max(axis=(1, 2)))
        return PrivacyGuarantee(
            self.n_drawn * per_feature * (1 + 2.0**-50),
            per_feature=per_feature,
            stated=self.stated,
            basis="exact, over all pairs of codes",
        )

    def encode(self, values: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """What a release is on average: the values, within the domain."""
        x = self._check(values)
        return np.clip(x, self.low.astype(x.dtype), self.high.astype(x.dtype), out=out)

    @property
    def _last_magnitude(self) -> int:
        return max(1, 2**self.n_magnitude_bits - 1)

    @property
    def _half(self) -> npt.NDArray[np.float64]:
        return (self.high - self.low) / 2

    @property
    def _centre(self) -> npt.NDArray[np.float64]:
        return self.low + self._half

    @property
    def _code_dtype(self) -> np.dtype:
        return np.dtype(f"u{max(2, 1 << max(0, (self.law.n_bits - 1).bit_length() - 3))}")

    @cached_property
    def _randomizer(self) -> BitRandomizer:
        return BitRandomizer(self.law)

    def _grid(
        self, unit: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], np.ndarray]:
        """Lower magnitude, the chance of the next one, and the sign bit, of numbers in [-1, 1]."""
        if self.n_magnitude_bits:
            position, sign = np.abs(unit) * self._last_magnitude, unit >= 0
        else:
            # The sign is itself what is rounded at random: magnitude 0 stands for -1 and magnitude 1 for 1.
            position, sign = (1 + unit) / 2, np.zeros(unit.shape, dtype=bool)
        lower = np.floor(position)
        return lower, position - lower, sign

    def _unit(self, x: np.ndarray, columns: np.ndarray | None) -> npt.NDArray[np.float64]:
        centre, half = (end if columns is None else end[columns] for end in (self._centre, self._half))
        unit = np.subtract(x, centre, dtype=np.float64)
        unit /= half
        return np.clip(unit, -1.0, 1.0, out=unit)

    def _release(
        self, inside: Inside, columns: np.ndarray | None, noise: Noise, out: np.ndarray, buffers: Buffers
    ) -> None:
        lower, fraction, sign = self._grid(self._unit(inside.rows, columns))
        # A fraction is below 1 and a multiple of 2^-53 of its scale: the threshold holds it, down to 2^-64.
        fraction *= 2.0**64
        lower += noise.bernoulli(fraction.astype(np.uint64))
        codes = buffers.codes
        np.copyto(codes, lower.reshape(-1), casting="unsafe")
        codes |= sign.reshape(-1).astype(codes.dtype) << np.asarray(self.n_magnitude_bits, dtype=codes.dtype)
        self._randomizer.randomize(codes, noise, buffers)
        self.decoder.decode(codes, out.reshape(-1), buffers)
        centre, half = (end.astype(out.dtype) for end in (self._centre, self._half))
        out *= half if columns is None else half[columns]
        out += centre if columns is None else centre[columns]

    def _moments(self, values: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        lower, fraction, sign = self._grid(self._unit(self._check(values).astype(np.float64), None))
        codes = lower.astype(np.uint64) | (sign.astype(np.uint64) << np.uint64(self.n_magnitude_bits))
        mean, square = code_moments(codes, self.law, self.decoder)
        # The next code is not reached where the fraction is 0; it may not even exist there.
        mean_next, square_next = code_moments(
            np.where(fraction > 0, codes + np.uint64(1), codes), self.law, self.decoder
        )
        mean += fraction * (mean_next - mean)
        square += fraction * (square_next - square)
        square *= self.n_outputs / self.n_drawn
        variance = self._half**2 * (square - mean**2)
        mean = self._centre + self._half * mean
        return mean, variance + mean**2
