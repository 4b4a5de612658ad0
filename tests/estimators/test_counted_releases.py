"""The guarantee of an ensemble against the truth: a release that counts how often each record really passes."""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, RepeatedKFold, ShuffleSplit
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from toy_estimators import ToySigns

from skldp import privacy_guarantee

# Any number of a record tells whose it is. Labels have classes of ten people each.
X = np.arange(1000.0, 1030)[:, None] + [0, 100]
Y = np.arange(30) % 3
X_VALUES = set(X.ravel().tolist())
SEEN: Counter = Counter()


class Counted(ToySigns):
    """Randomised signs at epsilon 1, which notes whose they are."""

    def _release(self, rows, out=None, *, noisy=True, ids=None, keyed=None):
        SEEN.update(value % 100 for value in rows[:, 0].tolist() if value in X_VALUES)
        return super()._release(rows, out, noisy=noisy, ids=ids, keyed=keyed)


class Weighted(ClassifierMixin, BaseEstimator):
    """A classifier that takes weights, behind a release."""

    def fit(self, X, y, sample_weight=None):
        self.release_ = Counted().fit(X)
        self.classes_ = np.unique(y)
        self.model_ = LogisticRegression().fit(self.release_.transform(X), y)
        self.privacy_guarantee_ = self.release_.privacy_guarantee_
        return self

    def predict(self, X):
        return self.model_.predict(self.release_.transform(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # What it promises is of the rows alone, whoever had the labels before.
        tags.target_tags.required = False
        return tags


regression = make_pipeline(Counted(), LinearRegression())
classifier = make_pipeline(FunctionTransformer(), Counted(), LogisticRegression())
clusters = make_pipeline(Counted(), KMeans(2, n_init=1))
two = FeatureUnion([("a", Counted()), ("b", make_pipeline(Counted(), Counted()))])

WHOLES = {
    "a union": (two, None, None),
    "bagging": (BaggingClassifier(classifier, 5, random_state=0), Y, 1),
    "bagging of shares": (BaggingRegressor(regression, 7, max_samples=0.4, bootstrap=False, random_state=1), Y, 1),
    "bagging of columns": (BaggingRegressor(regression, 3, max_features=1, random_state=3), Y, 1),
    "bagging by weights": (BaggingClassifier(Weighted(), 4, max_samples=3, random_state=0), Y, 1),
    "votes": (VotingClassifier([("a", classifier), ("b", classifier)]), Y, 1),
    "votes of numbers": (VotingRegressor([("a", regression), ("b", "drop"), ("c", regression)]), Y, 1),
    "a stack": (StackingClassifier([("a", classifier), ("b", classifier)]), Y, 1),
    "a stack of few folds": (StackingRegressor([("a", regression)], cv=2), Y, 1),
    "a stack of given folds": (StackingRegressor([("a", regression)], cv=KFold(4, shuffle=True)), Y, 1),
    "a stack on a stack": (
        StackingRegressor([("a", regression)], cv=2, final_estimator=make_pipeline(Counted(), LinearRegression())),
        Y,
        None,
    ),
    "a stack in a bag": (
        # Within a pipeline: older baggings hand weights to a stack, and that to its members, which take none.
        BaggingRegressor(
            make_pipeline(StackingRegressor([("a", regression)], LinearRegression(), cv=3)), 2, bootstrap=False
        ),
        Y,
        1,
    ),
    "calibration": (CalibratedClassifierCV(classifier, cv=4), Y, 1),
    "calibration of one": (CalibratedClassifierCV(classifier, ensemble=False), Y, 1),
    "calibration to probabilities": (CalibratedClassifierCV(classifier, method="isotonic", cv=2), Y, 1),
    "several targets": (MultiOutputRegressor(regression), np.c_[Y, Y, Y, Y], 1),
    "several labels": (MultiOutputClassifier(classifier), np.c_[Y, Y], 1),
    "a chain": (ClassifierChain(classifier), np.c_[Y > 0, Y > 1, Y == 1], 1),
    "a chain of numbers": (RegressorChain(regression), np.c_[Y, Y], 1),
    "one versus the rest": (OneVsRestClassifier(classifier), Y, 1),
    "one versus one": (OneVsOneClassifier(classifier), Y, 1),
    "codes": (OutputCodeClassifier(classifier, code_size=2.0, random_state=0), Y, 1),
    "a search": (GridSearchCV(clusters, {"kmeans__n_clusters": [2, 3, 4]}, cv=3), None, 1),
    "a search with training scores": (
        GridSearchCV(clusters, {"kmeans__n_clusters": [2, 3]}, cv=2, return_train_score=True),
        None,
        None,
    ),
    "a random search": (
        RandomizedSearchCV(clusters, {"kmeans__n_clusters": [2, 3]}, n_iter=2, cv=KFold(3)),
        None,
        1,
    ),
    "a search on repeated folds": (
        GridSearchCV(clusters, {"kmeans__n_clusters": [2]}, cv=RepeatedKFold(n_splits=2, n_repeats=3)),
        None,
        None,
    ),
    "a search on random shares": (
        GridSearchCV(clusters, {"kmeans__n_clusters": [2]}, cv=ShuffleSplit(4, random_state=0)),
        None,
        None,
    ),
    "votes between steps": (
        make_pipeline(VotingRegressor([("a", regression), ("b", regression)]), LinearRegression()),
        Y,
        1,
    ),
    "votes beside others": (
        make_pipeline(
            FeatureUnion([("a", VotingRegressor([("b", regression)])), ("c", Counted())]), LinearRegression()
        ),
        Y,
        1,
    ),
    "a stack between steps": (make_pipeline(StackingRegressor([("a", regression)], cv=2), LinearRegression()), Y, 1),
    "a search between steps": (
        make_pipeline(GridSearchCV(clusters, {"kmeans__n_clusters": [2, 3]}, cv=3), KMeans(2, n_init=1)),
        None,
        1,
    ),
}


@pytest.mark.parametrize("name", WHOLES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_record_passes_more_often_than_the_guarantee_says(name):
    whole, y, tight = WHOLES[name]
    SEEN.clear()
    fitted = clone(whole)
    if y is None and not hasattr(whole, "predict"):
        fitted.fit_transform(X)
    else:
        fitted.fit(X, y)
    most = max(SEEN.values())
    epsilon = privacy_guarantee(fitted).epsilon
    assert most <= epsilon < np.inf
    if tight:
        assert epsilon == most
