"""The exact samplers: against their laws, and the fast path against decimals word by word."""

import decimal

import numpy as np
import pytest
from laws import THRESHOLD, ScriptedNoise, chi_square_pvalue, ks_pvalue, seeded
from scipy import stats

from skldp.mechanisms.numeric import _additive as discrete_noise
from skldp.mechanisms.numeric._additive import discrete_gaussian, discrete_laplace


def slow_everywhere(monkeypatch):
    monkeypatch.setattr(discrete_noise, "_LOG_ERROR", 1e9)


def laplace_law(scale, z):
    return np.tanh(0.5 / scale) * np.exp(-np.abs(z) / scale)


def gaussian_law(sigma, z):
    weights = np.exp(-(z**2) / (2 * sigma**2))
    return weights / weights.sum()


def assert_follows(drawn, z, law):
    assert np.abs(drawn).max() <= z.max()
    counts = np.bincount(drawn - z.min(), minlength=len(z))
    assert chi_square_pvalue(counts, law / law.sum()) > THRESHOLD


@pytest.mark.parametrize("scale", [1, 2, 7, 40])
def test_laplace_law(scale):
    z = np.arange(-45 * scale, 45 * scale + 1)
    assert_follows(discrete_laplace(scale, 200_000, seeded(scale)), z, laplace_law(scale, z))


@pytest.mark.parametrize("sigma", [1, 2, 7, 40])
def test_gaussian_law(sigma):
    z = np.arange(-12 * sigma, 12 * sigma + 1)
    assert_follows(discrete_gaussian(sigma, 200_000, seeded(sigma)), z, gaussian_law(sigma, z))


def test_laplace_law_in_decimals_alone(monkeypatch):
    slow_everywhere(monkeypatch)
    z = np.arange(-90, 91)
    assert_follows(discrete_laplace(2, 800, seeded(0)), z, laplace_law(2, z))


def test_gaussian_law_in_decimals_alone(monkeypatch):
    slow_everywhere(monkeypatch)
    z = np.arange(-24, 25)
    assert_follows(discrete_gaussian(2, 500, seeded(0)), z, gaussian_law(2, z))


@pytest.mark.parametrize("scale", [1, 3, 2**24, 2**25 - 1, 2**40])
def test_doubles_agree_with_decimals_word_by_word(scale, monkeypatch):
    fast = discrete_laplace(scale, 600, seeded(1))
    slow_everywhere(monkeypatch)
    assert np.array_equal(fast, discrete_laplace(scale, 600, seeded(1)))


def test_gaussian_doubles_agree_with_decimals_word_by_word(monkeypatch):
    fast = discrete_gaussian(2**24, 500, seeded(2))
    slow_everywhere(monkeypatch)
    assert np.array_equal(fast, discrete_gaussian(2**24, 500, seeded(2)))


def test_large_scales_are_the_continuous_laws():
    assert ks_pvalue(discrete_laplace(2**24, 100_000, seeded(3)) / 2**24, stats.laplace.cdf) > THRESHOLD
    assert ks_pvalue(discrete_gaussian(2**24, 100_000, seeded(4)) / 2**24, stats.norm.cdf) > THRESHOLD


def test_words_of_zero_draw_on_and_stay_within_an_int64():
    # U < 2^-63, then 64 bits that make it lie in [2^-127, 2^-126), and further ones to settle floor(-s ln U).
    drawn = discrete_laplace(10, 1, ScriptedNoise([0, 1, 77, 78]))
    assert 126 * np.log(2) * 10 <= drawn[0] <= 127 * np.log(2) * 10
    assert discrete_laplace(2**40, 1, ScriptedNoise([0, 0, 0, 5, 6, 7]))[0] < 2**49


def test_small_numbers_use_further_bits():
    # U in [2^-50, 2^-49): 13 leading bits alone would leave floor(-2^30 ln U) open.
    words = np.array([2**14, 2**14 + 1234], dtype=np.uint64)
    low, high = (discrete_laplace(2**30, 1, ScriptedNoise([int(words[0]), fill, fill])) for fill in (0, 2**64 - 1))
    assert low[0] - high[0] == pytest.approx(2**30 * np.log1p(2.0**-13), abs=2)


def test_word_near_one_gives_zero_and_the_pair_minus_zero_is_drawn_anew():
    highest = 2**64 - 1
    assert discrete_laplace(3, 1, ScriptedNoise([highest - 1]))[0] == 0
    # Odd means negative: -0 is refused, and the next word counts.
    assert discrete_laplace(3, 1, ScriptedNoise([highest, 2**62]))[0] == int(-3 * np.log(2.0**-2))


def test_an_ambiguous_word_asks_for_more_bits():
    # The cell of this word holds the U at which -s ln U is the integer k: below it the floor is k, above it k - 1.
    scale, k = 2**40, 2**42 + 12345
    with decimal.localcontext() as context:
        context.prec = 60
        word = 2 * int((-decimal.Decimal(k) / scale).exp() * 2**63)
    ends = [int(discrete_laplace(scale, 1, ScriptedNoise([word, fill, fill]))[0]) for fill in (0, 2**64 - 1)]
    assert ends == [k, k - 1]


@pytest.mark.parametrize("bad", [0, -1, 2**40 + 1, 1.5])
@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_bad_scales_are_refused(draw, bad):
    with pytest.raises(ValueError, match="The scale must be a whole number"):
        draw(bad, 3, seeded(0))


@pytest.mark.parametrize("draw", [discrete_laplace, discrete_gaussian])
def test_nothing_asked_nothing_drawn(draw):
    assert draw(5, 0, seeded(0)).shape == (0,)
