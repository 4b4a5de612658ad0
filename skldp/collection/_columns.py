"""Reports in columns: their ids, and for each field the released integers in the smallest type that holds them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from skldp.client import Policy, Report
from skldp.mechanisms._category_laws import SubsetLaw

__all__ = ["ReportColumns", "answer_bytes", "are_answers", "columns_of", "join", "sorted_once"]


class ReportColumns(NamedTuple):
    """Reports of one policy.

    Parameters
    ----------
    ids : ndarray of shape (n, 16) of uint8
    answers : tuple of ndarray
        For each field of shape (n,) and an unsigned integer type, or where more than 64 bits are needed of shape
        (n, n_bytes) and uint8, the highest byte first.
    """

    ids: npt.NDArray[np.uint8]
    answers: tuple[npt.NDArray[np.unsignedinteger[Any]], ...]

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Some of the reports, in the order of the row numbers."""
        return type(self)(self.ids[rows], tuple(one[rows] for one in self.answers))


def answer_bytes(n_answers: int) -> int:
    """How many bytes an answer takes in a column: 1, 2, 4, 8, or above that as many as it needs.

    Examples
    --------
    >>> from skldp.collection._columns import answer_bytes
    >>> [answer_bytes(n) for n in (2, 256, 257, 2**64, 2**64 + 1, 2**1024)]
    [1, 1, 2, 8, 9, 128]
    """
    needed = -(-(n_answers - 1).bit_length() // 8)
    return next((size for size in (1, 2, 4, 8) if needed <= size), needed)


def columns_of(policy: Policy, reports: Sequence[Report]) -> ReportColumns:
    """Put reports of a policy into columns."""
    ids = b"".join(bytes.fromhex(report.report_id) for report in reports)
    answers = tuple(
        _column([report.answers[field.name] for report in reports], field.n_answers) for field in policy.fields
    )
    return ReportColumns(np.frombuffer(ids, dtype=np.uint8).reshape(-1, 16), answers)


def join(parts: Sequence[ReportColumns]) -> ReportColumns:
    """The reports of several, at least one, one after the other."""
    answers = zip(*(part.answers for part in parts), strict=True)
    return ReportColumns(np.concatenate([part.ids for part in parts]), tuple(map(np.concatenate, answers)))


def sorted_once(columns: ReportColumns) -> ReportColumns:
    """Return the reports in the order of their ids, each id once: the first one counts, whatever it answers."""
    high, low = columns.ids.view(">u8").T if len(columns.ids) else np.zeros((2, 0))
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    # Where another id begins than the one before.
    starts = np.flatnonzero(np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1]))[: len(order)])
    # The sort is stable: reports with one id are still in the order of their coming.
    return columns.take(order[starts])


def are_answers(policy: Policy, columns: ReportColumns) -> npt.NDArray[np.bool_]:
    """Which rows hold answers of the policy alone, shape (n,)."""
    fits = np.ones(len(columns.ids), dtype=bool)
    for field, answers in zip(policy.fields, columns.answers, strict=True):
        if answers.ndim == 1:
            fits &= answers <= answers.dtype.type(field.n_answers - 1)
        else:
            largest = (field.n_answers - 1).to_bytes(answers.shape[1], "big")
            # Of fixed length, bytes are in the order of the numbers that they are.
            fits &= np.array([row.tobytes() <= largest for row in answers], dtype=bool)
        if isinstance(field.law, SubsetLaw):
            # Of all rows of bits, those alone that have as many ones as a set has members.
            cells = np.frombuffer(answers.tobytes(), dtype=np.uint8).reshape(len(fits), answer_bytes(field.n_answers))
            fits &= np.unpackbits(cells, axis=1).sum(axis=1) == field.law.set_size
    return fits


def _column(answers: Sequence[int], n_answers: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    size = answer_bytes(n_answers)
    if size <= 8:
        return np.array(answers, dtype=f"u{size}")
    data = b"".join(answer.to_bytes(size, "big") for answer in answers)
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
