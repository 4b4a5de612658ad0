"""The learning room as its enemies see it: planners, people who lie, and devices that are asked twice."""

import copy
import json
import math
import multiprocessing
import os
import pickle
import threading
import time

import numpy as np
import pytest

from skldp.exceptions import BudgetExhaustedError
from skldp.learning import ClassificationProtocol, Person, RegressionProtocol, Report
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._inference import InferenceProtocol
from skldp.learning._moments import MomentsProtocol
from skldp.learning._tasks import Task
from skldp.mechanisms import noise_from

MATRIX = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
LIMIT = 1e30


def task(**changes):
    settings = {"epsilon": 1.0, "low": (0.0, 0.0), "high": (1.0, 1.0), "form": "linear", "matrix": MATRIX}
    return Task(**settings | {"answer": "vector", "radius": 1.0} | changes)


def document(**changes):
    return json.dumps(json.loads(task().to_json()) | changes)


@pytest.mark.parametrize("low", [0.0, 5e-324, -1e-308, 1e-31])
def test_bounds_without_a_width_that_doubles_can_hold_are_refused(low):
    """The attack: bounds one double apart, whose middle is one of them, make NaN of one record and not of another."""
    high = math.nextafter(low, math.inf)
    person = Person([low], 0.5, epsilon=1.0)
    with pytest.raises(ValueError, match="bounds"):
        person.answer(document(low=[low, 0.0], high=[high, 1.0]))
    assert person.epsilon_left == 1.0
    # Larger numbers are far apart.
    for record in (1e10, math.nextafter(1e10, math.inf)):
        text = task(low=(1e10, 0.0), high=(math.nextafter(1e10, math.inf), 1.0)).to_json()
        Report.from_json(Person([record], 0.5, epsilon=1.0).answer(text))


def number(rng):
    sizes = [0.0, -0.0, 1.0, -1.0, LIMIT, -LIMIT, 1 / LIMIT, 5e-324, 2.3e-308, rng.normal()]
    sizes.append(rng.normal() * 10.0 ** rng.integers(-30, 30))
    return float(np.clip(rng.choice(sizes), -LIMIT, LIMIT))


def hostile_tasks(seed, n):
    """Tasks of numbers at all limits, those that are none left out."""
    rng = np.random.default_rng(seed)
    while n:
        d, form = (
            int(rng.integers(1, 4)),
            str(rng.choice(["linear", "squares", "products", "gradient", "class_gradient", "loss"])),
        )
        about_classes = form == "class_gradient" or (form == "loss" and rng.random() < 0.5)
        n_classes = int(rng.integers(2, 5)) if about_classes else 0
        low = [number(rng) for _ in range(d + 1)]
        high = [one + abs(number(rng)) if rng.random() < 0.7 else math.nextafter(one, math.inf) for one in low]
        if n_classes:
            low[-1], high[-1] = 0.0, n_classes - 1.0
        answer = str(rng.choice(["vector", "number", "levels"]))
        rows = n_classes + (1 if answer == "number" and form != "gradient" else int(rng.integers(1, 4)))
        rows = max(1, n_classes) if form == "loss" else rows
        matrix = [[number(rng) for _ in range(d + 2)] for _ in range(rows)]
        radius = float(rng.choice([1.0, 1.1e-30, LIMIT, 10.0 ** rng.integers(-29, 29)]))
        epsilon = float(rng.choice([1e-6, 1e-3, 0.5, 1.29, 1.3, 8.0, 150.0, 700.0, 1e5]))
        try:
            yield Task(epsilon, low, high, form, matrix, answer, radius, n_classes)
        except ValueError:
            continue
        n -= 1


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_asked_every_record_is_answered_alike(seed):
    """The attack: a task that overflows, or is refused, for some records and not for others, after the first look."""
    rng = np.random.default_rng(seed)
    ends = [0.0, -0.0, 5e-324, 1.7e308, -1.7e308]
    for asked in hostile_tasks(seed, 60):
        low, high = np.array(asked.low), np.array(asked.high)
        near = [low, high, low / 2 + high / 2, np.nextafter(low, high), np.nextafter(high, low)]
        choices = np.array(near + [np.full(len(low), end) for end in ends])
        records = np.take_along_axis(choices, rng.integers(len(choices), size=(20, len(low))), axis=0)
        told = asked.encode(records[:, :-1], records[:, -1])
        assert np.isfinite(told).all()
        assert {
            "vector": True,
            "number": (np.abs(told) <= 1).all(),
            "levels": ((told >= 0) & (told <= 19)).all(),
        }[asked.answer]
        for record in records[:5]:
            report = Report.from_json(Person(record[:-1], record[-1], epsilon=1e6).answer(asked.to_json()))
            assert np.isfinite(asked.mean(report)).all()
        asked.check(asked.release(records[:, :-1], records[:, -1], noise_from()))
        assert asked.guarantee().epsilon <= asked.epsilon
        assert Task.from_json(asked.to_json()).hash == asked.hash


@pytest.mark.parametrize(
    "text",
    [
        document().replace("1.0", "1" * 5_000, 1),
        document().replace("1.0", "1e400", 1),
        document().replace("1.0", "-Infinity", 1),
        document(matrix=[[0.0, 1.0, True]]),
        document(low=[0.0, True]),
        document(high=[1.0, "1"]),
        document(matrix={"0": [0.0, 1.0, 1.0]}),
        document(matrix="[" * 50_000),
        document().replace('"matrix": "', '"matrix": ' + "[" * 50_000),
        document(form=[["linear"]]),
        document(n_classes=0.0),
        document(n_classes=10**30, form="class_gradient"),
        document(radius=1e31),
        document(least=0.0),
        document(answer="log_norm"),
        document(version=2),
        document(low=[0.0, 0.0, 0.0]),
        "\x00",
        "{",
        document().encode("utf-16")[:-1],
        None,
        7,
    ],
    ids=range(22),
)
def test_documents_that_are_no_task_are_refused_before_the_record_is_looked_at(text):
    person = Person([0.5], 0.25, epsilon=1.0)
    person._x = np.array([math.nan])
    with pytest.raises(ValueError, match=r"[Tt]ask"):
        person.answer(text)
    assert person.epsilon_left == 1.0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_there_is_no_second_device_of_one_person(copied):
    person = Person([0.5], 0.25, epsilon=1.0)
    for held in (person, [person]):
        if held is not person and copied is copy.copy:
            continue
        with pytest.raises(TypeError, match="copied"):
            copied(held)
    person.answer(task().to_json())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork to be attacked by")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_makes_no_second_device():
    person, text = Person([0.5], 0.25, epsilon=1.0), task().to_json()
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()

    def ask():
        try:
            said.put(person.answer(text))
        except RuntimeError as error:
            said.put(str(error))

    child = context.Process(target=ask)
    child.start()
    assert "after a fork" in said.get()
    child.join()
    person.answer(text)


def test_of_many_threads_one_is_answered(monkeypatch):
    """The attack: a second question between the look at what is left and its being spent."""
    person, text = Person([0.5], 0.25, epsilon=1.0), task().to_json()
    together = threading.Barrier(8, timeout=30)
    guarantee = Task.guarantee

    def wait_for_all(asked):
        cost = guarantee(asked)
        together.wait()
        return cost

    monkeypatch.setattr(Task, "guarantee", wait_for_all)

    class Left(float):
        """What is left, which it takes some time to look at."""

        def __ge__(self, other):
            time.sleep(0.05)
            return float(self) >= other

    person._left = Left(1.0)
    answered, refused = [], []

    def ask():
        try:
            answered.append(person.answer(text))
        except BudgetExhaustedError as error:
            refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answered), len(refused)) == (1, 7)
    assert person.epsilon_left == 0


def test_what_fails_after_it_was_spent_stays_spent(monkeypatch):
    person = Person([0.5], 0.25, epsilon=1.0)

    def fail(*args, **settings):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Task, "release", fail)
        with pytest.raises(MemoryError):
            person.answer(task().to_json())
    with pytest.raises(BudgetExhaustedError):
        person.answer(task().to_json())


def protocols(epsilon, n, d=2):
    ends = {"low": [-1.0] * (d + 1), "high": [1.0] * (d + 1)}
    yield RegressionProtocol(d, n, epsilon=epsilon, **ends)
    yield RegressionProtocol(d, n, epsilon=epsilon, **ends, kind="once")
    ends = {"low": [-1.0] * d, "high": [1.0] * d}
    yield ClassificationProtocol(d, n, 3, epsilon=epsilon, **ends)
    yield DiscriminantProtocol(d, n, 3, epsilon=epsilon, **ends)
    yield MomentsProtocol(d, n, epsilon=epsilon, **ends)


def poisoned(asked, n_people, how, rng):
    """A report of the largest sums that people can reach, if they lie."""
    most = asked._integers[1] * n_people
    least = 0 if asked.answer == "levels" else -most
    sums = {
        "all high": [most] * asked.n_outputs,
        "all low": [least] * asked.n_outputs,
        "nothing": [0] * asked.n_outputs,
        "in turns": [(most, least)[i % 2] for i in range(asked.n_outputs)],
        "at random": rng.integers(least, most + 1, asked.n_outputs).tolist(),
    }
    return Report(asked.hash, n_people, tuple(sums[how]))


@pytest.mark.few(2)
@pytest.mark.parametrize("how", ["all high", "all low", "nothing", "in turns", "at random", "mixed"])
@pytest.mark.parametrize(("epsilon", "n"), [(1e-3, 50), (1.0, 20_000), (4.0, 500), (30.0, 50), (700.0, 5_000)])
def test_whatever_people_say_there_is_a_next_task_and_a_model(how, epsilon, n):
    """The attack: reports, each possible, that leave a collector without a task that anybody would answer."""
    rng = np.random.default_rng(0)
    for d in (1, 3):
        for learnt in protocols(epsilon, n, d):
            asked = learnt.first()
            while asked is not None:
                way = rng.choice(["all high", "all low", "nothing", "in turns", "silence"]) if how == "mixed" else how
                wanted = learnt.n_wanted
                if way == "silence" or not wanted:
                    asked = learnt.next(None)
                    continue
                asked = learnt.next(poisoned(asked, int(rng.choice([1, wanted])), way, rng))
            if isinstance(learnt, MomentsProtocol):
                results = [learnt.estimates.location, learnt.estimates.covariance]
            else:
                results = [learnt.coefficients, getattr(learnt, "intercept", 0.0)]
            assert all(np.isfinite(result).all() for result in results)
            json.loads(learnt.to_json())


def test_more_people_than_were_to_be_asked_are_refused_and_change_nothing():
    for learnt in protocols(2.0, 5_000):
        asked, state = learnt.first(), learnt.to_json()
        reports = [
            asked.release(np.zeros((learnt.n_wanted, 2)), np.zeros(learnt.n_wanted), noise_from()) for _ in range(2)
        ]
        for collect in (learnt.next, learnt.add):
            with pytest.raises(ValueError, match=f"got {2 * learnt.n_wanted:,}"):
                collect(reports)
            assert learnt.to_json() == state
        learnt.next(reports[0])
        with pytest.raises(ValueError, match="another task"):
            learnt.next(reports[0])


def test_a_repeated_report_counts_once_in_every_form():
    """The attack: one person's report, sent as often as people were asked, was a cohort."""
    for number, learnt in enumerate(protocols(2.0, 5_000)):
        person = Person([0.1, 0.2], 0.0, epsilon=2.5)
        text = person.answer(learnt.first().to_json())
        other = Report(learnt.task.hash, 1, (0,) * learnt.task.n_outputs)
        report, states = Report.from_json(text), []
        both = Report.total([report, other])
        for reports in (
            [report, other],
            [report] * 100 + [other],
            [Report.from_json(text), other, report],
            [both],
            [both, report, other],
            [both, both],
        ):
            at_once = list(protocols(2.0, 5_000))[number]
            at_once.next(reports)
            one_by_one = list(protocols(2.0, 5_000))[number]
            for one in reports:
                one_by_one.add(one)
                one_by_one = type(one_by_one).from_json(one_by_one.to_json())
            assert one_by_one.n_wanted == learnt.n_wanted - 2
            one_by_one.next(None)
            states += [at_once.to_json(), one_by_one.to_json()]
        assert len(set(states)) == 1
        # A sum with a release that was counted cannot be taken apart.
        alone, overlapping = (list(protocols(2.0, 5_000))[number] for _ in range(2))
        alone.next(report)
        overlapping.next([report, both])
        assert alone.to_json() == overlapping.to_json()


def test_a_report_counts_in_one_cohort_where_several_get_the_same_task():
    """The attack: a report sent again to the next cohort, whose task is the same."""
    settings = {"epsilon": 8.0, "low": [-1.0] * 3, "high": [1.0] * 3}
    X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    learnt, asked, n_same = InferenceProtocol(2, 20_000, **settings, kind="rounds"), 0, 0
    task, report = learnt.first(), None
    while task is not None:
        people = slice(asked, asked + learnt.n_wanted)
        asked = people.stop
        if report is not None and report.task == task.hash:
            n_same += 1
            learnt.add([report, report])
            assert learnt.n_wanted == people.stop - people.start
        report = task.release(X[people], X[people, 0], noise_from())
        task = learnt.next(report)
    assert n_same >= 30


def test_a_report_counts_in_one_cohort_where_a_task_comes_back_after_another():
    """The attack: a report kept until its task comes back, after a cohort between them that nobody answered."""
    n_back = 0
    for learnt in protocols(8.0, 4_000):
        kept, before = {}, None
        while (task := learnt.task) is not None:
            wanted = learnt.n_wanted
            if task.hash in kept:
                n_back += task.hash != before
                for one in (learnt, type(learnt).from_json(learnt.to_json())):
                    one.add(kept[task.hash])
                    assert one.n_wanted == wanted
            before = task.hash
            if task.answer == "levels" and wanted:
                report = task.release(np.zeros((wanted, 2)), np.zeros(wanted), noise_from())
                kept.setdefault(task.hash, []).append(report)
                learnt.next(report)
            else:
                learnt.next()
    assert n_back >= 5


def test_a_report_counts_once_in_the_task_that_stays_open():
    for learnt in protocols(8.0, 3_000):
        while (task := learnt.task) is not None:
            report = task.release(np.zeros((learnt.n_wanted, 2)), np.zeros(learnt.n_wanted), noise_from())
            learnt.next(report)
        if learnt.frozen_task is None:
            continue
        state = learnt.to_json()
        learnt.add([report, report])
        learnt.add([])
        assert learnt.to_json() == state
        more = learnt.frozen_task.release(np.zeros((5, 2)), np.zeros(5), noise_from())
        learnt.add(more)
        changed = learnt.to_json()
        assert changed != state
        learnt.add([more, report])
        assert learnt.to_json() == changed


@pytest.mark.parametrize(
    "ids",
    [
        [],
        None,
        "0" * 32,
        ["0" * 31],
        ["0" * 33],
        ["G" * 32],
        [0],
        [None],
        ["0" * 32] * 2,
        ["0" * 32, "1" * 32, "2" * 32],
    ],
    ids=str,
)
def test_a_report_without_ids_of_its_own_is_refused(ids):
    """The attack: a document without an id would count as a new report each time that it is read."""
    document = json.loads(Report("0" * 64, 2, (1,)).to_json())
    with pytest.raises(ValueError, match="id"):
        Report.from_json(json.dumps(document | {"ids": ids}))
    with pytest.raises(ValueError, match="at most one for each"):
        Report("0" * 64, 2, (1,), tuple(digit * 32 for digit in "012"))


def test_a_step_that_fails_changes_nothing(monkeypatch):
    for learnt in protocols(2.0, 5_000):
        asked, state = learnt.first(), learnt.to_json()

        def fail(protocol, task, report):
            protocol._state["center"] = None
            raise np.linalg.LinAlgError

        monkeypatch.setattr(learnt.steps[learnt._steps[0][0]], "update", fail)
        # As sums that no people make, which leave singular matrices.
        with pytest.raises(ValueError, match="sums from which a model can be estimated; got some that no people make"):
            learnt.next(asked.release([[0.0, 0.0]], [0.0], noise_from()))
        assert learnt.to_json() == state


@pytest.mark.parametrize(
    "change",
    [
        lambda given: given["state"].update(step=-1),
        lambda given: given["state"].update(step=10**6),
        lambda given: given["state"].update(step="0"),
        lambda given: given["state"].update(more=1),
        lambda given: given["state"].pop("step"),
        lambda given: given["state"].pop("answers"),
        lambda given: given["state"].update(answers=None),
        lambda given: given["state"]["answers"].pop("held"),
        lambda given: given["state"]["answers"].update(held="a report"),
        lambda given: given["state"]["answers"].update(held=5),
        lambda given: given["state"]["answers"].update(held=Report("0" * 64, 1, (1,)).to_json().replace("sums", "sum")),
        lambda given: given["state"]["answers"].update(counted=[]),
        lambda given: given["state"]["answers"].update(counted={"0" * 64: "0" * 32}),
        lambda given: given["state"]["answers"].update(counted={"0" * 64: []}),
        lambda given: given["state"]["answers"].update(counted={"0" * 64: ["0" * 32] * 2}),
        lambda given: given["state"]["answers"].update(counted={"a task": ["0" * 32]}),
        lambda given: given.update(state=None),
        lambda given: given["settings"].update(epsilon=-1.0),
        lambda given: given["settings"].update(noise=0),
        lambda given: given.pop("settings"),
    ],
)
def test_states_that_no_protocol_wrote_are_refused(change):
    for learnt in protocols(2.0, 5_000):
        given = json.loads(learnt.to_json())
        change(given)
        with pytest.raises(ValueError, match=r"must|counts once"):
            type(learnt).from_json(json.dumps(given))
    for text in ("", "[]", "null", "[" * 100_000):
        with pytest.raises(ValueError, match="must be"):
            RegressionProtocol.from_json(text)


@pytest.mark.few(3)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.29, 4.0, 24.0, 150.0, 700.0, 1e5])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_guarantee_is_above_all_tasks_at_every_epsilon(epsilon, d):
    for n in (30, 3_000, 300_000):
        for learnt in protocols(epsilon, n, d):
            asked, costs = learnt.first(), []
            while asked is not None:
                costs.append(asked.guarantee().epsilon)
                asked = learnt.next(None)
            assert max(costs) <= learnt.guarantee().epsilon <= epsilon


@pytest.mark.parametrize("again", [[0, 2, 0], [2, -1]])
def test_nobody_is_in_a_cohort_twice(again):
    table = np.zeros((3, 1)), np.zeros(3)
    with pytest.raises(ValueError, match="twice"):
        task().release(*table, noise_from(), rows=np.array(again))
    assert task().release(*table, noise_from(), rows=np.array([2, 0])).n_people == 2


def test_the_same_question_of_two_protocols_is_answered_once():
    """Two collectors that plan alike ask alike at first: their reports could be exchanged, a person's budget cannot."""
    first, second = (next(protocols(2.0, 5_000)) for _ in range(2))
    assert first.first().hash == second.first().hash
    person = Person([0.1, 0.2], 0.3, epsilon=2.0)
    person.answer(first.first().to_json())
    with pytest.raises(BudgetExhaustedError):
        person.answer(second.first().to_json())


def test_a_sum_takes_no_release_twice():
    report, other = (Report("0" * 64, 1, (1,)) for _ in range(2))
    assert report != other
    with pytest.raises(ValueError, match="counts once"):
        report + report
    with pytest.raises(ValueError, match="counts once"):
        report + other + report
    assert Report.total([other, report]) == report + other


@pytest.mark.parametrize("n_people", [2**53 + 1, 10**400, -1, 1.0, True])
def test_reports_of_more_people_than_there_can_be_are_refused(n_people):
    with pytest.raises(ValueError, match="n_people"):
        Report("0" * 64, n_people, (1,))
