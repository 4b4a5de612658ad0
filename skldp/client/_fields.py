"""Fields of a policy: declared columns with their integer laws."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from skldp._checks import check_integer, is_integer, is_number
from skldp.domains._declared_columns import CategoryColumn, DeclaredColumn, NumberColumn
from skldp.laws._integers import CodeLaw, GroupLaw, UnitLaw, law_from_dict

if TYPE_CHECKING:
    from skldp.client._vector_field import VectorField

MOST_NAME = 200
_MOST_VALUES, _MOST_LETTERS, _LARGEST_INTEGER = 2**20, 1000, 2**53
# Squares of larger numbers, such as variances, could overflow.
MOST = 1e100


def check_text(name: str, value: Any, most: int = MOST_NAME) -> None:
    """Raise ValueError unless a value is a str of 1 to `most` characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise ValueError(f"{name} must be a text of 1 to {most} characters; got {value!r:.40}.")


class Field(ABC):
    """Base class of fields. Subclasses are frozen dataclasses."""

    name: str
    law: Any
    steps: int | None = None
    # The memo rule "permanent" can repeat answers to equal values.
    has_fixed_answers: ClassVar[bool] = True

    @property
    def epsilon(self) -> float:
        """Exact epsilon of an answer, from the integers of the law."""
        return float(self.law.epsilon)

    @property
    def version(self) -> int:
        """First version of a policy that can have the field."""
        return int(self.law.version)

    @property
    def needs_steps(self) -> bool:
        """True if permanent answers require `steps`, since the field has fractional numbers."""
        return False

    @property
    def n_answers(self) -> int:
        """Number of answers, the integers from 0."""
        return int(self.law.n_answers)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values in a record."""
        return (self.name,)

    @abstractmethod
    def encode(self, value: Any) -> Any:
        """Return the law's input for a value of a record, or for a mapping of several values."""

    def encode_record(self, values: Mapping[str, Any]) -> Any:
        """Return the law's input for the values of a record."""
        return self.encode(values[self.name])

    @abstractmethod
    def encode_all(self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any) -> Sequence[Any]:
        """Return the law's input for each row of a table with a column for each name."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""

    def draw(self, encoded: Any, words: Iterator[int]) -> int:
        """Draw the answer to an encoded value."""
        return int(self.law.draw(encoded, words))

    def is_answer(self, answer: int) -> bool:
        """Return whether a number is an answer of the field."""
        return bool(self.law.is_answer(answer))

    def _law_and_epsilons(self) -> dict[str, Any]:
        own = {"law": self.law.to_dict(), "epsilon": repr(self.epsilon)}
        return own if self.steps is None else own | {"steps": str(self.steps)}


@dataclass(frozen=True)
class NumberField(NumberColumn, Field):
    r"""Field for a number or a date within declared bounds, with its law.

    Parameters
    ----------
    name : str
    low, high : float
        Bounds from -1e100 to 1e100, with ``low < high``. The bounds of a date are days since 1970-01-01.
    law : UnitLaw
        Law of numbers in [-1, 1].
    unit, whole, missing, is_date
        As in :class:`NumberColumn`; `missing` is a number.
    steps : int, default=None
        Number of equal steps between the bounds under the memo rule ``"permanent"``, from 1 to 2^30.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The input of the law is :math:`(x - c) / r` in IEEE double precision, clipped to [-1, 1]. :math:`c` is the middle of
    the bounds and :math:`r` half their distance.
    """

    law: UnitLaw
    steps: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_column(self)
        _check_steps(self.steps)
        if not isinstance(self.law, UnitLaw):
            raise ValueError(f"The law of a number must be one for [-1, 1]; got {self.law!r}.")

    @cached_property
    def needs_steps(self) -> bool:
        """Return whether the field has fractional numbers, each of which would be a separate value."""
        return self.steps is None and not self.whole

    def encode_all(self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any) -> Sequence[float]:
        """Return the position of each number in [-1, 1]."""
        return self.places(columns[self.name], **reading)

    def value(self, answer: int) -> float:
        """Return the unbiased estimate of an answer."""
        return float(self.number(self.law.value(answer)))

    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""
        return super().to_dict() | self._law_and_epsilons()


class SeveralColumns(Field):
    """Base class of fields with one answer for several columns of a record."""

    columns: tuple[CategoryColumn | NumberColumn, ...]

    @cached_property
    def needs_steps(self) -> bool:
        """Return whether the field has fractional numbers, each of which would be a separate value."""
        return self.steps is None and not all(isinstance(one, CategoryColumn) or one.whole for one in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def encode(self, value: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the code of each category, and the position of each number in [-1, 1]."""
        return tuple(column.encode(value.get(column.name)) for column in self.columns)

    def encode_record(self, values: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the codes and positions of the values of a record."""
        return self.encode(values)

    def encode_all(
        self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any
    ) -> Sequence[tuple[float, ...]]:
        """Return the codes and positions of each row."""
        each: list[list[float]] = [
            one.places(columns[one.name], **reading)
            if isinstance(one, NumberColumn)
            else one.as_numbers(columns[one.name], refuse_unknown=refuse_unknown, **reading).tolist()
            for one in self.columns
        ]
        return list(zip(*each, strict=True))

    def _check_columns(self, rule: str, fits: bool) -> None:
        """Raise ValueError unless names, columns and steps are valid and fit the rule."""
        check_text("The name of a field", self.name)
        if not fits:
            raise ValueError(f"columns must be {rule}; got {self.columns!r}.")
        for column in self.columns:
            check_text("The name of a column", column.name)
            if isinstance(column, NumberColumn):
                _check_column(column)
            else:
                _check_values(column.values)
        _check_steps(self.steps)


@dataclass(frozen=True)
class NumbersField(SeveralColumns):
    """Field for several numbers with one law, which answers for all of them or for a random sample.

    Parameters
    ----------
    name : str
        Name of the answer. A record has the names of the columns.
    columns : tuple of NumberColumn
        Columns of different names.
    law : GroupLaw
        Law of as many numbers in [-1, 1] as there are columns.
    steps : int, default=None
        As of :class:`NumberField`, for each number that is not an integer.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    name: str
    columns: tuple[NumberColumn, ...]
    law: GroupLaw
    steps: int | None = None

    def __post_init__(self) -> None:
        given = self.columns
        fits = isinstance(given, tuple) and all(isinstance(one, NumberColumn) for one in given)
        self._check_columns("a tuple of NumberColumn", fits)
        if not isinstance(self.law, GroupLaw) or self.law.n_values != len(given):
            raise ValueError(f"The law must be of {len(given)} numbers; got {self.law!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""
        columns = [column.to_dict() for column in self.columns]
        return {"name": self.name, "type": "numbers", "columns": columns} | self._law_and_epsilons()


@dataclass(frozen=True)
class CategoryField(CategoryColumn, Field):
    """Field for a category with declared values, with its law.

    Parameters
    ----------
    name : str
    values : tuple of str, int, bool or None
        At least two different values; None is the category of missing values.
    law : CodeLaw
        Law of as many codes as there are values.
    unknown : str, int, bool or None, default=...
        As in :class:`CategoryColumn`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    law: CodeLaw

    is_public: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_text("The name of a field", self.name)
        _check_values(self.values)
        super().__post_init__()
        if not isinstance(self.law, CodeLaw) or self.law.n_codes != len(self.values):
            raise ValueError(f"The law of a category must be of {len(self.values)} codes; got {self.law!r}.")

    def encode_all(self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any) -> Sequence[int]:
        """Return the code of each value."""
        codes: list[int] = self.as_numbers(columns[self.name], refuse_unknown=refuse_unknown, **reading).tolist()
        return codes

    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""
        return super().to_dict() | self._law_and_epsilons()


@dataclass(frozen=True)
class PairField(SeveralColumns):
    """Field for two columns of a record together: one answer for their combination.

    Parameters
    ----------
    name : str
        Name of the answer. A record has the names of the columns, which may be in other pairs as well.
    columns : tuple of two CategoryColumn or NumberColumn
        Columns of different names.
    law : CodeLaw
        Law of as many codes as there are combinations; those of the first column vary slowest.
    n_knots : int, default=2
        Number of points from the lower to the upper bound, at equal distances, from 2 to 256. A number is rounded at
        random to one of the two points beside it, without bias.
    steps : int, default=None
        As of :class:`NumbersField`.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from skldp.client import Policy
    >>> from skldp.client._fields import PairField
    >>> from skldp.domains._declared_columns import CategoryColumn, NumberColumn
    >>> from skldp.mechanisms import RandomizedResponse
    >>> age, city = NumberColumn("age", 0, 100), CategoryColumn("city", ("Bonn", "Ulm"))
    >>> both = PairField("age and city", (age, city), RandomizedResponse(1.0, 6).integer_law, n_knots=3)
    >>> policy = Policy("which age lives where", (both,))
    >>> policy.names, policy.read(policy.release({"age": 37, "city": "Ulm"})).answers["age and city"] in range(6)
    (['age', 'city'], True)
    """

    name: str
    columns: tuple[CategoryColumn | NumberColumn, ...]
    law: CodeLaw
    n_knots: int = field(default=2, kw_only=True)
    steps: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._check_columns("a tuple of two columns", isinstance(self.columns, tuple) and len(self.columns) == 2)
        if self.columns[0].name == self.columns[1].name:
            raise ValueError(f"The columns of a pair must have different names; got {self.columns[0].name!r} twice.")
        check_integer("n_knots", self.n_knots, least=2, most=256)
        n = self.sizes[0] * self.sizes[1]
        if not isinstance(self.law, CodeLaw) or self.law.n_codes != n:
            raise ValueError(f"The law of a pair must be of {n} codes; got {self.law!r}.")

    @property
    def version(self) -> int:
        """First version of a policy that can have the field."""
        return max(3, super().version)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Number of categories or points of each column."""
        first, second = (len(one.values) if one.values is not None else self.n_knots for one in self.columns)
        return first, second

    def draw(self, encoded: Sequence[float], words: Iterator[int]) -> int:
        """Draw the answer: one word for each number, then those of the law."""
        code = 0
        for column, size, given in zip(self.columns, self.sizes, encoded, strict=True):
            own = _knot(given, size, words) if isinstance(column, NumberColumn) else int(given)
            code = code * size + own
        return int(self.law.draw(code, words))

    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""
        columns = [column.to_dict() for column in self.columns]
        own = {"name": self.name, "type": "pair", "columns": columns, "n_knots": str(self.n_knots)}
        return own | self._law_and_epsilons()


def _knot(place: float, n: int, words: Iterator[int]) -> int:
    """Round a position in [-1, 1] at random to one of n equally spaced points, numbered from 0."""
    position = (1 + place) / 2 * (n - 1)
    below = min(int(position), n - 2)
    return below + (next(words) < int((position - below) * 2.0**64))


_TYPES = ("number", "integer", "date", "numbers", "category", "pair", "vector")
AnyField: TypeAlias = "NumberField | NumbersField | CategoryField | PairField | VectorField"


def declared_columns(fields: Sequence[AnyField]) -> dict[str, DeclaredColumn]:
    """Return the numbers and categories of fields by name."""
    every = (column for field in fields for column in getattr(field, "columns", (field,)))
    return {column.name: column for column in every if isinstance(column, DeclaredColumn)}


def field_from_dict(given: dict[str, Any]) -> AnyField:
    """Read a field of a document."""
    if given["type"] not in _TYPES:
        known = ", ".join(map(repr, _TYPES))
        raise ValueError(f"The type of a field must be one of {known}; got {given['type']!r:.40}.")
    # Each class checks the type of its law.
    law: Any = law_from_dict(given["law"])
    if given["type"] == "category":
        return CategoryField(given["name"], tuple(given["values"]), law, unknown=given["unknown"])
    if given["type"] == "vector":
        # Devices without vectors do not need the module.
        from skldp.client._vector_field import VectorField

        return VectorField(given["name"], law, None if given["bound"] is None else float(given["bound"]))
    steps = int(given["steps"]) if "steps" in given else None
    if given["type"] == "pair":
        pair = tuple(map(_column_from_dict, given["columns"]))
        return PairField(given["name"], pair, law, n_knots=int(given["n_knots"]), steps=steps)
    if given["type"] == "numbers":
        columns = tuple(NumberColumn(**_number_from_dict(one)) for one in given["columns"])
        return NumbersField(given["name"], columns, law, steps)
    return NumberField(law=law, steps=steps, **_number_from_dict(given))


def _number_from_dict(given: dict[str, Any]) -> dict[str, Any]:
    numbers = {end: float(given[end]) for end in ("low", "high", "missing")}
    kind = {"whole": given["type"] != "number", "is_date": given["type"] == "date"}
    return {"name": given["name"], "unit": given["unit"]} | numbers | kind


def _column_from_dict(given: dict[str, Any]) -> CategoryColumn | NumberColumn:
    if given["type"] == "category":
        return CategoryColumn(given["name"], tuple(given["values"]), unknown=given["unknown"])
    return NumberColumn(**_number_from_dict(given))


def _check_values(values: Any) -> None:
    if not isinstance(values, tuple) or not all(map(_is_value, values)):
        raise ValueError("values must be a tuple of str, int, bool and None; got another type.")
    if not values or len(values) > _MOST_VALUES:
        raise ValueError(f"values must be 1 to {_MOST_VALUES}; got {len(values)}.")


def _check_column(column: NumberColumn) -> None:
    check_text("The name of a column", column.name)
    if column.unit is not None:
        check_text("unit", column.unit)
    if column.scale != "linear":
        raise ValueError(f"scale must be 'linear' for a field of a policy; got {column.scale!r}.")
    if abs(column.low) > MOST or abs(column.high) > MOST:
        raise ValueError(f"Bounds must be numbers from {-MOST:g} to {MOST:g}; got {(column.low, column.high)!r}.")
    if not is_number(column.missing):
        raise ValueError(f"missing must be None or a number within the bounds; got {column.missing!r}.")


def _check_steps(steps: Any) -> None:
    if steps is not None:
        check_integer("steps", steps, least=1, most=2**30)


def _is_value(value: Any) -> bool:
    is_short = isinstance(value, str) and len(value) <= _MOST_LETTERS
    return (
        value is None or is_short or isinstance(value, bool) or (is_integer(value) and abs(value) <= _LARGEST_INTEGER)
    )
