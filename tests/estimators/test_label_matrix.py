"""LabelMatrixRR: several labels of a record, one epsilon, and classifiers that are trained on them."""

from fractions import Fraction

import numpy as np
import pytest
from laws import THRESHOLD, chi_square_pvalue
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from skldp import LabelPrivateClassifier, LabelRR, privacy_guarantee
from skldp.exceptions import LearntDomainWarning
from skldp.mechanisms import RandomizedResponse
from skldp.papers import LabelMatrixRR

seeds_expected = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
X = np.random.default_rng(0).uniform(-1, 1, (6_000, 2))
Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0.3, X.sum(axis=1) > 0]).astype(int)


def test_the_epsilons_of_all_columns_add_up():
    guarantee = LabelMatrixRR(2.0, classes=[0, 1]).fit(Y).privacy_guarantee_
    alone = RandomizedResponse(2.0 / 3, 2).exact_epsilon
    assert guarantee.unit == "label"
    assert 3 * Fraction(alone) * (1 - Fraction(1, 10**9)) <= Fraction(guarantee.epsilon)
    assert guarantee.epsilon <= guarantee.stated <= 2.0
    assert "sum over 3 columns" in guarantee.basis
    two = LabelMatrixRR(2.0, classes=[["a"], ["b", "c"]]).fit([["a", "c"]]).privacy_guarantee_
    # A column of one class takes no share.
    assert two.epsilon == pytest.approx(2.0)
    assert two.stated == 2.0


@seeds_expected
def test_every_pair_of_labels_is_released_by_the_product_of_two_laws():
    labels = np.tile([["no", "b"]], (50_000, 1))
    released = LabelMatrixRR(2.0, classes=[["no", "yes"], ["a", "b", "c"]], seed=1).fit_transform(labels)
    laws = [RandomizedResponse(1.0, k).flip_matrix[row] for k, row in ((2, 0), (3, 1))]
    pairs = [((released == [one, other]).all(axis=1)).sum() for one in ("no", "yes") for other in "abc"]
    assert chi_square_pvalue(pairs, np.outer(*laws).ravel()) > THRESHOLD


@pytest.mark.parametrize(
    "inner", [MultiOutputClassifier(LogisticRegression()), RandomForestClassifier(20, max_depth=3, random_state=0)]
)
@seeds_expected
def test_a_classifier_of_several_labels_learns_from_released_ones(inner):
    model = LabelPrivateClassifier(inner, label_mechanism=LabelMatrixRR(6.0, classes=[0, 1], seed=0)).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert ((model.predict(X) == Y).mean(axis=0) > 0.85).all()
    assert [part.shape for part in model.predict_proba(X)] == [(6_000, 2)] * 3
    assert privacy_guarantee(model).epsilon <= 6.0
    with pytest.raises(ValueError, match="one label per row"):
        LabelPrivateClassifier(inner, label_mechanism=LabelMatrixRR(classes=[0, 1]), correction="forward").fit(X, Y)


@pytest.mark.parametrize(
    ("classes", "y", "match"),
    [
        ([0, 1], [0, 1], "2D array"),
        ([0, 1], [[0, 2]], "declared 2 values"),
        ([[0, 1]], [[0, 1]], "one list for each of 2 columns"),
        ([0, 1], None, "requires y"),
        ([0, 0], [[0, 1]], "distinct"),
    ],
)
def test_refuses_what_is_no_matrix_of_declared_labels(classes, y, match):
    with pytest.raises(ValueError, match=match):
        LabelMatrixRR(classes=classes).fit_transform(y)
    with pytest.raises(ValueError, match="3 columns"):
        LabelMatrixRR(classes=[0, 1]).fit(Y).transform(Y[:, :2])
    with pytest.raises(ValueError, match="1d array"):
        LabelRR(classes=[0, 1]).fit(Y)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, object, float])
def test_labels_keep_their_type_and_can_be_estimated(dtype):
    # A flip at 40 a column has a chance of 4e-18.
    matrix = LabelMatrixRR(120.0, classes=[0, 1])
    released = matrix.fit_transform(Y.astype(dtype))
    np.testing.assert_array_equal(released, Y)
    for estimate, column in zip(matrix.estimate_frequencies(released), Y.T, strict=True):
        np.testing.assert_allclose(estimate.frequencies, [1 - column.mean(), column.mean()], atol=1e-9)


def test_learnt_classes_void_the_guarantee():
    with pytest.warns(LearntDomainWarning):
        assert LabelMatrixRR().fit(Y).privacy_guarantee_.epsilon == np.inf
