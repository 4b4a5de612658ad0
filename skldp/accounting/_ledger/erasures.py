"""Answers that are erased: what they have cost stays, as a release in their place.

An erasure is a release of one person that costs as much as the erased answers have. The rows that it removed are
listed with a new digest of what each release still has, under a new salt, since whoever knew the old salt could try
which answer gives the old digest.
"""

import hashlib
import json
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from skldp.accounting._ledger.records import WRITE_SALT, Digest, damage
from skldp.accounting._ledger.schema import Connection
from skldp.exceptions import LedgerError

__all__ = ["Erased", "Erasures", "erasable", "erase_rows"]

_READ = "SELECT release, person, erasure, digest FROM erasures ORDER BY erasure, release"
_OF_PERSON = """SELECT r.release, r.digest FROM releases r CROSS JOIN recorded a
                WHERE a.release = r.release AND a.person = :person AND r.answered > 0 ORDER BY r.release"""
_OTHERS = "SELECT person, output FROM recorded WHERE release = :release AND person <> :person ORDER BY person"
_WRITE = "INSERT INTO erasures (release, person, erasure, digest) VALUES (:release, :person, :erasure, :digest)"
_ERASE_ANSWER = "DELETE FROM answers WHERE release = :release AND person = :person"
_ERASE_KEPT = "DELETE FROM kept WHERE release = :release AND person = :person"
_ERASE_SALT = "DELETE FROM salts WHERE release = :release"


class Erased(NamedTuple):
    """One answer that goes: its release and person, and the digest, with its salt, of what the release still has."""

    release: int
    person: int
    digest: str
    salt: str


class Erasures:
    """All that was ever erased from a ledger.

    Parameters
    ----------
    rows : sequence of tuple (release, person, erasure, digest)
        In the order of erasures.
    """

    def __init__(self, rows: Sequence[tuple[int, int, int, str]]) -> None:
        self._number: dict[int, int] = {}
        self._digest: dict[int, str] = {}
        self._by_erasure: dict[int, list[tuple[int, int, str]]] = {}
        for release, person, erasure, digest in rows:
            self._number[release] = self._number.get(release, 0) + 1
            self._digest[release] = digest
            self._by_erasure.setdefault(erasure, []).append((release, person, digest))

    @classmethod
    def read(cls, connection: Connection) -> "Erasures":
        """Read them within a transaction of the caller."""
        return cls(connection.execute(_READ).fetchall())

    def __len__(self) -> int:
        return sum(self._number.values())

    @property
    def last(self) -> int:
        """The last release that erased something."""
        return max(self._by_erasure, default=0)

    def n_of(self, release: int) -> int:
        """How many answers a release has lost."""
        return self._number.get(release, 0)

    def digest_of(self, release: int, before: str | None) -> str | None:
        """The digest of what a release still has."""
        return self._digest.get(release, before)

    def are_those_of(self, release: int, request: str | None) -> bool:
        """Whether what a release erased, if it erased something, is what its chain has counted in."""
        rows = self._by_erasure.get(release)
        return rows is None or _hash(rows) == request


def erasable(connection: Connection, person: int) -> tuple[list[Erased], str]:
    """What is to be erased of a person, and its hash for the chain.

    Raises
    ------
    LedgerError
        If an answer was recorded before version 3 of the schema, in a chain that whoever has it can try answers on.
    """
    erased = []
    with damage():
        for release, digest in connection.execute(_OF_PERSON, {"person": person}).fetchall():
            if digest is None:
                raise LedgerError(
                    f"Release {release} was recorded by an earlier skldp, whose chain tells of answers to whoever "
                    "tries them: erased, they could be guessed from it. Destroy that ledger instead."
                )
            salt = secrets.token_hex(16)
            rest = Digest(salt)
            others = connection.execute(_OTHERS, {"release": release, "person": person}).fetchall()
            if others:
                rest.add(*zip(*others, strict=True))
            erased.append(Erased(release, person, rest.value, salt))
    return erased, _hash([(one.release, one.person, one.digest) for one in erased])


def erase_rows(connection: Connection, erased: Sequence[Erased], erasure: int) -> None:
    """Erase them, after the release that says so was written."""
    rows = [one._asdict() | {"erasure": erasure} for one in erased]
    connection.executemany(_WRITE, rows)
    connection.executemany(_ERASE_ANSWER, rows)
    connection.executemany(_ERASE_KEPT, rows)
    connection.executemany(_ERASE_SALT, rows)
    connection.executemany(WRITE_SALT, rows)


def _hash(rows: Sequence[tuple[int, int, str]]) -> str:
    return hashlib.sha256(json.dumps([list(row) for row in rows]).encode("ascii")).hexdigest()
