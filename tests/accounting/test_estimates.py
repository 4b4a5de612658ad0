import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skldp.accounting import RegressionQuery


def query(epsilon, low=-2.0, high=3.0):
    return RegressionQuery("linear", [1.0], 0.0, (low, high), epsilon)


@given(
    epsilon=st.floats(0.05, 8),
    values=st.lists(st.floats(-2, 3), min_size=1, max_size=5),
)
def test_the_mean_is_unbiased(epsilon, values):
    """Enumerate the answers of a few people, each with the exact probability of their answer."""
    asked = query(epsilon)
    high = asked.probability_of_high(np.array(values)[:, None])
    expected = 0.0
    for outputs in itertools.product([0, 1], repeat=len(values)):
        probability = np.prod(np.where(outputs, high, 1 - high))
        expected += probability * asked.estimate_mean(np.array(outputs))[0]
    assert expected == pytest.approx(np.mean(values), abs=1e-9 / epsilon)


@given(epsilon=st.floats(0.05, 8), value=st.floats(-2, 3), n=st.integers(1, 40))
def test_the_error_is_never_below_what_the_noise_has_at_least(epsilon, value, n):
    asked = query(epsilon)
    probability = asked.probability_of_high([[value]])[0]
    noise = (asked.estimate([1])[0] - asked.estimate([0])[0]) * np.sqrt(probability * (1 - probability) / n)
    least, most = (asked.estimate([1])[0] - asked.estimate([0])[0]) * np.sqrt(
        np.array([asked.probability_of_high([[3.0]])[0] * asked.probability_of_high([[-2.0]])[0], 0.25]) / n
    )
    _, error = asked.estimate_mean(np.ones(n, dtype=int))
    assert error == pytest.approx(most if n == 1 else least)
    assert least <= noise * (1 + 1e-9)
    assert noise <= most * (1 + 1e-9)


def test_many_answers_have_the_standard_error_of_their_estimates():
    asked = query(1.0)
    outputs = np.arange(100) % 3 == 0
    mean, error = asked.estimate_mean(outputs)
    estimates = asked.estimate(outputs)
    assert (mean, error) == pytest.approx((estimates.mean(), stats.sem(estimates)))
    assert np.isnan(asked.estimate_mean(np.zeros(0, dtype=int))).all()
