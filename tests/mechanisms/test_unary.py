"""Unary encodings, one-hot randomized response, frequencies and whole records: exact laws by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import THRESHOLD, chi_square_pvalue, log_likelihood, seeded

from skldp.laws._odds import split_epsilon
from skldp.mechanisms import estimate_frequencies
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.categorical._one_hot import OneHotRandomizedResponse, SubsetSelection, UnaryEncoding

epsilons = st.floats(1e-3, 20)
variants = st.sampled_from(["sue", "oue"])
METHODS = st.sampled_from(["krr", "sue", "oue", "subset", "hashing"])


@given(epsilons, st.integers(2, 6), variants)
def test_worst_ratio_over_all_bit_patterns_is_the_exact_epsilon(epsilon, n_classes, variant):
    law = UnaryEncoding(epsilon, n_classes, variant)
    patterns = np.array(list(itertools.product([0, 1], repeat=n_classes)))
    logs = np.stack([log_likelihood(law, patterns, np.full(len(patterns), code)) for code in range(n_classes)])
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-9)
    assert np.ptp(logs, axis=0).max() == pytest.approx(law.exact_epsilon, rel=1e-9, abs=1e-12)
    assert -1e-9 <= law.exact_epsilon - epsilon <= 0


def test_a_single_category_is_released_as_it_is():
    for law in (
        OneHotRandomizedResponse(1.0, 1),
        UnaryEncoding(1.0, 1, "sue"),
        UnaryEncoding(1.0, 1, "oue"),
        SubsetSelection(1.0, 1),
    ):
        assert law.release([[0], [0]], seeded()).rows.tolist() == [[True], [True]]
        assert law.guarantee().epsilon == 0


@given(st.floats(0.05, 5), METHODS, st.integers(1, 4), st.integers(0, 4))
def test_frequencies_and_their_variances_are_unbiased(epsilon, method, n_true, n_false):
    (law,) = CategoricalRecord(epsilon, (3,), method).parts
    n = n_true + n_false
    # The number of supports is a sum of independent answers: enumerate how many of each kind are 1.
    mean = second = variance = 0.0
    for a, b in itertools.product(range(n_true + 1), range(n_false + 1)):
        chance = (
            math.comb(n_true, a) * law.p**a * (1 - law.p) ** (n_true - a)
            * math.comb(n_false, b) * law.q**b * (1 - law.q) ** (n_false - b)
        )  # fmt: skip
        estimate = estimate_frequencies([a + b], n, law.p, law.q)
        mean += chance * estimate.frequencies[0]
        second += chance * estimate.frequencies[0] ** 2
        variance += chance * estimate.standard_errors[0] ** 2
    assert mean == pytest.approx(n_true / n, abs=1e-9)
    assert variance == pytest.approx(second - mean**2, rel=1e-7)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([1], 0, 0.7, 0.2), "need more reports"),
        (([1], 1, 0.7, 0.2, "population"), "need more reports"),
        (([1], 5, 0.2, 0.2), "p must be larger than q"),
        (([1], 5, 0.7, 0.2, "people"), "of must be"),
    ],
)
def test_frequencies_refuse_what_they_cannot_estimate(arguments, match):
    with pytest.raises(ValueError, match=match):
        estimate_frequencies(*arguments)


@given(st.floats(0.01, 50), st.integers(1, 1000))
def test_shares_never_add_up_to_more_than_the_budget(epsilon, n_parts):
    share = split_epsilon(epsilon, n_parts)
    assert Fraction(share) * n_parts <= Fraction(epsilon) < Fraction(share * (1 + 1e-15)) * n_parts


@given(st.floats(0.05, 8), st.lists(st.integers(1, 5), min_size=1, max_size=6), METHODS)
def test_a_record_costs_at_most_its_budget_and_constants_cost_nothing(epsilon, sizes, method):
    record = CategoricalRecord(epsilon, tuple(sizes), method)
    guarantee = record.guarantee()
    hidden = sum(size > 1 for size in sizes)
    exact = sum(Fraction(column.exact_epsilon) for column in record.parts)
    assert exact <= Fraction(guarantee.epsilon) <= Fraction(epsilon)
    assert guarantee.epsilon == (pytest.approx(epsilon, abs=1e-9) if hidden else 0)
    assert guarantee.per_feature == (pytest.approx(epsilon / hidden, abs=1e-9) if hidden else 0)
    assert guarantee.unit == "record"


def test_columns_of_a_record_are_released_independently():
    for method in ("krr", "sue", "oue", "subset", "hashing"):
        record = CategoricalRecord(2.0, (2, 2), method)
        bits = record.release(np.tile([[0, 1]], (100_000, 1)), seeded()).rows
        own, other = (column.output_law([code])[0] for column, code in zip(record.parts, (0, 1), strict=True))
        for a, b in itertools.product((0, 1), (2, 3)):
            p, q = own[a], other[b - 2]
            counts = np.bincount(bits[:, a] + 2 * bits[:, b], minlength=4)
            law = [(1 - p) * (1 - q), p * (1 - q), (1 - p) * q, p * q]
            assert chi_square_pvalue(counts, law) > THRESHOLD


def products_of_bits(record, codes):
    """The mean of the products of one record's released bits, from its law."""
    laws = [column.output_law([code])[0] for column, code in zip(record.parts, codes, strict=True)]
    means = np.concatenate(laws)
    products = np.outer(means, means)
    for part in record.places:
        if record.method in ("krr", "subset"):
            # Exactly one bit of a column is 1: no set is larger with so few categories.
            products[part, part] = 0
    np.fill_diagonal(products, means)
    return products, means


@pytest.mark.parametrize("method", ["krr", "sue", "oue", "subset", "hashing"])
@pytest.mark.parametrize("sizes", [(3,), (3, 1, 2), (1,)])
def test_the_second_moment_of_the_one_hot_encoding_is_undone(method, sizes):
    record = CategoricalRecord(1.5, sizes, method)
    cells = np.array(list(itertools.product(*map(range, sizes))))
    weights = np.random.default_rng(0).dirichlet(np.ones(len(cells)))
    encoded = record.encode(cells).rows.astype(float)
    moments = [products_of_bits(record, codes) for codes in cells]
    released, mean = (np.einsum("i,i...->...", weights, np.array(part)) for part in zip(*moments, strict=True))
    expected = np.einsum("n,ni,nj->ij", weights, encoded, encoded)
    np.testing.assert_allclose(record.original_second_moment(released, mean), expected, atol=1e-12)
    if len(sizes) == 1:
        np.testing.assert_allclose(record.parts[0].original_second_moment(released, mean), expected, atol=1e-12)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1"])
def test_refuses_a_bad_epsilon(bad):
    for make in (
        lambda: UnaryEncoding(bad, 1),
        lambda: OneHotRandomizedResponse(bad, 2),
        lambda: SubsetSelection(bad, 1),
        lambda: CategoricalRecord(bad, (2,)),
    ):
        with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
            make()


def test_refuses_other_bad_parameters():
    with pytest.raises(ValueError, match="variant must be one of"):
        UnaryEncoding(1.0, 2, "krr")
    with pytest.raises(ValueError, match="method must be"):
        CategoricalRecord(1.0, (2,), "rappor")
    with pytest.raises(ValueError, match="at least one column"):
        CategoricalRecord(1.0, ())
    with pytest.raises(ValueError, match="shape"):
        CategoricalRecord(1.0, (2, 2)).encode([[0]])
    for variant in ("sue", "oue"):
        with pytest.raises(ValueError, match="large enough for probabilities"):
            UnaryEncoding(1e-25, 2, variant)


@pytest.mark.parametrize("bad", [0, True, 2.0])
def test_a_set_is_of_a_whole_number_of_categories(bad):
    with pytest.raises(ValueError, match="n_classes must be a whole number"):
        SubsetSelection(1.0, bad)


@pytest.mark.parametrize("codes", [[[0, 2]], [[2, 0], [0, 2]], [[3, 0]], [[0, -1]], [[0, 2**63]]])
def test_each_column_of_a_record_has_codes_of_its_own(codes):
    record = CategoricalRecord(2.0, (3, 2))
    assert record.encode([[2, 1]]).rows.tolist() == [[False, False, True, False, True]]
    for call in (record.encode, lambda rows: record.release(rows, seeded())):
        with pytest.raises(ValueError, match=r"codes must be integers( from 0 to 2)?; got"):
            call(np.array(codes))
