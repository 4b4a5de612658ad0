"""Record batches in, reports out: in this process, in others, and in the engines that have batches."""

import pickle

import numpy as np
import pytest

from skldp import release_batches
from skldp.client import CategoryField, NumberField, Policy
from skldp.collection._arrow import columns_of_batch, report_schema
from skldp.mechanisms import Duchi, RandomizedResponse, SubsetSelection, integer_law

pa = pytest.importorskip("pyarrow")

POLICY = Policy(
    "a test",
    (
        NumberField("age", 0, 100, integer_law(Duchi(20.0)), missing=50.0),
        CategoryField("city", ("Bonn", "Ulm", None), integer_law(RandomizedResponse(40.0, 3))),
        CategoryField("shop", tuple(f"shop {i}" for i in range(9)), integer_law(SubsetSelection(1.0, 9))),
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


def are_releases(table):
    """Whether the rows are reports of the people in their order, which these epsilons leave without doubt."""
    assert table.num_rows == N
    assert set(table.column_names) == set(report_schema(POLICY).names)
    assert table["city"].to_pylist() == [1, 2, 0] * (N // 3)
    assert table["age"].to_pylist() == [1, 0, 1] * (N // 3)
    assert len(set(table["skldp_report_id"].to_pylist())) == N


def batches_of(table):
    """As an engine may hand them on: of other types and without metadata."""
    wanted = report_schema(POLICY)
    return pa.Table.from_pydict(table.select(wanted.names).to_pydict(), schema=wanted).to_batches()


def test_batches_become_reports_of_the_same_people():
    release = release_batches(POLICY)
    made = list(release(PEOPLE.to_batches(max_chunksize=70)))
    assert [batch.num_rows for batch in made] == [70, 70, 70, 70, 20]
    assert all(batch.schema.equals(release.schema, check_metadata=True) for batch in made)
    are_releases(pa.Table.from_batches(made))
    assert sum(len(columns_of_batch(POLICY, batch)[0].ids) for batch in made) == N


def test_the_function_passes_to_other_processes_and_draws_anew():
    release = pickle.loads(pickle.dumps(release_batches(POLICY)))
    first, second = (pa.Table.from_batches(release(PEOPLE.to_batches())) for _ in range(2))
    are_releases(first)
    assert set(first["skldp_report_id"].to_pylist()).isdisjoint(second["skldp_report_id"].to_pylist())


def test_what_is_refused_draws_nothing_and_shows_nothing(monkeypatch):
    monkeypatch.setattr("os.urandom", lambda size: pytest.fail("drawn before all was known to pass"))
    release = release_batches(POLICY)
    strange = PEOPLE.set_column(1, "city", pa.array(["Ulm"] * (N - 1) + ["Atlantis"]))
    with pytest.raises(ValueError, match="must be one of its values") as refusal:
        list(release(strange.to_batches()))
    assert "Atlantis" not in str(refusal.value)
    with pytest.raises(ValueError, match=r"every column that the policy names, once. Got one without \['age'\]"):
        list(release(PEOPLE.drop_columns("age").to_batches()))
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"])
    with pytest.raises(ValueError, match="must have every column"):
        list(release([twice]))
    with pytest.raises(ValueError, match=r"must be in pyarrow.RecordBatch. Got Table"):
        list(release([PEOPLE]))
    with pytest.raises(ValueError, match="must not have expired"):
        list(release_batches(Policy("late", POLICY.fields, "2020-01-01T00:00:00Z"))(PEOPLE.to_batches()))


def test_a_set_of_another_size_is_a_broken_row():
    (batch,) = release_batches(POLICY)(PEOPLE.to_batches())
    columns = [*batch.columns[:3], pa.array([0b111111111] * 9 + [0] * (N - 9), pa.uint16()), *batch.columns[4:]]
    forged = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    columns, n_broken = columns_of_batch(POLICY, forged)
    assert (len(columns.ids), n_broken) == (0, N)


def test_in_polars():
    polars = pytest.importorskip("polars")
    people = polars.from_arrow(PEOPLE)
    reports = pa.Table.from_batches(release_batches(POLICY)(people.to_arrow().to_batches()))
    frame = polars.from_arrow(reports)
    are_releases(frame.to_arrow())
    assert sum(len(columns_of_batch(POLICY, batch)[0].ids) for batch in batches_of(frame.to_arrow())) == N


def test_in_pandas_of_arrow():
    pd = pytest.importorskip("pandas")
    people = PEOPLE.to_pandas(types_mapper=pd.ArrowDtype)
    batches = pa.Table.from_pandas(people).to_batches()
    reports = pa.Table.from_batches(release_batches(POLICY)(batches)).to_pandas(types_mapper=pd.ArrowDtype)
    are_releases(pa.Table.from_pandas(reports, preserve_index=False))
    assert reports["age"].to_numpy().dtype == np.uint8


def test_in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    release = release_batches(POLICY)
    with duckdb.connect() as connection:
        connection.register("people", PEOPLE)
        of_all = connection.sql("SELECT * EXCLUDE (name) FROM people")
        # The name of before 2.0.
        of_people = (
            of_all.to_arrow_reader(100) if hasattr(of_all, "to_arrow_reader") else of_all.fetch_record_batch(100)
        )
        connection.register("reports", pa.Table.from_batches(release(of_people)))
        kept = connection.sql("SELECT * FROM reports").to_arrow_table()
    are_releases(kept)
