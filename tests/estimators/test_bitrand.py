"""BitRand, LATENT and OME as transformers."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning

ALL = [BitRandTransformer, LatentTransformer, OMETransformer]
each = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)


def rows(n=30, d=4, dtype=np.float64):
    return np.random.default_rng(0).uniform(-0.9, 0.9, (n, d)).astype(dtype)


def test_published_bitrand_stops_where_the_warning_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyGuaranteeWarning)
        with pytest.raises(PrivacyGuaranteeWarning, match=r"epsilon 1, .* is 3311 per record \(4.311 for one feature"):
            BitRandTransformer(epsilon=1.0).fit(np.zeros((2, 768)))


@each
@pytest.mark.parametrize("epsilon", [0.1, 1, 10.0])
def test_exact_calibration_states_what_it_gives_and_is_silent(cls, epsilon):
    guarantee = cls(epsilon=epsilon, calibration="exact").fit(np.zeros((2, 768))).privacy_guarantee_
    assert epsilon * (1 - 1e-9) <= guarantee.epsilon <= epsilon == guarantee.stated


@pytest.mark.parametrize(("bounds", "m"), [((-1, 1), 0), ((-0.25, 0.25), -2), ((0, 255), 8), ((-3, 1), 2)])
def test_the_integer_bits_hold_the_bounds(bounds, m):
    fitted = BitRandTransformer(bounds=bounds, calibration="exact").fit(rows())
    assert fitted.mechanism_.encoding.n_integer_bits == m


def test_bounds_per_feature():
    low, high = np.array([-1.0, 0.0, -2.0, 0.5]), np.array([1.0, 1.0, 3.0, 0.75])
    X = low + (high - low) * np.random.default_rng(1).uniform(size=(200, 4))
    fitted = BitRandTransformer(5.0, bounds=(low, high), calibration="exact").fit(X)
    assert fitted.mechanism_.encoding.n_integer_bits == 2
    assert fitted.transform(X).shape == X.shape
    fitted.set_params(transform_noise=False).fit(X)
    np.testing.assert_allclose(fitted.transform(X), X, atol=fitted.mechanism_.encoding.step)


@each
def test_what_lies_outside_is_clipped_and_counted(cls):
    X = rows(10)
    X[:, 0] = 1.5
    estimator = cls(calibration="exact", transform_noise=False).fit(X)
    with pytest.warns(OutOfDomainWarning, match="10 of 40"):
        released = estimator.transform(X)
    assert released.max() == estimator.mechanism_.encoding.largest


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_released_numbers_lie_on_the_grid(cls, dtype):
    estimator = cls(5.0, calibration="exact", n_bits=6, n_sampled_features="all")
    released = estimator.fit_transform(rows(200, dtype=dtype))
    assert released.dtype == dtype
    assert np.isin(np.abs(released), np.arange(32) / 32).all()


def test_names_and_frames_are_kept():
    X = pd.DataFrame(rows(), columns=list("abcd"))
    estimator = BitRandTransformer(calibration="exact").set_output(transform="pandas")
    released = estimator.fit_transform(X)
    assert list(released.columns) == list("abcd")
    assert estimator.get_feature_names_out().tolist() == list("abcd")


@each
def test_copies_and_pickles_carry_no_tables_and_no_noise(cls):
    estimator = cls(calibration="exact").fit(rows())
    before = pickle.dumps(estimator)
    estimator.transform(rows())
    assert pickle.dumps(estimator) == before
    assert len(before) < 10_000
    assert clone(estimator).get_params() == estimator.get_params()


@each
def test_a_seed_gives_the_same_release_twice(cls):
    with pytest.warns(SeededNoiseWarning):
        one, other = (cls(calibration="exact", seed=3).fit_transform(rows()) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_debias_gives_the_values_back_on_average():
    X = np.tile([[-0.9, 0.0, 0.4, 1.0]], (20_000, 1))
    estimator = BitRandTransformer(8.0, calibration="exact", debias=True, seed=0)
    with pytest.warns(SeededNoiseWarning):
        released = estimator.fit_transform(X)
    error = (released.mean(axis=0) - X[0]) / np.sqrt(estimator.mechanism_.variance(X[:1])[0] / len(X))
    assert (np.abs(error) < 5).all()


@each
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 1}, "n_bits"),
        ({"n_bits": 65}, "n_bits"),
        ({"n_bits": 8.0}, "n_bits"),
        ({"n_bits": True}, "n_bits"),
        ({"n_integer_bits": 0.5}, "n_integer_bits"),
        ({"n_integer_bits": True}, "n_integer_bits"),
        ({"n_integer_bits": "most"}, "n_integer_bits"),
        ({"calibration": "none"}, "calibration"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"alpha": True}, "alpha"),
        ({"n_sampled_features": 0}, "n_sampled_features"),
        ({"n_sampled_features": 5}, "n_sampled_features"),
        ({"n_sampled_features": True}, "n_sampled_features"),
        ({"n_sampled_features": "most"}, "n_sampled_features"),
        ({"debias": "yes"}, "debias"),
        ({"bounds": (1, -1)}, "bounds"),
        ({"bounds": (0.5, 0.5)}, "bounds"),
        ({"bounds": (-np.inf, 1)}, "bounds"),
        ({"bounds": ([0, 0], [1, 1])}, "bounds"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_anything_is_released(cls, parameters, message):
    estimator = cls(**parameters)
    with pytest.raises(ValueError, match=message):
        estimator.fit_transform(rows())
    assert not hasattr(estimator, "privacy_guarantee_")


def test_alpha_above_theorem_2_is_refused_and_exact_takes_none():
    with pytest.raises(ValueError, match="Theorem 2"):
        BitRandTransformer(alpha=3.0).fit(rows())
    with pytest.raises(ValueError, match="alpha belongs to calibration='published'"):
        BitRandTransformer(alpha=0.1, calibration="exact").fit(rows())


@pytest.mark.parametrize("debias", [False, True])
def test_an_epsilon_of_700_is_no_trouble(debias):
    X = rows(d=50)
    exact = BitRandTransformer(700.0, calibration="exact", debias=debias).fit(X)
    assert 700 * (1 - 1e-9) <= exact.privacy_guarantee_.epsilon <= 700
    with pytest.warns(PrivacyGuaranteeWarning):
        assert np.isfinite(BitRandTransformer(700.0, debias=debias).fit_transform(X)).all()
