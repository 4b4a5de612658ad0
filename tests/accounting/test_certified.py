"""No certificate lies below the truth, and nothing says yes that the independent check has not established."""

import numpy as np
import pytest
from accounting.reference import worst_sampled_loss

from skldp.accounting.extrema.linear_cohort import linear_decisions
from skldp.accounting.extrema.realized_loss import realized_loss
from skldp.accounting.filters import BayesianPrivacyFilter, SimplifiedBayesianPrivacyFilter
from skldp.accounting.ledger.decisions import Rule
from skldp.accounting.ledger.privacy_ledger import PrivacyLedger
from skldp.accounting.query import RegressionQuery


def asked_to_the_edge(coef, intercept, bounds, epsilon):
    """A linear query whose output bounds are its exact range, so that rounding takes it a hair past its own ramp."""
    ends = np.array([bounds[0] * coef + intercept, bounds[1] * coef + intercept])
    return RegressionQuery("linear", [coef], intercept, (ends.min(), ends.max()), epsilon)


def a_hair_below():
    """Finding 1: one answer 1 at epsilon 2 and 81 answers 0 at epsilon .05."""
    box = (-0.5, 1.6)
    dear, cheap = (asked_to_the_edge(-0.6, 0.4, box, epsilon) for epsilon in (2.0, 0.05))
    return [dear] + [cheap] * 81, [1] + [0] * 81, box


def test_a_hair_below_the_ramp_hides_no_loss():
    queries, outputs, box = a_hair_below()
    truth = worst_sampled_loss(queries, outputs, np.linspace(*box, 20_001)[:, None])
    found = realized_loss(queries, outputs, bounds=box)
    assert truth == pytest.approx(2.1482, abs=1e-4)
    assert found.lower <= truth + 1e-8
    assert truth <= found.upper
    assert found.gap <= 1e-3


@pytest.mark.parametrize("way", ["simplified", "bayesian", "ledger"])
def test_a_hair_below_the_ramp_lets_nobody_past_the_budget(way):
    queries, outputs, box = a_hair_below()
    if way == "ledger":
        ledger = PrivacyLedger(2.06, bounds=box)
        given = [
            ledger.answer(query, ["ann"], lambda people, output=output: [output], repeat=True).accepted[0]
            for query, output in zip(queries, outputs, strict=True)
        ]
        assert not all(given)
        assert ledger.verify().ok
        return
    kind = BayesianPrivacyFilter if way == "bayesian" else SimplifiedBayesianPrivacyFilter
    person = kind(2.06, bounds=box)
    for query, output in zip(queries[:-1], outputs[:-1], strict=True):
        person.record(query, output)
    assert not person.admits(queries[-1])
    history = ([0] + [1] * 80, outputs[:-1])
    assert linear_decisions(queries[:2], [history], queries[-1], epsilon=2.06, bounds=box) != [True]


@pytest.mark.parametrize("n_features", [1, 5])
def test_random_queries_asked_to_the_edge_are_never_certified_below_the_truth(n_features):
    """1.5% of such problems were unsound."""
    rng = np.random.default_rng(n_features)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * n_features), axis=-1).reshape(-1, n_features)
    for _ in range(150):
        box = np.sort(rng.uniform(-2, 2, (2, n_features)).round(1), axis=0)
        coef, intercept = rng.uniform(-1, 1, n_features).round(1), round(rng.uniform(-1, 1), 1)
        low = float(np.minimum(box[0] * coef, box[1] * coef).sum() + intercept)
        high = float(np.maximum(box[0] * coef, box[1] * coef).sum() + intercept)
        if not low < high:
            continue
        dear, cheap = (RegressionQuery("linear", coef, intercept, (low, high), e) for e in (2.0, 0.05))
        n_cheap = int(rng.integers(1, 100))
        sides = rng.integers(0, 2, 2)
        queries, outputs = [dear] + [cheap] * n_cheap, [int(sides[0])] + [int(sides[1])] * n_cheap
        points = np.concatenate([corners, np.linspace(0, 1, 101)[:, None] * np.ones(n_features)])
        # All answers move along one line: from the corner of the lowest prediction to that of the highest.
        start = np.where(coef >= 0, box[0], box[1])
        points = np.concatenate([start + points * (np.where(coef >= 0, box[1], box[0]) - start), box])
        found = realized_loss(queries, outputs, bounds=(box[0], box[1]))
        assert worst_sampled_loss(queries, outputs, np.clip(points, box[0], box[1])) <= found.upper


def test_the_quick_yes_counts_every_thousandth_of_epsilon():
    """A budget a thousandth below ten answers' worth admits nine."""
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.1)
    for name in ("basic", "simplified", "bayesian"):
        for short in (1e-3, 5e-5, 1e-6):
            rule = Rule(name, 1.0 - short, (-1, 1), 1e-3)
            assert not rule.surely_admits(np.array([9 * query.epsilon]), query)[0]
            assert not rule.admits([query] * 9, [1] * 9, query)
    assert Rule("basic", 1.0 + 1e-6, None, 1e-3).surely_admits(np.array([9 * query.epsilon]), query)[0]
