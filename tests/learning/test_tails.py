"""Tails of norms against integrals, and the radius that follows from them."""

import math

import pytest
from scipy import integrate, stats

from skldp.learning._vectors import deviation_of_tail, mean_excess, radius_that_keeps


@pytest.mark.parametrize("deviation", [0.1, 0.6, 1.5])
@pytest.mark.parametrize("radius", [0.5, 1.7, 9.0])
def test_the_mean_excess_is_the_integral_over_the_law(deviation, radius):
    beyond = integrate.quad(lambda t: stats.lognorm.sf(t, deviation, scale=1.7), radius, math.inf)[0]
    assert mean_excess(1.7, deviation, radius) == pytest.approx(beyond, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("deviation", [0.3, 0.8, 1.4])
@pytest.mark.parametrize("start", [math.log(1.5), math.log(3)])
def test_a_deviation_is_found_from_what_lies_between_two_ends(deviation, start):
    end = start + 2.0
    told = integrate.quad(lambda level: stats.norm.sf(level / deviation), start, end)[0]
    assert deviation_of_tail(told, start, end) == pytest.approx(deviation, rel=1e-6)
    # What noise made of it is taken as the nearest that can be.
    assert deviation_of_tail(-0.1, start, end) == 0.05
    assert deviation_of_tail(5.0, start, end) == 2.0


@pytest.mark.parametrize("deviation", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.1])
def test_the_radius_is_the_least_that_cuts_off_no_more(deviation, noise):
    radius = radius_that_keeps(3.0, deviation, 0.2, noise)
    assert mean_excess(3.0, deviation, radius) == pytest.approx(0.2 * noise * radius, rel=1e-3)
    assert mean_excess(3.0, deviation, 0.99 * radius) > 0.2 * noise * 0.99 * radius


def test_where_noise_is_large_the_radius_is_the_usual_norm():
    assert radius_that_keeps(3.0, 0.5, 1.0, 10.0) == 3.0
