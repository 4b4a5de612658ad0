"""Budgets and charges are whole units of 2^-60 nats, rounded away from the person's risk: sums are exact."""

import math
from fractions import Fraction

import numpy as np
import pytest
from accounting.released import UNITS, rr
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skldp import PrivacyLedger
from skldp.accounting._decide import Rule, decide, surely_admits
from skldp.accounting._query import ReleaseQuery, charge_parts
from skldp.accounting._units import (
    as_parts,
    is_within,
    nats_above,
    nats_below,
    nats_of_sums,
    saturated_sum,
    units_above,
    units_below,
)
from skldp.mechanisms import Laplace, Piecewise, PrivUnit
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi


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
    both = np.zeros((1, 4), dtype=np.int64)
    for charge in charges:
        both = saturated_sum(both, np.stack([as_parts(charge), as_parts(0)]))
    sums = both[:, :2]
    assert not both[:, 2:].any()
    found = bool(is_within(sums, budget)[0])
    assert not found or total <= budget
    if total < 2**89 and budget < 2**90:
        assert found == (total <= budget)
    (told,) = nats_of_sums(sums)
    assert told == (nats_above(total) if total < 2**89 else told)
    assert math.isinf(told) or Fraction(told) * UNITS >= total


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
        spent = saturated_sum(spent, charge_parts(query))
    rule, numbers = Rule(name, budget, (-1, 1)), list(range(len(history)))
    for order in (numbers, numbers[::-1]):
        assert decide(rule, history, [(order, [0] * len(order))], last) == [expected]
    assert surely_admits(rule, spent, last).tolist() == [expected]
