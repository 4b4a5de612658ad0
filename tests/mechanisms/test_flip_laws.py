"""Laws as the papers write them, anchors, and the optimal allocation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from skldp.mechanisms.bits._fixed_point import FixedPoint
from skldp.mechanisms.bits._flip_laws import (
    BitLaw,
    bitrand_law,
    latent_corrected_ratio,
    latent_laws,
    log_alpha_bound,
    ome_corrected_ratio,
    ome_laws,
    optimal_losses,
)

epsilons = st.floats(0.01, 30)


@given(epsilons, st.integers(1, 1000), st.integers(2, 20), st.floats(0.001, 1))
def test_bitrand_flips_as_equation_2_says(epsilon, n_features, n_bits, share):
    bound = math.sqrt(
        (epsilon + n_features * n_bits)
        / (2 * n_features * sum(math.exp(2 * epsilon * i / n_bits) for i in range(n_bits)))
    )
    odds = [bound * share * math.exp(i * epsilon / n_bits) for i in range(n_bits)]
    law = bitrand_law(epsilon, n_features, n_bits, alpha=bound * share)
    assert law.symmetric
    np.testing.assert_allclose(law.error_probabilities[0], [a / (1 + a) for a in odds], rtol=1e-12, atol=2.0**-63)
    np.testing.assert_allclose(math.exp(log_alpha_bound(epsilon, n_features, n_bits)), bound, rtol=1e-12)


def test_a_law_keeps_the_integers_that_it_was_made_with():
    given = np.array([2**63, 2**62], dtype=np.uint64)
    law = BitLaw(given, given)
    given[:] = 1
    assert law.from_one.tolist() == law.from_zero.tolist() == [2**63, 2**62]
    with pytest.raises(ValueError, match="read-only"):
        law.from_one[0] = 1


def test_alpha_above_theorem_2_is_refused_with_the_bound():
    bound = math.exp(log_alpha_bound(1.0, 768, 10))
    bitrand_law(1.0, 768, 10, bound)
    with pytest.raises(ValueError, match=rf"at most {bound:.6g}"):
        bitrand_law(1.0, 768, 10, bound * 1.0001)


@given(st.floats(1e-6, 5), st.floats(0.01, 100))
def test_latent_and_ome_follow_their_equations(budget, alpha):
    zero = 1 / (1 + alpha * math.exp(budget))
    (latent,) = latent_laws(budget, 3, alpha)
    np.testing.assert_allclose(latent.ones, [[zero] * 3, [1 / (1 + alpha)] * 3], rtol=1e-12)
    even, odd = alpha / (1 + alpha), 1 / (1 + alpha**3)
    first, second = ome_laws(budget, 3, alpha)
    np.testing.assert_allclose(first.ones, [[zero] * 3, [even, odd, even]], rtol=1e-12)
    np.testing.assert_allclose(second.ones, [[zero] * 3, [odd, even, odd]], rtol=1e-12)
    assert len(ome_laws(budget, 4, alpha)) == 1


def test_corrected_ratios_are_those_of_the_paper():
    assert latent_corrected_ratio(0.1 / 10_000, 7.0) == pytest.approx(4.571, abs=5e-4)
    assert ome_corrected_ratio(0.1, 10_000, 100.0) == pytest.approx(-4.6e7, rel=2e-3)
    assert ome_corrected_ratio(0.1, 10_000, 1.0) == pytest.approx(2.0, rel=1e-9)
    assert ome_corrected_ratio(0.1, 100, 100.0) == pytest.approx(-4.6e5, rel=2e-3)


@given(st.lists(st.tuples(*[st.integers(1, 2**64 - 1)] * 2), min_size=1, max_size=6))
def test_costs_are_the_logarithms_of_the_integers_rounded_up(pairs):
    law = BitLaw(*np.array(pairs, dtype=np.uint64).T)
    for (one, zero), cost in zip(pairs, law.losses, strict=True):
        ones, zeros = Fraction(one, zero), Fraction(2**64 - one, 2**64 - zero)
        assert (cost[0, 0], cost[1, 1]) == (0, 0)
        for exact, given_cost in ((max(ones, zeros), cost[1, 0]), (max(1 / ones, 1 / zeros), cost[0, 1])):
            logarithm = math.log(exact.numerator) - math.log(exact.denominator) if exact > Fraction(11, 10) else None
            if logarithm is None:
                logarithm = math.log1p(float(exact - 1))
            assert given_cost >= logarithm * (1 - 1e-13) - 1e-13 * (exact > Fraction(11, 10))
            assert given_cost <= logarithm * (1 + 1e-12) + 1e-13


@given(st.floats(1e-9, 500), st.integers(2, 64), st.integers(-5, 5))
@settings(max_examples=150, deadline=None)
def test_the_optimal_losses_are_water_filling(budget, n_bits, m):
    """The conditions of optimality: equal derivatives where a bit has a share, smaller ones where it has none."""
    delta = FixedPoint(n_bits, m).sensitivities
    costs = optimal_losses(budget, delta)
    assert costs.sum() == pytest.approx(budget, rel=1e-11)
    q = 1 / (1 + np.exp(costs))
    gradient = delta * q * (1 - q)
    has_share = costs > 0
    level = gradient[has_share]
    np.testing.assert_allclose(level, level[0], rtol=1e-6)
    assert (delta[~has_share] / 4 <= level[0] * (1 + 1e-9)).all()


def test_the_optimal_losses_have_the_least_error():
    delta = FixedPoint(4, 0).sensitivities
    for budget in (0.5, 3.0, 8.0):

        def error(costs):
            return (delta / (1 + np.exp(costs))).sum()

        rival = minimize(
            error,
            np.full(4, budget / 4),
            bounds=[(0, None)] * 4,
            constraints={"type": "eq", "fun": lambda costs, total=budget: costs.sum() - total},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert error(optimal_losses(budget, delta)) <= rival.fun + 1e-9
