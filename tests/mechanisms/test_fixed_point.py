"""Encoding against Equation 1 written out in exact rationals, and its edges."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.bits._fixed_point import (
    LONGEST,
    FixedPoint,
    complement_codes,
    decode_complement,
    encode_complement,
    fixed_point_decoder,
    integer_bits,
    plain_bits,
)

sizes = st.tuples(st.integers(2, 64), st.integers(-70, 70))


def naive_code(x, n_bits, m):
    """Equation 1 bit by bit, with saturation where it would wrap."""
    magnitude = abs(Fraction(float(x)))
    if magnitude >= Fraction(2) ** m:
        magnitude = Fraction(2) ** m - Fraction(2) ** (m - n_bits + 1)
    bits = [int(x >= 0)] + [math.floor(Fraction(2) ** (i - m) * magnitude) % 2 for i in range(1, n_bits)]
    return int("".join(map(str, bits)), 2)


def naive_value(code, n_bits, m):
    bits = [code >> (n_bits - 1 - i) & 1 for i in range(n_bits)]
    return (2 * bits[0] - 1) * sum((bits[i] * Fraction(2) ** (m - i) for i in range(1, n_bits)), Fraction(0))


@given(sizes, st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
@settings(max_examples=300, deadline=None)
def test_encodes_doubles_as_equation_1_says(size, values):
    codes = FixedPoint(*size).encode(np.array(values))
    assert [int(code) for code in codes] == [naive_code(x, *size) for x in values]


@given(sizes, st.lists(st.floats(-4, 4), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_values_near_the_largest_magnitude_do_not_wrap(size, values):
    values = np.ldexp(values, size[1])
    codes = FixedPoint(*size).encode(values)
    assert [int(code) for code in codes] == [naive_code(x, *size) for x in values]


@given(sizes, st.data())
@settings(max_examples=200, deadline=None)
def test_decodes_every_code(size, data):
    encoding = FixedPoint(*size)
    code = data.draw(st.integers(0, 2 ** size[0] - 1))
    decoded = float(encoding.decode(np.array([code], dtype=np.uint64))[0])
    assert decoded == float(naive_value(code, *size))
    if size[0] <= 54:
        assert int(encoding.encode(np.array([decoded]))[0]) in (code, 2 ** (size[0] - 1))


@pytest.mark.parametrize(
    ("n_bits", "kind"), [(2, "u1"), (8, "u1"), (9, "u2"), (16, "u2"), (17, "u4"), (33, "u8"), (64, "u8")]
)
def test_codes_are_as_small_as_fits(n_bits, kind):
    assert FixedPoint(n_bits, 0).encode(np.zeros(3)).dtype == np.dtype(kind)


def test_sensitivities_are_those_of_lemma_1():
    for n_bits, m in ((5, 2), (10, 0), (4, -3)):
        assert FixedPoint(n_bits, m).sensitivities.tolist() == [
            2.0 ** (m + 1),
            *(2.0 ** (m - i) for i in range(1, n_bits)),
        ]


def test_a_flipped_bit_moves_the_number_by_at_most_its_sensitivity():
    encoding = FixedPoint(6, 1)
    codes = np.arange(64, dtype=np.uint8)
    for place, sensitivity in enumerate(encoding.sensitivities):
        moved = np.abs(encoding.decode(codes ^ np.uint8(1 << (5 - place))) - encoding.decode(codes))
        largest = 2 * encoding.largest if place == 0 else sensitivity
        assert moved.max() == largest <= sensitivity


@pytest.mark.parametrize("bound", [1.0, 0.25, 0.2500001, 5.5, 1e-310, 8.0, 3e300])
def test_integer_bits_are_the_least_that_hold_the_bound(bound):
    m = integer_bits(bound)
    assert Fraction(2) ** m >= Fraction(bound) > Fraction(2) ** (m - 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_refuses_values_that_are_not_finite(bad, dtype):
    with pytest.raises(ValueError, match="finite"):
        FixedPoint(8, 0).encode(np.array([0.5, bad, 0.1], dtype=dtype))


@pytest.mark.parametrize(
    ("n_bits", "m"), [(1, 0), (65, 0), (True, 0), (4.0, 0), (8, True), (8, 0.5), (8, 1023), (8, -1068)]
)
def test_refuses_sizes_out_of_range(n_bits, m):
    with pytest.raises(ValueError, match=r"n_(integer_)?bits must be"):
        FixedPoint(n_bits, m)


@given(st.integers(2, 7), st.integers(-2, 2), st.floats(-2, 2), st.floats(-2, 2))
@settings(max_examples=200, deadline=None)
def test_reachable_magnitudes_are_those_of_the_values_within_the_bounds(n_bits, m, one, other):
    low, high = sorted((one, other))
    encoding = FixedPoint(n_bits, m)
    edges = np.arange(-(2 ** (n_bits - 1)), 2 ** (n_bits - 1) + 1) * encoding.step
    values = np.concatenate([[low, high], edges, np.nextafter(edges, -9)])
    codes = encoding.encode(values[(values >= low) & (values <= high)]).astype(int)
    top = 2 ** (n_bits - 1)
    (ends,) = encoding.reachable(encoding.encode([[low, high]])).astype(int)
    for sign in (0, 1):
        expected = sorted({code - sign * top for code in codes if code // top == sign})
        assert list(range(ends[sign, 0], ends[sign, 1] + 1)) == expected


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
    # Codes are limited as floats, as integers, or not at all: by how far the values are from 0.
    for most in (np.inf, 2.0**15 * grid.step, grid.largest + grid.step):
        some = values[np.abs(values) < most]
        workspace, kept, out = Workspace(), some.copy(), np.empty_like(some)
        codes = grid.encode(some).astype(np.uint16)
        signed = encode_complement(grid, some, float(np.abs(some).max()), np.empty_like(some), workspace)
        np.testing.assert_array_equal(some, kept)
        # The sign bit is 1 for positive numbers: what the complement has is the other sign.
        top = np.uint16(1 << (n_bits - 1))
        np.testing.assert_array_equal(signed.view(np.uint16), complement_codes(codes ^ top, n_bits))
        decode_complement(grid, signed.copy(), out, workspace)
        np.testing.assert_array_equal(out, grid.decode(codes, dtype))
        decoder = fixed_point_decoder(grid, plain_bits(n_bits))
        np.testing.assert_array_equal(decoder.decode_complement(signed, np.empty_like(some), workspace), out)


@given(st.integers(2, LONGEST), st.data())
@settings(max_examples=50, deadline=None)
def test_a_mask_flips_the_same_bits_of_both_codes(n_bits, data):
    some = st.lists(st.integers(0, 2**n_bits - 1), min_size=10, max_size=10)
    codes, masks = (np.array(data.draw(some), dtype=np.uint16) for _ in range(2))
    np.testing.assert_array_equal(
        complement_codes(codes, n_bits) ^ complement_codes(masks, n_bits), complement_codes(codes ^ masks, n_bits)
    )
