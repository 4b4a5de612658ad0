"""Numbers and dates of a record within declared bounds, and their place in [-1, 1]."""

import datetime
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skldp._checks import is_number

__all__ = ["NumberColumn", "column_from_dict", "is_missing"]

_EPOCH = datetime.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (datetime.date.min - _EPOCH).days, (datetime.date.max - _EPOCH).days
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]|\Z)")


def is_missing(value: Any) -> bool:
    """Whether a value is what tables have where there is none: None, NaN, NaT, or the NA of pandas."""
    kind = type(value).__name__
    # numpy's kinds by their names, since nothing here needs it.
    may_be_none = isinstance(value, float) or kind in ("float16", "float32", "longdouble", "datetime64")
    return value is None or kind in ("NAType", "NaTType") or (may_be_none and bool(value != value))


@dataclass(frozen=True)
class NumberColumn:
    r"""A number within declared bounds, or a date.

    Parameters
    ----------
    name : str
    low, high : float
        Finite, and ``low < high``. Of a date, days since 1970.
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
        if not (is_number(self.low) and is_number(self.high)) or not self.high / 2 - self.low / 2 > 0:
            raise ValueError(f"Bounds must be finite numbers with low < high. Got {(self.low, self.high)!r} instead.")
        if self.missing is None:
            object.__setattr__(self, "missing", self.low / 2 + self.high / 2)
        if not (is_number(self.missing) and self.low <= self.missing <= self.high):
            raise ValueError(f"missing must be None or a number within the bounds. Got {self.missing!r} instead.")
        if self.is_date and not (self.whole and self.unit is None):
            raise ValueError("A date must be whole, and have no unit. Got another one instead.")
        if self.is_date and not (self.low >= _FIRST_DAY and self.high <= _LAST_DAY):
            raise ValueError("The bounds of a date must be of the years 1 to 9999. Got others instead.")

    def encode(self, value: Any) -> float:
        """Return the place of a value in [-1, 1]: any value has one, and what cannot be read is missing."""
        try:
            number = self.missing if is_missing(value) else self.read(value)
        except Exception:
            # The methods of a value may raise anything; an error would reveal the value.
            number = self.missing
        rounded = float(round(number)) if self.whole else number
        inside = min(max(rounded, self.low), self.high)
        center, radius = self._center_and_radius
        return min(max((inside - center) / radius, -1.0), 1.0)

    def read(self, value: Any) -> float:
        """Return the number that a value is, of a date its day since 1970.

        Raises
        ------
        ValueError
            If it is none; the text shows no value.
        """
        return self._day(value) if self.is_date else self._number(value)

    def number(self, place: Any) -> Any:
        """The number at a place, or an array of places, which may lie outside [-1, 1]."""
        center, radius = self._center_and_radius
        return center + radius * place

    def as_texts(self) -> tuple[str, str, str]:
        """Return both bounds and the stand-in for missing values, to be shown: of dates as such."""
        numbers = (self.low, self.high, float(round(self.missing)) if self.whole else self.missing)
        low, high, missing = (str(_EPOCH + datetime.timedelta(n)) if self.is_date else f"{n:g}" for n in numbers)
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

    def _number(self, value: Any) -> float:
        if not is_number(value):
            raise ValueError(f"Field {self.name!r} must be a finite number. Got {type(value).__name__} instead.")
        return float(value)

    def _day(self, value: Any) -> float:
        # All of these write themselves as such a text; what follows the day is a time of it.
        of_dates = isinstance(value, str | datetime.date) or type(value).__name__ == "datetime64"
        found = _DATE.match(str(value)) if of_dates else None
        try:
            day = datetime.date(*map(int, found.groups())) if found else None
        except ValueError:
            day = None
        if day is None:
            raise ValueError(
                f"Field {self.name!r} must be a date, or a text such as '2024-02-29'. Got {type(value).__name__} "
                "instead."
            )
        return float((day - _EPOCH).days)

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
