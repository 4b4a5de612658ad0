"""The vector mechanisms draw the coin, the cap and the norms of which their guarantee is made: read out by words."""

import math
from fractions import Fraction

import numpy as np
import pytest
from laws import ScriptedNoise, assert_is_the_guarantee, intervals, lengths, seeded
from scipy import special

from skldp.mechanisms import PrivUnit
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace, gaussians
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.mechanisms.vector._projected_release import ProjectedRelease
from skldp.mechanisms.vector._projection import RandomProjection

WORD = 2**64


class Coin(Noise):
    """The first word is given; all others are those of a fixed key."""

    def __init__(self, word):
        super().__init__(bytes([7] * 32), secure=False)
        self.word = word

    def fill(self, buffer):
        super().fill(buffer)
        if self.word is not None:
            buffer.reshape(-1)[0], self.word = self.word, None
        return buffer


def drawn_in_the_cap(mechanism, row, word):
    """Whether a release lies in the cap around its row, by real sampling with the coin's word."""
    released = mechanism.release(row[None].astype(np.float64), Coin(word)).rows[0]
    cosine = released @ row / np.linalg.norm(row) / mechanism.scale
    assert abs(cosine - mechanism.gamma) > 1e-3, "too close to the edge for the grid to tell"
    return bool(cosine > mechanism.gamma)


@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (3, 1.0), (8, 4.0), (64, 20.0), (100, 1.0)])
def test_the_cap_is_drawn_with_the_integer_of_the_guarantee(d, epsilon):
    mechanism = PrivUnit(d, epsilon)
    row = np.random.default_rng(d).normal(size=d)
    law = lengths(intervals(lambda word: drawn_in_the_cap(mechanism, row, word), 0, WORD), WORD)
    c = Fraction(mechanism.cap_probability)
    inside, outside = {"point": law[True] * (1 - c)}, {"point": law[False] * c}
    assert_is_the_guarantee([inside, outside], mechanism.guarantee().epsilon, slack=1e-8)
    assert mechanism.guarantee().epsilon <= epsilon


def test_the_ball_and_the_projection_draw_the_cap_of_the_sphere():
    row = np.random.default_rng(1).normal(size=5)
    ball = PrivUnitBall(5, 2.0, radius=3.0)
    for x in (row, 10 * row, 0 * row):
        inside = ball.encode(x[None]).rows[0] / 3.0
        lifted = np.append(inside, math.sqrt(max(0.0, 1 - inside @ inside)))
        expected = 3.0 * ball.sphere.release(lifted[None], seeded(3)).rows[:, :-1]
        np.testing.assert_allclose(ball.release(x[None], seeded(3)).rows, expected, atol=3.0 * ball.sphere.step)
    release = ProjectedRelease(RandomProjection(30, 5), 2.0, noise="privunit")
    projected = release.projection.apply(np.ones((1, 30)))
    expected = PrivUnit(5, 2.0).release(projected, seeded(4)).rows
    np.testing.assert_array_equal(release.release(np.ones((1, 30)), seeded(4)).rows, expected)


@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (3, 4.0), (50, 2.0), (768, 10.0)])
def test_the_point_of_the_cap_and_of_the_rest_is_uniform_in_its_mass(d, epsilon):
    mechanism, a = PrivUnit(d, epsilon), (d - 1) / 2
    # In the plane a cap is so flat at its top that 1 less the coordinate has few digits there.
    near = 1e-7 if d == 2 else 1e-15
    c = mechanism.cap_probability
    for word in (0, 2**40, 2**62, 2**63, WORD - 2**40, WORD - 1):
        u = ((word >> 12) + 0.5) * 2.0**-52
        (inside,) = mechanism._coordinates(ScriptedNoise([mechanism.cap_threshold - 1, word]), 1)
        (outside,) = mechanism._coordinates(ScriptedNoise([mechanism.cap_threshold, word]), 1)
        assert special.betainc(a, a, (1 - inside) / 2) == pytest.approx(c * u, rel=1e-6, abs=near)
        assert special.betainc(a, a, (1 + outside) / 2) == pytest.approx((1 - c) * u, rel=1e-6, abs=near)
        assert outside <= mechanism.gamma + 1e-9
        assert inside >= mechanism.gamma - 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussians_are_box_and_mullers_of_their_words(dtype):
    n_bits = 32 if dtype == np.float32 else 64
    for first in (0, 1, 2 ** (n_bits - 12), 2 ** (n_bits - 1), 2**n_bits - 1):
        for second in (0, 2 ** (n_bits - 3), 2 ** (n_bits - 1), 3 * 2 ** (n_bits - 2) - 1, 2**n_bits - 1):
            cosine, sine = gaussians(ScriptedNoise([first, second]), (1, 2), dtype)[0]
            if dtype == np.float32:
                u, angle = (first + 0.5) / 2**32, second / 2**32
            else:
                u, angle = (((word >> 12) + 0.5) / 2**52 for word in (first, second))
            radius, angle = math.sqrt(-2 * math.log(u)), 2 * math.pi * angle
            tolerance = (1e-5 if dtype == np.float32 else 1e-13) * max(radius, 1.0)
            # The last words of single precision round up to 1, whose logarithm is 0 instead of 2^-33.
            tolerance += 2.0**-15 if dtype == np.float32 else 0
            assert abs(cosine - radius * math.cos(angle)) <= tolerance
            assert abs(sine - radius * math.sin(angle)) <= tolerance


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_the_words_of_a_row_make_the_numbers_of_that_row(d, dtype):
    # The left half of a row's words are radii, the right half angles; the last sine of an odd number has no place.
    half, n_bits = (d + 1) // 2, 32 if dtype == np.float32 else 64
    words = np.random.default_rng(d).integers(0, 2**n_bits, (3, 2 * half), dtype=np.uint64)
    drawn = gaussians(ScriptedNoise(words.ravel().tolist()), (3, d), dtype)
    for row, own in zip(drawn, words.tolist(), strict=True):
        for place in range(half):
            pair = gaussians(ScriptedNoise([own[place], own[half + place]]), (1, 2), dtype)[0]
            np.testing.assert_array_equal(row[place::half][: 2 - (half + place >= d)], pair[: 2 - (half + place >= d)])


@pytest.mark.parametrize("d", [1, 3, 40])
def test_multivariate_laplace_adds_the_same_noise_to_every_row(d):
    mechanism = MultivariateLaplace(d, 2.0, sensitivity=1.5)
    row = np.random.default_rng(d).normal(size=(200, d))
    released = mechanism.release(row, seeded(5)).rows
    # But for the rounding to the grid.
    other = mechanism.release(np.zeros((200, d)), seeded(5)).rows
    np.testing.assert_allclose(released - row, other, atol=mechanism.step)


def test_every_row_of_a_block_has_its_own_coin_and_its_own_direction():
    for mechanism in (PrivUnit(20, 1.0), PrivUnitBall(20, 1.0, 1.0), MultivariateLaplace(20, 1.0)):
        released = mechanism.release(np.ones((300, 20)), seeded(6)).rows
        assert len({row.tobytes() for row in released}) == 300
