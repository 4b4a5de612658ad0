"""The square wave: the paper's law on the piecewise lattice, and the distribution that is estimated from it."""

import itertools
import math

import numpy as np
import pytest

from skldp.mechanisms import Piecewise, SquareWave, integer_law, make_mechanism
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.distribution import DistributionEstimate, lattice_response, likeliest_shares

EPSILONS = (0.1, 0.5, 1.0, 3.0, 8.0)


def released(law, x, seed):
    return law.release(np.asarray(x).reshape(-1, 1), Noise(seed.to_bytes(32, "big"), secure=False)).rows


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_law_is_the_papers(epsilon):
    """Its density on [-b, 1 + b], cell by cell, where the paper's number is (x + 1) / 2."""
    odds, law = math.exp(epsilon), SquareWave(epsilon, 12)
    b = (epsilon * odds - odds + 1) / (2 * odds * (odds - 1 - epsilon))
    for x in (-1.0, -0.3, 0.0, 0.8, 1.0):
        values, weights = law.output_law(x)
        chances = np.array([weight / sum(weights) for weight in weights])
        edges = np.linspace(-b, 1 + b, len(values) + 1)
        v = (x + 1) / 2
        near = np.diff(np.clip(edges, v - b, v + b))
        paper = (near * odds + np.diff(edges) - near) / (2 * b * odds + 1)
        # The lengths are those of the lattice, whose cells are whole: an end moves by less than one of them.
        assert np.abs(np.cumsum(chances) - np.cumsum(paper)).max() < chances.max()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_it_is_a_mechanism_like_the_others(epsilon):
    law = make_mechanism("square_wave", epsilon)
    assert law == SquareWave(epsilon)
    assert law != Piecewise(epsilon, "square_wave")
    assert law.lattice == Piecewise(epsilon, "square_wave").lattice
    assert law.exact_epsilon <= epsilon
    assert integer_law(law).epsilon == pytest.approx(law.exact_epsilon, rel=1e-15)
    assert repr(law) == f"SquareWave(epsilon={epsilon}, lattice_bits=24)"


@pytest.mark.parametrize("make", [SquareWave, Piecewise, lambda e, bits: Piecewise(e, "opt", bits)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_response_to_a_bin_is_the_mean_of_its_laws(make, epsilon):
    mechanism = make(epsilon, lattice_bits=6) if make in (SquareWave, Piecewise) else make(epsilon, 6)
    law = integer_law(mechanism)

    def chances(x):
        weights = mechanism.output_law(x)[1]
        return np.array([weight / sum(weights) for weight in weights])

    points = np.array([-1.0, -0.45, 0.0, 1.0])
    starts, response = lattice_response(law, points, points, 10**6)
    np.testing.assert_array_equal(starts, np.arange(law.n_cells + 1))
    for x, row in zip(points, response, strict=True):
        np.testing.assert_allclose(row, chances(x), rtol=0, atol=1e-15)
    # The mean over a bin, by the midpoint rule, whose error falls with the square of so many points.
    inside = -0.4 + 0.7 * (np.arange(2000) + 0.5) / 2000
    _, response = lattice_response(law, np.array([-0.4]), np.array([0.3]), law.n_cells)
    np.testing.assert_allclose(response[0], np.mean([chances(x) for x in inside], axis=0), rtol=0, atol=1e-6)
    # Groups are sums of cells.
    starts, grouped = lattice_response(law, np.array([-0.4]), np.array([0.3]), 7)
    np.testing.assert_allclose(grouped[0], np.add.reduceat(response[0], starts[:-1]), rtol=0, atol=1e-15)


def test_the_likeliest_shares_are_those_of_a_search():
    response = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    for given in ([10.0, 50.0, 40.0], [95.0, 3.0, 2.0]):
        counts = 1000 * np.array(given)
        found = likeliest_shares(counts, response)
        grid = [np.array([a, b, 200 - a - b]) / 200 for a, b in itertools.product(range(201), repeat=2) if a + b <= 200]
        best = max(grid, key=lambda shares: counts @ np.log(shares @ response))
        assert counts @ np.log(found @ response) > counts @ np.log(best @ response) - 3 / 16
        np.testing.assert_allclose(found, best, rtol=0, atol=0.006)
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()


def test_smoothing_leaves_a_straight_line_and_rounds_a_corner():
    response = np.eye(8)
    straight = np.full(8, 1 / 8)
    np.testing.assert_allclose(likeliest_shares(straight * 80, response, smooth=True), straight, atol=1e-12)
    corner = likeliest_shares(np.array([0.0, 0, 0, 80, 0, 0, 0, 0]), response, smooth=True)
    np.testing.assert_allclose(corner[2:5], [0.25, 0.5, 0.25], atol=1e-12)


@pytest.mark.parametrize("smooth", [True, False])
def test_a_distribution_is_found(smooth):
    rng = np.random.default_rng(3)
    x = 2 * rng.beta(5, 2, 100_000) - 1
    law = SquareWave(2.0)
    found = law.estimate_distribution(released(law, x, 4), n_bins=32, smooth=smooth)
    true = np.histogram(x, found.edges)[0] / len(x)
    assert found.n == len(x)
    assert np.abs(np.cumsum(found.shares - true)).max() < 0.03
    assert found.quantile([0.1, 0.5, 0.9]) == pytest.approx(np.quantile(x, [0.1, 0.5, 0.9]), abs=0.05)


def test_quantiles_are_the_inverse_of_the_cumulative_shares():
    found = DistributionEstimate(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.5, 0.0, 0.5]), 10)
    assert found.quantile([0.0, 0.25, 0.5, 0.75, 1.0]).tolist() == [0.0, 0.5, 1.0, 3.0, 4.0]
    assert found.cumulative([-1.0, 0.5, 1.5, 3.0, 9.0]).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    with pytest.raises(ValueError, match="levels must be from 0 to 1"):
        found.quantile([0.5, np.nan])


@pytest.mark.parametrize("wrong", [[], [0.1234], [1e6], [np.nan]])
def test_what_was_not_released_is_refused(wrong):
    with pytest.raises(ValueError, match="must be what this mechanism releases"):
        SquareWave(1.0).estimate_distribution(wrong)


def test_bins_are_few_enough():
    with pytest.raises(ValueError, match="n_bins"):
        SquareWave(1.0).estimate_distribution([0.0], n_bins=1)
