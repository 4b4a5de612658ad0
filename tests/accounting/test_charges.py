"""Releases of any mechanism are charged to the same budgets as answers: in full, and before they are seen."""

import itertools
import math
import pickle
import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from accounting.ledgers import linear
from accounting.released import UNITS, Watched, gaussian, rr

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting._query import ReleaseQuery, query_from_json
from skldp.accounting._units import units_above
from skldp.accounting.ledger import _ledger_answers as ledger_answers
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms import Laplace, PrivUnit, RandomizedResponse
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace


def test_a_release_costs_what_its_mechanism_guarantees():
    mechanisms = [
        rr(0.7),
        CategoricalRecord(0.7, (3, 2), "krr"),
        PrivUnit(5, 0.7),
        BoundedFeatures(Laplace(0.35), (0.0, 0.0), (1.0, 1.0), n_sampled=2, stated=0.7),
    ]
    for mechanism in mechanisms:
        query, epsilon = ReleaseQuery.of(mechanism), mechanism.guarantee().epsilon
        assert Fraction(query.charge, UNITS) - Fraction(epsilon) < Fraction(1, UNITS)
        assert Fraction(epsilon) <= Fraction(query.charge, UNITS)
        assert ReleaseQuery.of(mechanism, n_rows=3).charge == 3 * query.charge
        assert Fraction(query.zcdp, UNITS) >= Fraction(query.charge, UNITS) ** 2 / 2
        assert query_from_json(query.to_json()).key == query.key
    assert query.mechanism == "BoundedFeatures of Laplace"


@pytest.mark.parametrize(
    "mechanism", [MultivariateLaplace(2, 1.0), None, 0.5, "RandomizedResponse", RandomizedResponse]
)
def test_what_a_ledger_cannot_count_is_refused(mechanism):
    """No diameter is declared, or there is no mechanism at all."""
    with PrivacyLedger(1.0) as ledger:
        with pytest.raises(ValueError, match=r"mechanism must be a RowMechanism|finite epsilon without delta"):
            ledger.release(mechanism, [[0.0, 0.0]], ["ann"])
        assert ledger.verify().n_releases == 0


def test_a_distance_counts_over_its_declared_diameter():
    mechanism = MultivariateLaplace(2, 1.0, radius=1.5)
    assert ReleaseQuery.of(mechanism).charge == units_above(mechanism.guarantee().plain_epsilon) >= 3 * UNITS


@pytest.mark.parametrize(
    "fields",
    [
        {"row_charge": -1},
        {"row_charge": 0.5},
        {"row_charge": UNITS, "row_zcdp": 0},
        {"n_rows": 0},
        {"mechanism": 3},
        {"row_zcdp": None},
        {"more": 1},
        {"part": 3, "n_classes": 2},
        {"part": "p"},
        {"n_classes": 2},
        {"part": "p", "n_classes": 2, "n_rows": 2},
        {"part": "p", "n_classes": 2},
        {"part": "p", "n_classes": 2, "other_count": 2**62},
        {"other_count": 2**62},
    ],
)
def test_what_is_no_release_is_not_read(fields):
    """A forged file cannot give a release a price that no mechanism has."""
    written = pickle.loads(pickle.dumps(ReleaseQuery.of(rr(1.0)))).to_json()
    changed = {"kind": "release", "mechanism": "M", "row_charge": UNITS, "row_zcdp": UNITS // 2, "n_rows": 1} | fields
    assert query_from_json(written).epsilon <= 1.0
    with pytest.raises(ValueError, match="must be"):
        query_from_json(str(changed).replace("'", '"').replace("None", "null"))


def test_a_release_is_written_before_it_is_seen_and_the_refused_are_never_drawn(monkeypatch, fixed_noise):
    ledger = PrivacyLedger(1.0)
    watched = Watched(monkeypatch, ledger)
    ledger.release(rr(0.6), [[0], [1]], ["ann", "bob"])
    found = ledger.release(rr(0.6), [[2], [1], [0]], ["ann", "eve", "bob"])
    assert watched.events == [2, "written", 1, "written"]
    assert found.accepted.tolist() == [False, True, False]
    assert found.rows.shape == (1, 1)
    assert ledger.verify().ok


def test_what_is_not_committed_is_not_handed_out(monkeypatch, tmp_path):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(1.0, path=path)

    def broken(*arguments, **options):
        raise sqlite3.OperationalError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(ledger_answers, "write_release", broken)
        with pytest.raises(LedgerError, match="nothing was released"):
            ledger.release(rr(0.6), [[0]], ["ann"])
    assert PrivacyLedger.open(path).realized_loss(["ann"]).tolist() == [0.0]


def test_all_that_can_fail_fails_before_a_draw(monkeypatch):
    """Also where the row that is no record belongs to somebody who would be refused; no text tells a value."""
    ledger = PrivacyLedger(1.0)
    number = BoundedFeatures(Laplace(0.5), (0.0,), (1.0,), n_sampled=1, stated=0.5)
    ledger.release(number, [[0.1]] * 2, groups=["ann"] * 2)
    watched = Watched(monkeypatch, ledger)
    calls = [
        (lambda: ledger.release(number, [[0.777], [math.nan]], ["bob", "ann"]), "NaN"),
        (lambda: ledger.release(number, [[0.777, 0.777]], ["bob"]), "shape"),
        (lambda: ledger.release(rr(0.5), [[7]], ["bob"]), "codes"),
        (lambda: ledger.release(rr(0.5), [[1], [1]], ["bob"]), "one id for each of the 2 rows"),
        (lambda: ledger.release(rr(0.5), [[1], [1]], ["bob", "bob"]), "contain each id only once"),
        (lambda: ledger.release(rr(0.5), [[1]]), "either ids or groups"),
        (lambda: ledger.release(rr(0.5), [[1]], ["bob"], groups=["bob"]), "either ids or groups"),
        (lambda: ledger.release(rr(0.5), [[1]] * 3, groups=["b", "b", "c"], all_or_none=True), "same number of rows"),
        (lambda: ledger.release(gaussian(), [[0.1, 0.1]], ["bob"]), "needs a ledger with a delta"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "777" not in str(caught.value)
    assert watched.events == []
    assert ledger.remaining(["bob", "ann"]).tolist() == [1.0, 0.0]


def test_a_draw_that_is_tried_again_is_handed_out_and_counted_once(monkeypatch, fixed_noise):
    """As where a transaction must be tried again: what its first attempt drew is nobody's."""
    number = BoundedFeatures(Laplace(0.5), (0.0,), (1.0,), n_sampled=1, stated=0.5)
    with PrivacyLedger(1.0) as ledger:
        write, again = ledger_answers.write_release, iter([True, False])
        drawn = []

        def conflicting(connection, release, *arguments, **options):
            if next(again):
                raise ValueError("a conflict")
            return write(connection, release, *arguments, **options)

        def repeated(attempt):
            try:
                return attempt()
            except ValueError:
                return attempt()

        monkeypatch.setattr(ledger_answers, "write_release", conflicting)
        monkeypatch.setattr(ledger._state.store, "retry", repeated)
        sample = Laplace._integers
        monkeypatch.setattr(Laplace, "_integers", lambda *given: drawn.append(sample(*given)) or drawn[-1])
        found = ledger.release(number, [[7.0]], ["ann"])
        assert (len(drawn), found.n_moved, found.accepted.tolist()) == (2, 1, [True])
        assert ledger.realized_loss(["ann"]).tolist() == [0.5]
        assert ledger.verify().ok


def test_all_or_none_releases_nothing_where_somebody_is_refused(monkeypatch):
    ledger = PrivacyLedger(1.0)
    ledger.release(rr(0.6), [[0]], ["ann"])
    watched = Watched(monkeypatch, ledger)
    with pytest.raises(BudgetExhaustedError, match="1 of 2 people"):
        ledger.release(rr(0.6), [[0], [1]], ["bob", "ann"], all_or_none=True)
    assert watched.events == []
    assert ledger.release(rr(0.6), [[0]], ["bob"], all_or_none=True).accepted.all()


def points_of(*sizes):
    return list(itertools.product(*(range(size) for size in sizes)))


def test_a_mixed_history_costs_what_enumeration_finds_or_a_little_more():
    """A record is one of 5 x values, 3 classes and 2 table rows: every output of every release, looked at exactly."""
    x = np.linspace(-1, 1, 5)
    asked = [linear(1.0, 0.8), RegressionQuery("logistic", [2.0], 0.3, (0, 1), 0.6), linear(-1.0, 0.7)]
    labels, table = rr(0.5), CategoricalRecord(0.4, (2,), "krr")
    releases = [ReleaseQuery.of(labels), ReleaseQuery.of(table)]
    ends = [(label_out, table_out) for label_out in range(3) for table_out in range(2)]
    for outputs in itertools.product((0, 1), repeat=3):
        with PrivacyLedger(5.0, bounds=(-1, 1)) as ledger:
            for query, output in zip(asked, outputs, strict=True):
                ledger.answer(query, ["ann"], lambda people, o=output: [o])
            ledger.release(labels, [[1]], ["ann"])
            ledger.release(table, [[1]], ["ann"])
            certified = float(ledger.realized_loss(["ann"])[0])
            assert ledger.verify().ok
        of_answers = sum(query.log_likelihood(output, x[:, None]) for query, output in zip(asked, outputs, strict=True))
        worst = 0.0
        for label_out, table_out in ends:
            of_labels = labels.log_likelihood(np.full(3, label_out), np.arange(3))
            of_table = np.log(np.where(np.arange(2) == table_out, *_keep_and_other(table)))
            joint = [of_answers[i] + of_labels[j] + of_table[k] for i, j, k in points_of(5, 3, 2)]
            worst = max(worst, max(joint) - min(joint))
        everything = math.fsum(query.exact_epsilon for query in (*asked, *releases))
        assert worst <= certified <= everything
        # The releases count in full, which their worst output costs; the answers by what they were.
        alone = realized_loss(asked, outputs, bounds=(-1, 1)).upper
        assert certified == pytest.approx(alone + releases[0].epsilon + releases[1].epsilon, abs=1e-12)
        assert certified <= worst + 2e-3 + (alone - (of_answers.max() - of_answers.min()))


def _keep_and_other(table):
    # Two categories of one column: the record's only part is randomized response with the whole epsilon.
    odds = math.exp(table.guarantee().epsilon)
    return odds / (1 + odds), 1 / (1 + odds)


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_what_was_released_leaves_the_rest_to_the_answers(rule):
    """The loss of opposed answers is small, so that more of them fit beside a release than epsilons add up to."""
    query = linear(1, 0.5)
    with PrivacyLedger(1.5, bounds=(-1, 1), rule=rule) as ledger:
        assert ledger.release(rr(0.4), [[0]], ["ann"]).accepted.all()
        for output in (0, 1, 0, 1, 0, 0):
            assert ledger.answer(query, ["ann"], lambda people, o=output: [o], repeat=True).accepted.all()
        loss = realized_loss([query] * 6, [0, 1, 0, 1, 0, 0], bounds=(-1, 1)).upper
        assert ledger.realized_loss(["ann"])[0] == pytest.approx(loss + 0.4, abs=2e-3)
        # 3.4 nats of epsilons have cost 1.4: there is room for a release, and then for no other answer.
        assert loss + 0.4 == pytest.approx(1.4, abs=1e-6)
        assert not ledger.release(rr(1.5 - loss - 0.4 + 2e-3), [[0]], ["ann"]).accepted.any()
        assert ledger.release(rr(1.5 - loss - 0.4 - 2e-3), [[0]], ["ann"]).accepted.all()
        assert not ledger.answer(query, ["ann"], lambda people: [1], repeat=True).accepted.any()
        assert ledger.verify().ok


def test_releases_stand_beside_tables_and_quick_decisions():
    """Many people with different releases and the same answers: each is decided as alone."""
    query, names = linear(1, 0.4), [f"p{i}" for i in range(6)]
    with PrivacyLedger(1.0, bounds=(-1, 1)) as ledger:
        for i, name in enumerate(names):
            if i:
                ledger.release(rr(0.1 * i), [[0]], [name])
        for _ in range(2):
            ledger.answer(query, names, lambda people: np.ones(len(people), dtype=int), repeat=True)
        together = [len(ledger.history(name)) - (i > 0) for i, name in enumerate(names)]
        # Two equal answers cost .8: with .1 of releases they fit, and with .2 that is the budget; from .3 on one does.
        assert together == [2, 2, 2, 1, 1, 1]
        assert ledger.verify().ok
