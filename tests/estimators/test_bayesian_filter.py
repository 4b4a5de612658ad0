import os

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from scipy import stats
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skldp import PrivacyLedger
from skldp.estimators._bayesian_filter import BayesianFilter
from skldp.exceptions import (
    BudgetExhaustedWarning,
    LedgerError,
    OutOfDomainWarning,
)

SLOPES = np.array([1.0, -2.0])
PUBLIC = np.random.default_rng(0).uniform(0, 1, (40, 2))
PEOPLE = np.random.default_rng(1).uniform(0, 1, (30, 2))
NAMES = [f"p{number}" for number in range(30)]


def model(slopes=SLOPES):
    return FrozenEstimator(LinearRegression().fit(PUBLIC, PUBLIC @ slopes))


def fitted(slopes=SLOPES, **parameters):
    return BayesianFilter(model(slopes), **{"bounds": (0, 1), **parameters}).fit(PUBLIC)


def test_an_answer_is_what_the_ledger_holds():
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    survey = fitted(epsilon=0.6, ledger=ledger)
    result = survey.query(PEOPLE, ids=range(30))
    assert result.accepted.all()
    assert result.fresh.all()
    low, high = survey.query_.output_bounds
    assert (low, high) == pytest.approx((-2, 1))
    outputs = (result.outputs == high).astype(int)
    assert [ledger.history(i)[0]["output"] for i in range(30)] == outputs.tolist()
    np.testing.assert_allclose(result.estimates, survey.query_.estimate(outputs))
    assert (result.mean, result.standard_error) == survey.query_.estimate_mean(outputs)
    assert result.realized_loss == pytest.approx(np.full(30, 0.6))


def test_estimates_are_unbiased(fixed_noise):
    """The mean over many people with known predictions, by the exact law of the two answers."""
    survey = fitted(epsilon=1.0)
    people = np.repeat(PEOPLE[:4], 2000, axis=0)
    result = survey.query(people, ids=range(8000))
    high = survey.query_.output_bounds[1]
    probabilities = survey.query_.probability_of_high(PEOPLE[:4])
    for count, probability in zip((result.outputs == high).reshape(4, -1).sum(axis=1), probabilities, strict=True):
        assert stats.binomtest(int(count), 2000, probability).pvalue > 1e-6
    values = survey.query_.estimate([0, 1])
    np.testing.assert_allclose(np.stack([1 - probabilities, probabilities], axis=1) @ values, PEOPLE[:4] @ SLOPES)


def test_people_are_refused_when_their_budget_is_used_and_predictions_fall_back():
    ledger = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
    first, second = (fitted(slopes, epsilon=0.6, ledger=ledger) for slopes in ([1.0, 0.0], [0.0, 1.0]))
    first.query(PEOPLE[:20], ids=range(20))
    result = second.query(PEOPLE, ids=range(30))
    assert result.accepted.tolist() == [False] * 20 + [True] * 10
    assert np.isnan(result.outputs[:20]).all()
    assert np.isnan(result.estimates[:20]).all()
    assert result.mean == pytest.approx(result.estimates[20:].mean())
    predicted = second.predict(PEOPLE, ids=range(30))
    assert (predicted[:20] == second.prior_).all()
    assert (predicted[20:] == result.estimates[20:]).all()
    assert second.prior_ == pytest.approx(PUBLIC[:, 1].mean())


def test_asking_again_serves_the_recorded_answer_and_repeat_asks_afresh():
    ledger = PrivacyLedger(5.0, bounds=(0, 1), rule="basic")
    survey = fitted(epsilon=1.0, ledger=ledger)
    first = survey.query(PEOPLE, ids=NAMES)
    again = survey.query(PEOPLE[::-1], ids=NAMES[::-1])
    assert (again.outputs[::-1] == first.outputs).all()
    assert not again.fresh.any()
    afresh = survey.query(PEOPLE, ids=NAMES, repeat=True)
    assert afresh.fresh.all()
    assert first.realized_loss == pytest.approx(np.full(30, 2.0))
    assert (survey.query(PEOPLE, ids=NAMES).outputs == afresh.outputs).all()


def everybody():
    """Public people and others in one table whose index names them, and what is to be predicted."""
    X = np.vstack([PUBLIC, PEOPLE])
    y = X @ SLOPES + np.random.default_rng(2).normal(size=len(X))
    return pd.DataFrame(X, columns=["age", "dose"], index=pd.Index(range(len(X)), name="person")), y


@pytest.mark.parametrize("shared", [True, False])
def test_cross_validation_asks_everybody_once(shared):
    ledger = PrivacyLedger(1.0, bounds=(0, 1)) if shared else None
    survey = BayesianFilter(LinearRegression(), epsilon=1.0, bounds=(0, 1), ledger=ledger, ids="person")
    X, y = everybody()
    cross_val_score(survey, X, y, cv=5)
    # Each fold has a model of its own, and asks those whom it was not trained on.
    used = clone(survey).fit(X, y).ledger_
    assert [len(used.history(person)) for person in X.index] == [1] * len(X)
    cross_val_score(survey, X, y, cv=5)
    cross_val_predict(survey, X, y, cv=5)
    assert [len(used.history(person)) for person in X.index] == [1] * len(X)
    assert used.verify().n_answers == len(X)


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("multiprocessing", marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="slow without fork")),
        pytest.param("loky", marks=pytest.mark.statistical),
    ],
)
def test_worker_processes_share_a_file(tmp_path, backend):
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=tmp_path / "a.ledger")
    survey = BayesianFilter(LinearRegression(), epsilon=1.0, ledger=ledger, ids="person")
    X, y = everybody()
    with parallel_config(backend=backend):
        cross_val_score(survey, X, y, cv=3, n_jobs=2)
    assert [len(ledger.history(person)) for person in X.index] == [1] * len(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"total_epsilon": 2.0}, "brings its own total_epsilon: .* has 1.0; got 2.0"),
        ({"rule": "basic"}, "brings its own rule: .* has 'bayesian'; got 'basic'"),
        ({"tol": 0.5}, "brings its own tol: .* has 0.001; got 0.5"),
        ({"bounds": (0, 3)}, r"bounds=\(0.0, 1.0\); got"),
    ],
)
def test_what_disagrees_with_the_ledger_is_refused(parameters, message):
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    with pytest.raises(LedgerError, match=message):
        fitted(**{"epsilon": 0.5, "ledger": ledger, **parameters}).query(PEOPLE, ids=NAMES)
    assert ledger.verify().n_answers == 0


def test_one_model_stays_with_one_ledger():
    one, two = PrivacyLedger(1.0, bounds=(0, 1)), PrivacyLedger(1.0, bounds=(0, 1))
    survey = fitted(epsilon=0.5, ledger=one)
    survey.set_params(ledger=two).fit(PUBLIC).query(PEOPLE, ids=NAMES)
    for other in (one, None):
        survey.set_params(ledger=other)
        with pytest.raises(LedgerError, match="fit it again"):
            survey.query(PEOPLE, ids=NAMES)
    survey.set_params(ledger=one)
    with pytest.raises(LedgerError, match="has asked people with"):
        survey.fit(PUBLIC)
    assert one.verify().n_answers == 0
    assert clone(survey).fit(PUBLIC).ledger_ is one


def test_a_model_that_can_leave_its_output_bounds_is_truncated_with_a_warning():
    with pytest.warns(OutOfDomainWarning, match="truncated"):
        survey = fitted(output_bounds=(-1.0, 0.5))
    assert survey.query_.kind == "truncated"
    assert -1.0 <= survey.prior_ <= 0.5


def test_a_classifier_gives_estimates_of_its_probability(fixed_noise):
    y = np.where(PUBLIC @ SLOPES > -0.5, "yes", "no")
    survey = BayesianFilter(LogisticRegression(), epsilon=2.0, bounds=(0, 1)).fit(PUBLIC, y)
    result = survey.query(PEOPLE, ids=NAMES)
    assert set(result.outputs) <= {0.0, 1.0}
    assert survey.prior_ == pytest.approx(survey.estimator_.predict_proba(PUBLIC)[:, 1].mean())
    labels = np.where(PEOPLE @ SLOPES > -0.5, "yes", "no")
    assert survey.score(PEOPLE, labels, ids=NAMES) < 1
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        BayesianFilter(DecisionTreeClassifier(), bounds=(0, 1)).fit(PUBLIC, np.arange(40) % 3)


def test_a_pipeline_of_scalers_is_folded_in():
    inner = make_pipeline(StandardScaler(), Ridge())
    survey = BayesianFilter(inner, epsilon=1.0, bounds=(0, 1)).fit(PUBLIC, PUBLIC @ SLOPES)
    z = PEOPLE @ survey.query_.coef + survey.query_.intercept
    np.testing.assert_allclose(z, survey.estimator_.predict(PEOPLE))
    with pytest.raises(ValueError, match="linear model"):
        BayesianFilter(DecisionTreeRegressor(), bounds=(0, 1)).fit(PUBLIC, PUBLIC @ SLOPES)


def test_models_of_other_features_have_other_budgets():
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    one, other = (pd.DataFrame(PUBLIC, columns=names) for names in (["age", "dose"], ["dose", "age"]))
    survey = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger).fit(one, PUBLIC @ SLOPES)
    survey.query(one, ids=range(40))
    swapped = clone(survey).fit(other, PUBLIC @ SLOPES)
    with pytest.raises(LedgerError, match="features of a ledger must not change"):
        swapped.query(other, ids=range(40))
    assert ledger.verify().n_answers == 40
    alone = BayesianFilter(LinearRegression(), bounds=(0, 1)).fit(one, PUBLIC @ SLOPES)
    assert clone(alone).fit(other, PUBLIC @ SLOPES).ledger_ is not alone.ledger_
    assert clone(alone).fit(one, PUBLIC @ SLOPES).ledger_ is alone.ledger_


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"epsilon": True}, ValueError),
        ({"epsilon": np.nan}, ValueError),
        ({"total_epsilon": True}, ValueError),
        ({"tol": 0.0}, ValueError),
        ({"rule": "renyi"}, ValueError),
        ({"bounds": (1, 0)}, ValueError),
        ({"bounds": ([0, 0, 0], [1, 1, 1])}, ValueError),
        ({"seed": -1}, ValueError),
    ],
)
def test_wrong_parameters_are_refused(parameters, error):
    with pytest.raises(error):
        fitted(**parameters)


@pytest.mark.parametrize("where", ["y", "sample_weight"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_score_that_cannot_be_is_refused_before_anybody_is_asked(where, wrong):
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    survey = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger).fit(PUBLIC, PUBLIC @ SLOPES)
    given = {"y": PUBLIC @ SLOPES, "sample_weight": np.ones(40)}
    given[where] = np.r_[given[where][:-1], wrong]
    with pytest.raises(ValueError, match=rf"{where} contains (NaN|infinity)"):
        survey.score(PUBLIC, given["y"], ids=range(40), sample_weight=given["sample_weight"])
    assert ledger.verify().n_answers == 0


def test_wrong_input_is_refused_before_anybody_is_asked():
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    survey = fitted(epsilon=0.5, ledger=ledger)
    with pytest.raises(ValueError, match="NaN"):
        survey.query([[0.5, np.nan]], ids=["ann"])
    with pytest.raises(ValueError, match="features"):
        survey.query([[0.5]], ids=["ann"])
    with pytest.raises(ValueError, match=r"one id for each of the 30 rows; got 2"):
        survey.query(PEOPLE, ids=[1, 2])
    with pytest.raises(TypeError, match="An id must be"):
        survey.query(PEOPLE[:2], ids=[1.0, 2.0])
    with pytest.raises(ValueError, match="twice, at positions 1 and 2"):
        survey.query(PEOPLE[:3], ids=[0, 1, 1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        survey.score(PEOPLE, PEOPLE[:29, 0], ids=NAMES)
    assert ledger.verify().n_answers == 0
    three = PrivacyLedger(1.0, bounds=([0] * 3, [1, 1, 2]))
    with pytest.raises(ValueError, match="one number for each of the 2 features"):
        fitted(epsilon=0.5, ledger=three, bounds=None)


@pytest.mark.parametrize(
    ("model", "kind", "answers"),
    [
        (PoissonRegressor(), "exponential", np.exp),
        (TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp), "exponential", np.exp),
        (GridSearchCV(LinearRegression(), {"fit_intercept": [True, False]}, cv=2), "linear", np.positive),
        (LinearSVC(dual=False), "linear", lambda z: (z > 0.3).astype(int)),
    ],
    ids=["log link", "logarithm of the target", "search", "decision"],
)
def test_other_linear_models_are_asked_as_well(model, kind, answers, fixed_noise):
    """One ledger for all: the mean is that of the predictions, and nobody loses more than the budget."""
    people, target = np.random.default_rng(3).uniform(0, 1, (4000, 2)), answers(PUBLIC @ [1.0, -0.5])
    with PrivacyLedger(4.0, bounds=(0, 1), tol=1e-2) as ledger:
        other = fitted(epsilon=2.0, ledger=ledger)
        other.query(people, ids=range(4000))
        survey = BayesianFilter(model, epsilon=2.0, ledger=ledger).fit(PUBLIC, target)
        assert survey.query_.kind == kind
        result = survey.query(people, ids=range(4000))
        decides = isinstance(model, LinearSVC)
        told = survey.estimator_.decision_function if decides else survey.estimator_.predict
        assert abs(result.mean - told(people).mean()) < 4 * result.standard_error
        assert result.accepted.all()
        assert 2.0 < ledger.realized_loss(range(4000)).max() <= 4.0
        if decides:
            # Decisions are scored against -1 and 1, which they are fitted to.
            labels = np.random.default_rng(4).integers(0, 2, 4000)
            estimates = survey.predict(people, ids=range(4000))
            expected = r2_score(2 * labels - 1, estimates)
            assert survey.score(people, labels, ids=range(4000)) == expected


def test_a_classifier_of_more_classes_is_asked_for_the_class(fixed_noise):
    rng = np.random.default_rng(0)
    public, people = rng.uniform(0, 1, (300, 2)), rng.uniform(0, 1, (6000, 2))
    names = np.array(["a", "b", "c"])
    labels = names[np.digitize(public @ [1.0, 1.0], [0.8, 1.2])]
    with PrivacyLedger(3.0, bounds=(0, 1)) as ledger:
        survey = BayesianFilter(LogisticRegression(C=100.0), epsilon=2.0, ledger=ledger)
        survey.fit(public, labels)
        assert survey.prior_ == pytest.approx((survey.estimator_.predict(public)[:, None] == names).mean(axis=0))
        result = survey.query(people, ids=range(6000))
        truth = survey.estimator_.predict(people)
        shares = (truth[:, None] == names).mean(axis=0)
        assert (abs(result.mean - shares) < 4.5 * result.standard_error).all()
        assert set(result.outputs) == {0.0, 1.0, 2.0}
        assert result.estimates.shape == (6000, 3)
        assert "6,000 of 6,000 answered, mean=[" in repr(result)
        assert (survey.predict(people, ids=range(6000)) == result.estimates).all()
        assert survey.score(people, truth, ids=range(6000)) == pytest.approx(
            r2_score((truth[:, None] == names).astype(float), result.estimates)
        )
        assert survey.preview(range(6000)).recorded.all()
        other = clone(survey).set_params(epsilon=1.9).fit(public, labels)
        with pytest.warns(BudgetExhaustedWarning):
            refused = other.query(people[:9], ids=range(9))
        assert np.isnan(refused.estimates).all()
        assert np.isnan(refused.mean).all()
        assert (other.predict(people[:9], ids=range(9)) == other.prior_).all()


def test_weights_of_zero_are_refused_before_anybody_is_asked():
    ledger = PrivacyLedger(2.0, bounds=(0, 1))
    survey = BayesianFilter(LinearRegression(), epsilon=0.6, ledger=ledger).fit([[0.0], [0.5], [1.0]], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="weight"):
        survey.score([[0.1], [0.9]], [0.0, 1.0], sample_weight=[0, 0], ids=[1, 2])
    assert ledger.report()["answers"] == 0


def test_clones_without_a_ledger_have_one_budget_and_one_domain():
    survey = BayesianFilter(LinearRegression(), epsilon=0.5, total_epsilon=1.0)
    y = PUBLIC @ SLOPES
    survey.fit(PUBLIC, y).query(PEOPLE[:3], ids=NAMES[:3])
    with pytest.raises(LedgerError, match="shares one budget per person with all its clones"):
        clone(survey).set_params(total_epsilon=2.0).fit(PUBLIC, y)
    narrower = clone(survey).fit(PUBLIC / 2, y)
    assert np.array_equal(narrower.bounds_, survey.bounds_)
    assert clone(survey).fit(PUBLIC[:, :1], y).ledger_ is not survey.ledger_
