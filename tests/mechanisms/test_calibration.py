"""The dynamic program against all pairs of codes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.mechanisms.bits._calibration import worst_pair_losses
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
    reachable = FixedPoint(n_bits, m).reachable(*np.array(bounds).T)
    worst = worst_pair_losses(law.losses, reachable)
    expected = [brute_force(law.losses, one) for one in reachable]
    np.testing.assert_allclose(worst, expected, rtol=1e-12)
    assert (worst >= np.array(expected)).all()


def test_many_different_bounds_go_in_parts():
    encoding = FixedPoint(12, 0)
    rng = np.random.default_rng(0)
    low = rng.uniform(-1, 0.5, 5000)
    reachable = encoding.reachable(low, low + rng.uniform(0.001, 0.5, 5000))
    law = BitLaw(*rng.integers(1, 2**63, (2, 12), dtype=np.uint64))
    together = worst_pair_losses(law.losses, reachable)
    for row in range(0, 5000, 500):
        assert together[row] == worst_pair_losses(law.losses, reachable[row : row + 1])[0]


def test_bits_that_no_two_values_differ_in_cost_nothing():
    encoding = FixedPoint(10, 0)
    costs = np.zeros((10, 2, 2))
    costs[:, 0, 1] = costs[:, 1, 0] = 1.0
    one_signed, narrow, whole, single = worst_pair_losses(
        costs, encoding.reachable([0.0, 0.5, -1.0, 0.1], [1.0, 0.625, 1.0, 0.1 + 1e-9])
    )
    assert np.allclose([one_signed, narrow, whole, single], [9, 7, 10, 0])
