import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from toy_estimators import ToyLabels, ToySigns

from skldp import PrivateLinearRegression, TablePrivatizer
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.study import ReleasedRowsRegressor, privacy_utility_curve, recommend
from skldp.study._curve import without_privacy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
y = (X[:, 0] + 0.1 * RNG.normal(size=200) > -0.5).astype(int)
FEATURES = make_pipeline(ToySigns(), LogisticRegression())


BOTH = make_pipeline(ToySigns(), ToyLabels(LogisticRegression()))


def curve_of(estimator=FEATURES, **study):
    return privacy_utility_curve(estimator, X, y, **({"param_name": "toysigns__epsilon", "epsilons": [1, 30]} | study))


def test_more_epsilon_scores_better_between_the_two_baselines(fixed_noise):
    curve = curve_of(epsilons=[0.01, 30], cv=3, n_repeats=3)
    assert curve.majority_mean == pytest.approx(max(y.mean(), 1 - y.mean()), abs=0.01)
    assert curve[0].score_mean < curve[1].score_mean <= curve.clean_mean
    assert curve[1].score_mean > curve.majority_mean + 0.05
    assert [point.n_fits for point in curve] == [9, 9]


def test_seeded_study_repeats_itself_with_other_noise_in_every_fit():
    # The same split twice: with one noise for both, the scores would agree.
    split = next(ShuffleSplit(1, random_state=0).split(X))
    with pytest.warns(SeededNoiseWarning, match="repeatable") as caught:
        first, second = (curve_of(cv=[split] * 8, epsilons=[6], seed=5) for _ in range(2))
    assert len(caught) == 2
    assert first[0].score_mean == second[0].score_mean
    assert first[0].score_std > 0
    with pytest.warns(SeededNoiseWarning):
        other = curve_of(cv=[split] * 8, epsilons=[6], seed=6)
    assert other[0].score_mean != first[0].score_mean


def test_same_splits_for_all_epsilons_even_from_a_shuffling_generator():
    seen = []

    class Spy(LogisticRegression):
        def fit(self, X, y):
            seen.append(X[:, 0].tobytes())
            return super().fit(X, y)

    privacy_utility_curve(
        make_pipeline(ToySigns(), Spy()), np.sign(X) * 3, y, param_name="toysigns__epsilon",
        epsilons=[700.0, 701.0], cv=ShuffleSplit(2), clean_estimator=None,
    )  # fmt: skip
    # One fit at first to find what is private is not made when no clean baseline is asked for.
    assert len(seen) == 4
    assert seen[:2] == seen[2:]
    assert seen[0] != seen[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"param_name": "toysigns__epsilom"}, "toysigns__epsilon"),
        ({"param_name": []}, "empty"),
        ({"epsilons": []}, "empty"),
        ({"epsilons": [1, 0]}, "finite number > 0"),
        ({"epsilons": [True]}, "finite number > 0"),
        ({"epsilons": [float("nan")]}, "finite number > 0"),
        ({"n_repeats": 0}, "n_repeats"),
        ({"n_repeats": True}, "n_repeats"),
    ],
)
def test_refuses(wrong, message):
    with pytest.raises(ValueError, match=message):
        curve_of(**wrong)


def test_a_failing_fit_is_an_error_and_not_a_nan():
    with pytest.raises(ValueError, match="NaN"):
        privacy_utility_curve(FEATURES, np.where(X > 2, np.nan, X), y, epsilons=[1])


def test_without_privacy_takes_out_every_private_part():
    columns = ColumnTransformer([("signs", ToySigns(), [0, 1]), ("scale", StandardScaler(), [2])])
    union = FeatureUnion([("signs", ToySigns()), ("scale", StandardScaler())])
    private = make_pipeline(ToySigns(), columns, union, ToyLabels(LogisticRegression(C=3))).fit(X, y)
    clean = without_privacy(private)
    assert clean[0] == "passthrough"
    assert clean[1].transformers[0][1] == "passthrough"
    assert clean[2].transformer_list[0][1] == "passthrough"
    assert isinstance(clean[-1], LogisticRegression)
    assert clean[-1].C == 3
    assert not hasattr(clean[-1], "coef_")
    clean.fit(X, y)
    assert not any(hasattr(step, "privacy_guarantee_") for step in clean.named_steps.values() if step != "passthrough")


@pytest.mark.filterwarnings("ignore:Noise may hide outlying values")
@pytest.mark.parametrize(
    ("task", "target", "baseline"),
    [("regression", (-5, 5), ReleasedRowsRegressor), ("classification", [0, 1], Pipeline)],
)
def test_a_private_model_at_the_end_has_a_clean_counterpart(fixed_noise, task, target, baseline):
    """What `recommend` returns ends in such a model."""
    private = recommend({0: (-5, 5), 2: (-5, 5)}, task, 8.0, len(X), target=target).estimator
    outcome = X[:, 0] if task == "regression" else y
    assert isinstance(without_privacy(private.fit(X, outcome))[-1], baseline)
    name = f"{private.steps[-1][0]}__epsilon"
    curve = privacy_utility_curve(private, X, outcome, param_name=name, epsilons=[8.0], cv=2)
    assert curve.clean_mean > curve.majority_mean + 0.05


def test_a_released_table_of_texts_has_a_clean_counterpart(fixed_noise):
    pd = pytest.importorskip("pandas")
    city = pd.Series(np.where(y, "Ulm", "Bonn")).where(X[:, 2] < 1, None)
    people = pd.DataFrame({"age": X[:, 1], "city": city})
    of_city = {"type": "category", "values": ["Bonn", "Ulm"], "missing": "category"}
    table = TablePrivatizer(schema={"age": (-5, 5), "city": of_city})
    model, name = make_pipeline(table, LogisticRegression()), "tableprivatizer__epsilon"
    assert privacy_utility_curve(model, people, y, param_name=name, epsilons=[8.0], cv=2).clean_mean > 0.9


def test_without_privacy_asks_where_nothing_can_take_the_place():
    class Alone(LogisticRegression):
        def fit(self, X, y):
            self.privacy_guarantee_ = None
            return super().fit(X, y)

    with pytest.raises(ValueError, match="pass clean_estimator"):
        without_privacy(Alone().fit(X, y))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(150, dtype=int)}, "at least two classes"),
        ({"cv": 151}, "n_splits=151"),
        ({"scoring": "roc_auc"}, r"estimator and the target; 'roc_auc' raised ValueError"),
        ({"scoring": "no_such_score"}, "scoring"),
        ({"scoring": "neg_log_loss", "last": LinearSVC()}, r"scoring must fit.*'neg_log_loss' raised"),
        ({"scoring": lambda estimator, X, y: float("nan")}, "finite numbers on every fold"),
        ({"param_name": "logisticregression__epsilon"}, "must be a parameter of the estimator"),
    ],
)
def test_refuses_a_study_that_cannot_be_run(change, message):
    options = dict(change)
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(ToySigns(), options.pop("last", LogisticRegression()))
    y = options.pop("y", y)
    with pytest.raises(ValueError, match=message):
        privacy_utility_curve(
            model, X, y, **({"param_name": "toysigns__epsilon", "epsilons": [1.0], "cv": 2} | options)
        )


def test_a_search_that_chooses_no_privacy_is_a_point_of_a_curve():
    release = Pipeline([("release", ToySigns()), ("model", LogisticRegression())])
    search = GridSearchCV(release, {"release": ["passthrough"]}, cv=2)
    with pytest.warns(PrivacyGuaranteeWarning, match="inf where"):
        curve = curve_of(search, param_name="estimator__release__epsilon", cv=2)
    assert [point.exact_epsilon for point in curve] == [np.inf, np.inf]


def test_baselines_are_fitted_before_private_models():
    fitted = []

    class Noted(PrivateLinearRegression):
        def fit(self, X, y):
            fitted.append("private")
            return super().fit(X, y)

    class Clean(LinearRegression):
        def fit(self, X, y):
            fitted.append("clean")
            raise RuntimeError("the baseline fails")

    with pytest.raises(RuntimeError, match="the baseline fails"):
        privacy_utility_curve(Noted(), X, X[:, 0], epsilons=[1.0], cv=2, clean_estimator=Clean())
    assert fitted == ["clean"]


def test_exact_epsilon_is_the_whole_pipelines():
    curve = curve_of(BOTH, param_name=["toysigns__epsilon", "toylabels__epsilon"], epsilons=[0.5, 2])
    assert [point.epsilon for point in curve] == [0.5, 2]
    assert [point.stated_epsilon for point in curve] == [1, 4]
    assert [point.exact_epsilon for point in curve] == [1, 4]
    with pytest.raises(ValueError, match="end with epsilon: toylabels__epsilon, toysigns__epsilon"):
        curve_of(BOTH, param_name=None)
