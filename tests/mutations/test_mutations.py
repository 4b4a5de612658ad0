"""Faults that the tests must find: each row of ``faults.tsv`` breaks one law, rounding, budget edge or certificate.

``python tests/mutations/test_mutations.py`` puts every fault into a copy of the package, one on each core at a time,
and prints the test that finds it. A number takes every n-th row, a word after it the rows in which it occurs.
"""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# A fault that makes the tests run without an end is found as well.
PATIENCE = 300


class Fault(NamedTuple):
    """In the function, method or constant `name`, wherever its file is, `old` becomes `new`; `tests` must fail.

    `old` occurs once under that name, spaces and line breaks aside. `needs` are modules without which the tests skip.
    """

    name: str
    old: str
    new: str
    tests: str
    needs: str = ""


def read_faults():
    head, *rows = Path(__file__).with_name("faults.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == list(Fault._fields)
    return [Fault(*(cell.replace("\\n", "\n") for cell in row.split("\t"))) for row in rows]


@cache
def definitions():
    """Return (file, first line, last line) of every definition of the package, by its name with its class."""
    found = {}

    def visit(path, node, prefix):
        for child in ast.iter_child_nodes(node):
            names = []
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                names = [child.name]
            elif isinstance(child, ast.Assign):
                names = [target.id for target in child.targets if isinstance(target, ast.Name)]
            for name in names:
                first = min([child.lineno, *(one.lineno for one in getattr(child, "decorator_list", []))])
                found.setdefault(prefix + name, []).append((path, first - 1, child.end_lineno))
            visit(path, child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)

    for path in sorted((ROOT / "skldp").rglob("*.py")):
        visit(path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8")), "")
    return found


def places(fault):
    """Return each (file, its text with the fault) where the fault can be put."""
    pattern = re.compile(r"\s+".join(map(re.escape, fault.old.split())))
    found = []
    for path, first, last in definitions().get(fault.name, []):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines(keepends=True)
        before, inside, after = ("".join(part) for part in (lines[:first], lines[first:last], lines[last:]))
        for match in pattern.finditer(inside):
            found.append((path, before + inside[: match.start()] + fault.new + inside[match.end() :] + after))
    return found


def outcome(fault, folder):
    """Return the first test that finds the fault in the copy of the tree in `folder`, or what went wrong."""
    ((path, text),) = places(fault)
    (folder / path).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not statistical"]
    try:
        run = subprocess.run(
            command + [f"tests/{name}" for name in fault.tests.split()],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {PATIENCE} s"
    finally:
        shutil.copy(ROOT / path, folder / path)
    first = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    # A file that no longer loads for another reason than a law that refuses its integers is no fault that was found.
    if (not first and run.returncode) or re.search(r"^ERROR .* - (?!ValueError)", run.stdout, re.MULTILINE):
        return f"BROKEN {run.stdout[-300:]} {run.stderr[-300:]}"
    return first[1] if first else "SURVIVED"


def test_every_fault_has_one_place():
    faults = read_faults()
    assert [(one.name, one.old, len(places(one))) for one in faults if len(places(one)) != 1] == []
    assert {name for one in faults for name in one.tests.split() if not (ROOT / "tests" / name).exists()} == set()


def main(every=1, word=""):
    faults = [
        one
        for one in read_faults()
        if any(word in cell for cell in one) and all(map(importlib.util.find_spec, one.needs.split()))
    ][:: int(every)]
    n_cores, copies = os.cpu_count() or 1, SimpleQueue()

    def tried(fault):
        folder = copies.get()
        try:
            return outcome(fault, folder)
        finally:
            copies.put(folder)

    n_unseen = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(n_cores) as pool:
        for number in range(n_cores):
            copies.put(folder := Path(name, str(number)))
            for part in ("skldp", "tests", "examples", "benchmarks"):
                shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            for part in ("pyproject.toml", "README.md"):
                shutil.copy(ROOT / part, folder)
        for fault, found in zip(faults, pool.map(tried, faults), strict=True):
            n_unseen += found.startswith(("BROKEN", "SURVIVED"))
            print(f"{found} <- {fault.name}: {' '.join(fault.new.split())[:70]}", flush=True)
    print(f"{n_unseen} of {len(faults)} faults not found")
    return n_unseen > 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
