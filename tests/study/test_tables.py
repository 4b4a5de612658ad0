"""The reader of tables: every format gives the same frame, whole and in chunks; no error shows a cell."""

import gzip

import pytest
from marked_values import TEXT, found_in

from skldp.study._table_files import StudyInputError, TextFormat, is_table_file, is_text_file, read_table, table_chunks

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

PEOPLE = pd.DataFrame(
    {
        "age": [31.5, 64.0, 18.0, 47.25, 22.0],
        "city": ["Ulm", "Köln", "Bonn", "Ulm", "Köln"],
        "children": [0, 2, 0, 1, 0],
    }
)


def write_arrow(people, path, new):
    table = pa.Table.from_pandas(people, preserve_index=False)
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


WRITERS = {
    "people.csv": lambda people, path: people.to_csv(path, index=False),
    "people.CSV": lambda people, path: people.to_csv(path, index=False),
    "people.tsv": lambda people, path: people.to_csv(path, index=False, sep="\t"),
    "people.csv.gz": lambda people, path: people.to_csv(path, index=False),
    "people.tsv.gz": lambda people, path: people.to_csv(path, index=False, sep="\t"),
    "people.parquet": lambda people, path: people.to_parquet(path, index=False),
    "people.arrow": lambda people, path: write_arrow(people, path, pa.ipc.new_file),
    "people.feather": lambda people, path: people.to_feather(path),
    "stream.arrow": lambda people, path: write_arrow(people, path, pa.ipc.new_stream),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_frame_whole_and_in_chunks(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](PEOPLE, path)
    assert is_table_file(path)
    # The cells of a text file are texts until a schema says what they are.
    people = PEOPLE.astype(str) if is_text_file(path) else PEOPLE
    pd.testing.assert_frame_equal(read_table(path), people, check_dtype=False)
    chunks = list(table_chunks(path, n_rows=2))
    assert all(0 < len(chunk) <= 2 for chunk in chunks)
    together = pd.concat(chunks, ignore_index=True)
    pd.testing.assert_frame_equal(together, people, check_dtype=False)
    some = read_table(path, columns=["children", "age"])
    pd.testing.assert_frame_equal(some, people[["age", "children"]], check_dtype=False)
    assert all(list(chunk) == ["city"] for chunk in table_chunks(path, columns=["city"]))


def test_separators_and_encodings(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age;city\n31;Köln\n", encoding="latin-1")
    assert read_table(path, form=TextFormat(";", encoding="latin-1"))["city"].tolist() == ["Köln"]
    told = set()
    for name in ("Köln", "Kirchhörde"):
        path.write_text(f"age;city\n31;{name}\n", encoding="latin-1")
        with pytest.raises(StudyInputError, match="its bytes are not UTF-8; --encoding says") as caught:
            read_table(path, form=TextFormat(";"))
        told.add(str(caught.value))
    # Not where in the cell.
    assert len(told) == 1
    path.write_text("age\tcity\n31\tUlm\n", encoding="utf-8")
    assert read_table(path, form=TextFormat("\\t"))["city"].tolist() == ["Ulm"]
    # What other programs put before UTF-8 is no part of a name.
    path.write_text("age,city\n31,Ulm\n", encoding="utf-8-sig")
    assert list(read_table(path)) == ["age", "city"]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("people.xlsx", TEXT, {}, "must be a .csv, .tsv"),
        ("people.parquet.gz", TEXT, {}, "must be a .csv, .tsv"),
        ("people.csv", "", {}, "is empty"),
        ("people.csv", "age\n1\n", {"columns": ["city"]}, r"people.csv must have the column 'city'; it has 1 column;"),
        ("people.csv", f"{TEXT},1\n1,2\n", {"columns": ["city"]}, "it has 2 columns; the first row holds the names"),
        ("people.csv", "age\n1\n", {"form": TextFormat("ab")}, "one character"),
        ("people.csv", "age\n1\n", {"form": TextFormat("a")}, "one character"),
        ("people.csv", "age\n1\n", {"form": TextFormat(encoding="latin-99")}, "Python knows"),
        ("people.csv", f"age,city\n1,{TEXT}\n1,{TEXT},3\n", {}, "row 2 has more"),
        ("people.csv", f"age,city\n1,{TEXT}\n1,{TEXT},3,4\n", {}, "line 3|row 2"),
        ("people.csv", f"\nage,city\n1,{TEXT}\n", {}, "begins with an empty line"),
        ("people.csv", f"age,city\n1,{TEXT},3\n2,{TEXT},4\n", {}, "row 1 has more cells than"),
        ("people.csv", f'age\n1\n"{TEXT}\n', {}, "no CSV file"),
        ("people.csv", "age\n1\n".encode("utf-16") + TEXT.encode(), {}, "UTF-8"),
        ("people.csv.gz", TEXT, {}, "gzip"),
        ("people.csv.gz", gzip.compress(f"age\n{TEXT}\n".encode() * 99, mtime=0)[:-20], {}, "broken off"),
        ("people.parquet", TEXT, {}, "no Parquet file"),
        ("people.arrow", f"ARROW1{TEXT}", {}, "no Arrow file"),
        ("people.csv", "age\n1\n", {"form": TextFormat(decimal=";")}, "a point or a comma"),
        ("people.arrow", "age", {"form": TextFormat(";")}, "are for .csv"),
        ("people.arrow", "age", {"form": TextFormat(missing=("NA",))}, "--missing and --no-header are for .csv"),
        ("people.csv", f"age,,city\n1,{TEXT},2\n", {}, r"Column 2 of people.csv has no name.*--columns"),
        ("people.csv", f"{TEXT},3,{TEXT}\n1,2,3\n", {}, "once; got columns 1 and 3 of one name"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line_without_a_cell(name, content, options, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for read in (read_table, lambda *args, **more: list(table_chunks(*args, n_rows=1, **more))):
        with pytest.raises(StudyInputError, match=message) as caught:
            read(path, **options)
        assert "\n" not in str(caught.value)
        assert not found_in(str(caught.value))


def test_what_breaks_off_further_down_is_refused_when_it_comes_to_that(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,city\n" + "1,Ulm\n" * 5 + f"1,{TEXT},3\n", encoding="utf-8")
    chunks = table_chunks(path, n_rows=2)
    assert len(next(chunks)) == 2
    with pytest.raises(StudyInputError, match="row 6 ") as caught:
        list(chunks)
    assert not found_in(str(caught.value))


def test_a_column_that_is_there_twice_is_refused_where_it_is_read(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,city,age\n31,Ulm,64\n")
    with pytest.raises(StudyInputError, match=r"must be in people\.csv once; got columns 1 and 3 of one"):
        read_table(path, columns=["city", "age"])
    assert read_table(path, columns=["city"])["city"].tolist() == ["Ulm"]
