"""Local hashing and Hadamard response: whole laws read out of the code, estimates by enumeration, naive references."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import PicksThenDraw, Reports, assert_is_the_guarantee, hadamard, hashing, intervals, lengths, seeded

from skldp.laws._hashing import HashingLaw
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms.categorical._one_hot import OneHotHadamard, OneHotLocalHashing, SubsetSelection, UnaryEncoding

WORD = 2**64
KINDS = [OneHotLocalHashing, OneHotHadamard]
each = pytest.mark.parametrize("kind", KINDS)
# One digit and several, blocks that are full and not.
SMALL = [
    *(hashing(epsilon, k) for epsilon, k in [(1e-3, 2), (1.0, 3), (0.1, 4), (1.5, 6), (2.5, 5), (60.0, 3)]),
    *(hadamard(*one) for one in [(1e-3, 2), (1.0, 3), (0.1, 4), (1.5, 6), (60.0, 3)]),
]


def choices(law):
    """What is picked before the draw that decides: uniform whole numbers."""
    if isinstance(law, HashingLaw):
        return [(a,) for a in range(law.n_hashes)]
    return list(itertools.product(*map(range, law.sizes)))


def sampled_law(reports, code):
    """How many of all draws of the code release each report, and of how many."""
    total = {}
    for picks in choices(reports.law):

        def answer(draw, picks=picks):
            noise = PicksThenDraw(picks, draw)
            (report,) = reports.release([[code]], noise).rows[0].tolist()
            assert not noise.script
            return report

        for report, count in lengths(intervals(answer, 0, WORD), WORD).items():
            total[report] = total.get(report, 0) + count
    return total, WORD * len(choices(reports.law))


@pytest.mark.slow
@pytest.mark.parametrize("reports", SMALL, ids=repr)
def test_the_reports_that_are_drawn_are_those_of_the_guarantee(reports):
    law, laws = reports.law, []
    for code in range(law.n_codes):
        drawn, total = sampled_law(reports, code)
        assert set(drawn) == set(range(law.n_answers))
        own = [report for report in drawn if reports.supports(report, code)]
        # What supports the category is equally likely, and so is what does not.
        for group in (own, [report for report in drawn if report not in own]):
            assert len({drawn[report] for report in group}) <= 1
        mass = law.response.own_count if isinstance(law, HashingLaw) else law.own_count
        assert sum(drawn[report] for report in own) * WORD == mass * total
        laws.append(drawn)
    assert_is_the_guarantee(laws, law.epsilon)
    assert law.epsilon <= reports.epsilon


@settings(max_examples=60, deadline=None)
@given(st.booleans(), st.floats(0.01, 6), st.integers(2, 150), st.integers(1, 40), st.integers(0, 2**32))
def test_transforms_add_what_each_report_supports(of_hashes, epsilon, k, n, seed):
    rng = np.random.default_rng(seed)
    reports = hashing(epsilon, k) if of_hashes else hadamard(epsilon, k)
    law = reports.law
    answers, weights = rng.integers(0, law.n_answers, n).astype(np.uint32), rng.uniform(size=n)
    naive = np.array([[reports.supports(int(answer), x) for x in range(k)] for answer in answers])
    assert np.array([law.supports(answers, x) for x in range(k)]).T.tolist() == naive.tolist()
    np.testing.assert_allclose(law.supporting(answers, weights), weights @ naive, atol=1e-9)
    bits = np.empty((n, k), dtype=bool)
    law.write_bits(answers.astype(np.int64)[:, None], bits)
    assert bits.tolist() == naive.tolist()


@pytest.mark.parametrize(("epsilon", "k", "n"), [(1.0, 729, 40_000), (2.0, 343, 10), (3.0, 5000, 3_000)])
def test_the_transform_is_the_same_for_low_digits_alone(epsilon, k, n):
    reports = hashing(epsilon, k)
    answers, expected = reports.release(np.arange(n)[:, None] % k, seeded()).rows, 0
    for part in np.array_split(answers, 20):
        bits = np.empty((len(part), k), dtype=bool)
        reports.law.write_bits(part, bits)
        expected = expected + bits.sum(axis=0)
    found = reports.law.supporting(answers[:, 0].astype(np.uint32), np.ones(n))
    assert np.rint(found).tolist() == expected.tolist()
    np.testing.assert_allclose(found, expected, atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 12), st.integers(2, 3000))
def test_two_categories_have_one_hash_as_often_as_the_estimates_say(epsilon, k):
    reports = hashing(epsilon, k)
    law, g, m = reports.law, reports.law.n_buckets, 1
    assert all(g % divisor for divisor in range(2, math.isqrt(g) + 1))
    while g**m < k:
        m += 1
    assert law.n_hashes == g**m - 1
    # Of all linear maps but 0, those that take a number other than 0 to 0.
    alike = Fraction(g ** (m - 1) - 1, g**m - 1)
    p, other = law.response.support
    assert law.support == pytest.approx((p, float(alike) * p + float(1 - alike) * other), rel=1e-12)
    if law.n_hashes <= 3000:
        hashes = np.array([[law.bucket(a, x) for x in (0, k - 1)] for a in range(law.n_hashes)])
        assert (hashes[:, 0] == hashes[:, 1]).sum() == alike * law.n_hashes


@given(st.floats(0.01, 8))
def test_a_prime_of_buckets_costs_little_beside_the_best_number(epsilon):
    odds = math.exp(epsilon)
    assert OneHotLocalHashing(epsilon, 2**20).worst_case_variance <= 1.03 * 4 * odds / (odds - 1) ** 2


@given(st.floats(0.01, 8), st.integers(2, 3000))
def test_sets_are_the_best_of_all(epsilon, k):
    least = SubsetSelection(epsilon, k).worst_case_variance * (1 - 1e-9)
    assert least <= min(kind(epsilon, k).worst_case_variance for kind in (*KINDS, UnaryEncoding))


@each
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0])
@pytest.mark.parametrize("k", [2, 3, 4, 7, 12])
def test_bits_are_what_the_report_supports(kind, epsilon, k):
    mechanism = kind(epsilon, k)
    reports = Reports(epsilon, mechanism.law)
    codes = np.arange(200)[:, None] % k
    drawn = reports.release(codes, seeded(3)).rows[:, 0].tolist()
    expected = [[reports.supports(report, x) for x in range(k)] for report in drawn]
    assert mechanism.release(codes, seeded(3)).rows.tolist() == expected
    everything = np.array([[reports.supports(one, x) for x in range(k)] for one in range(mechanism.law.n_answers)])
    for code in range(k):
        chances = np.exp(reports.log_likelihood(np.arange(len(everything)), code)) @ everything
        np.testing.assert_allclose(chances, mechanism.output_law([[code]])[0], rtol=1e-12)


def test_nobody_releases_no_bits():
    assert OneHotLocalHashing(1.0, 9).release(np.zeros((0, 1), dtype=int), seeded()).rows.shape == (0, 9)


@each
def test_a_single_category_is_released_as_it_is(kind):
    law = kind(1.0, 1)
    assert (law.report_bits, law.guarantee().epsilon) == (0, 0)
    assert law.release([[0], [0]], seeded()).rows.tolist() == [[True], [True]]


@each
@pytest.mark.parametrize("bad", [0, True, 2.0, 2**20 + 1])
def test_refuses_a_bad_number_of_categories(kind, bad):
    with pytest.raises(ValueError, match="n_classes must be a whole number from 1 to 1,048,576"):
        kind(1.0, bad)


@each
def test_refuses_an_epsilon_that_integers_cannot_tell(kind):
    with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
        kind(0.0, 3)
    with pytest.raises(ValueError, match="large enough for probabilities"):
        kind(1e-25, 3)


@each
@pytest.mark.parametrize("epsilon", [50.0, 800.0])
def test_a_large_epsilon_saturates(kind, epsilon):
    law = kind(epsilon, 10)
    assert 40 < law.exact_epsilon < epsilon
    # Half of all reports of Hadamard response support any other category.
    assert law.worst_case_variance < (1e-15 if kind is OneHotLocalHashing else 1)


def test_as_many_buckets_as_categories_are_randomized_response():
    law = OneHotLocalHashing(2.0, 7)
    assert law.n_buckets == 7
    assert (law.p, law.q) == RandomizedResponse(2.0, 7).support_probabilities()
