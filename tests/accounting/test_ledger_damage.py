"""Whatever lies where a ledger should be: it is used rightly or refused with a LedgerError, and nothing else."""

import contextlib
import os
import random
import shutil
import sqlite3

import pytest
from accounting.ledgers import linear, ones

from skldp import PrivacyLedger
from skldp.accounting import ledger_report
from skldp.accounting.ledger._lock_file import lock_file_of
from skldp.accounting.ledger._records import SCHEMA_VERSION, TABLES, ChainLink
from skldp.accounting.ledger._sqlite_store import APPLICATION_ID
from skldp.accounting.ledger._store import seal
from skldp.exceptions import LedgerError

BASE = {"epsilon": 1.0, "bounds": (-1, 1), "rule": "basic"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger of some pages, and the losses in it."""
    path = tmp_path_factory.mktemp("whole") / "a.ledger"
    with PrivacyLedger(**BASE, path=path) as ledger:
        for slope, people in ((1, range(300)), (2, [-1, -2, 7]), (3, range(100, 200))):
            ledger.answer(linear(slope), people, ones)
        losses = ledger.realized_loss([7, -1, 150, 999])
    return path, losses


def use_all(path):
    """Everything that may be done with a ledger; what it says of losses, if it says anything."""
    report = ledger_report(path, verify=True)
    with PrivacyLedger(**BASE, path=path) as ledger:
        losses = ledger.realized_loss([7, -1, 150, 999])
        ledger.summary(), ledger.history(-1), ledger.verify()
        again = ledger.answer(linear(1), [7, 998], ones)
        ledger.answer(linear(4), [7, -1], ones)
    assert again.outputs.tolist() == [1, 1]
    return losses, report["verification"]


def copy_of(whole, folder):
    path = folder / "a.ledger"
    for source, target in ((whole, path), (lock_file_of(whole), lock_file_of(path))):
        shutil.copy(source, target)
    return path


def run_fuzz(whole, folder, n_cases, damage_some):
    """Damage copies; count those that are refused. Whatever is not must give the very losses."""
    source, expected = whole
    chance = random.Random(0)
    refused = 0
    for _ in range(n_cases):
        path = copy_of(source, folder)
        damage_some(path, chance)
        try:
            losses, verification = use_all(path)
        except LedgerError:
            refused += 1
        else:
            # What no check could notice must not matter: unused bytes, the free space of a page.
            assert losses.tolist() == expected.tolist()
            assert verification["n_answers"] == 403 or not verification["ok"]
        for left in folder.iterdir():
            left.unlink()
    return refused


def flip_bytes(path, chance):
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 1, 3, 30])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def overwrite_a_block(path, chance):
    content = bytearray(path.read_bytes())
    start, length = chance.randrange(len(content)), chance.choice([16, 512, 4096])
    other = chance.choice([bytes(length), chance.randbytes(length), bytes(content[:length])])
    content[start : start + length] = other[: len(content) - start]
    path.write_bytes(content)


def truncate(path, chance):
    os.truncate(path, chance.randrange(path.stat().st_size))


def damage_the_lock_file(path, chance):
    lock_file = path.with_name(path.name + ".lock")
    chance.choice([flip_bytes, truncate, overwrite_a_block])(lock_file, chance)


DAMAGES = (flip_bytes, overwrite_a_block, truncate, damage_the_lock_file)


@pytest.mark.slow
@pytest.mark.parametrize("damage_some", DAMAGES)
def test_damaged_files_are_refused_or_harmless(whole, tmp_path, damage_some):
    assert run_fuzz(whole, tmp_path, 40, damage_some) > 5


@pytest.mark.statistical
@pytest.mark.parametrize("damage_some", DAMAGES)
def test_damaged_files_are_refused_or_harmless_in_many_ways(whole, tmp_path, damage_some):
    assert run_fuzz(whole, tmp_path, 1500, damage_some) > 150


@pytest.mark.parametrize("table", TABLES)
def test_a_ledger_without_one_of_its_tables_is_refused(whole, tmp_path, table):
    path = copy_of(whole[0], tmp_path)
    connection = sqlite3.connect(path)
    connection.execute(f"DROP TABLE {table}" if table != "answers" else f"ALTER TABLE {table} RENAME TO other")
    connection.close()
    with pytest.raises(LedgerError):
        use_all(path)


VALUES = ("'x'", "-3", "2.5", "x'00ff'", "9223372036854775807")


@pytest.mark.few(12)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("table", TABLES)
def test_values_of_other_types_are_refused(whole, tmp_path, table, value):
    """Every column in turn, where it is smallest."""
    columns = sqlite3.connect(whole[0])
    names = [row[1] for row in columns.execute(f"PRAGMA table_info({table})")]
    columns.close()
    for name in names:
        path = copy_of(whole[0], tmp_path)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"DROP TRIGGER {table}_keeps_on_update")
        changed = False
        # SQLite keeps other types out of an integer key by itself.
        with contextlib.suppress(sqlite3.IntegrityError):
            changes = f"UPDATE OR IGNORE {table} SET {name} = {value} WHERE {name} = (SELECT MIN({name}) FROM {table})"
            changed = connection.execute(changes).rowcount > 0
        connection.close()
        if changed:
            os.truncate(lock_file_of(path), 0)
            with pytest.raises(LedgerError):
                use_all(path)


def folder(path):
    path.mkdir()


def pipe(path):
    os.mkfifo(path)


def text(path):
    path.write_text("no ledger at all\n" * 400, encoding="utf-8")


def empty(path):
    path.touch()


def database(path, *statements):
    connection = sqlite3.connect(path)
    for statement in ("CREATE TABLE settings (name, value)", *statements):
        connection.execute(statement)
    connection.close()


def named_as_a_ledger(path):
    names = (f"CREATE TABLE {table} (a, b)" for table in tuple(TABLES)[1:])
    database(path, *names, f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {SCHEMA_VERSION}")


def in_wal_mode(path):
    PrivacyLedger(**BASE, path=path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def dangling_link(path):
    path.symlink_to(path.with_name("nowhere"))


@pytest.mark.parametrize("with_lock_file", [True, False])
@pytest.mark.parametrize(
    "make",
    [folder, pipe, text, empty, database, named_as_a_ledger, in_wal_mode, dangling_link],
    ids=lambda f: f.__name__,
)
def test_what_is_no_ledger_is_refused(tmp_path, make, with_lock_file):
    path = tmp_path / "a.ledger"
    make(path)
    if with_lock_file:
        (tmp_path / "a.ledger.lock").touch()
    for open_it in (use_all, PrivacyLedger.open, lambda path: PrivacyLedger(**BASE, path=path)):
        with pytest.raises(LedgerError):
            open_it(path)


def test_a_ledger_without_its_lock_file_can_be_read_and_not_asked(whole, tmp_path):
    path, losses = tmp_path / "copy.ledger", whole[1]
    shutil.copy(whole[0], path)
    with PrivacyLedger.open(path, read_only=True) as copy:
        assert copy.realized_loss([7, -1, 150, 999]).tolist() == losses.tolist()
    assert ledger_report(path, verify=True)["verification"]["ok"]
    for open_it in (PrivacyLedger.open, lambda path: PrivacyLedger(**BASE, path=path)):
        with pytest.raises(
            LedgerError, match=r"has no lock file .*copy.ledger.lock.* can only be read: .*read_only=True"
        ) as refusal:
            open_it(path)
        # A copy with an empty lock file is a ledger that may ask.
        assert "empty" not in str(refusal.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["copy.ledger"]
    (tmp_path / "copy.ledger.lock").touch()
    with PrivacyLedger.open(path) as believed:
        assert believed.answer(linear(4), [-1], ones).accepted.all()
    assert (tmp_path / "copy.ledger.lock").stat().st_size > 0


def test_a_lock_file_of_another_ledger_is_refused(whole, tmp_path):
    path = copy_of(whole[0], tmp_path)
    PrivacyLedger(**BASE, path=tmp_path / "b.ledger").close()
    shutil.copy(tmp_path / "b.ledger.lock", lock_file_of(path))
    with pytest.raises(LedgerError, match="is not the one that was"):
        PrivacyLedger.open(path)


def test_a_lock_file_that_lags_behind_catches_up(whole, tmp_path):
    """Power fails between the commit and the lock file's entry: the ledger leads, and that is no rollback."""
    path = copy_of(whole[0], tmp_path)
    lock_file = tmp_path / "a.ledger.lock"
    before = lock_file.read_bytes()
    with PrivacyLedger.open(path) as ledger:
        ledger.answer(linear(4), [-1], ones)
    after = lock_file.read_bytes()
    lock_file.write_bytes(before)
    with PrivacyLedger.open(path):
        pass
    assert lock_file.read_bytes() == after != before


def test_a_lock_file_that_is_removed_under_an_open_ledger_stops_it(whole, tmp_path):
    path = copy_of(whole[0], tmp_path)
    with PrivacyLedger.open(path) as ledger:
        (tmp_path / "a.ledger.lock").unlink()
        for use in (lambda: ledger.answer(linear(4), [-1], ones), lambda: ledger.realized_loss([-1])):
            with pytest.raises(LedgerError, match=r"has no lock file .*a.ledger.lock"):
                use()


def test_a_link_counts_in_all_that_was_before_and_a_seal_its_ledger():
    chains = set()
    for previous, entry, identities, numbers, outputs in (
        ("0" * 64, [1, "key"], ["ann"], [0], [1]),
        ("1" * 64, [1, "key"], ["ann"], [0], [1]),
        ("0" * 64, [2, "key"], ["ann"], [0], [1]),
        ("0" * 64, [1, "key"], ["bob"], [0], [1]),
        ("0" * 64, [1, "key"], ["ann"], [1], [1]),
        ("0" * 64, [1, "key"], ["ann"], [0], [0]),
    ):
        link = ChainLink(previous, entry, identities)
        link.add(numbers, outputs)
        chains.add(link.value)
    assert len(chains) == 6
    assert (
        len({seal("a", "epsilon", 1.0), seal("b", "epsilon", 1.0), seal("a", "delta", 1.0), seal("a", "epsilon", 2.0)})
        == 4
    )
