"""Preview of a query's decisions, and erasure of a person's answers."""

import math
import secrets
from dataclasses import dataclass
from functools import partial

import numpy as np

from skldp._arrays import Bools, Floats
from skldp.accounting._decide import Answers, Rule, Workers, decide
from skldp.accounting._query import Query, ReleaseQuery, is_erasure
from skldp.accounting.ledger._records import (
    RecordedRelease,
    erasable,
    erase_rows,
    recorded_history,
    recorded_outputs,
    write_release,
)
from skldp.accounting.ledger._state import LedgerState
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


def preview(state: LedgerState, query: Query, people: list[Identity], repeat: bool, workers: Workers) -> LedgerPreview:
    """Return the decisions about a query without recording anything."""
    with state.lock, state.transaction() as connection:
        cache, rule = state.cache, state.rule
        state.check_query(query)
        numbers = cache.numbers(people)
        _, members, group = cache.by_history(numbers)
        histories = [recorded_history(connection, number, cache.release) for number in members.tolist()]
        answers = cache.answers_of(histories)
        known = np.array([any(not is_erasure(one) for one in asked) for asked, _ in answers], dtype=bool)
        unknown = np.count_nonzero(~known[group])
        if unknown:
            raise LedgerError(
                f"A preview is about people who have answered before; {unknown:,} of {len(people):,} ids have not. "
                "They may answer if the query's epsilon is within the budget."
            )
        before, tenant = cache.query_number.get(query.key), state.store.tenant
        recorded = recorded_outputs(connection, before, numbers, tenant=tenant, until=cache.release) >= 0
        recorded &= not repeat
        queries = list(cache.queries)
    # No transaction or lock is held during the searches.
    admitted = decide(rule, queries, histories, query, table=rule.table_for(query), workers=workers)
    found = workers(partial(_before_and_after, rule, query), answers) if answers else ()
    now, worst = np.array(list(found), dtype=np.float64).reshape(-1, 2)[group].T
    accepted = np.array(admitted, dtype=bool)[group] | recorded
    return LedgerPreview(accepted, recorded, now, np.where(accepted & ~recorded, worst, now))


def _before_and_after(rule: Rule, query: Query, answers: Answers) -> tuple[float, float]:
    """Return upper bounds on the loss of a history, now and after one more answer."""
    queries, outputs = answers
    possible = query.worst_outputs(*answers) if isinstance(query, ReleaseQuery) else range(query.n_outputs)
    after = [lower_and_upper(rule, ([*queries, query], [*outputs, output]))[1] for output in possible]
    return lower_and_upper(rule, answers)[1], max(after)


def erase(state: LedgerState, people: list[Identity]) -> int:
    """Erase one person's answers and record their loss; return the number of erased answers."""
    while True:
        # Certifying outside a transaction keeps the next attempt short.
        state.store.retry(partial(state.losses_of, people))
        n_erased = state.store.retry(partial(_attempt_erasure, state, people))
        if n_erased is not None:
            return n_erased


def _attempt_erasure(state: LedgerState, people: list[Identity]) -> int | None:
    """Erase in one transaction; return None if the loss must be certified before."""
    with state.lock:
        with state.transaction(write=True) as connection:
            cache, rule = state.cache, state.rule
            numbers = cache.numbers(people)
            history = recorded_history(connection, int(numbers[0]), cache.release)
            ((queries, _),) = cache.answers_of([history])
            # Erased answers do not count, so a person without newer answers is skipped.
            n_answers = sum(not is_erasure(one) for one in queries)
            if not n_answers:
                return 0
            loss: float | None = None
            if rule.name != "basic":
                bounds = state.certified.get(cache.by_history(numbers)[0][0])
                if bounds is None:
                    return None
                composed = rule.composed_loss(queries)
                # Decisions keep the loss within the budget. A loss that fails with probability delta is not charged.
                certain = min(bounds[1], rule.epsilon) if math.isinf(composed) else bounds[1]
                loss = certain if certain < composed else None
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
            tenant, n_people = state.store.tenant, len(cache.number_of)
            write_release(connection, release, query, n_people=n_people, chain=cache.chain, tenant=tenant)
            erase_rows(connection, erased, release.number)
        state.forget()
    return n_answers
