"""The released law of every numeric mechanism, enumerated and sampled: epsilon, mean, variance, reachable outputs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import duchi_vector_law, released, seeded

from skldp.laws._lattice import piecewise_shape
from skldp.mechanisms.numeric._additive import Gaussian, Laplace
from skldp.mechanisms.numeric._bounded_features import (
    _ALONE,
    BoundedFeatures,
)
from skldp.mechanisms.numeric._unit_mechanisms import (
    Duchi,
    DuchiVector,
    Hybrid,
    HybridThreeOutputs,
    Piecewise,
    SquareWave,
    ThreeOutputs,
)

EPSILONS = (0.01, 0.1, 0.5, 0.62, 1, 2, 4, 8)
INPUTS = (-1.0, -0.83, -1 / 3, -1e-12, 0.0, 0.25, 0.7071067811865476, 1.0)
COARSE = {
    "duchi": Duchi,
    "three_outputs": ThreeOutputs,
    "piecewise": lambda eps: Piecewise(eps, "pm", 6),
    "piecewise_sub": lambda eps: Piecewise(eps, "sub", 6),
    "piecewise_opt": lambda eps: Piecewise(eps, "opt", 6),
    "square_wave": lambda eps: SquareWave(eps, 6),
    "hybrid": lambda eps: Hybrid(eps, 6),
    "hybrid_tp": lambda eps: HybridThreeOutputs(eps, 6),
}
# Every name of a mechanism of one number, so that a new one is tested.
FINE = {name: make for name, make in _ALONE.items() if name not in ("ldp_fl", "points")} | {
    "gaussian": lambda eps: Gaussian(eps, 1e-5)
}


def worst_log_ratio(laws):
    """From exact weights of equal sum: the largest ratio of one output's weights, as an accurate logarithm."""
    return max(math.log1p((max(column) - min(column)) / min(column)) for column in zip(*laws, strict=True))


def moments(outputs, weights):
    total = sum(weights)
    values = [Fraction(value) for value in outputs.tolist()]
    mean = sum(value * weight for value, weight in zip(values, weights, strict=True)) / total
    square = sum(value**2 * weight for value, weight in zip(values, weights, strict=True)) / total
    return mean, square - mean**2


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", COARSE)
def test_enumerated_law(name, epsilon):
    mechanism = COARSE[name](epsilon)
    laws = [mechanism.output_law(x) for x in INPUTS]
    outputs = laws[0][0]
    assert all(np.array_equal(outputs, other) for other, _ in laws), "every input reaches the same outputs"
    assert len({sum(weights) for _, weights in laws}) == 1
    assert all(min(weights) > 0 for _, weights in laws)

    stated = mechanism.guarantee()
    found = worst_log_ratio([weights for _, weights in laws])
    assert found <= stated.epsilon <= epsilon == stated.stated
    assert found >= epsilon * (1 - 1e-6)

    variances = mechanism.variance(np.array(INPUTS))
    for x, bias, variance, (_, weights) in zip(INPUTS, mechanism.bias(INPUTS), variances, laws, strict=True):
        mean, spread = moments(outputs, weights)
        scale = math.sqrt(spread)
        assert abs(float(mean - Fraction(x)) - bias) <= 1e-15 * scale
        assert abs(bias) <= 4e-16 * max(1, scale)
        assert variance == pytest.approx(float(spread), rel=1e-11)
    assert variances.max() <= mechanism.worst_variance * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(sorted(COARSE)),
    epsilon=st.floats(1e-6, 30),
    pair=st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (-1.0, 0.0)]) | st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_no_pair_of_inputs_exceeds_the_guarantee(name, epsilon, pair):
    mechanism = COARSE[name](epsilon)
    found = worst_log_ratio([mechanism.output_law(x)[1] for x in pair])
    assert found <= mechanism.guarantee().epsilon <= epsilon


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(set(FINE) - {"gaussian"})), epsilon=st.floats(1e-6, 24))
def test_guarantee_is_tight_whatever_the_epsilon(name, epsilon):
    assert epsilon * (1 - 1e-6) <= FINE[name](epsilon).guarantee().epsilon <= epsilon


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(FINE)), epsilon=st.floats(1e-3, 24), x=st.floats(-1, 1))
def test_bias_is_rounding_only(name, epsilon, x):
    mechanism = FINE[name](epsilon)
    assert abs(float(mechanism.bias(x))) <= 1e-15 * max(1.0, math.sqrt(mechanism.worst_variance))


@settings(max_examples=200, deadline=None)
@given(epsilon=st.floats(1e-6, 30))
def test_three_outputs_integers_fall_with_the_size_of_the_input(epsilon):
    """A wrong sign that became likelier by rounding made the worst ratio one between 0 and 1, above the guarantee."""
    law = ThreeOutputs(epsilon).integer_law
    zero, zero_lost, wrong, wrong_lost = law.zero, law.zero_lost, law.wrong, law.wrong_lost
    assert 0 <= zero_lost <= zero
    assert 0 <= wrong_lost < wrong
    assert zero + 2 * wrong == 2**64
    assert all(value == int(float(value)) for value in (zero_lost, wrong_lost))


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("x", [-5e-324, -1e-220, -1e-30, 5e-324])
def test_inputs_next_to_zero(name, x):
    mechanism = FINE[name](1.0)
    assert np.isfinite(released(mechanism, np.full(100, x), seeded(0))).all()
    assert abs(float(mechanism.bias(x))) < 1e-15
    assert float(mechanism.variance(x)) == pytest.approx(float(mechanism.variance(0.0)), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(epsilon=st.floats(1e-6, 30), variant=st.sampled_from(["pm", "sub", "opt"]), bits=st.integers(3, 30))
def test_piecewise_integers_fit(epsilon, variant, bits):
    mechanism = Piecewise(epsilon, variant, bits)
    law = mechanism.integer_law
    n_cells, n_inner, base, extra = law.n_cells, law.n_inner, law.base, law.extra
    assert base > 0
    assert extra > 0
    assert 2**60 < n_cells * base + n_inner * extra < 2**63
    assert n_cells % 2 == n_inner % 2 == 1
    start, part = law._start(np.array([-1.0, 1.0]))
    assert start[0] >= 0
    assert start[1] + n_inner + (part[1] > 0) <= n_cells


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("variant", ["pm", "sub", "opt", "square_wave"])
def test_piecewise_variance_is_the_papers(epsilon, variant):
    t, odds = piecewise_shape(epsilon, variant), math.exp(epsilon)
    x = np.linspace(-1, 1, 11)
    paper = (t + 1) * x**2 / (odds - 1) + (t + odds) * ((t + 1) ** 3 + odds - 1) / (3 * t**2 * (odds - 1) ** 2)
    # The square wave's inner interval has the fewest cells at a large epsilon.
    assert Piecewise(epsilon, variant).variance(x) == pytest.approx(paper, rel=3e-5)


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_sign_of_zero_tells_nothing(name, dtype):
    """A zero times a sign is -0.0 for negative inputs only, which is as plain as the input's sign itself."""
    mechanism = COARSE.get(name, FINE[name])(1.0)
    for x in (-1.0, -0.4, -0.0, 0.0, 1.0):
        drawn = released(mechanism, np.full(5_000, x, dtype=dtype), seeded(11))
        assert not np.signbit(drawn[drawn == 0]).any()


@pytest.mark.parametrize("name", FINE)
def test_values_outside_are_moved_and_counted_but_no_figure_is_told_of_them(name):
    mechanism = FINE[name](1.0)
    far, near = (
        mechanism.release([[0.0], [1.5], [-9.0]], seeded(0)),
        mechanism.release([[0.0], [1.0], [-1.0]], seeded(0)),
    )
    assert (far.n_moved, near.n_moved) == (2, 0)
    assert np.array_equal(far.rows, near.rows)
    for bad in (1.0000001, -1.5, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"values must lie in \[-1, 1\]"):
            mechanism.variance([0.0, bad])


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, 10**400, True, "1", None])
def test_bad_epsilon_is_refused(name, bad):
    with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
        FINE[name](bad)


@pytest.mark.parametrize("name", FINE)
def test_epsilon_that_would_round_away_is_refused_with_the_least_usable_one(name):
    with pytest.raises(ValueError, match="epsilon must be at least 1e-06"):
        FINE[name](9e-7)
    assert FINE[name](1e-6).guarantee().epsilon == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("epsilon", [25.0, 700.0, 1e6])
@pytest.mark.parametrize("name", FINE)
def test_a_huge_epsilon_is_never_exceeded(name, epsilon):
    mechanism = FINE[name](epsilon)
    assert mechanism.guarantee().epsilon <= epsilon
    assert np.isfinite(released(mechanism, np.linspace(-1, 1, 99), seeded(3))).all()


def duchi_vector_reference(epsilon, x):
    """Probabilities from the paper's definition: all v, then all s, in the order of duchi_vector_law."""
    d, odds = len(x), math.exp(epsilon)
    signs = 1 - 2 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    law = np.zeros(2**d)
    for v in signs:
        agree = signs @ v > 0
        n_agree = agree.sum()
        p = odds * n_agree / ((odds - 1) * n_agree + 2**d)
        chance = np.prod((1 + v * x) / 2)
        law += chance * np.where(agree, p / n_agree, (1 - p) / (2**d - n_agree))
    return signs, law


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_duchi_vector_enumerated(d, epsilon):
    mechanism = DuchiVector(epsilon, d)
    inputs = [np.ones(d), -np.ones(d), np.linspace(-1, 0.8, d), np.where(np.arange(d) % 2, 1.0, -1.0)]
    laws = []
    for x in inputs:
        outputs, law = duchi_vector_law(mechanism, x)
        signs, reference = duchi_vector_reference(epsilon, x)
        assert sum(law) == 1
        assert np.array_equal(np.sign(outputs), signs)
        assert [float(chance) for chance in law] == pytest.approx(reference, rel=1e-6)
        mean = [float(sum(Fraction(v) * p for v, p in zip(column, law, strict=True))) for column in outputs.T.tolist()]
        assert mean == pytest.approx(x, abs=1e-14 * mechanism.integer_law.largest)
        assert np.abs(mechanism.bias(x)).max() < 1e-15 * mechanism.integer_law.largest
        laws.append(law)
    found = worst_log_ratio(laws)
    assert epsilon * (1 - 1e-6) <= found <= mechanism.guarantee().epsilon <= epsilon


def test_duchi_vector_with_ties_on_both_sides_would_break_the_guarantee():
    """Wang et al. 2019 with {>=} and {<=}: ln(1 + e^eps) instead of eps."""
    d, odds = 2, math.e
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    p = odds / (odds + 1)
    laws = []
    for v in signs:
        up, down = signs @ v >= 0, signs @ v <= 0
        laws.append(p * up / up.sum() + (1 - p) * down / down.sum())
    assert np.log(np.max(laws, axis=0) / np.min(laws, axis=0)).max() == pytest.approx(math.log(1 + math.e))
    assert DuchiVector(1.0, d).guarantee().epsilon <= 1


@pytest.mark.parametrize(
    ("d", "message"), [(0, "n_values"), (True, "n_values"), (2.5, "n_values"), (10**6, "n_values")]
)
def test_duchi_vector_refuses(d, message):
    with pytest.raises(ValueError, match=message):
        DuchiVector(1.0, d)


def test_bad_shapes_of_piecewise_are_refused():
    with pytest.raises(ValueError, match="variant must be one of"):
        Piecewise(1.0, "best")
    with pytest.raises(ValueError, match="variant must be one of"):
        piecewise_shape(1.0, "best")
    for make in (lambda: Piecewise(1.0, lattice_bits=2), lambda: Hybrid(1.0, 31), lambda: HybridThreeOutputs(1.0, 2)):
        with pytest.raises(ValueError, match="lattice_bits must be a whole number from 3 to 30"):
            make()


@pytest.mark.parametrize("name", FINE)
def test_squares_are_told_where_the_law_identifies_them(name):
    mechanism = FINE[name](1.0)
    x = np.linspace(-1, 1, 9)
    squares = mechanism.variance(x) + x**2
    if name in ("duchi", "three_outputs", "hybrid_tp"):
        with pytest.raises(ValueError, match="does not identify the squares"):
            mechanism.original_squares(squares)
    else:
        # But for where a number lies between two points of the lattice.
        assert mechanism.original_squares(squares) == pytest.approx(x**2, abs=1e-13 * mechanism.worst_variance)


@pytest.mark.parametrize("name", sorted(COARSE))
@pytest.mark.parametrize("epsilon", [0.5, 0.65, 3.0])
def test_squares_of_the_enumerated_law(name, epsilon):
    """E z^2 summed over all outputs, with a coarse lattice: right within a quarter of the squared step."""
    mechanism = COARSE[name](epsilon)
    laws = [mechanism.output_law(x) for x in INPUTS]
    squares = np.array([float(moments(*law)[1] + moments(*law)[0] ** 2) for law in laws])
    if len(np.unique(squares.round(9))) == 1 or mechanism.variance_coefficients[1]:
        with pytest.raises(ValueError, match="does not identify the squares"):
            mechanism.original_squares(squares)
    else:
        step, part = mechanism.step if name == "laplace" else 1.0, 1.0
        if name != "laplace":
            lattice, part = mechanism.integer_law.lattice_part("Squares")
            step = lattice.step
        slack = part * step**2 / 4 / (1 + mechanism.variance_coefficients[2])
        error = mechanism.original_squares(squares) - np.square(INPUTS)
        assert (np.abs(error) <= slack * (1 + 1e-9)).all()


@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 3), (4, 2)])
@pytest.mark.parametrize("make", [Hybrid, lambda eps: Piecewise(eps, lattice_bits=16), Laplace])
def test_second_moments_of_rows_in_their_own_units(make, d, k):
    """Exact: the mean of z z' of one row, from the variances and the chance of two features to be chosen together."""
    release = BoundedFeatures(make(4.0), (-1.0, 0.0, 5.0, 9.0)[:d], (1.0, 8.0, 6.0, 19.0)[:d], n_sampled=k, stated=9.0)
    x, c = np.array([0.3, 5.0, 5.1, 18.0])[:d], release.center
    together = d * (k - 1) / (k * (d - 1)) if d > 1 else 1.0
    second = together * np.outer(x - c, x - c)
    np.fill_diagonal(second, release.variance(x[None])[0] + (x - c) ** 2)
    second += np.outer(x, c) + np.outer(c, x) - np.outer(c, c)
    found = release.original_second_moment(second, x)
    np.testing.assert_allclose(found, np.outer(x, x), rtol=1e-9, atol=1e-6)


def test_second_moments_of_numbers_released_together():
    mechanism = Gaussian(2.0, 1e-5, 3)
    x = np.array([0.5, -1.0, 0.25])
    second = np.outer(x, x) + np.diag(mechanism.variance(x))
    np.testing.assert_allclose(mechanism.original_second_moment(second, x), np.outer(x, x), atol=1e-9)
    for unknown in (DuchiVector(2.0, 3), DuchiVector(2.0, 4)):
        with pytest.raises(ValueError, match="is the same for all numbers"):
            unknown.original_second_moment(np.eye(unknown.n_outputs), np.zeros(unknown.n_outputs))


@pytest.mark.parametrize("mechanism", [Hybrid(3.0), Gaussian(3.0, 1e-5, 2)], ids=repr)
def test_second_moments_of_sampled_releases(mechanism):
    release = BoundedFeatures(mechanism, (0.0, 0.0, 0.0), (1.0, 1.0, 4.0), n_sampled=2, stated=9.0)
    n, x = 400_000, np.array([0.9, 0.2, 3.5])
    drawn = release.release(np.tile(x, (n, 1)), seeded(5)).rows
    found = release.original_second_moment(drawn.T @ drawn / n, drawn.mean(axis=0))
    # Each entry is a mean over rows of what has the largest fourth moments of these laws.
    products = drawn[:, :, None] * drawn[:, None, :]
    spread = 3 * products.std(axis=0) / math.sqrt(n)
    assert (np.abs(found - np.outer(x, x)) < 5.5 * (spread + 4 * drawn.std(axis=0).max() / math.sqrt(n))).all()
