"""Reports as Arrow record batches: one schema, whose metadata say which policy they are of and what it guarantees."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.client import Policy
from skldp.collection._columns import ReportColumns, answer_bytes, are_answers, columns_of

__all__ = [
    "RefusedFileError",
    "batch_of_bytes",
    "batch_of_columns",
    "batch_of_reports",
    "bytes_schema",
    "check_layout",
    "columns_of_batch",
    "own_columns",
    "report_schema",
    "require_arrow",
]

_REPORT_ID = "skldp_report_id"
_REPORT = "skldp_report"
_VERSION = "1"


class RefusedFileError(ValueError):
    """A file whose size in memory cannot be bounded, or whose reports cannot be found."""


def require_arrow(name: str = "pyarrow") -> Any:
    """Import a part of pyarrow.

    Raises
    ------
    ImportError
        If it is missing.
    """
    try:
        return import_module(name)
    except ImportError:
        raise ImportError('Arrow needs pyarrow: pip install "skldp[arrow]".') from None


def report_schema(policy: Policy) -> Any:
    """The schema of reports: their id, and the released integer of each field.

    Parameters
    ----------
    policy : Policy
        With no field of the name ``"skldp_report_id"``.

    Returns
    -------
    pyarrow.Schema
        A column ``"skldp_report_id"`` of 16 bytes, then one for each field in the policy's order: the smallest type of
        unsigned integers that holds its answers or, where these need more than 64 bits, so many bytes, the highest
        first. No column has nulls. The metadata are ``"skldp_reports"``, the version of this schema,
        ``"skldp_policy_sha256"``, ``"skldp_epsilon"``, ``"skldp_delta"`` and ``"skldp_unit"``: of one report.

    Raises
    ------
    ImportError
        If pyarrow is missing.
    ValueError
        If a field has the name of the id.

    Examples
    --------
    >>> from skldp.client import CategoryField, Policy
    >>> from skldp.collection._arrow import report_schema
    >>> from skldp.mechanisms import RandomizedResponse, integer_law
    >>> policy = Policy("a test", (CategoryField("city", ("Bonn", "Ulm"), integer_law(RandomizedResponse(1.0, 2))),))
    >>> report_schema(policy).names
    ['skldp_report_id', 'city']
    """
    pa = require_arrow()
    if any(field.name == _REPORT_ID for field in policy.fields):
        raise ValueError(f"No field may have the name of the reports' id. Got {_REPORT_ID!r} among them.")
    columns = [pa.field(_REPORT_ID, pa.binary(16), nullable=False)]
    for field in policy.fields:
        n_bytes = answer_bytes(field.n_answers)
        kind = getattr(pa, f"uint{8 * n_bytes}")() if n_bytes in (1, 2, 4, 8) else pa.binary(n_bytes)
        columns.append(pa.field(field.name, kind, nullable=False))
    return pa.schema(columns, metadata=_metadata(policy))


def bytes_schema(policy: Policy) -> Any:
    """The schema of reports as devices send them, for engines that keep neither metadata nor types as they were given.

    Parameters
    ----------
    policy : Policy

    Returns
    -------
    pyarrow.Schema
        Of one column ``"skldp_report"`` of bytes, each of which says itself whose policy's it is; the metadata of
        :func:`report_schema` are there, and needed by nobody.

    Examples
    --------
    >>> from skldp.client import CategoryField, Policy
    >>> from skldp.collection._arrow import bytes_schema
    >>> from skldp.mechanisms import RandomizedResponse, integer_law
    >>> policy = Policy("a test", (CategoryField("city", ("Bonn", "Ulm"), integer_law(RandomizedResponse(1.0, 2))),))
    >>> bytes_schema(policy).names
    ['skldp_report']
    """
    pa = require_arrow()
    return pa.schema([pa.field(_REPORT, pa.binary(), nullable=False)], metadata=_metadata(policy))


def batch_of_bytes(policy: Policy, reports: Sequence[bytes]) -> Any:
    """Write reports, as a device sends them, as one record batch of :func:`bytes_schema`."""
    pa = require_arrow()
    return pa.RecordBatch.from_arrays([pa.array(reports, pa.binary())], schema=bytes_schema(policy))


def batch_of_reports(policy: Policy, reports: Sequence[bytes]) -> Any:
    """Write reports, as a device sends them, as one record batch.

    Parameters
    ----------
    policy : Policy
    reports : sequence of bytes

    Returns
    -------
    pyarrow.RecordBatch
        With as many rows, in their order, and :func:`report_schema`.

    Raises
    ------
    ValueError
        If one is broken, or of another policy.
    """
    return batch_of_columns(policy, columns_of(policy, [policy.read(report) for report in reports]))


def batch_of_columns(policy: Policy, columns: ReportColumns) -> Any:
    """Write reports that are in columns as one record batch.

    Parameters
    ----------
    policy : Policy
    columns : ReportColumns

    Returns
    -------
    pyarrow.RecordBatch
    """
    pa = require_arrow()
    schema, n = report_schema(policy), len(columns.ids)
    arrays = (columns.ids, *columns.answers)
    buffers = [[None, pa.py_buffer(array.tobytes())] for array in arrays]
    parts = [pa.Array.from_buffers(kind, n, held, 0) for kind, held in zip(schema.types, buffers, strict=True)]
    return pa.RecordBatch.from_arrays(parts, schema=schema)


def check_layout(policy: Policy, schema: Any) -> None:
    """Raise RefusedFileError if the column of :func:`bytes_schema` has another layout."""
    pa = require_arrow()
    # Rows of other layouts may share their bytes, and be larger in memory than in the file.
    layouts = pa.binary(), pa.large_binary(), pa.binary(policy.n_bytes)
    if schema.names.count(_REPORT) == 1 and schema.field(_REPORT).type not in layouts:
        raise RefusedFileError(
            f"{_REPORT!r} must be of the type binary or large_binary. Got another type instead; cast the column before "
            "it is written, and from polars write Parquet."
        )


def own_columns(policy: Policy, schema: Any) -> list[str]:
    """Return the names of the columns of reports: those of :func:`bytes_schema` or of :func:`report_schema`.

    The order of columns is free, and others may stand beside them. Raises ValueError if the schema is another one.
    """
    check_layout(policy, schema)
    if schema.names.count(_REPORT) == 1:
        return [_REPORT]
    wanted, metadata = report_schema(policy), schema.metadata or {}
    if any(metadata.get(name) != wanted.metadata[name] for name in (b"skldp_reports", b"skldp_policy_sha256")):
        raise ValueError("The metadata of a batch must be those of this policy and version. Got others instead.")
    if any(schema.names.count(one.name) != 1 or schema.field(one.name).type != one.type for one in wanted):
        raise ValueError("The columns of a batch must have the names and types of its schema. Got others instead.")
    return list(wanted.names)


def columns_of_batch(policy: Policy, batch: Any) -> tuple[ReportColumns, int]:
    """Return the valid reports of a batch of :func:`report_schema`, and the number of broken rows.

    A row is broken if an integer is no answer of its field, or there is a null. Raises ValueError if the schema is
    another one.
    """
    kept = batch.select(own_columns(policy, batch.schema))
    # Buffers that are shorter than they say are refused before they are read.
    kept.validate(full=True)
    nulls = np.zeros(kept.num_rows, dtype=bool)
    for column in kept.columns:
        nulls |= column.is_null().to_numpy(zero_copy_only=False)
    answers = tuple(
        _numbers(column, answer_bytes(field.n_answers))
        for column, field in zip(kept.columns[1:], policy.fields, strict=True)
    )
    given = ReportColumns(_cells(kept.columns[0], 16), answers)
    whole = ~nulls & are_answers(policy, given)
    return given.take(np.flatnonzero(whole)), int(np.count_nonzero(~whole))


def _metadata(policy: Policy) -> dict[str, str]:
    return {
        "skldp_reports": _VERSION,
        "skldp_policy_sha256": policy.sha256,
        "skldp_epsilon": repr(policy.epsilon),
        "skldp_delta": "0",
        "skldp_unit": "record",
    }


def _cells(column: Any, width: int) -> npt.NDArray[np.uint8]:
    """The bytes of a column of so many in a row."""
    held = np.frombuffer(column.buffers()[1] or b"", dtype=np.uint8)
    return held[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)


def _numbers(column: Any, width: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    cells = _cells(column, width)
    return cells.view(f"u{width}")[:, 0] if width <= 8 else cells
