"""The square wave: the paper's law on the piecewise lattice, and the distribution that is estimated from it."""

import itertools
import math

import numpy as np
import pytest

from skldp.mechanisms import Piecewise
from skldp.mechanisms.numeric._distribution import (
    DistributionEstimate,
    Ramps,
    likeliest_shares,
    quantile_knots,
    ramp_width,
)
from skldp.mechanisms.numeric._unit_mechanisms import SquareWave

EPSILONS = (0.1, 0.5, 1.0, 3.0, 8.0)


@pytest.mark.few(1)
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


@pytest.mark.parametrize("make", [SquareWave, Piecewise, lambda e, bits: Piecewise(e, "opt", bits)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_response_to_a_knot_is_its_law(make, epsilon):
    mechanism = make(epsilon, lattice_bits=6) if make in (SquareWave, Piecewise) else make(epsilon, 6)
    law = mechanism.integer_law
    knots = np.array([-1.0, -0.45, 0.0, 1.0])
    response, group = law.responses(knots)
    groups = group(np.arange(law.n_cells))
    assert np.unique(groups).tolist() == list(range(response.shape[1]))
    for x, row in zip(knots, response, strict=True):
        weights = mechanism.output_law(x)[1]
        chances = np.array([weight / sum(weights) for weight in weights])
        np.testing.assert_allclose(row, np.bincount(groups, chances), rtol=0, atol=1e-15)


@pytest.mark.few(2)
@pytest.mark.parametrize("make", [SquareWave, Piecewise])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_the_score_of_a_ramp_is_the_share_below_it_for_any_number(make, epsilon, share):
    mechanism = make(epsilon, lattice_bits=9)
    law = mechanism.integer_law
    tops, widths = np.array([-1.0, -0.5, 0.1, 0.9, 1.0]), np.array([0.1, 0.3, 0.05, 0.2, 0.1])
    ramps = Ramps(law, tops, widths, share)
    cells = np.arange(law.n_cells)
    for x in np.linspace(-1, 1, 41):
        weights = mechanism.output_law(x)[1]
        # Answers that are not of the lattice are the last one.
        chances = np.append(share * np.array([weight / sum(weights) for weight in weights]), 1 - share)
        for i, (top, width) in enumerate(zip(tops, widths, strict=True)):
            scores = ramps.levels[:, i][ramps.kinds(np.append(cells, law.n_cells), i)]
            taken = min(width, law.n_inner / law.reach)
            # Up to a cell at either end.
            near = np.clip((top + np.array([-2, 1]) / law.reach - x) / taken, 0, 1)
            if taken > 4 / law.reach:
                assert near[0] - 3 / law.reach / taken <= chances @ scores <= near[1] + 3 / law.reach / taken
            if x >= top or x < top - taken - 2 / law.reach:
                assert chances @ scores == pytest.approx(float(x < top), abs=1e-9)


@pytest.mark.parametrize("make", [SquareWave, Piecewise])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0, 20.0])
def test_the_counts_of_all_ramps_are_those_of_each(make, epsilon):
    law = make(epsilon, lattice_bits=9).integer_law
    tops, widths = np.array([-1.0, -0.5, 0.1, 0.9, 1.0]), np.array([0.1, 0.3, 0.05, 0.2, 2.0])
    ramps, rng = Ramps(law, tops, widths, 0.7), np.random.default_rng(0)
    # Some answers are not of the lattice.
    for cells in (rng.integers(0, law.n_cells + 3, 500), np.arange(law.n_cells), np.full(4, law.n_cells)):
        each = [np.bincount(ramps.kinds(cells, i), minlength=3) for i in range(5)]
        np.testing.assert_array_equal(ramps.counts(cells), np.transpose(each))


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


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 1_000_000), (1.0, 20_000), (0.1, 1_000_000), (4.0, 600), (8.0, 100)])
def test_knots_and_ramps_follow_from_the_number_of_answers_and_epsilon(epsilon, n):
    """The distance of knots is a fifth of the standard error of a share, and a ramp is narrower."""
    law = SquareWave(epsilon).integer_law
    knots = quantile_knots(law, n)
    distance = np.diff(knots)[0] / 2
    total = law.n_cells * law.base + law.n_inner * law.extra
    gain = distance * 2 * law.reach * law.extra / total
    # One cell in so many is a multiple of m before or after the ramp, each half the time.
    error = math.sqrt(distance * 2 * law.reach / law.n_inner / n) / gain / 2
    assert distance == pytest.approx(error / 5, rel=0.05)
    assert ramp_width(law, n) < distance
    assert ramp_width(law, 8 * n) == pytest.approx(ramp_width(law, n) / 2, rel=1e-9)
    # A share is then known about as well as that error, also where epsilon is so large that chance is all noise.
    ramps = Ramps(law, np.array([0.0]), np.array([2 * ramp_width(law, n)]), 1.0)
    hits = ramps._chances[:, 0] + ramps._gain[0] / 2
    variance = ramps.levels[:, 0] ** 2 @ [hits[0], 1 - hits.sum(), hits[1]] - 1 / 4
    assert variance / n < (1.5 * error) ** 2 * distance / ramp_width(law, n)


def test_quantiles_are_the_inverse_of_the_cumulative_shares():
    found = DistributionEstimate(np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.5, 0.0, 0.5]), 10)
    assert found.quantile([0.0, 0.25, 0.5, 0.75, 1.0]).tolist() == [0.0, 0.5, 1.0, 3.0, 4.0]
    assert found.cumulative([-1.0, 0.5, 1.5, 3.0, 9.0]).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    with pytest.raises(ValueError, match="levels must be from 0 to 1"):
        found.quantile([0.5, np.nan])
