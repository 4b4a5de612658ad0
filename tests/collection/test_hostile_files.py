"""Files of any sender: memory and time are bounded by the size of the file."""

import re

import numpy as np
import pytest

from skldp import Collector
from skldp.client import Field, Policy
from skldp.client._report_bytes import header
from skldp.collection import _report_files
from skldp.collection._report_tables import batch_of_reports, has_reports
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import UnaryEncoding

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

POLICY = Policy("a test", (Field("city", Column(values=("Bonn", "Ulm")), RandomizedResponse(1.0, 2).integer_law),))
REPORTS = POLICY.release_table({"city": ["Ulm"] * 50})


def write(path, batches, form="stream", **options):
    writer = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with (
        pa.OSFile(str(path), "wb") as file,
        writer(file, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as out,
    ):
        for batch in batches:
            out.write_batch(batch)
    return path


def equal_rows(n):
    """One report, n times, which compresses to nearly nothing."""
    return batch_of_reports([REPORTS[0]] * n)


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_arrow_is_refused_before_it_is_decompressed(tmp_path, form, codec):
    path = write(tmp_path / "bomb", [equal_rows(100_000)], form, compression=codec)
    assert path.stat().st_size < 100_000 * POLICY.n_bytes / 5
    made, before = Collector(POLICY), pa.total_allocated_bytes()
    with pytest.raises(ValueError, match="without compression"):
        made.add_file(path)
    assert made.counts == (0, 0, 0, 0)
    assert pa.total_allocated_bytes() - before < 100_000


def test_arrow_of_before_its_first_version_is_refused(tmp_path):
    # It could name its compression where nothing here looks.
    path = write(tmp_path / "old", [equal_rows(1)], metadata_version=pa.ipc.MetadataVersion.V4)
    with pytest.raises(ValueError, match=re.escape("Arrow 1.0 or newer")):
        Collector(POLICY).add_file(path)


def test_an_arrow_file_without_its_end_is_broken_after_what_it_holds(tmp_path):
    path = write(tmp_path / "cut", [batch_of_reports(REPORTS)], "file")
    path.write_bytes(path.read_bytes()[:-6])
    made = Collector(POLICY)
    with pytest.warns(UserWarning, match="cut is damaged or cut off, and its rest was not read; got 50 reports of it"):
        made.add_file(path)
    assert made.counts == (50, 0, 1, 0)


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(1_000_000),
        pytest.importorskip("pyarrow.compute").run_end_encode(pa.array([1] * 1_000_000)),
    ],
)
def test_columns_of_no_width_are_refused(tmp_path, column):
    path = write(tmp_path / "bomb", [pa.RecordBatch.from_arrays([column], ["another"])])
    with pytest.raises(ValueError, match="must not share bytes"):
        Collector(POLICY).add_file(path)


def test_columns_that_share_their_bytes_are_refused(tmp_path):
    arrays = [pa.Array.from_buffers(pa.binary(16), 1000, [None, pa.py_buffer(bytes(16_000))])]
    arrays.append(pa.Array.from_buffers(pa.uint8(), 1000, [None, pa.py_buffer(bytes(1000))]))
    path = write(tmp_path / "bomb", [pa.RecordBatch.from_arrays(arrays, ["ids", "answers"])])
    with pa.OSFile(str(path)) as file:
        message = list(pa.ipc.MessageReader.open_stream(file))[1].metadata.to_pybytes()
    # Ids stand at 0 and answers after them, in a body of 17,000 bytes: let both begin at 0, in one of 16,000.
    forged = bytearray(message)
    answers = message.rfind((16_000).to_bytes(8, "little") + (1000).to_bytes(8, "little"))
    body = message.find((17_000).to_bytes(8, "little"))
    forged[answers : answers + 8] = bytes(8)
    forged[body : body + 8] = (16_000).to_bytes(8, "little")
    path.write_bytes(path.read_bytes().replace(message, bytes(forged)))
    with pytest.raises(ValueError, match="must not share bytes"):
        Collector(POLICY).add_file(path)


# The oldest pyarrow has no views, and cannot read files of polars, which has them: such a file counts as broken.
HAS_VIEWS = hasattr(pa, "binary_view")


@pytest.mark.parametrize("kind", ["dictionary", *["view"] * HAS_VIEWS])
def test_reports_in_other_layouts_are_foreign_and_not_expanded(kind):
    # 1,000 rows of one value of a megabyte.
    values = pa.array([bytes(1 << 20)])
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, dtype=np.int8)), values)
    if kind == "view":
        column = pa.repeat(pa.scalar(bytes(1 << 20), pa.binary_view()), 1)
    made, batch = Collector(POLICY), pa.RecordBatch.from_arrays([column], ["skldp_report"])
    with pytest.raises(ValueError, match="the type binary or large_binary"):
        has_reports(POLICY, batch.schema)
    made.add_batch(batch)
    assert made.counts == (0, len(column), 0, 0)


@pytest.mark.parametrize("form", ["dictionary", *["view", "polars"] * HAS_VIEWS])
@pytest.mark.parametrize("kind", ["parquet", "stream", "file"])
def test_honest_files_of_other_layouts_are_read_or_refused_with_the_reason(tmp_path, form, kind):
    reports, path = pa.array(REPORTS, pa.binary()), tmp_path / "reports"
    if form == "polars":
        frame = pytest.importorskip("polars").DataFrame({"skldp_report": REPORTS})
        {"parquet": frame.write_parquet, "stream": frame.write_ipc_stream, "file": frame.write_ipc}[kind](path)
    else:
        column = reports.dictionary_encode() if form == "dictionary" else reports.cast(pa.binary_view())
        table = pa.table({"skldp_report": column})
        pq.write_table(table, path) if kind == "parquet" else write(path, table.to_batches(), kind)
    made = Collector(POLICY)
    # Which of both depends on the version of the library that wrote the file; nothing vanishes.
    try:
        made.add_file(path)
    except ValueError as refusal:
        assert re.search("large_binary|must begin with a stream", str(refusal))  # noqa: PT017 -- one of two outcomes
    else:
        assert made.counts == (50, 0, 0, 0)


@pytest.mark.parametrize("n", [65_537, 100_000])
def test_a_parquet_file_has_at_most_as_many_rows_as_bytes(tmp_path, n):
    pq.write_table(pa.Table.from_batches([equal_rows(n)]), tmp_path / "bomb")
    assert (tmp_path / "bomb").stat().st_size < 5000
    with pytest.raises(ValueError, match=re.escape(f"at most 65,536 rows; got {n:,}")):
        Collector(POLICY).add_file(tmp_path / "bomb")


def test_a_parquet_file_of_another_schema_is_foreign_unread(tmp_path, monkeypatch):
    pq.write_table(pa.table({"other": [1, 2, 3]}), tmp_path / "other")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    made = Collector(POLICY)
    with pytest.warns(UserWarning, match=r"other holds no report of this policy; foreign reports or rows: 3\."):
        made.add_file(tmp_path / "other")
    assert made.counts == (0, 3, 0, 0)


def test_repeated_reports_take_no_memory(monkeypatch):
    monkeypatch.setattr(_report_files, "_ROWS", 100)
    monkeypatch.setattr(_report_files, "_WAITING", 100)
    made, held = Collector(POLICY), []
    for _ in range(20):
        made.add_batch(equal_rows(1000))
        held.append(sum(len(part.ids) for part in made._parts))
    assert max(held) <= 200
    assert made.counts == (1, 0, 0, 19_999)


@pytest.mark.parametrize("n_at_a_time", [1, 1 << 20])
def test_a_file_of_headers_is_parsed_in_linear_time(tmp_path, monkeypatch, n_at_a_time):
    monkeypatch.setattr(_report_files, "_BYTES", n_at_a_time)
    policy = Policy("a test", (Field("shop", Column(values=tuple(range(4000))), UnaryEncoding(1.0, 4000).integer_law),))
    start = header(bytes.fromhex(policy.sha256))
    tried = []
    real = _report_files.is_intact

    def counted(report):
        tried.append(len(report))
        return real(report)

    monkeypatch.setattr(_report_files, "is_intact", counted)
    for n in (5_000, 20_000):
        tried.clear()
        (tmp_path / "headers").write_bytes(start * n)
        made = Collector(policy)
        with pytest.warns(UserWarning, match="headers has broken reports"):
            made.add_file(tmp_path / "headers")
        assert made.counts.accepted == 0
        assert sum(tried) <= 2 * len(start) * n + 2 * policy.n_bytes


def test_reports_after_truncated_ones_are_found(tmp_path):
    content = b"".join(one[:-3] for one in REPORTS[:30]) + b"".join(REPORTS[30:])
    (tmp_path / "cut").write_bytes(content)
    made = Collector(POLICY)
    with pytest.warns(UserWarning, match=r"has broken reports \(30, beside 20 whole ones\)"):
        made.add_file(tmp_path / "cut")
    assert made.counts == (20, 0, 30, 0)


def test_a_table_is_its_batches():
    batches = [batch_of_reports(REPORTS[:20]), batch_of_reports(REPORTS[20:])]
    made = Collector(POLICY)
    made.add_batch(pa.Table.from_batches(batches))
    made.add_batch(pa.Table.from_batches([batch_of_reports(REPORTS[:5])]))
    assert made.counts == (50, 0, 0, 5)
    for other in ("text", [1], batches[0].column(0), pa.chunked_array([[1]]), batches[0].to_pandas()):
        with pytest.raises(TypeError, match=re.escape("pyarrow.RecordBatch or pyarrow.Table")):
            made.add_batch(other)
