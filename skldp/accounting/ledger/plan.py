"""One call to a ledger: who is asked, with which history, and who may answer."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldp.accounting.ledger.book import Fingerprint, LedgerBook, group_rows
from skldp.accounting.ledger.decisions import Rule
from skldp.accounting.ledger.entries import History, Release, recorded_history, recorded_outputs
from skldp.accounting.ledger.identity import Identity
from skldp.accounting.query import Query

__all__ = ["Draw", "LedgerAnswers", "Plan"]

Draw = Callable[[npt.NDArray[np.intp]], npt.ArrayLike]
_NO_OUTPUTS = np.zeros(0, dtype=np.int64)


def _checked_outputs(outputs: npt.ArrayLike, n: int, query: Query) -> npt.NDArray[np.int64]:
    drawn = np.asarray(outputs)
    if drawn.shape != (n,) or drawn.dtype.kind not in "iu" or ((drawn < 0) | (drawn >= query.n_outputs)).any():
        raise ValueError(
            f"draw must return {n} outputs from 0 to {query.n_outputs - 1}. Got {drawn.dtype} of shape {drawn.shape}."
        )
    return drawn.astype(np.int64)


@dataclass(frozen=True)
class LedgerAnswers:
    """What a ledger hands out, in the order of the ids.

    Attributes
    ----------
    outputs : ndarray of int
        The recorded output; -1 where the person was refused.
    fresh : ndarray of bool
        Where the output was drawn now, not handed out again.
    """

    outputs: npt.NDArray[np.int64]
    fresh: npt.NDArray[np.bool_]

    @property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """Where there is an output."""
        return self.outputs >= 0


@dataclass(frozen=True)
class Plan:
    """Everything that the decisions of one call may depend on, and nothing else: no value of anybody is in here.

    Attributes
    ----------
    book : LedgerBook
    query : RegressionQuery or FiniteQuery
    people : list
        Identities, nobody twice.
    numbers, recorded : ndarray of int, shape (n_people,)
        Their numbers (-1 where nothing is recorded of them), and the outputs that are handed out again (-1 for none).
    asked : ndarray of int
        The positions of the others, who are asked now.
    group : ndarray of int
        For each of those asked, the position of their history in `histories`.
    first : ndarray of int
        One of those asked for each history.
    histories : list of Fingerprint
    """

    book: LedgerBook
    query: Query
    people: list[Identity]
    numbers: npt.NDArray[np.int64]
    recorded: npt.NDArray[np.int64]
    asked: npt.NDArray[np.intp]
    group: npt.NDArray[np.intp]
    first: npt.NDArray[np.intp]
    histories: list[Fingerprint]

    @classmethod
    def make(
        cls, connection: sqlite3.Connection, book: LedgerBook, query: Query, people: list[Identity], *, repeat: bool
    ) -> "Plan":
        """Look up the people, in a book that was brought up to date within the same transaction."""
        numbers = book.numbers(people)
        recorded = np.full(len(people), -1, dtype=np.int64)
        if query.key in book.query_number and not repeat:
            recorded = recorded_outputs(connection, book.query_number[query.key], numbers)
        asked = np.flatnonzero(recorded < 0)
        fingerprints = book.fingerprints_of(numbers[asked])
        first, group = group_rows(fingerprints)
        histories = [(int(a), int(b)) for a, b in fingerprints[first]]
        return cls(book, query, people, numbers, recorded, asked, group, first, histories)

    def undecided(
        self, decisions: dict[Fingerprint, bool], rule: Rule, connection: sqlite3.Connection
    ) -> dict[Fingerprint, History]:
        """Add the easy decisions, and read the histories of those that need a certified loss."""
        needed = {}
        numbers = self.numbers[self.asked[self.first]]
        easy = rule.surely_admits(self.book.spent_by(numbers), self.query)
        for history, number, is_easy in zip(self.histories, numbers, easy, strict=True):
            if history not in decisions:
                if is_easy:
                    decisions[history] = True
                else:
                    needed[history] = recorded_history(connection, int(number), self.book.release)
        return needed

    def admitted(self, decisions: dict[Fingerprint, bool]) -> npt.NDArray[np.bool_]:
        """Who of those asked may answer; nobody whose history is undecided."""
        return np.array([decisions.get(history, False) for history in self.histories], dtype=bool)[self.group]

    def release(self, admitted: npt.NDArray[np.bool_], draw: Draw) -> Release:
        """Let those who may answer draw their outputs."""
        positions = self.asked[admitted]
        outputs = _checked_outputs(draw(positions), len(positions), self.query) if len(positions) else _NO_OUTPUTS
        numbers = self.numbers[positions]
        new = np.flatnonzero(numbers < 0)
        n_known = len(self.book.number_of)
        numbers[new] = np.arange(n_known, n_known + len(new))
        return Release(
            number=self.book.release + 1,
            query_number=self.book.query_number.get(self.query.key, len(self.book.queries)),
            asked=len(self.people),
            served=len(self.people) - len(self.asked),
            refused=len(self.asked) - len(positions),
            new_people=[self.people[position] for position in positions[new]],
            numbers=numbers,
            outputs=outputs,
        )

    def answers(self, admitted: npt.NDArray[np.bool_], release: Release | None) -> LedgerAnswers:
        """What is handed out, after the release was committed."""
        outputs, fresh = self.recorded.copy(), np.zeros(len(self.people), dtype=bool)
        if release is not None:
            outputs[self.asked[admitted]], fresh[self.asked[admitted]] = release.outputs, True
        return LedgerAnswers(outputs, fresh)
