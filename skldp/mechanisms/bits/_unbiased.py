r"""Randomized bits that give an unbiased number with the least worst-case variance at an exact epsilon.

The domain is mapped to [-1, 1]. A number becomes a sign and J magnitude bits, rounded at random without bias to the
grid of :math:`2^J` magnitudes from 0 to 1. J = 0 leaves only the sign, on the grid {-1, 1}, which is Duchi's mechanism.
Bits are randomized independently and decoded without bias.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from skldp._arrays import Floats, Ints
from skldp.domains._domain import Box
from skldp.laws._integers import IntegerLaw
from skldp.laws._numbers import BitsLaw, sampled_law
from skldp.laws._odds import product_above
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.bits._calibration import least_integer
from skldp.mechanisms.bits._fixed_point import BitDecoder, BitFeatures, code_moments, unbiased_bits
from skldp.mechanisms.bits._flip_laws import BitLaw, symmetric_law
from skldp.mechanisms.bits._mask_sampling import BitRandomizer

# A double holds the magnitudes of a grid with this many bits exactly.
_MOST_MAGNITUDE_BITS = 52


def worst_variance(losses: npt.ArrayLike, n_features: int = 1, n_sampled: int = 1) -> float:
    """Return the maximum over [-1, 1] of the variance of the unbiased number."""
    # Var(x) = (r / k) coth^2(c_0 / 2) (E[mag^2 | x] + sum_i w_i^2 / (4 sinh^2(c_i / 2))) - x^2, where
    # w_i = 2^(J - i) / (2^J - 1) and x is rounded at random to a neighbouring magnitude.
    sign, *magnitude = np.asarray(losses, dtype=np.float64)
    scale = n_features / n_sampled / math.tanh(sign / 2) ** 2
    return _outermost(scale, len(magnitude)) + scale * _spread(np.array(magnitude))


@lru_cache(maxsize=4096)
def least_variance_losses(budget: float, most_bits: int, n_features: int = 1, n_sampled: int = 1) -> tuple[float, ...]:
    """Split a budget over the sign and as many magnitude bits as pay, so that the worst variance is least."""
    best: tuple[float, ...] = (budget,)
    least = worst_variance([budget], n_features, n_sampled)
    for n_magnitude in range(1, min(most_bits - 1, _MOST_MAGNITUDE_BITS) + 1):
        losses = _split(budget, n_magnitude, n_features, n_sampled)
        variance = worst_variance(losses, n_features, n_sampled)
        if variance >= least:
            break
        best, least = losses, variance
    return best


def least_variance_sample(epsilon: float, most_bits: int, n_features: int) -> int:
    """Return the number of features to release per record that makes the worst variance of one least."""

    def variance(n_sampled: int) -> float:
        losses = least_variance_losses(epsilon / n_sampled, most_bits, n_features, n_sampled)
        return worst_variance(losses, n_features, n_sampled)

    return least_integer(variance, n_features)


def _split(budget: float, n_magnitude: int, n_features: int, n_sampled: int) -> tuple[float, ...]:
    def losses(share: float) -> Floats:
        return np.append(budget * share, _magnitude_losses(budget * (1 - share), n_magnitude))

    found = minimize_scalar(
        lambda share: worst_variance(losses(share), n_features, n_sampled),
        bounds=(1e-3, 1 - 1e-3),
        method="bounded",
        options={"xatol": 1e-5},
    )
    return tuple(float(loss) for loss in losses(found.x))


# Infinite losses and an infinite sinh are right at a large budget.
@np.errstate(over="ignore")
def _magnitude_losses(budget: float, n_magnitude: int) -> Floats:
    r"""Return the losses with the least sum of :math:`w_i^2 / (4 \sinh^2(c_i / 2))`."""
    log_weights = 2 * math.log(2) * np.arange(n_magnitude)

    def losses(log_multiplier: float) -> Floats:
        # With z = 1 / sinh^2(c / 2), a derivative is w^2 z sqrt(1 + z) / 4: solve z sqrt(1 + z) = mu by Newton.
        target = log_multiplier + log_weights
        log_z = np.where(target < 0, target, target / 1.5)
        for _ in range(6):
            z = np.exp(log_z)
            log_z -= (log_z + 0.5 * np.log1p(z) - target) / (1 + 0.5 * z / (1 + z))
        return 2 * np.arcsinh(np.exp(-log_z / 2))

    low, high = -1.0, 1.0
    while losses(low).sum() < budget:
        low *= 2
    while losses(high).sum() > budget:
        high *= 2
    found = losses(brentq(lambda log_multiplier: losses(log_multiplier).sum() - budget, low, high))
    return found * (budget / float(found.sum()))


@np.errstate(over="ignore")
def _spread(losses: Floats) -> float:
    n_magnitude = len(losses)
    weights = np.ldexp(1.0, n_magnitude - 1 - np.arange(n_magnitude)) / max(1, 2**n_magnitude - 1)
    return float((weights**2 / (4 * np.sinh(losses / 2) ** 2)).sum())


def _outermost(scale: float, n_magnitude: int) -> float:
    """Return the maximum over x of ``scale * E[mag^2 | x] - x^2``."""
    if n_magnitude == 0:
        return scale
    inner: float = 1 - 1 / (2**n_magnitude - 1)
    x = min(max(scale * (1 + inner) / 2, inner), 1.0)
    return scale * ((1 + inner) * x - inner) - x**2


def unbiased_bitrand(epsilon: float, bounds: Box, n_bits: int, n_sampled: int | None) -> "UnbiasedBitFlip":
    """Make the unbiased release of least worst-case variance whose exact loss is `epsilon`."""
    d = bounds.n_features
    k = least_variance_sample(epsilon, n_bits, d) if n_sampled is None else n_sampled
    law = symmetric_law(least_variance_losses(epsilon / k * (1 - 1e-12), n_bits, d, k))
    if (law.from_zero == np.uint64(2**63)).any():
        least = f"about {k * 2.0**-60:.3g}"
        raise ValueError(f"epsilon must be at least {least}, or a probability rounds to 1/2; got {epsilon!r}.")
    return UnbiasedBitFlip(bounds, law, epsilon, n_sampled=k)


@dataclass(frozen=True)
class UnbiasedBitFlip(BitFeatures):
    """Unbiased release through a sign and a few magnitude bits; ``bitrand`` makes the one of least variance."""

    law: BitLaw
    stated: float | None = None

    has_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.law.symmetric:
            raise ValueError("law must be symmetric; got one that is not.")

    @cached_property
    def center(self) -> Floats:
        """The middle of the bounds."""
        return self.bounds.center

    @property
    def n_magnitude_bits(self) -> int:
        """J."""
        return self.law.n_bits - 1

    @cached_property
    def decoder(self) -> BitDecoder:
        """Decoder of output codes to unbiased numbers, in units of half the width of the domain."""
        bits = unbiased_bits(self.law)
        n_magnitude = self.n_magnitude_bits
        weights = np.ldexp(1.0, n_magnitude - 1 - np.arange(n_magnitude)) / self._last_magnitude
        return BitDecoder(2 * bits[0] - 1, weights[:, None] * bits[1:], base=0.0 if n_magnitude else 1.0)

    def guarantee(self) -> PrivacyGuarantee:
        """Return the exact worst-case loss: every code is reachable, whatever the bounds."""
        per_feature = math.fsum(self.law.losses.max(axis=(1, 2))) * (1 + 2.0**-50)
        epsilon, basis = product_above(per_feature, self.n_sampled), "exact, over all pairs of codes"
        return PrivacyGuarantee(epsilon, per_feature=per_feature, stated=self.stated, basis=basis)

    @property
    def _last_magnitude(self) -> int:
        return max(1, (1 << self.n_magnitude_bits) - 1)

    @property
    def _code_dtype(self) -> np.dtype:
        return np.dtype(f"u{max(2, 1 << max(0, (self.law.n_bits - 1).bit_length() - 3))}")

    @cached_property
    def _randomizer(self) -> BitRandomizer:
        return BitRandomizer(self.law)

    @property
    def integer_law(self) -> IntegerLaw:
        """The law of a released feature's bits, or of all features where some are sampled."""
        return sampled_law(self.n_outputs, self.n_sampled, BitsLaw(tuple(np.asarray(self.law.from_zero).tolist())))

    def _draw_features(
        self, values: np.ndarray, features: Ints | None, noise: Noise, out: np.ndarray, workspace: Workspace
    ) -> None:
        center, radius = (end if features is None else end[features] for end in (self.center, self.bounds.radius))
        unit = np.subtract(values, center, out=workspace.take("unit", values.shape, np.float64), dtype=np.float64)
        unit /= radius
        lower, fraction, sign = self._grid(np.clip(unit, -1.0, 1.0, out=unit))
        # A fraction is below 1 and a multiple of 2^-53 of its scale: the threshold holds it, down to 2^-64.
        fraction *= 2.0**64
        lower += noise.bernoulli(fraction.astype(np.uint64))
        codes = workspace.take("codes", (values.size,), self._code_dtype)
        np.copyto(codes, lower.reshape(-1), casting="unsafe")
        codes |= sign.reshape(-1).astype(codes.dtype) << np.asarray(self.n_magnitude_bits, dtype=codes.dtype)
        self._randomizer.randomize(codes, noise, workspace)
        self.decoder.decode(codes, out.reshape(-1), workspace)
        out *= radius.astype(out.dtype)

    def _grid(self, unit: Floats) -> tuple[Floats, Floats, np.ndarray]:
        """Return the lower magnitude, the chance of the next one, and the sign bit, of numbers in [-1, 1]."""
        if self.n_magnitude_bits:
            position, sign = np.abs(unit) * self._last_magnitude, unit >= 0
        else:
            # The sign is rounded at random: magnitude 0 means -1 and magnitude 1 means 1.
            position, sign = (1 + unit) / 2, np.zeros(unit.shape, dtype=bool)
        lower = np.floor(position)
        return lower, position - lower, sign

    def _feature_moments(self, rows: Floats) -> tuple[Floats, Floats]:
        radius = self.bounds.radius
        lower, fraction, sign = self._grid(np.clip((rows - self.center) / radius, -1.0, 1.0))
        codes = lower.astype(np.uint64) | (sign.astype(np.uint64) << np.uint64(self.n_magnitude_bits))
        mean, square = code_moments(codes, self.law, self.decoder)
        # The next code is not reached where the fraction is 0; it may not even exist there.
        next_codes = np.where(fraction > 0, codes + np.uint64(1), codes)
        mean_next, square_next = code_moments(next_codes, self.law, self.decoder)
        mean += fraction * (mean_next - mean)
        square += fraction * (square_next - square)
        return radius * mean, radius**2 * square

    def _original_squares(self, squares: Floats) -> Floats:
        raise ValueError("`calibration` must be 'published' to estimate squares with debias=True; got 'exact'.")
