"""Reading and writing the rows of a ledger, within a transaction of the caller."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._ledger.companion import Link
from skldp.accounting._ledger.identity import Identity
from skldp.accounting._query import Query
from skldp.exceptions import LedgerError

__all__ = ["History", "Release", "damage", "recorded_history", "recorded_outputs", "timed_history", "write_release"]

History = tuple[list[int], list[int]]
# Few releases, each looked up by its key: a person's answers need no index of their own.
_HISTORY = """SELECT r.release, r.time, r.query, a.output FROM releases r CROSS JOIN answers a
              ON a.release = r.release AND a.person = ? WHERE r.answered > 0 AND r.release <= ? ORDER BY r.release"""
_OUTPUTS = """SELECT a.person, a.output FROM releases r CROSS JOIN answers a ON a.release = r.release
              WHERE r.query = ? AND r.answered > 0 AND a.person BETWEEN ? AND ? ORDER BY r.release"""


@contextmanager
def damage() -> Iterator[None]:
    """Say of what no ledger writes, and no code expects, that it is damage."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError("The ledger is damaged: something is in it that no ledger writes.") from error


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


def timed_history(connection: sqlite3.Connection, person: int, until: int) -> list[tuple[int, str, int, int]]:
    """One person's answers as (release, time, query number, output), up to a release."""
    rows = connection.execute(_HISTORY, (person, until)).fetchall()
    if any(type(query) is not int or type(output) is not int for _, _, query, output in rows):
        raise LedgerError("The ledger is damaged: an answer is not what was recorded.")
    return rows


def recorded_history(connection: sqlite3.Connection, person: int, until: int) -> History:
    """One person's query numbers and outputs, up to a release."""
    rows = timed_history(connection, person, until)
    return [query for _, _, query, _ in rows], [output for _, _, _, output in rows]


def recorded_outputs(connection: sqlite3.Connection, query: int, people: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Each person's last output of a query, -1 where there is none."""
    recorded = np.full(len(people), -1, dtype=np.int64)
    known = np.flatnonzero(people >= 0)
    if not known.size:
        return recorded
    low, high = int(people[known].min()), int(people[known].max())
    rows = connection.execute(_OUTPUTS, (query, low, high)).fetchall()
    if rows:
        with damage():
            person, output = np.array(rows, dtype=np.int64).T
        last = np.full(high - low + 1, -1, dtype=np.int64)
        last[person - low] = output
        recorded[known] = last[people[known] - low]
    return recorded


def write_release(connection: sqlite3.Connection, release: Release, query: Query, *, n_people: int, chain: str) -> str:
    """Write a release, and the query and the people that are new with it.

    Parameters
    ----------
    connection : sqlite3.Connection
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
    if not connection.execute("SELECT 1 FROM queries WHERE query = ?", (release.query_number,)).fetchall():
        content = (release.query_number, query.key, query.to_json())
        connection.execute("INSERT INTO queries VALUES (?, ?, ?)", content)
    connection.executemany("INSERT INTO people VALUES (?, ?)", enumerate(release.new_people, start=n_people))
    # In the order of the key, so that SQLite appends.
    order = np.argsort(release.numbers)
    numbers, outputs = release.numbers[order], release.outputs[order]
    counts = (release.asked, len(numbers), release.served, release.refused, n_people + len(release.new_people))
    row = (release.number, release.query_number, datetime.now(UTC).isoformat(timespec="seconds"), *counts)
    link = Link(chain, [query.key, *row], release.new_people)
    link.add(numbers, outputs)
    connection.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, link.chain))
    rows = zip(repeat(release.number), numbers.tolist(), outputs.tolist(), strict=False)
    connection.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)
    return link.chain
