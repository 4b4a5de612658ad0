"""What is public is exported by a package and stands in the reference; every module has an underscore in its path."""

import ast
import csv
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from doors import LAZY, PUBLIC

import skldp

FOUND = [("skldp", True), *((m.name, m.ispkg) for m in pkgutil.walk_packages(skldp.__path__, "skldp."))]
REFERENCE = Path(skldp.__file__).parent.parent / "docs" / "reference.rst"


def test_every_module_has_an_underscore():
    plain = {name for name, is_package in FOUND if not is_package and not name.rpartition(".")[2].startswith("_")}
    assert plain == {"skldp.exceptions"}


def test_other_packages_export_nothing():
    packages = {name for name, is_package in FOUND if is_package} - {*(door.__name__ for door in PUBLIC), "skldp.cli"}
    assert {name for name in packages if getattr(importlib.import_module(name), "__all__", [])} == set()
    assert importlib.import_module("skldp.cli").__all__ == ["main"]


def test_a_name_is_public_once_and_there_are_few():
    names = [name for door in PUBLIC for name in door.__all__]
    assert len(set(names)) == len(names) <= 100
    assert len(skldp.__all__) <= 32


def test_no_module_imports_from_a_public_package():
    """Public packages import nothing until a name is used, so their imports would hide from the layers."""
    folder, lazy = Path(skldp.__file__).parent, {door.__name__ for door in LAZY}
    for path in folder.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not imported & lazy or "cli" in path.relative_to(folder).parts, path


@pytest.mark.parametrize("module", PUBLIC, ids=lambda door: door.__name__)
def test_a_package_exports_what_it_lists(module):
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    if module.__name__ != "skldp.exceptions":
        below = {name.rpartition(".")[2] for name, _ in FOUND}
        unlisted = {name for name in vars(module) if not name.startswith("_")} - {*module.__all__, *below}
        assert unlisted == set()


def documented_names():
    """Yield the full name of every entry of the reference's summaries."""
    module = summary = None
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        if line.strip():
            summary = line.startswith(".. autosummary::") or (summary and line.startswith("   "))
        if summary and re.fullmatch(r"   [A-Za-z]\S*", line):
            yield f"{module}.{line.strip()}"


def test_the_reference_names_what_the_packages_export():
    named = set(documented_names())
    assert named == {f"{door.__name__}.{name}" for door in PUBLIC for name in door.__all__}


def test_every_name_of_the_reference_has_a_guide():
    docs = REFERENCE.parent
    entries = re.findall(r"^   ~?(?:\w+\.)*(\w+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    with (docs / "reference.csv").open(encoding="utf-8") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert sorted(rows) == sorted(entries)
    for module, name in re.findall(r"^   ~([\w.]+)\.(\w+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE):
        assert hasattr(importlib.import_module(f"skldp.{module}"), name)
    assert all((docs / f"{row['guide']}.rst").is_file() for row in rows.values())
    assert {other for row in rows.values() for other in row["see also"].split()} <= set(entries)
