"""Warnings about bounds name the columns; a release that its container cannot hold is refused before it is made."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import is_regressor

from skldp import (
    BoundsScaler,
    ColumnEncoder,
    LabelRR,
    NumericPrivatizer,
    PrivateDiscriminant,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMoments,
    PrivUnitTransformer,
    TablePrivatizer,
)
from skldp.exceptions import OutOfDomainWarning, TooFewPeopleWarning

pd = pytest.importorskip("pandas")

N = 300
ROWS = pd.DataFrame({"age": np.linspace(0, 120, N), "dose": np.linspace(0, 1, N), "fare": np.linspace(-1, 1, N)})
BOUNDS = {"age": (0, 100), "dose": (0, 1), "fare": (0, 1)}
CLASSES = np.arange(N) % 2


@pytest.mark.parametrize(
    "estimator",
    [
        BoundsScaler(BOUNDS),
        NumericPrivatizer(bounds=BOUNDS),
        PrivUnitTransformer(bounds=BOUNDS),
        TablePrivatizer(schema=BOUNDS),
        PrivateMoments(bounds=BOUNDS),
        PrivateLinearRegression(bounds=BOUNDS),
        PrivateDiscriminant(bounds=BOUNDS, classes=[0, 1]),
        PrivateLogisticRegression(bounds=BOUNDS, classes=[0, 1]),
        ColumnEncoder(schema=BOUNDS),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_columns_are_named_and_no_others(fixed_noise, estimator):
    call = getattr(estimator, "fit_transform", estimator.fit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", TooFewPeopleWarning)
        warnings.simplefilter("always", OutOfDomainWarning)
        call(ROWS, CLASSES)
    (text,) = {str(one.message) for one in caught}
    wider = "a wider schema" if hasattr(estimator, "schema") else "wider bounds"
    assert f"moved into it (50 in 'age', 150 in 'fare'). Declare {wider}" in text
    # The target of a regression counts, a class does not.
    assert f" of {1_200 if is_regressor(estimator) else 900:,} values (" in text


def test_many_columns_are_not_all_named_and_those_without_names_have_numbers():
    with pytest.warns(OutOfDomainWarning, match=r"\(4 in 'x1', 4 in 'x2', 4 in 'x3', 4 in 'x4', \.\.\.\)"):
        NumericPrivatizer().fit_transform(np.tile([0, 2, 2, 2, 2, 2], (4, 1)))


def test_a_sparse_release_that_no_frame_can_hold_is_refused_before_it_is_made(monkeypatch):
    def released(*args):
        raise AssertionError("something was released")

    table = TablePrivatizer(schema={"city": ["Bonn", "Ulm"]}, sparse_output=True)
    people = pd.DataFrame({"city": ["Ulm", "Bonn"]})
    table.fit(people)
    monkeypatch.setattr(type(table.mechanism_), "release", released)
    for refused in (table.set_output(transform="pandas").transform, table.fit_transform, table.fit):
        with pytest.raises(ValueError, match=r"needs set_output\(transform='default'\); got 'pandas'"):
            refused(people)
    table.set_output(transform="default")
    with config_context(transform_output="polars"), pytest.raises(ValueError, match="got 'polars'"):
        TablePrivatizer(schema={"city": ["Bonn", "Ulm"]}, sparse_output=True).fit_transform(people)


def test_several_labels_are_sent_to_their_mechanism():
    for labels in (np.zeros((4, 2)), pd.DataFrame(np.zeros((4, 2)))):
        with pytest.raises(ValueError, match=r"shape \(4, 2\) instead\. Use LabelMatrixRR"):
            LabelRR(classes=[0, 1]).fit(labels)
