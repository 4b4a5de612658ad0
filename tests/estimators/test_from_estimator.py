import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skldp.accounting._class_query import ClassQuery
from skldp.estimators._from_estimator import query_from_estimator
from skldp.exceptions import OutOfDomainWarning


class Squares(LinearRegression):
    """A model with coef_ that predicts something else."""

    def predict(self, X):
        return super().predict(X) ** 2


class Backwards(LogisticRegression):
    """A classifier that predicts the least likely class."""

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmin(axis=1)]


BOUNDS = ([-3, 0, 5], [3, 10, 6])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(*BOUNDS, size=(200, 3))
    y = X @ [1.0, -0.5, 2.0] + 3 + rng.normal(size=200)
    return X, y


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        LinearRegression(fit_intercept=False),
        Ridge(),
        Lasso(alpha=0.1),
        HuberRegressor(max_iter=1000),
        LinearSVR(max_iter=20_000, random_state=0),
        SGDRegressor(random_state=0, eta0=1e-4),
        make_pipeline(StandardScaler(), Ridge()),
        make_pipeline(StandardScaler(with_mean=False), Ridge()),
        make_pipeline(StandardScaler(with_std=False), Ridge()),
        make_pipeline(MinMaxScaler(feature_range=(-2, 1)), "passthrough", MaxAbsScaler(), Ridge()),
        make_pipeline(make_pipeline(RobustScaler(), StandardScaler()), make_pipeline(MinMaxScaler(), Ridge())),
        make_pipeline(FrozenEstimator(SimpleImputer().fit(np.zeros((2, 3)))), Ridge()),
        GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}),
        TransformedTargetRegressor(Ridge()),
        TransformedTargetRegressor(make_pipeline(MinMaxScaler(), Ridge()), transformer=StandardScaler()),
        make_pipeline(StandardScaler(), TransformedTargetRegressor(Ridge(), transformer=MinMaxScaler((-3, 9)))),
        GridSearchCV(TransformedTargetRegressor(Ridge(), transformer=RobustScaler()), {"regressor__alpha": [1.0]}),
        TweedieRegressor(power=0, link="identity"),
    ],
    ids=repr,
)
def test_the_query_predicts_what_the_model_predicts(model, data):
    X, y = data
    model.fit(X, y)
    for fitted in (model, FrozenEstimator(model)):
        query = query_from_estimator(fitted, epsilon=1.0, bounds=BOUNDS)
        assert query.kind == "linear"
        low, high = query.output_bounds
        assert low + (high - low) * query.unit_response(X) == pytest.approx(model.predict(X).ravel(), abs=1e-9)
        corners = np.array(np.meshgrid(*np.transpose(BOUNDS))).reshape(3, -1).T
        predicted = model.predict(corners)
        assert low <= predicted.min() <= low + 1e-9
        assert high - 1e-9 <= predicted.max() <= high


@pytest.mark.parametrize(
    "model",
    [
        PoissonRegressor(),
        GammaRegressor(max_iter=1000),
        TweedieRegressor(power=1.5, max_iter=1000),
        TweedieRegressor(power=0, link="log", max_iter=1000),
        make_pipeline(SimpleImputer(), StandardScaler(), PoissonRegressor()),
        TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge()), func=np.log, inverse_func=np.exp),
        GridSearchCV(PoissonRegressor(), {"alpha": [0.1, 1.0]}, cv=2),
    ],
    ids=repr,
)
def test_a_log_link_is_an_exponential_query(model, data):
    X, _ = data
    y = np.exp(((X - np.mean(BOUNDS, axis=0)) @ [0.3, -0.1, 0.4]) + 0.5)
    model.fit(X, y)
    query = query_from_estimator(FrozenEstimator(model), epsilon=1.0, bounds=BOUNDS)
    assert query.kind == "exponential"
    low, high = query.output_bounds
    assert low + (high - low) * query.unit_response(X) == pytest.approx(model.predict(X), rel=1e-9)
    corners = np.array(np.meshgrid(*np.transpose(BOUNDS))).reshape(3, -1).T
    predicted = model.predict(corners)
    assert low <= predicted.min() <= low * (1 + 1e-9)
    assert high * (1 - 1e-9) <= predicted.max() <= high
    # Clipped where it is told to be, which it says.
    with pytest.warns(OutOfDomainWarning, match="logarithm over the bounds reaches"):
        clipped = query_from_estimator(model, epsilon=1.0, bounds=BOUNDS, output_bounds=(1.0, 2.0))
    assert 1.0 + clipped.unit_response(X) == pytest.approx(np.clip(model.predict(X), 1, 2), rel=1e-9)
    assert query_from_estimator(model, epsilon=1.0, output_bounds=(1.0, 2.0)).key == clipped.key


def test_a_log_link_that_reaches_too_far_needs_output_bounds(data):
    X, y = data
    model = PoissonRegressor().fit(X, np.abs(y))
    model.coef_ = np.array([9.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="Give narrower output_bounds"):
        query_from_estimator(model, epsilon=1.0, bounds=BOUNDS)
    with pytest.warns(OutOfDomainWarning):
        assert query_from_estimator(model, epsilon=1.0, bounds=BOUNDS, output_bounds=(1, 50)).kind == "exponential"
    with pytest.raises(ValueError, match="must be positive, and their ratio"):
        query_from_estimator(model, epsilon=1.0, bounds=BOUNDS, output_bounds=(0, 50))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(dual=False),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), LinearSVC(dual=False)),
        make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
    ],
    ids=repr,
)
def test_a_classifier_without_probabilities_is_asked_for_its_decision(model, data):
    X, y = data
    model.fit(X, y > np.median(y))
    query = query_from_estimator(model, epsilon=1.0, bounds=BOUNDS)
    assert query.kind == "linear"
    low, high = query.output_bounds
    assert low + (high - low) * query.unit_response(X) == pytest.approx(model.decision_function(X), abs=1e-9)
    with pytest.warns(OutOfDomainWarning, match="truncated"):
        clipped = query_from_estimator(model, epsilon=1.0, bounds=BOUNDS, output_bounds=(-0.1, 0.1))
    assert clipped.kind == "truncated"
    expected = np.clip(model.decision_function(X), -0.1, 0.1)
    assert -0.1 + 0.2 * clipped.unit_response(X) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=5000),
        LinearSVC(dual=False),
        RidgeClassifier(),
        make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
        GridSearchCV(make_pipeline(MinMaxScaler(), LogisticRegression()), {"logisticregression__C": [1.0, 9.0]}, cv=2),
    ],
    ids=repr,
)
def test_a_classifier_of_more_classes_is_asked_for_the_class(model, data):
    X, y = data
    names = np.array(["high", "low", "none"])
    model.fit(X, names[np.digitize(y, np.quantile(y, [0.3, 0.6]))])
    for fitted in (model, FrozenEstimator(model)):
        query = query_from_estimator(fitted, epsilon=0.5, bounds=BOUNDS)
        assert isinstance(query, ClassQuery)
        assert (names[query.classes(X)] == model.predict(X)).all()


def test_a_model_that_can_leave_its_output_bounds_is_truncated_and_says_so(data):
    X, y = data
    model = LinearRegression().fit(X, y)
    with pytest.warns(OutOfDomainWarning, match="truncated"):
        query = query_from_estimator(model, epsilon=1.0, bounds=BOUNDS, output_bounds=(9, 12))
    assert query.kind == "truncated"
    wide = query_from_estimator(model, epsilon=1.0, bounds=BOUNDS, output_bounds=(-100, 100))
    assert wide.kind == "linear"
    unknown = query_from_estimator(model, epsilon=1.0, output_bounds=(-100, 100))
    assert unknown.kind == "truncated"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Squares(), "predictions must be"),
        (GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, refit=False), "linear model"),
        (TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1), "func=np.log"),
        (TransformedTargetRegressor(Ridge(), func=np.sqrt, inverse_func=np.square), "func=np.log"),
        (TransformedTargetRegressor(PoissonRegressor(), transformer=MinMaxScaler((1, 2))), "linear regressor"),
        (TransformedTargetRegressor(TransformedTargetRegressor(Ridge())), "transformed once"),
        (make_pipeline(SimpleImputer(add_indicator=True), Ridge()), "fill in NaN alone"),
        (make_pipeline(SimpleImputer(missing_values=0), Ridge()), "fill in NaN alone"),
        (DecisionTreeRegressor(), "linear model"),
        (make_pipeline(FunctionTransformer(np.tanh), Ridge()), "FunctionTransformer"),
        (make_pipeline(PolynomialFeatures(), Ridge()), "PolynomialFeatures"),
        (make_pipeline(MinMaxScaler(clip=True), Ridge()), "without clipping"),
    ],
    ids=repr,
)
def test_other_models_are_refused(model, message, data):
    X, y = data
    model.fit(X, np.abs(y))
    with pytest.raises(ValueError, match=message):
        query_from_estimator(model, epsilon=1.0, bounds=BOUNDS)


def test_classifiers_that_are_no_binary_logistic_model_are_refused(data):
    X, y = data
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        query_from_estimator(DecisionTreeClassifier().fit(X, labels), epsilon=1.0)
    with pytest.raises(ValueError, match="output_bounds must be None"):
        query_from_estimator(LinearSVC(dual=False).fit(X, labels), epsilon=1.0, output_bounds=(0, 1))
    with pytest.raises(ValueError, match="class whose theta x"):
        query_from_estimator(Backwards(max_iter=5000).fit(X, labels), epsilon=1.0, bounds=BOUNDS)
    with pytest.raises(ValueError, match="needs bounds or output_bounds"):
        query_from_estimator(LinearSVC(dual=False).fit(X, y > 10), epsilon=1.0)
    one = OneVsRestClassifier(LogisticRegression(max_iter=5000)).fit(X, labels).estimators_[0]
    assert query_from_estimator(one, epsilon=1.0).kind == "logistic"


def test_what_is_missing_is_said(data):
    X, y = data
    model = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="needs bounds or output_bounds"):
        query_from_estimator(model, epsilon=1.0)
    with pytest.raises(ValueError, match="3 features"):
        query_from_estimator(model, epsilon=1.0, bounds=([0, 0], [1, 1]))
    with pytest.raises(NotFittedError):
        query_from_estimator(LinearRegression(), epsilon=1.0, bounds=(0, 1))
    with pytest.raises(ValueError, match="one output"):
        query_from_estimator(LinearRegression().fit(X, np.stack([y, y], axis=1)), epsilon=1.0, bounds=BOUNDS)
    with pytest.raises(ValueError, match="depend on x"):
        query_from_estimator(Lasso(alpha=1e9, fit_intercept=False).fit(X, y), epsilon=1.0, bounds=BOUNDS)
