r"""Reports as columns, data frames and Arrow tables."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from skldp._tables import as_frame, require
from skldp._value_labels import value_labels
from skldp.client._policy import Policy
from skldp.client._report_bytes import PolicyReport
from skldp.collection._answer_scores import each, whole_answers
from skldp.laws._categories import BitsOfCodes, ResponseLaw, bits


class ReportColumns(NamedTuple):
    """Reports of one policy. A field that a person was not asked has its number of answers, which is no answer.

    Shapes: `ids` (n, 16) of uint8.
    """

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
            mark = _column([field.n_answers], field.n_answers + 1)
            asked[:, place] = answers != mark if answers.ndim == 1 else (answers != mark).any(axis=1)
    return asked


def report_columns(policy: Policy, reports: Sequence[PolicyReport]) -> ReportColumns:
    """Convert reports to columns."""
    ids = b"".join(bytes.fromhex(report.report_id) for report in reports)
    answers = tuple(
        _column(
            [report.answers.get(field.name, field.n_answers) for report in reports],
            field.n_answers + (policy.n_sampled is not None),
        )
        for field in policy.fields
    )
    return ReportColumns(np.frombuffer(ids, dtype=np.uint8).reshape(-1, 16), answers)


def join(parts: Sequence[ReportColumns]) -> ReportColumns:
    """Concatenate at least one part."""
    answers = zip(*(part.answers for part in parts), strict=True)
    return ReportColumns(np.concatenate([part.ids for part in parts]), tuple(map(np.concatenate, answers)))


def sorted_once(columns: ReportColumns) -> ReportColumns:
    """Sort reports by id and keep the first of each id."""
    high, low = columns.ids.view(">u8").T if len(columns.ids) else np.zeros((2, 0))
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    starts = np.flatnonzero(np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1]))[: len(order)])
    # The sort is stable: reports with one id keep their order of arrival.
    return columns.take(order[starts])


def _column(answers: Sequence[int], n_answers: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    size = answer_bytes(n_answers)
    if size <= 8:
        return np.array(answers, dtype=f"u{size}")
    data = b"".join(answer.to_bytes(size, "big") for answer in answers)
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, size)


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
