"""What was erased is gone, what it has cost is not; and a published head notices a record that went back."""

import itertools
import math
import shutil

import numpy as np
import pytest
from accounting.ledgers import linear, new_ledger, ones
from postgres_server import edit_as_no_program_should, run_at

from skldp import PrivacyLedger
from skldp.accounting import ledger_report
from skldp.accounting._query import ReleaseQuery
from skldp.accounting._units import units_above, zcdp_budget
from skldp.accounting.ledger._records import Digest
from skldp.exceptions import LedgerError
from skldp.mechanisms import Gaussian, RandomizedResponse
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures


def asked(place, rule="bayesian", n_queries=4):
    """Queries whose answers cancel: the losses are far below the sums of epsilons."""
    ledger = new_ledger(place, rule=rule)
    for number in range(n_queries):
        ledger.answer(linear(1 if number % 2 else -1), ["a", "b"], ones, repeat=True)
    return ledger


@pytest.mark.parametrize("rule", ["basic", "simplified", "bayesian"])
def test_what_is_erased_leaves_what_it_has_cost(place, rule):
    ledger = asked(place, rule)
    other = PrivacyLedger.open(place)
    before = other.realized_loss(["a", "b"])
    n_answers = len(ledger.history("a"))
    assert ledger.erase("a") == n_answers
    for one in (ledger, other, PrivacyLedger.open(place)):
        np.testing.assert_allclose(one.realized_loss(["a", "b"]), before, rtol=0, atol=1e-12)
        (left,) = one.history("a")
        assert isinstance(left["query"], ReleaseQuery)
        assert len(one.history("b")) == n_answers
        assert one.verify().problems == ()
    assert run_at(place, "SELECT COUNT(*) FROM answers WHERE person = 0") == [(1,)]
    assert ledger_report(place, verify=True)["verification"]["ok"]


def test_whoever_was_erased_is_asked_within_what_is_left(place):
    ledger = asked(place, "basic", n_queries=3)
    ledger.erase("a")
    assert ledger.answer(linear(5, 0.2), ["a"], ones).outputs.tolist() == [-1]
    assert ledger.answer(linear(5, 0.1), ["a"], ones).outputs.tolist() == [1]
    # The erased answer is not handed out again: a new one is drawn, if there is room.
    assert ledger.answer(linear(1), ["a", "b"], ones).outputs.tolist() == [-1, 1]
    assert ledger.verify().ok


def test_whoever_was_erased_can_be_erased_again(place):
    ledger = asked(place, n_queries=2)
    ledger.erase("a")
    before = ledger.realized_loss(["a"])
    ledger.answer(linear(3, 0.1), ["a", "c"], ones)
    assert ledger.erase("a") == 1
    assert ledger.erase("a") == 0
    assert before[0] < ledger.realized_loss(["a"])[0] <= before[0] + 0.1 + 1e-12
    assert ledger.erase("b") == 2
    assert ledger.erase("nobody") == 0
    assert ledger.verify().ok
    assert PrivacyLedger.open(place).verify().n_answers == 3


def test_releases_are_erased_as_well(place):
    ledger = new_ledger(place, rule="approximate", epsilon=8.0, delta=1e-6)
    ledger.release(RandomizedResponse(0.75, n_classes=3), [[0], [1]], ids=["a", "b"])
    gaussian = BoundedFeatures(Gaussian(0.5, 1e-6, 1), (0.0,), (1.0,), n_sampled=1, stated=0.5)
    ledger.release(gaussian, [[0.5]], ids=["a"])
    before = ledger.realized_loss(["a"])[0]
    assert math.isfinite(before)
    assert ledger.erase("a") == 2
    np.testing.assert_allclose(ledger.realized_loss(["a"])[0], before, rtol=0, atol=1e-12)
    assert ledger.verify().problems == ()


@pytest.mark.parametrize(
    ("way", "epsilon", "of_each", "n_answers"),
    [("sums", 8.0, 0.3, 20), ("delta", 1.0, 0.02, 60), ("loss", 1.0, 0.3, 8)],
)
def test_whatever_let_answers_pass_a_delta_they_can_be_erased(place, way, epsilon, of_each, n_answers):
    """The erased epsilons of many small answers add up to more than the budget, and so does half of their square."""
    ledger = new_ledger(place, rule="approximate", epsilon=epsilon, delta=1e-6)
    signs = (1, -1) if way == "loss" else (1,)
    for _, sign in zip(range(n_answers), itertools.cycle(signs), strict=False):
        assert ledger.answer(linear(sign, of_each), ["a"], ones, repeat=True).accepted.all()
    assert (n_answers * of_each <= epsilon) == (way == "sums")
    assert (n_answers * units_above(of_each**2 / 2) > zcdp_budget(epsilon, 1e-6)) == (way == "loss")
    before = ledger.realized_loss(["a"])[0]
    assert ledger.erase("a") == n_answers
    np.testing.assert_allclose(ledger.realized_loss(["a"])[0], before, rtol=0, atol=1e-12)
    assert ledger.verify().problems == ()
    (left,) = ledger.history("a")
    # What holds but with a probability is no epsilon.
    assert way == "loss" or left["query"].epsilon >= n_answers * of_each * (1 - 1e-9)
    # A loss that is certain is no rho: what was erased costs as much of that as it did.
    assert left["query"].zcdp >= n_answers * of_each**2 / 2 * 2**60 * (1 - 1e-9)


def test_an_answer_cannot_be_tried_on_what_is_left(place):
    """No digest that is left has a salt that is left and the erased answer in it."""
    ledger = asked(place, n_queries=2)
    old = run_at(place, "SELECT release, salt FROM salts")
    rows = run_at(place, "SELECT release, person, output FROM answers ORDER BY release, person")
    ledger.erase("a")
    salts = {salt for _, salt in run_at(place, "SELECT release, salt FROM salts")}
    assert salts.isdisjoint(salt for release, salt in old if release <= 2)
    digests = {digest for (digest,) in run_at(place, "SELECT digest FROM releases")}
    digests |= {digest for (digest,) in run_at(place, "SELECT digest FROM erasures")}
    for salt, output in itertools.product(salts, (0, 1)):
        for release in (1, 2):
            others = [(person, was) for one, person, was in rows if one == release and person != 0]
            tried = Digest(salt)
            tried.add(*zip((0, output), *others, strict=True))
            assert tried.value not in digests


def test_an_erased_answer_is_not_in_the_file(tmp_path):
    path = tmp_path / "a.ledger"
    ledger = asked(path, n_queries=2)
    ((salt,),) = run_at(path, "SELECT salt FROM salts WHERE release = 1")
    assert salt.encode() in path.read_bytes()
    ledger.erase("a")
    assert salt.encode() not in path.read_bytes()
    with ledger._state.store.transaction(write=True) as connection:
        # What lies in the page that a row has left is written over.
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM erasures WHERE release = 1",
        "UPDATE erasures SET digest = '' WHERE release = 1",
        "UPDATE erasures SET person = 1 WHERE release = 1",
        "UPDATE answers SET output = 0 WHERE release = 1",
        "UPDATE salts SET salt = '00' WHERE release = 1",
        "DELETE FROM salts WHERE release = 1",
        "DELETE FROM answers WHERE release = 3",
    ],
)
def test_damage_after_an_erasure_is_noticed(place, statement):
    ledger = asked(place, n_queries=2)
    ledger.erase("a")
    ledger.close()
    edit_as_no_program_should(place, statement)
    with pytest.raises(LedgerError, match="The ledger is damaged"):
        PrivacyLedger.open(place).remaining(["a"])


def test_answers_that_no_release_has_erased_are_missed(place):
    """The record of releases, and a published head, stay what they were."""
    ledger = asked(place, n_queries=2)
    head = ledger.head
    ledger.close()
    edits = []
    for release, output in run_at(place, "SELECT release, output FROM answers WHERE person = 1"):
        rest = Digest("00")
        rest.add([1], [output])
        edits += [
            f"INSERT INTO erasures VALUES ({release}, 0, 3, '{rest.value}')",
            f"DELETE FROM answers WHERE release = {release} AND person = 0",
            f"UPDATE salts SET salt = '00' WHERE release = {release}",
        ]
    edit_as_no_program_should(place, *edits)
    with pytest.raises(LedgerError, match="erased by a release that is missing"):
        PrivacyLedger.open(place, head=head).remaining(["a"])


def test_nothing_else_can_be_deleted(tmp_path):
    ledger = asked(tmp_path / "a.ledger", n_queries=2)
    ledger.erase("a")
    import sqlite3

    with ledger._state.store.transaction(write=True) as connection:
        for table in ("answers", "salts WHERE release = 3", "erasures"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(f"DELETE FROM {table}")


def test_a_published_head_notices_an_older_backup(place, tmp_path):
    ledger = new_ledger(place)
    ledger.answer(linear(1), ["a"], ones)
    first = ledger.head
    if not isinstance(place, str):
        for end in ("", ".lock"):
            shutil.copy(f"{place}{end}", f"{tmp_path}/backup{end}")
    ledger.answer(linear(2), ["a"], ones)
    second = ledger.head
    assert [head.split()[0] for head in (first, second)] == ["1", "2"]
    for head in (first, second, f"0 {'0' * 64}"):
        new_ledger(place, head=head).close()
        PrivacyLedger.open(place, head=head, read_only=True).close()
        assert ledger_report(place, head=head)["head"] == second
    ledger.close()
    if isinstance(place, str):
        gone = [f"DELETE FROM {table} WHERE release = 2" for table in ("answers", "salts", "releases")]
        edit_as_no_program_should(place, *gone)
    else:
        # Both files are of the same day: only what was published elsewhere tells.
        for end in ("", ".lock"):
            shutil.copy(f"{tmp_path}/backup{end}", f"{place}{end}")
    assert PrivacyLedger.open(place, head=first).remaining(["a"]).round(6).tolist() == [0.7]
    for use in (
        lambda: new_ledger(place, head=second),
        lambda: PrivacyLedger.open(place, head=second),
        lambda: ledger_report(place, head=second),
    ):
        with pytest.raises(LedgerError, match="has lost release 2"):
            use()


@pytest.mark.parametrize(
    "head",
    ["", "1", f"1 {'0' * 63}", f"01 {'0' * 64}", f"1 {'G' * 64}", 7, f"1 {'0' * 64}\n", f"0 {'f' * 64}"],
)
def test_what_is_no_head_is_refused(head):
    with pytest.raises(ValueError, match=r"head must be an earlier PrivacyLedger\.head"):
        PrivacyLedger(1.0, head=head)
