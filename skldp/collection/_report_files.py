"""Reader of reports in files, record batches and bytes, none of which is trusted, and the store of reports."""

import os
import struct
import warnings
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

from skldp._progress import Progress
from skldp._tables import require
from skldp.client._policy import Policy, check_policy
from skldp.client._report_bytes import header, is_intact
from skldp.collection._report_tables import (
    REPORT,
    RefusedFileError,
    ReportColumns,
    has_reports,
    merged,
    report_columns,
)

_ARROW = b"ARROW1"
_PARQUET = b"PAR1"
_STREAM = b"\xff\xff\xff\xff"
# Rows that are converted at a time, and bytes that are read at a time.
_ROWS = 1 << 16
_BYTES = 1 << 20
# The version of Arrow's messages since Arrow 1.0.
_V5 = 4


class Found(NamedTuple):
    """Parsed reports and the number of rejected ones; without `is_readable`, the rest of the file cannot be read."""

    columns: ReportColumns
    foreign: int
    broken: int
    is_readable: bool = True
    n_skipped: int = 0  # bytes beside reports and line ends


def _found(policy: Policy, reports: Sequence[bytes]) -> Found:
    """Read reports; a broken one has the header of the policy, a foreign one does not."""
    start, size = header(bytes.fromhex(policy.sha256)), policy.n_bytes
    own = [one for one in reports if one.startswith(start)]
    columns = report_columns(policy, [one for one in own if len(one) == size and is_intact(one)])
    return Found(columns, len(reports) - len(own), len(own) - len(columns.ids))


def read_batch(policy: Policy, batch: Any) -> Iterator[Found]:
    """Read an Arrow record batch or table in parts. Rows of another schema are foreign."""
    pa = require("pyarrow", extra="arrow")
    if isinstance(batch, pa.Table):
        for part in batch.to_batches():
            yield from read_batch(policy, part)
        return
    if not isinstance(batch, pa.RecordBatch):
        raise TypeError(f"Reports must be a pyarrow.RecordBatch or pyarrow.Table; got {type(batch).__name__}.")
    try:
        is_known = has_reports(policy, batch.schema)
    except RefusedFileError:
        is_known = False
    if not is_known:
        yield Found(report_columns(policy, []), batch.num_rows, 0)
        return
    column = batch.column(batch.schema.names.index(REPORT))
    # Refuses buffers that are shorter than their length says.
    column.validate(full=True)
    for start in range(0, len(column), _ROWS):
        yield _found(policy, [report or b"" for report in column.slice(start, _ROWS).to_pylist()])


def read_file(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read a file in parts; its first bytes say its format."""
    with open(path, "rb") as file:
        first = file.read(len(_ARROW))
    if not first.startswith((_ARROW, _PARQUET, _STREAM)):
        yield from _read_bytes(policy, path)
        return
    pa = require("pyarrow", extra="arrow")
    read = _read_parquet if first.startswith(_PARQUET) else _read_arrow
    try:
        yield from read(policy, path)
    except RefusedFileError:
        raise
    # A part that pyarrow cannot read counts once as broken; the parts before it count.
    except (ValueError, OSError, pa.ArrowException):
        yield Found(report_columns(policy, []), 0, 1, is_readable=False)


def _read_parquet(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read the columns of reports, if the file has no more rows than bytes."""
    parquet = require("pyarrow.parquet", extra="arrow").ParquetFile(path)
    try:
        n_rows, most = parquet.metadata.num_rows, max(os.path.getsize(path), _ROWS)
        # Random ids cannot be compressed: only repeated reports take less than a byte each.
        if n_rows > most:
            raise RefusedFileError(
                f"A Parquet file of this size must have at most {most:,} rows; got {n_rows:,}. Drop repeated reports "
                "before it is written."
            )
        if not has_reports(policy, parquet.schema_arrow):
            yield Found(report_columns(policy, []), n_rows, 0)
            return
        for batch in parquet.iter_batches(batch_size=_ROWS, columns=[REPORT]):
            yield from read_batch(policy, batch)
    finally:
        parquet.close()


def _read_arrow(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read an Arrow stream, or the stream that an Arrow file holds."""
    pa, ipc = require("pyarrow", extra="arrow"), require("pyarrow.ipc", extra="arrow")
    with pa.OSFile(str(path)) as file:
        is_file = file.read(len(_ARROW)) == _ARROW
        # A file is a stream between eight bytes and an index, which is not trusted.
        file.seek(8 if is_file else 0)
        # Polars writes the schema to the index only, and no stream.
        if is_file and file.read(len(_STREAM)) != _STREAM:
            raise RefusedFileError("An Arrow file must begin with a stream; write Parquet from polars.")
        file.seek(8 if is_file else 0)
        schema = None
        for message in ipc.MessageReader.open_stream(file):
            if schema is None:
                schema = ipc.read_schema(message)
                has_reports(policy, schema)
                continue
            if message.type != "record batch" or not _is_plain(message.metadata.to_pybytes()):
                raise RefusedFileError(
                    "Arrow files and streams of reports must be written by Arrow 1.0 or newer, without compression "
                    f"and without dictionary columns; got a {message.type} that is not. Write it with "
                    "IpcWriteOptions(compression=None), or as Parquet."
                )
            batch = ipc.read_record_batch(message, schema)
            # Columns of width 0 or with shared bytes are larger in memory than in the file.
            if batch.nbytes > message.body.size or batch.num_rows > message.body.size:
                raise RefusedFileError("Columns of an Arrow file must not share bytes or have a width of 0.")
            yield from read_batch(policy, batch)
        if is_file:
            file.seek(max(0, file.size() - len(_ARROW)))
            if file.read(len(_ARROW)) != _ARROW:
                raise ValueError("An Arrow file must end with its mark.")


def _is_plain(message: bytes) -> bool:
    """Return whether a message is an uncompressed record batch of version V5."""

    def place(table: int, number: int) -> int:
        """Return the offset of a field of a flatbuffer table, 0 if it is absent."""
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
    """Read concatenated reports in linear time; after many failures, each search starts a report further."""
    start, size = header(bytes.fromhex(policy.sha256)), policy.n_bytes
    held, was_rejected, ended = b"", False, False
    n_failed, n_read = 0, 0
    with open(path, "rb") as file:
        while not ended:
            more = file.read(max(_BYTES, size))
            held, ended = held + more, not more
            n_read += len(more)
            whole: list[bytes] = []
            place = n_skipped = foreign = broken = 0
            # Complete reports, and at the end the rest.
            while place + size <= len(held) or (ended and place < len(held)):
                is_own, one = held.startswith(start, place), held[place : place + size]
                if is_own and len(one) == size and is_intact(one):
                    whole.append(one)
                    was_rejected, place = False, place + size
                    continue
                broken += is_own
                # Bytes without a header count once.
                foreign += not is_own and not was_rejected
                was_rejected = True
                n_failed += is_own
                skipped = 1 if n_failed * size <= n_read else size
                following = held.find(start, place + skipped)
                # A header may begin at the end of the buffer.
                before, place = place, following if following >= 0 else max(place + 1, len(held) - len(start) + 1)
                n_skipped += len(held[before:place].strip(b"\r\n"))
            held = held[place:]
            columns = report_columns(policy, whole)
            yield Found(columns, foreign, broken + len(whole) - len(columns.ids), n_skipped=n_skipped)


# Single reports that are collected before they are converted to columns.
_WAITING = 1 << 14


class ReportCounts(NamedTuple):
    """Number of reports of a collector by outcome."""

    accepted: int
    foreign: int
    broken: int
    doubled: int


class ReportStore:
    """Store of the reports of a policy, each id once."""

    def __init__(self, policy: Policy) -> None:
        check_policy(policy)
        self.policy = policy
        self._parts: list[ReportColumns] = [report_columns(policy, [])]
        self._waiting: list[bytes] = []
        self._foreign = self._broken = self._read = 0

    def add(self, report: bytes) -> bool:
        """Add one report, which is not trusted.

        Parameters
        ----------
        report : bytes
            Report of a device.

        Returns
        -------
        bool
            Whether it is one of the policy. A repeated id counts as doubled.

        Raises
        ------
        TypeError
            If it is not bytes.
        """
        if not isinstance(report, bytes | bytearray | memoryview):
            raise TypeError(f"A report must be bytes; got {type(report).__name__}.")
        given = bytes(report)
        try:
            self.policy.read(given)
        except ValueError:
            is_own = given.startswith(header(bytes.fromhex(self.policy.sha256)))
            self._broken += is_own
            self._foreign += not is_own
            return False
        self._read += 1
        self._waiting.append(given)
        if len(self._waiting) >= _WAITING:
            self._convert_waiting()
        return True

    def add_batch(self, batch: Any) -> None:
        """Add an Arrow record batch or table, which is not trusted.

        Parameters
        ----------
        batch : pyarrow.RecordBatch or pyarrow.Table
            All rows are foreign unless one column is ``"skldp_report"``, of the type binary or large_binary.

        Raises
        ------
        ImportError
            If pyarrow is missing.
        TypeError
            If it is neither.
        """
        for found in read_batch(self.policy, batch):
            self._take(found)

    def add_file(self, path: str | PathLike[str], *, verbose: bool = False) -> None:
        """Add a file: concatenated reports, an Arrow file or stream, or Parquet, by its first bytes.

        The file is read in parts, in time linear in its size; a repeated report takes no memory. Bytes between reports
        are skipped. Arrow must have no compression and no dictionary columns, Parquet at most as many rows as bytes.
        A UserWarning says that a file was altered or cut off, has no report, or bytes beside reports and line ends.

        Parameters
        ----------
        path : str or path-like
            A page of a small Parquet file may take 2 GB of memory: read Parquet only from your own systems.
        verbose : bool, default=False
            Show progress on standard error, from two seconds on.

        Raises
        ------
        ImportError
            If it is Arrow or Parquet, and pyarrow is missing.
        OSError
            If it cannot be read.
        ValueError
            If it is compressed, larger in memory than in the file, or an Arrow file without a stream (as polars writes
            it), or its column of reports is not of bytes.
        """
        n, foreign, broken, state, n_skipped = -self._read, -self._foreign, -self._broken, "", 0
        with Progress(f"{os.path.basename(path)}, reports read", show=verbose) as progress:
            for found in read_file(self.policy, path):
                self._take(found)
                progress.advance(len(found.columns.ids))
                n_skipped += found.n_skipped
                state = state if found.is_readable else "is damaged or cut off, and its rest was not read"
        n, foreign, broken = n + self._read, foreign + self._foreign, broken + self._broken
        if state:
            state += f"; got {n:,} reports of it"
        elif broken:
            state = f"has broken reports ({broken:,}, beside {n:,} whole ones): it was altered or cut off"
        elif not n:
            state = f"holds no report of this policy; foreign reports or rows: {foreign:,}"
        elif n_skipped:
            state = f"has {n_skipped:,} bytes beside its {n:,} reports: it was altered, or is of another format"
        if state:
            warnings.warn(f"{os.fspath(path)} {state}.", stacklevel=2)

    def merge(self, *others: Self) -> None:
        """Add the reports of other collectors of the same policy to this one; the others stay as they are.

        The first report of an id counts. Raises TypeError for anything but a collector, and ValueError for one of
        another policy, for this one, and for one that is given twice.

        Parameters
        ----------
        *others : Collector
            Collectors of other reports.
        """
        every = (self, *others)
        for place, one in enumerate(others):
            if not isinstance(one, ReportStore):
                raise TypeError(f"Collectors can be merged only with collectors; got {type(one).__name__}.")
            if one.policy.sha256 != self.policy.sha256 or any(one is other for other in every[: place + 1]):
                raise ValueError("Collectors must have the same policy to be merged, and each be given once.")
        self._parts = [one._columns for one in every]
        for name in ("_foreign", "_broken", "_read"):
            setattr(self, name, sum(getattr(one, name) for one in every))

    @property
    def counts(self) -> ReportCounts:
        """The number of accepted, foreign, broken and repeated reports."""
        n = self.n_reports
        return ReportCounts(n, self._foreign, self._broken, self._read - n)

    @property
    def n_reports(self) -> int:
        """The number of accepted reports."""
        return len(self._columns.ids)

    @property
    def _columns(self) -> ReportColumns:
        """All accepted reports in the order of their ids: estimates do not depend on the order of arrival."""
        self._convert_waiting()
        if len(self._parts) > 1:
            self._parts = [merged(self._parts)]
        return self._parts[0]

    def _convert_waiting(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._keep(report_columns(self.policy, waiting))

    def _keep(self, columns: ReportColumns) -> None:
        """Append reports; drop repeated ones once they may be half of all."""
        self._parts.append(columns)
        known, *more = (len(part.ids) for part in self._parts)
        if sum(more) > max(known, _WAITING):
            self._parts = [merged(self._parts)]

    def _take(self, found: Found) -> None:
        # Single reports arrived before these.
        self._convert_waiting()
        self._foreign, self._broken = self._foreign + found.foreign, self._broken + found.broken
        self._read += len(found.columns.ids)
        self._keep(found.columns)
