"""Tables and rows of a ledger: ids of people, the schema, chained releases, recorded and erased answers.

SQLite and PostgreSQL share the tables and the statements, with named parameters (``:name``). Differences between the
databases are in their stores.

An erasure is a release of one person, charged at the loss of the erased answers. It lists the removed rows, with a new
digest of each release's remaining rows under a new salt. The old salt would allow a test of candidates for the erased
answer against the old digest.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Ints
from skldp.accounting._query import Query
from skldp.exceptions import LedgerError
from skldp.laws._person_ids import Identity


def row_identities(X: npt.ArrayLike, key: bytes) -> list[Identity]:
    """Return ids that identify distinct rows, for simulations within one process."""
    # Shapes: `X` (n_samples, n_features).
    # Adding 0.0 converts -0.0 to 0.0.
    rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64) + 0.0)
    before: dict[str, int] = {}
    people: list[Identity] = []
    for row in rows:
        digest = hmac.digest(key, row.tobytes(), "sha256").hex()
        before[digest] = before.get(digest, -1) + 1
        people.append(f"{digest} {before[digest]}")
    return people


SCHEMA_VERSION = 4

# Columns of each table; tables refer to earlier ones only.
TABLES = {
    # The seal binds a value, as JSON, to its name and its ledger.
    "settings": "name TEXT PRIMARY KEY, value TEXT NOT NULL, seal TEXT NOT NULL",
    # An identity is JSON: the string "1" and the integer 1 differ.
    "people": "person BIGINT PRIMARY KEY, identity TEXT NOT NULL UNIQUE",
    "queries": "query BIGINT PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL",
    # `people` counts the people known after the release. `call` and `request` identify a retry. `digest` is the salted
    # hash of the answers, and `chain` the hash of all releases so far.
    "releases": """release BIGINT PRIMARY KEY, query BIGINT NOT NULL REFERENCES queries, time TEXT NOT NULL,
        asked BIGINT NOT NULL, answered BIGINT NOT NULL, served BIGINT NOT NULL, refused BIGINT NOT NULL,
        people BIGINT NOT NULL, tenant TEXT NOT NULL, call TEXT, request TEXT, digest TEXT, chain TEXT NOT NULL,
        UNIQUE (tenant, call)""",
    "answers": """release BIGINT NOT NULL REFERENCES releases, person BIGINT NOT NULL REFERENCES people,
        output BIGINT NOT NULL, PRIMARY KEY (release, person)""",
    # Encrypted released rows of calls with an idempotency key.
    "kept": """release BIGINT NOT NULL REFERENCES releases, person BIGINT NOT NULL REFERENCES people,
        sealed TEXT NOT NULL, PRIMARY KEY (release, person)""",
    # Without its salt, a release's digest reveals nothing about its answers.
    "salts": "release BIGINT PRIMARY KEY REFERENCES releases, salt TEXT NOT NULL",
    # Erased answers, with the release of each, the release that erased it, and the digest of the remaining answers.
    "erasures": """release BIGINT NOT NULL REFERENCES releases, person BIGINT NOT NULL REFERENCES people,
        erasure BIGINT NOT NULL REFERENCES releases, digest TEXT NOT NULL, PRIMARY KEY (release, person)""",
}
# Views for reading.
VIEWS = {
    "recorded": "SELECT release, person, output FROM answers",
    "recorded_rows": "SELECT release, person, sealed FROM kept",
    "recorded_salts": "SELECT release, salt FROM salts",
}


class Connection(Protocol):
    """Connection within a transaction, with named parameters and rows as tuples."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> Any:
        """Run one statement; the result has fetchone, fetchmany and fetchall."""

    def executemany(self, statement: str, parameters: Iterable[Mapping[str, Any]], /) -> Any:
        """Run one statement for each row of parameters."""


History = tuple[list[int], list[int]]
Key = TypeVar("Key", bound=Hashable)
# Releases are few and looked up by key, so answers need no index by person.
_HISTORY = """SELECT r.release, r.time, r.query, a.output FROM releases r CROSS JOIN recorded a
              WHERE a.release = r.release AND a.person = :person AND r.answered > 0 AND r.release <= :until
              ORDER BY r.release"""
_HISTORIES = """SELECT a.person, r.query, a.output FROM releases r CROSS JOIN recorded a
                WHERE a.release = r.release AND a.person BETWEEN :low AND :high AND r.answered > 0
                AND r.release <= :until ORDER BY r.release, a.person"""
# A range of people is read at once if it contains at least 1 wanted person in _DENSE.
_DENSE, _ROWS_AT_ONCE = 4, 100_000
_OUTPUTS = """SELECT a.person, a.output FROM releases r CROSS JOIN recorded a
              WHERE a.release = r.release AND r.query = :query AND r.tenant = :tenant AND r.answered > 0
              AND r.release <= :until AND a.person BETWEEN :low AND :high ORDER BY r.release"""
_OF_CALL = "SELECT release, request FROM releases WHERE tenant = :tenant AND call = :mark"
_ANSWERED = "SELECT person FROM recorded WHERE release = :release"
_KEPT = "SELECT person, sealed FROM recorded_rows WHERE release = :release"
# In the order in which the chain hashes them.
_COLUMNS = (
    "release", "query", "time", "asked", "answered", "served", "refused", "people",
    "tenant", "call", "request", "digest",
)  # fmt: skip


# Errors raised by content in an invalid format.
DAMAGES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
DAMAGED = "The ledger is damaged: its content is not in the format of a ledger."


@contextmanager
def damage() -> Iterator[None]:
    """Convert errors of invalid content to LedgerError."""
    try:
        yield
    except DAMAGES as error:
        raise LedgerError(DAMAGED) from error


class Digest:
    """Salted hash of the answers of a release."""

    def __init__(self, salt: str) -> None:
        self._hash = hashlib.sha256(bytes.fromhex(salt))

    def add(self, numbers: npt.ArrayLike, outputs: npt.ArrayLike) -> None:
        """Add the next answers, in the order of the people's numbers."""
        self._hash.update(np.column_stack([numbers, outputs]).astype("<i8").tobytes())

    @property
    def value(self) -> str:
        return self._hash.hexdigest()


class ChainLink(Digest):
    """Hash of a release and of the chain before it."""

    def __init__(self, previous: str, entry: Sequence[int | str | None], identities: Sequence[Identity]) -> None:
        # JSON in ASCII is the same on every version of Python.
        head = json.dumps([previous, list(entry), list(identities)])
        self._hash = hashlib.sha256(head.encode("ascii"))


@dataclass(frozen=True)
class RecordedRelease:
    """Release of one call."""

    number: int
    query_number: int
    asked: int
    served: int
    refused: int
    new_people: list[Identity]
    numbers: Ints
    outputs: Ints
    mark: str
    request: str
    sealed: Sequence[str] = ()


def insert(connection: Connection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        columns, values = ", ".join(rows[0]), ", ".join(f":{name}" for name in rows[0])
        connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({values})", rows)


def write_release(
    connection: Connection, release: RecordedRelease, query: Query, *, n_people: int, chain: str, tenant: str
) -> str:
    """Write a release with its new query and people."""
    number = {"query": release.query_number}
    if not connection.execute("SELECT 1 FROM queries WHERE query = :query", number).fetchall():
        insert(connection, "queries", [number | {"key": query.key, "content": query.to_json()}])
    people = enumerate(map(json.dumps, release.new_people), start=n_people)
    insert(connection, "people", [{"person": person, "identity": identity} for person, identity in people])
    # SQLite appends rows that are sorted by key.
    order = np.argsort(release.numbers)
    numbers, outputs = release.numbers[order], release.outputs[order]
    salt = secrets.token_hex(16)
    digest = Digest(salt)
    digest.add(numbers, outputs)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    counts = (release.asked, len(numbers), release.served, release.refused, n_people + len(release.new_people))
    entry = (release.number, release.query_number, time, *counts, tenant, release.mark, release.request, digest.value)
    link = ChainLink(chain, [query.key, *entry], release.new_people)
    insert(connection, "releases", [dict(zip(_COLUMNS, entry, strict=True)) | {"chain": link.value}])
    own = {"release": release.number}
    insert(connection, "salts", [own | {"salt": salt}])
    answers = zip(numbers.tolist(), outputs.tolist(), strict=True)
    insert(connection, "answers", [own | {"person": person, "output": output} for person, output in answers])
    kept = zip(release.numbers.tolist(), release.sealed, strict=True) if release.sealed else ()
    insert(connection, "kept", [own | {"person": person, "sealed": sealed} for person, sealed in kept])
    return link.value


def timed_history(connection: Connection, person: int, until: int) -> list[tuple[int, str, int, int]]:
    """Return one person's answers as (release, time, query number, output), up to a release."""
    found = connection.execute(_HISTORY, {"person": person, "until": until})
    rows: list[tuple[int, str, int, int]] = found.fetchall()
    _check_answers(rows)
    return rows


def _check_answers(rows: Sequence[Sequence[Any]]) -> None:
    """Raise LedgerError unless the query and the output that end each row are integers."""
    if rows and {*map(type, chain(*list(zip(*rows, strict=True))[-2:]))} != {int}:
        raise LedgerError("The ledger is damaged: an answer is not an output of its query.")


def recorded_history(connection: Connection, person: int, until: int) -> History:
    rows = timed_history(connection, person, until)
    return [query for _, _, query, _ in rows], [output for _, _, _, output in rows]


def recorded_histories(connection: Connection, members: Mapping[Key, int], until: int) -> dict[Key, History]:
    """Return the history of each person, by key."""
    # One statement reads a dense range of people, which saves round trips to a server.
    known = {number for number in members.values() if number >= 0}
    low, high = min(known, default=0), max(known, default=0)
    if len(known) < 2 or _DENSE * len(known) < high - low + 1:
        return {key: recorded_history(connection, number, until) for key, number in members.items()}
    histories: dict[int, History] = {number: ([], []) for number in members.values()}
    answers = connection.execute(_HISTORIES, {"low": low, "high": high, "until": until})
    with damage():
        while rows := answers.fetchmany(_ROWS_AT_ONCE):
            own = [row for row in rows if row[0] in known]
            _check_answers(own)
            for person, query, output in own:
                histories[person][0].append(query)
                histories[person][1].append(output)
    return {key: histories[number] for key, number in members.items()}


def recorded_outputs(connection: Connection, query: int | None, people: Ints, *, tenant: str, until: int) -> Ints:
    """Return each person's last output of a role's query up to a release, or -1."""
    recorded = np.full(len(people), -1, dtype=np.int64)
    known = np.flatnonzero(people >= 0)
    if query is None or not known.size:
        return recorded
    low, high = int(people[known].min()), int(people[known].max())
    wanted = {"query": query, "tenant": tenant, "until": until, "low": low, "high": high}
    rows = connection.execute(_OUTPUTS, wanted).fetchall()
    if rows:
        with damage():
            person, output = np.array(rows, dtype=np.int64).T
        last = np.full(high - low + 1, -1, dtype=np.int64)
        last[person - low] = output
        recorded[known] = last[people[known] - low]
    return recorded


def recorded_call(connection: Connection, tenant: str, mark: str) -> tuple[int, str] | None:
    """Return the release of a call and the hash of its request, or None."""
    found: tuple[int, str] | None = connection.execute(_OF_CALL, {"tenant": tenant, "mark": mark}).fetchone()
    return found


def who_answered(connection: Connection, release: int) -> Ints:
    with damage():
        rows = connection.execute(_ANSWERED, {"release": release}).fetchall()
        return np.array(rows, dtype=np.int64).reshape(-1)


def recorded_rows(connection: Connection, release: int) -> dict[int, str]:
    with damage():
        return dict(connection.execute(_KEPT, {"release": release}).fetchall())


_RELEASES_OF_PERSON = """SELECT r.release FROM releases r CROSS JOIN recorded a
                WHERE a.release = r.release AND a.person = :person AND r.answered > 0 ORDER BY r.release"""
_OTHER_ANSWERS = "SELECT person, output FROM recorded WHERE release = :release AND person <> :person ORDER BY person"
_OF_RELEASE = "release = :release"
_OF_PERSON = f"{_OF_RELEASE} AND person = :person"


class Erased(NamedTuple):
    """Answer to erase, with the new digest and salt of its release's remaining answers."""

    release: int
    person: int
    digest: str
    salt: str


def erasable(connection: Connection, person: int) -> tuple[list[Erased], str]:
    """Return the answers of a person to erase, and their hash for the chain."""
    erased = []
    with damage():
        for (release,) in connection.execute(_RELEASES_OF_PERSON, {"person": person}).fetchall():
            salt = secrets.token_hex(16)
            rest = Digest(salt)
            others = connection.execute(_OTHER_ANSWERS, {"release": release, "person": person}).fetchall()
            if others:
                rest.add(*zip(*others, strict=True))
            erased.append(Erased(release, person, rest.value, salt))
    return erased, hash_of_erased([(one.release, one.person, one.digest) for one in erased])


def erase_rows(connection: Connection, erased: Sequence[Erased], erasure: int) -> None:
    """Erase answers; call this after writing the erasure's release."""
    rows = [{"release": one.release, "person": one.person} for one in erased]
    digests = [own | {"erasure": erasure, "digest": one.digest} for own, one in zip(rows, erased, strict=True)]
    insert(connection, "erasures", digests)
    for table, key in ("answers", _OF_PERSON), ("kept", _OF_PERSON), ("salts", _OF_RELEASE):
        connection.executemany(f"DELETE FROM {table} WHERE {key}", rows)
    insert(connection, "salts", [{"release": one.release, "salt": one.salt} for one in erased])


def hash_of_erased(rows: Sequence[tuple[int, int, str]]) -> str:
    return hashlib.sha256(json.dumps([list(row) for row in rows]).encode("ascii")).hexdigest()
