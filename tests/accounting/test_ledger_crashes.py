"""What was handed out is in the file: after a kill, with a full disk, and when the disk fails."""

import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from ledger_children import answer_many, answer_until_killed, query_number, start
from postgres_server import run_at

from skldp import PrivacyLedger
from skldp.accounting import ledger_report
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger import _sqlite_store as sqlite_store
from skldp.accounting.ledger import _store as ledger_store
from skldp.accounting.ledger._lock_file import EMPTY, locked
from skldp.accounting.ledger._records import TABLES
from skldp.exceptions import LedgerError

forked = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
ASK_ALL = RegressionQuery("linear", [1.0], 0.0, (0.0, 1.0), 0.3)


def recorded(place):
    return run_at(
        place,
        """SELECT q.key, p.identity, a.output FROM answers a JOIN releases r USING (release)
           JOIN queries q USING (query) JOIN people p USING (person)""",
    )


def kill_once(path, chance):
    """Start a process, kill it at a random moment after its first answer, and return what it wrote."""
    child, output = start(answer_until_killed, path)
    with output:
        first = output.readline()
        time.sleep(chance.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
        # The kill may cut the last line short: only whole lines were handed out.
        lines = (first + output.read()).rpartition("\n")[0].splitlines()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return lines


def check_lock_file(path):
    """The kernel has freed the lock, and the lock file does not lead."""
    with locked(str(path), "", write=True, seconds=0) as lock_file:
        remembered = lock_file.read().head
    chains = dict(run_at(path, "SELECT release, chain FROM releases"))
    assert max(chains, default=0) - 1 <= remembered.release <= max(chains, default=0)
    assert chains.get(remembered.release, EMPTY.chain) == remembered.chain


def run_kills(path, n_kills):
    PrivacyLedger(1000.0, bounds=(-1, 1), path=path, rule="basic").close()
    chance = random.Random(0)
    n_written = 0
    for _ in range(n_kills):
        written = kill_once(path, chance)
        stored = {f"{key} {person} {output}" for key, person, output in recorded(path)}
        assert [line for line in written if line not in stored] == []
        n_written += len(written)
        if not isinstance(path, str):
            check_lock_file(path)
    assert ledger_report(path, verify=True)["verification"]["ok"]
    return n_written


@pytest.mark.slow
@forked
def test_every_written_answer_is_recorded_after_a_kill(place):
    assert run_kills(place, 10) >= 10


@pytest.mark.statistical
@forked
def test_every_written_answer_is_recorded_after_200_kills(place):
    assert run_kills(place, 200) >= 200


def run_processes(path, rule, n_queries, n_people, epsilon):
    """Four processes ask the same people, and back the file up meanwhile.

    What each was handed must be recorded, once, and within the budget.
    """
    PrivacyLedger(1.0, bounds=(-1, 1), path=path, rule=rule).close()
    children = [start(answer_many, path, seed, n_queries, n_people, epsilon) for seed in range(4)]
    written = []
    for child, output in children:
        with output:
            written += output.read().splitlines()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stored = recorded(path)
    pairs = [(key, person) for key, person, _ in stored]
    assert len(set(pairs)) == len(pairs)
    assert {f"{key} {person} {output}" for key, person, output in stored} == set(written)
    report = ledger_report(path, verify=True)
    assert report["verification"]["problems"] == ()
    assert report["people"] == n_people
    assert report["refused"] > 0
    assert report["loss_quantiles"]["1"] <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "epsilon"), [("basic", 0.2), ("bayesian", 0.5)])
@forked
def test_four_processes_never_overspend(place, rule, epsilon):
    run_processes(place, rule, n_queries=8, n_people=5, epsilon=epsilon)


@pytest.mark.statistical
@pytest.mark.parametrize(("rule", "epsilon"), [("basic", 0.1), ("bayesian", 0.5)])
@forked
def test_four_processes_of_500_queries_never_overspend(place, rule, epsilon):
    run_processes(place, rule, n_queries=500, n_people=50, epsilon=epsilon)


def run_threads(ledger, n_queries, n_people):
    """The same with four threads on one ledger."""
    handed_out, failures = [], []

    def ask(seed):
        chance = np.random.default_rng(seed)
        try:
            for number in chance.integers(4 * n_queries, size=n_queries):
                query = query_number(int(number), epsilon=0.1)
                answers = ledger.answer(query, range(n_people), lambda rows: chance.integers(2, size=len(rows)))
                handed_out.extend((query.key, p, int(o)) for p, o in enumerate(answers.outputs) if o >= 0)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    entries = [(p, entry) for p in range(n_people) for entry in ledger.history(p)]
    assert len({(p, entry["query"].key) for p, entry in entries}) == len(entries)
    assert set(handed_out) == {(entry["query"].key, p, entry["output"]) for p, entry in entries}
    assert ledger.verify().problems == ()
    assert ledger.realized_loss(range(n_people)).max() <= ledger.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("in_memory", [True, False])
def test_threads_never_overspend(place, in_memory):
    path = ":memory:" if in_memory else place
    run_threads(PrivacyLedger(0.5, bounds=(-1, 1), path=path), n_queries=12, n_people=6)


@pytest.mark.statistical
@pytest.mark.parametrize("in_memory", [True, False])
def test_threads_of_500_queries_never_overspend(tmp_path, in_memory):
    path = ":memory:" if in_memory else tmp_path / "a.ledger"
    run_threads(PrivacyLedger(1.0, bounds=(-1, 1), path=path, rule="basic"), n_queries=500, n_people=50)


class FailingConnection:
    """A connection whose statements of one kind fail."""

    def __init__(self, connection, statement):
        self._connection = connection
        self._statement = statement
        self.close = connection.close

    def execute(self, sql, *arguments):
        if sql.startswith(self._statement):
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(sql, *arguments)

    def executemany(self, sql, *arguments):
        if sql.startswith(self._statement):
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.executemany(sql, *arguments)


@contextmanager
def connections(monkeypatch, change):
    """Within the block, every new connection is changed before it is used."""
    connect = sqlite_store._connect
    with monkeypatch.context() as patched:
        patched.setattr(sqlite_store, "_connect", lambda path, **options: change(connect(path, **options)))
        yield


@pytest.mark.parametrize(
    "what",
    [
        "BEGIN",
        "SELECT",
        "COMMIT",
        *(f"INSERT INTO {table}" for table in TABLES if table not in ("settings", "kept", "erasures")),
    ],
)
def test_nothing_is_handed_out_when_the_disk_fails(tmp_path, monkeypatch, what):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=path)
    with (
        connections(monkeypatch, lambda connection: FailingConnection(connection, what)),
        pytest.raises(LedgerError, match="nothing was released: OperationalError"),
    ):
        ledger.answer(ASK_ALL, [1, 2], lambda rows: [1, 0])
    assert recorded(path) == []
    assert ledger.remaining([1, 2]).tolist() == [1.0, 1.0]
    assert ledger.answer(ASK_ALL, [1, 2], lambda rows: [1, 0]).outputs.tolist() == [1, 0]


@pytest.mark.parametrize("what", ["INSERT INTO settings", "COMMIT"])
def test_a_failed_commit_declares_nothing(tmp_path, monkeypatch, what):
    """The ledger does not take settings of its own that were not written for damage of the file."""
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(1.0, path=path)
    with connections(monkeypatch, lambda connection: FailingConnection(connection, what)):
        with pytest.raises(LedgerError, match="nothing was released: OperationalError"):
            ledger.declare(bounds=(0, 1))
        with pytest.raises(LedgerError, match="nothing was released: OperationalError"):
            ledger.answer(ASK_ALL, [1], lambda rows: [1], declare={"bounds": (0, 1)})
    assert ledger.bounds is None
    PrivacyLedger.open(path).declare(bounds=(0, 2))
    with pytest.raises(LedgerError, match=r"bounds of a ledger must not change.*\(0.0, 2.0\)"):
        ledger.answer(ASK_ALL, [1], lambda rows: [1], declare={"bounds": (0, 1)})
    assert ledger.bounds == (0.0, 2.0)
    assert ledger.answer(ASK_ALL, [1], lambda rows: [1]).outputs.tolist() == [1]


def limited(connection):
    """A connection that may not make its file larger."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    return connection


@pytest.mark.parametrize("in_memory", [True, False])
def test_nothing_is_handed_out_when_the_disk_is_full(tmp_path, monkeypatch, in_memory):
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=":memory:" if in_memory else tmp_path / "a.ledger")
    ledger.answer(ASK_ALL, [-1], lambda rows: [1])
    if in_memory:
        limited(ledger._state.store._memory)
    with (
        connections(monkeypatch, limited),
        pytest.raises(LedgerError, match="nothing was released: SQLITE_FULL"),
    ):
        ledger.answer(ASK_ALL, range(5000), lambda rows: np.ones(len(rows), dtype=int))
    assert ledger.realized_loss(range(5000)).max() == 0.0
    assert ledger.realized_loss([-1])[0] == pytest.approx(0.3)
    if in_memory:
        ledger._state.store._memory.execute("PRAGMA max_page_count = 100000")
    assert ledger.answer(ASK_ALL, range(5000), lambda rows: np.ones(len(rows), dtype=int)).accepted.all()
    assert ledger.verify().ok


@forked
def test_a_fork_waits_for_the_transactions_of_other_threads(place):
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=place)
    drawing, events = threading.Event(), []

    def draw(rows):
        drawing.set()
        time.sleep(0.2)
        events.append("drawn")
        return [1]

    thread = threading.Thread(target=ledger.answer, args=(ASK_ALL, ["a"], draw))
    thread.start()
    drawing.wait()
    child, output = start(
        lambda write: write(f"{events} {ledger.answer(ASK_ALL, ['a', 'b'], lambda rows: [0]).outputs}")
    )
    thread.join()
    with output:
        assert output.read() == "['drawn'] [1 0]"
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.verify().n_answers == 2


@pytest.mark.slow
@forked
def test_a_fork_waits_for_ledgers_that_are_made_in_other_threads(tmp_path):
    """SQLite's own locks, held by a thread that the child does not have, would be held for ever."""
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=tmp_path / "a.ledger")
    done = threading.Event()

    def make(thread):
        number = 0
        while not done.is_set():
            number += 1
            PrivacyLedger(1.0, path=tmp_path / f"{thread} {number}.ledger")

    def use(write):
        signal.alarm(20)
        write(str(ledger.realized_loss(["a"])))

    threads = [threading.Thread(target=make, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            child, output = start(use)
            with output:
                assert output.read() == "[0.]"
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


@forked
def test_nothing_is_handed_out_when_the_system_refuses_to_write(tmp_path):
    """No stand-in: the process may not make files larger, so that the system itself fails the writes."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=path)
    ledger.answer(ASK_ALL, [-1], lambda rows: [1])

    def ask_with_a_limit(write):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, resource.RLIM_INFINITY))
        with pytest.raises(LedgerError, match="nothing was released"):
            write(str(ledger.answer(ASK_ALL, range(3000), lambda rows: np.ones(len(rows), dtype=int))))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        write(str(ledger.answer(ASK_ALL, [-2], lambda rows: [0]).outputs))

    child, output = start(ask_with_a_limit)
    with output:
        assert output.read() == "[0]"
    assert os.waitpid(child, 0)[1] == 0
    assert sorted(person for _, person, _ in recorded(path)) == ["-1", "-2"]
    assert ledger.verify().ok


def test_an_interrupted_write_is_undone(tmp_path, monkeypatch):
    """The files as they lie on the disk in the middle of a transaction, which is what a crash leaves."""
    path, crashed = tmp_path / "a.ledger", tmp_path / "crashed.ledger"
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=path)
    ledger.answer(ASK_ALL, [-1], lambda rows: [1])

    class CrashingConnection(FailingConnection):
        def execute(self, sql, *arguments):
            if sql == "COMMIT":
                for end in ("", "-journal", ".lock"):
                    shutil.copy(f"{path}{end}", f"{crashed}{end}")
            return super().execute(sql, *arguments)

    def change(connection):
        connection.execute("PRAGMA cache_size = 1")
        return CrashingConnection(connection, "COMMIT")

    with connections(monkeypatch, change), pytest.raises(LedgerError, match="OperationalError"):
        ledger.answer(ASK_ALL, range(2000), lambda rows: np.ones(len(rows), dtype=int))
    assert crashed.stat().st_size > path.stat().st_size
    with pytest.raises(LedgerError, match="contains an interrupted write"):
        ledger_report(crashed)
    again = PrivacyLedger.open(crashed)
    assert again.verify().ok
    assert again.remaining([-1, 5]).round(6).tolist() == [0.7, 1.0]


def test_a_commit_waits_for_the_disk(tmp_path):
    """A kill leaves the system's caches whole; against a power cut there are only these settings."""
    with PrivacyLedger(1.0, path=tmp_path / "a.ledger")._state.store.transaction(write=True) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_draw_that_fails_costs_nothing(place):
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=place)

    def fail(rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.answer(ASK_ALL, [1], fail)
    for wrong in ([2], [-1], [0.5], [0, 1], 1):
        with pytest.raises(ValueError, match="draw must return 1 outputs from 0 to 1"):
            ledger.answer(ASK_ALL, [1], lambda rows, wrong=wrong: wrong)
    assert recorded(place) == []


def test_a_ledger_that_was_removed_or_replaced_hands_out_nothing(tmp_path):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=path)
    path.rename(tmp_path / "b.ledger")
    with pytest.raises(LedgerError, match="removed or replaced"):
        ledger.answer(ASK_ALL, [1], lambda rows: [1])
    with pytest.raises(LedgerError, match=r"is missing, but .*a.ledger.lock' records 0 releases"):
        PrivacyLedger(1.0, bounds=(0, 1), path=path)
    (tmp_path / "a.ledger.lock").unlink()
    PrivacyLedger(1.0, bounds=(0, 1), path=path).close()
    with pytest.raises(LedgerError, match="removed or replaced"):
        ledger.answer(ASK_ALL, [1], lambda rows: [1])


def test_somebody_who_never_lets_go_is_not_waited_for_forever(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_store, "BUSY_SECONDS", 0.05)
    ledger = PrivacyLedger(1.0, bounds=(0, 1), path=tmp_path / "a.ledger")
    other = sqlite3.connect(tmp_path / "a.ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="nothing was released: SQLITE_BUSY"):
        ledger.answer(ASK_ALL, [1], lambda rows: [1])
    other.close()
    with (
        PrivacyLedger.open(tmp_path / "a.ledger")._state.store.transaction(write=True),
        pytest.raises(LedgerError, match=r"is in use: .* nothing was released"),
    ):
        ledger.answer(ASK_ALL, [1], lambda rows: [1])
    assert ledger.answer(ASK_ALL, [1], lambda rows: [1]).accepted.all()


@forked
def test_a_fork_opens_a_file_anew_and_refuses_one_in_memory(place):
    on_disk = PrivacyLedger(1.0, bounds=(0, 1), path=place)
    in_memory = PrivacyLedger(1.0, bounds=(0, 1))
    on_disk.answer(ASK_ALL, ["a"], lambda rows: [1])

    def use_both(write):
        write(f"{on_disk.answer(ASK_ALL, ['a', 'b'], lambda rows: [0]).outputs.tolist()}")
        with pytest.raises(LedgerError, match="after a fork"):
            in_memory.answer(ASK_ALL, ["a"], lambda rows: [1])

    child, output = start(use_both)
    with output:
        assert output.read() == "[1, 0]"
    assert os.waitpid(child, 0)[1] == 0
    assert on_disk.answer(ASK_ALL, ["b"], lambda rows: [1]).outputs.tolist() == [0]
