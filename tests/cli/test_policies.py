"""Policies and releases on the command line: what is written, and what is not where something is refused."""

import gzip
import json

import pytest

from skldp import Policy
from skldp.client import NumberField
from skldp.collection._arrow import columns_of_batch, report_schema
from skldp.mechanisms import LongitudinalMean, law_within_bounds

pytest.importorskip("rich")
pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SCHEMA = {
    "age": {"type": "interval", "low": 0, "high": 100, "missing": "middle"},
    "city": {"type": "categories", "values": ["NA", "Ulm"], "missing": "category"},
    "since": {"type": "dates", "low": "2020-01-01", "high": "2024-12-31"},
    "plan": {"type": "categories", "values": [1, 2, 3], "missing": "category"},
    "member": {"type": "categories", "values": [True, False]},
}
ROWS = [
    "name,age,city,since,plan,member",
    "somebody,31,NA,2021-03-01,1,true",
    "another,,,2022-03-01,,False",
    "a third,64.5,Ulm,2023-03-01,3,True",
]
# So large that every answer is the value's.
EPSILON = 300


@pytest.fixture
def policy(run, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    code, said, wrong = run(
        *("policy", "new", "schema.json", "--purpose", "a survey", "--epsilon", EPSILON, "--unit", "age=years"),
        *("--expires", "9999-01-31T00:00:00Z", "-o", "policy.json"),
    )
    assert (code, wrong) == (0, "")
    made = Policy.load(tmp_path / "policy.json")
    assert made.sha256 in said
    return made


def answers_of(policy, path):
    table = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    assert table.schema.equals(report_schema(policy), check_metadata=True)
    assert sum(len(columns_of_batch(policy, batch)[0].ids) for batch in table.to_batches()) == table.num_rows
    return {name: table[name].to_pylist() for name in policy.names}


def test_a_policy_of_two_steps_shows_what_a_lifetime_costs_and_is_checked_by_that(run, tmp_path):
    law = law_within_bounds(LongitudinalMean(2.0, 1.0, 0, 24))
    Policy("weekly", (NumberField("hours", 0, 24, law),), memo="permanent").save(tmp_path / "weekly.json")
    shown = run("policy", "show", "weekly.json")[1]
    assert "epsilon 1 a record" in shown
    assert "epsilon 2 of all reports together" in shown
    assert run("policy", "check", "weekly.json", "--most", "2")[0] == 0
    assert run("policy", "check", "weekly.json", "--most", "1.5")[0] == 2


def test_a_policy_is_made_shown_and_checked(run, policy, tmp_path):
    assert policy.purpose == "a survey"
    assert policy.names == list(SCHEMA)
    assert policy.fields[0].unit == "years"
    code, said, _ = run("policy", "show", "policy.json")
    assert code == 0
    for part in (
        "a survey",
        "0 to 100 years",
        "2020-01-01 to 2024-12-31",
        '"NA", "Ulm", null',
        "true, false",
        "until 9999",
    ):
        assert part in said
    assert run("policy", "check", "policy.json", "--most", "300")[0] == 0
    code, _, wrong = run("policy", "check", "policy.json", "--most", "1")
    assert (code, wrong.startswith("skldp: The epsilon of the policy must be at most 1.")) == (2, True)
    (tmp_path / "forged.json").write_text(policy.to_json().replace("a survey", "a Survey"))
    for command in ("show", "check"):
        code, said, wrong = run("policy", command, "forged.json")
        assert (code, said) == (2, "")
        assert "document of its own sha256" in wrong


@pytest.mark.parametrize("arguments", [["{}"], ["[]"], ["schema.txt"], ['{"x": "dtype"}'], ['{"x": [0, 1]}']])
def test_what_declares_no_columns_makes_no_policy(run, tmp_path, arguments):
    code, _, wrong = run("policy", "new", *arguments, "--purpose", "x", "-o", "policy.json")
    assert code == 2
    assert "schema" in wrong.lower()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow"])
@pytest.mark.parametrize("output", ["reports.arrow", "reports.parquet"])
def test_every_kind_of_table_becomes_the_same_reports(fixed_noise, run, policy, tmp_path, ending, output):
    path = tmp_path / f"people{ending}"
    text = "\n".join(ROWS) + "\n"
    if ending == ".csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif ending in (".csv", ".tsv"):
        path.write_text(text.replace(",", "\t" if ending == ".tsv" else ","))
    else:
        table = pa.table(
            {
                "age": [31, None, 64.5],
                "since": pa.array(["2021-03-01", "2022-03-01", "2023-03-01"]).cast(pa.date32()),
                "city": ["NA", None, "Ulm"],
                "plan": [1, None, 3],
                "member": [True, False, True],
                "name": ["somebody", "another", "a third"],
            }
        )
        if ending == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    code, said, wrong = run("release", "policy.json", path.name, "-o", output, "--chunk", 2)
    assert (code, wrong) == (0, "")
    assert said == f"Released 3 records at epsilon {policy.epsilon:.6g} each: {output}.\n"
    answers = answers_of(policy, tmp_path / output)
    assert answers["city"] == [0, 2, 1]
    assert answers["plan"] == [0, 3, 2]
    assert answers["member"] == [0, 1, 0]
    age, since = policy.fields[0], policy.fields[2]
    # Epsilon 60 for one number is used to 24: what is left of the noise is small.
    assert [age.value(one) for one in answers["age"]] == pytest.approx([31, 50, 64.5], abs=2)
    assert [since.value(one) for one in answers["since"]] == pytest.approx([18687, 19052, 19417], abs=30)


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("secret,12x,Ulm,2021-03-01,1,true", "Field 'age' must be a finite number"),
        ("secret,12,Atlantis,2021-03-01,1,true", "Field 'city' must be one of its values"),
        ("secret,12,Ulm,yesterday,1,true", "Field 'since' must be a date"),
        ("secret,12,Ulm,,1,true", "Field 'since' must not be missing"),
        ("secret,12,Ulm,2021-03-01,1.5,true", "Field 'plan' must be one of its values"),
    ],
)
def test_a_refused_value_leaves_no_file_and_is_not_shown(run, policy, tmp_path, row, rule):
    (tmp_path / "people.csv").write_text("\n".join([*ROWS, row]) + "\n")
    code, said, wrong = run("release", "policy.json", "people.csv", "-o", "reports.arrow", "--chunk", 1)
    assert (code, said) == (2, "")
    assert rule in wrong
    for value in row.split(",")[1:]:
        assert not value or value in ("1", "12", "true", "Ulm") or value not in wrong
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "policy.json", "schema.json"]


def test_a_table_without_a_column_is_refused(run, policy, tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nx,3\n")
    code, _, wrong = run("release", "policy.json", "people.csv", "-o", "reports.arrow")
    assert code == 2
    assert "city" in wrong
    assert not (tmp_path / "reports.arrow").exists()


def test_reports_are_collected_from_several_files(fixed_noise, run, policy, tmp_path):
    text = "\n".join(ROWS) + "\n"
    (tmp_path / "people.csv").write_text(text)
    for output in ("one.arrow", "two.parquet"):
        assert run("release", "policy.json", "people.csv", "-o", output)[0] == 0
    (tmp_path / "three.bin").write_bytes(policy.release({"age": 9, "since": "2020-01-01", "member": True}))
    arguments = ["policy.json", "one.arrow", "two.parquet", "three.bin", "one.arrow", "--report", "page.html"]
    code, said, wrong = run("collect", *arguments, "--csv", "rows.csv")
    assert (code, wrong) == (0, "")
    assert said.startswith("a survey: reports 7 accepted, 0 foreign, 0 broken, 3 doubled; epsilon ")
    for part in ("mean of age", "shares of city", "Wrote page.html.", "Wrote rows.csv."):
        assert part in said
    assert "a survey" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 8
    for name in ("somebody", "another"):
        assert name not in said


def test_too_few_reports_and_files_that_are_none_are_one_line(run, policy, tmp_path):
    code, said, wrong = run("collect", "policy.json", "nothing.arrow", "--report", "page.html")
    assert (code, said, wrong.count("\n")) == (2, "", 1)
    (tmp_path / "three.bin").write_bytes(policy.release({"age": 9, "since": "2020-01-01", "member": True}))
    code, said, wrong = run("collect", "policy.json", "three.bin", "--report", "page.html")
    assert (code, said, wrong.count("\n")) == (2, "", 1)
    assert not (tmp_path / "page.html").exists()
