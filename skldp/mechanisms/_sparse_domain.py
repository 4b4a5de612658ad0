"""Rows of which few values are not 0, as of a bag of words: a declared domain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skldp._checks import check_dimension, check_positive
from skldp.mechanisms._domain import Ball, Clipped, Domain, check_finite

__all__ = ["SparseRows"]


@dataclass(frozen=True)
class SparseRows(Domain):
    """Vectors of at most so many non-zero values; of more, the smallest become 0.

    Parameters
    ----------
    dimension : int
    max_nonzeros : int
        From 1 to `dimension`.
    radius : float, default=None
        Their largest norm, where one is declared; what is longer then is shortened.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import SparseRows
    >>> SparseRows(4, 2).clip(np.array([[3.0, -1.0, 0.0, 2.0]]))
    Clipped(rows=array([[3., 0., 0., 2.]]), n_moved=1)
    """

    dimension: int
    max_nonzeros: int
    radius: float | None = None

    def __post_init__(self) -> None:
        check_dimension(self.dimension, least=1)
        check_dimension(self.max_nonzeros, least=1)
        if self.max_nonzeros > self.dimension:
            raise ValueError(
                f"max_nonzeros must be at most the dimension, {self.dimension}. Got {self.max_nonzeros!r} instead."
            )
        if self.radius is not None:
            check_positive("radius", self.radius)

    @property
    def n_features(self) -> int:
        """Numbers in a row."""
        return self.dimension

    def clip(self, rows: Any) -> Clipped:
        """Set the smallest values to 0 where there are too many; of equal ones, those of later columns.

        Rows may be a CSR matrix that holds no entry twice.
        """
        check_finite(rows)
        kept, n_dropped = (_few_stored if sparse.issparse(rows) else _few_dense)(rows, int(self.max_nonzeros))
        if self.radius is None:
            return Clipped(kept, n_dropped)
        inside = Ball(self.dimension, self.radius).clip(kept)
        return Clipped(inside.rows, n_dropped + inside.n_moved)

    def to_dict(self) -> dict[str, Any]:
        """Describe the set."""
        described: dict[str, Any] = {
            "type": "sparse",
            "dimension": int(self.dimension),
            "max_nonzeros": int(self.max_nonzeros),
        }
        return described if self.radius is None else {**described, "radius": float(self.radius)}


def _few_dense(rows: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    full = np.flatnonzero(np.count_nonzero(rows, axis=1) > most)
    if not full.size:
        return rows, 0
    moved = rows.copy()
    smallest = np.argsort(-np.abs(rows[full]), axis=1, kind="stable")[:, most:]
    dropped = np.take_along_axis(rows[full], smallest, axis=1)
    moved[full[:, None], smallest] = 0
    return moved, int(np.count_nonzero(dropped))


def _few_stored(rows: Any, most: int) -> tuple[Any, int]:
    sizes = np.diff(rows.indptr)
    if not (sizes > most).any():
        return rows, 0
    owners = np.repeat(np.arange(rows.shape[0]), sizes)
    # The entries of every row from the largest magnitude on, of equal ones in the order of columns.
    order = np.lexsort((rows.indices, -np.abs(rows.data), owners))
    rank = np.arange(len(order)) - rows.indptr[owners]
    small = order[rank >= most]
    # A copy that has its own numbers alone would do, but what is 0 and still stored costs time at every product.
    dropped = int(np.count_nonzero(rows.data[small]))
    moved = rows.copy()
    moved.data[small] = 0
    moved.eliminate_zeros()
    return moved, dropped
