"""Codes of labels: the quick way for a run of integers agrees with the long one, and refuses what it refuses."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from skldp import LabelPrivateClassifier, LabelRR, PrivateLogisticRegression
from skldp.estimators._class_codes import declared_values, encode, labels_1d

ENDS = [np.iinfo(np.int64).min, np.iinfo(np.int64).max]


@given(st.sampled_from([-3, 0, 5, ENDS[0], ENDS[1] - 3]), st.integers(1, 4), st.data())
@settings(max_examples=100, deadline=None)
def test_codes_are_places_in_the_domain(first, n_classes, data):
    domain = np.arange(n_classes) + first
    codes = np.array(data.draw(st.lists(st.integers(0, n_classes - 1), min_size=1)))
    np.testing.assert_array_equal(encode(domain[codes], domain, "y"), codes)


@pytest.mark.parametrize("domain", [[0, 1, 2], [5, 6, 7], [-1, 0, 1], [ENDS[0], ENDS[0] + 1], [ENDS[1] - 1, ENDS[1]]])
@pytest.mark.parametrize("label", [*ENDS, ENDS[0] + 3, ENDS[1] - 3, -2, 8, 4])
def test_a_label_beside_a_run_is_refused(domain, label):
    if label in domain:
        label = 0
    classes = declared_values(domain, "classes")
    with pytest.raises(ValueError, match="nothing was released"):
        encode(np.array([domain[0], label]), classes, "y")


def test_labels_of_another_type_are_refused_with_both_types():
    with pytest.raises(
        ValueError, match=r"only the declared 2 values of type int; .* first at position 0, of type str"
    ):
        encode(np.array(["1", "0"]), declared_values([0, 1], "classes"), "y")


@pytest.mark.parametrize(
    "labels",
    [np.array([True, False]), [True, np.False_], pd.array([True, False]), pd.Series([True, False], dtype=object)],
    ids=lambda one: type(one).__name__,
)
def test_truth_values_are_one_and_zero_unless_they_are_declared(labels):
    for domain in ([0, 1], [0.0, 1.0], [False, True]):
        assert encode(labels_1d(labels), declared_values(domain, "classes"), "y").tolist() == [1, 0]
    assert encode(labels_1d(labels), declared_values([-1, 0, 1], "classes"), "y").tolist() == [2, 1]
    for domain in ([1, 2], ["False", "True"]):
        with pytest.raises(ValueError, match="of type bool"):
            encode(labels_1d(labels), declared_values(domain, "classes"), "y")


@pytest.mark.parametrize("correction", ["none", "forward"])
def test_a_model_on_truth_values_predicts_the_declared_numbers(correction):
    X = np.linspace(-1, 1, 200)[:, None]
    y = X[:, 0] > 0
    private = LabelPrivateClassifier(
        LogisticRegression(), label_mechanism=LabelRR(20.0, classes=[0, 1]), correction=correction
    ).fit(X, y)
    for labels in (private.classes_, private.predict(X), LabelRR(20.0, classes=[0, 1]).fit_transform(y)):
        assert labels.dtype.kind == "i"
    assert private.score(X, y) > 0.9
    assert LabelRR(20.0, classes=[False, True]).fit_transform(y).dtype.kind == "b"


@pytest.mark.parametrize("classes", [[1, "no"], ["no", 1], [True, "no"], [0.5, "a", "b"]], ids=str)
def test_classes_of_texts_and_numbers_are_refused_at_fit(classes):
    y = np.array((classes * 20)[:40], dtype=object)
    X = np.linspace(0, 1, 40)[:, None]
    forest = LabelPrivateClassifier(LogisticRegression(), label_mechanism=LabelRR(3, classes=classes))
    for model in (PrivateLogisticRegression(4, bounds=(0, 1), classes=classes), forest, LabelRR(1, classes=classes)):
        with pytest.raises(ValueError, match="classes must be all texts or all numbers"):
            model.fit(*((y,) if isinstance(model, LabelRR) else (X, y)))
