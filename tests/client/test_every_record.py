"""A device answers every record: whether a report comes must not depend on a value."""

import datetime
import decimal
import math

import numpy as np
import pandas as pd
import pytest
from client.second_client import given_to_the_law

from skldp.client import Field, Policy, VectorField
from skldp.mechanisms import Column, RandomizedResponse, ReleaseKey
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector


class Hostile:
    """A value whose every method raises."""

    def _fail(self, *arguments):
        raise RuntimeError("a value was asked for more than its type")

    __str__ = __repr__ = __eq__ = __hash__ = __float__ = __int__ = __bool__ = __lt__ = __len__ = __iter__ = _fail
    __array__ = __index__ = __round__ = _fail


class HostileText(str):
    """A text whose every method raises, as of a lazy one whose source is gone."""

    def _fail(self, *arguments):
        raise RuntimeError("the value")

    __str__ = __repr__ = __eq__ = __hash__ = __getitem__ = __len__ = __iter__ = __contains__ = __lt__ = _fail
    encode = strip = casefold = isascii = _fail


class ProxyOfText:
    """A value that says it is a text and is none."""

    __class__ = str

    def __getattr__(self, name):
        raise RuntimeError("the value")


class HostileNumber(float):
    """A number whose comparisons raise."""

    def __eq__(self, other):
        raise RuntimeError("compared")

    __hash__ = float.__hash__

    def __float__(self):
        raise RuntimeError("converted")


LAW = Duchi(1.0).integer_law
POLICY = Policy(
    "every kind of field",
    (
        Field("number", Column(0.0, 9.0), LAW),
        Field("whole", Column(0.0, 9.0, missing=3.0, kind="integer"), LAW),
        Field("date", Column(18262.0, 20088.0, kind="date"), LAW),
        Field("yes", Column(values=(True, False)), RandomizedResponse(1.0, 2).integer_law),
        Field("mixed", Column(values=(1, "1", True, None), unknown="1"), RandomizedResponse(1.0, 4).integer_law),
        Field("both", (Column(0, 1, name="a"), Column(0, 1, name="b")), DuchiVector(1.0, 2).integer_law),
        VectorField.privunit("vector", 3, 1.0),
    ),
)
VALUES = [
    None,
    float("nan"),
    math.inf,
    -math.inf,
    True,
    0,
    -0.0,
    10**400,
    -(10**400),
    5e-324,
    1 + 2j,
    "",
    "4",
    "nan",
    "\ud800",
    "2024-02-30",
    "2024-02-29T",
    "9999999-01-01",
    b"4",
    [],
    [[1]],
    {},
    {"a": 1},
    {1},
    range(3),
    object(),
    Hostile(),
    Hostile,
    HostileNumber(4.0),
    HostileText("x"),
    ProxyOfText(),
    decimal.Decimal("sNaN"),
    decimal.Decimal("Infinity"),
    datetime.date.max,
    datetime.datetime.min,
    datetime.timedelta(3),
    np.float32("nan"),
    np.float16(4),
    np.longdouble("inf"),
    np.int8(4),
    np.uint64(2**63),
    np.bool_(True),
    np.str_("1"),
    np.array(4.0),
    np.array([4.0, 5.0]),
    np.datetime64("NaT", "D"),
    np.datetime64("2024-02-29", "s"),
    np.timedelta64(3, "D"),
    pd.NA,
    pd.NaT,
    pd.Timestamp("2024-02-29"),
    pd.Series([1, 2]),
    lambda: 4,
    ...,
]


@pytest.mark.parametrize("place", range(len(VALUES)))
def test_every_value_has_a_report_of_the_same_length(place):
    names = [name for name in POLICY.names if name]
    everywhere = POLICY.release(dict.fromkeys(names, VALUES[place]))
    assert len(everywhere) == POLICY.n_bytes
    for name in names:
        assert len(POLICY.release({name: VALUES[place]})) == POLICY.n_bytes
        assert len(POLICY.release({"another field": VALUES[place], name: 1})) == POLICY.n_bytes


def test_a_device_reads_the_texts_of_a_csv_file():
    number, whole, _, yes, mixed, *_ = POLICY.fields
    assert number.column.encode(" 4.25e0\r\n") == number.column.encode(4.25) != number.column.encode(None)
    assert (
        whole.column.encode("0")
        == whole.column.encode(0)
        != whole.column.encode(None)
        == whole.column.encode("abc")
        == whole.column.encode("")
    )
    assert [yes.column.encode(text) for text in ("True", "true", "False", "FALSE")] == [0, 0, 1, 1]
    # An equal text is nearer than an equal number.
    assert [mixed.column.encode(value) for value in ("1", 1, "1.0", "true")] == [1, 0, 0, 2]


@pytest.mark.parametrize(
    "values", [(0, 1), (2, 1, None), (1, True), (0, False), ("True", 1), (True, False), ("a", "1")]
)
def test_a_boolean_is_the_declared_number_as_the_format_says(values):
    field = Field("x", Column(values=values), RandomizedResponse(1.0, len(values)).integer_law)
    for value in (True, False, 1, 0, 1.0, "1", "true", "FALSE", "True", "yes", None):
        assert field.column.encode(value) == given_to_the_law(field.to_dict(), {"x": value})
    assert Field("x", Column(values=(0, 1)), RandomizedResponse(1.0, 2).integer_law).column.encode(True) == 1


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (
            {"whole": True},
            "Column 'whole' must hold finite numbers .* got 1 of 1 .* at position 0, of type bool",
        ),
        ({"whole": math.inf}, "Column 'whole' must hold finite numbers"),
        ({"whole": "abc"}, "Column 'whole' must hold finite numbers .* of type str"),
        ({"date": "13.05.2020"}, "Column 'date' must hold dates"),
        (
            {"yes": "Yes"},
            r"Column 'yes' must hold only the declared 2 values of type bool \(True, False\); nothing was released; "
            "got 1 of 1 that are not, the first at position 0, of type str",
        ),
        ({"yes": None}, "Column 'yes' must not have missing values"),
        ({"vector": [1.0]}, "'vector' must be vectors of 3 numbers"),
    ],
)
def test_a_made_up_record_shows_what_a_device_would_replace(wrong, rule):
    fields = tuple(field for field in POLICY.fields if field.name in ("whole", "date", "yes", "vector"))
    policy = Policy("a test", fields)
    right = {"whole": "3", "date": "2020-05-13", "yes": "true", "vector": [1, 2, 3], "more": 4}
    policy.check_record(right)
    with pytest.raises(ValueError, match=rule):
        policy.check_record(right | wrong)
    for names in ({}, {"Whole": 3}):
        with pytest.raises(ValueError, match=r"it misses .*'whole'"):
            policy.check_record({name: right[name] for name in right if name != "whole"} | names)
    assert len(policy.release(right | wrong)) == policy.n_bytes


def test_bisection_by_refusals_learns_nothing():
    """With a policy that refused values outside its bounds, twenty policies found a salary to the unit."""
    salary, low, high = 54_321, 0.0, 2.0**20
    while high - low > 1:
        middle = (low + high) / 2
        asked = Policy("a salary", (Field("salary", Column(low, middle, missing=low), LAW),))
        assert len(asked.release({"salary": salary})) == asked.n_bytes
        low, high = (low, middle) if salary <= middle else (middle, high)
    with pytest.raises(TypeError, match="outside"):
        Field("salary", Column(0.0, 9.0, outside="refuse"), LAW)


def test_hidden_cells_of_a_masked_array_are_missing():
    given = np.ma.array([1.0, 9.0], mask=[False, True])
    field = POLICY.fields[1]
    assert field.encode_all({"whole": given}, True) == [field.column.encode(1), field.column.encode(None)]


def test_a_table_takes_columns_of_arrow_and_of_filtered_frames():
    pa = pytest.importorskip("pyarrow")
    policy = Policy("a test", POLICY.fields[:1])
    frame = pd.DataFrame({"number": [1, 2, "x", 4]}).iloc[1:]
    assert len(policy.release_table({"number": pa.array([1, None, 3])})) == 3
    with pytest.raises(ValueError, match="got 1 of 3 that are not, the first at position 1, of type str"):
        policy.release_table(frame)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ({"x": [1.0]}, r"every name of the policy once; it misses \['y'\]"),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "x", "y"]), r"has \['x'\] more than once"),
        ({"x": [1.0, 2.0], "y": [1.0]}, r"equal lengths; got the lengths \[1, 2\]"),
        ({"x": 1.0, "y": 2.0}, "must be arrays or sequences"),
        ({"x": np.array(1.0), "y": [2.0]}, "must be arrays or sequences"),
        ({"x": {1.0, 2.0}, "y": [1.0, 2.0]}, "must be arrays or sequences"),
        ({"x": {1.0: "a"}, "y": [1.0]}, "must be arrays or sequences"),
        ({"x": "12", "y": [1.0, 2.0]}, "must be arrays or sequences"),
        (None, "must be arrays or sequences"),
        (np.ones((3, 2)), "must be arrays or sequences"),
        ([{"x": 1.0, "y": 2.0}], "must be arrays or sequences"),
        ({"x": np.zeros((3, 1)), "y": [1.0] * 3}, "must hold finite numbers; .* got 3 of 3 that are not"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_drawn(monkeypatch, pairs, table, rule):
    one, two = Column(0.0, 9.0, name="x"), Column(0.0, 9.0, name="y")
    fields = tuple(Field(column.name, Column(0.0, 9.0), LAW) for column in (one, two))
    if pairs:
        fields = (Field("both", (one, two), RandomizedResponse(1.0, 4).integer_law),)
    monkeypatch.setattr("os.urandom", lambda size: pytest.fail("drawn before the table was checked"))
    with pytest.raises(ValueError, match=rule):
        Policy("a test", fields).release_table(table)


def test_people_of_a_table_are_as_many_as_its_rows(tmp_path):
    policy = Policy("a test", (Field("x", Column(0.0, 9.0, kind="integer"), LAW),), memo="permanent")
    for secret, people in ((bytes(32), [1, 2, 3]), (None, [1, 2, 3]), (None, None)):
        with pytest.raises(ValueError, match="needs a secret and ids of people"):
            policy.release_table({"x": [1, 2, 3]}, secret=secret, people=people)
    with pytest.raises(ValueError, match=r"equal lengths; got the lengths \[2, 3\]"):
        policy.release_table({"x": [1, 2, 3]}, secret=ReleaseKey.create(tmp_path / "secret"), people=[1, 2])
