"""What a ledger asks of the place where it is kept: checked settings, transactions, and a record that never goes back.

A store gives transactions, committed and on the disk when they return. Before each of them it is proved that this is
the very ledger that was opened, with all that was recorded in it.
"""

import gc
import json
import os
import re
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from skldp.accounting._ledger.companion import EMPTY, Head
from skldp.accounting._ledger.identity import Identity
from skldp.accounting._ledger.schema import WRITE_SETTING, Connection, seal, sealed_rows
from skldp.exceptions import LedgerError

__all__ = [
    "MEMORY",
    "ConflictError",
    "LedgerStore",
    "admit_tenant",
    "begun_again",
    "keep_forever",
    "last_head",
    "open_store",
]

MEMORY = ":memory:"
# How long a process waits for another one's transaction before it gives up, with nothing released.
BUSY_SECONDS = 120.0

_CHAIN_OF = "SELECT chain FROM releases WHERE release = :release"
_HEAD = re.compile(r"(0|[1-9][0-9]{0,17}) ([0-9a-f]{64})")
_LAST = "SELECT release, chain FROM releases ORDER BY release DESC LIMIT 1"

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")

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


class ConflictError(LedgerError):
    """A transaction that nothing came of, or nobody knows what: it can be begun again."""


class LedgerStore(ABC):
    """Where one ledger is kept.

    Parameters
    ----------
    name : str
        What errors call it.
    path : str
        What it is opened with again.
    read_only : bool

    Attributes
    ----------
    name, path : str
    tenant : str
        Who asks, where several do who must not read one another's answers.
    read_only, closed : bool
    lock : reentrant lock
        Held for the length of a transaction.
    """

    def __init__(self, name: str, path: str, *, read_only: bool) -> None:
        self.name = name
        self.path = path
        self.tenant = ""
        self.read_only = read_only
        self.lock: Any = threading.RLock()
        self.closed = False
        self._settings: dict[str, Any] = {}
        self._head = EMPTY

    def _register(self) -> None:
        """Let forks know of this store, which has all that they ask for."""
        with _REGISTERING:
            _STORES.add(self)

    @abstractmethod
    def transaction(self, *, write: bool) -> AbstractContextManager[Connection]:
        """Run the block in one transaction: committed, and on the disk, when it ends without an error.

        Before the block, the store is proved to be the very ledger that was opened, with all that was recorded in it.

        Raises
        ------
        LedgerError
            If it is not, if it cannot be read or written, or if the ledger is closed, or read-only and to be written.
        """

    def check_open(self) -> None:
        """Refuse to go on with a closed ledger.

        Raises
        ------
        LedgerError
        """
        if self.closed:
            raise LedgerError(f"The ledger {self.name!r} is closed: open it again.")

    @abstractmethod
    def close(self) -> None:
        """Close the ledger, for this process, once the transaction of another thread has ended."""

    def begin_anew(self) -> None:
        """Leave a parent's threads and its open transaction to the parent, in a forked child."""
        self.lock = threading.RLock()

    @abstractmethod
    def structural_problems(self, connection: Connection) -> list[str]:
        """What the database itself finds wrong with its tables."""

    def asking(self, people: Sequence[Identity]) -> AbstractContextManager[None]:
        """Keep everybody else from asking these people, where others need not wait for one another altogether."""
        return nullcontext()

    def admit(self, tenant: str) -> None:
        """Let a role of the database ask.

        Raises
        ------
        LedgerError
            If this is no database with roles.
        """
        raise LedgerError(f"Tenants are roles of a PostgreSQL database. Got the file {self.name!r}.")

    def check_head(self, head: str) -> None:
        """Prove that the record still holds what a published head says.

        Raises
        ------
        ValueError
            If it is no head.
        LedgerError
            If the record has lost what was there when the head was published.
        """
        match = _HEAD.fullmatch(head) if isinstance(head, str) else None
        # Before the first release there is one head alone.
        if match is None or (match[1] == "0" and match[2] != EMPTY.chain):
            raise ValueError(f"head must be what a ledger's head was: its count and its hash. Got {head!r} instead.")
        self.repeated(partial(self._check_published, Head(int(match[1]), match[2])))

    def _check_published(self, head: Head) -> None:
        with self.transaction(write=False) as connection:
            self._check_holds(connection, head)

    def repeated(self, work: Callable[[], Any]) -> Any:
        """Do some work whose transaction may be begun again, where others can come between."""
        return work()

    def settings(self) -> dict[str, Any]:
        """Read what the ledger was made with."""
        found: dict[str, Any] = self.repeated(self._settings_now)
        return found

    def _settings_now(self) -> dict[str, Any]:
        with self.transaction(write=False):
            return dict(self._settings)

    def add_setting(self, name: str, value: Any) -> Any:
        """Write a setting that is not there yet, and return the one that holds."""
        self.repeated(partial(self._add_setting, name, value))
        return self.settings()[name]

    def _add_setting(self, name: str, value: Any) -> None:
        with self.transaction(write=True) as connection:
            if name not in self._settings:
                connection.executemany(WRITE_SETTING, sealed_rows(self._settings["token"], {name: value}))

    def _check_can_begin(self, *, write: bool, busy: bool) -> None:
        self.check_open()
        if write and self.read_only:
            raise LedgerError(f"The ledger {self.name!r} was opened for reading only: nobody can be asked.")
        if busy:
            raise LedgerError(
                f"The ledger {self.name!r} is in the middle of a call: what draws the outputs must not use it."
            )

    def _check_record(self, connection: Connection, token: str | None, remembered: Head) -> None:
        """Prove within a transaction that this is the ledger that was opened, and that nothing of it was lost."""
        settings = self._read_settings(connection)
        if any(known not in (None, settings["token"]) for known in (self._settings.get("token"), token)):
            raise LedgerError(
                f"There is another ledger at {self.name!r} than the one that was opened or made there: put that back."
            )
        if any(settings.get(name) != value for name, value in self._settings.items()):
            raise LedgerError(f"The ledger {self.name!r} is damaged: a setting has changed, and settings never change.")
        for head in (self._head, remembered):
            self._check_holds(connection, head)
        self._settings, self._head = settings, last_head(connection)

    def _check_holds(self, connection: Connection, head: Head) -> None:
        found = connection.execute(_CHAIN_OF, {"release": head.release}).fetchall()
        if head.release and found != [(head.chain,)]:
            raise LedgerError(
                f"The ledger {self.name!r} is not what it was, the record went back: it has lost its release "
                f"{head.release}, as if an older backup had been laid over it. Put the newest one back: without "
                "it nobody knows what is left of the budgets."
            )

    def _read_settings(self, connection: Connection) -> dict[str, Any]:
        rows = connection.execute("SELECT name, value, seal FROM settings").fetchall()
        try:
            settings = {name: json.loads(value) for name, value, _ in rows}
            whole = all(seal(settings["token"], name, settings[name]) == mark for name, _, mark in rows)
        except (KeyError, TypeError, ValueError, RecursionError):
            whole = False
        if not whole:
            raise LedgerError(f"The ledger {self.name!r} is damaged: its settings are not what was written.")
        return settings


def begun_again(
    read: Callable[Concatenate[Any, _Arguments], _Found],
) -> Callable[Concatenate[Any, _Arguments], _Found]:
    """Let what an open ledger reads be read again where its connection was lost: nothing has come of it.

    Its arguments must be there a second time, as those of an iterator would not be.
    """

    @wraps(read)
    def repeated(ledger: Any, /, *arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Found:
        found: _Found = ledger._store.repeated(partial(read, ledger, *arguments, **options))
        return found

    return repeated


def keep_forever(connection: Any) -> None:
    """Keep a connection that a fork copied: closing it, at exit as well, would undo the parent's transaction."""
    if connection is not None:
        # Module variables are cleared at exit. A frozen reference cycle is not: no collection visits it.
        cycle = [connection]
        cycle.append(cycle)
        gc.freeze()


def last_head(connection: Connection) -> Head:
    """Where the record ends."""
    row = connection.execute(_LAST).fetchone()
    return EMPTY if row is None else Head(*row)


def open_store(
    path: str | os.PathLike[str], settings: dict[str, Any] | None = None, *, read_only: bool = False
) -> LedgerStore:
    """Open or make the place of a ledger.

    Parameters
    ----------
    path : str or path-like
        A file, whose place is fixed now, ``":memory:"``, or the URL of a PostgreSQL database.
    settings : dict, default=None
        What a new ledger is made with; None opens an existing one only.
    read_only : bool, default=False

    Returns
    -------
    LedgerStore

    Raises
    ------
    ValueError
        If it can be the place of no ledger.
    LedgerError
        If there is no usable ledger, and none can be made.
    """
    if isinstance(path, str) and path.startswith(("postgresql:", "postgresql+psycopg:")):
        from skldp.accounting._ledger.postgres_store import PostgresStore

        return PostgresStore(path, settings, read_only=read_only)
    from skldp.accounting._ledger.sqlite_store import SQLiteStore

    return SQLiteStore(path, settings, read_only=read_only)


def admit_tenant(url: str, tenant: str) -> None:
    """Let a role of a PostgreSQL database ask with its ledger, and nothing more.

    Parameters
    ----------
    url : str
        The ledger, as its owner: ``"postgresql://owner@host/database"``.
    tenant : str
        An existing role. It sees the people, the questions and who answered them, and of the answers those to its own
        questions alone. It adds, and changes and deletes nothing.

    Raises
    ------
    LedgerError
        If there is no such ledger or role, or it is not the owner who admits.

    Notes
    -----
    A tenant opens the same URL under its own role. Its decisions count everything that a person has answered: its own
    answers by their realized loss, those of others, which it is not told, at their whole epsilon. What others were
    answered is not handed out again: the same question of two tenants is two answers. A tenant is
    trusted to record what it was answered; rows that no ledger writes stop the ledger for all, as damaged.

    Examples
    --------
    >>> from skldp.accounting import admit_tenant
    >>> admit_tenant("postgresql://keeper@localhost/budgets", "clinic_a")  # doctest: +SKIP
    """
    store = open_store(url)
    store.admit(tenant)
    store.close()
