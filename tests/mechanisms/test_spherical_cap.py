import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from skldp.mechanisms.vector._multivariate_laplace import cap_height, cap_probability, log_mean_density


def exact_cap_probability(height, d):
    """The integral of (1 - t^2)^((d - 3) / 2) over the cap, in fractions: a polynomial for odd d."""
    a, h = (d - 1) // 2, Fraction(height)

    def tail(h):
        terms = (Fraction(math.comb(a - 1, k) * (-1) ** k * 2 ** (a - 1 - k), a + k) * h ** (a + k) for k in range(a))
        return sum(terms)

    return tail(h) / tail(Fraction(2))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([3, 5, 9, 33, 101]), st.floats(1e-3, 1))
def test_cap_probability_is_the_exact_fraction_in_odd_dimensions(d, height):
    assert cap_probability(height, d) == pytest.approx(float(exact_cap_probability(height, d)), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 100_000), st.floats(-60, -0.7))
def test_the_height_inverts_the_probability(d, log_c):
    c = math.exp(log_c)
    assert cap_probability(cap_height(c, d), d) == pytest.approx(c, rel=1e-11)


@pytest.mark.parametrize("d", [2, 3, 8, 200])
def test_mean_density_is_the_integral(d):
    gamma = 0.1
    norm = special.beta(0.5, (d - 1) / 2)
    # With t = cos(angle) the density has no pole at 1 in the plane.
    value, _ = integrate.quad(lambda angle: math.cos(angle) * math.sin(angle) ** (d - 2) / norm, 0, math.acos(gamma))
    assert math.exp(log_mean_density(1 - gamma, d)) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(("height", "d"), [(0, 3), (1.1, 3), (-1, 3), (0.5, 1), (math.nan, 3)])
def test_refuses_what_is_no_cap(height, d):
    with pytest.raises(ValueError, match="must"):
        cap_probability(height, d)
