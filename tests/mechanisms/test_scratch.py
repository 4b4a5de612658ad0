import numpy as np
import pytest

from skldp.mechanisms._noise import Noise
from skldp.mechanisms._vector.multivariate_laplace import MultivariateLaplace
from skldp.mechanisms._vector.privunit import PrivUnit
from skldp.mechanisms._vector.privunit_ball import PrivUnitBall
from skldp.mechanisms._vector.projected_release import ProjectedRelease
from skldp.mechanisms._vector.projection import RandomProjection
from skldp.mechanisms._vector.workspace import Scratch

MECHANISMS = [
    MultivariateLaplace(5, 2.0),
    MultivariateLaplace(5, 2.0, radius=0.5),
    MultivariateLaplace(5, 2.0, vocabulary=np.eye(5)),
    PrivUnit(5, 2.0),
    PrivUnit(80, 2.0),
    PrivUnitBall(5, 2.0, 3.0),
    PrivUnitBall(80, 2.0, 3.0),
    ProjectedRelease(RandomProjection(9, 5), 2.0),
    ProjectedRelease(RandomProjection(9, 5), 2.0, noise="privunit"),
]


def noise(seed):
    return Noise(bytes([seed] * 32), secure=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_releases_are_the_same_whether_they_share_arrays_or_not(mechanism, dtype):
    rows = np.random.default_rng(0).normal(size=(7, mechanism.n_outputs)).astype(dtype)
    given = rows.copy()
    shared, streams = mechanism.make_buffers(), (noise(1), noise(1))
    blocks = [rows, rows[:3], rows]
    # The first releases must not change when later blocks take the arrays.
    released = [mechanism.sample(block, streams[0], buffers=shared) for block in blocks]
    for block, kept in zip(blocks, released, strict=True):
        assert kept.dtype == dtype
        np.testing.assert_array_equal(kept, mechanism.sample(block, streams[1]))
    np.testing.assert_array_equal(rows, given)
    # In place, as an estimator of projections releases.
    np.testing.assert_array_equal(mechanism.sample(given, noise(1), out=given, buffers=shared), released[0])


def test_an_array_is_kept_as_long_as_it_fits():
    scratch = Scratch()
    first = scratch.take("a", (4, 3), np.float32)
    assert np.shares_memory(first, scratch.take("a", (2, 3), np.float32))
    assert not np.shares_memory(first, scratch.take("b", (4, 3), np.float32))
    assert not np.shares_memory(first, scratch.take("a", (4, 4), np.float32))
    assert scratch.take("a", (2,), np.float64).dtype == np.float64
