"""Laws of two steps by their integers: the chance of every answer through the steps themselves, and its epsilon."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from mechanisms.test_integer_laws import runs

from skldp.learning._answer_scores import code_scores, likeliest_codes, numbers
from skldp.learning._bucket_scores import BucketScores
from skldp.mechanisms import (
    FieldKey,
    LongitudinalCategories,
    LongitudinalHistogram,
    LongitudinalMean,
    ReleaseKey,
    integer_law,
    law_within_bounds,
)
from skldp.mechanisms._group_laws import SampledLaw
from skldp.mechanisms._integer_laws import secure_words
from skldp.mechanisms._law_documents import law_from_dict
from skldp.mechanisms._longitudinal_laws import (
    LongitudinalBitsLaw,
    LongitudinalHashingLaw,
    LongitudinalHistogramLaw,
    LongitudinalMeanLaw,
    LongitudinalResponseLaw,
)

T = 2**64
CODES = [
    LongitudinalResponseLaw(2, T // 3, T // 5),
    LongitudinalResponseLaw(5, T // 9, 12345),
    LongitudinalBitsLaw(3, T // 4, T // 7),
    LongitudinalBitsLaw(2, 1, T // 2 - T // 20),
    LongitudinalHashingLaw(7, 3, T // 11, T // 6),
    LongitudinalHashingLaw(4, 2, T // 3, T // 3),
]
NUMBERS = [
    LongitudinalMeanLaw(T // 3, T // 4),
    LongitudinalHistogramLaw(4, 1, T // 5, T // 3),
    LongitudinalHistogramLaw(4, 2, T // 5, T // 3),
    LongitudinalHistogramLaw(3, 3, T // 5, T // 7),
]
KEY = FieldKey(ReleaseKey(bytes(range(100, 132))[::-1]), "hours")


def chances_of(step, count, n_bits):
    """The chance of each outcome of a step, of whose words each is below its count or not, or which reads one word."""
    if n_bits is None:
        return {answer: Fraction(n, T) for answer, n in runs(lambda word: step(iter([word])), 0, T).items()}
    found = Counter()
    for flips in itertools.product((True, False), repeat=n_bits):
        weight = math.prod(Fraction(count if flip else T - count, T) for flip in flips)
        found[step(iter([count - flip for flip in flips]))] += weight
    return found


def n_bits_of(law):
    if isinstance(law, LongitudinalBitsLaw):
        return law.n_codes
    return law.n_chosen if isinstance(law, LongitudinalHistogramLaw) else None


def kept(law, seen, choice):
    return chances_of(lambda words: law.keep(seen, choice, words), law.first_count, n_bits_of(law))


def reported(law, permanent, choice):
    return chances_of(lambda words: law.report(permanent, choice, words), law.second_count, n_bits_of(law))


def given(law, seen, choice):
    """The chance of each report, through both steps."""
    found = Counter()
    for permanent, weight in kept(law, seen, choice).items():
        for answer, chance in reported(law, permanent, choice).items():
            found[answer] += weight * chance
    return found


def loss(laws):
    """The largest log-likelihood ratio over all pairs and answers."""
    return max(math.log(one[a] / other[a]) for one in laws for other in laws for a in one)


def choices(law):
    """Every choice of a person, as the law draws it; thresholds are told to nobody, and stand for themselves."""
    if isinstance(law, LongitudinalHashingLaw):
        drawn = [law.choose(iter([word])) for word in range(law.hashing.n_hashes)]
        assert sorted(drawn) == list(range(law.hashing.n_hashes))
        return drawn
    if isinstance(law, LongitudinalHistogramLaw):
        n, d = law.n_buckets, law.n_chosen
        drawn = [law.choose(iter(words)) for words in itertools.product(*(range(last + 1) for last in range(n - d, n)))]
        each = Counter(drawn)
        assert len(each) == math.comb(n, d) == law.n_answers >> d
        assert len(set(each.values())) == 1
        return sorted(each)
    return [0]


def values(law):
    if law in CODES:
        return range(law.n_codes)
    return [-1.0, -0.5 + 1e-9, 0.0, 0.25, 1.0]


def seen_by(law, choice):
    """What a person of a choice can see of their values."""
    if isinstance(law, LongitudinalMeanLaw):
        return {0, 1}
    return {law.see(value, choice) for value in values(law)}


@pytest.mark.parametrize("law", [*CODES, *NUMBERS], ids=str)
def test_both_epsilons_are_those_of_the_chances_of_all_answers(law):
    first, both = [], []
    for choice in choices(law):
        seen = seen_by(law, choice)
        first.append(loss([kept(law, one, choice) for one in seen]))
        both.append(loss([given(law, one, choice) for one in seen]))
    assert law.lifetime_epsilon == pytest.approx(max(first), rel=1e-12)
    assert law.epsilon == pytest.approx(max(both), rel=1e-12)
    assert 0 < law.epsilon < law.lifetime_epsilon


def series_given(law, seen, choice):
    """The chance of each series of reports of what is seen in waves, by one permanent answer to each."""
    different = list(dict.fromkeys(seen))
    blurred = {one: reported(law, one, choice) for of in different for one in kept(law, of, choice)}
    found = Counter()
    for drawn in itertools.product(*(kept(law, one, choice).items() for one in different)):
        answers = dict(zip(different, (answer for answer, _ in drawn), strict=True))
        weight = math.prod(chance for _, chance in drawn)
        for reports in itertools.product(*(blurred[answers[one]].items() for one in seen)):
            found[tuple(one for one, _ in reports)] += weight * math.prod(chance for _, chance in reports)
    return found


def repeats(seen):
    return tuple(map(seen.index, seen))


@pytest.mark.parametrize("law", [CODES[0], CODES[3], CODES[5], NUMBERS[0], NUMBERS[1]], ids=str)
def test_three_waves_of_people_who_repeat_themselves_alike_lose_no_more_than_their_permanent_answers(law):
    """All series of what is seen through every choice, against all others that repeat it at the same waves."""
    worst = 0.0
    for choice in choices(law):
        all_series = list(itertools.product(sorted(seen_by(law, choice)), repeat=3))
        laws = {seen: series_given(law, seen, choice) for seen in all_series}
        for one, other in itertools.product(all_series, repeat=2):
            if repeats(one) == repeats(other):
                lost = loss([laws[one], laws[other]])
                assert lost <= len(set(one)) * law.lifetime_epsilon
                worst = max(worst, lost / len(set(one)))
    assert law.epsilon < worst < law.lifetime_epsilon


def test_a_change_that_is_seen_of_one_alone_tells_them_apart_though_both_changed():
    """Why a lifetime's bound is for people who are seen to repeat values at the same waves, and no others."""
    law = LongitudinalHashingLaw(4, 2, T // 3, T // 1000)
    buckets = {choice: [law.see(value, choice) for value in range(3)] for choice in choices(law)}
    choice = next(choice for choice, (a, b, c) in buckets.items() if a == c != b)
    first, second, third = buckets[choice]
    assert (
        loss([series_given(law, [first, second], choice), series_given(law, [first, third], choice)])
        > 2 * 2 * law.lifetime_epsilon
    )
    mechanism = LongitudinalCategories(1.0, 0.5, 4)
    assert "seen to repeat values at the same waves" in mechanism.lifetime_guarantee(2).basis


@pytest.mark.parametrize("law", [*CODES, *NUMBERS], ids=str)
def test_a_draw_is_a_choice_and_both_steps_and_a_law_is_its_integers(law):
    random = np.random.default_rng(3)
    for value in values(law):
        words = [int(word) for word in random.integers(0, T - 1, 20, dtype=np.uint64)]
        read = iter(words)
        choice = law.choose(read)
        answer = law.report(law.keep(law.see(value, choice), choice, read), choice, read)
        assert law.draw(value, iter(words)) == answer
        assert law.is_answer(answer)
    assert law_from_dict(law.to_dict()) == law


@pytest.mark.parametrize("law", CODES, ids=str)
def test_the_mean_score_of_a_code_is_1_for_its_own_and_0_for_all_others(law):
    answers = np.arange(law.n_answers, dtype=np.uint16)
    of = choices(law)
    chances = np.zeros((law.n_codes, law.n_answers))
    for choice in of:
        for code in range(law.n_codes):
            for answer, chance in given(law, law.see(code, choice), choice).items():
                chances[code, answer] += float(chance) / len(of)
    scores = code_scores(law)
    each = np.array([scores.scores(answers, code) for code in range(law.n_codes)])
    np.testing.assert_allclose(chances @ each.T, np.eye(law.n_codes), atol=1e-9)
    weights = np.random.default_rng(0).normal(size=len(answers))
    sums, squares = scores.sums(answers, weights)
    np.testing.assert_allclose(sums, each @ weights, atol=1e-8)
    np.testing.assert_allclose(squares, each**2 @ weights, atol=1e-6)
    # The likeliest code, where all answers are as a code's are.
    counts = np.round(chances[0] * 20_000).astype(int)
    likeliest = likeliest_codes(law, np.repeat(answers, counts))
    assert likeliest[0] > 0.95


@pytest.mark.parametrize("law", NUMBERS[1:], ids=str)
def test_the_mean_score_of_a_bucket_is_1_for_its_own_and_0_for_all_others(law):
    answers, of = np.arange(law.n_answers, dtype=np.uint16), choices(law)
    middles = [(2 * bucket + 1) / law.n_buckets - 1 for bucket in range(law.n_buckets)]
    chances = np.zeros((law.n_buckets, law.n_answers))
    for choice in of:
        for bucket, middle in enumerate(middles):
            assert law.bucket(middle) == bucket
            for answer, chance in given(law, law.see(middle, choice), choice).items():
                chances[bucket, answer] += float(chance) / len(of)
    scores = BucketScores(law)
    each = np.array([scores.scores(answers, bucket) for bucket in range(law.n_buckets)])
    np.testing.assert_allclose(chances @ each.T, np.eye(law.n_buckets), atol=1e-9)
    assert (each >= scores.low[:, None] - 1e-12).all()
    assert (each <= scores.high[:, None] + 1e-12).all()
    # What an answer stands for is the middle of the bucket in the mean.
    stands_for = [law.value(int(answer)) for answer in answers]
    np.testing.assert_allclose(chances @ stands_for, middles, atol=1e-9)
    # Sums of buckets, their weights, and cells of single bits.
    both = scores.combined(np.array([[1.0] * 2 + [0.0] * (law.n_buckets - 2), [0.5] * law.n_buckets]))
    np.testing.assert_allclose(both.scores(answers, 0), each[0] + each[1])
    weights = np.random.default_rng(0).normal(size=len(answers))
    sums, squares = both.sums(answers, weights)
    np.testing.assert_allclose(sums[0], (each[0] + each[1]) @ weights)
    np.testing.assert_allclose(squares[1], (each.sum(axis=0) / 2) ** 2 @ weights)
    assert both.low[0] <= (each[0] + each[1]).min()
    assert both.high[0] >= (each[0] + each[1]).max()
    counted = np.array([scores.counts(answers[answers == one]) for one in answers])
    np.testing.assert_allclose(chances @ counted / law.n_chosen, scores.response, atol=1e-12)


@pytest.mark.parametrize("x", [-1.0, -0.3, 0.0, 0.7, 1.0])
def test_the_mean_of_one_bit_is_that_of_the_number(x):
    law = NUMBERS[0]
    high = runs(lambda word: law.see(x, law.choose(iter([word]))), 0, T)
    # An end is never taken for the other one, not by one word.
    assert high.get(1, 0) == int(Fraction((1 + x) / 2) * T)
    mean = sum(
        Fraction(n, T) * chance * Fraction(law.value(answer))
        for end, n in high.items()
        for answer, chance in given(law, end, 0).items()
    )
    assert float(mean) == pytest.approx(x, abs=1e-15)


def test_a_second_step_that_hides_all_but_everything_divides_by_no_zero():
    law = LongitudinalHistogramLaw(3, 2, T // 2 - 1, T // 2 - 1)
    assert math.isfinite(law.value(0))
    assert math.isfinite(LongitudinalMeanLaw(T // 2 - 1, T // 2 - 1).value(1))
    with pytest.raises(ValueError, match="Answers must depend"):
        code_scores(LongitudinalBitsLaw(3, T // 2 - 1, T // 2 - 1))


def test_buckets_hold_their_lower_edges_and_the_upper_bound_is_in_the_last():
    law = LongitudinalHistogramLaw(4, 4, 1, 1)
    assert [law.bucket(x) for x in (-1.0, -0.5, math.nextafter(-0.5, -1), 0.0, 0.5, 1.0)] == [0, 1, 0, 2, 3, 3]
    # All others look alike to who chose one.
    one = LongitudinalHistogramLaw(4, 1, 1, 1)
    assert {one.see(x, 2) for x in (-1.0, -0.3, 0.9)} == {0}
    assert one.see(0.1, 2) == 1


def test_a_law_is_that_of_its_mechanism():
    for method, kind in (
        ("krr", LongitudinalResponseLaw),
        ("sue", LongitudinalBitsLaw),
        ("hashing", LongitudinalHashingLaw),
    ):
        mechanism = LongitudinalCategories(3.0, 1.5, 12, method)
        law = integer_law(mechanism)
        assert type(law) is kind
        assert (law.epsilon, law.lifetime_epsilon) == (mechanism.exact_epsilon, mechanism.exact_lifetime_epsilon)
    for mechanism in (LongitudinalMean(3.0, 1.5, 0, 9), LongitudinalHistogram(3.0, 1.5, 0, 9, 6, 2)):
        law = law_within_bounds(mechanism)
        assert (law.epsilon, law.lifetime_epsilon) == (mechanism.exact_epsilon, mechanism.exact_lifetime_epsilon)
        assert law.epsilon <= 1.5
        assert law.lifetime_epsilon <= 3.0
        assert law.epsilon == pytest.approx(1.5, rel=1e-9)
        with pytest.raises(ValueError, match="must be of integers"):
            integer_law(mechanism)
    with pytest.raises(ValueError, match="answers without bias"):
        numbers(law, np.array([0], dtype=np.uint8))


@pytest.mark.parametrize(
    ("kind", "integers", "rule"),
    [
        (LongitudinalResponseLaw, (1, 5, 5), "have 2 to"),
        (LongitudinalResponseLaw, (2**20 + 1, 5, 5), "have 2 to"),
        (LongitudinalResponseLaw, (2, T // 2, 5), "give the true answer more often"),
        (LongitudinalResponseLaw, (2, 5, T // 2), "give the true answer more often"),
        (LongitudinalResponseLaw, (2, 0, 5), "give the true answer more often"),
        (LongitudinalResponseLaw, (2, 5, 0), "give the true answer more often"),
        (LongitudinalResponseLaw, (4, 5, T // 4), "give the true answer more often"),
        (LongitudinalBitsLaw, (4097, 5, 5), "have 2 to 4096 bits"),
        (LongitudinalBitsLaw, (3, T // 2, 5), "give the true answer more often"),
        (LongitudinalHashingLaw, (5, 4, 5, 5), "prime number of buckets"),
        (LongitudinalHashingLaw, (5, 3, 5, T // 3 + 1), "give the true answer more often"),
        (LongitudinalMeanLaw, (T // 2, 5), "give the true answer more often"),
        (LongitudinalHistogramLaw, (1, 1, 5, 5), "choose some of 2 to"),
        (LongitudinalHistogramLaw, (4097, 1, 5, 5), "choose some of 2 to"),
        (LongitudinalHistogramLaw, (4, 5, 5, 5), "choose some of 2 to"),
        (LongitudinalHistogramLaw, (4, 0, 5, 5), "choose some of 2 to"),
        (LongitudinalHistogramLaw, (4, 2, -5, 5), "give the true answer more often"),
        (SampledLaw, (3, 1, LongitudinalMeanLaw(5, 5)), "have a law of one number"),
    ],
)
def test_integers_of_no_such_law_are_refused(kind, integers, rule):
    with pytest.raises(ValueError, match=rule):
        kind(*integers)


class TestHistogram:
    LAW = LongitudinalHistogram(8.0, 3.0, 0.0, 100.0, 5, 2)

    def test_counts_have_the_chances_of_the_law(self):
        """All numbers in one bucket: bits of it and of others are 1 as often as both steps say."""
        reports = self.LAW.release(np.full((20_000, 1), 50.0), range(20_000), KEY, "a")
        assert reports.shape == (20_000, 2)
        own, other = self.LAW.law.support
        for bucket in range(5):
            told = (reports[reports // 2 == bucket] % 2).astype(float)
            # 2 of 5 buckets are told; the secret is fixed: five standard errors.
            assert abs(len(told) - 8000) < 5 * math.sqrt(20_000 * 0.24)
            chance = own if bucket == 2 else other
            assert abs(told.mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / len(told))

    def test_waves_share_buckets_and_permanent_bits_and_no_second_noise(self):
        ids = range(5000)
        first, second, again = (self.LAW.release(np.full((5000, 1), 7.0), ids, KEY, wave) for wave in ("a", "b", "a"))
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(first // 2, second // 2)
        flip = self.LAW.second.flip_count / T
        alike = (first == second).mean()
        expected = flip**2 + (1 - flip) ** 2
        assert abs(alike - expected) < 5 * math.sqrt(expected * (1 - expected) / 10_000)

    def test_estimates_are_unbiased_by_their_standard_errors(self):
        shares = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
        people = np.repeat([10.0, 30.0, 50.0], [2000, 1200, 800])[:, None]
        estimate = self.LAW.estimate_histogram(self.LAW.release(people, range(4000), KEY, "a"))
        assert (np.abs(estimate.frequencies - shares) < 5 * estimate.standard_errors).all()
        assert estimate.n == 4000

    def test_a_lifetime_has_so_many_permanent_answers(self):
        each = self.LAW.exact_lifetime_epsilon
        assert [round(self.LAW.lifetime_guarantee(n).epsilon / each, 9) for n in (1, 2, 3, 9)] == [1, 2, 3, 3]
        everywhere = LongitudinalHistogram(4.0, 3.0, 0.0, 100.0, 3, 3)
        assert everywhere.lifetime_guarantee(9).epsilon == pytest.approx(3 * everywhere.exact_lifetime_epsilon)
        assert self.LAW.guarantee().epsilon == self.LAW.law.epsilon
        assert self.LAW.change_guarantee(2).epsilon == pytest.approx(2 * self.LAW.second.guarantee().epsilon)

    def test_one_bit_spends_all_of_epsilon(self):
        one, two = (LongitudinalHistogram(2.0, 1.0, 0.0, 1.0, 4, n) for n in (1, 2))
        assert one.law.lifetime_epsilon == pytest.approx(2.0, rel=1e-9)
        assert two.law.lifetime_epsilon == pytest.approx(2.0, rel=1e-9)
        assert one.first.flip_count < two.first.flip_count

    @pytest.mark.parametrize(
        ("given", "rule"),
        [
            ((2.0, 1.0, 0, 1, 1, 1), "n_buckets must be a whole number"),
            ((2.0, 1.0, 0, 1, 4, 5), "n_chosen must be a whole number"),
            ((2.0, 1.0, 1, 1, 4, 2), "must be"),
            ((2.0, 2.5, 0, 1, 4, 2), "report_epsilon must be smaller"),
        ],
    )
    def test_other_parameters_are_refused(self, given, rule):
        with pytest.raises(ValueError, match=rule):
            LongitudinalHistogram(*given)

    @pytest.mark.parametrize(
        ("reports", "rule"),
        [
            ([[0]], "of the shape"),
            ([[0.0, 2.0]], "whole numbers"),
            ([[0, 1]], "different buckets"),
            ([[2, 0]], "different buckets"),
            ([[0, 10]], "different buckets"),
            ([[0, 2]] * 9, "at least 2 people"),
        ],
    )
    def test_what_is_no_report_of_it_is_refused(self, reports, rule):
        with pytest.raises(ValueError, match=rule):
            self.LAW.estimate_histogram(reports)

    def test_what_is_no_wave_and_no_number_is_refused(self):
        with pytest.raises(ValueError, match="wave must be a text"):
            self.LAW.release([[1.0]], ["ann"], KEY, "")
        with pytest.raises(ValueError, match="rows must have the shape"):
            self.LAW.release([[1.0]], ["ann", "bob"], KEY, "a")
        with pytest.raises(ValueError, match="NaN"):
            self.LAW.release([[math.nan]], ["ann"], KEY, "a")


def test_a_law_draws_from_secure_words_as_well():
    assert {CODES[2].is_answer(CODES[2].draw(1, secure_words())) for _ in range(20)} == {True}
