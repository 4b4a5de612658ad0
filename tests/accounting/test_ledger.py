import copy
import os
import pickle
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from accounting.ledgers import linear
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_children import start
from postgres_server import edit_as_no_program_should
from sklearn.base import clone

from skldp import PrivacyLedger
from skldp.accounting import ledger_report
from skldp.accounting._filters import BasicPrivacyFilter, BayesianPrivacyFilter, SimplifiedBayesianPrivacyFilter
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger import _ledger_answers as ledger_answers
from skldp.accounting.ledger._cache import LedgerCache
from skldp.accounting.ledger._records import TABLES, ChainLink, Digest
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms._noise import noise_from

FILTERS = {
    "basic": BasicPrivacyFilter,
    "simplified": lambda epsilon: SimplifiedBayesianPrivacyFilter(epsilon, bounds=(-1, 1)),
    "bayesian": lambda epsilon: BayesianPrivacyFilter(epsilon, bounds=(-1, 1)),
}


def outputs_of(*outputs):
    return lambda rows: np.array(outputs)[: len(rows)]


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    rule=st.sampled_from(sorted(FILTERS)),
    calls=st.lists(
        st.tuples(st.sampled_from([-2, -1, 1, 3]), st.sampled_from([0.15, 0.3, 0.55]), st.integers(0, 15)),
        min_size=1,
        max_size=8,
    ),
)
def test_a_ledger_decides_as_one_filter_per_person_would(rule, calls):
    """The naive reference: a filter for everybody, and a dictionary of what they have answered."""
    people = ["ann", "1", "01", "x"]
    ledger = PrivacyLedger(1.0, bounds=(-1, 1), rule=rule)
    filters = {person: FILTERS[rule](1.0) for person in people}
    given_before = {}
    for slope, epsilon, bits in calls:
        query = linear(slope, epsilon)
        drawn = np.array([bits >> i & 1 for i in range(4)])
        answers = ledger.answer(query, people, lambda rows, drawn=drawn: drawn[rows])
        for i, person in enumerate(people):
            before = given_before.get((person, query.key))
            if before is not None:
                expected, is_fresh = before, False
            elif filters[person].admits(query):
                expected, is_fresh = drawn[i], True
                filters[person].record(query, int(drawn[i]))
                given_before[person, query.key] = drawn[i]
            else:
                expected, is_fresh = -1, False
            assert (answers.outputs[i], answers.fresh[i]) == (expected, is_fresh)
    losses = [filters[person].realized_loss if filters[person].history else 0.0 for person in people]
    np.testing.assert_allclose(ledger.realized_loss(people), losses, rtol=0, atol=2e-3)
    assert [len(ledger.history(person)) for person in people] == [len(filters[p].history) for p in people]
    assert ledger.verify().ok


def test_a_closed_ledger_opens_as_it_was(place):
    ledger = PrivacyLedger(1.0, bounds=(-1, [1]), path=place, tol=1e-4)
    ledger.answer(linear(1), [1, -1, np.int64(7)], outputs_of(1, 0, 1))
    ledger.answer(linear(2), [-1, 7], outputs_of(0, 1))
    before = [ledger.history(person) for person in (1, -1, 7, 10)]
    losses = ledger.realized_loss([1, -1, 7, 10])
    ledger.close()
    again = PrivacyLedger.open(place)
    assert (again.epsilon, again.bounds, again.rule, again.tol) == (1.0, (-1.0, 1.0), "bayesian", 1e-4)
    for old, new in zip(before, (again.history(person) for person in (1, -1, 7, 10)), strict=True):
        assert [(e["query"].key, e["output"], e["time"]) for e in old] == [
            (e["query"].key, e["output"], e["time"]) for e in new
        ]
    assert again.realized_loss([1, -1, 7, 10]).tolist() == losses.tolist()
    assert again.answer(linear(1), [-1, 1], outputs_of()).outputs.tolist() == [0, 1]


def test_a_reading_that_breaks_off_is_begun_anew(place, monkeypatch):
    writer, reader = (PrivacyLedger(2.0, bounds=(-1, 1), path=place, rule="basic") for _ in range(2))
    for slope in (1, 2, 3):
        writer.answer(linear(slope), ["a", "b"], outputs_of(1, 0))
    add_answers = LedgerCache.add_answers

    def fail_on_the_second(self, query, numbers, outputs):
        if self.n_answers == 2:
            raise MemoryError
        add_answers(self, query, numbers, outputs)

    with monkeypatch.context() as broken:
        broken.setattr(LedgerCache, "add_answers", fail_on_the_second)
        with pytest.raises(MemoryError):
            reader.remaining(["a"])
    assert reader.remaining(["a"]).round(6).tolist() == [1.1]
    assert reader._state.cache.n_answers == 6


def test_two_ledgers_on_one_file_see_each_other(place):
    one = PrivacyLedger(1.0, bounds=(-1, 1), path=place, rule="basic")
    two = PrivacyLedger(1.0, path=place, rule="basic")
    for number, ledger in enumerate([one, two, one, two], start=1):
        accepted = ledger.answer(linear(number), ["a"], outputs_of(1)).accepted
        assert accepted.tolist() == [number <= 3]
    assert one.remaining(["a"]) == two.remaining(["a"])


def test_a_repeated_query_is_served_again_unless_a_fresh_answer_is_asked_for(place):
    ledger = PrivacyLedger(0.7, bounds=(-1, 1), path=place, rule="basic")
    assert ledger.answer(linear(1), ["a", "b"], outputs_of(1, 0)).fresh.tolist() == [True, True]
    again = ledger.answer(linear(1), ["b", "c", "a"], outputs_of(1))
    assert again.outputs.tolist() == [0, 1, 1]
    assert again.fresh.tolist() == [False, True, False]
    fresh = ledger.answer(linear(1), ["a"], outputs_of(0), repeat=True)
    assert (fresh.outputs.tolist(), fresh.fresh.tolist()) == ([0], [True])
    assert ledger.answer(linear(1), ["a", "b"], outputs_of()).outputs.tolist() == [0, 0]
    refused = ledger.answer(linear(1), ["a"], outputs_of(), repeat=True)
    assert refused.outputs.tolist() == [-1]
    assert ledger.remaining(["a", "b"]).round(6).tolist() == [0.1, 0.4]
    rows = ledger.summary()
    assert rows[["asked", "answered", "served_again", "refused"]].to_numpy().tolist() == [[7, 4, 2, 1]]


@pytest.mark.parametrize(("known", "other"), [(7, "7"), ("7", 7)])
def test_one_person_is_not_two_by_two_kinds_of_ids(place, known, other):
    ledger = PrivacyLedger(1.0, bounds=(-1, 1), path=place, rule="basic")
    with pytest.raises(ValueError, match=r"only once; got one id twice, at positions 0 and 1"):
        ledger.answer(linear(1, 0.9), [known, other], outputs_of(1, 0))
    assert ledger.verify().n_answers == 0
    ledger.answer(linear(1, 0.9), [known], outputs_of(1))
    uses = (
        lambda one: one.answer(linear(2, 0.9), [other], outputs_of(0)),
        lambda one: one.realized_loss([other]),
        lambda one: one.remaining([other]),
        lambda one: one.history(other),
    )
    for one in (ledger, PrivacyLedger.open(place)):
        for use in uses:
            with pytest.raises(LedgerError, match="all integers or all strings"):
                use(one)
    assert ledger.verify().n_answers == 1
    assert ledger.remaining([known]).round(6).tolist() == [0.1]


def test_the_domain_is_declared_once(place):
    ledger = PrivacyLedger(1.0, path=place)
    with pytest.raises(LedgerError, match="needs bounds before the first query"):
        ledger.answer(linear(1), ["a"], outputs_of(1))
    other = PrivacyLedger.open(place)
    other.declare(bounds=(np.array([0.0]), np.array([1.0])))
    ledger.declare(bounds=(0, 1))
    assert ledger.bounds == other.bounds == (0.0, 1.0)
    with pytest.raises(LedgerError, match=r"bounds=\(0.0, 1.0\); got \(0.0, 2.0\)"):
        ledger.declare(bounds=(0, 2))


def test_one_ledger_has_one_number_of_features():
    ledger = PrivacyLedger(1.0, bounds=([0, -1], [1, 1]))
    with pytest.raises(LedgerError, match=r"bounds for 2 features; got a query with 1"):
        ledger.answer(linear(1), ["a"], outputs_of(1))
    ledger = PrivacyLedger(1.0, bounds=(0, 1))
    ledger.answer(linear(1), ["a"], outputs_of(1))
    with pytest.raises(LedgerError, match=r"queries over 1 features; got a query over 2 features"):
        ledger.answer(RegressionQuery("linear", [1, 1], 0, (0, 2), 0.1), ["a"], outputs_of(1))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": True}, "epsilon must be a finite number > 0; got True"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": "1"}, "epsilon must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"rule": "renyi"}, "rule must be one of .* got 'renyi'"),
        ({"bounds": (1, 0)}, "low <= high"),
        ({"bounds": (0, np.inf)}, "finite"),
        ({"bounds": ([0, 1], [1, 2, 3])}, r"bounds must be .*\(low, high\)"),
        ({"bounds": 3}, r"bounds must be .*\(low, high\)"),
    ],
)
def test_settings_are_checked_before_a_file_is_made(tmp_path, parameters, message):
    with pytest.raises(ValueError, match=message):
        PrivacyLedger(**{"epsilon": 1.0, "path": tmp_path / "a.ledger", **parameters})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"epsilon": 2.0}, "epsilon=1.0; got 2.0"),
        ({"rule": "basic"}, "rule='bayesian'; got 'basic'"),
        ({"tol": 0.1}, "tol=0.001; got 0.1"),
        ({"bounds": (-1, 2)}, r"bounds=\(-1.0, 1.0\); got \(-1.0, 2.0\)"),
    ],
)
def test_settings_never_change(place, other, message):
    made = {"epsilon": 1.0, "bounds": (-1, 1), "path": place}
    PrivacyLedger(**made).close()
    with pytest.raises(LedgerError, match=message):
        PrivacyLedger(**{**made, **other})


@pytest.mark.slow
def test_another_process_opens_a_file_and_refuses_one_in_memory(tmp_path):
    on_disk = PrivacyLedger(1.0, bounds=(-1, 1), path=tmp_path / "a.ledger")
    on_disk.answer(linear(1), ["a"], outputs_of(1))
    (tmp_path / "disk").write_bytes(pickle.dumps(on_disk))
    (tmp_path / "memory").write_bytes(pickle.dumps(PrivacyLedger(1.0)))
    code = """if True:
        import pathlib, pickle, sys
        disk, memory = (pathlib.Path(sys.argv[1], name).read_bytes() for name in ("disk", "memory"))
        print(pickle.loads(disk).remaining(["a"]).round(6).tolist(), flush=True)
        pickle.loads(memory)
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run(
        [sys.executable, "-c", code, tmp_path], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "[0.7]\n"
    assert ended.returncode == 1
    assert "LedgerError: A ledger in memory cannot be pickled to another process" in ended.stderr


def test_the_files_are_private_and_hold_no_values_and_no_keys(tmp_path):
    path = tmp_path / "a.ledger"
    secret = np.array([[0.123456789012345, -0.98765432109876]])
    query = RegressionQuery("linear", [0.5, 0.25], 0.0, (-1, 1), 0.3)
    with PrivacyLedger(1.0, bounds=(-1, 1), path=path) as ledger:
        ledger.answer(query, ["ann"], lambda rows: query.sample(secret[rows], noise_from()))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.ledger", "a.ledger.lock"]
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        content = file.read_bytes()
        for value in secret.ravel():
            for trace in (
                struct.pack("<d", value),
                struct.pack(">d", value),
                struct.pack("<f", value),
                repr(float(value))[:8].encode(),
            ):
                assert trace not in content
    assert b"ann" in path.read_bytes()
    connection = sqlite3.connect(path)
    stored = {name for (name,) in connection.execute("SELECT name FROM settings")}
    connection.close()
    assert stored == {"token", "epsilon", "rule", "tol", "bounds"}


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_changed_or_deleted(tmp_path, table):
    ledger = PrivacyLedger(1.0, bounds=(-1, 1), path=tmp_path / "a.ledger")
    ledger.answer(linear(1), ["a"], outputs_of(1))
    with ledger._state.store.transaction(write=True) as connection:
        if table == "erasures":
            connection.execute("INSERT INTO erasures VALUES (1, 0, 1, '')")
        if table == "kept":
            connection.execute("INSERT INTO kept VALUES (1, 0, '')")
        column = connection.execute(f"PRAGMA table_info({table})").fetchall()[-1][1]
        for statement in (
            f"UPDATE {table} SET {column} = 0",
            f"DELETE FROM {table}",
            f"REPLACE INTO {table} SELECT * FROM {table}",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)


def test_files_that_are_no_ledger(tmp_path):
    path = tmp_path / "a.ledger"
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="empty"):
        PrivacyLedger(1.0, path=path)
    path.write_bytes(b"id,value\n1,0.5\n" * 100)
    with pytest.raises(LedgerError, match=r"SQLITE_NOTADB\. If the file is damaged, restore a copy"):
        PrivacyLedger(1.0, path=path)
    path.unlink()
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE settings (name, value)")
    foreign.close()
    with pytest.raises(LedgerError, match="not a privacy ledger"):
        PrivacyLedger(1.0, path=path)
    with pytest.raises(LedgerError, match="There is no ledger at"):
        PrivacyLedger.open(tmp_path / "b.ledger")
    with pytest.raises(LedgerError, match="could not be created"):
        PrivacyLedger(1.0, path=tmp_path / "missing" / "a.ledger")
    with pytest.raises(LedgerError):
        PrivacyLedger(1.0, path=tmp_path)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_refused(tmp_path, kept):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(1.0, bounds=(-1, 1), path=path)
    ledger.answer(linear(1), range(5000), lambda rows: np.ones(len(rows), dtype=int))
    ledger.close()
    os.truncate(path, int(kept * path.stat().st_size))
    with pytest.raises(LedgerError):
        PrivacyLedger(1.0, path=path).answer(linear(2), [1], outputs_of(1))


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("with_lock_file", [True, False])
def test_files_of_other_versions_are_refused(tmp_path, version, with_lock_file):
    path = tmp_path / "a.ledger"
    PrivacyLedger(1.0, bounds=(-1, 1), path=path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    if not with_lock_file:
        (tmp_path / "a.ledger.lock").unlink()
    message = f"must have schema version 4 for this version of skldp; got version {version}"
    for open_it in (PrivacyLedger.open, ledger_report, lambda path: PrivacyLedger(1.0, path=path)):
        with pytest.raises(LedgerError, match=message):
            open_it(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("exists", [True, False])
def test_a_read_only_directory(exists):
    def ask_as_somebody(write, path):
        # Whoever is root may write anyway, and becomes somebody else first.
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        with pytest.raises(LedgerError, match="nothing was released"):
            write(str(PrivacyLedger(1.0, bounds=(-1, 1), path=path).answer(linear(1), ["a"], outputs_of(1))))

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.ledger"
        if exists:
            PrivacyLedger(1.0, bounds=(-1, 1), path=path).close()
            path.chmod(0o666)
        Path(directory).chmod(0o555)
        child, output = start(ask_as_somebody, path)
        with output:
            assert output.read() == ""
        assert os.waitpid(child, 0)[1] == 0
        Path(directory).chmod(0o755)


def edit(place, *statements):
    """Make a ledger, and edit it as no program should."""
    ledger = PrivacyLedger(0.5, bounds=(-1, 1), path=place, rule="basic")
    ledger.answer(linear(1), ["a", "b"], outputs_of(1, 0))
    ledger.close()
    edit_as_no_program_should(place, *statements)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM answers WHERE person = 0", "does not have its recorded number of answers"),
        ("UPDATE answers SET output = 7", "impossible output"),
        ("UPDATE answers SET output = 1", "release 1 does not match its hash"),
        ("UPDATE people SET identity = '\"eve\"' WHERE person = 1", "release 1 does not match its hash"),
        ("UPDATE releases SET time = ''", "release 1 does not match its hash"),
        ("INSERT INTO people VALUES (2, '\"eve\"')", "it lists a person without a release"),
        ("UPDATE releases SET query = 9", "its content is not in the format of a ledger"),
        ("UPDATE queries SET content = '[]'", "query 0 is invalid. The text must be the JSON of a query"),
        (
            "UPDATE queries SET content = replace(content, '[-1.0,1.0]', '[-1.0,1e200]')",
            "query 0 is invalid. The magnitudes of the coefficients",
        ),
        ("UPDATE answers SET person = 9 WHERE person = 1", "answers of unknown people"),
        ("DELETE FROM people WHERE person = 0", "person is missing"),
        ("UPDATE queries SET content = replace(content, '0.3', '0.1')", "query 0 does not match its key"),
        ("DELETE FROM releases", "release 1 is missing"),
    ],
)
def test_damage_is_noticed(place, statement, message):
    edit(place, statement)
    with pytest.raises(LedgerError, match=message):
        PrivacyLedger.open(place).answer(linear(2), ["c"], outputs_of(1))
    verification = ledger_report(place, verify=True)["verification"]
    assert any(message in problem for problem in verification["problems"])


def test_a_missing_setting_is_noticed(place):
    edit(place, "DELETE FROM settings WHERE name = 'epsilon'")
    with pytest.raises(LedgerError, match="setting 'epsilon' is missing"):
        PrivacyLedger.open(place)


def test_verification_finds_who_was_taken_past_the_budget(place):
    # Whoever forges the chain as well is found by the sums.
    ledger = PrivacyLedger(0.5, bounds=(-1, 1), path=place, rule="basic")
    ledger.answer(linear(1), ["a", "b"], outputs_of(1, 0))
    digest = Digest("00")
    digest.add([0], [1])
    row = (2, 0, "", 2, 1, 0, 0, 2, ledger._state.store.tenant, "mark", "request", digest.value)
    link = ChainLink(ledger._state.cache.chain, [linear(1).key, *row], [])
    values = ", ".join(repr(value) for value in (*row, link.value))
    edit_as_no_program_should(
        place,
        f"INSERT INTO releases VALUES ({values})",
        "INSERT INTO answers VALUES (2, 0, 1)",
        "INSERT INTO salts VALUES (2, '00')",
    )
    assert PrivacyLedger.open(place).verify().problems == (
        "The counts of release 2 are inconsistent.",
        "Release 2 took 1 people ('a') over their budget of 0.5.",
        "The loss of 1 people ('a') exceeds their budget of 0.5.",
    )


@pytest.mark.parametrize("rule", ["basic", "simplified", "bayesian"])
def test_verification_does_not_trust_the_shortcuts_of_decisions(monkeypatch, rule):
    ledger = PrivacyLedger(0.5, bounds=(-1, 1), rule=rule)
    monkeypatch.setattr(ledger_answers, "surely_admits", lambda rule, spent, query: np.ones(len(spent), dtype=bool))
    for slope in (1, 2, 3):
        ledger.answer(linear(slope), ["a", "b"], outputs_of(1, 1))
    assert ledger.verify().problems == (
        "Release 2 took 2 people ('a', 'b') over their budget of 0.5.",
        "Release 3 took 2 people ('a', 'b') over their budget of 0.5.",
        "The loss of 2 people ('a', 'b') exceeds their budget of 0.5.",
    )


def test_a_report_reads_only(tmp_path):
    path = tmp_path / "a.ledger"
    ledger = PrivacyLedger(0.7, bounds=(-1, 1), path=path, rule="basic")
    for slope in (1, 2, 3):
        ledger.answer(linear(slope), ["a", "b", "c"][:slope], outputs_of(1, 1, 1))
    before = path.read_bytes()
    report = ledger_report(path, verify=True)
    assert path.read_bytes() == before
    assert (report["people"], report["answers"], report["refused"]) == (3, 5, 1)
    # A person of little remaining budget may still answer another question.
    assert "exhausted" not in report
    assert report["loss_quantiles"]["1"] == pytest.approx(0.6)
    assert report["remaining_quantiles"]["1"] == pytest.approx(0.4)
    assert [row["refused"] for row in report["queries"]] == [0, 0, 1]
    assert report["verification"]["ok"]
    assert ledger_report(path)["verification"] is None
    with pytest.raises(LedgerError, match="for reading only"):
        PrivacyLedger.open(path, read_only=True).answer(linear(5), ["z"], outputs_of(1))


def test_a_summary_without_pandas(monkeypatch):
    pandas = pytest.importorskip("pandas")
    ledger = PrivacyLedger(0.7, bounds=(-1, 1))
    ledger.answer(linear(1), ["a"], outputs_of(1))
    with_pandas = ledger.summary()
    with pandas.option_context("display.width", 80, "display.max_columns", 0):
        printed = repr(with_pandas)
    # A narrow terminal hides the key, not the counts.
    assert all(name in printed for name in ("kind", "epsilon", "calls", "answered", "served_again", "refused"))
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert with_pandas.to_dict("records") == ledger.summary()
    assert list(with_pandas.columns) == list(ledger.summary()[0])


def test_a_path_that_can_be_no_file_is_refused_by_the_rule(tmp_path):
    path = f"{tmp_path}/a\0.ledger"
    for use in (lambda: PrivacyLedger(1.0, path=path), lambda: PrivacyLedger.open(path), lambda: ledger_report(path)):
        with pytest.raises(ValueError, match=r"path must be a file path without NUL characters; got"):
            use()
    assert list(tmp_path.iterdir()) == []


def _question(number):
    return RegressionQuery("linear", [1.0], 0.0, (0, 1), 0.3 + number / 1000)


def test_a_draw_that_is_refused_elsewhere_leaves_no_domain_behind(place):
    """Tables of losses over the undeclared domain would admit more than the budget."""
    ledger = PrivacyLedger(1.0, path=place)

    def draw(people):
        raise BudgetExhaustedError("of a second ledger")

    with pytest.raises(BudgetExhaustedError, match="second ledger"):
        ledger.answer(_question(0), ["ann"], draw, declare={"bounds": (0, 0.5)})
    ledger.declare(bounds=(0, 1))
    for number in range(12):
        ledger.answer(_question(number), ["ann"], outputs_of(1))
    assert ledger.realized_loss(["ann"]).item() <= 1
    assert ledger.verify().ok


def test_a_pickle_does_not_lead_to_another_ledger_of_the_same_name(tmp_path):
    ledger = PrivacyLedger(1.0, path=tmp_path / "a.ledger")
    pickled = pickle.dumps(ledger)
    ledger.close()
    del ledger
    for name in ("a.ledger", "a.ledger.lock"):
        (tmp_path / name).unlink()
    PrivacyLedger(1.0, path=tmp_path / "a.ledger").close()
    with pytest.raises(LedgerError, match="is not the one that was"):
        pickle.loads(pickled)


def test_copies_are_the_same_ledger(place):
    for path in (":memory:", place):
        ledger = PrivacyLedger(1.0, bounds=(-1, 1), path=path)
        assert copy.copy(ledger) is copy.deepcopy(ledger) is clone(ledger, safe=False) is ledger
        assert pickle.loads(pickle.dumps(ledger)) is ledger
        assert copy.deepcopy({"a": [ledger]})["a"][0] is ledger


def test_settings_of_a_failed_answer_are_not_declared(place):
    ledger = PrivacyLedger(1.0, path=place)
    declared = {"bounds": (0, 1), "features": ["age"]}
    with pytest.raises(ValueError, match="draw must return"):
        ledger.answer(linear(1), ["a"], lambda people: [7], declare=declared)
    assert ledger.bounds is None
    assert ledger.features is None
    PrivacyLedger.open(place).declare(bounds=(0, 2))
    with pytest.raises(LedgerError, match=r"bounds=\(0.0, 2.0\); got \(0.0, 1.0\)"):
        ledger.answer(linear(1), ["a"], outputs_of(1), declare=declared)
    assert ledger.features is None
    declared["bounds"] = (0, 2)
    ledger.answer(linear(1), ["a"], outputs_of(1), declare=declared)
    assert ledger.bounds == (0.0, 2.0)
    assert ledger.features == PrivacyLedger.open(place).features == ("age",)
    assert ledger.verify().ok
