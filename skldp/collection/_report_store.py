"""Reports of one policy, taken from wherever they come, of which each id counts once."""

from os import PathLike
from typing import Any, NamedTuple, Self

from skldp.client import Policy, Report
from skldp.collection._columns import ReportColumns, columns_of, join, sorted_once
from skldp.collection._report_files import Found, read_batch, read_file, read_one

__all__ = ["ReportCounts", "ReportStore"]

# Single ones, before they are put into columns.
_WAITING = 1 << 14


class ReportCounts(NamedTuple):
    """What a collector was given.

    Parameters
    ----------
    accepted : int
        Reports that count, each with an id of its own.
    foreign : int
        What is of another policy or version, or no report at all; between reports of a file, once.
    broken : int
        What begins as a report of the policy, and is none.
    doubled : int
        Reports whose id another one has.
    """

    accepted: int
    foreign: int
    broken: int
    doubled: int


class ReportStore:
    """Base of the collector: what came of reports of one policy.

    Parameters
    ----------
    policy : Policy
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._parts: list[ReportColumns] = [columns_of(policy, [])]
        self._waiting: list[Report] = []
        self._foreign = self._broken = self._read = 0

    def add(self, report: bytes) -> bool:
        """Take one report.

        Parameters
        ----------
        report : bytes
            Perhaps a stranger's.

        Returns
        -------
        bool
            Whether it is one of the policy; if its id came before, it counts as doubled all the same.

        Raises
        ------
        TypeError
            If it is no bytes.
        """
        found = read_one(self.policy, report)
        self._foreign, self._broken = self._foreign + found.foreign, self._broken + found.broken
        if found.report is None:
            return False
        self._read += 1
        self._waiting.append(found.report)
        if len(self._waiting) >= _WAITING:
            self._put_away()
        return True

    def add_batch(self, batch: Any) -> None:
        """Take an Arrow record batch or table from any sender.

        Parameters
        ----------
        batch : pyarrow.RecordBatch or pyarrow.Table
            All rows are foreign unless the schema and its metadata are those of the policy's reports. Reports in one
            column of bytes are of the type binary or large_binary.

        Raises
        ------
        ImportError
            If pyarrow is missing.
        TypeError
            If it is neither.
        """
        for found in read_batch(self.policy, batch):
            self._take(found)

    def add_file(self, path: str | PathLike[str]) -> None:
        """Take a file: reports one after the other, or an Arrow file or stream, or Parquet.

        The first bytes say which. The file is read in parts, in time that is linear in its size, and a report that is
        repeated takes no memory. Between reports, other bytes end where the next one begins. Arrow is read without
        compression and without dictionary columns, and Parquet with at most as many rows as bytes.

        Parameters
        ----------
        path : str or path-like
            A page of a Parquet file may be 2 GB large in memory, however small the file is: take Parquet from your own
            systems, and other forms from other senders.

        Raises
        ------
        ImportError
            If it is of Arrow or Parquet, and pyarrow is missing.
        OSError
            If it cannot be read.
        ValueError
            If it is compressed, larger in memory than in the file, or an Arrow file without a stream (as polars writes
            it), or its column of reports is not of bytes.
        """
        for found in read_file(self.policy, path):
            self._take(found)

    def merge(self, *others: Self) -> Self:
        """A collector of all reports of this one and others, of the same policy.

        Parameters
        ----------
        *others : Collector

        Returns
        -------
        Collector
            Of reports with one id, that of the earlier collector counts.

        Raises
        ------
        ValueError
            If one is of another policy.
        """
        every = (self, *others)
        if any(one.policy.sha256 != self.policy.sha256 for one in every):
            raise ValueError("Collectors must be of the same policy. Got one of another policy instead.")
        merged = type(self)(self.policy)
        merged._parts = [one._columns for one in every]
        for name in ("_foreign", "_broken", "_read"):
            setattr(merged, name, sum(getattr(one, name) for one in every))
        return merged

    @property
    def counts(self) -> ReportCounts:
        """How many reports count, and how much else came."""
        n = self.n_reports
        return ReportCounts(n, self._foreign, self._broken, self._read - n)

    @property
    def n_reports(self) -> int:
        """How many reports count."""
        return len(self._columns.ids)

    @property
    def _columns(self) -> ReportColumns:
        """All reports that count, in the order of their ids, so that nothing depends on that of their coming."""
        self._put_away()
        if len(self._parts) > 1:
            self._parts = [sorted_once(join(self._parts))]
        return self._parts[0]

    def _put_away(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._keep(columns_of(self.policy, waiting))

    def _keep(self, columns: ReportColumns) -> None:
        """Keep reports, in the order in which they came; drop repeated ones once they may be half of all."""
        self._parts.append(columns)
        known, *more = (len(part.ids) for part in self._parts)
        if sum(more) > max(known, _WAITING):
            self._parts = [sorted_once(join(self._parts))]

    def _take(self, found: Found) -> None:
        # Single reports came before these.
        self._put_away()
        self._foreign, self._broken = self._foreign + found.foreign, self._broken + found.broken
        self._read += len(found.columns.ids)
        self._keep(found.columns)
