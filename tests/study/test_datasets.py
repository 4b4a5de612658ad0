import re

import numpy as np
import pytest

from skldp.study._datasets import BUNDLED, load_study_data
from skldp.study._table_files import StudyInputError, TextFormat

pd = pytest.importorskip("pandas")


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


def test_numbers_columns_of_a_csv_file_without_header(write):
    data = load_study_data(
        write("1,1,0\n2,3,1\n1,4,0\n5,4,1\n"), target="2", bounds=(0, 9), form=TextFormat(header=False)
    )
    assert data.feature_names == ("0", "1")
    assert len(data.X) == 4


def test_reads_bounds_per_column_from_a_file(write):
    bounds = write("column,low,high\nheight,1,2\nage,0,100\nsick,0,1\n", "bounds.csv")
    data = load_study_data(write(GOOD), target="sick", bounds=bounds)
    assert data.low.tolist() == [0, 1]
    assert data.high.tolist() == [100, 2]


def test_reads_parquet(write, tmp_path):
    parquet = tmp_path / "people.parquet"
    pd.read_csv(write(GOOD)).to_parquet(parquet)
    assert load_study_data(parquet, target="sick", bounds="0,120").X.shape == (4, 2)


BAD_CSV = {
    "not numeric": ("age,sick\n20,no\nOslo,yes\n", "Column 'age' of people.csv is not numeric, first in row 2"),
    "one category": ("age,city,sick\n20,Oslo,no\n30,Oslo,yes\n", "Column 'city' of people.csv holds one category"),
    "names": (
        "age,name,sick\n" + "".join(f"20,person {i},{'no' if i % 2 else 'yes'}\n" for i in range(51)),
        "Column 'name' of people.csv holds 51 different texts",
    ),
    "dates": (
        "age,since,sick\n20,2020-01-31,no\n30,2021-12-01,yes\n",
        'Column \'since\' of people.csv holds dates: declare it in --schema as {"type": "date", "low": FIRST, ',
    ),
    "all at once": (
        "age,since,pay,sick\n20,2020-01-31,1,no\n30,2021-12-01,,yes\n",
        "'since' of people.csv holds dates.*Column 'pay' of people.csv has 1 missing value, the first in row 2",
    ),
    "empty file": ("", "people.csv is empty"),
    "only a header": ("age,sick\n", "has no rows"),
    "no such target": ("age,ill\n1,0\n2,1\n", r"people.csv must have the column 'sick'; it has 2 columns"),
    "another separator": ("age;sick\n1;no\n2;yes\n", "it has 1 column.* may be ';': use --separator"),
    "nothing beside the target": ("sick\n0\n1\n", "no column but"),
    "one class": ("age,sick\n1,no\n2,no\n", "only one class"),
    "missing value": ("age,sick\n1,no\n,yes\n", "Column 'age' of people.csv has 1 missing"),
    "missing label": ("age,sick\n1,no\n2,\n", "has 1 missing label, the first in row 2"),
    "continuous target": ("age,sick\n1,0.5\n2,0.7\n", "holds numbers: a regression, which needs --target-bounds"),
    "fewer rows than folds": ("age,sick\n1,no\n", "has 1 row, fewer than the 2 folds"),
    "a class with fewer rows": (
        "age,sick\n1,no\n2,yes\n3,no\n",
        "A class of the target of people.csv has 1 row, fewer",
    ),
    "ragged": ("age,sick\n1,no\n2,yes,3,4\n", "is no CSV file"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_refuses_a_bad_file_in_one_line(case, write):
    text, message = BAD_CSV[case]
    with pytest.raises(StudyInputError, match=message) as caught:
        load_study_data(write(text), target="sick", bounds="0,120")
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("column,low\nage,1\n", "must have the column 'high'; it has 2"),
        ("column,low,high\nage,0,9\n", "no bounds for 'height'"),
    ],
)
def test_refuses_an_incomplete_bounds_file(text, message, write):
    with pytest.raises(StudyInputError, match=message):
        load_study_data(write(GOOD), target="sick", bounds=write(text, "bounds.csv"))


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


def test_a_target_may_be_studied_on_a_log_scale(write):
    path = write("age,cost\n" + "".join(f"{i},{cost}\n" for i, cost in enumerate((-1, 0, 1, 10, 100, 1000, 5, 7.5))))
    data = load_study_data(path, target="cost", bounds="0,9", target_bounds="1,100", target_transform="log")
    assert data.target_bounds == (0.0, np.log(100))
    # Two below the bounds and one above.
    assert data.n_targets_clipped == 3
    np.testing.assert_array_equal(data.y[2:], np.log([1, 10, 100, 1000, 5, 7.5]))
    for given, message in (
        ({"target_bounds": "0,9"}, "needs target bounds above 0, such as --target-bounds 1,9; got 0 and 9"),
        ({"target_transform": "exp"}, "must be one of log, none"),
        ({"target_bounds": None}, "needs --target-bounds"),
    ):
        options = {"bounds": "0,9", "target_transform": "log"} | given
        with pytest.raises(StudyInputError, match=message):
            load_study_data(path, target="cost", **options)
    with pytest.raises(StudyInputError, match="--target-transform is for a target of numbers"):
        load_study_data("digits", target_transform="log")


def test_many_whole_numbers_are_no_classes_but_what_one_says_counts(write):
    for n_values, task in ((20, "classification"), (21, "regression")):
        path = write("age,level\n" + "".join(f"{i % 9},{i % n_values}\n" for i in range(84)))
        given = {"target_bounds": (0, 30)} if task == "regression" else {}
        assert load_study_data(path, target="level", bounds="0,9", **given).task == task
        assert load_study_data(path, target="level", bounds="0,9", task="classification").task == "classification"
        assert (
            load_study_data(path, target="level", bounds="0,9", task="regression", target_bounds="0,30").y.dtype
            == float
        )


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
