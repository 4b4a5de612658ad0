"""Numbers and dates of a record within declared bounds, and their place in [-1, 1]."""

import datetime
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from skldp._checks import is_number

__all__ = ["NumberColumn", "column_from_dict", "is_missing"]

_MOST = 1e100
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
        From -1e100 to 1e100, and ``low < high``. Of a date, days since 1970.
    unit : str, default=None
        Of the number, to be shown.
    whole : bool, default=False
        Round to a whole number first, half to even.
    outside : {"clip", "refuse"}, default="clip"
        What is done with a number outside the bounds. A refusal tells the collector that there is no report.
    missing : float, default=None
        What stands for a value that is missing; None refuses the record.
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
    outside: Literal["clip", "refuse"] = "clip"
    missing: float | None = None
    is_date: bool = False

    def __post_init__(self) -> None:
        for end in ("low", "high", "missing"):
            if is_number(getattr(self, end)):
                object.__setattr__(self, end, float(getattr(self, end)))
        # Squares of larger numbers, which variances are, would leave the range of doubles.
        if not all(is_number(end) and abs(end) <= _MOST for end in (self.low, self.high)) or not (
            self.high / 2 - self.low / 2 > 0
        ):
            raise ValueError(
                f"Bounds must be numbers from {-_MOST:g} to {_MOST:g} with low < high; got {(self.low, self.high)!r}."
            )
        if self.outside not in ("clip", "refuse"):
            raise ValueError(f"outside must be 'clip' or 'refuse'. Got {self.outside!r} instead.")
        if self.missing is not None and not (is_number(self.missing) and self.low <= self.missing <= self.high):
            raise ValueError(f"missing must be None or a number within the bounds. Got {self.missing!r} instead.")
        if self.is_date and not (self.whole and self.unit is None):
            raise ValueError("A date must be whole, and have no unit. Got another one instead.")
        if self.is_date and not (self.low >= _FIRST_DAY and self.high <= _LAST_DAY):
            raise ValueError("The bounds of a date must be of the years 1 to 9999. Got others instead.")

    def encode(self, value: Any) -> float:
        """The place of a value of the record in [-1, 1].

        Raises
        ------
        ValueError
            If the policy says that such a value is refused; the text shows no value.
        """
        if is_missing(value):
            if self.missing is None:
                raise ValueError(f"Field {self.name!r} must not be missing. Got nothing instead.")
            number = self.missing
        else:
            number = self._day(value) if self.is_date else self._number(value)
        rounded = float(round(number)) if self.whole else number
        inside = min(max(rounded, self.low), self.high)
        if inside != rounded and self.outside == "refuse":
            raise ValueError(f"Field {self.name!r} must lie within its bounds. Got a number outside instead.")
        center, radius = self._center_and_radius
        return min(max((inside - center) / radius, -1.0), 1.0)

    def number(self, place: Any) -> Any:
        """The number at a place, or an array of places, which may lie outside [-1, 1]."""
        center, radius = self._center_and_radius
        return center + radius * place

    def bounds_as_texts(self) -> tuple[str, str]:
        """Both bounds, to be shown: of dates as such."""
        if self.is_date:
            return str(_EPOCH + datetime.timedelta(self.low)), str(_EPOCH + datetime.timedelta(self.high))
        return f"{self.low:g}", f"{self.high:g}"

    def to_dict(self) -> dict[str, Any]:
        """Describe the column as it stands in a policy."""
        own = {
            "name": self.name,
            "type": "date" if self.is_date else "integer" if self.whole else "number",
            "unit": self.unit,
            "low": repr(self.low),
            "high": repr(self.high),
            "outside": self.outside,
        }
        return own if self.missing is None else own | {"missing": repr(self.missing)}

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
        given["outside"],
        float(given["missing"]) if "missing" in given else None,
        given["type"] == "date",
    )
