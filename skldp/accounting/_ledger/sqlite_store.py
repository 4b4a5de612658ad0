"""A ledger in a file of SQLite: transactions that are checked before, and on the disk when they return.

The journal is SQLite's rollback journal with ``synchronous=EXTRA``, not a write-ahead log: a commit is then wholly in
the one file, and the directory is synchronised as well, so that a power cut cannot bring back the journal and undo a
commit whose answers have been handed out.

A connection lives for one transaction. Nothing is left open between two of them that a fork could copy, that a file
laid over the ledger's could make stale, or that nobody closes.
"""

import os
import secrets
import sqlite3
import stat
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from skldp.accounting._ledger import store
from skldp.accounting._ledger.companion import EMPTY, Companion, Entry, companion_of, locked
from skldp.accounting._ledger.migration import APPLICATION_ID, MIGRATED, create_tables, migrate, up_to_date_copy
from skldp.accounting._ledger.schema import SCHEMA_VERSION, TABLES, WRITE_SETTING, Connection, sealed_rows
from skldp.accounting._ledger.store import MEMORY, LedgerStore, keep_forever
from skldp.exceptions import LedgerError

__all__ = ["SQLiteStore"]

_OLD = (
    "The ledger {name!r} has schema version 1, which kept the key of the hashes that stood for people without ids: "
    "whoever has the file can guess records from it. It is no longer asked with. Give a new ledger, for the same "
    "people by their ids, what the skldp that made this one still reports as the smallest remaining budget, and "
    "destroy this file."
)


def _connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    # mode=rw, unlike the default, never makes an empty file where the ledger has gone.
    target = f"{Path(path).as_uri()}?mode={'ro' if read_only else 'rw'}"
    connection = sqlite3.connect(
        target, timeout=store.BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA recursive_triggers = ON")
        # What was erased is written over.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _fill(connection: sqlite3.Connection, settings: dict[str, Any]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    create_tables(connection)
    token = secrets.token_hex(16)
    connection.executemany(WRITE_SETTING, sealed_rows(token, {"token": token, **settings}))
    connection.execute("COMMIT")


def _create_file(path: str, settings: dict[str, Any]) -> None:
    """Make a whole ledger under another name, then give it its own: nobody ever sees a half-made one."""
    draft = f"{path}.new"
    # The lock is held: what lies there is left from somebody who was killed.
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
    """Return SQLite's name of an error, else its class: the text may quote what is in the file."""
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _resolved(path: str) -> str:
    """Follow links of folders; the file itself must not be one."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


class SQLiteStore(LedgerStore):
    """One ledger file, or one in memory.

    Parameters
    ----------
    path : str or path-like
        A file, whose place is fixed now, or ``":memory:"``.
    settings : dict, default=None
        What a new ledger is made with; None opens an existing one only.
    read_only : bool, default=False

    Attributes
    ----------
    path : str
        The absolute path without links, or ``":memory:"``.
    name : str
        The path as it was given, for errors.
    read_only, closed : bool

    Raises
    ------
    ValueError
        If the path can be that of no file.
    LedgerError
        If the file cannot be made or opened, is truncated, is no ledger, is a link, is older than its companion says,
        or comes from another version.
    """

    def __init__(
        self, path: str | os.PathLike[str], settings: dict[str, Any] | None = None, *, read_only: bool = False
    ) -> None:
        name = os.fsdecode(path)
        if "\0" in name:
            raise ValueError(f"path must be the path of a file, without a NUL. Got {path!r} instead.")
        super().__init__(name, MEMORY if path == MEMORY else _resolved(name), read_only=read_only)
        self._process = os.getpid()
        self._memory: sqlite3.Connection | None = None
        self._connection: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._register()
        with self.lock:
            self._open_or_make(settings)
        with self.transaction(write=False, opening=True):
            pass

    def _open_or_make(self, settings: dict[str, Any] | None) -> None:
        if self.path == MEMORY:
            self._memory = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
            self._closing = weakref.finalize(self, self._memory.close)
            self._memory.execute("PRAGMA recursive_triggers = ON")
            _fill(self._memory, settings or {})
        elif settings is not None and not os.path.lexists(self.path):
            self._create(settings)
        elif not self.read_only and not os.path.lexists(companion_of(self.path)):
            # What is wrong with the file itself is said first.
            SQLiteStore(self.name, read_only=True)

    @contextmanager
    def transaction(self, *, write: bool, opening: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block in one transaction, which proves before it that the file is the very ledger that was opened."""
        with self.lock:
            self._check_can_begin(write=write, busy=self._connection is not None)
            process = os.getpid()
            with self._errors(), self._locked(write or opening, opening) as companion, self._connected() as connection:
                try:
                    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    self._check(connection, companion, opening=opening)
                    yield connection
                    if os.getpid() != process:
                        raise LedgerError("A call to a ledger ends in the process that began it, not in a fork of it.")
                    head = store.last_head(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if os.getpid() == process:
                        # A failed COMMIT may have rolled back by itself, and a broken disk may refuse this too.
                        with suppress(sqlite3.Error):
                            connection.execute("ROLLBACK")
                    raise
                self._head = head
                if companion is not None and (write or opening) and not self.read_only:
                    self._remember(companion)

    def check_open(self) -> None:
        """Refuse to go on with a closed ledger, or with one in memory after a fork.

        Raises
        ------
        LedgerError
        """
        super().check_open()
        if self._memory is not None and self._process != os.getpid():
            raise LedgerError(
                "A ledger in memory cannot be used after a fork, because parent and child would each spend the same "
                "budgets. Give it a file: PrivacyLedger(..., path='budgets.ledger')."
            )

    def close(self) -> None:
        """Close the ledger, for this process, once the transaction of another thread has ended."""
        with self.lock:
            self.closed = True
            if self._memory is not None:
                self._closing()

    def begin_anew(self) -> None:
        """Leave a parent's threads and its open transaction to the parent, in a forked child."""
        super().begin_anew()
        if self._memory is None:
            keep_forever(self._connection)
        self._connection = None

    def _create(self, settings: dict[str, Any]) -> None:
        with locked(self.path, self.name, write=True, create=True, seconds=store.BUSY_SECONDS) as companion:
            # Somebody else may have made it meanwhile.
            if companion is None or os.path.lexists(self.path):
                return
            entry = companion.read()
            if entry is not None:
                raise LedgerError(
                    f"The ledger {self.name!r} is gone, and {companion_of(self.name)!r} remembers {entry.head.release} "
                    "releases that were recorded in it. Put it back; to begin anew with other people, remove that "
                    "file too."
                )
            try:
                _create_file(self.path, settings)
            except (OSError, sqlite3.Error) as error:
                raise LedgerError(
                    f"The ledger {self.name!r} could not be made, and nothing was released: {_kind(error)}."
                ) from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLite quotes a damaged schema in its errors, and Python cannot always read that.
            if self.read_only and os.path.exists(f"{self.path}-journal"):
                raise LedgerError(
                    f"The ledger {self.name!r} holds an interrupted write, which must be undone first: open it once "
                    "for writing."
                ) from error
            raise LedgerError(
                f"The ledger {self.name!r} could not be read or written, and nothing was released: {_kind(error)}."
            ) from error

    @contextmanager
    def _locked(self, write: bool, opening: bool) -> Iterator[Companion | None]:
        if self._memory is not None:
            yield None
            return
        self._check_place()
        write, prove = write and not self.read_only, opening and not self.read_only
        with locked(
            self.path, self.name, write=write, read_only=self.read_only, prove=prove, seconds=store.BUSY_SECONDS
        ) as companion:
            yield companion

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        process = os.getpid()
        try:
            self._connection = _connect(self.path, read_only=self.read_only) if self._memory is None else self._memory
            if not self.read_only:
                yield self._connection
                return
            with closing(self._to_read(self._connection)) as up_to_date:
                yield up_to_date
        finally:
            if os.getpid() == process:
                connection, self._connection = self._connection, None
                if self._memory is None and connection is not None:
                    connection.close()

    def _to_read(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """The file, or a copy of an earlier version's that is of this one."""
        version = self._check_format(connection, self._check_place().st_size)
        return up_to_date_copy(connection) if version in MIGRATED else connection

    def _check(self, connection: sqlite3.Connection, companion: Companion | None, *, opening: bool) -> None:
        """Prove within a transaction that this is the ledger that was opened, and that nothing of it was lost."""
        status = None if self._memory is not None else self._check_place()
        if status is not None and not self.read_only:
            version = self._check_format(connection, status.st_size)
            if version in MIGRATED and opening:
                migrate(connection)
        entry = None if companion is None else companion.read()
        self._check_record(connection, *((None, EMPTY) if entry is None else entry))
        self._file = status

    def _check_place(self) -> os.stat_result:
        try:
            status = os.lstat(self.path)
        except OSError as error:
            status = None
            if self._file is None:
                if isinstance(error, FileNotFoundError):
                    raise LedgerError(f"There is no ledger at {self.name!r}.") from None
                raise LedgerError(f"The ledger {self.name!r} cannot be opened: {error.strerror}.") from error
        if self._file is not None and (status is None or not os.path.samestat(status, self._file)):
            raise LedgerError(
                f"The ledger {self.name!r} was removed or replaced while it was open: nothing more is recorded in it."
            )
        assert status is not None
        if stat.S_ISLNK(status.st_mode):
            raise LedgerError(
                f"The ledger {self.name!r} is a symbolic link: give the path of the file itself, "
                f"{os.path.realpath(self.path)!r}."
            )
        if not stat.S_ISREG(status.st_mode):
            raise LedgerError(f"The ledger {self.name!r} is no file.")
        if status.st_nlink != 1:
            raise LedgerError(
                f"The ledger {self.name!r} has {status.st_nlink} names (hard links), and what is written under one is "
                "lost under another: remove all names but one."
            )
        if status.st_size == 0:
            raise LedgerError(f"The ledger {self.name!r} is empty: it was truncated, and its record is lost.")
        return status

    def _check_format(self, connection: sqlite3.Connection, size: int) -> int:
        """Refuse what is no ledger, and return the version of its schema."""
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (application,), (version,), (pages,), (page_size,), (journal,) = (
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version", "page_count", "page_size", "journal_mode")
        )
        if application != APPLICATION_ID:
            raise LedgerError(f"The file {self.name!r} is an SQLite database, but not a privacy ledger.")
        if version == 1:
            raise LedgerError(_OLD.format(name=self.name))
        if version not in (*MIGRATED, SCHEMA_VERSION):
            raise LedgerError(
                f"The ledger {self.name!r} was made by a newer skldp: it has schema version {version}, and this one "
                f"knows version {SCHEMA_VERSION}."
            )
        if size < pages * page_size or not tables.issuperset(MIGRATED.get(version, TABLES)):
            raise LedgerError(f"The ledger {self.name!r} is truncated: {size} bytes of {pages * page_size} are there.")
        if journal != "delete":
            raise LedgerError(
                f"The ledger {self.name!r} was brought to SQLite's journal mode {journal!r}, in which a commit is not "
                "in the one file: bring it back with PRAGMA journal_mode = DELETE."
            )
        return int(version)

    def structural_problems(self, connection: Connection) -> list[str]:
        """What SQLite finds wrong with its tables."""
        damage = [text for (text,) in connection.execute("PRAGMA integrity_check(10)") if text != "ok"]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchmany(10)
        return [
            *(f"SQLite finds: {text}" for text in damage),
            *(f"A row of {table} refers to nothing in {parent}." for table, _, parent, _ in orphans),
        ]

    def _remember(self, companion: Companion) -> None:
        entry = Entry(self._settings["token"], self._head)
        try:
            if companion.read() != entry:
                companion.write(entry)
        except OSError as error:
            raise LedgerError(
                f"The call is recorded in the ledger {self.name!r}, but not in {companion_of(self.name)!r}, and "
                f"nothing was handed out: {error.strerror}."
            ) from error
