"""Store of a ledger in an SQLite file.

The journal is SQLite's rollback journal with ``synchronous=EXTRA``, not a write-ahead log. A commit is then contained
in one file, and the directory is synchronized too. A power failure cannot restore the journal and undo a commit whose
answers were returned.

A connection exists for one transaction. Between transactions, there is no connection that a fork could copy or that a
replaced file could make stale.
"""

import os
import sqlite3
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skldp.accounting.ledger import _store as store
from skldp.accounting.ledger._lock_file import EMPTY, Entry, Head, LockFile, lock_file_of, locked
from skldp.accounting.ledger._records import SCHEMA_VERSION, TABLES, VIEWS, Connection
from skldp.accounting.ledger._store import MEMORY, LedgerStore, never_close
from skldp.exceptions import LedgerError

APPLICATION_ID = 0x736B6C64
# These tables are always read by their full key.
_WITHOUT_ROWID = ("settings", "answers", "kept", "erasures")
_ONE_ERASED = "SELECT 1 FROM erasures e WHERE e.release = OLD.release AND e.person = OLD.person"
# Rows that may be deleted: erased answers and kept rows, and salts of releases with erasures.
_ERASED = {
    "answers": _ONE_ERASED,
    "kept": _ONE_ERASED,
    "salts": "SELECT 1 FROM erasures e WHERE e.release = OLD.release",
}


def _create_statements() -> Iterator[str]:
    for table, columns in TABLES.items():
        # SQLite uses the rowid as key only for the type name INTEGER.
        shape = columns.replace("BIGINT", "INTEGER")
        yield f"CREATE TABLE {table} ({shape}){' WITHOUT ROWID' if table in _WITHOUT_ROWID else ''}"
    for table in TABLES:
        for change in ("update", "delete"):
            may_go = change == "delete" and table in _ERASED
            yield (
                f"CREATE TRIGGER {table}_keeps_on_{change} BEFORE {change} ON {table} "
                f"{f'WHEN NOT EXISTS ({_ERASED[table]}) ' if may_go else ''}"
                "BEGIN SELECT RAISE(ABORT, 'a privacy ledger is append-only'); END"
            )
    yield from (f"CREATE VIEW {view} AS {selection}" for view, selection in VIEWS.items())
    yield from (f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {SCHEMA_VERSION}")


def _connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    # mode=rw, unlike the default, does not create a missing file.
    target = f"{Path(path).as_uri()}?mode={'ro' if read_only else 'rw'}"
    connection = sqlite3.connect(
        target, timeout=store.BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA recursive_triggers = ON")
        # SQLite then overwrites erased content.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _fill(connection: sqlite3.Connection, settings: dict[str, Any]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in _create_statements():
        connection.execute(statement)
    store.write_first_settings(connection, settings)
    connection.execute("COMMIT")


def _create_file(path: str, settings: dict[str, Any]) -> None:
    """Create a ledger under a temporary name and rename it, so that no process sees it incomplete."""
    draft = f"{path}.new"
    # The caller holds the lock, so an existing draft comes from a killed process.
    for end in ("", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(f"{draft}{end}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        connection = _connect(draft)
        try:
            _fill(connection, settings)
        finally:
            connection.close()
        os.rename(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    if hasattr(os, "O_DIRECTORY"):
        directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _kind(error: Exception) -> str:
    """Return SQLite's name of an error, or its class, since the message may quote the file's content."""
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _resolved(path: str) -> str:
    """Resolve links in the folders of a path, but not of the file itself."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


class SQLiteStore(LedgerStore):
    """Store of a ledger in a file, or in memory."""

    def __init__(
        self, path: str | os.PathLike[str], settings: dict[str, Any] | None = None, *, read_only: bool = False
    ) -> None:
        name = os.fsdecode(path)
        if "\0" in name:
            raise ValueError(f"path must be a file path without NUL characters; got {path!r}.")
        super().__init__(name, MEMORY if path == MEMORY else _resolved(name), read_only=read_only)
        self._memory: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._register()
        with self.lock:
            self._open_or_make(settings)
        self._opened()

    def _open_or_make(self, settings: dict[str, Any] | None) -> None:
        if self.path == MEMORY:
            self._only_process = os.getpid()
            self._memory = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
            self._closing = weakref.finalize(self, self._memory.close)
            self._memory.execute("PRAGMA recursive_triggers = ON")
            _fill(self._memory, settings or {})
        elif settings is not None and not os.path.lexists(self.path):
            self._create(settings)
        elif not self.read_only and not os.path.lexists(lock_file_of(self.path)):
            # Problems of the file are reported before a missing lock file.
            SQLiteStore(self.name, read_only=True)

    @contextmanager
    def _begun(self, *, write: bool) -> Iterator[tuple[sqlite3.Connection, str | None, Head]]:
        """Begin a transaction under the lock of the file; commit at the end."""
        process = os.getpid()
        # Opening writes the lock file too.
        alone = (write or not self._was_open) and not self.read_only
        with self._errors(), self._locked(alone) as lock_file, self._connected() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                if self._memory is None:
                    self._file = self._check_place()
                    self._check_format(connection, self._file.st_size)
                entry = None if lock_file is None else lock_file.read()
                yield connection, *((None, EMPTY) if entry is None else entry)
                connection.execute("COMMIT")
            except BaseException:
                if os.getpid() == process:
                    # A failed COMMIT may have rolled back already, and ROLLBACK may fail on a broken disk.
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise
            self._head = self._next_head
            if lock_file is not None and alone:
                self._write_entry(lock_file)

    def close(self) -> None:
        with self.lock:
            self.closed = True
            if self._memory is not None:
                self._closing()

    def reset_after_fork(self) -> None:
        """Keep the parent's open transaction intact in a forked child."""
        super().reset_after_fork()
        if self._memory is None:
            never_close(self._connection)
        self._connection = None

    def _create(self, settings: dict[str, Any]) -> None:
        with locked(self.path, self.name, write=True, create=True, seconds=store.BUSY_SECONDS) as lock_file:
            # Another process may have created it meanwhile.
            if lock_file is None or os.path.lexists(self.path):
                return
            entry = lock_file.read()
            if entry is not None:
                raise self.error(
                    f"is missing, but {lock_file_of(self.name)!r} records "
                    f"{entry.head.release} releases of it. Restore it, or remove that file too to start again with "
                    "other people."
                )
            try:
                _create_file(self.path, settings)
            except (OSError, sqlite3.Error) as error:
                raise self.error(f"could not be created, and nothing was released: {_kind(error)}.") from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLite quotes a damaged schema in its errors, which Python cannot always decode.
            if self.read_only and os.path.exists(f"{self.path}-journal"):
                raise self.error("contains an interrupted write. Open it once for writing to roll it back.") from error
            raise self.error(
                f"could not be read or written, and nothing was released: {_kind(error)}. "
                "If the file is damaged, restore a copy, and check by `skldp ledger --head` that it has lost nothing."
            ) from error

    @contextmanager
    def _locked(self, alone: bool) -> Iterator[LockFile | None]:
        if self._memory is not None:
            yield None
            return
        self._check_place()
        with locked(
            self.path,
            self.name,
            write=alone,
            read_only=self.read_only,
            check_exclusive=not self._was_open and not self.read_only,
            seconds=store.BUSY_SECONDS,
        ) as lock_file:
            yield lock_file

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        process = os.getpid()
        try:
            self._connection = _connect(self.path, read_only=self.read_only) if self._memory is None else self._memory
            yield self._connection
        finally:
            if os.getpid() == process:
                connection, self._connection = self._connection, None
                if self._memory is None and connection is not None:
                    connection.close()

    def _check_place(self) -> os.stat_result:
        try:
            status = os.lstat(self.path)
        except OSError as error:
            status = None
            if self._file is None:
                if isinstance(error, FileNotFoundError):
                    raise LedgerError(f"There is no ledger at {self.name!r}.") from None
                raise self.error(f"cannot be opened: {error.strerror}.") from error
        if self._file is not None and (status is None or not os.path.samestat(status, self._file)):
            raise self.error("was removed or replaced while it was open; nothing more is recorded.")
        assert status is not None
        if stat.S_ISLNK(status.st_mode):
            raise self.error(f"must not be a symbolic link. Use the path of the file, {os.path.realpath(self.path)!r}.")
        if not stat.S_ISREG(status.st_mode):
            raise self.error("must be a regular file.")
        if status.st_nlink != 1:
            raise self.error(
                "must have one name, since data written under one name can be lost under "
                f"another; got {status.st_nlink} hard links. Remove all names but one."
            )
        if status.st_size == 0:
            raise self.error("is empty: it was truncated, and its record is lost.")
        return status

    def _check_format(self, connection: sqlite3.Connection, size: int) -> None:
        """Raise LedgerError unless the file is a complete ledger of this schema version."""
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (application,), (version,), (pages,), (page_size,), (journal,) = (
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version", "page_count", "page_size", "journal_mode")
        )
        if application != APPLICATION_ID:
            raise LedgerError(f"The file {self.name!r} is an SQLite database, but not a privacy ledger.")
        self._check_version(version)
        if size < pages * page_size or not tables.issuperset(TABLES):
            raise self.error(f"is truncated: it has {size} of {pages * page_size} bytes.")
        if journal != "delete":
            raise self.error(
                "must have SQLite's journal mode 'delete', which keeps a commit in one file; "
                f"got {journal!r}. Restore it with PRAGMA journal_mode = DELETE."
            )

    def structural_problems(self, connection: Connection) -> list[str]:
        damage = [text for (text,) in connection.execute("PRAGMA integrity_check(10)") if text != "ok"]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchmany(10)
        return [
            *(f"SQLite finds: {text}" for text in damage),
            *(f"A row of {table} refers to a missing row of {parent}." for table, _, parent, _ in orphans),
        ]

    def _write_entry(self, lock_file: LockFile) -> None:
        entry = Entry(self.settings["token"], self._head)
        try:
            if lock_file.read() != entry:
                lock_file.write(entry)
        except OSError as error:
            raise LedgerError(
                f"The call is recorded in the ledger {self.name!r}, but not in {lock_file_of(self.name)!r}, and "
                f"nothing was returned: {error.strerror}."
            ) from error
