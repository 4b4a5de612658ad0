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
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)

from skldp import (
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelPrivateClassifier,
    LabelRR,
    LabelSampler,
    MultivariateLaplacePrivatizer,
    NoiseAwareDiscriminant,
    NumericPrivatizer,
    PrivacyGuarantee,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
    privacy_guarantee,
)
from skldp.exceptions import PrivacyGuaranteeWarning

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


def released_classifier(epsilon=1.0, **parameters):
    return make_pipeline(private(epsilon, **parameters), LogisticRegression())


def label_private(epsilon=0.5, classes=(0, 1), inner=None):
    return LabelPrivateClassifier(inner or LogisticRegression(), label_mechanism=LabelRR(epsilon, classes=classes))


# Every row: what is fitted, with which target, what it releases about one record, and what the basis must say.
COMPOSITIONS = {
    "one step": (make_pipeline(private()), None, 1, "exact"),
    "a step that knows nothing": (make_pipeline(Normalizer(), private()), None, 1, "exact"),
    "passthrough": (make_pipeline("passthrough", FunctionTransformer(), private()), None, 1, "exact"),
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
    "a scaler behind": (make_pipeline(private(), StandardScaler(), LogisticRegression()), Y, 1, "target not protected"),
    "chosen by raw labels behind": (make_pipeline(private(), SelectKBest(k=2)), Y, 1, "target not protected"),
    "raw labels beside private ones": (
        make_pipeline(private(), SelectKBest(k=2), label_private()),
        Y,
        INF,
        "'selectkbest' (SelectKBest) had the labels before they were randomized",
    ),
    "labels only": (make_pipeline(StandardScaler(), label_private()), Y, 0.5, "features not protected"),
    "features and labels": (make_pipeline(private(), label_private()), Y, 1.5, "exact"),
    "within the label classifier": (label_private(inner=released_classifier()), Y, 1.5, "exact"),
    "a scaler within": (
        label_private(inner=make_pipeline(StandardScaler(), private(), LogisticRegression())),
        Y,
        INF,
        "estimator__standardscaler",
    ),
    "frozen": (
        make_pipeline(FrozenEstimator(StandardScaler().fit(X)), private()),
        None,
        1,
        "public by the caller's word: 'frozenestimator' (FrozenEstimator)",
    ),
    "frozen behind": (make_pipeline(private(), FrozenEstimator(StandardScaler().fit(X))), None, 1, "exact"),
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
    "a union": (FeatureUnion([("a", private(1)), ("b", make_pipeline(Normalizer(), private(2)))]), None, 3, "exact"),
    "a union with a bare branch": (FeatureUnion([("a", private()), ("b", PCA(1))]), None, INF, "'b' (PCA)"),
    "a search behind the release": (
        make_pipeline(private(), GridSearchCV(LogisticRegression(), {"C": [1, 2]}, cv=2)),
        Y,
        1,
        "target not protected",
    ),
    "labels within a search behind the release": (
        make_pipeline(private(), GridSearchCV(label_private(), {"estimator__C": [1, 2]}, cv=2)),
        Y,
        INF,
        "'gridsearchcv' (GridSearchCV) may give a record several times",
    ),
    "private labels one versus the rest": (OneVsRestClassifier(label_private()), THREE, INF, "around it"),
    "private labels around one versus the rest": (
        label_private(classes=(0, 1, 2), inner=OneVsRestClassifier(LogisticRegression())),
        THREE,
        0.5,
        "features not protected",
    ),
    "a cache": (make_pipeline(private(), StandardScaler(), memory="CACHE"), None, INF, "memory"),
    "distances": (make_pipeline(MultivariateLaplacePrivatizer(3.0)), None, 3, "rounded to a lattice"),
    "distances of columns": (ColumnTransformer([("a", MultivariateLaplacePrivatizer(3.0), [0, 2])]), None, 3, ""),
    "distances stretched": (make_pipeline(Normalizer(), MultivariateLaplacePrivatizer(3.0)), None, INF, "stretch"),
    "distances within a radius": (
        make_pipeline(Normalizer(), MultivariateLaplacePrivatizer(3.0, radius=1.0)),
        None,
        6,
        "stretch",
    ),
    "a doubled column": (ColumnTransformer([("a", MultivariateLaplacePrivatizer(3.0), [0, 0])]), None, INF, "stretch"),
    "weights": (
        make_pipeline(
            FeatureUnion([("a", "passthrough")], transformer_weights={"a": 9.0}), MultivariateLaplacePrivatizer(3.0)
        ),
        None,
        27,
        "stretch",
    ),
    "rows beside themselves": (
        make_pipeline(FeatureUnion([("a", "passthrough"), ("b", "passthrough")]), MultivariateLaplacePrivatizer(3.0)),
        None,
        3 * math.sqrt(2),
        "stretch",
    ),
    "a sampler of labels": (
        make_imbalanced_pipeline(LabelSampler(LabelRR(0.5, classes=[0, 1])), RandomOverSampler(), LogisticRegression()),
        Y,
        INF,
        "may sample before a release: release first, sample later",
    ),
    "released labels, resampled": (
        label_private(inner=make_imbalanced_pipeline(RandomOverSampler(), LogisticRegression())),
        Y,
        0.5,
        "features not protected",
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
    assert said in str(total)
    assert said == "exact" or epsilon < INF or "infinite" in total.basis


FACTORS = st.floats(1e-6, 1e6) | st.integers(1, 2**60) | st.floats(2**-20, 2**20, width=32).map(np.float32)


@given(
    epsilon=st.floats(1e-3, 1e3),
    declared=FACTORS | st.fractions("1/1000", 1000),
    weights=st.lists(FACTORS, min_size=1, max_size=4),
)
@pytest.mark.filterwarnings("ignore:MultivariateLaplacePrivatizer states epsilon")
def test_stretches_are_rounded_up_and_by_no_more_than_a_hair(epsilon, declared, weights):
    union = FeatureUnion(
        [(f"copy{i}", "passthrough") for i in range(len(weights))],
        transformer_weights={f"copy{i}": weight for i, weight in enumerate(weights)},
    )
    release = MultivariateLaplacePrivatizer(epsilon, radius=1.0)
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
    total = privacy_guarantee(make_pipeline(nothing, MultivariateLaplacePrivatizer(3.0, radius=1.0)).fit(X))
    assert (total.epsilon, total.plain_epsilon) == (0, 0)


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


def test_the_caller_names_what_is_public():
    pipeline = make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 1])]), PCA(2), private()).fit(X)
    total = privacy_guarantee(pipeline, public=("columntransformer__s", "pca"))
    assert total.epsilon == 1
    assert "public by the caller's word: 'columntransformer__s' (StandardScaler), 'pca' (PCA)" in total.basis
    assert math.isinf(privacy_guarantee(pipeline, public=["pca"]).epsilon)
    with pytest.raises(ValueError, match=r"public must name steps .*'pac'"):
        privacy_guarantee(pipeline, public=["pac"])
    with pytest.raises(ValueError, match="public must name steps"):
        privacy_guarantee(pipeline, public=["numericprivatizer"])
    with pytest.raises(TypeError, match="public"):
        privacy_guarantee(pipeline, public="pca")


def test_the_caller_says_how_far_a_public_step_stretches_distances():
    pipeline = make_pipeline(StandardScaler(), MultivariateLaplacePrivatizer(3.0, radius=2.0)).fit(X)
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
    columns = ColumnTransformer([("a", private(), [0]), ("b", MultivariateLaplacePrivatizer(), [1, 2])]).fit(X)
    total = privacy_guarantee(columns)
    assert math.isinf(total.epsilon)
    assert "diameter" in total.basis


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


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("times", [3, 5, 6, 7])
def test_every_rounding_is_to_the_private_side(times, epsilon):
    # To the nearest, about half of the sums would be below.
    union = make_union(*(private(epsilon) for _ in range(times))).fit(X)
    one = union.transformer_list[0][1].privacy_guarantee_.epsilon
    assert Fraction(privacy_guarantee(union).epsilon) >= times * Fraction(one)


def test_an_estimator_of_another_library_may_state_its_guarantee():
    class Theirs(LinearRegression):
        def fit(self, X, y):
            self.privacy_guarantee_ = PrivacyGuarantee(2.0)
            return super().fit(X, y)

    total = privacy_guarantee(make_pipeline(private(), Theirs()).fit(X, Y))
    assert total.epsilon == 3.0
    assert "'theirs' (Theirs) states its guarantee itself" in total.basis


@pytest.mark.parametrize(
    ("release", "plain"),
    [
        (MultivariateLaplacePrivatizer(5.0, radius=2.0), None),
        (MultivariateLaplacePrivatizer(5.0, radius=2.01), 20.1),
        (RandomProjectionPrivatizer(1.0, radius=100.0, sensitivity="spectral", n_components=2), 200),
        (RandomProjectionPrivatizer(1.0, radius=10.0, sensitivity="spectral", n_components=2), None),
        # Implied by the declared rows: at most twice the distance from their middle.
        (
            RandomProjectionPrivatizer(
                1.0, vocabulary=[[0.0] * 4, [100.0, 0.0, 0.0, 0.0]], sensitivity="vocabulary", n_components=2
            ),
            100,
        ),
        # Words are chosen after the noise; inputs are any vectors.
        (MultivariateLaplacePrivatizer(1.0, vocabulary=[[0.0] * 4, [100.0, 0.0, 0.0, 0.0]]), None),
        (MultivariateLaplacePrivatizer(40.0), None),
        (PrivUnitTransformer(40.0), None),
    ],
    ids=str,
)
def test_a_distance_that_hides_nothing_in_a_record_is_warned_of(release, plain):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(release).fit(X)
    texts = [str(one.message) for one in caught if issubclass(one.category, PrivacyGuaranteeWarning)]
    assert len(texts) == (plain is not None)
    assert all(f"per unit of distance, which is {plain}" in text and "per record" in text for text in texts)


def test_a_column_that_passes_is_no_release_that_a_model_could_know_the_noise_of():
    private = NumericPrivatizer(40.0, bounds=(-1, 1), n_sampled_features="all")
    columns = ColumnTransformer([("private", private, [0, 1]), ("raw", "passthrough", [2, 3])])
    for step, epsilon in ((columns, INF), (private, 40.0)):
        found = privacy_guarantee(make_pipeline(step, NoiseAwareDiscriminant(private)).fit(X, Y))
        assert found.epsilon == pytest.approx(epsilon)


def test_one_object_in_two_places_is_known_by_its_last_fit_alone():
    shared = BitRandTransformer(bounds=(-1, 1), calibration="published")
    narrow = make_pipeline(ColumnTransformer([("first", "passthrough", [0])]), shared)
    with pytest.warns(PrivacyGuaranteeWarning):
        whole = FeatureUnion([("wide", shared), ("narrow", narrow)]).fit(X)
    assert math.isinf(privacy_guarantee(whole).epsilon)
    assert "stands in two places" in privacy_guarantee(whole).basis
