"""Interface of the stores of a ledger.

A store provides transactions, which are committed and on disk when they return. Each transaction first checks that the
store is the ledger that was opened, and that no release was lost.
"""

import gc
import hashlib
import json
import os
import re
import secrets
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from skldp._documents import read_json
from skldp.accounting.ledger._lock_file import EMPTY, Head
from skldp.accounting.ledger._records import SCHEMA_VERSION, Connection, insert
from skldp.exceptions import LedgerError

MEMORY = ":memory:"
# Time to wait for another process's transaction before raising.
BUSY_SECONDS = 120.0

_CHAIN_OF = "SELECT chain FROM releases WHERE release = :release"
_HEAD = re.compile(r"(0|[1-9][0-9]{0,17}) ([0-9a-f]{64})")
_LAST = "SELECT release, chain FROM releases ORDER BY release DESC LIMIT 1"

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")

_STORES: "weakref.WeakSet[LedgerStore]" = weakref.WeakSet()
_REGISTERING = threading.RLock()
_PAUSED: list[Any] = []


def _pause_transactions() -> None:
    """Wait for open transactions before a fork, and block new ones."""
    # A child that closed an open transaction would roll it back in the parent's file. SQLite's internal locks would
    # never be released if another thread held them at the fork.
    _PAUSED.extend(lock for lock in (_REGISTERING,) if lock.acquire(timeout=BUSY_SECONDS))
    _PAUSED.extend(store.lock for store in list(_STORES) if store.lock.acquire(timeout=BUSY_SECONDS))


def _resume_transactions() -> None:
    while _PAUSED:
        _PAUSED.pop().release()


def _reset_after_fork() -> None:
    global _REGISTERING
    _REGISTERING = threading.RLock()
    _PAUSED.clear()
    for store in list(_STORES):
        store.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_pause_transactions, after_in_parent=_resume_transactions, after_in_child=_reset_after_fork
    )


class ConflictError(LedgerError):
    """Error of a transaction that failed or may not have committed, and can be retried."""


class LedgerStore(ABC):
    """Base class of the stores of a ledger."""

    def __init__(self, name: str, path: str, *, read_only: bool) -> None:
        self.name = name
        self.path = path
        # Role that asks, recorded with each release; empty in a file.
        self.tenant = ""
        self.read_only = read_only
        self.lock: Any = threading.RLock()
        self.closed = False
        # Settings at the last transaction; during a transaction, with its additions.
        self.settings: dict[str, Any] = {}
        # Rows from which `settings` was read; empty after an addition.
        self._setting_rows: list[Any] = []
        self._head = EMPTY
        # Head that becomes `_head` with the next commit.
        self._next_head = EMPTY
        # Connection of the open transaction.
        self._connection: Any = None
        self._was_open = False
        # Process that owns a ledger in memory.
        self._only_process: int | None = None

    def error(self, problem: str) -> LedgerError:
        """Return the error of a problem, a sentence about the ledger without its beginning."""
        return LedgerError(f"The ledger {self.name!r} {problem}")

    def _register(self) -> None:
        """Register this complete store for the fork handlers."""
        with _REGISTERING:
            _STORES.add(self)

    @contextmanager
    def transaction(self, *, write: bool, settings: dict[str, Any] | None = None) -> Iterator[Connection]:
        """Run the block in one transaction, which is committed and on disk if the block ends without an error."""
        # Before the block, check that the store is the ledger that was opened and has lost no release, and write new
        # settings.
        with self.lock:
            self._check_can_begin(write=write)
            process, before = os.getpid(), (self.settings, self._setting_rows)
            try:
                with self._begun(write=write) as (connection, token, remembered):
                    self._check_record(connection, token, remembered)
                    before = self.settings, self._setting_rows
                    if settings:
                        self._add_settings(connection, settings)
                    yield connection
                    if os.getpid() != process:
                        raise LedgerError("A ledger call must end in the process that began it, not in a fork.")
                    self._next_head = last_head(connection)
            except BaseException:
                # Also after a failed commit: settings that are not in the file would look like damage.
                self.settings, self._setting_rows = before
                raise

    @abstractmethod
    def _begun(self, *, write: bool) -> AbstractContextManager[tuple[Connection, str | None, Head]]:
        """Begin a transaction, and commit at the end; yield it with the token and head recorded outside the store."""

    def _check_can_begin(self, *, write: bool) -> None:
        self.check_open()
        if write and self.read_only:
            raise self.error("was opened for reading only.")
        if self._connection is not None:
            raise self.error("must not be used by `draw` during a call.")

    def _opened(self) -> None:
        """Check a store that was opened or created."""
        with self.transaction(write=False):
            pass
        self._was_open = True

    def check_open(self) -> None:
        """Raise LedgerError if the ledger is closed, or is in memory and was forked."""
        if self.closed:
            raise self.error("is closed. Open it again.")
        if self._only_process not in (None, os.getpid()):
            raise LedgerError(
                "A ledger in memory cannot be used after a fork, since parent and child would each spend the same "
                "budgets. Use a file: PrivacyLedger(..., path='budgets.ledger')."
            )

    @abstractmethod
    def close(self) -> None:
        """Close the ledger in this process after other threads' transactions have ended."""

    def reset_after_fork(self) -> None:
        """Reset the lock in a forked child without ending the parent's transaction."""
        self.lock = threading.RLock()

    @abstractmethod
    def structural_problems(self, connection: Connection) -> list[str]:
        """Return the problems that the database finds in the tables."""

    def check_head(self, head: str) -> None:
        """Raise LedgerError unless the record contains a published head."""
        match = _HEAD.fullmatch(head) if isinstance(head, str) else None
        # Release 0 has exactly one head.
        if match is None or (match[1] == "0" and match[2] != EMPTY.chain):
            raise ValueError(f"head must be an earlier PrivacyLedger.head, a number and a hash; got {head!r}.")
        self.retry(partial(self._check_published, Head(int(match[1]), match[2])))

    def _check_published(self, head: Head) -> None:
        with self.transaction(write=False) as connection:
            self._check_contains(connection, head)

    def retry(self, work: Callable[[], _Found]) -> _Found:
        """Run `work`, and retry it after a conflict if the store has conflicts."""
        return work()

    def _check_version(self, version: int) -> None:
        if version != SCHEMA_VERSION:
            raise self.error(
                f"must have schema version {SCHEMA_VERSION} for this version of skldp; got version {version}."
            )

    def _add_settings(self, connection: Connection, wanted: dict[str, Any]) -> None:
        new = {name: value for name, value in wanted.items() if name not in self.settings}
        insert(connection, "settings", sealed_rows(self.settings["token"], new))
        self.settings, self._setting_rows = self.settings | new, []

    def _check_record(self, connection: Connection, token: str | None, remembered: Head) -> None:
        """Check within a transaction that this is the ledger that was opened and that no release was lost."""
        rows = connection.execute("SELECT name, value, seal FROM settings").fetchall()
        settings = self.settings if rows == self._setting_rows else self._parsed(rows)
        if any(known not in (None, settings["token"]) for known in (self.settings.get("token"), token)):
            raise LedgerError(
                f"The ledger at {self.name!r} is not the one that was opened or created. Restore the original."
            )
        if any(settings.get(name) != value for name, value in self.settings.items()):
            raise self.error("is damaged: a setting has changed.")
        for head in (self._head, remembered):
            self._check_contains(connection, head)
        self.settings, self._setting_rows, self._head = settings, rows, last_head(connection)

    def _check_contains(self, connection: Connection, head: Head) -> None:
        found = connection.execute(_CHAIN_OF, {"release": head.release}).fetchall()
        if head.release and found != [(head.chain,)]:
            raise self.error(
                f"is older than its last known state: it has lost release {head.release}. "
                "Restore the newest file, not an older backup. Without it, the remaining budgets are unknown."
            )

    def _parsed(self, rows: list[Any]) -> dict[str, Any]:
        """Return settings from their rows; raise LedgerError unless each matches its seal."""
        try:
            settings = {name: read_json(value) for name, value, _ in rows}
            is_sealed = all(seal(settings["token"], name, settings[name]) == mark for name, _, mark in rows)
        except (KeyError, TypeError, ValueError):
            is_sealed = False
        if not is_sealed:
            raise self.error("is damaged: its settings do not match their seals.")
        return settings


def seal(token: Any, name: Any, value: Any) -> str:
    """Hash a setting with the ledger's token, to detect changed settings."""
    return hashlib.sha256(json.dumps([token, name, value]).encode("ascii")).hexdigest()


def sealed_rows(token: str, settings: dict[str, Any]) -> list[dict[str, str]]:
    """Return settings as rows of their table, without those that are None."""
    return [
        {"name": name, "value": json.dumps(value), "seal": seal(token, name, value)}
        for name, value in settings.items()
        if value is not None
    ]


def write_first_settings(connection: Connection, settings: dict[str, Any]) -> None:
    token = secrets.token_hex(16)
    insert(connection, "settings", sealed_rows(token, {"token": token, **settings}))


def retry_on_conflict(
    read: Callable[Concatenate[Any, _Arguments], _Found],
) -> Callable[Concatenate[Any, _Arguments], _Found]:
    """Decorate a reading method of a ledger to retry it after a lost connection."""
    # Its arguments must not be iterators, which a first attempt would exhaust.

    @wraps(read)
    def retry(ledger: Any, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Found:
        store: LedgerStore = ledger._state.store
        return store.retry(partial(read, ledger, *arguments, **options))

    return retry


def never_close(connection: Any) -> None:
    """Keep a forked connection open until the process ends, since closing it would undo the parent's transaction."""
    if connection is not None:
        # Module variables are cleared at exit; a frozen reference cycle is never collected.
        cycle = [connection]
        cycle.append(cycle)
        gc.freeze()


def last_head(connection: Connection) -> Head:
    row = connection.execute(_LAST).fetchone()
    return EMPTY if row is None else Head(*row)
