"""The papers' anchor values, the mechanisms by name, and the choice of the best one."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.laws._few_answers import three_outputs_zero_probability, worst_quadratic
from skldp.laws._lattice import HYBRID_THRESHOLD, piecewise_shape
from skldp.mechanisms.numeric._additive import analytic_gaussian_sigma
from skldp.mechanisms.numeric._bounded_features import (
    JOINT_MECHANISMS,
    NUMERIC_MECHANISMS,
    BoundedFeatures,
    best_mechanism,
    make_mechanism,
    mean_sampled_variance,
    number_of_sampled_features,
    worst_sampled_variance,
)
from skldp.mechanisms.numeric._unit_mechanisms import (
    Duchi,
    DuchiVector,
    Hybrid,
    HybridThreeOutputs,
    Piecewise,
    ThreeOutputs,
)


def test_anchor_values_at_epsilon_one():
    assert Hybrid(1.0).worst_variance == pytest.approx(4.289, abs=5e-4)
    assert Piecewise(1.0).worst_variance == pytest.approx(5.224, abs=5e-4)
    assert Duchi(1.0).worst_variance == pytest.approx(4.683, abs=5e-4)
    assert ThreeOutputs(1.0).worst_variance == pytest.approx(4.4555, abs=5e-5)
    assert ThreeOutputs(4.0).worst_variance == pytest.approx(0.3182, abs=5e-5)
    assert analytic_gaussian_sigma(1.0, 1e-5) == pytest.approx(3.7306, abs=5e-5)


def test_anchor_values_of_768_features():
    def worst(mechanism):
        return worst_sampled_variance(mechanism, 768, mechanism.n_outputs)

    assert worst(Hybrid(1.0)) == pytest.approx(4061, abs=0.5)
    assert worst(Piecewise(1.0)) == pytest.approx(4779, abs=0.5)
    # The formula in exact fractions gives 5503.3789.
    assert worst(DuchiVector(1.0, 768)) == pytest.approx(5503.3789, abs=2e-3)
    assert worst_sampled_variance(make_mechanism("laplace", 1.0, 768), 768, 768) == pytest.approx(4.7e6, rel=5e-3)


@pytest.mark.parametrize("epsilon", [0.5, 0.62, 1.0, 2.0, 4.0, 8.0])
def test_hybrid_variance_is_the_papers_and_constant(epsilon):
    mechanism = Hybrid(epsilon)
    x = np.linspace(-1, 1, 21)
    h, odds = math.exp(epsilon / 2), math.exp(epsilon)
    if epsilon > HYBRID_THRESHOLD:
        paper = np.full(21, (h + 3) / (3 * h * (h - 1)) + (odds + 1) ** 2 / (h * (odds - 1) ** 2))
    else:
        paper = ((odds + 1) / (odds - 1)) ** 2 - x**2
    assert mechanism.variance(x) == pytest.approx(paper, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_pm_opt_has_the_least_worst_variance_of_the_family(epsilon):
    def worst(t):
        odds = math.exp(epsilon)
        return (t + 1) / (odds - 1) + (t + odds) * ((t + 1) ** 3 + odds - 1) / (3 * t**2 * (odds - 1) ** 2)

    t, odds = piecewise_shape(epsilon, "opt"), math.exp(epsilon)
    assert t**4 + 2 * odds * t**3 - 2 * odds * t - odds**2 == pytest.approx(0, abs=1e-7 * odds**2)
    assert worst(t) <= min(worst(t * 0.999), worst(t * 1.001))
    assert worst(t) <= worst(piecewise_shape(epsilon, "sub")) <= worst(piecewise_shape(epsilon, "pm"))


@settings(max_examples=40, deadline=None)
@given(epsilon=st.floats(0.05, 10), other=st.floats(0, 1))
def test_three_outputs_has_the_least_worst_variance_over_a(epsilon, other):
    def worst(a):
        c = odds * (odds + 1) / ((odds - 1) * (odds - a))
        return worst_quadratic(c**2 * (1 - a), c**2 * a * (1 - 1 / odds), -1)

    odds = math.exp(epsilon)
    chosen = three_outputs_zero_probability(epsilon)
    assert worst(chosen) <= worst(other * odds / (odds + 2)) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 0.62, 1.0, 2.0, 5.0])
def test_hybrid_tp_is_no_worse_than_any_other_proportion(epsilon):
    mechanism = HybridThreeOutputs(epsilon)
    x = np.linspace(0, 1, 401)
    sub, three = Piecewise(epsilon, "sub").variance(x), ThreeOutputs(epsilon).variance(x)
    others = [(part * sub + (1 - part) * three).max() for part in np.linspace(0, 1, 101)]
    assert mechanism.worst_variance <= min(others) * (1 + 1e-6)


@pytest.mark.parametrize(
    "quadratic", [(1.0, 0.0, -1.0), (1.0, 3.0, -1.0), (1.0, 1.0, -1.0), (0.5, 0.0, 2.0), (1.0, 0.5, 0.0)]
)
def test_worst_quadratic(quadratic):
    x = np.linspace(0, 1, 10_001)
    assert worst_quadratic(*quadratic) == pytest.approx(np.polyval(quadratic[::-1], x).max(), abs=1e-8)


@pytest.mark.parametrize("name", NUMERIC_MECHANISMS)
@pytest.mark.parametrize("n_released", [1, 3])
def test_by_name_within_one_epsilon(name, n_released):
    if name == "privunit" and n_released == 1:
        with pytest.raises(ValueError, match="PrivUnit needs at least two numbers"):
            make_mechanism(name, 1.5, n_released)
        return
    mechanism = make_mechanism(name, 1.5, n_released, 1e-6 if name == "gaussian" else 0.0)
    assert mechanism.n_outputs == (n_released if name in JOINT_MECHANISMS else 1)
    total = mechanism.guarantee().epsilon * (n_released // mechanism.n_outputs)
    assert 1.5 * (1 - 1e-6) <= total <= 1.5


def test_by_name_refuses():
    with pytest.raises(ValueError, match="mechanism must be one of"):
        make_mechanism("sine_wave", 1.0)
    with pytest.raises(ValueError, match=r"delta must lie inside \(0, 1\); got 0.0"):
        make_mechanism("gaussian", 1.0)
    with pytest.raises(ValueError, match="Only the Gaussian mechanism has a delta"):
        make_mechanism("hybrid", 1.0, delta=1e-5)
    with pytest.raises(ValueError, match=r"epsilon must be at least 0\.001, since 1000 values share it"):
        make_mechanism("hybrid", 0.0009, n_released=1000)


def test_number_of_sampled_features():
    chosen = [number_of_sampled_features("auto", "piecewise", eps, 10) for eps in (1e-6, 2.5, 4.0, 5.0, 7.0, 24.9, 1e9)]
    assert chosen == [1, 1, 2, 2, 3, 10, 10]
    assert number_of_sampled_features("all", "hybrid", 1.0, 10) == 10
    assert number_of_sampled_features("auto", "duchi_vector", 1.0, 10) == 10
    assert number_of_sampled_features(np.int64(3), "gaussian", 1.0, 10) == 3
    for bad in (0, 11, -1, True, 2.0, "some", None):
        with pytest.raises(ValueError, match=r"n_sampled_features, .* must be"):
            number_of_sampled_features(bad, "hybrid", 1.0, 10)


def test_the_number_of_sampled_features_follows_the_objective():
    """A law is chosen by the error under the prior, here of numbers at the ends, where sampling costs the most."""
    for prior in ((), (1.0,), (1.0, *[0.0] * 20, 1.0), (0.0, 0.0, 1.0, 0.0, 0.0)):
        k = number_of_sampled_features("auto", "points", 4.0, 3, prior)
        laws = {n: make_mechanism("points", 4.0, n, prior=prior) for n in (1, 2, 3)}
        if prior:
            errors = [mean_sampled_variance(law, 3, n, prior) for n, law in laws.items()]
        else:
            errors = [worst_sampled_variance(law, 3, n) for n, law in laws.items()]
        assert errors[k - 1] == min(errors)


@pytest.mark.few(8)
@pytest.mark.parametrize("n_sampled", ["auto", "all", 2])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_best_is_the_best(epsilon, n_sampled, delta):
    name, mechanism, n_released = best_mechanism(epsilon, 5, n_sampled=n_sampled, delta=delta, with_points=True)
    least = worst_sampled_variance(mechanism, 5, n_released)
    for other in NUMERIC_MECHANISMS:
        if other == "gaussian" and not delta:
            continue
        k = number_of_sampled_features(n_sampled, other, epsilon, 5)
        rival = make_mechanism(other, epsilon, k, delta if other == "gaussian" else 0.0)
        assert least <= worst_sampled_variance(rival, 5, k) * (1 + 1e-9)
    assert name in NUMERIC_MECHANISMS


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-3, 50), st.integers(1, 60))
def test_shares_add_up_to_no_more_than_epsilon(epsilon, n):
    # Laplace has no margin of its own: a share rounded up would show.
    release = BoundedFeatures(
        make_mechanism("laplace", epsilon, n), (0.0,) * n, (1.0,) * n, n_sampled=n, stated=epsilon
    )
    total = release.guarantee().epsilon
    assert n * Fraction(release.mechanism.exact_epsilon) <= Fraction(total) <= Fraction(epsilon)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [one for one in NUMERIC_MECHANISMS if one not in (*JOINT_MECHANISMS, "points")])
def test_another_number_of_sampled_features_has_no_smaller_variance(name):
    """The error of the choice over the least error of all choices was up to 1.25 by Equation 12 alone."""
    for epsilon in (0.5, 2.4, 3.3, 4.0, 6.0, 7.0, 8.0, 10.0):
        for d in (2, 5, 20):
            errors = [worst_sampled_variance(make_mechanism(name, epsilon, k), d, k) for k in range(1, d + 1)]
            chosen = number_of_sampled_features("auto", name, epsilon, d)
            assert errors[chosen - 1] <= min(errors) * 1.05
