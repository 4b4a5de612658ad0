"""What a query would bring, before anybody is asked: who would answer, and what it would cost them at most."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import Answers, Rule, Workers, decide
from skldp.accounting._ledger.book import group_rows
from skldp.accounting._ledger.identity import Identity, distinct_ids
from skldp.accounting._ledger.reader import LedgerReader
from skldp.accounting._ledger.records import History, recorded_history, recorded_outputs
from skldp.accounting._ledger.store import begun_again
from skldp.accounting._ledger.verification import lower_and_upper
from skldp.accounting._query import Query, ReleaseQuery, checked_query
from skldp.exceptions import LedgerError

__all__ = ["DryRun", "LedgerPreview"]


@dataclass(frozen=True)
class LedgerPreview:
    """What would happen if these people were asked, in the order of the ids.

    Attributes
    ----------
    accepted : ndarray of bool, shape (n_people,)
        Who would be handed an answer.
    recorded : ndarray of bool, shape (n_people,)
        Whose answer is recorded, and would be handed out again at no cost.
    losses : ndarray of shape (n_people,)
        What each has lost so far, in nats: a certified upper bound.
    worst_losses : ndarray of shape (n_people,)
        What each will have lost at most, whatever they answer: a certified upper bound.
    """

    accepted: npt.NDArray[np.bool_]
    recorded: npt.NDArray[np.bool_]
    losses: npt.NDArray[np.float64]
    worst_losses: npt.NDArray[np.float64]

    @property
    def costs(self) -> npt.NDArray[np.float64]:
        """What an answer would add to each one's loss at most: never more than the query's epsilon, up to rounding."""
        return np.maximum(self.worst_losses - self.losses, 0.0)


class DryRun(LedgerReader):
    """What a ledger tells of a query that nobody was asked yet."""

    @abstractmethod
    def _check_query(self, query: Query) -> None:
        """Refuse a query that this ledger cannot be asked."""

    def would_answer(
        self, query: Query, ids: Iterable[Any], *, repeat: bool = False, workers: Workers = map
    ) -> LedgerPreview:
        """Say who would answer a query, and what it would cost them. Nobody is asked, and nothing is recorded.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
        ids : iterable of int or str
            People who have answered something before, nobody twice.
        repeat : bool, default=False
            As in :meth:`PrivacyLedger.answer`.
        workers : map-like callable, default=map
            Applies a function to the different histories, in order. Each is searched as often as the query has
            outputs, and once more.

        Returns
        -------
        LedgerPreview
            What :meth:`PrivacyLedger.answer` would decide if it were called now.

        Raises
        ------
        ValueError
            If it is no query, or a person is named twice.
        LedgerError
            If the query is about another domain, or the asker has no answer of somebody.

        Notes
        -----
        Of somebody without answers it is known without a preview who would answer: everybody, if the query's epsilon
        is within the budget. A preview of such people is refused, which tells that they are among the ids. **Who has
        answered is no secret from whoever can ask with a ledger**: `realized_loss` and `history` tell it as well. A
        tenant of a PostgreSQL database, who has no answer of people whom others alone have asked, is refused a
        preview of them as of anybody else. So nobody should be shown a preview who may not know who has answered.

        Examples
        --------
        >>> from skldp.accounting import PrivacyLedger, RegressionQuery
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1))
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.75)
        >>> other = RegressionQuery("linear", coef=[-1.0], intercept=1.0, output_bounds=(0, 1), epsilon=0.5)
        >>> answers = ledger.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0])
        >>> preview = ledger.would_answer(other, ["ann", "bob"])
        >>> preview.accepted.tolist(), preview.losses.round(2).tolist()
        ([False, False], [0.75, 0.75])
        """
        checked_query(query)
        return self._preview(query, distinct_ids(ids), repeat, workers)

    @begun_again
    def _preview(self, query: Query, people: list[Identity], repeat: bool, workers: Workers) -> LedgerPreview:
        with self._lock, self._forgetting_after_errors():
            book = self._book
            with self._store.transaction(write=False) as connection:
                book.catch_up(connection)
                self._check_query(query)
                numbers = book.numbers(people)
                first, group = group_rows(book.fingerprints_of(numbers))
                histories = [recorded_history(connection, int(numbers[one]), book.release) for one in first]
                # What another tenant was told, or has been erased, is no answer that the asker has.
                told = np.array([_is_told(book.queries, history) for history in histories], dtype=bool)[group]
                unknown = np.count_nonzero(~told)
                if unknown:
                    raise LedgerError(
                        "A preview is of people whose answers the asker has: of anybody else it is the query's epsilon "
                        f"that decides. Got {unknown:,} of {len(people):,} ids without such an answer."
                    )
                before, until, tenant = book.query_number.get(query.key), book.release, self._store.tenant
                handed = recorded_outputs(connection, before, numbers, tenant=tenant, until=until)
            queries, counted = book.counted(histories)
            queries, answers = list(queries), book.answers_of(histories)
        recorded = np.zeros(len(people), dtype=bool) if repeat else handed >= 0
        # Nobody waits for the searches: no transaction is open here, and the ledger is free.
        table = self._rule.table_for(query)
        admitted = decide(self._rule, queries, counted, query, table=table, workers=workers)
        found = workers(partial(_before_and_after, self._rule, query), answers) if answers else ()
        now, worst = np.array(list(found), dtype=np.float64).reshape(-1, 2)[group].T
        accepted = np.array(admitted, dtype=bool)[group] | recorded
        return LedgerPreview(accepted, recorded, now, np.where(accepted & ~recorded, worst, now))


def _is_told(queries: Sequence[Query], history: History) -> bool:
    """Whether a history holds an answer that can be read."""
    erased = (isinstance(query, ReleaseQuery) and query.is_erasure for query in (queries[n] for n in history[0]))
    return any(output >= 0 and not gone for output, gone in zip(history[1], erased, strict=True))


def _before_and_after(rule: Rule, query: Query, answers: Answers) -> tuple[float, float]:
    """What a history has cost, and what it will have cost at most with one more answer."""
    queries, outputs = answers
    possible = query.worst_outputs(*answers) if isinstance(query, ReleaseQuery) else range(query.n_outputs)
    after = [lower_and_upper(rule, ([*queries, query], [*outputs, output]))[1] for output in possible]
    return lower_and_upper(rule, answers)[1], max(after)
