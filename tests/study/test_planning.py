import numpy as np
import pytest

from skldp import PrivacyLedger
from skldp.accounting import FiniteQuery, RegressionQuery
from skldp.study import plan_questions

RNG = np.random.default_rng(0)
PUBLIC = RNG.uniform(-1, 1, (40, 3))
QUERIES = [
    RegressionQuery("linear", slopes, 0.0, (-np.abs(slopes).sum(), np.abs(slopes).sum()), epsilon=0.5)
    for slopes in RNG.normal(size=(4, 3))
]
SETTINGS = {"total_epsilon": 1.0, "bounds": (-1, 1), "n_steps": 4}


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_what_is_found_is_the_largest_epsilon_that_enough_people_answered(share):
    plan = plan_questions(QUERIES, PUBLIC, share=share, **SETTINGS)
    assert plan.epsilon > 1.05 * plan.added_up
    assert plan.share >= share
    assert plan == plan_questions(QUERIES, PUBLIC, share=share, **SETTINGS)


def test_nobody_is_asked_more_than_the_budget_when_it_is_done():
    plan = plan_questions(QUERIES, PUBLIC, **SETTINGS)
    with PrivacyLedger(1.0, bounds=(-1, 1), tol=1e-2) as ledger:
        for number, query in enumerate(QUERIES):
            asked = RegressionQuery("linear", query.coef, 0.0, query.output_bounds, plan.epsilon)
            ledger.answer(asked, range(40), lambda at, number=number: (at + number) % 2)
        assert ledger.realized_loss(range(40)).max() <= 1.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"queries": []}, "queries must be"),
        ({"queries": [FiniteQuery.from_probabilities([[1.0]])]}, "queries must be"),
        ({"X": [[np.nan, 0, 0]]}, "X must be finite"),
        ({"X": np.zeros((0, 3))}, "X must be finite"),
        ({"share": 1.0}, "share must lie inside"),
        ({"total_epsilon": 0}, "total_epsilon must be"),
        ({"n_steps": 0}, "n_steps must be"),
        ({"seed": None}, "seed must be"),
        ({"rule": "none"}, "rule must be"),
    ],
)
def test_what_cannot_be_planned_is_refused(changed, message):
    parameters = {"queries": QUERIES, "X": PUBLIC, **SETTINGS, **changed}
    with pytest.raises(ValueError, match=message):
        plan_questions(parameters.pop("queries"), parameters.pop("X"), **parameters)


def test_no_value_is_told():
    with pytest.raises(ValueError, match="X must be") as error:
        plan_questions(QUERIES, [["secret", 1.0, 2.0]], **SETTINGS)
    assert "secret" not in str(error.value)
