"""Answers are drawn from the very integers of their law, and the law never leaves what it costs."""

from fractions import Fraction

import numpy as np
import pytest
from laws import OneDraw, assert_is_the_guarantee, intervals, lengths, logarithm

from skldp.accounting.finite_query import FiniteQuery
from skldp.accounting.query import RegressionQuery

WORD = 2**64


def sampled_law(query, person):
    found = intervals(lambda draw: int(query.sample(person, OneDraw(draw))[0]), 0, WORD)
    return lengths(found, WORD)


@pytest.mark.parametrize(
    "table", [[[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], [[0.5, 0.5], [0.5, 0.5]], [[1e-9, 1 - 1e-9], [0.5, 0.5]]]
)
def test_a_finite_query_draws_the_weights_of_its_law(table):
    query = FiniteQuery.from_probabilities(table)
    laws = [sampled_law(query, np.array([point])) for point in range(query.n_points)]
    for law, weights in zip(laws, query.weights.tolist(), strict=True):
        assert [law.get(output, 0) for output in range(query.n_outputs)] == [weight << 11 for weight in weights]
    assert_is_the_guarantee(laws, query.exact_epsilon, slack=1e-9)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 20.0, 30.0])
def test_a_regression_query_draws_the_law_that_it_states(kind, epsilon):
    query = RegressionQuery(kind, [3.0], -1.0, (0, 1), epsilon)
    laws = []
    # One draw of 2^64 is so much of the rarest answer.
    slack = 1e-9 + 2.0**-64 * np.exp(epsilon)
    for x in (-500.0, 0.1, 0.4, 500.0):
        law = sampled_law(query, np.array([[x]]))
        laws.append(law)
        stated = float(query.probability_of_high(np.array([[x]]))[0])
        assert law[1] / WORD == pytest.approx(stated, rel=1e-12)
        # What is sampled is within the rounding of what is charged: the log-likelihood of either answer.
        for answer in (0, 1):
            charged = float(query.log_likelihood(answer, np.array([[x]]))[0])
            assert float(logarithm(Fraction(law[answer], WORD))) == pytest.approx(charged, rel=1e-9, abs=slack)
    assert_is_the_guarantee(laws, query.exact_epsilon, slack=1e-9)


@pytest.mark.parametrize("epsilon", [20.0, 29.0, 30.0])
def test_probabilities_next_to_1_are_drawn_on_the_right_side(epsilon):
    # From 37 on, 1 - e^-epsilon would be 1 in double precision, and 1 times 2^64 is no 64-bit number.
    query = RegressionQuery("linear", [1.0], 0.0, (0, 1), epsilon)
    low, high = (sampled_law(query, np.array([[x]])) for x in (0.0, 1.0))
    assert high[1] > WORD // 2 > low[1]
    assert max(high[1], low[0]) <= WORD - 1
