"""Answers to a query, committed before they are returned.

A ledger records a release without its row. A call with an idempotency key stores its rows encrypted under the key, so
only a call with the same key can read them. The key itself is not stored.
"""

import base64
import dataclasses
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from skldp._arrays import Bools, Floats, Ints, Positions
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._decide import Rule, Workers, decide, n_bounds, surely_admits
from skldp.accounting._query import Query, ReleaseQuery
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._cache import Fingerprint, LedgerCache
from skldp.accounting.ledger._reader import LedgerReader
from skldp.accounting.ledger._records import (
    Connection,
    History,
    RecordedRelease,
    damage,
    recorded_call,
    recorded_histories,
    recorded_outputs,
    recorded_rows,
    who_answered,
    write_release,
)
from skldp.accounting.losses._cohorts import MARGIN
from skldp.domains._domain import Domain
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.laws._person_ids import Identity
from skldp.mechanisms._finite_query import FiniteQuery

_NONCE_BYTES = 12


@dataclasses.dataclass(frozen=True)
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
        """Encrypt the row of each person."""
        return [self._seal_one(int(position)) for position in positions]

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

    def _seal_one(self, position: int) -> str:
        # Random nonces are safe because each key encrypts one call, which is committed once.
        nonce = secrets.token_bytes(_NONCE_BYTES)
        content = np.ascontiguousarray(self.rows[self.places[position]]).tobytes()
        return base64.b85encode(nonce + self._cipher.encrypt(nonce, content, self._name(position))).decode()

    def _name(self, position: int) -> bytes:
        return json.dumps(self.people[position]).encode("ascii")


def parameters_of(value: Any) -> Any:
    """Return a mechanism's parameters as plain data, with a hash in place of each array."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made_with = [field.name for field in dataclasses.fields(value) if field.init]
        return [type(value).__name__, [[name, parameters_of(getattr(value, name))] for name in made_with]]
    if isinstance(value, tuple | list):
        return [parameters_of(one) for one in value]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    return repr(value.item() if isinstance(value, np.generic) else value)


Draw = Callable[[Positions], npt.ArrayLike]
# Decisions made outside a transaction before deciding within one.
_ATTEMPTS = 4


@dataclass(frozen=True)
class Call:
    """Call of a ledger: its query, its people, and the hashes that identify a retry."""

    query: Query
    people: list[Identity]
    repeat: bool
    all_or_none: bool
    mark: str
    request: str
    is_named: bool = False
    kept: KeptRows | None = None
    settings: dict[str, Any] | None = None

    @classmethod
    def make(
        cls,
        query: Query,
        people: list[Identity],
        *,
        repeat: bool,
        all_or_none: bool = False,
        key: str | None = None,
        kept: KeptRows | None = None,
        contents: Any = None,
        settings: dict[str, Any] | None = None,
    ) -> "Call":
        """Return a call with its idempotency key or a new one; `contents` has its other arguments as plain data."""
        own = (secrets.token_hex(16) if key is None else key).encode()
        request = [query.key, repeat, all_or_none, people, *([] if contents is None else [contents])]
        asked = json.dumps(request).encode("ascii")
        mark, digest = hashlib.sha256(own).hexdigest(), hmac.digest(own, asked, "sha256").hex()
        return cls(query, people, repeat, all_or_none, mark, digest, key is not None, kept, settings)


_NO_OUTPUTS = np.zeros(0, dtype=np.int64)


def _checked_outputs(outputs: npt.ArrayLike, n: int, query: Query) -> Ints:
    drawn = np.asarray(outputs)
    if drawn.shape != (n,) or drawn.dtype.kind not in "iu" or ((drawn < 0) | (drawn >= query.n_outputs)).any():
        raise ValueError(
            f"draw must return {n} outputs from 0 to {query.n_outputs - 1}; got {drawn.dtype} of shape {drawn.shape}."
        )
    return drawn.astype(np.int64)


@dataclass(frozen=True)
class LedgerAnswers:
    """Answers to a query, in the order of the ids."""

    outputs: Ints
    fresh: Bools

    @property
    def accepted(self) -> Bools:
        """Mask of the people who have an output."""
        return self.outputs >= 0


@dataclass(frozen=True)
class Plan:
    """Inputs of the decisions of one call; they contain no private value."""

    cache: LedgerCache
    call: Call
    numbers: Ints
    recorded: Ints
    asked: Positions
    group: Positions
    members: Ints
    histories: list[Fingerprint]
    spent: Ints
    losses: Floats

    @classmethod
    def make(cls, cache: LedgerCache, call: Call, numbers: Ints, recorded: Ints) -> "Plan":
        """Group the people who need a decision by their history."""
        asked = np.flatnonzero(recorded < 0)
        histories, members, group = cache.by_history(numbers[asked])
        return cls(
            cache, call, numbers, recorded, asked, group, members, histories,
            cache.spent_by(members), cache.losses_of(members),
        )  # fmt: skip

    def admitted_by_sums(self, rule: Rule) -> dict[Fingerprint, bool]:
        """Return the histories that running sums of charges or of certified losses admit without a search."""
        query = self.call.query
        easy = surely_admits(rule, self.spent, query)
        if isinstance(query, RegressionQuery):
            # The table would admit these histories too: its error is far below the margin.
            easy |= self.losses + query.epsilon + 3 * MARGIN <= rule.epsilon
        return {history: True for history, admitted in zip(self.histories, easy, strict=True) if admitted}

    def admitted(self, decisions: dict[Fingerprint, bool]) -> Bools:
        """Return a mask of the people who may answer; an undecided history counts as refused."""
        return np.array([decisions.get(history, False) for history in self.histories], dtype=bool)[self.group]

    def release(self, admitted: Bools, draw: Draw) -> RecordedRelease:
        """Draw the outputs of the people who may answer."""
        positions = self.asked[admitted]
        outputs = _checked_outputs(draw(positions), len(positions), self.call.query) if len(positions) else _NO_OUTPUTS
        kept = self.call.kept
        numbers = self.numbers[positions]
        new = np.flatnonzero(numbers < 0)
        n_known = len(self.cache.number_of)
        numbers[new] = np.arange(n_known, n_known + len(new))
        return RecordedRelease(
            number=self.cache.release + 1,
            query_number=self.cache.query_number.get(self.call.query.key, len(self.cache.queries)),
            asked=len(self.call.people),
            served=len(self.call.people) - len(self.asked),
            refused=len(self.asked) - len(positions),
            new_people=[self.call.people[position] for position in positions[new]],
            numbers=numbers,
            outputs=outputs,
            mark=self.call.mark,
            request=self.call.request,
            sealed=() if kept is None else kept.seal(positions),
        )

    def answers(self, admitted: Bools, release: RecordedRelease | None) -> LedgerAnswers:
        """Return the answers; call this after the commit."""
        outputs, fresh = self.recorded.copy(), np.zeros(len(self.call.people), dtype=bool)
        if release is not None:
            outputs[self.asked[admitted]], fresh[self.asked[admitted]] = release.outputs, True
        return LedgerAnswers(outputs, fresh)


def answer(ledger: LedgerReader, call: Call, draw: Draw, workers: Workers) -> LedgerAnswers:
    """Decide who may answer, draw their outputs, commit and return them."""
    decisions: dict[Fingerprint, bool] = {}
    with ledger._store.lock_people(call.people):
        for number in range(_ATTEMPTS + 1):
            last = number == _ATTEMPTS
            found = ledger._store.retry(partial(_attempt, ledger, call, draw, decisions, workers, last))
            if isinstance(found, LedgerAnswers):
                return found
            # Other calls may commit during the search; the next attempt sees their answers.
            undecided, plan = found
            decisions |= _decided(ledger, undecided, plan, workers)
    raise AssertionError("the last attempt decides within its transaction")


def _attempt(
    ledger: LedgerReader, call: Call, draw: Draw, decisions: dict[Fingerprint, bool], workers: Workers, last: bool
) -> "LedgerAnswers | tuple[dict[Fingerprint, History], Plan]":
    """Answer the call in one transaction; unless `last`, return the histories to decide before it."""
    with ledger._transaction(write=True, settings=call.settings) as connection:
        # A refused nested call from `draw` would replace `ledger._cache`.
        cache, tenant = ledger._cache, ledger._store.tenant
        numbers = cache.numbers(call.people)
        before = recorded_call(connection, tenant, call.mark)
        until = cache.release if before is None else before[0] - 1
        known = None if call.repeat else cache.query_number.get(call.query.key)
        recorded = recorded_outputs(connection, known, numbers, tenant=tenant, until=until)
        check_query(ledger, call.query)
        if before is not None:
            return _repeat_call(ledger, connection, call, numbers, recorded, *before)
        plan = Plan.make(cache, call, numbers, recorded)
        decided = decisions | plan.admitted_by_sums(ledger._rule)
        members = {
            history: number
            for history, number in zip(plan.histories, plan.members.tolist(), strict=True)
            if history not in decided
        }
        undecided = recorded_histories(connection, members, cache.release) if members else {}
        # Sums of epsilons are fast enough to decide within the transaction.
        if undecided and not last and ledger.rule != "basic":
            return undecided, plan
        decided |= _decided(ledger, undecided, plan, workers if last else map)
        admitted, release = plan.admitted(decided), None
        refused = np.count_nonzero(~admitted)
        # Recording a call with a key even without new answers makes its retry return the same.
        if len(plan.asked if not call.is_named else call.people) and not (call.all_or_none and refused):
            release = plan.release(admitted, draw)
            n_people = len(cache.number_of)
            chain = write_release(connection, release, call.query, n_people=n_people, chain=cache.chain, tenant=tenant)
            cache.add_release(release, call.query, chain)
    if call.all_or_none and refused:
        raise BudgetExhaustedError(
            f"{refused:,} of {len(call.people):,} people lack the budget for this query; no one was asked."
        )
    return plan.answers(admitted, release)


def _repeat_call(
    ledger: LedgerReader, connection: Connection, call: Call, numbers: Ints, earlier: Ints, release: int, request: str
) -> LedgerAnswers:
    """Return the recorded answers of a call with the same idempotency key."""
    if request != call.request:
        raise LedgerError(
            "An idempotency key must identify one call; got a key used before with another query, other people or "
            "other options."
        )
    fresh = np.isin(numbers, who_answered(connection, release))
    query = ledger._cache.query_number[call.query.key]
    last = recorded_outputs(connection, query, numbers, tenant=ledger._store.tenant, until=release)
    if call.kept is not None:
        rows, positions = recorded_rows(connection, release), np.flatnonzero(fresh)
        with damage():
            call.kept.restore(positions, [rows[number] for number in numbers[positions].tolist()])
    return LedgerAnswers(np.where(fresh, last, earlier), fresh)


def check_query(ledger: LedgerReader, query: Query) -> None:
    if isinstance(query, ReleaseQuery):
        _check_part(ledger, query)
        return
    before = next((one for one in ledger._cache.queries if not isinstance(one, ReleaseQuery)), query)
    if before is not query and _domain(before) != _domain(query):
        raise LedgerError(
            f"All queries of a ledger must have one domain: {ledger._store.name!r} has queries over "
            f"{_domain(before)}; got a query over {_domain(query)}."
        )
    if isinstance(query, RegressionQuery | ClassQuery | SoftmaxQuery) and ledger.rule != "basic":
        bounds = ledger._rule.bounds
        if bounds is None:
            raise LedgerError(f"A ledger with rule={ledger.rule!r} needs bounds before the first query: declare them.")
        n_features = bounds.n_features if isinstance(bounds, Domain) else np.size(bounds[0])
        # A single interval fits any number of features.
        if n_features != query.n_features and (isinstance(bounds, Domain) or isinstance(bounds[0], list)):
            raise LedgerError(
                f"The ledger {ledger._store.name!r} has bounds for {n_features} features; "
                f"got a query with {query.n_features}."
            )


def _decided(
    ledger: LedgerReader, undecided: dict[Fingerprint, History], plan: Plan, workers: Workers
) -> dict[Fingerprint, bool]:
    cache, histories, query = plan.cache, list(undecided.values()), plan.call.query
    if cache.table is None:
        cache.table = ledger._rule.table_for(query)
    if not undecided:
        return {}
    queries, counted = cache.with_hidden_at_full_cost(histories)
    after = np.full((len(histories), n_bounds(query)), np.inf)
    found = decide(ledger._rule, queries, counted, query, table=cache.table, workers=workers, after=after)
    cache.remember_certified_losses(query, list(undecided), after)
    return dict(zip(undecided, found, strict=True))


def _check_part(ledger: LedgerReader, query: ReleaseQuery) -> None:
    """Raise LedgerError if the part is known with a different number of codes."""
    known = [one for one in ledger._cache.queries if isinstance(one, ReleaseQuery) and one.part == query.part]
    if query.part is not None and any(one.n_classes != query.n_classes for one in known):
        raise LedgerError(
            f"The part {query.part!r} of a record has {known[0].n_classes} codes in this ledger; got {query.n_classes}."
        )


def _domain(query: RegressionQuery | ClassQuery | SoftmaxQuery | FiniteQuery) -> str:
    return f"{query.n_points} points" if isinstance(query, FiniteQuery) else f"{query.n_features} features"
