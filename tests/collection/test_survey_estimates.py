"""Intervals of a few reports: with chances that are counted exactly, and of filters that leave nobody."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from scipy.stats import binom

from skldp.collection._answer_scores import CodeScores, Scores
from skldp.collection._survey_estimates import Sums, quantile_estimate, quotients, variance
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._distribution import DistributionEstimate

SHARES = [0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0]
HALF = np.arange(40) % 2


def scores(values, end):
    return Scores(np.asarray(values, dtype=float), -end, end)


def square_of(number):
    return Scores(number.values**2, 0.0, number.high**2)


@pytest.mark.few(24)
@pytest.mark.parametrize("n", [2, 25, 50, 200, 1000, 10_000])
@pytest.mark.parametrize("n_codes", [2, 10, 100])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 8.0])
def test_an_interval_of_a_share_holds_it_at_its_level_for_any_number_of_reports(n, epsilon, n_codes):
    """By the chances of all counts. By normal means it was .905 of .95 at 25 reports, epsilon 4 and a share of .01."""
    for mechanism in (RandomizedResponse, UnaryEncoding):
        law = mechanism(epsilon, n_codes).integer_law
        codes, (p, q) = CodeScores(law), law.support
        assert codes.two_valued
        hits = np.arange(n + 1)
        low, high = (np.full(n + 1, end[0]) for end in (codes.low, codes.high))
        sums = hits * high + (n - hits) * low, hits * high**2 + (n - hits) * low**2
        of_all = Sums(*sums, sums[0], float(n), float(n), low, high, 1.0, 1.0, two_valued=True)
        chances = [binom.pmf(hits, n, share * p + (1 - share) * q) for share in SHARES]
        for level in (0.9, 0.95, 0.999):
            found = quotients(of_all, n, level, "", tuple(map(str, hits)))
            for share, chance in zip(SHARES, chances, strict=True):
                outside = chance[found.low > share + 1e-9].sum(), chance[found.high < share - 1e-9].sum()
                assert max(outside) <= (1 - level) / 2 * (1 + 1e-6)


@pytest.mark.parametrize("n", [2, 5, 20, 100, 1000])
def test_an_interval_of_other_scores_holds_their_mean_even_where_few_are_all_alike(n):
    """Approximate: a rare score of three, which none of n reports may have."""
    hits = np.arange(n + 1)
    low, high = np.full(n + 1, 0.0), np.ones(n + 1)
    found = quotients(
        Sums(hits, hits, hits, float(n), float(n), low, high, 1.0, 1.0), n, 0.95, "", tuple("x" * (n + 1))
    )
    for share in (0.02, 0.1, 0.3, 0.5):
        assert binom.pmf(hits, n, share)[(found.low <= share) & (share <= found.high)].sum() > 0.9


def test_an_interval_of_rare_scores_of_both_signs_is_as_wide_as_it_says():
    """Exact over the counts of both signs: no score is farther than 1 from the mean of 0, although both are 2 apart."""
    n, counts, rare = 1000, np.arange(40), 0.005
    plus, minus = (each.reshape(-1) for each in np.meshgrid(counts, counts))
    chances = binom.pmf(plus, n, rare) * binom.pmf(minus, n - plus, rare / (1 - rare))
    of_a, of_aa, end = (plus - minus).astype(float), (plus + minus).astype(float), np.ones(len(plus))
    found = quotients(Sums(of_a, of_aa, of_a, n, n, -end, end, 1.0, 1.0), n, 0.95, "", [""] * len(plus))
    assert chances.sum() > 1 - 1e-12
    # Students' interval holds 0 in 95% of surveys; few people at one end alone would have a larger error there.
    assert chances[(found.low <= 0) & (found.high >= 0)].sum() > 0.94
    (z, few) = 1.9623, 5 + 40 * 5
    variance, reach = 10 / 1000, found.high[few]
    assert (plus[few], minus[few]) == (5, 5)
    assert reach**2 == pytest.approx(z**2 * (variance + reach * (1 - variance)) / 1000, rel=1e-3)
    assert found.low[few] == -reach


def test_two_equal_reports_tell_no_variance():
    number, everyone = scores([1, 1], 3), Scores(np.ones(2), 1.0, 1.0)
    square = Scores(np.array([1.5, 1.5]), 0.0, 9.0)
    found = variance(number, square, everyone, 0.95, "")
    assert found.high - found.low > 9
    # Fifty equal ones may all lack a rare large score, of which t^2 would be seen.
    many = variance(scores(np.ones(50), 3), Scores(np.ones(50), 0.0, 9.0), Scores(np.ones(50), 1.0, 1.0), 0.95, "")
    assert (many.high - many.values)[0] > 1.7


@pytest.mark.parametrize("weights", [np.full(40, -1), 2 * HALF - 1, np.where(np.arange(40) < 25, -1, 1)])
def test_where_fewer_than_nobody_is_left_nothing_is_known(weights):
    one, left = scores(np.sin(range(40)), 3), scores(weights, 1)
    for found in (
        quotients(Sums.of(one, left), 40, 0.95, "", ("",)),
        variance(one, square_of(one), left, 0.95, ""),
    ):
        assert math.isnan(found.values[0])
        assert (found.low[0], found.high[0]) == (-math.inf, math.inf)


def test_a_variance_of_few_who_may_be_nobody_has_no_bounds():
    number = scores([-1, 1, -3, 3, 1, 0, 1, -3, 1, 0, -3, -3, 0, 1, 1, -3, -3, -1, -1], 3)
    weights = Scores(np.where(np.arange(19) < 16, -0.2, 1.5), -0.2, 1.5)
    assert weights.values.sum() > 0
    found = variance(number, square_of(number), weights, 0.95, "")
    assert (found.low[0], found.high[0]) == (-math.inf, math.inf)


def test_no_forged_report_moves_a_variance_by_more_than_is_said():
    rng = np.random.default_rng(0)
    for n in (2, 3, 5, 20):
        values, everyone = rng.choice([-3.0, -1.0, 0.0, 3.0], size=n), Scores(np.ones(n), 1.0, 1.0)
        before = variance(scores(values, 3), square_of(scores(values, 3)), everyone, 0.95, "")
        for forged in (-3.0, 0.0, 3.0):
            number = scores([forged, *values[1:]], 3)
            after = variance(number, square_of(number), everyone, 0.95, "")
            assert abs(after.values - before.values)[0] <= before.moved_by(1 / n)[0]


@pytest.mark.few(4)
@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 5.0)])
def test_an_interval_of_scores_with_a_rare_one_holds_their_mean_at_any_share(n, ends):
    """By the chances of all counts: .91 where seven people are expected, if errors are those at the estimate."""
    hits, (low, high) = np.arange(n + 1), ends
    a, aa = hits * high + (n - hits) * low, hits * high**2 + (n - hits) * low**2
    blank = np.ones(n + 1)
    found = quotients(Sums(a, aa, a, n, n, low * blank, high * blank, 1.0, 1.0), n, 0.95, "", [""] * (n + 1))
    shares = (found.low - low) / (high - low), (found.high - low) / (high - low)
    for share in np.linspace(0.001, 0.5, 200):
        chances = binom.pmf(hits, n, share)
        assert chances[(shares[0] <= share) & (share <= shares[1])].sum() > 0.935
        # Of all, the end above is that of Wilson's interval.
    t_ = -special.stdtrit(n - 1, 0.025)
    wilson = (hits + t_**2 / 2 + t_ * np.sqrt(hits * (1 - hits / n) + t_**2 / 4)) / (n + t_**2)
    rare = hits < n / 10
    np.testing.assert_allclose(shares[1][rare], wilson[rare], rtol=0.15)


@pytest.mark.few(20)
@pytest.mark.parametrize("level", [0.05, 0.2, 0.5, 0.77, 0.95])
@pytest.mark.parametrize("error", [1e-9, 0.02, 0.1, 0.4])
@pytest.mark.parametrize("kind", ["buckets", "knots", "places"])
def test_a_quantile_s_interval_holds_every_number_that_no_share_refutes(level, error, kind):
    """Against a search over fine numbers: shares up to knots bound those below a number and up to it."""
    knots, shares = np.array([0.0, 1.0, 2.0, 5.0, 6.0]), np.array([0.1, 0.3, 0.2, 0.25, 0.15])
    found = DistributionEstimate.around(knots, shares, 100_000)
    ends = {
        "buckets": (knots, np.append(knots[1:], 7.0)),
        "knots": (np.append(0.0, knots[:-1]), np.append(knots[1:], 6.0)),
        "places": (knots, knots),
    }[kind]
    reach, sums = 1.95999 * error, np.cumsum(shares)
    blank = quotients(Sums(*np.zeros((3, 4)), 9.0, 9.0, *np.zeros((2, 4)), 1.0, 1.0), 9, 0.95, "", [""] * 4)
    upto = replace(blank, low=sums[:4] - reach, high=sums[:4] + reach)
    made = quantile_estimate(found, upto, [level], ends, "quantiles of x")
    numbers = knots if kind == "places" else np.linspace(0, 7 if kind == "buckets" else 6, 7001)
    inside = []
    for q in numbers:
        # A share up to knot j is at most that up to q, or at least that below it.
        upto = [
            sums[j] - reach * (j < 4) > level for j in range(5) if ends[1][j] < q or (kind == "places" and knots[j] < q)
        ]
        below = [
            sums[j] + reach * (j < 4) < level
            for j in range(4)
            if q < ends[0][j + 1] or (kind == "places" and q <= knots[j])
        ]
        if not any(upto) and not any(below):
            inside.append(q)
    assert made.low[0] == pytest.approx(min(inside), abs=2e-3)
    assert made.high[0] == pytest.approx(max(inside), abs=2e-3)
    assert made.values == pytest.approx(np.clip(found.quantile([level]), made.low, made.high))
    assert (made.labels, made.level) == ((f"{level:g}",), 0.95)
    assert made.moved_by(0.01).tolist() == [6.0]
