"""Whether a ledger is all right: every loss bounded anew from the raw answers, and every admission established."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import Answers, Rule, Workers
from skldp.accounting._ledger.book import Fingerprint, LedgerBook, group_rows
from skldp.accounting._ledger.established import is_established
from skldp.accounting._ledger.records import damage, recorded_histories, who_answered
from skldp.accounting._ledger.store import ConflictError, LedgerStore
from skldp.exceptions import LedgerError

__all__ = ["Verification", "certified_losses", "lower_and_upper", "verify_record"]

_HIDDEN = "SELECT release FROM recorded_salts WHERE salt IS NULL LIMIT 1"


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


def certified_losses(
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


def verify_record(store: LedgerStore, rule: Rule, workers: Workers) -> Verification:
    """Check a ledger from its raw answers.

    Raises
    ------
    LedgerError
        If some answers are not told to whoever asks.
    """
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
        wrong = numbers[certified_losses(store, book, rule, numbers, {}, workers)[:, 0] > rule.epsilon]
        if wrong.size:
            problems.append(f"{_some_people(book, wrong)} have lost more than their budget of {rule.epsilon}.")
    except ConflictError:
        # Somebody cut the connection: nothing is known to be wrong with what it reads.
        raise
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
