"""The tables of a ledger, once for SQLite and PostgreSQL: what differs between them is in their stores.

Every statement about these tables has named parameters, ``:name``, and words that both databases know, so that there
is one text of each, and one suite of tests.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

__all__ = ["SCHEMA_VERSION", "TABLES", "VIEWS", "WRITE_SETTING", "Connection", "Rows", "seal", "sealed_rows"]

SCHEMA_VERSION = 4

# The columns of each table, in the order in which tables refer to one another.
TABLES = {
    # The seal binds a value, as JSON, to its name and its ledger.
    "settings": "name TEXT PRIMARY KEY, value TEXT NOT NULL, seal TEXT NOT NULL",
    # An identity is JSON: the text "1" is somebody else than the integer 1.
    "people": "person BIGINT PRIMARY KEY, identity TEXT NOT NULL UNIQUE",
    "queries": "query BIGINT PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL",
    # How many people are known after a release, who asked, by which idempotency key and for what, what was answered
    # as a salted hash (none before version 3), and the chain up to here.
    "releases": """release BIGINT PRIMARY KEY, query BIGINT NOT NULL REFERENCES queries, time TEXT NOT NULL,
        asked BIGINT NOT NULL, answered BIGINT NOT NULL, served BIGINT NOT NULL, refused BIGINT NOT NULL,
        people BIGINT NOT NULL, tenant TEXT NOT NULL, call TEXT, request TEXT, digest TEXT, chain TEXT NOT NULL,
        UNIQUE (tenant, call)""",
    "answers": """release BIGINT NOT NULL REFERENCES releases, person BIGINT NOT NULL REFERENCES people,
        output BIGINT NOT NULL, PRIMARY KEY (release, person)""",
    # Released rows, encrypted, of a call that is known by its idempotency key.
    "kept": """release BIGINT NOT NULL REFERENCES releases, person BIGINT NOT NULL REFERENCES people,
        sealed TEXT NOT NULL, PRIMARY KEY (release, person)""",
    # Without its salt, a release's digest tells nothing of its answers.
    "salts": "release BIGINT PRIMARY KEY REFERENCES releases, salt TEXT NOT NULL",
    # Answers that were erased: in which release, by which one, and the digest of what that release still has.
    "erasures": """release BIGINT NOT NULL REFERENCES releases, person BIGINT NOT NULL REFERENCES people,
        erasure BIGINT NOT NULL REFERENCES releases, digest TEXT NOT NULL, PRIMARY KEY (release, person)""",
}
# What whoever asks reads of these; PostgreSQL shows a tenant no output of another one, nor its rows and its salt.
VIEWS = {
    "recorded": "SELECT release, person, output FROM answers",
    "recorded_rows": "SELECT release, person, sealed FROM kept",
    "recorded_salts": "SELECT release, salt FROM salts",
}
WRITE_SETTING = "INSERT INTO settings (name, value, seal) VALUES (:name, :value, :seal)"


class Rows(Protocol):
    """What a statement has found."""

    def fetchone(self) -> Any:
        """Take the next row, or None."""

    def fetchmany(self, size: int) -> list[Any]:
        """Take so many rows, or all that are left."""

    def fetchall(self) -> list[Any]:
        """Take all rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """The statements of one transaction, with named parameters; a row is a tuple."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> Rows:
        """Run one statement."""

    def executemany(self, statement: str, parameters: Iterable[Mapping[str, Any]], /) -> Any:
        """Run one statement for each row of parameters."""


def seal(token: Any, name: Any, value: Any) -> str:
    """Tell whether a setting is the one that was written into this very ledger."""
    return hashlib.sha256(json.dumps([token, name, value]).encode("ascii")).hexdigest()


def sealed_rows(token: str, settings: dict[str, Any]) -> list[dict[str, str]]:
    """Settings as rows of their table; None is not written."""
    return [
        {"name": name, "value": json.dumps(value), "seal": seal(token, name, value)}
        for name, value in settings.items()
        if value is not None
    ]
