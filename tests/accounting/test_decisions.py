import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting._ledger.decisions import RULES, Rule
from skldp.accounting._query import RegressionQuery

QUERIES = [
    RegressionQuery("linear", [slope], 0.0, (-2, 2), epsilon) for slope in (1.0, -2.0) for epsilon in (0.1, 0.25)
]


@settings(max_examples=60, deadline=None)
@given(
    history=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=6),
    name=st.sampled_from(RULES),
    epsilon=st.sampled_from([0.5, 1.0]),
)
def test_the_quick_yes_is_never_a_yes_that_the_filter_would_not_give(history, name, epsilon):
    rule = Rule(name, epsilon, (-1, 1), 1e-3)
    queries, outputs = [QUERIES[q] for q, _ in history], [output for _, output in history]
    spent = np.array([sum(query.epsilon for query in queries)])
    for query in QUERIES:
        if rule.surely_admits(spent, query)[0]:
            assert rule.admits(queries, outputs, query)
        if rule.admits(queries, outputs, query):
            for output in range(2):
                assert rule.loss([*queries, query], [*outputs, output]) <= epsilon + 1e-3


def test_ten_tenths_are_one():
    rule = Rule("basic", 1.0, None, 1e-3)
    assert rule.admits([QUERIES[0]] * 9, [1] * 9, QUERIES[0])
    assert not rule.admits([QUERIES[0]] * 10, [1] * 10, QUERIES[0])
    assert rule.loss([QUERIES[0]] * 10, [1] * 10) == pytest.approx(1.0)
