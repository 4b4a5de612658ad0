import warnings

import numpy as np
import pytest
from scipy import sparse

from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning
from skldp.mechanisms.vector import _projection as module

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore:RandomProjectionPrivatizer states"),
]


def rows(n=60, d=120, dtype=np.float64):
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


def thin(n=50, d=3_000, dtype=np.float64):
    return sparse.random(n, d, density=0.01, random_state=1, dtype=dtype, format="csr")


def test_the_papers_dimensions():
    X = rows(d=300)
    for beta, m in ((0.93, 50), (0.66, 100), (0.468, 198)):
        privatizer = RandomProjectionPrivatizer(beta=beta).fit(X)
        assert privatizer.n_components_ == m
        assert privatizer.transform(X).shape == (60, m)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("projection", ["gaussian", "sparse"])
@pytest.mark.parametrize("layout", ["csr_matrix", "csc_matrix", "csr_array", "csc_array"])
def test_sparse_rows_are_projected_like_dense_ones(layout, projection, dtype):
    X = thin(dtype=dtype)
    privatizer = RandomProjectionPrivatizer(
        sensitivity="spectral", projection=projection, transform_noise=False, radius=0.5
    ).fit(X)
    with pytest.warns(OutOfDomainWarning, match="50 of 50 rows .* a larger radius"):
        from_sparse = privatizer.transform(getattr(sparse, layout)(X))
    with pytest.warns(OutOfDomainWarning):
        from_dense = privatizer.transform(X.toarray())
    assert from_sparse.dtype == from_dense.dtype == dtype
    np.testing.assert_allclose(from_sparse, from_dense, atol=1e-5)
    assert isinstance(from_sparse, np.ndarray)


def test_a_large_phi_is_never_held(monkeypatch):
    X = thin()
    kept = RandomProjectionPrivatizer(seed=0).fit(X)
    expected = kept.transform(X)
    monkeypatch.setattr(module, "_KEPT", 0)
    made = RandomProjectionPrivatizer(seed=0).fit(X)
    np.testing.assert_allclose(made.transform(X), expected, atol=1e-9)
    np.testing.assert_allclose(made.transform(X.toarray()), expected, atol=1e-9)
    assert "matrix" not in vars(made.mechanism_.projection)


def test_privunit_in_the_projected_space():
    X = rows()
    unit = RandomProjectionPrivatizer(4.0, noise="privunit", n_components=16, projection="sparse").fit(X)
    guarantee = unit.privacy_guarantee_
    assert (guarantee.unit, guarantee.delta) == ("record", 0.0)
    assert guarantee.epsilon <= 4.0
    for rows_ in (X, np.zeros((2, 120))):
        norms = np.linalg.norm(unit.transform(rows_), axis=1)
        np.testing.assert_allclose(norms, unit.mechanism_.inner.scale, rtol=1e-3)
    ball = RandomProjectionPrivatizer(4.0, noise="privunit", n_components=16, radius=50.0).fit(X)
    assert ball.mechanism_.inner.radius == 50.0 * 1.9
    assert np.isfinite(ball.transform(np.zeros((2, 120)))).all()


def test_a_delta_above_the_stated_one_is_warned_of_with_both_figures():
    with pytest.warns(PrivacyGuaranteeWarning, match=r"states delta 1e-06, .* proved is .*spectral") as seen:
        proved = RandomProjectionPrivatizer().fit(rows()).privacy_guarantee_.delta
    assert proved > 1e-6
    assert f"{proved:.4g}" in str(seen[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in {"sensitivity": "spectral"}, {"sensitivity": "union", "vocabulary_size": 2, "delta": 0.5}:
            RandomProjectionPrivatizer(**options).fit(rows())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_sparse_rows_with_explicit_nan(bad):
    X = thin()
    privatizer = RandomProjectionPrivatizer().fit(X)
    X.data[3] = bad
    for call in (privatizer.transform, privatizer.fit, privatizer.fit_transform):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            call(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beta": 0}, "beta"),
        ({"beta": 1.0}, "beta"),
        ({"beta": np.nan}, "beta"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"n_components": 121}, "n_components must be a whole number from 1 to"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1, "noise": "privunit"}, "dimension"),
        ({"sensitivity": "jl"}, "sensitivity"),
        ({"noise": "gaussian"}, "noise"),
        ({"projection": "sparse"}, "kind 'gaussian'"),
        ({"projection_seed": -1}, "projection_seed"),
        ({"projection_seed": None}, "projection_seed"),
        ({"radius": 0.0}, "radius"),
        ({"sensitivity": "vocabulary"}, "needs a vocabulary"),
        ({"vocabulary": np.ones((4, 3))}, "vocabulary must have 120 columns"),
        ({"vocabulary": np.full((4, 120), np.nan)}, "NaN"),
    ],
)
def test_refuses(parameters, message):
    with pytest.raises(ValueError, match=message):
        RandomProjectionPrivatizer(**parameters).fit(rows())
