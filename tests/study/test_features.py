"""Columns of any kind as features of a study: declared ones exactly so, found categories said so, no cell shown."""

import json

import numpy as np
import pytest
from marked_values import TEXT, found_in

from skldp.study._datasets import load_study_data
from skldp.study._table_files import StudyInputError

pd = pytest.importorskip("pandas")

PEOPLE = pd.DataFrame(
    {
        "sick": ["no", "yes"] * 4,
        "island": ["Biscoe", "Dream", "Torgersen", "Dream"] * 2,
        "sex": ["f", "m", "f", "f", "m", "f", "m", "f"],
        "size": ["S", "L", "M", "S", "L", "M", "S", "L"],
        "since": ["2020-01-01", "2020-12-31", "2020-07-01", "2020-01-01"] * 2,
        "age": [20.0, 80.0, 50.0, 35.0, 20.0, 20.0, 20.0, 20.0],
    }
)
SCHEMA = {
    "island": ["Torgersen", "Biscoe", "Dream"],
    "size": {"type": "category", "values": ["S", "M", "L"], "ordered": True},
    "since": {"type": "date", "low": "2020-01-01", "high": "2020-12-31"},
    "age": {"type": "number", "low": 20, "high": 80},
}


def test_every_kind_of_column_becomes_features_within_its_bounds(tmp_path):
    path = tmp_path / "people.csv"
    PEOPLE.to_csv(path, index=False)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    for schema in (SCHEMA, json.dumps(SCHEMA), tmp_path / "schema.json", str(tmp_path / "schema.json")):
        data = load_study_data(path, target="sick", schema=schema)
        assert data.feature_names == (
            *("island_Torgersen", "island_Biscoe", "island_Dream", "sex", "size", "since", "age"),
        )
        assert data.of_column == ("island", "island", "island", "sex", "size", "since", "age")
        # sex alone is not declared.
        assert (data.found, data.n_filled) == (("sex",), 0)
        X, n_clipped = data.scaled()
        assert n_clipped == 0
        assert X[:4].tolist() == [
            [-1, 1, -1, -1, -1, -1, -1],
            [-1, -1, 1, 1, 1, 1, 1],
            [1, -1, -1, -1, 0, pytest.approx(-0.002739726), 0],
            [-1, -1, 1, -1, -1, -1, -0.5],
        ]


def test_missing_values_are_refused_or_filled_as_declared(tmp_path):
    path = tmp_path / "people.parquet"
    people = PEOPLE[["sick", "sex", "age"]].copy()
    people.loc[2, "sex"] = None
    people.loc[[3, 5], "age"] = None
    people.to_parquet(path)
    for column, row in (("sex", 3), ("age", 4)):
        with pytest.raises(
            StudyInputError, match=f"'{column}' .* missing values?, the first in row {row}.*--count-unknown"
        ):
            load_study_data(path, target="sick", columns=[column], bounds="0,100")
    data = load_study_data(path, target="sick", bounds="0,100", count_unknown=True)
    assert data.feature_names == ("sex_f", "sex_m", "sex_missing", "age")
    assert data.n_filled == 3
    assert data.X[[2, 3]].tolist() == [[0, 0, 1, 50], [1, 0, 0, 50]]
    own = {
        "sex": {"type": "category", "values": ["f", "m"], "missing": "category"},
        "age": {"type": "number", "low": 10, "high": 90, "missing": "middle"},
    }
    assert load_study_data(path, target="sick", schema=own).X.tolist() == data.X.tolist()


def test_where_values_lie_outside_is_told_by_column(tmp_path):
    path = tmp_path / "people.csv"
    PEOPLE.to_csv(path, index=False)
    data = load_study_data(path, target="sick", columns=["age", "sex"], bounds="0,40")
    assert data.scaled()[1] == 2
    assert data.columns_clipped() == ["age"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"island": ["Biscoe", "Dream"]}, "'island' must hold only the declared 2 values"),
        ({"since": (0, 1)}, "Column 'since' must"),
        ({"age": [0, 1]}, "A list of two numbers may mean bounds"),
        ("[1", "must be JSON"),
        ({"island": {"type": "nothing"}}, "nothing.*must be .0, 100.*or .integer., or .date. with dates"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_without_a_cell(schema, message, tmp_path):
    path = tmp_path / "people.csv"
    since = np.where(np.arange(8) % 2, "2020-01-01", TEXT)
    PEOPLE.replace("Torgersen", TEXT).assign(since=since).to_csv(path, index=False)
    with pytest.raises(ValueError, match=message) as caught:
        load_study_data(path, target="sick", bounds="0,100", schema=schema)
    assert "\n" not in str(caught.value)
    assert not found_in(str(caught.value))
