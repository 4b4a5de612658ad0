"""Readers of numbers, dates and categories: one value, or a column."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from datetime import date
from decimal import Decimal
from enum import IntEnum
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_EPOCH = date(1970, 1, 1)
FIRST_DAY, LAST_DAY = (date.min - _EPOCH).days, (date.max - _EPOCH).days
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]|\Z)")
# Longer integers exceed the largest double, and Python may refuse them.
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BOOLEANS = {text: value for value in (False, True) for text in (str(value), str(value).lower(), str(value).upper())}
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:[,.' \u00a0\u2009\u202f][0-9]{3})+(?:[.,][0-9]+)?")
_MARKS_OF_MISSING = {"na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "-", "--", ".", "?", "\\n"}
_NA_TYPES = ("NAType", "NaTType")
# Beyond it, doubles are not all integers.
_EXACT = 2**53
# Equal values of these types are read once. Equal times of two zones may be different days.
_PLAIN = {str, int, float, bool, date, type(None)}


class Unread(IntEnum):
    """Reason why a cell has no number or code."""

    MISSING = 1
    UNREADABLE = 2
    UNKNOWN = 3


class Cells(NamedTuple):
    """Parsed column: its values, and `state`, 0 or the `Unread` that says why a cell has none."""

    values: np.ndarray
    state: npt.NDArray[np.uint8]

    def check(self, given: Any, name: str, rule: str, *unread: Unread, first_row: int | None = None) -> None:
        """Raise ValueError for cells of these states, with their row from `first_row` or position, and no value."""
        strange = np.flatnonzero(np.isin(self.state, unread))
        if strange.size:
            first = int(strange[0])
            place = f"at position {first:,}" if first_row is None else f"in row {first_row + first:,}"
            got = f"{strange.size:,} of {len(self.state):,} that are not, the first {place}, of type"
            kind = f"{type(given[first]).__name__}.{seems(given[first])}"
            raise ValueError(f"{name} must hold {rule}; nothing was released; got {got} {kind}")


class Reader(ABC):
    """Reader of one kind of values."""

    dtype: type = np.float64

    def __init__(self, *, text: bool = False) -> None:
        self.text = text

    def read(self, value: Any) -> Any:
        """Return the number or code of a value, or Unread. Never raises."""
        try:
            # Arrow has scalars of its own.
            value = value.as_py() if hasattr(value, "as_py") else value
            return Unread.MISSING if is_missing(value) else self._read(plain(value))
        except Exception:
            # The methods of a value may raise anything; an error would reveal the value.
            return Unread.UNREADABLE

    def read_all(self, values: Any) -> Cells:
        """Read each value of an array or a sequence as :meth:`read` does."""
        # A masked array as a list has None for hidden cells.
        found = self._of_array(values) if type(values) is np.ndarray and values.ndim == 1 else None
        if found is not None:
            return found
        # tolist makes integers of times.
        cells = values.tolist() if isinstance(values, np.ndarray) and values.dtype.kind not in "mM" else list(values)
        kinds = set(map(type, cells))
        # 1, 1.0 and True are equal keys of a dict, but different values.
        if len(kinds & {int, float, bool}) > 1 or not all(k in _PLAIN or k.__name__ in _NA_TYPES for k in kinds):
            return self._cells(list(map(self.read, cells)))
        places = {value: place for place, value in enumerate(dict.fromkeys(cells))}
        distinct = self._cells(list(map(self.read, places)))
        rows = np.fromiter(map(places.__getitem__, cells), np.intp, len(cells))
        return Cells(distinct.values[rows], distinct.state[rows])

    @abstractmethod
    def _read(self, value: Any) -> Any:
        """Read a value that is not missing."""

    def _of_array(self, values: np.ndarray) -> Cells | None:
        """Read an array without Python objects; returns None for other types."""
        if values.dtype.kind not in "biufmM":
            return None
        missing = values != values
        return Cells(
            np.zeros(values.shape, dtype=self.dtype),
            np.where(missing, Unread.MISSING, Unread.UNREADABLE).astype(np.uint8),
        )

    def _cells(self, read: list[Any]) -> Cells:
        state = np.array([one if isinstance(one, Unread) else 0 for one in read], dtype=np.uint8)
        values: np.ndarray = np.array([0 if isinstance(one, Unread) else one for one in read], dtype=self.dtype)
        return Cells(values, state)


class NumberReader(Reader):
    """Reader of finite real numbers; bools are unreadable."""

    def _read(self, value: Any) -> Any:
        number = number_of(value, text=self.text)
        return Unread.UNREADABLE if number is None else float(number)

    def _of_array(self, values: np.ndarray) -> Cells | None:
        if values.dtype.kind not in "iuf":
            return super()._of_array(values)
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float64)
        state = np.zeros(values.shape, dtype=np.uint8)
        if values.dtype.kind == "f" and not np.isfinite(numbers).all():
            state[np.isinf(numbers)] = Unread.UNREADABLE
            state[np.isnan(numbers)] = Unread.MISSING
            numbers[state > 0] = 0
        return Cells(numbers, state)


class DayReader(Reader):
    """Reader of dates, times and texts such as "2024-02-29" or "2024-02-29T12:00", as days since 1970."""

    def _read(self, value: Any) -> Any:
        if isinstance(value, np.datetime64):
            cells = self._of_dates(np.array([value]))
            return Unread(cells.state[0]) if cells.state[0] else float(cells.values[0])
        # A date and a time write themselves as such a text.
        found = _DATE.match(str(value)) if isinstance(value, str | date) else None
        return float((date(*map(int, found.groups())) - _EPOCH).days) if found else Unread.UNREADABLE

    def _of_array(self, values: np.ndarray) -> Cells | None:
        return self._of_dates(values) if values.dtype.kind == "M" else super()._of_array(values)

    def _of_dates(self, values: np.ndarray) -> Cells:
        days = values.astype("datetime64[D]").astype(np.int64)
        state = np.where((days < FIRST_DAY) | (days > LAST_DAY), Unread.UNREADABLE, 0).astype(np.uint8)
        state[np.isnat(values)] = Unread.MISSING
        return Cells(np.where(state > 0, 0, days).astype(np.float64), state)


class CodeReader(Reader):
    """Reader of declared values as codes. Without a declared boolean, True is 1; `text` reads texts as any of these."""

    dtype = np.int64

    def __init__(self, values: Sequence[Any], *, text: bool = False) -> None:
        super().__init__(text=text)
        self._codes = {value_key(value): code for code, value in enumerate(values) if value is not None}
        self._kinds = {kind for kind, _ in self._codes}
        numbers = sorted((value, code) for (kind, value), code in self._codes.items() if kind is Real)
        self._numbers = None
        if numbers and all(abs(value) < _EXACT for value, _ in numbers):
            self._numbers = np.array([value for value, _ in numbers]), np.array([code for _, code in numbers])

    def check_texts(self) -> None:
        """Raise ValueError if a text file cannot distinguish the values."""
        if any(kind is str and (value == "" or self._written(value) in self._codes) for kind, value in self._codes):
            raise ValueError(
                "Values must differ as texts of a text file, where 1 may be '1' or '1.0', and '' is missing; "
                "got a text that reads as another value. Use a Parquet or Arrow file."
            )

    def _read(self, value: Any) -> Any:
        key = value_key(value)
        if self.text and key[0] is str and key not in self._codes:
            key = self._written(value) or key
        if key[0] is bool and bool not in self._kinds:
            key = Real, int(key[1])
        # A value of another kind may have no hash.
        return self._codes.get(key, Unread.UNKNOWN) if key[0] in self._kinds else Unread.UNREADABLE

    def _written(self, text: str) -> Any:
        """Return the key of the boolean or number that a text is written as, if such values are declared."""
        if text in _BOOLEANS and self._kinds & {bool, Real}:
            return bool, _BOOLEANS[text]
        number = number_of(text, text=True) if Real in self._kinds else None
        return None if number is None else (Real, number)

    def _of_array(self, values: np.ndarray) -> Cells | None:
        kind = values.dtype.kind
        if kind not in "iuf" or self._numbers is None:
            return None
        numbers, codes = self._numbers
        places = np.minimum(np.searchsorted(numbers, values), len(numbers) - 1)
        state = np.where(numbers[places] == values, 0, Unread.UNKNOWN).astype(np.uint8)
        if kind == "f" and state.any():
            state[np.isinf(values)] = Unread.UNREADABLE
            state[np.isnan(values)] = Unread.MISSING
        return Cells(np.where(state > 0, 0, codes[places]), state)


def plain(value: Any) -> Any:
    """Return the characters of a text as a str, whose methods do not fail; other values are unchanged."""
    return str.__str__(value) if issubclass(type(value), str) else value


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT, the NA of pandas, or a masked cell of numpy."""
    if isinstance(value, Decimal):
        return value.is_nan()
    may_be_none = isinstance(value, float | np.floating | np.datetime64 | np.timedelta64)
    return (
        value is None
        or value is np.ma.masked
        or type(value).__name__ in _NA_TYPES
        or (may_be_none and bool(value != value))
    )


def seems(cell: Any) -> str:
    """Return a sentence on how an unread text is written, and the option that reads it; empty for others."""
    text = str.strip(cell).casefold() if issubclass(type(cell), str) else ""
    if text in _MARKS_OF_MISSING:
        return " It looks like a missing cell: only empty ones are, and the texts of --missing, such as --missing NA."
    if _COMMA.fullmatch(text):
        return (
            " It looks like a decimal comma, which --decimal reads, or a separator of thousands, which must be removed."
        )
    return " It looks like a number with separators of thousands: remove them." if _THOUSANDS.fullmatch(text) else ""


def number_of(value: Any, *, text: bool = False) -> Any:
    """Return a finite real number, else None; with `text`, a decimal text is a number."""
    if text and isinstance(value, str):
        digits = value.strip(" \t\r\n")
        value = int(digits) if _WHOLE.fullmatch(digits) else float(digits) if _DECIMAL.fullmatch(digits) else None
    # numpy.timedelta64 is a numpy integer.
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, Real | Decimal):
        return None
    try:
        return value if math.isfinite(value) else None
    except (OverflowError, ValueError):
        # An integer or a fraction beyond the largest double.
        return None


def as_array(column: Any) -> Any:
    """Return a column of pandas, polars, Arrow or numpy as an array or a list, times without their zone."""
    for zone, without in (("tz", "tz_localize"), ("time_zone", "replace_time_zone")):
        if getattr(getattr(column, "dtype", None), zone, None) is not None:
            column = getattr(getattr(column, "dt", column), without)(None)
    if hasattr(column, "to_pylist"):
        # Integers with nulls would become doubles.
        of_numbers = str(column.type).startswith(("int", "uint", "float", "double", "halffloat"))
        return column.to_numpy(zero_copy_only=False) if of_numbers and not column.null_count else column.to_pylist()
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def named_columns(table: Any, names: Sequence[str], people: Any = None) -> dict[str, Any]:
    """Return columns of a table by name, as arrays or lists of equal length, and of that of `people`."""
    try:
        check_column_names(names, list(getattr(table, "column_names", getattr(table, "columns", table))))
        own = {name: as_array(table[name]) for name in names}
        each = [*own.values(), *([] if people is None else [people])]
        if any(isinstance(one, str | Set | Mapping) for one in each):
            raise TypeError
        lengths = sorted(set(map(len, each)))
    except TypeError:
        raise ValueError("Columns and people must be arrays or sequences, columns by name; got another type.") from None
    if len(lengths) > 1:
        raise ValueError(f"Columns and people must have equal lengths; got the lengths {lengths}.")
    return own


def check_column_names(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise ValueError unless each wanted name is that of one column."""
    missing = sorted(set(wanted) - set(names))
    twice = sorted({name for name in wanted if names.count(name) > 1})
    if missing or twice:
        what = f"misses {missing}" if missing else f"has {twice} more than once"
        raise ValueError(f"A record or table must have every name of the policy once; it {what}.")


def value_key(value: Any) -> tuple[Any, Any]:
    """Return the key of a value: 1 and 1.0 have the same key, and True has another."""
    if isinstance(value, bool | np.bool_):
        return bool, bool(value)
    if isinstance(value, str):
        return str, value
    number = number_of(value)
    return (type(value), value) if number is None else (Real, number)
