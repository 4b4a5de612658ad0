"""What people release for models is attacked: no bound above its guarantee, nor far below; planted faults are found."""

import dataclasses
import itertools

import numpy as np
import pytest
from task_attack import audit_task, worst_records

from skldp.learning import ClassificationProtocol, RegressionProtocol
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._moments import MomentsProtocol
from skldp.learning._tasks import Task
from skldp.mechanisms import noise_from
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.study import audit_epsilon

CONFIDENCE = 1 - 1e-6
N = 6_000
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 2))
Y = np.clip(X @ [0.5, -0.3] + 0.1 * RNG.standard_normal(N), -1, 1)
CODES = np.digitize(Y, [-0.2, 0.2]).astype(float)
WIDE = {"low": (-1.0, 0.0, 0.0), "high": (3.0, 2.0, 10.0)}
FUNCTIONALS = ((0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.1, -0.5, 0.2, 1.0))


KINDS = {
    "rounds": (lambda epsilon: RegressionProtocol(2, N, epsilon=epsilon, low=[-1] * 3, high=[1] * 3), Y),
    "once": (lambda epsilon: RegressionProtocol(2, N, epsilon=epsilon, low=[-1] * 3, high=[1] * 3, kind="once"), Y),
    "classes": (lambda epsilon: ClassificationProtocol(2, N, 3, epsilon=epsilon, low=[-1] * 2, high=[1] * 2), CODES),
    "tensor": (lambda epsilon: DiscriminantProtocol(2, N, 3, epsilon=epsilon, low=[-1] * 2, high=[1] * 2), CODES),
    "moments": (lambda epsilon: MomentsProtocol(2, N, epsilon=epsilon, low=[-1] * 2, high=[1] * 2), 0 * Y),
}


def tasks_of(kind, epsilon):
    """The last task of every step of a protocol that is carried out."""
    make, target = KINDS[kind]
    learnt = make(epsilon)
    task, asked, noise, tasks = learnt.first(), 0, Noise(bytes(32), secure=False), {}
    while task is not None:
        tasks[learnt._steps[learnt._state["step"]][0]] = task
        cohort = slice(asked, asked + learnt.n_wanted)
        task, asked = learnt.next(task.release(X[cohort], target[cohort], noise)), cohort.stop
    return tasks


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [4.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_guarantee_of_every_task_stands_and_is_nearly_reached(kind, epsilon, fixed_noise):
    tasks = tasks_of(kind, epsilon)
    # Besides vectors: levels for the scale, and numbers where the target is one.
    numbers = {"number"} if kind in ("rounds", "once") else set()
    assert {task.answer for task in tasks.values()} == {"vector", "levels"} | numbers
    for name, task in tasks.items():
        result = audit_task(task, n_trials=40_000 if epsilon == 1 else 10_000, confidence=CONFIDENCE)
        assert result.claimed == task.guarantee().epsilon <= epsilon
        assert result.epsilon_lower <= result.claimed, (name, result)
        # The norms that records can have are a part of those that a scale's answer is made for.
        assert result.epsilon_lower > (0.6 if task.answer == "vector" else 0.1) * epsilon, (name, result)


def linear(epsilon=2.0, answer="vector", matrix=FUNCTIONALS, form="linear", radius=1.0):
    return Task(epsilon, **WIDE, form=form, matrix=matrix, answer=answer, radius=radius)


def products(task, records):
    """The inner products of what records are told apart by, on the sphere: levels by their distance."""
    told = task.encode(records[:, :-1], records[:, -1])
    if task.answer == "levels":
        return 1 - np.abs(told - told.T) / 19
    told /= np.maximum(np.linalg.norm(told, axis=1), 1)[:, None]
    lifts = np.column_stack([told, np.sqrt(np.maximum(0, 1 - (told**2).sum(axis=1)))])
    return (lifts @ lifts.T) ** (2 if task.form == "products" else 1)


def apart(task, *records):
    return products(task, np.array(records))[0, 1]


@pytest.mark.parametrize(
    "task",
    [
        linear(),
        linear(radius=30.0),
        linear(form="products"),
        linear(form="gradient"),
        linear(answer="levels"),
        linear(answer="levels", form="products", radius=30.0),
        linear(answer="number", matrix=FUNCTIONALS[2:]),
    ],
    ids=lambda task: f"{task.form} {task.answer}",
)
def test_no_pair_of_a_lattice_is_further_apart_than_the_worst_records(task):
    low, high = (np.array(end) for end in (task.low, task.high))
    lattice = low + (high - low) * np.array(list(itertools.product(np.linspace(0, 1, 5), repeat=3)))
    x, x_prime = worst_records(task)
    assert ((low <= x) & (x <= high) & (low <= x_prime) & (x_prime <= high)).all()
    assert apart(task, x, x_prime) <= products(task, lattice).min() + 1e-9


def refuted(release, *records, claimed=2.0, **settings):
    result = audit_epsilon(release, *records, confidence=CONFIDENCE, **settings).against(claimed)
    return result.refutes_claim


def answers(task, rows):
    return task.answers(rows[:, :-1], rows[:, -1], noise_from())


@pytest.mark.few(1)
@pytest.mark.parametrize("answer", ["vector", "levels"])
def test_noise_that_is_too_small_is_found(answer, monkeypatch, fixed_noise):
    """The fault: a mechanism for one and a half times the epsilon, of which the guarantee knows nothing."""
    task = linear(answer=answer)
    assert not audit_task(task, n_trials=40_000, confidence=CONFIDENCE).refutes_claim
    louder = dataclasses.replace(task, epsilon=3.0)
    guarantee, real = task.guarantee(), Task.answers
    monkeypatch.setattr(Task, "guarantee", lambda self: guarantee)
    monkeypatch.setattr(Task, "answers", lambda self, X, y, noise: real(louder, X, y, noise))
    assert audit_task(task, n_trials=40_000, confidence=CONFIDENCE).refutes_claim


@pytest.mark.slow
def test_a_radius_that_is_read_from_the_rows_is_found(fixed_noise):
    """The fault: a collector's radius is the largest norm among those who answer."""
    records = np.array([[2.9, 2.0, 9.0], [1.0, 1.0, 5.0]])

    def declared(rows):
        return answers(linear(radius=2.0), rows) * 2.0

    def read(rows):
        task = linear()
        radius = float(np.linalg.norm(task.encode(rows[:, :-1], rows[:, -1]), axis=1).max()) + 0.01
        return answers(linear(radius=radius), rows) * radius

    assert not refuted(declared, *records, n_trials=2_000, rows_per_call=1)
    assert refuted(read, *records, n_trials=2_000, rows_per_call=1)


def test_a_person_in_two_cohorts_is_found(fixed_noise):
    """The fault: a planner asks somebody twice, who thinks that both answers cost as much as one."""
    first, second = linear(), linear(radius=0.9)
    records = worst_records(first)
    ball = PrivUnitBall(3, 2.0, 1.0)
    told = first.encode(np.array(records)[:, :-1], np.array(records)[:, -1])

    def ratio(outputs):
        parts = [outputs[:, start : start + 3] for start in range(0, outputs.shape[1], 3)]
        return sum(ball.log_likelihood(part, told[:1]) - ball.log_likelihood(part, told[1:]) for part in parts)

    attack = {"n_trials": 60_000, "scores": {"both": ratio}}
    assert not refuted(lambda rows: answers(first, rows), *records, **attack)
    assert refuted(lambda rows: np.hstack([answers(first, rows), answers(second, rows)]), *records, **attack)
