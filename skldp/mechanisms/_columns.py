"""A declared table, column by column: intervals, whole numbers, categories, and columns that are declared together."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import kind_of
from skldp._checks import each_once, is_number
from skldp.mechanisms._domain import Anywhere, Ball, Box, Clipped, Codes, Domain, FiniteSet, check_finite
from skldp.mechanisms._linked import Constrained, OneHot
from skldp.mechanisms._sparse_domain import SparseRows

__all__ = [
    "Categories",
    "Columns",
    "Integers",
    "Interval",
    "OrMissing",
    "check_column_names",
    "domain_from_json",
    "strict_json",
]


@dataclass(frozen=True)
class Interval(Domain):
    """One number between two bounds.

    Parameters
    ----------
    low, high : float
        Finite, and ``low < high``.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        # A document holds doubles.
        if not (is_number(self.low) and is_number(self.high) and float(self.low) < float(self.high)):
            raise ValueError(f"Bounds must be finite numbers with low < high. Got {(self.low, self.high)!r} instead.")
        for end in ("low", "high"):
            object.__setattr__(self, end, float(getattr(self, end)))

    @property
    def n_features(self) -> int:
        """One."""
        return 1

    def clip(self, rows: np.ndarray) -> Clipped:
        """Move what lies outside to the nearest bound."""
        return Box((self.low,), (self.high,)).clip(rows)

    def to_dict(self) -> dict[str, Any]:
        """Describe the column."""
        return {"type": "interval", "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Integers(Domain):
    """One whole number between two bounds, both included.

    Parameters
    ----------
    low, high : int
        ``low < high``, of at most 2^53 in magnitude.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        whole = all(is_number(end) and float(end).is_integer() and abs(end) <= 2**53 for end in (self.low, self.high))
        if not whole or not self.low < self.high:
            raise ValueError(f"Bounds must be whole numbers with low < high. Got {(self.low, self.high)!r} instead.")

    @property
    def n_features(self) -> int:
        """One."""
        return 1

    def clip(self, rows: np.ndarray) -> Clipped:
        """Round to the nearest whole number, and move what lies outside to the nearest bound."""
        within, _ = Box((float(self.low),), (float(self.high),)).clip(rows)
        whole = np.rint(within)
        return Clipped(whole, int(np.count_nonzero(whole != rows)))

    def to_dict(self) -> dict[str, Any]:
        """Describe the column."""
        return {"type": "integers", "low": int(self.low), "high": int(self.high)}


@dataclass(frozen=True)
class Categories(Domain):
    """One of a list of values; a row holds its place in the list.

    Parameters
    ----------
    values : tuple of str, int, float or bool
        All different.
    ordered : bool, default=False
        Whether their order means something.
    """

    values: tuple[Any, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.values, tuple):
            own = tuple(value.item() if isinstance(value, np.generic) else value for value in self.values)
            object.__setattr__(self, "values", own)
        if not isinstance(self.values, tuple) or not all(map(_is_category, self.values)):
            raise ValueError(
                f"Categories must be a tuple of strings, numbers or booleans. Got {self.values!r} instead."
            )
        if not self.values or len(set(self.values)) < len(self.values):
            raise ValueError(f"Categories must be a list of different values. Got {self.values!r} instead.")
        if not isinstance(self.ordered, bool):
            raise ValueError(f"ordered must be True or False. Got {self.ordered!r} instead.")

    @property
    def n_features(self) -> int:
        """One."""
        return 1

    def as_rows(self, values: npt.ArrayLike) -> np.ndarray:
        """Values as an array, of which :meth:`clip` takes integers of any type."""
        return Codes((len(self.values),)).as_rows(values)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Refuse what is no place in the list."""
        return Codes((len(self.values),)).clip(rows)

    def to_dict(self) -> dict[str, Any]:
        """Describe the column."""
        return {"type": "categories", "values": list(self.values), "ordered": self.ordered}


@dataclass(frozen=True)
class OrMissing(Domain):
    """One number of another domain, or none, which is NaN in a row.

    Parameters
    ----------
    number : Interval or Integers

    Raises
    ------
    ValueError
        If it is another domain.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import Interval, OrMissing
    >>> OrMissing(Interval(0, 100)).clip(np.array([[130.0], [np.nan]]))
    Clipped(rows=array([[100.],
           [ nan]]), n_moved=1)
    """

    number: Interval | Integers

    def __post_init__(self) -> None:
        if not isinstance(self.number, Interval | Integers):
            raise ValueError(f"What may be missing must be Interval or Integers. Got {self.number!r} instead.")

    @property
    def n_features(self) -> int:
        """One."""
        return 1

    @property
    def middle(self) -> float:
        """The middle of the bounds."""
        return self.number.low / 2 + self.number.high / 2

    def clip(self, rows: np.ndarray) -> Clipped:
        """Move numbers into their domain, and leave what is missing."""
        missing = np.isnan(rows)
        if not missing.any():
            return self.number.clip(rows)
        # Which of the two to 52 kinds of NaN it was is told to nobody.
        there = np.where(missing, rows.dtype.type(self.number.low), rows)
        within, n_moved = self.number.clip(there)
        return Clipped(np.where(missing, rows.dtype.type(np.nan), within), n_moved)

    def to_dict(self) -> dict[str, Any]:
        """Describe the column."""
        return {"type": "or_missing", "number": self.number.to_dict()}


@dataclass(frozen=True)
class Columns(Domain):
    """A table by column: each part declares one column, or several that are declared together.

    Parameters
    ----------
    parts : tuple of (tuple of str, Domain)
        The names of the columns of each part, and what they may be.

    Raises
    ------
    ValueError
        If a name occurs twice, or a part has another number of columns than of names.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import Categories, Columns, Interval, domain_from_json
    >>> people = Columns.of({"age": Interval(0, 100), "city": Categories(("Bonn", "Ulm"))})
    >>> people.clip(np.array([[130.0, 1.0]]))
    Clipped(rows=array([[100.,   1.]]), n_moved=1)
    >>> domain_from_json(people.to_json()) == people
    True
    """

    parts: tuple[tuple[tuple[str, ...], Domain], ...]

    def __post_init__(self) -> None:
        names = self.names
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(f"Columns must have different names, and be at least one. Got {names!r} instead.")
        for own, part in self.parts:
            if len(own) != part.n_features:
                raise ValueError(f"{part!r} declares {part.n_features} columns. Got the names {own!r} instead.")

    @classmethod
    def of(cls, parts: Mapping[str | tuple[str, ...], Domain]) -> "Columns":
        """Make it from a dict by column, or by tuples of columns that are declared together."""
        return cls(tuple(((name,) if isinstance(name, str) else tuple(name), part) for name, part in parts.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in their order."""
        return tuple(name for own, _ in self.parts for name in own)

    @property
    def n_features(self) -> int:
        """Numbers in a row."""
        return len(self.names)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Move every part into its own domain; categories are given by their places."""
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
        """Describe the columns, each part with its names."""
        return {"type": "columns", "parts": [part.to_dict() | {"columns": list(own)} for own, part in self.parts]}


def check_column_names(domain: Domain | None, names: Iterable[str] | None) -> None:
    """Refuse a table whose columns are not those that a domain declares, in their order, where both have names."""
    while isinstance(domain, Constrained):
        domain = domain.domain
    if isinstance(domain, Columns) and names is not None and domain.names != tuple(names):
        raise ValueError(
            f"The domain's columns must be those of X, in their order: {list(names)}. Got {list(domain.names)} instead."
        )


def domain_from_json(text: str) -> Domain:
    """Read a domain that :meth:`Domain.to_json` wrote.

    Parameters
    ----------
    text : str

    Returns
    -------
    Domain

    Raises
    ------
    ValueError
        If it is none, or says something twice.

    Examples
    --------
    >>> from skldp.mechanisms import domain_from_json
    >>> domain_from_json('{"type": "interval", "low": 0, "high": 10}')
    Interval(low=0.0, high=10.0)
    """
    return _from_dict(strict_json(text))


def strict_json(text: str) -> Any:
    """Read a JSON document of finite numbers that says nothing twice."""
    too_deep = f"A domain must be a JSON object nested at most {_DEEPEST} deep. Got a deeper one instead."
    try:
        given = json.loads(text, parse_constant=_no_number, object_pairs_hook=each_once)
    except RecursionError:
        raise ValueError(too_deep) from None
    level = [given]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    if level:
        raise ValueError(too_deep)
    return given


_DEEPEST = 30  # columns of constrained sets of vectors go seven deep

_KINDS: dict[str, type[Domain]] = {
    "anywhere": Anywhere,
    "ball": Ball,
    "box": Box,
    "categories": Categories,
    "codes": Codes,
    "constrained": Constrained,
    "finite_set": FiniteSet,
    "integers": Integers,
    "interval": Interval,
    "one_hot": OneHot,
    "or_missing": OrMissing,
    "sparse": SparseRows,
}


def _from_dict(given: Any) -> Domain:
    kind = given.get("type") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in {*_KINDS, "columns"}:
        raise ValueError(f"A domain must be a JSON object with a known type: {sorted(_KINDS)} or 'columns'.")
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    del fields["type"]
    try:
        if kind == "columns":
            fields["parts"] = tuple(map(_part, fields["parts"]))
        elif kind == "constrained":
            fields["domain"] = _from_dict(fields["domain"])
        elif kind == "or_missing":
            fields["number"] = _from_dict(fields["number"])
        return (Columns if kind == "columns" else _KINDS[kind])(**fields)
    except (KeyError, TypeError) as error:
        raise ValueError(f"A domain of type {kind!r} has other fields. Got {sorted(given)} instead.") from error


def _part(given: Any) -> tuple[tuple[str, ...], Domain]:
    if not isinstance(given, dict) or not isinstance(given.get("columns"), list):
        raise ValueError("Each part must be a JSON object with a list of its columns. Got another instead.")
    return tuple(given["columns"]), _from_dict({name: value for name, value in given.items() if name != "columns"})


def _is_category(value: Any) -> bool:
    return isinstance(value, str | bool) or (isinstance(value, int | float) and is_number(value))


def _no_number(name: str) -> float:
    raise ValueError(f"A domain must hold finite numbers. Got {name} instead.")


def _as_codes(rows: np.ndarray) -> np.ndarray:
    """Numbers as the whole numbers that they are."""
    codes = rows.astype(np.int64, copy=False) if rows.dtype.kind in "iu" else None
    if codes is None:
        check_finite(rows)
        codes = np.clip(rows, -1, 2.0**53).astype(np.int64)
        if not (codes == rows).all():
            raise ValueError(f"codes must be integers. Got {kind_of(rows)} instead.")
    return codes
