"""Reports in files: one after the other as devices sent them, or as Arrow and Parquet; whatever else is there too."""

import os
import struct
from collections.abc import Iterator
from os import PathLike
from typing import Any, NamedTuple

from skldp.client import Policy, Report
from skldp.client._reports import header
from skldp.collection._arrow import RefusedFileError, check_layout, columns_of_batch, own_columns, require_arrow
from skldp.collection._columns import ReportColumns, columns_of

__all__ = ["Found", "read_batch", "read_file", "read_one"]

_ARROW = b"ARROW1"
_PARQUET = b"PAR1"
_STREAM = b"\xff\xff\xff\xff"
# Rows that are converted at a time, and bytes that are read at a time.
_ROWS = 1 << 16
_BYTES = 1 << 20
# The version of Arrow's messages since Arrow 1.0.
_V5 = 4


class Found(NamedTuple):
    """Reports of a policy, and how much was none.

    Parameters
    ----------
    columns : ReportColumns
    foreign : int
        What is of another policy or version, or no report at all.
    broken : int
        What begins as a report of this policy, and is none.
    report : Report, default=None
        The one that there is, in the place of columns.
    """

    columns: ReportColumns
    foreign: int
    broken: int
    report: Report | None = None


def read_one(policy: Policy, report: bytes) -> Found:
    """Read what should be one report."""
    if not isinstance(report, bytes | bytearray | memoryview):
        raise TypeError(f"A report must be bytes. Got {type(report).__name__} instead.")
    given = bytes(report)
    try:
        return Found(columns_of(policy, []), 0, 0, policy.read(given))
    except ValueError:
        own = given.startswith(header(bytes.fromhex(policy.sha256)))
        return Found(columns_of(policy, []), int(not own), int(own))


def read_batch(policy: Policy, batch: Any) -> Iterator[Found]:
    """Read an Arrow record batch or table in parts; rows of another schema are foreign."""
    pa = require_arrow()
    if isinstance(batch, pa.Table):
        for part in batch.to_batches():
            yield from read_batch(policy, part)
        return
    if not isinstance(batch, pa.RecordBatch):
        raise TypeError(f"Reports must be a pyarrow.RecordBatch or pyarrow.Table; got {type(batch).__name__}.")
    try:
        kept = batch.select(own_columns(policy, batch.schema))
        # Buffers that are shorter than they say are refused before they are read.
        kept.validate(full=True)
    except ValueError:
        yield Found(columns_of(policy, []), batch.num_rows, 0)
        return
    for start in range(0, kept.num_rows, _ROWS):
        part = kept.slice(start, _ROWS)
        if part.schema.names == ["skldp_report"]:
            yield _read_all(policy, [report or b"" for report in part.columns[0].to_pylist()])
        else:
            columns, n_broken = columns_of_batch(policy, part)
            yield Found(columns, 0, n_broken)


def _read_all(policy: Policy, reports: list[bytes]) -> Found:
    """Read reports as devices sent them."""
    found = [read_one(policy, report) for report in reports]
    whole = columns_of(policy, [one.report for one in found if one.report is not None])
    return Found(whole, sum(one.foreign for one in found), sum(one.broken for one in found))


def read_file(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read a file in parts; its first bytes say its format.

    Raises
    ------
    ImportError
        If it is of Arrow or Parquet, and pyarrow is missing.
    OSError
        If it cannot be read.
    ValueError
        If its size in memory cannot be bounded, its reports are no column of bytes, or it is an Arrow file without a
        stream.
    """
    with open(path, "rb") as file:
        first = file.read(len(_ARROW))
    if not first.startswith((_ARROW, _PARQUET, _STREAM)):
        yield from _read_bytes(policy, path)
        return
    pa = require_arrow()
    read = _read_parquet if first.startswith(_PARQUET) else _read_arrow
    try:
        yield from read(policy, path)
    except RefusedFileError:
        raise
    # A part that pyarrow cannot read counts once as broken; the parts before it count. A length of petabytes and an
    # unknown type have errors of their own.
    except (ValueError, OSError, pa.ArrowException):
        yield Found(columns_of(policy, []), 0, 1)


def _read_parquet(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read the columns of reports, if the file has no more rows than bytes."""
    parquet = require_arrow("pyarrow.parquet").ParquetFile(path)
    try:
        n_rows, most = parquet.metadata.num_rows, max(os.path.getsize(path), _ROWS)
        # Ids are random bytes, which no encoding shortens: only repeated reports take less than a byte each.
        if n_rows > most:
            raise RefusedFileError(
                f"A Parquet file of this size must have at most {most:,} rows; got {n_rows:,}. Drop repeated reports "
                "before it is written."
            )
        check_layout(policy, parquet.schema_arrow)
        try:
            names = own_columns(policy, parquet.schema_arrow)
        except ValueError:
            yield Found(columns_of(policy, []), n_rows, 0)
            return
        for batch in parquet.iter_batches(batch_size=_ROWS, columns=names):
            yield from read_batch(policy, batch.replace_schema_metadata(parquet.schema_arrow.metadata))
    finally:
        parquet.close()


def _read_arrow(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read an Arrow stream, or the stream that an Arrow file holds."""
    pa, ipc = require_arrow(), require_arrow("pyarrow.ipc")
    with pa.OSFile(str(path)) as file:
        is_file = file.read(len(_ARROW)) == _ARROW
        # A file is a stream between eight bytes and an index, which may point anywhere.
        file.seek(8 if is_file else 0)
        # Polars writes the schema into the index alone, and so no stream.
        if is_file and file.read(len(_STREAM)) != _STREAM:
            raise RefusedFileError("An Arrow file must begin with a stream; got another. Write Parquet instead.")
        file.seek(8 if is_file else 0)
        schema = None
        for message in ipc.MessageReader.open_stream(file):
            if schema is None:
                schema = ipc.read_schema(message)
                check_layout(policy, schema)
                continue
            if message.type != "record batch" or not _is_plain(message.metadata.to_pybytes()):
                raise RefusedFileError(
                    "Arrow files and streams of reports must be written by Arrow 1.0 or newer, without compression "
                    f"and without dictionary columns; got a {message.type} that is not. Write it with "
                    "IpcWriteOptions(compression=None), or as Parquet."
                )
            batch = ipc.read_record_batch(message, schema)
            # Columns of no width, and columns that share their bytes, are larger in memory than in the file.
            if batch.nbytes > message.body.size or batch.num_rows > message.body.size:
                raise RefusedFileError("Every column of an Arrow file must hold its own bytes; got fewer bytes.")
            yield from read_batch(policy, batch)
        if is_file:
            file.seek(max(0, file.size() - len(_ARROW)))
            if file.read(len(_ARROW)) != _ARROW:
                raise ValueError("An Arrow file must end with its mark.")


def _is_plain(message: bytes) -> bool:
    """Return whether a message is an uncompressed record batch of version V5."""

    def place(table: int, number: int) -> int:
        """Return where a field of a flatbuffer table stands; 0 if it is absent."""
        fields = table - struct.unpack_from("<i", message, table)[0]
        slot = 4 + 2 * number
        is_known = slot < struct.unpack_from("<H", message, fields)[0]
        offset: int = struct.unpack_from("<H", message, fields + slot)[0] if is_known else 0
        return table + offset if offset else 0

    root = struct.unpack_from("<I", message)[0]
    version, batch = place(root, 0), place(root, 2)
    if not (version and batch) or struct.unpack_from("<h", message, version)[0] != _V5:
        return False
    return not place(batch + struct.unpack_from("<I", message, batch)[0], 3)


def _read_bytes(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read reports one after the other, in time that is linear in the size of the file.

    A broken report ends where the next one begins. Each costs a check of a report's length: if there are more than the
    file has room for, each ends after a report's length.
    """
    start, size = header(bytes.fromhex(policy.sha256)), policy.n_bytes
    held, is_strange, ended = b"", False, False
    n_failed, n_read = 0, 0
    with open(path, "rb") as file:
        while not ended:
            more = file.read(max(_BYTES, size))
            held, ended = held + more, not more
            n_read += len(more)
            reports: list[Report] = []
            foreign = broken = place = 0
            # Complete reports, and at the end the rest.
            while place + size <= len(held) or (ended and place < len(held)):
                is_own = held.startswith(start, place)
                report = read_one(policy, held[place : place + size]).report if is_own else None
                if report is not None:
                    reports.append(report)
                    place, is_strange = place + size, False
                    continue
                broken, foreign = broken + is_own, foreign + (not is_own and not is_strange)
                n_failed, is_strange = n_failed + is_own, True
                skipped = 1 if n_failed * size <= n_read else size
                following = held.find(start, place + skipped)
                # The next one may begin at the end of what is read so far.
                place = following if following >= 0 else max(place + 1, len(held) - len(start) + 1)
            held = held[place:]
            yield Found(columns_of(policy, reports), foreign, broken)
