"""A call that is made again, because nobody heard of its end: the same answers, at no second cost."""

import pytest
from accounting.ledgers import linear, n_releases, new_ledger, ones
from postgres_server import run_at

from skldp import PrivacyLedger
from skldp.exceptions import LedgerError

KEY = "a key that nobody can guess"


def test_a_call_that_is_made_again_is_handed_the_same_answers(place):
    """By another process as well, whatever has happened since; refusals too."""
    ledger = new_ledger(place, epsilon=0.7)
    ledger.answer(linear(1), ["a", "b"], ones)
    ledger.answer(linear(2), ["a"], ones)
    first = ledger.answer(linear(3), ["a", "b", "c"], lambda rows: [1, 0], idempotency_key=KEY)
    assert (first.outputs.tolist(), first.fresh.tolist()) == ([-1, 1, 0], [False, True, True])
    ledger.answer(linear(3, 0.1), ["a"], ones)
    ledger.close()
    for again in (PrivacyLedger.open(place), PrivacyLedger.open(place)):
        handed = again.answer(linear(3), ["a", "b", "c"], lambda rows: 1 / 0, idempotency_key=KEY)
        assert (handed.outputs.tolist(), handed.fresh.tolist()) == (first.outputs.tolist(), first.fresh.tolist())
    assert again.remaining(["b", "c"]).round(6).tolist() == [0.1, 0.4]
    assert again.verify().ok


def test_a_repeated_call_serves_what_was_served(place):
    ledger = new_ledger(place, epsilon=5.0)
    ledger.answer(linear(1), ["a"], lambda rows: [0])
    first = ledger.answer(linear(1), ["a", "b"], ones, idempotency_key=KEY)
    ledger.answer(linear(1), ["a", "b"], lambda rows: [1, 0], repeat=True)
    again = ledger.answer(linear(1), ["a", "b"], ones, idempotency_key=KEY)
    assert first.outputs.tolist() == again.outputs.tolist() == [0, 1]
    assert again.fresh.tolist() == [False, True]
    fresh = ledger.answer(linear(1), ["a"], ones, repeat=True, idempotency_key=f"{KEY} 2")
    assert ledger.answer(linear(1), ["a"], ones, repeat=True, idempotency_key=f"{KEY} 2").fresh.tolist() == [True]
    assert fresh.outputs.tolist() == [1]
    assert len(ledger.history("a")) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"query": linear(2)},
        {"ids": ["a", "c"]},
        {"ids": ["b", "a"]},
        {"repeat": True},
    ],
)
def test_a_key_is_that_of_one_call(place, change):
    ledger = new_ledger(place)
    asked = {"query": linear(1), "ids": ["a", "b"], "draw": ones, "idempotency_key": KEY}
    ledger.answer(**asked)
    with pytest.raises(LedgerError, match="used before with another query, other people or other options"):
        ledger.answer(**asked | change)
    assert n_releases(place) == 1


@pytest.mark.parametrize("key", ["short", "", 7, b"a key that nobody can guess"])
def test_a_key_that_can_be_guessed_is_refused(key):
    with pytest.raises(ValueError, match="unguessable string of at least 16"):
        new_ledger(":memory:").answer(linear(1), ["a"], ones, idempotency_key=key)


def test_a_key_is_not_stored(place):
    new_ledger(place).answer(linear(1), ["a"], ones, idempotency_key=KEY)
    assert KEY not in str(run_at(place, "SELECT * FROM releases"))


def test_a_refusal_is_told_again(place):
    """Also where there is an earlier answer, which the call did not ask for."""
    ledger = new_ledger(place, epsilon=0.5)
    ledger.answer(linear(1), ["a"], ones)
    asked = {"query": linear(1), "ids": ["a", "b"], "draw": ones, "repeat": True, "idempotency_key": KEY}
    assert ledger.answer(**asked).outputs.tolist() == ledger.answer(**asked).outputs.tolist() == [-1, 1]


def test_a_call_that_asked_nobody_anew_serves_the_same_again(place):
    ledger = new_ledger(place)
    ledger.answer(linear(1), ["a"], lambda rows: [0])
    first = ledger.answer(linear(1), ["a"], ones, idempotency_key=KEY)
    ledger.answer(linear(1), ["a"], ones, repeat=True)
    again = ledger.answer(linear(1), ["a"], ones, idempotency_key=KEY)
    assert first.outputs.tolist() == again.outputs.tolist() == [0]
    assert ledger.answer(linear(1), ["a"], ones).outputs.tolist() == [1]
    assert ledger.verify().ok
