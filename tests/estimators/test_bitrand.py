"""BitRand, LATENT and OME as transformers."""

import warnings

import numpy as np
import pytest

from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.exceptions import PrivacyGuaranteeWarning

ALL = [BitRandTransformer, LatentTransformer, OMETransformer]
each = pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)


def rows(n=30, d=4, dtype=np.float64):
    return np.random.default_rng(0).uniform(-0.9, 0.9, (n, d)).astype(dtype)


def test_published_bitrand_stops_where_the_warning_is_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyGuaranteeWarning)
        with pytest.raises(PrivacyGuaranteeWarning, match=r"epsilon 1, .* is 3311 per record \(4.311 for one feature"):
            BitRandTransformer(epsilon=1.0).fit(np.zeros((2, 768)))


@pytest.mark.parametrize(("bounds", "m"), [((-1, 1), 0), ((-0.25, 0.25), -2), ((0, 255), 8), ((-3, 1), 2)])
def test_the_integer_bits_hold_the_bounds(bounds, m):
    fitted = BitRandTransformer(bounds=bounds, calibration="exact").fit(rows())
    assert fitted.mechanism_.encoding.n_integer_bits == m


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
