"""The unbiased release: mean and variance against enumeration, the allocation against rivals, the guarantee."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, chi_square_pvalue, seeded
from scipy.optimize import minimize

from skldp.domains._domain import Box
from skldp.mechanisms.bits._calibration import least_integer
from skldp.mechanisms.bits._flip_laws import symmetric_law
from skldp.mechanisms.bits._unbiased import (
    UnbiasedBitFlip,
    least_variance_losses,
    least_variance_sample,
    unbiased_bitrand,
    worst_variance,
)

cost_lists = st.lists(st.floats(0.3, 6), min_size=1, max_size=5)


def released_law(costs, unit):
    """Numbers and chances of the release of one value in [-1, 1], written out bit by bit from the integers."""
    law = symmetric_law(costs)
    q = [Fraction(int(t), 2**64) for t in law.from_zero]
    n_magnitude = len(costs) - 1
    last = max(1, 2**n_magnitude - 1)
    unit = Fraction(unit)
    if n_magnitude:
        position, sign = abs(unit) * last, int(unit >= 0)
    else:
        position, sign = (1 + unit) / 2, 0
    lower = math.floor(position)
    inputs = [(lower, 1 - (position - lower)), (lower + 1, position - lower)]
    law = {}
    for magnitude, chance in inputs:
        if not chance:
            continue
        bits = [sign] if n_magnitude else [magnitude]
        bits += [magnitude >> (n_magnitude - 1 - i) & 1 for i in range(n_magnitude)]
        for output in range(2 ** len(costs)):
            out = [output >> (len(costs) - 1 - i) & 1 for i in range(len(costs))]
            weight = chance
            for place, (given_bit, out_bit) in enumerate(zip(bits, out, strict=True)):
                weight *= q[place] if given_bit != out_bit else 1 - q[place]
            hats = [(b - q[i]) / (1 - 2 * q[i]) for i, b in enumerate(out)]
            size = sum(h * 2 ** (n_magnitude - 1 - i) for i, h in enumerate(hats[1:])) / Fraction(last)
            law[output] = law.get(output, 0) + weight
            law["number", output] = (2 * hats[0] - 1) * (size if n_magnitude else 1)
    return [law["number", o] for o in range(2 ** len(costs))], [law[o] for o in range(2 ** len(costs))]


def one_feature(costs, low=-1.0, high=1.0):
    return UnbiasedBitFlip(Box((low,), (high,)), symmetric_law(costs), n_sampled=1)


@given(cost_lists, st.floats(-1, 1))
@settings(max_examples=60, deadline=None)
def test_the_law_is_exactly_unbiased_and_varies_as_said(costs, unit):
    numbers, chances = released_law(costs, unit)
    mean = sum(n * c for n, c in zip(numbers, chances, strict=True))
    assert mean == Fraction(unit)
    variance = float(sum(n * n * c for n, c in zip(numbers, chances, strict=True)) - mean**2)
    mechanism = one_feature(costs)
    assert mechanism.bias([[unit]])[0, 0] == pytest.approx(0, abs=1e-12)
    assert mechanism.variance([[unit]])[0, 0] == pytest.approx(variance, rel=1e-9, abs=1e-12)


@given(cost_lists)
@settings(max_examples=40, deadline=None)
def test_the_worst_variance_is_the_maximum_over_the_domain(costs):
    last = max(1, 2 ** (len(costs) - 1) - 1)
    x = np.unique(np.concatenate([np.linspace(-1, 1, 4001), np.arange(last + 1) / last]))[:, None]
    found = one_feature(costs).variance(x).max()
    assert found <= worst_variance(costs) * (1 + 1e-9)
    assert found >= worst_variance(costs) * (1 - 1e-3)


@pytest.mark.parametrize("costs", [[1.5], [2.0, 1.0], [2.0, 1.5, 0.7]])
@pytest.mark.parametrize("unit", [-1.0, -0.2, 0.0, 0.6, 1.0])
def test_what_is_released_follows_the_law(costs, unit):
    numbers, chances = released_law(costs, unit)
    released = one_feature(costs).release(np.full((100_000, 1), unit), seeded(7)).rows.ravel()
    values = np.array([float(n) for n in numbers])
    order = np.argsort(values)
    near = np.searchsorted((values[order][1:] + values[order][:-1]) / 2, released)
    np.testing.assert_allclose(values[order][near], released, atol=1e-9)
    distinct, first = np.unique(np.round(values[order], 9), return_inverse=True)
    counts = np.bincount(first[near], minlength=len(distinct))
    expected = np.bincount(first, weights=[float(chances[o]) for o in order])
    assert chi_square_pvalue(counts, expected) > THRESHOLD


def test_the_chance_to_round_up_is_an_exact_integer(monkeypatch):
    """The threshold of the rounding is the fraction itself, to the last bit."""
    mechanism = one_feature([2.0, 1.0, 1.0])
    stream, seen = seeded(1), []
    monkeypatch.setattr(stream, "bernoulli", lambda t, size=None: seen.append(t) or np.zeros(t.shape, bool))
    x = np.array([[0.1], [-0.7], [1.0], [0.0], [1 / 3]])
    mechanism.release(x, stream)
    exact = [(abs(Fraction(float(v))) * 3) for v in x.ravel()]
    for threshold, position in zip(seen[0].ravel(), exact, strict=True):
        apart = (Fraction(int(threshold), 2**64) - position) % 1
        assert min(apart, 1 - apart) <= Fraction(1, 2**51)


@pytest.mark.parametrize("budget", [0.01, 0.5, 1.0, 3.0, 5.0, 9.0])
def test_no_other_allocation_varies_less(budget):
    best = worst_variance(least_variance_losses(budget, 10))
    for n_magnitude in range(4):
        start = np.full(n_magnitude + 1, budget / (n_magnitude + 1))
        if n_magnitude == 0:
            assert best <= worst_variance(start) * (1 + 1e-9)
            continue
        rival = minimize(
            lambda costs: math.log(worst_variance(costs)),
            start,
            bounds=[(budget * 1e-3, None)] * len(start),
            constraints={"type": "eq", "fun": lambda costs: costs.sum() - budget},
            method="SLSQP",
        )
        assert math.log(best) <= rival.fun + 1e-5


@pytest.mark.parametrize(("epsilon", "n_features"), [(1.0, 12), (7.0, 12), (40.0, 20)])
def test_the_number_of_released_features_varies_least(epsilon, n_features):
    def variance(k):
        return worst_variance(least_variance_losses(epsilon / k, 8, n_features, k), n_features, k)

    chosen = least_variance_sample(epsilon, 8, n_features)
    assert variance(chosen) == min(variance(k) for k in range(1, n_features + 1))


@given(st.integers(1, 5000), st.data())
def test_the_integer_search_finds_the_floor_of_a_valley(most, data):
    floor = data.draw(st.integers(1, most))
    assert least_integer(lambda k: abs(math.log(k / floor)), most) == floor


def test_bounds_differ_and_sampling_keeps_the_mean():
    low, high = np.array([-1.0, 0.0, 5.0]), np.array([1.0, 10.0, 6.0])
    mechanism = unbiased_bitrand(3.0, Box.of(low, high), 10, 2)
    x = np.array([[0.3, 9.0, 5.1]])
    np.testing.assert_allclose(mechanism.bias(x), 0, atol=1e-12)
    released = mechanism.release(np.repeat(x, 200_000, axis=0), seeded(4)).rows
    error = (released.mean(axis=0) - x[0]) / np.sqrt(mechanism.variance(x)[0] / 200_000)
    assert (np.abs(error) < 5).all()
    np.testing.assert_allclose(released.var(axis=0), mechanism.variance(x)[0], rtol=0.02)
    centre = (low + high) / 2
    assert ((released != centre).sum(axis=1) == 2).all()


def test_the_guarantee_is_the_sum_over_what_is_released():
    mechanism = unbiased_bitrand(6.0, Box((0.0,) * 5, (1.0,) * 5), 10, 3)
    law = mechanism.law
    t = [int(v) for v in law.from_zero]
    per_feature = sum(abs(math.log((2**64 - v) / v)) for v in t)
    guarantee = mechanism.guarantee()
    assert guarantee.epsilon == pytest.approx(3 * per_feature, rel=1e-12)
    assert 6.0 * (1 - 1e-9) <= guarantee.epsilon <= 6.0
