import numpy as np
import pytest
from accounting.reference import regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting._decide import Rule, decide
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses import _ascent as lost_already
from skldp.accounting.losses._ascent import have_lost_more
from skldp.accounting.losses._realized_loss import realized_loss
from skldp.domains._constraints import OneHot
from skldp.mechanisms._finite_query import FiniteQuery

BOX = np.array([[-1.0] * 3, [1.0] * 3])


def answers_of(n_features):
    one = st.tuples(regression_queries(n_features), st.integers(0, 1), st.sampled_from([1, 1, 2, 5]))
    return st.lists(one, max_size=5).map(
        lambda some: ([q for q, _, n in some for _ in range(n)], [o for _, o, n in some for _ in range(n)])
    )


@pytest.mark.slow
@given(st.lists(answers_of(3), min_size=1, max_size=4), st.floats(0.5, 1.5))
@settings(max_examples=40, deadline=None)
def test_who_is_found_could_not_have_been_admitted(histories, share):
    losses = [realized_loss(*one, bounds=(-1, 1), tol=1e-2) for one in histories]
    # Close to what the first of them has lost, on either side.
    threshold = share * losses[0].upper
    found = have_lost_more(histories, BOX, threshold)
    for one, loss in zip(found, losses, strict=True):
        assert not (one and loss.upper <= threshold)


def steep(n_queries, n_features, rng):
    return [RegressionQuery("logistic", 3 * rng.normal(size=n_features), 0.0, (0, 1), 0.4) for _ in range(n_queries)]


def test_nearly_all_who_have_lost_more_are_found_alone_and_together(monkeypatch):
    rng = np.random.default_rng(0)
    queries = steep(6, 3, rng)
    histories = [(queries, rng.integers(0, 2, 6).tolist()) for _ in range(12)]
    losses = [realized_loss(*one, bounds=(-1, 1)) for one in histories]
    threshold = float(np.median([loss.upper for loss in losses])) + 1e-3
    together = have_lost_more(histories, BOX, threshold).tolist()
    assert together == [loss.lower > threshold for loss in losses]
    assert {True, False} == set(together)
    assert [bool(have_lost_more([one], BOX, threshold)[0]) for one in histories] == together
    monkeypatch.setattr(lost_already, "_BLOCK", 1)
    assert have_lost_more(histories, BOX, threshold).tolist() == together


@pytest.mark.parametrize("rule", ["bayesian", "simplified"])
def test_decisions_are_the_same_as_without_it(monkeypatch, rule):
    rng = np.random.default_rng(1)
    queries = steep(5, 3, rng)
    sizes = rng.integers(3, 7, 12)
    histories = [(rng.integers(0, 4, n).tolist(), rng.integers(0, 2, n).tolist()) for n in sizes]
    rules = Rule(rule, 1.2, (-1, 1))
    searched = []

    def workers(function, items):
        searched.append(len(items))
        return map(function, items)

    decisions = decide(rules, queries, histories, queries[4], workers=workers)
    monkeypatch.setattr("skldp.accounting._decide.have_lost_more", lambda answers, *_: np.zeros(len(answers), bool))
    assert decide(rules, queries, histories, queries[4], workers=workers) == decisions
    assert {True, False} == set(decisions)
    assert searched[0] < searched[1]


def test_what_is_no_regression_over_the_box_is_left_alone():
    query = RegressionQuery("logistic", [9.0], 0.0, (0, 1), 1.0)
    table = FiniteQuery.from_probabilities([[0.1, 0.9], [0.9, 0.1]])
    box = np.array([[-1.0], [1.0]])
    assert have_lost_more([([query] * 2, [1, 1])], box, 1.0).tolist() == [True]
    assert have_lost_more([([query] * 2, [1, 1]), ([table], [1])], box, 1.0).tolist() == [False, False]
    assert have_lost_more([([query] * 2, [1, 1])], BOX, 1.0).tolist() == [False]
    assert have_lost_more([([], [])], box, 1.0).tolist() == [False]
    point = np.zeros((2, 1))
    assert have_lost_more([([query] * 2, [1, 1])], point, 1.0).tolist() == [False]


def test_points_that_nobody_can_be_at_refuse_nobody():
    """At the box's corner (1, 1) the answers lose more than any record with one category has."""
    query = RegressionQuery("logistic", [9.0, 9.0], -4.5, (0, 1), 0.5)
    other = RegressionQuery("logistic", [9.0, 9.0], -13.5, (0, 1), 0.5)
    history = [([0, 0], [1, 1])]
    over_the_box, over_choices = (
        decide(Rule("bayesian", 0.6, bounds), [other], history, query)[0] for bounds in ((0, 1), OneHot(2))
    )
    assert (over_the_box, over_choices) == (False, True)
