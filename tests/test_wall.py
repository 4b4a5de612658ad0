"""What is public is offered by a door and stands in the reference; all else has an underscore in its path."""

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import skldp

DOORS = (
    "skldp",
    "skldp.mechanisms",
    "skldp.accounting",
    "skldp.learning",
    "skldp.study",
    "skldp.client",
    "skldp.exceptions",
)
# Floors whose names are offered by the front door, or by the command line.
FLOORS = ("skldp.estimators", "skldp.collection", "skldp.cli")
MODULES = ["skldp", *(found.name for found in pkgutil.walk_packages(skldp.__path__, "skldp."))]
REFERENCE = Path(skldp.__file__).parent.parent / "docs" / "reference.rst"


def is_private(module):
    return any(part.startswith("_") for part in module.split("."))


def test_every_module_without_an_underscore_is_a_door():
    assert {name for name in MODULES if not is_private(name)} == {*DOORS, *FLOORS}


def test_a_floor_offers_no_names_of_its_own():
    offered = {floor: getattr(importlib.import_module(floor), "__all__", []) for floor in FLOORS}
    assert offered == {"skldp.estimators": [], "skldp.collection": [], "skldp.cli": ["main"]}


def test_no_package_shadows_its_own_module():
    shadowed = []
    for name in MODULES[1:]:
        package, _, last = name.rpartition(".")
        if last != "__main__":
            module = importlib.import_module(name)
            shadowed += [name] * (getattr(sys.modules[package], last) is not module)
    assert shadowed == []


@pytest.mark.parametrize("door", DOORS)
def test_a_door_offers_what_it_lists(door):
    module = importlib.import_module(door)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    if door != "skldp.exceptions":
        below = {name.rpartition(".")[2] for name in MODULES}
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


def test_the_reference_names_what_the_doors_offer():
    modules = {door: importlib.import_module(door) for door in DOORS}
    named = set(documented_names())
    offered = {f"{door}.{name}": getattr(modules[door], name) for door in DOORS for name in modules[door].__all__}
    assert named - set(offered) == set(), "in the reference, but no door offers it"
    # What two doors offer, such as PrivacyLedger, is described once.
    described = [offered[name] for name in named]
    missing = {name for name, value in offered.items() if not any(value is other for other in described)}
    assert missing == set(), "offered, but not in the reference"
