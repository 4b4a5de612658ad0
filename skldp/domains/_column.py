"""Declared column of a record: its type, bounds or values, missing values, and the reading of its values."""

import datetime
import math
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import refuse_masked
from skldp._checks import check_choice, is_number
from skldp._reading import FIRST_DAY, LAST_DAY, Cells, CodeReader, DayReader, NumberReader, Reader, Unread, value_key
from skldp._value_labels import number_label, value_labels
from skldp.domains._domain import Box, Clipped, Codes, Domain

#: Types of dates as bounds.
DATE_TYPES = (str, datetime.date, np.datetime64)
_EPOCH = datetime.date(1970, 1, 1)
_REPLACED = "handle_unknown, or --count-unknown on the command line"


@dataclass(frozen=True, repr=False)
class Column(Domain):
    """Declared column of a number, a date or a category, and the domain of its numbers or codes.

    Parameters
    ----------
    low, high : float or date
        Finite bounds with ``low < high``. Dates and texts such as ``"2024-02-29"`` become days since 1970-01-01.
    values : tuple of str, int, float, bool or None, default=None
        Distinct values of a category, which has no bounds. None is the category of missing values.
    kind : {"number", "integer", "date", "category"}, default=None
        Type of the values; None infers it from the bounds or values. Integers are rounded half to even.
    missing : "refuse", "category", "middle" or float, default="refuse"
        Treatment of a missing value: an error, a category of its own, or for numbers their replacement, by a number
        within the bounds or the middle of them. Devices always replace: ``"refuse"`` is the middle for them.
    scale : {"linear", "log"}, default="linear"
        ``"log"`` takes the natural logarithm of a skewed number. Requires ``low > 0``, and no policy has it.
    ordered : bool, default=False
        Whether the values are ordered.
    unknown : str, int, float, bool or None, default=...
        Member of `values` that a device takes for any other value, and for a missing one if None is not among them. An
        ellipsis means None if it is among the values, else the first value.
    unit : str, default=None
        Unit of a number, for display.
    name : str, default=""
        Not compared.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import Column
    >>> Column(0, 100).clip(np.array([[130.0]]))
    Clipped(rows=array([[100.]]), n_moved=1)
    >>> Column("2020-01-01", "2024-12-31", name="since")
    Column('since', date, 2020-01-01 to 2024-12-31)
    """

    low: Any = None
    high: Any = None
    _: KW_ONLY
    values: Any = None
    # Not None after __post_init__. For a category, `missing` then says whether None is among the values.
    kind: Any = None
    missing: Any = "refuse"
    scale: str = "linear"
    ordered: bool = False
    unknown: Any = ...
    unit: str | None = None
    name: str = field(default="", compare=False)

    type: ClassVar[str] = "column"
    n_features: ClassVar[int] = 1

    def __post_init__(self) -> None:
        own = self._checked_bounds() if self.values is None else self._checked_values()
        for name, value in own.items():
            object.__setattr__(self, name, value)
        if self.values is None:
            self._check_number()

    def _checked_bounds(self) -> dict[str, Any]:
        given = self.low, self.high
        of_dates = isinstance(self.low, DATE_TYPES)
        kind = ("date" if of_dates else "number") if self.kind is None else self.kind
        check_choice("The type of a column with bounds", kind, ("date",) if of_dates else ("number", "integer", "date"))
        low, high = days_of(*given) if of_dates else given
        if not is_number(low) or not is_number(high) or not float(high) / 2 - float(low) / 2 > 0:
            raise ValueError(f"Bounds must be finite numbers with low < high; got {given!r}.")
        if self.ordered or self.unknown is not ...:
            raise ValueError("ordered and unknown must be left out for a column with bounds.")
        return {"low": float(low), "high": float(high), "kind": kind}

    def _check_number(self) -> None:
        ends = self.low, self.high
        if self.is_date and (self.unit is not None or not (self.low >= FIRST_DAY and self.high <= LAST_DAY)):
            raise ValueError(f"Dates must be in the years 1 to 9999, without a unit; got the days {ends!r}.")
        check_choice("scale", self.scale, ("linear", "log"))
        if self.scale == "log" and (self.whole or not self.low > 0 or not self.radius > 0):
            raise ValueError(f"scale='log' needs 0 < low < high and the type 'number'; got {ends!r} and {self.kind!r}.")
        if self.missing == "middle" or (is_number(self.missing) and self.low <= self.missing <= self.high):
            object.__setattr__(self, "missing", self.stand_in)
        elif self.missing not in ("category", "refuse"):
            rule = "'refuse', 'category', 'middle' or a number within the bounds"
            raise ValueError(f"missing must be {rule}; got {self.missing!r}.")

    def _checked_values(self) -> dict[str, Any]:
        check_choice("The type of a column with values", self.kind or "category", ("category",))
        values = self.values
        if isinstance(values, tuple):
            values = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
        if not isinstance(values, tuple) or not all(map(_is_category, values)):
            raise ValueError(f"values must be a tuple of str, finite numbers, bool and None; got {self.values!r:.80}.")
        if (self.low, self.high, self.scale, self.unit) != (None, None, "linear", None):
            raise ValueError("low, high, scale and unit must be left out for a category.")
        if self.missing == "category" and None not in values:
            values = (*values, None)
        codes = set(map(value_key, values))
        if not codes - {value_key(None)} or len(codes) < len(values):
            raise ValueError(f"values must be different values, at least one beside None; got {values!r:.80}.")
        if self.missing not in ("refuse", "category"):
            raise ValueError(f"missing must be 'category' for a category, or left out; got {self.missing!r}.")
        if not isinstance(self.ordered, bool):
            raise ValueError(f"ordered must be True or False; got {self.ordered!r}.")
        first = None if None in values else values[0]
        unknown = first if self.unknown is ... else self.unknown
        if value_key(unknown) not in codes:
            raise ValueError(f"unknown must be one of the values; got {unknown!r:.40}.")
        missing = "category" if None in values else "refuse"
        return {"kind": "category", "values": values, "unknown": unknown, "missing": missing}

    def __repr__(self) -> str:
        named = f"{self.name!r}, " if self.name else ""
        missing = "" if self.missing == "refuse" or self.values else f", missing: {self._text(self.missing)}"
        scale = "" if self.scale == "linear" else f", scale: {self.scale}"
        held = self.values if self.values is not None else f"{self.label(self.low)} to {self.label(self.high)}"
        return f"Column({named}{self.kind}, {held}{missing}{scale})"

    @property
    def categories(self) -> tuple[Any, ...]:
        """Values of a category without None."""
        return tuple(value for value in self.values or () if value is not None)

    @cached_property
    def whole(self) -> bool:
        """True if numbers are rounded to integers."""
        return self.kind in ("integer", "date")

    @cached_property
    def is_date(self) -> bool:
        """True if numbers are days of dates."""
        return bool(self.kind == "date")

    @property
    def has_codes(self) -> bool:
        return self.values is not None

    @property
    def may_be_nan(self) -> bool:
        return self.values is None and bool(self.missing == "category")

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Bounds on the scale of the column; of a category, of its codes."""
        if self.values is not None:
            return 0.0, float(len(self.values) - 1)
        return (math.log(self.low), math.log(self.high)) if self.scale == "log" else (self.low, self.high)

    @cached_property
    def center(self) -> float:
        """Middle of the bounds on the scale of the column."""
        return self.ends[0] / 2 + self.ends[1] / 2

    @cached_property
    def radius(self) -> float:
        """Half the distance of the bounds on the scale of the column."""
        return self.ends[1] / 2 - self.ends[0] / 2

    @cached_property
    def stand_in(self) -> float:
        """Replacement of a missing number on a device."""
        middle = math.exp(self.center) if self.scale == "log" else self.center
        return float(self.missing) if is_number(self.missing) else min(max(middle, self.low), self.high)

    @property
    def is_wide(self) -> bool:
        """True if linear bounds above 0 span a factor of at least 100, where a log scale fits skewed numbers."""
        of_numbers = self.values is None and self.scale == "linear" and not self.is_date
        return of_numbers and self.low > 0 and self.high / 100 >= self.low

    def as_rows(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values as an array: of floats, or of codes."""
        if not self.has_codes:
            return super().as_rows(values)
        refuse_masked(values, "codes")
        return np.asarray(values)

    def clip(self, rows: np.ndarray) -> Clipped:
        """Clip numbers to the bounds, and round integers; raise ValueError for integers that are not codes."""
        missing = np.isnan(rows) if self.may_be_nan else np.zeros(1, dtype=bool)
        if not missing.any():
            return self._clipped(rows)
        # The 52 free bits of a NaN must not be released.
        there = np.where(missing, rows.dtype.type(self.ends[0]), rows)
        within, n_moved = self._clipped(there)
        return Clipped(np.where(missing, rows.dtype.type(np.nan), within), n_moved)

    def _clipped(self, rows: np.ndarray) -> Clipped:
        within, n_moved = self._inner.clip(rows)
        if not self.whole:
            return Clipped(within, n_moved)
        whole = np.rint(within)
        return Clipped(whole, int(np.count_nonzero(whole != rows)))

    @cached_property
    def _inner(self) -> Box | Codes:
        """Domain of numbers that are not missing, or of codes."""
        if self.values is not None:
            return Codes((len(self.values),))
        low, high = self.ends
        return Box((float(math.ceil(low)),), (float(math.floor(high)),)) if self.whole else Box((low,), (high,))

    def on_grid(self, rows: np.ndarray, shifts: npt.NDArray[np.float64], steps: int) -> np.ndarray:
        """Round numbers that are not integers to steps between the bounds."""
        if self.has_codes or self.whole:
            return rows
        missing = np.isnan(rows)
        there = np.where(missing, rows.dtype.type(self.ends[0]), rows)
        return np.where(missing, rows, self._inner.on_grid(there, shifts, steps))

    def to_dict(self) -> dict[str, Any]:
        """Return the domain of the numbers or codes as a dict."""
        if self.values is not None:
            coded = {"type": "categories", "values": list(self.values), "ordered": self.ordered}
            return {"type": "codes", "sizes": [len(self.values)]} if None in self.values else coded
        low, high = self.ends
        if self.whole:
            check_integers(low, high)
            low, high = int(low), int(high)
        number = {"type": "integers" if self.whole else "interval", "low": low, "high": high}
        return {"type": "or_missing", "number": number} if self.missing == "category" else number

    def to_document(self) -> dict[str, Any]:
        """Return the column as a dict of a policy."""
        if self.values is not None:
            return {"name": self.name, "type": "category", "values": list(self.values), "unknown": self.unknown}
        ends = {"low": repr(self.low), "high": repr(self.high), "missing": repr(self.stand_in)}
        return {"name": self.name, "type": self.kind, "unit": self.unit} | ends

    def encode(self, value: Any) -> float:
        """Return the position of a number in [-1, 1], or the code of a category.

        A decimal text is a number, and a value that cannot be read or is not declared is replaced.
        """
        found = self._device_reader.read(value)
        if self.values is not None:
            return self._instead(found) if isinstance(found, Unread) else int(found)
        number = self.stand_in if isinstance(found, Unread) else found
        inside = min(max(float(round(number)) if self.whole else number, self.low), self.high)
        inside = inside if self.scale == "linear" else math.log(inside)
        return min(max((inside - self.center) / self.radius, -1.0), 1.0)

    def encode_all(self, values: Any, **reading: Any) -> list[Any]:
        """Return the position in [-1, 1] or the code of each value; the parameters are those of `as_numbers`."""
        numbers = self.as_numbers(values, **reading)
        if self.values is None:
            numbers = self.unit_places(np.clip(np.rint(numbers) if self.whole else numbers, *self.ends))
        return list(numbers.tolist())

    def unit_places(self, numbers: np.ndarray) -> np.ndarray:
        """Return the positions of numbers on the scale of the column in [-1, 1]."""
        return np.clip((numbers - self.center) / self.radius, -1.0, 1.0)

    def number(self, place: Any) -> Any:
        """Return the numbers on the scale of the column at positions in [-1, 1] or outside."""
        return self.center + self.radius * place

    def as_numbers(
        self,
        values: Any,
        *,
        refuse_unknown: bool = True,
        lists_values: bool = False,
        text: bool = False,
        first_row: int | None = None,
    ) -> np.ndarray:
        """Return a column as codes, or as numbers on its scale, NaN if missing is a category.

        Raises ValueError with the row of an unreadable or unknown value, counted from `first_row`. The error has at
        most ten of the declared values, and only with `lists_values`: they may be learnt from rows.
        """
        cells = self._reader(text=text).read_all(values)
        missing = cells.state == Unread.MISSING
        if self.missing == "refuse" and (self.values is None or refuse_unknown):
            _refuse_missing(self, missing, first_row)
        refused = [Unread.UNREADABLE, *([Unread.UNKNOWN] if refuse_unknown else [])]
        rule = self._rule(cells, text, lists_values)
        cells.check(values, f"Column {self.name!r}", rule, *refused, first_row=first_row)
        if self.values is not None:
            instead = np.where(missing, *map(self._instead, (Unread.MISSING, Unread.UNKNOWN)))
            return np.where(cells.state > 0, instead, cells.values)
        stand_in = np.nan if self.missing == "category" else np.rint(self.stand_in) if self.whole else self.stand_in
        numbers: np.ndarray = np.where(missing, stand_in, cells.values)
        if self.scale == "linear":
            return numbers
        # A number outside the bounds stays outside, also without a logarithm.
        inside: np.ndarray = np.clip(np.log(np.clip(numbers, self.low, self.high)), *self.ends)
        moved: np.ndarray = inside + (numbers > self.high) - (numbers < self.low)
        return moved

    def _rule(self, cells: Cells, text: bool, lists_values: bool) -> str:
        """Return what the values of the column must be."""
        if self.values is None:
            numbers = "finite numbers such as 1234.5, without separators of thousands" if text else "finite numbers"
            return "dates, or texts such as '2024-02-29'" if self.is_date else numbers
        declared = self.categories
        listed = f" ({', '.join(value_labels(declared))})" if lists_values and len(declared) <= 10 else ""
        types = " or ".join(sorted({type(value).__name__ for value in declared}))
        unless = f", unless others are replaced ({_REPLACED})" if (cells.state == Unread.UNKNOWN).any() else ""
        return f"only the declared {len(declared)} values of type {types}{listed}{unless}"

    def from_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """Return released codes as categories, and numbers as numbers on the scale of the column or dates."""
        if self.values is not None:
            table = np.empty(len(self.values), dtype=object)
            table[:] = self.values
            return table[numbers.astype(np.int64)]
        if not self.is_date:
            return numbers
        missing = np.isnan(numbers)
        days = np.rint(np.where(missing, 0, numbers)).astype("timedelta64[D]")
        return np.where(missing, np.datetime64("NaT", "D"), np.datetime64(0, "D") + days)

    def feature_names(self, name: str) -> list[str]:
        """Return the names of the encoded columns."""
        if self.values is not None:
            return [f"{name}_{label}" for label in value_labels(self.values)]
        return [name, f"{name}_missing"] if self.missing == "category" else [name]

    def as_texts(self) -> tuple[str, str, str]:
        """Return both bounds and the replacement of missing values on a device, for display."""
        missing = float(round(self.stand_in)) if self.whole else self.stand_in
        return self.label(self.low), self.label(self.high), self.label(missing)

    def label(self, number: float) -> str:
        """Return the text of a number: of a date, the first day that is not before it."""
        return str(_EPOCH + datetime.timedelta(math.ceil(number))) if self.is_date else number_label(number)

    @property
    def replacement(self) -> str:
        """Text on the replacement of missing values on a device; empty if they are a category."""
        if self.values is None:
            return f"missing {self.name} counts as {self.as_texts()[2]}"
        return "" if self.unknown is None else f"missing or undeclared {self.name} counts as {self.unknown}"

    def replaced(self, values: Any, *, text: bool) -> dict[str, int]:
        """Return how many values a device would replace, by the rule."""
        cells = self._reader(text=text).read_all(values)
        missing, unknown = (cells.state == state for state in (Unread.MISSING, Unread.UNKNOWN))
        if self.values is not None:
            moved = unknown | (missing & (None not in self.values))
            return {self.replacement or f"undeclared {self.name} counts as missing": int(moved.sum())}
        outside = (cells.state == 0) & ((cells.values < self.low) | (cells.values > self.high))
        return {self.replacement: int(missing.sum()), f"{self.name} was clipped to its bounds": int(outside.sum())}

    def _text(self, value: Any) -> str:
        return self.label(value) if is_number(value) else str(value)

    def _reader(self, *, text: bool) -> Reader:
        if self.values is not None:
            return CodeReader(self.values, text=text)
        return DayReader(text=text) if self.is_date else NumberReader(text=text)

    @cached_property
    def _device_reader(self) -> Reader:
        return self._reader(text=True)

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return {value_key(value): code for code, value in enumerate(self.values or ())}

    def _instead(self, found: Unread) -> int:
        """Return the code of a value that was not read."""
        unknown = self._codes[value_key(self.unknown)]
        return self._codes.get(value_key(None), unknown) if found is Unread.MISSING else unknown


def _is_category(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or (isinstance(value, int | float) and is_number(value))


def check_integers(low: Any, high: Any) -> None:
    """Raise ValueError unless the bounds of a domain are integers that doubles can count between."""
    if not all(is_number(end) and float(end).is_integer() and abs(end) <= 2**53 for end in (low, high)):
        raise ValueError(f"Bounds must be whole numbers with low < high; got {(low, high)!r}.")


def days_of(low: Any, high: Any) -> tuple[Any, Any]:
    """Return the bounds of dates as days."""
    (first, last), unread = DayReader().read_all([low, high])
    of_days = all(
        isinstance(one, DATE_TYPES) and (not isinstance(one, str) or len(one) == len("2024-02-29"))
        for one in (low, high)
    )
    if not of_days or unread.any() or not first < last:
        raise ValueError(
            "Bounds of dates must be two dates with low < high, such as ('2020-01-01', '2024-12-31'); numbers have no "
            f"quotes, and categories are a list; got {(low, high)!r}."
        )
    return first, last


def _refuse_missing(column: Column, missing: np.ndarray, first_row: int | None) -> None:
    if missing.any():
        first = int(missing.argmax())
        where = f"at position {first}" if first_row is None else f"in row {first_row + first}"
        forms = '"category"' if column.values is not None else '"category" or "middle"'
        raise ValueError(
            f'Column {column.name!r} must not have missing values unless its schema declares them, by "missing": '
            f"{forms}; got NaN or None in {int(missing.sum()):,} of {missing.size:,} rows, the first {where}; nothing "
            "was released."
        )
