"""Domains of tables, and the JSON documents of domains."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, replace
from dataclasses import fields as fields_of
from typing import Any, ClassVar

import numpy as np

from skldp._arrays import kind_of
from skldp._documents import parsing, read_json
from skldp.domains._column import Column, check_integers
from skldp.domains._constraints import Constrained, OneHot
from skldp.domains._domain import Anywhere, Ball, Box, Clipped, Codes, Domain, FiniteSet, check_finite_rows
from skldp.domains._sparse_rows import SparseRows


@dataclass(frozen=True)
class Columns(Domain):
    """Domain of a table, whose parts declare one column or several together, each with the names of its columns."""

    type: ClassVar[str] = "columns"
    is_by_column: ClassVar[bool] = True

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
            own = _as_codes(rows[:, columns]) if part.has_codes else rows[:, columns]
            within = part.clip(own)
            moved[:, columns] = within.rows
            n_moved += within.n_moved
        return Clipped(moved, n_moved)

    def on_grid(self, rows: np.ndarray, shifts: np.ndarray, steps: int) -> np.ndarray:
        """Round the numbers of every part to steps."""
        moved, start = rows.copy(), 0
        for _, part in self.parts:
            own = slice(start, start := start + part.n_features)
            moved[:, own] = part.on_grid(rows[:, own], shifts[:, own], steps)
        return moved

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


_TYPES: dict[str, type[Domain]] = {
    one.type: one for one in (Anywhere, Ball, Box, Codes, Columns, Constrained, FiniteSet, OneHot, SparseRows)
}
# Types of a single column, and the names of their documents.
_OF_COLUMN = {
    "interval": ("low", "high"),
    "integers": ("low", "high"),
    "categories": ("values", "ordered"),
    "or_missing": ("number",),
}


def _from_dict(given: Any) -> Domain:
    kind = given.get("type") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in _TYPES.keys() | _OF_COLUMN.keys():
        raise ValueError(f"A domain must be a JSON object with a known type: {sorted({*_TYPES, *_OF_COLUMN})}.")
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    del fields["type"]
    if kind in _OF_COLUMN:
        needed = {name: name != "ordered" for name in _OF_COLUMN[kind]}
    else:
        needed = {one.name: one.default is MISSING for one in fields_of(_TYPES[kind])}
    if not {name for name in needed if needed[name]} <= fields.keys() <= needed.keys():
        raise ValueError(f"A domain of type {kind!r} must have the fields {sorted(needed)}; got {sorted(fields)}.")
    with parsing(f"A domain of type {kind!r}"):
        if kind == "columns":
            fields["parts"] = tuple(map(_part, fields["parts"]))
        elif kind == "constrained":
            fields["domain"] = _from_dict(fields["domain"])
        elif kind in _OF_COLUMN:
            return _column(kind, **fields)
        return _TYPES[kind](**fields)


def _column(kind: str, number: Any = None, **fields: Any) -> Column:
    if kind == "or_missing":
        if not isinstance(number, dict) or number.get("type") not in ("interval", "integers"):
            raise ValueError("The number of a domain of type 'or_missing' must be an interval or integers.")
        inner = _from_dict(number)
        assert isinstance(inner, Column)
        return replace(inner, missing="category")
    if not all(isinstance(fields.get(end, 0), int | float) for end in ("low", "high")):
        raise ValueError("Bounds of a domain must be numbers; got others.")
    if kind == "integers":
        check_integers(**fields)
        return Column(**fields, kind="integer")
    if kind == "categories" and (None in fields["values"] or len(set(fields["values"])) < len(fields["values"])):
        raise ValueError("Categories of a domain must be different values other than null; got null, or one twice.")
    return Column(**fields)


def _part(given: Any) -> tuple[tuple[str, ...], Domain]:
    if not isinstance(given, dict) or not isinstance(given.get("columns"), list):
        raise ValueError("Each part must be a JSON object with a list of its columns; got another.")
    return tuple(given["columns"]), _from_dict({name: value for name, value in given.items() if name != "columns"})


def _as_codes(rows: np.ndarray) -> np.ndarray:
    """Return numbers as codes; raise ValueError for fractions."""
    if rows.dtype.kind in "iu":
        return rows.astype(np.int64, copy=False)
    check_finite_rows(rows)
    codes: np.ndarray = np.clip(rows, -1, 2.0**53).astype(np.int64)
    if not (codes == rows).all():
        raise ValueError(f"codes must be integers; got {kind_of(rows)}.")
    return codes
