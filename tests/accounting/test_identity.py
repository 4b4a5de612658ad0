import hashlib
import hmac
import struct

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skldp.accounting.ledger._records import row_identities
from skldp.laws._person_ids import canonical_ids, distinct_ids, person_bytes

# Unicode's default ignorable code points that Python calls printable, and three more that show nothing.
INVISIBLE = {
    *map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x3164, 0xFFA0, 0x2800, 0x16FE4, 0x1D159)),
    *(
        chr(code)
        for first, last in ((0x180B, 0x180E), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
        for code in range(first, last + 1)
    ),
}


def test_ids_of_arrow_are_those_of_its_cells():
    pa = pytest.importorskip("pyarrow")
    names, places = ["ann", "bob", "ann"], [7, 2**63 - 1, -7]
    for arrow in (pa.array(names), pa.array(names).dictionary_encode(), pa.chunked_array([names[:1], names[1:]])):
        assert canonical_ids(arrow) == canonical_ids(list(arrow)) == names
    for kind in (pa.int64(), pa.dictionary(pa.int8(), pa.int64())):
        found = canonical_ids(pa.array(places, kind))
        assert (found, set(map(type, found))) == (places, {int})
    for wrong in (pa.array([1, None]), pa.array([1.0, 2.0]), pa.array([b"ann"]), pa.array([True]), pa.array([[1]])):
        with pytest.raises(TypeError, match="An id must be an integer or a string"):
            canonical_ids(wrong)
    with pytest.raises(ValueError, match="in row 4"):
        canonical_ids(pa.array(["ann", "ann "]), 3)


def test_integers_of_any_kind_are_one_person_and_strings_are_others():
    several = [1, np.int64(1), np.uint8(1), *np.array([1], dtype=np.int16), *np.array([1, None], dtype=object)[:1]]
    assert canonical_ids(several) == [1] * 5
    assert all(type(value) is int for value in canonical_ids(several))
    assert canonical_ids([1, "1", np.str_("1")]) == [1, "1", "1"]
    assert all(type(value) is str for value in canonical_ids(np.array(["a", "b"])))
    assert canonical_ids(np.array([2**63], dtype=np.uint64) - np.uint64(1)) == [2**63 - 1]


@pytest.mark.parametrize("ids", [["a", "b"], [3, 1]])
def test_columns_and_indices_of_data_frames_hold_ids(ids):
    for column in (pd.Series(ids), pd.Index(ids), pd.Series(ids, dtype="category"), pl.Series(ids), np.array(ids)):
        assert canonical_ids(column) == ids
    assert canonical_ids(pd.Series([3, 1], dtype="Int64")) == [3, 1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "alice ",
        "\talice",
        "alice\n",
        "al\x00ice",
        "ali\u00adce",  # a soft hyphen
        "alice\u200b",  # a blank of no width
        "anna\u00a0b",  # a blank that is no space
        "\ufeffalice",
        "ann\ufe0f",  # a selector of a variant, which Python calls printable
        "a\u034fnn",  # a joiner of graphemes
        "ann\u3164",  # a filler of Hangul
        "ann\U000e0100",
        "\u2800ann",  # a pattern of Braille without a dot
        "Zoe\u0308",  # e and a diaeresis, which is one character in the normal form
        "\u212bke",  # the sign of the unit angstrom
        "\ud800",
    ],
)
def test_strings_that_could_make_two_people_of_one_are_refused(text):
    with pytest.raises(ValueError, match=r"normal form C.*at position 2") as caught:
        canonical_ids(["bob", 4, text])
    assert not text.strip() or text.strip() not in str(caught.value)


@pytest.mark.parametrize("text", ["17.0", "-17.", "0.00", "+17.0", "17,0", "-17,"])
def test_an_integer_of_a_column_with_a_gap_is_nobody_new(text):
    with pytest.raises(ValueError, match=r"integer without a decimal mark.*at position 0") as caught:
        canonical_ids([text])
    assert "17" not in str(caught.value)
    with pytest.raises(ValueError, match="in row 8"):
        canonical_ids([1, text], 7)


def test_what_cannot_be_seen_makes_nobody_new():
    for mark in INVISIBLE:
        with pytest.raises(ValueError, match="invisible marks"):
            canonical_ids([f"ann{mark}"])


@pytest.mark.parametrize(
    "wrong", [True, np.True_, 1.0, np.float64(1), None, (1,), float("nan"), pd.NaT, pd.NA, b"ann", np.bytes_(b"ann")]
)
def test_other_types_are_refused(wrong):
    with pytest.raises(TypeError, match=f"An id must be an integer or a string; got a {type(wrong).__name__} at posi"):
        canonical_ids([1, wrong])


def test_integers_that_a_merge_turned_into_floats_are_refused_with_a_hint():
    merged = pd.DataFrame({"person": [7, 8]}).merge(pd.DataFrame({"person": [7], "dose": [1]}), how="left")
    merged = merged.merge(pd.DataFrame({"dose": [1.0], "doctor": [4]}), how="left")
    with pytest.raises(TypeError, match=r"got a float at position 0 .* to floats if some are missing"):
        canonical_ids(merged["doctor"])


def test_what_is_no_list_of_ids_is_refused():
    for ids in ("anna", b"anna", {"anna", "bob"}, {"anna": 1}, frozenset("ab"), 7, None):
        with pytest.raises(TypeError, match=f"one id per person; got a {type(ids).__name__}"):
            canonical_ids(ids)
    for table in (np.zeros((2, 2), dtype=int), pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})):
        with pytest.raises(ValueError, match="one-dimensional"):
            canonical_ids(table)
    with pytest.raises(ValueError, match=r"64 bits; got a larger one at position 1"):
        canonical_ids([0, 2**63])


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=4), st.binary(max_size=8))
def test_a_row_is_the_hmac_of_its_numbers_and_counts_its_equals(row, key):
    packed = struct.pack(f"={len(row)}d", *(0.0 if value == 0 else value for value in row))
    digest = hmac.new(key, packed, hashlib.sha256).hexdigest()
    assert row_identities([row, row, row], key) == [f"{digest} {k}" for k in range(3)]
    assert canonical_ids(row_identities([row], key)) == row_identities([row], key)


def test_rows_are_people_whatever_their_layout_and_differ_with_the_key():
    rows = np.array([[0.5, -0.0], [0.25, 3.0]])
    whole = row_identities(rows, b"k")
    assert row_identities(np.asfortranarray(rows), b"k") == whole
    assert row_identities(rows.astype(np.float32), b"k") == whole
    assert row_identities(np.abs(rows), b"k") == whole
    assert len({*whole, *row_identities(rows, b"o"), *row_identities(rows[:, ::-1], b"k")}) == 6


def test_an_integer_and_its_text_have_one_encoding():
    assert person_bytes(7) == person_bytes("7") == b"i7"
    assert {person_bytes(one) for one in ("07", "7th", "-07", str(2**63))} == {b"s07", b"s7th", b"s-07", b"s%d" % 2**63}


def test_a_repeated_id_is_told_by_its_positions():
    assert distinct_ids([1, "01", 2]) == [1, "01", 2]
    for twice in ([7, "8", "7"], ["7", 8, 7], [np.int8(7), 8, np.str_("7")]):
        with pytest.raises(ValueError, match="at positions 0 and 2 "):
            distinct_ids(twice)
    with pytest.raises(ValueError, match="at positions 1 and 3 ") as caught:
        distinct_ids(["anna", 17, "bob", np.int8(17), "anna"])
    assert "anna" not in str(caught.value)
    assert "17" not in str(caught.value)
