"""Records that release some of their columns: laws by enumeration, attacks, and estimates that know the design."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeded

from skldp.domains._columns import Columns
from skldp.domains._domain import Codes
from skldp.mechanisms import Column, estimate_frequencies
from skldp.mechanisms._record import (
    CategoricalRecord,
    MixedRecord,
    automatic_n_asked,
    number_of_sampled_columns,
    sampled_shares,
)
from skldp.mechanisms.categorical._one_hot import OneHotRandomizedResponse
from skldp.shuffle._blanket_laws import pair_laws
from tests.laws import THRESHOLD, chi_square_pvalue


def law_of(record, codes):
    """The exact law of a released row, by enumeration from the parts' own integers: a naive reference."""
    law, sampled = Counter(), record.sampled_from
    share = Fraction(1, math.comb(len(sampled), record.n_sampled))
    for chosen in itertools.combinations(sampled, record.n_sampled):
        asked = [j in chosen or j not in sampled for j in range(len(record.parts))]
        outputs = [
            _answers(part, code) if own else {(-1,) * part.n_outputs: Fraction(1)}
            for part, code, own in zip(record.parts, codes, asked, strict=True)
        ]
        for row in itertools.product(*(one.items() for one in outputs)):
            chance = math.prod((chance for _, chance in row), start=share)
            law[sum((answer for answer, _ in row), ())] += chance
    return law


def _answers(part, code):
    """The bits of one column and their exact chances."""
    if part.n_classes == 1:
        return {(1,): Fraction(1)}
    own, other = (Fraction(count, 2**64) for count in _counts(part))
    if isinstance(part, OneHotRandomizedResponse):
        eye = np.eye(part.n_classes, dtype=int).tolist()
        return {tuple(row): own if j == code else other for j, row in enumerate(eye)}
    found = {}
    for bits in itertools.product((0, 1), repeat=part.n_classes):
        chances = [own if j == code else other for j in range(part.n_classes)]
        found[bits] = math.prod(p if bit else 1 - p for bit, p in zip(bits, chances, strict=True))
    return found


def _counts(part):
    if isinstance(part, OneHotRandomizedResponse):
        return part.law.own_count, part.law.other_count
    _, other, own = part.code_counts
    return own, other


@pytest.mark.parametrize("method", ["krr", "oue", "sue"])
@pytest.mark.parametrize(("sizes", "n_sampled"), [((2, 3), 1), ((2, 1, 2), 1), ((2, 2, 2), 2)])
def test_the_guarantee_is_the_largest_ratio_of_the_enumerated_law(method, sizes, n_sampled):
    record = CategoricalRecord(1.25, sizes, method, n_sampled=n_sampled)
    laws = [law_of(record, codes) for codes in itertools.product(*map(range, sizes))]
    assert all(sum(law.values()) == 1 for law in laws)
    assert len({frozenset(law) for law in laws}) == 1
    worst = max(one[row] / two[row] for one, two in itertools.permutations(laws, 2) for row in one)
    epsilon = record.guarantee().epsilon
    assert math.log(worst) == pytest.approx(epsilon, abs=1e-12)
    assert epsilon <= 1.25
    assert epsilon == pytest.approx(1.25, abs=1e-9)


def test_the_choice_does_not_depend_on_the_values():
    """Attack: a device that asks itself the column that tells most."""
    columns = {
        "a": Column(-1, 1),
        "b": Column(0, 1, missing="category"),
        "c": Column(values=(1, 2, 3)),
        "d": Column(values=(7,)),
    }
    record = MixedRecord(Columns.of(columns), (1.0,) * 4, ("piecewise", "best", "oue", "krr"), n_sampled=2)
    rows = [[-1.0, np.nan, 0, 0], [1.0, 0.5, 2, 0], [0.0, 1.0, 1, 0]]
    asked = [record.asked(record.release([row] * 30_000, seeded(3)).rows) for row in rows]
    np.testing.assert_array_equal(asked[0], asked[1])
    np.testing.assert_array_equal(asked[0], asked[2])
    assert (asked[0].sum(axis=1) == 3).all()
    assert asked[0][:, 3].all()
    counts = Counter(map(tuple, asked[0][:, :3].tolist()))
    assert chi_square_pvalue(list(counts.values()), [1 / 3] * 3) > THRESHOLD


def test_a_column_that_is_not_asked_leaves_nothing_behind():
    """Attack: read the value of a column whose mark is shown."""
    columns = Columns.of({"a": Column(0, 100), "b": Column(0, 1, missing="category"), "c": Column(values=(1, 2, 3))})
    record = MixedRecord(columns, (1.0,) * 3, n_sampled=1)
    released = record.release(np.tile([[99.0, np.nan, 2]], (500, 1)), seeded()).rows
    asked = record.asked(released)
    # The mark of a number is apart from the answer "missing", and that of a code from every code.
    assert np.isnan(released[asked[:, 1], 1]).any()
    assert np.unique(released[~asked[:, 0], 0]).tolist() == [-math.inf]
    assert np.unique(released[~asked[:, 1], 1]).tolist() == [-math.inf]
    assert np.unique(released[~asked[:, 2], 2]).tolist() == [-1]


def test_an_unequal_record_spends_its_largest_columns():
    columns = Columns.of({name: Column(values=(1, 2)) for name in "abc"})
    record = MixedRecord(columns, (0.5, 2.0, 1.0), n_sampled=2)
    assert record.guarantee().epsilon == pytest.approx(3.0, abs=1e-9)
    assert record.guarantee().stated == 3.0
    # Three steps do not add up to what a row spends.
    assert len(record.guarantee().steps) == 1


def test_a_sample_has_neither_products_nor_a_shuffled_law():
    record = CategoricalRecord(2.0, (3, 2), "krr", n_sampled=1)
    assert pair_laws(record).laws == ()
    with pytest.raises(ValueError, match="does not identify the second moments"):
        record.original_second_moment(np.zeros((5, 5)), np.zeros(5))
    assert record.encode([[2, 1]]).rows.tolist() == [[0, 0, 1, 0, 1]]


@settings(max_examples=30)
@given(st.floats(0.05, 12), st.lists(st.sampled_from([2, 3, 4, 10, 50]), min_size=1, max_size=12))
def test_the_automatic_number_has_the_least_predicted_error(epsilon, sizes):
    m = len(sizes)
    domains = [Codes((size,)) for size in sizes]

    def error(s):
        parts = CategoricalRecord(epsilon / s, (sizes[0],), "oue").parts and [
            CategoricalRecord(epsilon / s, (size,), "oue").parts[0] for size in sizes
        ]
        # One report of a uniform population: the variance of its bit, over the square of the gain.
        return m / s * sum(part.mean_bit * (1 - part.mean_bit) / (part.p - part.q) ** 2 for part in parts)

    chosen = automatic_n_asked(domains, epsilon, ("oue",) * m)
    assert error(chosen) == pytest.approx(min(map(error, range(1, m + 1))), rel=1e-6)
    found = number_of_sampled_columns("auto", domains, epsilon, ("oue",) * m)
    assert found == (chosen if chosen < m else None)


def test_numbers_of_columns_are_resolved():
    domains = [Column(0, 1), Column(values=(1,)), Column(values=(1, 2)), Column(0, 1, missing="category")]
    resolve = number_of_sampled_columns
    assert resolve("all", domains, 1.0, "best") is None
    assert resolve(3, domains, 1.0, "best") is None
    assert resolve(2, domains, 1.0, "best") == 2
    assert resolve("auto", domains, 1.0, "best") == 1
    with pytest.raises(ValueError, match="n_sampled_features, if not 'auto' or 'all', must be"):
        resolve(4, domains, 1.0, "best")
    numbers = [Column(0, 1)] * 3
    assert sampled_shares(2.0, numbers, [1, 1, 2], None) == (0.5, 0.5, 1.0)
    assert sampled_shares(2.0, numbers, [1, 1, 1], 2) == (1.0, 1.0, 1.0)


def test_a_column_with_one_value_takes_no_share():
    domains = [Column(0, 1), Column(values=(7,)), Column(values=(1, 2))]
    shares = sampled_shares(2.0, domains, [1, 5, 1], None)
    assert (shares[0], shares[2]) == (1.0, 1.0)
    guarantee = MixedRecord(Columns.of(dict(zip("abc", domains, strict=True))), shares).guarantee()
    assert guarantee.stated == 2.0
    assert 1.999 < guarantee.epsilon <= 2.0
    alone = sampled_shares(2.0, [Column(values=(7,))], [1], None)
    assert MixedRecord(Columns.of({"b": Column(values=(7,))}), alone).guarantee().stated == 2.0


@pytest.mark.parametrize("n_people", [4, 6, 9])
def test_the_variance_for_people_who_were_asked_at_random_is_unbiased(n_people):
    n, p, q = 4, 0.7, 0.2
    held = [1] * 2 + [0] * (n_people - 2)
    mean = second = variance = 0.0
    for people in itertools.combinations(range(n_people), n):
        true = sum(held[one] for one in people)
        for a, b in itertools.product(range(true + 1), range(n - true + 1)):
            chance = math.comb(true, a) * p**a * (1 - p) ** (true - a)
            chance *= math.comb(n - true, b) * q**b * (1 - q) ** (n - true - b) / math.comb(n_people, n)
            one = estimate_frequencies([a + b], n, p, q, n_people=n_people)
            mean += chance * one.frequencies[0]
            second += chance * one.frequencies[0] ** 2
            variance += chance * one.standard_errors[0] ** 2
    assert mean == pytest.approx(2 / n_people, abs=1e-12)
    assert variance == pytest.approx(second - mean**2, rel=1e-9)
