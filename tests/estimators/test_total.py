"""After the first look at a value nothing raises or warns of it: every finite number is released, however extreme.

Error, warning or answer is one bit of the value, and free of charge. The only warning is the count of what lay outside
the declared domain, which comes last.
"""

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import skldp
from skldp.domains._norms import nearest_rows
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning
from skldp.mechanisms.numeric._bounded_features import NUMERIC_MECHANISMS, BoundedFeatures, make_mechanism
from skldp.mechanisms.vector._privunit import PrivUnitBall

TINY, LARGE = 5e-324, np.finfo(np.float64).max
SINGLE = np.finfo(np.float32)
# Numbers at which something overflows, underflows, cancels or lies at a bound.
EXTREMES = [
    *(0.0, -0.0, TINY, -TINY, 2.0**-1022, np.nextafter(2.0**-1022, 0), 1e-310, LARGE, -LARGE, 1e308, 1e154, 1e-154),
    *(float(SINGLE.max), -float(SINGLE.max), float(SINGLE.tiny), float(SINGLE.smallest_subnormal), 1e38, 1e19, 1e-23),
    *(1.0, -1.0, np.nextafter(1, 2), np.nextafter(1, 0), -np.nextafter(1, 2), 2.0**53, 2.0**63, 2.0**64, 0.5, 3.0),
]
FAR = [value for value in EXTREMES if abs(value) <= float(SINGLE.max)]
BOUNDS = [(-1, 1), (0, 1), (0, 1e-69), (1e69, 1e70), (-1e70, 1e70), (1, np.nextafter(1, 2)), (-1e37, 1e38)]


def tables():
    """Every pair of extremes beside a third, rows of one extreme and of random bits; then single rows."""
    rng = np.random.default_rng(0)
    for dtype, bits, chosen in ((np.float64, np.uint64, EXTREMES), (np.float32, np.uint32, FAR)):
        extremes = np.array(chosen, dtype=dtype)
        pairs = np.array(list(itertools.product(extremes, repeat=2)))
        anything = rng.integers(0, np.iinfo(bits).max, (600, 3), dtype=bits).view(dtype)
        yield np.vstack(
            [
                np.column_stack([pairs, rng.choice(extremes, len(pairs))]),
                np.repeat(extremes[:, None], 3, axis=1),
                anything[np.isfinite(anything).all(axis=1)],
            ]
        )
        for one in (0.0, extremes.min(), extremes.max(), extremes[extremes > 0].min()):
            yield np.full((1, 3), one, dtype=dtype)


TABLES = list(tables())
ESTIMATORS = {
    "bitrand": lambda bounds: skldp.BitRandTransformer(bounds=bounds),
    "bitrand, all bits": lambda bounds: skldp.BitRandTransformer(bounds=bounds, n_bits=64),
    "exact": lambda bounds: skldp.BitRandTransformer(bounds=bounds, calibration="exact"),
    "unbiased": lambda bounds: skldp.BitRandTransformer(bounds=bounds, calibration="exact", debias=True),
    "one feature": lambda bounds: skldp.BitRandTransformer(bounds=bounds, calibration="exact", n_sampled_features=1),
    "latent": lambda bounds: skldp.papers.LatentTransformer(bounds=bounds),
    "ome": lambda bounds: skldp.papers.OMETransformer(bounds=bounds),
    **{
        name: lambda bounds, name=name: skldp.NumericPrivatizer(
            4.0, mechanism=name, bounds=bounds, delta=1e-6 * (name == "gaussian")
        )
        for name in NUMERIC_MECHANISMS
    },
    "best": lambda bounds: skldp.NumericPrivatizer(mechanism="best", bounds=bounds),
    "directions of a table": lambda bounds: skldp.PrivUnitTransformer(bounds=bounds),
    "vectors of a table": lambda bounds: skldp.PrivUnitTransformer(norm=1.0, bounds=bounds),
    "a table": lambda bounds: skldp.TablePrivatizer(4.0, schema=bounds),
}
FREE = {
    "directions": skldp.PrivUnitTransformer(),
    "a ball": skldp.PrivUnitTransformer(norm=1.0),
    "a tiny ball": skldp.PrivUnitTransformer(norm=1e-300),
    "a large ball": skldp.PrivUnitTransformer(norm=1e300),
    "metric": skldp.MultivariateLaplacePrivatizer(),
    "metric in a ball": skldp.MultivariateLaplacePrivatizer(radius=1.0),
    "metric, tiny": skldp.MultivariateLaplacePrivatizer(1e250, radius=1e-250),
    "metric, words": skldp.MultivariateLaplacePrivatizer(vocabulary=np.eye(3)),
    "projection": skldp.RandomProjectionPrivatizer(n_components=2),
    "projection of a ball": skldp.RandomProjectionPrivatizer(n_components=2, radius=1.0),
    "projected directions": skldp.RandomProjectionPrivatizer(n_components=2, noise="privunit"),
    "projected ball": skldp.RandomProjectionPrivatizer(n_components=2, noise="privunit", radius=1.0),
    "sparse projection": skldp.RandomProjectionPrivatizer(
        n_components=2, projection="sparse", sensitivity="spectral", radius=1.0
    ),
    "nearest words": skldp.RandomProjectionPrivatizer(
        n_components=2, projection="sparse", sensitivity="vocabulary", vocabulary=np.eye(3)
    ),
}


def released(estimator, X, method="transform"):
    """A release in which every warning but the count of what lay outside is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OutOfDomainWarning)
        return getattr(estimator, method)(X)


def fitted(make, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        return make.fit(X)


def assert_total(make, X, n_outputs=3):
    given = X.copy()
    for noise in (True, False):
        estimator = fitted(make().set_params(transform_noise=noise), np.ones((1, 3)))
        out = released(estimator, X)
        assert out.shape == (X.shape[0], n_outputs)
        assert out.dtype == X.dtype
        assert not np.isnan(out).any()
    assert np.array_equal(X, given)


@pytest.mark.few(9)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_finite_number_is_released_within_bounds(name):
    for bounds, X in itertools.product(BOUNDS, TABLES):
        if len(X) == 1 and bounds != BOUNDS[0]:
            continue
        if X.dtype == np.float32 and max(map(abs, bounds)) > float(SINGLE.max):
            # By their type, whatever the values.
            with pytest.raises(ValueError, match="of the type of X, float32"):
                fitted(ESTIMATORS[name](bounds), np.ones((1, 3))).transform(X)
        else:
            assert_total(lambda bounds=bounds: ESTIMATORS[name](bounds), X)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("bounds", [(0, TINY), (-TINY, TINY), (1e308, LARGE), (-1e71, 1e71), (0, 1e-310)])
def test_bounds_without_room_are_refused_at_fit(name, bounds):
    with pytest.raises(ValueError, match=r"at most 1e\+70 in magnitude and at least 1e-70 apart"):
        ESTIMATORS[name](bounds).fit(np.zeros((1, 3)))


@pytest.mark.few(6)
@pytest.mark.parametrize("name", FREE)
def test_every_finite_vector_is_released(name):
    for X in TABLES:
        assert_total(lambda: clone(FREE[name]), X, n_outputs=getattr(FREE[name], "n_components", 3))


@pytest.mark.parametrize("name", [name for name in FREE if "projec" in name or "nearest" in name])
def test_every_finite_sparse_vector_is_released(name):
    estimator = fitted(clone(FREE[name]), np.ones((1, 3)))
    for X in TABLES:
        assert not np.isnan(released(estimator, sparse.csr_matrix(X))).any()


UNIT = [value for value in EXTREMES if abs(value) <= 1]
MECHANISMS = {
    name: BoundedFeatures(
        make_mechanism(name, 4.0, 3, 1e-6 * (name == "gaussian")),
        (-1.0,) * 3,
        (1.0,) * 3,
        n_sampled=3,
        stated=4.0,
    )
    for name in NUMERIC_MECHANISMS
} | {
    "bitrand": skldp.mechanisms.bitrand(1.0, (-np.ones(3), np.ones(3))),
    "unbiased": skldp.mechanisms.bitrand(9.0, (-np.ones(3), np.ones(3)), calibration="exact", debias=True),
    "direction": skldp.mechanisms.PrivUnit(3, 4.0),
    "ball": PrivUnitBall(3, 4.0, 1.0),
    "metric": skldp.mechanisms.vector._multivariate_laplace.MultivariateLaplace(3, 1.0, radius=1.0),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_number_of_the_domain_is_released_by_the_mechanism_alone(name):
    mechanism = MECHANISMS[name]
    X = np.vstack([list(itertools.product(UNIT, repeat=3)), np.random.default_rng(0).uniform(-1, 1, (200, 3))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(mechanism.release(X, skldp.mechanisms.noise_from()).rows).all()
        assert np.isfinite(mechanism.release(X.astype(np.float32), skldp.mechanisms.noise_from()).rows).all()
        assert np.isfinite(mechanism.encode(X).rows).all()


@pytest.mark.parametrize(
    "labels", [np.array(EXTREMES), np.array([0, 2**63 - 1, -(2**63)]), np.array([2**64 - 1, 0, 2**63])]
)
def test_every_label_and_category_of_the_domain_is_released(labels):
    distinct = np.unique(labels)
    for classes in (distinct, distinct.tolist()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isin(skldp.LabelRR(classes=classes).fit_transform(labels), distinct).all()
            assert skldp.CategoricalPrivatizer(categories=[classes]).fit_transform(labels[:, None]).sum() == len(labels)


@pytest.mark.parametrize("far", [1.0, 1e100, 1e308, LARGE])
def test_a_row_however_far_has_its_nearest_word(far):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nearest_rows(np.diag([0.0, far, -far]), np.eye(3)).tolist() == [0, 1, 0]
