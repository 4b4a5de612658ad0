"""Reports in files: one after the other as devices sent them, or as Arrow and Parquet; whatever else is there too."""

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, NamedTuple

from skldp.client import Policy, Report
from skldp.client._reports import header
from skldp.collection._arrow import bytes_of_batch, columns_of_batch, require_arrow
from skldp.collection._columns import ReportColumns, columns_of

__all__ = ["Found", "read_batch", "read_file", "read_one"]

_ARROW = b"ARROW1"
_PARQUET = b"PAR1"
_STREAM = b"\xff\xff\xff\xff"
# Reports that are in memory at a time.
_REPORTS = 1 << 16


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


def read_batch(policy: Policy, batch: Any) -> Found:
    """Read an Arrow record batch, of columns or of bytes; all rows of one of another schema are foreign."""
    if not hasattr(batch, "num_rows"):
        raise TypeError(f"Reports must be in a pyarrow.RecordBatch. Got {type(batch).__name__} instead.")
    try:
        if (reports := bytes_of_batch(batch)) is not None:
            return _read_all(policy, reports)
        columns, n_broken = columns_of_batch(policy, batch)
    except ValueError:
        return Found(columns_of(policy, []), batch.num_rows, 0)
    return Found(columns, 0, n_broken)


def _read_all(policy: Policy, reports: Sequence[bytes]) -> Found:
    """Read reports as devices sent them."""
    found = [read_one(policy, report) for report in reports]
    whole = columns_of(policy, [one.report for one in found if one.report is not None])
    return Found(whole, sum(one.foreign for one in found), sum(one.broken for one in found))


def read_file(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Read a file in parts; what it is, is seen from its first bytes.

    Raises
    ------
    ImportError
        If it is of Arrow or Parquet, and pyarrow is missing.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        first = file.read(len(_ARROW))
    if not first.startswith((_ARROW, _PARQUET, _STREAM)):
        yield from _read_bytes(policy, path)
        return
    pa = require_arrow()
    try:
        for batch in _batches(path, first):
            yield read_batch(policy, batch)
    # What pyarrow cannot read is one thing that is broken, after what could be read before it: a length of petabytes
    # and a type that there is none of have errors of their own.
    except (ValueError, OSError, pa.ArrowException):
        yield Found(columns_of(policy, []), 0, 1)


def _batches(path: str | PathLike[str], first: bytes) -> Iterator[Any]:
    if first.startswith(_PARQUET):
        parquet = require_arrow("pyarrow.parquet").ParquetFile(path)
        try:
            for batch in parquet.iter_batches():
                yield batch.replace_schema_metadata(parquet.schema_arrow.metadata)
        finally:
            parquet.close()
        return
    pa, ipc = require_arrow(), require_arrow("pyarrow.ipc")
    with pa.OSFile(str(path)) as file:
        if first.startswith(_STREAM):
            yield from ipc.open_stream(file)
        else:
            reader = ipc.open_file(file)
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))


def _read_bytes(policy: Policy, path: str | PathLike[str]) -> Iterator[Found]:
    """Reports one after the other. What is none of them ends where the next one begins."""
    start, size = header(bytes.fromhex(policy.sha256)), policy.n_bytes
    held, is_strange, ended = b"", False, False
    with open(path, "rb") as file:
        while not ended:
            more = file.read(_REPORTS * size)
            held, ended = held + more, not more
            reports: list[Report] = []
            foreign = broken = place = 0
            # Whole reports, and at the end what is left.
            while place + size <= len(held) or (ended and place < len(held)):
                try:
                    reports.append(policy.read(held[place : place + size]))
                    place, is_strange = place + size, False
                except ValueError:
                    if held.startswith(start, place):
                        broken += 1
                    elif not is_strange:
                        foreign += 1
                    is_strange = True
                    following = held.find(start, place + 1)
                    # The next one may begin at the end of what is read so far.
                    place = following if following >= 0 else max(place + 1, len(held) - len(start) + 1)
            held = held[place:]
            yield Found(columns_of(policy, reports), foreign, broken)
