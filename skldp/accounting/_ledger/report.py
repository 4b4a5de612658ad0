"""Reports on a ledger: what was asked, what is left, and whether every decision was right."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from skldp.accounting._ledger.book import Fingerprint, LedgerBook, group_rows
from skldp.accounting._ledger.decisions import Rule
from skldp.accounting._ledger.entries import History, damage, recorded_history
from skldp.accounting._query import RegressionQuery
from skldp.exceptions import LedgerError

__all__ = ["Verification", "budget_report", "certified_losses", "query_rows", "report", "verify_store"]

QUERY_COLUMNS = (
    "query", "kind", "epsilon", "first_asked", "calls", "asked", "answered", "served_again", "refused", "key",
)  # fmt: skip
_BUDGETS = ("people", "answers", "exhausted", "loss_quantiles", "remaining_quantiles")
_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_COUNTS = """SELECT query, COUNT(*), MIN(time), SUM(asked), SUM(answered), SUM(served), SUM(refused)
             FROM releases GROUP BY query ORDER BY query"""


class Readable(Protocol):
    """What a report needs of a ledger's store."""

    path: str

    def transaction(self, *, write: bool) -> AbstractContextManager[sqlite3.Connection]:
        """Open a transaction."""


@dataclass(frozen=True)
class Verification:
    """What came of checking a ledger from its raw answers.

    Attributes
    ----------
    ok : bool
    problems : tuple of str
    n_people, n_releases, n_answers : int
    n_decisions : int
        How many different decisions were made again: those that a sum of epsilons does not settle.
    """

    ok: bool
    problems: tuple[str, ...]
    n_people: int
    n_releases: int
    n_answers: int
    n_decisions: int


def query_rows(store: Readable) -> list[dict[str, Any]]:
    """One row per query: what it costs, and how many were asked, answered, served an earlier answer, and refused."""
    book = LedgerBook()
    with store.transaction(write=False) as connection:
        book.read_queries(connection)
        counts = connection.execute(_COUNTS).fetchall()
    rows = []
    with damage():
        for number, n_calls, first, asked, answered, served, refused in counts:
            query = book.queries[number]
            kind = query.kind if isinstance(query, RegressionQuery) else "finite"
            row = (number, kind, query.epsilon, first, n_calls, asked, answered, served, refused, query.key)
            rows.append(dict(zip(QUERY_COLUMNS, row, strict=True)))
    return rows


def certified_losses(
    store: Readable,
    book: LedgerBook,
    rule: Rule,
    numbers: npt.NDArray[np.int64],
    known: dict[Fingerprint, float],
    n_jobs: int | None = None,
) -> npt.NDArray[np.float64]:
    """Certify each person's loss, once for each history.

    Parameters
    ----------
    store : LedgerStore
    book : LedgerBook
        Brought up to date.
    rule : Rule
    numbers : ndarray of int
        The people, -1 for somebody of whom nothing is recorded.
    known : dict
        Losses that were certified before; what is certified now is added.
    n_jobs : int, default=None

    Returns
    -------
    ndarray of float, shape (n_people,)
    """
    fingerprints, release = book.fingerprints_of(numbers), book.release
    first, group = group_rows(fingerprints)
    keys = [(int(a), int(b)) for a, b in fingerprints[first]]
    known[0, 0] = 0.0
    with store.transaction(write=False) as connection:
        histories = {
            key: recorded_history(connection, int(numbers[one]), release)
            for key, one in zip(keys, first, strict=True)
            if key not in known
        }
    # Nobody waits for the searches: no transaction is open here.
    losses = Parallel(n_jobs=n_jobs)(
        delayed(rule.loss)([book.queries[q] for q in asked], outputs) for asked, outputs in histories.values()
    )
    known.update(zip(histories, losses, strict=True))
    return np.array([known[key] for key in keys], dtype=np.float64)[group]


def budget_report(store: Readable, rule: Rule, n_jobs: int | None = None) -> dict[str, Any]:
    """Quantiles of losses and remaining budgets, as plain data."""
    book = LedgerBook()
    with store.transaction(write=False) as connection:
        book.catch_up(connection)
    losses = certified_losses(store, book, rule, np.arange(len(book.number_of)), {}, n_jobs)
    remaining = np.maximum(rule.epsilon - losses, 0.0)
    smallest = min((query.epsilon for query in book.queries), default=0.0)
    # Whether somebody is really refused depends on the query as well, with rule="bayesian".
    exhausted = int(np.count_nonzero(remaining < smallest * (1 - 1e-9)))
    figures = (len(losses), book.n_answers, exhausted, _quantiles(losses), _quantiles(remaining))
    return dict(zip(_BUDGETS, figures, strict=True))


def verify_store(store: Readable, rule: Rule, n_jobs: int | None = None) -> Verification:
    """Check a ledger from its raw answers, in two ways, neither of which asks the code that decided.

    Every admission that an exact sum of epsilons does not settle is established anew, from what was recorded before it,
    by the independent check of :mod:`skldp.accounting._extrema.certificate`; and everybody's whole history is looked at
    for a proof that it has cost more than the budget.

    Parameters
    ----------
    store : LedgerStore
    rule : Rule
    n_jobs : int, default=None

    Returns
    -------
    Verification
    """
    book = LedgerBook()
    problems: list[str] = []
    decided: dict[tuple[Fingerprint, str], bool] = {}
    sums = _Sums(rule.epsilon)
    try:
        problems += _structural_problems(store)
        for release, query_number in _releases(store):
            problems += _check_release(store, book, rule, release, query_number, decided, sums, n_jobs)
        with store.transaction(write=False) as connection:
            book.catch_up(connection)
        problems += _exceeded_budgets(store, book, rule, n_jobs)
    except LedgerError as error:
        problems.append(str(error))
    return Verification(not problems, tuple(problems), len(book.number_of), book.release, book.n_answers, len(decided))


def report(store: Readable, rule: Rule, *, verify: bool, n_jobs: int | None = None) -> dict[str, Any]:
    """Everything about a ledger, as plain data."""
    checked = asdict(verify_store(store, rule, n_jobs)) if verify else None
    settings = {"path": store.path, "epsilon": rule.epsilon, "rule": rule.name, "tol": rule.tol, "bounds": rule.bounds}
    try:
        queries, budgets = query_rows(store), budget_report(store, rule, n_jobs)
    except LedgerError:
        if checked is None:
            raise
        # What is damaged has no figures, but the problems are worth more than an error.
        queries, budgets = [], dict.fromkeys(_BUDGETS)
    refused = sum(row["refused"] for row in queries)
    return {**settings, **budgets, "refused": refused, "queries": queries, "verification": checked}


def _structural_problems(store: Readable) -> list[str]:
    with store.transaction(write=False) as connection:
        damage = [text for (text,) in connection.execute("PRAGMA integrity_check(10)") if text != "ok"]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchmany(10)
        uneven = connection.execute(
            "SELECT release FROM releases WHERE asked <> answered + served + refused"
        ).fetchmany(10)
    return [
        *(f"SQLite finds: {text}" for text in damage),
        *(f"A row of {table} refers to nothing in {parent}." for table, _, parent, _ in orphans),
        *(f"The counts of release {release} do not add up." for (release,) in uneven),
    ]


def _releases(store: Readable) -> Iterator[tuple[int, int]]:
    with store.transaction(write=False) as connection:
        rows = connection.execute("SELECT release, query FROM releases ORDER BY release").fetchall()
    for expected, (release, query) in enumerate(rows, start=1):
        if release != expected:
            raise LedgerError(f"Release {expected} is missing.")
        yield release, query


def _check_release(
    store: Readable,
    book: LedgerBook,
    rule: Rule,
    release: int,
    query_number: int,
    decided: dict[tuple[Fingerprint, str], bool],
    sums: "_Sums",
    n_jobs: int | None,
) -> list[str]:
    """Establish the admissions of one release, from what was recorded before it."""
    with store.transaction(write=False) as connection, damage():
        if not book.queries:
            book.catch_up(connection, until=0)
        rows = connection.execute("SELECT person FROM answers WHERE release = ?", (release,)).fetchall()
        numbers = np.array(rows, dtype=np.int64).reshape(-1)
        query = book.queries[query_number]
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(book.number_of):
            raise LedgerError(f"The ledger is damaged: release {release} has answers of nobody.")
        numbers = numbers[~sums.admit(numbers, query.exact_epsilon)]
        fingerprints = book.fingerprints_of(numbers)
        first, group = group_rows(fingerprints)
        keys = [((int(a), int(b)), query.key) for a, b in fingerprints[first]]
        histories: dict[tuple[Fingerprint, str], History] = {
            key: recorded_history(connection, int(numbers[one]), release - 1)
            for key, one in zip(keys, first, strict=True)
            if key not in decided
        }
        book.catch_up(connection, until=release)
    admitted = Parallel(n_jobs=n_jobs)(
        delayed(rule.is_established)([book.queries[q] for q in asked], outputs, query)
        for asked, outputs in histories.values()
    )
    decided.update(zip(histories, admitted, strict=True))
    wrong = ~np.array([decided[key] for key in keys], dtype=bool)[group]
    if not wrong.any():
        return []
    return [f"Release {release} took {_some_people(book, numbers[wrong])} past their budget of {rule.epsilon}."]


class _Sums:
    """What everybody's epsilons add up to, in whole parts of 2^-40 of the budget, each rounded up."""

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon
        self._spent = np.zeros(0, dtype=np.int64)

    def admit(self, numbers: npt.NDArray[np.int64], epsilon: float) -> npt.NDArray[np.bool_]:
        """Add one more answer of these people, and say whose sum is certainly within the budget."""
        if numbers.size and numbers.max() >= len(self._spent):
            more = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
            self._spent = np.concatenate([self._spent, more])
        # Twice the budget is enough to know of: the sums cannot overflow.
        part = min(math.floor(min(epsilon / self._epsilon, 2.0) * 2.0**40) + 2, 2**41)
        self._spent[numbers] = np.minimum(self._spent[numbers] + part, 2**41)
        return self._spent[numbers] <= 2**40


def _exceeded_budgets(store: Readable, book: LedgerBook, rule: Rule, n_jobs: int | None) -> list[str]:
    """Certify everybody's loss, without a look at how it came about."""
    numbers = np.arange(len(book.number_of))
    first, group = group_rows(book.fingerprints_of(numbers))
    with store.transaction(write=False) as connection:
        histories = [recorded_history(connection, int(one), book.release) for one in first]
    exceeded = Parallel(n_jobs=n_jobs)(
        delayed(rule.surely_exceeded)([book.queries[q] for q in asked], outputs) for asked, outputs in histories
    )
    wrong = numbers[np.array(exceeded, dtype=bool)[group]]
    return [f"{_some_people(book, wrong)} have lost more than their budget of {rule.epsilon}."] if wrong.size else []


def _some_people(book: LedgerBook, numbers: npt.NDArray[np.int64]) -> str:
    name_of = {number: identity for identity, number in book.number_of.items()}
    some = ", ".join(repr(name_of[int(number)]) for number in numbers[:5])
    return f"{len(numbers):,} people ({some}{', ...' if len(numbers) > 5 else ''})"


def _quantiles(values: npt.NDArray[np.float64]) -> dict[str, float]:
    found = np.quantile(values, _QUANTILES) if len(values) else np.full(len(_QUANTILES), np.nan)
    return {f"{quantile:g}": float(value) for quantile, value in zip(_QUANTILES, found, strict=True)}
