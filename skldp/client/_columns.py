"""Numbers and dates of a record within declared bounds, and their place in [-1, 1]."""

import datetime
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp._checks import is_number
from skldp._reading import FIRST_DAY, LAST_DAY, DayReader, NumberReader, Unread
from skldp._value_labels import number_label

__all__ = ["NumberColumn", "column_from_dict"]

_MOST = 1e100
_EPOCH = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class NumberColumn:
    r"""A number within declared bounds, or a date.

    Parameters
    ----------
    name : str
    low, high : float
        From -1e100 to 1e100, and ``low < high``. Of a date, days since 1970.
    unit : str, default=None
        Of the number, to be shown.
    whole : bool, default=False
        Round to a whole number first, half to even.
    missing : float, default=None
        Stand-in for a missing value, within the bounds. None is the middle of the bounds.
    is_date : bool, default=False
        Take dates, or texts such as ``"2024-02-29"``, and no numbers; `whole` then.

    Raises
    ------
    ValueError
        If a parameter is not as above.
    """

    name: str
    low: float
    high: float
    unit: str | None = None
    whole: bool = False
    # Always a number after __post_init__.
    missing: Any = None
    is_date: bool = False

    def __post_init__(self) -> None:
        for end in ("low", "high", "missing"):
            if is_number(getattr(self, end)):
                object.__setattr__(self, end, float(getattr(self, end)))
        # Squares of larger numbers, which variances are, would leave the range of doubles.
        ends = self.low, self.high
        if not all(is_number(end) and abs(end) <= _MOST for end in ends) or not self.high / 2 - self.low / 2 > 0:
            raise ValueError(f"Bounds must be numbers from {-_MOST:g} to {_MOST:g} with low < high; got {ends!r}.")
        if self.missing is None:
            object.__setattr__(self, "missing", self.low / 2 + self.high / 2)
        if not (is_number(self.missing) and self.low <= self.missing <= self.high):
            raise ValueError(f"missing must be None or a number within the bounds. Got {self.missing!r} instead.")
        if self.is_date and not (self.whole and self.unit is None):
            raise ValueError("A date must be whole, and have no unit. Got another one instead.")
        if self.is_date and not (self.low >= FIRST_DAY and self.high <= LAST_DAY):
            raise ValueError("The bounds of a date must be of the years 1 to 9999. Got others instead.")

    def encode(self, value: Any) -> float:
        """Return the place of a value in [-1, 1]: any value has one, and what cannot be read is missing."""
        found = self._reader(text=False).read(value)
        number = self.missing if isinstance(found, Unread) else found
        rounded = float(round(number)) if self.whole else number
        inside = min(max(rounded, self.low), self.high)
        center, radius = self._center_and_radius
        return min(max((inside - center) / radius, -1.0), 1.0)

    def encode_all(self, values: Any, text: bool, first_row: int | None) -> list[float]:
        """Return the place of each value of a column, as :meth:`encode` does of one that is read or missing.

        Raises
        ------
        ValueError
            If a value cannot be read; its row counts from `first_row`, or is a position from 0.
        """
        cells = self._reader(text=text).read_all(values)
        rule = "dates, or texts such as '2024-02-29'" if self.is_date else "finite numbers"
        cells.check(values, f"Column {self.name!r}", rule, Unread.UNREADABLE, first_row=first_row)
        numbers = np.where(cells.state > 0, self.missing, cells.values)
        center, radius = self._center_and_radius
        inside = np.clip(np.rint(numbers) if self.whole else numbers, self.low, self.high)
        places: list[float] = np.clip((inside - center) / radius, -1.0, 1.0).tolist()
        return places

    def number(self, place: Any) -> Any:
        """The number at a place, or an array of places, which may lie outside [-1, 1]."""
        center, radius = self._center_and_radius
        return center + radius * place

    def as_texts(self) -> tuple[str, str, str]:
        """Return both bounds and the stand-in for missing values, to be shown: of dates as such."""
        numbers = (self.low, self.high, float(round(self.missing)) if self.whole else self.missing)
        low, high, missing = (str(_EPOCH + datetime.timedelta(n)) if self.is_date else number_label(n) for n in numbers)
        return low, high, missing

    def to_dict(self) -> dict[str, Any]:
        """Describe the column as it stands in a policy."""
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

    @cached_property
    def _center_and_radius(self) -> tuple[float, float]:
        return self.low / 2 + self.high / 2, self.high / 2 - self.low / 2


def column_from_dict(given: dict[str, Any]) -> NumberColumn:
    """Read a column of a document that the schema has let pass.

    Raises
    ------
    ValueError
        If its parameters do not fit together.
    """
    return NumberColumn(
        given["name"],
        float(given["low"]),
        float(given["high"]),
        given["unit"],
        given["type"] != "number",
        float(given["missing"]),
        given["type"] == "date",
    )
