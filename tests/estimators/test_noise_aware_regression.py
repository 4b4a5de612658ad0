"""NoiseAwareLinearRegression: what it undoes, its errors, when it cannot work, and scikit-learn's rules."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from skldp import (
    CategoricalPrivatizer,
    NoiseAwareLinearRegression,
    NumericPrivatizer,
)
from skldp.exceptions import TooFewPeopleWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
    pytest.mark.usefixtures("fixed_noise"),
]


RNG = np.random.default_rng(0)
N = 40_000
X = RNG.uniform(-1, 1, (N, 3))
Y = X @ [0.4, -0.3, 0.2] + 0.05 + 0.05 * RNG.standard_normal(N)


def errors(model, coefficients=(0.4, -0.3, 0.2)):
    """In units of what the model says of them."""
    off = np.append(model.intercept_ - 0.05, model.coef_ - coefficients)
    return np.abs(off) / np.sqrt(np.diag(model.coef_covariance_))


def test_a_target_that_was_released_with_its_row():
    release = NumericPrivatizer(16.0, mechanism="piecewise", n_sampled_features=4, seed=1)
    Z = release.fit_transform(np.column_stack([X, Y]))
    model = NoiseAwareLinearRegression(release).fit(Z[:, :3], Z[:, 3])
    assert (errors(model) < 4).all()
    plain = LinearRegression().fit(Z[:, :3], Z[:, 3])
    assert np.abs(plain.coef_).max() < 0.8 * np.abs(model.coef_).max()
    assert model.score(X, Y) > 0.95
    assert model.privacy_guarantee_.epsilon == release.privacy_guarantee_.epsilon
    assert "costs nothing more" in model.privacy_guarantee_.basis


def test_a_target_with_a_release_of_its_own():
    release = NumericPrivatizer(9.0, mechanism="piecewise", n_sampled_features=3, seed=1).fit(X)
    of_target = NumericPrivatizer(2.0, seed=2).fit(Y[:, None])
    model = NoiseAwareLinearRegression(release, target_mechanism=of_target)
    model.fit(release.transform(X), of_target.transform(Y[:, None])[:, 0])
    assert (errors(model) < 4).all()
    guarantee = model.privacy_guarantee_
    assert guarantee.epsilon == pytest.approx(11.0, rel=1e-6)
    assert "as it was given" not in guarantee.basis
    assert "as it was given" in NoiseAwareLinearRegression(release).fit(X, Y).privacy_guarantee_.basis
    intervals = model.confidence_intervals(0.5)
    np.testing.assert_allclose(intervals.mean(axis=1), np.append(model.intercept_, model.coef_))
    assert (np.ptp(intervals, axis=1) < np.ptp(model.confidence_intervals(), axis=1)).all()


def test_says_when_it_cannot_work():
    with pytest.raises(ValueError, match="`n_sampled` must be at least 2"):
        NoiseAwareLinearRegression(NumericPrivatizer(1.0, mechanism="piecewise")).fit(X, Y)
    release = NumericPrivatizer(2.0, mechanism="piecewise", n_sampled_features=2, seed=0).fit(X)
    with pytest.warns(TooFewPeopleWarning, match="at least") as caught:
        model = NoiseAwareLinearRegression(release).fit(release.transform(X[:200]), Y[:200])
    assert int(str(caught[-1].message).split("at least ")[-1].split(" people")[0].replace(",", "")) > 200
    assert np.isnan(model.confidence_intervals()).all()
    for wrong in (CategoricalPrivatizer(categories=[[0, 1]] * 3), StandardScaler()):
        with pytest.raises(ValueError, match="without bias"):
            NoiseAwareLinearRegression(wrong).fit(np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ValueError, match="one number for each of 2 columns"):
        NoiseAwareLinearRegression(release.mechanism_, target_mechanism=release).fit(np.zeros((4, 2)), np.zeros(4))
