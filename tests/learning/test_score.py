"""The score of a model, by people who did not train it."""

import math
import warnings

import numpy as np
import pytest
from scipy import special

from skldp import PrivateDiscriminant, PrivateLinearRegression, PrivateLogisticRegression
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning import Person, Report, score_estimate, score_tasks
from skldp.learning._score import ScoreEstimate
from skldp.learning._tasks import Task
from skldp.mechanisms._noise import Noise

BOX = (-1.0, -1.0, -2.0), (1.0, 3.0, 2.0)
OF_CLASSES = (-1.0, -1.0, 0.0), (1.0, 3.0, 2.0)


def loss_task(rows, bound, epsilon=2.0, n_classes=0):
    return Task(epsilon, *(OF_CLASSES if n_classes else BOX), "loss", rows, "number", bound, n_classes)


def test_losses_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    X, y = np.column_stack([rng.uniform(-1.5, 1.5, 200), rng.uniform(-2, 4, 200)]), rng.uniform(-3, 3, 200)
    z = np.column_stack([np.ones(200), np.clip(X[:, 0], -1, 1), (np.clip(X[:, 1], -1, 3) - 1) / 2])
    row = np.array([0.3, -0.9, 0.8, 0.0])
    errors = (np.clip(y / 2, -1, 1) - np.clip(z @ row[:3], -1, 1)) ** 2
    told = loss_task([row.tolist()], 0.5).encode(X, y)[:, 0]
    np.testing.assert_allclose(told, 2 * np.minimum(errors / 0.5, 1) - 1, atol=1e-12)
    logits = rng.normal(size=(3, 4)) * [1, 1, 1, 0]
    codes = rng.integers(3, size=200)
    errors = -special.log_softmax(z @ logits[:, :3].T, axis=1)[np.arange(200), codes]
    told = loss_task(logits.tolist(), 1.5, n_classes=3).encode(X, codes.astype(float))[:, 0]
    np.testing.assert_allclose(told, 2 * np.minimum(errors / 1.5, 1) - 1, atol=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {"answer": "vector"},
        {"answer": "levels"},
        {"matrix": ((0.0,) * 4,) * 2},
        {"n_classes": 2},
        {"n_classes": 2, "matrix": ((0.0,) * 4,) * 3, "low": OF_CLASSES[0], "high": (1.0, 3.0, 1.0)},
        {"n_classes": 2, "matrix": ((0.0,) * 4,) * 2, "low": OF_CLASSES[0], "high": (1.0, 3.0, 5.0)},
        {"n_classes": 1},
    ],
    ids=str,
)
def test_hostile_tasks_about_losses_are_refused(changes):
    settings = {"epsilon": 1.0, "low": BOX[0], "high": BOX[1], "form": "loss", "matrix": ((0.0,) * 4,)}
    settings |= {"answer": "number", "radius": 1.0}
    assert Task(**settings).guarantee().epsilon <= 1.0
    with pytest.raises(ValueError, match="task"):
        Task(**settings | changes)


def tables(kind, n, rng):
    X = rng.uniform(-1, 1, (n, 2)) * [1, 2] + [0, 1]
    if kind == "numbers":
        return X, np.clip(X[:, 0] + 0.2 * rng.standard_normal(n), -2, 2)
    share = 0.1 * (1 + X[:, 0]) if kind == "rare" else special.expit(4 * X[:, 0])
    return X, 2.0 * (rng.uniform(size=n) < share)


def fixed_tasks(kind, slope, epsilon):
    if kind == "numbers":
        rows, bound, n_classes = np.array([[0.0, slope / 2, 0, 0]]), 0.4, 0
        baseline = np.zeros((1, 4))
    else:
        baseline = np.zeros((3, 4))
        baseline[:, 0] = np.log([0.89, 0.01, 0.1] if kind == "rare" else [0.49, 0.02, 0.49])
        rows, bound, n_classes = baseline.copy(), math.log(2) - float(baseline.min()), 3
        rows[2, 1] = 4 * slope
    return [loss_task(one.tolist(), bound, epsilon, n_classes) for one in (baseline, rows)]


@pytest.mark.few(6)
@pytest.mark.parametrize("n", [4, 40, 1_000])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 50.0])
@pytest.mark.parametrize("slope", [1.0, 0.0, -0.5])
@pytest.mark.parametrize("kind", ["numbers", "classes", "rare"])
def test_the_interval_covers_for_good_useless_and_bad_models(kind, slope, epsilon, n):
    tasks, rng, half = fixed_tasks(kind, slope, epsilon), np.random.default_rng(1), n // 2
    X, y = tables(kind, 400_000, rng)
    v, w = (((task.encode(X, y)[:, 0] + 1) / 2).mean() for task in tasks)
    hits = 0
    for _ in range(200):
        X, y = tables(kind, n, rng)
        noise = Noise(rng.bytes(32), secure=False)
        parts = (slice(half), slice(half, n))
        reports = [[task.release(X[part], y[part], noise)] for task, part in zip(tasks, parts, strict=True)]
        found = score_estimate(tasks, reports)
        assert found.n_people == n
        hits += found.interval[0] <= 1 - w / v <= found.interval[1]
    # Below 181 of 200 with a chance of 1 in 200 at 95%; the intervals are wider than that.
    assert hits >= 181


X = np.random.default_rng(0).uniform(-1, 1, (12_000, 3))
Y = np.clip(X @ [0.5, -0.3, 0.2] + 0.1 * np.random.default_rng(1).standard_normal(12_000), -1, 1)
CLASSES = (Y > 0).astype(int)
MODELS = {
    "linear": (PrivateLinearRegression(8.0, target_bounds=(-1.5, 1.5)), Y),
    "once": (PrivateLinearRegression(8.0, target_bounds=(-1.5, 1.5), protocol="once"), Y),
    "logistic": (PrivateLogisticRegression(8.0, classes=[0, 1]), CLASSES),
    "discriminant": (PrivateDiscriminant(8.0, classes=[0, 1]), CLASSES),
}


@pytest.mark.parametrize("name", MODELS)
def test_people_apart_say_how_good_a_fit_is(name, monkeypatch):
    model, target = MODELS[name]
    asked, original = [], Task.release

    def release(task, *args, rows=None, **settings):
        asked.append((task.form, rows))
        return original(task, *args, rows=rows, **settings)

    monkeypatch.setattr(Task, "release", release)
    model.fit(X, target)
    # Everybody answers one task, and a twentieth the ones about losses.
    everybody = np.concatenate([rows for _, rows in asked])
    np.testing.assert_array_equal(np.sort(everybody), np.arange(12_000))
    assert [len(rows) for form, rows in asked if form == "loss"] == [300, 300]
    tasks = score_tasks(model.protocol_)
    v, w = (((task.encode(X, target)[:, 0] + 1) / 2).mean() for task in tasks)
    found = model.score_estimate_
    assert found.n_people == 600
    assert abs(found.value - (1 - w / v)) < 5 * found.error < 0.8
    assert all(task.guarantee().epsilon <= model.privacy_guarantee_.epsilon <= 8.0 for task in tasks)
    assert str(found) == f"{found.value:.2f} +- {found.error:.2f} by 600 people who did not train it"
    if name == "once":
        model.partial_fit(X[:10], Y[:10])
        assert model.score_estimate_ is None


def test_the_score_of_the_model_is_that_of_its_predictions():
    model, target = MODELS["linear"]
    mean, fitted = score_tasks(model.fit(X, target).protocol_)
    errors = np.minimum(((target - model.predict(X)) / 1.5) ** 2 / fitted.radius, 1)
    np.testing.assert_allclose((fitted.encode(X, target)[:, 0] + 1) / 2, errors, atol=1e-9)
    assert not np.array(mean.matrix)[:, 1:].any()
    model, target = MODELS["logistic"]
    _, fitted = score_tasks(model.fit(X, target).protocol_)
    errors = -model.predict_log_proba(X)[np.arange(len(X)), target]
    told = (fitted.encode(X, target.astype(float))[:, 0] + 1) / 2
    np.testing.assert_allclose(told, np.minimum(errors / fitted.radius, 1), atol=1e-9)


def test_a_share_of_0_trains_everybody_and_few_people_have_no_score():
    assert PrivateLinearRegression(8.0, score_share=0).fit(X, Y).score_estimate_ is None
    with pytest.warns(TooFewPeopleWarning):
        few = PrivateLinearRegression(0.1).fit(X[:100], Y[:100])
    assert few.score_estimate_ is None
    assert few.protocol_.n_people == 100
    for share in (-0.1, 0.6, "all", True):
        with pytest.raises(ValueError, match="score_share"):
            PrivateLinearRegression(score_share=share).fit(X, Y)


def test_a_fit_that_is_not_better_than_the_mean_warns(monkeypatch):
    bad = ScoreEstimate(-0.4, 0.1, (-0.6, -0.2), 600)
    monkeypatch.setattr("skldp.estimators._learning.score_estimate", lambda tasks, reports: bad)
    with pytest.warns(TooFewPeopleWarning, match=r"-0.40 \+- 0.10 by 600 people"):
        PrivateLinearRegression(8.0).fit(X, Y)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error", TooFewPeopleWarning)
        PrivateLinearRegression(8.0).fit(X, Y)


def test_devices_answer_and_a_repeated_report_counts_once():
    tasks = score_tasks(PrivateLinearRegression(2.0, target_bounds=(-1.5, 1.5)).fit(X, Y).protocol_)
    people = zip(X[:60], Y[:60], strict=True)
    texts = [
        [Person(x, y, epsilon=2.0).answer(task.to_json()) for (x, y), _ in zip(people, range(30), strict=False)]
        for task in tasks
    ]
    reports = [[Report.from_json(text) for text in some] for some in texts]
    found = score_estimate([Task.from_json(task.to_json()) for task in tasks], reports)
    assert found == score_estimate(tasks, [some + some[:9] for some in reports])
    assert found == score_estimate(tasks, [[Report.total(some)] for some in reports])
    with pytest.raises(ValueError, match="same task"):
        score_estimate(tasks, reports[::-1])
