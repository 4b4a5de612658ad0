"""LabelPrivateClassifier: any classifier on randomized labels, and the way back to the true ones."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from laws import THRESHOLD, binomial_pvalue
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.estimators._labels import LabelLaplace, LabelRR

seeds_expected = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
CORRECTIONS = ["none", "forward"]


def private(estimator=None, *, epsilon=500.0, classes=(0, 1, 2), correction="none", **parameters):
    mechanism = LabelRR(epsilon, classes=list(classes), **parameters)
    return LabelPrivateClassifier(estimator or GaussianNB(), label_mechanism=mechanism, correction=correction)


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize(
    "y", [Y, NAMES[Y], NAMES[Y].astype(object), Y == 1, pd.Series(NAMES[Y])], ids=lambda y: y.dtype
)
def test_a_huge_epsilon_gives_the_plain_classifier_for_labels_of_any_type(correction, y):
    classes = sorted(set(np.asarray(y).tolist()))
    classifier = private(classes=classes, correction=correction).fit(X, y)
    plain = GaussianNB().fit(X, np.asarray(y))
    np.testing.assert_array_equal(classifier.predict(X), plain.predict(X))
    np.testing.assert_allclose(classifier.predict_proba(X), plain.predict_proba(X), atol=1e-12)
    assert classifier.classes_.tolist() == classes


CELLS = np.repeat(np.arange(4), 20_000)
TRUE = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.05, 0.9, 0.05]])


@pytest.fixture
def known_model():
    """Four kinds of people, the true classes of each with known probabilities: a tree learns their shares exactly."""
    uniforms = np.random.default_rng(0).uniform(size=CELLS.size)
    return CELLS[:, None], (uniforms[:, None] > TRUE[CELLS].cumsum(axis=1)[:, :2]).sum(axis=1)


@seeds_expected
@pytest.mark.parametrize("mechanism", [LabelRR, LabelLaplace])
def test_forward_correction_removes_the_bias_of_the_probabilities(known_model, mechanism):
    rows, y = known_model
    n = 20_000
    for correction in CORRECTIONS:
        classifier = LabelPrivateClassifier(
            DecisionTreeClassifier(),
            label_mechanism=mechanism(epsilon=1.0, classes=[0, 1, 2], seed=0),
            correction=correction,
        ).fit(rows, y)
        predicted = classifier.predict_proba(np.arange(4)[:, None])
        flips = classifier.label_mechanism_.flip_matrix_
        # A prediction p says that n p T of the n randomized labels of its cell fell on each class: a binomial count
        # if p estimates the true probabilities, unless it was clipped at the simplex.
        implied = np.rint(n * predicted @ flips)
        worst = [
            min(binomial_pvalue(implied[cell, j], n, (TRUE @ flips)[cell, j]) for j in range(3))
            for cell in range(4)
            if predicted[cell].min() > 0
        ]
        if correction == "forward":
            assert len(worst) >= 3
            assert min(worst) > THRESHOLD
        else:
            # Only the cell whose classes are equally likely is predicted without bias.
            assert [pvalue < THRESHOLD for pvalue in worst] == [True, True, False, True]


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_classes_that_no_randomized_label_shows_keep_their_column(correction):
    classifier = private(classes=[-1, 0, 1, 2], correction=correction).fit(X, Y)
    assert classifier.classes_.tolist() == [-1, 0, 1, 2]
    assert classifier.predict_proba(X).shape == (150, 4)
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 0], 0, atol=1e-15)


def test_metadata_is_routed():
    weight = np.random.default_rng(0).uniform(0, 1, 150)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = private(GaussianNB().set_fit_request(sample_weight=True)).set_score_request(sample_weight=False)
        fitted = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asking).fit(
            X, Y, sample_weight=weight
        )
        Z = fitted[0].transform(X)
        theta = GaussianNB().fit(Z, Y, sample_weight=weight).theta_
        np.testing.assert_array_equal(fitted[-1].estimator_.theta_, theta)
        with pytest.raises(ValueError, match="sample_weight"):
            private(GaussianNB()).fit(X, Y, sample_weight=weight)
        search = GridSearchCV(asking, {"label_mechanism__epsilon": [500.0]}, cv=2).fit(X, Y, sample_weight=weight)
        weighted = GaussianNB().set_fit_request(sample_weight=True).fit(X, Y, sample_weight=weight)
        np.testing.assert_array_equal(search.best_estimator_.estimator_.theta_, weighted.theta_)


def test_grid_search_over_epsilon_at_the_end_of_a_pipeline(fixed_noise):
    pipeline = make_pipeline(StandardScaler(), private())
    name = "labelprivateclassifier__label_mechanism__epsilon"
    search = GridSearchCV(pipeline, {name: [1e-3, 50.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {name: 50.0}
    guarantee = privacy_guarantee(search.best_estimator_)
    assert (guarantee.unit, guarantee.stated) == ("label", 50.0)
    assert "features not protected" in guarantee.headline()
    assert cross_val_score(pipeline, X, Y, scoring="neg_log_loss", cv=3).mean() > -0.2


def test_two_fits_without_a_seed_see_different_labels():
    tree = private(DecisionTreeClassifier(), epsilon=0.1, classes=range(10))
    rows = np.arange(2000.0)[:, None]
    first, second = (tree.fit(rows, np.zeros(2000, int)).predict(rows) for _ in range(2))
    assert (first != second).any()
