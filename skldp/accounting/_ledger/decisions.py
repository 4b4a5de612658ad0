"""One call to a ledger: who is asked, with which history, and who may answer."""

import math
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.linear_cohort import LinearTable, linear_decisions
from skldp.accounting._extrema.realized_loss import realized_loss
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._filters import (
    BasicPrivacyFilter,
    BayesianPrivacyFilter,
    SimplifiedBayesianPrivacyFilter,
)
from skldp.accounting._finite_query import LARGEST
from skldp.accounting._ledger.book import Fingerprint, LedgerBook, group_rows
from skldp.accounting._ledger.entries import History, Release, recorded_history, recorded_outputs
from skldp.accounting._ledger.identity import Identity
from skldp.accounting._query import Query

__all__ = ["RULES", "Draw", "LedgerAnswers", "Plan", "Rule", "checked_bounds", "checked_settings"]


def checked_settings(epsilon: Any, bounds: Any, rule: Any, tol: Any) -> dict[str, Any]:
    """Check the parameters of a ledger.

    Raises
    ------
    ValueError
        If one breaks its rule.
    """
    for name, value in (("epsilon", epsilon), ("tol", tol)):
        is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        if not is_number or not math.isfinite(value) or value <= 0:
            raise ValueError(f"{name} must be a finite number above 0. Got {value!r} instead.")
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}. Got {rule!r} instead.")
    stored = None if bounds is None else checked_bounds(bounds)
    return {"epsilon": float(epsilon), "bounds": stored, "rule": str(rule), "tol": float(tol)}


def checked_bounds(bounds: Any) -> list[Any]:
    """Two numbers, or two lists with one number per feature: what JSON keeps exactly.

    Raises
    ------
    ValueError
        If they are no finite numbers with low <= high, or are beyond 1e100.
    """
    try:
        low, high = (np.asarray(side, dtype=np.float64) for side in bounds)
        box = np.stack(np.broadcast_arrays(low, high))
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be (low, high), of numbers. Got {bounds!r} instead.") from None
    if box.ndim > 2 or box.size == 0 or not np.isfinite(box).all() or (box[0] > box[1]).any():
        raise ValueError(f"bounds must be finite, with low <= high. Got {bounds!r} instead.")
    if (np.abs(box) > LARGEST).any():
        raise ValueError(f"bounds must lie within -{LARGEST:g} and {LARGEST:g}. Got {bounds!r} instead.")
    # Adding 0.0 turns -0.0 into 0.0. One and the same interval for all features is written once.
    box = box + 0.0
    if box.ndim == 2 and (box == box[:, :1]).all():
        box = box[:, 0]
    return box.tolist()


Filter = BasicPrivacyFilter | SimplifiedBayesianPrivacyFilter | BayesianPrivacyFilter
RULES = ("basic", "simplified", "bayesian")
# Epsilons are added up one by one here, and exactly by the filters: far more than all rounding errors together.
_SLACK = 1e-9


@dataclass(frozen=True)
class Rule:
    """A budget and the way of accounting for it.

    Parameters
    ----------
    name : {"basic", "simplified", "bayesian"}
    epsilon : float
        Each person's total budget.
    bounds : tuple (low, high) or None
    tol : float

    Examples
    --------
    >>> from skldp.accounting._ledger.decisions import Rule
    >>> from skldp.accounting._query import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> [Rule(name, 0.6, (-1, 1), 1e-3).admits([query, query], [0, 1], query) for name in ("basic", "bayesian")]
    [False, True]
    """

    name: str
    epsilon: float
    bounds: Bounds | None
    tol: float

    def history(self, queries: Sequence[Query], outputs: Sequence[int]) -> Filter:
        """Make the filter of a person with this history."""
        one: Filter
        if self.name == "basic":
            one = BasicPrivacyFilter(self.epsilon)
        elif self.name == "simplified":
            one = SimplifiedBayesianPrivacyFilter(self.epsilon, bounds=self.bounds, tol=self.tol)
        else:
            one = BayesianPrivacyFilter(self.epsilon, bounds=self.bounds, tol=self.tol)
        for query, output in zip(queries, outputs, strict=True):
            one.record(query, output)
        return one

    def admits(self, queries: Sequence[Query], outputs: Sequence[int], query: Query) -> bool:
        """Decide on one more query after this history."""
        return self.history(queries, outputs).admits(query)

    def admits_many(
        self,
        queries: Sequence[Query],
        histories: Sequence[tuple[Sequence[int], Sequence[int]]],
        query: Query,
        table: LinearTable | None = None,
    ) -> list[bool | None]:
        """Decide as :meth:`admits` would on one more query after each of many histories, where that is quick.

        Parameters
        ----------
        queries : sequence of RegressionQuery or FiniteQuery
        histories : sequence of tuple (positions in `queries`, outputs)
        query : RegressionQuery or FiniteQuery
        table : LinearTable, default=None
            To be kept from call to call.

        Returns
        -------
        list of bool or None
            None where each history has to be looked at by itself.
        """
        if self.name != "bayesian":
            return [None] * len(histories)
        return linear_decisions(queries, histories, query, epsilon=self.epsilon, bounds=self.bounds, table=table)

    def surely_admits(self, spent: npt.NDArray[np.float64], query: Query) -> npt.NDArray[np.bool_]:
        """Whether sums of epsilons so far are small enough to admit the query, whatever was answered."""
        return spent + query.epsilon + _SLACK * self.epsilon <= self.epsilon

    def is_established(self, queries: Sequence[Query], outputs: Sequence[int], query: Query) -> bool:
        """Whether the independent check proves that one more query was within the budget, whatever was answered.

        No shortcut of :meth:`admits` is taken: neither running sums, nor the table of linear queries, nor what an
        earlier decision has left. It admits no more than they should, up to the tolerance of the search.
        """
        epsilons = [one.exact_epsilon for one in (*queries, query)]
        if math.nextafter(math.fsum(epsilons), math.inf) <= self.epsilon:
            return True
        if self.name == "basic":
            return False
        if self.name == "simplified":
            loss = realized_loss(queries, outputs, bounds=self.bounds, tol=self.tol).upper
            return math.nextafter(loss + query.exact_epsilon, math.inf) <= self.epsilon
        losses = (
            realized_loss(
                [*queries, query], [*outputs, output], bounds=self.bounds, tol=self.tol, threshold=self.epsilon
            )
            for output in range(query.n_outputs)
        )
        return all(loss.upper <= self.epsilon for loss in losses)

    def loss(self, queries: Sequence[Query], outputs: Sequence[int]) -> float:
        """Certified upper bound on the loss of this history."""
        return self.history(queries, outputs).realized_loss

    def surely_exceeded(self, queries: Sequence[Query], outputs: Sequence[int]) -> bool:
        """Whether this history has provably cost more than the budget."""
        one = self.history(queries, outputs)
        lower = one.realized_loss if isinstance(one, BasicPrivacyFilter) else one.loss_bounds.lower
        return lower > self.epsilon


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
