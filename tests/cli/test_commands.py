import csv
import re
import shlex
import subprocess
import sys

import pytest

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery
from skldp.mechanisms import RandomizedResponse
from skldp.study._catalogue import FEATURE_MECHANISMS, PRIVATE_MODELS

QUICK = ["--epsilons", "2,40", "--folds", "2", "--mechanism", "bitrand,bitrand-exact"]


def test_study_prints_the_table_and_writes_both_files(run, tmp_path):
    code, out, err = run("study", "wine", *QUICK)
    assert (code, err) == (0, "")
    best = r"(Best at an exact epsilon of at most 4: bitrand-exact|At an exact epsilon of at most 4 nothing)"
    assert re.match(rf"wine: 178 rows, 13 features, 3 classes\.\n{best}", out)
    assert "without privacy" in out
    assert "majority" in out
    # What is guaranteed comes before what was published.
    assert out.index("│ bitrand-exact ") < out.index("│ bitrand, published ") < out.index("at an exact ε of ")
    assert out.endswith(f"Next: {shlex.join(['skldp', 'study', 'wine', *QUICK])} --report study.html\n")
    with open(tmp_path / "study.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["mechanism"] for row in rows] == ["bitrand", "bitrand", "bitrand-exact", "bitrand-exact"]
    # Features and label share the budget.
    assert [float(row["stated_epsilon"]) for row in rows] == [2, 40, 2, 40]
    assert float(rows[0]["exact_epsilon"]) > 10
    assert float(rows[2]["exact_epsilon"]) == pytest.approx(2)
    assert float(rows[2]["exact_epsilon"]) <= 2
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


def test_study_of_a_file_with_a_seed_repeats_itself(run, tmp_path):
    lines = [
        "age,height,sick",
        *(f"{20 + i % 60},{1.5 + i % 7 / 10},{'yes' if i % 60 > 30 else 'no'}" for i in range(90)),
    ]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    options = ["--target", "sick", "--bounds", "0,100", "--seed", "3", "--mechanism", "bitrand-exact"]
    options += ["--epsilons", "8", "--folds", "2", "--picture", "a.png", "--csv"]
    scores = []
    for name in ("a.csv", "b.csv"):
        code, out, err = run("study", "people.csv", *options, name)
        assert (code, err) == (0, "")
        assert "seed 3" in out
        with open(tmp_path / name, newline="", encoding="utf-8") as file:
            scores += [(row["score_mean"], row["stated_epsilon"]) for row in csv.DictReader(file)]
    assert scores[0] == scores[1]
    assert float(scores[0][1]) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study", "absent.csv"], "There is no file absent.csv"),
        (["study", "iris"], "must be one of digits"),
        (["study", "--target", "sick"], "--target is for files; friedman has its own"),
        (["study", "people.csv"], "needs --target"),
        (["study", "people.csv", "--target", "ill"], "people.csv must have the column 'ill'; it has 3 columns"),
        (
            ["study", "people.csv", "--target", "sick", "--folds", "2"],
            "needs --bounds low,high, or a CSV file of column",
        ),
        (["study", "people.csv", "--target", "sick", "--separator", ";;"], "one character"),
        (["study", "people.csv", "--target", "sick", "--encoding", "utf-99"], "that Python knows"),
        (
            ["study", "people.csv", "--target", "sick", "--columns", "town"],
            "people.csv must have the column 'town'; it has 3 columns",
        ),
        (["study", "wine", "--schema", "{}", "--columns", "x"], "are for tables"),
        (["study", "wine", "--scoring", "acuracy"], "got 'acuracy'. Did you mean 'accuracy' or 'top_k_accuracy'?"),
        (["study", "one.csv", "--target", "sick"], "only one class"),
        (["study", "few.csv", "--target", "sick"], "fewer than the 5 folds"),
        (["study", "good.csv", "--target", "sick", "--folds", "2"], "needs --bounds"),
        (["study", "good.csv", "--target", "sick", "--folds", "2", "--bounds", "1,0"], "low < high"),
        (["study", "empty.csv", "--target", "sick"], "is empty"),
        (["study", "wine", "--epsilons", "1,0"], "finite numbers > 0"),
        (["study", "wine", "--epsilons", "many"], "finite numbers > 0"),
        (["study", "wine", "--mechanism", "bitrandom"], "got 'bitrandom'. Did you mean 'bitrand'"),
        (["study", "wine", "--mechanism", ","], "at least one name"),
        (["study", "wine", "--mechanism", "none", "--labels", "none"], "Nothing takes the epsilons"),
        (["study", "wine", "--csv", "absent/study.csv"], "Cannot write"),
        (["study", "wine", "--report", "absent/study.html"], "Cannot write"),
        (["study", "wine", "--report", "study.txt"], "must end with .html"),
        (["study", "wine", "--picture", "study.bmp"], "must end with .png or .svg"),
        (["study", "wine", "--scoring", "roc_auc", "--folds", "2"], "scoring must fit the estimator and the target"),
        (["study", "wine", "--scoring", "roc_auc", "--mechanism", "all", "--folds", "2"], "scoring must fit"),
        (["study", "wine", "--scoring", "no_such_score"], "scoring"),
        (["study", "wine", "--labels", "label-none"], "must be one of label-laplace, label-rr"),
        (["guarantee", "duchi", "--delta", "1e-6"], "--delta is for gaussian, best; duchi has none"),
        (["guarantee", "privunit-projected", "--delta", "1e-6"], "--delta is for gaussian"),
        (["audit", "bitrand", "--delta", "1e-6"], "--delta is for gaussian"),
        (["guarantee", "bitrandom"], "got 'bitrandom'. Did you mean 'bitrand'"),
        (["guarantee", "bitrand", "--epsilon", "-1"], "epsilon"),
        (["guarantee", "bitrand", "--epsilon", "nan"], "epsilon"),
        (["guarantee", "bitrand", "--low", "2"], "low < high"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, run, tmp_path):
    for name, text in {
        "people.csv": "age,city,sick\n" + "20,Oslo,no\n30,Rome,yes\n" * 5,
        "one.csv": "age,sick\n" + "20,no\n" * 10,
        "few.csv": "age,sick\n20,no\n30,yes\n",
        "good.csv": "age,sick\n" + "20,no\n30,yes\n" * 5,
        "empty.csv": "",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "study.csv").exists()


def test_guarantee_shows_stated_beside_exact(run):
    code, out, err = run("guarantee", "bitrand", "--epsilon", "1", "--features", "768")
    assert (code, err) == (0, "")
    assert out.startswith("bitrand: epsilon 3311 per record (stated 1, per feature 4.31")
    assert run("guarantee", "label-rr", "--epsilon", "2", "--classes", "5")[1].startswith(
        "label-rr: epsilon 2 per label"
    )


@pytest.mark.slow
def test_study_of_all_mechanisms_writes_one_report(run, tmp_path):
    options = ["--epsilons", "20", "--folds", "2", "--report", "study.html", "--picture", "study.svg", "--seed", "1"]
    code, out, err = run("study", "wine", "--mechanism", "all", *options)
    assert (code, err) == (0, "")
    names = [*PRIVATE_MODELS["classification"], *FEATURE_MECHANISMS]
    for name in names:
        assert f" {name} " in out or f" {name}, published" in out
    assert "bitrand, published" in out
    assert "Wrote study.csv, study.svg and study.html." in out
    report = (tmp_path / "study.html").read_text(encoding="utf-8")
    assert "C = 1/13" in report
    assert "skldp study wine --mechanism all --epsilons 20" in report
    assert all(name in report for name in names)
    assert "<svg" in (tmp_path / "study.svg").read_text(encoding="utf-8")
    with open(tmp_path / "study.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["mechanism"] for row in rows] == names
    weaker = [row["mechanism"] for row in rows if float(row["exact_epsilon"]) > 40.001]
    assert weaker == ["bitrand"]


@pytest.mark.slow
def test_numbers_in_a_file_need_declared_bounds(run, tmp_path):
    lines = ["age,dose,cost", *(f"{i % 60},{i % 7},{i / 8}" for i in range(120))]
    (tmp_path / "people.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "bounds.csv").write_text("column,low,high\nage,0,60\ndose,0,7\ncost,0,12\n", encoding="utf-8")
    options = ["--target", "cost", "--folds", "2", "--epsilons", "0.5"]
    code, out, err = run("study", "people.csv", "--bounds", "0,60", *options)
    assert (code, out) == (2, "")
    assert "needs --target-bounds" in err
    assert not (tmp_path / "study.csv").exists()
    code, out, err = run("study", "people.csv", "--bounds", "bounds.csv", *options)
    assert (code, err) == (0, "")
    # 12.125 to 14.875
    assert "Values of the target clipped for training: 23." in out
    code, out, err = run("study", "people.csv", "--bounds", "0,60", "--target-bounds", "0,15", *options)
    assert (code, err) == (0, "")
    assert "of the target clipped" not in out
    code, _, err = run("study", "wine", "--target-bounds", "0,1")
    assert code == 2
    assert "that of wine holds classes" in err


def test_a_table_of_numbers_and_texts_with_missing_cells_is_studied(fixed_noise, run, tmp_path):
    lines = [
        "species;island;bill;sex",
        *(
            f"{'AB'[i % 2]};{'XYZ'[i % 3]};{'' if i == 7 else 30 + i % 2 * 20};{'fm'[i % 2] if i % 9 else ''}"
            for i in range(90)
        ),
    ]
    (tmp_path / "penguins.csv").write_text("\n".join(lines), encoding="latin-1")
    options = ["--target", "species", "--bounds", "30,45", "--separator", ";", "--encoding", "latin-1", "--folds", "2"]
    code, out, err = run("study", "penguins.csv", *options)
    assert (code, out) == (2, "")
    assert (
        "'bill' of penguins.csv has 1 missing value, the first in row 8; column 'sex' of penguins.csv has 10 missing"
        in err
    )
    assert "the first in row 1: replace them by --count-unknown, or declare them in --schema." in err
    code, out, err = run("study", "penguins.csv", *options, "--count-unknown", "--epsilons", "8")
    assert (code, err) == (0, "")
    # Half of them are 50, but for the missing one.
    assert "Values clipped to the declared bounds ('bill'): 44." in out
    assert "The categories of 'island', 'sex' come from the file, and no epsilon covers that" in out
    assert "Missing or undeclared values: 11." in out


def test_ledger_reports_and_verifies(run, tmp_path):
    path = tmp_path / "people.ledger"
    book = PrivacyLedger(1.0, path=path, bounds=(0, 1))
    query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.4)
    book.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0])
    book.close()
    code, out, err = run("ledger", path, "--verify")
    assert (code, err) == (0, "")
    assert "people: 2" in out
    assert "quantiles of the epsilon spent by people: 0: 0.4" in out
    assert "quantiles of the epsilon that remains: 0: 0.6" in out
    assert "A larger epsilon may still be admitted: answers that contradict each other" in out
    assert "exhausted" not in out
    assert "verified: every decision was right" in out


def test_ledger_shows_its_head_and_refuses_an_older_record(run, tmp_path, monkeypatch):
    paths, heads = (tmp_path / "newer.ledger", tmp_path / "older.ledger"), []
    for path, n in zip(paths, (2, 1), strict=True):
        with PrivacyLedger(1.0, path=path) as book:
            for _ in range(n):
                book.release(RandomizedResponse(0.1, 3), [[0]], ["ann"])
            heads.append(book.head)
    head = heads[0]
    # As it is to be given back, however narrow the terminal is.
    monkeypatch.setenv("COLUMNS", "40")
    code, out, err = run("ledger", paths[0])
    assert (code, err) == (0, "")
    assert f"head: {head}\n" in out
    assert run("ledger", paths[0], "--head", head)[0] == 0
    code, out, err = run("ledger", paths[1], "--head", head)
    assert (code, out) == (2, "")
    assert "is older than its last known state" in err
    code, out, err = run("ledger", paths[0], "--head", "2")
    assert (code, out) == (2, "")
    assert "head must be" in err


def test_ledger_refuses_what_is_none_in_one_line(run, tmp_path):
    (tmp_path / "notes.txt").write_text("no ledger", encoding="utf-8")
    for path in ("absent.ledger", "notes.txt"):
        code, out, err = run("ledger", path)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert not (tmp_path / "absent.ledger").exists()


def test_version(run):
    import skldp

    assert run("--version") == (0, f"skldp {skldp.__version__}\n", "")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_names_the_extra_where_it_is_missing(missing, run, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = run("study")
    assert (code, out) == (2, "")
    assert 'pip install "skldp[study]"' in err


def test_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "skldp", "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("skldp ")
    assert done.returncode == 0
