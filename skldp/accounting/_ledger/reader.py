"""Everything that can be learnt from a ledger without asking anybody: what is left, and whether it was all right."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skldp._tables import html_table
from skldp.accounting._decide import Rule, RuleName, Workers
from skldp.accounting._ledger.book import Fingerprint, LedgerBook
from skldp.accounting._ledger.identity import Identity, canonical_ids
from skldp.accounting._ledger.records import damage, timed_history
from skldp.accounting._ledger.settings import declared_bounds
from skldp.accounting._ledger.store import ConflictError, LedgerStore, begun_again, last_head, open_store
from skldp.accounting._ledger.verification import Verification, certified_losses, verify_record
from skldp.accounting._query import FiniteQuery, Query, ReleaseQuery, checked_query
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms._domain import Domain

__all__ = ["LedgerReader", "ledger_report"]

_QUERY_COLUMNS = (
    "query", "kind", "epsilon", "first_asked", "calls", "asked", "answered", "served_again", "refused", "key",
)  # fmt: skip
_BUDGETS = ("head", "people", "answers", "exhausted", "loss_quantiles", "remaining_quantiles", "zcdp_quantiles")
_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_COUNTS = """SELECT query, COUNT(*), MIN(time), CAST(SUM(asked) AS BIGINT), CAST(SUM(answered) AS BIGINT),
                    CAST(SUM(served) AS BIGINT), CAST(SUM(refused) AS BIGINT)
             FROM releases GROUP BY query ORDER BY query"""


def ledger_report(
    path: str | os.PathLike[str], verify: bool = False, *, workers: Workers = map, head: str | None = None
) -> dict[str, Any]:
    """Report on a ledger's file, which is opened for reading only.

    Parameters
    ----------
    path : str or path-like
    verify : bool, default=False
        Make every decision again, from the raw answers.
    workers : map-like callable, default=map
        Applies a function to the histories that need a search, in order: that of a
        :class:`~concurrent.futures.ProcessPoolExecutor`, for one.
    head : str, default=None
        A head that the ledger once had, and that was published.

    Returns
    -------
    dict
        The ledger's settings and its ``head``; ``people``, ``answers``, ``refused`` and ``exhausted`` (people with less
        left than the cheapest query); ``loss_quantiles``, ``remaining_quantiles`` and ``zcdp_quantiles``, from ``"0"``
        to ``"1"``; ``queries``, a list with one dict per query; and ``verification``, a dict with ``ok`` and
        ``problems``, or None. Of a ledger that verification finds damaged, the figures may be None.

    Raises
    ------
    ValueError
        If `head` is nothing that a ledger's head can be.
    LedgerError
        If there is no usable ledger, or it has lost what was there when its head was published.
    """
    with LedgerReader(open_store(path, read_only=True)) as ledger:
        if head is not None:
            ledger._store.check_head(head)
        return ledger.report(verify=verify, workers=workers)


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
    @begun_again
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
        return self._losses_of(canonical_ids(ids))

    @begun_again
    def _losses_of(self, people: list[Identity]) -> npt.NDArray[np.float64]:
        with self._lock, self._forgetting_after_errors():
            with self._store.transaction(write=False) as connection:
                self._book.catch_up(connection)
            numbers = self._book.numbers(people)
            return certified_losses(self._store, self._book, self._rule, numbers, self._certified)[:, 1]

    def remaining(self, ids: Iterable[Any]) -> npt.NDArray[np.float64]:
        """Each person's budget minus their realized loss.

        With ``rule="bayesian"`` a query with a larger epsilon than this may still be admitted.
        """
        return np.maximum(self.epsilon - self.realized_loss(ids), 0.0)

    def zcdp(self, ids: Iterable[Any]) -> npt.NDArray[np.float64]:
        r"""Each person's zero-concentrated privacy: what the :math:`\rho` of their answers and releases add up to.

        That of a Gaussian is :math:`\Delta^2 / (2 \sigma^2)` of its integers, that of anything else
        :math:`\varepsilon^2 / 2`, each rounded up. With ``rule="approximate"`` a person is asked on while
        :math:`\rho + 2 \sqrt{\rho \ln(1/\delta)}` is at most epsilon. With any rule it can be carried on where other
        releases of these people are accounted for in this way.

        Parameters
        ----------
        ids : iterable of int or str

        Returns
        -------
        ndarray of shape (n_ids,)
            In nats, rounded up; 0 for people of whom nothing is recorded.

        References
        ----------
        M. Bun and T. Steinke, "Concentrated Differential Privacy", TCC 2016, Lemma 2.3 and Proposition 1.4.

        Examples
        --------
        >>> from skldp.accounting import PrivacyLedger
        >>> from skldp.mechanisms import RandomizedResponse
        >>> ledger = PrivacyLedger(1.0)
        >>> accepted = ledger.release(RandomizedResponse(0.5, n_classes=3), [[1]], ids=["ann"]).accepted
        >>> ledger.zcdp(["ann", "bob"]).round(6)
        array([0.125, 0.   ])
        """
        return self._zcdp_of(canonical_ids(ids))

    @begun_again
    def _zcdp_of(self, people: list[Identity]) -> npt.NDArray[np.float64]:
        with self._lock, self._forgetting_after_errors(), self._store.transaction(write=False) as connection:
            self._book.catch_up(connection)
            return self._book.zcdp_of(self._book.numbers(people))

    @begun_again
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

    @begun_again
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

    @begun_again
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
        return verify_record(self._store, self._rule, workers)

    @begun_again
    def report(self, *, verify: bool = False, workers: Workers = map) -> dict[str, Any]:
        """Everything about the ledger, as plain data: settings, counts, quantiles of losses and of what is left.

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
        except LedgerError as error:
            if checked is None or isinstance(error, ConflictError):
                raise
            # What is damaged has no figures, but the problems are worth more than an error.
            queries, budgets = [], dict.fromkeys(_BUDGETS)
        settings = {name: getattr(self, name) for name in ("path", "epsilon", "rule", "tol", "bounds", "delta")}
        if isinstance(self.bounds, Domain):
            settings["bounds"] = self.bounds.to_dict()
        refused = sum(row["refused"] for row in queries)
        return {**settings, **budgets, "refused": refused, "queries": queries, "verification": checked}

    @begun_again
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
        """Quantiles of losses and of what is left, from everything in the file, and the head that it is up to."""
        book = LedgerBook()
        with self._store.transaction(write=False) as connection:
            book.catch_up(connection)
        numbers = np.arange(len(book.number_of))
        losses = certified_losses(self._store, book, self._rule, numbers, {}, workers)[:, 1]
        remaining = np.maximum(self.epsilon - losses, 0.0)
        smallest = min((query.epsilon for query in book.queries), default=0.0)
        # Whether somebody is really refused depends on the query as well, with rule="bayesian".
        exhausted = int(np.count_nonzero(remaining < smallest * (1 - 1e-9)))
        quantiles = map(_quantiles, (losses, remaining, book.zcdp_of(numbers)))
        figures = (f"{book.release} {book.chain}", len(losses), book.n_answers, exhausted, *quantiles)
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
