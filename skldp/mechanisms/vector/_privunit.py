r"""PrivUnit: the best unbiased release of a direction, or of a vector of bounded norm, under plain LDP."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from skldp._arrays import Floats, as_numbers
from skldp._checks import check_dimension, check_positive
from skldp.domains._domain import Anywhere, Ball, Box
from skldp.domains._norms import row_norms, scaled_norms
from skldp.laws._closest_law import MOST_DRAWN, ClosestLaw
from skldp.laws._odds import least_count
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.vector._multivariate_laplace import (
    cap_height,
    cap_probability,
    gaussian_rows,
    log_mean_density,
    public_step,
    round_steps,
    unit_rows,
)

# Larger budgets are treated as this one: the cap of the plane has a height of about e^(-2 epsilon), which must stay a
# normal float, and at this budget the release is exact but for one answer in 2^64.
MAX_EPSILON = 150.0
# Below it the margin of the ratio would be a large part of epsilon.
MIN_EPSILON = 1e-8
# The relative error of cap_probability is below 1e-11; the density ratio keeps this distance from e^epsilon.
MARGIN = 2e-10
# The cosine from which on a Gaussian vector is too close to a row: one in 50 in the plane, none in many dimensions.
_CLOSE = 1 - 2.0**-11


def _log_mean(height: float, c: float, d: int, epsilon: float) -> float:
    """Return the log of the mean of <u, v> for a density ratio of e^epsilon."""
    fall = math.exp(-epsilon)
    return log_mean_density(height, d) + math.log(-math.expm1(-epsilon)) - math.log(fall + (1 - fall) * c)


def cap_log_ratio(threshold: int, c: float) -> float:
    """Return the log density ratio of a cap of probability c that is drawn with probability threshold / 2^64."""
    return math.log(threshold / (2**64 - threshold)) + math.log1p(-c) - math.log(c)


def best_caps(
    epsilon: float, excess: Callable[[float], float], probability: Callable[[float], float]
) -> tuple[int, float]:
    """Return the 64-bit threshold and probability of the caps of least variance, at the zero of `excess`."""
    best = optimize.brentq(lambda odds: excess(float(special.expit(odds))), -2 * epsilon - 12, 36.0, xtol=1e-10)
    c = probability(float(special.expit(best)))
    log_odds = epsilon + math.log(c) - math.log1p(-c)
    small = min(max(round(float(special.expit(-abs(log_odds))) * 2**64), 1), 2**63)
    threshold = 2**64 - small if log_odds >= 0 else small
    # The coin is an integer now; the caps have to meet the last digits of the ratio.
    return threshold, float(special.expit(math.log(threshold / (2**64 - threshold)) - epsilon + MARGIN))


def square_within(height: float, d: int) -> float:
    """Return the mean of the square of a coordinate of a uniform point, where it is within a cap."""
    return (1 - height) * math.exp(log_mean_density(height, d)) + cap_probability(height, d + 2) / d


def lift(rows: np.ndarray, radius: float, workspace: Workspace) -> Floats:
    """Return the points of the unit sphere whose first coordinates are rows of norm at most `radius`, over it."""
    lifted = workspace.take("rows", (len(rows), rows.shape[1] + 1), np.float64)
    inside = lifted[:, :-1]
    inside[...] = rows
    norms = row_norms(inside)
    # Rounding may make a norm at the radius slightly longer.
    longest = np.maximum(norms, radius)
    inside /= longest[:, None]
    # A product: 1 - ratio^2 would cancel next to the radius.
    ratio = norms / longest
    lifted[:, -1] = np.sqrt((1 - ratio) * (1 + ratio))
    return lifted


def replace_by_directions(rows: Floats, along: Floats, scale: float, noise: Noise, workspace: Workspace) -> None:
    """Replace rows by directions with given components along them, uniform across them, times a scale."""
    norms = scaled_norms(rows)
    # Nothing along and all across: every direction is equally likely, whose density every cap's ratio contains.
    zero = norms == 0
    along[zero], norms[zero] = 0.0, 1.0
    points, inner, across = _across(rows, norms, noise, workspace)
    of_points = np.sqrt(np.maximum((1 - along) * (1 + along), 0.0)) * scale / across
    points *= of_points[:, None]
    rows *= ((along * scale - of_points * inner) / norms)[:, None]
    rows += points


def _across(rows: Floats, norms: Floats, noise: Noise, workspace: Workspace) -> tuple[Floats, Floats, Floats]:
    """Return Gaussian vectors, redrawn if almost along their row, their components along rows, and the rest's norms."""
    points, lengths = gaussian_rows(noise, rows.shape, workspace)
    along = np.einsum("ij,ij->i", points, rows) / norms
    again = np.flatnonzero(np.abs(along) >= _CLOSE * lengths)
    while again.size:
        stream = noise.at(again, len(rows))
        points[again], lengths[again] = gaussian_rows(stream, (again.size, rows.shape[1]), Workspace())
        along[again] = np.einsum("ij,ij->i", points[again], rows[again]) / norms[again]
        again = again[np.abs(along[again]) >= _CLOSE * lengths[again]]
    return points, along, np.sqrt((lengths - along) * (lengths + along))


@dataclass(frozen=True)
class CapMechanism(RowMechanism):
    """Base class of releases of a direction by a cap, or two, drawn with the probability of a 64-bit integer."""

    n_features: int
    epsilon: float
    cap_threshold: int = field(init=False, repr=False)
    height: float = field(init=False, repr=False)
    cap_probability: float = field(init=False, repr=False)
    step: float = field(init=False, repr=False)

    # Larger than usual: the fixed cost of a call is a third of that of a usual block.
    block_cells: ClassVar[int] = 131_072
    _least_features: ClassVar[int]
    _basis: ClassVar[str]

    def __post_init__(self) -> None:
        check_dimension(self.n_features, least=self._least_features)
        check_positive("epsilon", self.epsilon)
        if self.epsilon < MIN_EPSILON:
            raise ValueError(f"epsilon must be at least {MIN_EPSILON} for {type(self).__name__}; got {self.epsilon!r}.")
        for name, value in self._derived(min(float(self.epsilon), MAX_EPSILON)).items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _derived(self, epsilon: float) -> dict[str, Any]:
        """Return the other fields for an epsilon."""

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee from the sampled integer and caps, rounded up; see :class:`PrivUnit`."""
        ratio = cap_log_ratio(self.cap_threshold, self.cap_probability) + MARGIN / 2
        return PrivacyGuarantee(ratio, stated=float(self.epsilon), basis=self._basis)


@dataclass(frozen=True)
class PrivUnit(CapMechanism):
    r"""Unbiased epsilon-LDP release of the direction of a vector, with the least variance.

    With probability p the release is a uniform point of the cap around the direction, else one of its complement,
    divided by the mean so that it is unbiased.

    Parameters
    ----------
    n_features : int
        Dimension d, at least 2.
    epsilon : float
        Budget of the vector (natural log), at least 1e-8; values above 150 count as 150.

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

    A row of zeros has no direction: it is released as a uniform one. The density of that lies between those inside and
    outside a cap, so epsilon holds for it too, and no row fails.

    The ratio is proved for the law of real numbers, with the integer and the cap in use. The sampler draws p exactly
    and all else in floating point: norms, products and sums in double precision whatever the rows come in, the words of
    the direction in double precision below 16 dimensions and in single precision above. The release is rounded to a
    grid that does not depend on the input; what double precision moves before that is below a millionth of a grid step.
    Open questions: the probability of a grid point that the cap's edge or the sphere itself crosses differs from
    that of real numbers by what such shifts move, and no proof covers the errors inside numpy's and scipy's functions.
    So the figure is not called exact.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications in private
    federated learning", 2018, Algorithm 1. Asi, Feldman and Talwar, "Optimal algorithms for mean estimation under
    local differential privacy", ICML 2022: no unbiased epsilon-LDP mechanism has a smaller worst-case variance.

    Examples
    --------
    >>> from skldp.mechanisms import PrivUnit
    >>> mechanism = PrivUnit(384, epsilon=5.0)
    >>> round(mechanism.guarantee().epsilon, 6), round(mechanism.gamma, 3), round(mechanism.scale, 2)
    (5.0, 0.094, 10.61)
    """

    scale: float = field(init=False, repr=False)

    _least_features: ClassVar[int] = 2
    _basis: ClassVar[str] = "density ratio of PrivUnit in real numbers, drawn in double precision"

    def _derived(self, epsilon: float) -> dict[str, Any]:
        d = self.n_features

        def excess(height: float) -> float:
            return _log_mean(height, cap_probability(height, d), d, epsilon) - math.log1p(-height)

        threshold, c = best_caps(epsilon, excess, lambda height: cap_probability(height, d))
        height = cap_height(c, d)
        c = cap_probability(height, d)
        mean = math.exp(_log_mean(height, c, d, cap_log_ratio(threshold, c)))
        step = public_step(math.sqrt(1 / d) / mean)
        return {"cap_threshold": threshold, "height": height, "cap_probability": c, "scale": 1 / mean, "step": step}

    @property
    def gamma(self) -> float:
        """The cap holds the points u with <u, v> at least this."""
        return 1 - self.height

    @cached_property
    def domain(self) -> Anywhere:
        """All vectors: their norms do not matter and are not released."""
        return Anywhere(self.n_features)

    @cached_property
    def device_law(self) -> ClosestLaw:
        """The law that a device samples, of directions."""
        return self.closest_law(self.n_features, 0)

    def closest_law(self, n_values: int, square_radius: int) -> ClosestLaw:
        """Return the integer law on the fewest directions, 2^8 to 2^16, whose variance is at most 1.01 times this one.

        It has the exact epsilon of integers; the cap's probability is that of the least variance. 2^16 directions
        suffice up to an epsilon of about 11, and those of more than 4,096 numbers are fewer.
        """
        for n in (2**power for power in range(8, 17) if n_values << power <= MOST_DRAWN):
            k = max(round(self.cap_probability * n), 1)
            miss_count = least_count(self.epsilon, n - k, n_own=k, n_counted=n - k)
            law = ClosestLaw(n_values, square_radius, n, k, miss_count)
            if law.largest**2 <= 1.01 * max(square_radius, 1) * self.scale**2:
                break
        return law

    def bias(self, values: np.ndarray) -> np.ndarray:
        """Return the mean release minus the direction: zero.

        Parameters
        ----------
        values : ndarray of shape (n, n_values)
            Rows.
        """
        return np.zeros_like(as_numbers(values))

    def variance(self, values: np.ndarray) -> np.ndarray:
        """Return the variance of every released coordinate, for rows `values` of any norm.

        Parameters
        ----------
        values : ndarray of shape (n, n_values)
            Rows of any norm.
        """
        squares = unit_rows(as_numbers(values)) ** 2
        along, across = self.second_moments()
        uniform = ~squares.any(axis=-1, keepdims=True)
        return np.where(uniform, self.scale**2 / self.n_features, along * squares + across * (1 - squares) - squares)

    def second_moments(self) -> tuple[float, float]:
        r"""Return the eigenvalues of :math:`E[z z^\top]` for the release z: along the input and across it.

        The second moments of released data are therefore an affine image of those of the clean directions,
        :math:`E[z z^\top] = (\text{along} - \text{across}) E[v v^\top] + \text{across}\, I`, which
        ``original_second_moment`` inverts.
        """
        d, c, p = self.n_features, self.cap_probability, self.cap_threshold / 2.0**64
        inside = square_within(self.height, d)
        square = p / c * inside + (1 - p) / (1 - c) * (1 / d - inside)
        return square * self.scale**2, (1 - square) / (d - 1) * self.scale**2

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """Return the second moment of the directions; a row of zeros counts as a uniform direction."""
        along, across = self.second_moments()
        return (second_moment - across * np.eye(self.n_features)) / (along - across)

    def log_likelihood(self, outputs: np.ndarray, values: np.ndarray) -> Floats:
        """Return the log density of released rows given rows `values`, relative to the uniform law on the sphere.

        Parameters
        ----------
        outputs, values : ndarray of shape (n, n_values)
            Released rows and true ones.
        """
        directions = unit_rows(np.atleast_2d(as_numbers(values)))
        cosine = np.einsum("...j,...j->...", outputs, directions) / self.scale
        c, p = self.cap_probability, self.cap_threshold / 2.0**64
        outside = math.log((2**64 - self.cap_threshold) / 2.0**64 / (1 - c))
        known = np.where(cosine >= self.gamma, math.log(p / c), outside)
        return np.where(directions.any(axis=-1), known, 0.0)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        # A row of zeros stays zero.
        unit_rows(rows, out=out)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        released = workspace.take("rows", rows.shape, np.float64)
        released[...] = rows
        self.replace_rows(released, noise, workspace)
        out[...] = released

    def replace_rows(self, rows: Floats, noise: Noise, workspace: Workspace) -> None:
        """Release rows in place. All is done in double precision, whatever the rows came in."""
        # In steps of the grid: a power of two costs no rounding.
        replace_by_directions(rows, self._coordinates(noise, len(rows)), self.scale / self.step, noise, workspace)
        round_steps(rows, self.step)

    def _coordinates(self, noise: Noise, n: int) -> Floats:
        """Draw <u, v> by inverting the distribution function of the cap, or of its complement."""
        a = (self.n_features - 1) / 2
        inside = noise.bernoulli(self.cap_threshold, n)
        mass = np.where(inside, self.cap_probability, 1 - self.cap_probability)
        distance = 2 * special.betaincinv(a, a, mass * noise.uniform(n))
        return cast("Floats", np.where(inside, 1 - distance, distance - 1))


@dataclass(frozen=True)
class PrivUnitBall(RowMechanism):
    """Release of a vector v R of norm at most R: PrivUnit of (v, sqrt(1 - ||v||^2)) without its last coordinate."""

    # Two opposite vectors of norm R keep their whole ratio, so no smaller epsilon holds.

    n_features: int
    epsilon: float
    radius: float
    sphere: PrivUnit = field(init=False, repr=False)

    block_cells: ClassVar[int] = PrivUnit.block_cells

    def __post_init__(self) -> None:
        check_dimension(self.n_features, least=2)
        check_positive("radius", self.radius)
        object.__setattr__(self, "sphere", PrivUnit(self.n_features + 1, self.epsilon))

    @cached_property
    def domain(self) -> Ball:
        return Ball(self.n_features, self.radius)

    def guarantee(self) -> PrivacyGuarantee:
        return self.sphere.guarantee()

    @cached_property
    def device_law(self) -> ClosestLaw:
        """The law that a device samples, of vectors in units of the radius; see :meth:`PrivUnit.closest_law`."""
        return self.sphere.closest_law(self.n_features, 1)

    def bias(self, values: np.ndarray) -> np.ndarray:
        values = as_numbers(values)
        return cast("np.ndarray", self.encode(values).rows - values)

    def variance(self, values: np.ndarray) -> np.ndarray:
        squares = (self.encode(as_numbers(values)).rows / self.radius) ** 2
        along, across = self.second_moments()
        return self.radius**2 * (along * squares + across * (1 - squares) - squares)

    def second_moments(self) -> tuple[float, float]:
        """Return :meth:`PrivUnit.second_moments` of the lifted direction, in units of the radius."""
        return self.sphere.second_moments()

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        along, across = self.second_moments()
        return (second_moment - across * self.radius**2 * np.eye(self.n_features)) / (along - across)

    def log_likelihood(self, outputs: np.ndarray, values: np.ndarray) -> Floats:
        values, outputs = self.encode(np.atleast_2d(as_numbers(values))).rows / self.radius, outputs / self.radius
        rest = np.sqrt(np.maximum(1 - row_norms(values) ** 2, 0))
        dropped = np.sqrt(np.maximum(self.sphere.scale**2 - row_norms(outputs) ** 2, 0))
        lifted = np.column_stack([values, rest])
        of_signs = [self.sphere.log_likelihood(np.column_stack([outputs, s * dropped]), lifted) for s in (1, -1)]
        result: Floats = np.logaddexp(*of_signs) - math.log(2)
        return result

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        lifted = lift(rows, self.radius, workspace)
        self.sphere.replace_rows(lifted, noise, workspace)
        # Post-processing of the rounded release: scale in double precision, then cast.
        np.multiply(lifted[:, :-1], self.radius, out=out, casting="same_kind")


@dataclass(frozen=True)
class ScaledRows(RowMechanism):
    """Release of rows within declared bounds, scaled to [-1, 1] and shortened to a radius; not mapped back."""

    inner: PrivUnit | PrivUnitBall
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)

    block_cells: ClassVar[int] = PrivUnit.block_cells

    def __post_init__(self) -> None:
        if self.domain.n_features != self.inner.n_features:
            raise ValueError(f"Bounds must be of {self.inner.n_features} features; got {self.domain.n_features}.")

    @cached_property
    def domain(self) -> Box:
        return Box(self.low, self.high)

    def guarantee(self) -> PrivacyGuarantee:
        return self.inner.guarantee()

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        return self.inner.original_second_moment(second_moment, mean)

    def bias(self, values: npt.ArrayLike) -> np.ndarray:
        return self.inner.bias(self._vectors(values))

    def variance(self, values: npt.ArrayLike) -> np.ndarray:
        return self.inner.variance(self._vectors(values))

    def log_likelihood(self, outputs: np.ndarray, values: npt.ArrayLike) -> Floats:
        return self.inner.log_likelihood(outputs, self._vectors(values))

    def _vectors(self, values: npt.ArrayLike) -> Floats:
        inside = self.domain.clip(np.atleast_2d(self.domain.as_rows(values))).rows
        return self._scaled(inside, Workspace())

    def _scaled(self, rows: np.ndarray, workspace: Workspace) -> Floats:
        """Scale rows within the bounds to vectors of the mechanism, in double precision."""
        scaled = np.subtract(rows, self.domain.center, out=workspace.take("scaled", rows.shape, np.float64))
        scaled /= self.domain.radius
        # Rounding may put values within the bounds beyond 1.
        np.clip(scaled, -1, 1, out=scaled)
        inside: Floats = self.inner.domain.clip(scaled).rows
        return inside

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        encoded = workspace.take("encoded", out.shape, np.float64)
        self.inner._encode(self._scaled(rows, workspace), encoded, workspace)
        out[...] = encoded

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        self.inner._draw(self._scaled(rows, workspace), noise, out, workspace)
