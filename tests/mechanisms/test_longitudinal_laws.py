"""Laws of two steps by their integers: the chance of every answer through the steps themselves, and its epsilon."""

import hashlib
import itertools
import math
import struct
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mechanisms.test_integer_laws import runs

from skldp.collection._answer_scores import code_scores, numbers
from skldp.collection._bucket_scores import BucketScores
from skldp.collection._likeliest import likeliest_codes
from skldp.laws._integers import law_from_dict, secure_words
from skldp.laws._longitudinal_laws import (
    BloomLaw,
    LongitudinalBitsLaw,
    LongitudinalHashingLaw,
    LongitudinalHistogramLaw,
    LongitudinalMeanLaw,
    LongitudinalResponseLaw,
)
from skldp.laws._numbers import SampledLaw
from skldp.mechanisms import longitudinal_categories, longitudinal_histogram, longitudinal_mean
from skldp.mechanisms._longitudinal import counts_of_bits

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
# Of these many texts, two have filters that differ in as many bits as any can.
TEXTS = [f"text {i}" for i in range(60)]
BLOOM = [
    BloomLaw(3, 4, 1, T // 5, T // 3),
    BloomLaw(2, 5, 2, T // 5, T // 3),
    BloomLaw(2, 3, 2, T // 7, T // 4),
    BloomLaw(1, 3, 3, T // 7, T // 4),
]


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
    if isinstance(law, BloomLaw):
        return law.n_bits
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
    if isinstance(law, BloomLaw):
        return [law.choose(iter([word])) for word in range(law.n_cohorts)]
    return [0]


def values(law):
    if law in CODES:
        return range(law.n_codes)
    return TEXTS if isinstance(law, BloomLaw) else [-1.0, -0.5 + 1e-9, 0.0, 0.25, 1.0]


def seen_by(law, choice):
    """What a person of a choice can see of their values."""
    if isinstance(law, LongitudinalMeanLaw):
        return {0, 1}
    return {law.see(value, choice) for value in values(law)}


@pytest.mark.few(5)
@pytest.mark.parametrize("law", [*CODES, *NUMBERS, *BLOOM], ids=str)
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


@pytest.mark.parametrize("law", [*CODES, *NUMBERS, *BLOOM], ids=str)
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


CALIBRATED = [
    (longitudinal_categories, (2.0, 1.0, 2, "krr")),
    (longitudinal_categories, (4.0, 0.5, 7, "krr")),
    (longitudinal_categories, (0.2, 0.1, 300, "krr")),
    (longitudinal_categories, (2.0, 1.0, 3, "sue")),
    (longitudinal_categories, (6.0, 5.9, 40, "sue")),
    (longitudinal_categories, (2.0, 0.5, 20)),
    (longitudinal_categories, (0.01, 0.001, 2)),
    (longitudinal_mean, (3.0, 1.5)),
    (longitudinal_histogram, (3.0, 1.5, 6, 2)),
    (longitudinal_histogram, (2.0, 1.0, 4, 1)),
]


@pytest.mark.parametrize(("make", "given"), CALIBRATED)
def test_a_law_spends_what_was_asked_and_not_more(make, given):
    law = make(*given)
    assert given[0] * (1 - 1e-9) < law.lifetime_epsilon == law.epsilon_of_values(1) <= given[0]
    assert given[1] * (1 - 1e-9) <= law.epsilon <= given[1]


@pytest.mark.few(3)
@pytest.mark.parametrize("method", ["hashing", "sue", "krr"])
@pytest.mark.parametrize("lifetime", [1e-6, 1.0, 30.0])
def test_next_to_nothing_may_be_left_to_the_second_step(method, lifetime):
    first = longitudinal_categories(lifetime, lifetime / 2, 4, method).lifetime_epsilon
    for asked in (math.nextafter(first, 0.0), first * (1 - 1e-9), first * 0.99, first / 1000):
        law = longitudinal_categories(lifetime, asked, 4, method)
        assert asked * (1 - 1e-3) < law.epsilon <= asked


@pytest.mark.parametrize("law", [CODES[0], CODES[3], CODES[5], NUMBERS[0], NUMBERS[1]], ids=str)
def test_whatever_changes_and_whenever_the_second_step_bounds_it(law):
    worst = 0.0
    for choice in choices(law):
        all_series = list(itertools.product(sorted(seen_by(law, choice)), repeat=2))
        laws = {seen: series_given(law, seen, choice) for seen in all_series}
        worst = max(worst, loss(list(laws.values())))
    second = loss([reported(law, one, 0) for one in outcomes(law)])
    assert law.epsilon_of_reports(2) == pytest.approx(2 * second, rel=1e-12)
    assert law.epsilon < worst <= law.epsilon_of_reports(2) * (1 + 1e-12)


def outcomes(law):
    """Permanent answers, given the first choice."""
    return range(2 ** n_bits_of(law) if n_bits_of(law) else law.n_each)


def test_a_lifetime_has_so_many_permanent_answers():
    def times(law, *numbers):
        return [round(law.epsilon_of_values(n) / law.lifetime_epsilon, 9) for n in numbers]

    assert times(longitudinal_categories(2.0, 0.5, 50), 1, 2, 3, 50) == [1, 2, 3, 3]
    for method in ("krr", "sue"):
        assert times(longitudinal_categories(2.0, 0.5, 50, method), 49, 51) == [49, 50]
    assert times(longitudinal_mean(2.0, 0.5), 1, 2, 7) == [1, 2, 2]
    assert times(longitudinal_histogram(8.0, 3.0, 5, 2), 1, 2, 3, 9) == [1, 2, 3, 3]
    assert times(longitudinal_histogram(4.0, 3.0, 3, 3), 9) == [3]
    for figure in (CODES[0].epsilon_of_values, CODES[0].epsilon_of_reports):
        for n in (0, 1.5, True):
            with pytest.raises(ValueError, match="must be a whole number"):
                figure(n)


def test_numbers_have_no_answers_without_bias():
    with pytest.raises(ValueError, match="answers without bias"):
        numbers(longitudinal_histogram(3.0, 1.5, 6, 2), np.array([0], dtype=np.uint8))


@pytest.mark.parametrize(
    ("make", "given", "rule"),
    [
        (longitudinal_categories, (0.0, 1.0, 3), "epsilon must be a finite number > 0"),
        (longitudinal_categories, (1.0, math.nan, 3), "epsilon must be a finite number > 0"),
        (longitudinal_categories, (1.0, 1.0, 3), "must be smaller"),
        (longitudinal_categories, (1.0, 2.0, 3, "krr"), "must be smaller"),
        (longitudinal_categories, (2.0, 1.0, 1), "n_classes must be a whole number"),
        (longitudinal_categories, (2.0, 1.0, 2**20 + 1), "n_classes must be a whole number"),
        (longitudinal_categories, (2.0, 1.0, 3, "oue"), "method must be"),
        (longitudinal_mean, (1.0, 2.0), "must be smaller"),
        (longitudinal_mean, (math.inf, 2.0), "epsilon must be a finite number > 0"),
        (longitudinal_histogram, (2.0, 1.0, 1, 1), "n_buckets must be a whole number"),
        (longitudinal_histogram, (2.0, 1.0, 4, 5), "n_chosen must be a whole number"),
        (longitudinal_histogram, (2.0, 2.5, 4, 2), "must be smaller"),
    ],
)
def test_other_parameters_are_refused(make, given, rule):
    with pytest.raises(ValueError, match=rule):
        make(*given)


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


def test_a_law_draws_from_secure_words_as_well():
    assert {CODES[2].is_answer(CODES[2].draw(1, secure_words())) for _ in range(20)} == {True}


@pytest.mark.parametrize("law", BLOOM, ids=str)
def test_a_filter_has_the_places_of_the_digests_and_no_more_answers_than_are_counted(law):
    for cohort in range(law.n_cohorts):
        filters = {law.see(text, cohort) for text in TEXTS}
        assert len(filters) <= law.most_kept
        for text in TEXTS:
            heads = [cohort.to_bytes(4, "big") + i.to_bytes(4, "big") for i in range(law.n_hashes)]
            digests = [hashlib.sha256(head + text.encode()).digest() for head in heads]
            places = {struct.unpack(">Q", digest[:8])[0] % law.n_bits for digest in digests}
            assert law.see(text, cohort) == sum(2 ** (law.n_bits - 1 - place) for place in places)


def test_all_filters_of_few_bits_are_counted():
    law = BloomLaw(1, 4, 2, T // 5, T // 3)
    assert len({law.see(f"{i}", 0) for i in range(500)}) == law.most_kept == 4 + 6
    assert law.epsilon_of_values(1000) == pytest.approx(10 * law.lifetime_epsilon)
    assert law.epsilon_of_reports(1) == pytest.approx(4 * math.log((T - law.second_count) / law.second_count))


@pytest.mark.parametrize(("lifetime", "report", "n"), [(2.0, 1.0, 4), (8.0, 7.999, 4), (0.1, 1e-3, 2), (50.0, 4.0, 32)])
def test_the_second_count_is_the_smallest_within_epsilon(lifetime, report, n):
    first, second = counts_of_bits(lifetime, report, n)
    law = BloomLaw(1, 64, n // 2, first, second)
    assert law.epsilon <= report < replace(law, second_count=second - 1).epsilon
