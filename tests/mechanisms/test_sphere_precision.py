"""Nothing but the direction is released: no norm, no precision of the input, no row that fails."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, ks_pvalue, seeded
from scipy import sparse, stats

from skldp.domains._domain import Ball
from skldp.domains._norms import shrink_factors
from skldp.mechanisms import PrivUnit
from skldp.mechanisms.vector import _privunit as privunit
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.mechanisms.vector._projected_release import ProjectedRelease
from skldp.mechanisms.vector._projection import RandomProjection


def released_radii(mechanism, row, n, seed):
    return np.linalg.norm(mechanism.release(np.tile(row, (n, 1)), seeded(seed)).rows.astype(np.float64), axis=1)


@pytest.mark.parametrize(("d", "epsilon", "n"), [(64, 5.0, 4_000), (64, 20.0, 4_000), (768, 50.0, 1_000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attack_on_the_norm_two_multiples_of_one_vector_are_released_alike(d, epsilon, n, dtype):
    # Whole numbers below 2^20: three and 13 times them are exact in single precision, so the exact loss is 0. With one
    # and the same noise the releases must be the same grid points: in double precision rounding moves none of these.
    row = np.random.default_rng(d).integers(-(2**20), 2**20, d)
    mechanism = PrivUnit(d, epsilon)
    first = released_radii(mechanism, row.astype(dtype), n, 1)
    for factor in (3, 13):
        multiple = (factor * row).astype(dtype)
        np.testing.assert_array_equal(multiple.astype(np.int64), factor * row)
        other = released_radii(mechanism, multiple, n, 1)
        shift = (other - first).mean() / first.std()
        assert (other == first).all(), f"the radii differ by {shift:.3g} of their standard deviations"


@pytest.mark.parametrize("d", [2, 3, 16, 64, 768, 10_000])
@pytest.mark.parametrize("epsilon", [0.5, 20.0, 50.0])
def test_what_rounding_moves_before_the_grid_is_below_a_millionth_of_a_step(d, epsilon, monkeypatch):
    mechanism, seen = PrivUnit(d, epsilon), []
    monkeypatch.setattr(privunit, "round_steps", lambda values, step: seen.append(values / 1))
    rows = np.random.default_rng(d).normal(size=(max(20, 20_000 // d), d)).astype(np.float32)
    rows *= np.geomspace(1e-30, 1e30, len(rows), dtype=np.float32)[:, None]
    mechanism.release(rows, seeded(6))
    wide = seen[0].astype(np.longdouble)
    radii = np.sqrt((wide * wide).sum(axis=1))
    assert np.abs(radii - np.longdouble(mechanism.scale) / mechanism.step).max() < 1e-6


def mechanisms_of(d):
    return [
        PrivUnit(d, 3.0),
        PrivUnitBall(d, 3.0, 1.5),
        MultivariateLaplace(d, 3.0),
        MultivariateLaplace(d, 3.0, radius=1.5),
    ]


@pytest.mark.parametrize("d", [2, 15, 16, 300])
def test_the_precision_of_the_rows_is_not_released(d):
    # Single precision only rounds what double precision released, which is post-processing.
    rows = np.random.default_rng(d).normal(size=(60, d)).astype(np.float32)
    rows[:3] = np.array([0.0, 1e-45, 3e38])[:, None]
    rows[3] = 0.0
    rows[3, 0] = 1e-45
    for mechanism in mechanisms_of(d):
        # The radius is kept in the type of the rows: here both mean the same rows.
        inside = rows if isinstance(mechanism, PrivUnit) else mechanism.encode(rows).rows
        with np.errstate(over="ignore"):
            expected = mechanism.release(inside.astype(np.float64), seeded(1)).rows.astype(np.float32)
        np.testing.assert_array_equal(mechanism.release(inside, seeded(1)).rows, expected)


def rows_that_fail_elsewhere(d, dtype):
    """Rows with no direction, of a few bits, and next to overflow."""
    kind = np.finfo(dtype)
    rows = np.zeros((6, d), dtype=dtype)
    rows[1, -1] = kind.smallest_subnormal
    rows[2] = -kind.smallest_subnormal
    rows[3] = kind.max
    rows[4, 0] = kind.max
    rows[5, :2] = kind.max, kind.smallest_subnormal
    return rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [2, 3, 64])
def test_no_row_fails_and_all_are_released_at_one_length(d, dtype):
    rows = np.tile(rows_that_fail_elsewhere(d, dtype), (50, 1))
    mechanism = PrivUnit(d, 4.0)
    released = mechanism.release(rows, seeded(2)).rows.astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(released, axis=1), mechanism.scale, rtol=1e-4)
    assert np.isfinite(PrivUnitBall(d, 4.0, 2.0).release(rows, seeded(2)).rows).all()
    assert np.isfinite(MultivariateLaplace(d, 4.0, radius=2.0).release(rows, seeded(2)).rows).all()
    assert not np.isnan(MultivariateLaplace(d, 4.0).release(rows, seeded(2)).rows).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_no_projected_row_fails(dtype, kind):
    rows = rows_that_fail_elsewhere(300, dtype)
    unit = ProjectedRelease(RandomProjection(300, 20), 4.0, noise="privunit")
    assert np.isfinite(unit.project(kind(rows)).rows).all()
    released, moved = unit.release(kind(rows), seeded(3))
    assert moved == 0
    released = released.astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(released, axis=1), unit.inner.scale, rtol=1e-4)
    # A long row keeps its direction, where single precision is all that its projection overflowed of.
    expected = unit.projection.apply(np.ones((1, 300)))[0]
    np.testing.assert_allclose(
        unit.encode(kind(rows)).rows[3], expected / np.linalg.norm(expected), rtol=1e-3 if dtype == np.float32 else 1e-9
    )
    plain = ProjectedRelease(RandomProjection(300, 20), 4.0, sensitivity="spectral")
    assert not np.isnan(plain.release(kind(rows), seeded(3)).rows).any()


@pytest.mark.parametrize(("d", "epsilon"), [(2, 1.0), (3, 8.0), (40, 5.0)])
def test_a_zero_row_is_released_as_a_uniform_direction(d, epsilon):
    mechanism = PrivUnit(d, epsilon)
    released = mechanism.release(np.zeros((20_000, d)), seeded(4)).rows / mechanism.scale
    law = stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)
    for column in (0, d - 1):
        assert ks_pvalue(released[:, column], law.cdf) > THRESHOLD
    np.testing.assert_allclose(mechanism.variance(np.zeros((1, d))), mechanism.scale**2 / d, rtol=1e-12)
    # The density of the uniform law lies between those of a cap and of its complement, so no ratio grows.
    outputs = np.vstack([np.eye(d), -np.eye(d)]) * mechanism.scale
    zero = mechanism.log_likelihood(outputs, np.zeros(d))
    assert (zero == 0).all()
    loss = mechanism.log_likelihood(outputs, np.eye(d)[0]) - zero
    assert loss.min() < 0 < loss.max()
    assert loss.max() - loss.min() <= mechanism.guarantee().epsilon + 1e-9


def test_a_zero_row_takes_its_place_among_others_and_changes_none_of_them():
    mechanism = PrivUnit(30, 2.0)
    rows = np.random.default_rng(0).normal(size=(9, 30))
    with_zero = rows.copy()
    with_zero[4] = 0
    released, other = mechanism.release(rows, seeded(5)).rows, mechanism.release(with_zero, seeded(5)).rows
    np.testing.assert_array_equal(np.delete(released, 4, axis=0), np.delete(other, 4, axis=0))
    assert not (mechanism.encode(with_zero).rows[4]).any()


def exactly(row):
    """The sum of the squares of floats, without rounding."""
    return sum(Fraction(float(value)) ** 2 for value in row)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.sampled_from([np.float32, np.float64]),
    st.floats(0.1, 3.0),
    st.sampled_from([1.0, 1 + 3e-16, 1 + 1e-7, 1.3, 1e20]),
    st.integers(0, 2**32 - 1),
)
def test_a_shortened_row_is_never_longer_than_the_radius(d, dtype, radius, factor, seed):
    row = np.random.default_rng(seed).uniform(0.5, 1, d)
    rows = (row / np.linalg.norm(row) * radius * factor).astype(dtype)[None]
    for table in (rows, sparse.csr_matrix(rows)):
        inside = Ball(d, radius).clip(table).rows
        assert exactly((inside.toarray() if sparse.issparse(inside) else inside)[0]) <= Fraction(radius) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [2, 5, 64, 768, 20_000])
def test_the_margin_of_shrink_factors_covers_every_rounding(d, dtype):
    # Without the margin some of these rows are longer than the radius; equal numbers drive a sum's rounding one way.
    for seed in range(40 if d < 1_000 else 6):
        rng = np.random.default_rng(seed)
        radius = float(rng.uniform(0.1, 3)) if seed % 3 else 1.0
        row = rng.uniform(0.5, 1, d) if seed % 2 else np.full(d, rng.uniform(0.5, 1))
        rows = (row / np.linalg.norm(row) * radius * (1 + (1e-7, 1e-15, 0.3, 3e-16)[seed % 4])).astype(dtype)[None]
        assert 0 < shrink_factors(rows, radius)[0] <= 1
        assert exactly(Ball(d, radius).clip(rows).rows[0]) <= Fraction(radius) ** 2
