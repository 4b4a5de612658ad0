"""NumericPrivatizer: every mechanism in the original units, what is chosen, and what is refused."""

import numpy as np
import pytest
import sklearn

from skldp.estimators._numeric import NumericPrivatizer
from skldp.exceptions import SeededNoiseWarning
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
