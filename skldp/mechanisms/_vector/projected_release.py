r"""Release in fewer dimensions: a public projection, then noise (PRIVEMB, M2), or PrivUnit on what is left."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skldp._checks import check_dimension, check_fraction, check_positive
from skldp._untold import as_floats
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._norms import factors_of_norms, row_norms, shortening_by_rounding, shrink_factors
from skldp.mechanisms._vector.gaussian_width import default_width, gordon_delta
from skldp.mechanisms._vector.multivariate_laplace import MultivariateLaplace, nearest_rows, own_vocabulary
from skldp.mechanisms._vector.privunit import PrivUnit
from skldp.mechanisms._vector.privunit_ball import PrivUnitBall
from skldp.mechanisms._vector.projection import RandomProjection
from skldp.mechanisms._vector.workspace import Scratch

__all__ = ["SENSITIVITIES", "ProjectedRelease"]

SENSITIVITIES = ("gordon", "spectral", "orthonormal", "vocabulary")
# The singular value is shown beside Gordon's theorem only where it costs less than about a minute.
_GRAM_WORK = 1 << 40


@dataclass(frozen=True)
class ProjectedRelease:
    r"""Project rows by a public Phi, then release them.

    Parameters
    ----------
    projection : RandomProjection
    epsilon : float
        Per unit of distance of the inputs with Laplace noise, per record with PrivUnit (natural log).
    sensitivity : {"gordon", "spectral", "orthonormal", "vocabulary"}, default="gordon"
        Where the bound on the stretch of a distance comes from; see :attr:`stretch`.
    noise : {"laplace", "privunit"}, default="laplace"
    beta : float, default=0.9
    width : float, default=None
        Gaussian width that ``"gordon"`` relies on; None is the paper's convention.
    stated_delta : float, default=None
        The delta that was asked for, shown beside the proved one.
    radius : float, default=None
        Declares that the inputs have norms of at most this; longer ones are shortened.
    vocabulary : ndarray of shape (n_words, n_features), default=None
        Declares that the inputs are among these public vectors; others are moved to the nearest.

    Attributes
    ----------
    inner : MultivariateLaplace, PrivUnit or PrivUnitBall
        The release of the projected rows.

    Raises
    ------
    ValueError
        If the parameters do not go together.

    Notes
    -----
    .. math:: w = \Phi x + \kappa, \qquad \|\kappa\| \sim \Gamma(m, \Delta / \varepsilon)

    for real numbers. :math:`\Phi x` is computed in the precision of the rows and is off by the rounding of that: about
    1e-7 of the norms in single precision, which is added to every distance.

    References
    ----------
    Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Algorithm 1.

    Examples
    --------
    >>> from skldp.mechanisms._vector.projected_release import ProjectedRelease
    >>> from skldp.mechanisms._vector.projection import RandomProjection
    >>> release = ProjectedRelease(RandomProjection(300, 60), epsilon=5.0, sensitivity="spectral")
    >>> print(release.guarantee())  # doctest: +ELLIPSIS
    epsilon 5 per unit of distance (stated 5); multivariate Laplace in real numbers; for every two vectors: ...
    """

    projection: RandomProjection
    epsilon: float
    sensitivity: str = "gordon"
    noise: str = "laplace"
    beta: float = 0.9
    width: float | None = None
    stated_delta: float | None = None
    radius: float | None = None
    vocabulary: np.ndarray | None = None
    inner: MultivariateLaplace | PrivUnit | PrivUnitBall = field(init=False, repr=False, compare=False)

    blocks_at_once: ClassVar[int] = 4

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_fraction("beta", self.beta)
        if self.sensitivity not in SENSITIVITIES:
            raise ValueError(f"sensitivity must be one of {SENSITIVITIES}. Got {self.sensitivity!r} instead.")
        if self.noise not in ("laplace", "privunit"):
            raise ValueError(f"noise must be 'laplace' or 'privunit'. Got {self.noise!r} instead.")
        needed = {"gordon": "gaussian", "orthonormal": "orthonormal"}.get(self.sensitivity, self.projection.kind)
        # With PrivUnit the budget does not depend on what Phi stretches.
        if self.noise == "laplace" and self.projection.kind != needed:
            raise ValueError(
                f"sensitivity={self.sensitivity!r} holds for a projection of kind {needed!r}. "
                f"Got {self.projection.kind!r} instead."
            )
        if self.sensitivity == "vocabulary" and self.vocabulary is None:
            raise ValueError("sensitivity='vocabulary' needs a vocabulary. Got None instead.")
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", own_vocabulary(self.vocabulary, self.projection.n_features))
        if self.noise == "privunit":
            check_dimension(self.projection.n_components, least=2)
        object.__setattr__(self, "inner", self._make_inner())

    @property
    def n_outputs(self) -> int:
        """Number of released columns."""
        return self.projection.n_components

    @cached_property
    def stretch(self) -> float:
        r"""The sensitivity :math:`\Delta`: no distance within the declared domain grows by more than this factor.

        ``"gordon"``: :math:`1 + \beta`, by a theorem that may fail with the probability :attr:`delta`. ``"spectral"``
        and ``"orthonormal"``: the largest singular value of the Phi that was drawn, rounded up (with orthonormal rows
        it is :math:`\sqrt{d / m}` but for their rounding to single precision). ``"vocabulary"``: the largest factor
        over all pairs of the vocabulary.
        """
        if self.sensitivity == "gordon":
            return 1 + float(self.beta)
        if self.sensitivity == "vocabulary":
            return self.projection.vocabulary_bound(self.vocabulary)  # type: ignore[arg-type]
        return self.projection.spectral_bound()

    @cached_property
    def delta(self) -> float:
        """Probability over the one draw of Phi that some distance is stretched by more than `stretch`."""
        if self.sensitivity != "gordon" or self.noise == "privunit":
            return 0.0
        return gordon_delta(self.projection.n_components, self.beta, self._width)

    def _make_inner(self) -> MultivariateLaplace | PrivUnit | PrivUnitBall:
        m, epsilon = self.projection.n_components, float(self.epsilon)
        if self.noise == "laplace":
            return MultivariateLaplace(m, epsilon, sensitivity=self.stretch)
        if self.radius is None:
            return PrivUnit(m, epsilon)
        return PrivUnitBall(m, epsilon, self.radius * self.stretch)

    def guarantee(self) -> PrivacyGuarantee:
        """Per unit of distance with Laplace noise, per record with PrivUnit."""
        if self.noise == "privunit":
            return self.inner.guarantee()
        epsilon, figures = float(self.epsilon), []
        if self.sensitivity == "gordon":
            basis = (
                "Gordon's theorem: delta is the probability over the one public draw of Phi, once for all records, if "
                f"the directions of their differences have a Gaussian width of at most {self._width:.3g}"
            )
            if self.stated_delta is not None:
                figures.append(("delta as published", float(self.stated_delta)))
            if self.projection.n_features * self.projection.n_components**2 <= _GRAM_WORK:
                figures.append(("for every two vectors, without delta", epsilon * self._spectral / self.stretch))
        elif self.sensitivity == "vocabulary":
            basis = f"over the vocabulary: Phi stretches its distances by at most {_up(self.stretch)}"
        else:
            basis = f"for every two vectors: Phi stretches distances by at most {_up(self.stretch)}"
        return PrivacyGuarantee(
            epsilon,
            delta=self.delta,
            unit="distance",
            stated=epsilon,
            diameter=self._diameter,
            basis=f"multivariate Laplace in real numbers; {basis}",
            figures=tuple(figures),
        )

    def project(self, values: Any) -> tuple[np.ndarray, int]:
        """Move rows into the declared domain and project them.

        Parameters
        ----------
        values : ndarray or sparse matrix of shape (n, n_features)

        Returns
        -------
        projected : ndarray of shape (n, n_outputs)
        moved : int
            How many values lay outside the domain.
        """
        values = values if sparse.issparse(values) else as_floats(values)
        if self.vocabulary is not None:
            dense = values.toarray() if sparse.issparse(values) else values
            words = np.asarray(self.vocabulary, dtype=values.dtype)
            inside = words[nearest_rows(dense, words)]
            return self.projection.apply(inside), int(np.count_nonzero(inside != dense))
        # What overflows here is projected anew below, from shorter rows.
        with np.errstate(over="ignore", invalid="ignore"):
            projected = self.projection.apply(values)
        factors = np.ones(len(projected)) if self.radius is None else self._shrink_factors(values)
        longer = np.flatnonzero(factors < 1)
        with np.errstate(invalid="ignore"):
            projected[longer] = projected[longer] * factors[longer, None]
        lost = np.flatnonzero(~np.isfinite(projected).all(axis=1))
        if lost.size:
            # NaN would tell such a row from all others.
            with np.errstate(over="ignore"):
                projected[lost] = self._project_far(values[lost], factors[lost])
        # Whoever normalised rows to the radius may have rounded up: that is shortened too, but not worth a warning.
        outside = np.flatnonzero(factors < 1 - shortening_by_rounding(values.dtype, values.shape[1]))
        moved = values[outside]
        return projected, int(moved.nnz if sparse.issparse(moved) else np.count_nonzero(moved))

    def _shrink_factors(self, values: Any) -> np.ndarray:
        """Factors, at most 1, that bring rows to the radius."""
        if not sparse.issparse(values):
            return shrink_factors(values, self.radius)  # type: ignore[arg-type]
        norms = _sparse_norms(values)
        return factors_of_norms(norms, self.radius, values.dtype, values.shape[1])  # type: ignore[arg-type]

    def _project_far(self, rows: Any, factors: np.ndarray) -> np.ndarray:
        """Project rows whose projection overflows, times the factors: in the range of the type, or infinite."""
        if self.radius is None:
            # A power of two is exact; only the direction counts, or the projection overflows by itself.
            factors = np.ldexp(1.0, -np.frexp(_largest(rows))[1])
        short = sparse.diags(factors) @ rows if sparse.issparse(rows) else rows * factors[:, None]
        projected = self.projection.apply(short)
        if self.radius is not None or self.noise == "privunit":
            return projected
        return projected / factors[:, None]

    def encode(self, values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Projected rows as they are, or their directions where only these are released."""
        return self.inner.encode(values, out=out)

    def make_buffers(self) -> Scratch:
        """Working arrays for calls of :meth:`sample`, one after the other."""
        return self.inner.make_buffers()

    def sample(
        self, values: np.ndarray, noise: Noise, out: np.ndarray | None = None, *, buffers: Scratch | None = None
    ) -> np.ndarray:
        """Release every projected row once.

        Parameters
        ----------
        values : ndarray of shape (n, n_outputs)
            From :meth:`project`.
        noise : Noise
        out : ndarray, default=None
        buffers : Scratch, default=None
            From :meth:`make_buffers`; None makes them.

        Returns
        -------
        ndarray of shape (n, n_outputs)
        """
        return self.inner.sample(values, noise, out=out, buffers=buffers)

    def variance(self, projected: np.ndarray) -> np.ndarray:
        """Variance of every released coordinate, given the projected rows."""
        return self.inner.variance(projected)

    def bias(self, projected: np.ndarray) -> np.ndarray:
        """The mean release less the projected rows."""
        return self.inner.bias(projected)

    @property
    def _width(self) -> float:
        return default_width(self.projection.n_features) if self.width is None else float(self.width)

    @cached_property
    def _spectral(self) -> float:
        return self.projection.spectral_bound()

    @property
    def _diameter(self) -> float | None:
        if self.vocabulary is not None:
            words = np.asarray(self.vocabulary, dtype=np.float64)
            # Twice the distance from the middle bounds the diameter of the set, at no cost in pairs. Rounded up: the
            # words of single precision lie a little farther apart.
            far = float(row_norms(words - words.mean(axis=0)).max())
            return 2 * (far + 2.0**-22 * float(row_norms(words).max()))
        return None if self.radius is None else 2 * float(self.radius)


def _up(value: float) -> float:
    """Rounded up to three decimals, for print."""
    return math.ceil(value * 1000) / 1000


def _largest(rows: Any) -> np.ndarray:
    """The largest magnitude in each row."""
    largest = abs(rows).max(axis=1)
    return np.asarray(largest.toarray() if sparse.issparse(largest) else largest, dtype=np.float64).ravel()


def _sparse_norms(values: Any) -> np.ndarray:
    """Euclidean norms of the rows of a sparse matrix; infinite beyond 1e154, where the squares overflow."""
    wide = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        return np.sqrt(np.asarray(wide.multiply(wide).sum(axis=1)).ravel())
