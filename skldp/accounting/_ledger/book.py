"""What is recorded in a ledger: its rows, written and read, and what one process has read of them.

The order of a person's answers does not matter to their privacy loss, so that people with the same multiset of
(query, output) pairs share every decision. A history is therefore known by its fingerprint: the sum of random
128-bit tokens, one per pair, which adds up whole columns of people at once. The tokens are drawn anew in every
process, so that nobody can choose queries whose histories collide.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import added
from skldp.accounting._ledger.companion import EMPTY
from skldp.accounting._ledger.identity import Identity
from skldp.accounting._ledger.schema import Connection, Rows
from skldp.accounting._query import Query, query_from_json
from skldp.exceptions import LedgerError

if TYPE_CHECKING:
    from skldp.accounting._extrema.linear_cohort import LinearTable
    from skldp.accounting._extrema.point_cohort import PointTable

__all__ = [
    "Fingerprint",
    "History",
    "LedgerBook",
    "Link",
    "Release",
    "damage",
    "group_rows",
    "recorded_history",
    "recorded_outputs",
    "timed_history",
    "write_release",
]

Fingerprint = tuple[int, int]
_ROWS_AT_ONCE = 200_000
_RELEASES = """SELECT q.key, r.release, r.query, r.time, r.asked, r.answered, r.served, r.refused, r.people,
                      r.tenant, r.call, r.request, r.digest, s.salt, r.chain
               FROM releases r LEFT JOIN queries q ON q.query = r.query LEFT JOIN salts s ON s.release = r.release
               WHERE r.release > :after AND r.release <= :until ORDER BY r.release"""
_ANSWERS = """SELECT release, person, output FROM recorded WHERE release > :after AND release <= :until
              ORDER BY release, person"""
_PEOPLE = "SELECT person, identity FROM people WHERE person >= :first ORDER BY person"
_QUERIES = "SELECT query, key, content FROM queries WHERE query >= :first ORDER BY query"
Block = tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]
History = tuple[list[int], list[int]]
# Few releases, each looked up by its key: a person's answers need no index of their own.
_HISTORY = """SELECT r.release, r.time, r.query, a.output FROM releases r CROSS JOIN recorded a
              WHERE a.release = r.release AND a.person = :person AND r.answered > 0 AND r.release <= :until
              ORDER BY r.release"""
_OUTPUTS = """SELECT a.person, a.output FROM releases r CROSS JOIN recorded a
              WHERE a.release = r.release AND r.query = :query AND r.answered > 0
              AND a.person BETWEEN :low AND :high ORDER BY r.release"""
_WRITE_QUERY = "INSERT INTO queries (query, key, content) VALUES (:query, :key, :content)"
_WRITE_PERSON = "INSERT INTO people (person, identity) VALUES (:person, :identity)"
_WRITE_ANSWER = "INSERT INTO answers (release, person, output) VALUES (:release, :person, :output)"
_WRITE_SALT = "INSERT INTO salts (release, salt) VALUES (:release, :salt)"
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
    >>> from skldp.accounting._ledger.book import Digest
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
    >>> from skldp.accounting._ledger.book import Link
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
    """

    number: int
    query_number: int
    asked: int
    served: int
    refused: int
    new_people: list[Identity]
    numbers: npt.NDArray[np.int64]
    outputs: npt.NDArray[np.int64]


def write_release(connection: Connection, release: Release, query: Query, *, n_people: int, chain: str) -> str:
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
    entry = (release.number, release.query_number, time, *counts, "", None, None, digest.value)
    link = Link(chain, [query.key, *entry], release.new_people)
    connection.execute(_WRITE_RELEASE, dict(zip(_COLUMNS, entry, strict=True)) | {"chain": link.value})
    connection.execute(_WRITE_SALT, {"release": release.number, "salt": salt})
    answers = zip(numbers.tolist(), outputs.tolist(), strict=True)
    rows = [{"release": release.number, "person": person, "output": output} for person, output in answers]
    connection.executemany(_WRITE_ANSWER, rows)
    return link.value


def timed_history(connection: Connection, person: int, until: int) -> list[tuple[int, str, int, int]]:
    """One person's answers as (release, time, query number, output), up to a release."""
    rows = connection.execute(_HISTORY, {"person": person, "until": until}).fetchall()
    if any(type(query) is not int or type(output) is not int for _, _, query, output in rows):
        raise LedgerError("The ledger is damaged: an answer is not what was recorded.")
    return rows


def recorded_history(connection: Connection, person: int, until: int) -> History:
    """One person's query numbers and outputs, up to a release."""
    rows = timed_history(connection, person, until)
    return [query for _, _, query, _ in rows], [output for _, _, _, output in rows]


def recorded_outputs(connection: Connection, query: int | None, people: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Each person's last output of a query, -1 where there is none."""
    recorded = np.full(len(people), -1, dtype=np.int64)
    known = np.flatnonzero(people >= 0)
    if query is None or not known.size:
        return recorded
    low, high = int(people[known].min()), int(people[known].max())
    rows = connection.execute(_OUTPUTS, {"query": query, "low": low, "high": high}).fetchall()
    if rows:
        with damage():
            person, output = np.array(rows, dtype=np.int64).T
        last = np.full(high - low + 1, -1, dtype=np.int64)
        last[person - low] = output
        recorded[known] = last[people[known] - low]
    return recorded


def group_rows(fingerprints: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Group equal rows of two numbers.

    Parameters
    ----------
    fingerprints : ndarray of uint64, shape (n, 2)

    Returns
    -------
    first : ndarray of int
        The position of one member of each group.
    group : ndarray of int, shape (n,)
        The group of each row.
    """
    order = np.lexsort((fingerprints[:, 1], fingerprints[:, 0]))
    ordered = fingerprints[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.empty(len(order), dtype=np.intp)
    group[order] = np.cumsum(starts) - 1
    return order[starts], group


class LedgerBook:
    """People, queries and histories of a ledger, as far as they were read.

    Attributes
    ----------
    number_of : dict
        The number of each person, by identity; numbers count up from 0.
    queries : list of Query
        By their number in the ledger.
    release : int
        The last release that was read.
    chain : str
        The hash of all releases up to it.
    n_answers : int
    table : LinearTable or PointTable or None
        What quick decisions have worked out about queries.
    """

    def __init__(self) -> None:
        self.number_of: dict[Identity, int] = {}
        self.queries: list[Query] = []
        self.query_number: dict[str, int] = {}
        self.release, self.chain = EMPTY
        self.n_answers = 0
        self.table: LinearTable | PointTable | None = None
        self._fingerprints = np.zeros((16, 2), dtype=np.uint64)
        self._spent = np.zeros((16, 4), dtype=np.int64)
        self._tokens: dict[str, npt.NDArray[np.uint64]] = {}
        # People who were read already, but who are new with a release that was not.
        self._ahead: list[Identity] = []

    def numbers(self, identities: list[Identity]) -> npt.NDArray[np.int64]:
        """Number of each person, -1 where nothing is recorded of them.

        Raises
        ------
        LedgerError
            If these ids and those that are recorded are not all integers or all strings.
        """
        kind = type(next(iter(self.number_of), identities[0] if identities else ""))
        other = next((position for position, identity in enumerate(identities) if type(identity) is not kind), None)
        if other is not None:
            raise LedgerError(
                "The ids of a ledger are all integers or all strings, since 7 and '7' would be two people with two "
                f"budgets. Got a {type(identities[other]).__name__} at position {other} (counted from 0), and a "
                f"{kind.__name__} before."
            )
        return np.fromiter((self.number_of.get(i, -1) for i in identities), dtype=np.int64, count=len(identities))

    def fingerprints_of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """Fingerprint of each person, 0 for those of whom nothing is recorded."""
        # A row of zeros always follows the last person: -1 wraps around to one such row.
        return self._fingerprints[numbers]

    def spent_by(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Sums of each person's charges, as :func:`added` gives them; 0 where nothing is recorded."""
        return self._spent[numbers]

    def add_people(self, identities: list[Identity]) -> npt.NDArray[np.int64]:
        """Give new people the next numbers."""
        first = len(self.number_of)
        self.number_of.update(zip(identities, range(first, first + len(identities)), strict=True))
        if len(self.number_of) != first + len(identities):
            raise LedgerError("The ledger is damaged: a person is in it twice.")
        needed = len(self.number_of) + 1
        if needed > len(self._fingerprints):
            more = max(needed, 2 * first) - len(self._fingerprints)
            self._fingerprints = np.concatenate([self._fingerprints, np.zeros((more, 2), dtype=np.uint64)])
            self._spent = np.concatenate([self._spent, np.zeros((more, 4), dtype=np.int64)])
        return np.arange(first, len(self.number_of))

    def add_query(self, query: Query) -> int:
        """Give a new query the next number."""
        self.query_number[query.key] = len(self.queries)
        self.queries.append(query)
        return self.query_number[query.key]

    def add_answers(self, query: Query, numbers: npt.NDArray[np.int64], outputs: npt.NDArray[Any]) -> None:
        """Count one release's answers; nobody is in it twice."""
        self._fingerprints[numbers] += self._query_tokens(query)[outputs]
        self._spent[numbers] = added(self._spent[numbers], query)
        self.n_answers += len(numbers)

    def enter(self, release: Release, query: Query, chain: str) -> None:
        """Count a release of this process, after it was committed."""
        if query.key not in self.query_number:
            self.add_query(query)
        self.add_people(release.new_people)
        self.add_answers(query, release.numbers, release.outputs)
        self.release, self.chain = release.number, chain

    def catch_up(self, connection: Connection, *, until: int | None = None) -> None:
        """Read what was written since the last time, within a transaction of the caller, and check it by its chain.

        Parameters
        ----------
        connection : Connection
        until : int, default=None
            The last release to read; None reads them all.

        Raises
        ------
        LedgerError
            If something is not what was written.
        """
        with damage():
            people = connection.execute(_PEOPLE, {"first": len(self.number_of)}).fetchall()
            if people:
                if people[-1][0] != len(self.number_of) + len(people) - 1:
                    raise LedgerError("The ledger is damaged: a person is missing.")
                identities = json.loads(f"[{','.join(identity for _, identity in people)}]")
                self._ahead += identities
                self.add_people(identities)
            self.read_queries(connection)
            self._read_releases(connection, 2**62 if until is None else until)
            if until is None and self._ahead:
                raise LedgerError("The ledger is damaged: somebody is in it who was never asked.")

    def read_queries(self, connection: Connection) -> None:
        """Read the new queries alone."""
        with damage():
            for number, key, content in connection.execute(_QUERIES, {"first": len(self.queries)}):
                query = _recorded_query(number, content)
                if query.key != key or self.add_query(query) != number:
                    raise LedgerError(f"The ledger is damaged: query {number} is not what was asked.")

    def _read_releases(self, connection: Connection, until: int) -> None:
        span = {"after": self.release, "until": until}
        blocks = _blocks(connection.execute(_ANSWERS, span))
        block = next(blocks, None)
        for *row, salt, chained in connection.execute(_RELEASES, span).fetchall():
            _, release, query_number, _, _, missing, _, _, n_people, *_, digest = row
            if release != self.release + 1 or (block is not None and block[0] < release):
                raise LedgerError(f"The ledger is damaged: release {self.release + 1} is missing.")
            n_new = n_people - len(self.number_of) + len(self._ahead)
            # Version 2 of the schema had nothing more to say of a release, and hashed the answers themselves.
            link = Link(self.chain, row[:9] if digest is None else row, self._ahead[:n_new])
            told = link if digest is None else Digest(salt)
            while block is not None and block[0] == release:
                _, people, outputs = block
                query = self.queries[query_number]
                if people[0] < 0 or people[-1] >= len(self.number_of):
                    raise LedgerError(f"The ledger is damaged: release {release} has answers of nobody.")
                if outputs.min() < 0 or outputs.max() >= query.n_outputs:
                    raise LedgerError(f"The ledger is damaged: release {release} has an impossible output.")
                self.add_answers(query, people, outputs)
                told.add(people, outputs)
                missing -= len(people)
                block = next(blocks, None)
            if missing:
                raise LedgerError("The ledger is damaged: a release has not the number of answers that was recorded.")
            if n_new < 0 or link.value != chained or digest not in (None, told.value):
                raise LedgerError(f"The ledger is damaged: release {release} is not what was recorded.")
            del self._ahead[:n_new]
            self.release, self.chain = release, chained
        if block is not None:
            raise LedgerError(f"The ledger is damaged: release {block[0]} is missing.")

    def _query_tokens(self, query: Query) -> npt.NDArray[np.uint64]:
        if query.key not in self._tokens:
            words = np.frombuffer(os.urandom(16 * query.n_outputs), dtype=np.uint64)
            self._tokens[query.key] = words.reshape(-1, 2)
        return self._tokens[query.key]


def _recorded_query(number: int, content: str) -> Query:
    try:
        return query_from_json(content)
    except ValueError as error:
        # What an earlier version let be asked may be beyond the limits of this one: say which.
        raise LedgerError(
            f"The ledger is damaged, or of an earlier skldp with other limits: query {number} cannot be asked. {error}"
        ) from error


def _blocks(answers: Rows) -> Iterator[Block]:
    """Read answers in blocks of one release each: its number, who answered, and what."""
    while rows := answers.fetchmany(_ROWS_AT_ONCE):
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=3 * len(rows))
        release, person, output = flat.reshape(-1, 3).T
        starts = np.flatnonzero(np.diff(release, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(release)], strict=True):
            yield int(release[start]), person[start:end], output[start:end]
