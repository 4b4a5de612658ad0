"""Local hashing and Hadamard response: whole laws read out of the code, estimates by enumeration, naive references."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import PicksThenDraw, assert_is_the_guarantee, intervals, lengths, seeded

from skldp.mechanisms._noise import Noise
from skldp.mechanisms.categorical._hadamard import HadamardResponse, OneHotHadamard
from skldp.mechanisms.categorical._local_hashing import LocalHashing, OneHotLocalHashing

WORD = 2**64
KINDS = [LocalHashing, HadamardResponse]
each = pytest.mark.parametrize("kind", KINDS)
# One digit and several, one block and several, blocks that are full and not, more blocks than categories.
SMALL = [(1e-3, 2), (1.0, 3), (0.1, 4), (1.5, 6), (2.5, 5), (60.0, 3)]


def hashed(law, a, x):
    """The hash of a category, digit by digit."""
    g, total = law.n_buckets, 0
    for place in range(law.n_digits):
        total += (a // g**place % g) * (x // g**place % g)
    return total % g


def sign(law, report, x):
    """The entry of the Hadamard matrix where the report is of the category's block, else 0."""
    b = law.block_size
    if report // b != x // (b - 1):
        return 0
    return (-1) ** bin((1 + x % (b - 1)) & (report % b)).count("1")


def supports(law, report, x):
    if isinstance(law, LocalHashing):
        return hashed(law, report // law.n_buckets + 1, x) == report % law.n_buckets
    return sign(law, report, x) == 1


def choices(law):
    """What is picked before the draw that decides: uniform whole numbers."""
    if isinstance(law, LocalHashing):
        return [(a,) for a in range(law.n_hashes)]
    return list(itertools.product(range(law.block_size // 2), range(law.n_reports - law.block_size // 2)))


def sampled_law(law, code):
    """How many of all draws of the code release each report, and of how many."""
    total = {}
    for picks in choices(law):

        def answer(draw, picks=picks):
            noise = PicksThenDraw(picks, draw)
            (report,) = law.release([[code]], noise).rows[0].tolist()
            assert not noise.script
            return report

        for report, count in lengths(intervals(answer, 0, WORD), WORD).items():
            total[report] = total.get(report, 0) + count
    return total, WORD * len(choices(law))


@pytest.mark.slow
@each
@pytest.mark.parametrize(("epsilon", "k"), SMALL)
def test_the_reports_that_are_drawn_are_those_of_the_guarantee(kind, epsilon, k):
    law, laws = kind(epsilon, k), []
    for code in range(k):
        drawn, total = sampled_law(law, code)
        assert set(drawn) == set(range(law.n_reports))
        own = [report for report in drawn if supports(law, report, code)]
        # What supports the category is equally likely, and so is what does not.
        for group in (own, [report for report in drawn if report not in own]):
            assert len({drawn[report] for report in group}) <= 1
        mass = law.answers.keep_count if kind is LocalHashing else law.own_count
        assert sum(drawn[report] for report in own) * WORD == mass * total
        logs = law.log_likelihood(np.arange(law.n_reports), code)
        np.testing.assert_allclose(np.exp(logs), [drawn[r] / total for r in range(law.n_reports)], rtol=1e-12)
        laws.append(drawn)
    assert_is_the_guarantee(laws, law.guarantee().epsilon)
    assert law.guarantee().epsilon <= epsilon


@pytest.mark.few(8)
@each
@pytest.mark.parametrize(("epsilon", "k"), [(0.1, 3), (1.0, 4), (2.5, 5), (1.0, 1)])
@pytest.mark.parametrize("codes", [(0, 0), (0, -1), (2, 1)])
def test_frequencies_and_their_variances_are_unbiased(kind, epsilon, k, codes):
    law = kind(epsilon, k)
    codes = [code % k for code in codes]
    everything = np.array(list(itertools.product(range(law.n_reports), repeat=2)))
    weights = np.exp(law.log_likelihood(everything, np.array(codes)).sum(axis=1))
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    found = [law.estimate_frequencies(reports) for reports in everything]
    frequencies = np.array([one.frequencies for one in found])
    true = np.bincount(codes, minlength=k) / 2
    np.testing.assert_allclose(weights @ frequencies, true, atol=1e-9)
    variance = weights @ (frequencies - true) ** 2
    squared = np.array([one.standard_errors for one in found]) ** 2
    # A variance is not estimated below 0, which only makes it larger.
    assert (weights @ squared >= variance - 1e-9).all()
    raw = [law.estimate_frequencies([report]) for report in range(law.n_reports)]
    alone = np.exp(law.log_likelihood(np.arange(law.n_reports)[:, None], np.arange(k)[None, :]))
    one = np.array([estimate.frequencies for estimate in raw])
    worst = (alone.T @ one**2 - (alone.T @ one) ** 2).mean(axis=1).max()
    assert law.worst_case_variance == pytest.approx(worst, rel=1e-9, abs=1e-12)


@each
def test_variances_in_the_population_count_who_was_asked(kind):
    law, shares = kind(1.0, 3), np.array([0.5, 0.3, 0.2])
    single = np.exp(law.log_likelihood(np.arange(law.n_reports)[:, None], np.arange(3)[None, :])) @ shares
    everything = np.array(list(itertools.product(range(law.n_reports), repeat=2)))
    weights = single[everything].prod(axis=1)
    found = [law.estimate_frequencies(reports, of="population") for reports in everything]
    frequencies = np.array([one.frequencies for one in found])
    np.testing.assert_allclose(weights @ frequencies, shares, atol=1e-9)
    squared = np.array([one.standard_errors for one in found]) ** 2
    np.testing.assert_allclose(weights @ squared, weights @ (frequencies - shares) ** 2, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 6), st.integers(1, 150), st.integers(1, 40), st.integers(0, 2**32))
def test_the_transform_counts_what_each_report_supports(epsilon, k, n, seed):
    law = LocalHashing(epsilon, k)
    reports = np.random.default_rng(seed).integers(0, law.n_reports, n)
    naive = [[supports(law, int(report), x) for x in range(k)] for report in reports]
    assert law.supported(reports).tolist() == naive
    assert law.support_counts(reports).tolist() == np.sum(naive, axis=0).tolist()


@pytest.mark.parametrize(("epsilon", "k", "n"), [(1.0, 729, 40_000), (2.0, 343, 10), (3.0, 5000, 3_000)])
def test_the_transform_is_the_same_for_low_digits_alone(epsilon, k, n):
    law = LocalHashing(epsilon, k)
    reports = law.release(np.arange(n)[:, None] % k, seeded()).rows
    expected = sum(law.supported(part).sum(axis=0) for part in np.array_split(reports, 20))
    assert law.support_counts(reports).tolist() == expected.tolist()


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 6), st.integers(2, 150), st.integers(1, 40), st.integers(0, 2**32))
def test_the_transform_adds_the_signs_of_all_reports(epsilon, k, n, seed):
    law = HadamardResponse(epsilon, k)
    reports = np.random.default_rng(seed).integers(0, law.n_reports, n)
    naive = np.sum([[sign(law, int(report), x) for x in range(k)] for report in reports], axis=0)
    np.testing.assert_allclose(law.estimate_frequencies(reports).frequencies, naive / (n * law.gain), atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.floats(0.01, 12), st.integers(2, 3000))
def test_two_categories_have_one_hash_as_often_as_the_estimates_say(epsilon, k):
    law = LocalHashing(epsilon, k)
    g, m = law.n_buckets, law.n_digits
    assert all(g % divisor for divisor in range(2, math.isqrt(g) + 1))
    assert g ** (m - 1) < k <= g**m
    # Of all linear maps but 0, those that take a number other than 0 to 0.
    alike = Fraction(g ** (m - 1) - 1, g**m - 1)
    p, other = law.answers.keep_probability, law.answers.other_probability
    assert law.q == pytest.approx(float(alike) * p + float(1 - alike) * other, rel=1e-12)
    if law.n_hashes <= 3000:
        hashes = np.array([[hashed(law, a, x) for x in (0, k - 1)] for a in range(1, law.n_hashes + 1)])
        assert (hashes[:, 0] == hashes[:, 1]).sum() == alike * law.n_hashes


@pytest.mark.slow
@given(st.floats(0.05, 8), st.integers(1, 300), st.integers(0, 2**32))
def test_bits_are_what_the_report_supports(epsilon, k, seed):
    bits, law = OneHotLocalHashing(epsilon, k), LocalHashing(epsilon, k)
    codes = np.arange(5)[:, None] % k
    assert bits.guarantee() == law.guarantee()
    assert (bits.p, bits.q, bits.report_bits) == (law.p, law.q, law.report_bits)
    assert bits.worst_case_variance == pytest.approx(law.worst_case_variance)
    reports = law.release(codes, seeded(seed)).rows
    assert (bits.release(codes, seeded(seed)).rows == law.supported(reports)).all()


@each
def test_a_single_category_is_released_as_it_is(kind):
    law = kind(1.0, 1)
    assert (law.n_reports, law.report_bits, law.guarantee().epsilon) == (1, 0, 0)
    assert law.release([[0], [0]], seeded()).rows.tolist() == [[0], [0]]
    estimate = law.estimate_frequencies([0, 0])
    assert (estimate.frequencies.tolist(), estimate.standard_errors.tolist()) == ([1], [0])


@each
@pytest.mark.parametrize("k", [2, 7, 1000])
def test_what_is_released_without_noise_supports_the_category(kind, k):
    law = kind(1.0, k)
    for code, (report,) in enumerate(law.encode(np.arange(k)[:, None]).rows.tolist()):
        assert supports(law, report, code)


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
def test_refuses_reports_of_another_mechanism(kind):
    law = kind(1.0, 10)
    for bad in ([law.n_reports], [-1], [0.5], [True]):
        with pytest.raises(ValueError, match=r"codes must"):
            law.estimate_frequencies(bad)
    with pytest.raises(ValueError, match="need"):
        law.estimate_frequencies(np.zeros(0, dtype=int))
    with pytest.raises(ValueError, match="need"):
        law.estimate_frequencies([0], of="population")
    with pytest.raises(ValueError, match="of must be one of"):
        law.estimate_frequencies([0, 0], of="people")


@each
@pytest.mark.parametrize("epsilon", [50.0, 800.0])
def test_a_large_epsilon_saturates(kind, epsilon):
    law = kind(epsilon, 10)
    assert 40 < law.exact_epsilon < epsilon
    assert law.worst_case_variance < 1e-15


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 12])
def test_bits_of_hadamard_response_are_those_of_its_report(epsilon, k):
    law = OneHotHadamard(epsilon, k)
    assert law.law.n_blocks == 1
    assert law.exact_epsilon <= epsilon
    codes = np.arange(200)[:, None] % k
    bits = law.release(codes, Noise(bytes(32), secure=False)).rows
    if k == 1:
        assert bits.all()
        return
    reports = law.law.release(codes, Noise(bytes(32), secure=False)).rows[:, 0].tolist()
    assert bits.tolist() == [[supports(law.law, report, x) for x in range(k)] for report in reports]
    # The chance of every bit, from the law of the reports.
    everything = np.array([[supports(law.law, report, x) for x in range(k)] for report in range(law.law.n_reports)])
    for code in range(k):
        chances = np.exp(law.law.log_likelihood(np.arange(law.law.n_reports), code)) @ everything
        np.testing.assert_allclose(chances, law.output_law([[code]])[0], rtol=1e-12)
    again = law.integer_law
    assert (again.n_blocks, again.block_size, again.miss_count) == (1, law.law.block_size, law.law.miss_count)
