"""What a ledger remembers of certified losses is what it would find anew."""

import numpy as np
import pytest

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting._class_query import ClassQuery
from skldp.accounting._decide import Rule, decide
from skldp.accounting._query import ReleaseQuery
from skldp.accounting.ledger._cache import LedgerCache
from skldp.accounting.ledger._records import recorded_history
from skldp.mechanisms import RandomizedResponse

N_PEOPLE = 12


def query_of(rng, kind="linear", epsilon=0.2):
    theta = rng.uniform(-1, 1, 4)
    theta /= np.abs(theta).sum()
    ends = {"linear": (-1, 1), "truncated": (-0.3, 0.3), "logistic": (0, 1)}[kind]
    return RegressionQuery(kind, theta[1:], theta[0], ends, epsilon)


def asked(ledger, kinds, seed=0, n_questions=14):
    """Ask a changing part of the people, some of them the same question twice; give who was admitted."""
    rng = np.random.default_rng(seed)
    accepted = []
    for number in range(n_questions):
        query = query_of(rng, kinds[number % len(kinds)])
        ids = rng.permutation(N_PEOPLE)[: rng.integers(4, N_PEOPLE + 1)]
        outputs = rng.integers(0, 2, (2, N_PEOPLE))
        for turn in range(1 + (number % 5 == 4)):
            found = ledger.answer(query, ids, lambda rows, o=outputs[turn]: o[rows], repeat=bool(turn))
            accepted.append(found.accepted.tolist())
    return accepted


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["bayesian", "simplified", "basic"])
@pytest.mark.parametrize("kinds", [["linear"], ["linear", "linear", "logistic"]])
def test_decisions_are_those_of_who_remembers_nothing(monkeypatch, rule, kinds):
    def ask():
        with PrivacyLedger(0.5, bounds=(-1, 1), rule=rule) as ledger:
            return asked(ledger, kinds, n_questions=14 if len(kinds) == 1 else 10)

    with_memory = ask()
    monkeypatch.setattr(LedgerCache, "losses_of", lambda self, numbers: np.full(len(numbers), np.inf))
    assert ask() == with_memory
    assert {True, False} == {one for answers in with_memory for one in answers}


@pytest.mark.parametrize("rule", ["bayesian", "simplified"])
def test_remembered_losses_are_no_less_than_what_was_lost(rule):
    with PrivacyLedger(0.7, bounds=(-1, 1), rule=rule) as ledger:
        asked(ledger, ["linear"])
        numbers = np.arange(len(ledger._state.cache.number_of))
        losses = ledger._state.cache.losses_of(numbers)
        # Epsilons alone would say more of nearly everybody.
        with ledger._state.store.transaction(write=False) as connection:
            histories = [recorded_history(connection, int(one), ledger._state.cache.release) for one in numbers]
        assert sum(loss < 0.2 * len(outputs) - 0.1 for loss, (_, outputs) in zip(losses, histories, strict=True)) > 6
        for loss, (queries, outputs) in zip(losses, histories, strict=True):
            truth = realized_loss([ledger._state.cache.queries[number] for number in queries], outputs, bounds=(-1, 1))
            assert truth.lower <= loss + 1e-12


def test_no_loss_is_foreseen_where_something_was_released():
    """The table speaks of answers alone: what releases cost is not in its bounds."""
    rule = Rule("bayesian", 1.0, (-1, 1))
    release = ReleaseQuery.of(RandomizedResponse(0.1, 3))
    queries = [RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.4), release]
    histories = [([0, 0], [1, 0]), ([0, 0, 1], [1, 0, 0])]
    after = np.full((2, 2), np.inf)
    decisions = decide(rule, queries, histories, queries[0], table=rule.table_for(queries[0]), after=after)
    assert decisions == [True, True]
    assert np.isfinite(after[0]).all()
    assert np.isinf(after[1]).all()


def test_nothing_is_remembered_beside_answers_that_the_table_does_not_know():
    rng = np.random.default_rng(0)
    with PrivacyLedger(0.7, bounds=(-1, 1)) as ledger:
        for kind in ("linear", "linear", "linear", "linear"):
            ledger.answer(query_of(rng, kind), ["ann"], lambda rows: [1])
        assert np.isfinite(ledger._state.cache.losses_of(np.array([0])))
        ledger.answer(ClassQuery(np.eye(2, 3), [0.0, 0.0], 0.01), ["ann"], lambda rows: [1])
        assert np.isinf(ledger._state.cache.losses_of(np.array([0])))
        ledger.answer(query_of(rng, "linear", epsilon=0.01), ["ann"], lambda rows: [1])
        assert np.isinf(ledger._state.cache.losses_of(np.array([0])))


def test_a_history_that_memory_settles_is_not_read(monkeypatch):
    with PrivacyLedger(1.0, bounds=(-1, 1)) as ledger:
        query = RegressionQuery("linear", [1.0, 0.5, -0.5], 0.0, (-2, 2), 0.3)
        for output in (1, 0, 1, 0):
            ledger.answer(query, ["ann"], lambda rows, o=output: [o], repeat=True)
        monkeypatch.setattr("skldp.accounting.losses._cohorts.BoxTable.decisions", None)
        assert ledger.answer(query, ["ann"], lambda rows: [1], repeat=True).accepted.all()
