"""A ledger's file cannot be fooled: not by lost locks, by copies and links, by another folder, or by a fork."""

import gc
import itertools
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from accounting.ledgers import linear, new_ledger, ones
from ledger_children import start

from skldp import PrivacyLedger
from skldp.accounting import ledger_report
from skldp.accounting.ledger import _ledger_answers as ledger_answers
from skldp.accounting.ledger import _lock_file as lock_file
from skldp.accounting.ledger import _sqlite_store as sqlite_store
from skldp.accounting.ledger import _store as ledger_store
from skldp.exceptions import LedgerError

forked = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


def in_a_child(work):
    """What a forked process writes; it must end well."""
    child, output = start(work)
    with output:
        written = output.read()
    assert os.waitpid(child, 0)[1] == 0
    return written


@forked
@pytest.mark.parametrize("reader", [shutil.copy, lambda path, _: path.read_bytes()])
def test_a_lock_that_this_process_drops_still_keeps_others_out(tmp_path, reader):
    """Closing any descriptor of a file drops all POSIX locks that the process holds on it, SQLite's among them."""
    path, dropped = tmp_path / "a.ledger", tmp_path / "dropped"
    ledger = new_ledger(path)
    ledger.answer(linear(3, 0.001), ["a"], ones)

    def ask_too(write):
        other = PrivacyLedger.open(path)
        write("open\n")
        while not dropped.exists():
            time.sleep(0.01)
        write(f"{other.answer(linear(2, 0.6), ['a'], ones).outputs.tolist()}\n")

    def draw(positions):
        reader(path, tmp_path / "backup")
        dropped.touch()
        # Long enough for whoever is not kept out.
        time.sleep(0.5)
        return ones(positions)

    child, output = start(ask_too)
    with output:
        assert output.readline() == "open\n"
        assert ledger.answer(linear(1, 0.6), ["a"], draw).outputs.tolist() == [1]
        assert output.readline() == "[-1]\n"
    assert os.waitpid(child, 0)[1] == 0
    assert ledger_report(path, verify=True)["loss_quantiles"]["1"] <= 1.0


@pytest.mark.parametrize("how", ["in place", "replaced", "in place, between openings", "replaced, between openings"])
def test_an_older_backup_is_noticed(tmp_path, how):
    path, backup = tmp_path / "a.ledger", tmp_path / "backup"
    ledger = new_ledger(path)
    ledger.answer(linear(1, 0.6), ["a"], ones)
    shutil.copy(path, backup)
    ledger.answer(linear(2, 0.3), ["a"], ones)
    if "openings" in how:
        ledger.close()
    if how.startswith("replaced"):
        backup.replace(path)
    else:
        shutil.copy(backup, path)
    with pytest.raises(LedgerError, match=r"is older than its last known state|removed or replaced"):
        (new_ledger(path) if "openings" in how else ledger).answer(linear(3, 0.3), ["a"], ones)


def test_an_older_backup_that_has_grown_again_is_noticed(tmp_path):
    """As many releases as before, or more, but others: the answers in between were lost."""
    path, backup = tmp_path / "a.ledger", tmp_path / "elsewhere.ledger"
    ledger = new_ledger(path)
    ledger.answer(linear(1), ["a"], ones)
    for end in ("", ".lock"):
        if os.path.exists(f"{path}{end}"):
            shutil.copy(f"{path}{end}", f"{backup}{end}")
    ledger.answer(linear(2), ["a"], ones)
    elsewhere = new_ledger(backup)
    for slope in (3, 4):
        elsewhere.answer(linear(slope), ["b"], ones)
    elsewhere.close()
    shutil.copy(backup, path)
    for handle in (lambda: ledger, lambda: new_ledger(path)):
        with pytest.raises(LedgerError, match="is older than its last known state"):
            handle().answer(linear(5), ["a"], ones)


def test_another_ledger_over_the_open_file_is_noticed(tmp_path):
    path, other = tmp_path / "a.ledger", tmp_path / "b.ledger"
    ledger = new_ledger(path)
    ledger.answer(linear(1), ["a"], ones)
    new_ledger(other, epsilon=0.5).answer(linear(1), ["b"], ones)
    shutil.copy(other, path)
    with pytest.raises(LedgerError, match="is not the one that was"):
        ledger.answer(linear(2), ["a"], ones)
    with pytest.raises(LedgerError, match="is not the one that was"):
        ledger.realized_loss(["a"])
    with pytest.raises(LedgerError, match="is not the one that was"):
        PrivacyLedger.open(path)


@forked
def test_a_forked_child_does_not_adopt_another_ledger(tmp_path):
    path = tmp_path / "a.ledger"
    ledger = new_ledger(path, epsilon=5.0)

    def ask(write):
        with pytest.raises(LedgerError, match=r"is not the one that was|removed or replaced"):
            write(str(ledger.answer(linear(1, 5.0), ["a"], ones).outputs))
        with pytest.raises(LedgerError, match=r"is not the one that was|removed or replaced"):
            write(str(ledger.realized_loss(["a"])))

    path.rename(tmp_path / "moved.ledger")
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
    for old in tmp_path.glob("a.ledger*"):
        old.unlink()
    new_ledger(path, epsilon=0.5).close()
    assert in_a_child(ask) == ""
    assert ledger_report(path)["answers"] == 0


@pytest.mark.parametrize("read_only", [True, False])
def test_links_are_refused(tmp_path, read_only):
    path = tmp_path / "a.ledger"
    with new_ledger(path) as ledger:
        ledger.answer(linear(1), ["a"], ones)
        symbolic = tmp_path / "s.ledger"
        symbolic.symlink_to(path)
        with pytest.raises(LedgerError, match=r"must not be a symbolic link\. Use the path of the file"):
            PrivacyLedger.open(symbolic, read_only=read_only)
        hard = tmp_path / "h.ledger"
        os.link(path, hard)
        for name in (path, hard):
            with pytest.raises(LedgerError, match=r"got 2 hard links"):
                PrivacyLedger.open(name, read_only=read_only)
        with pytest.raises(LedgerError, match=r"got 2 hard links"):
            ledger.answer(linear(2), ["a"], ones)
        hard.unlink()
        assert ledger.answer(linear(2), ["a"], ones).accepted.all()


def test_a_link_in_place_of_the_lock_file_is_refused(tmp_path):
    new_ledger(tmp_path / "a.ledger").close()
    lock = tmp_path / "a.ledger.lock"
    lock.symlink_to(lock.rename(tmp_path / "elsewhere"))
    with pytest.raises(LedgerError, match="could not be locked"):
        PrivacyLedger.open(tmp_path / "a.ledger")


@forked
def test_a_relative_path_means_the_same_file_everywhere(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = new_ledger("a.ledger")
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.answer(linear(1), ["a"], ones)
    content = pickle.dumps(ledger)
    assert ledger.path == str(tmp_path.resolve() / "a.ledger")
    ledger.close()
    again = pickle.loads(content)
    assert again.path == ledger.path
    assert [len(again.history("a")), os.listdir(tmp_path / "elsewhere")] == [1, []]


USES = {
    "answer": lambda ledger: ledger.answer(linear(2), ["a"], ones),
    "realized_loss": lambda ledger: ledger.realized_loss(["a"]),
    "remaining": lambda ledger: ledger.remaining(["a"]),
    "history": lambda ledger: ledger.history("a"),
    "summary": lambda ledger: ledger.summary(),
    "verify": lambda ledger: ledger.verify(),
    "report": lambda ledger: ledger.report(verify=True),
    "was_asked": lambda ledger: ledger.was_asked(linear(1)),
    "declare": lambda ledger: ledger.declare(bounds=(-1, 1), features=["x"]),
    "head": lambda ledger: ledger.head,
    "erase": lambda ledger: ledger.erase("a"),
    "__enter__": lambda ledger: ledger.__enter__(),
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_closed_ledger_says_so(place, in_memory, name):
    path = ":memory:" if in_memory else place
    with new_ledger(path) as ledger:
        ledger.answer(linear(1), ["a"], ones)
        ledger.declare(features=["x"])
        USES["history"](ledger)
    with pytest.raises(LedgerError, match="is closed"):
        USES[name](ledger)
    ledger.close()
    assert "PrivacyLedger(1.0" in repr(ledger)


def test_a_ledger_that_is_asked_about_while_it_is_drawn_from(place):
    """A draw that uses its own ledger would wait for itself."""
    ledger = new_ledger(place)
    with pytest.raises(LedgerError, match="must not be used by `draw`"):
        ledger.answer(linear(1), ["a"], lambda rows: ledger.remaining(["a"]))
    assert ledger.answer(linear(1), ["a"], ones).accepted.all()


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("use", ["answer", "realized_loss", "history", "was_asked"])
def test_a_draw_that_goes_on_after_it_was_refused_leaves_the_ledger_whole(place, in_memory, use):
    ledger = new_ledger(":memory:" if in_memory else place)
    ledger.answer(linear(1), ["a", "b"], ones)
    uses = {
        "answer": lambda: ledger.answer(linear(1), ["a"], ones),
        "realized_loss": lambda: ledger.realized_loss(["a"]),
        "history": lambda: ledger.history("a"),
        "was_asked": lambda: ledger.was_asked(linear(1)),
    }

    def draw(rows):
        with pytest.raises(LedgerError, match="must not be used by `draw`"):
            uses[use]()
        return ones(rows)

    assert ledger.answer(linear(2), ["a", "b"], draw).fresh.all()
    assert ledger.verify().ok
    assert [len(ledger.history(person)) for person in "ab"] == [2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("in_memory", [True, False])
def test_an_interrupt_at_any_line_leaves_the_ledger_usable(tmp_path, monkeypatch, in_memory):
    """Of what was committed nothing is drawn again, and no lock is left to nobody."""
    monkeypatch.setattr(ledger_store, "BUSY_SECONDS", 0.2)
    traced = (
        (sqlite_store.__file__, ledger_store.__file__, ledger_answers.__file__) if in_memory else (lock_file.__file__,)
    )

    drawn = []

    def draw(rows):
        drawn.append(rows)
        return ones(rows)

    def interrupted(ledger, line):
        left = [line]

        def trace(frame, event, _):
            if frame.f_code.co_filename not in traced:
                return None
            if event == "line":
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            ledger.answer(linear(2), ["a", "b"], draw)
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    for line in itertools.count(1):
        drawn.clear()
        path = ":memory:" if in_memory else tmp_path / f"{line}.ledger"
        ledger = new_ledger(path)
        ledger.answer(linear(1), ["a"], ones)
        if not interrupted(ledger, line):
            break
        try:
            committed = ledger.was_asked(linear(2))
        except LedgerError:
            # What lets go can be interrupted as well, and then refuses.
            assert drawn
            continue
        again = ledger.answer(linear(2), ["a", "b"], lambda rows: np.zeros(len(rows), dtype=int))
        assert again.outputs.tolist() == ([1, 1] if committed else [0, 0])
        assert not (again.fresh.any() and committed)
        assert ledger.verify().ok
        ledger.close()
    assert line > 20


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", None)])
def test_a_lock_file_that_is_no_file_is_refused(tmp_path, make, read_only):
    path = tmp_path / "a.ledger"
    new_ledger(path).answer(linear(1), ["a"], ones)
    os.unlink(lock_file.lock_file_of(str(path)))
    make(lock_file.lock_file_of(str(path)))
    with pytest.raises(LedgerError):
        PrivacyLedger.open(path, read_only=read_only)


def test_a_lock_file_without_room_for_an_entry_stays_empty(tmp_path, monkeypatch):
    path = tmp_path / "a.ledger"
    ledger = new_ledger(path)
    os.truncate(lock_file.lock_file_of(str(path)), 0)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:30]))
    with pytest.raises(LedgerError, match="nothing was returned: No space"):
        ledger.answer(linear(1), ["a"], ones)
    monkeypatch.undo()
    assert not PrivacyLedger.open(path).answer(linear(1), ["a"], ones).fresh.any()


@forked
def test_a_child_that_is_forked_by_a_draw_neither_commits_nor_undoes(place):
    ledger = new_ledger(place)
    children = []

    def draw(positions):
        child, output = start(lambda write: children.append(write), *())
        with output:
            output.read()
        children.append(os.waitpid(child, 0)[1])
        return ones(positions)

    assert ledger.answer(linear(1), ["a"], draw).accepted.all()
    assert children == [0]

    def returns_in_the_child(write):
        def fork_and_draw(positions):
            if os.fork() == 0:
                return ones(positions)
            time.sleep(0.1)
            return [0] * len(positions)

        parent = os.getpid()
        try:
            outputs = ledger.answer(linear(2), ["a"], fork_and_draw).outputs.tolist()
            write(f"{outputs}{os.getpid() == parent}")
        except LedgerError as error:
            write("refused" if "fork" in str(error) and os.getpid() != parent else str(error))
            os._exit(0)
        os.wait()

    assert in_a_child(returns_in_the_child) == "refused[0]True"
    assert ledger.verify().ok
    assert [entry["output"] for entry in ledger.history("a")] == [1, 0]


@forked
def test_a_reader_waits_for_the_writer_whose_lock_was_dropped(tmp_path):
    path, dropped = tmp_path / "a.ledger", tmp_path / "dropped"
    ledger = new_ledger(path)

    def read(write):
        with PrivacyLedger.open(path) as other:
            write("open\n")
            while not dropped.exists():
                time.sleep(0.01)
            write(f"{other.realized_loss(['a'])[0]:.1f}\n")

    def draw(positions):
        shutil.copy(path, tmp_path / "backup")
        dropped.touch()
        time.sleep(0.3)
        return ones(positions)

    child, output = start(read)
    with output:
        assert output.readline() == "open\n"
        ledger.answer(linear(1, 0.6), ["a"], draw)
        assert output.readline() == "0.6\n"
    assert os.waitpid(child, 0)[1] == 0


def test_a_backup_without_a_setting_is_noticed(tmp_path):
    path, backup = tmp_path / "a.ledger", tmp_path / "backup"
    ledger = PrivacyLedger(1.0, path=path)
    shutil.copy(path, backup)
    ledger.declare(bounds=(-1, 1))
    shutil.copy(backup, path)
    with pytest.raises(LedgerError, match="a setting has changed"):
        ledger.answer(linear(1), ["a"], ones)


def test_a_file_system_whose_locks_exclude_nobody_is_refused(tmp_path, monkeypatch):
    """Some systems make such a lock of POSIX ones, which a process cannot be kept out by."""
    fcntl = pytest.importorskip("fcntl")

    def posix_lock(descriptor, *, exclusive):
        fcntl.lockf(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)

    monkeypatch.setattr(lock_file, "_try_lock", posix_lock)
    with pytest.raises(LedgerError, match="without working locks"):
        new_ledger(tmp_path / "a.ledger")


def test_whoever_waited_for_a_lock_file_that_was_removed_takes_the_new_one(tmp_path):
    path, lock = tmp_path / "a.ledger", tmp_path / "a.ledger.lock"
    ledger = new_ledger(path)
    answered = []
    waiting = threading.Thread(target=lambda: answered.append(ledger.answer(linear(1), ["a"], ones)))
    with lock_file.locked(str(path), "", write=True, seconds=1):
        waiting.start()
        time.sleep(0.1)
        lock.unlink()
        lock.touch()
    with lock_file.locked(str(path), "", write=True, seconds=1):
        time.sleep(0.1)
        assert answered == []
    waiting.join()
    assert answered[0].accepted.all()


def test_what_cannot_be_remembered_is_not_handed_out(tmp_path, monkeypatch):
    ledger = new_ledger(tmp_path / "a.ledger")

    def fail(self, entry):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(lock_file.LockFile, "write", fail)
        with pytest.raises(LedgerError, match=r"is recorded in .* nothing was returned: No space left"):
            ledger.answer(linear(1), ["a"], ones)
    assert ledger.answer(linear(1), ["a"], lambda rows: []).outputs.tolist() == [1]


@forked
@pytest.mark.parametrize("step", ["open", "rename", "unlink"])
def test_a_creation_that_is_killed_can_be_begun_again(tmp_path, monkeypatch, step):
    path = tmp_path / "a.ledger"
    whole = getattr(os, step)

    def die(*arguments, **options):
        if str(arguments[0]).endswith(".new"):
            if step == "open":
                whole(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*arguments, **options)

    def create(write):
        monkeypatch.setattr(os, step, die)
        new_ledger(path)

    child, output = start(create)
    output.close()
    os.waitpid(child, 0)
    assert not path.exists()
    with new_ledger(path) as ledger:
        assert ledger.answer(linear(1), ["a"], ones).accepted.all()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.ledger", "a.ledger.lock"]


@forked
def test_those_who_make_one_ledger_at_once_make_one(place):
    children = [start(lambda write: write(new_ledger(place)._state.token)) for _ in range(8)]
    tokens = set()
    for child, output in children:
        with output:
            tokens.add(output.read())
        assert os.waitpid(child, 0)[1] == 0
    assert tokens == {new_ledger(place)._state.token}


@pytest.mark.parametrize("in_memory", [True, False])
def test_no_connection_is_left_to_the_garbage_collector(tmp_path, monkeypatch, in_memory):
    """On Python 3.13 it complains; this holds on all."""
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: opened.append(connect(*a, **k)) or opened[-1])
    path = ":memory:" if in_memory else tmp_path / "a.ledger"
    ledger = new_ledger(path)
    for use in (name for name in USES if name != "__enter__"):
        USES[use](ledger)
    with pytest.raises(ZeroDivisionError):
        ledger.answer(linear(3), ["a"], lambda rows: 1 / 0)
    if not in_memory:
        for wrong in ({"epsilon": 2.0}, {"bounds": (0, 5)}):
            with pytest.raises(LedgerError):
                new_ledger(path, **wrong)
        pickle.loads(pickle.dumps(ledger)).verify()
        ledger_report(path, verify=True)
    del ledger
    gc.collect()
    assert len(opened) == 1 if in_memory else len(opened) > 20
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


@forked
def test_a_killed_process_leaves_its_lock_to_nobody(tmp_path, monkeypatch):
    """Not even to a child that it forked in the middle of a call, and that lives on."""
    monkeypatch.setattr(ledger_store, "BUSY_SECONDS", 2.0)
    path = tmp_path / "a.ledger"
    new_ledger(path).close()

    def ask_and_hang(write):
        def draw(positions):
            grandchild, output = start(lambda write: time.sleep(60))
            output.close()
            write(f"{grandchild}\n")
            time.sleep(60)

        PrivacyLedger.open(path).answer(linear(1), ["a"], draw)

    child, output = start(ask_and_hang)
    grandchild = int(output.readline())
    time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        with PrivacyLedger.open(path) as ledger:
            assert ledger.answer(linear(2), ["a"], ones).accepted.all()
            assert len(ledger.history("a")) == 1
    finally:
        os.kill(grandchild, signal.SIGKILL)
        output.close()


FORK_IN_THE_MIDDLE = """if True:
    import gc, os, sys
    from skldp.accounting.ledger import _ledger_answers as ledger_answers
    from skldp import PrivacyLedger
    from skldp.accounting._query import RegressionQuery
    from skldp.exceptions import LedgerError

    write_release = ledger_answers.write_release

    def fork_after_writing(connection, *arguments, **options):
        connection.execute("PRAGMA cache_size = 1")
        result = write_release(connection, *arguments, **options)
        assert os.path.getsize(sys.argv[1] + "-journal") > 0
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        return result

    ledger_answers.write_release = fork_after_writing
    ledger = PrivacyLedger(1.0, bounds=(-1, 1), path=sys.argv[1], rule="basic")
    parent = os.getpid()
    try:
        ledger.answer(RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.3), range(3000), lambda rows: [1] * len(rows))
    except LedgerError as error:
        assert os.getpid() != parent and "fork" in str(error)
    gc.collect()
    # The child would wait for its parent, and the parent waits for the child.
    assert os.getpid() != parent or len(ledger.history(7)) == 1
"""


@pytest.mark.slow
@forked
def test_a_child_of_a_half_written_call_ends_without_undoing_it(tmp_path):
    """The child ends as an interpreter does, with all that it frees; the journal is on the disk meanwhile."""
    path = tmp_path / "a.ledger"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    options = ["-W", "error", "-W", "ignore::DeprecationWarning"]
    ended = subprocess.run(
        [sys.executable, *options, "-c", FORK_IN_THE_MIDDLE, path], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    report = ledger_report(path, verify=True)
    assert (report["people"], report["verification"]["ok"]) == (3000, True)
