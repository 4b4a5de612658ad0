"""The rows of a ledger: releases written and chained, and what was recorded of a person, a query or a call."""

import hashlib
import json
import secrets
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from skldp.accounting._ledger.identity import Identity
from skldp.accounting._ledger.schema import Connection
from skldp.accounting._query import Query
from skldp.exceptions import LedgerError

__all__ = [
    "WRITE_SALT",
    "Digest",
    "History",
    "Link",
    "Release",
    "damage",
    "recorded_call",
    "recorded_histories",
    "recorded_history",
    "recorded_outputs",
    "recorded_rows",
    "timed_history",
    "who_answered",
    "write_release",
]

History = tuple[list[int], list[int]]
Key = TypeVar("Key", bound=Hashable)
# Few releases, each looked up by its key: a person's answers need no index of their own.
_HISTORY = """SELECT r.release, r.time, r.query, a.output FROM releases r CROSS JOIN recorded a
              WHERE a.release = r.release AND a.person = :person AND r.answered > 0 AND r.release <= :until
              ORDER BY r.release"""
_HISTORIES = """SELECT a.person, r.query, a.output FROM releases r CROSS JOIN recorded a
                WHERE a.release = r.release AND a.person BETWEEN :low AND :high AND r.answered > 0
                AND r.release <= :until ORDER BY r.release, a.person"""
# One statement for all, where one in so many of those between is wanted.
_DENSE = 4
_OUTPUTS = """SELECT a.person, a.output FROM releases r CROSS JOIN recorded a
              WHERE a.release = r.release AND r.query = :query AND r.tenant = :tenant AND r.answered > 0
              AND r.release <= :until AND a.person BETWEEN :low AND :high ORDER BY r.release"""
_OF_CALL = "SELECT release, request FROM releases WHERE tenant = :tenant AND call = :mark"
_ANSWERED = "SELECT person FROM recorded WHERE release = :release"
_WRITE_QUERY = "INSERT INTO queries (query, key, content) VALUES (:query, :key, :content)"
_WRITE_PERSON = "INSERT INTO people (person, identity) VALUES (:person, :identity)"
_WRITE_ANSWER = "INSERT INTO answers (release, person, output) VALUES (:release, :person, :output)"
_KEPT = "SELECT person, sealed FROM recorded_rows WHERE release = :release"
_WRITE_KEPT = "INSERT INTO kept (release, person, sealed) VALUES (:release, :person, :sealed)"
WRITE_SALT = "INSERT INTO salts (release, salt) VALUES (:release, :salt)"
# In the order in which the chain counts them in.
_COLUMNS = (
    "release", "query", "time", "asked", "answered", "served", "refused", "people",
    "tenant", "call", "request", "digest",
)  # fmt: skip
_WRITE_RELEASE = (
    f"INSERT INTO releases ({', '.join(_COLUMNS)}, chain) VALUES ({', '.join(f':{name}' for name in _COLUMNS)}, :chain)"
)


@contextmanager
def damage() -> Iterator[None]:
    """Say of what no ledger writes, and no code expects, that it is damage."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError("The ledger is damaged: something is in it that no ledger writes.") from error


class Digest:
    """What was answered in a release, as a hash that tells nothing without its salt.

    Parameters
    ----------
    salt : str
        Random bytes, in hexadecimal digits.

    Examples
    --------
    >>> from skldp.accounting._ledger.records import Digest
    >>> one, two = Digest("00"), Digest("01")
    >>> one.add([0], [1]), two.add([0], [1])
    (None, None)
    >>> one.value == two.value
    False
    """

    def __init__(self, salt: str) -> None:
        self._hash = hashlib.sha256(bytes.fromhex(salt))

    def add(self, numbers: npt.ArrayLike, outputs: npt.ArrayLike) -> None:
        """Count in the next answers, in the order of the people's numbers."""
        self._hash.update(np.column_stack([numbers, outputs]).astype("<i8").tobytes())

    @property
    def value(self) -> str:
        """The hash of what was counted in."""
        return self._hash.hexdigest()


class Link(Digest):
    """One release on its way into the chain, with its digest, or before version 3 of the schema with its answers.

    Parameters
    ----------
    previous : str
        The hash of all releases before.
    entry : sequence of int and str
        The release itself: the key of its query, and its row of the table.
    identities : sequence of int or str
        The people who are new with it.

    Examples
    --------
    >>> from skldp.accounting._ledger.records import Link
    >>> one, two = (Link("0" * 64, [1, "key"], ["ann"]) for _ in range(2))
    >>> one.add([0], [1])
    >>> two.add([0], [0])
    >>> one.value == two.value
    False
    """

    def __init__(self, previous: str, entry: Sequence[int | str | None], identities: Sequence[Identity]) -> None:
        # JSON in ASCII is the same on every version of Python.
        head = json.dumps([previous, list(entry), list(identities)])
        self._hash = hashlib.sha256(head.encode("ascii"))


@dataclass(frozen=True)
class Release:
    """What one call adds to a ledger.

    Attributes
    ----------
    number : int
    query_number : int
    asked, served : int
        How many people were asked, and how many of them were handed an earlier answer again.
    refused : int
    new_people : list
        The identities of people who were not known; their numbers follow the known ones.
    numbers, outputs : ndarray of int
        Who answered, and what.
    mark, request : str
        Those of the call.
    sealed : list of str, default=()
        The released rows of those who answered, where they are kept.
    """

    number: int
    query_number: int
    asked: int
    served: int
    refused: int
    new_people: list[Identity]
    numbers: npt.NDArray[np.int64]
    outputs: npt.NDArray[np.int64]
    mark: str
    request: str
    sealed: Sequence[str] = ()


def write_release(
    connection: Connection, release: Release, query: Query, *, n_people: int, chain: str, tenant: str
) -> str:
    """Write a release, and the query and the people that are new with it.

    Parameters
    ----------
    connection : Connection
    release : Release
    query : RegressionQuery or FiniteQuery
    n_people : int
        How many people are known, not counting the new ones.
    chain : str
        The hash of all releases before.
    tenant : str
        Who asks.

    Returns
    -------
    str
        The hash of this one and of all before.
    """
    number = {"query": release.query_number}
    if not connection.execute("SELECT 1 FROM queries WHERE query = :query", number).fetchall():
        connection.execute(_WRITE_QUERY, number | {"key": query.key, "content": query.to_json()})
    people = enumerate(map(json.dumps, release.new_people), start=n_people)
    connection.executemany(_WRITE_PERSON, [{"person": person, "identity": identity} for person, identity in people])
    # In the order of the key, so that SQLite appends.
    order = np.argsort(release.numbers)
    numbers, outputs = release.numbers[order], release.outputs[order]
    salt = secrets.token_hex(16)
    digest = Digest(salt)
    digest.add(numbers, outputs)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    counts = (release.asked, len(numbers), release.served, release.refused, n_people + len(release.new_people))
    entry = (release.number, release.query_number, time, *counts, tenant, release.mark, release.request, digest.value)
    link = Link(chain, [query.key, *entry], release.new_people)
    connection.execute(_WRITE_RELEASE, dict(zip(_COLUMNS, entry, strict=True)) | {"chain": link.value})
    connection.execute(WRITE_SALT, {"release": release.number, "salt": salt})
    answers = zip(numbers.tolist(), outputs.tolist(), strict=True)
    rows = [{"release": release.number, "person": person, "output": output} for person, output in answers]
    connection.executemany(_WRITE_ANSWER, rows)
    kept = zip(release.numbers.tolist(), release.sealed, strict=True) if release.sealed else ()
    rows = [{"release": release.number, "person": person, "sealed": sealed} for person, sealed in kept]
    connection.executemany(_WRITE_KEPT, rows)
    return link.value


def timed_history(connection: Connection, person: int, until: int) -> list[tuple[int, str, int, int]]:
    """One person's answers as (release, time, query number, output), up to a release."""
    rows = connection.execute(_HISTORY, {"person": person, "until": until}).fetchall()
    for _, _, query, output in rows:
        _check_answer(query, output)
    return rows


def _check_answer(query: Any, output: Any) -> None:
    if type(query) is not int or type(output) is not int:
        raise LedgerError("The ledger is damaged: an answer is not what was recorded.")


def recorded_history(connection: Connection, person: int, until: int) -> History:
    """One person's query numbers and outputs, up to a release."""
    rows = timed_history(connection, person, until)
    return [query for _, _, query, _ in rows], [output for _, _, _, output in rows]


def recorded_histories(connection: Connection, members: Mapping[Key, int], until: int) -> dict[Key, History]:
    """What :func:`recorded_history` gives for each of some people, named by any key.

    Where they are many of those numbered from the first to the last of them, one statement reads them all, which a
    server far away answers at once.
    """
    known = {number for number in members.values() if number >= 0}
    low, high = min(known, default=0), max(known, default=0)
    if len(known) < 2 or _DENSE * len(known) < high - low + 1:
        return {key: recorded_history(connection, number, until) for key, number in members.items()}
    histories: dict[int, History] = {number: ([], []) for number in members.values()}
    with damage():
        for person, query, output in connection.execute(_HISTORIES, {"low": low, "high": high, "until": until}):
            if person in known:
                _check_answer(query, output)
                histories[person][0].append(query)
                histories[person][1].append(output)
    return {key: histories[number] for key, number in members.items()}


def recorded_outputs(
    connection: Connection, query: int | None, people: npt.NDArray[np.int64], *, tenant: str, until: int
) -> npt.NDArray[np.int64]:
    """Each person's last output of a tenant's query up to a release, -1 where there is none."""
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
    """The release that a call has led to, and what it asked; None where there is none."""
    found: tuple[int, str] | None = connection.execute(_OF_CALL, {"tenant": tenant, "mark": mark}).fetchone()
    return found


def who_answered(connection: Connection, release: int) -> npt.NDArray[np.int64]:
    """The numbers of those whose answers a release has."""
    with damage():
        rows = connection.execute(_ANSWERED, {"release": release}).fetchall()
        return np.array(rows, dtype=np.int64).reshape(-1)


def recorded_rows(connection: Connection, release: int) -> dict[int, str]:
    """The sealed rows that are kept of a release, by the numbers of their people."""
    with damage():
        return dict(connection.execute(_KEPT, {"release": release}).fetchall())
