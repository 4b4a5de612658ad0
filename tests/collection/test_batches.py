"""Record batches in, reports out: in this process, in others, and in the engines that have batches."""

import pickle

import numpy as np
import pytest

from skldp import Collector, release_batches
from skldp.client import Field, Policy
from skldp.collection._report_tables import report_schema
from skldp.mechanisms import Column, RandomizedResponse, ReleaseKey
from skldp.mechanisms.categorical._one_hot import SubsetSelection
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

pa = pytest.importorskip("pyarrow")

POLICY = Policy(
    "a test",
    (
        Field("age", Column(0, 100, missing=50.0), Duchi(30.0).integer_law),
        Field("city", Column(values=("Bonn", "Ulm", None)), RandomizedResponse(40.0, 3).integer_law),
        Field("shop", Column(values=tuple(f"shop {i}" for i in range(9))), SubsetSelection(1.0, 9).integer_law),
    ),
)
N = 300
PEOPLE = pa.table(
    {
        "name": [f"person {i}" for i in range(N)],
        "city": pa.array(["Ulm", None, "Bonn"] * (N // 3)).dictionary_encode(),
        "age": pa.array([100, 0, 100] * (N // 3), pa.int8()),
        "shop": [f"shop {i % 9}" for i in range(N)],
    }
)


def answers_of(table):
    return [POLICY.read(report) for report in table["skldp_report"].to_pylist()]


def are_releases(table):
    """Whether the rows are reports of the people in their order, which these epsilons leave without doubt."""
    assert table.num_rows == N
    assert table.column_names == report_schema().names
    reports = answers_of(table)
    assert [one.answers["city"] for one in reports] == [1, 2, 0] * (N // 3)
    assert [one.answers["age"] for one in reports] == [1, 0, 1] * (N // 3)
    assert len({one.report_id for one in reports}) == N


def test_batches_become_reports_of_the_same_people():
    release = release_batches(POLICY)
    made = list(release(PEOPLE.to_batches(max_chunksize=70)))
    assert [batch.num_rows for batch in made] == [70, 70, 70, 70, 20]
    assert all(batch.schema.equals(release.schema, check_metadata=True) for batch in made)
    are_releases(pa.Table.from_batches(made))


def test_what_is_refused_draws_nothing_and_shows_nothing(monkeypatch):
    monkeypatch.setattr("os.urandom", lambda size: pytest.fail("drawn before all was known to pass"))
    release = release_batches(POLICY)
    strange = PEOPLE.set_column(1, "city", pa.array(["Ulm"] * (N - 1) + ["Atlantis"]))
    with pytest.raises(ValueError, match="must hold only the declared 2 values") as refusal:
        list(release(strange.to_batches()))
    assert "Atlantis" not in str(refusal.value)
    with pytest.raises(ValueError, match=r"every name of the policy once; it misses \['age'\]"):
        list(release(PEOPLE.drop_columns("age").to_batches()))
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"])
    with pytest.raises(ValueError, match="must have every name"):
        list(release([twice]))
    with pytest.raises(ValueError, match=r"must be a pyarrow.RecordBatch; got Table"):
        list(release([PEOPLE]))
    with pytest.raises(ValueError, match="must not have expired"):
        list(release_batches(Policy("late", POLICY.fields, "2020-01-01T00:00:00Z"))(PEOPLE.to_batches()))


class TestASecret:
    """What an engine executes twice is one release: the same reports, whatever the batches are."""

    kept = POLICY.permanent()

    @pytest.fixture
    def release(self, tmp_path):
        return release_batches(self.kept, secret=ReleaseKey.create(tmp_path / "release.key"), ids="name")

    def test_every_execution_gives_the_same_reports(self, release):
        first = pa.Table.from_batches(release(PEOPLE.to_batches()))
        assert len(set(first["skldp_report"].to_pylist())) == N
        again = pickle.loads(pickle.dumps(release))
        # Other batches, and another order of people.
        order = np.random.default_rng(0).permutation(N)
        second = pa.Table.from_batches(again(PEOPLE.take(order).to_batches(max_chunksize=7)))
        assert second.equals(first.take(order))
        collector = Collector(self.kept)
        for batch in [*first.to_batches(), *second.to_batches()]:
            collector.add_batch(batch)
        assert collector.counts[:] == (N, 0, 0, N)

    def test_reports_are_those_of_the_people(self, release):
        row = PEOPLE.slice(11, 1)
        (batch,) = release(row.to_batches())
        (record,) = row.to_pylist()
        name = record.pop("name")
        report = self.kept.release(record, secret=release.secret, person=name)
        assert batch["skldp_report"].to_pylist() == [report]

    def test_no_secret_travels(self, release, tmp_path):
        secret = (tmp_path / "release.key").read_bytes()
        assert not any(secret[start : start + 8] in pickle.dumps(release) for start in range(24))
        with pytest.raises(TypeError, match="must not be pickled"):
            pickle.dumps(release_batches(self.kept, secret=ReleaseKey(secret), ids="name"))

    def test_what_does_not_fit_is_refused(self, release):
        secret = release.secret
        for policy, settings in (
            (self.kept, {}),
            (self.kept, {"secret": secret}),
            (self.kept, {"ids": "name"}),
            (self.kept, {"secret": b"x" * 32, "ids": "name"}),
            (POLICY, {"secret": secret, "ids": "name"}),
            (POLICY, {"ids": "name"}),
            (POLICY, {"secret": b"x" * 32, "ids": "name"}),
        ):
            with pytest.raises(ValueError, match="needs a secret and ids of people"):
                release_batches(policy, **settings)
        with pytest.raises(ValueError, match=r"once; it misses \['name'\]"):
            list(release(PEOPLE.drop_columns("name").to_batches()))
        for ids, kind in ((pa.nulls(N, pa.string()), "NoneType"), (pa.array([0.5] * N), "float")):
            with pytest.raises(TypeError, match=f"must be an integer or a string; got a {kind}"):
                list(release(PEOPLE.set_column(0, "name", ids).to_batches()))


class TestCollected:
    """Reports of engines that change schemas."""

    def table(self):
        release = release_batches(POLICY)
        return pa.Table.from_batches(release(PEOPLE.to_batches(max_chunksize=70)), schema=release.schema)

    @pytest.mark.parametrize("kind", ["binary", "large_binary", "fixed_size_binary"])
    def test_a_collector_needs_no_metadata(self, kind, tmp_path):
        own = pa.binary(POLICY.n_bytes) if kind == "fixed_size_binary" else getattr(pa, kind)()
        column = pa.array(self.table()["skldp_report"].to_pylist(), own)
        table = pa.table({"partition": [0] * N, "skldp_report": column})
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(table, tmp_path / "reports.parquet")
        collector = Collector(POLICY)
        collector.add_file(tmp_path / "reports.parquet")
        for batch in table.to_batches():
            collector.add_batch(batch)
        assert collector.counts[:] == (N, 0, 0, N)

    def test_what_is_no_report_is_counted(self):
        ours, theirs = self.table()["skldp_report"].to_pylist(), Policy("another", POLICY.fields)
        record = {"city": "Ulm", "shop": "shop 1"}
        # A byte that is always the same would be the right one in one of 256 runs.
        flipped = ours[0][:-1] + bytes([ours[0][-1] ^ 1])
        strange = [None, b"", b"no report", theirs.release(record), ours[0][:-1], flipped, *ours[:3]]
        collector = Collector(POLICY)
        collector.add_batch(pa.RecordBatch.from_pydict({"skldp_report": pa.array(strange, pa.binary())}))
        assert collector.counts[:] == (3, 4, 2, 0)
        # A column of another type under the name, or two of them, is somebody else's batch.
        collector.add_batch(pa.RecordBatch.from_pydict({"skldp_report": [1, 2]}))
        twice = pa.array(ours[:5], pa.binary())
        collector.add_batch(pa.RecordBatch.from_arrays([twice, twice], names=["skldp_report"] * 2))
        assert collector.counts[:] == (3, 11, 2, 0)


def test_in_polars():
    polars = pytest.importorskip("polars")
    people = polars.from_arrow(PEOPLE)
    reports = pa.Table.from_batches(release_batches(POLICY)(people.to_arrow().to_batches()))
    are_releases(polars.from_arrow(reports).to_arrow())


def test_in_pandas_of_arrow():
    pd = pytest.importorskip("pandas")
    people = PEOPLE.to_pandas(types_mapper=pd.ArrowDtype)
    batches = pa.Table.from_pandas(people).to_batches()
    reports = pa.Table.from_batches(release_batches(POLICY)(batches)).to_pandas(types_mapper=pd.ArrowDtype)
    are_releases(pa.Table.from_pandas(reports, preserve_index=False))
