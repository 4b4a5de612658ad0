"""The guarantee of a composite against the truth: a release that counts how often each record passes."""

import math
from collections import Counter, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_imbalanced_pipeline
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, check_cv
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from toy_estimators import ToySigns

from skldp import (
    LabelPrivateClassifier,
    LabelPrivateRegressor,
    LabelRR,
    TargetPrivatizer,
    privacy_guarantee,
)

# The first number of a row and the second, which is 100 more, identify its record. Each class has ten records.
X = np.arange(1000.0, 1030)[:, None] + [0, 100]
Y = np.arange(30) % 3
X_VALUES = set(X.ravel().tolist())
SEEN: Counter = Counter()
SEARCH = "privacy_guarantee(search.best_estimator_) is the figure of that one fit"

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Counted(ToySigns):
    """Randomized signs at epsilon 1, whose draws are counted for each record."""

    def _release(self, rows, out=None, *, noisy=True, **how):
        for value in rows[:, 0].tolist():
            if value in X_VALUES:
                # A clean row protects nothing, however small epsilon is.
                SEEN[value % 100] += 1 if noisy else math.inf
        return super()._release(rows, out, noisy=noisy, **how)


class Twice(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A meta-estimator that fits two clones."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y):
        self._members(clone(self.estimator).fit(X, y), clone(self.estimator).fit(X, y))
        self.classes_ = np.unique(y)
        return self

    def _members(self, *members):
        self.members_ = members

    def predict(self, X):
        return np.zeros(len(X))


class OddlyNamed(Twice):
    def _members(self, *members):
        self.__dict__["not an identifier"] = {"a": [members]}


class Hidden(Twice):
    """Keeps its members where no attribute shows them, and the parameter as a class."""

    def _members(self, *members):
        self.classes_of_ = deque(members)
        self.ask_ = lambda X: members[0].predict(X)

    def __init__(self, make):
        self.make = make

    @property
    def estimator(self):
        return self.make()


class Forwarding(Twice):
    """Forwards every other attribute, such as a guarantee, to a member."""

    def __getattr__(self, name):
        if name.startswith("__") or name == "members_":
            raise AttributeError(name)
        return getattr(self.members_[0], name)


class Weighted(Twice):
    """Fits by weights in the manner of an ensemble: each record comes as often as its weight says."""

    def fit(self, X, y, sample_weight=None):
        weights = np.full(len(X), 3) if sample_weight is None else np.asarray(sample_weight, dtype=int)
        self.member_ = clone(self.estimator).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        self.classes_ = np.unique(y)
        return self


class Pipelines(Pipeline):
    """A subclass of Pipeline that fits twice."""

    def fit(self, X, y=None):
        return super().fit(X, y).fit_again(X, y)

    def fit_again(self, X, y):
        return super().fit(X, y)


class Beside(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Two fits of a transformer, one beside the other."""

    def __init__(self, transformer):
        self.transformer = transformer

    def fit(self, X, y=None):
        self.fit_transform(X)
        return self

    def fit_transform(self, X, y=None):
        self.fitted_ = [clone(self.transformer), clone(self.transformer)]
        return np.hstack([one.fit_transform(X) for one in self.fitted_])

    def transform(self, X):
        return np.hstack([one.transform(X) for one in self.fitted_])


def reads_raw_rows(estimator, X, y):
    return float(np.asarray(X)[0, 0])


def fits_again(estimator, X, y):
    clone(estimator).fit(X, y)
    return 0.0


regression = make_pipeline(Counted(), LinearRegression())
classifier = make_pipeline(FunctionTransformer(), Counted(), LogisticRegression())
clusters = make_pipeline(Counted(), KMeans(2, n_init=1))
union = FeatureUnion([("a", Counted()), ("b", make_pipeline(Counted(), Counted()))])


def label_private(inner, **parameters):
    return LabelPrivateClassifier(inner, label_mechanism=LabelRR(8.0, classes=[0, 1, 2]), **parameters)


def searched(estimator, **parameters):
    return GridSearchCV(estimator, {"logisticregression__C": [1.0, 2.0]}, cv=2, **parameters)


# What is fitted, and what y is. Every one of them releases a record once, or several times in parallel branches.
COUNTED = {
    "a private step": (Counted(), None, 1),
    "a pipeline": (classifier, Y, 1),
    "a pipeline in a pipeline": (make_pipeline(make_pipeline("passthrough", make_pipeline(Counted()))), None, 1),
    "a union": (union, None, 2),
    "columns": (ColumnTransformer([("a", Counted(), [0]), ("b", Counted(), [1])], remainder=Counted()), None, 2),
    "columns in a union": (
        FeatureUnion([("a", ColumnTransformer([("a", Counted(), [0, 1])])), ("b", Counted()), ("c", "drop")]),
        None,
        2,
    ),
    "one step in two branches": (FeatureUnion([("a", union), ("b", union)]), None, 4),
    "released rows are released again": (make_pipeline(Counted(), Counted(), LinearRegression()), Y, 1),
    "bagging behind": (make_pipeline(Counted(), BaggingClassifier(LogisticRegression(), 5)), Y, 1),
    "a search behind": (make_pipeline(Counted(), GridSearchCV(LogisticRegression(), {"C": [1, 2]}, cv=2)), Y, 1),
    "an imbalanced pipeline behind": (
        make_pipeline(Counted(), make_imbalanced_pipeline(RandomOverSampler(), LogisticRegression())),
        Y,
        1,
    ),
    "a target transformed behind": (make_pipeline(Counted(), TransformedTargetRegressor(LinearRegression())), Y, 1),
    "an unknown estimator behind": (make_pipeline(Counted(), Twice(LogisticRegression())), Y, 1),
    "released labels": (label_private(classifier), Y, 1),
    "released labels behind": (make_pipeline(Counted(), label_private(BaggingClassifier())), Y, 1),
    "released targets": (
        LabelPrivateRegressor(regression, target_mechanism=TargetPrivatizer(8.0, bounds=(0, 2))),
        Y,
        1,
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_record_passes_each_private_step_once(name):
    estimator, y, times = COUNTED[name]
    SEEN.clear()
    fitted = clone(estimator)
    fitted = fitted.fit(X, y) if hasattr(fitted, "predict") else fitted.fit(X)
    if not hasattr(fitted, "predict"):
        SEEN.clear()
        fitted.transform(X)
    guarantee = privacy_guarantee(fitted)
    assert max(SEEN.values()) == times
    assert times <= guarantee.epsilon < math.inf
    assert sum(step.epsilon for step in guarantee.steps) == pytest.approx(guarantee.epsilon)


STEPS = st.recursive(
    st.sampled_from(["passthrough", Counted(), Counted(), FunctionTransformer(), StandardScaler()]),
    lambda steps: st.one_of(
        st.lists(steps, min_size=1, max_size=3).map(lambda some: make_pipeline(*some)),
        st.tuples(steps, steps).map(lambda two: make_union(*two)),
        st.tuples(steps, steps).map(lambda two: ColumnTransformer([("a", two[0], [0]), ("b", two[1], [0, 1])])),
        steps.map(lambda step: Beside(make_pipeline(step))),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(steps=st.lists(STEPS, min_size=1, max_size=3))
@settings(max_examples=150)
def test_no_figure_is_below_what_a_random_composition_releases(steps):
    pipeline = clone(make_pipeline(*steps))
    SEEN.clear()
    released = np.asarray(pipeline.fit_transform(X))
    passed = bool(np.isin(released, X).any())
    cost = math.inf if passed else max(SEEN.values(), default=0)
    try:
        epsilon = privacy_guarantee(pipeline).epsilon
    except ValueError:
        assert not SEEN
        return
    assert epsilon >= cost


# What is fitted on which labels, and a part of the reason.
REPEATED = {
    "bagging": (BaggingClassifier(classifier, 3), Y, "BaggingClassifier may give a record"),
    "bagging of shares": (BaggingRegressor(regression, 2, max_samples=0.4, bootstrap=False), Y, ""),
    "bagging within a pipeline": (make_pipeline(BaggingRegressor(regression, 2)), Y, "'baggingregressor'"),
    "bagging behind a release": (make_pipeline(Counted(), BaggingRegressor(regression, 2)), Y, "'baggingregressor'"),
    "bagging beside a release": (
        make_pipeline(
            FeatureUnion([("a", VotingRegressor([("b", regression)])), ("c", Counted())]), LinearRegression()
        ),
        Y,
        "'featureunion__a' (VotingRegressor)",
    ),
    "one versus one of bagging": (
        OneVsOneClassifier(BaggingClassifier(classifier, 10)),
        Y,
        "release once, before it",
    ),
    "one versus one": (OneVsOneClassifier(classifier), Y, ""),
    "one versus the rest": (OneVsRestClassifier(classifier), Y, ""),
    "codes": (OutputCodeClassifier(classifier, code_size=2.0, random_state=0), Y, ""),
    "votes": (VotingClassifier([("a", classifier), ("b", classifier)]), Y, ""),
    "a stack": (StackingClassifier([("a", classifier)], cv=3), Y, ""),
    "a stack on a stack": (StackingRegressor([("a", regression)], regression, cv=2), Y, ""),
    "calibration": (CalibratedClassifierCV(classifier, cv=3), Y, ""),
    "calibration of one": (CalibratedClassifierCV(classifier, cv=3, ensemble=False), Y, ""),
    "several targets": (MultiOutputRegressor(regression), np.c_[Y, Y, Y], ""),
    "several labels": (MultiOutputClassifier(classifier), np.c_[Y, Y], ""),
    "a chain": (ClassifierChain(classifier), np.c_[Y > 0, Y > 1], ""),
    "a chain of numbers": (RegressorChain(regression), np.c_[Y, Y], ""),
    "boosting": (AdaBoostRegressor(regression, n_estimators=2), Y, ""),
    "a selector": (SelectFromModel(OddlyNamed(classifier), threshold=0, importance_getter=lambda _: X[0]), Y, ""),
    "self-training": (SelfTrainingClassifier(classifier), np.where(Y == 2, -1, Y), ""),
    "a search": (searched(classifier), Y, SEARCH),
    "a random search": (RandomizedSearchCV(classifier, {"logisticregression__C": [1, 2]}, n_iter=2, cv=3), Y, SEARCH),
    "a search of clusters": (GridSearchCV(clusters, {"kmeans__n_clusters": [2, 3]}, cv=KFold(2)), None, SEARCH),
    "a search within released labels": (label_private(searched(classifier)), Y, SEARCH),
    "four metrics": (
        label_private(
            searched(
                classifier,
                scoring=["accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss"],
                refit="accuracy",
                return_train_score=True,
            )
        ),
        Y,
        SEARCH,
    ),
    "a scorer that reads raw rows": (label_private(searched(classifier, scoring=reads_raw_rows)), Y, SEARCH),
    "a scorer that fits": (label_private(searched(classifier, scoring=fits_again)), Y, SEARCH),
    "a bootstrap as splits": (
        GridSearchCV(
            clusters, {"kmeans__n_clusters": [2]}, cv=check_cv([(np.repeat(np.arange(15), 9), np.arange(15, 30))] * 2)
        ),
        None,
        SEARCH,
    ),
    "a search without a refit": (searched(classifier, refit=False), Y, "release once, before it"),
    "two clones": (Twice(classifier), Y, "Twice may give a record"),
    "two clones within released labels": (label_private(Twice(classifier)), Y, "'estimator' (Twice)"),
    "under an odd name": (OddlyNamed(classifier), Y, "OddlyNamed may give a record"),
    "a forwarded guarantee": (Forwarding(label_private(classifier)), Y, "Forwarding may give a record"),
    "by weights": (Weighted(classifier), Y, "Weighted may give a record"),
    "a subclass of a pipeline": (Pipelines(classifier.steps), Y, "Pipelines is not scikit-learn's Pipeline"),
    "an oversampled release": (
        make_imbalanced_pipeline(RandomOverSampler(), Counted(), LogisticRegression()),
        np.where(np.arange(30) < 2, 1, 0),
        "Pipeline is not scikit-learn's Pipeline and may sample before a release",
    ),
    "a frozen release": (make_pipeline(FrozenEstimator(Counted().fit(X)), LinearRegression()), Y, "'frozenestimator'"),
    "a frozen release of clean rows": (
        make_pipeline(FrozenEstimator(Counted(transform_noise=False).fit(X)), LinearRegression()),
        Y,
        "'frozenestimator'",
    ),
    "a transformed target": (
        TransformedTargetRegressor(regression, func=np.log1p, inverse_func=np.expm1),
        Y,
        "TransformedTargetRegressor may give a record",
    ),
    "elimination": (make_pipeline(RFE(OddlyNamed(classifier), importance_getter=lambda _: X[0])), Y, "'rfe' (RFE)"),
}


@pytest.mark.few(14)
@pytest.mark.parametrize("name", REPEATED)
def test_a_private_step_inside_anything_else_has_no_finite_figure(name):
    estimator, y, reason = REPEATED[name]
    guarantee = privacy_guarantee(clone(estimator).fit(X, y) if y is not None else clone(estimator).fit(X))
    assert math.isinf(guarantee.epsilon)
    assert guarantee.basis.startswith("infinite: ")
    once = "release first, sample later" if "is not scikit-learn" in reason else "release once, before it"
    assert once in guarantee.basis
    assert reason in guarantee.basis
    unprotected = [step for step in guarantee.steps if math.isinf(step.epsilon)]
    assert any(reason in step.basis for step in unprotected)
    assert once in guarantee._repr_html_()


@pytest.mark.parametrize("where", ["alone", "before", "beside", "within released labels"])
def test_what_cannot_be_seen_has_no_finite_figure_for_its_rows(where):
    hidden = Hidden(lambda: classifier)
    if where == "alone":
        assert math.isinf(privacy_guarantee(hidden.fit(X, Y)).epsilon)
        return
    if where == "within released labels":
        guarantee = privacy_guarantee(label_private(hidden).fit(X, Y))
        assert guarantee.unit == "label"
        assert "features not protected" in guarantee.headline()
        return
    transformer = SelectFromModel(hidden, threshold=0, importance_getter=lambda _: X[0])
    both = {
        "before": make_pipeline(transformer, Counted()),
        "beside": FeatureUnion([("a", transformer), ("b", Counted())]),
    }
    assert math.isinf(privacy_guarantee(both[where].fit(X, Y)).epsilon)


def test_rows_that_a_pipeline_hands_on_have_no_finite_figure():
    class Stopping(LinearRegression):
        def fit(self, X, y, X_val=None):
            return super().fit(X, y)

    SEEN.clear()
    with config_context(enable_metadata_routing=True):
        steps = Counted(), Stopping().set_fit_request(X_val=True)
        pipeline = make_pipeline(*steps, transform_input=["X_val"]).fit(X, Y, X_val=X)
    assert max(SEEN.values()) == 2
    guarantee = privacy_guarantee(pipeline)
    assert math.isinf(guarantee.epsilon)
    assert "transform_input" in guarantee.basis


def test_the_way_out_of_each_reason_is_finite():
    search = searched(classifier).fit(X, Y)
    assert privacy_guarantee(search.best_estimator_).epsilon == 1
    assert (
        privacy_guarantee(make_pipeline(Counted(), BaggingClassifier(LogisticRegression(), 3)).fit(X, Y)).epsilon == 1
    )
    around = privacy_guarantee(label_private(OneVsOneClassifier(LogisticRegression())).fit(X, Y))
    assert (around.unit, around.stated) == ("label", 8.0)
    resampled = make_imbalanced_pipeline(RandomOverSampler(), LogisticRegression())
    assert privacy_guarantee(label_private(resampled).fit(X, Y)).epsilon <= 8


def test_a_scaler_inside_an_ensemble_cannot_be_named_public():
    model = BaggingRegressor(make_pipeline(StandardScaler(), Counted(), LinearRegression()), 2).fit(X, Y)
    with pytest.raises(ValueError, match="public must name steps"):
        privacy_guarantee(model, public=["estimator__standardscaler"])
