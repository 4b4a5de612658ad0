"""Answers to a query, committed before they are returned; previews of its decisions; erasure of a person's answers.

A ledger records a release without its row. A call with an idempotency key stores its rows encrypted under the key, so
only a call with the same key can read them. The key itself is not stored.
"""

import base64
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from skldp._arrays import Bools, Floats, Ints, Positions
from skldp.accounting._decide import Answers, Rule, decide, surely_admits
from skldp.accounting._query import Query, ReleaseQuery, is_erasure
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._cache import Fingerprint, LedgerCache
from skldp.accounting.ledger._records import (
    Connection,
    History,
    RecordedRelease,
    damage,
    erasable,
    erase_rows,
    recorded_call,
    recorded_histories,
    recorded_history,
    recorded_outputs,
    recorded_rows,
    who_answered,
    write_release,
)
from skldp.accounting.ledger._state import LedgerState
from skldp.accounting.ledger._verification import lower_and_upper
from skldp.accounting.losses._cohorts import MARGIN, Workers
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.laws._person_ids import Identity

_NONCE_BYTES = 12


@dataclass(frozen=True)
class KeptRows:
    """Released rows of one call, with their encryption."""

    key: str
    people: list[Identity]
    places: Positions
    rows: npt.NDArray[Any]

    @cached_property
    def _cipher(self) -> AESGCM:
        return AESGCM(hmac.digest(self.key.encode(), b"released rows", "sha256"))

    def seal(self, positions: Sequence[int] | Positions) -> list[str]:
        sealed = []
        for position in map(int, positions):
            # Random nonces are safe because each key encrypts one call, which is committed once.
            nonce = secrets.token_bytes(_NONCE_BYTES)
            content = np.ascontiguousarray(self.rows[self.places[position]]).tobytes()
            sealed.append(base64.b85encode(nonce + self._cipher.encrypt(nonce, content, self._name(position))).decode())
        return sealed

    def restore(self, positions: Sequence[int] | Positions, sealed: Sequence[str]) -> None:
        """Decrypt the rows of these people and store them in `rows`."""
        for position, text in zip(positions, sealed, strict=True):
            own = self.places[position]
            try:
                data = base64.b85decode(text)
                content = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], self._name(int(position)))
            except (InvalidTag, TypeError, ValueError):
                raise LedgerError("The ledger is damaged: a stored row cannot be decrypted.") from None
            self.rows[own] = np.frombuffer(content, dtype=self.rows.dtype).reshape(self.rows[own].shape)

    def _name(self, position: int) -> bytes:
        return json.dumps(self.people[position]).encode("ascii")


def parameters_of(value: Any) -> Any:
    """Return a mechanism's parameters as plain data, with a hash in place of each array."""
    if is_dataclass(value) and not isinstance(value, type):
        made_with = [one.name for one in fields(value) if one.init]
        return [type(value).__name__, [[name, parameters_of(getattr(value, name))] for name in made_with]]
    if isinstance(value, tuple | list):
        return [parameters_of(one) for one in value]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    return repr(value.item() if isinstance(value, np.generic) else value)


Draw = Callable[[Positions], npt.ArrayLike]
# Decisions made outside a transaction before deciding within one.
_ATTEMPTS = 4
_NO_OUTPUTS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Call:
    """Call of a ledger: its query, its people, and the hashes that identify a retry."""

    # `contents` has the other arguments of the call as plain data.

    query: Query
    people: list[Identity]
    repeat: bool
    all_or_none: bool = False
    key: str | None = None
    kept: KeptRows | None = None
    contents: Any = None
    settings: dict[str, Any] | None = None
    mark: str = field(init=False)
    request: str = field(init=False)

    def __post_init__(self) -> None:
        own = (secrets.token_hex(16) if self.key is None else self.key).encode()
        contents = [] if self.contents is None else [self.contents]
        asked = json.dumps([self.query.key, self.repeat, self.all_or_none, self.people, *contents]).encode("ascii")
        object.__setattr__(self, "mark", hashlib.sha256(own).hexdigest())
        object.__setattr__(self, "request", hmac.digest(own, asked, "sha256").hex())


@dataclass(frozen=True)
class LedgerAnswers:
    """Answers to a query, in the order of the ids."""

    outputs: Ints
    fresh: Bools

    @property
    def accepted(self) -> Bools:
        """Mask of the people who have an output."""
        return self.outputs >= 0


class Plan:
    """People of a call who need a decision, grouped by their history; contains no private value."""

    def __init__(self, cache: LedgerCache, call: Call, numbers: Ints, recorded: Ints) -> None:
        self.cache, self.call, self.numbers, self.recorded = cache, call, numbers, recorded
        self.asked = np.flatnonzero(recorded < 0)
        self.histories, self.members, self._group = cache.by_history(numbers[self.asked])
        self._spent, self._losses = cache.spent_by(self.members), cache.losses_of(self.members)

    def admitted_by_sums(self, rule: Rule) -> dict[Fingerprint, bool]:
        """Return the histories that running sums of charges or of certified losses admit without a search."""
        query = self.call.query
        easy = surely_admits(rule, self._spent, query)
        if isinstance(query, RegressionQuery):
            # The table would admit these histories too: its error is far below the margin.
            easy |= self._losses + query.epsilon + 3 * MARGIN <= rule.epsilon
        return {history: True for history, admitted in zip(self.histories, easy, strict=True) if admitted}

    def undecided(self, connection: Connection, decided: dict[Fingerprint, bool]) -> dict[Fingerprint, History]:
        pairs = zip(self.histories, self.members.tolist(), strict=True)
        members = {history: number for history, number in pairs if history not in decided}
        return recorded_histories(connection, members, self.cache.release) if members else {}

    def admitted(self, decisions: dict[Fingerprint, bool]) -> Positions:
        """Return the positions of the people who may answer; an undecided history counts as refused."""
        admitted = np.array([decisions.get(history, False) for history in self.histories], dtype=bool)
        positions: Positions = self.asked[admitted[self._group]]
        return positions

    def release(self, positions: Positions, draw: Draw) -> RecordedRelease:
        """Draw the outputs of the people who may answer."""
        call, cache = self.call, self.cache
        outputs = _checked_outputs(draw(positions), len(positions), call.query) if len(positions) else _NO_OUTPUTS
        numbers = self.numbers[positions]
        new = np.flatnonzero(numbers < 0)
        numbers[new] = len(cache.number_of) + np.arange(len(new))
        return RecordedRelease(
            number=cache.release + 1,
            query_number=cache.query_number.get(call.query.key, len(cache.queries)),
            asked=len(call.people),
            served=len(call.people) - len(self.asked),
            refused=len(self.asked) - len(positions),
            new_people=[call.people[position] for position in positions[new]],
            numbers=numbers,
            outputs=outputs,
            mark=call.mark,
            request=call.request,
            sealed=() if call.kept is None else call.kept.seal(positions),
        )


def _checked_outputs(outputs: npt.ArrayLike, n: int, query: Query) -> Ints:
    drawn = np.asarray(outputs)
    if drawn.shape != (n,) or drawn.dtype.kind not in "iu" or ((drawn < 0) | (drawn >= query.n_outputs)).any():
        raise ValueError(
            f"draw must return {n} outputs from 0 to {query.n_outputs - 1}; got {drawn.dtype} of shape {drawn.shape}."
        )
    return drawn.astype(np.int64)


class Answering:
    """Call in progress: decide who may answer, draw their outputs, commit and return them."""

    def __init__(self, state: LedgerState, call: Call, draw: Draw, workers: Workers) -> None:
        self._state, self._call, self._draw, self._workers = state, call, draw, workers
        self._decisions: dict[Fingerprint, bool] = {}
        # Histories to decide before the next attempt, and the records that they are from.
        self._open: tuple[dict[Fingerprint, History], LedgerCache] | None = None

    def run(self) -> LedgerAnswers:
        for left in range(_ATTEMPTS, -1, -1):
            answers = self._state.store.retry(partial(self._attempt, last=not left))
            if answers is not None:
                return answers
            # Other calls may commit during the search; the next attempt sees their answers.
            assert self._open is not None
            histories, cache = self._open
            self._decisions |= self._state.decided(histories, self._call.query, cache, self._workers)
        raise AssertionError("the last attempt decides within its transaction")

    def _attempt(self, *, last: bool) -> LedgerAnswers | None:
        """Answer the call in one transaction; unless `last`, return None if histories must be decided before it."""
        state, call, release = self._state, self._call, None
        with state.transaction(write=True, settings=call.settings) as connection:
            # A refused nested call from `draw` would replace `state.cache`.
            cache, tenant = state.cache, state.store.tenant
            numbers = cache.numbers(call.people)
            before = recorded_call(connection, tenant, call.mark)
            until = cache.release if before is None else before[0] - 1
            known = None if call.repeat else cache.query_number.get(call.query.key)
            recorded = recorded_outputs(connection, known, numbers, tenant=tenant, until=until)
            state.check_query(call.query)
            if before is not None:
                return self._repeated(connection, numbers, recorded, *before)
            plan = Plan(cache, call, numbers, recorded)
            decided = self._decisions | plan.admitted_by_sums(state.rule)
            undecided = plan.undecided(connection, decided)
            # Sums of epsilons are fast enough to decide within the transaction.
            if undecided and not last and state.rule.name != "basic":
                self._open = undecided, cache
                return None
            decided |= state.decided(undecided, call.query, cache, self._workers if last else map)
            positions = plan.admitted(decided)
            refused = len(plan.asked) - len(positions)
            # Recording a call with a key even without new answers makes its retry return the same.
            if len(plan.asked if call.key is None else call.people) and not (call.all_or_none and refused):
                release = plan.release(positions, self._draw)
                n_people = len(cache.number_of)
                chain = write_release(
                    connection, release, call.query, n_people=n_people, chain=cache.chain, tenant=tenant
                )
                cache.add_release(release, call.query, chain)
        if call.all_or_none and refused:
            raise BudgetExhaustedError(
                f"{refused:,} of {len(call.people):,} people lack the budget for this query; no one was asked."
            )
        outputs, fresh = recorded.copy(), np.zeros(len(call.people), dtype=bool)
        if release is not None:
            outputs[positions], fresh[positions] = release.outputs, True
        return LedgerAnswers(outputs, fresh)

    def _repeated(
        self, connection: Connection, numbers: Ints, earlier: Ints, release: int, request: str
    ) -> LedgerAnswers:
        """Return the recorded answers of a call with the same idempotency key."""
        state, call = self._state, self._call
        if request != call.request:
            raise LedgerError(
                "An idempotency key must identify one call; got a key used before with another query, other people or "
                "other options."
            )
        fresh = np.isin(numbers, who_answered(connection, release))
        query = state.cache.query_number[call.query.key]
        last = recorded_outputs(connection, query, numbers, tenant=state.store.tenant, until=release)
        if call.kept is not None:
            rows, positions = recorded_rows(connection, release), np.flatnonzero(fresh)
            with damage():
                call.kept.restore(positions, [rows[number] for number in numbers[positions].tolist()])
        return LedgerAnswers(np.where(fresh, last, earlier), fresh)


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
