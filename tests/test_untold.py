"""What errors about data say instead of values: enough to find the fault."""

import ast
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from marked_values import MARKED_ROWS, NUMBER, TEXT
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skldp
from skldp._untold import as_numbers, kind_of, told, untold, where_not_numbers

FITTED = skldp.NumericPrivatizer().fit(np.zeros((2, 3)))


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("a list with a string", r"X must be a table of finite numbers. Got list of length 4, with str in column 1,"),
        ("pandas with strings", r"Got DataFrame with shape \(4, 3\), with str in column 'result', instead"),
        ("polars with strings", r"Got DataFrame with shape \(4, 3\), with str in column 'result', instead"),
        ("an array of strings", r"Got ndarray of str_ with shape \(4, 3\), with str in column 0, instead"),
        ("one dimension", r"Expected 2D array, got 1D array instead.\nReshape your data"),
        ("an array with NaN", r"Input X contains NaN"),
        ("too many columns", r"X has 5 features, but NumericPrivatizer is expecting 3"),
        ("complex numbers", r"Complex data not supported\.$"),
    ],
)
def test_says_where_the_fault_is(kind, said):
    with pytest.raises(ValueError, match=said):
        FITTED.transform(MARKED_ROWS[kind]())


def test_says_how_many_labels_are_unknown_and_where_the_first_is():
    label_rr = skldp.LabelRR(classes=["no", "yes"]).fit(["no"])
    with pytest.raises(ValueError, match=r"only the declared 2 values; .* Got 2 of 4 .* first at position 1"):
        label_rr.transform(["no", TEXT, "yes", TEXT])


def test_a_traceback_does_not_show_what_was_raised_before():
    with pytest.raises(ValueError, match="must be numbers") as caught:
        as_numbers([TEXT])
    assert TEXT not in "".join(traceback.format_exception(caught.value))
    assert "could not convert" not in "".join(traceback.format_exception(caught.value))


def test_the_length_of_the_longest_string_and_the_categories_are_not_told():
    assert kind_of(np.array([TEXT])) == "ndarray of str_ with shape (1,)"
    assert TEXT not in kind_of(pd.Series(pd.Categorical([TEXT])))
    assert where_not_numbers([[1, 2.5], [3, TEXT]]) == ", with str in column 1,"
    assert where_not_numbers(object()) == ", with object in it,"


class Talkative(ClassifierMixin, BaseEstimator):
    """Raises what it is given."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        raise KeyError(f"no idea what to do with {X[0][0]}")


def test_a_classifier_that_prints_rows_is_not_repeated():
    classifier = skldp.LabelPrivateClassifier(Talkative(), label_mechanism=skldp.LabelRR(classes=[0, 1]))
    classifier.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(KeyError, match=r"estimator's predict refused X.* left out; .* Got list of length 1"):
        classifier.predict([[NUMBER]])


def test_what_a_classifier_says_of_its_parameters_is_repeated():
    classifier = skldp.LabelPrivateClassifier(
        LogisticRegression(C=-3.0), label_mechanism=skldp.LabelRR(50.0, classes=[0, 1])
    )
    with pytest.raises(ValueError, match=r"The 'C' parameter of LogisticRegression must be .* Got -3.0 instead"):
        classifier.fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("values", [["secret Got"], np.array(["secret"]), [{"a": 1}], [1j], [10**400]])
def test_only_raise_statements_of_this_package_count_as_its_words(values):
    with pytest.raises((ValueError, TypeError)) as caught:
        as_numbers(values)
    assert "secret" not in str(caught.value)
    with pytest.raises(type(caught.value)) as again, untold("another rule"):
        raise caught.value
    assert str(again.value) == str(caught.value)


def test_functions_print_their_data_as_parameters_and_that_is_not_told():
    assert told(ValueError("The 'y_true' parameter of r2_score must be an array-like. Got 987654.25 instead.")) is None
    assert told(ValueError("The 'C' parameter of LogisticRegression must be a float. Got -1 instead."))


@pytest.mark.parametrize("name", ["labels_true", "Y", "groups", "labels", "X"])
def test_no_parameter_of_a_function_is_told(name):
    for function in ("pairwise", "cross_validate"):
        text = f"The '{name}' parameter of {function} must be an array-like. Got {TEXT!r} instead."
        assert told(ValueError(text)) is None


def test_the_only_class_of_a_fold_is_not_told():
    """LogisticRegression and LinearSVC name it, behind words that tell nothing."""
    with pytest.raises(ValueError, match=r"only one class\.$"):
        skldp.privacy_utility_curve(
            make_pipeline(skldp.NumericPrivatizer(), LogisticRegression()),
            np.zeros((40, 2)),
            [TEXT] * 20 + ["none"] * 20,
            param_name="numericprivatizer__epsilon",
            cv=[(np.arange(20), np.arange(20, 40))],
            clean_estimator=None,
        )


def test_what_stood_behind_a_harmless_message_is_not_shown():
    def harmless():
        try:
            float(TEXT)
        except ValueError as error:
            raise ValueError("X has 3 features, but two are expected") from error

    with pytest.raises(ValueError, match="3 features") as caught, untold("X must be a table"):
        harmless()
    assert TEXT not in "".join(traceback.format_exception(caught.value))


PACKAGE = Path(skldp.__file__).parent


def test_data_are_validated_in_one_place():
    printing = {"validate_data", "check_array", "check_X_y", "column_or_1d", "check_consistent_length"}
    for path in PACKAGE.rglob("*.py"):
        imported = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("sklearn")
            for alias in node.names
        }
        assert not imported & printing or path.name == "_validation.py", path
