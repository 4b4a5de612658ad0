"""Store of a ledger on a PostgreSQL server.

Every writing transaction is serializable and holds an advisory lock of the ledger, acquired before its snapshot,
because each release is chained to the previous one. This lock is held for milliseconds, not during a search, and ends
with the connection.

The tables are in the first schema of the connection's search path. Triggers keep them append-only.
"""

import os
import secrets
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from skldp.accounting.ledger import _store as store
from skldp.accounting.ledger._lock_file import EMPTY, Head
from skldp.accounting.ledger._records import SCHEMA_VERSION, TABLES, VIEWS, Connection, insert
from skldp.accounting.ledger._store import ConflictError, LedgerStore, never_close
from skldp.exceptions import LedgerError

_Found = TypeVar("_Found")
VERSIONS = "versions"
_CHANGES = ("update", "delete", "truncate")
# A row may be deleted if an erasure lists it, because the erasure has charged its loss.
_KEEP = """CREATE OR REPLACE FUNCTION keep_a_ledger() RETURNS trigger LANGUAGE plpgsql
SET search_path = {schema}, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME IN ('answers', 'kept') THEN
        IF EXISTS (SELECT 1 FROM erasures e WHERE e.release = OLD.release AND e.person = OLD.person) THEN
            RETURN OLD;
        END IF;
    ELSIF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'salts' THEN
        IF EXISTS (SELECT 1 FROM erasures e WHERE e.release = OLD.release) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'a privacy ledger is append-only';
END $$"""


def create_statements(schema: str) -> list[str]:
    quoted = '"' + schema.replace('"', '""') + '"'
    return [
        f"CREATE TABLE {VERSIONS} (version BIGINT PRIMARY KEY, time TEXT NOT NULL)",
        *(f"CREATE TABLE {table} ({columns})" for table, columns in TABLES.items()),
        _KEEP.format(schema=quoted),
        *(
            f"CREATE TRIGGER {table}_keeps_on_{change} BEFORE {change} ON {table} "
            f"FOR EACH {'STATEMENT' if change == 'truncate' else 'ROW'} EXECUTE FUNCTION keep_a_ledger()"
            for table in TABLES
            for change in _CHANGES
        ),
        *(f"CREATE VIEW {view} AS {selection}" for view, selection in VIEWS.items()),
    ]


_HEAD_LOCK, _MAKING_LOCK = 0, -1
_RETRIED = ("40001", "40P01", "23505")
_LOCK_TIMEOUT = "55P03"
# Time to wait for a crashed server to restart.
RECONNECT_SECONDS = 30.0
_SESSION = """SELECT set_config('lock_timeout', :patience, false), set_config('tcp_keepalives_idle', '60', false),
    set_config('synchronous_commit', CASE current_setting('synchronous_commit')
               WHEN 'off' THEN 'on' WHEN 'local' THEN 'on' ELSE current_setting('synchronous_commit') END, false)"""
_WHERE = """SELECT current_schema(), current_user, current_setting('fsync'),
                   CAST(to_regnamespace(current_schema()) AS oid), to_regclass('versions') IS NOT NULL"""
_TRIGGERS = """SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
               WHERE c.relnamespace = to_regnamespace(current_schema()) AND t.tgenabled IN ('O', 'A')"""


def _library() -> Any:
    """Import SQLAlchemy and check for psycopg."""
    try:
        import psycopg  # noqa: F401 -- SQLAlchemy imports the driver by name
        import sqlalchemy
    except ImportError:
        raise ImportError(
            'A ledger on PostgreSQL needs SQLAlchemy and psycopg: pip install "skldp[postgres]".'
        ) from None
    return sqlalchemy


class _Statements:
    """Connection for statements with named parameters in a session."""

    def __init__(self, session: Any, text: Callable[[str], Any]) -> None:
        self._session = session
        self._text = text
        self._process = os.getpid()

    def execute(self, statement: str, parameters: Mapping[str, Any] | None = None, /) -> Any:
        self._check_process()
        return self._session.execute(self._text(statement), dict(parameters or {}))

    def executemany(self, statement: str, parameters: Iterable[Mapping[str, Any]], /) -> None:
        rows = [dict(row) for row in parameters]
        self._check_process()
        if rows:
            self._session.execute(self._text(statement), rows)

    def _check_process(self) -> None:
        # A fork shares the parent's connection and would write into its transaction.
        if os.getpid() != self._process:
            raise LedgerError("A ledger call must end in the process that began it, not in a fork.")


def _checked_url(engine: Any, path: str) -> Any:
    try:
        url = engine.make_url(path)
    # Raised by SQLAlchemy, or by an invalid port.
    except Exception:
        url = None
    if url is None or url.drivername not in ("postgresql", "postgresql+psycopg") or not url.database:
        raise ValueError("The URL of a ledger must be postgresql://user@host:port/database; got another form.")
    return url.set(drivername="postgresql+psycopg")


class PostgresStore(LedgerStore):
    """Store of a ledger in a schema of a PostgreSQL database."""

    def __init__(self, path: str, settings: dict[str, Any] | None = None, *, read_only: bool = False) -> None:
        self._sql = _library()
        url = _checked_url(self._sql.engine, path)
        shown = url.set(drivername="postgresql", password=None).render_as_string()
        super().__init__(shown, shown, read_only=read_only)
        self._url = url
        self._open_engine()
        self._open_sessions: set[Any] = set()
        self._register()
        with self._errors(), self._session() as session:
            schema, self.tenant, fsync, self._space, there = session.execute(self._sql.text(_WHERE)).one()
            if fsync != "on":
                raise LedgerError(
                    f"The server of {self.name!r} must run with fsync=on, since a lost commit loses spent budgets; "
                    f"got fsync={fsync}."
                )
            if schema is None:
                raise LedgerError(f"The search path of {self.name!r} contains no schema.")
            # Advisory lock numbers are signed 32-bit integers.
            self._space = int(self._space) - 2**32 if int(self._space) >= 2**31 else int(self._space)
            if not there:
                if settings is None or read_only:
                    raise LedgerError(f"There is no ledger at {self.name!r}.")
                self._make(session, schema, settings)
        self._opened()

    @contextmanager
    def _begun(self, *, write: bool) -> Iterator[tuple[Connection, None, Head]]:
        """Begin a transaction: serializable for writing, one snapshot for reading."""
        process = os.getpid()
        with self._errors(), self._session() as session:
            self._connection = session
            try:
                if write:
                    session.execute(self._sql.text("SELECT pg_advisory_lock(:space, :one)"), self._named(_HEAD_LOCK))
                self._isolate(session, "SERIALIZABLE" if write else "REPEATABLE READ", read_only=not write)
                connection = _Statements(session, self._sql.text)
                self._check(connection)
                yield connection, None, EMPTY
                session.commit()
                self._head = self._next_head
            except BaseException:
                if os.getpid() == process:
                    # A lost connection has rolled back already.
                    with suppress(self._sql.exc.SQLAlchemyError):
                        session.rollback()
                raise
            finally:
                if os.getpid() == process:
                    self._connection = None

    def retry(self, work: Callable[[], _Found]) -> _Found:
        """Run `work`, and retry it after a conflict or a lost connection."""
        # The time limit starts at the first failure because a verification alone can exceed it.
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
        # One connection stays open; more are opened as threads need them.
        self._engine = self._sql.create_engine(
            self._url, pool_size=1, max_overflow=-1, pool_pre_ping=True, hide_parameters=True,
            isolation_level="AUTOCOMMIT",
        )  # fmt: skip
        self._sql.event.listen(self._engine, "connect", _set_up_session)
        self._closing = weakref.finalize(self, self._engine.dispose)

    def close(self) -> None:
        with self.lock:
            self.closed = True
            self._engine.dispose()

    def reset_after_fork(self) -> None:
        """Keep the parent's connections open in a forked child, without using them."""
        super().reset_after_fork()
        # Other threads' connections are included, although their threads do not exist in the child.
        for inherited in (*self._open_sessions, self._engine):
            never_close(inherited)
        self._open_sessions = set()
        self._closing.detach()
        self._open_engine()
        self._connection = None

    def structural_problems(self, connection: Connection) -> list[str]:
        """Return the triggers that are missing or disabled; the server enforces the other constraints."""
        found = {name for (name,) in connection.execute(_TRIGGERS)}
        needed = {f"{table}_keeps_on_{change}" for table in TABLES for change in _CHANGES}
        return [f"The trigger {name} is missing or disabled." for name in sorted(needed - found)]

    def _make(self, session: Any, schema: str, settings: dict[str, Any]) -> None:
        session.execute(self._sql.text("SELECT pg_advisory_lock(:space, :one)"), self._named(_MAKING_LOCK))
        self._isolate(session, "SERIALIZABLE", read_only=False)
        # Another process may have created it meanwhile.
        (there,) = session.execute(self._sql.text("SELECT to_regclass('versions') IS NOT NULL")).one()
        if not there:
            for statement in create_statements(schema):
                session.exec_driver_sql(statement)
            connection = _Statements(session, self._sql.text)
            version = {"version": SCHEMA_VERSION, "time": datetime.now(UTC).isoformat(timespec="seconds")}
            insert(connection, VERSIONS, [version])
            store.write_first_settings(connection, settings)
        session.commit()

    def _named(self, one: int) -> dict[str, int]:
        return {"space": self._space, "one": one}

    @staticmethod
    def _isolate(session: Any, level: Any, *, read_only: bool) -> None:
        # An interrupt during a rollback can leave a transaction open. SQLAlchemy also begins one implicitly.
        session.rollback()
        session.execution_options(isolation_level=level, postgresql_readonly=read_only)

    @contextmanager
    def _session(self) -> Iterator[Any]:
        process, session = os.getpid(), self._engine.connect()
        self._open_sessions.add(session)
        try:
            yield session
        finally:
            self._end(session, process)

    def _end(self, session: Any, process: int) -> None:
        """End a session with its locks, but not in a fork."""
        if os.getpid() != process:
            never_close(session)
            return
        self._open_sessions.discard(session)
        try:
            self._isolate(session, "AUTOCOMMIT", read_only=False)
            session.execute(self._sql.text("SELECT pg_advisory_unlock_all()"))
            session.close()
        except self._sql.exc.SQLAlchemyError:
            # A pooled connection must not keep its locks.
            with suppress(self._sql.exc.SQLAlchemyError):
                session.invalidate()
                session.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert database errors to LedgerError, without the values that they quote."""
        try:
            yield
        except self._sql.exc.DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state == _LOCK_TIMEOUT:
                raise self.error("is in use: another process holds its lock, and nothing was released.") from None
            said = f"The ledger {self.name!r} could not be read or written, and nothing was returned: "
            # Later lines quote the row.
            said += f"{str(error.orig).splitlines()[0]}."
            lost = error.connection_invalidated or state is None or state[:2] in ("08", "57")
            if state in _RETRIED or (lost and self._was_open):
                raise ConflictError(said) from None
            raise LedgerError(said) from None
        except self._sql.exc.SQLAlchemyError as error:
            raise self.error(
                f"could not be read or written, and nothing was returned: {type(error).__name__}."
            ) from None

    def _check(self, connection: Connection) -> None:
        if not connection.execute("SELECT to_regclass('versions') IS NOT NULL").fetchone()[0]:
            raise self.error("was removed while it was open; nothing more is recorded.")
        (version,) = connection.execute(f"SELECT MAX(version) FROM {VERSIONS}").fetchone()
        self._check_version(version)


def _set_up_session(driver_connection: Any, _: Any) -> None:
    """Set the timeouts of a session and synchronous commits, overriding the role's settings."""
    statement = _SESSION.replace(":patience", "%s")
    driver_connection.execute(statement, [f"{int(store.BUSY_SECONDS * 1000)}ms"])
    driver_connection.commit()
