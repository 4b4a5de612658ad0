"""A budget is used to its last float, and not exceeded by one."""

import math
from fractions import Fraction

import pytest

from skldp.accounting._filters import BasicPrivacyFilter, BayesianPrivacyFilter, SimplifiedBayesianPrivacyFilter
from skldp.accounting._regression_query import RegressionQuery
from skldp.laws._odds import round_up

QUERY = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.3)
SPENT = round_up(3 * Fraction(QUERY.exact_epsilon))


def asked_twice(kind, epsilon):
    person = kind(epsilon) if kind is BasicPrivacyFilter else kind(epsilon, bounds=(-1, 1))
    for _ in range(2):
        person.record(QUERY, 1)
    return person


def test_the_basic_filter_admits_what_fits_and_nothing_a_float_beyond():
    assert asked_twice(BasicPrivacyFilter, SPENT).admits(QUERY)
    assert not asked_twice(BasicPrivacyFilter, math.nextafter(SPENT, 0)).admits(QUERY)


@pytest.mark.parametrize("kind", [SimplifiedBayesianPrivacyFilter, BayesianPrivacyFilter])
def test_equal_answers_cost_their_whole_sum_and_are_refused_beyond_it(kind):
    assert asked_twice(kind, SPENT).admits(QUERY)
    assert not asked_twice(kind, SPENT * (1 - 1e-6)).admits(QUERY)


@pytest.mark.parametrize("group_size", [None, 4])
def test_every_answer_must_fit_not_only_one(group_size):
    query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    person = BayesianPrivacyFilter(0.6, bounds=(-1, 1), group_size=group_size)
    person.record(query, 1)
    # The other answer would bring the loss down, the same one beyond the budget.
    assert person.loss_bounds.upper <= 0.5
    assert not person.admits(query)
    opposed = BayesianPrivacyFilter(0.6, bounds=(-1, 1), group_size=group_size)
    opposed.record(query, 1)
    opposed.record(query, 0)
    assert opposed.loss_bounds.upper < 0.1
    assert opposed.admits(query)
