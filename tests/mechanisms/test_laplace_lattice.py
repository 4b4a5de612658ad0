"""Multivariate Laplace noise whose lattice points are those of the real numbers."""

import functools
import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, chi_square_pvalue, seeded
from scipy import integrate, stats

from skldp.mechanisms.vector import _multivariate_laplace as lattice
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace

SCALE = Fraction(2) ** 14


class Scripted:
    """A stream of given words that counts how many were drawn."""

    def __init__(self, *draws):
        self.draws, self.count, self.rows = list(draws), 0, []

    def words(self, size):
        self.count += 1
        return np.resize(np.asarray(self.draws.pop(0), dtype=np.uint64), size)

    def at(self, places, size):
        self.rows += [(places.tolist(), size)]
        return self


def reference(words, d, n_bits=64):
    """The noise by its formula in sixty digits: the middle of what the words leave open."""
    half = (d + 1) // 2
    with localcontext(prec=60):
        u = [(word + Decimal("0.5")) / 2**n_bits for word in words]
        turn = 2 * lattice._pi()
        radii = [(-2 * one.ln()).sqrt() for one in u[:half]]
        cosines = [
            lattice._cosine(turn * (one - shift))
            for shift in (Decimal(0), Decimal("0.25"))
            for one in u[half : 2 * half]
        ]
        square = sum(-2 * one.ln() for one in u[2 * half : 3 * half])
        if d % 2 == 0:
            square += -2 * u[-2].ln() * lattice._cosine(turn * u[-1]) ** 2
        normals = [radius * cosine for radius, cosine in zip(radii * 2, cosines, strict=True)][:d]
        return [SCALE.numerator * square.sqrt() * one for one in normals]


def test_decimals_have_the_digits_of_pi_and_of_cosines():
    with localcontext(prec=50):
        assert str(lattice._pi())[:49] == "3.14159265358979323846264338327950288419716939937"
        sixth = lattice._pi() / 3
        assert abs(lattice._cosine(sixth) - Decimal("0.5")) < Decimal(10) ** -47
        for angle in np.linspace(0, 2 * math.pi, 50):
            assert abs(float(lattice._cosine(Decimal(angle))) - math.cos(angle)) < 1e-15


words_of = st.lists(
    st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**11, 2**12, 2**63, 2**64 - 1])),
    min_size=8,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), words_of)
def test_floats_err_by_no_more_than_their_bound(d, words):
    """Also for words of only zeros or ones, whose logarithms have no digits or no end."""
    own = words[: lattice.n_words(d)]
    uniform = lattice.as_uniform(np.array([own], dtype=np.uint64))
    with np.errstate(all="ignore"):
        found, bound = lattice._noise(uniform, d, float(SCALE), lattice._FLOATS)
    for one, exact in zip(found[0], reference(own, d), strict=True):
        # The reference's own words are open by 2^-64, the floats' by 2^-53.
        assert not abs(Decimal(float(one)) - exact) > Decimal(float(bound[0, 0]))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), words_of, st.floats(-0.5, 0.5))
def test_a_point_is_that_of_sixty_digits(d, words, rest):
    own = words[: lattice.n_words(d)]
    rows = np.full((1, d), rest)
    released = lattice.noisy_points(rows, Scripted(own, [2**63], [2**63], [2**63]), SCALE, 1.0)
    exact = [
        one + Decimal(rest) for one in reference([(word << 192) + (2**191 + 2**127 + 2**63) for word in own], d, 256)
    ]
    for one, point in zip(exact, released[0], strict=True):
        # Where all known bits are on a border, further ones decide.
        assert abs(one - Decimal(float(point))) <= Decimal("0.5") + Decimal(10) ** -30


def on_a_border(d=2):
    """Words and rests of rows whose noise lies on the border of two cells, as far as 64 bits go."""
    own = [2**60 + 12345, 2**62 + 999, 2**61 + 77, 2**59 + 5, 2**63 + 31][: lattice.n_words(d)]
    exact = reference(own, d)[0]
    return own, float(Decimal("0.5") + exact.to_integral_value(rounding="ROUND_FLOOR") - exact)


def test_the_attack_a_border_is_decided_by_bits_that_were_not_drawn_yet():
    """Floats would give one point for certain, and with it a law that is not the stated one."""
    own, rest = on_a_border()
    rows = np.array([[rest, 0.0]])
    points = []
    for further in (0, 2**64 - 1):
        stream = Scripted(own, [further] * 5)
        points.append(lattice.noisy_points(rows, stream, SCALE, 1.0)[0])
        # Further bits are those of the row.
        assert (stream.count, stream.rows) == (2, [([0], 1)])
    # Both cells of the border are possible, and next to each other.
    assert abs(points[0][0] - points[1][0]) == 1
    assert points[0][1] == points[1][1]
    # Away from the border the words that were drawn decide.
    stream = Scripted(own)
    lattice.noisy_points(rows + 0.25, stream, SCALE, 1.0)
    assert stream.count == 1


def test_two_coordinates_of_a_row_are_decided_by_the_same_further_bits():
    own, rest = on_a_border()
    exact = reference(own, 2)
    rests = [float(Decimal("0.5") + one.to_integral_value(rounding="ROUND_FLOOR") - one) for one in exact]
    stream = Scripted(own, [0] * 5)
    both = lattice.noisy_points(np.array([rests]), stream, SCALE, 1.0)[0]
    assert stream.count == 2
    assert both[0] == lattice.noisy_points(np.array([[rest, 0.0]]), Scripted(own, [0] * 5), SCALE, 1.0)[0, 0]


@functools.cache
def cells_of_words(d, n_words, width):
    """How often each cell comes out, over all words on a grid of each of the uniform numbers."""
    places = (np.arange(n_words) + 0.5) / n_words
    grid = np.stack(np.meshgrid(*[places] * lattice.n_words(d), indexing="ij"), axis=-1).reshape(-1, lattice.n_words(d))
    found, _ = lattice._noise(grid, d, 1 / width, lattice._FLOATS)
    cells, counts = np.unique(np.rint(found), axis=0, return_counts=True)
    return {tuple(int(one) for one in cell): count / len(grid) for cell, count in zip(cells, counts, strict=True)}


@pytest.mark.slow
def test_in_one_dimension_every_cell_has_the_mass_of_the_density():
    found, width = cells_of_words(1, 100, 0.8), 0.8
    for cell in range(-5, 6):
        low, high = (cell - 0.5) * width, (cell + 0.5) * width
        below = [0.5 * math.exp(x) if x < 0 else 1 - 0.5 * math.exp(-x) for x in (low, high)]
        assert found[cell,] == pytest.approx(below[1] - below[0], abs=3e-3)


@pytest.mark.slow
def test_in_two_dimensions_every_cell_has_the_mass_of_the_density():
    found, width = cells_of_words(2, 16, 1.5), 1.5

    def density(y, x):
        return math.exp(-math.hypot(x, y)) / (2 * math.pi)

    for cell in itertools.product(range(-2, 3), repeat=2):
        ends = [((one - 0.5) * width, (one + 0.5) * width) for one in cell]
        mass, _ = integrate.dblquad(density, *ends[0], *ends[1], epsabs=1e-4)
        assert found[cell] == pytest.approx(mass, abs=1e-2)


@pytest.mark.parametrize("d", [1, 2, 7, 50])
def test_a_row_keeps_its_low_bits_to_itself(d):
    """However far away: what a row has beyond its lattice point is added before the sum is rounded."""
    mechanism, rng = MultivariateLaplace(d, 1.0), np.random.default_rng(d)
    rows = rng.normal(size=(50, d))
    for far in (0.0, 2.0**20, 2.0**40):
        released = mechanism.release(rows + far, seeded(3)).rows
        expected = mechanism.release((rows + far) - far, seeded(3)).rows + far
        np.testing.assert_array_equal(released, expected)
        assert (released / mechanism.step == np.rint(released / mechanism.step)).all()
    assert mechanism.release(np.full((1, d), 1e308), seeded(3)).rows.tolist() == [[math.inf] * d]


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1e-310, 1.0), (1.0, 1.7e308), (1.0, 5e-324), (1.7e308, 1e-3)])
def test_attack_a_lattice_too_fine_or_coarse_for_floats_shows_zeros_as_nan(sensitivity, epsilon):
    """Before: with a subnormal step, 0 was released as NaN and 5e-324 as infinity, without noise."""
    with pytest.raises(ValueError, match="sensitivity / epsilon must be from 2"):
        MultivariateLaplace(2, epsilon, sensitivity=sensitivity)


@pytest.mark.parametrize("exponent", [-900, 0, 900])
def test_small_and_large_rows_have_the_noise_of_others_at_the_ends_of_the_scale(exponent):
    mechanism = MultivariateLaplace(2, 1.0, sensitivity=2.0**exponent)
    rows = np.array([[x, -x] for x in (0.0, 5e-324, 1e-310, 2.0**exponent)])
    released = np.concatenate([mechanism.release(row[None], seeded(9)).rows for row in rows])
    assert np.isfinite(released).all()
    assert (released[0] != 0).all()
    if exponent >= 0:
        np.testing.assert_array_equal(released[:3], np.tile(released[0], (3, 1)))


@pytest.mark.parametrize("rest", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("scale", [0.2, 1.0, 7.0])
def test_the_sampler_draws_the_cells_of_rows_on_and_off_the_lattice(rest, scale):
    """Cells of one dimension against their mass, and the loss of two rows against their distance."""
    n = 200_000
    points = lattice.noisy_points(np.full((n, 1), rest), seeded(11), Fraction(scale), 1.0)[:, 0]
    cells = np.arange(-100, 101)

    def mass(center):
        ends = np.append(cells - 0.5, cells[-1] + 0.5)
        return np.diff(stats.laplace(center, scale).cdf(ends))

    kept = mass(rest) * n > 20
    counts = (points[:, None] == cells[kept]).sum(axis=0)
    expected = np.append(mass(rest)[kept], 1 - mass(rest)[kept].sum())
    assert chi_square_pvalue(np.append(counts, n - counts.sum()), expected) > THRESHOLD
    loss = np.abs(np.log(mass(rest)[kept] / mass(rest - 0.75)[kept])).max()
    assert loss == pytest.approx(0.75 / scale, rel=1e-9)
