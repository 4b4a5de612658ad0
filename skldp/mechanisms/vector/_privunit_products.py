r"""PrivUnit for products: the release of an axis, whose mean is the matrix of products of a vector's numbers."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import special

from skldp._arrays import Floats, Ints
from skldp.domains._domain import Ball
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.vector._multivariate_laplace import (
    cap_height,
    cap_probability,
    log_mean_density,
    public_step,
    round_steps,
)
from skldp.mechanisms.vector._privunit import CapMechanism, best_caps, lift, replace_by_directions, square_within


@dataclass(frozen=True)
class PrivUnitProducts(CapMechanism):
    """Release of the products of all pairs of a vector's numbers, upper triangle by row: PrivUnit of an axis."""

    # Products of two different numbers are times sqrt 2, in multiples of `step`. v = (x, sqrt(1 - ||x||^2)) has D = d +
    # 1 dimensions; an axis a is drawn with probability p (`cap_threshold`) from the two caps |<a, v>| >= g, c together.
    # With q = E <a, v>^2 (`mean_square`) and m = (D q - 1) / (D - 1) (`slope`), p (1 - c) / ((1 - p) c) = e^epsilon and
    # E[(a a' - (1 - q) / (D - 1) I) / m] = v v'. The total variance (1 - 1 / D) (1 / m^2 - 1) is least where g^2 = q.

    mean_square: float = field(init=False, repr=False)
    slope: float = field(init=False, repr=False)

    _least_features: ClassVar[int] = 1
    _basis: ClassVar[str] = "density ratio of PrivUnit for products in real numbers, drawn in double precision"

    def _derived(self, epsilon: float) -> dict[str, Any]:
        # D in the notes.
        d, fall = self.n_features + 1, math.exp(-epsilon)

        def excess(height: float) -> float:
            inside, c = 2 * square_within(height, d), 2 * cap_probability(height, d)
            square = (fall / d + (1 - fall) * inside) / (fall + (1 - fall) * c)
            return math.log(square) - 2 * math.log1p(-height)

        threshold, c = best_caps(-math.log(fall), excess, lambda height: 2 * cap_probability(height, d))
        height = cap_height(c / 2, d)
        c, p, inside = 2 * cap_probability(height, d), threshold / 2.0**64, 2 * square_within(height, d)
        square = p / c * inside + (1 - p) / (1 - c) * (1 / d - inside)
        slope = (d * square - 1) / (d - 1)
        names = ("cap_threshold", "height", "cap_probability", "mean_square", "slope", "step")
        step = public_step(math.sqrt(1 / (d * (d + 2))) / slope)
        return dict(zip(names, (threshold, height, c, square, slope, step), strict=True))

    @cached_property
    def domain(self) -> Ball:
        return Ball(self.n_features, 1.0)

    @property
    def n_outputs(self) -> int:
        return self.n_features * (self.n_features + 1) // 2

    @property
    def most(self) -> float:
        """Bound of the magnitude of a released number."""
        return 1 / self.slope + self.step

    @property
    def mean_variance(self) -> float:
        """Variance in the mean of all orthogonal directions of the matrix of v: of x, for vectors of norm 1."""
        d = self.n_features + 1
        return (1 - 1 / d) * (1 / self.slope**2 - 1) / (d * (d + 1) / 2 - 1)

    def fourth_moments(self) -> tuple[float, float, float]:
        """Coefficients of trS trT + 2 trST, trS v'Tv + trT v'Sv + 4 v'STv and v'Sv v'Tv in E[a'Sa a'Ta]."""
        d, c, p, gamma = self.n_features + 1, self.cap_probability, self.cap_threshold / 2.0**64, 1 - self.height
        inside = gamma**3 * math.exp(log_mean_density(self.height, d)) + 3 / d * square_within(self.height, d + 2)
        fourth = p / c * 2 * inside + (1 - p) / (1 - c) * (3 / (d * (d + 2)) - 2 * inside)
        # E[w_i^2 w_j^2] and E[<a, v>^2 w_i^2], with the coordinates w across v.
        across = max(0.0, 1 - 2 * self.mean_square + fourth) / ((d - 1) * (d + 1))
        both = max(0.0, self.mean_square - fourth) / (d - 1)
        return across, both - across, fourth - 6 * both + 3 * across

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        np.copyto(out, self._products(lift(rows, 1.0, workspace)), casting="same_kind")

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        axes = lift(rows, 1.0, workspace)
        replace_by_directions(axes, self._coordinates(noise, len(rows)), 1.0, noise, workspace)
        released = self._products(axes)
        released[:, self._pairs[2]] -= (1 - self.mean_square) / self.n_features
        released *= 1 / (self.slope * self.step)
        # Rounding to a grid that no input changes removes the low bits of the axis.
        np.copyto(out, round_steps(released, self.step), casting="same_kind")

    def _coordinates(self, noise: Noise, n: int) -> Floats:
        """Draw <a, v>, of either sign alike, by inverting its distribution function within the caps or outside."""
        a, c = self.n_features / 2, self.cap_probability
        inside, uniform = noise.bernoulli(self.cap_threshold, n), noise.uniform(n)
        # The products of an axis do not depend on its sign.
        mass = np.where(inside, c * uniform, c + (1 - c) * uniform) / 2
        return np.asarray(1 - 2 * special.betaincinv(a, a, mass))

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints, Ints]:
        """Places of the two numbers of each product, and those of the squares among the products."""
        i, j = np.triu_indices(self.n_features)
        return i, j, np.flatnonzero(i == j)

    def _products(self, rows: Floats) -> Floats:
        """Return the products of all pairs of the first columns, those of two different ones times sqrt(2)."""
        i, j, squares = self._pairs
        products = np.take(rows, j, axis=1)
        products *= np.take(rows * math.sqrt(2), i, axis=1)
        products[:, squares] /= math.sqrt(2)
        return products
