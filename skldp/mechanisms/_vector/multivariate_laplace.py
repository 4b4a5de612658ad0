r"""The multivariate Laplace mechanism: privacy in proportion to the Euclidean distance."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from skldp._checks import check_dimension, check_positive
from skldp._untold import as_floats, as_numbers
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._norms import shorten_rows
from skldp.mechanisms._vector.sphere import directions, gaussians, public_step, to_grid
from skldp.mechanisms._vector.workspace import Scratch

__all__ = ["MultivariateLaplace", "gamma_variates", "nearest_rows", "own_vocabulary"]


# Marsaglia and Tsang's constant: below 1 - 0.0331 x^4 no logarithm is needed to accept.
_SQUEEZE = 0.0331


def gamma_variates(noise: Noise, shape: float, n: int) -> npt.NDArray[np.float64]:
    r"""Independent draws of the Gamma law of scale 1, by rejection in double precision.

    Parameters
    ----------
    noise : Noise
    shape : float
        At least 1.
    n : int
        How many.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If `shape` is less than 1.

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
    >>> from skldp.mechanisms._noise import noise_from
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
        x = gaussians(noise, (waiting.size,), np.float64)
        v = (1 + x / math.sqrt(9 * b)) ** 3
        uniform = noise.uniform(waiting.size)
        square = x * x
        keep = (uniform < 1 - _SQUEEZE * square * square) & (v > 0)
        unsure = np.flatnonzero((v > 0) & ~keep)
        cube = v[unsure]
        keep[unsure] = np.log(uniform[unsure]) < square[unsure] / 2 + b * (1 - cube + np.log(cube))
        drawn[waiting[keep]] = b * v[keep]
        waiting = waiting[~keep]
    return drawn


# Distances to this many words at a time.
_SCORES = 1 << 20
_FAR = 1e150


def nearest_rows(values: np.ndarray, vocabulary: np.ndarray) -> npt.NDArray[np.intp]:
    """Index of the vocabulary's row nearest to each row of values, by exact comparison.

    Candidates come from a matrix product; where rounding could have mixed up two of them, their distances are computed
    anew from the differences. Of equally near rows the first counts.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    vocabulary : ndarray of shape (n_words, d)

    Returns
    -------
    ndarray of int, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._vector.multivariate_laplace import nearest_rows
    >>> nearest_rows(np.array([[0.9, 0.2]]), np.eye(2)).tolist()
    [0]
    """
    words = np.asarray(vocabulary, dtype=np.float64)
    squares = np.einsum("ij,ij->i", words, words)
    nearest = np.empty(len(values), dtype=np.intp)
    step = max(1, _SCORES // max(1, len(words)))
    for start in range(0, len(values), step):
        # From farther away the same word is as near as any, and the squares would overflow.
        block = np.clip(values[start : start + step], -_FAR, _FAR, dtype=np.float64)
        scores = squares - 2 * (block @ words.T)
        best = scores.min(axis=1)
        # A generous bound on the rounding error of a product of d terms.
        size = math.sqrt(squares.max()) * np.sqrt(np.einsum("ij,ij->i", block, block)) + squares.max()
        close = scores <= (best + 8 * words.shape[1] * np.finfo(np.float64).eps * size)[:, None]
        nearest[start : start + step] = close.argmax(axis=1)
        for row in np.flatnonzero(close.sum(axis=1) > 1):
            candidates = np.flatnonzero(close[row])
            difference = words[candidates] - block[row]
            nearest[start + row] = candidates[np.einsum("ij,ij->i", difference, difference).argmin()]
    return nearest


@dataclass(frozen=True)
class MultivariateLaplace:
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
    >>> from skldp.mechanisms._vector.multivariate_laplace import MultivariateLaplace
    >>> print(MultivariateLaplace(300, epsilon=5.0, radius=1.0).guarantee())
    epsilon 5 per unit of distance (stated 5, over the declared diameter 10); multivariate Laplace in real numbers
    """

    n_features: int
    epsilon: float
    sensitivity: float = 1.0
    radius: float | None = None
    vocabulary: np.ndarray | None = None

    # A block of fewer rows would cost more in calls than it gains by staying in the cache.
    blocks_at_once: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_dimension(self.n_features, least=1)
        check_positive("epsilon", self.epsilon)
        check_positive("sensitivity", self.sensitivity)
        if self.radius is not None:
            check_positive("radius", self.radius)
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", own_vocabulary(self.vocabulary, self.n_features))

    @property
    def n_outputs(self) -> int:
        """Number of released columns."""
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

    def encode(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Rows within the radius, or the vocabulary's nearest to them."""
        values = as_floats(values)
        inside = self._shortened(values)
        if self.vocabulary is not None:
            inside = self.vocabulary[nearest_rows(inside, self.vocabulary)].astype(values.dtype)
        if out is None:
            return inside
        out[...] = inside
        return out

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
        noise : Noise
        out : ndarray, default=None
        buffers : Scratch, default=None
            From :meth:`make_buffers`; None makes them.

        Returns
        -------
        ndarray of shape (n, n_features), dtype of `values`
        """
        values = as_floats(values)
        noisy = self.perturb(values, noise, out if self.vocabulary is None else None, buffers=buffers)
        if self.vocabulary is None:
            return noisy
        words = self.vocabulary[nearest_rows(noisy, self.vocabulary)].astype(values.dtype)
        if out is None:
            return words
        out[...] = words
        return out

    def perturb(
        self, values: np.ndarray, noise: Noise, out: np.ndarray | None = None, *, buffers: Scratch | None = None
    ) -> np.ndarray:
        """The noisy rows themselves, whatever the vocabulary; `out` may be `values` itself."""
        values, scratch = as_floats(values), Scratch() if buffers is None else buffers
        kappa = directions(noise, self.radii(noise, len(values)), self.n_features, scratch)
        kappa += self._shortened(values)
        # What is beyond the range of the type is released as infinite, without a word about it.
        with np.errstate(over="ignore"):
            to_grid(kappa, self.step)
            # Never the scratch itself, which the next block overwrites.
            if out is None:
                return kappa.astype(values.dtype)
            out[...] = kappa
        return out

    def radii(self, noise: Noise, n: int) -> npt.NDArray[np.float64]:
        """Norms of `n` draws of the noise."""
        return gamma_variates(noise, self.n_features, n) * (self.sensitivity / self.epsilon)

    def bias(self, values: np.ndarray) -> np.ndarray:
        """The mean noisy row less the row: zero within the radius."""
        return self._shortened(values) - values

    def variance(self, values: np.ndarray) -> np.ndarray:
        """Variance of every noisy coordinate: the same for all."""
        return np.full(np.shape(values), (self.n_features + 1) * (self.sensitivity / self.epsilon) ** 2)

    def log_likelihood(self, outputs: np.ndarray, values: np.ndarray) -> npt.NDArray[np.float64]:
        """Log density of noisy rows given the rows `values`."""
        d, rate = self.n_features, self.epsilon / self.sensitivity
        sphere = math.log(2) + d / 2 * math.log(math.pi) - special.gammaln(d / 2)
        distance = np.linalg.norm(as_numbers(outputs, "outputs") - self._shortened(values), axis=-1)
        return d * math.log(rate) - special.gammaln(d) - sphere - rate * distance

    def _shortened(self, values: np.ndarray) -> np.ndarray:
        if self.radius is None:
            return values
        inside = values.copy()
        shorten_rows(inside, self.radius)
        return inside


def own_vocabulary(vocabulary: np.ndarray, n_features: int) -> npt.NDArray[np.float64]:
    """A checked copy that nobody can change, since the guarantee holds for these very words."""
    words = np.array(vocabulary, dtype=np.float64)
    if words.ndim != 2 or words.shape[1] != n_features or len(words) == 0:
        raise ValueError(
            f"vocabulary must have the shape (n_words, {n_features}), with at least one word. "
            f"Got an array of shape {words.shape} instead."
        )
    if not np.isfinite(words).all():
        raise ValueError("vocabulary must be finite. Got NaN or infinity instead.")
    words.flags.writeable = False
    return words
