r"""PrivUnit: the best unbiased release of a direction under plain local differential privacy."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.randomness import Noise
from skldp.mechanisms.vector.parameters import check_dimension, check_positive
from skldp.mechanisms.vector.scratch import Scratch
from skldp.mechanisms.vector.sphere import gaussians, public_step, row_norms, to_grid, unit_rows
from skldp.mechanisms.vector.spherical_cap import cap_height, cap_probability, log_mean_density

__all__ = ["PrivUnit"]

# Larger budgets are treated as this one: the cap of the plane has a height of about e^(-2 epsilon), which must stay a
# normal float, and at this budget the release is exact but for one answer in 2^64.
_MAX_EPSILON = 150.0
# Below it the margin of the ratio would be a large part of epsilon.
_MIN_EPSILON = 1e-8
# The relative error of cap_probability is below 1e-11; the density ratio keeps this distance from e^epsilon.
_MARGIN = 2e-10
# Below this dimension a Gaussian's component across the input can be so small that float32 loses it.
_FLOAT64_BELOW = 64


def _log_mean(height: float, c: float, d: int, epsilon: float) -> float:
    """Log of the mean of <u, v> where the density ratio is e^epsilon."""
    fall = math.exp(-epsilon)
    return log_mean_density(height, d) + math.log(-math.expm1(-epsilon)) - math.log(fall + (1 - fall) * c)


def _log_ratio(threshold: int, c: float) -> float:
    """Log density ratio of a cap of probability c that is drawn with probability threshold / 2^64."""
    return math.log(threshold / (2**64 - threshold)) + math.log1p(-c) - math.log(c)


def _calibrate(d: int, epsilon: float) -> tuple[int, float]:
    """Threshold of the 64-bit coin and height of the cap: least variance, ratio just below e^epsilon."""

    def excess(log_odds: float) -> float:
        height = float(special.expit(log_odds))
        return _log_mean(height, cap_probability(height, d), d, epsilon) - math.log(float(special.expit(-log_odds)))

    best = optimize.brentq(excess, -2 * epsilon - 12, 36.0, xtol=1e-10)
    c = cap_probability(float(special.expit(best)), d)
    log_odds = epsilon + math.log(c) - math.log1p(-c)
    small = min(max(round(float(special.expit(-abs(log_odds))) * 2**64), 1), 2**63)
    threshold = 2**64 - small if log_odds >= 0 else small
    # The coin is a whole number now, so the last digits of the ratio are the cap's to meet.
    c = float(special.expit(math.log(threshold / (2**64 - threshold)) - epsilon + _MARGIN))
    return threshold, cap_height(c, d)


def _across(unit: np.ndarray, noise: Noise, buffers: Scratch) -> tuple[np.ndarray, npt.NDArray[np.float64]]:
    """A vector in a uniform direction at right angles to each row, and its norm."""
    across = _gaussians_across(unit, noise, buffers)
    norms = row_norms(across)
    # Beside (1, 0) there is one coordinate left, which is 0 once in 2^25: a release of NaN would tell that input.
    while not norms.all():
        again = np.flatnonzero(norms == 0)
        across[again] = _gaussians_across(unit[again], noise, Scratch())
        norms[again] = row_norms(across[again])
    return across, norms


def _gaussians_across(unit: np.ndarray, noise: Noise, buffers: Scratch) -> np.ndarray:
    across = gaussians(noise, unit.shape, scratch=buffers)
    if unit.dtype != np.float32:
        drawn, across = across, buffers.take("across", unit.shape, unit.dtype)
        across[...] = drawn
    along = np.einsum("ij,ij->i", across, unit)[:, None]
    across -= np.multiply(along, unit, out=buffers.take("along", unit.shape, unit.dtype))
    return across


@dataclass(frozen=True)
class PrivUnit:
    r"""Release the direction of a vector: unbiased, exactly epsilon-LDP, with the least variance.

    With probability p the release is a uniform point of the cap around the direction, else one of its complement,
    divided by the mean so that it is unbiased.

    Parameters
    ----------
    n_features : int
        Dimension d, at least 2.
    epsilon : float
        Budget of the whole vector (natural log), at least 1e-8. Above 150 it is treated as 150.

    Attributes
    ----------
    cap_threshold : int
        The cap is drawn with probability p, exactly this integer over 2^64.
    height : float
        Height of the cap: 1 - gamma, kept apart because a large epsilon brings gamma to within rounding of 1.
    cap_probability : float
        c, the probability of the cap under the uniform law.
    scale : float
        1 / E<u, v>: the norm of every release (but for rounding).
    step : float
        Releases are multiples of this power of two.
    n_outputs : int
        `n_features`.

    Raises
    ------
    ValueError
        If `n_features` or `epsilon` is out of range.

    Notes
    -----
    With c the cap's probability and :math:`a = (d - 1) / 2`, the ratio of the density of a release under two inputs is

    .. math:: \frac{p}{1 - p} \cdot \frac{1 - c}{c} = e^\varepsilon, \qquad
              m(\gamma) = E\langle u, v \rangle = \frac{(1 - \gamma^2)^a}{2 a B(1/2, a)} \cdot
              \frac{e^\varepsilon - 1}{1 + (e^\varepsilon - 1) c}

    at most, and :math:`E\|u / m - v\|^2 = 1 / m^2 - 1`. Since :math:`m'(\gamma)` has the sign of
    :math:`m(\gamma) - \gamma`, the least variance lies where :math:`\gamma = m(\gamma)`, the only root. p is then
    rounded to 64 bits and c solved for again, so that the ratio lies between :math:`(1 - 10^{-9}) e^\varepsilon` and
    :math:`e^\varepsilon` for the numbers that are really sampled.

    The ratio is that of the law of real numbers. The sampler draws p exactly, the other numbers in floating point (the
    direction in single precision), and rounds the release to a grid that does not depend on the input. What remains:
    the probability of a grid point that the cap's edge crosses is that of a mixture of both densities, and no proof
    covers the rounding errors inside numpy's and scipy's functions.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications in private
    federated learning", 2018, Algorithm 1. Asi, Feldman and Talwar, "Optimal algorithms for mean estimation under
    local differential privacy", ICML 2022: no unbiased epsilon-LDP mechanism has a smaller worst-case variance.

    Examples
    --------
    >>> from skldp.mechanisms.vector.privunit import PrivUnit
    >>> mechanism = PrivUnit(384, epsilon=5.0)
    >>> round(mechanism.guarantee().epsilon, 6), round(mechanism.gamma, 3), round(mechanism.scale, 2)
    (5.0, 0.094, 10.61)
    """

    n_features: int
    epsilon: float
    cap_threshold: int = field(init=False, repr=False)
    height: float = field(init=False, repr=False)
    cap_probability: float = field(init=False, repr=False)
    scale: float = field(init=False, repr=False)
    step: float = field(init=False, repr=False)

    # What a call costs whatever its size is a third of a block of the usual size.
    blocks_at_once: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_dimension(self.n_features, least=2)
        check_positive("epsilon", self.epsilon)
        if self.epsilon < _MIN_EPSILON:
            raise ValueError(f"epsilon must be at least {_MIN_EPSILON} for PrivUnit. Got {self.epsilon!r} instead.")
        d, epsilon = self.n_features, min(float(self.epsilon), _MAX_EPSILON)
        threshold, height = _calibrate(d, epsilon)
        c = cap_probability(height, d)
        mean = math.exp(_log_mean(height, c, d, _log_ratio(threshold, c)))
        spread = math.sqrt(1 / d) / mean
        derived = {
            "cap_threshold": threshold,
            "height": height,
            "cap_probability": c,
            "scale": 1 / mean,
            "step": public_step(spread),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def gamma(self) -> float:
        """The cap holds the points u with <u, v> at least this."""
        return 1 - self.height

    @property
    def n_outputs(self) -> int:
        """Number of released columns."""
        return self.n_features

    def guarantee(self) -> PrivacyGuarantee:
        """Exact, of the integers and the cap that are sampled with, rounded up."""
        exact = _log_ratio(self.cap_threshold, self.cap_probability) + _MARGIN / 2
        return PrivacyGuarantee(exact, stated=float(self.epsilon), basis="exact (density ratio of PrivUnit)")

    def encode(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Rows divided by their norms.

        Raises
        ------
        ValueError
            If a row is zero: it has no direction.
        """
        return unit_rows(values, out=out)

    def make_buffers(self) -> Scratch:
        """Working arrays for calls of :meth:`sample`, one after the other."""
        return Scratch()

    def sample(
        self, values: np.ndarray, noise: Noise, out: np.ndarray | None = None, *, buffers: Scratch | None = None
    ) -> np.ndarray:
        """Release every row once.

        Parameters
        ----------
        values : ndarray of float32 or float64, shape (n, n_features)
            Their norms do not matter and are not released.
        noise : Noise
        out : ndarray, default=None
            Where to write; may be `values` itself.
        buffers : Scratch, default=None
            From :meth:`make_buffers`; None makes them.

        Returns
        -------
        ndarray of shape (n, n_features), dtype of `values`

        Raises
        ------
        ValueError
            If a row is zero.
        """
        kind = values.dtype if self.n_features >= _FLOAT64_BELOW else np.dtype(np.float64)
        scratch = Scratch() if buffers is None else buffers
        unit = self.encode(values.astype(kind, copy=False), out=scratch.take("unit", values.shape, kind))
        along = self._coordinates(noise, len(values))
        across, norms = _across(unit, noise, scratch)
        length = np.sqrt(np.maximum((1 - along) * (1 + along), 0.0)) * self.scale / norms
        across *= length[:, None].astype(kind)
        unit *= (along * self.scale)[:, None].astype(kind)
        # Never into the scratch, which the next block overwrites.
        released = np.add(across, unit, out=out if out is not None and out.dtype == kind else None)
        to_grid(released, self.step)
        if out is None:
            return released.astype(values.dtype, copy=False)
        if released is not out:
            out[...] = released
        return out

    def bias(self, values: np.ndarray) -> np.ndarray:
        """The mean release less the direction: zero."""
        return np.zeros_like(values)

    def variance(self, values: np.ndarray) -> np.ndarray:
        """Variance of every released coordinate, for rows `values` of any norm."""
        squares = self.encode(np.asarray(values, dtype=np.float64)) ** 2
        along, across = self.second_moments()
        return along * squares + across * (1 - squares) - squares

    def second_moments(self) -> tuple[float, float]:
        r"""Eigenvalues of :math:`E[z z^\top]` for the release z: along the input and across it.

        The second moments of released data are therefore an affine image of those of the clean directions,
        :math:`E[z z^\top] = (\text{along} - \text{across}) E[v v^\top] + \text{across}\, I`, which can be inverted.

        Returns
        -------
        along, across : float
        """
        d, c, p = self.n_features, self.cap_probability, self.cap_threshold / 2.0**64
        height = self.height
        inside = self.gamma * math.exp(log_mean_density(height, d)) + cap_probability(height, d + 2) / d
        square = p / c * inside + (1 - p) / (1 - c) * (1 / d - inside)
        return square * self.scale**2, (1 - square) / (d - 1) * self.scale**2

    def log_likelihood(self, outputs: np.ndarray, values: np.ndarray) -> npt.NDArray[np.float64]:
        """Log density of released rows given the rows `values`, relative to the uniform law on the sphere."""
        p = self.cap_threshold / 2.0**64
        cosine = (
            np.einsum("...j,...j->...", outputs, self.encode(np.atleast_2d(np.asarray(values, dtype=np.float64))))
            / self.scale
        )
        c = self.cap_probability
        return np.where(
            cosine >= self.gamma, math.log(p / c), math.log((2**64 - self.cap_threshold) / 2.0**64 / (1 - c))
        )

    def _coordinates(self, noise: Noise, n: int) -> npt.NDArray[np.float64]:
        """Draw <u, v> by inverting the distribution function of the cap, or of its complement."""
        a = (self.n_features - 1) / 2
        inside = noise.bernoulli(self.cap_threshold, n)
        mass = np.where(inside, self.cap_probability, 1 - self.cap_probability)
        distance = 2 * special.betaincinv(a, a, mass * noise.uniform(n))
        return np.where(inside, 1 - distance, distance - 1)
