"""Constraints between columns: one-hot blocks of a category, and linear inequalities.

Constraints make domains smaller: nine columns of three categories have 27 possible rows, but 512 corners as a box.
Rows outside are moved by a fixed rule, since an error would reveal the row.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from skldp._checks import check_integer
from skldp.domains._domain import Clipped, Domain, check_finite_rows, own_vectors
from skldp.domains._norms import weighted_sums

LARGEST_BLOCK = 2**20


@dataclass(frozen=True)
class OneHot(Domain):
    """Domain of columns of which one is 1, or none if `at_most_one`; a tie goes to `fallback`."""

    type: ClassVar[str] = "one_hot"

    size: int
    at_most_one: bool = False
    fallback: int | None = None

    def __post_init__(self) -> None:
        check_integer("The size of a block", self.size, least=1, most=LARGEST_BLOCK)
        if not isinstance(self.at_most_one, bool):
            raise ValueError(f"at_most_one must be True or False; got {self.at_most_one!r}.")
        least = -1 if self.at_most_one else 0
        if self.fallback is None:
            object.__setattr__(self, "fallback", least)
        else:
            check_integer("fallback", self.fallback, least=least, most=self.size - 1)

    @property
    def n_features(self) -> int:
        """Number of columns of the block."""
        return int(self.size)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Move rows to the nearest member, ties to the fallback."""
        check_finite_rows(rows)
        n_ones = np.count_nonzero(rows == 1, axis=1)
        as_declared = (n_ones <= 1) if self.at_most_one else (n_ones == 1)
        as_declared &= n_ones + np.count_nonzero(rows == 0, axis=1) == self.size
        if as_declared.all():
            return Clipped(rows, 0)
        largest = rows.max(axis=1)
        chosen = rows.argmax(axis=1)
        is_tie = np.count_nonzero(rows == largest[:, None], axis=1) > 1
        if self.at_most_one:
            is_tie = np.where(largest == 0.5, True, is_tie & (largest > 0.5))
            chosen = np.where(largest < 0.5, -1, chosen)
        # Index -1 sets an additional last column, which is dropped.
        moved = np.zeros((len(rows), self.size + 1), dtype=rows.dtype)
        moved[np.arange(len(rows)), np.where(is_tie, cast("int", self.fallback), chosen)] = 1
        moved = moved[:, : self.size]
        return Clipped(moved, int(np.count_nonzero(moved != rows)))


@dataclass(frozen=True)
class Constrained(Domain):
    r"""Rows of a domain with :math:`A x \le b` (`coef`, `limits`); others become `fallback`."""

    type: ClassVar[str] = "constrained"

    domain: Domain
    coef: tuple[tuple[float, ...], ...] = field(repr=False)
    limits: tuple[float, ...] = field(repr=False)
    fallback: tuple[float, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise ValueError(f"domain must be a Domain; got {type(self.domain).__name__}.")
        size = self.domain.n_features
        coef = own_vectors("coef", self.coef, size)
        limits = own_vectors("limits", [self.limits], len(coef))[0]
        given = own_vectors("fallback", [self.fallback], size)
        for name, value in (("coef", coef), ("limits", limits), ("fallback", given[0])):
            # -0.0 becomes 0.0.
            object.__setattr__(self, name, _nested_tuple((value + 0.0).tolist()))
        if (self.domain.clip(given).rows != given).any() or not self._satisfied(given).all():
            raise ValueError("fallback must be a row of the domain that satisfies every inequality; got another one.")

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return self.domain.n_features

    @cached_property
    def inequalities(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Matrix A of shape (n_inequalities, n_features), and vector b."""
        return np.array(self.coef), np.array(self.limits)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Clip rows to the domain; the fallback replaces rows that violate an inequality."""
        # A fallback beyond the range of the type becomes infinite, and is refused.
        with np.errstate(over="ignore"):
            fallback = np.array([self.fallback], dtype=rows.dtype)
        is_held = bool(np.isfinite(fallback).all())
        fallback = self.domain.clip(fallback).rows if is_held else fallback
        if not is_held or not self._satisfied(fallback).all():
            raise ValueError(f"fallback must satisfy every inequality in the type of the rows; got {rows.dtype}.")
        within = self.domain.clip(rows).rows
        moved = np.where(self._satisfied(within)[:, None], within, fallback)
        return Clipped(moved, int(np.count_nonzero(moved != rows)))

    def _satisfied(self, rows: np.ndarray) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that satisfy every inequality."""
        coef, limits = self.inequalities
        # An overflow gives NaN, which satisfies no inequality.
        totals = weighted_sums(rows, coef, np.zeros(len(limits)))
        return np.asarray((totals <= limits).all(axis=1))


def _nested_tuple(value: Any) -> Any:
    return tuple(map(_nested_tuple, value)) if isinstance(value, list) else value
