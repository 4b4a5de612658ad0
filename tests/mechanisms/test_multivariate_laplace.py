import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, binomial_pvalue, ks_pvalue, seeded
from scipy import stats

from skldp.domains._norms import nearest_rows
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace


@pytest.mark.few(5)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 7, 300])
@pytest.mark.parametrize("sensitivity", [1.0, 1.9])
def test_radius_is_gamma_and_direction_uniform(d, sensitivity, dtype):
    mechanism = MultivariateLaplace(d, 2.5, sensitivity=sensitivity)
    row = np.random.default_rng(d).normal(size=d).astype(dtype)
    kappa = (mechanism.release(np.tile(row, (8_000, 1)), seeded(1)).rows - row).astype(np.float64)
    radius = np.linalg.norm(kappa, axis=1)
    assert ks_pvalue(radius, stats.gamma(d, scale=sensitivity / 2.5).cdf) > THRESHOLD
    if d == 1:
        assert stats.binomtest(int((kappa > 0).sum()), 8_000, 0.5).pvalue > THRESHOLD
        return
    fixed = np.random.default_rng(d + 1).normal(size=d)
    cosine = kappa @ (fixed / np.linalg.norm(fixed)) / radius
    assert ks_pvalue(cosine, stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2).cdf) > THRESHOLD
    # The radius tells nothing about the direction.
    assert stats.spearmanr(radius, cosine).pvalue > THRESHOLD


def test_variance_is_that_of_the_law():
    mechanism = MultivariateLaplace(20, 2.0, sensitivity=1.5)
    kappa = mechanism.release(np.zeros((50_000, 20)), seeded(2)).rows
    expected = mechanism.variance(np.zeros((1, 20)))[0, 0]
    assert expected == 21 * 1.5**2 / 4
    assert kappa.var() == pytest.approx(expected, rel=5.5 * math.sqrt(3 / kappa.size) * 2)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.floats(0.1, 20), st.floats(0.5, 2), st.integers(0, 2**32 - 1))
def test_the_density_ratio_never_exceeds_epsilon_times_the_distance(d, epsilon, sensitivity, seed):
    rng = np.random.default_rng(seed)
    mechanism = MultivariateLaplace(d, epsilon, sensitivity=sensitivity)
    x, y = rng.normal(size=(2, 50, d))
    # Along the line through both the bound is met.
    outputs = np.vstack([rng.normal(size=(49, d)) * 5, y[-1] + 3 * (y[-1] - x[-1])])
    loss = np.abs(mechanism.log_likelihood(outputs, x) - mechanism.log_likelihood(outputs, y))
    bound = epsilon / sensitivity * np.linalg.norm(x - y, axis=1)
    assert (loss <= bound * (1 + 1e-9) + 1e-9).all()
    assert loss[-1] == pytest.approx(bound[-1], rel=1e-6, abs=1e-9)


def test_attack_on_the_low_bits_sees_one_grid_for_all_inputs():
    mechanism = MultivariateLaplace(2, 1.0)
    for x in (0.0, 1.0, math.pi, 1e-20):
        steps = mechanism.release(np.full((300, 2), x), seeded(3)).rows / mechanism.step
        assert (steps == np.rint(steps)).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(1, 6), st.sampled_from([1.0, 1e-4, 1e4]), st.integers(0, 2**32 - 1))
def test_nearest_is_that_of_the_plain_loop(n_words, d, offset, seed):
    rng = np.random.default_rng(seed)
    # Small whole numbers far from 0: many ties, and cancellation in the matrix product.
    words = rng.integers(-2, 3, (n_words, d)) + offset
    values = np.vstack([rng.normal(size=(20, d)) + offset, words[rng.integers(n_words, size=5)]])
    expected = [int(np.argmin([sum((v - w) ** 2) for w in words])) for v in values]
    np.testing.assert_array_equal(nearest_rows(values, words), expected)


def test_a_row_that_is_no_word_is_perturbed_as_it_is():
    # The vocabulary is chosen from after the noise, so that nothing is moved into it before.
    words, row = np.array([[0.0], [1.0]]), np.full((20_000, 1), 0.4)
    mechanism = MultivariateLaplace(1, 2.0, vocabulary=words)
    released = mechanism.release(row, seeded(5))
    assert released.n_moved == 0
    # The noisy number is nearer to 1 from 0.5 on, which Laplace noise of the scale 1/2 reaches with e^(-0.2) / 2.
    assert binomial_pvalue((released.rows == 1).sum(), 20_000, math.exp(-0.2) / 2) > THRESHOLD
    with pytest.raises(ValueError, match="nearest words"):
        mechanism.original_second_moment(np.eye(1), np.zeros(1))


def test_the_second_moments_of_what_was_released_give_those_of_the_rows():
    mechanism = MultivariateLaplace(3, 2.0, sensitivity=1.5, radius=2.0)
    rows = np.random.default_rng(1).normal(size=(100_000, 3)) * [1.0, 0.5, 0.1]
    inside, released = mechanism.encode(rows).rows, mechanism.release(rows, seeded(6)).rows
    found = mechanism.original_second_moment(released.T @ released / len(rows), released.mean(axis=0))
    differences = released[:, :, None] * released[:, None, :] - inside[:, :, None] * inside[:, None, :]
    error = differences.std(axis=0) / math.sqrt(len(rows))
    assert (np.abs(found - inside.T @ inside / len(rows)) < 5.5 * error).all()
    exact = rows[:5].T @ rows[:5] + np.eye(3) * 4 * 1.5**2 / 4
    np.testing.assert_allclose(mechanism.original_second_moment(exact, np.zeros(3)), rows[:5].T @ rows[:5])


def test_radius_shortens_and_declares_the_diameter():
    mechanism = MultivariateLaplace(2, 3.0, radius=5.0)
    np.testing.assert_allclose(mechanism.encode(np.array([[30.0, 40.0], [1, 1]])).rows, [[3, 4], [1, 1]])
    guarantee = mechanism.guarantee()
    assert (guarantee.unit, guarantee.epsilon, guarantee.plain_epsilon) == ("distance", 3.0, 30.0)
    assert MultivariateLaplace(2, 3.0).guarantee().plain_epsilon == math.inf


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_features": 0}, "dimension must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"sensitivity": 0}, "sensitivity must be"),
        ({"radius": -1}, "radius must be"),
        ({"vocabulary": np.ones((4, 3))}, "vocabulary must have the shape"),
        ({"vocabulary": np.ones(2)}, "vocabulary must have the shape"),
        ({"vocabulary": np.ones((0, 2))}, "vocabulary must have the shape"),
        ({"vocabulary": np.array([[0, np.nan]])}, "vocabulary must be finite"),
    ],
)
def test_refuses(kwargs, message):
    with pytest.raises(ValueError, match=message):
        MultivariateLaplace(**({"n_features": 2, "epsilon": 1.0} | kwargs))
