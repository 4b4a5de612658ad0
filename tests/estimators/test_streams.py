"""Models that learn as people arrive: a task stays open until it has its people."""

import warnings
from itertools import groupby

import numpy as np
import pytest
from sklearn.base import clone

from skldp import PrivateDiscriminant, PrivateLinearRegression, PrivateLogisticRegression, PrivateMoments
from skldp.exceptions import OutOfDomainWarning
from skldp.learning._tasks import Task

N, D = 6_000, 4
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, D))
Y = X @ [0.4, -0.3, 0.1, 0.0] + 0.05 * RNG.standard_normal(N)
CLASSES = (Y > 0).astype(int)
MODELS = {
    "linear": (PrivateLinearRegression(4.0, protocol="once"), Y),
    "logistic": (PrivateLogisticRegression(4.0, protocol="once", classes=[0, 1]), CLASSES),
    "discriminant": (PrivateDiscriminant(4.0, classes=[0, 1]), CLASSES),
    "moments": (PrivateMoments(4.0), None),
}

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
]


def batches(n, step, start=0):
    return [slice(a, min(a + step, n)) for a in range(start, n, step)]


def streamed(model, target, parts):
    for part in parts:
        model.partial_fit(X[part], None if target is None else target[part])
    return model


def loss(model, target):
    if target is None:
        return np.abs(model.covariance_ - np.cov(X.T)).max()
    return 1 - model.score(X, target)


@pytest.mark.few(1)
@pytest.mark.parametrize("step", [97, 30])
@pytest.mark.parametrize("name", MODELS)
def test_a_stream_is_as_good_as_a_fit_of_all_at_once(name, step):
    (model, target), n = MODELS[name], 3_000
    at_once, declared, planned = (
        np.mean([loss(learn(clone(model).set_params(seed=seed)), target) for seed in range(6)])
        for learn in (
            lambda one: one.fit(X[:n], None if target is None else target[:n]),
            lambda one: streamed(one.set_params(n_people=n), target, batches(n, step)),
            lambda one: streamed(one, target, batches(n, step)),
        )
    )
    assert declared < 1.3 * at_once + 0.02
    assert planned < 1.6 * at_once + 0.03


@pytest.mark.parametrize("name", MODELS)
def test_everybody_answers_one_task_and_no_task_has_more_people_than_planned(name, monkeypatch):
    model, target = MODELS[name]
    asked, original = [], Task.release

    def release(task, *args, **settings):
        report = original(task, *args, **settings)
        asked.append((task.hash, report.n_people))
        return report

    monkeypatch.setattr(Task, "release", release)
    stream = clone(model).set_params(seed=0, n_people=2_000)
    sizes = [1, 1, 500, 3, 0, 1_700, 40]
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True) if size]
    streamed(stream, target, parts)
    assert sum(n for _, n in asked) == sum(sizes)
    planned = [sum(n for _, n in run) for _, run in groupby(asked, key=lambda one: one[0])]
    # All but the last task have at most their people, and those who came later answered the last one.
    steps = [people for _, people in stream.protocol_._steps if people]
    assert planned[:-1] == steps[: len(planned) - 1]
    assert stream.protocol_.frozen_task.hash == asked[-1][0]
    assert stream.protocol_.task is None


@pytest.mark.parametrize("name", MODELS)
def test_a_warning_that_is_an_error_comes_before_anybody_answers(name):
    """People answered in a call that `-W error` had failed, and would have answered again in the next one."""
    model, target = MODELS[name]
    model = clone(model).partial_fit(X[:500], None if target is None else target[:500])
    state, outside = model.protocol_.to_json(), 3 * X[500:900]
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutOfDomainWarning)
        with pytest.raises(OutOfDomainWarning):
            model.partial_fit(outside, None if target is None else target[500:900])
    assert model.protocol_.to_json() == state
