"""People whose records are linked: what one budget for them all prevents, and separate ones do not."""

import numpy as np
import pytest
from accounting.reference import regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp import PrivacyLedger
from skldp.accounting import BayesianPrivacyFilter, FiniteQuery, RegressionQuery, realized_loss
from skldp.accounting._filters import Household
from skldp.accounting._learned import Belief
from skldp.mechanisms import noise_from

RENT = RegressionQuery("linear", coef=[1.0, 0.0], intercept=0.0, output_bounds=(0, 1), epsilon=1.0)
AGE = RegressionQuery("linear", coef=[0.0, 1.0], intercept=0.0, output_bounds=(0, 1), epsilon=1.0)


def asked(people, budget, home=None):
    """Ask everybody for the rent until their filters refuse, always answered alike: an adversary's best case."""
    history = []
    bounds = (0, 1) if home is None else home.bounds((0, 1))
    together = BayesianPrivacyFilter(budget, bounds=bounds)
    for member in range(people):
        query = RENT if home is None else home.query(member, RENT)
        person = BayesianPrivacyFilter(budget, bounds=bounds) if home is None else together
        while person.admits(query):
            person.record(query, 1)
            history.append((query, 1))
    return history


def test_separate_budgets_tell_a_shared_feature_at_their_sum():
    """The attack, and what a household makes of it: a statement about the rent that all four of them pay."""
    home = Household(4, 2, shared=[0])
    low, high = [0.0] * home.n_record, [1.0] + [0.0] * (home.n_record - 1)
    separate = asked(4, 1.0)
    prior = Belief([0.001, 0.999], points=[[1.0, 0.0], [0.0, 0.0]])
    assert prior.knowledge_gain(separate, [1.0, 0.0]) > 50 > np.exp(1.0)
    together = asked(4, 1.0, home)
    assert len(separate) == 4
    assert len(together) == 1
    prior = Belief([0.001, 0.999], points=[high, low])
    assert prior.knowledge_gain(together, [1.0, 0.0]) <= np.exp(1.0)


def test_what_nobody_shares_is_still_one_budget():
    home = Household(2, 2)
    person = BayesianPrivacyFilter(1.0, bounds=home.bounds((0, 1)))
    assert person.admits(home.query(0, RENT))
    person.record(home.query(0, RENT), 1)
    assert not person.admits(home.query(1, RENT))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_loss_is_that_of_the_common_record(data):
    """Nothing shared: the members' losses add up. Everything shared: one person who was asked all of it."""
    histories = [
        [(query, data.draw(st.integers(0, 1))) for query in data.draw(st.lists(regression_queries(2), max_size=2))]
        for _ in range(2)
    ]

    def loss(home):
        pairs = [(home.query(m, q), o) for m, history in enumerate(histories) for q, o in history]
        return realized_loss(*zip(*pairs, strict=True), bounds=home.bounds((-1, 1)), tol=1e-4) if pairs else None

    def of(pairs):
        return realized_loss([q for q, _ in pairs], [o for _, o in pairs], bounds=(-1, 1), tol=1e-4)

    nothing = loss(Household(2, 2))
    if nothing is None:
        return
    parts = [of(history) for history in histories]
    assert nothing.upper >= sum(part.lower for part in parts) - 1e-9
    assert nothing.lower <= sum(part.upper for part in parts) + 1e-9
    everything, one = loss(Household(2, 2, shared=[0, 1])), of([*histories[0], *histories[1]])
    assert everything.upper == pytest.approx(one.upper, abs=1e-9)
    assert everything.upper <= nothing.upper + 1e-3


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_members_answers_keep_their_law(data):
    """The law of the common record's answers is the member's own, and nobody else's values are in it."""
    shared = data.draw(st.lists(st.integers(0, 2), unique=True))
    home = Household(3, 3, shared=shared)
    query = data.draw(regression_queries(3))
    values = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=18, max_size=18))).reshape(2, 3, 3)
    values[:, :, shared] = values[:, :1, shared]
    records = home.records(values)
    assert records.shape == (2, home.n_record)
    for member in range(3):
        ours = home.query(member, query).probability_of_high(records)
        np.testing.assert_allclose(ours, query.probability_of_high(values[:, member]), rtol=1e-12)


def test_records_that_disagree_are_taken_from_the_first_member():
    home = Household(2, 2, shared=[1])
    assert home.records([[[1.0, 5.0], [2.0, 7.0]]]).tolist() == [[5.0, 1.0, 2.0]]
    low, high = home.bounds(([0, 10], [1, 20]))
    assert low.tolist() == [10, 0, 0]
    assert high.tolist() == [20, 1, 1]


def test_a_ledger_takes_households_as_people():
    home = Household(2, 2, shared=[0])
    ledger = PrivacyLedger(1.0, bounds=home.bounds((0, 1)))
    records = home.records(np.full((3, 2, 2), 0.5))
    noise = noise_from(None)
    query = home.query(0, RENT)
    first = ledger.answer(query, ["a", "b", "c"], lambda people: query.sample(records[people], noise))
    again = home.query(1, AGE)
    then = ledger.answer(again, ["a", "b", "c"], lambda people: again.sample(records[people], noise))
    assert first.accepted.all()
    assert not then.accepted.any()


@pytest.mark.parametrize(
    "wrong", [(0, 1), (1, 0), (True, 1), (2, 2, [2]), (2, 2, [0, 0]), (2, 2, [-1]), (2, 2, [True]), (2, 2, [0.5])]
)
def test_what_is_no_household_is_refused(wrong):
    with pytest.raises(ValueError, match=r"[Gg]ot"):
        Household(*wrong)


def test_queries_and_records_that_do_not_fit_are_refused():
    home = Household(2, 2)
    with pytest.raises(ValueError, match="member must be a whole number from 0 to 1"):
        home.query(2, RENT)
    for query in (RegressionQuery("linear", [1.0], 0.0, (0, 1), 1.0), FiniteQuery.from_probabilities([[1.0]])):
        with pytest.raises(ValueError, match="RegressionQuery of 2 features"):
            home.query(0, query)
    with pytest.raises(ValueError, match="n_households, 2, 2") as error:
        home.records([[[3.25, 1.0]]])
    assert "3.25" not in str(error.value)
    with pytest.raises(ValueError, match="n_households, 2, 2"):
        home.records([[["a", "b"], ["c", "d"]]])
