"""Domains of tables: intervals, integers, categories, and columns declared together."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from dataclasses import fields as fields_of
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import kind_of, refuse_masked
from skldp._checks import is_number
from skldp._documents import parsing, read_json
from skldp.domains._constraints import Constrained, OneHot
from skldp.domains._domain import Anywhere, Ball, Box, Clipped, Codes, Domain, FiniteSet, check_finite_rows
from skldp.domains._sparse_rows import SparseRows


class _OneColumn(Domain):
    """Base class of domains of one column."""

    n_features = 1


@dataclass(frozen=True)
class Interval(_OneColumn):
    """Domain of a number between two bounds.

    Parameters
    ----------
    low, high : float
        Finite bounds with ``low < high``.
    """

    type: ClassVar[str] = "interval"

    low: float
    high: float

    def __post_init__(self) -> None:
        # Bounds are doubles, as in a document.
        if not (is_number(self.low) and is_number(self.high) and float(self.low) < float(self.high)):
            raise ValueError(f"Bounds must be finite numbers with low < high; got {(self.low, self.high)!r}.")
        for end in ("low", "high"):
            object.__setattr__(self, end, float(getattr(self, end)))

    def clip(self, rows: np.ndarray) -> Clipped:
        """Clip numbers to the bounds."""
        return Box((self.low,), (self.high,)).clip(rows)


@dataclass(frozen=True)
class Integers(_OneColumn):
    """Domain of an integer between two bounds, both included.

    Parameters
    ----------
    low, high : int
        Bounds with ``low < high``, of at most 2^53 in magnitude.
    """

    type: ClassVar[str] = "integers"

    low: int
    high: int

    def __post_init__(self) -> None:
        whole = all(is_number(end) and float(end).is_integer() and abs(end) <= 2**53 for end in (self.low, self.high))
        if not whole or not self.low < self.high:
            raise ValueError(f"Bounds must be whole numbers with low < high; got {(self.low, self.high)!r}.")
        for end in ("low", "high"):
            object.__setattr__(self, end, int(getattr(self, end)))

    def clip(self, rows: np.ndarray) -> Clipped:
        """Round numbers to integers and clip them to the bounds."""
        within, _ = Box((float(self.low),), (float(self.high),)).clip(rows)
        whole = np.rint(within)
        return Clipped(whole, int(np.count_nonzero(whole != rows)))


@dataclass(frozen=True)
class Categories(_OneColumn):
    """Domain of a category with declared values; rows contain its code.

    Parameters
    ----------
    values : tuple of str, int, float or bool
        Distinct values.
    ordered : bool, default=False
        Whether the values are ordered.
    """

    type: ClassVar[str] = "categories"

    values: tuple[Any, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.values, tuple):
            own = tuple(value.item() if isinstance(value, np.generic) else value for value in self.values)
            object.__setattr__(self, "values", own)
        if not isinstance(self.values, tuple) or not all(map(_is_category, self.values)):
            raise ValueError(f"Categories must be a tuple of strings, numbers or booleans; got {self.values!r}.")
        if not self.values or len(set(self.values)) < len(self.values):
            raise ValueError(f"Categories must be different values, at least one; got {self.values!r}.")
        if not isinstance(self.ordered, bool):
            raise ValueError(f"ordered must be True or False; got {self.ordered!r}.")

    def as_rows(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values as an array; :meth:`clip` accepts integers of any type."""
        refuse_masked(values, "codes")
        return np.asarray(values)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Raise ValueError for integers that are not codes."""
        return Codes((len(self.values),)).clip(rows)


@dataclass(frozen=True)
class OrMissing(_OneColumn):
    """Domain of a number of another domain, or NaN for a missing one."""

    type: ClassVar[str] = "or_missing"

    number: Interval | Integers

    def __post_init__(self) -> None:
        if not isinstance(self.number, Interval | Integers):
            raise ValueError(f"`number` must be Interval or Integers; got {self.number!r}.")

    @property
    def middle(self) -> float:
        """Middle of the bounds."""
        return self.number.low / 2 + self.number.high / 2

    def clip(self, rows: np.ndarray) -> Clipped:
        """Clip numbers to their domain; NaN is kept."""
        missing = np.isnan(rows)
        if not missing.any():
            return self.number.clip(rows)
        # The 52 free bits of a NaN must not be released.
        there = np.where(missing, rows.dtype.type(self.number.low), rows)
        within, n_moved = self.number.clip(there)
        return Clipped(np.where(missing, rows.dtype.type(np.nan), within), n_moved)


@dataclass(frozen=True)
class Columns(Domain):
    """Domain of a table, whose parts declare one column or several together.

    Parameters
    ----------
    parts : tuple of (tuple of str, Domain)
        Column names and domain of each part.

    Raises
    ------
    ValueError
        If a name occurs twice, or the number of a part's names differs from that of its columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.domains._columns import Categories, Interval
    >>> from skldp.mechanisms import Columns
    >>> from skldp.domains._columns import domain_from_json
    >>> people = Columns.of({"age": Interval(0, 100), "city": Categories(("Bonn", "Ulm"))})
    >>> people.clip(np.array([[130.0, 1.0]]))
    Clipped(rows=array([[100.,   1.]]), n_moved=1)
    >>> domain_from_json(people.to_json()) == people
    True
    """

    type: ClassVar[str] = "columns"

    parts: tuple[tuple[tuple[str, ...], Domain], ...]

    def __post_init__(self) -> None:
        names = self.names
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(f"Columns must be at least one, with different names; got {names!r}.")
        for own, part in self.parts:
            if len(own) != part.n_features:
                raise ValueError(f"{part!r} must have {part.n_features} names of columns; got {own!r}.")

    @classmethod
    def of(cls, parts: Mapping[str | tuple[str, ...], Domain]) -> "Columns":
        """Return the table of a dict by column, or by tuple of columns declared together."""
        return cls(tuple(((name,) if isinstance(name, str) else tuple(name), part) for name, part in parts.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(name for own, _ in self.parts for name in own)

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return len(self.names)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Clip every part to its domain, with categories as codes."""
        moved, n_moved, start = rows.copy(), 0, 0
        for _, part in self.parts:
            columns = slice(start, start + part.n_features)
            start += part.n_features
            own = _as_codes(rows[:, columns]) if isinstance(part, Categories | Codes) else rows[:, columns]
            within = part.clip(own)
            moved[:, columns] = within.rows
            n_moved += within.n_moved
        return Clipped(moved, n_moved)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts with their names as a dict."""
        return {"type": "columns", "parts": [part.to_dict() | {"columns": list(own)} for own, part in self.parts]}


def check_same_columns(domain: Domain | None, names: Iterable[str] | None) -> None:
    """Raise ValueError if a table and a domain have names that differ."""
    while isinstance(domain, Constrained):
        domain = domain.domain
    if isinstance(domain, Columns) and names is not None and domain.names != tuple(names):
        raise ValueError(f"The domain must have the columns of X, {list(names)}; got {list(domain.names)}.")


def domain_from_json(text: str) -> Domain:
    """Read a domain from the JSON of :meth:`Domain.to_json`; raise ValueError for other texts."""
    return _from_dict(read_json(text))


_DOMAINS = (Anywhere, Ball, Box, Categories, Codes, Columns, Constrained, FiniteSet, Integers, Interval, OneHot)
_TYPES: dict[str, type[Domain]] = {one.type: one for one in (*_DOMAINS, OrMissing, SparseRows)}


def _from_dict(given: Any) -> Domain:
    kind = given.get("type") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(f"A domain must be a JSON object with a known type: {sorted(_TYPES)}.")
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    del fields["type"]
    needed = {one.name: one.default is MISSING for one in fields_of(_TYPES[kind])}
    if not {name for name in needed if needed[name]} <= fields.keys() <= needed.keys():
        raise ValueError(f"A domain of type {kind!r} must have the fields {sorted(needed)}; got {sorted(fields)}.")
    with parsing(f"A domain of type {kind!r}"):
        if kind == "columns":
            fields["parts"] = tuple(map(_part, fields["parts"]))
        elif kind == "constrained":
            fields["domain"] = _from_dict(fields["domain"])
        elif kind == "or_missing":
            fields["number"] = _from_dict(fields["number"])
        return _TYPES[kind](**fields)


def _part(given: Any) -> tuple[tuple[str, ...], Domain]:
    if not isinstance(given, dict) or not isinstance(given.get("columns"), list):
        raise ValueError("Each part must be a JSON object with a list of its columns; got another.")
    return tuple(given["columns"]), _from_dict({name: value for name, value in given.items() if name != "columns"})


def _is_category(value: Any) -> bool:
    return isinstance(value, str | bool) or (isinstance(value, int | float) and is_number(value))


def _as_codes(rows: np.ndarray) -> np.ndarray:
    """Return numbers as codes; raise ValueError for fractions."""
    if rows.dtype.kind in "iu":
        return rows.astype(np.int64, copy=False)
    check_finite_rows(rows)
    codes: np.ndarray = np.clip(rows, -1, 2.0**53).astype(np.int64)
    if not (codes == rows).all():
        raise ValueError(f"codes must be integers; got {kind_of(rows)}.")
    return codes
