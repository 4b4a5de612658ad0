"""The dry run of a BayesianFilter's question, and what is said where nobody answers."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from skldp import BayesianFilter, PrivacyLedger
from skldp.exceptions import BudgetExhaustedWarning, LedgerError, TooFewPeopleWarning

PUBLIC = np.linspace(0, 1, 11)[:, None]
PEOPLE = np.linspace(0, 1, 400)[:, None]
IDS = range(400)


@pytest.fixture
def ledger():
    with PrivacyLedger(1.0, bounds=(0, 1), rule="basic") as made:
        yield made


def survey(ledger, slope, epsilon, **parameters):
    model = FrozenEstimator(LinearRegression().fit(PUBLIC, slope * PUBLIC[:, 0]))
    return BayesianFilter(model, epsilon=epsilon, ledger=ledger, **parameters).fit(PUBLIC)


def test_a_preview_says_who_answers_at_what_cost_and_with_what_error(ledger):
    survey(ledger, 1.0, 0.5).query(PEOPLE, ids=IDS)
    survey(ledger, 2.0, 0.2).query(PEOPLE[:100], ids=IDS[:100])
    third = survey(ledger, 3.0, 0.4)
    preview = third.preview(IDS)
    assert preview.accepted.tolist() == [False] * 100 + [True] * 300
    assert not preview.recorded.any()
    assert preview.costs == pytest.approx(np.array([0.0] * 100 + [0.4] * 300))
    assert preview.remaining == pytest.approx(np.array([0.3] * 100 + [0.5] * 300))
    assert preview.standard_error == third.query_.expected_error(300, third.prior_)
    assert "300 of 400 would answer, 0 of them again" in repr(preview)
    result = third.query(PEOPLE, ids=IDS)
    assert result.accepted.tolist() == preview.accepted.tolist()
    assert third.preview(IDS[100:]).recorded.all()


def test_a_preview_warns_where_the_noise_is_too_large(ledger):
    survey(ledger, 1.0, 0.5).query(PEOPLE, ids=IDS)
    asked = survey(ledger, 2.0, 0.2)
    with pytest.warns(TooFewPeopleWarning, match=r"20 answers at epsilon=0.2 .* it takes (\d+) people") as caught:
        asked.preview(range(20))
    needed = int(str(caught[0].message).split()[-2])
    assert asked.preview(range(needed)).accepted.all()
    with pytest.warns(TooFewPeopleWarning):
        asked.preview(range(needed - 1))


def test_a_preview_of_strangers_is_refused(ledger):
    survey(ledger, 1.0, 0.5).query(PEOPLE, ids=IDS)
    with pytest.raises(LedgerError, match="1 of 2 ids have not"):
        survey(ledger, 2.0, 0.1).preview([3, 4000])
    with pytest.raises(ValueError, match="twice"):
        survey(ledger, 2.0, 0.1).preview([3, 3])


def test_a_preview_warns_where_nobody_would_answer(ledger):
    survey(ledger, 1.0, 0.5).query(PEOPLE, ids=IDS)
    with pytest.warns(
        BudgetExhaustedWarning,
        match=r"None of 400 people .* one of the answers could exceed the budget \(at most 0\.5 is left\)",
    ):
        preview = survey(ledger, 2.0, 0.6).preview(IDS)
    assert not preview.accepted.any()
    assert preview.standard_error == np.inf
    with pytest.warns(BudgetExhaustedWarning, match="epsilon=1.5 exceeds the total budget of 1"):
        survey(ledger, 2.0, 1.5).preview(IDS)
