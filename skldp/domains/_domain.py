"""Declared domains: sets of possible records, with a rule that moves other records inside.

A guarantee holds over a declared domain: every record is clipped to it before noise is drawn. Domains are declared from
public knowledge, never from rows. Documents and files contain their JSON form.
"""

import itertools
import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp._arrays import as_numbers, is_sparse, kind_of, refuse_masked
from skldp._checks import check_dimension, check_integer, check_positive
from skldp.domains._norms import nearest_rows, shortening_by_rounding, shrink_factors


class Clipped(NamedTuple):
    """Rows (n, n_features) within a domain, and the number of values, or rows in a ball, that were moved."""

    rows: np.ndarray
    n_moved: int


@dataclass(frozen=True)
class Domain(ABC):
    """Set of possible records. Subclasses are frozen dataclasses.

    Examples
    --------
    >>> from skldp import Domain
    >>> from skldp.mechanisms import Column
    >>> isinstance(Column(0, 100), Domain), Column(0, 100).n_features
    (True, 1)
    """

    #: Name in documents.
    type: ClassVar[str]
    #: Whether each column has a domain of its own, so that moved values are counted by column.
    is_by_column: ClassVar[bool] = False

    @property
    def has_codes(self) -> bool:
        """True if rows hold codes of categories."""
        return False

    @property
    def may_be_nan(self) -> bool:
        """True if rows hold numbers, or NaN for missing ones."""
        return False

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns of a row."""

    def as_rows(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values as an array of float32 or float64."""
        refuse_masked(values, "rows")
        if isinstance(values, np.ndarray) and values.dtype in (np.float64, np.float32):
            return np.asarray(values)
        return as_numbers(values)

    @abstractmethod
    def clip(self, rows: np.ndarray) -> Clipped:
        """Move rows into the domain; `rows` of shape (n, n_features) is returned itself if nothing moves.

        Raises ValueError for NaN and infinity, and for integers that are not codes.
        """

    def on_grid(self, rows: np.ndarray, shifts: npt.NDArray[np.float64], steps: int) -> np.ndarray:
        """Round numbers within the domain to steps, moved by `shifts` in (0, 1); by default to nothing."""
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the domain as a dict of numbers, strings and lists, with a ``"type"``."""
        return {"type": self.type} | {one.name: _plain(getattr(self, one.name)) for one in fields(self)}

    def __getstate__(self) -> dict[str, Any]:
        # Cached arrays are not pickled.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def to_json(self) -> str:
        """Return the domain as a JSON document, which ``domain_from_json`` reads."""
        return json.dumps(self.to_dict(), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_plain, value))
    if isinstance(value, Domain):
        return value.to_dict()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


class NotFiniteError(ValueError):
    """NaN or infinity in numbers."""


def check_finite_rows(rows: Any) -> None:
    """Raise scikit-learn's ValueError for NaN and infinity in an array or a sparse matrix."""
    rows = rows.data if is_sparse(rows) else rows
    # Minimum and maximum are NaN if any value is NaN, and need no temporary array.
    if not (-math.inf < rows.min(initial=math.inf) and rows.max(initial=-math.inf) < math.inf):
        raise_not_finite(rows)


def column_not_finite(rows: Any, names: Any = None) -> str:
    """Name the first column of an array with NaN or infinity, by its number if it has no name; empty for others."""
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind != "f":
        return ""
    column = int(np.isfinite(rows).all(axis=0).argmin())
    return f" in column {column if names is None else names[column]!r}"


def raise_not_finite(rows: np.ndarray) -> None:
    """Raise NotFiniteError for NaN or infinity."""
    where = column_not_finite(rows)
    if np.isnan(rows).any():
        raise NotFiniteError(f"Input X contains NaN{where}.")
    raise NotFiniteError(f"Input X contains infinity or a value too large for {rows.dtype!r}{where}.")


def round_inward(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], dtype: npt.DTypeLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest interval of another dtype within the declared one, which the guarantee covers."""
    # A bound beyond the range of the type becomes infinite, and then the largest number of the type.
    with np.errstate(over="ignore"):
        inner_low, inner_high = low.astype(dtype), high.astype(dtype)
    inner_low = np.where(inner_low < low, np.nextafter(inner_low, np.inf, dtype=inner_low.dtype), inner_low)
    inner_high = np.where(inner_high > high, np.nextafter(inner_high, -np.inf, dtype=inner_high.dtype), inner_high)
    return inner_low, inner_high


@dataclass(frozen=True)
class Box(Domain):
    """Domain of numbers with finite bounds for each; other numbers are clipped."""

    type: ClassVar[str] = "box"
    is_by_column: ClassVar[bool] = True

    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)

    def __post_init__(self) -> None:
        low, high = (_declared_numbers(name, getattr(self, name)) for name in ("low", "high"))
        fit = low.ndim == 1 and low.size and low.shape == high.shape
        # A million features with one pair of bounds are read once.
        few = [end[:1] if fit and (end == end[0]).all() else end for end in (low, high)]
        if not fit or not (all(np.isfinite(end).all() for end in few) and (few[0] < few[1]).all()):
            raise ValueError("low and high must be finite numbers of equal length, with low < high; got others.")
        for name, end in zip(("low", "high"), few, strict=True):
            object.__setattr__(self, name, tuple(end.tolist()) * (low.size // end.size))
        if all(end.size == 1 for end in few):
            vars(self)["shared"] = (self.low[0], self.high[0])

    @classmethod
    def of(cls, low: npt.ArrayLike, high: npt.ArrayLike) -> "Box":
        """Make a box from arrays of shape (n_features,)."""
        return cls(low, high)  # type: ignore[arg-type]  # which become tuples

    @cached_property
    def n_features(self) -> int:
        """Numbers in a row."""
        return len(self.low)

    @cached_property
    def shared(self) -> tuple[float, float] | None:
        """The bounds of all features if they are the same; None otherwise."""
        ends = self.low, self.high
        return (self.low[0], self.high[0]) if all(end.count(end[0]) == len(end) for end in ends) else None

    @cached_property
    def ends(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Both bounds as arrays of shape (n_features,)."""
        if self.shared is None:
            return np.asarray(self.low), np.asarray(self.high)
        low, high = (np.full(self.n_features, end) for end in self.shared)
        return low, high

    @cached_property
    def extent(self) -> float:
        """The largest magnitude."""
        return max(map(abs, self.shared)) if self.shared else float(np.abs(self.ends).max())

    @cached_property
    def center(self) -> npt.NDArray[np.float64]:
        """Middle of each feature's bounds."""
        # Halving before the sum avoids an overflow near the largest double.
        low, high = self.ends
        return low / 2 + high / 2

    @cached_property
    def radius(self) -> npt.NDArray[np.float64]:
        """Half the width of each feature's bounds."""
        low, high = self.ends
        return high / 2 - low / 2

    def clip(self, rows: np.ndarray) -> Clipped:
        """Clip numbers to their bounds."""
        # Minimum and maximum are NaN if any value is NaN.
        lowest, highest = float(rows.min(initial=math.inf)), float(rows.max(initial=-math.inf))
        if not (-math.inf < lowest and highest < math.inf):
            raise_not_finite(rows)
        # np.clip is several times slower than two passes over cached numbers, which suffice for most blocks.
        if self._everywhere[0] <= lowest and highest <= self._everywhere[1]:
            return Clipped(rows, 0)
        low, high = self._ends_by_type.get(rows.dtype) or self._ends_of(rows.dtype)
        moved = np.clip(rows, low, high, out=np.empty(rows.shape, dtype=rows.dtype))
        return Clipped(moved, int(np.count_nonzero(moved != rows)))

    def on_grid(self, rows: np.ndarray, shifts: npt.NDArray[np.float64], steps: int) -> np.ndarray:
        """Round numbers to steps between their bounds: without bias, and exact at either end."""
        low, high = self.ends
        width = self.radius
        place = np.where(width > 0, (rows / 2 - low / 2) / width, 0.0) * steps
        share = np.minimum(np.floor(place + shifts), steps) / steps
        # Rounding, or the corner of a cell, may lie just outside the domain.
        return self.clip((low * (1 - share) + high * share).astype(rows.dtype)).rows

    @cached_property
    def _everywhere(self) -> tuple[float, float]:
        """Intersection of all features' bounds."""
        return (max(self.low), min(self.high)) if self.shared is None else self.shared

    @cached_property
    def _ends_by_type(self) -> dict[np.dtype, tuple[np.ndarray, np.ndarray]]:
        return {}

    def _ends_of(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds in a type, as single numbers if all features share them."""
        low, high = map(np.asarray, self.shared or self.ends)
        low, high = round_inward(low, high, dtype)
        if not (low <= high).all():
            raise ValueError(f"Bounds must include a number of the type of the rows; got rows of {dtype}.")
        ends = self._ends_by_type[dtype] = low[()], high[()]
        return ends


@dataclass(frozen=True)
class VectorDomain(Domain):
    """Base class of domains of vectors."""

    dimension: int

    def __post_init__(self) -> None:
        check_dimension(self.dimension, least=1)

    @property
    def n_features(self) -> int:
        """Numbers in a row."""
        return self.dimension

    def on_grid(self, rows: np.ndarray, shifts: npt.NDArray[np.float64], steps: int) -> np.ndarray:
        """Round numbers to steps between plus and minus the power of two above the largest of a row."""
        _, exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0, keepdims=True).astype(np.float64))
        largest = np.finfo(rows.dtype).max
        step = np.clip(np.ldexp(2.0 / steps, exponents), np.finfo(np.float64).smallest_subnormal, 2.0**1023)
        coarse = np.clip(np.floor(rows / step + shifts) * step, -largest, largest)
        return self.clip(coarse.astype(rows.dtype)).rows


@dataclass(frozen=True)
class Ball(VectorDomain):
    """Domain of vectors with norm at most `radius`; longer vectors are scaled to it."""

    type: ClassVar[str] = "ball"

    radius: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("radius", self.radius)
        # The radius is a double, as in a document.
        object.__setattr__(self, "radius", float(self.radius))

    def clip(self, rows: Any) -> Clipped:
        """Scale longer rows (an array or CSR) to the radius; rows longer only by rounding do not count as moved."""
        check_finite_rows(rows)
        factors = shrink_factors(rows, self.radius)
        if not (factors < 1).any():
            return Clipped(rows, 0)
        n_outside = int(np.count_nonzero(factors < 1 - shortening_by_rounding(rows.shape[1])))
        # A subnormal float32 factor has too few bits to stay within the radius, so factors are doubles.
        if is_sparse(rows):
            moved = rows.copy()
            moved.data[:] = moved.data * np.repeat(factors, np.diff(moved.indptr))
            return Clipped(moved, n_outside)
        moved = np.empty(rows.shape, dtype=rows.dtype)
        np.multiply(rows, factors[:, None], out=moved, casting="same_kind")
        return Clipped(moved, n_outside)


@dataclass(frozen=True)
class Anywhere(VectorDomain):
    """Domain of all finite vectors."""

    type: ClassVar[str] = "anywhere"

    def clip(self, rows: np.ndarray) -> Clipped:
        """Raise ValueError for NaN and infinity."""
        check_finite_rows(rows)
        return Clipped(rows, 0)


@dataclass(frozen=True, eq=False)
class FiniteSet(Domain):
    """Domain of public vectors, shape (n_vectors, n_features); others are moved to the nearest vector."""

    type: ClassVar[str] = "finite_set"

    vectors: np.ndarray = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", own_vectors("vectors", self.vectors))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteSet) and np.array_equal(self.vectors, other.vectors)

    def __hash__(self) -> int:
        # -0.0 and 0.0 are equal, so their hashes must be.
        return hash((self.vectors + 0.0).tobytes())

    @property
    def n_features(self) -> int:
        """Numbers in a row."""
        return int(self.vectors.shape[1])

    def clip(self, rows: Any) -> Clipped:
        """Move rows to the nearest vector, ties to the first. A sparse matrix becomes an array."""
        check_finite_rows(rows)
        given = rows.toarray() if is_sparse(rows) else rows
        # In the type of the rows, a row that is one of the vectors equals it.
        vectors = self.vectors.astype(given.dtype, copy=False)
        moved = vectors[nearest_rows(given, vectors)]
        return Clipped(moved, int(np.count_nonzero(moved != given)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Pickles do not keep this flag.
        self.vectors.flags.writeable = False


def _declared_numbers(name: str, given: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return public numbers as float64; raise ValueError for bools and texts."""
    try:
        if not isinstance(given, tuple | list):
            given = np.asarray(given)
        flat = given.reshape(-1).tolist() if isinstance(given, np.ndarray) and given.dtype.kind == "O" else given
        kinds = {flat.dtype.type} if isinstance(flat, np.ndarray) else set(map(type, flat))
        if kinds & {list, tuple}:
            kinds = set(map(type, itertools.chain.from_iterable(given)))
        if any(issubclass(kind, bool | np.bool_ | str | bytes | np.complexfloating) for kind in kinds):
            raise TypeError
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be numbers; got something else.") from None


def own_vectors(name: str, vectors: npt.ArrayLike, n_features: int | None = None) -> npt.NDArray[np.float64]:
    """Return a checked, read-only copy of public vectors."""
    own = np.array(_declared_numbers(name, vectors))
    if own.ndim != 2 or 0 in own.shape or own.shape[1] != (n_features or own.shape[1]):
        width = "n_features" if n_features is None else n_features
        raise ValueError(f"{name} must have the shape (n, {width}), with at least one row; got {own.shape}.")
    if not np.isfinite(own).all():
        raise ValueError(f"{name} must be finite; got NaN or infinity.")
    own.flags.writeable = False
    return own


@dataclass(frozen=True)
class Codes(Domain):
    """Domain of category codes, integers from 0 to below each column's size. Other codes raise ValueError."""

    type: ClassVar[str] = "codes"

    sizes: tuple[int, ...]

    @property
    def has_codes(self) -> bool:
        return True

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ValueError(f"sizes must hold at least one column; got {self.sizes!r}.")
        for size in self.sizes:
            check_integer("Every size", size, least=1, most=2**63 - 1)

    @cached_property
    def n_features(self) -> int:
        """Numbers in a row."""
        return len(self.sizes)

    def as_rows(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values as an array; :meth:`clip` accepts integers of any type."""
        refuse_masked(values, "codes")
        return np.asarray(values)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Raise ValueError for values that are not codes."""
        if rows.dtype.kind not in "iu":
            raise ValueError(f"codes must be integers; got {kind_of(rows)}.")
        # Integers beyond int64 become negative, and negative ones large unsigned integers.
        codes = rows.astype(np.int64, copy=False)
        unsigned = codes.view(np.uint64)
        # One pass over cached numbers makes the slower comparison by column unnecessary for most blocks.
        if unsigned.max(initial=0) >= min(self.sizes) and not (unsigned < np.asarray(self.sizes, np.uint64)).all():
            raise ValueError(f"codes must be integers from 0 to {max(self.sizes) - 1}; got {kind_of(rows)}.")
        return Clipped(codes, 0)
