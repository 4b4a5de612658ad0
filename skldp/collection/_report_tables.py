r"""Reports as columns, data frames and Arrow tables."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from skldp._tables import as_frame, require
from skldp._value_labels import value_labels
from skldp.client import NumberField, NumbersField, PairField, Policy, PolicyReport, VectorField
from skldp.client._fields import AnyField
from skldp.laws._categories import ResponseLaw, SubsetLaw, UnaryLaw
from skldp.laws._longitudinal_laws import LongitudinalBitsLaw, LongitudinalResponseLaw
from skldp.learning._answer_scores import bits, each, whole_answers


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


def field_bytes(policy: Policy, field: AnyField) -> int:
    """Return the width of a field's encoded answer, or of the mark of a field that was not asked."""
    return answer_bytes(field.n_answers + (policy.n_sampled is not None))


def asked_of(policy: Policy, columns: ReportColumns) -> npt.NDArray[np.bool_]:
    """Return which fields each report answers, shape (n, n_fields)."""
    asked = np.ones((len(columns.ids), len(policy.fields)), dtype=bool)
    if policy.n_sampled is not None:
        for place, (field, answers) in enumerate(zip(policy.fields, columns.answers, strict=True)):
            mark = _column([field.n_answers], field.n_answers + 1)
            asked[:, place] = answers != mark if answers.ndim == 1 else (answers != mark).any(axis=1)
    return asked


def columns_of(policy: Policy, reports: Sequence[PolicyReport]) -> ReportColumns:
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


def are_answers(policy: Policy, columns: ReportColumns) -> npt.NDArray[np.bool_]:
    """Return which rows hold answers of the policy, shape (n,)."""
    asked = asked_of(policy, columns)
    fits = np.ones(len(columns.ids), dtype=bool)
    if policy.n_sampled is not None:
        fits &= asked.sum(axis=1) == policy.n_sampled
    for field, answers, own in zip(policy.fields, columns.answers, asked.T, strict=True):
        if answers.ndim == 1:
            is_one = answers <= answers.dtype.type(field.n_answers - 1)
        else:
            largest = (field.n_answers - 1).to_bytes(answers.shape[1], "big")
            # Big-endian bytes of one length are ordered as their numbers.
            is_one = np.array([row.tobytes() <= largest for row in answers], dtype=bool)
        if isinstance(field.law, SubsetLaw):
            # A set has as many one bits as members.
            cells = np.frombuffer(answers.tobytes(), dtype=np.uint8).reshape(len(fits), field_bytes(policy, field))
            is_one = is_one & (np.unpackbits(cells, axis=1).sum(axis=1) == field.law.set_size)
        fits &= is_one | ~own
    return fits


def _column(answers: Sequence[int], n_answers: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    size = answer_bytes(n_answers)
    if size <= 8:
        return np.array(answers, dtype=f"u{size}")
    data = b"".join(answer.to_bytes(size, "big") for answer in answers)
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, size)


def frame_of(policy: Policy, columns: ReportColumns) -> Any:
    """Return the released values of reports as a pandas DataFrame."""
    data: list[tuple[str, Any]] = []
    for field, given, own in zip(policy.fields, columns.answers, asked_of(policy, columns).T, strict=True):
        answers, first = given[own], len(data)
        if isinstance(field, NumberField):
            data.append((field.name, each(field.value, answers)))
        elif isinstance(field, NumbersField):
            different, place = whole_answers(answers)
            values = field.law.rows(different)
            data += [(one.name, one.number(values[place, i])) for i, one in enumerate(field.columns)]
        elif isinstance(field, VectorField):
            different, place = whole_answers(answers)
            values = field.law.rows(different)[place] * (field.bound or 1.0)
            data += [(f"{field.name}[{i}]", one) for i, one in enumerate(values.T)]
        elif isinstance(field, PairField):
            different, place = whole_answers(answers)
            # Integers of bits may be of any size.
            data.append((field.name, np.array(different, dtype=object)[place]))
        elif isinstance(field.law, ResponseLaw | LongitudinalResponseLaw):
            categories = np.empty(len(field.values), dtype=object)
            categories[:] = field.values
            data.append((field.name, categories[answers]))
        elif isinstance(field.law, UnaryLaw | SubsetLaw | LongitudinalBitsLaw):
            held = bits(answers, field.law.n_codes).astype(bool)
            data += zip([f"{field.name}={label}" for label in value_labels(field.values)], held.T, strict=True)
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


_REPORT_ID = "skldp_report_id"
_REPORT = "skldp_report"
_VERSION = "1"


class RefusedFileError(ValueError):
    """File whose size in memory cannot be bounded, or whose reports cannot be found."""


def report_schema(policy: Policy) -> Any:
    """Return the schema of reports: their id, and the released integer of each field."""
    pa = require("pyarrow", extra="arrow")
    if any(field.name == _REPORT_ID for field in policy.fields):
        raise ValueError(f"No field may have the name of the reports' id, {_REPORT_ID!r}; got one.")
    columns = [pa.field(_REPORT_ID, pa.binary(16), nullable=False)]
    for field in policy.fields:
        n_bytes = field_bytes(policy, field)
        kind = getattr(pa, f"uint{8 * n_bytes}")() if n_bytes in (1, 2, 4, 8) else pa.binary(n_bytes)
        columns.append(pa.field(field.name, kind, nullable=False))
    return pa.schema(columns, metadata=_metadata(policy))


def bytes_schema(policy: Policy) -> Any:
    """Return the schema of reports as bytes, for engines that keep neither metadata nor types."""
    pa = require("pyarrow", extra="arrow")
    return pa.schema([pa.field(_REPORT, pa.binary(), nullable=False)], metadata=_metadata(policy))


def batch_of_bytes(policy: Policy, reports: Sequence[bytes]) -> Any:
    """Write reports as one record batch of :func:`bytes_schema`."""
    pa = require("pyarrow", extra="arrow")
    return pa.RecordBatch.from_arrays([pa.array(reports, pa.binary())], schema=bytes_schema(policy))


def batch_of_reports(policy: Policy, reports: Sequence[bytes]) -> Any:
    """Write reports as one record batch of :func:`report_schema`."""
    return batch_of_columns(policy, columns_of(policy, [policy.read(report) for report in reports]))


def batch_of_columns(policy: Policy, columns: ReportColumns) -> Any:
    """Write columns of reports as one record batch."""
    pa = require("pyarrow", extra="arrow")
    schema, n = report_schema(policy), len(columns.ids)
    arrays = (columns.ids, *columns.answers)
    buffers = [[None, pa.py_buffer(array.tobytes())] for array in arrays]
    parts = [pa.Array.from_buffers(kind, n, held, 0) for kind, held in zip(schema.types, buffers, strict=True)]
    return pa.RecordBatch.from_arrays(parts, schema=schema)


def check_layout(policy: Policy, schema: Any) -> None:
    """Raise RefusedFileError if the column of :func:`bytes_schema` has another layout."""
    pa = require("pyarrow", extra="arrow")
    # Rows of other layouts may share bytes, and be larger in memory than in the file.
    layouts = pa.binary(), pa.large_binary(), pa.binary(policy.n_bytes)
    if schema.names.count(_REPORT) == 1 and schema.field(_REPORT).type not in layouts:
        raise RefusedFileError(
            f"{_REPORT!r} must have the type binary or large_binary; cast the column before it is written, and from "
            "polars write Parquet."
        )


def own_columns(policy: Policy, schema: Any) -> list[str]:
    """Return the columns of :func:`bytes_schema` or :func:`report_schema`; raises ValueError for another schema."""
    check_layout(policy, schema)
    if schema.names.count(_REPORT) == 1:
        return [_REPORT]
    wanted, metadata = report_schema(policy), schema.metadata or {}
    if any(metadata.get(name) != wanted.metadata[name] for name in (b"skldp_reports", b"skldp_policy_sha256")):
        raise ValueError("The metadata of a batch must be those of this policy and version.")
    if any(schema.names.count(one.name) != 1 or schema.field(one.name).type != one.type for one in wanted):
        raise ValueError("The columns of a batch must have the names and types of the policy's schema.")
    return list(wanted.names)


def columns_of_batch(policy: Policy, batch: Any) -> tuple[ReportColumns, int]:
    """Return the valid reports of a batch, and the number of rows with a null or an integer that is no answer.

    Raises ValueError for another schema than :func:`report_schema`.
    """
    kept = batch.select(own_columns(policy, batch.schema))
    # Refuses buffers that are shorter than their length says.
    kept.validate(full=True)
    nulls = np.zeros(kept.num_rows, dtype=bool)
    for column in kept.columns:
        nulls |= column.is_null().to_numpy(zero_copy_only=False)
    answers = tuple(
        _numbers(column, field_bytes(policy, field))
        for column, field in zip(kept.columns[1:], policy.fields, strict=True)
    )
    given = ReportColumns(_cells(kept.columns[0], 16), answers)
    valid = ~nulls & are_answers(policy, given)
    return given.take(np.flatnonzero(valid)), int(np.count_nonzero(~valid))


def _metadata(policy: Policy) -> dict[str, str]:
    return {
        "skldp_reports": _VERSION,
        "skldp_policy_sha256": policy.sha256,
        "skldp_epsilon": repr(policy.epsilon),
        "skldp_delta": "0",
        "skldp_unit": "record",
    }


def _cells(column: Any, width: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of a column of this width."""
    held = np.frombuffer(column.buffers()[1] or b"", dtype=np.uint8)
    return held[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)


def _numbers(column: Any, width: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    cells = _cells(column, width)
    return cells.view(f"u{width}")[:, 0] if width <= 8 else cells
