"""What one process has read of a ledger.

The order of a person's answers does not matter to their privacy loss, so that people with the same multiset of
(query, output) pairs share every decision. A history is therefore known by its fingerprint: the sum of random
128-bit tokens, one per pair, which adds up whole columns of people at once. The tokens are drawn anew in every
process, so that nobody can choose queries whose histories collide.
"""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import added
from skldp.accounting._extrema.linear_cohort import LinearTable
from skldp.accounting._ledger.companion import EMPTY
from skldp.accounting._ledger.erasures import Erasures
from skldp.accounting._ledger.identity import Identity
from skldp.accounting._ledger.records import Digest, History, Link, Release, damage, recorded_histories
from skldp.accounting._ledger.schema import Connection, Rows
from skldp.accounting._query import Query, ReleaseQuery, query_from_json
from skldp.accounting._units import nats_of_sums
from skldp.exceptions import LedgerError

if TYPE_CHECKING:
    from skldp.accounting._extrema.point_cohort import PointTable

__all__ = ["Fingerprint", "LedgerBook", "group_rows"]

Fingerprint = tuple[int, int]
_ROWS_AT_ONCE = 200_000
# Of queries with more outputs, those that occur alone have tokens.
_MOST_TABLED = 4096
_NO_ANSWER = np.iinfo(np.int16).min
# What is kept of everybody's answers in memory, in bytes: beyond, histories are read from the store.
_MOST_KEPT = 1 << 28
_RELEASES = """SELECT q.key, r.release, r.query, r.time, r.asked, r.answered, r.served, r.refused, r.people,
                      r.tenant, r.call, r.request, r.digest, s.salt, r.chain
               FROM releases r LEFT JOIN queries q ON q.query = r.query
                    LEFT JOIN recorded_salts s ON s.release = r.release
               WHERE r.release > :after AND r.release <= :until ORDER BY r.release"""
_ANSWERS = """SELECT release, person, output FROM recorded WHERE release > :after AND release <= :until
              ORDER BY release, person"""
_PEOPLE = "SELECT person, identity FROM people WHERE person >= :first ORDER BY person"
_QUERIES = "SELECT query, key, content FROM queries WHERE query >= :first ORDER BY query"
Block = tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]


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
        self._losses = np.zeros(16)
        self._foreseen: dict[Fingerprint, float] = {}
        # Everybody's outputs, a column for each time that answers were added.
        self._columns: list[tuple[int, npt.NDArray[np.int16]]] = []
        self._keeps_answers = True
        self._tokens: dict[str, npt.NDArray[np.uint64]] = {}
        self._rare_tokens: dict[str, dict[int, bytes]] = {}
        # People who were read already, but who are new with a release that was not.
        self._ahead: list[Identity] = []
        self._n_erased = 0
        self._some_untold = False

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

    def zcdp_of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """What each person's zero-concentrated privacy adds up to, in nats and rounded up."""
        return nats_of_sums(self._spent[numbers, 2:])

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
            self._losses = np.concatenate([self._losses, np.zeros(more)])
        return np.arange(first, len(self.number_of))

    def add_query(self, query: Query) -> int:
        """Give a new query the next number."""
        self.query_number[query.key] = len(self.queries)
        self.queries.append(query)
        return self.query_number[query.key]

    def add_answers(self, query: Query, numbers: npt.NDArray[np.int64], outputs: npt.NDArray[Any]) -> None:
        """Count one release's answers; nobody is in it twice."""
        self._fingerprints[numbers] += self._query_tokens(query, outputs)
        self._spent[numbers] = added(self._spent[numbers], query)
        by_table = isinstance(self.table, LinearTable) and self.table.add(query)
        self._losses[numbers] += query.epsilon if by_table else np.inf
        if self._foreseen:
            known = [self._foreseen.get((a, b), np.inf) for a, b in self._fingerprints[numbers].tolist()]
            self._losses[numbers] = np.minimum(self._losses[numbers], known)
        self.n_answers += len(numbers)
        self._keep_answers(query, numbers, outputs)

    def losses_of(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Bounds on what each person has lost, up to rounding; infinite where the table does not know all answers.

        What the table has certified last, and epsilons since then.
        """
        return self._losses[numbers]

    def foresee(self, query: Query, histories: list[Fingerprint], losses: npt.NDArray[np.float64]) -> None:
        """Take down what the table has certified of histories after each output of a query, in place of others."""
        known = np.flatnonzero(np.isfinite(losses).all(axis=1))
        if not len(known):
            return
        before = np.array(histories, dtype=np.uint64).reshape(-1, 1, 2)[known]
        after = (before + self._query_tokens(query, np.arange(losses.shape[1]))).reshape(-1, 2)
        self._foreseen = {(a, b): loss for (a, b), loss in zip(after.tolist(), losses[known].ravel(), strict=True)}

    def histories_of(self, connection: Connection, members: dict[Fingerprint, int]) -> dict[Fingerprint, History]:
        """Query numbers and outputs of some people, named by their fingerprints, of what was read so far."""
        if not self._keeps_answers or not members:
            return recorded_histories(connection, members, self.release)
        numbers = np.array(list(members.values()), dtype=np.int64)
        asked = np.array([query for query, _ in self._columns], dtype=np.int64)
        given = np.full((len(numbers), len(asked)), _NO_ANSWER, dtype=np.int16)
        for place, (_, outputs) in enumerate(self._columns):
            known = np.flatnonzero((numbers >= 0) & (numbers < len(outputs)))
            given[known, place] = outputs[numbers[known]]
        rows, columns = np.nonzero(given != _NO_ANSWER)
        queries, answers = asked[columns].tolist(), given[rows, columns].tolist()
        ends = pairwise(np.searchsorted(rows, np.arange(len(numbers) + 1)).tolist())
        return {
            history: (queries[first:last], answers[first:last])
            for history, (first, last) in zip(members, ends, strict=True)
        }

    def _keep_answers(self, query: Query, numbers: npt.NDArray[np.int64], outputs: npt.NDArray[Any]) -> None:
        n_kept = sum(len(column) for _, column in self._columns) + len(self.number_of)
        if 2 * n_kept > _MOST_KEPT or query.n_outputs > np.iinfo(np.int16).max:
            self._keeps_answers, self._columns = False, []
        if self._keeps_answers:
            column = np.full(len(self.number_of), _NO_ANSWER, dtype=np.int16)
            column[numbers] = outputs
            self._columns.append((self.query_number[query.key], column))

    @property
    def some_are_untold(self) -> bool:
        """Whether there are answers of which only that they were given is known, because others asked for them."""
        return self._some_untold

    def counted(self, histories: Sequence[History]) -> tuple[list[Query], list[History]]:
        """The queries, and the histories by their positions, with each answer that is not told at its full cost."""
        if not self._some_untold:
            return self.queries, list(histories)
        queries = [*self.queries, *(ReleaseQuery.in_place_of(query) for query in self.queries)]
        shift = len(self.queries)
        return queries, [
            (
                [number + shift * (output < 0) for number, output in zip(numbers, outputs, strict=True)],
                [max(output, 0) for output in outputs],
            )
            for numbers, outputs in histories
        ]

    def answers_of(self, histories: Sequence[History]) -> list[tuple[list[Query], list[int]]]:
        """The same with the queries themselves."""
        queries, counted = self.counted(histories)
        return [([queries[number] for number in numbers], outputs) for numbers, outputs in counted]

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
            erasures = Erasures.read(connection)
            if self.release and len(erasures) != self._n_erased:
                # Answers that were read before are no more: what they have cost is a release of its own.
                vars(self).update(vars(LedgerBook()))
            self._n_erased = len(erasures)
            people = connection.execute(_PEOPLE, {"first": len(self.number_of)}).fetchall()
            if people:
                if people[-1][0] != len(self.number_of) + len(people) - 1:
                    raise LedgerError("The ledger is damaged: a person is missing.")
                identities = json.loads(f"[{','.join(identity for _, identity in people)}]")
                self._ahead += identities
                self.add_people(identities)
            self.read_queries(connection)
            self._read_releases(connection, 2**62 if until is None else until, erasures)
            if until is None and erasures.last > self.release:
                raise LedgerError("The ledger is damaged: answers are erased by a release that is missing.")
            if until is None and self._ahead:
                raise LedgerError("The ledger is damaged: somebody is in it who was never asked.")

    def read_queries(self, connection: Connection) -> None:
        """Read the new queries alone."""
        with damage():
            for number, key, content in connection.execute(_QUERIES, {"first": len(self.queries)}):
                query = _recorded_query(number, content)
                if query.key != key or self.add_query(query) != number:
                    raise LedgerError(f"The ledger is damaged: query {number} is not what was asked.")

    def _read_releases(self, connection: Connection, until: int, erasures: Erasures) -> None:
        span = {"after": self.release, "until": until}
        blocks = _blocks(connection.execute(_ANSWERS, span))
        block = next(blocks, None)
        for *row, salt, chained in connection.execute(_RELEASES, span).fetchall():
            _, release, query_number, _, _, missing, _, _, n_people, _, _, request, digest = row
            if release != self.release + 1 or (block is not None and block[0] < release):
                raise LedgerError(f"The ledger is damaged: release {self.release + 1} is missing.")
            n_new = n_people - len(self.number_of) + len(self._ahead)
            # Version 2 of the schema had nothing more to say of a release, and hashed the answers themselves.
            link = Link(self.chain, row[:9] if digest is None else row, self._ahead[:n_new])
            told = link if digest is None else Digest(salt or "")
            untold = digest is not None and salt is None
            missing -= erasures.n_of(release)
            while block is not None and block[0] == release:
                _, people, outputs = block
                query = self.queries[query_number]
                if people[0] < 0 or people[-1] >= len(self.number_of):
                    raise LedgerError(f"The ledger is damaged: release {release} has answers of nobody.")
                if outputs.min() < -untold or outputs.max() >= (0 if untold else query.n_outputs):
                    raise LedgerError(f"The ledger is damaged: release {release} has an impossible output.")
                self.add_answers(query, people, outputs)
                told.add(people, outputs)
                self._some_untold |= untold
                missing -= len(people)
                block = next(blocks, None)
            if missing:
                raise LedgerError("The ledger is damaged: a release has not the number of answers that was recorded.")
            digest = erasures.digest_of(release, digest)
            if n_new < 0 or link.value != chained or not (untold or digest in (None, told.value)):
                raise LedgerError(f"The ledger is damaged: release {release} is not what was recorded.")
            if not erasures.are_those_of(release, request):
                raise LedgerError(f"The ledger is damaged: what release {release} erased is not what was recorded.")
            del self._ahead[:n_new]
            self.release, self.chain = release, chained
        if block is not None:
            raise LedgerError(f"The ledger is damaged: release {block[0]} is missing.")

    def _query_tokens(self, query: Query, outputs: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """A token for each of some outputs of a query, shape (n, 2)."""
        if query.n_outputs > _MOST_TABLED:
            tokens = self._rare_tokens.setdefault(query.key, {})
            found, place = np.unique(outputs, return_inverse=True)
            words = b"".join(tokens.setdefault(one, os.urandom(16)) for one in found.tolist())
            drawn: npt.NDArray[np.uint64] = np.frombuffer(bytearray(words), dtype=np.uint64).reshape(-1, 2)
            return drawn[place.reshape(-1)]
        if query.key not in self._tokens:
            # The last one is for an output that is not told.
            words = os.urandom(16 * (query.n_outputs + 1))
            self._tokens[query.key] = np.frombuffer(words, dtype=np.uint64).reshape(-1, 2)
        known: npt.NDArray[np.uint64] = self._tokens[query.key][outputs]
        return known


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
