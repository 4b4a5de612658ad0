"""The ledger's file: SQLite schema, migrations, and transactions that are on the disk before they return.

The journal is SQLite's rollback journal with ``synchronous=EXTRA``, not a write-ahead log: a commit is then wholly in
the one file, which can be copied and opened read-only, and the directory is synchronised as well, so that a power
cut cannot bring back the journal and undo a commit whose answers have been handed out.
"""

import json
import os
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skldp.exceptions import LedgerError

__all__ = ["MEMORY", "TABLES", "LedgerStore"]

MEMORY = ":memory:"
# How long a process waits for another one's transaction before it gives up, with nothing released.
BUSY_SECONDS = 120.0
APPLICATION_ID = 0x736B6C64

_AS_JSON = ("bounds", "features")
TABLES = ("settings", "people", "queries", "releases", "answers")
_CREATE = (
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
    # The column of identities has no type, so that the integer 1 and the text '1' stay two different people.
    "CREATE TABLE people (person INTEGER PRIMARY KEY, identity NOT NULL UNIQUE)",
    "CREATE TABLE queries (query INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL)",
    """CREATE TABLE releases (release INTEGER PRIMARY KEY, query INTEGER NOT NULL REFERENCES queries,
       time TEXT NOT NULL, asked INTEGER NOT NULL, answered INTEGER NOT NULL,
       served INTEGER NOT NULL, refused INTEGER NOT NULL)""",
    """CREATE TABLE answers (release INTEGER NOT NULL REFERENCES releases, person INTEGER NOT NULL REFERENCES people,
       output INTEGER NOT NULL, PRIMARY KEY (release, person)) WITHOUT ROWID""",
    *(
        f"CREATE TRIGGER {table}_keeps_on_{change} BEFORE {change} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a privacy ledger is append-only'); END"
        for table in TABLES
        for change in ("update", "delete")
    ),
    f"PRAGMA application_id = {APPLICATION_ID}",
)
_INHERITED: list[sqlite3.Connection] = []
_STORES: "weakref.WeakSet[LedgerStore]" = weakref.WeakSet()
_HELD: list[Any] = []
# Statements that lead from schema version i to i + 1. A released entry is never edited: a change is a new entry.
MIGRATIONS: list[tuple[str, ...]] = [_CREATE]


@contextmanager
def _ledger_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise LedgerError(
            f"The ledger {path!r} could not be read or written, and nothing was released: {error}."
        ) from error


def _hold_transactions() -> None:
    """Let every transaction end before a fork: a child that dropped an open one would undo it in the parent's file."""
    for store in list(_STORES):
        store.lock.acquire()
        _HELD.append(store.lock)


def _allow_transactions() -> None:
    while _HELD:
        _HELD.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_transactions, after_in_parent=_allow_transactions, after_in_child=_allow_transactions
    )


def _connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    target = path
    if path != MEMORY:
        # mode=rw, unlike the default, never makes an empty file where the ledger has gone.
        target = f"{Path(path).as_uri()}?mode={'ro' if read_only else 'rw'}"
    connection = sqlite3.connect(
        target, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=path != MEMORY
    )
    if not read_only:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA recursive_triggers = ON")
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _write_settings(connection: sqlite3.Connection, settings: dict[str, Any]) -> None:
    stored = ((n, json.dumps(v) if n in _AS_JSON else v) for n, v in settings.items() if v is not None)
    connection.executemany("INSERT INTO settings VALUES (?, ?)", stored)


def _create_file(path: str, settings: dict[str, Any]) -> bool:
    """Make a whole ledger under another name, then give it its own: nobody ever sees a half-made one."""
    draft = f"{path}.{secrets.token_hex(8)}.new"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            with _ledger_errors(path):
                connection = _connect(draft)
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    _migrate(connection)
                    _write_settings(connection, settings)
                    connection.execute("COMMIT")
                finally:
                    connection.close()
            # Unlike a rename, a link fails where a file of that name exists.
            os.link(draft, path)
        finally:
            os.unlink(draft)
        _sync_directory(path)
    except FileExistsError:
        return False
    except OSError as error:
        raise LedgerError(f"The ledger {path!r} could not be made, and nothing was released: {error}.") from error
    return True


def _sync_directory(path: str) -> None:
    if hasattr(os, "O_DIRECTORY"):
        directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


class LedgerStore:
    """One open ledger file, or one in memory.

    Parameters
    ----------
    path : str
        An absolute path, or ``":memory:"``.
    settings : dict, default=None
        What a new ledger is made with; None opens an existing one only.
    read_only : bool, default=False

    Raises
    ------
    LedgerError
        If the file cannot be made or opened, is truncated, is no ledger, or comes from a newer version.
    """

    def __init__(self, path: str, settings: dict[str, Any] | None = None, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self.lock = threading.RLock()
        self._pid = os.getpid()
        _STORES.add(self)
        if path == MEMORY:
            with _ledger_errors(path):
                self._connection = _connect(path)
                _migrate(self._connection)
                _write_settings(self._connection, settings or {})
            return
        if settings is not None and not read_only and not os.path.exists(path):
            _create_file(path, settings)
        self._open()

    def settings(self) -> dict[str, Any]:
        """Read what the ledger was made with."""
        with self.transaction(write=False) as connection:
            stored = dict(connection.execute("SELECT name, value FROM settings").fetchall())
        return {name: json.loads(value) if name in _AS_JSON else value for name, value in stored.items()}

    def add_setting(self, name: str, value: Any) -> Any:
        """Write a setting that is not there yet, and return the one that holds."""
        with self.transaction(write=True) as connection:
            if not connection.execute("SELECT 1 FROM settings WHERE name = ?", (name,)).fetchall():
                _write_settings(connection, {name: value})
        return self.settings()[name]

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """Run the block in one transaction: committed, and on the disk, when it ends without an error."""
        with self.lock, _ledger_errors(self.path):
            connection = self._usable()
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                if write:
                    self._check_in_place()
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A failed COMMIT may have rolled back by itself, and a broken disk may refuse this too.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection of this process."""
        if self._pid == os.getpid():
            self._connection.close()

    def _open(self) -> None:
        if not os.path.exists(self.path):
            raise LedgerError(f"There is no ledger at {self.path!r}.")
        if os.path.getsize(self.path) == 0:
            raise LedgerError(f"The ledger {self.path!r} is empty: it was truncated, and its record is lost.")
        with _ledger_errors(self.path):
            try:
                self._connection = _connect(self.path, read_only=self.read_only)
            except sqlite3.OperationalError as error:
                if self.read_only and os.path.exists(f"{self.path}-journal"):
                    raise LedgerError(
                        f"The ledger {self.path!r} holds an interrupted write, which must be undone first: open it "
                        "once for writing."
                    ) from error
                raise
            try:
                self._check_format()
            except BaseException:
                self._connection.close()
                raise
        status = os.stat(self.path)
        self._file = (status.st_dev, status.st_ino)

    def _check_format(self) -> None:
        connection = self._connection
        # Within a transaction no other process can be in the middle of writing pages.
        connection.execute("BEGIN")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (application,), (version,), (pages,), (page_size,) = (
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version", "page_count", "page_size")
        )
        size = os.path.getsize(self.path)
        connection.execute("COMMIT")
        if application != APPLICATION_ID:
            raise LedgerError(f"The file {self.path!r} is an SQLite database, but not a privacy ledger.")
        if version > len(MIGRATIONS):
            raise LedgerError(
                f"The ledger {self.path!r} was made by a newer skldp: it has schema version {version}, and this one "
                f"knows versions up to {len(MIGRATIONS)}."
            )
        if size < pages * page_size or not tables.issuperset(TABLES):
            raise LedgerError(f"The ledger {self.path!r} is truncated: {size} bytes of {pages * page_size} are there.")
        if version < len(MIGRATIONS):
            if self.read_only:
                raise LedgerError(
                    f"The ledger {self.path!r} has schema version {version} and must be brought to version "
                    f"{len(MIGRATIONS)} first: open it once for writing."
                )
            connection.execute("BEGIN IMMEDIATE")
            _migrate(connection)
            connection.execute("COMMIT")

    def _usable(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            if self.path == MEMORY:
                raise LedgerError(
                    "A ledger in memory cannot be used after a fork, because parent and child would each spend the "
                    "same budgets. Give it a file: PrivacyLedger(..., path='budgets.ledger')."
                )
            # SQLite forbids a connection to cross a fork, even to be closed.
            _INHERITED.append(self._connection)
            self._open()
            self._pid = os.getpid()
        return self._connection

    def _check_in_place(self) -> None:
        if self.path == MEMORY:
            return
        try:
            status = os.stat(self.path)
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._file:
            raise LedgerError(
                f"The ledger {self.path!r} was removed or replaced while it was open: nothing more is recorded in it."
            )
