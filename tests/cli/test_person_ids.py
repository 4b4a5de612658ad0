"""Who a person is: one rule for every entry point that takes an id.

A person who is taken for two has two budgets, and two permanent reports of one value.
"""

import numpy as np
import pandas as pd
import pytest

from skldp import LabelRR, NumericPrivatizer, PrivacyLedger, release_batches, release_blocks, release_dask
from skldp.client import Field, Policy
from skldp.exceptions import LedgerError
from skldp.mechanisms import Column, FieldKey, RandomizedResponse, ReleaseKey
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

# A vector of many bits tells people apart.
COLUMNS = tuple(f"x{i}" for i in range(60))
POLICY = Policy(
    "who is who",
    tuple(Field(name, Column(0, 9, kind="integer"), Duchi(0.1).integer_law) for name in COLUMNS),
    memo="permanent",
)
RECORD = dict.fromkeys(COLUMNS, 4)
ROWS = np.full((1, len(COLUMNS)), 0.25)
NUMBERS = NumericPrivatizer(0.5, bounds=(0, 1), n_sampled_features=len(COLUMNS)).fit(ROWS)

SAME = [(1, "1"), ("1", 1), (1, np.int64(1)), (7, np.uint8(7)), ("-3", -3), (0, "0"), ("Ann", np.str_("Ann"))]
SAME += [(2**63 - 1, str(2**63 - 1))]
REFUSED = [
    "1.0",
    "1.",
    "-1.00",
    "1,0",
    "1e+05",
    "1.5E+06",
    "1,5E+06",
    "-1e+05",
    " 1",
    "1 ",
    "\t1",
    "1\n",
    "Ann ",
    "Jose\u0301",
    "Ann\u200b",
    "Ann\ufe0f",
    "\u212b",
    "",
]
REFUSED += [
    " ",
    "\ufeff1",
    "a\u00a0b",
    "a\x00",
    "\ud800",
    1.0,
    float("nan"),
    None,
    True,
    b"Ann",
    ("Ann",),
    2**63,
    1 + 0j,
]
OTHERS = [
    "1",
    "01",
    "11",
    "i1",
    "s1",
    "-1",
    "ann",
    "Ann",
    "Anne",
    "1e0",
    "Jos\u00e9",
    "1.5",
    "\u00c5",
    str(2**63),
    "1,5",
]


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return ReleaseKey.create(tmp_path_factory.mktemp("keys") / "release.key")


def keyed_entries(key):
    """Functions from an id to what is released of one record about it."""
    field = FieldKey(key, "rows")
    da = pytest.importorskip("dask.array")

    def blocks(one):
        return release_blocks(NUMBERS, ROWS, np.empty_like(ROWS), release_key=field, ids=[one]).tobytes()

    def dask(one):
        ids = da.from_array(np.array([one], dtype=object), chunks=1)
        lazy = release_dask(NUMBERS, da.from_array(ROWS, chunks=ROWS.shape), release_key=field, ids=ids)
        return lazy.compute(scheduler="synchronous").tobytes()

    def batches(one):
        cells = {"person": pa.array([one])} | {name: pa.array([4]) for name in COLUMNS}
        given = pa.RecordBatch.from_arrays(list(cells.values()), list(cells))
        (batch,) = release_batches(POLICY, secret=key, ids="person")([given])
        return batch["skldp_report"][0].as_py()

    return {
        "Policy.release": lambda one: POLICY.release(RECORD, secret=key, person=one),
        "Policy.release_table": lambda one: POLICY.release_table(
            {name: [4] for name in COLUMNS}, secret=key, people=[one]
        )[0],
        "release_batches": batches,
        "FieldKey.release": lambda one: field.release(NUMBERS.mechanism_, ROWS, [one]).rows.tobytes(),
        "FieldKey.bind": lambda one: field.bind(NUMBERS.mechanism_, ROWS, [one]).noise._nonces.tobytes(),
        "release_blocks": blocks,
        "release_dask": dask,
    }


NAMES = list(keyed_entries(ReleaseKey(bytes(range(128, 160)))))


@pytest.mark.parametrize("name", NAMES)
def test_two_spellings_of_one_person_are_one_release_or_refused(name, key):
    release = keyed_entries(key)[name]
    for one, again in SAME:
        if name != "release_batches" or isinstance(again, int | str):
            assert release(one) == release(again), (one, again)
    for wrong in REFUSED:
        # Without an id, a record is that of the device's owner; Arrow has no other objects.
        if not (name == "Policy.release" and wrong is None):
            with pytest.raises((TypeError, ValueError, OverflowError, pa.ArrowException)) as refusal:
                release(wrong)
            assert name == "release_batches" or "Ann" not in str(refusal.value)
    released = [release(one) for one in OTHERS]
    assert len(set(released)) == len(OTHERS)


def test_all_ways_of_a_policy_give_one_report(key, run, tmp_path):
    """The command took an integer for a text, and gave no report that the batches gave."""
    POLICY.save(tmp_path / "policy.json")
    entries = keyed_entries(key)
    people = [1, -7, 40, 123456789012]
    data = {name: np.full(len(people), 4) for name in COLUMNS}
    wanted = [entries["Policy.release"](one) for one in people]
    tables = {
        "integers.parquet": pd.DataFrame({"person": people} | data),
        "short.parquet": pd.DataFrame({"person": pd.array(people, dtype="Int64")} | data),
        "texts.parquet": pd.DataFrame({"person": list(map(str, people))} | data),
        "texts.csv": pd.DataFrame({"person": people} | data),
    }
    secret = tmp_path / "own.key"
    secret.write_bytes(key._secret)
    secret.chmod(0o600)
    for file, frame in tables.items():
        frame.to_csv(tmp_path / file, index=False) if file.endswith("csv") else frame.to_parquet(tmp_path / file)
        code, _, wrong = run(
            "release", "policy.json", file, "--secret", "own.key", "--ids", "person", "-o", "reports.parquet"
        )
        assert (code, wrong) == (0, "")
        assert pq.read_table(tmp_path / "reports.parquet")["skldp_report"].to_pylist() == wanted
        (tmp_path / "reports.parquet").unlink()
    assert POLICY.release_table(data, secret=key, people=list(map(str, people))) == wanted
    assert [entries["release_batches"](one) for one in people] == wanted


@pytest.mark.parametrize(
    "cell", ["1.0", " 1", "1 ", "Jose\u0301", "Ann ", "Ann\u200b", '" "', '""', "\ufe0fAnn", "1.", '"1\t"']
)
def test_the_command_refuses_spellings_that_a_person_shares(key, run, tmp_path, cell):
    POLICY.save(tmp_path / "policy.json")
    secret = tmp_path / "own.key"
    secret.write_bytes(key._secret)
    secret.chmod(0o600)
    cells = ",".join("4" * len(COLUMNS))
    header = ",".join(("person", *COLUMNS))
    (tmp_path / "table.csv").write_text(f"{header}\n7,{cells}\n{cell},{cells}\n", encoding="utf-8")
    code, _, wrong = run(
        "release", "policy.json", "table.csv", "--secret", "own.key", "--ids", "person", "-o", "r.arrow"
    )
    assert code == 2
    assert "Ann" not in wrong
    assert "in row 2" in wrong or "Every row must have an id" in wrong
    assert not (tmp_path / "r.arrow").exists()


def _release(ledger, one):
    ledger.release(RandomizedResponse(0.3, 2), [[0]], [one])


def _labels(ledger, one):
    LabelRR(0.5, classes=[0, 1], ledger=ledger).fit_transform([0], ids=[one])


def _numbers(ledger, one):
    NumericPrivatizer(0.5, ledger=ledger).fit_transform([[0.5]], ids=[one])


@pytest.mark.parametrize("charge", [_release, _labels, _numbers])
def test_a_ledger_keeps_one_account_of_a_person_or_refuses(charge):
    for one, again in SAME:
        ledger = PrivacyLedger(2.0)
        charge(ledger, one)
        if isinstance(one, str) is isinstance(again, str):
            charge(ledger, again)
            assert len(ledger.realized_loss([one])) == 1
            assert ledger.report()["people"] == 1
        else:
            # A ledger has integers or texts, never both.
            with pytest.raises(LedgerError, match="all integers or all strings"):
                charge(ledger, again)
    for wrong in REFUSED:
        with pytest.raises((TypeError, ValueError)):
            charge(PrivacyLedger(2.0), wrong)
