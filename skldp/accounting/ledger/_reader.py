"""Reading of an open ledger: losses, remaining budgets, history, reports and verification."""

import os
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from typing import Any, Self

import numpy as np

from skldp._arrays import Floats
from skldp._tables import html_table
from skldp.accounting._query import Query, ReleaseQuery, checked_query
from skldp.accounting.ledger._cache import LedgerCache
from skldp.accounting.ledger._records import damage, timed_history
from skldp.accounting.ledger._state import LedgerState, declared_bounds, open_store
from skldp.accounting.ledger._store import ConflictError, LedgerStore, last_head, retry_on_conflict
from skldp.accounting.ledger._verification import Verification, certified_losses, verify_record
from skldp.accounting.losses._cohorts import Workers
from skldp.domains._domain import Domain
from skldp.exceptions import LedgerError
from skldp.laws._person_ids import canonical_ids
from skldp.mechanisms._finite_query import FiniteQuery

# pandas leaves out the middle columns of a frame that is too wide to print.
_QUERY_COLUMNS = (
    "query", "kind", "epsilon", "calls", "first_asked", "key", "asked", "answered", "served_again", "refused",
)  # fmt: skip
_BUDGETS = ("head", "people", "answers", "loss_quantiles", "remaining_quantiles", "zcdp_quantiles")
_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_COUNTS = """SELECT query, COUNT(*), MIN(time), CAST(SUM(asked) AS BIGINT), CAST(SUM(answered) AS BIGINT),
                    CAST(SUM(served) AS BIGINT), CAST(SUM(refused) AS BIGINT)
             FROM releases GROUP BY query ORDER BY query"""


def ledger_report(
    path: str | os.PathLike[str], verify: bool = False, *, workers: Workers = map, head: str | None = None
) -> dict[str, Any]:
    """Return a report on a ledger, which is opened for reading only.

    Parameters
    ----------
    path : str or path-like
        File of the ledger, or address of a database.
    verify : bool, default=False
        Whether to repeat every decision from the raw answers.
    workers : map-like callable, default=map
        Function that maps the searches over histories in order, such as the ``map`` of a
        :class:`~concurrent.futures.ProcessPoolExecutor`.
    head : str, default=None
        Earlier, published `head` of the ledger.

    Returns
    -------
    dict
        Settings of the ledger and its ``head``; ``people``, ``answers`` and ``refused``; ``loss_quantiles``,
        ``remaining_quantiles`` and ``zcdp_quantiles``, from ``"0"`` to ``"1"``; ``queries``, a list with one dict per
        query; and ``verification``, a dict with ``ok`` and ``problems``, or None. The figures of a damaged ledger may
        be None.

    Raises
    ------
    ValueError
        If `head` is not a valid head.
    LedgerError
        If no usable ledger exists, or it has lost a release that the head includes.

    Examples
    --------
    >>> import os, tempfile
    >>> from skldp import PrivacyLedger
    >>> from skldp.accounting import ledger_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PrivacyLedger(1.0, path=os.path.join(folder, "answers.ledger"), bounds=(0, 1)).close()
    ...     ledger_report(os.path.join(folder, "answers.ledger"))["people"]
    0
    """
    with LedgerReader(LedgerState(open_store(path, read_only=True))) as ledger:
        if head is not None:
            ledger._state.store.check_head(head)
        return ledger.report(verify=verify, workers=workers)


def _query_rows(store: LedgerStore) -> list[dict[str, Any]]:
    """Return one row per query: its epsilon, and the counts of asked, answered, served again and refused."""
    cache = LedgerCache()
    with store.transaction(write=False) as connection:
        with damage():
            cache.read_queries(connection)
        counts = connection.execute(_COUNTS).fetchall()
    rows = []
    with damage():
        for number, n_calls, first, asked, answered, served, refused in counts:
            query = cache.queries[number]
            kind = "finite" if isinstance(query, FiniteQuery) else query.kind
            kind = query.mechanism if isinstance(query, ReleaseQuery) else kind
            row = (number, kind, query.epsilon, n_calls, first, query.key, asked, answered, served, refused)
            rows.append(dict(zip(_QUERY_COLUMNS, row, strict=True)))
    return rows


def _quantiles(values: Floats) -> dict[str, float]:
    found = np.quantile(values, _QUANTILES) if len(values) else np.full(len(_QUANTILES), np.nan)
    return {f"{quantile:g}": float(value) for quantile, value in zip(_QUANTILES, found, strict=True)}


class LedgerReader:
    """Base class of ledgers, with the methods that read."""

    def __init__(self, state: LedgerState) -> None:
        self._state, self.path, rule = state, state.store.path, state.rule
        self.epsilon, self.rule, self.tol, self.delta = rule.epsilon, rule.name, rule.tol, rule.delta

    @property
    def bounds(self) -> tuple[Any, Any] | Domain | None:
        """Declared domain, as (low, high) if it is a box; None if not declared."""
        return declared_bounds(self._state.store.settings.get("bounds"))

    @property
    def features(self) -> tuple[str, ...] | None:
        """Declared names of the features, in order; None if not declared."""
        features = self._state.store.settings.get("features")
        return None if features is None else tuple(features)

    @property
    def missing(self) -> tuple[float, ...] | None:
        """Declared values that replace missing features; None if not declared."""
        missing = self._state.store.settings.get("missing")
        return None if missing is None else tuple(missing)

    def __repr__(self) -> str:
        name = type(self).__name__
        delta = "" if self.delta is None else f", delta={self.delta!r}"
        return f"{name}({self.epsilon!r}, bounds={self.bounds!r}, path={self.path!r}, rule={self.rule!r}{delta})"

    def _repr_html_(self) -> str:
        # Reading records would wait for other processes, so this shows only settings.
        settings = [("epsilon", f"{self.epsilon:g}"), ("rule", self.rule)]
        settings += [] if self.delta is None else [("delta", f"{self.delta:g}")]
        settings += [("bounds", "declared by the first question" if self.bounds is None else str(self.bounds))]
        settings += [] if self.features is None else [("features", ", ".join(self.features))]
        return html_table("Privacy ledger", [*settings, ("kept in", self.path)])

    @property
    @retry_on_conflict
    def head(self) -> str:
        """End of the record: the number of releases and the hash of all of them.

        Publish it where the person who restores backups cannot change it. Opening the ledger with this `head` later
        proves that no release was lost since.
        """
        with self._state.store.transaction(write=False) as connection:
            release, chain = last_head(connection)
        return f"{release} {chain}"

    def realized_loss(self, ids: Iterable[Any]) -> Floats:
        """Return a certified upper bound on each person's realized privacy loss (nats); 0 without a record.

        With ``rule="basic"``, it is the sum of epsilons. Releases count in full. With ``rule="approximate"``, the bound
        from zero-concentrated privacy is returned if it is smaller. It holds with probability at least 1 - delta.

        Parameters
        ----------
        ids : iterable of int or str
            Ids of the people.
        """
        return self._state.store.retry(partial(self._state.losses_of, canonical_ids(ids)))

    def remaining(self, ids: Iterable[Any]) -> Floats:
        """Return each person's budget minus their realized loss.

        With ``rule="bayesian"``, a query of larger epsilon may still be admitted.

        Parameters
        ----------
        ids : iterable of int or str
            Ids of the people.
        """
        left: Floats = np.maximum(self.epsilon - self.realized_loss(ids), 0.0)
        return left

    @retry_on_conflict
    def history(self, person: Any) -> list[dict[str, Any]]:
        """Return one person's answers in chronological order.

        Parameters
        ----------
        person : int or str
            Id of the person.

        Returns
        -------
        list of dict
            Answers with the keys ``release``, ``time`` (UTC, ISO 8601), ``query`` and ``output``.
        """
        identity = canonical_ids([person])[0]
        with self._state.transaction() as connection:
            cache = self._state.cache
            rows = timed_history(connection, int(cache.numbers([identity])[0]), cache.release)
            return [
                {"release": release, "time": time, "query": cache.queries[query], "output": output}
                for release, time, query, output in rows
            ]

    @retry_on_conflict
    def summary(self) -> Any:
        """Return the counts of each query.

        Returns
        -------
        pandas.DataFrame, or list of dict without pandas
            One row per query, with the columns ``query`` (its number), ``kind``, ``epsilon``, ``calls``,
            ``first_asked``, ``key``, ``asked``, ``answered``, ``served_again`` and ``refused``.
        """
        self._state.store.check_open()
        rows = _query_rows(self._state.store)
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame(rows, columns=_QUERY_COLUMNS)

    @retry_on_conflict
    def verify(self, workers: Workers = map) -> Verification:
        """Verify from the raw answers that the ledger is intact and that no budget was exceeded.

        Every admission not settled by an exact sum of epsilons is decided again from the earlier records, without
        caches and tables. Each loss is searched for again and proved by an independent check. Finally, each person's
        history is searched for a proof that its loss exceeds the budget.

        Parameters
        ----------
        workers : map-like callable, default=map
            As in :func:`ledger_report`.

        Returns
        -------
        Verification
            Counts, and the problems found.
        """
        self._state.store.check_open()
        return verify_record(self._state.store, self._state.rule, workers)

    @retry_on_conflict
    def report(self, *, verify: bool = False, workers: Workers = map) -> dict[str, Any]:
        """Return settings, counts, and quantiles of losses and remaining budgets, as :func:`ledger_report` does.

        Parameters
        ----------
        verify, workers : bool and map-like callable
            As in :func:`ledger_report`.
        """
        self._state.store.check_open()
        checked = asdict(self.verify(workers)) if verify else None
        try:
            queries, budgets = _query_rows(self._state.store), self._budgets(workers)
        except LedgerError as error:
            if checked is None or isinstance(error, ConflictError):
                raise
            # A damaged ledger has no figures, but its problems are reported.
            queries, budgets = [], dict.fromkeys(_BUDGETS)
        settings = {name: getattr(self, name) for name in ("path", "epsilon", "rule", "tol", "bounds", "delta")}
        if isinstance(self.bounds, Domain):
            settings["bounds"] = self.bounds.to_dict()
        refused = sum(row["refused"] for row in queries)
        return {**settings, **budgets, "refused": refused, "queries": queries, "verification": checked}

    @retry_on_conflict
    def was_asked(self, query: Query) -> bool:
        """Return whether the query was asked before.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
            Question.
        """
        with self._state.transaction():
            return checked_query(query).key in self._state.cache.query_number

    def close(self) -> None:
        """Close the ledger: all later calls raise LedgerError."""
        with self._state.lock:
            self._state.store.close()

    def __enter__(self) -> Self:
        self._state.store.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _budgets(self, workers: Workers) -> dict[str, Any]:
        """Return quantiles of losses and remaining budgets, and the head of the record that they cover."""
        cache = LedgerCache()
        with self._state.store.transaction(write=False) as connection:
            cache.catch_up(connection)
        numbers = np.arange(len(cache.number_of))
        losses = certified_losses(self._state.store, cache, self._state.rule, numbers, {}, workers)[:, 1]
        remaining = np.maximum(self.epsilon - losses, 0.0)
        quantiles = map(_quantiles, (losses, remaining, cache.zcdp_of(numbers)))
        figures = (f"{cache.release} {cache.chain}", len(losses), cache.n_answers, *quantiles)
        return dict(zip(_BUDGETS, figures, strict=True))
