"""Intervals and the summary of PrivateLinearRegression: what is asked, what is told, and what refuses."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skldp import PrivateLinearRegression
from skldp.estimators._regression_summary import RegressionSummary
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning._uncertainty import Estimate

RNG = np.random.default_rng(0)
N = 12_000
X = pd.DataFrame(RNG.uniform(-1, 1, (N, 3)), columns=["age", "income", "<b>"])
Y = X.to_numpy() @ [0.4, -0.3, 0.0] + 0.1 + 0.05 * RNG.standard_normal(N)

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


@functools.cache
def fitted(**settings):
    return PrivateLinearRegression(8.0, inference=True, seed=0, **settings).fit(X, Y)


@pytest.mark.few(2)
@pytest.mark.parametrize("protocol", ["rounds", "once"])
def test_what_is_fitted_fits_together(protocol):
    model = fitted(protocol=protocol)
    frame = model.summary().to_frame()
    errors, values = frame["std err"].to_numpy(), frame["coef"].to_numpy()
    assert errors.shape == (4,)
    np.testing.assert_array_equal(values, [model.intercept_, *model.coef_])
    interval = model.confidence_intervals()
    np.testing.assert_allclose(interval.mean(axis=1), values)
    np.testing.assert_allclose((interval[:, 1] - interval[:, 0]) / errors, 2 * 2.01063, rtol=1e-4)
    narrow = model.confidence_intervals(level=0.5)
    assert (narrow[:, 0] > interval[:, 0]).all()
    assert [*frame.index] == ["intercept", "age", "income", "<b>"]
    assert [*frame.columns] == ["coef", "std err", "t", "P>|t|", "[0.025", "0.975]", "due to privacy"]
    np.testing.assert_array_equal(frame[["[0.025", "0.975]"]], interval)
    assert frame["P>|t|"]["age"] < 1e-6
    assert model.privacy_guarantee_.epsilon <= 8.0
    assert np.abs(model.coef_ - [0.4, -0.3, 0]).max() < 0.05


def test_a_summary_is_text_and_html():
    estimate = Estimate(np.array([0.5, -2.0]), np.diag([0.04, 1.0]), np.array([0.03, 0.0]), 49)
    summary = RegressionSummary(["age", "<b>"], estimate, 0.9, "Least squares & more")
    assert str(summary).splitlines() == [
        "Least squares & more",
        "     coef  std err       t  P>|t|   [0.05    0.95]  due to privacy",
        "age   0.5      0.2   2.500  0.016  0.1647   0.8353             50%",
        "<b>    -2        1  -2.000  0.051  -3.677  -0.3234              0%",
    ]
    shown = summary._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert shown.count("<tr>") == 3


def test_arrays_have_names_of_their_own_and_fits_survive_pickle():
    model = PrivateLinearRegression(8.0, inference=True, seed=0).fit(X.to_numpy(), Y)
    assert model.summary().names == ["intercept", "x0", "x1", "x2"]
    again = pickle.loads(pickle.dumps(model))
    assert str(again.summary()) == str(model.summary())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Noise may hide outlying values")
def test_too_few_people_and_hidden_features_are_told():
    model = PrivateLinearRegression(2.0, inference=True, seed=0)
    with pytest.warns(TooFewPeopleWarning, match=r"at least [\d,]+ people"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="people"):
        model.confidence_intervals()
    assert model.score(X, Y) > 0.9
    twins = X.assign(income=X["age"])
    model = clone(fitted())
    with pytest.warns(TooFewPeopleWarning, match=r"features \[0, 1\]"):
        # Noise passes for a direction in one fit of some hundred, such as that of seed 0.
        model.set_params(epsilon=9.0, seed=1).fit(twins, Y)
    with pytest.raises(ValueError, match="stand out"):
        model.summary()
