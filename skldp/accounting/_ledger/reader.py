"""Everything that can be learnt from a ledger without asking anybody: what is left, and whether it was all right."""

import math
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skldp._tables import html_table
from skldp.accounting._decide import Answers, Rule, RuleName, Workers
from skldp.accounting._ledger.book import Fingerprint, LedgerBook, group_rows
from skldp.accounting._ledger.established import is_established
from skldp.accounting._ledger.identity import canonical_ids
from skldp.accounting._ledger.records import damage, recorded_histories, timed_history, who_answered
from skldp.accounting._ledger.settings import declared_bounds
from skldp.accounting._ledger.store import LedgerStore, last_head, open_store
from skldp.accounting._query import FiniteQuery, Query, ReleaseQuery, checked_query
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms._domain import Domain

__all__ = ["LedgerReader", "Verification", "ledger_report", "lower_and_upper"]

_QUERY_COLUMNS = (
    "query", "kind", "epsilon", "first_asked", "calls", "asked", "answered", "served_again", "refused", "key",
)  # fmt: skip
_HIDDEN = "SELECT release FROM recorded_salts WHERE salt IS NULL LIMIT 1"
_BUDGETS = ("people", "answers", "exhausted", "loss_quantiles", "remaining_quantiles")
_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_COUNTS = """SELECT query, COUNT(*), MIN(time), CAST(SUM(asked) AS BIGINT), CAST(SUM(answered) AS BIGINT),
                    CAST(SUM(served) AS BIGINT), CAST(SUM(refused) AS BIGINT)
             FROM releases GROUP BY query ORDER BY query"""


def ledger_report(path: str | os.PathLike[str], verify: bool = False, *, workers: Workers = map) -> dict[str, Any]:
    """Report on a ledger's file, which is opened for reading only.

    Parameters
    ----------
    path : str or path-like
    verify : bool, default=False
        Make every decision again, from the raw answers.
    workers : map-like callable, default=map
        Applies a function to the histories that need a search, in order: that of a
        :class:`~concurrent.futures.ProcessPoolExecutor`, for one.

    Returns
    -------
    dict
        The ledger's settings; ``people``, ``answers``, ``refused`` and ``exhausted`` (people with less left than the
        cheapest query); ``loss_quantiles`` and ``remaining_quantiles``, from ``"0"`` to ``"1"``; ``queries``, a list
        with one dict per query; and ``verification``, a dict with ``ok`` and ``problems``, or None. Of a ledger that
        verification finds damaged, the figures may be None.

    Raises
    ------
    LedgerError
        If there is no usable ledger.
    """
    with LedgerReader(open_store(path, read_only=True)) as ledger:
        return ledger.report(verify=verify, workers=workers)


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


def _query_rows(store: LedgerStore) -> list[dict[str, Any]]:
    """One row per query: what it costs, and how many were asked, answered, served an earlier answer, and refused."""
    book = LedgerBook()
    with store.transaction(write=False) as connection:
        book.read_queries(connection)
        counts = connection.execute(_COUNTS).fetchall()
    rows = []
    with damage():
        for number, n_calls, first, asked, answered, served, refused in counts:
            query = book.queries[number]
            kind = "finite" if isinstance(query, FiniteQuery) else query.kind
            kind = query.mechanism if isinstance(query, ReleaseQuery) else kind
            row = (number, kind, query.epsilon, first, n_calls, asked, answered, served, refused, query.key)
            rows.append(dict(zip(_QUERY_COLUMNS, row, strict=True)))
    return rows


def _certified_losses(
    store: LedgerStore,
    book: LedgerBook,
    rule: Rule,
    numbers: npt.NDArray[np.int64],
    known: dict[Fingerprint, tuple[float, float]],
    workers: Workers = map,
) -> npt.NDArray[np.float64]:
    """Bound each person's loss from below and above, once for each history; `known` remembers them."""
    fingerprints, release = book.fingerprints_of(numbers), book.release
    first, group = group_rows(fingerprints)
    keys = [(int(a), int(b)) for a, b in fingerprints[first]]
    known[0, 0] = 0.0, 0.0
    with store.transaction(write=False) as connection:
        members = {key: int(numbers[one]) for key, one in zip(keys, first, strict=True) if key not in known}
        histories = recorded_histories(connection, members, release)
    # Nobody waits for the searches: no transaction is open here.
    answers = book.answers_of(list(histories.values()))
    known.update(zip(histories, workers(partial(lower_and_upper, rule), answers), strict=True))
    return np.array([known[key] for key in keys], dtype=np.float64).reshape(-1, 2)[group]


def lower_and_upper(rule: Rule, answers: Answers) -> tuple[float, float]:
    """Bound what some answers have cost, as the rule counts it."""
    found = rule.loss_bounds(*answers)
    return found.lower, min(found.upper, rule.composed_loss(answers[0]))


def _verification(store: LedgerStore, rule: Rule, workers: Workers) -> Verification:
    with store.transaction(write=False) as connection:
        if connection.execute(_HIDDEN).fetchmany(1):
            raise LedgerError(
                "A ledger is verified by its owner: others are not told every answer, and cannot decide anew."
            )
    book, sums = LedgerBook(), _Sums(rule.epsilon)
    problems: list[str] = []
    decided: dict[tuple[Fingerprint, str], bool] = {}
    try:
        problems += _structural_problems(store)
        for release, query_number in _releases(store):
            problems += _check_release(store, book, rule, release, query_number, decided, sums, workers)
        with store.transaction(write=False) as connection:
            book.catch_up(connection)
        # A loss may pass the budget by chance where a delta says so, with every decision right.
        numbers = np.arange(len(book.number_of) if rule.delta is None else 0)
        wrong = numbers[_certified_losses(store, book, rule, numbers, {}, workers)[:, 0] > rule.epsilon]
        if wrong.size:
            problems.append(f"{_some_people(book, wrong)} have lost more than their budget of {rule.epsilon}.")
    except LedgerError as error:
        problems.append(str(error))
    return Verification(not problems, tuple(problems), len(book.number_of), book.release, book.n_answers, len(decided))


def _structural_problems(store: LedgerStore) -> list[str]:
    with store.transaction(write=False) as connection:
        found = store.structural_problems(connection)
        uneven = connection.execute(
            "SELECT release FROM releases WHERE asked <> answered + served + refused"
        ).fetchmany(10)
    return [
        *found,
        *(f"The counts of release {release} do not add up." for (release,) in uneven),
    ]


def _releases(store: LedgerStore) -> Iterator[tuple[int, int]]:
    with store.transaction(write=False) as connection:
        rows = connection.execute("SELECT release, query FROM releases ORDER BY release").fetchall()
    for expected, (release, query) in enumerate(rows, start=1):
        if release != expected:
            raise LedgerError(f"Release {expected} is missing.")
        yield release, query


def _check_release(
    store: LedgerStore,
    book: LedgerBook,
    rule: Rule,
    release: int,
    query_number: int,
    decided: dict[tuple[Fingerprint, str], bool],
    sums: "_Sums",
    workers: Workers,
) -> list[str]:
    """Establish the admissions of one release, from what was recorded before it."""
    with store.transaction(write=False) as connection, damage():
        if not book.queries:
            book.catch_up(connection, until=0)
        numbers = who_answered(connection, release)
        query = book.queries[query_number]
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(book.number_of):
            raise LedgerError(f"The ledger is damaged: release {release} has answers of nobody.")
        numbers = numbers[~sums.admit(numbers, query.exact_epsilon)]
        fingerprints = book.fingerprints_of(numbers)
        first, group = group_rows(fingerprints)
        keys = [((int(a), int(b)), query.key) for a, b in fingerprints[first]]
        members = {key: int(numbers[one]) for key, one in zip(keys, first, strict=True) if key not in decided}
        histories = recorded_histories(connection, members, release - 1)
        book.catch_up(connection, until=release)
    answers = [([book.queries[number] for number in asked], outputs) for asked, outputs in histories.values()]
    decided.update(zip(histories, workers(partial(is_established, rule, query), answers), strict=True))
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


def _some_people(book: LedgerBook, numbers: npt.NDArray[np.int64]) -> str:
    name_of = {number: identity for identity, number in book.number_of.items()}
    some = ", ".join(repr(name_of[int(number)]) for number in numbers[:5])
    return f"{len(numbers):,} people ({some}{', ...' if len(numbers) > 5 else ''})"


def _quantiles(values: npt.NDArray[np.float64]) -> dict[str, float]:
    found = np.quantile(values, _QUANTILES) if len(values) else np.full(len(_QUANTILES), np.nan)
    return {f"{quantile:g}": float(value) for quantile, value in zip(_QUANTILES, found, strict=True)}


class LedgerReader:
    """An open ledger, as far as it can be read.

    Parameters
    ----------
    store : LedgerStore

    Attributes
    ----------
    epsilon, bounds, path, rule, tol, delta
        What the ledger was made with.

    Raises
    ------
    LedgerError
        If a setting is missing.
    """

    epsilon: float
    rule: RuleName
    tol: float
    _lock: AbstractContextManager[Any]

    def __init__(self, store: LedgerStore) -> None:
        stored = store.settings()
        try:
            self.epsilon, self.rule, self.tol = stored["epsilon"], stored["rule"], stored["tol"]
            self._token = stored["token"]
        except KeyError as error:
            raise LedgerError(f"The ledger {store.name!r} is damaged: its setting {error} is missing.") from None
        self.path = store.path
        self._store = store
        self._declared: dict[str, Any] = {name: stored.get(name) for name in ("bounds", "features", "missing")}
        self.delta: float | None = stored.get("delta")
        # Whoever may add a setting that is not there must not loosen what is verified.
        if (self.delta is None) == (self.rule == "approximate"):
            raise LedgerError(
                f"The ledger {store.name!r} is damaged: a delta goes with rule='approximate', and only then."
            )
        self._rule = Rule(self.rule, self.epsilon, self.bounds, self.tol, delta=self.delta)
        self._lock = threading.RLock()
        self._forget()

    @property
    def bounds(self) -> tuple[Any, Any] | Domain | None:
        """The declared domain, as (low, high) where it is a box, or None where none is declared yet."""
        return declared_bounds(self._declared["bounds"])

    @property
    def features(self) -> tuple[str, ...] | None:
        """The declared names of the features, in order, or None where none are declared."""
        features = self._declared["features"]
        return None if features is None else tuple(features)

    @property
    def missing(self) -> tuple[float, ...] | None:
        """What a record has in place of each feature that is missing, or None where nothing is declared."""
        missing = self._declared["missing"]
        return None if missing is None else tuple(missing)

    def __repr__(self) -> str:
        name = type(self).__name__
        delta = "" if self.delta is None else f", delta={self.delta!r}"
        return f"{name}({self.epsilon!r}, bounds={self.bounds!r}, path={self.path!r}, rule={self.rule!r}{delta})"

    def _repr_html_(self) -> str:
        # Its settings alone: what is recorded is not looked up for a picture, which would wait for other processes.
        settings = [("epsilon", f"{self.epsilon:g}"), ("rule", self.rule)]
        settings += [] if self.delta is None else [("delta", f"{self.delta:g}")]
        settings += [("bounds", "declared by the first question" if self.bounds is None else str(self.bounds))]
        settings += [] if self.features is None else [("features", ", ".join(self.features))]
        return html_table("Privacy ledger", [*settings, ("kept in", self.path)])

    @property
    def head(self) -> str:
        """Where the record ends: the number of releases, and the hash of them all.

        Publish it where whoever can restore a backup of the ledger cannot change it. Given back on opening, it proves
        that nothing was lost since.
        """
        with self._store.transaction(write=False) as connection:
            release, chain = last_head(connection)
        return f"{release} {chain}"

    def realized_loss(self, ids: Iterable[Any]) -> npt.NDArray[np.float64]:
        """Certified upper bound on each person's realized privacy loss (their sum of epsilons with rule="basic").

        A release counts in full. With ``rule="approximate"`` it is what composition by zero-concentrated privacy gives
        where that is less, which holds but with probability delta.

        Parameters
        ----------
        ids : iterable of int or str

        Returns
        -------
        ndarray of shape (n_ids,)
            0 for people of whom nothing is recorded.
        """
        people = canonical_ids(ids)
        with self._lock, self._forgetting_after_errors():
            with self._store.transaction(write=False) as connection:
                self._book.catch_up(connection)
            numbers = self._book.numbers(people)
            return _certified_losses(self._store, self._book, self._rule, numbers, self._certified)[:, 1]

    def remaining(self, ids: Iterable[Any]) -> npt.NDArray[np.float64]:
        """Each person's budget minus their realized loss.

        With ``rule="bayesian"`` a query with a larger epsilon than this may still be admitted.
        """
        return np.maximum(self.epsilon - self.realized_loss(ids), 0.0)

    def history(self, person: Any) -> list[dict[str, Any]]:
        """What one person has answered, in order.

        Parameters
        ----------
        person : int or str

        Returns
        -------
        list of dict
            With the keys ``release``, ``time`` (UTC, ISO 8601), ``query`` and ``output``, which is None where another
            tenant of a PostgreSQL database asked.
        """
        identity = canonical_ids([person])[0]
        with self._lock, self._forgetting_after_errors(), self._store.transaction(write=False) as connection:
            self._book.catch_up(connection)
            rows = timed_history(connection, int(self._book.numbers([identity])[0]), self._book.release)
            return [
                {
                    "release": release,
                    "time": time,
                    "query": self._book.queries[query],
                    "output": None if output < 0 else output,
                }
                for release, time, query, output in rows
            ]

    def summary(self) -> Any:
        """What was asked and answered: one row per query.

        Returns
        -------
        pandas.DataFrame, or list of dict where pandas is not installed
            With the columns ``query`` (its number), ``kind``, ``epsilon``, ``first_asked``, ``calls``, ``asked``,
            ``answered``, ``served_again``, ``refused`` and ``key``.
        """
        self._store.check_open()
        rows = _query_rows(self._store)
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame(rows, columns=_QUERY_COLUMNS)

    def verify(self, workers: Workers = map) -> Verification:
        """Check the ledger from its raw answers: that nothing is damaged, and that nobody ever passed the budget.

        Every admission that an exact sum of epsilons does not settle is decided anew, from what was recorded before
        it, without what makes decisions quick: each loss is searched for again, and proved by an independent check.
        Then everybody's whole history is looked at for a proof that it has cost more than the budget.

        Parameters
        ----------
        workers : map-like callable, default=map
            As in :func:`ledger_report`.

        Returns
        -------
        Verification
        """
        self._store.check_open()
        return _verification(self._store, self._rule, workers)

    def report(self, *, verify: bool = False, workers: Workers = map) -> dict[str, Any]:
        """Everything about the ledger, as plain data: settings, counts, quantiles of losses and of what remains.

        Parameters
        ----------
        verify : bool, default=False
            Verify it as well.
        workers : map-like callable, default=map
            As in :func:`ledger_report`.

        Returns
        -------
        dict
            As of :func:`ledger_report`.
        """
        self._store.check_open()
        checked = asdict(self.verify(workers)) if verify else None
        try:
            queries, budgets = _query_rows(self._store), self._budgets(workers)
        except LedgerError:
            if checked is None:
                raise
            # What is damaged has no figures, but the problems are worth more than an error.
            queries, budgets = [], dict.fromkeys(_BUDGETS)
        settings = {name: getattr(self, name) for name in ("path", "epsilon", "rule", "tol", "bounds", "delta")}
        if isinstance(self.bounds, Domain):
            settings["bounds"] = self.bounds.to_dict()
        refused = sum(row["refused"] for row in queries)
        return {**settings, **budgets, "refused": refused, "queries": queries, "verification": checked}

    def was_asked(self, query: Query) -> bool:
        """Whether anybody was ever asked this query."""
        with self._lock, self._forgetting_after_errors(), self._store.transaction(write=False) as connection:
            self._book.catch_up(connection)
            return checked_query(query).key in self._book.query_number

    def close(self) -> None:
        """Close the ledger: everything else that asks it, or asks about it, raises a LedgerError from now on."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Self:
        self._store.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _budgets(self, workers: Workers) -> dict[str, Any]:
        """Quantiles of losses and of what is left, from everything that is in the file."""
        book = LedgerBook()
        with self._store.transaction(write=False) as connection:
            book.catch_up(connection)
        numbers = np.arange(len(book.number_of))
        losses = _certified_losses(self._store, book, self._rule, numbers, {}, workers)[:, 1]
        remaining = np.maximum(self.epsilon - losses, 0.0)
        smallest = min((query.epsilon for query in book.queries), default=0.0)
        # Whether somebody is really refused depends on the query as well, with rule="bayesian".
        exhausted = int(np.count_nonzero(remaining < smallest * (1 - 1e-9)))
        figures = (len(losses), book.n_answers, exhausted, _quantiles(losses), _quantiles(remaining))
        return dict(zip(_BUDGETS, figures, strict=True))

    def _forget(self) -> None:
        self._book = LedgerBook()
        self._certified: dict[Fingerprint, tuple[float, float]] = {}

    @contextmanager
    def _forgetting_after_errors(self) -> Iterator[None]:
        """After a failed transaction, what is on the disk is read anew."""
        try:
            yield
        except BudgetExhaustedError:
            raise
        except BaseException:
            self._forget()
            raise
