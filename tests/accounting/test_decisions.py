import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting._decide import RULES, Rule, _losses_admit, decide, surely_admits
from skldp.accounting._query import charge_parts
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting._units import saturated_sum
from skldp.accounting.losses._realized_loss import LossBounds

QUERIES = [
    RegressionQuery("linear", [slope], 0.0, (-2, 2), epsilon) for slope in (1.0, -2.0) for epsilon in (0.1, 0.25)
]


@settings(max_examples=60, deadline=None)
@given(
    history=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=6),
    name=st.sampled_from(RULES),
    epsilon=st.sampled_from([0.5, 1.0]),
)
@pytest.mark.slow
def test_the_quick_yes_is_never_a_yes_that_the_filter_would_not_give(history, name, epsilon):
    rule = Rule(name, epsilon, (-1, 1), 1e-3, delta=1e-3 if name == "approximate" else None)
    queries, outputs = [QUERIES[q] for q, _ in history], [output for _, output in history]
    spent = np.zeros((1, 4), dtype=np.int64)
    for query in queries:
        spent = saturated_sum(spent, charge_parts(query))
    for query in QUERIES:
        quick = decide(rule, queries, [(range(len(queries)), outputs)], query, table=rule.table_for(query))
        assert decide(rule, queries, [(range(len(queries)), outputs)], query) == quick
        if surely_admits(rule, spent, query)[0]:
            assert quick == [True]
        if quick == [True] and name != "approximate":
            for output in range(2):
                assert rule.loss_bounds([*queries, query], [*outputs, output]).upper <= epsilon + 1e-3


def test_a_certified_loss_may_reach_the_budget_and_not_the_next_double():
    rule, query = Rule("bayesian", 0.6, (-1, 1)), QUERIES[0]
    for upper, admitted in ((0.6, True), (np.nextafter(0.6, 1), False), (np.inf, False)):
        bounds = LossBounds(0.0, upper, None, None, True, "")
        assert _losses_admit(rule, lambda *asked, bounds=bounds: bounds, query, ([], [])) is admitted
