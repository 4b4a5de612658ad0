"""One's-complement codes are the sign-magnitude codes, written differently."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.mechanisms._bits.buffers import (
    LONGEST,
    Buffers,
    complement_codes,
    decode_complement,
    encode_complement,
    is_exact,
)
from skldp.mechanisms._bits.decoding import fixed_point_decoder, plain_bits
from skldp.mechanisms._bits.fixed_point import FixedPoint


@given(st.integers(2, LONGEST), st.integers(-20, 20), st.sampled_from([np.float32, np.float64]), st.data())
@settings(max_examples=100, deadline=None)
def test_the_code_is_the_complement_of_the_published_one(n_bits, m, dtype, data):
    grid = FixedPoint(n_bits, m)
    edges = np.arange(-(2 ** (n_bits - 1)), 2 ** (n_bits - 1) + 1) * grid.step
    drawn = data.draw(st.lists(st.floats(-3, 3).map(lambda x: x * 2.0**m), max_size=20))
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.concatenate(
        [edges, np.nextafter(edges, 9e9), np.nextafter(edges, -9e9), drawn, [0.0, -0.0, tiny, -tiny, 1e30, -1e30]]
    ).astype(dtype)
    buffers, kept = Buffers(values.size, np.uint16), values.copy()
    codes = grid.encode(values).astype(np.uint16)
    signed = encode_complement(grid, values, float(np.abs(values).max()), np.empty_like(values), buffers)
    np.testing.assert_array_equal(values, kept)
    # The sign bit is 1 for positive numbers: what the complement has is the other sign.
    top = np.uint16(1 << (n_bits - 1))
    np.testing.assert_array_equal(signed.view(np.uint16), complement_codes(codes ^ top, n_bits))
    numbers = decode_complement(grid, signed.copy(), np.empty_like(values), buffers)
    np.testing.assert_array_equal(numbers, grid.decode(codes, dtype))
    decoder = fixed_point_decoder(grid, plain_bits(n_bits))
    np.testing.assert_array_equal(decoder.decode_complement(signed, np.empty_like(values), buffers), numbers)


@given(st.integers(2, LONGEST), st.data())
@settings(max_examples=50, deadline=None)
def test_a_mask_flips_the_same_bits_of_both_codes(n_bits, data):
    some = st.lists(st.integers(0, 2**n_bits - 1), min_size=10, max_size=10)
    codes, masks = (np.array(data.draw(some), dtype=np.uint16) for _ in range(2))
    np.testing.assert_array_equal(
        complement_codes(codes, n_bits) ^ complement_codes(masks, n_bits), complement_codes(codes ^ masks, n_bits)
    )


def test_far_exponents_go_the_long_way():
    assert is_exact(FixedPoint(10, 0), np.dtype(np.float32))
    assert not is_exact(FixedPoint(10, 120), np.dtype(np.float32))
    assert is_exact(FixedPoint(10, 120), np.dtype(np.float64))
    assert not is_exact(FixedPoint(LONGEST + 1, 0), np.dtype(np.float64))
