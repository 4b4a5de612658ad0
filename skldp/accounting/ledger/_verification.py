"""Verification of a ledger: losses and admissions, computed again from the raw answers."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial

import numpy as np

from skldp._arrays import Bools, Floats, Ints
from skldp.accounting._decide import Answers, Rule
from skldp.accounting._query import Query, ReleaseQuery
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._cache import Fingerprint, LedgerCache
from skldp.accounting.ledger._records import damage, recorded_histories, who_answered
from skldp.accounting.ledger._store import ConflictError, LedgerStore
from skldp.accounting.losses._cohorts import Workers, is_proved_within
from skldp.accounting.losses._realized_loss import realized_loss
from skldp.accounting.losses._region import region_of
from skldp.exceptions import LedgerError


@dataclass(frozen=True)
class Verification:
    """Result of verifying a ledger from its raw answers."""

    ok: bool
    problems: tuple[str, ...]
    n_people: int
    n_releases: int
    n_answers: int
    n_decisions: int


def certified_losses(
    store: LedgerStore,
    cache: LedgerCache,
    rule: Rule,
    numbers: Ints,
    known: dict[Fingerprint, tuple[float, float]],
    workers: Workers = map,
) -> Floats:
    """Bound each person's loss from below and above, once per history; `known` caches the bounds."""
    keys, members, group = cache.by_history(numbers)
    known[0, 0] = 0.0, 0.0
    with store.transaction(write=False) as connection:
        new = {key: number for key, number in zip(keys, members.tolist(), strict=True) if key not in known}
        histories = recorded_histories(connection, new, cache.release)
    # No transaction is open during the searches.
    answers = cache.answers_of(histories.values())
    known.update(zip(histories, workers(partial(lower_and_upper, rule), answers), strict=True))
    return np.array([known[key] for key in keys], dtype=np.float64).reshape(-1, 2)[group]


def lower_and_upper(rule: Rule, answers: Answers) -> tuple[float, float]:
    """Bound the loss of answers under a rule from below and above."""
    found = rule.loss_bounds(*answers)
    return found.lower, min(found.upper, rule.composed_loss(answers[0]))


def verify_record(store: LedgerStore, rule: Rule, workers: Workers) -> Verification:
    cache, sums = LedgerCache(), _SpentSums(rule.epsilon)
    problems: list[str] = []
    decided: dict[tuple[Fingerprint, str], bool] = {}
    try:
        problems += _structural_problems(store)
        for release, query_number in _releases(store):
            problems += _check_release(store, cache, rule, release, query_number, decided, sums, workers)
        with store.transaction(write=False) as connection:
            cache.catch_up(connection)
        # With delta, a loss may exceed the budget by chance.
        numbers = np.arange(len(cache.number_of) if rule.delta is None else 0)
        wrong = numbers[certified_losses(store, cache, rule, numbers, {}, workers)[:, 0] > rule.epsilon]
        if wrong.size:
            problems.append(f"The loss of {_list_people(cache, wrong)} exceeds their budget of {rule.epsilon}.")
    except ConflictError:
        # A lost connection is not damage of the ledger.
        raise
    except LedgerError as error:
        problems.append(str(error))
    return Verification(
        not problems, tuple(problems), len(cache.number_of), cache.release, cache.n_answers, len(decided)
    )


def _structural_problems(store: LedgerStore) -> list[str]:
    with store.transaction(write=False) as connection:
        found = store.structural_problems(connection)
        uneven = connection.execute(
            "SELECT release FROM releases WHERE asked <> answered + served + refused"
        ).fetchmany(10)
    return [*found, *(f"The counts of release {release} are inconsistent." for (release,) in uneven)]


def _releases(store: LedgerStore) -> Iterator[tuple[int, int]]:
    with store.transaction(write=False) as connection:
        rows = connection.execute("SELECT release, query FROM releases ORDER BY release").fetchall()
    for expected, (release, query) in enumerate(rows, start=1):
        if release != expected:
            raise LedgerError(f"Release {expected} is missing.")
        yield release, query


def _check_release(
    store: LedgerStore,
    cache: LedgerCache,
    rule: Rule,
    release: int,
    query_number: int,
    decided: dict[tuple[Fingerprint, str], bool],
    sums: "_SpentSums",
    workers: Workers,
) -> list[str]:
    """Return the problems of one release's admissions, decided again from the records before it."""
    with store.transaction(write=False) as connection, damage():
        if not cache.queries:
            cache.catch_up(connection, until=0)
        numbers = who_answered(connection, release)
        query = cache.queries[query_number]
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(cache.number_of):
            raise LedgerError(f"The ledger is damaged: release {release} has answers of unknown people.")
        numbers = numbers[~sums.admit(numbers, query.exact_epsilon)]
        fingerprints, members, group = cache.by_history(numbers)
        keys = [(fingerprint, query.key) for fingerprint in fingerprints]
        new = {key: number for key, number in zip(keys, members.tolist(), strict=True) if key not in decided}
        histories = recorded_histories(connection, new, release - 1)
        cache.catch_up(connection, until=release)
    answers = cache.answers_of(histories.values())
    decided.update(zip(histories, workers(partial(was_within_budget, rule, query), answers), strict=True))
    wrong = ~np.array([decided[key] for key in keys], dtype=bool)[group]
    if not wrong.any():
        return []
    return [f"Release {release} took {_list_people(cache, numbers[wrong])} over their budget of {rule.epsilon}."]


class _SpentSums:
    """Sum of each person's epsilons, in units of 2^-40 of the budget, each rounded up."""

    def __init__(self, epsilon: float) -> None:
        self._epsilon = epsilon
        self._spent = np.zeros(0, dtype=np.int64)

    def admit(self, numbers: Ints, epsilon: float) -> Bools:
        """Add an answer of each person; return a mask of the sums that are certainly within the budget."""
        if numbers.size and numbers.max() >= len(self._spent):
            more = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
            self._spent = np.concatenate([self._spent, more])
        # A cap of twice the budget keeps the sums from overflowing.
        part = min(math.floor(min(epsilon / self._epsilon, 2.0) * 2.0**40) + 2, 2**41)
        self._spent[numbers] = np.minimum(self._spent[numbers] + part, 2**41)
        return self._spent[numbers] <= 2**40


def _list_people(cache: LedgerCache, numbers: Ints) -> str:
    name_of = {number: identity for identity, number in cache.number_of.items()}
    some = ", ".join(repr(name_of[int(number)]) for number in numbers[:5])
    return f"{len(numbers):,} people ({some}{', ...' if len(numbers) > 5 else ''})"


def was_within_budget(rule: Rule, query: Query, answers: Answers) -> bool:
    """Return whether one more answer was within the budget for every output."""
    # The check is independent of `skldp.accounting._decide`, so it finds faults there. Epsilons are added as fractions,
    # and every loss is searched for and proved again.
    queries, outputs = answers
    budget, more = Fraction(rule.epsilon), _exact_charge(query)
    charges = sum((_exact_charge(one) for one in queries), more)
    if charges <= budget:
        return True
    if rule.delta is not None and _is_concentrated([*queries, query], budget, rule.delta):
        return True
    if rule.name == "basic" or not math.isfinite(charges):
        return False
    pairs = list(zip(queries, outputs, strict=True))
    if rule.name != "simplified" and all(
        _fits(rule, [*pairs, (query, output)], budget) for output in _possible(query, pairs)
    ):
        return True
    return _fits(rule, pairs, budget - Fraction(more))


def _fits(rule: Rule, pairs: list[tuple[Query, int]], budget: Fraction) -> bool:
    """Return whether the loss of answers and releases is at most a budget, by an independent search and proof."""
    released = [(query, output) for query, output in pairs if isinstance(query, ReleaseQuery)]
    asked = [(query, output) for query, output in pairs if not isinstance(query, ReleaseQuery)]
    remaining = budget - _cost_of_releases(released)
    if remaining < 0:
        return False
    queries, outputs = [query for query, _ in asked], [output for _, output in asked]
    threshold = math.nextafter(float(remaining), 0.0)
    regressions = [query for query in queries if isinstance(query, RegressionQuery)]
    if rule.bounds is not None and regressions and len(regressions) == len(queries):
        region = region_of(rule.bounds, n_features=regressions[0].n_features)
        if region.is_box and is_proved_within(regressions, outputs, region.box, threshold):
            return True
    loss = realized_loss(queries, outputs, bounds=rule.bounds, tol=rule.tol, threshold=threshold)
    return Fraction(loss.upper) <= remaining


def _cost_of_releases(released: list[tuple[ReleaseQuery, int]]) -> Fraction:
    """Return the sum of full charges, and for each part the worst log-ratio between two codes."""
    full = sum((Fraction(_exact_charge(query)) for query, _ in released if query.part is None), Fraction(0))
    for part in {query.part for query, _ in released} - {None}:
        own = [(query, output) for query, output in released if query.part == part]
        votes = [(query, output, _vote(query)) for query, output in own]
        scores: dict[int, Fraction] = {}
        for query, output, vote in votes:
            for code in _codes(query, output):
                scores[code] = scores.get(code, Fraction(0)) + vote
        unseen = [] if len(scores) == own[0][0].n_classes else [Fraction(0)]
        found = [*scores.values(), *unseen]
        # The margin covers the error of 50 digits; a zero sum is exact.
        apart = max(found) - min(found)
        full += apart + (Fraction(1, 10**40) if apart else 0)
    return full


def _possible(query: Query, pairs: list[tuple[Query, int]]) -> Iterable[int]:
    """Return the outputs to check; for a part, one per code seen and one for all other codes."""
    if not isinstance(query, ReleaseQuery) or query.part is None:
        return range(query.n_outputs)
    votes = [_codes(one, output) for one, output in pairs if isinstance(one, ReleaseQuery) and one.part == query.part]
    old: set[int] = set().union(*votes)
    new = next(code for code in range(len(old) + 1) if code not in old)
    codes = [*old, new] if new < query.n_classes else [*old]
    return [2**code for code in codes] if query.own_count else codes


def _codes(query: ReleaseQuery, output: int) -> list[int]:
    """Return the codes under which the released output is more likely."""
    digits = reversed(f"{output:b}")
    return [code for code, digit in enumerate(digits) if digit == "1"] if query.own_count else [output]


def _vote(query: ReleaseQuery) -> Fraction:
    """Return the log-ratio of an output's two probabilities, to 50 digits."""
    own, other, total = query.own_count, query.other_count, 2**64
    likely, unlikely = total - (query.n_classes - 1) * other, other
    if own:
        likely, unlikely = own * (total - other), other * (total - own)
    digits = Context(prec=50)
    return Fraction(digits.ln(digits.divide(Decimal(likely), Decimal(unlikely))))


def _exact_charge(query: Query) -> Fraction | float:
    """Return a query's epsilon without rounding, or infinity."""
    if not isinstance(query, ReleaseQuery):
        return Fraction(query.exact_epsilon)
    return math.inf if query.row_charge is None else Fraction(query.n_rows * query.row_charge, 2**60)


def _is_concentrated(queries: list[Query], budget: Fraction, delta: float) -> bool:
    """Return whether rho + 2 sqrt(rho ln(1/delta)) is at most the budget, computed with fractions and 50 digits."""
    rho = sum(
        (
            Fraction(one.n_rows * one.row_zcdp, 2**60) if isinstance(one, ReleaseQuery)
            else Fraction(one.exact_epsilon) ** 2 / 2
            for one in queries
        ),
        Fraction(0),
    )  # fmt: skip
    inverse = Fraction(-Context(prec=50).ln(Decimal(delta))) * (1 + Fraction(1, 10**45))
    return rho <= budget and (budget - rho) ** 2 >= 4 * rho * inverse
