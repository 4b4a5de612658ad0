"""Positive columns on a log scale: the same integers of the law, given the logarithm of the number."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skldp import ColumnEncoder, TablePrivatizer, policy_from_estimator
from skldp.client import Field
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector
from skldp.study import recommend

INCOME = {"type": "number", "low": 100, "high": 500_000, "scale": "log"}
VALUES = [100.0, 500_000.0, math.sqrt(100 * 500_000), 2_000.0]


def scaled(values, low=100.0, high=500_000.0):
    """Return the logarithm, scaled from its bounds to -1 and 1."""
    return [2 * math.log(value / low) / math.log(high / low) - 1 for value in values]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    "schema",
    [
        {"income": INCOME},
        {"income": INCOME | {"type": "number"}},
        json.dumps({"income": INCOME}),
        {"income": Column(100, 500_000, missing="refuse", scale="log", name="income")},
    ],
    ids=["dict", "interval", "JSON", "column"],
)
def test_the_feature_is_the_scaled_logarithm(frame, schema):
    encoder = pickle.loads(pickle.dumps(ColumnEncoder(schema).fit(frame({"income": VALUES}))))
    np.testing.assert_allclose(encoder.transform(frame({"income": VALUES}))[:, 0], scaled(VALUES), atol=1e-14)
    assert encoder.get_feature_names_out().tolist() == ["income"]
    whole = [round(value) for value in VALUES]
    np.testing.assert_allclose(encoder.transform(frame({"income": whole}))[:, 0], scaled(whole), atol=1e-14)


@given(st.floats(1e-300, 1e300), st.floats(1.01, 1e6), st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=9))
def test_numbers_outside_are_clipped_and_counted_and_those_within_are_not(low, factor, values):
    column = Column(low, low * factor, missing="refuse", scale="log", name="x")
    values = [*values, column.low, column.high, 0.0, -0.0, 5e-324]
    numbers = column.as_numbers(values)
    assert np.isfinite(numbers).all()
    inside, n_moved = column.clip(numbers[:, None])
    assert n_moved == sum(not column.low <= value <= column.high for value in values)
    expected = [math.log(min(max(value, column.low), column.high)) for value in values]
    np.testing.assert_allclose(inside[:, 0], expected, rtol=1e-14, atol=1e-14)
    places = column.encode_all(values)
    np.testing.assert_allclose(places, [column.encode(value) for value in values], rtol=0, atol=1e-9)
    assert np.abs(places).max() <= 1


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        (INCOME | {"low": 0}, "0 < low < high"),
        (INCOME | {"low": -1}, "0 < low < high"),
        (INCOME | {"low": 1e60, "high": math.nextafter(1e60, math.inf)}, "0 < low < high"),
        (INCOME | {"scale": "log10"}, "scale must be one of"),
        (INCOME | {"scale": None}, "scale must be one of"),
        (INCOME | {"type": "integer"}, "the type 'number'"),
        ({"type": "date", "low": "2020-01-01", "high": "2021-01-01", "scale": "log"}, "the type 'number'"),
        ({"type": "category", "values": ["a"], "scale": "log"}, "has the options"),
    ],
)
def test_what_has_no_logarithm_is_refused(schema, rule):
    for estimator in (ColumnEncoder({"income": schema}), TablePrivatizer(1.0, schema={"income": schema})):
        with pytest.raises(ValueError, match=f"schema of the column 'income' is invalid: .*{rule}"):
            estimator.fit(pd.DataFrame({"income": VALUES}))


def test_a_table_releases_the_logarithm_at_the_same_epsilon():
    table = pd.DataFrame({"income": VALUES, "age": [20.0] * 4})
    linear = {"income": tuple(np.log([100.0, 500_000.0]).tolist()), "age": (0, 100)}
    logs = table.assign(income=np.log(table["income"]))
    for encoding in ("onehot", "estimates", "columns"):
        options = {"encoding": encoding, "seed": 0}
        on_logs = TablePrivatizer(2.0, schema=linear, **options).fit(logs)
        on_scale = TablePrivatizer(2.0, schema={"income": INCOME, "age": (0, 100)}, **options).fit(table)
        assert on_scale.privacy_guarantee_.epsilon == on_logs.privacy_guarantee_.epsilon
        with pytest.warns(UserWarning, match="seed"):
            same = [np.asarray(one.transform(rows)) for one, rows in ((on_logs, logs), (on_scale, table))]
        np.testing.assert_array_equal(*same)


def test_a_policy_has_linear_fields():
    column = Column(100, 500_000, scale="log", name="income")
    law, pair = Duchi(1.0).integer_law, RandomizedResponse(1.0, 16).integer_law
    other = Column(0, 100, name="age")
    for make in (
        lambda: Field("income", Column(100, 500_000, scale="log"), law),
        lambda: Field("both", (column, other), DuchiVector(1.0, 2).integer_law),
        lambda: Field("both", (column, other), pair, n_knots=4),
        lambda: policy_from_estimator(
            TablePrivatizer(1.0, schema={"income": INCOME}).fit(pd.DataFrame({"income": VALUES})), purpose="a test"
        ),
    ):
        with pytest.raises(ValueError, match="scale must be 'linear' for a field of a policy; got 'log'"):
            make()


def test_a_recommendation_suggests_it_for_wide_bounds_alone():
    schema = {
        "income": (100, 500_000),
        "age": (18, 90),
        "logs": INCOME,
        "on": ("1970-01-02", "2021-01-01"),
        "signed": (-1, 1e6),
        "zero": (0, 1e6),
    }
    for task, more in (("regression", {"target": (0, 1)}), ("releases", {}), ("means", {})):
        advice = recommend(schema, task, 4.0, 10_000, **more)
        assert "Bounds of income span a factor of 100 or more" in advice.reason
        assert '"scale": "log"' in advice.reason
    declared = recommend(schema | {"income": INCOME}, "regression", 4.0, 10_000, target=(0, 1))
    assert "span" not in declared.reason
    assert declared.n_features == 6
    row = pd.DataFrame({name: [2000.0] for name in schema}).assign(on="2000-01-01", age=20.0, signed=0.0)
    assert declared.estimator[0].fit_transform(row)[0, 0] == pytest.approx(scaled([2000.0])[0])
    assert recommend({"x": (1, 100)}, "means", 1.0, 10).reason.count("span") == 1
    assert recommend({"x": (1, 99)}, "means", 1.0, 10).reason.count("span") == 0
    with pytest.raises(ValueError, match="linear scale"):
        recommend(schema, "regression", 4.0, 10_000, target="logs")
