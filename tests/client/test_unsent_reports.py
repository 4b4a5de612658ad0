"""Reports of a device whose connection is lost: sent again to the byte, charged once, counted once."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from skldp import Collector
from skldp.client import DeviceLedger, Field, Policy
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms import Column, RandomizedResponse, ReleaseKey
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

CITY = Field("city", Column(values=tuple("abcdefgh")), RandomizedResponse(1.0, 8).integer_law)
FRESH = Policy("a survey", (CITY, Field("age", Column(0, 100), Duchi(1.0).integer_law)))
KEPT = Policy("a survey", (CITY,), memo="permanent")
KEY = ReleaseKey(bytes(range(128, 160)))
POLICIES = pytest.mark.parametrize(("policy", "secret"), [(FRESH, None), (KEPT, KEY)], ids=["fresh", "permanent"])


class Line:
    """A connection to a collector, which is lost before or after a report arrives."""

    def __init__(self, policy):
        self.collector, self.seen, self.state = Collector(policy), [], "up"

    def __call__(self, report):
        self.seen.append(report)
        if self.state != "down":
            self.collector.add(report)
        if self.state != "up":
            raise ConnectionError


@pytest.fixture
def ledger(tmp_path):
    return DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0)


@POLICIES
@pytest.mark.parametrize("state", ["down", "no reply"])
def test_a_lost_connection_is_no_second_report(policy, secret, state, ledger):
    """Attack: drop the line 20 times, and average 20 fresh reports of one value."""
    line = Line(policy)
    line.state = state
    for i in range(20):
        with pytest.raises(ConnectionError):
            # The value changes meanwhile, and a second report would show it.
            policy.send({"city": "abcdefgh"[i % 8]}, line, ledger=ledger, secret=secret)
    line.state = "up"
    report = policy.send({"city": "h"}, line, ledger=ledger, secret=secret)
    assert set(line.seen) == {report}
    assert line.collector.n_reports == 1
    assert ledger.reports() == {policy.sha256: 1}
    assert ledger.spent == pytest.approx(policy.epsilon)


def test_a_report_is_on_the_disk_before_it_is_sent(ledger):
    def deliver(report):
        assert DeviceLedger(ledger.path, lifetime_epsilon=1.0)._unsent(FRESH.sha256) == report

    report = FRESH.send({"city": "a"}, deliver, ledger=ledger)
    assert ledger._unsent(FRESH.sha256) is None
    assert FRESH.read(report)


def test_what_the_limit_does_not_admit_is_neither_stored_nor_sent(tmp_path):
    poor = DeviceLedger(tmp_path / "poor", lifetime_epsilon=FRESH.epsilon * 1.001)
    line = Line(FRESH)
    line.state = "down"
    with pytest.raises(ConnectionError):
        FRESH.send({"city": "a"}, line, ledger=poor)
    line.state = "up"
    # The stored report was charged before.
    FRESH.send({"city": "a"}, line, ledger=poor)
    with pytest.raises(BudgetExhaustedError):
        FRESH.send({"city": "a"}, line, ledger=poor)
    assert poor._unsent(FRESH.sha256) is None
    assert line.collector.n_reports == 1


@pytest.mark.parametrize("record", [5, None, "city", [("city", "a")]])
def test_what_is_no_record_is_refused_before_a_charge(record, ledger):
    with pytest.raises(TypeError, match="A record must be a mapping"):
        FRESH.send(record, pytest.fail, ledger=ledger)
    with pytest.raises(ValueError, match="secret must be"):
        FRESH.send({}, pytest.fail, ledger=ledger, secret=KEY)
    late = Policy("late", (CITY,), expires="2020-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="must not have expired"):
        late.send({}, pytest.fail, ledger=ledger)
    assert ledger.spent == 0


def test_processes_of_a_device_send_one_report(ledger):
    line = Line(FRESH)
    line.state = "down"
    with pytest.raises(ConnectionError):
        FRESH.send({"city": "a"}, line, ledger=ledger)
    line.state = "no reply"

    def send(_):
        with pytest.raises(ConnectionError):
            FRESH.send({"city": "b"}, line, ledger=DeviceLedger(ledger.path, lifetime_epsilon=100.0))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(8)))
    assert line.collector.counts == (1, 0, 0, 7)
    assert ledger.reports() == {FRESH.sha256: 1}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_device_that_is_killed_while_it_sends_sends_the_same_again(tmp_path):
    FRESH.save(tmp_path / "policy.json")
    code = f"""
import os, signal
from skldp.client import DeviceLedger, Policy

def deliver(report):
    with open({str(tmp_path / "sent")!r}, "ab") as file:
        file.write(report)
    os.kill(os.getpid(), signal.SIGKILL)

policy = Policy.load({str(tmp_path / "policy.json")!r})
policy.send({{"city": "a"}}, deliver, ledger=DeviceLedger({str(tmp_path / "mine")!r}, lifetime_epsilon=3.0))
"""
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    collector = Collector(FRESH)
    collector.add_file(tmp_path / "sent")
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=3.0)
    FRESH.send({"city": "a"}, collector.add, ledger=ledger)
    assert collector.counts == (1, 0, 0, 2)
    assert ledger.reports() == {FRESH.sha256: 1}


@pytest.mark.parametrize("kind", ["in no folder", "folder", "garbage", "empty", "database", "no name"])
def test_what_cannot_be_an_account_is_refused_when_it_is_opened(kind, tmp_path):
    """A release was the first to complain, on the person's own device."""
    path = tmp_path / "mine"
    if kind == "in no folder":
        path = tmp_path / "none" / "mine"
    elif kind == "folder":
        path.mkdir()
    elif kind in ("garbage", "empty"):
        path.write_bytes(b"" if kind == "empty" else os.urandom(5000))
    elif kind == "database":
        import sqlite3

        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE spent (policy TEXT)")
        connection.commit()
        connection.close()
    before = sorted(one.name for one in tmp_path.iterdir())
    with pytest.raises(LedgerError, match=r"account must be|must be a whole account"):
        DeviceLedger("" if kind == "no name" else path, lifetime_epsilon=1.0)
    assert sorted(one.name for one in tmp_path.iterdir()) == before
