"""Baselines of models: released rows, and the one gradient a person of the benchmarks."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skldp import (
    NumericPrivatizer,
    PrivateLinearRegression,
    PrivUnitTransformer,
    privacy_guarantee,
)
from skldp.exceptions import OutOfDomainWarning
from skldp.study import ReleasedRowsRegressor
from skldp.study._curve import without_privacy

_SPEC = importlib.util.spec_from_file_location(
    "one_gradient", Path(__file__).parents[2] / "benchmarks" / "one_gradient.py"
)
one_gradient = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(one_gradient)
OneGradientClassifier, OneGradientRegressor = one_gradient.OneGradientClassifier, one_gradient.OneGradientRegressor

RNG = np.random.default_rng(0)
N = 12_000
X = RNG.uniform(0, 10, (N, 3))
UNIT = X / 5 - 1
Y = 100 + 20 * (UNIT @ [0.6, -0.3, 0.2])
BOUNDS = {"bounds": (0, 10), "target_bounds": (70, 130)}
LABELS = np.where(UNIT[:, 0] > 0.3, "high", "low")

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")

REGRESSORS = [
    ReleasedRowsRegressor(NumericPrivatizer(4.0, mechanism="laplace", seed=0), LinearRegression(), **BOUNDS),
    OneGradientRegressor(NumericPrivatizer(4.0, mechanism="piecewise", seed=0), seed=0, **BOUNDS),
    OneGradientRegressor(PrivUnitTransformer(4.0, norm=1.0, seed=0), seed=0, **BOUNDS),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=["rows", "values", "vectors"])
def test_the_guarantee_is_the_mechanisms_of_the_whole_record(model):
    fitted = clone(model).fit(X, Y)
    guarantee = privacy_guarantee(fitted)
    assert (guarantee.unit, guarantee.stated) == ("record", 4.0)
    assert 4 * (1 - 1e-6) <= guarantee.epsilon <= 4
    assert fitted.set_params(bounds=(0, 10)).privacy_guarantee_.epsilon == guarantee.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("model", REGRESSORS[1:], ids=["values", "vectors"])
def test_one_gradient_a_person_learns_a_line(model):
    fitted = clone(model).fit(X, Y)
    assert fitted.score(X, Y) > 0.95
    np.testing.assert_allclose(fitted.coef_, np.array([0.6, -0.3, 0.2]) * 20 / 30, atol=0.1)
    assert np.ptp(fitted.predict(X * 100 - 50)) <= 60
    np.testing.assert_array_equal(clone(model).fit(X, Y).coef_, fitted.coef_)


def test_every_person_releases_one_gradient_once():
    released = []

    class Counting(NumericPrivatizer):
        def fit_transform(self, gradients, y=None):
            released.append(len(gradients))
            return super().fit_transform(gradients)

    model = OneGradientRegressor(Counting(4.0), n_rounds=7, step=0.1, **BOUNDS).fit(X[:1_000], Y[:1_000])
    assert sum(released) == 1_000
    assert len(released) == 7
    model.set_params(step="auto").fit(X[:1_000], Y[:1_000])
    # Made-up rows, from which the noise is known, and the same people.
    assert released[7:] == [2_000, *released[:7]]


@pytest.mark.slow
def test_a_classifier_of_gradients():
    for mechanism in (NumericPrivatizer(4.0, mechanism="hybrid"), PrivUnitTransformer(4.0, norm=1.0)):
        model = OneGradientClassifier(mechanism, classes=["low", "high"], bounds=(0, 10)).fit(X, LABELS)
        assert model.score(X, LABELS) > 0.85
        assert model.classes_.tolist() == ["high", "low"]
        assert 4 * (1 - 1e-6) <= privacy_guarantee(model).epsilon <= 4
    with pytest.raises(ValueError, match="declared") as caught:
        OneGradientClassifier(mechanism, classes=["low", "other"], bounds=(0, 10)).fit(X, LABELS)
    assert "high" not in str(caught.value)


def test_what_is_fitted_on_is_the_release_alone():
    class AllAlike(NumericPrivatizer):
        def fit_transform(self, rows, y=None):
            super().fit_transform(rows)
            return np.column_stack([rows[:, :-1], np.zeros(len(rows))])

    fitted = ReleasedRowsRegressor(AllAlike(), LinearRegression(), **BOUNDS).fit(X, Y)
    assert not fitted.estimator_.coef_.any()


def test_what_lies_outside_is_moved_and_counted():
    rows, target = X.copy(), Y.copy()
    rows[:4, 0], target[:3] = 99, -1e9
    model = ReleasedRowsRegressor(None, LinearRegression(), **BOUNDS)
    with pytest.warns(OutOfDomainWarning, match=f"7 of {4 * N:,} values"):
        model.fit(rows, target)
    assert not hasattr(model, "privacy_guarantee_")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "model",
    [
        PrivateLinearRegression(8.0, **BOUNDS),
        OneGradientRegressor(NumericPrivatizer(8.0), **BOUNDS),
        ReleasedRowsRegressor(NumericPrivatizer(8.0), LinearRegression(), **BOUNDS),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_clean_baseline_is_least_squares_within_the_same_bounds(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clean = without_privacy(clone(model).fit(X, Y))
    narrow = clone(clean).set_params(target_bounds=(95, 105)) if hasattr(clean, "target_bounds") else clean
    assert clean.fit(X, Y).score(X, Y) == pytest.approx(1)
    with pytest.warns(OutOfDomainWarning):
        assert np.ptp(narrow.fit(X, Y).predict(X)) == pytest.approx(10)
