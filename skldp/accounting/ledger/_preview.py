"""Preview of a query's decisions, and erasure of a person's answers."""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from skldp._arrays import Bools, Floats
from skldp.accounting._decide import Answers, Rule, Workers, decide
from skldp.accounting._query import Query, ReleaseQuery
from skldp.accounting.ledger._ledger_answers import check_query
from skldp.accounting.ledger._reader import LedgerReader
from skldp.accounting.ledger._records import (
    History,
    RecordedRelease,
    erasable,
    erase_rows,
    recorded_history,
    recorded_outputs,
    write_release,
)
from skldp.accounting.ledger._verification import lower_and_upper
from skldp.exceptions import LedgerError
from skldp.laws._person_ids import Identity


@dataclass(frozen=True)
class LedgerPreview:
    """Expected decisions and losses of a query, in the order of the ids.

    Attributes
    ----------
    accepted : ndarray of bool, shape (n_people,)
        Mask of the people who would have an answer.
    recorded : ndarray of bool, shape (n_people,)
        Mask of the people whose recorded answer would be returned at no cost.
    losses : ndarray of shape (n_people,)
        Certified upper bound on each person's current loss, in nats.
    worst_losses : ndarray of shape (n_people,)
        Certified upper bound on each person's loss after any answer, in nats.
    """

    accepted: Bools
    recorded: Bools
    losses: Floats
    worst_losses: Floats

    @property
    def costs(self) -> Floats:
        """Largest increase of each person's loss: at most the query's epsilon, up to rounding."""
        return np.maximum(self.worst_losses - self.losses, 0.0)


def preview(
    ledger: LedgerReader, query: Query, people: list[Identity], repeat: bool, workers: Workers
) -> LedgerPreview:
    """Return the decisions about a query without recording anything."""
    with ledger._lock:
        with ledger._transaction() as connection:
            cache = ledger._cache
            check_query(ledger, query)
            numbers = cache.numbers(people)
            _, members, group = cache.by_history(numbers)
            histories = [recorded_history(connection, number, cache.release) for number in members.tolist()]
            # The caller has no hidden or erased answers.
            readable = np.array([_has_readable_answer(cache.queries, history) for history in histories], dtype=bool)
            unknown = np.count_nonzero(~readable[group])
            if unknown:
                raise LedgerError(
                    "A preview is about people who have answered the caller before; "
                    f"{unknown:,} of {len(people):,} ids have not. They may answer if the query's epsilon is "
                    "within the budget."
                )
            before, until, tenant = cache.query_number.get(query.key), cache.release, ledger._store.tenant
            recorded_before = recorded_outputs(connection, before, numbers, tenant=tenant, until=until)
        queries, counted = cache.with_hidden_at_full_cost(histories)
        queries, answers = list(queries), cache.answers_of(histories)
    recorded = np.zeros(len(people), dtype=bool) if repeat else recorded_before >= 0
    # No transaction or lock is held during the searches.
    table = ledger._rule.table_for(query)
    admitted = decide(ledger._rule, queries, counted, query, table=table, workers=workers)
    found = workers(partial(_before_and_after, ledger._rule, query), answers) if answers else ()
    now, worst = np.array(list(found), dtype=np.float64).reshape(-1, 2)[group].T
    accepted = np.array(admitted, dtype=bool)[group] | recorded
    return LedgerPreview(accepted, recorded, now, np.where(accepted & ~recorded, worst, now))


def _has_readable_answer(queries: Sequence[Query], history: History) -> bool:
    """Return whether a history contains an answer that is neither hidden nor erased."""
    erased = (isinstance(query, ReleaseQuery) and query.is_erasure for query in (queries[n] for n in history[0]))
    return any(output >= 0 and not gone for output, gone in zip(history[1], erased, strict=True))


def _before_and_after(rule: Rule, query: Query, answers: Answers) -> tuple[float, float]:
    """Return upper bounds on the loss of a history, now and after one more answer."""
    queries, outputs = answers
    possible = query.worst_outputs(*answers) if isinstance(query, ReleaseQuery) else range(query.n_outputs)
    after = [lower_and_upper(rule, ([*queries, query], [*outputs, output]))[1] for output in possible]
    return lower_and_upper(rule, answers)[1], max(after)


def erase(ledger: LedgerReader, people: list[Identity]) -> int:
    """Erase one person's answers and record their loss; return the number of erased answers."""
    with ledger._store.lock_people(people):
        while True:
            # Certifying outside a transaction keeps the next attempt short.
            ledger.realized_loss(people)
            n_erased = ledger._store.retry(partial(_attempt_erasure, ledger, people))
            if n_erased is not None:
                return int(n_erased)


def _attempt_erasure(ledger: LedgerReader, people: list[Identity]) -> int | None:
    with ledger._lock:
        with ledger._transaction(write=True) as connection:
            cache = ledger._cache
            numbers = cache.numbers(people)
            history = recorded_history(connection, int(numbers[0]), cache.release)
            queries = cache.answers_of([history])[0][0]
            # Erased answers do not count, so a person without newer answers is skipped.
            n_answers = sum(not (isinstance(one, ReleaseQuery) and one.is_erasure) for one in queries)
            if not n_answers:
                return 0
            loss = None
            if ledger.rule != "basic":
                certified = ledger._certified.get(cache.by_history(numbers)[0][0])
                if certified is None:
                    return None
                loss = _certain_loss(ledger, queries, certified[1])
            query = ReleaseQuery.erasure(queries, loss)
            erased, request = erasable(connection, int(numbers[0]))
            release = RecordedRelease(
                number=cache.release + 1,
                query_number=cache.query_number.get(query.key, len(cache.queries)),
                asked=1,
                served=0,
                refused=0,
                new_people=[],
                numbers=numbers,
                outputs=np.zeros(1, dtype=np.int64),
                mark=secrets.token_hex(32),
                request=request,
            )
            tenant, n_people = ledger._store.tenant, len(cache.number_of)
            write_release(connection, release, query, n_people=n_people, chain=cache.chain, tenant=tenant)
            erase_rows(connection, erased, release.number)
        ledger._reset_cache()
    return n_answers


def _certain_loss(ledger: LedgerReader, queries: Sequence[Query], certified: float) -> float | None:
    """Return the loss to charge, or None if the certified loss fails with probability delta."""
    composed = ledger._rule.composed_loss(queries)
    if math.isinf(composed):
        # Decisions keep the loss within the budget.
        return min(certified, ledger.epsilon)
    return certified if certified < composed else None
