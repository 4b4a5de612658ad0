"""The fields of a policy: what a value may be on a person's own device, and the law that answers for it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from skldp._checks import check_whole, is_number, is_whole
from skldp.mechanisms._integer_laws import CodeLaw, IntegerLaw, UnitLaw, law_from_dict

__all__ = ["CategoryField", "Field", "NumberField", "field_from_dict"]

_LARGEST_WHOLE = 2**53


@dataclass(frozen=True)
class Field(ABC):
    """One value of a record. A subclass is a frozen dataclass."""

    name: str

    @property
    def epsilon(self) -> float:
        """The exact epsilon of the field's answer, from the integers of its law."""
        return self._law.epsilon

    @property
    def n_answers(self) -> int:
        """How many different answers there are."""
        return self._law.n_answers

    @abstractmethod
    def encode(self, value: Any) -> Any:
        """What the law takes for a value of the record, None where it is missing.

        Raises
        ------
        ValueError
            If the policy says that such a value is refused; the text shows no value.
        """

    @abstractmethod
    def draw(self, encoded: Any, words: Iterator[int]) -> int:
        """Answer for what :meth:`encode` gave."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe the field as it stands in a policy."""

    @property
    @abstractmethod
    def _law(self) -> IntegerLaw:
        """The law."""


@dataclass(frozen=True)
class NumberField(Field):
    r"""A number within declared bounds.

    Parameters
    ----------
    name : str
    low, high : float
        Finite, and ``low < high``.
    law : IntegerLaw
        For numbers in [-1, 1].
    unit : str, default=None
        Of the number, to be shown.
    whole : bool, default=False
        Round to a whole number first, half to even.
    outside : {"clip", "refuse"}, default="clip"
        What is done with a number outside the bounds. A refusal tells the collector that there is no report.
    missing : float, default=None
        What stands for a value that is missing; None refuses the record.
    steps : int, default=None
        Into how many equal steps the bounds are divided under the memo rule ``"permanent"``, from 1 to 2^30.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    Notes
    -----
    In IEEE double precision, with :math:`c` the sum of the halves of both bounds, and :math:`r` their difference, the
    law is given :math:`(x - c) / r`, moved into [-1, 1].
    """

    low: float
    high: float
    law: UnitLaw
    unit: str | None = None
    whole: bool = False
    outside: Literal["clip", "refuse"] = "clip"
    missing: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for end in ("low", "high", "missing"):
            if is_number(getattr(self, end)):
                object.__setattr__(self, end, float(getattr(self, end)))
        if not (is_number(self.low) and is_number(self.high)) or not self.high / 2 - self.low / 2 > 0:
            raise ValueError(f"Bounds must be finite numbers with low < high. Got {(self.low, self.high)!r} instead.")
        if not isinstance(self.law, UnitLaw):
            raise ValueError(f"The law of a number must be one for [-1, 1]. Got {self.law!r} instead.")
        if self.outside not in ("clip", "refuse"):
            raise ValueError(f"outside must be 'clip' or 'refuse'. Got {self.outside!r} instead.")
        if self.missing is not None and not (is_number(self.missing) and self.low <= self.missing <= self.high):
            raise ValueError(f"missing must be None or a number within the bounds. Got {self.missing!r} instead.")
        if self.steps is not None:
            check_whole("steps", self.steps, least=1, most=2**30)

    def encode(self, value: Any) -> float:
        """The place of a number in [-1, 1]."""
        # A pandas NaN, and that of a spreadsheet, is what is missing.
        if value is None or (isinstance(value, float) and value != value):
            if self.missing is None:
                raise ValueError(f"Field {self.name!r} must not be missing. Got nothing instead.")
            value = self.missing
        if not is_number(value):
            raise ValueError(f"Field {self.name!r} must be a finite number. Got {type(value).__name__} instead.")
        number = float(round(float(value))) if self.whole else float(value)
        inside = min(max(number, self.low), self.high)
        if inside != number and self.outside == "refuse":
            raise ValueError(f"Field {self.name!r} must lie within its bounds. Got a number outside instead.")
        center, radius = self._center_and_radius
        return min(max((inside - center) / radius, -1.0), 1.0)

    def draw(self, encoded: float, words: Iterator[int]) -> int:
        """Answer for a place in [-1, 1]."""
        return self.law.draw(encoded, words)

    def value(self, answer: int) -> float:
        """The number that an answer stands for, without bias."""
        center, radius = self._center_and_radius
        return center + radius * self.law.value(answer)

    def to_dict(self) -> dict[str, Any]:
        """Describe the field."""
        own = {
            "name": self.name,
            "type": "integer" if self.whole else "number",
            "unit": self.unit,
            "low": repr(self.low),
            "high": repr(self.high),
            "outside": self.outside,
            "law": self.law.to_dict(),
            "epsilon": repr(self.epsilon),
        }
        own |= {} if self.steps is None else {"steps": str(self.steps)}
        return own if self.missing is None else own | {"missing": repr(self.missing)}

    @cached_property
    def _center_and_radius(self) -> tuple[float, float]:
        return self.low / 2 + self.high / 2, self.high / 2 - self.low / 2

    @property
    def _law(self) -> IntegerLaw:
        return self.law


@dataclass(frozen=True)
class CategoryField(Field):
    """One of a list of values.

    Parameters
    ----------
    name : str
    values : tuple of str, int, bool or None
        All different, at least two; None is the category of what is missing.
    law : IntegerLaw
        For codes, as many as there are values.
    unknown : str, int, bool or None, default=...
        The one of `values` that stands for any other value. An ellipsis refuses the record.

    Raises
    ------
    ValueError
        If a parameter is not as above.
    """

    values: tuple[str | int | bool | None, ...]
    law: CodeLaw
    unknown: Any = ...

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple) or not all(map(_is_value, self.values)):
            raise ValueError("values must be a tuple of texts, whole numbers, booleans and None. Got others instead.")
        if len(self._codes) < len(self.values):
            raise ValueError("values must all be different. Got one twice instead.")
        if not isinstance(self.law, CodeLaw) or self.law.n_codes != len(self.values):
            raise ValueError(f"The law of a category must be of {len(self.values)} codes. Got {self.law!r} instead.")
        if self.unknown is not ... and _key(self.unknown) not in self._codes:
            raise ValueError(f"unknown must be one of the values. Got {self.unknown!r} instead.")

    def encode(self, value: Any) -> int:
        """The place of a value in the list."""
        code = self._codes.get(_key(value), self._unknown)
        if code is None:
            raise ValueError(f"Field {self.name!r} must be one of its values. Got another {type(value).__name__}.")
        return code

    def draw(self, encoded: int, words: Iterator[int]) -> int:
        """Answer for a code."""
        return self.law.draw(encoded, words)

    def to_dict(self) -> dict[str, Any]:
        """Describe the field."""
        own = {
            "name": self.name,
            "type": "category",
            "values": list(self.values),
            "law": self.law.to_dict(),
            "epsilon": repr(self.epsilon),
        }
        return own if self.unknown is ... else own | {"unknown": self.unknown}

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return {_key(value): code for code, value in enumerate(self.values)}

    @cached_property
    def _unknown(self) -> int | None:
        return None if self.unknown is ... else self._codes[_key(self.unknown)]

    @property
    def _law(self) -> IntegerLaw:
        return self.law


def field_from_dict(given: dict[str, Any]) -> NumberField | CategoryField:
    """Read a field of a document that the schema has let pass.

    Raises
    ------
    ValueError
        If its parameters do not fit together, or its integers are those of no law.
    """
    law = law_from_dict(given["law"])
    if given["type"] == "category":
        assert isinstance(law, CodeLaw)
        return CategoryField(given["name"], tuple(given["values"]), law, given.get("unknown", ...))
    assert isinstance(law, UnitLaw)
    missing = float(given["missing"]) if "missing" in given else None
    low, high, whole = float(given["low"]), float(given["high"]), given["type"] == "integer"
    steps = int(given["steps"]) if "steps" in given else None
    return NumberField(given["name"], low, high, law, given["unit"], whole, given["outside"], missing, steps)


def _is_value(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or (is_whole(value) and abs(value) <= _LARGEST_WHOLE)


def _key(value: Any) -> Any:
    """What tells values of a list apart, of which 1, 1.0 and True are equal."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool | str):
        return value
    # What is of another type is in no list, and may not even have a hash.
    return ("int", int(value)) if is_whole(value) else ("other",)
