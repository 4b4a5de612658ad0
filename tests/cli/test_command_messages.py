"""No command prints or writes a cell of the file that it reads; messages name the column and the row."""

import numpy as np
import pytest
from marked_values import NUMBER, TEXT, WHOLE, found_in, stored_in

import skldp
from skldp.study._datasets import load_study_data
from skldp.study._table_files import StudyInputError

pd = pytest.importorskip("pandas")

# A number of the first row would be taken for a name of a column.
GOOD = [f"{i / 24},{(i * 7 % 24) / 24},{'no' if i % 2 else 'yes'}" for i in range(24)]
HEAD = "age,dose,sick"


def csv(*lines, head=HEAD):
    return "\n".join([*([head] if head else []), *lines]) + "\n"


# Files that cannot be used, and what is said of each.
BAD = {
    "a string in a column": (csv(*GOOD[:6], f"{TEXT},0.5,no", *GOOD), r"Column 'age' .* not numeric, first in row 7"),
    "a string behind a number": (csv(f"{NUMBER},0.5,no", f"{TEXT},0.5,no", *GOOD), r"'age' .* row 2"),
    "a missing number": (csv(f"{NUMBER},,no", *GOOD), r"Column 'dose' .* 1 missing .* row 1"),
    "an infinite number": (csv(*GOOD, f"{NUMBER},inf,no"), r"Column 'dose' .* not numeric, first in row 25"),
    "a missing label": (csv(f"{NUMBER},0.5,{TEXT}", *GOOD, f"{NUMBER},0.5,"), r"1 missing label, .* row 26"),
    "a rare class": (csv(*GOOD, f"0.5,0.5,{TEXT}"), r"class .* has 1 row"),
    "one class": (csv(*[line.rpartition(",")[0] + f",{TEXT}" for line in GOOD]), "only one class"),
    "a class for each row": (csv(*[f"{i / 24},0.5,{WHOLE + i}" for i in range(24)]), r"class .* has 1 row"),
    "a label that is a number": (csv(*[f"0.5,0.5,{NUMBER + i / 8}" for i in range(24)]), "got continuous"),
    "no header": (csv(f"{NUMBER},0.5,{TEXT}", *GOOD, head=None), "it has 3 columns; the first row holds"),
    "too many cells": (csv(*GOOD, f"0.5,0.5,no,{TEXT}"), "row 25 has more cells"),
    "no text": (csv(*GOOD).encode() + TEXT.encode("utf-16"), "UTF-8"),
    "an open quote": (csv(*GOOD, f'0.5,0.5,"{TEXT}'), "no CSV file"),
}


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("case", BAD)
def test_errors_about_a_table_name_the_place_and_not_the_cell(case, tmp_path):
    content, said = BAD[case]
    path = write(tmp_path / "people.csv", content)
    with pytest.raises(StudyInputError, match=said) as caught:
        load_study_data(path, target="sick", bounds="0,1", task="classification")
    assert not found_in(str(caught.value))
    if said != "got continuous" and "a class for" not in case:
        # What holds numbers is a good regression.
        with pytest.raises(StudyInputError) as caught:
            load_study_data(path, target="sick", bounds="0,1", task="regression", target_bounds="0,1")
        assert not found_in(str(caught.value))


def test_a_target_or_bounds_that_do_not_fit_show_no_first_row(run, tmp_path):
    path = write(tmp_path / "people.csv", BAD["no header"][0])
    good = write(tmp_path / "good.csv", csv(*GOOD))
    for arguments in (
        [path, "--bounds", "0,1"],
        [path, "--target", "nobody", "--bounds", "0,1"],
        [path, "--target", "no", "--bounds", path],
        [good, "--target", "sick", "--bounds", path],
    ):
        code, out, err = run("study", *arguments)
        assert code == 2
        assert not found_in(out + err)


COLUMNS = {
    "strings": [TEXT] * 24,
    "dates": pd.to_datetime([WHOLE] * 24, unit="s"),
    "lists": [[NUMBER]] * 24,
    "categories": pd.Categorical([TEXT] * 24),
    "missing": [NUMBER, None] * 12,
    "missing integers": pd.array([WHOLE, None] * 12, dtype="Int64"),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("place", ["age", "sick"])
def test_errors_about_a_parquet_file_show_nothing_of_it(kind, place, tmp_path):
    pytest.importorskip("pyarrow")
    columns = {"age": np.linspace(0, 1, 24), "sick": ["no", "yes"] * 12} | {place: COLUMNS[kind]}
    pd.DataFrame(columns).to_parquet(tmp_path / "people.parquet")
    with pytest.raises(StudyInputError) as caught:
        load_study_data(tmp_path / "people.parquet", target="sick", bounds="0,1")
    assert not found_in(str(caught.value))


@pytest.mark.slow
def test_what_is_printed_and_written_shows_no_cell(run, tmp_path):
    # Classes, and numbers within and outside of the bounds, that a report might list.
    rows = [f"{NUMBER if i % 3 else 0.5},{i / 48},{TEXT if i % 2 else WHOLE}" for i in range(48)]
    path = write(tmp_path / "people.csv", csv(*rows))
    options = ["--epsilons", "2", "--target", "sick", "--bounds", "0,1"]
    options += ["--mechanism", "bitrand-exact,hybrid", "--folds", "2", "--report", "report.html"]
    code, out, err = run("study", path, *options)
    assert (code, err) == (0, "")
    assert not found_in(out)
    written = [file for file in tmp_path.iterdir() if file != path]
    assert len(written) == 3
    for file in written:
        assert not stored_in(file.read_bytes())
        assert file.suffix == ".png" or not [trace for trace in ("HIV", "987654", "31337") if trace in file.read_text()]


def test_the_text_of_another_library_is_not_printed(run, monkeypatch):
    def convert(*args, **kwargs):
        float(TEXT)

    def convert_at_our_line(*args, **kwargs):
        # Compiled code has no line of its own in a traceback.
        exec(compile(f"float({TEXT!r})", skldp.__file__, "exec"))

    class WrappedError(Exception):
        """An error of its own kind, as pyarrow's of bytes that are not UTF-8."""

    def wrap(*args, **kwargs):
        raise WrappedError(f"Wrapping {TEXT} failed")

    def look_up(*args, **kwargs):
        {}[TEXT]

    fails = {convert: "ValueError", convert_at_our_line: "ValueError", wrap: "WrappedError", look_up: "KeyError"}
    for one, name in fails.items():
        monkeypatch.setattr("skldp.study._comparison.compare_mechanisms", one)
        code, out, err = run("study", "wine")
        assert (code, out) == (2, "")
        assert err.startswith(f"skldp: Another library raised {name}; its text is not printed")
        assert err.count("\n") == 1
        assert not found_in(err)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_bytes_of_a_typed_file_that_are_not_utf_8_are_not_shown(run, tmp_path, ending):
    """Pandas decoded them later, and its error had the cell."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    cells = [b"no", b"yes", TEXT.encode(), b"\xff\xfe" + TEXT.encode()]
    ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
    names = pa.Array.from_buffers(pa.string(), 4, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))])
    table, path = pa.table({"name": names, "sick": pa.array([0, 1, 0, 1])}), tmp_path / f"people.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    field = skldp.client.Field(
        "name", skldp.mechanisms.Column(values=("no", "yes")), skldp.mechanisms.RandomizedResponse(1.0, 2).integer_law
    )
    skldp.client.Policy("a test", (field,)).save(tmp_path / "policy.json")
    for command in (
        ("release", "policy.json", path, "-o", "reports.arrow", "--count-unknown"),
        ("study", path, "--target", "sick", "--schema", '{"name": ["no", "yes"]}'),
    ):
        code, out, err = run(*command)
        assert (code, out) == (2, "")
        assert f"people.{ending} is no {ending.capitalize()} file that can be read" in err
        assert not found_in(err)
        assert [one.name for one in tmp_path.iterdir()].count("reports.arrow") == 0


@pytest.mark.parametrize("case", ["a string in a column", "a rare class", "no header"])
def test_a_study_refuses_it_in_one_line(case, run, tmp_path):
    path = write(tmp_path / "people.csv", BAD[case][0])
    code, out, err = run("study", path, "--target", "sick", "--bounds", "0,1")
    assert (code, len(err.splitlines())) == (2, 1)
    assert not found_in(out + err)
