"""Put each fault of the table into a copy of the package, and see that the tests that it names go red.

``python tests/mutations/test_mutations.py`` prints the table, and tries a fault on every core at once; a number as an
argument takes every so-many-th fault, a second one begins there. A third word takes those that need such a module.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
# A fault that makes the tests run without an end is seen as well.
_PATIENCE = 300
KILLED, SURVIVED, BROKEN = "killed", "survived", "broken"


class Mutation(NamedTuple):
    """A row of ``faults.tsv``: `old`, which occurs once in ``skldp/path``, becomes `new`.

    `tests` are the tests that must fail, below ``tests/``; `survives` says why none can be expected to; `needs` names
    modules without which they are skipped. In the file a line break is ``\\n`` and a backslash is ``\\\\``.
    """

    path: str
    old: str
    new: str
    tests: str
    survives: str = ""
    needs: str = ""


def unescaped(text):
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)


def rows_of(path):
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == list(Mutation._fields)
    return [Mutation(*map(unescaped, row.split("\t"))) for row in rows]


MUTATIONS = rows_of(Path(__file__).with_name("faults.tsv"))


def described(mutation):
    changed = " ".join(mutation.new.split())
    return f"{mutation.path.split('/')[-1]}: {changed[:70]}"


def copy_of_the_tree(folder):
    """The package, its tests and the scripts that they read, without what a run leaves behind."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("skldp", "tests", "examples", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copy(ROOT / "README.md", folder)
    return folder


def outcome(mutation, folder):
    """Whether the named tests see the fault, and the first that does."""
    path = folder / "skldp" / mutation.path
    sound = path.read_text(encoding="utf-8")
    path.write_text(sound.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not statistical"]
            + [f"tests/{name}" for name in mutation.tests.split()],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return KILLED, f"no end within {_PATIENCE} s"
    finally:
        path.write_text(sound, encoding="utf-8")
    first = re.search(r"^FAILED (\S+)", run.stdout, re.MULTILINE)
    if run.returncode != (1 if first else 0):
        # A file that no longer loads is no fault that a test of laws has found.
        raise AssertionError(run.stdout[-2000:] + run.stderr[-2000:])
    return (KILLED, first.group(1)) if first else (SURVIVED, "")


def test_the_table_fits_the_files():
    texts = {path: (ROOT / "skldp" / path) for path in {mutation.path for mutation in MUTATIONS}}
    texts = {path: file.read_text(encoding="utf-8") if file.exists() else "" for path, file in texts.items()}
    assert [(one.path, one.old) for one in MUTATIONS if texts[one.path].count(one.old) != 1] == []
    assert {name for one in MUTATIONS for name in one.tests.split() if not (ROOT / "tests" / name).exists()} == set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return copy_of_the_tree(tmp_path_factory.mktemp("mutations"))


@pytest.mark.statistical
@pytest.mark.parametrize("mutation", MUTATIONS, ids=described)
def test_a_fault_turns_a_test_red(mutation, folder):
    for name in mutation.needs.split():
        pytest.importorskip(name)
    found, _ = outcome(mutation, folder)
    assert found == (SURVIVED if mutation.survives else KILLED)


def main(every=1, start=0, only=""):
    missing = {name for one in MUTATIONS for name in one.needs.split() if importlib.util.find_spec(name) is None}
    possible = [one for one in MUTATIONS if missing.isdisjoint(one.needs.split()) and only in one.needs]
    chosen = possible[int(start) :: int(every)]
    counts = {KILLED: 0, SURVIVED: 0, BROKEN: 0}
    n_cores, copies = os.cpu_count() or 1, SimpleQueue()

    def tried(mutation):
        folder = copies.get()
        try:
            return outcome(mutation, folder)
        except AssertionError as error:
            return BROKEN, str(error)[-300:]
        finally:
            copies.put(folder)

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(n_cores) as pool:
        for number in range(n_cores):
            copies.put(copy_of_the_tree(Path(name, str(number))))
        for mutation, (found, first) in zip(chosen, pool.map(tried, chosen), strict=True):
            counts[found] += 1
            print(f"{found:<9} {described(mutation):<90} {first or mutation.survives or 'NO REASON KNOWN'}", flush=True)
    print(", ".join(f"{count} {found}" for found, count in counts.items()), f"of {len(chosen)}")
    return counts[BROKEN] > 0 or counts[SURVIVED] != sum(1 for mutation in chosen if mutation.survives)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
