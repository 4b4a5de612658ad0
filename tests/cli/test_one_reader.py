"""Study and release read a file alike: the header, the options and the declared columns decide, never the cells."""

import json
import re

import numpy as np
import pytest
from marked_values import TEXT, found_in

from skldp.client import Field, Policy
from skldp.mechanisms import Column, RandomizedResponse
from skldp.study._datasets import load_study_data
from skldp.study._table_files import StudyInputError, TextFormat, read_table

pd = pytest.importorskip("pandas")
pytest.importorskip("rich")
pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

AGE = {"type": "number", "low": 0, "high": 100}
# Texts that readers of tables take for missing cells, for numbers or for booleans.
VALUES = ["None", "NA", "nan", "null", "N/A", "-", "1e5", "True", "007", "-9"]
QUICK = ("--mechanism", "logistic-once", "--epsilons", 4, "--folds", 2)


@pytest.fixture
def released(run, tmp_path):
    def read(policy, table, *options):
        """The answers of a policy, which at such an epsilon are the codes."""
        policy.save(tmp_path / "policy.json")
        code, said, wrong = run("release", "policy.json", table, "-o", "reports.arrow", *options)
        assert (code, wrong) == (0, ""), wrong
        with pa.ipc.open_file(str(tmp_path / "reports.arrow")) as file:
            reports = file.read_all()["skldp_report"].to_pylist()
        return [list(policy.read(report).answers.values()) for report in reports], said

    return read


def coded(**columns):
    laws = {name: RandomizedResponse(60.0, len(values)).integer_law for name, values in columns.items()}
    return Policy("a test", tuple(Field(name, Column(values=values), laws[name]) for name, values in columns.items()))


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet"])
def test_declared_texts_are_values_whatever_they_look_like(run, released, tmp_path, ending):
    n = 6 * len(VALUES)
    people = pd.DataFrame({"drink": VALUES * 6, "sick": ["NA", "None"] * (n // 2)})
    table = tmp_path / f"people.{ending}"
    if ending == "parquet":
        people.to_parquet(table)
    else:
        people.to_csv(table, index=False, sep="\t" if ending == "tsv" else ",")
    schema = {"drink": {"type": "category", "values": VALUES, "ordered": True}}
    data = load_study_data(table, target="sick", schema=schema)
    assert data.n_filled == 0
    assert set(data.classes) == {"NA", "None"}
    answers, _ = released(coded(drink=tuple(VALUES)), table)
    assert data.X[:, 0].tolist() == [code for [code] in answers] == list(range(len(VALUES))) * 6
    if ending != "parquet":
        # A text that --missing names stays a value where it is declared.
        form = TextFormat(missing=("NA", "None"))
        with pytest.raises(StudyInputError, match=r"'sick' .* has 60 missing labels, the first in row 1"):
            load_study_data(table, target="sick", schema=schema, form=form)
        labels = {"sick": ["NA", "None"]}
        assert load_study_data(table, target="sick", schema=schema | labels, form=form).X.tolist() == data.X.tolist()
    code, _, wrong = run("study", table, "--target", "sick", "--schema", json.dumps(schema), *QUICK)
    assert (code, wrong) == (0, "")


@pytest.mark.parametrize(
    ("text", "options", "form"),
    [
        ("plan;sick\n1,0;a\nNA;b\n2,0;a\n.;b\n", ("--separator", ";"), TextFormat(";", ",", missing=("NA", "."))),
        ('plan,sick\n"1,0",a\nNA,b\n"2,0",a\n.,b\n', (), TextFormat(None, ",", missing=("NA", "."))),
    ],
)
def test_the_options_mean_the_same_in_every_command(released, tmp_path, text, options, form):
    (tmp_path / "people.csv").write_text(text)
    values = {"type": "category", "values": [2, 1], "missing": "category"}
    data = load_study_data(tmp_path / "people.csv", target="sick", schema={"plan": values}, form=form)
    answers, _ = released(coded(plan=(2, 1, None)), "people.csv", *options, "--decimal", ",", "--missing", "NA,.")
    assert data.X.argmax(axis=1).tolist() == [code for [code] in answers] == [1, 2, 0, 2]
    # Bounds alone, and the declared number: the cells are the same numbers.
    for given in ({"bounds": "0,9"}, {"schema": {"plan": AGE | {"high": 9}}}):
        with pytest.raises(StudyInputError, match=r"'plan' of people.csv has 2 missing values, the first in row 2"):
            load_study_data(tmp_path / "people.csv", target="sick", form=form, **given)
        data = load_study_data(tmp_path / "people.csv", target="sick", form=form, count_unknown=True, **given)
        assert data.X[:, 0].tolist() == [1, 4.5, 2, 4.5]
        assert data.n_filled == 2


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("NA", "looks like a missing cell.*--missing NA"),
        ("-", "looks like a missing cell.*--missing NA"),
        ("31,5", "decimal comma, which --decimal reads"),
        ("1'234.5", "separators of thousands: remove"),
        ("1.234,5", "separators of thousands: remove"),
        (TEXT, r"declare it.*columns\.$|of type str\.$"),
    ],
)
def test_one_cell_among_numbers_has_its_row_and_what_it_looks_like(run, tmp_path, cell, hint):
    rows = [f'"{cell if i == 3 else i}",{i * 7 % 60},{"yes" if i % 2 else "no"}' for i in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["pay,age,sick", *rows]) + "\n")
    declared = {"pay": AGE, "age": AGE}
    with pytest.raises(ValueError, match="1 of 60 that are not, the first in row 4") as caught:
        load_study_data(tmp_path / "people.csv", target="sick", schema=declared)
    said = [str(caught.value)]
    assert run("policy", "new", json.dumps(declared), "--purpose", "x", "-o", "policy.json")[0] == 0
    said.append(run("release", "policy.json", "people.csv", "-o", "reports.arrow")[2].strip())
    # The same words of the same reader.
    assert said[1] == f"skldp: {said[0]}"
    with pytest.raises(StudyInputError, match=r"'pay' of people.csv is not numeric, first in row 4") as caught:
        load_study_data(tmp_path / "people.csv", target="sick", bounds="0,100")
    for one in (*said, str(caught.value)):
        assert re.search(hint, one)
        assert not found_in(one)
        assert cell in ("NA", "-") or cell not in one


def test_the_first_row_holds_the_names_and_no_number_among_them_says_otherwise(run, tmp_path):
    X = np.random.default_rng(0).uniform(0, 10, (300, 3))
    pd.DataFrame(np.column_stack([X, X.sum(axis=1)])).to_csv(tmp_path / "t.csv", index=False)
    options = ("--target", 3, "--bounds", "0,10", "--target-bounds", "0,30", "--mechanism", "duchi", *QUICK[2:])
    code, said, _ = run("study", "t.csv", *options)
    assert (code, said.startswith("t.csv: 300 rows, 3 features")) == (0, True)
    code, said, _ = run("study", "t.csv", *options, "--no-header")
    assert said.startswith("t.csv: 301 rows, 3 features")
    (tmp_path / "t.csv").write_text("1,0\n0,1\n")
    read = [read_table(tmp_path / "t.csv", form=TextFormat(header=header)) for header in (True, False)]
    assert [(list(one), len(one)) for one in read] == [(["1", "0"], 1), (["0", "1"], 2)]


@pytest.mark.parametrize(
    "first", [f"1980-02-03,Ann {TEXT},HIV", f"{TEXT},Ulm", f"Ann;{TEXT};31", f"{TEXT},{TEXT}", f"{TEXT},,31"]
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_without_a_header_shows_no_name_that_was_not_asked_for(run, tmp_path, first, ending):
    table = f"people.{ending}"
    if ending == "csv":
        (tmp_path / table).write_text(f"{first}\n{first}\n")
    else:
        columns = [[1.0] * 4 for _ in first.split(",")]
        pq.write_table(pa.table(columns, names=first.split(",")), tmp_path / table)
    coded(age=("a", "b")).save(tmp_path / "policy.json")
    for given in (
        ("release", "policy.json", table, "-o", "reports.arrow"),
        ("study", table, "--bounds", "0,1"),
        ("study", table, "--bounds", "0,1", "--target", "age"),
        ("study", table, "--columns", "city", "--target", "age"),
        ("study", "wine", "--bounds", table),
    ):
        code, said, wrong = run(*given)
        assert (code, said, wrong.count("\n")) == (2, "", 1)
        assert not found_in(wrong)
        assert not [one for one in ("1980", "Ann", "HIV", "Ulm", "31") if one in wrong]


def test_row_numbers_are_no_feature(run, tmp_path):
    """Sorted rows predict their target from the number of the row."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(0, 100, 400), "sick": ["no", "yes"] * 200}).sort_values(
        "sick", kind="stable"
    )
    frame = frame[frame["a"] > 1].reset_index(drop=True)
    odd = frame[frame.index % 3 > 0]
    odd.to_parquet(tmp_path / "t.parquet")
    odd.rename_axis("person").to_parquet(tmp_path / "named.parquet")
    for name in ("t.parquet", "named.parquet"):
        data = load_study_data(tmp_path / name, target="sick", bounds="0,400")
        assert data.feature_names == ("a",)
        assert data.row_numbers() == []
    # A policy, or --columns, may name the index.
    assert list(read_table(tmp_path / "named.parquet", columns=["person"])) == ["person"]
    odd.to_csv(tmp_path / "t.csv")
    with pytest.raises(StudyInputError, match=r"Column 1 of t.csv has no name.*\(index=False\).*--columns"):
        load_study_data(tmp_path / "t.csv", target="sick", bounds="0,400")
    assert load_study_data(tmp_path / "t.csv", target="sick", bounds="0,400", columns=["a"]).feature_names == ("a",)
    odd.rename_axis("row number").to_csv(tmp_path / "t.csv")
    assert load_study_data(tmp_path / "t.csv", target="sick", bounds="0,400").row_numbers() == ["row number"]
    said = run("study", "t.csv", "--target", "sick", "--bounds", "0,400", *QUICK)[1]
    assert "The rows ascend by 'row number', as row numbers do" in said
    # Neither a repeated number nor a fraction is one.
    odd.assign(b=np.arange(len(odd)) // 2, c=np.arange(len(odd)) / 2).to_csv(tmp_path / "t.csv", index=False)
    assert load_study_data(tmp_path / "t.csv", target="sick", bounds="0,400").row_numbers() == []


def test_undeclared_and_missing_cells_count_as_a_policy_says(released, tmp_path):
    (tmp_path / "people.csv").write_text("plan,age,sick\nb,3,x\n,,y\nz,5,x\na,7,y\n")
    schema = {"plan": {"type": "category", "values": ["a", "b"]}, "age": AGE}
    for option in ({}, {"columns": ["plan"], "schema": {"plan": ["a", "b"]}}):
        with pytest.raises(ValueError, match=r"row 2|row 3"):
            load_study_data(tmp_path / "people.csv", target="sick", **{"schema": schema} | option)
    data = load_study_data(tmp_path / "people.csv", target="sick", schema=schema, count_unknown=True)
    answers, said = released(coded(plan=("a", "b")), "people.csv", "--count-unknown")
    assert data.X[:, 0].tolist() == [code for [code] in answers] == [1, 0, 0, 0]
    assert data.X[:, 1].tolist() == [3, 50, 5, 7]
    assert data.n_filled == 3
    assert "Missing or undeclared plan counts as a in 2 rows." in said
