"""An account outlives what happens to a device: processes killed anywhere, forks, a full disk, files that are none."""

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from skldp.client import DeviceLedger, Field, Policy
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms import Column
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

POLICY = Policy("a survey of ages", (Field("age", Column(0.0, 100.0), Duchi(0.5).integer_law),))

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills and forks as POSIX has them")

# A process of its own, with one thread, forks: each child releases and hands out until it is killed.
KILLED = """
import os, random, signal, sys, time
from skldp.client import DeviceLedger, Policy

folder, kills = sys.argv[1], int(sys.argv[2])
policy, out = Policy.load(folder + "/policy.json"), folder + "/handed_out"
ledger = DeviceLedger(folder + "/mine", lifetime_epsilon=1e6)
chance = random.Random(0)

def release_for_ever():
    file = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        # One write of a report: whole or not at all.
        os.write(file, policy.release({"age": 41.5}, ledger=ledger))

open(out, "w").close()
for _ in range(kills):
    before = os.path.getsize(out)
    child = os.fork()
    if not child:
        try:
            release_for_ever()
        finally:
            os._exit(1)
    # Never before it has handed out one; then anywhere in the next ones.
    while os.path.getsize(out) == before:
        time.sleep(0.0005)
    time.sleep(chance.random() * 0.01)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
"""


@pytest.mark.slow
def test_a_hundred_kills_forget_nothing_and_hand_out_nothing_unrecorded(tmp_path):
    POLICY.save(tmp_path / "policy.json")
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "100"], check=True, timeout=240)
    reports = (tmp_path / "handed_out").read_bytes()
    handed_out = len(reports) // POLICY.n_bytes
    assert len(reports) == handed_out * POLICY.n_bytes
    ids = {POLICY.read(reports[i * POLICY.n_bytes : (i + 1) * POLICY.n_bytes]).report_id for i in range(handed_out)}
    assert len(ids) == handed_out >= 100
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=1e6)
    (charged,) = ledger.reports().values()
    # Each kill may lose one report that was paid for, and no payment.
    assert handed_out <= charged <= handed_out + 100
    assert charged * POLICY.epsilon <= ledger.spent <= charged * (POLICY.epsilon + 2**-40)
    with sqlite3.connect(tmp_path / "mine") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


AT_A_STEP = """
import os, signal, sqlite3, sys
from skldp.client import DeviceLedger, Policy

folder, step = sys.argv[1:]
policy = Policy.load(folder + "/policy.json")
ledger = DeviceLedger(folder + "/mine", lifetime_epsilon=10.0)
policy.release({"age": 41.5}, ledger=ledger)

def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

class Watched(sqlite3.Connection):
    def execute(self, statement, *arguments):
        if step == "before the commit" and statement == "COMMIT":
            killed()
        done = super().execute(statement, *arguments)
        if step == "after the commit" and statement == "COMMIT":
            killed()
        return done

connect = sqlite3.connect
sqlite3.connect = lambda *arguments, **more: connect(*arguments, **more, factory=Watched)
if step == "at the draw":
    os.urandom = killed
report = policy.release({"age": 41.5}, ledger=ledger)
if step == "after the draw":
    killed()
"""


@pytest.mark.parametrize(
    ("step", "charged"),
    [("before the commit", 1), ("after the commit", 2), ("at the draw", 2), ("after the draw", 2)],
)
def test_what_is_killed_at_a_step_was_charged_if_it_could_have_been_drawn(tmp_path, step, charged):
    POLICY.save(tmp_path / "policy.json")
    done = subprocess.run([sys.executable, "-c", AT_A_STEP, str(tmp_path), step], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=10.0)
    assert ledger.reports() == {POLICY.sha256: charged}
    assert ledger.spent >= charged * POLICY.epsilon
    # Who comes back is not locked out.
    POLICY.release({"age": 41.5}, ledger=ledger)
    assert ledger.reports() == {POLICY.sha256: charged + 1}


TOGETHER = """
import os, sys
from skldp.client import DeviceLedger, Policy
from skldp.exceptions import BudgetExhaustedError

folder = sys.argv[1]
policy = Policy.load(folder + "/policy.json")
ledger = DeviceLedger(folder + "/mine", lifetime_epsilon=10 * policy.epsilon + 1e-6)
policy.release({"age": 41.5}, ledger=ledger)
children = []
for name in "ab":
    child = os.fork()
    if not child:
        try:
            with open(f"{folder}/{name}", "wb") as file:
                while True:
                    file.write(policy.release({"age": 41.5}, ledger=ledger))
        except BudgetExhaustedError:
            os._exit(0)
        finally:
            os._exit(1)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
"""


def test_two_forks_share_one_limit_and_no_noise(tmp_path):
    POLICY.save(tmp_path / "policy.json")
    subprocess.run(
        [sys.executable, "-c", TOGETHER.replace("os._exit(0)", "file.close(); os._exit(0)"), str(tmp_path)],
        check=True,
        timeout=60,
    )
    reports = (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes()
    n = len(reports) // POLICY.n_bytes
    ids = {POLICY.read(reports[i * POLICY.n_bytes : (i + 1) * POLICY.n_bytes]).report_id for i in range(n)}
    assert len(ids) == n == 9
    assert DeviceLedger(tmp_path / "mine", lifetime_epsilon=1.0).reports() == {POLICY.sha256: 10}


FULL = """
import resource, signal, sys
from skldp.client import DeviceLedger, Policy
from skldp.exceptions import BudgetExhaustedError, LedgerError

folder = sys.argv[1]
policy = Policy.load(folder + "/policy.json")
ledger = DeviceLedger(folder + "/mine", lifetime_epsilon=10.0)
policy.release({"age": 41.5}, ledger=ledger)
# No file may grow or be made: as on a full disk.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
import os
os.urandom = lambda size: sys.exit("drawn without an account")
try:
    policy.release({"age": 41.5}, ledger=ledger)
except LedgerError as error:
    sys.exit(0 if "41.5" not in str(error) else "a value was shown")
sys.exit("released without an account")
"""


def test_a_full_disk_releases_nothing_and_forgets_nothing(tmp_path):
    POLICY.save(tmp_path / "policy.json")
    subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], check=True, timeout=60)
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=10.0)
    assert ledger.reports() == {POLICY.sha256: 1}
    POLICY.release({"age": 41.5}, ledger=ledger)


@pytest.mark.parametrize("kind", ["a folder", "another file", "in no folder", "read-only"])
def test_an_account_that_cannot_be_kept_releases_nothing(tmp_path, monkeypatch, kind):
    path = tmp_path / "mine"
    if kind == "a folder":
        path.mkdir()
    elif kind == "another file":
        path.write_bytes(b"a letter" * 1000)
    elif kind == "in no folder":
        path = tmp_path / "none" / "mine"
    else:
        POLICY.release({"age": 3}, ledger=DeviceLedger(path, lifetime_epsilon=10.0))
        # As of a file that may not be written, which an administrator may anyway.
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda p, **more: connect(f"file:{p}?mode=ro", uri=True, **more))
    monkeypatch.setattr(os, "urandom", lambda size: pytest.fail("drawn without an account"))
    with pytest.raises(LedgerError, match="must be a readable and writable file") as refusal:
        POLICY.release({"age": 41.5}, ledger=DeviceLedger(path, lifetime_epsilon=10.0))
    assert "41.5" not in str(refusal.value)


def test_a_cut_account_is_refused_and_forgets_nothing(tmp_path):
    """Each length down to 0: an empty account would admit all releases again."""
    path = tmp_path / "mine"
    ledger = DeviceLedger(path, lifetime_epsilon=1.0)
    ledger.charge("a digest", 1.0)
    account = path.read_bytes()
    for size in (0, 1, 99, 100, 511, 512, 4095, *range(4096, len(account), 2048), len(account) - 1):
        path.write_bytes(account[:size])
        for use in (lambda: ledger.spent, ledger.reports, lambda: ledger.charge("a digest", 1.0)):
            with pytest.raises(LedgerError, match="account"):
                use()
        assert path.read_bytes() == account[:size]
    path.write_bytes(account)
    assert ledger.spent == 1.0


def test_an_account_is_whole_as_soon_as_it_has_its_name(tmp_path, monkeypatch):
    """A process that is killed while it creates the account leaves no account that is refused."""
    made = []
    link = os.link
    monkeypatch.setattr(os, "link", lambda draft, path: (made.append(os.path.getsize(draft)), link(draft, path)))
    assert DeviceLedger(tmp_path / "mine", lifetime_epsilon=1.0).spent == 0.0
    assert made == [(tmp_path / "mine").stat().st_size]
    assert made[0] > 0


@pytest.mark.parametrize("name", [":memory:", "mine"])
def test_an_account_is_one_file_wherever_the_process_goes(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    ledger = DeviceLedger(name, lifetime_epsilon=1.5)
    ledger.charge("a digest", 1.0)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(BudgetExhaustedError):
        ledger.charge("a digest", 1.0)
    assert ledger.spent == 1.0


def test_an_account_is_its_owners_alone_from_the_beginning(tmp_path, monkeypatch):
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=1.5)
    connect, modes = sqlite3.connect, []

    def watched(path, **more):
        modes.append(os.stat(path).st_mode & 0o777)
        return connect(path, **more)

    monkeypatch.setattr(sqlite3, "connect", watched)
    before = os.umask(0)
    try:
        ledger.charge("a digest", 1.0)
        with ledger._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM spent")
            modes += [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()]
            assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "mine-journal"]
            connection.execute("ROLLBACK")
    finally:
        os.umask(before)
    assert set(modes) == {0o600}
    assert ledger.spent == 1.0


@pytest.mark.parametrize("tables", [[], ["spent (policy TEXT, units INTEGER, reports INTEGER)"]])
def test_another_database_is_no_account(tmp_path, tables):
    path = tmp_path / "mine"
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA user_version = 1;" + ";".join(f"CREATE TABLE {one}" for one in tables))
    connection.close()
    with pytest.raises(LedgerError, match="must be a whole account"):
        DeviceLedger(path, lifetime_epsilon=1.0).charge("a digest", 1.0)
