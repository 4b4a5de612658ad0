"""What a mod of Flower sends of a node: one report of the update, and nothing else of what the model answered."""

from types import SimpleNamespace

import numpy as np
import pytest

from skldp.client import DeviceLedger, Policy, VectorField
from skldp.client import _flower_mod as module
from skldp.exceptions import BudgetExhaustedError
from skldp.flower import flower_mod

POLICY = Policy("train a model", (VectorField.privunit("update", 5, 4.0, bound=1.0),))
RAW = 0.123456


class Records(dict):
    """Stand-in for Flower's RecordDict, of arrays unless it says otherwise."""

    @property
    def array_records(self):
        return {name: record for name, record in self.items() if isinstance(record, Arrays)}


class Arrays(dict):
    def __init__(self, **arrays):
        super().__init__({name: SimpleNamespace(numpy=lambda own=own: own) for name, own in arrays.items()})


def message(content, kind="train", reply_to=None):
    return SimpleNamespace(content=content, metadata=SimpleNamespace(message_type=kind), reply_to=reply_to)


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    flower = SimpleNamespace(RecordDict=Records, ConfigRecord=dict, Message=message)
    monkeypatch.setattr(module, "require", lambda name, extra: flower)
    return DeviceLedger(tmp_path / "ledger", lifetime_epsilon=8.0)


def task(kind="train"):
    return message(Records(model=Arrays(w=np.ones((2, 2), np.float32), b=np.zeros(1))), kind)


def answered(w=None, b=None, **more):
    arrays = Arrays(w=np.full((2, 2), 1 + RAW) if w is None else w, b=np.full(1, -RAW) if b is None else b)
    return lambda message, context: SimpleNamespace(content=Records(model=arrays, metrics={"loss": RAW}, **more))


def test_a_reply_is_a_report_of_the_update_and_nothing_else(ledger, monkeypatch):
    given = []
    release = Policy.release
    monkeypatch.setattr(
        Policy, "release", lambda self, record, **more: given.append(record) or release(self, record, **more)
    )
    reply = flower_mod(POLICY, lambda context: ledger)(task(), "context", answered())
    assert list(reply.content) == ["skldp"]
    assert list(reply.content["skldp"]) == ["report"]
    report = reply.content["skldp"]["report"]
    assert len(report) == POLICY.n_bytes
    assert POLICY.read(report).answers.keys() == {"update"}
    assert given[0]["update"] == pytest.approx([RAW] * 4 + [-RAW])
    assert ledger.spent == 4.0
    assert reply.reply_to is not None


@pytest.mark.parametrize("kind", ["evaluate", "query", "evaluate.of_mine"])
def test_replies_to_other_messages_are_empty_and_free(ledger, kind):
    """Attack: a server that asks for metrics of an evaluation, which would pass as they are."""

    def never(message, context):
        raise AssertionError("the model was evaluated for nothing")

    reply = flower_mod(POLICY, lambda context: ledger)(task(kind), "context", never)
    assert reply.content == {}
    assert ledger.spent == 0


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"w": np.ones((2, 3))}, "must have the names and shapes of the task's"),
        ({"w": np.ones(4)}, "must have the names and shapes of the task's"),
        ({"more": Arrays(c=np.ones(2))}, "must have the names and shapes of the task's"),
    ],
)
def test_other_arrays_are_refused_and_nothing_is_charged(ledger, wrong, rule):
    with pytest.raises(ValueError, match=rule) as caught:
        flower_mod(POLICY, lambda context: ledger)(task(), "context", answered(**wrong))
    assert str(RAW)[2:] not in str(caught.value)
    assert ledger.spent == 0


def test_an_account_that_is_spent_sends_nothing(ledger):
    mod = flower_mod(POLICY, lambda context: ledger)
    for _ in range(2):
        mod(task(), "context", answered())
    with pytest.raises(BudgetExhaustedError):
        mod(task(), "context", answered())
    assert ledger.reports() == {POLICY.sha256: 2}
