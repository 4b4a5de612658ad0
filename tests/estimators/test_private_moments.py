"""PrivateMoments: scikit-learn's rules, what follows from the moments, the guarantee, and warnings."""

import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skldp import PrivateMoments
from skldp.exceptions import ChangedAfterFitError, SeededNoiseWarning

RNG = np.random.default_rng(0)
N = 40_000
X = RNG.uniform(-1, 1, (N, 4))
X[:, 1] = 0.6 * X[:, 0] + 0.4 * X[:, 1]
X[:, 3] = 0.4 * X[:, 0] - 0.3 * X[:, 2] + 0.05 * X[:, 3] + 0.1

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
    pytest.mark.usefixtures("fixed_noise"),
]


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return PrivateMoments(8.0, seed=1).fit(X)


def test_learns_mean_and_covariance(fitted):
    assert (np.abs(fitted.location_ - X.mean(axis=0)) < 4.5 * fitted.location_error_).all()
    assert (np.abs(fitted.raw_covariance_ - np.cov(X.T)) < 4.5 * fitted.covariance_error_).all()
    assert np.linalg.eigvalsh(fitted.covariance_)[0] > 0
    assert fitted.n_features_in_ == 4


def test_columns_have_names():
    pandas = pytest.importorskip("pandas")
    kinds = np.eye(3)[RNG.choice(3, N, p=[0.4, 0.3, 0.3])]
    size = 0.5 * kinds[:, 2] + 0.2 * RNG.standard_normal(N)
    table = pandas.DataFrame({"size": size, "red": kinds[:, 0], "green": kinds[:, 1], "blue": kinds[:, 2]})
    bounds = {"size": (-1, 2), "red": (0, 1), "green": (0, 1), "blue": (0, 1)}
    moments = PrivateMoments(8.0, bounds=bounds, seed=0).fit(table)
    assert moments.location_[1:].sum() == pytest.approx(1, abs=0.1)
    fit = moments.regress("size", on=["green", "blue"])
    blue = pandas.DataFrame({"green": [0.0], "blue": [1.0]})
    # A direction in which nothing varies is not stretched: the radius would be too large for the others.
    assert fit.predict(blue)[0] == pytest.approx(0.5, abs=0.05)
    assert moments.protocol_.frozen_task.radius < 12
    with pytest.raises(ValueError, match="feature names"):
        fit.predict(blue[["blue", "green"]])
    moments.partial_fit(table)
    with pytest.raises(ValueError, match="'white'"):
        moments.regress("white")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"epsilon": True}, "epsilon"),
        ({"bounds": (1, -1)}, "bounds"),
        ({"seed": -1}, "seed"),
    ],
)
def test_parameters_are_checked(wrong, match):
    with pytest.raises(ValueError, match=match):
        PrivateMoments(**wrong).fit(X)


def test_questions_are_checked(fitted):
    for wrong in ({"target": 4}, {"target": -1}, {"target": True}, {"target": "a"}, {"target": 0, "on": [1, 4]}):
        with pytest.raises(ValueError, match="column"):
            fitted.regress(**wrong)
    for on in ([], [1, 1], [0, 1]):
        with pytest.raises(ValueError, match="on must"):
            fitted.regress(0, on)
    with pytest.raises(ValueError, match="expecting 3 features"):
        fitted.regress(0).predict(X)


def test_more_people_by_partial_fit(fitted):
    parts = clone(fitted).partial_fit(X[:20_000])
    before = parts.covariance_error_
    parts.partial_fit(X[20_000:])
    assert (parts.covariance_error_ < before).all()
    # Noise that another call had would be taken twice, and cancel in a difference.
    sums = [parts.protocol_.to_json()]
    for _ in range(2):
        parts.partial_fit(X[:50])
        sums.append(parts.protocol_.to_json())
    totals = [np.array(json.loads(json.loads(one)["state"]["last"]["report"])["sums"]) for one in sums]
    assert not np.array_equal(totals[1] - totals[0], totals[2] - totals[1])
    again = pickle.loads(pickle.dumps(parts))
    np.testing.assert_array_equal(again.correlations(), parts.correlations())


def test_the_guarantee_and_noise():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (PrivateMoments(1.5).fit(X) for _ in range(2))
    assert not np.array_equal(first.location_, second.location_)
    guarantee = first.privacy_guarantee_
    assert 1.5 * (1 - 1e-6) <= guarantee.epsilon <= 1.5 == guarantee.stated
    assert (guarantee.delta, guarantee.unit, guarantee.seeded) == (0.0, "record", False)
    assert len(pickle.dumps(first)) < 50_000
    first.set_params(bounds=(-2, 2))
    with pytest.raises(ChangedAfterFitError):
        first.partial_fit(X)
    with pytest.warns(SeededNoiseWarning):
        seeded = PrivateMoments(1.5, seed=3).fit(X)
    assert seeded.privacy_guarantee_.seeded
    np.testing.assert_array_equal(clone(seeded).set_params(n_jobs=2).fit(X).covariance_, seeded.covariance_)
