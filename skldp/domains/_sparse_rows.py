"""Domain of sparse rows, such as bags of words."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skldp._arrays import is_sparse
from skldp._checks import check_integer, check_positive
from skldp.domains._domain import Ball, Clipped, VectorDomain, check_finite_rows


@dataclass(frozen=True)
class SparseRows(VectorDomain):
    """Vectors with at most `max_nonzeros` values other than 0, the smallest dropped, and of at most a `radius`."""

    type: ClassVar[str] = "sparse"

    max_nonzeros: int
    radius: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("max_nonzeros", self.max_nonzeros, least=1, most=self.dimension)
        if self.radius is not None:
            check_positive("radius", self.radius)
            object.__setattr__(self, "radius", float(self.radius))

    def clip(self, rows: Any) -> Clipped:
        """Set the smallest excess values to 0, ties in the last columns first; rows may be a CSR matrix."""
        check_finite_rows(rows)
        kept, n_dropped = (_few_stored if is_sparse(rows) else _few_dense)(rows, int(self.max_nonzeros))
        if self.radius is None:
            return Clipped(kept, n_dropped)
        inside = Ball(self.dimension, self.radius).clip(kept)
        return Clipped(inside.rows, n_dropped + inside.n_moved)

    def on_grid(self, rows: Any, shifts: Any, steps: int) -> Any:
        """Return the rows: a grid would make zeros of small values."""
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a dict."""
        described = super().to_dict()
        return {name: value for name, value in described.items() if value is not None}


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
    # Entries of each row by descending magnitude, then by column.
    order = np.lexsort((rows.indices, -np.abs(rows.data), owners))
    rank = np.arange(len(order)) - rows.indptr[owners]
    small = order[rank >= most]
    # Stored zeros would slow down every product.
    dropped = int(np.count_nonzero(rows.data[small]))
    moved = rows.copy()
    moved.data[small] = 0
    moved.eliminate_zeros()
    return moved, dropped
