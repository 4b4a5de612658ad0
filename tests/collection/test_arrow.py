"""Reports as Arrow record batches: what is written is read again, and nothing else is."""

import numpy as np
import pytest

from skldp.client import CategoryField, NumberField, Policy
from skldp.collection._report_tables import batch_of_reports, columns_of, columns_of_batch, join, report_schema
from skldp.mechanisms import Duchi, Hybrid, RandomizedResponse
from skldp.mechanisms.categorical._unary import UnaryEncoding

pa = pytest.importorskip("pyarrow")

POLICY = Policy(
    "a test",
    (
        NumberField("age", 0, 100, Hybrid(1.0).integer_law),
        NumberField("yes", 0, 1, Duchi(1.0).integer_law),
        CategoryField("city", tuple(f"city {i}" for i in range(300)), RandomizedResponse(1.0, 300).integer_law),
        CategoryField("shop", tuple(f"shop {i}" for i in range(70)), UnaryEncoding(1.0, 70).integer_law),
    ),
)
REPORTS = [POLICY.release({"age": i, "yes": 1, "city": f"city {i}", "shop": f"shop {i}"}) for i in range(9)]


def one_row(**changed):
    """A batch of one row, with some columns as asked."""
    batch = batch_of_reports(POLICY, REPORTS[:1])
    columns = [changed.get(name, batch.column(name)) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def changed_columns(batch, **changed):
    """A batch with other columns in the place of some, or beside them, and its metadata."""
    columns = {name: batch.column(name) for name in batch.schema.names} | changed
    made = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    return made.replace_schema_metadata(batch.schema.metadata)


def test_the_schema_says_whose_reports_they_are():
    schema = report_schema(POLICY)
    assert schema.names == ["skldp_report_id", "age", "yes", "city", "shop"]
    assert schema.types == [pa.binary(16), pa.uint32(), pa.uint8(), pa.uint16(), pa.binary(9)]
    assert schema.metadata == {
        b"skldp_reports": b"1",
        b"skldp_policy_sha256": POLICY.sha256.encode(),
        b"skldp_epsilon": repr(POLICY.epsilon).encode(),
        b"skldp_delta": b"0",
        b"skldp_unit": b"record",
    }


def test_what_is_written_is_read_again(tmp_path):
    batch = batch_of_reports(POLICY, REPORTS)
    batch.validate(full=True)
    with pa.OSFile(str(tmp_path / "r.arrow"), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.memory_map(str(tmp_path / "r.arrow")) as file:
        again = pa.ipc.open_file(file).get_batch(0)
    wanted = columns_of(POLICY, [POLICY.read(report) for report in REPORTS])
    # Slices, and columns in another order and beside others, are the same reports.
    other_order = changed_columns(again.select(again.schema.names[::-1]), more=pa.array(range(9)))
    parts = [columns_of_batch(POLICY, part)[0] for part in (again.slice(0, 2), again.slice(2))]
    for got, n_broken in [columns_of_batch(POLICY, again), columns_of_batch(POLICY, other_order), (join(parts), 0)]:
        assert n_broken == 0
        for one, other in zip((got.ids, *got.answers), (wanted.ids, *wanted.answers), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "changed",
    [
        {"city": pa.array([300], pa.uint16())},
        {"yes": pa.array([2], pa.uint8())},
        {"age": pa.array([POLICY.fields[0].n_answers], pa.uint32())},
        {"shop": pa.array([(2**70).to_bytes(9, "big")], pa.binary(9))},
        {"city": pa.array([None], pa.uint16())},
        {"skldp_report_id": pa.array([None], pa.binary(16))},
    ],
)
def test_rows_that_are_no_reports_are_counted(changed):
    columns, n_broken = columns_of_batch(POLICY, one_row(**changed))
    assert (len(columns.ids), [len(one) for one in columns.answers], n_broken) == (0, [0] * 4, 1)


def test_the_largest_answers_are_answers():
    largest = {"city": pa.array([299], pa.uint16()), "shop": pa.array([(2**70 - 1).to_bytes(9, "big")], pa.binary(9))}
    assert columns_of_batch(POLICY, one_row(**largest))[1] == 0


def test_batches_of_others_are_refused():
    batch = batch_of_reports(POLICY, REPORTS)
    for name in (b"skldp_policy_sha256", b"skldp_reports"):
        with pytest.raises(ValueError, match="metadata of a batch"):
            columns_of_batch(POLICY, batch.replace_schema_metadata(batch.schema.metadata | {name: b"2"}))
    with pytest.raises(ValueError, match="metadata of a batch"):
        columns_of_batch(POLICY, batch.replace_schema_metadata(None))
    wide = changed_columns(batch, yes=pa.array([0] * 9, pa.uint64()))
    names = [*batch.schema.names, "city"]
    twice = pa.RecordBatch.from_arrays([batch.column(name) for name in names[:-1]] + [batch.column("city")], names)
    for strange in (wide, batch.select(["age", "city"]), twice):
        with pytest.raises(ValueError, match="names and types of the policy"):
            columns_of_batch(POLICY, strange.replace_schema_metadata(batch.schema.metadata))


def test_a_field_may_not_be_called_as_the_id():
    field = NumberField("skldp_report_id", 0, 1, Duchi(1.0).integer_law)
    with pytest.raises(ValueError, match="name of the reports' id"):
        report_schema(Policy("a test", (field,)))
