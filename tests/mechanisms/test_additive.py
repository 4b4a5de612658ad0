"""Laplace and Gaussian on the lattice: the law, the guarantee, calibration, and Mironov's attack."""

import decimal
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, chi_square_pvalue, released, seeded

from skldp.mechanisms.numeric._additive import Gaussian, Laplace, analytic_gaussian_sigma

INPUTS = (-1.0, -0.4, 0.0, 1 / 3, 0.9999, 1.0)


def textbook_laplace(x, scale, seed):
    u = np.random.default_rng(seed).random(x.shape)
    sign = np.where(np.random.default_rng(seed + 1).random(x.shape) < 0.5, -1.0, 1.0)
    return x + scale * sign * np.log(1 - u)


def share_on_fine_grid(outputs):
    """Of the outputs near 0: how many are multiples of 2^-53, which tells a sum with 1 from a sum with 0."""
    near = outputs[np.abs(outputs) < 0.25]
    return np.mean(near * 2.0**53 == np.floor(near * 2.0**53))


def test_mironovs_attack_tells_inputs_apart_in_textbook_noise_only():
    zeros, ones = np.zeros(50_000), np.ones(50_000)
    assert share_on_fine_grid(textbook_laplace(ones, 2.0, 0)) == 1.0
    assert share_on_fine_grid(textbook_laplace(zeros, 2.0, 0)) < 0.9
    for mechanism in (Laplace(1.0), Gaussian(1.0, 1e-5)):
        for values in (ones, zeros):
            assert share_on_fine_grid(released(mechanism, values, seeded(0))) == 1.0


@pytest.mark.parametrize(
    "mechanism", [Laplace(1.0), Laplace(0.013), Gaussian(1.0, 1e-5), Gaussian(0.2, 1e-9, 50)], ids=repr
)
def test_every_output_is_on_the_lattice_and_its_place_on_it_tells_nothing(mechanism):
    for seed, x in enumerate((0.0, 1.0, 0.1, -1 / 3, 5e-324)):
        steps = released(mechanism, np.full(20_000, x), seeded(seed)) / mechanism.step
        assert np.array_equal(steps, np.floor(steps))
        assert np.abs(steps).max() < 2**53
        # The low bits of the place are uniform for every input.
        low_bits = (steps.astype(np.int64) & 15).astype(int)
        assert chi_square_pvalue(np.bincount(low_bits, minlength=16), np.full(16, 1 / 16)) > THRESHOLD


def lattice(mechanism, width):
    n = math.ceil(width / mechanism.step)
    return np.arange(-n, n + 1) * mechanism.step


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 0.62, 1, 2, 4, 8])
def test_laplace_law(epsilon):
    mechanism = Laplace(epsilon, 3)
    outputs = lattice(mechanism, 1 + 45 * 2 / epsilon)
    law = [mechanism.log_likelihood(outputs, x) for x in INPUTS]
    for x, logs in zip(INPUTS, law, strict=True):
        chances = np.exp(logs)
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        assert chances @ outputs == pytest.approx(x, abs=1e-11 / epsilon)
        assert chances @ (outputs - x) ** 2 == pytest.approx(float(mechanism.variance(x)), rel=1e-10)
    found = max(np.abs(a - b).max() for a, b in itertools.combinations(law, 2))
    assert found == pytest.approx(mechanism.guarantee().epsilon, rel=1e-12)
    assert mechanism.guarantee().epsilon <= epsilon
    assert Laplace(epsilon).guarantee().epsilon >= epsilon * (1 - 1e-6)


@settings(max_examples=80, deadline=None)
@given(epsilon=st.floats(1e-6, 1e9), bits=st.integers(2, 28))
def test_laplace_is_calibrated_to_the_private_side(epsilon, bits):
    mechanism = Laplace(epsilon, bits)
    assert mechanism.guarantee().epsilon <= epsilon
    assert mechanism.lattice_exponent >= 0
    assert mechanism.scale >= 2 ** (bits - 1)
    assert (1 / mechanism.step + 60 * mechanism.scale) < 2**53


def test_analytic_sigma_of_the_paper():
    assert analytic_gaussian_sigma(1.0, 1e-5) == pytest.approx(3.7306, abs=5e-5)
    assert analytic_gaussian_sigma(1.0, 1e-5, 2.0) == pytest.approx(2 * analytic_gaussian_sigma(1.0, 1e-5), rel=1e-14)


def discrete_delta(mechanism, pair):
    """By summation over the lattice: max(0, P(z | a) - e^eps P(z | b)) for one value."""
    width = 14 * math.sqrt(mechanism.worst_variance)
    outputs = lattice(mechanism, width)
    here, there = (np.exp(mechanism.log_likelihood(outputs, x)) for x in pair)
    return np.maximum(0, here - math.exp(mechanism.epsilon) * there).sum()


@pytest.mark.parametrize("epsilon", [0.1, 0.62, 1, 2, 4])
@pytest.mark.parametrize(("delta", "bits"), [(0.05, 4), (1e-3, 7), (1e-6, 12)])
def test_discrete_delta_summed(epsilon, delta, bits):
    mechanism = Gaussian(epsilon, delta, 1, bits)
    guarantee = mechanism.guarantee()
    assert guarantee.epsilon == epsilon
    assert guarantee.delta <= delta
    pairs = [*itertools.permutations((-1.0, 1.0)), (1.0, -0.95), (-1.0, 0.3), (0.1234567, -0.98765)]
    found = [discrete_delta(mechanism, pair) for pair in pairs]
    assert max(found) <= guarantee.delta
    # The bound is no looser than its lattice term, twice.
    assert max(found) >= guarantee.delta * (1 - 1e-9) - 2 * mechanism._lattice_term


def test_discrete_delta_of_two_values_summed():
    mechanism = Gaussian(1.0, 0.01, 2, 6)
    outputs = lattice(mechanism, 9 * math.sqrt(mechanism.worst_variance))

    def law(x):
        first, second = (np.exp(mechanism.log_likelihood(outputs, value)) for value in x)
        return first[:, None] * second

    for here, there in [((1, 1), (-1, -1)), ((1, -1), (-1, 1)), ((1, 0.3), (-1, -0.9)), ((1, 0), (-1, 0))]:
        assert np.maximum(0, law(here) - math.e * law(there)).sum() <= mechanism.guarantee().delta <= 0.01


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-3, 20), delta=st.floats(1e-9, 0.5), n=st.integers(1, 1000))
def test_gaussian_guarantee_never_exceeds_what_was_asked(epsilon, delta, n):
    mechanism = Gaussian(epsilon, delta, n)
    guarantee = mechanism.guarantee()
    assert guarantee.epsilon == epsilon
    assert delta * (1 - 1e-4) <= guarantee.delta <= delta


def decimal_delta(mechanism):
    """The continuous part of the delta, to 80 digits of normal distribution functions."""

    def normal(x):
        term = total = x
        n = 1
        while abs(term) > decimal.Decimal(10) ** -90:
            term *= x * x / (2 * n + 1)
            total, n = total + term, n + 1
        pi = decimal.Decimal(
            "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482"
        )
        return decimal.Decimal("0.5") + total * (-x * x / 2).exp() / (2 * pi).sqrt()

    with decimal.localcontext() as context:
        context.prec = 85
        epsilon, sigma = decimal.Decimal(mechanism.epsilon), decimal.Decimal(mechanism.sigma)
        reach = decimal.Decimal(4 * mechanism.n_values).sqrt() * decimal.Decimal(2) ** mechanism.lattice_exponent
        half, shift = reach / (2 * sigma), epsilon * sigma / reach
        return normal(half - shift) - epsilon.exp() * normal(-half - shift)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 1e-2, 0.9, 3, 30])
@pytest.mark.parametrize("delta", [1e-13, 1e-12, 1e-8, 1e-5, 0.5])
def test_gaussian_delta_is_never_below_that_of_its_sigma(epsilon, delta):
    # At a small epsilon the two terms cancel: it was below by a part of 8e-9.
    for n in (1, 3):
        mechanism = Gaussian(epsilon, delta, n)
        with decimal.localcontext() as context:
            context.prec = 85
            exact = decimal_delta(mechanism) + decimal.Decimal(mechanism._lattice_term)
            assert exact <= decimal.Decimal(mechanism.guarantee().delta)
        assert mechanism.guarantee().delta <= delta


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 0.0}, "delta must lie inside"),
        ({"delta": 1.0}, "delta must lie inside"),
        ({"delta": np.nan}, "delta must lie inside"),
        ({"delta": True}, "delta must lie inside"),
        ({"delta": 1e-16}, "delta must be at least"),
        ({"n_values": 0}, "n_values must be"),
        ({"n_values": True}, "n_values must be"),
        ({"lattice_bits": 29}, "lattice_bits must be"),
    ],
)
def test_gaussian_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        Gaussian(**({"epsilon": 1.0, "delta": 1e-5} | arguments))
