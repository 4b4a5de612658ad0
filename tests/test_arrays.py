"""Our own messages about data name types, shapes and columns."""

import traceback

import numpy as np
import pandas as pd
import pytest
from marked_values import TEXT

import skldp
from skldp._arrays import as_numbers, kind_of, where_not_numbers


def test_the_type_of_data_contains_no_length_of_a_string_and_no_category():
    assert kind_of(np.array([TEXT])) == "ndarray of str_ with shape (1,)"
    assert TEXT not in kind_of(pd.Series(pd.Categorical([TEXT])))


def test_the_first_column_that_holds_no_numbers_is_named():
    assert where_not_numbers([[1, 2.5], [3, TEXT]]) == ", with str in column 1"
    assert where_not_numbers(pd.DataFrame({"age": [1], "result": [TEXT]})) == ", with str in column 'result'"
    assert where_not_numbers(object()) == ", with object"
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
    with pytest.raises(ValueError, match=r"^y must be real numbers; got .*\.$") as caught:
        as_numbers(values, "y")
    printed = "".join(traceback.format_exception(caught.value, chain=True))
    assert TEXT not in printed
    assert "could not convert" not in printed


def test_unknown_labels_are_counted_and_the_first_is_located():
    label_rr = skldp.LabelRR(classes=["no", "yes"]).fit(["no"])
    with pytest.raises(
        ValueError, match=r"only the declared 2 values of type str; .* Got 2 of 4 .* first at position 1"
    ):
        label_rr.transform(["no", TEXT, "yes", TEXT])


def test_errors_that_scikit_learn_would_raise_with_values_are_ours():
    for X, rule in (
        ([[0.5, TEXT]], "real numbers; got list of length 1, with str in column 1. A ColumnEncoder"),
        ([[0.5, 1j]], "real numbers; got list of length 1, with complex in column 1. Complex data not supported"),
        ([0.5, 2.5], "a 2D array, with a row for each record. Got list of length 2 instead."),
    ):
        with pytest.raises(ValueError, match=f"^X must (be|have) {rule}"):
            skldp.NumericPrivatizer().fit(X)
