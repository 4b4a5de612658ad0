"""Declared columns, with name, type, bounds or values, replacements of missing values, and the reading of values."""

import datetime
import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skldp._checks import check_choice, is_number
from skldp._reading import FIRST_DAY, LAST_DAY, Cells, CodeReader, DayReader, NumberReader, Unread, value_key
from skldp._value_labels import number_label, value_labels

# Domains need scipy, which a device that applies a policy does not need.
if TYPE_CHECKING:
    from skldp.domains._columns import Categories, Integers, Interval
    from skldp.domains._domain import Domain


_EPOCH = datetime.date(1970, 1, 1)
_REPLACED = "handle_unknown, or --count-unknown on the command line"


@dataclass(frozen=True)
class NumberColumn:
    """Column of a number or a date within declared bounds.

    Parameters
    ----------
    name : str
    low, high : float
        Finite bounds with ``low < high``. The bounds of a date are days since 1970-01-01.
    unit : str, default=None
        Unit, for display.
    whole : bool, default=False
        Whether numbers are rounded to integers, half to even.
    missing : float, "category" or "refuse", default=None
        Replacement of a missing value, within the bounds; None means the middle of the bounds. In a table, a missing
        value may also be a category (``"category"``) or an error (``"refuse"``).
    is_date : bool, default=False
        Whether values are dates or texts such as ``"2024-02-29"`` rather than numbers. Requires `whole`.
    scale : {"linear", "log"}, default="linear"
        ``"log"`` takes the natural logarithm of a skewed number. Requires ``low > 0``; not for `whole`, nor a policy.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    name: str
    low: float
    high: float
    _: KW_ONLY
    unit: str | None = None
    whole: bool = False
    # Never None after __post_init__.
    missing: Any = None
    is_date: bool = False
    scale: str = "linear"

    values: ClassVar[None] = None

    def __post_init__(self) -> None:
        for end in ("low", "high", "missing"):
            if is_number(getattr(self, end)):
                object.__setattr__(self, end, float(getattr(self, end)))
        ends = self.low, self.high
        if not all(map(is_number, ends)) or not self.high / 2 - self.low / 2 > 0:
            raise ValueError(f"Bounds must be finite numbers with low < high; got {ends!r}.")
        check_choice("scale", self.scale, ("linear", "log"))
        if self.scale == "log" and (self.whole or not self.low > 0 or not self.radius > 0):
            raise ValueError(f"scale='log' needs 0 < low < high and whole=False; got {ends!r} and {self.whole}.")
        if self.missing is None:
            middle = math.exp(self.center) if self.scale == "log" else self.center
            object.__setattr__(self, "missing", min(max(middle, self.low), self.high))
        within = is_number(self.missing) and self.low <= self.missing <= self.high
        if not within and self.missing not in ("category", "refuse"):
            raise ValueError(f"missing must be None or a number within the bounds; got {self.missing!r}.")
        if self.is_date and not (self.whole and self.unit is None):
            raise ValueError("A date column must have whole=True and unit=None; got another combination.")
        if self.is_date and not (self.low >= FIRST_DAY and self.high <= LAST_DAY):
            raise ValueError(f"Bounds of a date must be in the years 1 to 9999; got the days {ends!r}.")

    def __repr__(self) -> str:
        low, high, missing = (self.label(one) if is_number(one) else one for one in (self.low, self.high, self.missing))
        scale = "" if self.scale == "linear" else f", scale: {self.scale}"
        return f"{type(self).__name__}({self.name!r}, {low} to {high}, missing: {missing}{scale})"

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Bounds on the scale of the column."""
        return (math.log(self.low), math.log(self.high)) if self.scale == "log" else (self.low, self.high)

    @cached_property
    def center(self) -> float:
        """Middle of the bounds on the scale of the column."""
        return self.ends[0] / 2 + self.ends[1] / 2

    @cached_property
    def radius(self) -> float:
        """Half the distance of the bounds on the scale of the column."""
        return self.ends[1] / 2 - self.ends[0] / 2

    @property
    def is_wide(self) -> bool:
        """Whether linear bounds above 0 span a factor of at least 100, where a log scale fits skewed numbers."""
        return self.scale == "linear" and not self.is_date and self.low > 0 and self.high / 100 >= self.low

    def encode(self, value: Any) -> float:
        """Return the position of a value in [-1, 1]; a decimal text is a number, an unreadable value is missing."""
        found = self._reader(text=True).read(value)
        number = self.missing if isinstance(found, Unread) else found
        inside = min(max(float(round(number)) if self.whole else number, self.low), self.high)
        inside = inside if self.scale == "linear" else math.log(inside)
        return min(max((inside - self.center) / self.radius, -1.0), 1.0)

    def places(self, values: Any, *, text: bool = False, first_row: int | None = None) -> list[float]:
        """Return the position of each value in [-1, 1]."""
        numbers = self.as_numbers(values, text=text, first_row=first_row)
        inside = np.clip(np.rint(numbers) if self.whole else numbers, *self.ends)
        return list(self.unit_places(inside).tolist())

    def unit_places(self, numbers: np.ndarray) -> np.ndarray:
        """Return the positions of numbers on the scale of the column in [-1, 1]."""
        return np.clip((numbers - self.center) / self.radius, -1.0, 1.0)

    def number(self, place: Any) -> Any:
        """Return the numbers on the scale of the column at positions in [-1, 1] or outside."""
        return self.center + self.radius * place

    def as_numbers(
        self, values: Any, *, refuse_unknown: bool = True, text: bool = False, first_row: int | None = None
    ) -> np.ndarray:
        """Return a column as numbers on its scale; a missing value is replaced, or NaN if missing is a category.

        Raises ValueError with the row of an unreadable value, counted from `first_row`.
        """
        cells = self._reader(text=text).read_all(values)
        missing = cells.state == Unread.MISSING
        if self.missing == "refuse":
            _refuse_missing(self.name, missing, first_row, '"category" or "middle"')
        rule = "dates, or texts such as '2024-02-29'" if self.is_date else "finite numbers"
        rule += " such as 1234.5, without separators of thousands" if text and not self.is_date else ""
        cells.check(values, f"Column {self.name!r}", rule, Unread.UNREADABLE, first_row=first_row)
        stand_in = np.nan if not is_number(self.missing) else np.rint(self.missing) if self.whole else self.missing
        numbers: np.ndarray = np.where(missing, stand_in, cells.values)
        if self.scale == "linear":
            return numbers
        # A number outside the bounds stays outside, also without a logarithm.
        inside: np.ndarray = np.clip(np.log(np.clip(numbers, self.low, self.high)), *self.ends)
        return inside + (numbers > self.high) - (numbers < self.low)

    def from_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """Return released numbers as numbers on the scale of the column, or dates."""
        if not self.is_date:
            return numbers
        missing = np.isnan(numbers)
        days = np.rint(np.where(missing, 0, numbers)).astype("timedelta64[D]")
        return np.where(missing, np.datetime64("NaT", "D"), np.datetime64(0, "D") + days)

    def feature_names(self, name: str) -> list[str]:
        """Return the names of the encoded columns."""
        return [name, f"{name}_missing"] if self.missing == "category" else [name]

    @cached_property
    def domain(self) -> "Interval | Integers":
        """Domain of the numbers on the scale of the column."""
        from skldp.domains._columns import Integers, Interval

        return Integers(math.ceil(self.low), math.floor(self.high)) if self.whole else Interval(*self.ends)

    @property
    def coded(self) -> "Domain":
        """Domain of the numbers, with NaN if missing is a category."""
        from skldp.domains._columns import OrMissing

        return OrMissing(self.domain) if self.missing == "category" else self.domain

    def as_texts(self) -> tuple[str, str, str]:
        """Return both bounds and the replacement of missing values, for display."""
        missing = float(round(self.missing)) if self.whole else self.missing
        return self.label(self.low), self.label(self.high), self.label(missing)

    def label(self, number: float) -> str:
        """Return the text of a number: of a date, the first day that is not before it."""
        return str(_EPOCH + datetime.timedelta(math.ceil(number))) if self.is_date else number_label(number)

    @property
    def stand_in(self) -> str:
        """Text that names the substitute of missing values on a device."""
        return f"missing {self.name} counts as {self.as_texts()[2]}"

    def replaced(self, values: Any, *, text: bool) -> dict[str, int]:
        """Return how many values a device would replace, by the rule."""
        cells = self._reader(text=text).read_all(values)
        outside = (cells.state == 0) & ((cells.values < self.low) | (cells.values > self.high))
        missing = cells.state == Unread.MISSING
        return {self.stand_in: int(missing.sum()), f"{self.name} was clipped to its bounds": int(outside.sum())}

    def to_dict(self) -> dict[str, Any]:
        """Return the column as a dict of its document."""
        return {
            "name": self.name,
            "type": "date" if self.is_date else "integer" if self.whole else "number",
            "unit": self.unit,
            "low": repr(self.low),
            "high": repr(self.high),
            "missing": repr(self.missing),
        }

    @property
    def _reader(self) -> type[DayReader | NumberReader]:
        return DayReader if self.is_date else NumberReader


@dataclass(frozen=True)
class CategoryColumn:
    """Column of a category with declared values.

    Parameters
    ----------
    name : str
    values : tuple of str, int, float, bool or None
        Distinct values; None is the category of missing values.
    unknown : str, int, float, bool or None, default=...
        Member of `values` that replaces any other value, and a missing value if None is not among them. An ellipsis
        means None if it is among the values, else the first value.
    ordered : bool, default=False
        Whether the values are ordered.

    Raises
    ------
    ValueError
        If values occur twice, or `unknown` is not among them.
    """

    name: str
    values: tuple[Any, ...]
    _: KW_ONLY
    unknown: Any = ...
    ordered: bool = False

    is_date: ClassVar[bool] = False
    scale: ClassVar[str] = "linear"
    # Values of a table may be learnt from rows; errors list at most ten public ones.
    is_public: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if len(self._codes) < len(self.values):
            raise ValueError("values must all be different; got one twice.")
        if self.unknown is ...:
            object.__setattr__(self, "unknown", None if None in self.values else self.values[0])
        if value_key(self.unknown) not in self._codes:
            raise ValueError(f"unknown must be one of the values; got {self.unknown!r:.40}.")

    @property
    def missing(self) -> str:
        """Treatment of missing values: ``"category"`` if None is among the values, else ``"refuse"``."""
        return "category" if None in self.values else "refuse"

    @property
    def stand_in(self) -> str:
        """Text that names the substitute of missing values on a device; empty if they are a category."""
        return "" if self.unknown is None else f"missing or undeclared {self.name} counts as {self.unknown}"

    def replaced(self, values: Any, *, text: bool) -> dict[str, int]:
        """Return how many values a device would replace, by the rule."""
        state = CodeReader(self.values, text=text).read_all(values).state
        moved = (state == Unread.UNKNOWN) | ((state == Unread.MISSING) & (None not in self.values))
        return {self.stand_in or f"undeclared {self.name} counts as missing": int(moved.sum())}

    def encode(self, value: Any) -> int:
        """Return the code of a value, which may be unknown or missing."""
        found = self._reader.read(value)
        if isinstance(found, Unread):
            return self._missing if found is Unread.MISSING else self._unknown
        return int(found)

    def as_numbers(
        self, values: Any, *, refuse_unknown: bool = True, text: bool = False, first_row: int | None = None
    ) -> np.ndarray:
        """Return a column as codes.

        Raises ValueError with the row of an unreadable or unknown value, counted from `first_row`.
        """
        cells: Cells = CodeReader(self.values, text=text).read_all(values)
        if refuse_unknown and None not in self.values:
            _refuse_missing(self.name, cells.state == Unread.MISSING, first_row)
        refused = [Unread.UNREADABLE, *([Unread.UNKNOWN] if refuse_unknown else [])]
        declared = [value for value in self.values if value is not None]
        listed = f" ({', '.join(value_labels(declared))})" if self.is_public and len(declared) <= 10 else ""
        types = " or ".join(sorted({type(value).__name__ for value in declared}))
        unless = f", unless others are replaced ({_REPLACED})" if (cells.state == Unread.UNKNOWN).any() else ""
        rule = f"only the declared {len(declared)} values of type {types}{listed}{unless}"
        cells.check(values, f"Column {self.name!r}", rule, *refused, first_row=first_row)
        instead = np.where(cells.state == Unread.MISSING, self._missing, self._unknown)
        return np.where(cells.state > 0, instead, cells.values)

    def from_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """Return released codes as categories."""
        table = np.empty(len(self.values), dtype=object)
        table[:] = self.values
        return table[numbers.astype(np.int64)]

    def feature_names(self, name: str) -> list[str]:
        """Return the names of the encoded columns."""
        return [f"{name}_{label}" for label in value_labels(self.values)]

    @cached_property
    def domain(self) -> "Categories":
        """Domain of the values that are not missing."""
        from skldp.domains._columns import Categories

        return Categories(tuple(value for value in self.values if value is not None), self.ordered)

    @property
    def coded(self) -> "Domain":
        """Domain of the codes."""
        from skldp.domains._domain import Codes

        return Codes((len(self.values),)) if None in self.values else self.domain

    def to_dict(self) -> dict[str, Any]:
        """Return the column as a dict of its document."""
        return {"name": self.name, "type": "category", "values": list(self.values), "unknown": self.unknown}

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return {value_key(value): code for code, value in enumerate(self.values)}

    @cached_property
    def _unknown(self) -> int:
        return self._codes[value_key(self.unknown)]

    @cached_property
    def _missing(self) -> int:
        return self._codes.get(value_key(None), self._unknown)

    @cached_property
    def _reader(self) -> CodeReader:
        return CodeReader(self.values, text=True)


DeclaredColumn = NumberColumn | CategoryColumn


def _refuse_missing(name: str, missing: np.ndarray, first_row: int | None, forms: str = '"category"') -> None:
    if missing.any():
        first = int(missing.argmax())
        where = f"at position {first}" if first_row is None else f"in row {first_row + first}"
        raise ValueError(
            f'Column {name!r} must not have missing values unless its schema declares them, by "missing": {forms}. '
            "Got NaN or None in "
            f"{int(missing.sum()):,} of {missing.size:,} rows, the first {where}; nothing was released."
        )
