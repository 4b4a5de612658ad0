"""Fields of a policy: declared columns, and the integer law of their answer."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from skldp._checks import check_integer, is_integer
from skldp.domains._column import Column
from skldp.laws._integers import CodeLaw, GroupLaw, UnitLaw

MOST_NAME = 200
_MOST_VALUES, _MOST_LETTERS, _LARGEST_INTEGER = 2**20, 1000, 2**53
# Squares of larger numbers, such as variances, could overflow.
MOST = 1e100


def check_text(name: str, value: Any, most: int = MOST_NAME) -> None:
    """Raise ValueError unless a value is a str of 1 to `most` characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise ValueError(f"{name} must be a text of 1 to {most} characters; got {value!r:.40}.")


class AnyField(ABC):
    """Base class of fields. Subclasses are frozen dataclasses, and encode the values of records for their law."""

    name: str
    law: Any
    columns: Any
    steps: int | None
    #: "number", "category", "numbers" (several in one answer), "pair" or "vector".
    kind: Any
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
        """True if permanent answers require `steps`, since each fractional number would be a separate value."""
        return self.steps is None and not all(column.has_codes or column.whole for column in self.columns)

    @property
    def n_answers(self) -> int:
        """Number of answers, the integers from 0."""
        return int(self.law.n_answers)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values in a record."""
        return (self.name,)

    @cached_property
    def column(self) -> Column:
        """First column, the only one of a number or category."""
        first: Column = self.columns[0]
        return first

    @abstractmethod
    def encode(self, values: Mapping[str, Any]) -> Any:
        """Return the law's input for the values of a record; never raises."""

    @abstractmethod
    def encode_all(self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any) -> Sequence[Any]:
        """Return the law's input for each row of a table with a column for each name."""

    def to_dict(self) -> dict[str, Any]:
        """Return the law, its epsilon and the steps as a dict of the document."""
        own = {"name": self.name, "law": self.law.to_dict(), "epsilon": repr(self.epsilon)}
        return own if self.steps is None else own | {"steps": str(self.steps)}

    def draw(self, encoded: Any, words: Iterator[int]) -> int:
        """Draw the answer to an encoded value."""
        return int(self.law.draw(encoded, words))

    def is_answer(self, answer: int) -> bool:
        """Return whether a number is an answer of the field."""
        return bool(self.law.is_answer(answer))


@dataclass(frozen=True)
class Field(AnyField):
    r"""Field of a policy: a column of a record, or several, with the law of their answer.

    Parameters
    ----------
    name : str
        Name of the answer, and of a single column. A record has the names of the columns.
    columns : Column or tuple of Column
        One column, two columns of different names that are answered together, or numbers of different names with one
        law. Bounds are at most 1e100 in magnitude, and categories are texts, integers, booleans or None.
    law : IntegerLaw
        A number has a law of [-1, 1], a category of as many codes as there are values, and several numbers a law of as
        many numbers. Two columns have a law of as many codes as there are combinations, in which those of the first
        column vary slowest.
    n_knots : int, default=2
        Number of equally spaced points between the bounds of a number of two columns, from 2 to 256. The number is
        rounded at random to one of the two points beside it, without bias.
    steps : int, default=None
        Number of equal steps between the bounds under the memo rule ``"permanent"``, from 1 to 2^30.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The input of the law of a number is :math:`(x - c) / r` in IEEE double precision, clipped to [-1, 1]. :math:`c` is
    the middle of the bounds and :math:`r` half their distance.

    Examples
    --------
    >>> from skldp.client import Field, Policy
    >>> from skldp.mechanisms import Column, RandomizedResponse
    >>> age, city = Column(0, 100, name="age"), Column(values=("Bonn", "Ulm"), name="city")
    >>> both = Field("age and city", (age, city), RandomizedResponse(1.0, 6).integer_law, n_knots=3)
    >>> policy = Policy("which age lives where", (both,))
    >>> policy.names, policy.read(policy.release({"age": 37, "city": "Ulm"})).answers["age and city"] in range(6)
    (['age', 'city'], True)
    """

    name: str
    columns: Any
    law: Any
    n_knots: int = field(default=2, kw_only=True)
    steps: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_text("The name of a field", self.name)
        given = (self.columns,) if isinstance(self.columns, Column) else self.columns
        if not isinstance(given, tuple) or not given or not all(isinstance(one, Column) for one in given):
            raise ValueError(f"columns must be a Column, or a tuple of them; got {self.columns!r:.80}.")
        if len(given) == 1 and not isinstance(self.law, GroupLaw):
            given = (replace(given[0], name=self.name),)
        for column in given:
            _check_column(column)
        # A document has the replacement of a missing number.
        declared = (one if one.has_codes else replace(one, missing=one.stand_in) for one in given)
        object.__setattr__(self, "columns", tuple(declared))
        self._check_law()
        if self.steps is not None:
            check_integer("steps", self.steps, least=1, most=2**30)
            if all(column.has_codes for column in self.columns):
                raise ValueError(f"steps must be None for categories; got {self.steps!r}.")

    def _check_law(self) -> None:
        if self.kind == "pair":
            if len(set(self.names)) < 2:
                raise ValueError(f"The columns of a pair must have different names; got {self.names[0]!r} twice.")
            check_integer("n_knots", self.n_knots, least=2, most=256)
        if self.kind in ("category", "pair"):
            n = self.sizes[0] * (self.sizes[1] if self.kind == "pair" else 1)
            if not isinstance(self.law, CodeLaw) or self.law.n_codes != n:
                raise ValueError(f"The law of a {self.kind} must be of {n} codes; got {self.law!r}.")
        elif any(column.has_codes for column in self.columns):
            raise ValueError(f"columns with a law of several numbers must be numbers; got {self.columns!r:.80}.")
        elif self.kind == "numbers":
            if self.law.n_values != len(self.columns):
                raise ValueError(f"The law must be of {len(self.columns)} numbers; got {self.law!r}.")
        elif not isinstance(self.law, UnitLaw) or len(self.columns) > 1:
            raise ValueError(f"The law of a number must be one for [-1, 1]; got {self.law!r}.")

    @cached_property
    def kind(self) -> str:
        """``"number"``, ``"category"``, ``"numbers"`` or ``"pair"``."""
        if isinstance(self.law, GroupLaw):
            return "numbers"
        if len(self.columns) == 2:
            return "pair"
        return "category" if self.columns[0].has_codes else "number"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def version(self) -> int:
        """First version of a policy that can have the field."""
        return max(3 if self.kind == "pair" else 2, super().version)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories or points of each column."""
        return tuple(self.n_knots if one.values is None else len(one.values) for one in self.columns)

    def encode(self, values: Mapping[str, Any]) -> Any:
        """Return the code of a category, the position of a number in [-1, 1], or a tuple of those of several columns.

        Never raises.
        """
        if self.kind in ("number", "category"):
            return self.column.encode(values.get(self.name))
        return tuple(column.encode(values.get(column.name)) for column in self.columns)

    def encode_all(self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any) -> Sequence[Any]:
        """Return the codes and positions of each row."""
        how = reading | {"refuse_unknown": refuse_unknown, "lists_values": True}
        each = [column.encode_all(columns[column.name], **how) for column in self.columns]
        return each[0] if self.kind in ("number", "category") else list(zip(*each, strict=True))

    def draw(self, encoded: Any, words: Iterator[int]) -> int:
        """Draw the answer: one word for each number of a pair, then those of the law."""
        if self.kind != "pair":
            return int(self.law.draw(encoded, words))
        code = 0
        for column, size, given in zip(self.columns, self.sizes, encoded, strict=True):
            code = code * size + (int(given) if column.has_codes else _knot(given, size, words))
        return int(self.law.draw(code, words))

    def value(self, answer: int) -> float:
        """Return the unbiased estimate of a number's answer."""
        return float(self.column.number(self.law.value(answer)))

    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""
        if self.kind in ("number", "category"):
            return self.column.to_document() | super().to_dict()
        own = {"type": self.kind, "columns": [column.to_document() for column in self.columns]} | super().to_dict()
        return own | ({"n_knots": str(self.n_knots)} if self.kind == "pair" else {})


def _knot(place: float, n: int, words: Iterator[int]) -> int:
    """Round a position in [-1, 1] at random to one of n equally spaced points, numbered from 0."""
    position = (1 + place) / 2 * (n - 1)
    below = min(int(position), n - 2)
    return below + (next(words) < int((position - below) * 2.0**64))


def declared_columns(fields: Iterable[AnyField]) -> dict[str, Column]:
    """Return the columns of fields by name."""
    return {column.name: column for one in fields for column in one.columns}


def _check_column(column: Column) -> None:
    check_text("The name of a column", column.name)
    if column.values is not None:
        if not all(map(_is_value, column.values)):
            raise ValueError("values of a policy must be short texts, integers, booleans and None; got others.")
        if len(column.values) > _MOST_VALUES:
            raise ValueError(f"values must be 1 to {_MOST_VALUES}; got {len(column.values)}.")
        return
    if column.unit is not None:
        check_text("unit", column.unit)
    if column.scale != "linear":
        raise ValueError(f"scale must be 'linear' for a field of a policy; got {column.scale!r}.")
    if abs(column.low) > MOST or abs(column.high) > MOST:
        raise ValueError(f"Bounds must be numbers from {-MOST:g} to {MOST:g}; got {(column.low, column.high)!r}.")
    if column.missing == "category":
        raise ValueError("missing must be a number within the bounds for a field of a policy; got 'category'.")


def _is_value(value: Any) -> bool:
    is_short = isinstance(value, str) and len(value) <= _MOST_LETTERS
    return (
        value is None or is_short or isinstance(value, bool) or (is_integer(value) and abs(value) <= _LARGEST_INTEGER)
    )


def check_field_names(fields: Sequence[AnyField]) -> None:
    """Raise ValueError if a name stands for two things; a column may be in several pairs."""
    names = [one.name for one in fields]
    columns = [one for each in fields if each.kind == "pair" for one in each.columns]
    different = {column.name: column for column in columns}
    held = [name for one in fields if one.kind != "pair" for name in one.names]
    for listed in (names, [*held, *different]):
        if len(set(listed)) < len(listed):
            raise ValueError(f"Fields must have different names; got {listed!r}.")
    if any(different[column.name] != column for column in columns):
        raise ValueError("A column must be declared alike in all of its pairs; got two declarations of one name.")
