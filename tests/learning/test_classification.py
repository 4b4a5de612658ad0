"""The multinomial protocol: what it learns, from one release of each person."""

import json

import numpy as np
import pytest

from skldp.learning import ClassificationProtocol, Person, RegressionProtocol, Report, Task, simulate
from skldp.mechanisms import Noise, noise_from

LOGITS = np.array([[0.0, 2.0, 0.0, 1.0], [0.3, -2.0, 1.0, 0.0], [-0.2, 0.0, -3.0, 0.5]])


def people(n, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    scores = np.column_stack([np.ones(n), X]) @ LOGITS[:n_classes].T * 2 + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1).astype(float)


def protocol(n, n_classes=3, epsilon=4.0):
    return ClassificationProtocol(3, n, n_classes, epsilon=epsilon, low=[-1] * 3, high=[1] * 3)


def seeded(number=0):
    return Noise(bytes([number]) * 32, secure=False)


def accuracy(learnt, X, y):
    return np.mean((X @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1) == y)


def best(n_classes, X, y):
    return np.mean((np.column_stack([np.ones(len(X)), X]) @ LOGITS[:n_classes].T).argmax(axis=1) == y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n", "epsilon", "lost"), [(4_000, 2.0, 0.08), (20_000, 2.0, 0.04), (20_000, 8.0, 0.02)])
def test_learns(n_classes, n, epsilon, lost):
    X, y = people(n, n_classes)
    learnt = protocol(n, n_classes, epsilon)
    simulate(learnt, X, y, seeded())
    assert accuracy(learnt, X, y) > best(n_classes, X, y) - lost


def test_bounds_are_in_the_units_of_the_data():
    X, y = people(20_000)
    wide, offset = np.array([10.0, 0.2, 1.0]), np.array([5.0, 0.0, -30.0])
    learnt = ClassificationProtocol(3, 20_000, 3, epsilon=4.0, low=offset - wide, high=offset + wide)
    simulate(learnt, X * wide + offset, y, seeded())
    same = protocol(20_000)
    simulate(same, X, y, seeded())
    assert (
        np.mean(
            ((X * wide + offset) @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1)
            == (X @ same.coefficients.T + same.intercepts).argmax(axis=1)
        )
        > 0.999
    )


def test_one_feature_is_enough():
    X, _ = people(5_000)
    learnt = ClassificationProtocol(1, 5_000, 2, epsilon=4.0, low=[-1], high=[1])
    simulate(learnt, X[:, :1], (X[:, 0] > 0.2).astype(float), seeded())
    assert (
        np.mean(((X[:, :1] @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1) == 1) == (X[:, 0] > 0.2)) > 0.9
    )


@pytest.mark.parametrize("n", [60, 3_000])
def test_everybody_answers_one_task_within_the_guarantee(n):
    X, y = people(n)
    learnt = protocol(n, epsilon=1.5)
    devices = [Person(x, target, epsilon=1.5) for x, target in zip(X, y, strict=True)]
    task, asked, costs = learnt.first(), 0, []
    while task is not None:
        costs.append(task.guarantee().epsilon)
        cohort = devices[asked : asked + learnt.n_wanted]
        asked += len(cohort)
        task = learnt.next([Report.from_json(device.answer(task.to_json())) for device in cohort])
    assert asked == n
    assert not any(device.epsilon_left for device in devices)
    assert max(costs) <= learnt.guarantee().epsilon <= 1.5


def test_tasks_depend_on_reports_alone_and_states_are_documents(monkeypatch):
    """The attack: a radius or a scale that is read from the rows. With the same reports, other rows change nothing."""
    n = 4_000
    X, y = people(n)
    said, texts, repeated = [], [], []
    original = Task.release

    def record(task, X, y, noise, *, rows=None, n_threads=1):
        texts.append(task.to_json())
        said.append(original(task, X, y, noise, rows=rows, n_threads=n_threads))
        return said[-1]

    def replay(task, X, y, noise, *, rows=None, n_threads=1):
        repeated.append(task.to_json())
        return said[len(repeated) - 1]

    first, second = protocol(n), protocol(n)
    monkeypatch.setattr(Task, "release", record)
    simulate(first, X, y, seeded())
    monkeypatch.setattr(Task, "release", replay)
    simulate(second, np.ones((n, 3)), np.zeros(n), noise_from())
    assert repeated == texts
    broken = protocol(n)
    broken.first()
    for report in said:
        broken = ClassificationProtocol.from_json(broken.to_json())
        broken.next(report)
    assert json.loads(broken.to_json()) == json.loads(first.to_json())


def test_of_too_few_people_the_shares_are_learnt():
    X, y = people(400)
    learnt = protocol(400, epsilon=0.5)
    simulate(learnt, X, y, seeded())
    np.testing.assert_array_equal(learnt.coefficients, 0)
    shares = np.exp(learnt.intercepts) / np.exp(learnt.intercepts).sum()
    assert np.abs(shares - np.bincount(y.astype(int)) / 400).max() < 0.6


def test_nobody_need_answer():
    silent = protocol(20_000)
    task = silent.first()
    while task is not None:
        task = silent.next(None)
    np.testing.assert_array_equal(silent.coefficients, 0)
    assert isinstance(RegressionProtocol(3, 10, epsilon=1.0, low=[-1] * 4, high=[1] * 4).first(), Task)
