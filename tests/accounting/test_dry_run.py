"""A dry run says what would be decided, changes nothing, and tells of nobody who has not answered."""

import hashlib

import numpy as np
import pytest
from accounting.reference import regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery
from skldp.exceptions import LedgerError

LINE = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.4)
OTHER = RegressionQuery("linear", coef=[-1.0], intercept=1.0, output_bounds=(0, 1), epsilon=0.5)


@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from(["basic", "simplified", "bayesian"]), st.floats(0.5, 2.0))
def test_a_preview_is_what_is_decided_then(data, rule, budget):
    """Of any history, whoever it says answers is handed an answer, and loses no more than it says."""
    people = ["ann", "bob", "eve"]
    with PrivacyLedger(budget, bounds=(-1, 1), rule=rule, tol=1e-2) as ledger:
        for query in data.draw(st.lists(regression_queries(2), min_size=1, max_size=3)):
            outputs = np.array([data.draw(st.integers(0, 1)) for _ in people])
            ledger.answer(query, people, lambda positions, outputs=outputs: outputs[positions])
        known = [person for person in people if ledger.history(person)]
        if not known:
            return
        query = data.draw(regression_queries(2))
        preview = ledger.would_answer(query, known)
        before = ledger.realized_loss(known)
        np.testing.assert_allclose(preview.losses, before, atol=1e-12)
        output = data.draw(st.integers(0, 1))
        answers = ledger.answer(query, known, lambda positions: np.full(len(positions), output))
        assert answers.accepted.tolist() == preview.accepted.tolist()
        assert answers.fresh.tolist() == (preview.accepted & ~preview.recorded).tolist()
        after = ledger.realized_loss(known)
        assert (after <= preview.worst_losses + 1e-12).all()
        assert (preview.costs <= query.exact_epsilon + 1e-2 + 1e-9).all()
        assert (preview.costs[~answers.fresh] == 0).all()


def test_recorded_answers_are_free_and_repeating_them_is_not():
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    ledger.answer(LINE, ["ann", "bob"], lambda people: [1, 0])
    ledger.answer(LINE, ["bob"], lambda people: [0], repeat=True)
    again = ledger.would_answer(LINE, ["bob", "ann"])
    assert again.accepted.tolist() == again.recorded.tolist() == [True, True]
    assert again.costs.tolist() == [0.0, 0.0]
    fresh = ledger.would_answer(LINE, ["bob", "ann"], repeat=True)
    assert fresh.accepted.tolist() == [False, True]
    assert not fresh.recorded.any()
    assert fresh.costs == pytest.approx([0.0, 0.4])
    assert fresh.losses == pytest.approx([0.8, 0.4])


def test_nothing_is_asked_or_recorded(tmp_path):
    path = tmp_path / "a.ledger"
    with PrivacyLedger(1.0, bounds=(0, 1), path=path) as ledger:
        ledger.answer(LINE, [1, 2], lambda people: [1, 0])
        before = [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(tmp_path.iterdir())]
        counts = ledger.report()
        assert ledger.would_answer(OTHER, [1, 2]).accepted.tolist() == [True, True]
        assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(tmp_path.iterdir())] == before
        assert ledger.report() == counts
        assert not ledger.was_asked(OTHER)
    assert PrivacyLedger.open(path, read_only=True).would_answer(OTHER, [2]).accepted.tolist() == [True]


@pytest.mark.parametrize("ids", [["eve"], ["ann", "eve"], ["eve", "mallory"]])
def test_a_preview_of_whom_the_asker_has_no_answer_of_is_refused(ids):
    """And names nobody: of eve it tells that she is among those without an answer, and not what she would cost."""
    ledgers = [PrivacyLedger(0.5, bounds=(0, 1)) for _ in range(2)]
    for ledger in ledgers:
        ledger.answer(LINE, ["ann"], lambda people: [1])
        with pytest.raises(LedgerError, match="people who have answered before") as error:
            ledger.would_answer(OTHER, ids)
        assert "eve" not in str(error.value)
        assert f"{len(ids) - ('ann' in ids)} of {len(ids)}" in str(error.value)


def test_somebody_whose_answers_were_erased_is_nobody_that_the_asker_has_answers_of():
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    ledger.answer(LINE, ["ann", "bob"], lambda people: [1, 0])
    ledger.erase("ann")
    assert ledger.would_answer(OTHER, ["bob"]).accepted.tolist() == [True]
    with pytest.raises(LedgerError, match="1 of 2 ids"):
        ledger.would_answer(OTHER, ["bob", "ann"])


def test_the_expected_error_is_that_of_the_law():
    """Of a population with these predictions, by enumeration of who is drawn and what is answered."""
    query = RegressionQuery("linear", coef=[2.0], intercept=-1.0, output_bounds=(-1, 3), epsilon=0.9)
    predictors = np.array([[0.1], [0.7], [1.9]])
    chances = query.probability_of_high(predictors)
    estimates = query.estimate([0, 1])
    mean = (chances * estimates[1] + (1 - chances) * estimates[0]).mean()
    second = (chances * estimates[1] ** 2 + (1 - chances) * estimates[0] ** 2).mean()
    assert mean == pytest.approx((2 * predictors - 1).mean())
    assert query.expected_error(1, mean) == pytest.approx(np.sqrt(second - mean**2))
    assert query.expected_error(16, mean) == pytest.approx(np.sqrt(second - mean**2) / 4)
    assert query.expected_error(1) == query.expected_error(1, 1.0) > query.expected_error(1, 0.9)
    assert query.expected_error(0) == np.inf
    huge = RegressionQuery("linear", coef=[1e99], intercept=0.0, output_bounds=(-1e99, 1e99), epsilon=1e-3)
    assert np.isfinite(huge.expected_error(1, 1e98))
