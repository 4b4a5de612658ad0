"""What whole scikit-learn objects guarantee around models that learn under local privacy, and what these tell aside."""

import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import ClassifierMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldp import (
    BoundsScaler,
    NoiseAwareLinearRegression,
    NumericPrivatizer,
    PrivateDiscriminant,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMoments,
    privacy_guarantee,
)
from skldp.exceptions import OutOfDomainWarning, TooFewPeopleWarning

RNG = np.random.default_rng(0)
N = 600
X = RNG.uniform(-1, 1, (N, 2))
Y = 0.5 * X[:, 0] - 0.2 * X[:, 1]
CLASSES = (Y > 0).astype(int)
INF = math.inf
RELEASE = NumericPrivatizer(3.0, n_sampled_features=2)

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning"),
]


def regression(protocol="once", **settings):
    return PrivateLinearRegression(2.0, protocol=protocol, **settings)


def classifier():
    return PrivateLogisticRegression(2.0, classes=[0, 1], protocol="once")


# What is fitted on what, what one person's record with its target costs, and a part of the reason.
CASES = {
    "alone": (regression("rounds"), Y, 2, "each person answers one task"),
    "declared bounds": (make_pipeline(BoundsScaler(), regression()), Y, 2, "one task"),
    "a scaler that learns": (make_pipeline(StandardScaler(), regression()), Y, INF, "'standardscaler'"),
    "features chosen by targets": (make_pipeline(SelectKBest(k=1), regression()), CLASSES, INF, "had the labels"),
    "a public scaler": (
        make_pipeline(FrozenEstimator(StandardScaler().fit(X)), regression()),
        Y,
        2,
        "public by the caller's word",
    ),
    "released rows as well": (make_pipeline(NumericPrivatizer(1.0), regression()), Y, 3, "sum of"),
    "a target transformed": (TransformedTargetRegressor(regression()), Y, INF, "release once, before it"),
    "two that vote": (
        VotingRegressor([("a", regression()), ("b", regression())]),
        Y,
        INF,
        "(the private step in front",
    ),
    "targets as features": (RegressorChain(regression()), np.c_[Y, Y], INF, "may give a record several times"),
    "a search": (GridSearchCV(regression(), {"epsilon": [1.0, 2.0]}, cv=2), Y, INF, "is the figure of that one fit"),
    "votes on released rows": (
        make_pipeline(NumericPrivatizer(1.0), VotingRegressor([("a", LinearRegression())])),
        Y,
        1,
        "target not protected",
    ),
    "a line through releases": (
        make_pipeline(NumericPrivatizer(3.0, n_sampled_features=2), NoiseAwareLinearRegression(RELEASE)),
        Y,
        3,
        "target not protected",
    ),
    "two classes": (classifier(), CLASSES, 2, "one task"),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_of_the_record_with_its_target(case):
    estimator, target, epsilon, reason = case
    guarantee = privacy_guarantee(estimator.fit(X, target))
    assert guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert guarantee.epsilon <= epsilon
    assert reason in str(guarantee)
    assert guarantee.unit == "record"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "model",
    [
        regression("rounds"),
        regression(),
        classifier(),
        PrivateDiscriminant(20.0, classes=[0, 1]),
        PrivateMoments(20.0),
    ],
    ids=str,
)
def test_what_is_kept_of_two_tables_differs_by_noise_alone(model, monkeypatch):
    """The attack: a fitted attribute that was read from the rows. With the same reports, others are fitted alike."""
    from skldp.learning._tasks import Task

    target = CLASSES if isinstance(model, ClassifierMixin) else Y
    said, original = [], Task.release

    def record(task, *args, **settings):
        said.append(original(task, *args, **settings))
        return said[-1]

    monkeypatch.setattr(Task, "release", record)
    first = pickle.dumps(vars(model.fit(X, target)))
    reports = iter(said)
    monkeypatch.setattr(Task, "release", lambda *args, **settings: next(reports))
    assert pickle.dumps(vars(model.fit(-0.5 * np.ones((N, 2)), np.roll(target, 7) * 1.0))) == first


def test_whether_there_are_too_few_people_depends_on_public_numbers_alone():
    texts = []
    for rows, target in ((X, Y), (0 * X, 0 * Y), (X[::-1], 1 - 0 * Y)):
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            PrivateLinearRegression(0.5).fit(rows[:100], target[:100])
        assert [one.category for one in issued] == [TooFewPeopleWarning]
        texts.append(str(issued[0].message))
    assert len(set(texts)) == 1


@pytest.mark.parametrize("secret", [-1e308, 1.2345e-310, 987654.25])
def test_no_message_holds_a_value(secret):
    rows, target = X.copy(), Y.copy()
    rows[3, 1] = target[5] = secret
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        model = regression().fit(rows, target)
    assert {one.category for one in issued} <= {OutOfDomainWarning, TooFewPeopleWarning}
    texts = [str(one.message) for one in issued]
    for wrong in (np.nan, np.inf):
        for table, column in ((rows, target), (X, np.where(np.arange(N) == 7, wrong, target))):
            broken = table.copy()
            broken[2, 0] = wrong
            with pytest.raises(ValueError, match=r"NaN|infinity") as caught:
                model.fit(broken, column)
            texts.append(str(caught.value))
    assert not any(str(abs(secret))[:6] in text for text in texts)
    with pytest.raises(ValueError, match="declared") as caught:
        classifier().fit(X, np.where(np.arange(N) == 4, 424242, CLASSES))
    assert "424242" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (regression(protocol="once"), Y),
        (PrivateDiscriminant(20.0, classes=[0, 1]), CLASSES),
        (PrivateMoments(20.0), None),
    ],
    ids=["regression", "discriminant", "moments"],
)
def test_people_who_are_added_have_noise_of_their_own_from_a_seed_too(model, target, monkeypatch):
    """The fault: with an int seed every call of partial_fit drew the same noise again, which no number of people
    averages out, and by which two calls with one person differ by exactly their secret."""
    from skldp.learning._tasks import Task

    said, original = [], Task.release

    def record(task, *args, **settings):
        report = original(task, *args, **settings)
        said.append((task.hash, report.sums))
        return report

    monkeypatch.setattr(Task, "release", record)
    first, again = (clone(model).set_params(seed=0).fit(X, target) for _ in range(2))
    for _ in range(3):
        first.partial_fit(X, target)
    assert len({name for name, _ in said[-3:]}) == 1
    assert len({sums for _, sums in said[-3:]}) == 3
    for _ in range(3):
        again.partial_fit(X, target)
    assert len(set(said[-6:])) == 3
    learnt = "location_" if target is None else "coef_"
    np.testing.assert_array_equal(getattr(again, learnt), getattr(first, learnt))


@pytest.mark.parametrize(
    ("settings", "match"),
    [({"epsilon": 1e-7}, "epsilon"), ({"bounds": (0, 1e31)}, "low|high"), ({"target_bounds": (0, 1e-31)}, "low")],
)
def test_what_no_task_can_be_made_of_is_refused_before_a_warning(settings, match):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=match):
            regression().set_params(**settings).fit(X, Y)
