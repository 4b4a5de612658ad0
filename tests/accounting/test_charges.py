"""Releases of any mechanism are charged to the same budgets as answers: in full, exactly, and before they are seen."""

import itertools
import math
import pickle
import sqlite3
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from accounting.ledgers import linear
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from skldp.accounting import (
    FiniteQuery,
    PrivacyLedger,
    RegressionQuery,
    ReleaseQuery,
    advanced_composition,
    ledger_report,
    query_from_json,
    realized_loss,
)
from skldp.accounting import _decide as decisions
from skldp.accounting._composition import loss_of_zcdp, zcdp_budget
from skldp.accounting._decide import Rule, added, decide, surely_admits
from skldp.accounting._ledger import plan, privacy_ledger
from skldp.accounting._release_query import released_loss
from skldp.accounting._units import as_parts, nats_above, nats_below, saturated_sum, units_above, units_below, within
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms import (
    BoundedFeatures,
    CategoricalRecord,
    Duchi,
    Gaussian,
    Laplace,
    MultivariateLaplace,
    Piecewise,
    PrivUnit,
    RandomizedResponse,
    gaussian_delta,
)

UNITS = 2**60


def rr(epsilon, n_classes=3):
    return RandomizedResponse(epsilon, n_classes)


def gaussian(epsilon=0.5, delta=1e-6, n_values=2):
    return BoundedFeatures(
        Gaussian(epsilon, delta, n_values), (0.0,) * n_values, (1.0,) * n_values, n_sampled=n_values, stated=epsilon
    )


class Watched:
    """Counts what is drawn through a mechanism, and in which order it is drawn and committed."""

    def __init__(self, monkeypatch, ledger):
        self.events, draw, write = [], RandomizedResponse._draw, privacy_ledger.write_release

        def drawn(mechanism, rows, *arguments):
            self.events.append(len(rows))
            return draw(mechanism, rows, *arguments)

        def written(*arguments, **options):
            self.events.append("written")
            return write(*arguments, **options)

        monkeypatch.setattr(RandomizedResponse, "_draw", drawn)
        monkeypatch.setattr(privacy_ledger, "write_release", written)


# Units.


@given(st.floats(1e-300, 1e6), st.integers(0, 2**100))
def test_charges_are_rounded_up_and_budgets_down(nats, units):
    assert units_below(nats) <= Fraction(nats) * UNITS <= units_above(nats)
    assert units_above(nats) - units_below(nats) <= 1
    assert Fraction(nats_below(units)) * UNITS <= units <= Fraction(nats_above(units)) * UNITS
    assert nats_above(units) in (nats_below(units), math.nextafter(nats_below(units), math.inf))


@given(
    charges=st.lists(st.one_of(st.integers(0, 2**62), st.integers(0, 2**95), st.just(math.inf)), max_size=30),
    budget=st.integers(0, 2**95),
    beside=st.sampled_from([None, 0, -1, -(2**30)]),
)
@example(charges=[2**30 - 1] * 3, budget=0, beside=-1)
def test_sums_in_two_parts_are_those_of_integers(charges, budget, beside):
    total = sum(charges)
    if beside is not None and math.isfinite(total):
        budget = max(0, total + beside)
    sums = np.zeros((1, 2), dtype=np.int64)
    for charge in charges:
        sums = saturated_sum(sums, as_parts(charge))
    found = bool(within(sums, budget)[0])
    assert not found or total <= budget
    if total < 2**89 and budget < 2**90:
        assert found == (total <= budget)


def test_a_budget_of_one_admits_ten_times_a_tenth_and_no_eleventh():
    query = linear(1, 0.1)
    for rule in ("basic", "simplified", "bayesian"):
        with PrivacyLedger(1.0, bounds=(-1, 1), rule=rule) as ledger:
            asked = [
                ledger.answer(query, ["ann"], lambda people: [1], repeat=True).accepted.tolist() for _ in range(11)
            ]
            assert asked == [[True]] * 10 + [[False]]
            assert ledger.verify().ok


@pytest.mark.parametrize(
    "mechanism",
    [
        *(BoundedFeatures(law(0.1), (0.0,), (1.0,), n_sampled=1, stated=0.1) for law in (Duchi, Laplace, Piecewise)),
        rr(0.1),
        CategoricalRecord(0.1, (3, 2), "krr"),
        CategoricalRecord(0.1, (3, 2), "oue"),
        PrivUnit(2, 0.1),
    ],
    ids=lambda mechanism: type(getattr(mechanism, "mechanism", mechanism)).__name__,
)
def test_ten_releases_at_a_tenth_are_one_although_its_float_is_more(mechanism):
    """The float of a tenth is a hair above it: every mechanism stays a hair below, so that it adds up."""
    assert 10 * Fraction(0.1) > 1
    row = np.ones((1, mechanism.domain.n_features), dtype=np.int64)
    with PrivacyLedger(1.0) as ledger:
        asked = [ledger.release(mechanism, row, ["ann"]).accepted.tolist() for _ in range(11)]
        assert asked == [[True]] * 10 + [[False]]


def test_four_quarters_are_one_however_they_are_shared_out():
    """0.25 is a float: charges that add up to the budget are admitted, one unit more is not."""
    with PrivacyLedger(1.0) as ledger:
        laplace = BoundedFeatures(Laplace(0.25), (0.0,), (1.0,), n_sampled=1, stated=0.25)
        assert ReleaseQuery.of(laplace).charge == UNITS // 4
        assert ledger.release(laplace, [[0.1]] * 3, groups=["ann"] * 3).accepted.all()
        assert ledger.release(laplace, [[0.1]], ["ann"]).accepted.all()
        assert not ledger.release(rr(1e-12), [[1]], ["ann"]).accepted.any()
        assert ledger.realized_loss(["ann"]).tolist() == [1.0]


@settings(max_examples=60)
@given(
    epsilons=st.lists(st.floats(1e-6, 3.0), min_size=1, max_size=12),
    budget=st.floats(0.1, 4.0),
    name=st.sampled_from(["basic", "simplified", "bayesian"]),
)
def test_releases_alone_are_decided_as_integers_whatever_the_order(epsilons, budget, name):
    queries = [ReleaseQuery.of(rr(epsilon)) for epsilon in epsilons]
    history, last = queries[:-1], queries[-1]
    expected = sum(math.ceil(Fraction(rr(e).guarantee().epsilon) * UNITS) for e in epsilons) <= units_below(budget)
    spent = np.zeros((1, 4), dtype=np.int64)
    for query in history:
        spent = added(spent, query)
    rule, numbers = Rule(name, budget, (-1, 1)), list(range(len(history)))
    for order in (numbers, numbers[::-1]):
        assert decide(rule, history, [(order, [0] * len(order))], last) == [expected]
    assert surely_admits(rule, spent, last).tolist() == [expected]


# What a release costs.


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
        with pytest.raises(ValueError, match=r"mechanism must be a RowMechanism|finite epsilon and no delta"):
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


def test_nobody_names_a_price():
    """Only a mechanism's own guarantee is charged: a query of a caller's making is not asked."""
    cheap = ReleaseQuery("RandomizedResponse", 1, 1)
    with PrivacyLedger(1.0) as ledger:
        with pytest.raises(ValueError, match="read off its mechanism"):
            ledger.answer(cheap, ["ann"], lambda people: [0])
        assert ledger.verify().n_releases == 0


# Who is charged, and what is handed out.


def test_a_release_is_written_before_it_is_seen_and_the_refused_are_never_drawn(monkeypatch, fixed_noise):
    ledger = PrivacyLedger(1.0)
    watched = Watched(monkeypatch, ledger)
    ledger.release(rr(0.6), [[0], [1]], ["ann", "bob"])
    found = ledger.release(rr(0.6), [[2], [1], [0]], ["ann", "eve", "bob"])
    assert watched.events == [2, "written", 1, "written"]
    assert found.accepted.tolist() == [False, True, False]
    assert found.rows.shape == (1, 1)
    assert found.filled(-1).ravel().tolist() == [-1, found.rows[0, 0], -1]
    with pytest.raises(ValueError, match="whole numbers"):
        found.filled()
    assert ledger.verify().ok


def test_what_is_not_committed_is_not_handed_out(monkeypatch, tmp_path):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(1.0, path=path)

    def broken(*arguments, **options):
        raise sqlite3.OperationalError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(privacy_ledger, "write_release", broken)
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
        (lambda: ledger.release(rr(0.5), [[1], [1]], ["bob", "bob"]), "asked only once"),
        (lambda: ledger.release(rr(0.5), [[1]]), "either ids or groups"),
        (lambda: ledger.release(rr(0.5), [[1]], ["bob"], groups=["bob"]), "either ids or groups"),
        (lambda: ledger.release(rr(0.5), [[1]] * 3, groups=["b", "b", "c"], all_or_none=True), "as many rows"),
        (lambda: ledger.release(gaussian(), [[0.1, 0.1]], ["bob"]), "needs a budget with a delta"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "777" not in str(caught.value)
    assert watched.events == []
    assert ledger.remaining(["bob", "ann"]).tolist() == [1.0, 0.0]


def test_all_or_none_releases_nothing_where_somebody_is_refused(monkeypatch):
    ledger = PrivacyLedger(1.0)
    ledger.release(rr(0.6), [[0]], ["ann"])
    watched = Watched(monkeypatch, ledger)
    with pytest.raises(BudgetExhaustedError, match="1 of 2 people"):
        ledger.release(rr(0.6), [[0], [1]], ["bob", "ann"], all_or_none=True)
    assert watched.events == []
    assert ledger.release(rr(0.6), [[0]], ["bob"], all_or_none=True).accepted.all()


def test_several_rows_of_a_person_are_each_charged_and_refused_together(fixed_noise):
    rows, groups = [[0], [1], [2], [0], [1], [1]], ["ann", "bob", "ann", "eve", "ann", "bob"]
    with PrivacyLedger(1.3) as ledger:
        found = ledger.release(rr(0.6), rows, groups=groups)
        assert found.accepted.tolist() == [False, True, False, True, False, True]
        one = Fraction(rr(0.6).guarantee().epsilon)
        spent = ledger.realized_loss(["ann", "bob", "eve"]).tolist()
        assert [Fraction(loss) for loss in spent] == pytest.approx([0, 2 * one, one], abs=1e-17)
        # A second call is a second release.
        again = ledger.release(rr(0.6), rows, groups=groups)
        assert again.accepted.tolist() == [False, False, False, True, False, False]
        assert ledger.verify().ok
        assert [entry["query"].n_rows for entry in ledger.history("bob")] == [2]


@pytest.mark.parametrize("mechanism", [rr(0.5), PrivUnit(3, 0.5), CategoricalRecord(0.5, (3, 2), "oue")])
def test_a_release_under_a_ledger_is_that_of_the_mechanism(mechanism, fixed_noise):
    rows = np.tile(np.arange(mechanism.domain.n_features) % 2, (5, 1)).astype(
        np.int64 if mechanism.domain.n_features < 3 else np.float64
    )
    with PrivacyLedger(1.0) as ledger:
        found = ledger.release(mechanism, rows, range(5))
    assert found.rows.shape == (5, mechanism.n_outputs)
    assert found.rows.dtype == mechanism.output_dtype(rows.dtype)
    assert found.n_moved == 0


# Beside answers.


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


def test_a_release_does_not_move_the_domain_of_the_answers():
    with PrivacyLedger(2.0, bounds=(-1, 1)) as ledger:
        ledger.release(PrivUnit(7, 0.4), np.eye(7)[:1], ["ann"])
        ledger.answer(linear(1, 0.3), ["ann"], lambda people: [1])
        ledger.release(rr(0.3), [[0]], ["ann"])
        two = RegressionQuery("linear", [1.0, 1.0], 0.0, (-2, 2), 0.3)
        with pytest.raises(LedgerError, match="one domain"):
            ledger.answer(two, ["ann"], lambda people: [1])


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


def test_finite_queries_stand_beside_releases():
    table = FiniteQuery.from_probabilities([[0.6, 0.4], [0.4, 0.6]])
    found = realized_loss([table, ReleaseQuery.of(rr(0.2)), table], [0, 0, 1])
    assert (found.lower, found.upper) == (0.0, pytest.approx(0.2, abs=1e-9))
    only = realized_loss([ReleaseQuery.of(rr(0.2))], [0])
    assert (only.lower, only.upper) == (0.0, ReleaseQuery.of(rr(0.2)).epsilon)


# Parts of a record, by what was released of them.


def response_counts(mechanism, released):
    """Counts out of 2^64 of releasing a code, for every true code: the mechanism's own integers."""
    return [mechanism.keep_count if code == released else mechanism.other_count for code in range(mechanism.n_classes)]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0.01, 3.0), st.integers(0, 2)), min_size=1, max_size=10))
def test_a_part_costs_what_enumeration_of_its_codes_finds(pairs):
    """The log-likelihoods of every code, in fifty digits, from the integers that are sampled."""
    laws, outputs = [rr(epsilon) for epsilon, _ in pairs], [output for _, output in pairs]
    with localcontext(prec=50):
        likelihoods = [
            sum(Decimal(response_counts(law, output)[code]).ln() for law, output in zip(laws, outputs, strict=True))
            for code in range(3)
        ]
        truth = max(likelihoods) - min(likelihoods)
        queries = [ReleaseQuery.of(law, part="job") for law in laws]
        assert truth * UNITS <= released_loss(queries, outputs) <= (truth + Decimal(10) ** -13) * UNITS
        found = realized_loss(queries, outputs)
        assert truth <= Decimal(found.upper) <= truth + Decimal(10) ** -13
    assert found.lower == 0.0


def test_a_charge_that_is_taken_off_is_not_taken_off_rounded_up():
    """Of two opposed codes the cheaper counts against the dearer: rounded up as well, it would hide a part of it."""
    laws = [rr(0.3 + i / 100, 2) for i in range(12)]
    queries, hidden = [ReleaseQuery.of(law, part="job") for law in laws], 0
    for low, high in itertools.combinations(range(12), 2):
        with localcontext(prec=50):
            ends = [(Decimal(law.keep_count) / Decimal(law.other_count)).ln() for law in (laws[low], laws[high])]
            truth = (ends[1] - ends[0]) * UNITS
        assert truth <= released_loss([queries[low], queries[high]], [0, 1])
        hidden += queries[high].charge - queries[low].charge < truth
    assert hidden > 0


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_opposed_codes_of_a_part_cost_little_and_equal_ones_their_sum(monkeypatch, rule):
    """Four releases at 0.5 on a budget of 1: beside them the basic rule admits two, and other parts count apart."""
    codes = iter([0, 1, 0, 1, 1])
    monkeypatch.setattr(RandomizedResponse, "_draw", lambda self, rows, noise, out, workspace: out.fill(next(codes)))
    law = rr(0.5, 2)
    with PrivacyLedger(1.0, rule=rule) as ledger:
        for _ in range(4):
            assert ledger.release(law, [[0]], ["ann"], part="job").accepted.all()
        assert ledger.realized_loss(["ann"])[0] == pytest.approx(0.0, abs=1e-15)
        assert [entry["output"] for entry in ledger.history("ann")] == [0, 1, 0, 1]
        # What they say has cancelled; another part begins with its whole epsilon.
        assert ledger.release(law, [[0]], ["ann"], part="home").accepted.all()
        assert ledger.realized_loss(["ann"])[0] == pytest.approx(0.5, abs=1e-12)
        assert not ledger.release(rr(0.51, 2), [[0]], ["ann"], part="home").accepted.any()
        assert ledger.verify().ok


def test_a_code_that_is_not_told_counts_in_full():
    """To another tenant, and after an erasure: whatever it was, it may have been the worst."""
    named, full = ReleaseQuery.of(rr(0.5), part="job"), ReleaseQuery.of(rr(0.5))
    assert (ReleaseQuery.in_place_of(named).part, ReleaseQuery.in_place_of(named).charge) == (None, full.charge)
    assert ReleaseQuery.in_place_of(full) is full


def test_a_draw_that_is_tried_again_is_handed_out_and_counted_once(monkeypatch, fixed_noise):
    """As where a transaction must be tried again: what its first attempt drew is nobody's."""
    number = BoundedFeatures(Laplace(0.5), (0.0,), (1.0,), n_sampled=1, stated=0.5)
    with PrivacyLedger(1.0) as ledger:
        write, again = privacy_ledger.write_release, iter([True, False])
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

        monkeypatch.setattr(privacy_ledger, "write_release", conflicting)
        monkeypatch.setattr(ledger._store, "repeated", repeated)
        sample = Laplace._integers
        monkeypatch.setattr(Laplace, "_integers", lambda *given: drawn.append(sample(*given)) or drawn[-1])
        found = ledger.release(number, [[7.0]], ["ann"])
        assert (len(drawn), found.n_moved, found.accepted.tolist()) == (2, 1, [True])
        assert ledger.realized_loss(["ann"]).tolist() == [0.5]
        assert ledger.verify().ok


def test_a_part_keeps_its_codes_and_is_one_code_of_randomized_response():
    with PrivacyLedger(1.0) as ledger:
        ledger.release(rr(0.2), [[0]], ["ann"], part="job")
        with pytest.raises(LedgerError, match="has 3 codes in this ledger"):
            ledger.release(rr(0.2, 4), [[0]], ["ann"], part="job")
        with pytest.raises(ValueError, match="one code"):
            ledger.release(rr(0.2), [[0]] * 2, groups=["ann"] * 2, part="job")
        for mechanism, part in ((PrivUnit(2, 0.2), "job"), (rr(0.2), 3)):
            with pytest.raises(ValueError, match="part"):
                ledger.release(mechanism, [[1] * mechanism.domain.n_features], ["ann"], part=part)
        assert ledger.release(rr(0.2, 4), [[0]], ["ann"], part="home").accepted.all()
        assert ledger.verify().n_releases == 2


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_what_fits_to_the_last_unit_is_released_and_one_unit_less_is_not(monkeypatch, rule):
    laws = rr(0.5, 3), rr(0.25, 3), rr(0.75, 3)
    whole = ReleaseQuery.of(laws[0]).charge + ReleaseQuery.of(laws[2]).charge
    for budget, fits in ((nats_above(whole), True), (math.nextafter(nats_below(whole), 0), False)):
        codes = iter([0, 1, 0])
        draw = lambda self, rows, noise, out, workspace, codes=codes: out.fill(next(codes))  # noqa: E731
        monkeypatch.setattr(RandomizedResponse, "_draw", draw)
        with PrivacyLedger(budget, bounds=(-1, 1), rule=rule) as ledger:
            accepted = [ledger.release(law, [[0]], ["ann"], part="job").accepted.all() for law in laws]
            assert accepted == [True, True, fits]
            assert ledger.verify().ok


@pytest.mark.parametrize("name", ["simplified", "bayesian"])
def test_where_releases_leave_nothing_no_answer_fits(name):
    quarter = ReleaseQuery.of(BoundedFeatures(Laplace(0.25), (0.0,), (1.0,), n_sampled=1, stated=0.25))
    queries, rule = [quarter, linear(1, 0.1)], Rule(name, 0.5, (-1, 1))
    assert decide(rule, queries, [([0, 0], [0, 0]), ([0], [0])], queries[1]) == [False, True]
    # A release that would take the last unit is none for somebody who has answered as well.
    assert decide(rule, queries, [([0], [0]), ([0, 1], [0, 1])], quarter) == [True, False]


def test_verification_counts_the_votes_for_a_code_itself(monkeypatch):
    codes = iter([0, 0, 0])
    monkeypatch.setattr(RandomizedResponse, "_draw", lambda self, rows, noise, out, workspace: out.fill(next(codes)))
    with PrivacyLedger(1.0) as ledger:
        with monkeypatch.context() as patched:
            patched.setattr(decisions, "released_loss", lambda queries, outputs: 0)
            for _ in range(3):
                assert ledger.release(rr(0.5, 2), [[0]], ["ann"], part="job").accepted.all()
        problems = ledger.verify().problems
    assert problems == ("Release 3 took 1 people ('ann') past their budget of 1.0.",)


# A delta.


def test_the_room_for_concentrated_privacy_is_that_of_advanced_composition():
    for epsilon, delta in itertools.product((0.01, 1.0, 8.0), (0.3, 1e-6, 1e-30)):
        room = zcdp_budget(epsilon, delta)
        rho = Fraction(room, UNITS)
        spent = advanced_composition([math.sqrt(2 * rho)], epsilon=epsilon, delta=delta, rule="whitehouse")
        assert spent == pytest.approx(epsilon, rel=1e-9)
        assert loss_of_zcdp(room, delta) <= epsilon < loss_of_zcdp(room + 2, delta) + 1e-15


@pytest.mark.parametrize("order", [2, 5])
def test_the_concentrated_privacy_of_the_gaussian_is_that_of_its_integers(order):
    """Renyi divergences of two sampled laws at the ends of a coarse lattice, term by term."""
    mechanism = Gaussian(1.0, 0.2, lattice_bits=2)
    apart, sigma = 2 << mechanism.lattice_exponent, mechanism.sigma
    z = np.arange(-60 * sigma, 60 * sigma + 1, dtype=np.float64)
    mass = -0.5 * (z / sigma) ** 2
    mass -= logsumexp(mass)
    divergence = logsumexp(order * mass[apart:] - (order - 1) * mass[:-apart]) / (order - 1)
    assert order * float(mechanism.zcdp) * 0.99 < divergence <= order * float(mechanism.zcdp) * (1 + 1e-9)


def test_gaussians_are_released_while_their_sum_fits_and_never_beyond(tmp_path, fixed_noise):
    path, epsilon, delta, mechanism = tmp_path / "a.ledger", 1.0, 1e-5, gaussian(0.3, 1e-6)
    ledger = PrivacyLedger(epsilon, path=path, rule="approximate", delta=delta)
    n = zcdp_budget(epsilon, delta) // ReleaseQuery.of(mechanism).zcdp
    assert n >= 3
    released = [ledger.release(mechanism, [[0.2, 0.9]], ["ann"]).accepted.all() for _ in range(n + 2)]
    assert released == [True] * n + [False] * 2
    # n of them together are one Gaussian with a smaller deviation, whose exact delta is known.
    inner = mechanism.mechanism
    sensitivity = math.ldexp(2 * math.sqrt(2), inner.lattice_exponent)
    assert gaussian_delta(inner.sigma / math.sqrt(n), epsilon, sensitivity) <= delta
    loss = ledger.realized_loss(["ann"])
    assert epsilon - 0.3 < loss[0] <= epsilon
    ledger.close()
    # What is promised is in the file.
    report = ledger_report(path, verify=True)
    assert (report["delta"], report["rule"], report["verification"]["ok"]) == (delta, "approximate", True)
    for other in ({"rule": "approximate", "delta": 1e-6}, {"rule": "bayesian"}):
        with pytest.raises(LedgerError, match="never changes"):
            PrivacyLedger(epsilon, path=path, **other)


def test_every_gaussian_of_a_row_and_every_row_of_a_person_counts(fixed_noise):
    each = Gaussian(0.2, 1e-7)
    apart = BoundedFeatures(each, (0.0,) * 3, (1.0,) * 3, n_sampled=3, stated=0.6)
    assert ReleaseQuery.of(apart).zcdp == math.ceil(3 * each.zcdp * UNITS)
    with PrivacyLedger(1.0, rule="approximate", delta=1e-5) as ledger:
        rows = zcdp_budget(1.0, 1e-5) // ReleaseQuery.of(apart).zcdp
        assert rows >= 2
        assert not ledger.release(apart, [[0.5] * 3] * (rows + 1), groups=["ann"] * (rows + 1)).accepted.any()
        assert ledger.release(apart, [[0.5] * 3] * rows, groups=["ann"] * rows).accepted.all()
        assert ledger.verify().ok


def test_a_delta_and_its_rule_go_together():
    for parameters in ({"delta": 1e-6}, {"rule": "approximate"}, {"rule": "basic", "delta": 1e-6}):
        with pytest.raises(ValueError, match="delta goes with"):
            PrivacyLedger(1.0, **parameters)
    with pytest.raises(ValueError, match="below 1/e"):
        PrivacyLedger(1.0, rule="approximate", delta=0.5)


def test_answers_gaussians_and_labels_share_a_budget_with_a_delta(fixed_noise):
    query = linear(1, 0.05)
    with PrivacyLedger(1.0, bounds=(-1, 1), rule="approximate", delta=1e-5) as ledger:
        ledger.release(gaussian(0.3, 1e-6), [[0.2, 0.9]], ["ann"])
        ledger.release(rr(0.1), [[0]], ["ann"])
        outputs = itertools.cycle((0, 1))
        for _ in range(60):
            ledger.answer(query, ["ann", "bob"], lambda people: [next(outputs)] * len(people), repeat=True)
        n_ann, n_bob = (len(ledger.history(person)) for person in ("ann", "bob"))
        # Who has no Gaussian is asked on by the realized loss of answers that cancel.
        assert n_bob == 60
        rho = ReleaseQuery.of(gaussian(0.3, 1e-6)).zcdp + ReleaseQuery.of(rr(0.1)).zcdp
        each = -(-(units_above(query.exact_epsilon) ** 2) // (2 * UNITS))
        assert n_ann == 2 + (zcdp_budget(1.0, 1e-5) - rho) // each
        assert ledger.verify().ok
        assert (ledger.realized_loss(["ann", "bob"]) <= 1.0).all()


# Verification decides for itself.


def always(*arguments, **options):
    return True


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (decisions, "_epsilons_admit", always),
        (decisions, "_losses_admit", always),
        (decisions, "charge_of", lambda query: 0),
        (plan, "surely_admits", lambda rule, spent, query: np.ones(len(spent), dtype=bool)),
    ],
)
@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_verification_finds_releases_beyond_the_budget(monkeypatch, module, name, fault, rule):
    with PrivacyLedger(1.0, bounds=(-1, 1), rule=rule) as ledger:
        ledger.answer(linear(1, 0.3), ["ann"], lambda people: [1])
        monkeypatch.setattr(module, name, fault)
        for _ in range(2):
            assert ledger.release(rr(0.45), [[0]], ["ann"]).accepted.all()
        assert ledger.verify().problems == ("Release 3 took 1 people ('ann') past their budget of 1.0.",)


def test_verification_finds_gaussians_beyond_the_budget(monkeypatch, fixed_noise):
    with PrivacyLedger(0.5, rule="approximate", delta=1e-6) as ledger:
        monkeypatch.setattr(decisions, "zcdp_budget", lambda epsilon, delta: 2**80)
        for _ in range(3):
            assert ledger.release(gaussian(0.3, 1e-6), [[0.2, 0.9]], ["ann"]).accepted.all()
        problems = ledger.verify().problems
    assert "Release 2 took 1 people ('ann') past their budget of 0.5." in problems
    assert not any("Release 1" in problem for problem in problems)


@dataclass(frozen=True)
class Understated(RandomizedResponse):
    """What a mechanism says of itself is what is charged; here it says the truth of a tenth of its epsilon."""

    def guarantee(self, unit="label"):
        return RandomizedResponse(self.epsilon / 10, self.n_classes).guarantee(unit)


def test_the_price_is_the_guarantees_not_the_parameters():
    assert ReleaseQuery.of(Understated(1.0, 3)).charge == ReleaseQuery.of(rr(0.1)).charge
