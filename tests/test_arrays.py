"""Our own messages about data name types, shapes and columns."""

import re
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from marked_values import NUMBER, TEXT, WHOLE, found_in, told_by
from scipy import sparse

import skldp
from skldp._arrays import as_numbers, kind_of, where_not_numbers


def test_the_type_of_data_contains_no_length_of_a_string_and_no_category():
    assert kind_of(np.array([TEXT])) == "ndarray of str_ with shape (1,)"
    assert TEXT not in kind_of(pd.Series(pd.Categorical([TEXT])))


def test_the_first_column_that_holds_no_numbers_is_named():
    assert where_not_numbers([[1, 2.5], [3, TEXT]]) == ", with str in column 1"
    assert where_not_numbers(pd.DataFrame({"age": [1], "result": [TEXT]})) == ", with str in column 'result'"
    # A single object is described by its kind.
    assert where_not_numbers(object()) == where_not_numbers(TEXT) == ""
    # Missing values come last: another column is more likely the reason.
    assert where_not_numbers([[1, None], [TEXT, 2]]) == ", with str in column 0"
    assert where_not_numbers([1, None]) == ", with NoneType"
    assert where_not_numbers([[1], [1, 2]]) == ", with list"


@pytest.mark.parametrize(
    "values",
    [
        [TEXT],
        np.array([TEXT]),
        [{"a": 1}],
        [1j],
        [10**400],
        [np.datetime64("2024-02-29")],
        np.array([np.datetime64("2024-02-29"), 1.5], dtype=object),
        [[1], [1, 2]],
    ],
)
def test_what_is_no_number_is_refused_by_our_rule_alone(values):
    with pytest.raises(ValueError, match=r"^y must be real numbers in the range of float64; got .*\.$") as caught:
        as_numbers(values, "y")
    printed = "".join(traceback.format_exception(caught.value, chain=True))
    assert TEXT not in printed
    assert "could not convert" not in printed


RULE = "real numbers in the range of float64; got "


def test_errors_that_scikit_learn_would_raise_with_values_are_ours():
    for X, rule in (
        (
            [[0.5, TEXT]],
            f"{RULE}list of length 1, with str in column 1. A ColumnEncoder encodes categories and dates.$",
        ),
        ([[0.5, 10**400]], f"{RULE}list of length 1. A ColumnEncoder"),
        ([[0.5, 1j]], f"{RULE}list of length 1, with complex in column 1. Complex data not supported"),
        ([0.5, 2.5], "a 2D array, with a row for each record; got list of length 2."),
    ):
        with pytest.raises(ValueError, match=f"^X must (be|have) {rule}"):
            skldp.NumericPrivatizer().fit(X)


MISSING_FIRST = {
    "float": pd.array([None, 1.0, 1.0, 1.0], dtype="Float64"),
    "boolean": pd.array([None, True, True, True], dtype="boolean"),
    "arrow": pd.array([None, 1.0, 1.0, 1.0], dtype="double[pyarrow]"),
    "object": pd.array([pd.NA, 1.0, 1.0, 1.0], dtype=object),
}
COMPLEX = np.full((4, 2), NUMBER + 1j)
PRIVATE = {
    **{f"{kind}, text": pd.DataFrame({"a": one, "b": [TEXT] * 4}) for kind, one in MISSING_FIRST.items()},
    **{
        f"{kind}, {dtype}": pd.DataFrame({"a": one, "b": pd.array([TEXT] * 4, dtype=dtype)})
        for kind, one in MISSING_FIRST.items()
        for dtype in ("string", "category")
    },
    "missing text": pd.DataFrame({"a": pd.array([None, *[TEXT] * 3], dtype="string"), "b": [1.0] * 4}),
    "an object": pd.DataFrame({"a": [{TEXT: 1}] * 4, "b": [1.0] * 4}),
    "sparse": sparse.csr_matrix(COMPLEX),
}


def printed(error):
    """The error and all that it holds, whether or not a traceback prints it."""
    return "" if error is None else f"{error!r} {printed(error.__cause__)} {printed(error.__context__)}"


@pytest.mark.filterwarnings("ignore:X has feature names", "ignore::skldp.exceptions.TooFewPeopleWarning")
@pytest.mark.parametrize("kind", PRIVATE)
def test_no_cell_that_is_no_number_is_shown_where_another_is_missing(kind):
    X, y = PRIVATE[kind], [0.0, 1.0, 0.0, 1.0]
    line = skldp.PrivateLinearRegression(9.0, bounds=(0, 1), target_bounds=(0, 1))
    calls = [
        lambda: line.fit(X, y),
        lambda: line.fit(np.eye(4, 2), y).predict(X),
        lambda: skldp.NumericPrivatizer(bounds=(0, 1)).fit(X),
        lambda: skldp.BoundsScaler(bounds=(0, 1)).fit(X),
    ]
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=f"^X must be {RULE}") as caught:
            call()
        assert not found_in(printed(caught.value))


@pytest.mark.parametrize(
    ("y", "rule"),
    [
        (TEXT, f"^y must be {RULE}str.$"),
        ([TEXT] * 4, f"^y must be {RULE}.*, with str.$"),
        # Versions of pandas differ in the type of their error, which ours keeps.
        (pd.Series([pd.NA, TEXT, TEXT, TEXT], dtype="string"), f"^y must be {RULE}Series .*, with NAType, str[.]"),
        (
            pd.Series([{TEXT: 1}] * 4),
            f"^y must be {RULE}.*, with dict. Each argument must be a number or the string of",
        ),
        (COMPLEX[:, 0], f"^y must be {RULE}.*, with complex. Complex data not supported.$"),
        (sparse.csr_matrix(np.full((4, 1), NUMBER)), "^Sparse data was passed for y, but dense data is required"),
        ([WHOLE * 10**400] * 4, f"^y must be {RULE}list of length 4.$"),
    ],
)
def test_a_target_that_is_no_numbers_is_refused_without_advice_on_columns(y, rule):
    line = skldp.PrivateLinearRegression(9.0, bounds=(0, 1), target_bounds=(0, 1))
    for call in (lambda: line.fit(np.eye(4, 2), y), lambda: skldp.TargetPrivatizer(bounds=(0, 1)).fit(y)):
        with pytest.raises((ValueError, TypeError), match=rule) as caught:
            call()
        assert not found_in(printed(caught.value))


DAYS = pd.date_range("2024-02-29", periods=4)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": DAYS, "b": DAYS}),
        pd.DataFrame({"a": DAYS, "b": [0.5] * 4}),
        np.full((4, 2), "2024-02-29", dtype="M8[D]"),
        np.full((4, 2), 3, dtype="m8[D]"),
        [[np.datetime64("2024-02-29"), 0.5]] * 4,
    ],
    ids=["frame", "mixed frame", "array", "durations", "list"],
)
def test_dates_are_no_numbers_as_in_targets(X):
    with pytest.raises(
        (ValueError, TypeError), match=f"^X must be {RULE}.* A ColumnEncoder encodes categories and dates."
    ):
        skldp.NumericPrivatizer(bounds=(0, 1)).fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool, object])
def test_masked_cells_are_no_numbers(dtype):
    hidden = np.ma.array(np.array([0, 1, 1]).astype(dtype), mask=[False, True, False])
    for given in (hidden, [hidden, hidden], (hidden[:1], hidden)):
        with pytest.raises(ValueError, match="x must not have masked cells, which are missing; got"):
            as_numbers(given, "x")
    np.testing.assert_array_equal(as_numbers(np.ma.array([0.5, 1.0])), [0.5, 1.0])


def test_every_message_has_one_form_of_what_came():
    """An error states the rule, then "; got X."."""
    sources = sorted((Path(__file__).parents[1] / "skldp").rglob("*.py"))
    found = [(path.name, one) for path in sources for one in re.findall(r"\bGot\b.*", path.read_text(encoding="utf-8"))]
    assert found == []


def test_the_sum_that_scikit_learn_takes_of_a_target_warns_of_nothing():
    y = np.tile([1e308, -1e308], 50)
    told, _ = told_by(lambda: skldp.PrivateLinearRegression(bounds=(0, 1), target_bounds=(0, 1)).fit(np.eye(100, 2), y))
    assert "invalid value" not in told
