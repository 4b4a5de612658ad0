"""The schema of a ledger's file, and how a file of an earlier version comes to it."""

import json
import sqlite3
from collections.abc import Iterator

from skldp.accounting._ledger.schema import SCHEMA_VERSION, TABLES, VIEWS
from skldp.exceptions import LedgerError

__all__ = ["APPLICATION_ID", "MIGRATED", "create_tables", "migrate", "up_to_date_copy"]

APPLICATION_ID = 0x736B6C64
_OF_VERSION_2 = ("settings", "people", "queries", "releases", "answers")
# The earlier versions that can be brought to this one, with their tables.
MIGRATED = {2: _OF_VERSION_2, 3: (*_OF_VERSION_2, "salts", "erasures")}
# Tables that are read by their whole key.
_WITHOUT_ROWID = ("settings", "answers", "kept", "erasures")
_ONE_ERASED = "SELECT 1 FROM erasures e WHERE e.release = OLD.release AND e.person = OLD.person"
# What may go, and when: an answer and a row that were erased, and the salt of a release in which one was.
_ERASED = {
    "answers": _ONE_ERASED,
    "kept": _ONE_ERASED,
    "salts": "SELECT 1 FROM erasures e WHERE e.release = OLD.release",
}


def _table(table: str, name: str | None = None) -> str:
    # SQLite's row number is an INTEGER, by that very word.
    columns = TABLES[table].replace("BIGINT", "INTEGER")
    return f"CREATE TABLE {name or table} ({columns}){' WITHOUT ROWID' if table in _WITHOUT_ROWID else ''}"


def _triggers(table: str) -> Iterator[str]:
    for change in ("update", "delete"):
        may_go = change == "delete" and table in _ERASED
        yield (
            f"CREATE TRIGGER {table}_keeps_on_{change} BEFORE {change} ON {table} "
            f"{f'WHEN NOT EXISTS ({_ERASED[table]}) ' if may_go else ''}"
            "BEGIN SELECT RAISE(ABORT, 'a privacy ledger is append-only'); END"
        )


def _create_views(connection: sqlite3.Connection) -> None:
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    for view, selection in VIEWS.items():
        if view not in there:
            connection.execute(f"CREATE VIEW {view} AS {selection}")


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the empty tables, within a transaction of the caller."""
    for table in TABLES:
        connection.execute(_table(table))
    for table in TABLES:
        for trigger in _triggers(table):
            connection.execute(trigger)
    _create_views(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables of an earlier version to this one, within a transaction of the caller; the chain stays as it is.

    Raises
    ------
    LedgerError
        If somebody's identity is none.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 2:
        _bring_to_version_3(connection)
    connection.execute(_table("kept"))
    for trigger in _triggers("kept"):
        connection.execute(trigger)
    _create_views(connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _bring_to_version_3(connection: sqlite3.Connection) -> None:
    people = connection.execute("SELECT person, identity FROM people").fetchall()
    if any(type(identity) not in (int, str) for _, identity in people):
        raise LedgerError("The ledger is damaged: something is in it that no ledger writes.")
    for table in ("people", "releases"):
        connection.execute(_table(table, f"new_{table}"))
    rows = ({"person": person, "identity": json.dumps(identity)} for person, identity in people)
    connection.executemany("INSERT INTO new_people VALUES (:person, :identity)", rows)
    columns = "release, query, time, asked, answered, served, refused, people, chain"
    connection.execute(f"INSERT INTO new_releases ({columns}, tenant) SELECT {columns}, '' FROM releases")
    for table in ("people", "releases"):
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE new_{table} RENAME TO {table}")
    for table in ("salts", "erasures"):
        connection.execute(_table(table))
    connection.execute("DROP TRIGGER answers_keeps_on_delete")
    triggers = [trigger for table in ("people", "releases", "salts", "erasures") for trigger in _triggers(table)]
    for trigger in (*triggers, *(one for one in _triggers("answers") if " delete " in one)):
        connection.execute(trigger)


def up_to_date_copy(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Copy a file of an earlier version to memory, for those who may not write it, and bring the copy up."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.backup(copy)
        migrate(copy)
    except BaseException:
        copy.close()
        raise
    return copy
