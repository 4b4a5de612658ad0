"""PrivateLinearRegression: scikit-learn's rules, declared domains, the guarantee, and warnings."""

import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import has_fit_parameter

import skldp
from skldp import BoundsScaler, PrivateLinearRegression, privacy_guarantee
from skldp.exceptions import (
    ChangedAfterFitError,
    OutOfDomainWarning,
    TooFewPeopleWarning,
)
from skldp.learning import n_people_needed
from skldp.learning._tasks import Task

RNG = np.random.default_rng(0)
N = 20_000
X = RNG.uniform(-1, 1, (N, 4))
Y = X @ [0.4, -0.2, 0.1, 0.2] + 0.05 + 0.03 * RNG.standard_normal(N)


pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


@pytest.mark.filterwarnings("ignore:Noise may hide outlying values")
@pytest.mark.parametrize("protocol", ["rounds", "once"])
def test_learns_nearly_what_least_squares_does(protocol):
    model = PrivateLinearRegression(2.0, protocol=protocol, target_bounds=(-1.5, 1.5), seed=1).fit(X, Y)
    clean = LinearRegression().fit(X, Y)
    assert model.score(X, Y) > clean.score(X, Y) - 0.03
    assert model.coef_.shape == (4,)
    assert isinstance(model.intercept_, float)
    assert model.n_features_in_ == 4


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:Noise may hide outlying values")
@pytest.mark.parametrize("protocol", ["rounds", "once"])
def test_the_guarantee_is_of_the_record_with_its_target(protocol):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Noise may hide")
        model = PrivateLinearRegression(1.5, protocol=protocol, target_bounds=(-1.5, 1.5)).fit(X, Y)
    guarantee = model.privacy_guarantee_
    assert 1.5 * (1 - 1e-6) <= guarantee.epsilon <= 1.5 == guarantee.stated
    assert (guarantee.delta, guarantee.unit, guarantee.seeded) == (0.0, "record", False)
    assert privacy_guarantee(make_pipeline(BoundsScaler(), clone(model)).fit(X, Y)).epsilon == guarantee.epsilon
    model.set_params(epsilon=3.0)
    with pytest.raises(ChangedAfterFitError):
        _ = model.privacy_guarantee_


def test_too_few_people_are_told_and_the_mean_is_predicted():
    features, target = load_diabetes(return_X_y=True)
    model = PrivateLinearRegression(1.0, bounds=(-0.2, 0.2), target_bounds=(25, 346), seed=0)
    with pytest.warns(TooFewPeopleWarning, match=f"{n_people_needed(10, 1.0):,} people"):
        model.fit(features, target)
    predicted = model.predict(features)
    assert np.ptp(predicted) == 0
    assert abs(predicted[0] - target.mean()) < 60
    assert model.privacy_guarantee_.epsilon <= 1.0


def test_what_lies_outside_is_moved_and_counted_and_predictions_stay_inside():
    rows = X.copy()
    rows[:7, 0], rows[0, 1] = 1e9, -5
    model = PrivateLinearRegression(4.0, target_bounds=(-0.5, 0.5), seed=0)
    moved = 8 + np.count_nonzero(np.abs(Y) > 0.5)
    with pytest.warns(OutOfDomainWarning, match=f"{moved:,} of {N * 5:,} values"):
        model.fit(rows, Y)
    assert np.abs(model.predict(1e3 * X)).max() == 0.5


@pytest.mark.filterwarnings("ignore:Noise may hide outlying values")
def test_nothing_fitted_is_a_value_of_somebody():
    """What is kept holds no row, no order of people and no noise."""
    model = PrivateLinearRegression(1.0, target_bounds=(-1.5, 1.5)).fit(X, Y)
    assert len(pickle.dumps(model)) < 50_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": True},
        {"epsilon": 0},
        {"bounds": (1, -1)},
        {"bounds": ([0, 0], [1, 1])},
        {"target_bounds": ([0, 0], [1, 1])},
        {"protocol": "twice"},
        {"seed": -1},
    ],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PrivateLinearRegression(**wrong).fit(X, Y)


def test_bounds_by_column_are_those_of_the_columns_in_any_order():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:5_000] * [1, 10, 1, 0.1], columns=["a", "b", "c", "d"])
    by_name = {"d": (-0.1, 0.1), "a": (-1, 1), "b": (-10, 10), "c": (-1, 1)}
    model = PrivateLinearRegression(4.0, bounds=by_name, target_bounds=(-1.5, 1.5), seed=0).fit(frame, Y[:5_000])
    low, high = np.array([-1, -10, -1, -0.1]), np.array([1, 10, 1, 0.1])
    same = clone(model).set_params(bounds=(low, high)).fit(frame, Y[:5_000])
    np.testing.assert_array_equal(model.coef_, same.coef_)
    assert model.protocol_.task is None
    for wrong, message in [
        ({"a": (-1, 1)}, r"miss \['b', 'c', 'd'\]"),
        (by_name | {"e": (0, 1)}, r"unknown \['e'\]"),
        ({"A": (0, 1)} | {name: by_name[name] for name in "bcd"}, r"unknown \['A'\]\. Did you mean 'a'\?"),
        (by_name | {"c": (1, 0)}, "low 1 exceeds high 0 for 'c'"),
        (by_name | {"c": ([0, 0], [1, 1])}, "for 'c'"),
    ]:
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(bounds=wrong).fit(frame, Y[:5_000])
    with pytest.raises(ValueError, match="without names"):
        clone(model).fit(frame.to_numpy(), Y[:5_000])


@pytest.mark.parametrize("name", ["PrivateLinearRegression", "PrivateLogisticRegression", "PrivateDiscriminant"])
def test_people_whose_outlying_values_may_all_go_unseen_are_told(name):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (60_000, 2))
    target = rows[:, 0] if name == "PrivateLinearRegression" else rows[:, 0] > 0
    declared = {} if name == "PrivateLinearRegression" else {"classes": [False, True]}
    for n, told in ((4_000, True), (60_000, False)):
        model = getattr(skldp, name)(1.0, score_share=0, seed=0, **declared)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(rows[:n], target[:n])
        assert (model.undetected_share_ == 1) == told
        assert any("outlying values of any share of people" in str(one.message) for one in caught) == told


def test_target_bounds_that_are_ten_times_too_wide_are_told():
    """By the reported deviation; a third of half the width of the bounds is expected."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20_000, 2)) / 3
    target = rows @ [0.8, 0.6]
    for protocol in ("rounds", "once"):
        for times in (3, 30):
            model = PrivateLinearRegression(4.0, target_bounds=(-times, times), protocol=protocol, seed=0)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(rows.clip(-1, 1), target)
            told = [str(one.message) for one in caught if "times too wide" in str(one.message)]
            assert len(told) == (times == 30)
            assert all(20 < float(re.search(r"about (\d+) times", one)[1]) < 40 for one in told)


@pytest.mark.parametrize(
    ("model", "n", "message"),
    [
        (PrivateLinearRegression(2.0, inference=True, seed=0), 20_000, "no intervals"),
        (PrivateLinearRegression(1.0, seed=0), 1_500, "undetected_share_ is 1"),
        (PrivateLinearRegression(1.0, seed=0), 20, "the mean is predicted"),
    ],
)
def test_what_is_known_before_anybody_is_asked_is_warned_of_before(monkeypatch, model, n, message):
    monkeypatch.setattr(Task, "release", lambda *_, **__: pytest.fail("Somebody was asked."))
    X = np.random.default_rng(0).uniform(-1, 1, (n, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", TooFewPeopleWarning)
        with pytest.raises(TooFewPeopleWarning, match=message):
            model.fit(X, X[:, 0])


def test_weights_are_refused_and_no_value_is_told():
    for fit in (PrivateLinearRegression().fit, PrivateLinearRegression(protocol="once").partial_fit):
        with pytest.raises(TypeError, match=r"^sample_weight is refused: a person's weight is a value that epsilon"):
            fit(X, Y, sample_weight=np.ones(N))
    with pytest.raises(TypeError, match=r"^fit\(\) got an unexpected keyword argument 'weights'"):
        PrivateLinearRegression().fit(X, Y, weights=np.ones(N))
    assert not has_fit_parameter(PrivateLinearRegression(), "sample_weight")
    rows = np.full((10, 2), 0.123456)
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        PrivateLinearRegression().fit(rows, np.full(10, 0.654321))
    assert "0.123456" not in str(caught.value)
    with pytest.raises(ValueError, match=r"y|numbers") as caught:
        PrivateLinearRegression().fit(np.zeros((2, 1)), ["secret", "word"])
    assert "secret" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
def test_predictions_keep_the_bounds_of_the_fit():
    model = PrivateLinearRegression(2.0, target_bounds=(-0.1, 0.1), seed=1).fit(X, Y)
    before = model.predict(X)
    assert np.abs(before).max() == 0.1
    np.testing.assert_array_equal(model.set_params(target_bounds=(-5, 5)).predict(X), before)
