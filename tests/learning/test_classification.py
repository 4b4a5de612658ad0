"""The multinomial protocol: what it learns, from one release of each person."""

import json

import numpy as np
import pytest
from laws import seeded
from scipy import special

from skldp.learning import ClassificationProtocol, Person, Report
from skldp.learning._person import simulate
from skldp.learning._tasks import Task
from skldp.learning._vectors import contrasts
from skldp.mechanisms import noise_from

LOGITS = np.array([[0.0, 2.0, 0.0, 1.0], [0.3, -2.0, 1.0, 0.0], [-0.2, 0.0, -3.0, 0.5]])


def people(n, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    scores = np.column_stack([np.ones(n), X]) @ LOGITS[:n_classes].T * 2 + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1).astype(float)


def protocol(n, n_classes=3, epsilon=4.0, **settings):
    return ClassificationProtocol(3, n, n_classes, epsilon=epsilon, low=[-1] * 3, high=[1] * 3, **settings)


def accuracy(learnt, X, y):
    return np.mean((X @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1) == y)


def best(n_classes, X, y):
    return np.mean((np.column_stack([np.ones(len(X)), X]) @ LOGITS[:n_classes].T).argmax(axis=1) == y)


def log_loss(learnt, X, y):
    logs = special.log_softmax(X @ learnt.coefficients.T + learnt.intercepts, axis=1)
    return -logs[np.arange(len(y)), y.astype(int)].mean()


KINDS = pytest.mark.parametrize("kind", ["rounds", "once"])


@pytest.mark.few(3)
@KINDS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("n", "epsilon", "lost", "told"),
    [(4_000, 2.0, 0.09, 0.25), (20_000, 2.0, 0.04, 0.4), (20_000, 8.0, 0.02, 0.4)],
)
def test_learns_classes_and_their_probabilities(kind, n_classes, n, epsilon, lost, told):
    X, y = people(n, n_classes)
    learnt = protocol(n, n_classes, epsilon, kind=kind)
    simulate(learnt, X, y, seeded())
    assert accuracy(learnt, X, y) > best(n_classes, X, y) - lost
    # In bits, what the features tell of the class beyond its share.
    shares = np.bincount(y.astype(int)) / n
    assert log_loss(learnt, X, y) < -(shares * np.log(shares)).sum() - told


def test_more_people_in_any_order_are_the_same_to_the_bit():
    X, y = people(14_000)
    first = protocol(10_000, kind="once")
    simulate(first, X[:10_000], y[:10_000], seeded())
    task = first.frozen_task
    reports = [task.release(X[i : i + 500], y[i : i + 500], seeded(i // 500)) for i in range(10_000, 14_000, 500)]
    text = first.to_json()
    orders = [ClassificationProtocol.from_json(text) for _ in range(3)]
    orders[0].add(reports)
    for report in reports[::-1]:
        orders[1].add(report)
    orders[2].add(Report.total(reports[3:]))
    orders[2].add(reports[:3])
    states = [one.to_json() for one in orders]
    assert states[0] == states[1] == states[2] != text
    assert all(one.frozen_task == task for one in orders)
    assert accuracy(orders[0], X, y) > accuracy(first, X, y) - 0.01
    before = first.to_json()
    for wrong in (protocol(10_000).first().release(X, y, seeded()), Report(task.hash, 1, (10**9,) * task.n_outputs)):
        with pytest.raises(ValueError, match=r"another task|people can reach"):
            first.add([reports[0], wrong])
    assert first.to_json() == before
    rounds = protocol(2_000)
    simulate(rounds, X[:2_000], y[:2_000], seeded())
    assert rounds.frozen_task is None
    with pytest.raises(ValueError, match="once"):
        rounds.add(reports)


@pytest.mark.few(1)
@KINDS
@pytest.mark.parametrize("n", [60, 700])
def test_everybody_answers_one_task_within_the_guarantee(n, kind):
    X, y = people(n)
    learnt = protocol(n, epsilon=3.0, kind=kind)
    devices = [Person(x, target, epsilon=3.0) for x, target in zip(X, y, strict=True)]
    task, asked, costs = learnt.first(), 0, []
    while task is not None:
        costs.append(task.guarantee().epsilon)
        cohort = devices[asked : asked + learnt.n_wanted]
        asked += len(cohort)
        task = learnt.next([Report.from_json(device.answer(task.to_json())) for device in cohort])
    assert asked == n
    assert not any(device.epsilon_left for device in devices)
    assert max(costs) <= learnt.guarantee().epsilon <= 3.0


@pytest.mark.few(1)
@KINDS
def test_tasks_depend_on_reports_alone_and_states_are_documents(kind, monkeypatch):
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

    first, second = (protocol(n, kind=kind) for _ in range(2))
    monkeypatch.setattr(Task, "release", record)
    simulate(first, X, y, seeded())
    monkeypatch.setattr(Task, "release", replay)
    simulate(second, np.ones((n, 3)), np.zeros(n), noise_from())
    assert repeated == texts
    broken = protocol(n, kind=kind)
    broken.first()
    for report in said:
        broken = ClassificationProtocol.from_json(broken.to_json())
        broken.next(report)
    assert json.loads(broken.to_json()) == json.loads(first.to_json())


@KINDS
def test_nobody_need_answer(kind):
    silent = protocol(20_000, kind=kind)
    task = silent.first()
    while task is not None:
        task = silent.next(None)
    np.testing.assert_array_equal(silent.coefficients, 0)
    assert silent.frozen_task is None
    X, y = people(20_000)
    part, asked, noise = protocol(20_000, kind=kind), 0, seeded()
    task = part.first()
    while task is not None:
        cohort = np.arange(asked, asked + max(1, part.n_wanted // 2))
        asked += part.n_wanted
        task = part.next(task.release(X, y, noise, rows=cohort))
    assert accuracy(part, X, y) > best(3, X, y) - 0.05


@pytest.mark.few(2)
@KINDS
@pytest.mark.parametrize("value", [0.0, 5.0])
@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
def test_after_the_first_look_everything_is_total(kind, value, epsilon):
    """Features that are all the same, or all outside, leave nothing to whiten."""
    for n in (2, 50, 400):
        learnt = ClassificationProtocol(2, n, 3, epsilon=epsilon, low=[-1, -1], high=[1, 1], kind=kind)
        simulate(learnt, np.full((n, 2), value), np.arange(n) % 3.0, seeded())
        assert np.isfinite(learnt.coefficients).all()
        assert np.isfinite(learnt.intercepts).all()


def test_people_report_at_the_model_that_holds_if_there_is_something_to_learn():
    learnt = protocol(4_000, epsilon=1.0, kind="rounds")
    while learnt.task.form != "class_gradient" or learnt.task.answer != "vector" or learnt._state["step"] == 0:
        learnt.next(None)
    asked_at, estimate = (np.arange(8).reshape(2, 4) + start for start in (1.0, 2.0))
    learnt._state |= {"asked_at": asked_at.tolist(), "beta": estimate.tolist()}
    logits = np.array(learnt._task_of("gradient").matrix)[-3:, 1:-1]
    np.testing.assert_allclose(logits, contrasts(3) @ asked_at[:, 1:])
    np.testing.assert_allclose(learnt.coefficients, contrasts(3) @ estimate[:, 1:])


def test_what_clipping_takes_is_added_again():
    """A mean clipped gradient of people as the model expects them says that the model is right."""
    learnt = protocol(4_000, epsilon=1.0, kind="rounds")
    learnt._state["asked_at"] = [[-1.0, 0.5, 0.0, 0.2], [2.0, 0.0, 1.0, 0.0]]
    rows = learnt._rows()
    likelihood, turned, model = learnt._likelihood(rows)
    lost, shown = likelihood.clipped(model, 0.3)
    assert np.abs(lost).max() > 0.01
    learnt._keep_rows()
    learnt._learn(turned @ lost, 0.1, 0.3)
    kept, noise, _ = learnt._state["gradients"][-1]
    np.testing.assert_allclose(kept, turned @ likelihood.at_zero(model), atol=1e-12)
    assert noise == pytest.approx(0.1 / shown)
