"""The answers of a regression query and a whole conversation under a filter, attacked."""

from itertools import count

import numpy as np
from sklearn.linear_model import LinearRegression

from skldp import PrivacyLedger
from skldp.accounting import FiniteQuery, RegressionQuery
from skldp.estimators._bayesian_filter import BayesianFilter
from skldp.mechanisms._noise import noise_from
from skldp.study import audit_epsilon

CONFIDENCE = 1 - 1e-6


def test_a_regression_query_gives_away_its_epsilon(fixed_noise):
    query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=1.0)
    result = audit_epsilon(lambda rows: query.sample(rows, noise_from()), [1.0], [0.0], confidence=CONFIDENCE)
    assert query.exact_epsilon / 2 < result.epsilon_lower <= query.exact_epsilon


def test_a_finite_query_gives_away_its_epsilon(fixed_noise):
    query = FiniteQuery.from_probabilities([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    result = audit_epsilon(lambda points: query.sample(points, noise_from()), 0, 1, confidence=CONFIDENCE)
    assert query.exact_epsilon / 2 < result.epsilon_lower <= query.exact_epsilon


def test_a_conversation_stays_within_the_budget_of_its_filter(fixed_noise):
    """Five questions of 0.6 under a budget of 1.5: the attacker sees every answer and every refusal."""
    ledger = PrivacyLedger(1.5, bounds=(0, 1))
    public = np.array([[0.0], [0.5], [1.0]])
    surveys = [
        BayesianFilter(LinearRegression(), epsilon=0.6, ledger=ledger).fit(public, slope * public[:, 0])
        for slope in (1.0, 2.0, -1.0, 0.5, -2.0)
    ]
    numbers = count()

    def converse(rows):
        ids = [next(numbers) for _ in rows]
        return np.stack([survey.query(rows, ids=ids).outputs for survey in surveys], axis=1)

    result = audit_epsilon(converse, [1.0], [0.0], n_trials=8_000, confidence=CONFIDENCE)
    assert 0.6 < result.epsilon_lower <= 1.5
