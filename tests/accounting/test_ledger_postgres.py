"""A ledger that many hosts ask with: conflicts, lost connections, killed servers, and who may do what."""

import os
import random
import secrets
import signal
import sys
import threading
import time

import pytest
from accounting.ledgers import linear, n_releases, new_ledger, ones
from ledger_children import answer_until_killed, start
from postgres_server import TENANTS, edit_as_no_program_should, run_at

from skldp import PrivacyLedger
from skldp.accounting import ledger_report
from skldp.accounting.ledger import _postgres_store as postgres_store
from skldp.accounting.ledger import _store as ledger_store
from skldp.accounting.ledger._state import LedgerState
from skldp.exceptions import LedgerError
from skldp.mechanisms import RandomizedResponse

forked = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


def cut_after(statement, place, left):
    """Break a ledger's connections, from the server's side, right after a statement, for each entry that is left."""
    execute = postgres_store._Statements.execute

    def execute_and_break(self, text, *arguments):
        result = execute(self, text, *arguments)
        if text.startswith(statement) and left:
            left.pop()
            (process,) = self._session.exec_driver_sql("SELECT pg_backend_pid()").one()
            run_at(place, f"SELECT pg_terminate_backend({process}, 5000)")
        return result

    return execute_and_break


@pytest.mark.parametrize("statement", ["SELECT name", "SELECT person", "INSERT INTO releases", "INSERT INTO salts"])
def test_a_connection_that_is_lost_in_a_call_is_made_again(postgres_url, monkeypatch, statement):
    ledger = new_ledger(postgres_url)
    ledger.answer(linear(1), ["a"], ones)
    monkeypatch.setattr(postgres_store._Statements, "execute", cut_after(statement, postgres_url, [1]))
    outputs = iter([[0], [1]])
    answers = ledger.answer(linear(2), ["b"], lambda rows: next(outputs))
    assert answers.fresh.all()
    # What was drawn and not committed was handed to nobody.
    assert ledger.history("b")[0]["output"] == answers.outputs[0]
    assert n_releases(postgres_url) == 2
    assert ledger.verify().ok


READINGS = {
    "realized_loss": lambda ledger: ledger.realized_loss(iter(["a", "b"])).round(6).tolist(),
    "history": lambda ledger: [entry["output"] for entry in ledger.history("a")],
    "would_answer": lambda ledger: ledger.would_answer(linear(2), iter(["a"])).accepted.tolist(),
    "was_asked": lambda ledger: ledger.was_asked(linear(1)),
    "head": lambda ledger: ledger.head,
    "summary": lambda ledger: len(ledger.summary()),
    "verify": lambda ledger: ledger.verify().ok,
    "report": lambda ledger: ledger.report(verify=True)["verification"]["ok"],
    "open": lambda ledger: PrivacyLedger.open(ledger.path, head=ledger.head).remaining(["a"]).round(6).tolist(),
}


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "statement"),
    [(name, "SELECT name") for name in READINGS]
    + [(name, "SELECT query, key") for name in ("verify", "report", "realized_loss", "history", "would_answer")],
)
def test_a_reading_whose_connection_is_lost_is_begun_again(postgres_url, monkeypatch, name, statement):
    """The server dies as well while nobody asks: neither an error, nor a problem of the record, nor half of the ids."""
    ledger = new_ledger(postgres_url)
    ledger.answer(linear(1), ["a"], ones)
    expected = READINGS[name](ledger)
    left = [1]
    monkeypatch.setattr(postgres_store._Statements, "execute", cut_after(statement, postgres_url, left))
    assert READINGS[name](ledger) == expected
    assert left == []


def test_what_takes_long_is_begun_again_as_well(monkeypatch):
    """The patience for a lost connection begins when it is lost: a verification may have taken an hour until then."""
    now, calls = [1e6], []
    monkeypatch.setattr(postgres_store.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(postgres_store.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    def lost(times, seconds):
        calls.append(now[0])
        now[0] += seconds
        if len(calls) <= times:
            raise ledger_store.ConflictError("the connection is lost")
        return "verified"

    assert postgres_store.PostgresStore.retry(None, lambda: lost(1, 3600.0)) == "verified"
    calls.clear()
    # A server that stays away is given up all the same.
    with pytest.raises(LedgerError, match="the connection is lost") as caught:
        postgres_store.PostgresStore.retry(None, lambda: lost(10**6, 0.0))
    assert not isinstance(caught.value, ledger_store.ConflictError)
    assert 30 < calls[-1] - calls[0] < 32


def test_a_commit_of_which_nobody_heard_is_handed_out_and_charged_once(postgres_url, monkeypatch):
    """The server commits, and the client never learns of it."""
    ledger = new_ledger(postgres_url)
    last_head, drawn, left = ledger_store.last_head, [], [1]

    def commit_and_break(connection):
        head = last_head(connection)
        if drawn and left:
            left.pop()
            session = connection._session
            session.connection.commit()
            raise postgres_store.ConflictError("the connection was lost")
        return head

    def draw(rows):
        drawn.append(rows)
        return ones(rows)

    monkeypatch.setattr(ledger_store, "last_head", commit_and_break)
    answers = ledger.answer(linear(1), ["a", "b"], draw)
    assert (answers.outputs.tolist(), answers.fresh.tolist()) == ([1, 1], [True, True])
    assert (len(drawn), n_releases(postgres_url)) == (1, 1)
    assert ledger.remaining(["a"]).round(6).tolist() == [0.7]


def test_an_interrupt_while_a_call_is_undone_leaves_no_half_of_it(postgres_url, monkeypatch):
    """Two interrupts in a row: the second one comes when the transaction of the first is rolled back."""
    from sqlalchemy.engine import Connection

    ledger = new_ledger(postgres_url)
    rollback, left = Connection.rollback, [1]

    def interrupted(self):
        if left:
            left.pop()
            raise KeyboardInterrupt
        rollback(self)

    def execute_and_interrupt(self, text, *arguments):
        if text.startswith("INSERT INTO salts"):
            monkeypatch.setattr(Connection, "rollback", interrupted)
            raise KeyboardInterrupt
        return execute(self, text, *arguments)

    execute = postgres_store._Statements.executemany
    with monkeypatch.context() as patched:
        patched.setattr(postgres_store._Statements, "executemany", execute_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            ledger.answer(linear(1), ["a"], ones)
    assert left == []
    assert n_releases(postgres_url) == 0
    assert ledger.answer(linear(1), ["a"], ones).fresh.all()
    assert ledger.verify().ok


def test_a_conflict_with_somebody_who_takes_no_lock_is_begun_again(postgres_url, monkeypatch):
    """The same release number, entered by another session in the middle of the call: the call comes after it."""
    ledger, other = new_ledger(postgres_url), new_ledger(postgres_url)
    first = []

    def draw(rows):
        if not first:
            first.append(rows)
            with monkeypatch.context() as patched:
                patched.setattr(other._state.store, "_space", other._state.store._space + 1)
                assert other.answer(linear(1), ["a"], ones).fresh.all()
        return ones(rows)

    assert ledger.answer(linear(2), ["b"], draw).fresh.all()
    assert n_releases(postgres_url) == 2
    assert ledger.verify().ok


def test_nobody_waits_for_a_search(postgres_url, monkeypatch):
    """While one call certifies losses, others ask; of the same people the call decides again with their answers."""
    ledger, other = new_ledger(postgres_url, rule="bayesian"), new_ledger(postgres_url, rule="bayesian")
    for slope in (1, 2, 3):
        ledger.answer(linear(slope), ["a"], ones)
    deciding, answered, decisions = threading.Event(), threading.Event(), []
    decided = LedgerState.decided

    def decide_slowly(self, undecided, *arguments):
        if self is ledger._state and undecided:
            decisions.append(undecided)
            deciding.set()
            # However slow the machine is, the others do not wait for this.
            assert answered.wait(60)
        return decided(self, undecided, *arguments)

    monkeypatch.setattr(LedgerState, "decided", decide_slowly)
    call = threading.Thread(target=lambda: ledger.answer(linear(4, 0.2), ["a"], ones))
    call.start()
    deciding.wait()
    for person in ("b", "a"):
        other.answer(linear(5, 1e-3), [person], ones)
    answered.set()
    call.join()
    assert len(decisions) == 2
    assert other.verify().ok
    # The answer that came in between uses the budget that the slow call would have taken.
    assert other.history("a")[-1]["query"].key == linear(5, 1e-3).key


def test_locks_are_taken_in_one_order(postgres_url):
    """Two calls about the same people, each in the other's order, again and again."""
    failures = []

    def ask(people, first):
        ledger = PrivacyLedger.open(postgres_url)
        try:
            for number in range(15):
                ledger.answer(linear(first + number, 1e-3), people, ones)
        except Exception as error:
            failures.append(error)

    new_ledger(postgres_url).close()
    people = [f"p{number}" for number in range(20)]
    threads = [threading.Thread(target=ask, args=(order, first)) for order, first in ((people, 1), (people[::-1], 100))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert n_releases(postgres_url) == 30
    assert PrivacyLedger.open(postgres_url).verify().ok


def test_somebody_who_holds_the_lock_for_ever_is_not_waited_for(postgres_url, monkeypatch):
    monkeypatch.setattr(ledger_store, "BUSY_SECONDS", 0.2)
    ledger, other = new_ledger(postgres_url), new_ledger(postgres_url)
    with (
        other._state.store.transaction(write=True),
        pytest.raises(LedgerError, match=r"is in use: .*nothing was released"),
    ):
        ledger.answer(linear(1), ["a"], ones)
    assert ledger.answer(linear(1), ["a"], ones).accepted.all()


TABLES = ("settings", "people", "queries", "releases", "answers", "kept", "salts")


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_changed_deleted_or_emptied(postgres_server, postgres_schema, table):
    """Triggers keep the owner from it."""
    import psycopg

    place = postgres_server.url(schema=postgres_schema)
    new_ledger(place).release(RandomizedResponse(0.5, 3), [[1]], ["a"], idempotency_key="nobody can guess it")
    column = {"settings": "name", "people": "identity", "queries": "key", "releases": "time"}.get(table, "release")
    with psycopg.connect(postgres_server.url("keeper", postgres_schema), autocommit=True) as connection:
        for statement in (
            f"UPDATE {table} SET {column} = {column}",
            f"DELETE FROM {table}",
            f"TRUNCATE {table} CASCADE",
        ):
            with pytest.raises(psycopg.Error, match="append-only"):
                connection.execute(statement)


def test_a_trigger_that_is_gone_is_told(postgres_url):
    ledger = new_ledger(postgres_url)
    ledger.answer(linear(1), ["a"], ones)
    run_at(postgres_url, "ALTER TABLE answers DISABLE TRIGGER answers_keeps_on_update")
    assert ledger.verify().problems == ("The trigger answers_keeps_on_update is missing or disabled.",)


def test_a_server_that_does_not_wait_for_its_disk_is_refused(postgres_url, monkeypatch):
    monkeypatch.setattr(
        postgres_store, "_WHERE", postgres_store._WHERE.replace("current_setting('fsync')", "CAST('off' AS TEXT)")
    )
    with pytest.raises(LedgerError, match="must run with fsync=on"):
        new_ledger(postgres_url)


def test_a_commit_waits_for_the_disk_whatever_the_role_says(postgres_server, postgres_schema):
    place = postgres_server.url(schema=postgres_schema)
    run_at(place, "ALTER ROLE keeper SET synchronous_commit = off")
    try:
        with new_ledger(place)._state.store.transaction(write=True) as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
            assert connection.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
    finally:
        run_at(place, "ALTER ROLE keeper RESET synchronous_commit")


@pytest.mark.parametrize(
    "place",
    ["postgresql://", "postgresql://keeper@host", "postgresql:no url", "postgresql+psycopg://keeper@/?host=x"],
)
def test_what_is_no_url_of_a_database_is_refused(postgres_server, place):
    with pytest.raises(ValueError, match="The URL of a ledger must be"):
        PrivacyLedger(1.0, path=place)


def test_a_password_is_neither_shown_nor_pickled(postgres_url):
    secret = secrets.token_hex(8)
    ledger = new_ledger(postgres_url.replace("keeper@", f"keeper:{secret}@"))
    ledger.answer(linear(1), ["a"], ones)
    assert ledger.verify().ok
    shown = [repr(ledger), ledger.path, str(ledger.__reduce__()), str(ledger.report())]
    with pytest.raises(LedgerError) as refused:
        new_ledger(postgres_url.replace("keeper@", f"nobody:{secret}@"))
    assert secret not in "".join([*shown, str(refused.value)])


def test_there_is_no_ledger_where_none_was_made(postgres_server, postgres_schema):
    place = postgres_server.url(schema=postgres_schema)
    for use in (PrivacyLedger.open, ledger_report):
        with pytest.raises(LedgerError, match="There is no ledger at"):
            use(place)
    for url in (postgres_server.url(schema="nowhere"), postgres_server.url(TENANTS[0], postgres_schema)):
        with pytest.raises(LedgerError, match="contains no schema"):
            new_ledger(url)


def test_a_record_that_went_back_is_noticed_by_whoever_has_it_open(postgres_url):
    ledger = new_ledger(postgres_url)
    for slope in (1, 2):
        ledger.answer(linear(slope), ["a"], ones)
    edit_as_no_program_should(
        postgres_url, *(f"DELETE FROM {table} WHERE release = 2" for table in ("answers", "salts", "releases"))
    )
    with pytest.raises(LedgerError, match="is older than its last known state"):
        ledger.answer(linear(3), ["a"], ones)


def test_an_error_says_nothing_of_people(postgres_url):
    """PostgreSQL quotes the row that it refuses."""
    ledger = new_ledger(postgres_url)
    ledger._state.store.retry = lambda work: work()
    run_at(postgres_url, "INSERT INTO people VALUES (5, '\"ann\"')")

    def use():
        with ledger._state.store.transaction(write=True) as connection:
            connection.execute("INSERT INTO people (person, identity) VALUES (6, '\"ann\"')")

    with pytest.raises(postgres_store.ConflictError, match="duplicate key") as refused:
        use()
    assert "ann" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def run_server_kills(server, place, n_kills):
    """Two processes ask while the server is killed and started again; whatever they were handed must be recorded."""
    new_ledger(place, epsilon=1000.0, bounds=(-1, 1)).close()
    chance = random.Random(0)
    children = [start(answer_until_killed, place) for _ in range(2)]
    try:
        for _ in range(n_kills):
            before = n_releases(place)
            until = time.monotonic() + 60
            while n_releases(place) < before + 2:
                assert time.monotonic() < until, "nobody asks any more"
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.05))
            server.kill()
            server.start()
    finally:
        for child, _ in children:
            os.kill(child, signal.SIGKILL)
        lines = []
        for child, output in children:
            with output:
                lines += output.read().rpartition("\n")[0].splitlines()
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    stored = run_at(
        place,
        """SELECT q.key, p.identity, a.output FROM answers a JOIN releases r USING (release)
           JOIN queries q USING (query) JOIN people p USING (person)""",
    )
    assert len({(key, person) for key, person, _ in stored}) == len(stored)
    assert set(lines) <= {f"{key} {person} {output}" for key, person, output in stored}
    assert ledger_report(place, verify=True)["verification"]["ok"]
    return len(lines)


@forked
@pytest.mark.slow
def test_what_was_handed_out_is_recorded_when_the_server_is_killed(postgres_server, postgres_url):
    assert run_server_kills(postgres_server, postgres_url, 3) > 0


@forked
@pytest.mark.statistical
def test_what_was_handed_out_is_recorded_when_the_server_is_killed_20_times(postgres_server, postgres_url):
    assert run_server_kills(postgres_server, postgres_url, 20) > 0


@pytest.mark.parametrize("name", ["sqlalchemy", "psycopg"])
def test_the_extra_is_named_where_it_is_missing(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "skldp\[postgres\]"'):
        PrivacyLedger(1.0, path="postgresql://keeper@host/database")
