"""A question whose asker never heard of its end: the recorded answers at no second cost, and for nothing else."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skldp import BayesianFilter, PrivacyLedger
from skldp.exceptions import LedgerError

KEY = "a key that nobody can guess"
IDS = [f"volunteer {number}" for number in range(40)]
PUBLIC = np.linspace(-1, 1, 20)[:, None]
X = np.linspace(-1, 1, 40)[:, None]


def survey(ledger, epsilon=0.5, slope=1.0):
    return BayesianFilter(LinearRegression(), epsilon=epsilon, ledger=ledger).fit(PUBLIC, slope * PUBLIC[:, 0])


@pytest.fixture
def ledger(tmp_path):
    with PrivacyLedger(1.0, bounds=(-1, 1), path=tmp_path / "a.ledger", rule="basic") as opened:
        yield opened


@pytest.mark.parametrize("repeat", [False, True])
def test_a_question_that_is_made_again_is_handed_its_answers(ledger, repeat):
    """Also a fresh answer, by another process, and whatever the rows are by then: there is no second draw."""
    survey(ledger).query(X, ids=IDS)
    first = survey(ledger).query(X, ids=IDS, repeat=repeat, idempotency_key=KEY)
    losses = ledger.realized_loss(IDS)
    with PrivacyLedger.open(ledger.path) as other:
        for rows in (X, -X):
            again = survey(other).query(rows, ids=IDS, repeat=repeat, idempotency_key=KEY)
            assert (again.outputs.tolist(), again.fresh.tolist()) == (first.outputs.tolist(), first.fresh.tolist())
        assert (other.realized_loss(IDS) == losses).all()
        assert losses.round(9).tolist() == [1.0 if repeat else 0.5] * 40
        assert other.verify().ok


@pytest.mark.parametrize(
    "change",
    [{"ids": IDS[::-1]}, {"ids": [*IDS[:39], "somebody else"]}, {"repeat": True}, {"epsilon": 0.4}, {"slope": 2.0}],
    ids=lambda change: next(iter(change)),
)
def test_a_key_is_that_of_one_question(ledger, change):
    survey(ledger).query(X, ids=IDS, idempotency_key=KEY)
    model = {name: change[name] for name in ("epsilon", "slope") if name in change}
    options = {"ids": IDS} | {name: value for name, value in change.items() if name not in model}
    with pytest.raises(LedgerError, match="used before with another query, other people or other options"):
        survey(ledger, **model).query(X, **options, idempotency_key=KEY)
    assert ledger.verify().n_answers == 40


def test_whoever_was_erased_is_not_asked_again_by_an_old_key(ledger):
    first = survey(ledger).query(X, ids=IDS, idempotency_key=KEY)
    ledger.erase(IDS[3])
    again = survey(ledger).query(X, ids=IDS, idempotency_key=KEY)
    assert np.flatnonzero(~again.accepted).tolist() == [3]
    assert np.delete(again.outputs, 3).tolist() == np.delete(first.outputs, 3).tolist()
    assert ledger.realized_loss(IDS).round(9).tolist() == [0.5] * 40


def test_people_who_are_their_rows_have_no_key():
    """Whether a key is taken for other people would tell whether the rows have changed."""
    asked = BayesianFilter(LinearRegression(), epsilon=0.5, bounds=(-1, 1)).fit(PUBLIC, PUBLIC[:, 0])
    with pytest.raises(ValueError, match="goes with people who have ids"):
        asked.query(X, idempotency_key=KEY)
    assert asked.query(X, ids=IDS, idempotency_key=KEY).accepted.all()
