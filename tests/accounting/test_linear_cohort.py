import numpy as np
import pytest
from accounting.reference import linear_decisions, regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses import _cohorts as linear_cohort
from skldp.accounting.losses._cohorts import LinearTable
from skldp.accounting.losses._realized_loss import realized_loss
from skldp.accounting.losses._sigmoid_sum import SigmoidSum
from skldp.mechanisms._finite_query import FiniteQuery


def random_linear(rng, n_features=3, epsilon=0.2):
    theta = rng.uniform(-1, 1, n_features + 1)
    theta /= np.abs(theta).sum()
    return RegressionQuery("linear", theta[1:], theta[0], (-1, 1), epsilon)


def losses_of(queries, history, query):
    asked = [queries[number] for number in history[0]]
    return [realized_loss([*asked, query], [*history[1], output], bounds=(-1, 1)) for output in (0, 1)]


@given(st.data(), st.floats(0.05, 3.0))
@settings(max_examples=30, deadline=None)
def test_every_decision_is_what_the_certified_losses_say(data, budget):
    queries = data.draw(st.lists(regression_queries(2, ("linear",)), min_size=1, max_size=4))
    query = data.draw(st.sampled_from([*queries, data.draw(regression_queries(2, ("linear",)))]))
    answer = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, 1))
    drawn = data.draw(st.lists(st.lists(answer, max_size=8), min_size=1, max_size=5))
    histories = [([number for number, _ in one], [output for _, output in one]) for one in drawn]
    found = linear_decisions(queries, histories, query, epsilon=budget, bounds=(-1, 1))
    for decision, history in zip(found, histories, strict=True):
        losses = losses_of(queries, history, query)
        if decision is True:
            assert all(loss.upper <= budget for loss in losses)
        if decision is False:
            assert any(loss.lower > budget - 1e-9 for loss in losses)
            assert any(loss.upper > budget for loss in losses)


def test_almost_everything_is_decided_whatever_is_decided_with_it(monkeypatch):
    rng = np.random.default_rng(0)
    queries = [random_linear(rng) for _ in range(12)]
    sizes = rng.integers(0, 40, 60)
    histories = [(rng.integers(0, 12, n).tolist(), rng.integers(0, 2, n).tolist()) for n in sizes]
    query = random_linear(rng)
    together = linear_decisions(queries, histories, query, epsilon=0.6, bounds=(-1, 1))
    assert {True, False} <= set(together)
    assert together.count(None) <= 2
    table = LinearTable(np.array([[-1.0] * 3, [1.0] * 3]))
    alone = [linear_decisions(queries, [one], query, epsilon=0.6, bounds=(-1, 1), table=table)[0] for one in histories]
    assert alone == together
    monkeypatch.setattr(linear_cohort, "_BLOCK", 64)
    assert linear_decisions(queries, histories, query, epsilon=0.6, bounds=(-1, 1)) == together


@pytest.mark.parametrize(
    ("query", "bounds"),
    [
        (RegressionQuery("logistic", [1.0], 0.0, (0, 1), 0.5), (-1, 1)),
        (RegressionQuery("truncated", [1.0], 0.0, (-1, 1), 0.5), (-1, 1)),
        (RegressionQuery("linear", [2.0], 0.0, (-1, 1), 0.5), (-1, 1)),
        (RegressionQuery("linear", [0.0], 0.0, (-1, 1), 0.5), (-1, 1)),
        (RegressionQuery("linear", [1.0], 1e15, (1e15 - 1, 1e15 + 1), 0.5), (-1, 1)),
        (RegressionQuery("linear", [0.01] * 13, 0.0, (-1, 1), 0.5), (-1, 1)),
        (FiniteQuery.from_probabilities([[0.4, 0.6], [0.6, 0.4]]), (-1, 1)),
    ],
)
def test_what_is_not_linear_within_a_small_box_is_left_alone(query, bounds):
    histories = [([], []), ([0], [1])]
    assert linear_decisions([query], histories, query, epsilon=0.6, bounds=bounds) == [None, None]


def test_what_seems_to_fit_is_not_believed(monkeypatch):
    """A search that stays in the middle takes two answers of 0.5 for a loss of 0.56."""
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.5)
    history = ([0], [1])
    assert linear_decisions([query], [history], query, epsilon=0.8, bounds=(-1, 1)) == [False]
    monkeypatch.setattr(SigmoidSum, "slope", lambda self, v: np.zeros_like(v))
    assert linear_decisions([query], [history], query, epsilon=0.8, bounds=(-1, 1)) != [True]


def test_a_hair_from_the_budget_is_left_to_the_full_search():
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.5)
    exact = 2 * query.exact_epsilon
    assert linear_decisions([query], [([0], [1])], query, epsilon=exact, bounds=(-1, 1)) == [None]
    assert linear_decisions([query], [([0], [1])], query, epsilon=exact + 1e-5, bounds=(-1, 1)) == [True]
    assert linear_decisions([query], [([0], [1])], query, epsilon=exact - 1e-5, bounds=(-1, 1)) == [False]
