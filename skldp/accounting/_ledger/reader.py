"""Everything that can be learnt from a ledger without asking anybody."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skldp.accounting._ledger.book import Fingerprint, LedgerBook
from skldp.accounting._ledger.decisions import Rule
from skldp.accounting._ledger.entries import timed_history
from skldp.accounting._ledger.identity import canonical_ids
from skldp.accounting._ledger.report import (
    QUERY_COLUMNS,
    Verification,
    certified_losses,
    query_rows,
    report,
    verify_store,
)
from skldp.accounting._ledger.store import LedgerStore
from skldp.accounting._query import Query
from skldp.exceptions import BudgetExhaustedError, LedgerError

__all__ = ["LedgerReader", "ledger_report"]


def ledger_report(path: str | os.PathLike[str], verify: bool = False, *, n_jobs: int | None = None) -> dict[str, Any]:
    """Report on a ledger's file, which is opened for reading only.

    Parameters
    ----------
    path : str or path-like
    verify : bool, default=False
        Make every decision again, from the raw answers.
    n_jobs : int, default=None
        As in joblib.

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
    with LedgerReader(LedgerStore(path, read_only=True)) as ledger:
        return ledger.report(verify=verify, n_jobs=n_jobs)


class LedgerReader:
    """An open ledger, as far as it can be read.

    Parameters
    ----------
    store : LedgerStore

    Attributes
    ----------
    epsilon, bounds, path, rule, tol
        What the ledger was made with.

    Raises
    ------
    LedgerError
        If a setting is missing.
    """

    epsilon: float
    rule: str
    tol: float
    _bounds: list[Any] | None
    _features: list[str] | None
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
        self._bounds = stored.get("bounds")
        self._features = stored.get("features")
        self._lock = threading.RLock()
        self._forget()

    @property
    def bounds(self) -> tuple[Any, Any] | None:
        """The declared domain (low, high), or None where none is declared yet."""
        return None if self._bounds is None else (self._bounds[0], self._bounds[1])

    @property
    def features(self) -> tuple[str, ...] | None:
        """The declared names of the features, in order, or None where none are declared."""
        return None if self._features is None else tuple(self._features)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.epsilon!r}, bounds={self.bounds!r}, path={self.path!r}, rule={self.rule!r})"

    def realized_loss(self, ids: Iterable[Any]) -> npt.NDArray[np.float64]:
        """Certified upper bound on each person's realized privacy loss (their sum of epsilons with rule="basic").

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
            return certified_losses(self._store, self._book, self._rule, self._book.numbers(people), self._certified)

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
            With the keys ``release``, ``time`` (UTC, ISO 8601), ``query`` and ``output``.
        """
        identity = canonical_ids([person])[0]
        with self._lock, self._forgetting_after_errors(), self._store.transaction(write=False) as connection:
            self._book.catch_up(connection)
            rows = timed_history(connection, int(self._book.numbers([identity])[0]), self._book.release)
            return [
                {"release": release, "time": time, "query": self._book.queries[query], "output": output}
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
        rows = query_rows(self._store)
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame(rows, columns=QUERY_COLUMNS)

    def verify(self, n_jobs: int | None = None) -> Verification:
        """Check the ledger from its raw answers: that nothing is damaged, and that nobody ever passed the budget.

        Parameters
        ----------
        n_jobs : int, default=None
            As in joblib.

        Returns
        -------
        Verification
        """
        self._store.check_open()
        return verify_store(self._store, self._rule, n_jobs)

    def report(self, *, verify: bool = False, n_jobs: int | None = None) -> dict[str, Any]:
        """Everything about the ledger, as plain data: settings, counts, quantiles of losses and of what remains.

        Parameters
        ----------
        verify : bool, default=False
            Verify it as well.
        n_jobs : int, default=None
            As in joblib.

        Returns
        -------
        dict
        """
        self._store.check_open()
        return report(self._store, self._rule, verify=verify, n_jobs=n_jobs)

    def was_asked(self, query: Query) -> bool:
        """Whether anybody was ever asked this query."""
        with self._lock, self._forgetting_after_errors(), self._store.transaction(write=False) as connection:
            self._book.catch_up(connection)
            return query.key in self._book.query_number

    def close(self) -> None:
        """Close the ledger: everything else that asks it, or asks about it, raises a LedgerError from now on."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Self:
        self._store.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget(self) -> None:
        self._book = LedgerBook()
        self._certified: dict[Fingerprint, float] = {}

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

    @property
    def _rule(self) -> Rule:
        return Rule(self.rule, self.epsilon, self.bounds, self.tol)
