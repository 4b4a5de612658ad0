"""PrivUnit for products: the law of the axis, its calibration, and what is made of it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from laws import THRESHOLD, binomial_pvalue, ks_pvalue
from scipy import integrate, optimize, special, stats

from skldp.mechanisms._noise import Noise
from skldp.mechanisms.vector._multivariate_laplace import cap_probability
from skldp.mechanisms.vector._privunit_products import PrivUnitProducts

DIMENSIONS = [1, 2, 10, 63, 1_000]
EPSILONS = [1e-8, 0.05, 1.0, 5.0, 23.0, 150.0]


def released(mechanism, row, n, seed=1):
    return mechanism.release(np.tile(np.asarray(row), (n, 1)), Noise(bytes([seed] * 32), secure=False)).rows


def axes_of(mechanism, rows):
    """The squares of the axis along a row, as the products say, and the matrices that they come from."""
    k = mechanism.n_features
    i, j = np.triu_indices(k)
    matrices = np.zeros((len(rows), k, k))
    matrices[:, i, j] = matrices[:, j, i] = rows / np.where(i == j, 1, math.sqrt(2))
    return matrices * mechanism.slope + (1 - mechanism.mean_square) / k * np.eye(k)


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_density_ratio_is_e_to_the_epsilon_to_nine_digits_and_never_more(d, epsilon):
    mechanism = PrivUnitProducts(d, epsilon)
    t, c = mechanism.cap_threshold, Fraction(2 * cap_probability(mechanism.height, d + 1))
    ratio = Fraction(t, 2**64 - t) * (1 - c) / c
    if epsilon >= 0.05:
        assert -1e-9 <= float(ratio * Fraction(math.exp(-epsilon))) - 1 <= 0
    assert epsilon * (1 - 1e-9) - 1e-9 <= mechanism.guarantee().epsilon <= epsilon
    assert 0 < mechanism.slope <= 1


@pytest.mark.parametrize("d", [1, 2, 10, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
def test_the_caps_have_the_least_variance(d, epsilon):
    a = d / 2

    def square(gamma):
        """E<a, v>^2, by quadrature."""
        density = 1 / special.beta(0.5, a)
        inside, _ = integrate.quad(lambda angle: math.cos(angle) ** 2 * math.sin(angle) ** (d - 1), 0, math.acos(gamma))
        c = special.betainc(a, 0.5, 1 - gamma * gamma)
        more = math.expm1(epsilon)
        return (1 / (d + 1) + more * 2 * density * inside) / (1 + more * c)

    best = optimize.minimize_scalar(lambda gamma: -square(gamma), bounds=(1e-6, 1 - 1e-9), method="bounded")
    mechanism = PrivUnitProducts(d, epsilon)
    assert mechanism.mean_square == pytest.approx(-best.fun, rel=1e-6)
    assert (1 - mechanism.height) ** 2 == pytest.approx(mechanism.mean_square, rel=1e-6)


@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (4, 2.0), (16, 1.0), (30, 5.0)])
def test_law_of_the_axis_along_the_input(d, epsilon):
    mechanism, n = PrivUnitProducts(d, epsilon), 20_000
    row = np.random.default_rng(d).normal(size=d)
    # The lifted vector of norm 1 has no further number.
    row /= np.linalg.norm(row)
    squares = np.einsum("i,nij,j->n", row, axes_of(mechanism, released(mechanism, row, n)), row)
    p, c, edge = mechanism.cap_threshold / 2**64, mechanism.cap_probability, (1 - mechanism.height) ** 2
    assert binomial_pvalue((squares >= edge).sum(), n, p) > THRESHOLD

    def cdf(x):
        uniform = special.betainc(0.5, d / 2, np.clip(x, 0, 1))
        return np.where(x < edge, uniform * (1 - p) / (1 - c), 1 - p / c * (1 - uniform))

    assert ks_pvalue(squares, cdf) > THRESHOLD


def test_the_axis_is_uniform_across_the_input():
    mechanism = PrivUnitProducts(4, 1.5)
    row, other = np.array([0.6, 0.8, 0, 0]), np.array([0.8, -0.6, 0, 0])
    axes = axes_of(mechanism, released(mechanism, row, 20_000))
    along, across = (np.einsum("i,nij,j->n", one, axes, one) for one in (row, other))
    # The square of a coordinate of a uniform point of the sphere of the four dimensions across.
    assert ks_pvalue(across / (1 - along), stats.beta(0.5, 1.5).cdf) > THRESHOLD


@pytest.mark.few(1)
@pytest.mark.parametrize("length", [0.0, 0.3, 1.0, 7.0])
@pytest.mark.parametrize(("d", "epsilon"), [(1, 1.0), (3, 0.5), (5, 6.0)])
def test_unbiased_up_to_norm_1(d, epsilon, length):
    mechanism, n = PrivUnitProducts(d, epsilon), 40_000
    row = np.random.default_rng(d).normal(size=d)
    row *= length / np.linalg.norm(row)
    rows = released(mechanism, row, n)
    i, j = np.triu_indices(d)
    expected = (row[i] * row[j] * np.where(i == j, 1, math.sqrt(2))) / max(1.0, length) ** 2
    np.testing.assert_allclose(mechanism.encode(row[None]).rows[0], expected, atol=1e-12)
    z = (rows.mean(axis=0) - expected) / (rows.std(axis=0) / math.sqrt(n) + 1e-12)
    assert (np.abs(z) < 5.5).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(("d", "epsilon"), [(1, 1.0), (3, 2.0), (6, 8.0)])
def test_the_fourth_moments_are_those_of_what_is_released(d, epsilon):
    mechanism, n, rng = PrivUnitProducts(d, epsilon), 100_000, np.random.default_rng(d)
    row = rng.normal(size=d)
    row *= 0.7 / np.linalg.norm(row)
    S, T = (one + one.T for one in rng.normal(size=(2, d, d)))
    axes = axes_of(mechanism, released(mechanism, row, n))
    both = np.einsum("nij,ij->n", axes, S) * np.einsum("nij,ij->n", axes, T)
    first, second, third = mechanism.fourth_moments()
    s, t = row @ S @ row, row @ T @ row
    expected = first * (np.trace(S) * np.trace(T) + 2 * np.trace(S @ T))
    expected += second * (np.trace(S) * t + np.trace(T) * s + 4 * row @ S @ T @ row) + third * s * t
    assert abs(both.mean() - expected) < 5.5 * both.std() / math.sqrt(n)


@pytest.mark.parametrize("d", [1, 2, 10, 50])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_the_total_variance_is_that_of_the_matrix(d, epsilon):
    mechanism = PrivUnitProducts(d, epsilon)
    first, second, third = mechanism.fourth_moments()
    n = d + 1
    # E|a|^4 = 1: the sum over S = T of an orthonormal basis of symmetric matrices.
    assert first * n * (n + 2) + second * (2 * n + 4) + third == pytest.approx(1, rel=1e-9)
    assert mechanism.mean_variance * (n * (n + 1) / 2 - 1) == pytest.approx(
        ((1 - 1 / n) / mechanism.slope**2 - (1 - 1 / n)), rel=1e-9
    )


def test_a_release_is_on_the_public_grid():
    mechanism = PrivUnitProducts(3, 2.0)
    rows = released(mechanism, [0.2, 0.1, -0.4], 1_000) / mechanism.step
    np.testing.assert_array_equal(rows, np.rint(rows))


@pytest.mark.parametrize("d", [1, 2, 10, 100])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 8.0, 150.0])
def test_no_release_is_beyond_the_bound(d, epsilon):
    mechanism = PrivUnitProducts(d, epsilon)
    shift = (1 - mechanism.mean_square) / d
    # Squares of an axis lie between 0 and 1, and sqrt(2) times other products are at most the root of 1/2.
    largest = max(1 - shift, math.sqrt(0.5) * (d > 1), shift) / mechanism.slope
    assert largest <= mechanism.most < 2.01 * largest


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ((0, 1.0), "dimension"),
        ((3, 0.0), "epsilon"),
        ((3, 1e-9), "epsilon must be at least"),
        ((3, math.nan), "epsilon"),
    ],
)
def test_settings_out_of_range_are_refused(settings, rule):
    with pytest.raises(ValueError, match=rule):
        PrivUnitProducts(*settings)
