"""NumericPrivatizer: every mechanism in the original units, what is chosen, and what is refused."""

import warnings

import numpy as np
import pytest
import sklearn

from skldp.estimators._numeric import NumericPrivatizer
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._bounded_features import NUMERIC_MECHANISMS

BOUNDS = ([0.0, -4.0, 100.0], [1.0, 4.0, 101.0])


def private(mechanism, epsilon=2.0, **parameters):
    return NumericPrivatizer(
        epsilon, mechanism=mechanism, bounds=BOUNDS, delta=1e-5 if mechanism == "gaussian" else 0.0, **parameters
    )


@pytest.mark.few(14)
@pytest.mark.parametrize("mechanism", NUMERIC_MECHANISMS)
@pytest.mark.parametrize("n_sampled", ["auto", "all", 2])
def test_unbiased_in_the_original_units(mechanism, n_sampled):
    X = np.tile([0.9, -3.0, 100.2], (40_000, 1))
    privatizer = private(mechanism, n_sampled_features=n_sampled, seed=4)
    with pytest.warns(SeededNoiseWarning):
        released = privatizer.fit_transform(X)
    variance = privatizer.mechanism_.variance(X[:1])[0]
    assert (np.abs(released.mean(axis=0) - X[0]) < 5.5 * np.sqrt(variance / len(X))).all()
    guarantee = privatizer.privacy_guarantee_
    assert 2 * (1 - 1e-6) <= guarantee.epsilon <= 2 == guarantee.stated
    assert (guarantee.delta > 0) == (mechanism == "gaussian")
    assert guarantee.delta <= 1e-5


def test_rows_that_were_not_sampled_are_the_middle_of_their_bounds():
    released = private("duchi", n_sampled_features=1).fit_transform(np.tile([0.9, -3.0, 100.2], (100, 1)))
    assert (np.sum(released != [0.5, 0.0, 100.5], axis=1) == 1).all()


def test_best_says_which():
    X = np.zeros((4, 1))
    small, large = (NumericPrivatizer(epsilon, mechanism="best").fit(X) for epsilon in (0.5, 4.0))
    assert (small.mechanism_name_, large.mechanism_name_) == ("points", "points")
    assert "Points(epsilon=4.0" in repr(large.mechanism_)
    assert NumericPrivatizer(mechanism="laplace").fit(X).mechanism_name_ == "laplace"


def test_automatic_number_of_features():
    X = np.zeros((4, 8))
    assert [NumericPrivatizer(eps).fit(X).n_sampled_features_ for eps in (0.1, 5.0, 100.0)] == [1, 2, 8]
    assert NumericPrivatizer(mechanism="duchi_vector").fit(X).n_sampled_features_ == 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mechanism", NUMERIC_MECHANISMS)
def test_float32_is_the_rounded_float64(mechanism, dtype, monkeypatch):
    """So that the output's bits, too, are a function of what the exact law released."""
    monkeypatch.setattr("skldp.estimators._base.noise_from", lambda _: Noise(bytes(32), secure=False))
    X = np.full((50, 3), 0.75)
    released = [
        NumericPrivatizer(mechanism=mechanism, delta=1e-5 * (mechanism == "gaussian")).fit_transform(X.astype(d))
        for d in (np.float64, dtype)
    ]
    assert released[1].dtype == dtype
    assert np.array_equal(released[0].astype(dtype), released[1])


def test_values_outside_are_moved_and_counted(fixed_noise):
    with pytest.warns(OutOfDomainWarning, match="2 of 6 values"):
        released = private("duchi", epsilon=60.0).fit_transform([[2.0, -9.0, 100.0], [0.0, 4.0, 101.0]])
    assert released == pytest.approx(np.array([[1.0, -4.0, 100.0], [0.0, 4.0, 101.0]]), abs=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mechanism": "gaussian"}, "delta must lie inside"),
        ({"mechanism": "gaussian", "delta": 1.0}, "delta"),
        ({"mechanism": "gaussian", "delta": float("nan")}, "delta"),
        ({"mechanism": "hybrid", "delta": 1e-5}, "Only the Gaussian mechanism has a delta"),
        ({"mechanism": "sine_wave"}, "mechanism"),
        ({"n_sampled_features": 4}, "n_sampled_features, .* must be .* 3; got 4"),
        ({"n_sampled_features": 0}, "n_sampled_features"),
        ({"n_sampled_features": True}, "n_sampled_features"),
        ({"n_sampled_features": "some"}, "n_sampled_features"),
        ({"epsilon": 2e-6, "n_sampled_features": "all"}, "epsilon must be at least 3e-06, since 3 values share it"),
        ({"epsilon": 1e-7, "mechanism": "duchi_vector"}, "epsilon must be at least 1e-06"),
        ({"bounds": ([0, 0], [1, 1])}, "bounds"),
    ],
    ids=str,
)
@pytest.mark.parametrize("skip", [False, True])
def test_refuses(parameters, message, skip):
    with sklearn.config_context(skip_parameter_validation=skip), pytest.raises(ValueError, match=message):
        NumericPrivatizer(**parameters).fit_transform(np.zeros((5, 3)))


def test_best_takes_the_gaussian_only_where_a_delta_is_given():
    X = np.zeros((2, 2000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pure = NumericPrivatizer(1e3, mechanism="best", n_sampled_features="all").fit(X)
        relaxed = NumericPrivatizer(1e3, mechanism="best", delta=1e-5, n_sampled_features="all").fit(X)
    assert pure.privacy_guarantee_.delta == 0
    assert relaxed.mechanism_name_ == "gaussian"
    assert 0 < relaxed.privacy_guarantee_.delta <= 1e-5


def test_keeps_column_names():
    pd = pytest.importorskip("pandas")
    people = pd.DataFrame({"age": [0.5], "height": [1.0], "weight": [100.5]})
    privatizer = private("hybrid").set_output(transform="pandas")
    assert privatizer.fit_transform(people).columns.tolist() == ["age", "height", "weight"]
    assert privatizer.get_feature_names_out().tolist() == ["age", "height", "weight"]
