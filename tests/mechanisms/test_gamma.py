import math

import numpy as np
import pytest
from laws import THRESHOLD, ks_pvalue
from scipy import special, stats

from skldp.mechanisms._noise import Noise, noise_from
from skldp.mechanisms.vector._multivariate_laplace import gamma_variates, gaussians


def noise(seed):
    return Noise(bytes([seed] * 32), secure=False)


@pytest.mark.parametrize("shape", [1.0, 1.5, 2.0, 57.0, 768.0, 1e6])
def test_the_law_is_gamma(shape):
    assert ks_pvalue(gamma_variates(noise(1), shape, 100_000), stats.gamma(shape).cdf) > THRESHOLD


@pytest.mark.parametrize("shape", [1.0, 57.0])
def test_the_far_tails_are_there(shape):
    # What a faulty squeeze or a lost second round would bend first, in a million draws.
    drawn = gamma_variates(noise(2), shape, 1_000_000)
    for tail in (1e-3, 1e-4):
        low = int((drawn < special.gammaincinv(shape, tail)).sum())
        high = int((drawn > special.gammainccinv(shape, tail)).sum())
        assert min(stats.binomtest(count, drawn.size, tail).pvalue for count in (low, high)) > THRESHOLD


def test_draws_are_independent_of_their_neighbours():
    drawn = gamma_variates(noise(3), 3.0, 100_001)
    assert stats.spearmanr(drawn[1:], drawn[:-1]).pvalue > THRESHOLD
    half = len(drawn) // 2
    # The two halves come from the same pairs of words.
    assert stats.spearmanr(drawn[:half], drawn[half : 2 * half]).pvalue > THRESHOLD


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussians_are_normal_in_both_precisions(dtype):
    drawn = gaussians(noise(4), (3, 33_335), dtype)
    assert drawn.dtype == dtype
    assert ks_pvalue(drawn, stats.norm.cdf) > THRESHOLD


def test_none_and_fresh_ones():
    assert gamma_variates(noise_from(), 2.0, 0).shape == (0,)
    # Of 52 random bits each: two are equal with a chance of about 50 / 2^50, which is 5e-14.
    assert (gamma_variates(noise_from(), 2.0, 50) != gamma_variates(noise_from(), 2.0, 50)).all()


@pytest.mark.parametrize("shape", [0.5, 0, -1, math.nan, math.inf])
def test_refuses(shape):
    with pytest.raises(ValueError, match="shape must be"):
        gamma_variates(noise(1), shape, 3)
