"""Reports: exact integer sums, independent of their order."""

import re
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Self

from skldp._checks import check_integer
from skldp._documents import canonical_text, read_document

if TYPE_CHECKING:
    from collections.abc import Sequence

# Largest number of people of a report, whose sums fit into a few 64-bit numbers.
_MOST_PEOPLE = 1 << 53
_MOST_SUM = 1 << 256
# Version of the documents; others are refused.
_VERSION = 1


@dataclass(frozen=True)
class Report:
    """Sum of the releases of some people for one task.

    Parameters
    ----------
    task : str
        The task's hash.
    n_people : int
        From 1 to 2^53.
    sums : tuple of int
        In units that the task says.

    Raises
    ------
    ValueError
        If anything is not as above.

    Examples
    --------
    >>> from skldp.learning import Report
    >>> (Report("00" * 32, 2, (5, -7)) + Report("00" * 32, 1, (1, 1))).sums
    (6, -6)
    """

    task: str
    n_people: int
    sums: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.task, str) or not re.fullmatch("[0-9a-f]{64}", self.task):
            raise ValueError("A report must name its task by 64 hexadecimal digits. Got something else instead.")
        check_integer("n_people", self.n_people, least=1, most=_MOST_PEOPLE)
        object.__setattr__(self, "n_people", int(self.n_people))
        if not isinstance(self.sums, list | tuple) or set(map(type, self.sums)) != {int}:
            raise ValueError("A report's sums must be whole numbers. Got something else instead.")
        # Far above any valid sum; Python limits the conversion of integers to 4,300 digits.
        if max(map(abs, self.sums)) >= _MOST_SUM:
            raise ValueError("A report's sums must be below 2^256. Got a larger one instead.")
        object.__setattr__(self, "sums", tuple(self.sums))

    def __add__(self, other: "Report") -> "Report":
        """Return the sum with another report on the same task."""
        if not isinstance(other, Report):
            return NotImplemented
        if other.task != self.task or len(other.sums) != len(self.sums):
            raise ValueError("Only reports of the same task add up. Got those of two tasks instead.")
        sums = tuple(left + right for left, right in zip(self.sums, other.sums, strict=True))
        return Report(self.task, self.n_people + other.n_people, sums)

    @classmethod
    def total(cls, reports: "Sequence[Report]") -> "Report":
        """Return the sum of several reports, in any order."""
        return reduce(add, reports)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse an untrusted report; raise ValueError for any other text."""
        names = [one.name for one in fields(cls)]
        given = read_document(text, "report", _VERSION, names)
        return cls(**{name: given[name] for name in names})

    def to_json(self) -> str:
        """Return the report as JSON."""
        return canonical_text({"skldp": "report", "version": _VERSION} | vars(self))
