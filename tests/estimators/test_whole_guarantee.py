"""The guarantee of a whole is never smaller than what is released about one record: a table of compositions."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_imbalanced_pipeline
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)

from skldp import (
    BitRandTransformer,
    BoundsScaler,
    CategoricalPrivatizer,
    LabelPrivateClassifier,
    LabelRR,
    LabelSampler,
    MultivariateLaplaceTransformer,
    NumericPrivatizer,
    privacy_guarantee,
)
from skldp.exceptions import SeededNoiseWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.LearntDomainWarning"),
]

X = np.random.default_rng(0).uniform(-1, 1, (30, 4))
Y = (X[:, 0] > 0).astype(int)
THREE = np.arange(30) % 3
INF = math.inf


def private(epsilon=1.0, **parameters):
    return NumericPrivatizer(epsilon, mechanism="laplace", **parameters)


def released_regression(epsilon=1.0, **parameters):
    return make_pipeline(private(epsilon, **parameters), LinearRegression())


def released_classifier(epsilon=1.0, **parameters):
    return make_pipeline(private(epsilon, **parameters), LogisticRegression())


def label_private(epsilon=0.5, classes=(0, 1), inner=None):
    return LabelPrivateClassifier(inner or LogisticRegression(), label_mechanism=LabelRR(epsilon, classes=classes))


def codes(n=30):
    return pd.DataFrame({"colour": ["red", "blue"] * (n // 2), "size": X[:, 0]})


ONE_HOT = {"categories": [["blue", "red"]], "sparse_output": False}

# Every row: what is fitted, with which target, what it releases about one record, and what the basis must say.
COMPOSITIONS = {
    "one step": (make_pipeline(private()), None, 1, "exact"),
    "a step that knows nothing": (make_pipeline(Normalizer(), private()), None, 1, "exact"),
    "passthrough": (make_pipeline("passthrough", FunctionTransformer(), private()), None, 1, "exact"),
    "squares": (make_pipeline(BoundsScaler(), PolynomialFeatures(), private()), None, 1, "exact"),
    "squares that overflow": (make_pipeline(PolynomialFeatures(), private()), None, INF, "may overflow"),
    "a scaler before": (make_pipeline(StandardScaler(), private()), None, INF, "standardscaler"),
    "another scaler": (make_pipeline(MinMaxScaler((-1, 1)), private()), None, INF, "minmaxscaler"),
    "components": (make_pipeline(PCA(2), private()), None, INF, "pca"),
    "bins": (make_pipeline(KBinsDiscretizer(2, encode="ordinal"), private()), None, INF, "kbinsdiscretizer"),
    "medians": (make_pipeline(SimpleImputer(), private()), None, INF, "simpleimputer"),
    "quantiles": (make_pipeline(QuantileTransformer(n_quantiles=5), private()), None, INF, "quantiletransformer"),
    "a mean is subtracted": (
        make_pipeline(FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), private()),
        None,
        INF,
        "functiontransformer",
    ),
    "features are chosen by raw labels": (make_pipeline(SelectKBest(k=2), private()), Y, INF, "selectkbest"),
    "means of labels": (make_pipeline(TargetEncoder(), private()), Y, INF, "targetencoder"),
    "labels in a projection": (make_pipeline(LinearDiscriminantAnalysis(), private()), THREE, INF, "lineardiscri"),
    "a scaler behind": (make_pipeline(private(), StandardScaler(), LogisticRegression()), Y, 1, "labels are not rand"),
    "chosen by raw labels behind": (make_pipeline(private(), SelectKBest(k=2)), Y, 1, "labels are not randomised"),
    "raw labels beside private ones": (
        make_pipeline(private(), SelectKBest(k=2), label_private()),
        Y,
        INF,
        "'selectkbest' (SelectKBest) had the labels before they were randomised",
    ),
    "labels only": (make_pipeline(StandardScaler(), label_private()), Y, 0.5, "features are not randomised"),
    "features and labels": (make_pipeline(private(), label_private()), Y, 1.5, "exact"),
    "within the label classifier": (label_private(inner=released_classifier()), Y, 1.5, "exact"),
    "a scaler within": (
        label_private(inner=make_pipeline(StandardScaler(), private(), LogisticRegression())),
        Y,
        INF,
        "estimator__standardscaler",
    ),
    "frozen": (make_pipeline(FrozenEstimator(StandardScaler().fit(X)), private()), None, 1, "frozen"),
    "a frozen mean of the batch": (
        make_pipeline(FrozenEstimator(FunctionTransformer(lambda rows: rows - rows.mean(axis=0))), private()),
        None,
        INF,
        "frozenestimator",
    ),
    "columns": (ColumnTransformer([("a", private(1), [0]), ("b", private(2), [1, 2])]), None, 3, "exact"),
    "a column passes": (
        ColumnTransformer([("a", private(1), [0]), ("b", "passthrough", [1])]),
        None,
        INF,
        "columns of b pass unprot",
    ),
    "a column passes, and is released behind": (
        make_pipeline(ColumnTransformer([("a", private(1), [0]), ("b", "passthrough", [1])]), private(2)),
        None,
        3,
        "",
    ),
    "a scaled branch": (
        ColumnTransformer([("a", private(), [0]), ("b", make_pipeline(StandardScaler(), private(2)), [1])]),
        None,
        INF,
        "b__standardscaler",
    ),
    "columns scaled before": (
        make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 1]), ("k", "passthrough", [2])]), private()),
        None,
        INF,
        "columntransformer__s",
    ),
    "columns chosen by their values": (
        ColumnTransformer([("a", private(), lambda rows: [int(rows.var(axis=0).argmax())])]),
        None,
        INF,
        "'a'",
    ),
    "a union": (FeatureUnion([("a", private(1)), ("b", make_pipeline(Binarizer(), private(2)))]), None, 3, "exact"),
    "a union with a bare branch": (FeatureUnion([("a", private()), ("b", PCA(1))]), None, INF, "'b' (PCA)"),
    "bagging of three": (BaggingClassifier(released_classifier(), 3, bootstrap=False), Y, 3, "labels are not rand"),
    "votes": (VotingRegressor([("a", released_regression(1)), ("b", released_regression(2))]), Y, 3, "labels are not"),
    "a vote on raw rows": (VotingRegressor([("a", released_regression()), ("b", Ridge())]), Y, INF, "'b' (Ridge)"),
    "votes on private labels": (VotingClassifier([("a", label_private())]), Y, INF, "learnt the classes"),
    "a stack": (StackingRegressor([("a", released_regression())], cv=3), Y, 4, "labels are not randomised"),
    "a stack of five": (StackingClassifier([("a", released_classifier())]), Y, 6, "labels are not randomised"),
    "a stack that passes rows": (
        StackingRegressor([("a", released_regression())], cv=3, passthrough=True),
        Y,
        INF,
        "final_estimator",
    ),
    "a stack without noise at transform": (
        StackingRegressor([("a", released_regression(transform_noise=False))], cv=3),
        Y,
        INF,
        "without noise",
    ),
    "calibration": (CalibratedClassifierCV(released_classifier(), cv=3), Y, 3, "labels are not randomised"),
    "calibration of one": (CalibratedClassifierCV(released_classifier(), cv=3, ensemble=False), Y, 4, "labels are not"),
    "several targets": (MultiOutputRegressor(released_regression()), np.c_[Y, Y, Y], 3, "labels are not randomised"),
    "several private labels": (MultiOutputClassifier(label_private()), np.c_[Y, Y], 1, "features are not randomised"),
    "a chain": (ClassifierChain(released_classifier()), np.c_[Y, Y], 2, "labels are not randomised"),
    "a chain of private labels": (ClassifierChain(label_private()), np.c_[Y, Y], INF, "labels"),
    "one versus the rest": (OneVsRestClassifier(released_classifier()), THREE, 3, "labels are not randomised"),
    "one versus one": (OneVsOneClassifier(released_classifier()), THREE, 2, "labels are not randomised"),
    "private labels one versus the rest": (OneVsRestClassifier(label_private()), THREE, INF, "learnt the classes"),
    "a target transformed": (
        TransformedTargetRegressor(released_regression(), func=np.log1p, inverse_func=np.expm1),
        Y,
        1,
        "labels are not randomised",
    ),
    "a boosting": (AdaBoostRegressor(released_regression(), n_estimators=2), Y, INF, "not known how often"),
    "a selector": (SelectFromModel(label_private()), Y, INF, "not known how often"),
    "a search": (
        GridSearchCV(released_classifier(), {"numericprivatizer__epsilon": [1.0, 2.0]}, cv=2),
        Y,
        INF,
        "labels",
    ),
    "a random search": (
        RandomizedSearchCV(released_classifier(), {"logisticregression__C": [1, 2]}, n_iter=2, cv=2),
        Y,
        INF,
        "labels",
    ),
    "a search on releases alone": (
        GridSearchCV(make_pipeline(private(), KMeans(2, n_init=1)), {"kmeans__n_clusters": [2, 3]}, cv=3),
        None,
        7,
        "",
    ),
    "a search on raw rows": (
        GridSearchCV(
            make_pipeline(private(transform_noise=False), KMeans(2, n_init=1)), {"kmeans__n_clusters": [2]}, cv=3
        ),
        None,
        INF,
        "without noise",
    ),
    "a search behind the release": (
        make_pipeline(private(), GridSearchCV(LogisticRegression(), {"C": [1, 2]}, cv=2)),
        Y,
        1,
        "labels are not rand",
    ),
    "a cache": (make_pipeline(private(), StandardScaler(), memory="CACHE"), None, INF, "memory"),
    "distances": (make_pipeline(MultivariateLaplaceTransformer(3.0)), None, 3, "real numbers"),
    "distances of columns": (ColumnTransformer([("a", MultivariateLaplaceTransformer(3.0), [0, 2])]), None, 3, ""),
    "distances stretched": (make_pipeline(Normalizer(), MultivariateLaplaceTransformer(3.0)), None, INF, "stretch"),
    "distances within a radius": (
        make_pipeline(Normalizer(), MultivariateLaplaceTransformer(3.0, radius=1.0)),
        None,
        6,
        "stretch",
    ),
    "a doubled column": (ColumnTransformer([("a", MultivariateLaplaceTransformer(3.0), [0, 0])]), None, INF, "stretch"),
    "weights": (
        make_pipeline(
            FeatureUnion([("a", "passthrough")], transformer_weights={"a": 9.0}), MultivariateLaplaceTransformer(3.0)
        ),
        None,
        27,
        "stretch",
    ),
    "rows beside themselves": (
        make_pipeline(FeatureUnion([("a", "passthrough"), ("b", "passthrough")]), MultivariateLaplaceTransformer(3.0)),
        None,
        3 * math.sqrt(2),
        "stretch",
    ),
    "a sampler of labels": (
        make_imbalanced_pipeline(LabelSampler(LabelRR(0.5, classes=[0, 1])), RandomOverSampler(), LogisticRegression()),
        Y,
        0.5,
        "features are not randomised",
    ),
    "a sampler before that of labels": (
        make_imbalanced_pipeline(RandomOverSampler(), LabelSampler(LabelRR(0.5, classes=[0, 1])), LogisticRegression()),
        Y,
        INF,
        "randomoversampler",
    ),
}


def fitted(estimator, y, tmp_path, rows=X):
    if getattr(estimator, "memory", None):
        estimator.set_params(memory=str(tmp_path))
    return estimator.fit(rows, y) if y is not None else estimator.fit(rows)


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_the_guarantee_of_a_whole(name, tmp_path):
    estimator, y, epsilon, said = COMPOSITIONS[name]
    total = privacy_guarantee(fitted(estimator, y, tmp_path))
    assert total.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert said in total.basis
    assert said == "exact" or epsilon < INF or "infinite" in total.basis


FACTORS = st.floats(1e-6, 1e6) | st.integers(1, 2**60) | st.floats(2**-20, 2**20, width=32).map(np.float32)


@given(
    epsilon=st.floats(1e-3, 1e3),
    declared=FACTORS | st.fractions("1/1000", 1000),
    weights=st.lists(FACTORS, min_size=1, max_size=4),
)
def test_stretches_are_rounded_up_and_by_no_more_than_a_hair(epsilon, declared, weights):
    union = FeatureUnion(
        [(f"copy{i}", "passthrough") for i in range(len(weights))],
        transformer_weights={f"copy{i}": weight for i, weight in enumerate(weights)},
    )
    release = MultivariateLaplaceTransformer(epsilon, radius=1.0)
    pipeline = make_pipeline(StandardScaler(), union, release).fit(X[:3, :1])
    total = privacy_guarantee(pipeline, public={"standardscaler": declared})
    exact = exact_fraction(declared) ** 2 * sum(exact_fraction(weight) ** 2 for weight in weights)
    alone = pipeline[-1].privacy_guarantee_
    assert 1 <= (Fraction(total.epsilon) / Fraction(alone.epsilon)) ** 2 / exact < 1 + Fraction(2) ** -49
    assert Fraction(total.epsilon) * Fraction(total.diameter) >= Fraction(alone.epsilon) * Fraction(alone.diameter)


def exact_fraction(number):
    return Fraction(number.item() if isinstance(number, np.generic) else number)


def test_what_a_weight_of_zero_removes_is_not_released():
    nothing = FeatureUnion([("a", "passthrough")], transformer_weights={"a": 0})
    total = privacy_guarantee(make_pipeline(nothing, MultivariateLaplaceTransformer(3.0, radius=1.0)).fit(X))
    assert (total.epsilon, total.plain_epsilon) == (0, 0)


DECLARED = {
    "one hot": (OneHotEncoder(handle_unknown="ignore", **ONE_HOT), 1),
    "one hot, error": (OneHotEncoder(handle_unknown="error", **ONE_HOT), INF),
    "one hot, warn": (OneHotEncoder(handle_unknown="warn", **ONE_HOT), INF),
    "one hot, learnt": (OneHotEncoder(handle_unknown="ignore", sparse_output=False), INF),
    "one hot, counted": (OneHotEncoder(handle_unknown="ignore", min_frequency=2, **ONE_HOT), INF),
    "ordinal": (OrdinalEncoder(categories=[["blue", "red"]], handle_unknown="use_encoded_value", unknown_value=-1), 1),
    "ordinal, error": (OrdinalEncoder(categories=[["blue", "red"]]), INF),
}


@pytest.mark.parametrize("name", DECLARED)
def test_encoders_of_declared_categories_are_public(name):
    encoder, epsilon = DECLARED[name]
    columns = ColumnTransformer([("code", encoder, ["colour"]), ("size", "passthrough", ["size"])])
    total = privacy_guarantee(make_pipeline(columns, private(bounds=(-1, 2))).fit(codes()))
    assert total.epsilon == epsilon
    assert epsilon == 1 or "columntransformer__code" in total.basis


@pytest.mark.parametrize(
    ("imputer", "epsilon"),
    [
        (SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True), 1),
        # An empty column is dropped, and one person's value would keep it.
        (SimpleImputer(strategy="constant", fill_value=0.0), INF),
        (SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True, add_indicator=True), INF),
    ],
)
def test_an_imputer_of_a_constant_is_public(imputer, epsilon):
    assert privacy_guarantee(make_pipeline(imputer, private()).fit(X)).epsilon == epsilon


def test_an_unknown_step_is_not_public_and_neither_is_a_subclass_of_one():
    class MyNormalizer(Normalizer):
        def fit(self, X, y=None):
            self.largest_ = X.max()
            return self

    class Mine(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.mean_ = X.mean()
            return self

        def transform(self, X):
            return X - self.mean_

    for step in (MyNormalizer(), Mine()):
        assert math.isinf(privacy_guarantee(make_pipeline(step, private()).fit(X)).epsilon)


def test_a_private_step_hidden_in_an_unknown_estimator_is_not_counted_once():
    class Three(BaseEstimator):
        def fit(self, X, y=None):
            self.parts_ = {"releases": [private().fit(X) for _ in range(3)]}
            return self

    total = privacy_guarantee(Three().fit(X))
    assert math.isinf(total.epsilon)
    assert "not known how often" in total.basis


def test_the_caller_names_what_is_public():
    pipeline = make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 1])]), PCA(2), private()).fit(X)
    total = privacy_guarantee(pipeline, public=("columntransformer__s", "pca"))
    assert total.epsilon == 1
    assert "'columntransformer__s' and 'pca' are public, the caller says" in total.basis
    assert math.isinf(privacy_guarantee(pipeline, public=["pca"]).epsilon)
    with pytest.raises(ValueError, match=r"public must name steps .*'pac'"):
        privacy_guarantee(pipeline, public=["pac"])
    with pytest.raises(ValueError, match="public must name steps"):
        privacy_guarantee(pipeline, public=["numericprivatizer"])
    with pytest.raises(TypeError, match="public"):
        privacy_guarantee(pipeline, public="pca")


def test_the_caller_says_how_far_a_public_step_stretches_distances():
    pipeline = make_pipeline(StandardScaler(), MultivariateLaplaceTransformer(3.0, radius=2.0)).fit(X)
    plain = privacy_guarantee(pipeline, public=["standardscaler"])
    assert (plain.epsilon, plain.unit) == (12.0, "record")
    total = privacy_guarantee(pipeline, public={"standardscaler": 2.0})
    assert (total.epsilon, total.unit) == (6.0, "distance")
    assert total.plain_epsilon == pytest.approx(12.0)
    assert total.plain_epsilon >= 12.0
    for bad in (-1.0, math.nan, True, "2", 10**400):
        with pytest.raises(ValueError, match="public"):
            privacy_guarantee(pipeline, public={"standardscaler": bad})


def test_without_a_diameter_distances_and_records_have_no_sum():
    columns = ColumnTransformer([("a", private(), [0]), ("b", MultivariateLaplaceTransformer(), [1, 2])]).fit(X)
    total = privacy_guarantee(columns)
    assert math.isinf(total.epsilon)
    assert "diameter" in total.basis


def test_bootstrap_counts_how_often_a_record_was_drawn():
    model = BaggingRegressor(released_regression(), 4, bootstrap=True, random_state=0).fit(X, Y)
    draws = sum(np.bincount(drawn, minlength=30) for drawn in model.estimators_samples_)
    assert privacy_guarantee(model).epsilon == draws.max() > 4
    scored = BaggingRegressor(released_regression(), 20, oob_score=True, random_state=0).fit(X, Y)
    assert math.isinf(privacy_guarantee(scored).epsilon)


def test_a_warm_start_forgets_what_earlier_members_were_given():
    model = BaggingRegressor(released_regression(), 4, bootstrap=False, warm_start=True).fit(X, Y)
    assert privacy_guarantee(model).epsilon == 4
    model.set_params(n_estimators=5, estimator__numericprivatizer__epsilon=100.0).fit(X, Y)
    assert math.isinf(privacy_guarantee(model).epsilon)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
def test_every_member_of_a_chain_has_its_own_number_of_columns():
    """The published calibration costs more, the more columns there are."""
    chain = RegressorChain(make_pipeline(BitRandTransformer(1.0), LinearRegression())).fit(X, np.c_[Y, Y, Y])
    costs = [member[0].privacy_guarantee_.epsilon for member in chain.estimators_]
    assert costs[0] < costs[1] < costs[2]
    assert privacy_guarantee(chain).epsilon >= sum(map(Fraction, costs))


def test_members_without_noise_are_asked_again_between_steps():
    votes = VotingRegressor([("a", released_regression(transform_noise=False))])
    assert privacy_guarantee(clone(votes).fit(X, Y)).epsilon == 1
    for whole in (make_pipeline(votes, LinearRegression()), FeatureUnion([("votes", votes)])):
        total = privacy_guarantee(whole.fit(X, Y))
        assert math.isinf(total.epsilon)
        assert "VotingRegressor learns from that" in total.basis


def test_rows_that_a_pipeline_hands_on_are_transformed_once_more():
    class Stopping(LinearRegression):
        def fit(self, X, y, X_val=None):
            return super().fit(X, y)

    for noise, epsilon in ((True, 2), (False, INF)):
        with config_context(enable_metadata_routing=True):
            steps = private(transform_noise=noise), Stopping().set_fit_request(X_val=True)
            pipeline = make_pipeline(*steps, transform_input=["X_val"]).fit(X, Y, X_val=X)
        assert privacy_guarantee(pipeline).epsilon == epsilon


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_members_that_are_routed_weights_get_every_record():
    """Weight 0 does not keep a record from the release, and the setting may have been switched off since."""
    with config_context(enable_metadata_routing=True):
        member = make_pipeline(private(), LinearRegression().set_fit_request(sample_weight=True))
        model = BaggingRegressor(member, 3, max_samples=0.1, bootstrap=False, random_state=0)
        model.fit(X, Y, sample_weight=np.ones(len(X)))
    assert privacy_guarantee(model).epsilon >= 3


def test_a_column_listed_twice_is_found_however_it_is_counted():
    for columns, epsilon in (([0, -2], INF), (np.array([1, -1]), INF), ([0, -1], 3)):
        twice = ColumnTransformer([("columns", "passthrough", columns)])
        pipeline = make_pipeline(twice, MultivariateLaplaceTransformer(3.0)).fit(X[:, :2])
        assert privacy_guarantee(pipeline).epsilon == epsilon


def test_a_branch_without_columns_is_no_unfitted_one():
    columns = ColumnTransformer([("a", private(), [True] * 4), ("b", private(), [False] * 4)]).fit(X)
    assert privacy_guarantee(columns).epsilon == 1


def test_a_sampler_may_not_be_named_public():
    labels = np.array([1] + [0] * 29)
    pipeline = make_imbalanced_pipeline(RandomOverSampler(), private(), LogisticRegression()).fit(X, labels)
    total = privacy_guarantee(pipeline, public=["randomoversampler"])
    assert math.isinf(total.epsilon)
    assert "may give a record several times" in total.basis


def test_a_search_on_splits_of_its_own_may_train_on_one_record_many_times():
    model = make_pipeline(private(), KMeans(2, n_init=1))
    splits = [(np.r_[np.zeros(30, dtype=int), np.arange(30)], np.arange(9))]
    search = GridSearchCV(model, {"kmeans__n_clusters": [2]}, cv=splits).fit(X)
    assert math.isinf(privacy_guarantee(search).epsilon)


@pytest.mark.parametrize(("largest", "degree", "epsilon"), [(1, 900, 1), (1e3, 12, 1), (1e3, 13, INF), (1e60, 6, INF)])
def test_powers_of_bounded_numbers_may_overflow(largest, degree, epsilon):
    pipeline = make_pipeline(
        BoundsScaler(feature_range=(-largest, largest)), PolynomialFeatures((degree, degree)), private()
    )
    total = privacy_guarantee(pipeline.fit(np.zeros((2, 1))))
    assert total.epsilon == epsilon
    assert ("may overflow" in total.basis) == math.isinf(epsilon)


def test_weights_make_numbers_large():
    for weight, epsilon in ((1e200, INF), (2, 1), (0, 1)):
        scaled = FeatureUnion([("scaled", BoundsScaler())], transformer_weights={"scaled": weight})
        pipeline = make_pipeline(scaled, PolynomialFeatures(), private()).fit(np.zeros((2, 1)))
        assert privacy_guarantee(pipeline).epsilon == epsilon


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(sparse_output=False),
        OrdinalEncoder(),
        make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler()),
    ],
)
def test_a_frozen_encoder_that_prints_the_unknown_is_not_public(encoder):
    rows = np.array([["a"], ["b"]], dtype=object)
    pipeline = make_pipeline(FrozenEstimator(encoder.fit(rows)), private()).fit(rows)
    with pytest.raises(ValueError, match="HIV positive"):
        pipeline.transform(np.array([["HIV positive"]], dtype=object))
    assert math.isinf(privacy_guarantee(pipeline).epsilon)


def test_a_search_keeps_the_figure_of_what_it_chose_apart():
    search = GridSearchCV(released_classifier(), {"numericprivatizer__epsilon": [2.0]}, cv=2).fit(X, Y)
    total = privacy_guarantee(search)
    assert math.isinf(total.epsilon)
    assert "labels are not randomised" in total.basis
    assert "best_estimator_ has a figure of its own; apart from that epsilon 2 per record" in total.basis
    assert privacy_guarantee(search.best_estimator_).epsilon == 2.0
    unfitted = GridSearchCV(released_classifier(), {"numericprivatizer__epsilon": [2.0]}, cv=2, refit=False).fit(X, Y)
    assert math.isinf(privacy_guarantee(unfitted).epsilon)


def test_a_search_over_the_private_step_is_not_added_up():
    model = make_pipeline(private(), KMeans(2, n_init=1))
    search = GridSearchCV(model, {"numericprivatizer__epsilon": [1.0, 9.0]}, cv=2).fit(X)
    assert math.isinf(privacy_guarantee(search).epsilon)
    scored = GridSearchCV(model, {"kmeans__n_clusters": [2]}, cv=2, return_train_score=True).fit(X)
    assert privacy_guarantee(scored).epsilon == 5


def test_a_whole_is_seeded_where_any_part_is():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        for model in (
            make_pipeline(private(), private(seed=1), LinearRegression()),
            BaggingRegressor(released_regression(seed=1), 2),
            VotingRegressor([("a", released_regression()), ("b", released_regression(seed=1))]),
            StackingRegressor([("a", released_regression(seed=1))], cv=2),
            GridSearchCV(released_classifier(seed=1), {"logisticregression__C": [1]}, cv=2),
            MultiOutputRegressor(released_regression(seed=1)),
        ):
            target = np.c_[Y, Y] if isinstance(model, MultiOutputRegressor) else Y
            assert privacy_guarantee(model.fit(X, target)).seeded
    assert not privacy_guarantee(released_regression().fit(X, Y)).seeded


def test_a_private_step_that_is_not_fitted_is_no_bare_one():
    pipeline = released_regression().fit(X, Y)
    pipeline.set_params(numericprivatizer=private(5.0))
    with pytest.raises(ValueError, match="not fitted"):
        privacy_guarantee(pipeline)


def test_the_cache_of_a_pipeline_holds_raw_rows_and_labels(tmp_path):
    """Why a Pipeline with memory has no guarantee: joblib keeps its arguments beside what it computed."""
    rows, labels = np.full((3, 1), 0.123456789), np.array([987654321, 5, 6])
    make_pipeline(private(), StandardScaler(), Ridge(), memory=str(tmp_path)).fit(rows, labels)
    kept = "".join(path.read_text() for path in tmp_path.rglob("metadata.json"))
    assert "0.12345679" in kept
    assert "987654321" in kept
    plain = make_pipeline(private(), StandardScaler(), Ridge()).fit(rows, labels)
    assert privacy_guarantee(plain).epsilon == 1


def test_learnt_domains_have_no_guarantee():
    """One person's label decides whether a class is there."""
    others = [0] * 9
    assert LabelRR(1.0).fit([*others, 1]).classes_.tolist() != LabelRR(1.0).fit([*others, 2]).classes_.tolist()
    with_labels = LabelPrivateClassifier(LogisticRegression(), label_mechanism=LabelRR(50.0)).fit(X, Y)
    frame = pd.DataFrame({"a": ["HIV positive", "none"] * 15})
    for estimator in (
        LabelRR(1.0).fit(Y),
        LabelSampler(LabelRR(1.0)).fit(X, Y),
        with_labels,
        make_pipeline(private(), with_labels).fit(X, Y),
        CategoricalPrivatizer(1.0).fit(frame),
        make_pipeline(CategoricalPrivatizer(1.0)).fit(frame),
    ):
        total = privacy_guarantee(estimator)
        assert math.isinf(total.epsilon)
        assert "learnt from" in total.basis
        assert "HIV" not in str(total)


@pytest.mark.parametrize("values", [["HIV positive", "none"], [17171717, 2]])
def test_a_learnt_domain_is_not_printed(values):
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        LabelRR(1.0).fit(values)
        CategoricalPrivatizer(1.0).fit(np.array(values)[:, None])
    assert len(issued) == 2
    assert not any(str(values[0]) in str(one.message) for one in issued)


def test_a_private_target_is_released_twice_where_the_inverse_is_checked():
    for check_inverse, epsilon in ((True, 2), (False, 1)):
        model = TransformedTargetRegressor(
            released_regression(3), transformer=LabelRR(1.0, classes=[0, 1]), check_inverse=check_inverse
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            total = privacy_guarantee(model.fit(X, Y))
        assert total.epsilon == pytest.approx(3 + epsilon)
        assert "labels are not randomised" not in total.basis


def test_features_drawn_twice_stretch_distances():
    model = BaggingRegressor(
        make_pipeline(MultivariateLaplaceTransformer(3.0), LinearRegression()), 2, bootstrap_features=True
    )
    assert math.isinf(privacy_guarantee(model.fit(X, Y)).epsilon)


def test_a_sparse_matrix_tells_how_many_values_are_known():
    one_hot = OneHotEncoder(categories=[["blue", "red"]], handle_unknown="ignore")
    for threshold, epsilon in ((0.3, INF), (0, 1)):
        columns = ColumnTransformer(
            [("code", one_hot, ["colour"]), ("b", "passthrough", ["size"])], sparse_threshold=threshold
        )
        assert privacy_guarantee(make_pipeline(columns, private(bounds=(-1, 2))).fit(codes())).epsilon == epsilon


def test_a_frozen_release_without_noise_protects_nothing():
    frozen = FrozenEstimator(private(transform_noise=False).fit(X))
    assert math.isinf(privacy_guarantee(make_pipeline(frozen, LinearRegression()).fit(X, Y)).epsilon)
    noisy = FrozenEstimator(private().fit(X))
    assert privacy_guarantee(make_pipeline(noisy, LinearRegression()).fit(X, Y)).epsilon == pytest.approx(1)


def test_every_rounding_is_to_the_private_side():
    # To the nearest, about half of the products would be below.
    for times in (3, 5, 6, 7):
        for epsilon in (0.1, 0.3, 0.7):
            model = BaggingRegressor(released_regression(epsilon), times, bootstrap=False).fit(X, Y)
            one = model.estimators_[0][0].privacy_guarantee_.epsilon
            assert Fraction(privacy_guarantee(model).epsilon) >= times * Fraction(one)


def test_a_seed_is_mentioned_once_where_something_has_leaked():
    guarantee = privacy_guarantee(make_pipeline(StandardScaler(), NumericPrivatizer(seed=0)).fit(np.zeros((5, 2))))
    assert "apart from that" in guarantee.basis
    assert "; ;" not in str(guarantee)
    assert str(guarantee).count("void against whoever knows the seed") == 1
