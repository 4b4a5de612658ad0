import numpy as np
import pytest
from accounting.reference import linear_decisions, regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp import PrivacyLedger
from skldp.accounting._decide import Rule, decide
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses import _cohorts as linear_cohort
from skldp.accounting.losses._certificate import Cover
from skldp.accounting.losses._cohorts import BoxTable, PointTable, is_proved_within
from skldp.accounting.losses._realized_loss import realized_loss
from skldp.accounting.losses._region import region_of
from skldp.accounting.losses._sampled_law import answer_law
from skldp.accounting.losses._sigmoid_sum import SigmoidSum, sigmoid_sum
from skldp.domains._constraints import OneHot
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
    table = BoxTable(np.array([[-1.0] * 3, [1.0] * 3]))
    alone = [linear_decisions(queries, [one], query, epsilon=0.6, bounds=(-1, 1), table=table)[0] for one in histories]
    assert alone == together
    monkeypatch.setattr(linear_cohort, "_BLOCK", 64)
    assert linear_decisions(queries, histories, query, epsilon=0.6, bounds=(-1, 1)) == together


@pytest.mark.parametrize(
    ("query", "bounds"),
    [
        (RegressionQuery("linear", [0.0], 0.0, (-1, 1), 0.5), (-1, 1)),
        (RegressionQuery("linear", [1.0], 1e15, (1e15 - 1, 1e15 + 1), 0.5), (-1, 1)),
        (FiniteQuery.from_probabilities([[0.4, 0.6], [0.6, 0.4]]), (-1, 1)),
    ],
)
def test_what_a_table_cannot_hold_is_left_alone(query, bounds):
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


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, -1]))
def test_a_cover_bounds_every_sum_for_any_slopes_and_cuts(data, sign):
    """Wild proposals only loosen the bounds, which hold for the integers that are drawn."""
    queries = data.draw(st.lists(regression_queries(2), min_size=1, max_size=4, unique_by=lambda one: one.key))
    queries = [query for query in queries if query.coef.any()]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    pairs = sorted(((query, output) for query in queries for output in (0, 1)), key=lambda one: (one[0].key, one[1]))
    law = answer_law([query for query, _ in pairs], [output for _, output in pairs], np.array([[-1.0] * 2, [1.0] * 2]))
    counts = rng.integers(0, 4, (5, len(law))).astype(float)
    cover, problem = Cover(law, sign, counts), sigmoid_sum(law) if sign > 0 else sigmoid_sum(law).reversed()
    for level in range(10):
        low, high = cover.ranges if sign > 0 else (-cover.ranges[1], -cover.ranges[0])
        good = sign * problem.majorants(low, high)[0]
        cover.bound(good * (1 if level > 4 else rng.choice([0.0, -1.0, 2.0, np.nan, 1e300])))
        cover.keep(rng.random(len(cover.row)) < (1 if level > 4 else 0.9))
        cover.halve(rng.integers(0, 2, len(cover.low)))
    points = np.concatenate([rng.uniform(-1, 1, (200, 2)), [[-1, -1], [1, -1], [-1, 1], [1, 1], [0, 0]]])
    each = np.array([sign * query.log_likelihood(output, points) for query, output in pairs]).reshape(len(law), -1)
    assert (cover.upper >= (counts @ each).max(axis=1, initial=-np.inf) - 1e-12).all()
    assert np.isfinite(cover.upper).any() or not len(law)


@pytest.mark.parametrize(
    ("kind", "ends"), [("truncated", (-0.4, 0.4)), ("logistic", (0, 1)), ("exponential", (0.4, 2))]
)
def test_histories_are_decided_together_as_their_losses_say(kind, ends):
    rng, size = np.random.default_rng(3), 3 if kind == "logistic" else 1
    queries = [RegressionQuery(kind, size * rng.uniform(-1, 1, 3), 0.1, ends, 0.3) for _ in range(6)]
    queries += [random_linear(rng)]
    sizes = rng.integers(3, 12, 12)
    histories = [(rng.integers(0, 6, n).tolist(), rng.integers(0, 2, n).tolist()) for n in sizes]
    found = linear_decisions(queries, histories, queries[-1], epsilon=0.8, bounds=(-1, 1))
    losses = [losses_of(queries, history, queries[-1]) for history in histories]
    assert found == [all(loss.upper <= 0.8 for loss in own) for own in losses]
    assert {True, False} == set(found)


def test_what_was_decided_by_a_hair_is_verified():
    """A budget 1e-5 above the loss is nearer than the tolerance of a search."""
    rng, box = np.random.default_rng(0), np.array([[-1.0] * 3, [1.0] * 3])
    queries = [RegressionQuery("logistic", 3 * rng.uniform(-1, 1, 3), 0.1, (0, 1), 0.3) for _ in range(4)]
    losses = [realized_loss(queries, [1, 1, 0, last], bounds=(-1, 1), tol=1e-5).upper for last in (0, 1)]
    budget = max(losses) + 1e-5
    assert is_proved_within(queries, [1, 1, 0, int(np.argmax(losses))], box, budget)
    assert not is_proved_within(queries, [1, 1, 0, int(np.argmax(losses))], box, budget - 3e-5)
    with PrivacyLedger(budget, bounds=(-1, 1)) as ledger:
        for query, output in zip(queries, (1, 1, 0, 1), strict=True):
            assert ledger.answer(query, ["ann"], lambda people, o=output: [o]).accepted.all()
        assert ledger.verify().ok


@pytest.mark.parametrize("rule", ["bayesian", "simplified"])
def test_both_rules_decide_together_as_one_by_one(rule):
    rng = np.random.default_rng(1)
    queries = [RegressionQuery("logistic", 3 * rng.normal(size=3), 0.0, (0, 1), 0.4) for _ in range(5)]
    sizes = rng.integers(3, 7, 12)
    histories = [(rng.integers(0, 4, n).tolist(), rng.integers(0, 2, n).tolist()) for n in sizes]
    rules = Rule(rule, 1.2, (-1, 1))
    together = decide(rules, queries, histories, queries[4], table=rules.table_for(queries[4]))
    assert together == decide(rules, queries, histories, queries[4])
    assert {True, False} == set(together)


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_nobody_without_answers_is_asked_more_than_the_budget(rule):
    ledger = PrivacyLedger(0.5, bounds=(-1, 1), rule=rule)
    query = RegressionQuery("linear", [0.0, 1.0], 0.0, (-2, 2), 1.2)
    assert ledger.answer(query, ["ann"], lambda people: [0] * len(people)).accepted.tolist() == [False]


@pytest.mark.parametrize("make", [lambda: None, lambda: PointTable(region_of(OneHot(3)))], ids=["box", "points"])
def test_roundings_count_in_tables(make, monkeypatch):
    rng = np.random.default_rng(0)
    queries, histories = [random_linear(rng) for _ in range(3)], [([0, 1], [0, 1])]
    asked = {"epsilon": 1.0, "bounds": (-1, 1), "table": make()}
    assert linear_decisions(queries, histories, queries[2], **asked) == [True]
    monkeypatch.setattr(linear_cohort, "vertex_rounding", lambda law, counts: np.ones(len(counts)))
    assert linear_decisions(queries, histories, queries[2], **asked) != [True]
