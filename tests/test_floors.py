"""Imports run downward only: a module never imports from a floor above its own."""

import ast
from pathlib import Path

import pytest

import skldp

PACKAGE = Path(skldp.__file__).parent
FLOORS = {
    "exceptions": 0,
    "_untold": 0,
    "_checks": 0,
    "mechanisms": 1,
    "accounting": 2,
    "learning": 3,
    "estimators": 4,
    "study": 5,
    "cli": 6,
}
FLOOR_ONE_MAY_IMPORT = {"numpy", "scipy", "cryptography", "numba", "skldp"}


def floor_of(module):
    parts = module.split(".")
    return FLOORS.get(parts[1], 7) if len(parts) > 1 else 7


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "skldp":
                yield from (f"skldp.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_never_climb(path):
    name = ".".join(("skldp", *path.relative_to(PACKAGE).with_suffix("").parts))
    for imported in imported_modules(path):
        if imported == "skldp" or not imported.startswith("skldp."):
            continue
        assert floor_of(imported) <= floor_of(name), f"{name} imports {imported} from above"


@pytest.mark.parametrize(
    "path",
    sorted(p for floor in ("mechanisms", "learning") for p in (PACKAGE / floor).rglob("*.py")),
    ids=lambda p: p.name,
)
def test_mechanisms_and_learning_know_only_arrays(path):
    import sys

    for imported in imported_modules(path):
        top = imported.split(".")[0]
        assert top in FLOOR_ONE_MAY_IMPORT or top in sys.stdlib_module_names, imported
