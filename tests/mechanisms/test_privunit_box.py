import math

import numpy as np
import pytest
from laws import THRESHOLD
from scipy.stats import norm

from skldp.mechanisms import noise_from
from skldp.mechanisms.numeric._bounded_features import (
    NUMERIC_MECHANISMS,
    BoundedFeatures,
    PrivUnitBox,
    best_mechanism,
    make_mechanism,
    number_of_sampled_features,
    worst_sampled_variance,
)
from skldp.mechanisms.vector._privunit import PrivUnitBall


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_law_is_the_balls(d, epsilon):
    box, ball = PrivUnitBox(epsilon, d), PrivUnitBall(d, epsilon, math.sqrt(d))
    x = np.random.default_rng(d).uniform(-1, 1, (5, d))
    np.testing.assert_allclose(box.variance(x), ball.variance(x), rtol=1e-9)
    assert box.guarantee() == ball.guarantee()
    assert epsilon * (1 - 1e-8) < box.exact_epsilon <= epsilon
    assert (box.bias(x) == 0).all()
    rows = np.random.default_rng(1).normal(size=(20, d))
    second, mean = rows.T @ rows / 20, rows.mean(axis=0)
    in_bounds = BoundedFeatures(box, (-1.0,) * d, (1.0,) * d, n_sampled=d, stated=epsilon)
    expected = ball.original_second_moment(second, mean)
    np.testing.assert_allclose(box.original_second_moment(second, mean), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(in_bounds.original_second_moment(second, mean), expected, rtol=1e-7, atol=1e-7)
    # Corners have the radius as their norm, and are not moved inside it.
    corner = np.ones((1, d))
    key = np.random.default_rng(7)
    ours = box.release(corner, noise_from(key)).rows
    key = np.random.default_rng(7)
    np.testing.assert_allclose(ours, ball.release(corner, noise_from(key)).rows, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_means_and_products_are_without_bias():
    """In the units of three features, at one row with an end, a middle and an inner number."""
    n, x = 100_000, np.array([10.0, 0.0, 0.25])
    mechanism = BoundedFeatures(PrivUnitBox(3.0, 3), (0.0, -1.0, 0.0), (10.0, 1.0, 1.0), n_sampled=3, stated=3.0)
    released = mechanism.release(np.tile(x, (n, 1)), noise_from(np.random.default_rng(0))).rows
    mean = released.mean(axis=0)
    errors = np.sqrt(mechanism.variance(x[None])[0] / n)
    assert (2 * norm.sf(np.abs(mean - x) / errors) > THRESHOLD).all()
    assert released.var(axis=0) == pytest.approx(mechanism.variance(x[None])[0], rel=0.02)
    second = released.T @ released / n
    found = mechanism.original_second_moment(second, mean)
    # Each product's error is at most that of its largest factor's square.
    scale = np.outer(released.std(axis=0), released.std(axis=0))
    assert (np.abs(found - np.outer(x, x)) < 6 * 3 * scale / math.sqrt(n)).all()


@pytest.mark.parametrize("d", [2, 10, 30])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_best_of_several_numbers_is_never_worse_than_any(d, epsilon):
    name, mechanism, k = best_mechanism(epsilon, d, with_points=True)
    least = worst_sampled_variance(mechanism, d, k)
    for other in NUMERIC_MECHANISMS:
        if other != "gaussian":
            n = number_of_sampled_features("auto", other, epsilon, d)
            assert least <= worst_sampled_variance(make_mechanism(other, epsilon, n), d, n) * (1 + 1e-9)
    assert (name == "privunit") == (epsilon >= 2)


def test_no_policy_can_ask_for_it():
    with pytest.raises(ValueError, match="has no integer law"):
        _ = PrivUnitBox(1.0, 3).integer_law
    with pytest.raises(ValueError, match="at least two numbers"):
        PrivUnitBox(1.0, 1)
    with pytest.raises(ValueError, match="n_values must be"):
        PrivUnitBox(1.0, 0)
