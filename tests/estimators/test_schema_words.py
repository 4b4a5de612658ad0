"""Schemas have the words of policies, and bounds of dates are ISO dates, wherever a schema is read."""

import datetime
import json

import numpy as np
import pytest

from skldp import ColumnEncoder, TablePrivatizer, policy_from_estimator
from skldp.estimators._declared_table import DeclaredTable
from skldp.study._datasets import load_study_data

pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame({"a": ["2020-05-05", "2021-05-05"] * 4})


BAD_BOUNDS = [
    ("2020-01-01", "today"),
    ("2020-01-01", "now"),
    ("18", "90"),
    ("1000", "9000"),
    ("0", "10"),
    ("2020-01", "2021"),
    ("2020-01-01", "2020-02-30"),
    ("20200101", "20210101"),
    ("2020-01-01T00:00", "2021-01-01T00:00"),
    ("2020-01-01", "2021-01-01\n"),
    ("2020-01-01", " 2021-01-01"),
    # Digits of another script.
    ("2020-01-01", "２０２１-01-01"),
    ("2020-01-01", np.datetime64("NaT", "D")),
    ("2020-01-01", pd.NaT),
    ("2020-01-01", 20_000),
    ("2020-01-01", None),
]


def readers(schema, tmp_path):
    FRAME.assign(y=["s", "t"] * 4).to_csv(tmp_path / "t.csv", index=False)
    return {
        "encoder": lambda: ColumnEncoder(schema).fit(FRAME).columns_,
        "table": lambda: TablePrivatizer(1.0, schema=schema).fit(FRAME),
        "policy": lambda: policy_from_estimator(TablePrivatizer(1.0, schema=schema).fit(FRAME), purpose="x"),
        "questions": lambda: DeclaredTable.of(schema),
        "study": lambda: load_study_data(tmp_path / "t.csv", target="y", schema=schema),
    }


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("2020-01-01", "2024-12-31"),
        (datetime.date(2020, 1, 1), datetime.datetime(2024, 12, 31, 23, 59)),
        (np.datetime64("2020-01-01"), pd.Timestamp("2024-12-31 23:00", tz="Pacific/Auckland")),
    ],
)
def test_dates_are_the_same_days_wherever_they_come_from(low, high, tmp_path):
    expected = ColumnEncoder({"a": ("2020-01-01", "2024-12-31")}).fit(FRAME).columns_["a"]
    assert (expected.low, expected.high, expected.is_date) == (18262, 20088, True)
    schema = {"a": {"type": "date", "low": low, "high": high}}
    assert ColumnEncoder(schema).fit(FRAME).columns_ == {"a": expected}
    assert load_study_data_of(schema, tmp_path) == {"a"}
    assert ColumnEncoder({"a": (low, high)}).fit(FRAME).columns_ == {"a": expected}


def load_study_data_of(schema, tmp_path):
    return set(readers(schema, tmp_path)["study"]().feature_names)


def test_the_words_of_policies_and_of_schemas_are_the_same():
    own = {
        "age": {"type": "number", "low": 0, "high": 100, "missing": "middle"},
        "children": {"type": "integer", "low": 0, "high": 9},
        "since": {"type": "date", "low": "2020-01-01", "high": "2024-12-31"},
        "city": {"type": "category", "values": ["Bonn", "Ulm"], "missing": "category"},
    }
    columns = DeclaredTable.of(own).columns
    assert columns == DeclaredTable.of(json.dumps(own)).columns
    people = pd.DataFrame({"age": [1.0], "children": [2], "since": ["2020-01-01"], "city": ["Ulm"]})
    policy = policy_from_estimator(TablePrivatizer(1.0, schema=own).fit(people), purpose="x")
    written = {field["name"]: field["type"] for field in json.loads(policy.to_json())["fields"]}
    assert written == {name: given["type"] for name, given in own.items()}


@pytest.mark.parametrize(("low", "high"), BAD_BOUNDS)
def test_other_texts_are_no_dates(low, high, tmp_path):
    for form in (
        (low, high),
        {"type": "number", "low": low, "high": high},
        {"type": "date", "low": low, "high": high},
    ):
        for read in readers({"a": form}, tmp_path).values():
            with pytest.raises(ValueError, match=r"Bounds of dates must be two dates .*numbers have no quotes"):
                read()
