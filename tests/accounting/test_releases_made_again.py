"""A release whose caller never heard of it: the same rows at no second cost, for nothing else than the same call."""

import base64
import math
import sqlite3

import numpy as np
import pytest
from accounting.ledgers import linear, new_ledger, ones
from postgres_server import edit_as_no_program_should, run_at

from skldp import PrivacyLedger
from skldp.accounting.ledger import _ledger_answers as ledger_answers
from skldp.accounting.ledger._ledger_answers import KeptRows
from skldp.exceptions import LedgerError
from skldp.mechanisms import Laplace, PrivUnit, RandomizedResponse
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures

KEY = "a key that nobody can guess"
NUMBERS = BoundedFeatures(Laplace(0.25), (0.0, 0.0), (1.0, 1.0), n_sampled=2, stated=0.5)
ROWS = [[0.2, 0.4], [0.6, 9.0], [1.0, 0.0]]
PEOPLE = ["ann", "bob", "eve"]


def test_a_release_that_is_made_again_is_handed_the_same_rows(place):
    """By another process as well, with those who are refused, and whatever the rows are by then."""
    ledger = new_ledger(place, epsilon=0.6)
    ledger.answer(linear(1), ["bob"], ones)
    first = ledger.release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)
    assert first.accepted.tolist() == [True, False, True]
    losses = ledger.realized_loss(PEOPLE).tolist()
    ledger.close()
    again = PrivacyLedger.open(place)
    for rows in (ROWS, [[0.7, 0.7]] * 3):
        handed = again.release(NUMBERS, rows, PEOPLE, idempotency_key=KEY)
        assert handed.rows.tolist() == first.rows.tolist()
        assert handed.accepted.tolist() == first.accepted.tolist()
    assert (first.n_moved, handed.n_moved) == (0, 0)
    assert again.realized_loss(PEOPLE).tolist() == losses
    assert (run_at(place, "SELECT COUNT(*) FROM releases"), again.verify().ok) == ([(2,)], True)


def test_two_values_under_one_key_are_one_release(monkeypatch, place):
    """The attack: noise that came from the key would cancel in the difference. There is no second draw."""
    drawn = []
    draw = BoundedFeatures.release
    monkeypatch.setattr(BoundedFeatures, "release", lambda *given: drawn.append(len(given[1])) or draw(*given))
    ledger = new_ledger(place)
    rows = [ledger.release(NUMBERS, [[value, 0.5]], ["ann"], idempotency_key=KEY).rows.tolist() for value in (0.0, 1.0)]
    assert drawn == [1]
    assert rows[0] == rows[1]
    # Without the key, and with another one, it is a release of its own, that does not fit any more with the next.
    assert ledger.release(NUMBERS, [[1.0, 0.5]], ["ann"], idempotency_key=f"{KEY} 2").accepted.all()
    assert not ledger.release(NUMBERS, [[1.0, 0.5]], ["ann"]).accepted.any()


@pytest.mark.parametrize(
    "change",
    [
        {"ids": ["ann", "bob", "new"]},
        {"ids": ["bob", "ann", "eve"]},
        {"all_or_none": True},
        {"rows": np.array(ROWS, dtype=np.float32)},
        {"mechanism": BoundedFeatures(Laplace(0.25), (0.0, 0.0), (1.0, 2.0), n_sampled=2, stated=0.5)},
        {"mechanism": BoundedFeatures(Laplace(0.2), (0.0, 0.0), (1.0, 1.0), n_sampled=2, stated=0.4)},
        {"mechanism": PrivUnit(2, 0.5)},
    ],
    ids=["others", "order", "all or none", "precision", "bounds", "epsilon", "mechanism"],
)
def test_a_key_is_that_of_one_release(place, change):
    ledger = new_ledger(place)
    asked = {"mechanism": NUMBERS, "rows": ROWS, "ids": PEOPLE, "idempotency_key": KEY}
    ledger.release(**asked)
    with pytest.raises(LedgerError, match="used before with another query, other people or other options"):
        ledger.release(**asked | change)
    with pytest.raises(LedgerError, match="used before with another query, other people or other options"):
        ledger.answer(linear(1), PEOPLE, ones, idempotency_key=KEY)
    assert run_at(place, "SELECT COUNT(*) FROM releases") == [(1,)]


def test_a_part_under_a_key_is_that_part(place):
    """A release in full is another call than one of a part, and one part than another."""
    ledger, law = new_ledger(place, epsilon=5.0), RandomizedResponse(0.5, 3)
    codes = [[0], [1], [2]]
    first = ledger.release(law, codes, PEOPLE, part="job", idempotency_key=KEY)
    assert ledger.release(law, codes, PEOPLE, part="job", idempotency_key=KEY).rows.tolist() == first.rows.tolist()
    for part in (None, "home"):
        with pytest.raises(LedgerError, match="used before with another query"):
            ledger.release(law, codes, PEOPLE, part=part, idempotency_key=KEY)


def test_the_people_of_a_key_are_all_of_its_people(place):
    """Those with one row are the same and are committed first: what else the call asks is not forgotten."""
    ledger, groups = new_ledger(place, epsilon=5.0), ["ann", "bob", "bob"]
    first = ledger.release(NUMBERS, ROWS, groups=groups, idempotency_key=KEY)
    assert ledger.release(NUMBERS, ROWS, groups=groups, idempotency_key=KEY).rows.tolist() == first.rows.tolist()
    with pytest.raises(LedgerError, match="other people"):
        ledger.release(NUMBERS, [*ROWS, [0.1, 0.1]], groups=["ann", "bob", "bob", "bob"], idempotency_key=KEY)
    ledger.release(NUMBERS, ROWS[:1], groups=["ann"], idempotency_key=f"{KEY} of ann")
    with pytest.raises(LedgerError, match="other people"):
        ledger.release(NUMBERS, ROWS, groups=groups, idempotency_key=f"{KEY} of ann")
    assert run_at(place, "SELECT COUNT(*) FROM releases") == [(3,)]


def test_a_release_that_ended_between_its_commits_goes_on(monkeypatch, place):
    ledger, groups = new_ledger(place, epsilon=5.0), ["ann", "bob", "bob"]
    write, failing = ledger_answers.write_release, iter([False, True, False])

    def broken(*arguments, **options):
        if next(failing):
            raise sqlite3.OperationalError("disk full")
        return write(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(ledger_answers, "write_release", broken)
        with pytest.raises((LedgerError, sqlite3.OperationalError)):
            ledger.release(NUMBERS, ROWS, groups=groups, idempotency_key=KEY)
        before = PrivacyLedger.open(place).realized_loss(["ann", "bob"]).tolist()
        found = ledger.release(NUMBERS, ROWS, groups=groups, idempotency_key=KEY)
    assert (before, ledger.realized_loss(["ann", "bob"]).tolist()) == ([0.5, 0.0], [0.5, 1.0])
    assert ledger.release(NUMBERS, ROWS, groups=groups, idempotency_key=KEY).rows.tolist() == found.rows.tolist()
    assert ledger.verify().ok


@pytest.mark.parametrize(
    ("mechanism", "dtype"),
    [
        (NUMBERS, np.float32),
        (NUMBERS, np.float64),
        (PrivUnit(2, 0.5), np.float64),
        (RandomizedResponse(0.5, 3), np.int64),
        (CategoricalRecord(0.5, (3, 2), "oue"), np.int8),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_rows_of_every_type_come_back_to_the_bit(mechanism, dtype):
    rows = np.ones((3, mechanism.domain.n_features), dtype=dtype)
    with PrivacyLedger(1.0) as ledger:
        first, again = (ledger.release(mechanism, rows, PEOPLE, idempotency_key=KEY).rows for _ in range(2))
    assert (first.dtype, first.shape, first.tobytes()) == (again.dtype, again.shape, again.tobytes())


def test_what_is_erased_is_not_handed_out_again(place):
    ledger = new_ledger(place)
    first = ledger.release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)
    assert run_at(place, "SELECT person FROM kept ORDER BY person") == [(0,), (1,), (2,)]
    losses = ledger.realized_loss(PEOPLE).tolist()
    ledger.erase("bob")
    assert run_at(place, "SELECT person FROM kept ORDER BY person") == [(0,), (2,)]
    again = ledger.release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)
    assert again.accepted.tolist() == [True, False, True]
    assert again.rows.tolist() == first.rows[[0, 2]].tolist()
    assert (ledger.realized_loss(PEOPLE).tolist(), ledger.verify().ok) == (losses, True)


def test_no_file_tells_a_row_or_its_key(monkeypatch, tmp_path):
    """Of rows whose bytes are nowhere by chance."""
    path = tmp_path / "a.ledger"
    monkeypatch.setattr(BoundedFeatures, "_draw", lambda self, rows, noise, out, workspace: out.fill(math.pi))
    with new_ledger(path) as ledger:
        found = ledger.release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)
    content, row = path.read_bytes(), np.full(2, math.pi).tobytes()
    assert found.rows.tobytes() == 3 * row
    for secret in (KEY.encode(), row, row.hex().encode(), base64.b64encode(row)[:-4], base64.b85encode(row)):
        assert secret not in content
    # The same code twice is not the same text twice.
    texts = KeptRows(KEY, ["ann"], np.array([[0]]), np.zeros((1, 1), dtype=np.int64))
    assert texts.seal([0]) != texts.seal([0])


def test_a_kept_row_that_was_changed_or_exchanged_is_not_handed_out(place):
    """Whoever can write the file and not the key hands out no row of their making, nor one person's as another's."""
    ledger = new_ledger(place, epsilon=5.0)
    ledger.release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)
    ledger.release(NUMBERS, ROWS, PEOPLE, idempotency_key=f"{KEY} 2")
    ledger.close()
    sealed = dict(run_at(place, "SELECT person, sealed FROM kept WHERE release = 1"))
    (other,) = run_at(place, "SELECT sealed FROM kept WHERE release = 2 AND person = 0")[0]
    for text in ("", "!" * 40, "\N{SNOWMAN}", sealed[0][:-5], sealed[1], other):
        edit_as_no_program_should(place, f"UPDATE kept SET sealed = '{text}' WHERE release = 1 AND person = 0")
        with pytest.raises(LedgerError, match="a stored row cannot be decrypted"):
            PrivacyLedger.open(place).release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)
    edit_as_no_program_should(place, "DELETE FROM kept WHERE release = 1 AND person = 0")
    with pytest.raises(LedgerError, match="damaged"):
        PrivacyLedger.open(place).release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)


def test_kept_rows_are_append_only(place):
    new_ledger(place).release(NUMBERS, ROWS, PEOPLE, idempotency_key=KEY)
    for statement in ("UPDATE kept SET sealed = ''", "DELETE FROM kept"):
        with pytest.raises(Exception, match="append-only"):
            run_at(place, statement)
    assert run_at(place, "SELECT COUNT(*) FROM kept") == [(3,)]


@pytest.mark.parametrize("key", ["short", "", 7, b"sixteen bytes or more", "\ud800" * 16])
def test_a_key_that_can_be_guessed_is_refused_before_a_draw(key):
    with PrivacyLedger(1.0) as ledger:
        for call in (
            lambda: ledger.release(NUMBERS, ROWS, PEOPLE, idempotency_key=key),
            lambda: ledger.answer(linear(1), PEOPLE, ones, idempotency_key=key),
        ):
            with pytest.raises(ValueError, match="unguessable string of at least 16"):
                call()
        assert ledger.verify().n_releases == 0
