"""Declared columns become features, and nothing in the rows changes which."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skldp import ColumnEncoder, PrivateLinearRegression, TablePrivatizer
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning

pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")

SCHEMA = {"age": (0, 100), "city": ["Bonn", "Kiel", "Ulm"], "sick": [False, True]}
PEOPLE = pd.DataFrame({"sick": [True, False], "age": [20, 60], "city": ["Ulm", "Bonn"], "name": ["A", "B"]})
ENCODED = [[-0.6, -1, -1, 1, 1], [0.2, 1, -1, -1, -1]]


def test_a_schema_of_any_form_is_the_same_encoding():
    by_name = ColumnEncoder(SCHEMA).fit(PEOPLE)
    of_json = ColumnEncoder(
        '{"age": {"type": "number", "low": 0, "high": 100}, "city": ["Bonn", "Kiel", "Ulm"], "sick": [false, true]}'
    )
    by_place = ColumnEncoder({1: (0, 100), 2: ["Bonn", "Kiel", "Ulm"], 0: [False, True]})
    np.testing.assert_allclose(by_name.transform(PEOPLE), ENCODED)
    np.testing.assert_allclose(of_json.fit_transform(PEOPLE), ENCODED)
    np.testing.assert_allclose(by_place.fit_transform(PEOPLE.to_numpy(dtype=object)), ENCODED)
    assert by_name.get_feature_names_out().tolist() == ["age", "city_Bonn", "city_Kiel", "city_Ulm", "sick"]
    np.testing.assert_allclose(ColumnEncoder((0, 100)).fit_transform(PEOPLE[["age"]]), [[-0.6], [0.2]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("values", "cells", "rule"),
    [
        (list("123"), [1, 2, 3], "3 values of type str; .* got 3 of 3 .* position 0, of type int"),
        ([1, 2, 3], list("123"), "3 values of type int; .* got 3 of 3 .* position 0, of type str"),
        (list("123"), ["1", "2", "4"], "handle_unknown.* got 1 of 3 .* position 2, of type str"),
        (list("123"), ["1", "2", None], "not have missing values .* in 1 of 3 rows, the first at position 2"),
        ([0, 1], [0, 1, 2], "got 1 of 3 .* position 2, of type int"),
        ([False, True], [0, 1, 1], "got 3 of 3 .* position 0, of type int"),
        ([1, 2], [True, True, False], "got 1 of 3 .* position 2, of type bool"),
    ],
)
def test_a_value_that_is_not_declared_is_an_error_as_in_tables(frame, values, cells, rule):
    schema, table = {"x": {"type": "category", "values": values}}, frame({"x": cells})
    for estimator in (ColumnEncoder(schema), TablePrivatizer(1.0, schema=schema)):
        with pytest.raises(ValueError, match=f"Column 'x' must .*{rule}"):
            estimator.fit_transform(table)


def test_an_undeclared_category_is_the_missing_one_on_request_and_no_other():
    declared = {"type": "category", "values": ["a", "b"], "missing": "category"}
    encoder = ColumnEncoder({"x": declared}, handle_unknown="missing").fit(pd.DataFrame({"x": ["a"]}))
    with pytest.warns(OutOfDomainWarning, match=r"1 of 4 values .* \(1 in 'x'\)"):
        rows = encoder.transform(pd.DataFrame({"x": ["c", None, "b", "a"]}))
    np.testing.assert_array_equal(rows.argmax(axis=1), [2, 2, 1, 0])
    with pytest.raises(ValueError, match="of type int"):
        encoder.transform(pd.DataFrame({"x": ["a", 1]}))
    with pytest.raises(ValueError, match=r"handle_unknown='missing' needs .* for x"):
        ColumnEncoder({"x": ["a", "b"]}, handle_unknown="missing").fit(pd.DataFrame({"x": ["a"]}))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_booleans_are_the_declared_one_and_zero(frame):
    schema = {"x": {"type": "category", "values": [0, 1, 2]}}
    rows = ColumnEncoder(schema).fit_transform(frame({"x": [True, False, True]}))
    np.testing.assert_array_equal(rows.argmax(axis=1), [1, 0, 1])
    released = TablePrivatizer(60.0, schema=schema).fit_transform(frame({"x": [True, False, True]}))
    np.testing.assert_array_equal(released.argmax(axis=1), [1, 0, 1])


def test_only_declared_columns_are_asked_for():
    encoder = ColumnEncoder(SCHEMA).fit(PEOPLE)
    used = PEOPLE[list(SCHEMA)[::-1]]
    for table in (used, pl.from_pandas(used), used.assign(more=[object(), None])):
        np.testing.assert_allclose(encoder.transform(table), ENCODED)
    for table in (PEOPLE.drop(columns="age"), pd.concat([PEOPLE, PEOPLE[["age"]]], axis=1)):
        with pytest.raises(ValueError, match="X must have each declared column once; got none or several for 'age'"):
            encoder.transform(table)
    assert encoder.transform(used[:0]).shape == (0, 5)
    # Places mean columns of the same table.
    by_place = ColumnEncoder({1: (0, 100)}).fit(PEOPLE)
    with pytest.raises(ValueError, match="feature names"):
        by_place.transform(used)


def test_the_first_category_is_left_out_on_request():
    missing = {"type": "category", "values": ["a", "b"], "missing": "category"}
    number = {"type": "number", "low": 0, "high": 1, "missing": "category"}
    schema = SCHEMA | {"of": missing, "x": number, "one": ["only"]}
    people = PEOPLE.assign(of=[None, "a"], x=[None, 1.0], one="only")
    full, contrasts = (ColumnEncoder(schema, drop=drop).fit(people) for drop in (None, "first"))
    first = ["city_Bonn", "of_a"]
    names = full.get_feature_names_out().tolist()
    assert contrasts.get_feature_names_out().tolist() == [name for name in names if name not in first]
    kept = [j for j, name in enumerate(names) if name not in first]
    np.testing.assert_array_equal(contrasts.transform(people), full.transform(people)[:, kept])
    design = ColumnEncoder({"city": SCHEMA["city"]}, drop="first")
    rows = design.fit_transform(pd.DataFrame({"city": SCHEMA["city"]}))
    assert np.linalg.matrix_rank(np.column_stack([rows, np.ones(3)])) == 3


@pytest.mark.parametrize("n_values", [3, 5])
def test_intervals_of_a_category_need_its_first_feature_left_out(n_values):
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"x": rng.uniform(-1, 1, 40_000), "kind": rng.integers(0, n_values, 40_000).astype(str)})
    y = people["x"] + 0.5 * (people["kind"] == "1") + 0.3 * rng.standard_normal(40_000)
    schema = {"x": (-1, 1), "kind": [str(one) for one in range(n_values)]}
    model = PrivateLinearRegression(8.0, target_bounds=(-3, 3), inference=True, seed=0)
    with pytest.warns(SeededNoiseWarning), pytest.warns(TooFewPeopleWarning, match="no intervals"):
        everything = make_pipeline(ColumnEncoder(schema), clone(model)).fit(people, y)
    with pytest.warns(SeededNoiseWarning):
        fewer = make_pipeline(ColumnEncoder(schema, drop="first"), model).fit(people, y)
    # The intercept comes first. Features of categories are -1 and 1.
    low, high = fewer[-1].confidence_intervals(1 - 1e-6)[1:].T
    truth = np.array([1, 0.25] + [0] * (n_values - 2))
    assert np.all((low < truth) & (truth < high) & (high - low < 0.2))
    assert everything.score(people, y) == pytest.approx(fewer.score(people, y), abs=0.01)
