"""The theory figures, written out from the paper's formulas."""

import math

import numpy as np
import pytest

from skldp.study._theory.flip_theory import (
    bit_errors,
    corrected_ratio,
    expected_error,
    flip_law,
    flip_probabilities,
    top_k_means,
)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_theorem_4_is_the_sum_of_flip_probability_times_sensitivity(epsilon):
    law, m = flip_law("bitrand", epsilon, 768, 10), 5
    alpha = math.sqrt((epsilon + 7680) / (2 * 768 * sum(math.exp(2 * epsilon * i / 10) for i in range(10))))
    q = [alpha * math.exp(i * epsilon / 10) / (1 + alpha * math.exp(i * epsilon / 10)) for i in range(10)]
    expected = [q[0] * 2 ** (m + 1)] + [q[i] * 2 ** (m - i) for i in range(1, 10)]
    np.testing.assert_allclose(flip_probabilities(law), q, rtol=1e-12)
    np.testing.assert_allclose(bit_errors(law, m), expected, rtol=1e-12)
    assert expected_error(law, m) == pytest.approx(sum(expected))


def test_the_optimal_law_has_the_least_error_at_its_exact_level():
    for epsilon in (10.0, 1000.0):
        exact = flip_law("exact", epsilon, 100, 10)
        assert exact.costs.max(axis=(1, 2)).sum() * 100 == pytest.approx(epsilon, rel=1e-9)
        rival = flip_law("bitrand", 1.0, 100, 10)
        level = rival.costs.max(axis=(1, 2)).sum() * 100
        assert expected_error(flip_law("exact", level, 100, 10), 0) < expected_error(rival, 0)


def test_latent_and_ome_errors_weigh_zeros_and_ones_alike():
    latent = flip_probabilities(flip_law("latent", 1.0, 10, 4))
    np.testing.assert_allclose(latent, (7 / 8 + 1 / (1 + 7 * math.exp(1 / 40))) / 2, rtol=1e-12)
    ome = flip_probabilities(flip_law("ome", 1.0, 10, 4))
    np.testing.assert_allclose(ome, (1 / 2 + 1 / (1 + math.exp(1 / 40))) / 2, rtol=1e-12)


def test_top_k_means_are_running_means():
    values = np.array([4.0, 1.0, 3.0])
    assert top_k_means(values).tolist() == [values[: k + 1].mean() for k in range(3)]


def test_the_printed_ratios_over_r_and_l():
    latent = [corrected_ratio("latent", 0.1, r, 10, 7.0) for r in (10, 100, 1000, 10_000)]
    np.testing.assert_allclose(latent, 32 / 7, rtol=1e-3)
    ome = [corrected_ratio("ome", 0.1, r, 10, 100.0) for r in (10, 100, 1000, 10_000)]
    np.testing.assert_allclose(ome, [-4.6e5, -4.6e6, -4.6e7, -4.6e8], rtol=2e-3)


def test_unknown_mechanisms_are_refused():
    with pytest.raises(ValueError, match="mechanism must be"):
        flip_law("duchi", 1.0, 3, 4)
    with pytest.raises(ValueError, match="mechanism must be"):
        corrected_ratio("bitrand", 1.0, 3, 4, 1.0)
