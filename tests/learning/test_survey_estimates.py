"""Intervals of a few reports: with chances that are counted exactly, and of filters that leave nobody."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from skldp.learning._answer_scores import Scores, code_scores
from skldp.learning._survey_estimates import Sums, SurveyEstimate, correlation, quantile_estimate, quotients, variance
from skldp.mechanisms import RandomizedResponse, integer_law
from skldp.mechanisms._numeric.distribution import DistributionEstimate

SHARES = [0, 0.001, 0.003, 0.01, 0.02, *np.linspace(0.05, 1, 20)]
HALF = np.arange(40) % 2


def scores(values, end):
    return Scores(np.asarray(values, dtype=float), -end, end)


def square_of(number):
    return Scores(number.values**2, 0.0, number.high**2)


@pytest.mark.parametrize("n", [2, 5, 20, 100, 1000])
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_an_interval_of_a_share_holds_it_even_where_few_reports_are_all_alike(n, epsilon):
    law = integer_law(RandomizedResponse(epsilon, 10))
    codes = code_scores(law)
    p, q = 1 - 9 * law.other_count / 2**64, law.other_count / 2**64
    hits = np.arange(n + 1)
    low, high = (np.full(n + 1, end[0]) for end in (codes.low, codes.high))
    assert [low[0], high[0]] == pytest.approx([-q / (p - q), (1 - q) / (p - q)])
    sums = hits * high + (n - hits) * low, hits * high**2 + (n - hits) * low**2
    found = quotients(Sums(*sums, sums[0], float(n), float(n), low, high, 1.0, 1.0), n, 0.95, "", tuple(map(str, hits)))
    for share in SHARES:
        chances = binom.pmf(hits, n, share * p + (1 - share) * q)
        # Without a least variance it is below 0.01 for epsilon 8 and 20 reports, of a share near to 0.
        assert chances[(found.low <= share) & (share <= found.high)].sum() > 0.9


def test_two_equal_reports_tell_no_variance_and_no_correlation():
    number, everyone = scores([1, 1], 3), Scores(np.ones(2), 1.0, 1.0)
    square = Scores(np.array([1.5, 1.5]), 0.0, 9.0)
    found = variance(number, square, everyone, 0.95, "")
    assert found.high - found.low > 9
    found = correlation((number, square), (number, square), everyone, 0.95, "")
    assert (found.low[0], found.high[0]) == (-1, 1)


@pytest.mark.parametrize("weights", [np.full(40, -1), 2 * HALF - 1, np.where(np.arange(40) < 25, -1, 1)])
def test_where_fewer_than_nobody_is_left_nothing_is_known(weights):
    one, two, left = scores(np.sin(range(40)), 3), scores(np.cos(range(40)), 3), scores(weights, 1)
    for found in (
        quotients(Sums.of(one, left), 40, 0.95, "", ("",)),
        variance(one, square_of(one), left, 0.95, ""),
    ):
        assert math.isnan(found.values[0])
        assert (found.low[0], found.high[0]) == (-math.inf, math.inf)
    found = correlation((one, square_of(one)), (two, square_of(two)), left, 0.95, "")
    assert math.isnan(found.values[0])
    assert (found.low[0], found.high[0]) == (-1, 1)


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


def test_of_a_variance_within_a_group_nothing_is_said_of_forged_reports():
    number = scores([-1, -1, -3, 0, -3, -1, -3, 3], 3)
    # Another weight for one of them, and the group is next to nobody, whose variance is anything.
    weights = Scores(np.array([-0.2, -0.2, 1.5, -0.2, -0.2, -0.2, -0.2, -0.2]), -0.2, 1.5)
    assert variance(number, square_of(number), weights, 0.95, "").moved_by(1e-6)[0] == math.inf


@pytest.mark.parametrize("level", [0.05, 0.2, 0.5, 0.77, 0.95])
@pytest.mark.parametrize("shift", [-0.4, -0.03, 0.0, 0.1, 0.4])
@pytest.mark.parametrize("is_exact", [True, False])
def test_a_quantile_s_interval_holds_the_places_whose_share_lies_as_far_off_as_the_raw_one(level, shift, is_exact):
    """Against a search over fine places: p - (G(x) - G(quantile)) is in the interval of the raw share."""
    found = DistributionEstimate(np.array([0.0, 1, 2, 5, 6]), np.array([0.1, 0.4, 0.2, 0.3]), 100)
    values = found.quantile([level])
    low, high = np.array([level + shift - 0.1]), np.array([level + shift + 0.15])
    zero = np.zeros(1)
    raw = SurveyEstimate("", ("p",), (low + high) / 2, zero, low, high, 0.95, 100, zero, zero, zero, zero)
    made = quantile_estimate(raw, found, values, "quantiles of x", is_exact=is_exact)
    if not is_exact:
        half = 1.959964 * found.shares[int(np.searchsorted(found.edges, values[0], side="right") - 1)] / 12**0.5
        below, above = (math.hypot(raw.values[0] - end, half) for end in (low[0], high[0]))
        low, high = raw.values - below, raw.values + above
    places = np.linspace(0, 6, 60_001)
    implied = level - (found.cumulative(places) - found.cumulative(values))
    # Where the raw share is further off than any place, the bound that is nearest to it.
    beyond = [6.0] * bool(implied[-1] > high) + [0.0] * bool(implied[0] < low)
    inside = [*places[(low <= implied) & (implied <= high)], *beyond]
    least, most = min(inside), max(inside)
    if not is_exact:
        # The bins of both ends, wholly.
        least = max(edge for edge in found.edges if edge <= least + 2e-4)
        most = min(edge for edge in found.edges if edge >= most - 2e-4)
    assert made.low[0] == pytest.approx(least, abs=2e-4)
    assert made.high[0] == pytest.approx(most, abs=2e-4)
    assert made.values == pytest.approx(np.clip(values, made.low, made.high))
    assert (made.labels, made.level) == (("p",), 0.95)
    assert made.standard_errors[0] * 2 * 1.959964 == pytest.approx(made.high[0] - made.low[0])
    assert made.moved_by(0.01).tolist() == [6.0]
