"""The table of what the papers hold: what it points to is there, and its counts are its own."""

import csv
import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "papers" / "coverage.csv"
STATES = {"implemented", "holds", "in part", "fails", "not run"}


@pytest.fixture(scope="module")
def rows():
    if not TABLE.is_file():
        pytest.skip("The documentation is not beside the tests.")
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_is_whole(rows):
    assert {row["paper"] for row in rows} == {"BitRand", "LATENT and OME", "text embeddings", "realized loss"}
    for row in rows:
        assert row["state"] in STATES, row
        assert row["place"], row
        assert row["claim"], row
        assert row["what came out"], row
        # A name of skldp or a page is not enough: a row is judged by a test or a script.
        run = [one for one in row["where"].split(";") if one.strip().startswith(("tests/", "examples/", "benchmarks/"))]
        assert run or row["state"] == "not run", row
    assert max(Counter((row["paper"], row["place"], row["claim"]) for row in rows).values()) == 1


def test_what_the_table_points_to_is_there(rows):
    for pointer in {one.strip() for row in rows for one in row["where"].split(";") if one.strip()}:
        if pointer.startswith("skldp."):
            *module, name = pointer.split(".")
            assert hasattr(importlib.import_module(".".join(module)), name), pointer
            continue
        path, _, test = pointer.split(" ")[0].partition("::")
        assert (ROOT / path).is_file(), pointer
        if test:
            found = re.search(rf"^(def|class) {test}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
            assert found, pointer
        for option in re.findall(r"--[a-z-]+", pointer):
            assert f'"{option}"' in (ROOT / path).read_text(encoding="utf-8"), pointer


def test_the_pages_counts_are_those_of_the_table(rows):
    page = (ROOT / "docs" / "papers" / "coverage.rst").read_text(encoding="utf-8")
    said = page.split(".. coverage-counts")[1].split(".. coverage-end")[0].strip()
    states = Counter(row["state"] for row in rows)
    assert said == (
        f"{len(rows)} rows: {states['implemented']} implemented, {states['holds']} hold, {states['in part']} in part, "
        f"{states['fails']} fail, {states['not run']} not run."
    )
