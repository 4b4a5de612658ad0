"""The dynamic program against all pairs of codes."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.domains._domain import Box
from skldp.mechanisms.bits._calibration import Intervals, worst_losses, worst_pair_losses
from skldp.mechanisms.bits._fixed_point import FixedPoint
from skldp.mechanisms.bits._flip_laws import BitLaw

words = st.integers(1, 2**64 - 1)


def all_codes(ends, n_bits):
    return [
        [sign] + [magnitude >> (n_bits - 2 - i) & 1 for i in range(n_bits - 1)]
        for sign in (0, 1)
        for magnitude in range(int(ends[sign, 0]), int(ends[sign, 1]) + 1)
    ]


def brute_force(costs, ends):
    codes = all_codes(ends, len(costs))
    return max(
        sum(costs[i, a, b] for i, (a, b) in enumerate(zip(one, other, strict=True))) for one in codes for other in codes
    )


@given(st.integers(2, 6), st.integers(-2, 2), st.data())
@settings(max_examples=150, deadline=None)
def test_finds_the_worst_pair_within_any_bounds(n_bits, m, data):
    ends = st.floats(-1.2, 1.2).map(lambda x: x * 2.0**m)
    bounds = data.draw(st.lists(st.tuples(ends, ends).map(sorted), min_size=1, max_size=4))
    law = BitLaw(*(np.array(data.draw(st.lists(words, min_size=n_bits, max_size=n_bits)), np.uint64) for _ in range(2)))
    encoding = FixedPoint(n_bits, m)
    reachable = encoding.reachable(encoding.encode(bounds))
    worst = worst_pair_losses(law.losses, reachable)
    expected = [brute_force(law.losses, one) for one in reachable]
    np.testing.assert_allclose(worst, expected, rtol=1e-12)
    assert (worst >= np.array(expected)).all()


def test_many_different_bounds_go_in_parts():
    encoding = FixedPoint(12, 0)
    rng = np.random.default_rng(0)
    low = rng.uniform(-1, 0.5, 5000)
    reachable = encoding.reachable(encoding.encode(np.stack([low, low + rng.uniform(0.001, 0.5, 5000)], axis=1)))
    law = BitLaw(*rng.integers(1, 2**63, (2, 12), dtype=np.uint64))
    together = worst_pair_losses(law.losses, reachable)
    for row in range(0, 5000, 500):
        assert together[row] == worst_pair_losses(law.losses, reachable[row : row + 1])[0]


def test_bits_that_no_two_values_differ_in_cost_nothing():
    encoding = FixedPoint(10, 0)
    costs = np.zeros((10, 2, 2))
    costs[:, 0, 1] = costs[:, 1, 0] = 1.0
    one_signed, narrow, whole, single = worst_pair_losses(
        costs, encoding.reachable(encoding.encode([(0.0, 1.0), (0.5, 0.625), (-1.0, 1.0), (0.1, 0.1 + 1e-9)]))
    )
    assert np.allclose([one_signed, narrow, whole, single], [9, 7, 10, 0])


@given(st.sampled_from([5, 10, 40]), st.integers(1, 3), st.integers(1, 9), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_equal_intervals_are_counted_and_not_repeated(n_bits, n_laws, n_sampled, random):
    bounds = [random.choice([(-1.0, 1.0), (0.25, 1.0), (-0.5, 0.75)]) for _ in range(9)]
    encoding = FixedPoint(n_bits, 0)
    chances = [np.array([random.randrange(1, 2**64) for _ in range(n_bits)], np.uint64) for _ in range(2 * n_laws)]
    laws = [BitLaw(*pair) for pair in zip(chances[::2], chances[1::2], strict=True)]
    intervals = Intervals.of(encoding, Box.of(*np.array(bounds).T), n_laws)
    reachable = encoding.reachable(encoding.encode(bounds))
    alone = [worst_pair_losses(laws[j % n_laws].losses, reachable[j : j + 1])[0] for j in range(9)]
    expected = math.fsum(sorted(alone)[9 - n_sampled :]) * (1 + 2.0**-50)
    assert worst_losses(tuple(laws), intervals, n_sampled) == (expected, max(alone))
    assert [len(some.counts) for some in intervals] == [len(set(bounds[start::n_laws])) for start in range(n_laws)]


def test_bounds_of_all_features_are_one_interval():
    box = Box.of(np.full(10**6, -1.0), np.ones(10**6))
    one, other = Intervals.of(FixedPoint(9, 0), box, 2)
    assert box.shared == (-1.0, 1.0)
    assert one.counts.tolist() == other.counts.tolist() == [500_000]
