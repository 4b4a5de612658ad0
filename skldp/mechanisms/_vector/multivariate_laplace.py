r"""The multivariate Laplace mechanism: privacy in proportion to the Euclidean distance."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from skldp._arrays import as_numbers
from skldp._checks import check_dimension, check_positive
from skldp.mechanisms._domain import Anywhere, Ball, own_vectors
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._norms import nearest_rows
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms._vector.sphere import directions, gaussians, public_step, to_grid

__all__ = ["MultivariateLaplace", "gamma_variates"]


# Marsaglia and Tsang's constant: below 1 - 0.0331 x^4 no logarithm is needed to accept.
_SQUEEZE = 0.0331


def gamma_variates(noise: Noise, shape: float, n: int) -> npt.NDArray[np.float64]:
    r"""Independent draws of the Gamma law of scale 1, by rejection in double precision.

    Shapes: returns (n,).

    Notes
    -----
    With :math:`a` the shape, :math:`b = a - 1/3`, x standard normal, U uniform and :math:`v = (1 + x / \sqrt{9 b})^3`,
    the number :math:`b v` is kept where

    .. math:: v > 0, \qquad \ln U < \frac{x^2}{2} + b (1 - v + \ln v),

    and then follows the law exactly. More than 95% are kept, and a number costs a fraction of inverting the
    distribution function.

    References
    ----------
    Marsaglia and Tsang, "A simple method for generating gamma variables", ACM Transactions on Mathematical Software,
    2000.

    Examples
    --------
    >>> from skldp.mechanisms import noise_from
    >>> from skldp.mechanisms._vector.multivariate_laplace import gamma_variates
    >>> gamma_variates(noise_from(), 3.0, 5).shape
    (5,)
    """
    if not 1 <= shape < math.inf:
        raise ValueError(f"shape must be a finite number >= 1. Got {shape!r} instead.")
    b = shape - 1 / 3
    drawn = np.empty(n)
    waiting = np.arange(n)
    while waiting.size:
        stream = noise.at(waiting, n)
        x = gaussians(stream, (waiting.size, 1), np.float64)[:, 0]
        v = (1 + x / math.sqrt(9 * b)) ** 3
        uniform = stream.uniform(waiting.size)
        square = x * x
        keep = (uniform < 1 - _SQUEEZE * square * square) & (v > 0)
        unsure = np.flatnonzero((v > 0) & ~keep)
        cube = v[unsure]
        keep[unsure] = np.log(uniform[unsure]) < square[unsure] / 2 + b * (1 - cube + np.log(cube))
        drawn[waiting[keep]] = b * v[keep]
        waiting = waiting[~keep]
    return drawn


@dataclass(frozen=True)
class MultivariateLaplace(RowMechanism):
    r"""Add noise of density proportional to :math:`e^{-\varepsilon \|z\| / \Delta}`.

    Parameters
    ----------
    n_features : int
        Dimension d, at least 1.
    epsilon : float
        Budget per unit of Euclidean distance between two inputs (natural log).
    sensitivity : float, default=1.0
        :math:`\Delta`, how many units of distance one unit of distance of the inputs makes here.
    radius : float, default=None
        Declares that the inputs have norms of at most this; longer rows are shortened to it.
    vocabulary : ndarray of shape (n_words, n_features), default=None
        Public vectors, the nearest of which is released instead of the noisy one.

    Attributes
    ----------
    step : float
        Releases are multiples of this power of two.
    n_outputs : int
        `n_features`.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the vocabulary has another width or values that are not finite.

    Notes
    -----
    .. math:: w = x + \kappa, \qquad \|\kappa\| \sim \Gamma(d, \Delta / \varepsilon),

    in a uniform direction; :math:`\varepsilon` per unit of distance by the triangle inequality, and
    :math:`(d + 1) \Delta^2 / \varepsilon^2` is the variance of a coordinate. That is the law of real numbers. Floats
    are drawn (the direction in single precision from 16 dimensions on), added in double precision whatever the rows
    come in, and the sum is rounded to a grid that depends on d, epsilon and the sensitivity alone; where a coordinate
    is some 2^53 grid steps or more, its own low bits are coarser than the grid and are not hidden by it: declare a
    `radius`.

    References
    ----------
    Feyisetan, Balle, Drake and Diethe, "Privacy- and utility-preserving textual analysis via calibrated multivariate
    perturbations", WSDM 2020. Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021,
    Claim 3 and its footnote.

    Examples
    --------
    >>> from skldp.mechanisms import MultivariateLaplace
    >>> print(MultivariateLaplace(300, epsilon=5.0, radius=1.0).guarantee())
    epsilon 5 per unit of distance (stated 5, over the declared diameter 10); multivariate Laplace in real numbers
    """

    n_features: int
    epsilon: float
    sensitivity: float = 1.0
    radius: float | None = None
    vocabulary: np.ndarray | None = None

    # A block of fewer rows would cost more in calls than it gains by staying in the cache.
    block_cells: ClassVar[int] = 131_072

    def __post_init__(self) -> None:
        check_dimension(self.n_features, least=1)
        check_positive("epsilon", self.epsilon)
        check_positive("sensitivity", self.sensitivity)
        if self.radius is not None:
            check_positive("radius", self.radius)
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", own_vectors("vocabulary", self.vocabulary, self.n_features))

    @cached_property
    def domain(self) -> Anywhere | Ball:
        """The ball of the radius, or all vectors: a vocabulary is chosen from after the noise, not before."""
        return Anywhere(self.n_features) if self.radius is None else Ball(self.n_features, self.radius)

    @property
    def n_outputs(self) -> int:
        """The number of features."""
        return self.n_features

    @property
    def step(self) -> float:
        """Releases are multiples of this power of two."""
        return public_step(math.sqrt(self.n_features + 1) * self.sensitivity / self.epsilon)

    def guarantee(self) -> PrivacyGuarantee:
        """Per unit of distance, over a diameter of twice the radius where one is declared."""
        diameter = None if self.radius is None else 2 * self.radius
        epsilon = float(self.epsilon)
        basis = "multivariate Laplace in real numbers"
        return PrivacyGuarantee(epsilon, unit="distance", stated=epsilon, diameter=diameter, basis=basis)

    def radii(self, noise: Noise, n: int) -> npt.NDArray[np.float64]:
        """Norms of `n` draws of the noise."""
        return gamma_variates(noise, self.n_features, n) * (self.sensitivity / self.epsilon)

    def bias(self, values: np.ndarray) -> np.ndarray:
        """The mean noisy row less the row: zero within the radius."""
        values = as_numbers(values)
        return cast("np.ndarray", self.domain.clip(values).rows - values)

    def variance(self, values: np.ndarray) -> np.ndarray:
        """Variance of every noisy coordinate: the same for all."""
        return np.full(np.shape(values), self._variance)

    def log_likelihood(self, outputs: np.ndarray, values: np.ndarray) -> npt.NDArray[np.float64]:
        """Log density of noisy rows given the rows `values`."""
        d, rate = self.n_features, self.epsilon / self.sensitivity
        sphere = math.log(2) + d / 2 * math.log(math.pi) - special.gammaln(d / 2)
        distance = np.linalg.norm(as_numbers(outputs, "outputs") - self.domain.clip(as_numbers(values)).rows, axis=-1)
        law = d * math.log(rate) - special.gammaln(d) - sphere - rate * distance
        return cast("npt.NDArray[np.float64]", law)

    def original_second_moment(
        self, second_moment: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Less the variance of the noise, which is the same in every direction."""
        if self.vocabulary is not None:
            raise ValueError("The nearest words of a vocabulary do not identify the second moments of what they hide.")
        return second_moment - self._variance * np.eye(self.n_features)

    @property
    def _variance(self) -> float:
        return (self.n_features + 1) * (self.sensitivity / self.epsilon) ** 2

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = rows if self.vocabulary is None else self.vocabulary[nearest_rows(rows, self.vocabulary)]

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        noisy = directions(noise, self.radii(noise, len(rows)), self.n_features, workspace)
        noisy += rows
        # What is beyond the range of the type is released as infinite.
        out[...] = to_grid(noisy, self.step)
        if self.vocabulary is not None:
            out[...] = self.vocabulary[nearest_rows(out, self.vocabulary)]
