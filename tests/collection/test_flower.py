"""Rounds over Flower: everybody answers once, whoever is killed, and the server believes nobody."""

import hashlib
import json

import numpy as np
import pytest

from skldp.client import DeviceLedger
from skldp.collection import _flower as module
from skldp.exceptions import BudgetExhaustedError
from skldp.flower import flower_client_app, flower_server_app
from skldp.learning import RegressionProtocol, Report

N, EPSILON = 40, 8.0
KEY = hashlib.sha256(b"skldp: rounds\0a test").hexdigest()


def protocol(n=N, epsilon=EPSILON):
    bounds = {"low": [-1] * 3, "high": [1] * 3}
    return RegressionProtocol(2, n, epsilon=epsilon, **bounds, kind="once")


def people(folder, n=N, lifetime=EPSILON):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 2))
    return [
        (x, x @ [0.5, -0.3], DeviceLedger(folder / f"{i}.sqlite", lifetime_epsilon=lifetime)) for i, x in enumerate(X)
    ]


def charged(everybody):
    return [ledger.reports().get(KEY, 0) for _, _, ledger in everybody]


class Nodes:
    """What passes between a server and its nodes, without Flower."""

    def __init__(self, people_of, silent=()):
        self.people_of, self.silent, self.asked = people_of, list(silent), []

    def connected(self):
        return list(self.people_of)

    def exchange(self, kind, told):
        answers = {}
        for node, one in told.items():
            self.asked.append((kind, node, one.get("wanted")))
            if kind == "query":
                answers[node] = {"left": len(module._not_yet(self.people_of[node], "a test"))}
                continue
            report, left = module.answers_of_node(self.people_of[node], "a test", one["task"], one["wanted"])
            if self.silent and self.silent.pop(0):
                # It was killed after its people had answered.
                continue
            answers[node] = {"report": "" if report is None else report.to_json(), "left": left}
        return answers


class Counted(RegressionProtocol):
    def next(self, reports):
        reports = list(reports)
        self.__dict__.setdefault("got", []).append(reports)
        return super().next(reports)


def test_everybody_answers_once_and_the_state_is_that_of_their_reports(tmp_path):
    everybody = people(tmp_path)
    nodes = Nodes({1: everybody[:10], 2: everybody[10:]})
    settings = protocol()._settings()
    learnt = Counted(**settings)
    module.learn(learnt, tmp_path / "state", nodes.connected, nodes.exchange)
    assert charged(everybody) == [1] * N
    assert sum(report.n_people for cohort in learnt.got for report in cohort) == N
    again = RegressionProtocol(**settings)
    for cohort in learnt.got:
        again.next(cohort)
    assert (tmp_path / "state").read_text() == again.to_json()
    # Each is asked for the number of its people once, who are then counted down.
    assert [one[:2] for one in nodes.asked if one[0] == "query"] == [("query", 1), ("query", 2)]


def test_who_was_killed_loses_answers_and_gives_no_second_one(tmp_path):
    everybody = people(tmp_path)
    nodes = Nodes({1: everybody[:20], 2: everybody[20:]}, silent=[False, True, False, True])
    learnt = Counted(**protocol()._settings())
    module.learn(learnt, tmp_path / "state", nodes.connected, nodes.exchange)
    assert learnt.task is None
    assert set(charged(everybody)) == {1}
    got = sum(report.n_people for cohort in learnt.got for report in cohort)
    assert got < N
    # The one that said nothing was asked anew.
    assert sum(one[0] == "query" for one in nodes.asked) == 4


def test_a_cohort_of_which_nobody_answers_is_asked_of_others(tmp_path):
    everybody = people(tmp_path)
    nodes = Nodes({1: everybody}, silent=[True])
    learnt = Counted(**protocol()._settings())
    module.learn(learnt, tmp_path / "state", nodes.connected, nodes.exchange)
    wanted = [wanted for kind, _, wanted in nodes.asked if kind == "train"]
    first = next(n for _, n in learnt._steps if n)
    assert wanted[:2] == [first, first]
    assert sum(report.n_people for cohort in learnt.got for report in cohort) == N - first


def test_nodes_that_never_answer_end_the_run_and_few_silences_do_not(tmp_path):
    """As where all of them are of another version: the server would ask them without an end."""
    everybody = people(tmp_path)
    nodes = Nodes({1: everybody})

    def exchange(kind, told):
        answers = nodes.exchange(kind, {node: one | {"wanted": 0} for node, one in told.items()})
        # Once more, and the tenth would be the last: an answer in between is a new beginning.
        n = sum(one[0] == "train" for one in nodes.asked)
        return answers if kind == "query" or n == 9 else {}

    with pytest.raises(RuntimeError, match=r"No node answered 10 cohorts in a row"):
        module.learn(protocol(), tmp_path / "state", nodes.connected, exchange)
    assert sum(one[0] == "train" for one in nodes.asked) == 19
    assert charged(everybody) == [0] * N


def test_a_state_is_gone_on_from(tmp_path):
    everybody = people(tmp_path)
    nodes = Nodes({1: everybody})

    class KilledError(Exception):
        pass

    def exchange(kind, told):
        if kind == "train" and sum(one[0] == "train" for one in nodes.asked) == 3:
            raise KilledError
        return nodes.exchange(kind, told)

    with pytest.raises(KilledError):
        module.learn(protocol(), tmp_path / "state", nodes.connected, exchange)
    left = module.opened(protocol(), tmp_path / "state")
    assert left._state["step"] > 1
    module.learn(left, tmp_path / "state", nodes.connected, nodes.exchange)
    assert charged(everybody) == [1] * N
    assert module.opened(protocol(), tmp_path / "state").task is None
    with pytest.raises(ValueError, match="other settings"):
        module.opened(protocol(n=N + 1), tmp_path / "state")
    assert module.opened(protocol(), tmp_path / "none").task is not None


def test_a_person_takes_part_in_a_purpose_once_and_within_their_own_limit(tmp_path):
    (x, y, _) = people(tmp_path, 1)[0]
    task = protocol().task.to_json()
    rich = DeviceLedger(tmp_path / "rich.sqlite", lifetime_epsilon=100.0)
    report, left = module.answers_of_node([(x, y, rich)], "a test", task, 1)
    assert (report.n_people, left) == (1, 0)
    assert module.answers_of_node([(x, y, rich)], "a test", task, 1) == (None, 0)
    assert rich.spent <= EPSILON
    # Two processes that both read that nobody had answered.
    spend = module._taking_part(rich, "a test")
    with pytest.raises(BudgetExhaustedError, match="once"):
        spend(1.0)
    assert module.answers_of_node([(x, y, rich)], "another", task, 1)[0].n_people == 1
    poor = DeviceLedger(tmp_path / "poor.sqlite", lifetime_epsilon=EPSILON / 2)
    assert module.answers_of_node([(x, y, poor)], "a test", task, 1) == (None, 0)
    assert poor.spent == 0


def test_no_more_answer_than_were_asked_and_a_hostile_task_costs_nobody(tmp_path):
    everybody = people(tmp_path)
    task = protocol().task
    for wanted in (0, -1):
        assert module.answers_of_node(everybody, "a test", task.to_json(), wanted) == (None, N)
    with pytest.raises(ValueError, match=r"."):
        module.answers_of_node(everybody, "a test", task.to_json().replace("1.0", "1e999"), 5)
    with pytest.raises(ValueError, match="features"):
        module.answers_of_node([(np.zeros(3), 0.0, everybody[0][2])], "a test", task.to_json(), 1)
    assert charged(everybody) == [0] * N
    report, left = module.answers_of_node(everybody, "a test", task.to_json(), 5)
    assert (report.n_people, left) == (5, N - 5)
    assert sum(charged(everybody)) == 5
    # By chance, and not those who come first.
    report, _ = module.answers_of_node(everybody, "a test", task.to_json(), 15)
    assert sum(charged(everybody)) == 20
    assert charged(everybody) != [1] * 20 + [0] * 20


@pytest.mark.parametrize(
    "told",
    [None, 5, {}, {"report": 3}, {"report": ""}, {"report": "{}"}, {"report": "foreign"}, {"report": "too many"}],
)
def test_what_is_no_report_of_the_task_is_left_out(told):
    task = protocol().task
    width = len(json.loads(Report(task.hash, 1, (0,) * task.n_outputs).to_json())["sums"])
    made = {
        "foreign": Report("00" * 32, 1, (0,) * width).to_json(),
        "too many": Report(task.hash, 4, (0,) * width).to_json(),
    }
    if isinstance(told, dict) and told.get("report") in made:
        told = {"report": made[told["report"]]}
    assert list(module._checked(task, told, 3)) == []
    fine = {"report": Report(task.hash, 3, (0,) * width).to_json()}
    assert len(list(module._checked(task, fine, 3))) == 1


def test_settings_are_refused_before_flower_is_needed(tmp_path):
    for purpose in ("", None):
        with pytest.raises(ValueError, match="purpose"):
            flower_client_app(people, purpose=purpose)
    for wrong in ({"least_nodes": 0}, {"timeout": -1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            flower_server_app(protocol, tmp_path / "state", **wrong)


def test_without_flower_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "flwr", None)
    with pytest.raises(ImportError, match=r"skldp\[flower\]"):
        flower_client_app(people, purpose="a test")
    with pytest.raises(ImportError, match=r"skldp\[flower\]"):
        flower_server_app(protocol, tmp_path / "state")


def test_what_a_node_says_of_its_people_is_a_number_of_them():
    for said in (None, {}, {"left": -3}, {"left": "many"}, {"left": True}, {"left": 2.5}):
        assert module._people_left(said, protocol()) == 0
    assert module._people_left({"left": 7}, protocol()) == 7
    assert module._people_left({"left": 10**30}, protocol()) == N
