"""What releases of one named part of a record have cost, by what was told of it: exactly, in integers."""

import itertools
import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from accounting.ledgers import linear
from accounting.released import UNITS, rr, weight
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting import _decide as decisions
from skldp.accounting._decide import Rule, decide
from skldp.accounting._query import ReleaseQuery, query_from_json, released_loss
from skldp.accounting._units import nats_above, nats_below
from skldp.accounting.ledger import _verification as established
from skldp.exceptions import LedgerError
from skldp.mechanisms import Laplace, PrivUnit, RandomizedResponse, noise_from
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures

LAWS = {
    "rr": lambda epsilon, n_classes: RandomizedResponse(epsilon, n_classes),
    "sue": lambda epsilon, n_classes: UnaryEncoding(epsilon, n_classes, "sue"),
    "oue": lambda epsilon, n_classes: UnaryEncoding(epsilon, n_classes, "oue"),
    "record": lambda epsilon, n_classes: CategoricalRecord(epsilon, (n_classes,), "oue"),
}


def truth_of(laws, outputs, n_classes):
    """The worst log-ratio of two codes after these releases, in fifty digits."""
    with localcontext(prec=50):
        sums = [
            sum(Decimal(weight(law, output, code)).ln() for law, output in zip(laws, outputs, strict=True))
            for code in range(n_classes)
        ]
        return max(sums) - min(sums)


@st.composite
def releases(draw, n_classes=3, most=10):
    kinds = st.tuples(st.sampled_from(sorted(LAWS)), st.floats(0.01, 3.0))
    laws = [LAWS[kind](epsilon, n_classes) for kind, epsilon in draw(st.lists(kinds, min_size=1, max_size=most))]
    sizes = [ReleaseQuery.of(law, part="job").n_outputs for law in laws]
    return laws, [draw(st.integers(0, size - 1)) for size in sizes]


@settings(max_examples=100)
@given(releases())
def test_a_part_costs_what_enumeration_of_its_codes_finds(pair):
    """Whatever was released of it by which mechanism, and in whatever order."""
    laws, outputs = pair
    truth = truth_of(laws, outputs, 3)
    queries = [ReleaseQuery.of(law, part="job") for law in laws]
    for order in (slice(None), slice(None, None, -1)):
        loss = released_loss(queries[order], outputs[order])
        with localcontext(prec=50):
            assert truth * UNITS <= loss <= (truth + Decimal(10) ** -13) * UNITS
    found = realized_loss(queries, outputs)
    assert (truth <= Decimal(found.upper) <= truth + Decimal(10) ** -13, found.lower) == (True, 0.0)


@settings(max_examples=40)
@given(releases(most=4), st.sampled_from(sorted(LAWS)))
def test_no_output_leads_to_a_larger_loss_than_one_of_a_single_code(pair, kind):
    """A decision looks at as many outputs as there are codes, in place of all sets of them."""
    laws, outputs = pair
    query = ReleaseQuery.of(LAWS[kind](0.7, 3), part="job")
    queries = [ReleaseQuery.of(law, part="job") for law in laws]
    losses = [released_loss([*queries, query], [*outputs, last]) for last in range(query.n_outputs)]
    pairs = list(zip(queries, outputs, strict=True))
    possible = query.worst_outputs(queries, outputs), list(established._possible(query, pairs))
    assert [max(losses[last] for last in some) for some in possible] == [max(losses)] * 2
    numbers = list(range(len(laws)))
    room = decisions._remaining(Rule("bayesian", 50.0), [*queries, query], numbers, (numbers, outputs), query)
    assert room == Rule("bayesian", 50.0).budget - max(losses)


def test_a_part_of_many_codes_is_decided_by_those_that_were_told(monkeypatch):
    """The attack on a ledger's host: a million codes, of which each was tried in every decision."""
    looked_at, mechanism = [], rr(0.4, 10**6)
    monkeypatch.setattr(decisions, "released_loss", lambda *pair: looked_at.append(pair) or released_loss(*pair))
    with PrivacyLedger(1.0) as ledger:
        ledger.release(mechanism, [[0], [0]], ["ann", "bob"], part="place")
        ledger.release(mechanism, [[1], [1]], ["ann", "bob"], part="place")
        ledger.release(mechanism, [[2], [2]], ["ann", "bob"], part="place")
        assert len(looked_at) <= 3 * 2
        assert ledger.would_answer(ReleaseQuery.of(mechanism, part="place"), ["ann"]).losses[0] <= 1.0
        assert ledger.verify().ok


@pytest.mark.parametrize("name", ["sue", "oue"])
def test_forged_laws_of_a_part_are_not_read(name):
    fields = json.loads(ReleaseQuery.of(LAWS[name](0.8, 3), part="job").to_json())
    for change in (
        {"own_count": 2**64},
        {"own_count": -1},
        {"own_count": 0.5},
        {"own_count": fields["other_count"] - 1},
        {"own_count": fields["own_count"] - 2**40},
        {"other_count": fields["other_count"] + 2**40},
        {"row_charge": fields["row_charge"] - 1},
        {"n_classes": 63},
        {"n_rows": 2},
        {"part": None},
    ):
        with pytest.raises(ValueError, match="must be"):
            query_from_json(json.dumps(fields | change))


def fixed_bits(monkeypatch, *rows):
    """Let unary encodings release these bits, one row after another."""
    left = iter(rows)
    monkeypatch.setattr(
        UnaryEncoding, "_draw", lambda self, rows, noise, out, workspace: np.copyto(out, np.array([next(left)], bool))
    )


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
@pytest.mark.parametrize("place", ["memory", "file"])
def test_bits_of_a_part_that_say_nothing_cost_nothing(monkeypatch, tmp_path, rule, place):
    """Four releases at 0.5 on a budget of 1, where the sum admits two: all bits, none, and two that are opposed."""
    fixed_bits(monkeypatch, [1, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 1, 0])
    path = ":memory:" if place == "memory" else tmp_path / "a.ledger"
    with PrivacyLedger(1.0, path=path, rule=rule) as ledger:
        for kind in ("sue", "record", "oue", "oue"):
            assert ledger.release(LAWS[kind](0.5, 3), [[1]], ["ann"], part="job").accepted.all()
        assert ledger.realized_loss(["ann"])[0] == pytest.approx(0.0, abs=1e-15)
        assert [entry["output"] for entry in ledger.history("ann")] == [7, 0, 1, 6]
        assert ledger.release(LAWS["sue"](1.0, 3), [[1]], ["ann"], part="job").accepted.all()
        assert not ledger.release(LAWS["oue"](0.1, 3), [[1]], ["ann"], part="job").accepted.any()
        other = ledger if place == "memory" else PrivacyLedger.open(path)
        assert (other.realized_loss(["ann"])[0], other.verify().ok) == (pytest.approx(1.0, abs=1e-9), True)


def test_codes_and_bits_of_one_part_are_counted_together(monkeypatch):
    monkeypatch.setattr(RandomizedResponse, "_draw", lambda self, rows, noise, out, workspace: out.fill(2))
    fixed_bits(monkeypatch, [1, 1, 0], [0, 0, 1])
    with PrivacyLedger(2.0) as ledger:
        ledger.release(rr(0.6), [[0]], ["ann"], part="job")
        ledger.release(LAWS["sue"](0.6, 3), [[0]], ["ann"], part="job")
        assert ledger.realized_loss(["ann"])[0] == pytest.approx(0.0, abs=1e-15)
        ledger.release(LAWS["sue"](0.6, 3), [[0]], ["ann"], part="job")
        assert ledger.realized_loss(["ann"])[0] == pytest.approx(0.6, abs=1e-9)
        with pytest.raises(LedgerError, match="has 3 codes in this ledger"):
            ledger.release(LAWS["sue"](0.1, 4), [[0]], ["ann"], part="job")


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_many_codes_are_sets_of_many_bits(monkeypatch, tmp_path, rule):
    """More outputs than can be listed, and more than one of them at a time."""
    law = UnaryEncoding(0.4, 62, "sue")
    last, every, path = np.eye(62, dtype=bool)[[61]], np.ones((1, 62), dtype=bool), tmp_path / "a.ledger"
    monkeypatch.setattr(
        UnaryEncoding, "_draw", lambda self, rows, noise, out, workspace: np.copyto(out, np.where(rows, last, every))
    )
    with PrivacyLedger(0.9, path=path, rule=rule) as ledger:
        for _ in range(2):
            assert ledger.release(law, [[0], [1], [1]], ["a", "b", "c"], part="town").accepted.all()
        assert ledger.release(law, [[0], [1], [1]], ["a", "b", "c"], part="town").accepted.tolist() == [1, 0, 0]
        assert ledger.history("b")[0]["output"] == 2**61
    with PrivacyLedger.open(path) as ledger:
        assert ledger.realized_loss(["a", "b", "c"]).round(6).tolist() == [0.0, 0.8, 0.8]
        assert ledger.verify().ok
        with pytest.raises(ValueError, match="n_classes must be"):
            ledger.release(UnaryEncoding(0.4, 63, "sue"), [[0]], ["a"], part="country")


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_a_mixed_history_of_codes_bits_and_answers_is_enumerated():
    """A record is one of 5 x values and 3 codes: every log-likelihood of what was told, at every record."""
    x, noise = np.linspace(-1, 1, 5), noise_from(5)
    asked = [linear(1.0, 0.8), RegressionQuery("logistic", [2.0], 0.3, (0, 1), 0.6), linear(-1.0, 0.7)]
    laws = [rr(0.5), LAWS["oue"](0.7, 3), LAWS["sue"](0.4, 3), rr(0.3), LAWS["oue"](0.7, 3)]
    queries = [ReleaseQuery.of(law, part="job") for law in laws]
    tighter = []
    for _ in range(20):
        answers = [int(query.sample([[0.5]], noise)[0]) for query in asked]
        rows = [law.release([[1]], noise).rows for law in laws]
        outputs = [int(query.outputs_of(row)[0]) for query, row in zip(queries, rows, strict=True)]
        of_x = sum(query.log_likelihood(output, x[:, None]) for query, output in zip(asked, answers, strict=True))
        worst = float(truth_of(laws, outputs, 3)) + of_x.max() - of_x.min()
        certified = realized_loss([*asked, *queries], [*answers, *outputs], bounds=(-1, 1)).upper
        alone = realized_loss(asked, answers, bounds=(-1, 1)).upper
        assert worst <= certified + 1e-12
        assert certified == pytest.approx(alone + float(truth_of(laws, outputs, 3)), abs=1e-9)
        tighter.append(certified - alone - sum(query.epsilon for query in queries))
    # Opposed releases cancel in most histories.
    assert np.median(tighter) < -1.0


def test_a_charge_that_is_taken_off_is_not_taken_off_rounded_up():
    """Of two opposed codes the cheaper counts against the dearer: rounded up as well, it would hide a part of it."""
    laws = [rr(0.3 + i / 100, 2) for i in range(12)]
    queries, hidden = [ReleaseQuery.of(law, part="job") for law in laws], 0
    for low, high in itertools.combinations(range(12), 2):
        with localcontext(prec=50):
            ends = [(Decimal(law.law.own_count) / Decimal(law.law.other_count)).ln() for law in (laws[low], laws[high])]
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


def test_a_part_keeps_its_codes_and_is_one_code():
    with PrivacyLedger(1.0) as ledger:
        ledger.release(rr(0.2), [[0]], ["ann"], part="job")
        with pytest.raises(LedgerError, match="has 3 codes in this ledger"):
            ledger.release(rr(0.2, 4), [[0]], ["ann"], part="job")
        with pytest.raises(ValueError, match="one row"):
            ledger.release(rr(0.2), [[0]] * 2, groups=["ann"] * 2, part="job")
        two = CategoricalRecord(0.4, (3, 3), "sue")
        for mechanism, part in ((PrivUnit(2, 0.2), "job"), (two, "job"), (rr(0.2), 3)):
            with pytest.raises(ValueError, match="part"):
                ledger.release(mechanism, [[1] * mechanism.domain.n_features], ["ann"], part=part)
        with pytest.raises(ValueError, match="must be randomized response to one code"):
            ReleaseQuery.of(two, part="job")
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
    assert problems == ("Release 3 took 1 people ('ann') over their budget of 1.0.",)
