import re

import numpy as np
import pytest

from skldp.study._comparison import ComparisonSettings, MechanismComparison
from skldp.study._datasets import BUNDLED, load_study_data
from skldp.study._table_files import StudyInputError


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="people.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


GOOD = "age,height,sick\n20,1.7,no\n30,1.8,yes\n40,1.6,no\n50,1.9,yes\n"


@pytest.mark.parametrize("name", BUNDLED)
def test_published_bounds_fit_the_bundled_data(name):
    data = load_study_data(name)
    X, n_clipped = data.scaled()
    assert X.shape == data.X.shape
    # The published tables round, so a few values lie a little outside.
    assert n_clipped <= 0.01 * X.size
    assert np.abs(X).max() <= 1
    assert len(data.feature_names) == len(data.low) == X.shape[1]


def test_reads_a_csv_file(write):
    data = load_study_data(write(GOOD), target="sick", bounds="0,120")
    assert data.feature_names == ("age", "height")
    assert data.classes.tolist() == ["no", "yes"]
    assert data.X[1].tolist() == [30, 1.8]
    X, n_clipped = data.scaled()
    assert X[0, 0] == pytest.approx(20 / 120 * 2 - 1)
    assert n_clipped == 0


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (None, "needs --bounds"),
        ("1", "low,high"),
        ("a,b", "low,high"),
        ("nan,1", "low,high"),
        ("2,1", "low < high"),
        ("1,1", "low < high"),
        ("absent.csv", "no file absent.csv"),
    ],
)
def test_refuses_missing_or_bad_bounds(bounds, message, write):
    with pytest.raises(StudyInputError, match=message):
        load_study_data(write(GOOD), target="sick", bounds=bounds)


def test_refuses_what_is_no_data(write, tmp_path):
    for source, message in [
        ("iris", "must be one of digits"),
        (tmp_path / "absent.csv", "no file"),
        (write("not parquet", "x.parquet"), "no Parquet file"),
    ]:
        with pytest.raises(StudyInputError, match=message):
            load_study_data(source, target="y", bounds="0,1")
    with pytest.raises(StudyInputError, match="--target is for files"):
        load_study_data("digits", target="y")
    with pytest.raises(StudyInputError, match="needs --target"):
        load_study_data(write(GOOD), bounds="0,1")


NUMBERS = "age,height,cost\n" + "".join(f"{i},1.7,{i / 2}\n" for i in range(8))


def test_a_target_of_numbers_is_a_regression(write):
    bounds = write("column,low,high\nage,0,9\nheight,1,2\ncost,0,3\n", "bounds.csv")
    path = write(NUMBERS)
    for data in (
        load_study_data(path, target="cost", bounds=bounds),
        load_study_data(path, target="cost", bounds=([0, 1], [9, 2]), target_bounds="0,3"),
    ):
        assert data.task == "regression"
        assert data.target_bounds == (0.0, 3.0)
        assert data.n_targets_clipped == 1
        assert data.y.tolist() == [i / 2 for i in range(8)]
    for name, task in (("diabetes", "regression"), ("friedman", "regression"), ("digits", "classification")):
        assert load_study_data(name).task == task
    assert load_study_data("digits").target_bounds is None


def test_all_that_is_missing_is_said_at_once(write):
    path = write(
        "age,town,height,cost\n" + "".join(f"{i or ''},{'ab'[i % 2] if i > 2 else ''},1.7,{i / 2}\n" for i in range(8))
    )
    with pytest.raises(StudyInputError) as caught:
        load_study_data(path, target="cost")
    said = str(caught.value)
    assert (
        "'age' of people.csv has 1 missing value, the first in row 1; column 'town' of people.csv has 3 missing" in said
    )
    assert "needs --bounds low,high" in said
    assert "for 'age', 'height'" in said
    assert "needs --target-bounds" in said
    assert "\n" not in said


def test_wrong_bounds_are_said_with_all_else_and_name_their_column(write, tmp_path):
    path = write("age,height,cost\n" + "".join(f"{i or ''},1.7,{i / 2}\n" for i in range(8)))
    (tmp_path / "bounds.csv").write_text("column,low,high\nage,9,0\nheight,x,2\ncost,5,5\n")
    # The schema is read before the file.
    invalid = "schema of the column 'age' is invalid", "got (9, 0)"
    for given, expected in (
        ({"bounds": "9,0"}, ("--bounds must be finite numbers with low < high; got 9 and 0.", "1 missing value,")),
        (
            {"bounds": str(tmp_path / "bounds.csv")},
            (
                "--bounds of 'age' must",
                "got 9 and 0.",
                "--bounds of 'height' must",
                "--target-bounds must",
                "1 missing",
            ),
        ),
        (
            {"bounds": "0", "target_bounds": "1,x"},
            ("--bounds must be low,high or a", "--target-bounds must be low,high;"),
        ),
        ({"schema": {"age": (9, 0), "weight": (0, 1)}, "target_bounds": "5,1"}, invalid),
        ({"schema": {"weight": (0, 1)}, "target_bounds": "5,1"}, ("got 'weight' as well", "--target-bounds must be")),
    ):
        with pytest.raises(ValueError, match=re.escape(expected[0])) as caught:
            load_study_data(path, target="cost", **given)
        assert [part for part in expected if part not in str(caught.value)] == []
        assert "array(" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "ranking"}, "must be one of auto"),
        ({"task": "classification"}, "must hold classes; got continuous"),
        ({"target_bounds": "3,0"}, "low < high"),
        ({"target_bounds": "3"}, "low,high"),
        ({"folds": 9}, "fewer than the 9 folds"),
        ({"target": "height", "target_bounds": "1,2"}, "holds one number only"),
    ],
)
def test_refuses_a_regression_that_is_none(options, message, write):
    with pytest.raises(StudyInputError, match=message):
        load_study_data(write(NUMBERS), **({"target": "cost", "bounds": "0,9"} | options))
    with pytest.raises(StudyInputError, match="finite numbers for a regression"):
        load_study_data(write(GOOD), target="sick", bounds="0,99", task="regression", target_bounds="0,1")
    with pytest.raises(StudyInputError, match="holds classes"):
        load_study_data(write(GOOD), target="sick", bounds="0,99", target_bounds="0,1")


def test_skewed_columns_and_targets_are_named(write):
    """A low bound of 0 has no factor, and a log scale needs no suggestion."""
    rows = "".join(f"{2**i},{2**i},{50 + i},{i + 1},{1.5 * 2**i}\n" for i in range(10))
    path = write(f"income,logged,height,age,pay\n{rows}")
    schema = {"income": (0, 1e5), "height": (0, 100), "age": (1, 100)}
    schema["logged"] = {"type": "number", "low": 1, "high": 1e5, "scale": "log"}
    data = load_study_data(path, target="pay", target_bounds="0,50000", schema=schema)
    assert data.skewed == ("income", "age")
    rest = ComparisonSettings((1.0,)), 0, {}, {}
    notes = MechanismComparison(data, *rest).notes()
    assert sum("near the low end" in note for note in notes) == 2
    assert "--target-transform log" in notes[-1]
    even = load_study_data(path, target="pay", target_bounds="1,2000", target_transform="log", schema=schema)
    assert not any(
        "target" in note for note in MechanismComparison(even, ComparisonSettings((1.0,)), 0, {}, {}).notes()
    )
