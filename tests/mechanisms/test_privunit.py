import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, binomial_pvalue, ks_pvalue, seeded
from scipy import integrate, optimize, special, stats

from skldp.mechanisms.vector import _multivariate_laplace as sphere
from skldp.mechanisms.vector._multivariate_laplace import cap_probability
from skldp.mechanisms.vector._privunit import PrivUnit, PrivUnitBall

DIMENSIONS = [2, 3, 5, 64, 384, 100_000]
EPSILONS = [0.05, 0.5, 1.0, 5.0, 23.0, 50.0]


def draws(mechanism, row, n, seed=1):
    return mechanism.release(np.tile(np.asarray(row), (n, 1)), seeded(seed)).rows


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_density_ratio_is_e_to_the_epsilon_to_nine_digits_and_never_more(d, epsilon):
    mechanism = PrivUnit(d, epsilon)
    t, c = mechanism.cap_threshold, Fraction(cap_probability(mechanism.height, d))
    # Exact arithmetic from the integer coin on: no rounding of p can hide.
    ratio = Fraction(t, 2**64 - t) * (1 - c) / c
    relative = float(ratio) * math.exp(-epsilon) - 1
    assert -1e-9 <= relative <= 0
    assert epsilon * (1 - 1e-9) - 1e-9 <= mechanism.guarantee().epsilon <= epsilon


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3_000), st.floats(0.05, 50))
def test_the_calibration_has_the_least_variance(d, epsilon):
    mechanism = PrivUnit(d, epsilon)

    def log_mean(gamma):
        c = special.betainc((d - 1) / 2, 0.5, 1 - gamma * gamma) / 2
        density = (d - 1) / 2 * math.log1p(-gamma * gamma) - special.betaln(0.5, (d - 1) / 2) - math.log(d - 1)
        return density + math.log(math.expm1(epsilon)) - math.log1p(math.expm1(epsilon) * c)

    best = optimize.minimize_scalar(lambda gamma: -log_mean(gamma), bounds=(1e-9, 1 - 1e-9), method="bounded")
    assert -math.log(mechanism.scale) >= -best.fun - 1e-6
    assert mechanism.gamma * mechanism.scale == pytest.approx(1, abs=1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (3, 2.0), (16, 1.0), (384, 5.0), (2_000, 10.0)])
def test_law_of_the_coordinate_along_the_input(d, epsilon):
    mechanism = PrivUnit(d, epsilon)
    n = 20_000
    row = np.random.default_rng(d).normal(size=d)
    n = n if d < 1_000 else 2_000
    along = draws(mechanism, row, n) @ row / np.linalg.norm(row) / mechanism.scale
    p, c, a = mechanism.cap_threshold / 2**64, mechanism.cap_probability, (d - 1) / 2
    assert binomial_pvalue((along >= mechanism.gamma).sum(), n, p) > THRESHOLD

    def cdf(t):
        uniform = special.betainc(a, a, (1 + np.clip(t, -1, 1)) / 2)
        return np.where(t < mechanism.gamma, uniform * (1 - p) / (1 - c), 1 - p / c * (1 - uniform))

    assert ks_pvalue(along, cdf) > THRESHOLD


@pytest.mark.parametrize(("d", "epsilon"), [(3, 1.0), (16, 4.0), (100, 1.0)])
def test_law_across_the_input_is_uniform(d, epsilon):
    mechanism = PrivUnit(d, epsilon)
    row, other = np.zeros(d), np.zeros(d)
    row[:2], other[:2] = (0.6, 0.8), (0.8, -0.6)
    released = draws(mechanism, row, 20_000) / mechanism.scale
    rest = np.sqrt(1 - (released @ row) ** 2)
    # A fixed coordinate of a uniform point of the sphere of d - 1 dimensions.
    law = stats.beta((d - 2) / 2, (d - 2) / 2, loc=-1, scale=2)
    assert ks_pvalue(released @ other / rest, law.cdf) > THRESHOLD


@pytest.mark.few(1)
@pytest.mark.parametrize("mechanism", [PrivUnit(4, 1.5), PrivUnit(80, 6.0), PrivUnitBall(4, 1.5, 3.0)], ids=repr)
def test_unbiased_with_the_variance_that_it_says(mechanism):
    d = mechanism.n_features
    row = np.random.default_rng(0).uniform(-0.5, 1, d)
    n = 60_000
    released = draws(mechanism, row, n)
    expected = mechanism.encode(row[None]).rows[0]
    variance = mechanism.variance(row[None])[0]
    z = (released.mean(axis=0) - expected) / np.sqrt(variance / n)
    assert stats.chi2.sf((z**2).sum(), d) > THRESHOLD
    spread = released.var(axis=0)
    kurtosis = ((released - expected) ** 4).mean(axis=0) / variance**2
    assert (np.abs(spread / variance - 1) < 5.5 * np.sqrt((kurtosis - 1) / n)).all()


@pytest.mark.parametrize("d", [2, 7, 500])
def test_second_moments_add_up_and_can_be_inverted(d):
    mechanism = PrivUnit(d, 2.0)
    along, across = mechanism.second_moments()
    assert along + (d - 1) * across == pytest.approx(mechanism.scale**2, rel=1e-9)
    row = np.random.default_rng(1).normal(size=d)
    assert mechanism.variance(row[None]).sum() == pytest.approx(mechanism.scale**2 - 1, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [PrivUnit(3, 1.5), PrivUnit(40, 8.0), PrivUnitBall(3, 1.5, 2.5)], ids=repr)
def test_the_second_moments_of_what_was_released_give_those_of_the_rows(mechanism):
    d = mechanism.n_features
    rows = np.random.default_rng(3).uniform(-0.4, 0.9, (2, d))
    inside = mechanism.encode(rows).rows
    # E[z z'] by quadrature, not by the mechanism's own figures: the square of the coordinate along the lifted input.
    sphere = mechanism.sphere if isinstance(mechanism, PrivUnitBall) else mechanism
    radius = getattr(mechanism, "radius", 1.0)
    n, p, c = sphere.n_features, sphere.cap_threshold / 2**64, sphere.cap_probability

    def weighted(angle):
        return math.cos(angle) ** 2 * math.sin(angle) ** (n - 2) / special.beta(0.5, (n - 1) / 2)

    edge = math.acos(sphere.gamma)
    square = (
        p / c * integrate.quad(weighted, 0, edge)[0] + (1 - p) / (1 - c) * integrate.quad(weighted, edge, math.pi)[0]
    )
    along, across = square * sphere.scale**2, (1 - square) / (n - 1) * sphere.scale**2
    outer = inside[:, :, None] * inside[:, None, :]
    released = (along - across) * outer + across * radius**2 * np.eye(d)
    found = mechanism.original_second_moment(released.mean(axis=0), inside.mean(axis=0))
    np.testing.assert_allclose(found, outer.mean(axis=0), atol=1e-7 * sphere.scale**2)
    # And by sampling, each entry within its own error.
    drawn = draws(mechanism, rows[0], 40_000)
    products = drawn[:, :, None] * drawn[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(drawn)) / (along - across)
    found = mechanism.original_second_moment(products.mean(axis=0), drawn.mean(axis=0))
    assert (np.abs(found - outer[0]) <= 6 * error + 1e-9).all()


def test_a_row_of_zeros_counts_as_a_uniform_direction_among_second_moments():
    mechanism = PrivUnit(6, 2.0)
    found = mechanism.original_second_moment(np.eye(6) * mechanism.scale**2 / 6, np.zeros(6))
    np.testing.assert_allclose(found, np.eye(6) / 6, rtol=1e-9, atol=1e-12)


def test_a_row_a_hair_above_the_radius_is_released_as_one_at_the_radius():
    # In single precision it may be longer by some 2^-24: its lifted coordinate is 0 then, and never NaN.
    ball = PrivUnitBall(50, 3.0, 1.0)
    rows = np.random.default_rng(8).normal(size=(2_000, 50))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    assert (np.linalg.norm(rows.astype(float), axis=1) > 1).any()
    released = ball.release(rows, seeded(9))
    assert released.n_moved == 0
    assert np.isfinite(released.rows).all()
    wide = ball.release(rows.astype(float), seeded(9))
    # The lifted coordinate is at most the root of what one is short of the radius.
    np.testing.assert_allclose(released.rows, wide.rows, atol=2e-3 * ball.sphere.scale)


def test_log_likelihood_is_the_density_that_is_sampled():
    mechanism = PrivUnit(6, 1.0)
    a, b = np.eye(6)[:2]
    released = draws(mechanism, a, 4_000)
    loss = mechanism.log_likelihood(released, a) - mechanism.log_likelihood(released, b)
    assert np.abs(loss).max() == pytest.approx(1.0, abs=1e-8)
    # The mean of the likelihood ratio under the law itself is 1.
    ratio = np.exp(-loss)
    assert abs(ratio.mean() - 1) < 5.5 * ratio.std() / math.sqrt(len(ratio))


def test_attack_on_the_low_bits_sees_one_grid_for_all_inputs():
    mechanism = PrivUnit(3, 1.0)
    for row in ([1.0, 0, 0], [0.1, 0.2, 0.3], [1e-30, 1, 1e30]):
        steps = draws(mechanism, row, 500) / mechanism.step
        assert (steps == np.rint(steps)).all()
        assert not np.signbit(steps[steps == 0]).any()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_the_norm_of_a_direction_is_not_released(scale):
    mechanism = PrivUnit(3, 2.0)
    row = np.array([[1.0, 2.0, 3.0]])
    scaled, plain = mechanism.release(row * scale, seeded(4)).rows, mechanism.release(row, seeded(4)).rows
    np.testing.assert_allclose(scaled, plain, atol=1e-3)


def test_the_ball_shortens_what_is_longer_and_takes_zero():
    ball = PrivUnitBall(3, 2.0, 5.0)
    np.testing.assert_allclose(ball.encode(np.array([[30.0, 40, 0], [0, 0, 0]])).rows, [[3, 4, 0], [0, 0, 0]])
    assert np.isfinite(ball.release(np.zeros((10, 3)), seeded(5)).rows).all()


def test_lifting_against_a_random_sign_of_the_direction():
    # What the Notes of PrivUnitBall say.
    sign = PrivUnit(50, 4.0).scale ** 2
    row = np.zeros((2, 50))
    row[1, 0] = 1
    lifted = PrivUnitBall(50, 4.0, 1.0).variance(row).sum(axis=1)
    assert lifted[0] / sign == pytest.approx(0.955, abs=0.001)
    assert lifted[1] / (sign - 1) == pytest.approx(1.0005, abs=0.0003)


@pytest.mark.parametrize("d", [1, 0, 2.5, True, "3"])
def test_refuses_a_bad_dimension(d):
    with pytest.raises(ValueError, match="dimension must be"):
        PrivUnit(d, 1.0)
    with pytest.raises(ValueError, match="dimension must be"):
        PrivUnitBall(d, 1.0, 1.0)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1"])
def test_refuses_a_bad_epsilon_or_radius(bad):
    with pytest.raises(ValueError, match="epsilon must be"):
        PrivUnit(3, bad)
    with pytest.raises(ValueError, match="radius must be"):
        PrivUnitBall(3, 1.0, bad)


def test_a_huge_budget_is_cut_off_not_broken():
    assert PrivUnit(2, 1e5).guarantee().epsilon <= 150
    np.testing.assert_allclose(draws(PrivUnit(4, 1e5), [0, 0, 0, 2.0], 3), np.eye(4)[[3, 3, 3]], atol=1e-4)


@pytest.mark.parametrize(
    ("row", "dtype"),
    [
        ([5e-324] * 2, np.float64),
        ([1.7e308] * 2, np.float64),
        ([1e-45, 1e-45] * 32, np.float32),
        ([3e38] * 64, np.float32),
        ([1e-45] * 3, np.float32),
    ],
)
def test_a_row_near_overflow_or_underflow_is_released_like_any_other(row, dtype):
    # Its direction would not have norm 1 otherwise, and the length of the release would tell it from the rest.
    mechanism = PrivUnit(len(row), 5.0)
    x = np.tile(np.array(row, dtype=dtype), (50, 1))
    np.testing.assert_allclose(mechanism.encode(x).rows, 1 / math.sqrt(len(row)), rtol=1e-6)
    plain = np.ones((50, len(row)), dtype=dtype)
    np.testing.assert_allclose(
        mechanism.release(x, seeded(1)).rows, mechanism.release(plain, seeded(1)).rows, atol=2e-3 * mechanism.scale
    )


def test_an_axis_is_never_released_as_nan(monkeypatch):
    # In the plane a Gaussian vector may lie along (1, 0), and leave nothing across: here the first two draws do.
    mechanism, calls = PrivUnit(2, 1.0), []
    drawn = sphere.gaussians

    def first_without_a_second_coordinate(stream, shape, *rest):
        points = drawn(stream, shape, *rest)
        assert points is rest[-1]
        points[:, 1] *= len(calls) > 1
        points[0, 1] *= len(calls) > 2
        calls.append(shape)
        return points

    monkeypatch.setattr(sphere, "gaussians", first_without_a_second_coordinate)
    out = mechanism.release(np.tile([1.0, 0.0], (5, 1)), seeded(1)).rows
    assert calls == [(5, 2), (5, 2), (5, 2), (1, 2)]
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), mechanism.scale, rtol=1e-3)


@pytest.mark.parametrize("d", [2, 3, 384, 1_000_000])
def test_the_least_epsilon_works_and_smaller_ones_are_refused_by_name(d):
    assert 0 < PrivUnit(d, 1e-8).guarantee().epsilon <= 1e-8
    with pytest.raises(ValueError, match="at least 1e-08"):
        PrivUnit(d, 9e-9)


def test_the_ball_keeps_rows_near_overflow_within_itself():
    mechanism = PrivUnitBall(3, 5.0, radius=1e-4)
    x = np.full((4, 3), 3e38, dtype=np.float32)
    inside = mechanism.encode(x).rows
    assert (np.linalg.norm(inside.astype(np.float64), axis=1) <= 1e-4).all()
    np.testing.assert_allclose(inside, 1e-4 / math.sqrt(3), rtol=1e-5)
    assert np.isfinite(mechanism.release(x, seeded(1)).rows).all()
