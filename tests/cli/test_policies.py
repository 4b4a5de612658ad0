"""Policies and releases on the command line: what is written, and what is not where something is refused."""

import csv
import gzip
import json
import re
from functools import partial

import pytest

from skldp.client import Field, Policy
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.numeric._unit_mechanisms import Duchi
from skldp.study import plan_survey
from skldp.study._table_files import table_chunks

pytest.importorskip("rich")
pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SCHEMA = {
    "age": {"type": "number", "low": 0, "high": 100, "missing": "middle"},
    "city": {"type": "category", "values": ["NA", "Ulm"], "missing": "category"},
    "since": {"type": "date", "low": "2020-01-01", "high": "2024-12-31"},
    "plan": {"type": "category", "values": [1, 2, 3], "missing": "category"},
    "member": {"type": "category", "values": [True, False]},
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
def rows_per_chunk(monkeypatch):
    def set_rows(n_rows):
        monkeypatch.setattr("skldp.study._table_files.table_chunks", partial(table_chunks, n_rows=n_rows))

    return set_rows


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
    assert table.column_names == ["skldp_report"]
    answers = [policy.read(report).answers for report in table["skldp_report"].to_pylist()]
    return {name: [one[name] for one in answers] for name in policy.names}


def test_a_policy_is_made_shown_and_checked(run, policy, tmp_path):
    assert policy.purpose == "a survey"
    assert policy.names == list(SCHEMA)
    assert policy.fields[0].column.unit == "years"
    code, said, _ = run("policy", "show", "policy.json")
    assert code == 0
    for part in (
        "a survey",
        '0 to 100 "years"',
        "2020-01-01 to 2024-12-31",
        '"NA", "Ulm", missing',
        "true, false",
        "until 9999",
    ):
        assert part in said
    assert run("policy", "check", "policy.json", "--most", "300")[0] == 0
    code, _, wrong = run("policy", "check", "policy.json", "--most", "1")
    assert (code, wrong.startswith("skldp: The epsilon of the policy must be at most 1;")) == (2, True)
    (tmp_path / "forged.json").write_text(policy.to_json().replace("a survey", "a Survey"))
    for command in ("show", "check"):
        code, said, wrong = run("policy", command, "forged.json")
        assert (code, said) == (2, "")
        assert "sha256 of a policy must be that of its document" in wrong


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow"])
@pytest.mark.parametrize("output", ["reports.arrow", "reports.parquet"])
def test_every_kind_of_table_becomes_the_same_reports(
    fixed_noise, run, policy, tmp_path, rows_per_chunk, ending, output
):
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
    rows_per_chunk(2)
    code, said, wrong = run("release", "policy.json", path.name, "-o", output)
    assert (code, wrong) == (0, "")
    assert said == (
        f"Released 3 records at epsilon {policy.epsilon:.6g} each: {output}.\nMissing age counts as 50 in 1 row.\n"
    )
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
        (
            "secret,12x,Ulm,2021-03-01,1,true",
            "Column 'age' must hold finite numbers such as 1234.5, without separators of thousands; nothing was "
            "released; got 1 of 1 that are not, the first in row 4",
        ),
        ("secret,12,Atlantis,2021-03-01,1,true", "Column 'city' must hold only the declared"),
        ("secret,12,Ulm,yesterday,1,true", "Column 'since' must hold dates"),
        ("secret,12,Ulm,2021-03-01,1.5,true", "Column 'plan' must hold only the declared"),
    ],
)
def test_a_refused_value_leaves_no_file_and_is_not_shown(run, policy, tmp_path, rows_per_chunk, row, rule):
    (tmp_path / "people.csv").write_text("\n".join([*ROWS, row]) + "\n")
    rows_per_chunk(1)
    code, said, wrong = run("release", "policy.json", "people.csv", "-o", "reports.arrow")
    assert (code, said) == (2, "")
    assert rule in wrong
    for value in row.split(",")[1:]:
        assert not value or value in ("1", "12", "true", "Ulm") or value not in wrong
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "policy.json", "schema.json"]
    # A value of another type is an error even where unknown ones count as the policy says.
    counted = run("release", "policy.json", "people.csv", "-o", "reports.arrow", "--count-unknown")
    assert counted[0] == (0 if "Atlantis" in row or "1.5" in row else 2)


def coded(values, unknown=None):
    return Policy(
        "a test",
        (Field("code", Column(values=values, unknown=unknown), RandomizedResponse(60.0, len(values)).integer_law),),
    )


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ((0, 1, None), ["0.0", "1.0", "", "1", "+1"]),
        ((False, True, None), ["False", "TRUE", "", "true", "True"]),
        (("0", "1.0", None), ["0", "1.0", "", "1.0", "1.0"]),
        ((0, True, None), ["0", "TRUE", "", "true", "True"]),
    ],
)
def test_cells_of_a_text_file_are_the_values_that_they_are_written_for(run, tmp_path, values, cells):
    policy = coded(values)
    policy.save(tmp_path / "coded.json")
    (tmp_path / "t.csv").write_text("code,x\n" + "".join(f"{cell},x\n" for cell in cells))
    assert run("release", "coded.json", "t.csv", "-o", "r.arrow")[0] == 0
    with pa.ipc.open_file(str(tmp_path / "r.arrow")) as file:
        reports = file.read_all()["skldp_report"].to_pylist()
    # At epsilon 60 an answer is the code.
    assert [policy.read(report).answers["code"] for report in reports] == [0, 1, 2, 1, 1]


def test_a_text_file_whose_cells_are_two_values_is_refused_before_anything_is_written(run, tmp_path):
    coded((1, "1", None)).save(tmp_path / "coded.json")
    (tmp_path / "t.csv").write_text("code,x\n1,x\n")
    code, said, wrong = run("release", "coded.json", "t.csv", "-o", "r.arrow")
    assert (code, said) == (2, "")
    assert "differ as texts of a text file" in wrong
    assert not (tmp_path / "r.arrow").exists()


class TestASecret:
    """What is released again, in whatever form and order, is the same reports."""

    @pytest.fixture
    def kept(self, run, tmp_path):
        (tmp_path / "schema.json").write_text(json.dumps({name: SCHEMA[name] for name in ("age", "city")}))
        made = run("policy", "new", "schema.json", "--purpose", "a survey", "--permanent", "-o", "kept.json")
        assert (made[0], made[2]) == (0, "")
        code, said, wrong = run("policy", "secret", "release.key")
        assert (code, wrong) == (0, "")
        assert said.startswith("Wrote release.key. Keep it apart")
        assert (tmp_path / "release.key").stat().st_mode & 0o777 == 0o600
        return Policy.load(tmp_path / "kept.json")

    def test_the_same_people_are_the_same_reports(self, run, kept, tmp_path, rows_per_chunk):
        rows_per_chunk(7)
        frame = pytest.importorskip("pandas").DataFrame(
            {"person": range(40), "age": [i * 2.5 for i in range(40)], "city": ["Ulm", "NA"] * 20}
        )
        frame.to_csv(tmp_path / "one.csv", index=False)
        frame[::-1].to_parquet(tmp_path / "two.parquet")
        own = ("--secret", "release.key", "--ids", "person")
        for table, output in (("one.csv", "one.arrow"), ("two.parquet", "two.arrow")):
            code, said, wrong = run("release", "kept.json", table, "-o", output, *own)
            assert (code, wrong) == (0, "")
            assert said.startswith("Released 40 records at epsilon 1 each")
        code, said, _ = run("collect", "kept.json", "one.arrow", "two.arrow")
        assert code == 0
        assert said.startswith("a survey: reports 40 accepted, 0 foreign, 0 broken, 40 doubled;")
        assert run("policy", "check", "kept.json")[0] == 0
        said = run("policy", "show", "kept.json")[1]
        assert "permanent: the same record gives the same report again" in said

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ([], "other rules take neither; got no secret and no ids"),
            (["--secret", "release.key"], "other rules take neither; got ReleaseKey and no ids"),
            (["--ids", "age"], "other rules take neither; got no secret and ids"),
            (["--secret", "nowhere.key", "--ids", "age"], "There is no file "),
            (
                ["--secret", "kept.json", "--ids", "age"],
                "The file of a release key must be readable by its owner alone",
            ),
            (["--secret", "release.key", "--ids", "nobody"], "people.csv must have the column 'nobody'"),
            (["--secret", "release.key", "--ids", "age"], "Every row must have an id; column 'age' has missing cells"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, run, kept, tmp_path, arguments, complaint):
        (tmp_path / "kept.json").chmod(0o644)
        (tmp_path / "people.csv").write_text("\n".join(ROWS))
        code, said, wrong = run("release", "kept.json", "people.csv", "-o", "reports.arrow", *arguments)
        assert (code, said, wrong.count("\n")) == (2, "", 1)
        assert complaint in wrong
        assert not (tmp_path / "reports.arrow").exists()

    def test_ids_of_several_rows_are_told(self, run, kept, tmp_path, rows_per_chunk):
        (tmp_path / "people.csv").write_text("person,age,city\na,1,Ulm\nb,2,Ulm\na,3,Ulm\n")
        for columns, chunk, told in (("person", 7, True), ("person", 2, False), ("age", 7, False)):
            rows_per_chunk(chunk)
            own = ("--secret", "release.key", "--ids", columns)
            code, said, _ = run("release", "kept.json", "people.csv", "-o", "reports.arrow", *own)
            assert (code, "ids occur in several rows" in said) == (0, told)

    def test_a_secret_is_never_written_over(self, run, kept, tmp_path):
        before = (tmp_path / "release.key").read_bytes()
        code, _, wrong = run("policy", "secret", "release.key")
        assert (code, wrong) == (2, "skldp: There is already a file release.key.\n")
        assert (tmp_path / "release.key").read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("policy", "new", "schema.json", "--purpose", "x", "-o", "schema.json"),
        ("release", "policy.json", "people.parquet", "-o", "./people.parquet"),
        ("collect", "policy.json", "one.arrow", "--csv", "policy.json"),
        ("collect", "policy.json", "one.arrow", "--csv", "one.arrow"),
        ("study", "study.csv", "--target", "sick"),
        ("study", "people.csv", "--target", "sick", "--csv", "people.csv"),
        ("study", "people.csv", "--target", "sick", "--schema", "schema.json", "--csv", "schema.json"),
    ],
)
def test_a_file_that_a_command_reads_is_not_written_over(run, policy, tmp_path, arguments):
    """The default of ``skldp study`` replaced a table named study.csv by its results."""
    for name in ("people.parquet", "one.arrow", "study.csv", "people.csv"):
        (tmp_path / name).write_text("age,sick\n1,0\n2,1\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, _, wrong = run(*arguments)
    assert code == 2
    assert "and cannot write to it" in wrong
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


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
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        rows = {(row["statistic"], row["field"], row["value"]): row for row in csv.DictReader(file)}
    assert {("mean", "age", ""), ("mean", "since", ""), ("projected shares", "city", "missing")} <= set(rows)
    assert {row["by"] + row["group"] + row["where"] for row in rows.values()} == {""}
    # No report of a person, whose numbers may lie far outside the bounds.
    assert {row["reports"] for row in rows.values()} == {"7"}
    assert {row["missing"] for (_, field, _), row in rows.items() if field == "age"} == {"missing age counts as 50"}
    assert "95% intervals, missing age counts as 50\n" in said
    assert "so they are biased: an\nestimate of 0 does not show that the answer never occurred." in said
    for name in ("somebody", "another"):
        assert name not in said


def test_groups_filters_and_a_level_are_options(fixed_noise, run, policy, tmp_path):
    (tmp_path / "people.csv").write_text("\n".join([ROWS[0], *(40 * ROWS[1:])]) + "\n")
    assert run("release", "policy.json", "people.csv", "-o", "reports.arrow")[0] == 0
    grouped = ("collect", "policy.json", "reports.arrow", "--by", "member", "--level", 0.8)
    code, said, wrong = run(*grouped, "--where", "plan=3", "--csv", "rows.csv")
    assert (code, wrong) == (0, "")
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        rows = {(row["statistic"], row["field"], row["value"], row["group"]): row for row in csv.DictReader(file)}
    assert {("mean", "age", "", "True"), ("projected shares", "city", "Ulm", "False")} <= set(rows)
    shown = [float(row["estimate"]) for row in rows.values() if row["field"] == "city"]
    assert all(0 <= one <= 1 for one in shown if one == one)
    assert run(*grouped, "--where", "plan=3", "--raw", "--csv", "raw.csv")[0] == 0
    with (tmp_path / "raw.csv").open(newline="", encoding="utf-8") as file:
        raw = [float(row["estimate"]) for row in csv.DictReader(file) if row["statistic"] == "shares"]
    assert len(raw) == len(shown)
    assert raw != shown
    assert {(row["by"], row["where"]) for row in rows.values()} == {("member", "plan=3")}
    code, said, wrong = run(*grouped)
    assert (code, wrong) == (0, "")
    assert "mean of age by member, 120 reports, 80% intervals, missing age counts as 50\n" in said
    assert "shares of member" not in said
    assert "80% intervals" in run("collect", "policy.json", "reports.arrow", "--level", 0.8)[1]
    filters = ("plan=3", "since=2023-01-01,2024-01-01", "city=Ulm", "member=true")
    given = [part for one in filters for part in ("--where", one)]
    code, said, wrong = run("collect", "policy.json", "reports.arrow", *given)
    assert (code, wrong) == (0, "")
    # At such an epsilon, the reports of a third of the people are those of one row.
    title, _, row = said.splitlines()[2:5]
    assert title.startswith(
        "mean of age where plan=3 and since=('2023-01-01', '2024-01-01') and city='Ulm' and member=True, "
    )
    assert float(row.split()[1]) == pytest.approx(64.5, abs=2)
    said = run("collect", "policy.json", "reports.arrow", "--where", "plan=missing")[1]
    assert "mean of age where plan=None, 120 reports" in said
    for given, rule in (
        ("plan", "A filter of plan must be plan=VALUE, where VALUE is one of 1, 2, 3, missing; got 'plan'."),
        ("plan=9", "A filter of plan must be plan=VALUE, where VALUE is one of 1, 2, 3, missing; got 'plan=9'."),
        ("member=missing", "where VALUE is one of True, False; got 'member=missing'."),
        # An empty variable of a shell asks for nothing.
        ("plan=", "A filter of plan must be plan=VALUE, where VALUE is one of 1, 2, 3, missing; got 'plan='."),
        ("age", "A filter of age must be age=LOW,HIGH, from LOW and below HIGH; got 'age'."),
        ("age=x,1", "A filter of age must be age=LOW,HIGH, from LOW and below HIGH; got 'age=x,1'."),
        ("age=20", "A filter of age must be age=LOW,HIGH, from LOW and below HIGH; got 'age=20'."),
        ("shoe=1", "one of age, city"),
    ):
        code, said, complaint = run("collect", "policy.json", "reports.arrow", "--where", given)
        assert (code, said, complaint.count("\n")) == (2, "", 1)
        assert rule in complaint


def test_what_a_release_replaces_is_counted(run, policy, tmp_path):
    (tmp_path / "people.csv").write_text("\n".join([*ROWS, "b,412,Paris,2019-01-01,,true", "c,-3,,,2,true"]) + "\n")
    code, said, _ = run("release", "policy.json", "people.csv", "-o", "reports.arrow", "--count-unknown")
    assert code == 0
    assert said.splitlines()[1:] == [
        "Missing age counts as 50 in 1 row.",
        "Age was clipped to its bounds in 2 rows.",
        "Undeclared city counts as missing in 1 row.",
        "Missing since counts as 2022-07-02 in 1 row.",
        "Since was clipped to its bounds in 1 row.",
    ]


def test_a_table_of_a_header_alone_is_refused(run, policy, tmp_path):
    (tmp_path / "people.csv").write_text(ROWS[0] + "\n")
    code, said, wrong = run("release", "policy.json", "people.csv", "-o", "reports.arrow")
    assert (code, said) == (2, "")
    assert "at least one row below its header; got none in people.csv" in wrong
    assert not (tmp_path / "reports.arrow").exists()


def test_a_file_that_is_cut_off_is_named(fixed_noise, run, policy, tmp_path):
    (tmp_path / "people.csv").write_text("\n".join(ROWS) + "\n")
    for output in ("whole.arrow", "half.arrow"):
        assert run("release", "policy.json", "people.csv", "-o", output)[0] == 0
    half = (tmp_path / "half.arrow").read_bytes()
    (tmp_path / "half.arrow").write_bytes(half[: len(half) // 2])
    code, said, wrong = run("collect", "policy.json", "whole.arrow", "half.arrow", "people.csv")
    assert code == 0
    assert "3 accepted, 1 foreign, 1 broken" in said
    assert wrong.splitlines() == [
        "skldp: half.arrow is damaged or cut off, and its rest was not read; got 0 reports of it.",
        "skldp: people.csv holds no report of this policy; foreign reports or rows: 1.",
    ]


def test_a_file_that_was_altered_in_transfer_is_named(run, policy, tmp_path):
    """A copy in text mode writes two bytes for each line feed."""
    reports = b"".join(policy.release({"age": 9, "city": "Ulm"}) for _ in range(300))
    (tmp_path / "copy.bin").write_bytes(reports.replace(b"\n", b"\r\n"))
    (tmp_path / "cut.bin").write_bytes(reports[:-1])
    code, said, wrong = run("collect", "policy.json", "copy.bin", "cut.bin")
    assert code == 0
    copy, cut = wrong.splitlines()
    [broken] = re.findall(r"skldp: copy.bin has broken reports \(([0-9]+), beside [0-9]+ whole ones\)", copy)
    assert int(broken) > 0
    assert cut == "skldp: cut.bin has broken reports (1, beside 299 whole ones): it was altered or cut off."
    assert f"{int(broken) + 1} broken" in said


def test_too_few_reports_and_files_that_are_none_are_one_line(run, policy, tmp_path):
    code, said, wrong = run("collect", "policy.json", "nothing.arrow", "--report", "page.html")
    assert (code, said, wrong.count("\n")) == (2, "", 1)
    (tmp_path / "three.bin").write_bytes(policy.release({"age": 9, "since": "2020-01-01", "member": True}))
    code, said, wrong = run("collect", "policy.json", "three.bin", "--report", "page.html")
    assert (code, said, wrong.count("\n")) == (2, "", 1)
    assert "at least 2 reports of this policy; got reports 1 accepted, 0 foreign, 0 broken, 0 doubled." in wrong
    assert not (tmp_path / "page.html").exists()


def test_a_plan_says_what_a_survey_will_be_worth(run, policy):
    code, said, wrong = run("policy", "plan", "policy.json", "--people", 10_000, "--half-width", "age=0.5")
    assert (code, wrong) == (0, "")
    planned = plan_survey(policy, 10_000).estimates
    assert all(f"{one.standard_error:.4g}" in said for one in planned)
    assert "mean of since in days" in said
    assert f"age +- 0.5: {plan_survey(policy, 1000).n_people_for('age', 0.5):,} people" in said
    said = run("policy", "plan", "policy.json", "--people", 500, "--by", "member")[1]
    assert "mean of age by member" in said
    for given in (("--people", 1), ("--people", 9, "--by", "age"), ("--people", 9, "--half-width", "age")):
        code, said, wrong = run("policy", "plan", "policy.json", *given)
        assert (code, said) == (2, "")
        assert "must be" in wrong


def test_a_policy_of_pairs_is_made_shown_planned_and_collected(run, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    made = run("policy", "new", "schema.json", "--purpose", "x", "--pairs", "all", "--epsilon", 2, "-o", "pairs.json")
    assert made[0] == 0
    policy = Policy.load(tmp_path / "pairs.json")
    assert (len(policy.fields), policy.n_sampled) == (10, 1)
    assert "each person is asked 1 of 10 fields" in run("policy", "show", "pairs.json")[1]
    assert "table of age & city" in run("policy", "plan", "pairs.json", "--people", 1000)[1]
    (tmp_path / "people.csv").write_text("\n".join([ROWS[0], *(200 * ROWS[1:])]) + "\n")
    assert run("release", "pairs.json", "people.csv", "-o", "reports.arrow")[0] == 0
    code, said, _ = run("collect", "pairs.json", "reports.arrow", "--csv", "out.csv")
    assert code == 0
    assert "consistent joint shares of" in said
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["field"] == "city"]
    assert {(row["statistic"], row["by"]) for row in rows} == {("consistent joint shares", "age")}
    assert {(row["group"], row["value"]) for row in rows} >= {("rounded to 0", "Ulm"), ("rounded to 100", "missing")}
    # Numbers are rounded to both ends: a share of 0 would look like that of people aged 0.
    assert re.search(r"^rounded to 100: rounded to 2020-01-01 ", said, re.MULTILINE)
    assert re.search(r"^rounded to 0: Ulm ", said, re.MULTILINE)


@pytest.mark.parametrize(("sampled", "n_sampled"), [("auto", 2), ("1", 1), ("all", None)])
def test_a_policy_may_ask_some_of_its_columns(run, tmp_path, sampled, n_sampled):
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    given = ("--epsilon", 8, "--sampled", sampled, "--category-mechanism", "best", "-o", "some.json")
    assert run("policy", "new", "schema.json", "--purpose", "some", *given)[0] == 0
    made = Policy.load(tmp_path / "some.json")
    assert made.n_sampled == n_sampled
    assert made.epsilon <= 8
    shown = run("policy", "show", "some.json")[1]
    assert ("each person is asked" in shown) == (n_sampled is not None)
    assert run("policy", "check", "some.json", "--most", 8)[0] == 0
    for bad in ("6", "0", "some"):
        code, said, wrong = run("policy", "new", "schema.json", "--purpose", "x", "--sampled", bad, "-o", "bad.json")
        assert (code, said) == (2, "")
        assert "--sampled must be" in wrong or "n_sampled_features" in wrong


def test_what_cannot_be_seen_is_escaped_on_a_terminal(run, tmp_path):
    from skldp.cli._options import printable

    assert printable("a\x1b[2K\u202e\nb") == "a\\x1b[2K\\u202e\\nb"
    code, said, wrong = run("policy", "show", "no\x1b[2Ksuch\u202e.json")
    assert (code, said) == (2, "")
    assert wrong == "skldp: There is no file no\\x1b[2Ksuch\\u202e.json.\n"


def test_a_text_of_a_policy_stays_in_its_cell(run, monkeypatch, tmp_path):
    lie = "epsilon 0.01 a record, 30 bytes a report, no expiry"
    law = RandomizedResponse(4.0, 2).integer_law
    fields = (
        Field("is it so" + " " * 90 + lie, Column(values=("yes", "no")), law),
        Field("age", Column(0, 1, unit="years; " + lie), Duchi(1.0).integer_law),
    )
    Policy("a survey" + " " * 190 + lie, fields).save(tmp_path / "policy.json")
    for width in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        code, said, _ = run("policy", "show", "policy.json")
        assert code == 0
        of_command = [line for line in said.splitlines() if line[:1] not in "│┃┏┡└├┌╇"]
        assert [line.split()[0] for line in of_command] == ["epsilon", "sha256"]
        assert of_command[0].startswith("epsilon 5 a record")
