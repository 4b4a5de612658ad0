"""Waves of one collection: exact figures of both steps over all answers, the attacks on them, and their estimates."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from laws import THRESHOLD, ScriptedNoise, binomial_pvalue, ks_pvalue

from skldp.mechanisms import (
    FieldKey,
    FlippedBits,
    LongitudinalCategories,
    LongitudinalHistogram,
    LongitudinalMean,
    RandomizedResponse,
    ReleaseKey,
    UnaryEncoding,
)

SECRET = bytes(range(100, 132))[::-1]
KEY = FieldKey(ReleaseKey(SECRET), "home page")
T = 2**64
LAWS = [
    LongitudinalCategories(2.0, 1.0, 2, "krr"),
    LongitudinalCategories(4.0, 0.5, 7, "krr"),
    LongitudinalCategories(0.2, 0.1, 300, "krr"),
    LongitudinalCategories(2.0, 1.0, 3, "sue"),
    LongitudinalCategories(6.0, 5.9, 40, "sue"),
    LongitudinalCategories(2.0, 0.5, 20),
    LongitudinalCategories(5.0, 2.5, 100),
    LongitudinalCategories(0.01, 0.001, 2),
]


def key_of(number):
    return FieldKey(ReleaseKey(np.random.default_rng(number).bytes(32)), "home page")


def matrix(law):
    """The chances of one step in Fractions: of a list, or of one bit."""
    if isinstance(law, RandomizedResponse):
        own, other, g = law.keep_count, law.other_count, law.n_classes
    elif isinstance(law, UnaryEncoding):
        own, other, g = law.own_count, law.other_count, 2
    else:
        own, other, g = T - law.flip_count, law.flip_count, 2
    return [[Fraction(own if i == j else other, T) for j in range(g)] for i in range(g)]


def chances_of_both(law):
    """How likely both steps together give the own answer, and one other: two entries of the product."""
    first, second = matrix(law.first), matrix(law.second)
    return [sum(first[0][m] * second[m][j] for m in range(len(first))) for j in (0, 1)]


def loss(one, other):
    return max(math.log(Fraction(chance, other[answer])) for answer, chance in one.items())


def series_law(law, values):
    """The chance of all reports, where the permanent answers to different values are independent."""
    # Whole numbers of one power of 2^64, of which ratios alone count.
    first, second = ([[int(chance * T) for chance in row] for row in matrix(step)] for step in (law.first, law.second))
    different = list(dict.fromkeys(values))
    chances = Counter()
    answers = range(len(first))
    for drawn in itertools.product(answers, repeat=len(different)):
        kept = dict(zip(different, drawn, strict=True))
        weight = T ** (len(values) - len(different)) * math.prod(first[value][kept[value]] for value in different)
        for reports in itertools.product(answers, repeat=len(values)):
            steps = (second[kept[value]][report] for value, report in zip(values, reports, strict=True))
            chances[reports] += weight * math.prod(steps)
    return chances


@pytest.mark.parametrize("law", LAWS)
class TestOneReport:
    def test_epsilon_is_that_of_both_steps_and_not_above_what_was_asked(self, law):
        own, other = chances_of_both(law)
        bits = 2 if law.method == "sue" else 1
        exact = bits * math.log(own / other)
        assert law.exact_epsilon == pytest.approx(exact, rel=1e-12)
        assert law.report_epsilon * (1 - 1e-9) <= law.exact_epsilon <= law.report_epsilon
        assert law.guarantee().epsilon == law.exact_epsilon
        assert law.p == pytest.approx(float(own), rel=1e-15)
        if law.method != "hashing":
            assert law.q == pytest.approx(float(other), rel=1e-15)

    def test_the_first_step_alone_has_the_epsilon_of_a_lifetime(self, law):
        assert law.lifetime_guarantee().epsilon == law.first.guarantee().epsilon <= law.lifetime_epsilon
        assert law.lifetime_guarantee().epsilon > law.lifetime_epsilon * (1 - 1e-9)

    def test_a_wave_is_the_same_again_and_the_next_one_is_not(self, law):
        codes, ids = np.arange(200)[:, None] % law.n_classes, list(range(200))
        first = law.release(codes, ids, KEY, "1")
        np.testing.assert_array_equal(law.release(codes[::-1], ids[::-1], KEY, "1")[::-1], first)
        assert (law.release(codes, ids, KEY, "2") != first).any()

    def test_estimates_and_their_variances_are_unbiased(self, law):
        """The mean over 100 surveys, each with a secret of its own, against the exact law of what is counted."""
        codes = np.minimum(np.arange(400) % (2 * law.n_classes), law.n_classes - 1)[:, None]
        place = law.n_classes - 1
        own = int((codes == place).sum())
        truth = own / 400
        made = [law.estimate_frequencies(law.release(codes, range(400), key_of(i), "a")) for i in range(100)]
        frequencies = np.array([estimate.frequencies[place] for estimate in made])
        p, q = law.p, law.q
        exact = (own * p * (1 - p) + (400 - own) * q * (1 - q)) / (400 * (p - q)) ** 2
        assert abs(frequencies.mean() - truth) < 6 * math.sqrt(exact / 100)
        variances = np.array([estimate.standard_errors[place] ** 2 for estimate in made])
        assert abs(variances.mean() - exact) <= 6 * variances.std() / 10 + 1e-12 * exact
        # Were it another variance, the estimates would show that.
        assert 0.5 < frequencies.var() / exact < 2


@pytest.mark.parametrize("method", ["hashing", "sue", "krr"])
@pytest.mark.parametrize("lifetime", [1e-6, 1.0, 30.0])
def test_next_to_nothing_may_be_left_to_the_second_step(method, lifetime):
    first = LongitudinalCategories(lifetime, lifetime / 2, 4, method).first.exact_epsilon
    for asked in (math.nextafter(first, 0.0), first * (1 - 1e-9), first * 0.99, first / 1000):
        law = LongitudinalCategories(lifetime, asked, 4, method)
        assert law.exact_epsilon <= asked
        assert law.exact_epsilon > asked * (1 - 1e-3)


class TestMany:
    COIN = LongitudinalCategories(2.0, 1.0, 2, "krr")
    THREE = LongitudinalCategories(1.5, 0.7, 3, "krr")

    def test_reports_of_one_value_come_near_to_its_epsilon_and_never_above(self):
        losses = [loss(series_law(self.COIN, [0] * t), series_law(self.COIN, [1] * t)) for t in (1, 2, 4, 8)]
        assert losses == sorted(losses)
        assert losses[0] == pytest.approx(self.COIN.exact_epsilon, rel=1e-12)
        assert 0.97 * self.COIN.lifetime_guarantee().epsilon < losses[-1] < self.COIN.lifetime_guarantee().epsilon

    def test_k_values_cost_at_most_k_times_as_much_and_come_near_to_it(self):
        far = loss(series_law(self.COIN, [0] * 5 + [1] * 5), series_law(self.COIN, [1] * 5 + [0] * 5))
        bound = self.COIN.lifetime_guarantee(2).epsilon
        assert bound == pytest.approx(2 * self.COIN.first.exact_epsilon, rel=1e-12)
        assert 0.9 * bound < far < bound
        far = loss(series_law(self.THREE, [0, 1, 2]), series_law(self.THREE, [1, 2, 0]))
        assert far == pytest.approx(3 * self.THREE.exact_epsilon, rel=1e-12)

    @pytest.mark.parametrize("law", [COIN, THREE])
    def test_whatever_changes_and_whenever_the_second_step_bounds_it(self, law):
        series = list(itertools.product(range(law.n_classes), repeat=3))
        laws = {values: series_law(law, values) for values in series}
        worst = max(loss(laws[one], laws[other]) for one in series for other in series)
        assert law.lifetime_guarantee().epsilon < worst <= law.change_guarantee(3).epsilon
        assert law.change_guarantee(3).epsilon == pytest.approx(3 * law.second.exact_epsilon, rel=1e-12)

    def test_bits_may_all_differ_in_the_second_step(self):
        law = LongitudinalCategories(2.0, 1.0, 3, "sue")
        flip = Fraction(law.second.flip_count, T)
        assert law.change_guarantee(2).epsilon == pytest.approx(6 * math.log((1 - flip) / flip), rel=1e-12)

    def test_of_hashes_and_ends_there_are_only_so_many_answers(self):
        law = LongitudinalCategories(2.0, 0.5, 50)
        assert law.n_answers == 3
        assert law.lifetime_guarantee(50).epsilon == pytest.approx(3 * law.first.exact_epsilon, rel=1e-15)
        assert LongitudinalCategories(2.0, 0.5, 50, "krr").lifetime_guarantee(51).epsilon == pytest.approx(100)
        assert LongitudinalCategories(2.0, 0.5, 50, "sue").lifetime_guarantee(51).epsilon == pytest.approx(102)
        assert LongitudinalMean(2.0, 0.5, 0, 9).lifetime_guarantee(7).epsilon == pytest.approx(4)
        everything = law.release(np.arange(50)[:, None], ["ann"] * 50, KEY, "1")
        assert len(np.unique(everything // law.n_answers)) == 1
        assert len(np.unique(everything)) <= 3


class TestAttacks:
    @pytest.mark.parametrize("method", ["krr", "sue", "hashing"])
    def test_averaging_over_waves_finds_the_permanent_answer_and_no_more(self, method):
        """Eighty reports a person: by the second step alone, each would tell its value."""
        law = LongitudinalCategories(1.0, 0.9, 2, method)
        n, value = 2000, 1
        waves = [law.release(np.full((n, 1), value), range(n), KEY, str(wave)) for wave in range(80)]
        if method == "hashing":
            bucket = law._hashes.hashed(waves[0] // law.n_answers, np.full((n, 1), value))
            told = np.mean([wave % law.n_answers == bucket for wave in waves], axis=0)[:, 0] > 0.5
        else:
            told = np.mean([wave[:, -1] for wave in waves], axis=0) > 0.5
        own = law.first.p if method == "sue" else law.first.keep_probability
        # Of 80 reports by the second step, the majority is the permanent answer but for a chance below 1e-8.
        assert binomial_pvalue(told.sum(), n, own) > THRESHOLD
        assert told.mean() < 0.8

    def test_two_waves_have_the_permanent_answer_in_common_and_no_noise(self):
        law = LongitudinalCategories(2.0, 1.0, 4, "krr")
        n = 20_000
        one, other = (law.release(np.zeros((n, 1), int), range(n), KEY, wave) for wave in ("a", "b"))
        first, second = matrix(law.first), matrix(law.second)
        alike = sum(first[0][m] * sum(second[m][y] ** 2 for y in range(4)) for m in range(4))
        assert binomial_pvalue((one == other).sum(), n, float(alike)) > THRESHOLD

    def test_waves_and_fields_of_one_text_share_no_noise(self):
        law, n = LongitudinalCategories(2.0, 0.1, 2, "krr"), 20_000
        given = [
            law.release(np.zeros((n, 1), int), range(n), FieldKey(KEY.key, field), wave)
            for field, wave in (("ab", "c"), ("a", "bc"), ("ab", "cc"))
        ]
        p = law.p
        assert binomial_pvalue((given[0] == given[1]).sum(), n, p**2 + (1 - p) ** 2) > THRESHOLD

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (LongitudinalMean(1.0, 0.99, 0, 24), LongitudinalMean(1.0, 0.99, 0, 48)),
            (LongitudinalHistogram(1.0, 0.99, 0, 24, 8, 1), LongitudinalHistogram(1.0, 0.99, 0, 48, 8, 1)),
            (LongitudinalHistogram(1.0, 0.99, 0, 24, 8, 1), LongitudinalHistogram(1.0, 0.99, 0, 24, 7, 1)),
            (LongitudinalCategories(1.0, 0.99, 50), LongitudinalCategories(1.0, 0.99, 200)),
        ],
        ids=["bounds of a mean", "bounds of a histogram", "buckets", "hashes"],
    )
    @pytest.mark.parametrize("report_epsilon", [0.99, 0.1])
    def test_what_is_seen_in_another_way_has_no_answer_in_common(self, one, other, report_epsilon):
        """Both steps of these pairs are the same laws, and what they see of a value is often the same code.

        Where a report is nearly the permanent answer, that would be seen to be in common, else the noise of the second
        step.
        """
        one, other = (replace(law, report_epsilon=report_epsilon) for law in (one, other))
        n = 4000
        assert (one.first, one.second) == (other.first, other.second)
        given = [law.release(np.full((n, 1), 23), range(n), KEY, "monday").reshape(-1) for law in (one, other)]
        base = one.n_answers if isinstance(one, LongitudinalCategories) else 2
        alike = np.mean(given[0] % base == given[1] % base)
        # The same end, bucket and hash function, each in more than a quarter of people, had the same answer in all.
        own, independent = one.law.support[0], 1 / base
        most = own**2 + (base - 1) * one.law.support[1] ** 2
        assert independent - 0.03 < alike < most + 0.03

    def test_bounds_of_the_same_numbers_are_the_same(self):
        one, other = LongitudinalMean(1.0, 0.9, -0.0, 24), LongitudinalMean(1.0, 0.9, 0, np.float32(24.0))
        given = [law.release(np.full((500, 1), 7.5), range(500), KEY, "monday") for law in (one, other)]
        np.testing.assert_array_equal(*given)

    def test_jitter_changes_no_end(self):
        law = LongitudinalMean(2.0, 1.0, 0.0, 24.0)
        tremble = 7.5 + np.random.default_rng(0).uniform(-1e-9, 1e-9, (500, 1))
        assert len(np.unique(law.release(tremble, ["ann"] * 500, KEY, "a"))) == 1


class TestFlippedBits:
    @pytest.mark.parametrize("count", [1, 2**40 + 3, 2**62 + 12345, 2**63])
    def test_flips_below_its_count_and_nothing_else(self, count):
        law = FlippedBits(1, count)
        leading, rest = divmod(count, 2**48)
        for word, further, flips in (
            (leading, rest, False),
            *(((leading, rest - 1, True),) if rest else ((leading - 1, 2**48 - 1, True),)),
            (2**16 - 1, 2**48 - 1, False),
        ):
            for bit in (0, 1):
                script = [word, *([further << 16 | 5] if word == leading else [])]
                noise = ScriptedNoise(script)
                assert law.release([[bit]], noise).rows.tolist() == [[bool(bit) != flips]]

    def test_epsilon_is_of_all_bits(self):
        assert FlippedBits(3, 2**62).guarantee().epsilon == pytest.approx(3 * math.log(3), rel=1e-15)
        assert FlippedBits(5, 2**63).guarantee().epsilon == 0

    @pytest.mark.parametrize("given", [(0, 1), (True, 1), (1, 0), (1, 2**63 + 1), (1, 0.5)])
    def test_other_parameters_are_refused(self, given):
        with pytest.raises(ValueError, match="must be a whole number"):
            FlippedBits(*given)


class TestMean:
    def test_estimates_are_unbiased_by_their_standard_errors(self):
        """Of 100 surveys among people drawn anew, each with a secret of its own, one value beyond the bounds."""
        law = LongitudinalMean(3.0, 1.5, -2.0, 10.0)
        draw, distances = np.random.default_rng(5), []
        for survey in range(100):
            people = draw.uniform(-1.0, 11.0, (400, 1))
            mean, error = law.estimate_mean(law.release(people, range(400), key_of(survey), "a"))
            distances.append((mean - (4.5 * 11 / 12 + 10 / 12)) / error)
        assert ks_pvalue(distances, "norm") > THRESHOLD

    def test_of_one_value_has_no_bias_from_the_threshold(self):
        law, n = LongitudinalMean(6.0, 5.0, 0.0, 1.0), 20_000
        high = law.release(np.full((n, 1), 0.3), range(n), KEY, "a").sum()
        p, q = law._ends.p, law._ends.q
        assert binomial_pvalue(high, n, q + 0.3 * (p - q)) > THRESHOLD

    def test_ends_are_certain_and_extreme_bounds_overflow_nowhere(self):
        law = LongitudinalMean(60.0, 40.0, -1.7e308, 1.7e308)
        given = law.release([[-1.7e308], [1.7e308], [-1.79e308]] * 50, range(150), KEY, "a")
        assert given[:, 0].tolist() == [0, 1, 0] * 50


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ((0.0, 1.0, 3), "epsilon must be a finite number > 0"),
        ((1.0, math.nan, 3), "epsilon must be a finite number > 0"),
        ((1.0, 1.0, 3), "report_epsilon must be smaller"),
        ((1.0, 2.0, 3, "krr"), "report_epsilon must be smaller"),
        ((2.0, 1.0, 1), "n_classes must be a whole number"),
        ((2.0, 1.0, 2**20 + 1), "n_classes must be a whole number"),
        ((2.0, 1.0, 3, "oue"), "method must be"),
    ],
)
def test_other_parameters_are_refused(given, rule):
    with pytest.raises(ValueError, match=rule):
        LongitudinalCategories(*given)


def test_other_bounds_and_epsilons_are_refused():
    for given in ((2.0, 1.0, 1.0, 1.0), (2.0, 1.0, 0.0, math.inf), (1.0, 2.0, 0.0, 1.0)):
        with pytest.raises(ValueError, match="must be"):
            LongitudinalMean(*given)


@pytest.mark.parametrize("law", LAWS[:1] + LAWS[3:4] + LAWS[5:6])
def test_what_is_no_wave_no_code_and_no_report_is_refused(law):
    for wave in ("", None, 3):
        with pytest.raises(ValueError, match="wave must be a text"):
            law.release([[0]], ["ann"], KEY, wave)
    with pytest.raises(ValueError, match="codes must be integers"):
        law.release([[law.n_classes]], ["ann"], KEY, "a")
    with pytest.raises(ValueError, match="shape"):
        law.release([0], ["ann"], KEY, "a")
    with pytest.raises(ValueError, match=r"one for each|shape"):
        law.release([[0]], ["ann", "bob"], KEY, "a")
    with pytest.raises(ValueError, match="codes must be integers"):
        law.estimate_frequencies(np.full((3, law.n_classes if law.method == "sue" else 1), 10**6))


def test_numbers_that_are_none_are_refused():
    law = LongitudinalMean(2.0, 1.0, 0, 1)
    with pytest.raises(ValueError, match="NaN"):
        law.release([[math.nan]], ["ann"], KEY, "a")
    for rows, ids in (([0.5], ["ann"]), ([[0.5]], ["ann", "bob"])):
        with pytest.raises(ValueError, match="rows must have the shape"):
            law.release(rows, ids, KEY, "a")
