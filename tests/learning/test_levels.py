"""Levels of norms: their law, and the radius that follows from reported shares."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from laws import seeded

from skldp.laws._odds import TWO_64
from skldp.learning import Report
from skldp.learning._levels import NormLevels, pooled
from skldp.learning._levels import _references as references
from skldp.learning._posterior import positive_means
from skldp.learning._tasks import N_LEVELS, Task, levels_error, levels_mechanism
from skldp.mechanisms._noise import Noise


def task(epsilon=1.0, radius=1.0):
    return Task(epsilon, (-1.0, -1.0), (1.0, 1.0), "linear", ((0.0, 0.0, 1.0),), "levels", radius)


def told(norms, epsilon, seed=0, expected=1 / 3):
    asked = task(epsilon)
    report = asked.release(np.zeros((len(norms), 1)), norms, seeded(seed))
    return NormLevels(1.0, asked.mean(report), levels_error(epsilon, len(norms)), len(norms), expected)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0, 30.0, 1e3, 1e6])
def test_a_release_costs_at_most_the_stated_epsilon(epsilon):
    law = levels_mechanism(epsilon).integer_law
    assert 0 < law.epsilon <= task(epsilon).guarantee().epsilon <= epsilon


@pytest.mark.parametrize("norm", [1.0, 0.9, 0.6, 0.3, 2.0**-7.25, 2.0**-19, 1e-9, 0.0])
def test_rounding_keeps_the_mean_logarithm(norm):
    n = 20_000
    # At this epsilon the level is released as it is.
    shares = told(np.full(n, norm), 32.0).shares
    level = min(N_LEVELS - 1, -math.log2(max(norm, 1e-300)))
    assert np.count_nonzero(shares > 1e-6) <= 2
    assert shares @ np.arange(N_LEVELS) == pytest.approx(level, abs=5 / math.sqrt(n))


def codes_of(norm, uniform, monkeypatch):
    """The codes that a norm is rounded to for these numbers between 0 and 1, by the code that releases them."""
    # At this epsilon the code is released as it is.
    asked = task(32.0)
    with monkeypatch.context() as patch:
        patch.setattr(Noise, "uniform", lambda self, shape: np.reshape(uniform, shape))
        answers = asked.answers(np.zeros((len(uniform), 1)), np.full(len(uniform), norm), seeded())
    assert (answers.sum(axis=1) == 1).all()
    return answers.argmax(axis=1)


@pytest.mark.parametrize("level", range(N_LEVELS))
def test_a_norm_at_a_level_has_no_other(level, monkeypatch):
    """The attack: the largest uniform number, which added to a level is rounded to the next one. The last has none."""
    ends = [2.0**-53, 0.5, 1 - 2.0**-53]
    assert codes_of(2.0**-level, ends, monkeypatch).tolist() == [level] * 3
    if level == N_LEVELS - 1:
        assert codes_of(0.0, ends, monkeypatch).tolist() == [level] * 3
    else:
        # The chance of the next level is the fraction: counted over a lattice of uniform numbers.
        lattice = (np.arange(64) + 0.5) / 64
        for part in (0.25, 0.5, 0.75):
            codes = codes_of(2.0 ** -(level + part), lattice, monkeypatch)
            assert set(codes) == {level, level + 1}
            assert np.mean(codes == level + 1) == part


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 4.0, 31.9, 1e6])
def test_a_release_has_the_law_of_its_level_within_the_guarantee(epsilon, monkeypatch):
    """Every set of levels under every two of five records, in whole numbers."""
    law, w = levels_mechanism(epsilon).integer_law, levels_mechanism(epsilon).set_size
    lattice = (np.arange(64) + 0.5) / 64
    chances = []
    for norm in (1.0, 0.8, 2.0**-7, 2.0**-18.5, 0.0):
        codes, counts = np.unique(codes_of(norm, lattice, monkeypatch), return_counts=True)
        chances.append({int(code): Fraction(int(n), 64) for code, n in zip(codes, counts, strict=True)})
    near = sorted(set().union(*chances))
    # Sets with a code, and those without it, are as likely as any other such set.
    held = Fraction(TWO_64 - law.miss_count, TWO_64 * math.comb(N_LEVELS - 1, w - 1))
    missed = Fraction(law.miss_count, TWO_64 * math.comb(N_LEVELS - 1, w))
    worst = Fraction(1)
    for inside in itertools.chain.from_iterable(itertools.combinations(near, n) for n in range(len(near) + 1)):
        if 0 <= w - len(inside) <= N_LEVELS - len(near):
            laws = [sum(n * (held if code in inside else missed) for code, n in one.items()) for one in chances]
            worst = max(worst, max(laws) / min(laws))
    # In whole numbers the logarithm loses nothing near 1.
    loss = math.log1p(worst - 1) if worst < 2 else math.log(worst)
    assert 0.999 * min(epsilon, 32.0) < loss <= task(epsilon).guarantee().epsilon <= epsilon


def test_shares_are_unbiased_with_the_stated_error():
    norms = np.full(500, 0.25)
    shares = np.array([told(norms, 1.0, seed).shares for seed in range(400)])
    errors = shares.std(axis=0)
    assert np.abs(shares.mean(axis=0) - np.eye(N_LEVELS)[2]).max() < 4.5 * errors.max() / 20
    others = np.delete(errors, 2)
    assert np.abs(others / levels_error(1.0, 500) - 1).max() < 0.2


@pytest.mark.parametrize("sums", [(-1,) + (0,) * 19, (3,) + (0,) * 19, (0,) * 19, (0,) * 21])
def test_impossible_counts_are_refused(sums):
    asked = task()
    with pytest.raises(ValueError, match="sums"):
        asked.mean(Report(asked.hash, 2, sums))


def mean_beyond(norms, radius):
    return np.maximum(norms - radius, 0).mean()


@pytest.mark.parametrize("share", [0.01, 0.04, 0.1])
def test_rare_large_norms_are_not_cut_off_as_people_grow(share):
    """The attack of a point mass: nearly everybody has the same small norm, and all that matters is rare."""
    for n in (20_000, 200_000):
        norms = np.where(np.random.default_rng(0).random(n) < share, 1.0, 0.001)
        noise = 10 / math.sqrt(n)

        def error(radius, norms=norms, noise=noise):
            return math.hypot(noise * radius, mean_beyond(norms, radius))

        radius = told(norms, 8.0).radius_of_gradients(noise)
        assert error(radius) < 1.2 * min(map(error, 2.0 ** np.arange(-12, 1, 0.25)))


def radius_within(norms, seed, radius_of=2e-3):
    return told(norms, 4.0, seed, expected=0.05).radius_within(0.05, radius_of)


def test_fractions_are_those_of_the_distribution():
    norms = np.minimum(np.abs(0.1 * np.random.default_rng(0).standard_normal(200_000)), 1)
    levels = told(norms, 8.0)
    for radius in (0.05, 0.1, 0.3):
        assert levels.kept(radius) == pytest.approx((norms <= radius).mean(), abs=0.06)
        shortened = np.minimum(1, radius / np.maximum(norms, 1e-9)).mean()
        assert levels.shortened(radius) == pytest.approx(shortened, abs=0.06)
        assert levels.bias(radius) >= 0.95 * mean_beyond(norms, radius)
    assert levels.bias(1.0) == 0
    assert [levels.radius_within(0.1, noise) for noise in (1.0, 0.01)] == sorted(
        levels.radius_within(0.1, noise) for noise in (1.0, 0.01)
    )


@pytest.mark.parametrize("shift", [-3, 0, 2])
def test_reports_are_pooled_at_the_same_norms(shift):
    rng = np.random.default_rng(0)
    first, second = rng.random((2, N_LEVELS))
    both = pooled(pooled(None, 4.0, first, 30), 4.0 * 2.0**shift, second, 10)
    expected = 10 * second
    for level, share in enumerate(first):
        expected[min(max(level + shift, 0), N_LEVELS - 1)] += 30 * share
    np.testing.assert_allclose(both["shares"], expected / 40)
    assert both["people"] == 40


def test_people_whom_noise_may_hide_count_up_to_twice_the_radius():
    norms = np.abs(np.random.default_rng(0).standard_normal(20_000)) / 20
    levels = told(norms, 1.0)
    radius = 0.2
    reference = levels._weights @ references(1)
    hidden = positive_means(levels.shares - reference, levels._errors(reference, 1))
    # People at up to .4 report 1/4 or 1/2.
    expected = math.hypot(levels.bias(radius, 0.5), hidden[2] * 0.05 + hidden[1] * 0.2)
    assert levels.bias_with_hidden(radius, 0.5) == pytest.approx(expected)
    assert levels.bias_with_hidden(radius, 0.5) > levels.bias(radius, 0.5)
