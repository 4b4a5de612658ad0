r"""Release in fewer dimensions: a public projection, then noise (PRIVEMB, M2) or PrivUnit."""

import math
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skldp._arrays import Floats
from skldp._checks import check_choice, check_dimension, check_fraction, check_integer, check_positive
from skldp.domains._domain import Anywhere, Ball, FiniteSet, own_vectors
from skldp.domains._norms import row_norms
from skldp.domains._sparse_rows import SparseRows
from skldp.laws._odds import round_up
from skldp.mechanisms._guarantee import PUBLISHED_DELTA, PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Release, RowMechanism, Workspace
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnit, PrivUnitBall
from skldp.mechanisms.vector._projection import RandomProjection, default_width, gordon_delta, union_delta

SENSITIVITIES = ("gordon", "spectral", "orthonormal", "vocabulary", "union", "sparse")
# The singular value is shown beside Gordon's theorem only where it costs less than about a minute.
_GRAM_WORK = 1 << 40
# Least number of rows to project at a time: smaller products are slower per row.
_BLOCK_ROWS = 1024


@dataclass(frozen=True)
class ProjectedRelease(RowMechanism):
    """Release of rows after projection by a public Phi; RandomProjectionPrivatizer describes the parameters."""

    projection: RandomProjection
    epsilon: float
    sensitivity: str = "gordon"
    noise: str = "laplace"
    beta: float = 0.9
    stated_delta: float | None = None
    radius: float | None = None
    vocabulary: np.ndarray | None = None
    vocabulary_size: int = 0
    max_nonzeros: int | None = None
    inner: MultivariateLaplace | PrivUnit | PrivUnitBall = field(init=False, repr=False, compare=False)

    block_cells: ClassVar[int] = 131_072

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_fraction("beta", self.beta)
        check_choice("sensitivity", self.sensitivity, SENSITIVITIES)
        check_choice("noise", self.noise, ("laplace", "privunit"))
        kinds = {"gordon": "gaussian", "union": "gaussian", "orthonormal": "orthonormal"}
        needed = kinds.get(self.sensitivity, self.projection.kind)
        # With PrivUnit the budget does not depend on what Phi stretches.
        if self.noise == "laplace" and self.projection.kind != needed:
            needs = f"sensitivity={self.sensitivity!r} holds for a projection of kind {needed!r}"
            raise ValueError(f"{needs}; got {self.projection.kind!r}.")
        if self.sensitivity == "vocabulary" and self.vocabulary is None:
            raise ValueError("sensitivity='vocabulary' needs a vocabulary; got None.")
        if self.vocabulary is not None:
            own = own_vectors("vocabulary", self.vocabulary, self.projection.n_features)
            object.__setattr__(self, "vocabulary", own)
        if (self.sensitivity == "sparse") != (self.max_nonzeros is not None):
            both = f"{self.max_nonzeros!r} and {self.sensitivity!r}"
            raise ValueError(f"max_nonzeros and sensitivity='sparse' need each other; got {both}.")
        if self.sensitivity == "sparse":
            self._check_sparse()
        if self.sensitivity == "union":
            least = 2 if self.vocabulary is None else max(2, len(self.vocabulary))
            check_integer("vocabulary_size", self.vocabulary_size, least=least)
        if self.noise == "privunit":
            check_dimension(self.projection.n_components, least=2)
        object.__setattr__(self, "inner", self._make_inner())

    def _check_sparse(self) -> None:
        if self.vocabulary is not None:
            raise ValueError("max_nonzeros and a vocabulary declare different domains; got both instead of one.")
        if self.projection.kind == "orthonormal":
            raise ValueError("sensitivity='sparse' needs another projection; got one of kind 'orthonormal'.")
        check_integer("max_nonzeros", self.max_nonzeros, least=1, most=self.projection.n_features)
        if self.projection.kind == "gaussian":
            check_fraction("stated_delta, which sensitivity='sparse' proves of a Gaussian Phi,", self.stated_delta)

    @cached_property
    def domain(self) -> FiniteSet | SparseRows | Ball | Anywhere:
        if self.vocabulary is not None:
            return FiniteSet(self.vocabulary)
        d = self.projection.n_features
        if self.max_nonzeros is not None:
            return SparseRows(d, self.max_nonzeros, self.radius)
        return Anywhere(d) if self.radius is None else Ball(d, self.radius)

    @property
    def n_outputs(self) -> int:
        return self.projection.n_components

    @cached_property
    def rows_per_block(self) -> int:
        """Number of rows of one block: all if Phi would be computed again for each block."""
        return max(_BLOCK_ROWS, self.block_cells // self.n_outputs) if self.projection.kept else sys.maxsize

    def tasks(self, n_rows: int) -> list[slice]:
        """Cut rows into tasks for threads: one task where Phi is not kept."""
        return super().tasks(n_rows) if self.projection.kept else [slice(0, n_rows)] * min(n_rows, 1)

    @cached_property
    def stretch(self) -> float:
        """The sensitivity: no distance within the declared domain grows by more, but for a chance of `delta`."""
        if self.max_nonzeros is not None:
            return self.projection.sparse_bound(2 * int(self.max_nonzeros), float(self.stated_delta or 0))
        if self.sensitivity in ("gordon", "union"):
            return 1 + float(self.beta)
        if self.sensitivity == "vocabulary":
            return self.projection.vocabulary_bound(np.asarray(self.vocabulary))
        return self.projection.spectral_bound()

    @cached_property
    def delta(self) -> float:
        """Probability over the one draw of Phi that some distance is stretched by more than `stretch`."""
        if self.sensitivity not in ("gordon", "union", "sparse") or self.noise == "privunit":
            return 0.0
        m = self.projection.n_components
        if self.sensitivity == "sparse":
            return float(self.stated_delta or 0) if self.projection.kind == "gaussian" else 0.0
        if self.sensitivity == "union":
            return union_delta(m, self.beta, self.vocabulary_size)
        return gordon_delta(m, self.beta, self._width)

    def _make_inner(self) -> MultivariateLaplace | PrivUnit | PrivUnitBall:
        m, epsilon = self.projection.n_components, float(self.epsilon)
        if self.noise == "laplace":
            # Rounding of the product: twice d^(3/2) half units in the last place of the larger norm, and a margin.
            rounding = 2.0**-51 * self.projection.n_features**1.5
            return MultivariateLaplace(m, epsilon, sensitivity=self.stretch * (1 + rounding))
        if self.radius is None:
            return PrivUnit(m, epsilon)
        return PrivUnitBall(m, epsilon, self.radius * self.stretch)

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee: per unit of distance with Laplace noise, per record with PrivUnit."""
        if self.noise == "privunit":
            return self.inner.guarantee()
        epsilon, stretch, figures = float(self.epsilon), f"by at most {math.ceil(self.stretch * 1000) / 1000}", []
        a_draw = "delta is the probability over the one public draw of Phi, once for all records, if"
        basis = f"for every two vectors: Phi stretches distances {stretch}"
        if self.sensitivity == "gordon":
            width = f"the directions of their differences have a Gaussian width of at most {self._width:.3g}"
            basis = f"Gordon's theorem: {a_draw} {width}"
            if self.stated_delta is not None:
                figures.append((PUBLISHED_DELTA, float(self.stated_delta)))
            if self.projection.n_features * self.projection.n_components**2 <= _GRAM_WORK:
                spectral = self.projection.spectral_bound()
                exact = round_up(Fraction(epsilon) * Fraction(spectral) / Fraction(self.stretch))
                figures.append(("for every two vectors, without delta", exact))
        elif self.sensitivity == "union":
            vectors = f"{self.vocabulary_size:,} vectors that were not chosen by looking at Phi"
            basis = f"a union bound: {a_draw} these are among {vectors}"
        elif self.sensitivity == "sparse":
            basis = (
                f"for rows of at most {self.max_nonzeros:,} non-zero values: Phi stretches their distances {stretch}"
            )
            if self.delta:
                basis += ", but for a chance of delta over its one public draw, once for all records"
        elif self.sensitivity == "vocabulary":
            basis = f"over the vocabulary: Phi stretches its distances {stretch}"
        return PrivacyGuarantee(
            epsilon,
            delta=self.delta,
            unit="distance",
            stated=epsilon,
            diameter=self._diameter,
            basis=f"multivariate Laplace, rounded to a lattice, of rows projected in floating point; {basis}",
            figures=tuple(figures),
        )

    def project(self, rows: Any) -> Release:
        """Move rows into the declared domain and project them, without noise."""
        inside = self.domain.clip(self._precise(self._as_rows(rows)))
        with np.errstate(all="ignore"):
            return Release(self._project(inside.rows), inside.n_moved)

    def variance(self, rows: Any) -> np.ndarray:
        return self.inner.variance(self.project(rows).rows)

    def bias(self, rows: Any) -> np.ndarray:
        return self.inner.bias(self.project(rows).rows)

    def log_likelihood(self, outputs: np.ndarray, rows: Any) -> Floats:
        return self.inner.log_likelihood(outputs, self._within(self.project(rows).rows))

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        return self.inner.original_second_moment(second_moment, mean)

    def _as_rows(self, rows: Any) -> Any:
        if not sparse.issparse(rows):
            return super()._as_rows(rows)
        dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64
        rows = rows.tocsr().astype(dtype, copy=False)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return rows

    def _precise(self, rows: Any) -> Any:
        return rows.astype(np.float64, copy=False) if self.noise == "laplace" else rows

    def _encode(self, rows: Any, out: np.ndarray, workspace: Workspace) -> None:
        self.inner._encode(self._within(self._project(rows)), out, workspace)

    def _draw(self, rows: Any, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        projected = self._project(rows)
        step = max(1, self.block_cells // self.n_outputs)
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            self.inner._draw(self._within(projected[part]), noise.block(part), out[part], workspace)

    def _within(self, projected: np.ndarray) -> np.ndarray:
        """Clip projected rows to the inner mechanism's domain: Phi may exceed the bound on its stretch."""
        return self.inner.domain.clip(projected).rows if self.noise == "privunit" else projected

    def _project(self, rows: Any) -> np.ndarray:
        """Project rows of the domain; overflow becomes infinity and never NaN, which would be recognizable."""
        out = self.projection.apply(rows)
        if np.isfinite(out).all():
            return out
        lost = np.flatnonzero(~np.isfinite(out).all(axis=1))
        # Multiplied by a power of two, which is exact.
        exponents = np.frexp(_largest(rows[lost]))[1]
        factors = np.ldexp(1.0, -exponents)
        short = sparse.diags(factors) @ rows[lost] if sparse.issparse(rows) else rows[lost] * factors[:, None]
        projected = self.projection.apply(short)
        if self.noise == "laplace" or self.radius is not None:
            projected = np.ldexp(projected, exponents[:, None])
        # PrivUnit needs a direction, which infinite numbers do not have.
        most = np.inf if self.noise == "laplace" else np.finfo(out.dtype).max
        out[lost] = np.clip(projected, -most, most)
        return out

    @property
    def _width(self) -> float:
        return default_width(self.projection.n_features)

    @property
    def _diameter(self) -> float | None:
        if self.vocabulary is not None:
            words = np.asarray(self.vocabulary, dtype=np.float64)
            # Twice the distance from the middle bounds the diameter of the set, at no cost in pairs. Rounded up: the
            # words of single precision lie a little farther apart.
            far = float(row_norms(words - words.mean(axis=0)).max())
            return 2 * (far + 2.0**-22 * float(row_norms(words).max()))
        return None if self.radius is None else 2 * float(self.radius)


def _largest(rows: Any) -> np.ndarray:
    largest = abs(rows).max(axis=1)
    return np.asarray(largest.toarray() if sparse.issparse(largest) else largest, dtype=np.float64).ravel()
