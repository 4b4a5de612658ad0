"""Reports: exact integer sums, independent of their order, with ids by which each counts once."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Self

from skldp._checks import check_integer
from skldp._documents import canonical_text, read_document

# Largest number of people of a report, whose sums fit into a few 64-bit numbers.
_MOST_PEOPLE = 1 << 53
_MOST_SUM = 1 << 256
# Version of the documents; others are refused.
_VERSION = 2


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
    ids : tuple of str, default=None
        Ids of the releases that were summed, different ones of 32 hexadecimal digits: of one person's, or of all that a
        data holder made together. None gives a new release a random id.

    Raises
    ------
    ValueError
        If anything is not as above.

    Examples
    --------
    >>> from skldp.learning import Report
    >>> both = Report("00" * 32, 2, (5, -7)) + Report("00" * 32, 1, (1, 1))
    >>> both.sums, len(both.ids)
    ((6, -6), 2)
    """

    task: str
    n_people: int
    sums: tuple[int, ...]
    ids: tuple[str, ...] = None  # type: ignore[assignment]  # of a new release, below

    def __post_init__(self) -> None:
        if not isinstance(self.task, str) or not re.fullmatch("[0-9a-f]{64}", self.task):
            raise ValueError("A report must name its task by 64 hexadecimal digits; got something else.")
        check_integer("n_people", self.n_people, least=1, most=_MOST_PEOPLE)
        object.__setattr__(self, "n_people", int(self.n_people))
        if not isinstance(self.sums, list | tuple) or set(map(type, self.sums)) != {int}:
            raise ValueError("A report's sums must be whole numbers; got something else.")
        # Far above any valid sum; Python limits the conversion of integers to 4,300 digits.
        if max(map(abs, self.sums)) >= _MOST_SUM:
            raise ValueError("A report's sums must be below 2^256; got a larger one.")
        object.__setattr__(self, "sums", tuple(self.sums))
        ids = [os.urandom(16).hex()] if self.ids is None else self.ids
        fits = isinstance(ids, list | tuple) and 1 <= len(ids) <= self.n_people
        if not fits or not all(isinstance(one, str) and re.fullmatch("[0-9a-f]{32}", one) for one in ids):
            raise ValueError("A report must have ids of 32 hexadecimal digits, at most one for each of its people.")
        if len(set(ids)) < len(ids):
            raise ValueError("A report counts once; got the same id twice.")
        object.__setattr__(self, "ids", tuple(sorted(ids)))

    def __add__(self, other: "Report") -> "Report":
        """Return the sum with another report on the same task."""
        if not isinstance(other, Report):
            return NotImplemented
        return Report.total([self, other])

    @classmethod
    def total(cls, reports: "Sequence[Report]") -> "Report":
        """Return the sum of several reports, in any order.

        Parameters
        ----------
        reports : iterable of Report
            Reports on one task.
        """
        first = reports[0]
        if len(reports) == 1:
            return first
        if any((one.task, len(one.sums)) != (first.task, len(first.sums)) for one in reports):
            raise ValueError("Only reports of the same task add up; got those of two tasks.")
        sums = tuple(map(sum, zip(*(one.sums for one in reports), strict=True)))
        ids = tuple(one for report in reports for one in report.ids)
        return Report(first.task, sum(one.n_people for one in reports), sums, ids)

    @staticmethod
    def uncounted(reports: "Iterable[Report]", counted: Iterable[str]) -> "list[Report]":
        """Return the reports of which nothing was counted: the first of those that share a release.

        Parameters
        ----------
        reports : iterable of Report
            Reports that arrived.
        counted : iterable of str
            Ids of the releases counted before.
        """
        seen, found = set(counted), []
        for report in reports:
            if seen.isdisjoint(report.ids):
                seen.update(report.ids)
                found.append(report)
        return found

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse an untrusted report; raise ValueError for any other text.

        Parameters
        ----------
        text : str
            Document of a report.
        """
        names = [one.name for one in fields(cls)]
        given = read_document(text, "report", _VERSION, names)
        # None would be a new release.
        return cls(**{name: given[name] for name in names} | {"ids": given["ids"] or ()})

    def to_json(self) -> str:
        """Return the report as JSON."""
        return canonical_text({"skldp": "report", "version": _VERSION} | vars(self))
