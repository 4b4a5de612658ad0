"""A ledger on a PostgreSQL server: many hosts ask with it, and no two of them the same person at once.

Every transaction that writes is serializable, and holds an advisory lock of the whole ledger, taken before its
snapshot, since each release is chained to the one before. That lock is held for milliseconds. While losses are
certified, a call holds the locks of its people alone. All locks are taken in one order, and end with the connection.
"""

import hashlib
import json
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from skldp.accounting._ledger import store
from skldp.accounting._ledger.companion import EMPTY
from skldp.accounting._ledger.identity import Identity
from skldp.accounting._ledger.postgres_schema import (
    MIGRATED,
    VERSIONS,
    create_statements,
    grant_statements,
    migrate_statements,
    trigger_names,
)
from skldp.accounting._ledger.schema import SCHEMA_VERSION, WRITE_SETTING, Connection, sealed_rows
from skldp.accounting._ledger.store import ConflictError, LedgerStore, keep_forever
from skldp.exceptions import LedgerError

__all__ = ["PostgresStore"]

# People share locks where there are more of them, so that a call of a million needs no more than the server has.
_LOCKS = 1024
_HEAD_LOCK, _MAKING_LOCK = 0, -1
_RETRIED = ("40001", "40P01", "23505")
_LOCK_TIMEOUT = "55P03"
# A crash of the server that somebody restarts is ridden out for so long.
RECONNECT_SECONDS = 30.0
_SESSION = """SELECT set_config('lock_timeout', :patience, false), set_config('tcp_keepalives_idle', '60', false),
    set_config('synchronous_commit', CASE current_setting('synchronous_commit')
               WHEN 'off' THEN 'on' WHEN 'local' THEN 'on' ELSE current_setting('synchronous_commit') END, false)"""
_WHERE = """SELECT current_schema(), current_user, current_setting('fsync'),
                   CAST(to_regnamespace(current_schema()) AS oid), to_regclass('versions') IS NOT NULL"""
_TRIGGERS = """SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
               WHERE c.relnamespace = to_regnamespace(current_schema()) AND t.tgenabled IN ('O', 'A')"""
_VERSION_AND_OWNER = """SELECT (SELECT MAX(version) FROM versions), tableowner FROM pg_tables
                        WHERE schemaname = current_schema() AND tablename = 'answers'"""
_TENANTS = """SELECT DISTINCT grantee FROM information_schema.role_table_grants WHERE table_schema = current_schema()
              AND table_name = 'answers' AND privilege_type = 'INSERT' AND grantee <> current_user"""
_PEOPLE_LOCKS = "SELECT pg_advisory_lock(:space, one) FROM unnest(CAST(:locks AS INTEGER[])) AS one"


def _library() -> Any:
    """SQLAlchemy, which finds the driver psycopg by its name."""
    try:
        import psycopg  # noqa: F401 -- only asked whether it is there: SQLAlchemy imports it by its name
        import sqlalchemy
    except ImportError:
        raise ImportError(
            'A ledger on PostgreSQL needs SQLAlchemy and psycopg: pip install "skldp[postgres]".'
        ) from None
    return sqlalchemy


class _Rows:
    """Rows as tuples."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def fetchone(self) -> Any:
        row = self._result.fetchone()
        return None if row is None else tuple(row)

    def fetchmany(self, size: int) -> list[Any]:
        return list(map(tuple, self._result.fetchmany(size)))

    def fetchall(self) -> list[Any]:
        return list(map(tuple, self._result.fetchall()))

    def __iter__(self) -> Iterator[Any]:
        return map(tuple, self._result)


class _Statements:
    """A session's statements, as a ledger writes them."""

    def __init__(self, session: Any, text: Callable[[str], Any]) -> None:
        self._session = session
        self._text = text
        self._process = os.getpid()

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None, /) -> _Rows:
        self._check_process()
        return _Rows(self._session.execute(self._text(statement), dict(parameters or {})))

    def executemany(self, statement: str, parameters: Iterable[Mapping[str, Any]], /) -> None:
        rows = [dict(row) for row in parameters]
        self._check_process()
        if rows:
            self._session.execute(self._text(statement), rows)

    def _check_process(self) -> None:
        # A fork has the parent's connection, and what it says there would be said in the parent's transaction.
        if os.getpid() != self._process:
            raise LedgerError("A call to a ledger ends in the process that began it, not in a fork of it.")


def _checked_url(engine: Any, path: str) -> Any:
    try:
        url = engine.make_url(path)
    # An error of SQLAlchemy's, or of the number that a port is not.
    except Exception:
        url = None
    if url is None or url.drivername not in ("postgresql", "postgresql+psycopg") or not url.database:
        raise ValueError("The URL of a ledger must be postgresql://user@host:port/database. Got another one.")
    return url.set(drivername="postgresql+psycopg")


class PostgresStore(LedgerStore):
    """One ledger in a schema of a PostgreSQL database.

    Parameters
    ----------
    path : str
        ``"postgresql://user@host:port/database"``. A password is better kept by libpq, in a file of its own or the
        environment; one that is given here is never shown, nor pickled.
    settings : dict, default=None
        What a new ledger is made with; None opens an existing one only.
    read_only : bool, default=False

    Attributes
    ----------
    path, name : str
        The URL without its password.
    tenant : str
        The role that asks.

    Raises
    ------
    ValueError
        If it is no such URL.
    LedgerError
        If the server cannot be reached, loses commits when its power fails, has no ledger and none is to be made, or
        one of another version.
    """

    def __init__(self, path: str, settings: dict[str, Any] | None = None, *, read_only: bool = False) -> None:
        self._sql = _library()
        url = _checked_url(self._sql.engine, path)
        shown = url.set(drivername="postgresql", password=None).render_as_string()
        super().__init__(shown, shown, read_only=read_only)
        self._url = url
        self._open_engine()
        self._connection: Any | None = None
        self._lent: set[Any] = set()
        self._sessions = threading.local()
        self._was_open = False
        self._register()
        with self._errors(), self._session() as session:
            schema, self.tenant, fsync, self._space, there = session.execute(self._sql.text(_WHERE)).one()
            if fsync != "on":
                raise LedgerError(
                    f"The server of {self.name!r} runs with fsync={fsync}: what it commits can be lost, and a budget "
                    "with it."
                )
            if schema is None:
                raise LedgerError(f"The search path of {self.name!r} leads to no schema.")
            # Locks are numbered with 32 bits and a sign.
            self._space = int(self._space) - 2**32 if int(self._space) >= 2**31 else int(self._space)
            if not there:
                if settings is None or read_only:
                    raise LedgerError(f"There is no ledger at {self.name!r}.")
                self._make(session, schema, settings)
            elif not read_only:
                self._bring_up(session, schema)
        with self.transaction(write=False):
            pass
        self._was_open = True

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Connection]:
        """Run the block in one transaction: serializable where it writes, one snapshot where it reads.

        Raises
        ------
        LedgerError
            As :meth:`LedgerStore.transaction`.
        ConflictError
            If nothing was committed because of somebody else, or the connection was lost and nobody knows: to be run
            again, where what is recorded under its idempotency key tells.
        """
        with self.lock:
            self._check_can_begin(write=write, busy=self._connection is not None)
            process = os.getpid()
            with self._errors(), self._session() as session:
                self._connection = session
                try:
                    if write:
                        session.execute(
                            self._sql.text("SELECT pg_advisory_lock(:space, :one)"), self._named(_HEAD_LOCK)
                        )
                    self._isolate(session, "SERIALIZABLE" if write else "REPEATABLE READ", read_only=not write)
                    connection = _Statements(session, self._sql.text)
                    self._check(connection)
                    yield connection
                    head = store.last_head(connection)
                    session.commit()
                    self._head = head
                except BaseException:
                    if os.getpid() == process:
                        # A connection that was lost has rolled back by itself.
                        with suppress(self._sql.exc.SQLAlchemyError):
                            session.rollback()
                    raise
                finally:
                    if os.getpid() == process:
                        self._connection = None
                        if write:
                            self._let_go(session)

    @contextmanager
    def asking(self, people: Sequence[Identity]) -> Iterator[None]:
        """Keep everybody else from asking these people: a lock a person, in the order of their numbers."""
        with self.lock:
            self._check_can_begin(write=True, busy=self._connection is not None)
        session = self.repeated(partial(self._locking, sorted({_lock_of(person) for person in people})))
        process = os.getpid()
        self._sessions.current = session
        try:
            yield
        finally:
            self._sessions.current = None
            self._end(session, process)

    def repeated(self, work: Any) -> Any:
        """Do some work whose transaction can be begun again after a conflict, or a lost connection."""
        # From the first failure on: to verify a ledger takes longer than this.
        until: float | None = None
        pause = 0.01
        while True:
            try:
                return work()
            except ConflictError as error:
                until = until or time.monotonic() + RECONNECT_SECONDS
                if time.monotonic() > until:
                    raise LedgerError(str(error)) from None
            time.sleep(pause * (1 + secrets.randbelow(1000) / 1000))
            pause = min(2 * pause, 0.5)

    def _open_engine(self) -> None:
        # One connection waits for the next call, and more are made as threads need them.
        self._engine = self._sql.create_engine(
            self._url, pool_size=1, max_overflow=-1, pool_pre_ping=True, hide_parameters=True,
            isolation_level="AUTOCOMMIT",
        )  # fmt: skip
        self._sql.event.listen(self._engine, "connect", _set_up_session)
        self._closing = weakref.finalize(self, self._engine.dispose)

    def close(self) -> None:
        """Close the ledger, for this process, once the transaction of another thread has ended."""
        with self.lock:
            self.closed = True
            self._engine.dispose()

    def begin_anew(self) -> None:
        """Leave a parent's threads and their connections to the parent, in a forked child."""
        super().begin_anew()
        # Those of other threads too, which are no more in a child.
        for inherited in (*self._lent, self._engine):
            keep_forever(inherited)
        self._lent = set()
        self._closing.detach()
        self._open_engine()
        self._connection, self._sessions = None, threading.local()

    def structural_problems(self, connection: Connection) -> list[str]:
        """Which triggers are gone or disabled; the server itself keeps the rest."""
        found = {name for (name,) in connection.execute(_TRIGGERS)}
        return [f"The trigger {name} is gone." for name in sorted(trigger_names() - found)]

    def admit(self, tenant: str) -> None:
        """Let a role ask."""
        with self.lock, self._errors(), self._session() as session:
            (schema,) = session.execute(self._sql.text("SELECT current_schema()")).one()
            self._isolate(session, "SERIALIZABLE", read_only=False)
            for statement in grant_statements(schema, tenant):
                session.exec_driver_sql(statement)
            session.commit()

    def _make(self, session: Any, schema: str, settings: dict[str, Any]) -> None:
        session.execute(self._sql.text("SELECT pg_advisory_lock(:space, :one)"), self._named(_MAKING_LOCK))
        self._isolate(session, "SERIALIZABLE", read_only=False)
        # Somebody else may have made it meanwhile.
        (there,) = session.execute(self._sql.text("SELECT to_regclass('versions') IS NOT NULL")).one()
        if not there:
            for statement in create_statements(schema, self.tenant):
                session.exec_driver_sql(statement)
            connection = _Statements(session, self._sql.text)
            _enter_version(connection)
            token = secrets.token_hex(16)
            connection.executemany(WRITE_SETTING, sealed_rows(token, {"token": token, **settings}))
        session.commit()

    def _bring_up(self, session: Any, schema: str) -> None:
        """Bring a ledger of the version before to this one, if its owner opens it."""
        version, owner = session.execute(self._sql.text(_VERSION_AND_OWNER)).one()
        if (version, owner) != (MIGRATED, self.tenant):
            return
        session.execute(self._sql.text("SELECT pg_advisory_lock(:space, :one)"), self._named(_MAKING_LOCK))
        self._isolate(session, "SERIALIZABLE", read_only=False)
        # Somebody else may have done so meanwhile.
        if session.execute(self._sql.text(_VERSION_AND_OWNER)).one()[0] == MIGRATED:
            tenants = [tenant for (tenant,) in session.execute(self._sql.text(_TENANTS))]
            for statement in migrate_statements(schema, self.tenant, tenants):
                session.exec_driver_sql(statement)
            _enter_version(_Statements(session, self._sql.text))
        session.commit()

    def _locking(self, locks: list[int]) -> Any:
        """Begin a session that holds locks until it ends."""
        with self._errors():
            session = self._begin()
            try:
                session.execute(self._sql.text(_PEOPLE_LOCKS), {"space": self._space, "locks": locks})
                session.commit()
            except BaseException:
                self._end(session, os.getpid())
                raise
            return session

    def _let_go(self, session: Any) -> None:
        """Let others enter releases; a connection that was lost has let go by itself."""
        with suppress(self._sql.exc.SQLAlchemyError):
            self._isolate(session, "AUTOCOMMIT", read_only=False)
            session.execute(self._sql.text("SELECT pg_advisory_unlock(:space, :one)"), self._named(_HEAD_LOCK))

    def _named(self, one: int) -> dict[str, int]:
        return {"space": self._space, "one": one}

    @staticmethod
    def _isolate(session: Any, level: Any, *, read_only: bool) -> None:
        # SQLAlchemy takes a statement of its own for the beginning of a transaction. One that was left in the middle,
        # by an interrupt of its undoing for one, is undone.
        session.rollback()
        session.execution_options(isolation_level=level, postgresql_readonly=read_only)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        """The session of this thread's call, or one of its own, while it lives."""
        process, current = os.getpid(), getattr(self._sessions, "current", None)
        if current is not None and not current.closed and not current.invalidated:
            yield current
            return
        session = self._begin()
        try:
            yield session
        finally:
            self._end(session, process)

    def _end(self, session: Any, process: int) -> None:
        if os.getpid() != process:
            keep_forever(session)
            return
        self._lent.discard(session)
        try:
            self._isolate(session, "AUTOCOMMIT", read_only=False)
            session.execute(self._sql.text("SELECT pg_advisory_unlock_all()"))
            session.close()
        except self._sql.exc.SQLAlchemyError:
            # It must not wait for the next call with a lock: what ends lets go of all.
            with suppress(self._sql.exc.SQLAlchemyError):
                session.invalidate()
                session.close()

    def _begin(self) -> Any:
        session = self._engine.connect()
        self._lent.add(session)
        return session

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Tell of the database's errors without what it quotes of the rows."""
        try:
            yield
        except self._sql.exc.DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state == _LOCK_TIMEOUT:
                raise LedgerError(
                    f"The ledger {self.name!r} is in use: somebody has held its lock for too long, and nothing was "
                    "released."
                ) from None
            said = f"The ledger {self.name!r} could not be read or written, and nothing was handed out: "
            # What follows the first line is of the row.
            said += f"{str(error.orig).splitlines()[0]}."
            lost = error.connection_invalidated or state is None or state[:2] in ("08", "57")
            if state in _RETRIED or (lost and self._was_open):
                raise ConflictError(said) from None
            raise LedgerError(said) from None
        except self._sql.exc.SQLAlchemyError as error:
            raise LedgerError(
                f"The ledger {self.name!r} could not be read or written, and nothing was handed out: "
                f"{type(error).__name__}."
            ) from None

    def _check(self, connection: Connection) -> None:
        if not connection.execute("SELECT to_regclass('versions') IS NOT NULL").fetchone()[0]:
            raise LedgerError(f"The ledger {self.name!r} was removed while it was open: nothing more is recorded.")
        (version,) = connection.execute(f"SELECT MAX(version) FROM {VERSIONS}").fetchone()
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"The ledger {self.name!r} has schema version {version}, and this skldp knows version {SCHEMA_VERSION}."
            )
        self._check_record(connection, None, EMPTY)


def _enter_version(connection: _Statements) -> None:
    entry = {"version": SCHEMA_VERSION, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    connection.execute(f"INSERT INTO {VERSIONS} (version, time) VALUES (:version, :time)", entry)


def _set_up_session(driver_connection: Any, _: Any) -> None:
    """Wait no longer than patience lasts, and commit to the disk whatever the role's settings are."""
    statement = _SESSION.replace(":patience", "%s")
    driver_connection.execute(statement, [f"{int(store.BUSY_SECONDS * 1000)}ms"])
    driver_connection.commit()


def _lock_of(person: Identity) -> int:
    digest = hashlib.sha256(json.dumps(person).encode("ascii")).digest()
    return 1 + int.from_bytes(digest[:8], "big") % _LOCKS
