"""The ledger's file: SQLite schema, and transactions that are checked before and on the disk when they return.

The journal is SQLite's rollback journal with ``synchronous=EXTRA``, not a write-ahead log: a commit is then wholly in
the one file, and the directory is synchronised as well, so that a power cut cannot bring back the journal and undo a
commit whose answers have been handed out.

A connection lives for one transaction. Nothing is left open between two of them that a fork could copy, that a file
laid over the ledger's could make stale, or that nobody closes.
"""

import hashlib
import json
import os
import secrets
import sqlite3
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from skldp.accounting._ledger.companion import EMPTY, Companion, Entry, Head, companion_of, locked
from skldp.exceptions import LedgerError

__all__ = ["MEMORY", "TABLES", "LedgerStore", "seal"]

MEMORY = ":memory:"
# How long a process waits for another one's transaction before it gives up, with nothing released.
BUSY_SECONDS = 120.0
APPLICATION_ID = 0x736B6C64
SCHEMA_VERSION = 2

TABLES = ("settings", "people", "queries", "releases", "answers")
_CREATE = (
    # The seal binds a value, as JSON, to its name and its ledger.
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, seal TEXT NOT NULL) WITHOUT ROWID",
    # The column of identities has no type, so that the text '1' does not become the integer 1.
    "CREATE TABLE people (person INTEGER PRIMARY KEY, identity NOT NULL UNIQUE)",
    "CREATE TABLE queries (query INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL)",
    # How many people are known after a release, and the chain up to it.
    """CREATE TABLE releases (release INTEGER PRIMARY KEY, query INTEGER NOT NULL REFERENCES queries,
       time TEXT NOT NULL, asked INTEGER NOT NULL, answered INTEGER NOT NULL,
       served INTEGER NOT NULL, refused INTEGER NOT NULL, people INTEGER NOT NULL, chain TEXT NOT NULL)""",
    """CREATE TABLE answers (release INTEGER NOT NULL REFERENCES releases, person INTEGER NOT NULL REFERENCES people,
       output INTEGER NOT NULL, PRIMARY KEY (release, person)) WITHOUT ROWID""",
    *(
        f"CREATE TRIGGER {table}_keeps_on_{change} BEFORE {change} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a privacy ledger is append-only'); END"
        for table in TABLES
        for change in ("update", "delete")
    ),
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_OLD = (
    "The ledger {name!r} has schema version 1, which kept the key of the hashes that stood for people without ids: "
    "whoever has the file can guess records from it. It is no longer asked with. Give a new ledger, for the same "
    "people by their ids, what the skldp that made this one still reports as the smallest remaining budget, and "
    "destroy this file."
)
_STORES: "weakref.WeakSet[LedgerStore]" = weakref.WeakSet()
_REGISTERING = threading.RLock()
_HELD: list[Any] = []


def _hold_transactions() -> None:
    """Let every transaction end before a fork, and none begin.

    A child that dropped an open one would undo it in the parent's file, and SQLite's own locks, if another thread held
    one at the fork, would be held for ever.
    """
    _HELD.extend(lock for lock in (_REGISTERING,) if lock.acquire(timeout=BUSY_SECONDS))
    _HELD.extend(store.lock for store in list(_STORES) if store.lock.acquire(timeout=BUSY_SECONDS))


def _allow_transactions() -> None:
    while _HELD:
        _HELD.pop().release()


def _begin_anew() -> None:
    global _REGISTERING
    _REGISTERING = threading.RLock()
    _HELD.clear()
    for store in list(_STORES):
        store.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_transactions, after_in_parent=_allow_transactions, after_in_child=_begin_anew)


def _keep_forever(connection: sqlite3.Connection) -> None:
    """Never close what a fork copied in the middle of a transaction: to close it would undo the parent's."""
    with suppress(ImportError):
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    # mode=rw, unlike the default, never makes an empty file where the ledger has gone.
    target = f"{Path(path).as_uri()}?mode={'ro' if read_only else 'rw'}"
    connection = sqlite3.connect(target, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA recursive_triggers = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def seal(token: Any, name: Any, value: Any) -> str:
    """Tell whether a setting is the one that was written into this very ledger."""
    return hashlib.sha256(json.dumps([token, name, value]).encode("ascii")).hexdigest()


def _write_settings(connection: sqlite3.Connection, token: str, settings: dict[str, Any]) -> None:
    stored = (
        (name, json.dumps(value), seal(token, name, value)) for name, value in settings.items() if value is not None
    )
    connection.executemany("INSERT INTO settings VALUES (?, ?, ?)", stored)


def _fill(connection: sqlite3.Connection, settings: dict[str, Any]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in _CREATE:
        connection.execute(statement)
    token = secrets.token_hex(16)
    _write_settings(connection, token, {"token": token, **settings})
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


def _resolved(path: str) -> str:
    """Follow links of folders; the file itself must not be one."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


class LedgerStore:
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
        self.name = os.fsdecode(path)
        if "\0" in self.name:
            raise ValueError(f"path must be the path of a file, without a NUL. Got {path!r} instead.")
        self.path = MEMORY if path == MEMORY else _resolved(self.name)
        self.read_only = read_only
        self.lock = threading.RLock()
        self.closed = False
        self._process = os.getpid()
        self._memory: sqlite3.Connection | None = None
        self._connection: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._settings: dict[str, Any] = {}
        self._head = EMPTY
        with _REGISTERING:
            _STORES.add(self)
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
            LedgerStore(self.name, read_only=True)

    def settings(self) -> dict[str, Any]:
        """Read what the ledger was made with."""
        with self.transaction(write=False):
            return dict(self._settings)

    def add_setting(self, name: str, value: Any) -> Any:
        """Write a setting that is not there yet, and return the one that holds."""
        with self.transaction(write=True) as connection:
            if name not in self._settings:
                _write_settings(connection, self._settings["token"], {name: value})
        return self.settings()[name]

    @contextmanager
    def transaction(self, *, write: bool, opening: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block in one transaction: committed, and on the disk, when it ends without an error.

        Before the block, the file is proved to be the very ledger that was opened, with all that was recorded in it.

        Raises
        ------
        LedgerError
            If it is not, if it cannot be read or written, or if the ledger is closed, or read-only and to be written.
        """
        with self.lock:
            self.check_open()
            if write and self.read_only:
                raise LedgerError(f"The ledger {self.name!r} was opened for reading only: nobody can be asked.")
            if self._connection is not None:
                raise LedgerError(
                    f"The ledger {self.name!r} is in the middle of a call: what draws the outputs must not use it."
                )
            process = os.getpid()
            with self._errors(), self._locked(write or opening, opening) as companion, self._connected() as connection:
                try:
                    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    self._check(connection, companion)
                    yield connection
                    if os.getpid() != process:
                        raise LedgerError("A call to a ledger ends in the process that began it, not in a fork of it.")
                    head = _last(connection)
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
        if self.closed:
            raise LedgerError(f"The ledger {self.name!r} is closed: open it again.")
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
        self.lock = threading.RLock()
        if self._connection is not None and self._memory is None:
            _keep_forever(self._connection)
        self._connection = None

    def _create(self, settings: dict[str, Any]) -> None:
        with locked(self.path, self.name, write=True, create=True, seconds=BUSY_SECONDS) as companion:
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
                    f"The ledger {self.name!r} could not be made, and nothing was released: {error}."
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
                f"The ledger {self.name!r} could not be read or written, and nothing was released: {error}."
            ) from error

    @contextmanager
    def _locked(self, write: bool, opening: bool) -> Iterator[Companion | None]:
        if self._memory is not None:
            yield None
            return
        self._check_place()
        write, prove = write and not self.read_only, opening and not self.read_only
        with locked(
            self.path, self.name, write=write, read_only=self.read_only, prove=prove, seconds=BUSY_SECONDS
        ) as companion:
            yield companion

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

    def _check(self, connection: sqlite3.Connection, companion: Companion | None) -> None:
        """Prove within a transaction that this is the ledger that was opened, and that nothing of it was lost."""
        status = None if self._memory is not None else self._check_place()
        if status is not None:
            self._check_format(connection, status.st_size)
        settings = self._read_settings(connection)
        entry = None if companion is None else companion.read()
        tokens = [self._settings.get("token"), None if entry is None else entry.token]
        if any(token not in (None, settings["token"]) for token in tokens):
            raise LedgerError(
                f"There is another ledger at {self.name!r} than the one that was opened or made there: put that back."
            )
        if any(settings.get(name) != value for name, value in self._settings.items()):
            raise LedgerError(f"The ledger {self.name!r} is damaged: a setting has changed, and settings never change.")
        for head in (self._head, EMPTY if entry is None else entry.head):
            found = connection.execute("SELECT chain FROM releases WHERE release = ?", (head.release,)).fetchall()
            if head.release and found != [(head.chain,)]:
                raise LedgerError(
                    f"The ledger {self.name!r} is not what it was, the record went back: it has lost its release "
                    f"{head.release}, as if an older backup had been laid over it. Put the newest file back: without "
                    "it nobody knows what is left of the budgets."
                )
        self._settings, self._head, self._file = settings, _last(connection), status

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

    def _check_format(self, connection: sqlite3.Connection, size: int) -> None:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (application,), (version,), (pages,), (page_size,), (journal,) = (
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version", "page_count", "page_size", "journal_mode")
        )
        if application != APPLICATION_ID:
            raise LedgerError(f"The file {self.name!r} is an SQLite database, but not a privacy ledger.")
        if version == 1:
            raise LedgerError(_OLD.format(name=self.name))
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"The ledger {self.name!r} was made by a newer skldp: it has schema version {version}, and this one "
                f"knows version {SCHEMA_VERSION}."
            )
        if size < pages * page_size or not tables.issuperset(TABLES):
            raise LedgerError(f"The ledger {self.name!r} is truncated: {size} bytes of {pages * page_size} are there.")
        if journal != "delete":
            raise LedgerError(
                f"The ledger {self.name!r} was brought to SQLite's journal mode {journal!r}, in which a commit is not "
                "in the one file: bring it back with PRAGMA journal_mode = DELETE."
            )

    def _read_settings(self, connection: sqlite3.Connection) -> dict[str, Any]:
        rows = connection.execute("SELECT name, value, seal FROM settings").fetchall()
        try:
            settings = {name: json.loads(value) for name, value, _ in rows}
            whole = all(seal(settings["token"], name, settings[name]) == mark for name, _, mark in rows)
        except (KeyError, TypeError, ValueError, RecursionError):
            whole = False
        if not whole:
            raise LedgerError(f"The ledger {self.name!r} is damaged: its settings are not what was written.")
        return settings

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


def _last(connection: sqlite3.Connection) -> Head:
    row = connection.execute("SELECT release, chain FROM releases ORDER BY release DESC LIMIT 1").fetchone()
    return EMPTY if row is None else Head(*row)
