"""Rows within bounds, brought to [-1, 1] by these, and released by a mechanism of vectors."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms._vector.privunit import PrivUnit, PrivUnitBall

__all__ = ["ScaledRows"]


@dataclass(frozen=True)
class ScaledRows(RowMechanism):
    r"""A table whose columns have declared bounds, as vectors whose numbers weigh the same.

    Parameters
    ----------
    inner : PrivUnit or PrivUnitBall
        Of the vectors :math:`v_j = (x_j - c_j) / r_j`, with :math:`c_j` the middle of the bounds of column j and
        :math:`r_j` half their width. A radius is in these units, in which no row is longer than :math:`\sqrt d`.
    low, high : tuple of float
        Bounds of each column, finite and ``low < high``.

    Raises
    ------
    ValueError
        If there are not as many bounds as `inner` has features, or they are not as above.

    Notes
    -----
    The bounds are public, so that the map is one and the same for all rows, and the guarantee that of `inner`. What is
    released are vectors, or directions of such: they are not mapped back. Rows that the bounds leave longer than a
    radius are shortened to it, and not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import PrivUnit, ScaledRows
    >>> people = ScaledRows(PrivUnit(2, 4.0), low=(0.0, 1_000.0), high=(100.0, 200_000.0))
    >>> people.encode(np.array([[100.0, 200_000.0]])).rows.round(4).tolist()
    [[0.7071, 0.7071]]
    """

    inner: PrivUnit | PrivUnitBall
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)

    block_cells: ClassVar[int] = PrivUnit.block_cells

    def __post_init__(self) -> None:
        if self.domain.n_features != self.inner.n_features:
            raise ValueError(
                f"Bounds must be those of {self.inner.n_features} features. Got {self.domain.n_features} instead."
            )

    @cached_property
    def domain(self) -> Box:
        """The declared bounds."""
        return Box(self.low, self.high)

    @property
    def n_outputs(self) -> int:
        """The number of features."""
        return self.inner.n_outputs

    def guarantee(self) -> PrivacyGuarantee:
        """That of the mechanism of vectors."""
        return self.inner.guarantee()

    def original_second_moment(
        self, second_moment: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """That of the scaled vectors, or of their directions."""
        return self.inner.original_second_moment(second_moment, mean)

    def bias(self, values: npt.ArrayLike) -> np.ndarray:
        """The mean release less what it stands for, of rows of shape (n, n_features): zero."""
        return self.inner.bias(self._vectors(values))

    def variance(self, values: npt.ArrayLike) -> np.ndarray:
        """Variance of every released coordinate, for rows of shape (n, n_features)."""
        return self.inner.variance(self._vectors(values))

    def log_likelihood(self, outputs: np.ndarray, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Log density of released rows given the rows `values`, as that of the mechanism of vectors."""
        return self.inner.log_likelihood(outputs, self._vectors(values))

    def _vectors(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        inside = self.domain.clip(np.atleast_2d(self.domain.as_rows(values))).rows
        return self._scaled(inside, Workspace())

    def _scaled(self, rows: np.ndarray, workspace: Workspace) -> npt.NDArray[np.float64]:
        """Rows within the bounds as vectors that the mechanism takes, in double precision."""
        scaled = np.subtract(rows, self.domain.center, out=workspace.take("scaled", rows.shape, np.float64))
        scaled /= self.domain.radius
        # What was within the bounds may lie beyond 1 by a rounding.
        np.clip(scaled, -1, 1, out=scaled)
        inside: npt.NDArray[np.float64] = self.inner.domain.clip(scaled).rows
        return inside

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        encoded = workspace.take("encoded", out.shape, np.float64)
        self.inner._encode(self._scaled(rows, workspace), encoded, workspace)
        out[...] = encoded

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        self.inner._draw(self._scaled(rows, workspace), noise, out, workspace)
