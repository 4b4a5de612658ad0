import hashlib
import hmac
import struct

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skldp.accounting.ledger.identity import canonical_ids, first_repeated, row_identities


def test_integers_of_any_kind_are_one_person_and_strings_are_others():
    several = [1, np.int64(1), np.uint8(1), *np.array([1], dtype=np.int16), *np.array([1, None], dtype=object)[:1]]
    assert canonical_ids(several) == [1] * 5
    assert all(type(value) is int for value in canonical_ids(several))
    assert canonical_ids([1, "1", np.str_("1"), b"1"]) == [1, "1", "1", b"1"]
    assert canonical_ids(pd.Series(["a", "b"])) == ["a", "b"]
    assert canonical_ids(np.array([2**63], dtype=np.uint64) - np.uint64(1)) == [2**63 - 1]


@pytest.mark.parametrize("wrong", [True, np.True_, 1.0, np.float64(1), None, (1,), float("nan"), pd.NaT, pd.NA])
def test_other_types_are_refused(wrong):
    with pytest.raises(TypeError, match="An id must be an integer or a string"):
        canonical_ids([1, wrong])


@pytest.mark.parametrize(
    "array", [np.array([1.0, 2.0]), np.array([True, False]), np.array(["2020-01-01"], dtype="M8[D]")]
)
def test_arrays_of_other_types_are_refused(array):
    with pytest.raises(TypeError, match="An id must be an integer or a string"):
        canonical_ids(array)


def test_what_is_no_list_of_usable_ids_is_refused():
    with pytest.raises(TypeError, match="one id per person"):
        canonical_ids("anna")
    with pytest.raises(ValueError, match="one-dimensional"):
        canonical_ids(np.zeros((2, 2), dtype=int))
    with pytest.raises(ValueError, match="64 bits"):
        canonical_ids([2**63])
    with pytest.raises(ValueError, match="Unicode"):
        canonical_ids(["\ud800"])


def test_the_first_repeated_id():
    assert first_repeated([1, "1", b"1", 2]) is None
    assert first_repeated(["a", 1, "b", 1, "a"]) == 1


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=4), st.binary(max_size=8))
def test_a_row_is_the_hmac_of_its_numbers(row, key):
    packed = struct.pack(f"<{len(row)}d", *(0.0 if value == 0 else value for value in row))
    assert row_identities([row], key) == [hmac.new(key, packed, hashlib.sha256).digest()]


def test_equal_records_are_one_person_whatever_their_type_and_layout():
    rows = np.array([[0.5, -0.0], [0.25, 3.0]])
    whole = row_identities(rows, b"k")
    assert row_identities(np.asfortranarray(rows), b"k") == whole
    assert row_identities(rows.astype(np.float32), b"k") == whole
    assert row_identities(np.abs(rows), b"k") == whole
    assert row_identities(rows, b"other") != whole
    assert len({*whole, *row_identities(rows[:, ::-1], b"k"), *row_identities(rows[:, :1], b"k")}) == 6


def test_rows_that_are_nobody_are_refused():
    with pytest.raises(ValueError, match="nobody in particular"):
        row_identities([[np.nan]], b"k")
    with pytest.raises(ValueError, match="shape"):
        row_identities([1.0], b"k")
