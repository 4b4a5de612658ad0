"""What is public is exported by a package and stands in the reference; every module has an underscore in its path."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import skldp

PUBLIC = (
    "skldp",
    "skldp.mechanisms",
    "skldp.accounting",
    "skldp.learning",
    "skldp.study",
    "skldp.client",
    "skldp.exceptions",
)
FOUND = [("skldp", True), *((m.name, m.ispkg) for m in pkgutil.walk_packages(skldp.__path__, "skldp."))]
REFERENCE = Path(skldp.__file__).parent.parent / "docs" / "reference.rst"


def test_every_module_has_an_underscore():
    plain = {name for name, is_package in FOUND if not is_package and not name.rpartition(".")[2].startswith("_")}
    assert plain == {"skldp.exceptions"}


def test_other_packages_export_nothing():
    packages = {name for name, is_package in FOUND if is_package} - {*PUBLIC, "skldp.cli"}
    assert {name for name in packages if getattr(importlib.import_module(name), "__all__", [])} == set()
    assert importlib.import_module("skldp.cli").__all__ == ["main"]


@pytest.mark.parametrize("package", PUBLIC)
def test_a_package_exports_what_it_lists(package):
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    if package != "skldp.exceptions":
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
    modules = {package: importlib.import_module(package) for package in PUBLIC}
    named = set(documented_names())
    exported = {
        f"{name}.{entry}": getattr(module, entry) for name, module in modules.items() for entry in module.__all__
    }
    assert named - set(exported) == set(), "in the reference, but no package exports it"
    # What two packages export, such as PrivacyLedger, is described once.
    described = [exported[name] for name in named]
    missing = {name for name, value in exported.items() if not any(value is other for other in described)}
    assert missing == set(), "exported, but not in the reference"
