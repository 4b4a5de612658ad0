"""Duchi's short way: 16 random bits decide whenever they would decide among 64."""

import numpy as np
import pytest
from laws import released

from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._unit_mechanisms import Duchi


class FirstAndTail(Noise):
    """Noise of one signed 64-bit word: its first 16 bits, then the other 48 in the top of a word; or all at once."""

    def __init__(self, first, tail):
        super().__init__(bytes(32), secure=False)
        self.first, self.tail, self.begun = first, tail, False

    def words(self, shape, dtype=np.uint64):
        if dtype == np.uint16:
            self.begun = True
            return np.full(shape, self.first % 2**16, dtype=np.uint16)
        # The 16 bits below the tail are not used.
        word = self.tail << 16 | 0xBEEF if self.begun else (self.first << 48 | self.tail) % 2**64
        return np.full(shape, word, dtype=np.uint64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 2.61, 9.0, 9.7, 12.0])
def test_16_bits_decide_as_64_would(epsilon, dtype):
    """Every first word around the threshold's, with extreme tails: the answer is that of the whole 64-bit word."""
    mechanism = Duchi(epsilon)
    rng = np.random.default_rng(4)
    # Below 0, next to where the first 16 bits change, rounding and cutting off add up.
    edges = -np.arange(118, 128) / (mechanism.integer_law.slope * 2.0**-48)
    edges = edges[edges > -1].astype(dtype)
    inputs = np.concatenate([[-1, -1e-12, 0, 1e-12, 1, -0.5, 0.5], rng.uniform(-1, 1, 40), edges]).astype(dtype)
    inputs = np.concatenate([inputs, np.nextafter(edges, dtype(0)), np.nextafter(edges, dtype(-1))])
    for x in inputs:
        threshold = round(float(x) * float(mechanism.integer_law.slope))
        firsts = [(threshold >> 48) + near for near in range(-6, 7)] + rng.integers(-(2**15), 2**15, 20).tolist()
        for first in firsts:
            if not -(2**15) <= first < 2**15:
                continue
            for tail in (0, 1, 2**47, 2**48 - 1, threshold % 2**48, max(threshold % 2**48 - 1, 0)):
                answer = released(mechanism, np.array([x], dtype=dtype), FirstAndTail(first, tail))
                assert (answer[0] > 0) == ((first << 48 | tail) < threshold)
