"""Cache of the ledger records that a process has read.

The privacy loss of a history does not depend on its order, so people with the same multiset of (query, output) pairs
share every decision. A history is identified by its fingerprint: the sum of random 128-bit tokens, one per pair. Each
process draws its own tokens, so queries cannot be chosen to make histories collide.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints, Positions, Words
from skldp._documents import read_json
from skldp.accounting._query import Query, charge_parts, query_from_json
from skldp.accounting._units import nats_of_sums, saturated_sum
from skldp.accounting.ledger._lock_file import EMPTY
from skldp.accounting.ledger._records import (
    DAMAGED,
    DAMAGES,
    ChainLink,
    Connection,
    Digest,
    History,
    RecordedRelease,
    hash_of_erased,
)
from skldp.accounting.losses._cohorts import AnswerTable, BoxTable
from skldp.exceptions import LedgerError
from skldp.laws._person_ids import Identity

Fingerprint = tuple[int, int]
_ROWS_AT_ONCE = 200_000
_READ_ERASURES = "SELECT release, person, erasure, digest FROM erasures ORDER BY erasure, release"
_RELEASES = """SELECT q.key, r.release, r.query, r.time, r.asked, r.answered, r.served, r.refused, r.people,
                      r.tenant, r.call, r.request, r.digest, s.salt, r.chain
               FROM releases r LEFT JOIN queries q ON q.query = r.query
                    LEFT JOIN recorded_salts s ON s.release = r.release
               WHERE r.release > :after AND r.release <= :until ORDER BY r.release"""
_ANSWERS = """SELECT release, person, output FROM recorded WHERE release > :after AND release <= :until
              ORDER BY release, person"""
_PEOPLE = "SELECT person, identity FROM people WHERE person >= :first ORDER BY person"
_QUERIES = "SELECT query, key, content FROM queries WHERE query >= :first ORDER BY query"
Block = tuple[int, Ints, Ints]


class _Erasures:
    """Erased answers: their number and the digest of the remaining ones by release, and the rows of each erasure."""

    def __init__(self, rows: Sequence[tuple[int, int, int, str]]) -> None:
        self.number = Counter(release for release, *_ in rows)
        self.digest = {release: digest for release, _, _, digest in rows}
        self.rows: dict[int, list[tuple[int, int, str]]] = {}
        for release, person, erasure, digest in rows:
            self.rows.setdefault(erasure, []).append((release, person, digest))


class LedgerCache:
    """Cache of a ledger's people, queries and histories."""

    def __init__(self) -> None:
        self.number_of: dict[Identity, int] = {}
        self.queries: list[Query] = []
        self.query_number: dict[str, int] = {}
        self.release, self.chain = EMPTY
        self.n_answers = 0
        self.table: AnswerTable | None = None
        self._fingerprints = np.zeros((16, 2), dtype=np.uint64)
        self._spent = np.zeros((16, 4), dtype=np.int64)
        self._losses = np.zeros(16)
        self._certified_losses: dict[Fingerprint, float] = {}
        self._tokens: dict[str, dict[int, bytes]] = {}
        # People read before the release that adds them.
        self._unreleased_people: list[Identity] = []
        self._n_erased = 0

    def numbers(self, identities: list[Identity]) -> Ints:
        """Return the number of each person, -1 without a record."""
        kind = type(next(iter(self.number_of), identities[0] if identities else ""))
        other = next((position for position, identity in enumerate(identities) if type(identity) is not kind), None)
        if other is not None:
            raise LedgerError(
                "The ids of a ledger must be all integers or all strings, since 7 and '7' would be two people; "
                f"got a {type(identities[other]).__name__} at position {other} (counted from 0) after a "
                f"{kind.__name__}."
            )
        return np.fromiter((self.number_of.get(i, -1) for i in identities), dtype=np.int64, count=len(identities))

    def by_history(self, numbers: Ints) -> tuple[list[Fingerprint], Ints, Positions]:
        """Group people by history; return the fingerprints, one person's number of each, and each person's group."""
        # People without a record have the fingerprint 0.
        # Row -1 is always a row of zeros after the last person.
        fingerprints = self._fingerprints[numbers]
        order = np.lexsort((fingerprints[:, 1], fingerprints[:, 0]))
        ordered = fingerprints[order]
        starts = np.ones(len(order), dtype=bool)
        starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        group = np.empty(len(order), dtype=np.intp)
        group[order] = np.cumsum(starts) - 1
        return [(a, b) for a, b in ordered[starts].tolist()], numbers[order[starts]], group

    def spent_by(self, numbers: Ints) -> Ints:
        """Return each person's split sums of charges and of rho, shape (n, 4); 0 without a record."""
        return self._spent[numbers]

    def zcdp_of(self, numbers: Ints) -> Floats:
        """Return the sum of each person's zCDP rho, in nats, rounded up."""
        return nats_of_sums(self._spent[numbers, 2:])

    def add_people(self, identities: list[Identity]) -> Ints:
        first = len(self.number_of)
        self.number_of.update(zip(identities, range(first, first + len(identities)), strict=True))
        if len(self.number_of) != first + len(identities):
            raise LedgerError("The ledger is damaged: it contains a person twice.")
        needed = len(self.number_of) + 1
        if needed > len(self._fingerprints):
            more = max(needed, 2 * first) - len(self._fingerprints)
            self._fingerprints = np.concatenate([self._fingerprints, np.zeros((more, 2), dtype=np.uint64)])
            self._spent = np.concatenate([self._spent, np.zeros((more, 4), dtype=np.int64)])
            self._losses = np.concatenate([self._losses, np.zeros(more)])
        return np.arange(first, len(self.number_of))

    def add_query(self, query: Query) -> int:
        self.query_number[query.key] = len(self.queries)
        self.queries.append(query)
        return self.query_number[query.key]

    def add_answers(self, query: Query, numbers: Ints, outputs: npt.NDArray[Any]) -> None:
        """Count one release's answers, at most one per person."""
        self.n_answers += len(numbers)
        self._fingerprints[numbers] += self._query_tokens(query, outputs)
        self._spent[numbers] = saturated_sum(self._spent[numbers], charge_parts(query))
        by_table = isinstance(self.table, BoxTable) and self.table.add(query)
        self._losses[numbers] += query.epsilon if by_table else np.inf
        if self._certified_losses:
            known = [self._certified_losses.get((a, b), np.inf) for a, b in self._fingerprints[numbers].tolist()]
            self._losses[numbers] = np.minimum(self._losses[numbers], known)

    def losses_of(self, numbers: Ints) -> Floats:
        """Return a bound on each person's loss: the last certified loss plus later epsilons, or infinity."""
        return self._losses[numbers]

    def remember_certified_losses(self, query: Query, histories: list[Fingerprint], losses: Floats) -> None:
        """Store the losses that the table certified after each output of a query."""
        known = np.flatnonzero(np.isfinite(losses).all(axis=1))
        if not len(known):
            return
        before = np.array(histories, dtype=np.uint64).reshape(-1, 1, 2)[known]
        after = (before + self._query_tokens(query, np.arange(losses.shape[1]))).reshape(-1, 2)
        self._certified_losses = {
            (a, b): loss for (a, b), loss in zip(after.tolist(), losses[known].ravel(), strict=True)
        }

    def answers_of(self, histories: Iterable[History]) -> list[tuple[list[Query], list[int]]]:
        return [([self.queries[number] for number in numbers], outputs) for numbers, outputs in histories]

    def add_release(self, release: RecordedRelease, query: Query, chain: str) -> None:
        """Add a release of this process; discard the cache if its commit fails."""
        if query.key not in self.query_number:
            self.add_query(query)
        self.add_people(release.new_people)
        self.add_answers(query, release.numbers, release.outputs)
        self.release, self.chain = release.number, chain

    def catch_up(self, connection: Connection, *, until: int | None = None) -> None:
        """Read all new records, within a transaction, and check them by the chain."""
        try:
            self._read_new(connection, until)
        except DAMAGES as error:
            raise LedgerError(DAMAGED) from error

    def _read_new(self, connection: Connection, until: int | None) -> None:
        erased = connection.execute(_READ_ERASURES).fetchall()
        if self.release and len(erased) != self._n_erased:
            # The cache may contain answers that were erased since.
            vars(self).update(vars(LedgerCache()))
        self._n_erased, erasures = len(erased), _Erasures(erased)
        people = connection.execute(_PEOPLE, {"first": len(self.number_of)}).fetchall()
        if people:
            if people[-1][0] != len(self.number_of) + len(people) - 1:
                raise LedgerError("The ledger is damaged: a person is missing.")
            identities = read_json(f"[{','.join(identity for _, identity in people)}]")
            self._unreleased_people += identities
            self.add_people(identities)
        self.read_queries(connection)
        self._read_releases(connection, 2**62 if until is None else until, erasures)
        if until is None and max(erasures.rows, default=0) > self.release:
            raise LedgerError("The ledger is damaged: answers are erased by a release that is missing.")
        if until is None and self._unreleased_people:
            raise LedgerError("The ledger is damaged: it lists a person without a release.")

    def read_queries(self, connection: Connection) -> None:
        """Read the new queries, within :func:`damage`."""
        for number, key, content in connection.execute(_QUERIES, {"first": len(self.queries)}):
            query = _recorded_query(number, content)
            if query.key != key or self.add_query(query) != number:
                raise LedgerError(f"The ledger is damaged: query {number} does not match its key.")

    def _read_releases(self, connection: Connection, until: int, erasures: _Erasures) -> None:
        span = {"after": self.release, "until": until}
        blocks = _blocks(connection.execute(_ANSWERS, span))
        block = next(blocks, None)
        for *row, salt, chained in connection.execute(_RELEASES, span).fetchall():
            _, release, query_number, _, _, missing, _, _, n_people, _, _, request, digest = row
            if release != self.release + 1 or (block is not None and block[0] < release):
                raise LedgerError(f"The ledger is damaged: release {self.release + 1} is missing.")
            n_new = n_people - len(self.number_of) + len(self._unreleased_people)
            link = ChainLink(self.chain, row, self._unreleased_people[:n_new])
            found = Digest(salt or "")
            missing -= erasures.number[release]
            while block is not None and block[0] == release:
                _, people, outputs = block
                query = self.queries[query_number]
                if people[0] < 0 or people[-1] >= len(self.number_of):
                    raise LedgerError(f"The ledger is damaged: release {release} has answers of unknown people.")
                if outputs.min() < 0 or outputs.max() >= query.n_outputs:
                    raise LedgerError(f"The ledger is damaged: release {release} has an impossible output.")
                self.add_answers(query, people, outputs)
                found.add(people, outputs)
                missing -= len(people)
                block = next(blocks, None)
            if missing:
                raise LedgerError("The ledger is damaged: a release does not have its recorded number of answers.")
            if n_new < 0 or link.value != chained or erasures.digest.get(release, digest) != found.value:
                raise LedgerError(f"The ledger is damaged: release {release} does not match its hash.")
            if release in erasures.rows and hash_of_erased(erasures.rows[release]) != request:
                raise LedgerError(f"The ledger is damaged: the rows erased by release {release} do not match its hash.")
            del self._unreleased_people[:n_new]
            self.release, self.chain = release, chained
        if block is not None:
            raise LedgerError(f"The ledger is damaged: release {block[0]} is missing.")

    def _query_tokens(self, query: Query, outputs: npt.NDArray[Any]) -> Words:
        """Return the tokens of some outputs of a query, shape (n, 2)."""
        tokens = self._tokens.setdefault(query.key, {})
        found, place = np.unique(outputs, return_inverse=True)
        words = b"".join(tokens.setdefault(one, os.urandom(16)) for one in found.tolist())
        drawn: Words = np.frombuffer(words, dtype=np.uint64).reshape(-1, 2)
        return drawn[place.reshape(-1)]


def _recorded_query(number: int, content: str) -> Query:
    try:
        return query_from_json(content)
    except ValueError as error:
        raise LedgerError(f"The ledger is damaged: query {number} is invalid. {error}") from error


def _blocks(answers: Any) -> Iterator[Block]:
    """Yield the number, people and outputs of each release."""
    while rows := answers.fetchmany(_ROWS_AT_ONCE):
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=3 * len(rows))
        release, person, output = flat.reshape(-1, 3).T
        starts = np.flatnonzero(np.diff(release, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(release)], strict=True):
            yield int(release[start]), person[start:end], output[start:end]
