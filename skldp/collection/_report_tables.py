r"""Reports as columns, data frames and Arrow tables."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from skldp._tables import as_frame, require
from skldp._value_labels import value_labels
from skldp.client._policy import Policy
from skldp.client._report_bytes import split
from skldp.collection._answer_scores import each, whole_answers
from skldp.laws._categories import BitsOfCodes, ResponseLaw, bits
from skldp.laws._integers import IntegerLaw, subset_of_rank


class ReportColumns(NamedTuple):
    """Reports of a policy as ids (n, 16) and answers; the number of answers marks a field that was not asked."""

    ids: npt.NDArray[np.uint8]
    answers: tuple[npt.NDArray[np.unsignedinteger[Any]], ...]

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the reports at these row numbers."""
        return type(self)(self.ids[rows], tuple(one[rows] for one in self.answers))


def answer_bytes(n_answers: int) -> int:
    """Return the width of an encoded answer in bytes."""
    needed = -(-(n_answers - 1).bit_length() // 8)
    return next((size for size in (1, 2, 4, 8) if needed <= size), needed)


def asked_of(policy: Policy, columns: ReportColumns) -> npt.NDArray[np.bool_]:
    """Return which fields each report answers, shape (n, n_fields)."""
    asked = np.ones((len(columns.ids), len(policy.fields)), dtype=bool)
    if policy.n_sampled is not None:
        for place, (field, answers) in enumerate(zip(policy.fields, columns.answers, strict=True)):
            mark = _column(np.array([field.n_answers], dtype=object), answer_bytes(field.n_answers + 1))
            asked[:, place] = answers != mark if answers.ndim == 1 else (answers != mark).any(axis=1)
    return asked


def report_columns(policy: Policy, reports: Sequence[bytes]) -> ReportColumns:
    """Convert reports of the right header, length and checksum to columns, without those of impossible answers."""
    pairs, fields, m, s = list(map(split, reports)), policy.fields, len(policy.fields), policy.n_sampled
    ids = np.frombuffer(b"".join(one for one, _ in pairs), dtype=np.uint8).reshape(-1, 16)
    numbers = np.array([number for _, number in pairs], dtype=object)
    sizes = np.array([field.n_answers for field in fields], dtype=object)
    if s is None:
        rest, digits = _digits(numbers, sizes[:, None])
    else:
        numbers, ranks = _digits(numbers, np.array([[math.comb(m, s)]], dtype=object))
        different, place = np.unique(ranks[0], return_inverse=True)
        asked = np.array([subset_of_rank(m, s, int(one)) for one in different], dtype=np.intp).reshape(-1, s)[place]
        rest, digits = _digits(numbers, sizes[asked.T])
        table = np.stack(digits)
    is_valid, columns = np.asarray(rest == 0, dtype=bool), []
    for j, field in enumerate(fields):
        rows, places = (np.arange(len(pairs)), j) if s is None else np.nonzero(asked == j)
        answers = digits[j] if s is None else table[places, rows]
        # Most laws have every number below theirs.
        if type(field.law).is_answer is not IntegerLaw.is_answer:
            is_valid[rows] &= np.array([field.is_answer(one) for one in answers.tolist()], dtype=bool)
        width = answer_bytes(field.n_answers + (s is not None))
        column = _column(answers, width)
        if s is not None:
            answers, column = column, _column(sizes[j : j + 1], width).repeat(len(pairs), axis=0)
            column[rows] = answers
        columns.append(column)
    found = ReportColumns(ids, tuple(columns))
    return found if is_valid.all() else found.take(np.flatnonzero(is_valid))


# numpy's own has no loop for integers of any size.
_divmod_of_any = np.frompyfunc(divmod, 2, 2)


def _digits(numbers: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], list[npt.NDArray[Any]]]:
    """Split numbers into digits of mixed radix, the last one lowest; return also what is above the first."""
    left, digits = list(sizes), list[npt.NDArray[Any]]()
    while left:
        block = [left.pop()]
        most = block[0].max(initial=1)
        # Division of large integers is slow: one for as many digits as fit into a word.
        while left and most * left[-1].max(initial=1) < 1 << 63:
            block.append(left.pop())
            most *= block[-1].max(initial=1)
        numbers, low = _divmod_of_any(numbers, math.prod(block))
        if most >= 1 << 63:
            digits.append(low)
            continue
        low = low.astype(np.uint64)
        for size in block:
            low, digit = np.divmod(low, size.astype(np.uint64))
            digits.append(digit)
    return numbers, digits[::-1]


def merged(parts: Sequence[ReportColumns]) -> ReportColumns:
    """Sort the reports of at least one part by id and keep the first of each id."""
    ids = np.concatenate([part.ids for part in parts])
    high, low = ids.view(">u8").T.astype(np.uint64) if len(ids) else np.zeros((2, 0))
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    starts = np.flatnonzero(np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1]))[: len(order)])
    # The sort is stable: reports with one id keep their order of arrival.
    rows = order[starts]
    # One column at a time, so that few of them are in memory twice.
    answers = zip(*(part.answers for part in parts), strict=True)
    return ReportColumns(ids[rows], tuple(np.concatenate(one)[rows] for one in answers))


def _column(answers: npt.NDArray[Any], width: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return answers as unsigned integers of a width in bytes, or as rows of bytes above 8."""
    if width <= 8:
        return answers.astype(f"u{width}")
    data = b"".join(int(answer).to_bytes(width, "big") for answer in answers)
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, width)


def frame_of(policy: Policy, columns: ReportColumns) -> Any:
    """Return the released values of reports as a pandas DataFrame."""
    data: list[tuple[str, Any]] = []
    fields: Any = policy.fields
    for field, given, own in zip(fields, columns.answers, asked_of(policy, columns).T, strict=True):
        answers, first = given[own], len(data)
        if field.kind == "number":
            data.append((field.name, each(field.value, answers)))
        elif field.kind in ("numbers", "vector"):
            different, place = whole_answers(answers)
            values = field.law.rows(different)[place].T
            if field.kind == "numbers":
                data += [(one.name, one.number(numbers)) for one, numbers in zip(field.columns, values, strict=True)]
            else:
                data += [(f"{field.name}[{i}]", one * (field.bound or 1.0)) for i, one in enumerate(values)]
        elif field.kind == "pair":
            different, place = whole_answers(answers)
            # Integers of bits may be of any size.
            data.append((field.name, np.array(different, dtype=object)[place]))
        elif isinstance(field.law, ResponseLaw):
            categories = np.empty(len(field.column.values), dtype=object)
            categories[:] = field.column.values
            data.append((field.name, categories[answers]))
        elif isinstance(field.law, BitsOfCodes):
            held = bits(answers, field.law.n_codes).astype(bool)
            data += zip([f"{field.name}={label}" for label in value_labels(field.column.values)], held.T, strict=True)
        else:
            data.append((field.name, answers))
        data[first:] = [(name, _spread(values, own)) for name, values in data[first:]]
    if len(made := dict(data)) < len(data):
        raise ValueError("Columns of a frame must have different names; two fields have columns of one name.")
    return as_frame(made)


def _spread(values: Any, asked: npt.NDArray[np.bool_]) -> Any:
    """Return values of those who were asked in a column of all, NaN for the others."""
    if asked.all():
        return values
    if values.dtype != object:
        spread = np.full(len(asked), np.nan)
        spread[asked] = values
        return spread
    held = np.full(len(asked), np.nan, dtype=object)
    held[asked] = values
    # A frame would convert texts to a type in which None is NaN.
    return require("pandas").Series(held, dtype=object)


REPORT = "skldp_report"


class RefusedFileError(ValueError):
    """File whose size in memory cannot be bounded, or whose reports cannot be found."""


def report_schema() -> Any:
    """Return the schema of reports: one column of their bytes, which name their policy."""
    pa = require("pyarrow", extra="arrow")
    return pa.schema([pa.field(REPORT, pa.binary(), nullable=False)])


def batch_of_reports(reports: Sequence[bytes]) -> Any:
    """Write reports as one record batch of :func:`report_schema`."""
    pa = require("pyarrow", extra="arrow")
    return pa.RecordBatch.from_arrays([pa.array(reports, pa.binary())], schema=report_schema())


def has_reports(policy: Policy, schema: Any) -> bool:
    """Return whether a schema has one column of reports; raises RefusedFileError for another layout of it."""
    pa = require("pyarrow", extra="arrow")
    if schema.names.count(REPORT) != 1:
        return False
    # Rows of other layouts may share bytes, and be larger in memory than in the file.
    if schema.field(REPORT).type not in (pa.binary(), pa.large_binary(), pa.binary(policy.n_bytes)):
        raise RefusedFileError(
            f"{REPORT!r} must have the type binary or large_binary; cast the column before it is written, and from "
            "polars write Parquet."
        )
    return True
