"""A ledger of an earlier version is the same ledger afterwards: its people, its answers, its losses and its chain."""

import sqlite3
from pathlib import Path

import pytest
from accounting.ledgers import linear

from skldp.accounting import PrivacyLedger, ledger_report
from skldp.accounting._ledger import migration, sqlite_store
from skldp.accounting._ledger.companion import companion_of
from skldp.accounting._ledger.schema import SCHEMA_VERSION
from skldp.exceptions import LedgerError
from skldp.mechanisms import RandomizedResponse

# Written by the version before this schema, with the losses and the companion's entry that it gave.
EARLIER = Path(__file__).with_name("ledger_of_version_2.sql")
PEOPLE = ["ann", "Zoë", "bob", 'q"uote']
LOSSES = [0.6, 0.3, 0.3, 0.3]
LAST_CHAIN = "9b7e8489680115fc3aaa0e715727e0a58fa314947cdcc5cbb5c7cf62fcfa7770"
ENTRY = f"45f093692a99931a58a2b3190a63773e {4:020d} {LAST_CHAIN}\n"
COMPANION = (
    f"The lock and the last entry of the ledger beside it. Never delete it, never copy one without the other.\n{ENTRY}"
)


def version_of(path):
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return version


@pytest.fixture
def earlier(tmp_path):
    """A file of version 2, with its companion."""
    path = tmp_path / "a.ledger"
    connection = sqlite3.connect(path)
    connection.executescript(EARLIER.read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {migration.APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    Path(companion_of(str(path))).write_text(COMPANION, encoding="ascii")
    return path


def test_an_earlier_ledger_goes_on(earlier):
    with PrivacyLedger(1.0, bounds=(-1, 1), path=earlier) as ledger:
        assert ledger.realized_loss(PEOPLE).round(9).tolist() == LOSSES
        again = ledger.answer(linear(1), ["Zoë", "ann"], lambda rows: [])
        assert (again.outputs.tolist(), again.fresh.any()) == ([0, 1], False)
        assert ledger.answer(linear(4), ["Zoë", "new"], lambda rows: [1, 1]).fresh.all()
        assert ledger.verify().ok
    assert version_of(earlier) == SCHEMA_VERSION
    with PrivacyLedger.open(earlier) as ledger:
        assert ledger.features == ("x",)
        assert [entry["release"] for entry in ledger.history("Zoë")] == [1, 5]


def test_an_earlier_ledger_can_be_read_without_being_changed(earlier):
    before = earlier.read_bytes()
    report = ledger_report(earlier, verify=True)
    assert report["verification"]["ok"]
    assert (report["people"], report["answers"], report["refused"]) == (5, 6, 1)
    assert earlier.read_bytes() == before


def test_what_an_earlier_chain_does_not_hold_is_noticed_afterwards(earlier):
    connection = sqlite3.connect(earlier)
    connection.execute("DROP TRIGGER answers_keeps_on_update")
    connection.execute("UPDATE answers SET output = 1 - output WHERE release = 2 AND person = 0")
    connection.commit()
    connection.close()
    with PrivacyLedger.open(earlier) as ledger, pytest.raises(LedgerError, match="release 2 is not what was recorded"):
        ledger.realized_loss(["ann"])


def test_an_older_backup_of_an_earlier_version_is_not_brought_up(earlier):
    """The companion remembers more than is there: nothing is changed."""
    companion = Path(companion_of(str(earlier)))
    companion.write_text(COMPANION.replace(LAST_CHAIN, "0" * 64).replace(f"{4:020d}", f"{5:020d}"), encoding="ascii")
    with pytest.raises(LedgerError, match="the record went back"):
        PrivacyLedger.open(earlier)
    assert version_of(earlier) == 2


def test_a_migration_that_fails_leaves_the_file_as_it_was(earlier, monkeypatch):
    def fail(connection):
        migration.migrate(connection)
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(sqlite_store, "migrate", fail)
        with pytest.raises(LedgerError, match="OperationalError"):
            PrivacyLedger.open(earlier)
    assert version_of(earlier) == 2
    with PrivacyLedger.open(earlier) as ledger:
        assert ledger.verify().ok


def test_a_migrated_ledger_has_the_tables_of_a_new_one(earlier, tmp_path):
    PrivacyLedger.open(earlier).close()
    PrivacyLedger(1.0, path=tmp_path / "new.ledger").close()

    def schema(path):
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        connection.close()
        return sorted((kind, name, "".join(sql.lower().replace('"', "").split())) for kind, name, sql in rows)

    assert schema(earlier) == schema(tmp_path / "new.ledger")


def test_a_ledger_of_version_3_goes_on_and_keeps_rows(tmp_path):
    """Which differs from this version in what is kept of releases alone."""
    path = tmp_path / "a.ledger"
    with PrivacyLedger(1.0, bounds=(-1, 1), path=path) as ledger:
        ledger.answer(linear(1), ["ann"], lambda rows: [1])
    connection = sqlite3.connect(path)
    for statement in ("DROP VIEW recorded_rows", "DROP TABLE kept", "PRAGMA user_version = 3"):
        connection.execute(statement)
    connection.close()
    before = path.read_bytes()
    assert ledger_report(path, verify=True)["verification"]["ok"]
    assert path.read_bytes() == before
    law, key = RandomizedResponse(0.5, 3), "a key that nobody can guess"
    with PrivacyLedger.open(path) as ledger:
        first, again = (ledger.release(law, [[1]], ["ann"], idempotency_key=key).rows.tolist() for _ in range(2))
        assert (first, ledger.verify().ok) == (again, True)
    assert version_of(path) == SCHEMA_VERSION
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("DELETE FROM kept")
    connection.close()
