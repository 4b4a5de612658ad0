"""One value is read alike by every path: alone or in a column, of numpy, pandas, polars, Arrow or a text file."""

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skldp._reading import CodeReader, DayReader, NumberReader, Unread, as_array
from skldp._value_labels import value_labels

MISSING, UNREADABLE, UNKNOWN = Unread.MISSING, Unread.UNREADABLE, Unread.UNKNOWN
ONES = [1, 1.0, np.int8(1), np.int64(1), np.uint64(1), np.float16(1), np.float32(1), Decimal(1), Fraction(1)]
TRUES = [True, np.True_]
NOTHING = [
    None,
    float("nan"),
    np.float32("nan"),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT", "D"),
    Decimal("nan"),
    Decimal("snan"),
    np.ma.masked,
]


class Hostile:
    """A value that raises whatever is asked of it."""

    def _raise(self, *args):
        raise RuntimeError

    __hash__ = __eq__ = __ne__ = __str__ = __float__ = __bool__ = __len__ = _raise


ODD = [Hostile(), [1], {}, b"1", 1j, object(), np.timedelta64(1, "D"), np.array([1, 2]), int]


@pytest.mark.parametrize("one", ONES, ids=lambda one: type(one).__name__)
def test_one_is_the_declared_integer_1_of_every_type_of_numbers(one):
    assert CodeReader((0, 1)).read(one) == 1
    assert CodeReader(("1", True, 1)).read(one) == 2
    assert NumberReader().read(one) == 1
    assert CodeReader((True, False)).read(one) is UNREADABLE
    assert CodeReader(("1", "2")).read(one) is UNREADABLE


@pytest.mark.parametrize("true", TRUES, ids=lambda true: type(true).__name__)
def test_true_is_the_declared_1_unless_booleans_are_declared_and_never_a_number(true):
    assert CodeReader((1, True)).read(true) == 1
    assert CodeReader((1, False)).read(true) is UNKNOWN
    assert CodeReader((0, 1.0)).read(true) == CodeReader((0, 1.0)).read_all(np.array([true])).values[0] == 1
    assert CodeReader((0, 2)).read(true) is UNKNOWN
    assert CodeReader(("a", "1")).read(true) is UNREADABLE
    assert NumberReader().read(true) is NumberReader(text=True).read(true) is UNREADABLE


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("nothing", NOTHING, ids=lambda nothing: type(nothing).__name__)
def test_what_tables_have_where_there_is_no_value_is_missing(nothing, text):
    for reader in (NumberReader(text=text), DayReader(text=text), CodeReader((1, "a", None), text=text)):
        assert reader.read(nothing) is MISSING


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_a_value_of_another_type_is_unreadable_and_raises_nothing(odd, text):
    for reader in (NumberReader(text=text), DayReader(text=text), CodeReader((1, "a", True, None), text=text)):
        assert reader.read(odd) is UNREADABLE
        assert reader.read_all([odd, None]).state.tolist() == [UNREADABLE, MISSING]


def test_a_declared_text_comes_before_what_it_may_be_written_for():
    assert CodeReader(("1.0", "2.0"), text=True).read("1.0") == 0
    assert CodeReader(("1.0", "2.0"), text=True).read("1") is UNKNOWN
    assert CodeReader((2, "1.0"), text=True).read("1.0") == 1
    assert CodeReader((1, True, "a"), text=True).read("1") == 0


@pytest.mark.parametrize("values", [(1, "1"), (1, "1.0"), (True, "TRUE"), (0.5, "5e-1"), ("", "a"), ("1", 2, 1.0)])
def test_two_values_that_are_written_alike_are_no_column_of_a_text_file(values):
    assert CodeReader(values).read(values[0]) == 0
    with pytest.raises(ValueError, match="differ as texts of a text file"):
        CodeReader(values, text=True).check_texts()


def test_integers_beyond_the_doubles_are_told_apart():
    reader = CodeReader((2**53, 2**53 + 1))
    assert reader.read_all(np.array([2**53, 2**53 + 1, 2**53 + 2])).state.tolist() == [0, 0, UNKNOWN]
    assert reader.read_all(np.array([2.0**53])).values.tolist() == [0]
    small = CodeReader((0, 1))
    assert small.read_all(np.array([2**64 - 1, 2**63, 1], dtype=np.uint64)).state.tolist() == [UNKNOWN, UNKNOWN, 0]


def test_days_are_those_of_the_clock_they_were_written_by():
    day = 19782.0
    zone = datetime.timezone(datetime.timedelta(hours=9))
    late = datetime.datetime(2024, 2, 29, 23, 30, tzinfo=zone)
    for value in (
        datetime.date(2024, 2, 29), late, pd.Timestamp(late), np.datetime64("2024-02-29T23:59:59.999"),
        np.datetime64("2024-02-29", "ns"), "2024-02-29", "2024-02-29T23:30:00+09:00", "2024-02-29 23:30",
    ):  # fmt: skip
        assert DayReader().read(value) == DayReader(text=True).read(value) == day
    for value in ("2024-02-30", "29.02.2024", "2024-02", "2024-02-291", 19782, 19782.0, np.datetime64("12024-01-01")):
        assert DayReader().read(value) is DayReader(text=True).read(value) is UNREADABLE
    # Equal times of two zones, of different days.
    utc = late.astimezone(datetime.UTC)
    both = [
        late,
        utc.replace(hour=16),
        utc.replace(hour=16, day=28),
        late.astimezone(datetime.timezone(datetime.timedelta(hours=-9))),
    ]
    assert DayReader().read_all(both).values.tolist() == [DayReader().read(one) for one in both]


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(),
    st.sampled_from(["1", "1.0", "true", "a", "", "2024-02-29"]),
    st.sampled_from([*ONES, *TRUES, *NOTHING, Decimal("0.5"), 2**53 + 1, b"1"]), st.dates(), st.datetimes(),
)  # fmt: skip
READERS = [
    reader
    for text in (False, True)
    for reader in (
        NumberReader(text=text), DayReader(text=text), CodeReader((0, 1, 2.5, "a", True), text=text),
        CodeReader(("1.0", "x"), text=text), CodeReader((False, True), text=text),
        CodeReader((1, 2**53 + 1), text=text),
    )
]  # fmt: skip


@given(st.lists(CELLS, max_size=12))
def test_a_column_is_read_as_its_cells_are(cells):
    as_objects = np.empty(len(cells), dtype=object)
    as_objects[:] = cells
    for reader in READERS:
        for column in (cells, as_objects):
            check_as_cells(reader, column, cells)


@pytest.mark.parametrize(
    "dtype", ["i1", "u8", "f2", "f4", "f8", "g", "?", "U3", "S3", "c8", "M8[D]", "M8[ns]", "m8[ns]", "O"]
)
def test_an_array_of_any_type_is_read_as_its_cells_are(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = np.array([0, 1, 2, 100], dtype="i8").astype(dtype)
    if array.dtype.kind in "fcmM":
        array[3] = "NaT" if array.dtype.kind in "mM" else np.nan
    for reader in READERS:
        check_as_cells(reader, array, list(array))


def check_as_cells(reader, column, cells):
    found, alone = reader.read_all(column), [reader.read(cell) for cell in cells]
    assert found.state.tolist() == [one if isinstance(one, Unread) else 0 for one in alone]
    assert found.values.tolist() == [0 if isinstance(one, Unread) else one for one in alone]


def frames():
    """A table of integers, booleans and texts with gaps, as each library holds it."""
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {"kids": [3, None, 1, 2], "owns": [True, None, False, True], "code": ["1.0", "2.0", None, "1.0"]}
    nullable = pd.DataFrame(
        {
            name: pd.array(column, dtype=kind)
            for (name, column), kind in zip(columns.items(), ("Int64", "boolean", "string"), strict=True)
        }
    )
    plain = pd.DataFrame(columns)
    yield "plain", plain
    yield "nullable", nullable
    yield "categories", plain.astype("category")
    yield "small", plain.astype({"kids": "float32"})
    yield "polars", pl.DataFrame(columns)
    yield "polars' enums", pl.DataFrame(columns).with_columns(pl.col("code").cast(pl.Categorical))
    yield "arrow", pa.table(columns).to_batches()[0]
    yield "arrow's dictionaries", pa.RecordBatch.from_pandas(plain.astype({"code": "category"}))
    for name, frame in (("records", plain), ("records of nullable", nullable)):
        records = frame.to_dict("records")
        yield name, {column: [record[column] for record in records] for column in columns}


@pytest.mark.parametrize(("name", "frame"), frames(), ids=lambda one: one if isinstance(one, str) else "")
def test_integers_with_gaps_are_the_same_codes_in_every_library(name, frame):
    readers = {"kids": CodeReader((1, 2, 3)), "owns": CodeReader((False, True)), "code": CodeReader(("1.0", "2.0"))}
    found = {name: reader.read_all(as_array(frame[name])) for name, reader in readers.items()}
    expected = {"kids": [2, MISSING, 0, 1], "owns": [1, MISSING, 0, 1], "code": [0, 1, MISSING, 0]}
    for column, codes in expected.items():
        assert (found[column].values + found[column].state).tolist() == codes


def test_an_error_says_row_column_and_type_and_no_value():
    given = ["secret", 1.0, None]
    cells = NumberReader().read_all(given)
    for first_row, place in ((None, "at position 0"), (11, "in row 11")):
        with pytest.raises(
            ValueError, match=f"Column 'age' must hold numbers; .* 1 of 3 .*{place}, of type str"
        ) as error:
            cells.check(given, "Column 'age'", "numbers", UNREADABLE, first_row=first_row)
        assert "secret" not in str(error.value)
    cells.check(given, "Column 'age'", "numbers", UNKNOWN)


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-2, 2),
            st.floats(allow_nan=False),
            st.sampled_from(["1", "True", "None", "'1'", "1.0", "missing"]),
        ),
        unique_by=repr,
    )
)
def test_labels_of_different_values_differ(values):
    assert len(set(value_labels(values))) == len(values)


def test_a_text_is_no_number_unless_it_is_of_a_text_file():
    for text in ("1", "1.0", "1e0", "+1", "1.", "001", " 1 "):
        assert NumberReader().read(text) is CodeReader((0, 1)).read(text) is UNREADABLE
        assert NumberReader(text=True).read(text) == CodeReader((0, 1), text=True).read(text) == 1
    for text in ("one", "1_0", "nan", "inf", "infinity", "0x1", "1,0", "1e", ".", "", "\u0661", "1" * 5000, "1e999"):
        assert NumberReader(text=True).read(text) is CodeReader((0, 1), text=True).read(text) is UNREADABLE
