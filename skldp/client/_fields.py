"""The fields of a policy: what a value may be on a person's own device, and the law that answers for it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp._checks import check_whole, is_whole
from skldp._reading import CodeReader, Unread, value_key
from skldp.client._columns import NumberColumn, column_from_dict
from skldp.mechanisms._integer_laws import CodeLaw, GroupLaw, IntegerLaw, TwoStepLaw, UnitLaw
from skldp.mechanisms._law_documents import law_from_dict

__all__ = ["AnyField", "CategoryField", "NumberField", "NumbersField", "field_from_dict"]

_LARGEST_WHOLE = 2**53


@dataclass(frozen=True)
class Field(ABC):
    """What of a record is answered for at once. A subclass is a frozen dataclass."""

    name: str

    @property
    def epsilon(self) -> float:
        """The exact epsilon of the field's answer, from the integers of its law."""
        return self._law.epsilon

    @property
    def lifetime_epsilon(self) -> float:
        """The exact epsilon of all answers to one value together, under the memo rule ``"permanent"``."""
        return self._law.lifetime_epsilon

    @property
    def two_steps(self) -> TwoStepLaw | None:
        """The law, where it has a permanent answer that every report randomises again."""
        return self._law if isinstance(self._law, TwoStepLaw) else None

    @property
    def n_answers(self) -> int:
        """Answers are whole numbers from 0 to below this."""
        return self._law.n_answers

    @abstractmethod
    def encode(self, value: Any) -> Any:
        """Return what the law takes for a value of the record, None where it is missing; or for several, by name."""

    @abstractmethod
    def encode_all(self, columns: Mapping[str, Any], text: bool, first_row: int | None, unknown: bool) -> Sequence[Any]:
        """Return what the law takes for each row of a table, an array or a sequence for each name.

        `text` says that cells are those of a text file, `unknown` whether such categories count as `unknown`.

        Raises
        ------
        ValueError
            If a cell cannot be read, or is unknown; no value is shown. Its row counts from `first_row`, or is a
            position from 0.
        """

    @abstractmethod
    def draw(self, encoded: Any, words: Iterator[int]) -> int:
        """Answer for what :meth:`encode` gave."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe the field as it stands in a policy."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the record calls its values."""
        return (self.name,)

    def is_answer(self, answer: int) -> bool:
        """Whether a number, perhaps a stranger's, is an answer of the field."""
        return self._law.is_answer(answer)

    @property
    @abstractmethod
    def _law(self) -> IntegerLaw:
        """The law."""

    def _law_and_epsilons(self) -> dict[str, Any]:
        """What every field says of its law."""
        own = {"law": self._law.to_dict(), "epsilon": repr(self.epsilon)}
        return own if self.two_steps is None else own | {"lifetime_epsilon": repr(self.lifetime_epsilon)}


@dataclass(frozen=True)
class NumberField(Field):
    r"""A number within declared bounds, or a date.

    Parameters
    ----------
    name : str
    low, high : float
        From -1e100 to 1e100, and ``low < high``. Of a date, days since 1970.
    law : IntegerLaw
        For numbers in [-1, 1].
    unit : str, default=None
        Of the number, to be shown.
    whole : bool, default=False
        Round to a whole number first, half to even.
    missing : float, default=None
        Stand-in for a missing value, within the bounds. None is the middle of the bounds.
    is_date : bool, default=False
        Take dates, or texts such as ``"2024-02-29"``, and no numbers; `whole` then.
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
    missing: Any = None
    is_date: bool = False
    steps: int | None = None

    def __post_init__(self) -> None:
        for end in ("low", "high", "missing"):
            object.__setattr__(self, end, getattr(self.column, end))
        if not isinstance(self.law, UnitLaw):
            raise ValueError(f"The law of a number must be one for [-1, 1]. Got {self.law!r} instead.")
        _check_steps(self.steps)
        if self.steps is not None and self.two_steps is not None:
            raise ValueError(
                f"A law of two steps moves numbers itself, and needs no steps. Got {self.steps!r} instead."
            )

    @cached_property
    def trembles(self) -> bool:
        """Whether it takes numbers of any digits, each of which would be a value of its own."""
        return self.steps is None and not self.whole and self.two_steps is None

    @cached_property
    def column(self) -> NumberColumn:
        """The number without its law."""
        bounds = self.low, self.high
        return NumberColumn(self.name, *bounds, self.unit, self.whole, self.missing, self.is_date)

    def encode(self, value: Any) -> float:
        """The place of a number in [-1, 1]."""
        return self.column.encode(value)

    def encode_all(
        self, columns: Mapping[str, Any], text: bool, first_row: int | None, unknown: bool
    ) -> Sequence[float]:
        """Return the place of each number in [-1, 1]."""
        return self.column.encode_all(columns[self.name], text, first_row)

    def draw(self, encoded: float, words: Iterator[int]) -> int:
        """Answer for a place in [-1, 1]."""
        return self.law.draw(encoded, words)

    def value(self, answer: int) -> float:
        """The number that an answer stands for, without bias."""
        return float(self.column.number(self.law.value(answer)))

    def to_dict(self) -> dict[str, Any]:
        """Describe the field."""
        own = self.column.to_dict() | self._law_and_epsilons()
        return own if self.steps is None else own | {"steps": str(self.steps)}

    @property
    def _law(self) -> IntegerLaw:
        return self.law


@dataclass(frozen=True)
class NumbersField(Field):
    """Several numbers of a record that are answered for together, or of which some are chosen and told.

    Parameters
    ----------
    name : str
        Of the answer; the record has the names of the columns.
    columns : tuple of NumberColumn
        Of different names.
    law : GroupLaw
        For as many numbers in [-1, 1].
    steps : int, default=None
        Into how many equal steps the bounds of each number that is not whole are divided under the memo rule
        ``"permanent"``, from 1 to 2^30.

    Raises
    ------
    ValueError
        If a parameter is not as above.
    """

    columns: tuple[NumberColumn, ...]
    law: GroupLaw
    steps: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, tuple) or not all(isinstance(one, NumberColumn) for one in self.columns):
            raise ValueError(f"columns must be a tuple of columns of numbers. Got {self.columns!r} instead.")
        if not isinstance(self.law, GroupLaw) or self.law.n_values != len(self.columns):
            raise ValueError(f"The law must be of {len(self.columns)} numbers. Got {self.law!r} instead.")
        _check_steps(self.steps)

    @cached_property
    def trembles(self) -> bool:
        """Whether it takes numbers of any digits, each of which would be a value of its own."""
        return self.steps is None and not all(column.whole for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the columns."""
        return tuple(column.name for column in self.columns)

    def encode(self, value: Mapping[str, Any]) -> tuple[float, ...]:
        """The places of the numbers of a record in [-1, 1]."""
        return tuple(column.encode(value.get(column.name)) for column in self.columns)

    def encode_all(
        self, columns: Mapping[str, Any], text: bool, first_row: int | None, unknown: bool
    ) -> Sequence[tuple[float, ...]]:
        """Return the places of the numbers of each row in [-1, 1]."""
        each = (one.encode_all(columns[one.name], text, first_row) for one in self.columns)
        return list(zip(*each, strict=True))

    def draw(self, encoded: tuple[float, ...], words: Iterator[int]) -> int:
        """Answer for places in [-1, 1]."""
        return self.law.draw(encoded, words)

    def values(self, answer: int) -> dict[str, float]:
        """The numbers that an answer stands for, each without bias; what was not chosen stands in the middle."""
        pairs = zip(self.columns, self.law.values(answer), strict=True)
        return {column.name: column.number(place) for column, place in pairs}

    def to_dict(self) -> dict[str, Any]:
        """Describe the field."""
        own = {
            "name": self.name,
            "type": "numbers",
            "columns": [column.to_dict() for column in self.columns],
        } | self._law_and_epsilons()
        return own if self.steps is None else own | {"steps": str(self.steps)}

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
        All different, at least two; None is the category of missing values.
    law : IntegerLaw
        For codes, as many as there are values.
    unknown : str, int, bool or None, default=...
        The one of `values` that any other value counts as, a missing one too where None is not among them. An ellipsis
        is None where that is among the values, else the first value.

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
        if self.unknown is ...:
            object.__setattr__(self, "unknown", None if None in self.values else self.values[0])
        if not _is_value(self.unknown) or value_key(self.unknown) not in self._codes:
            raise ValueError(f"unknown must be one of the values. Got {self.unknown!r} instead.")

    def encode(self, value: Any) -> int:
        """Return the place of a value in the list: any value has one."""
        found = self._reader.read(value)
        if isinstance(found, Unread):
            return self._missing if found is Unread.MISSING else self._unknown
        return int(found)

    def encode_all(self, columns: Mapping[str, Any], text: bool, first_row: int | None, unknown: bool) -> Sequence[int]:
        """Return the place of each value in the list."""
        values = columns[self.name]
        cells = CodeReader(self.values, text=text).read_all(values)
        refused = [Unread.UNREADABLE, *([] if unknown else [Unread.UNKNOWN])]
        refused += [] if unknown or None in self.values else [Unread.MISSING]
        rule = f"only the declared {len(self.values)} values"
        cells.check(values, f"Column {self.name!r}", rule, *refused, first_row=first_row)
        instead = np.where(cells.state == Unread.MISSING, self._missing, self._unknown)
        codes: list[int] = np.where(cells.state > 0, instead, cells.values).tolist()
        return codes

    def draw(self, encoded: int, words: Iterator[int]) -> int:
        """Answer for a code."""
        return self.law.draw(encoded, words)

    def to_dict(self) -> dict[str, Any]:
        """Describe the field."""
        return {
            "name": self.name,
            "type": "category",
            "values": list(self.values),
            "unknown": self.unknown,
        } | self._law_and_epsilons()

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
        return CodeReader(self.values)

    @property
    def _law(self) -> IntegerLaw:
        return self.law


AnyField = NumberField | NumbersField | CategoryField


def field_from_dict(given: dict[str, Any]) -> AnyField:
    """Read a field of a document that the schema has let pass.

    Raises
    ------
    ValueError
        If its parameters do not fit together, or its integers are those of no law.
    """
    name, law = given["name"], law_from_dict(given["law"])
    if given["type"] == "category":
        assert isinstance(law, CodeLaw)
        return CategoryField(name, tuple(given["values"]), law, given["unknown"])
    steps = int(given["steps"]) if "steps" in given else None
    if given["type"] == "numbers":
        assert isinstance(law, GroupLaw)
        return NumbersField(name, tuple(map(column_from_dict, given["columns"])), law, steps)
    assert isinstance(law, UnitLaw)
    own = column_from_dict(given)
    return NumberField(name, own.low, own.high, law, own.unit, own.whole, own.missing, own.is_date, steps)


def _check_steps(steps: Any) -> None:
    if steps is not None:
        check_whole("steps", steps, least=1, most=2**30)


def _is_value(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or (is_whole(value) and abs(value) <= _LARGEST_WHOLE)
