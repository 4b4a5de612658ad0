"""Imports run downward only: a module never imports from a floor above its own."""

import ast
import subprocess
import sys
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
    "estimators": 3,
    "study": 4,
    "cli": 5,
}
MAY_IMPORT = {
    "mechanisms": {"numpy", "scipy", "cryptography", "numba", "skldp"},
    # Who calls a ledger brings the workers: no scikit-learn, no joblib. pandas only where somebody wants a table.
    "accounting": {"numpy", "scipy", "pandas", "skldp"},
}


def floor_of(module):
    parts = module.split(".")
    return FLOORS.get(parts[1], 6) if len(parts) > 1 else 6


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


def modules_of(*floors):
    return [(floor, path) for floor in floors for path in sorted((PACKAGE / floor).rglob("*.py"))]


@pytest.mark.parametrize(("floor", "path"), modules_of(*MAY_IMPORT), ids=lambda p: getattr(p, "name", p))
def test_the_lower_floors_know_only_arrays(floor, path):
    for imported in imported_modules(path):
        top = imported.split(".")[0]
        assert top in MAY_IMPORT[floor] or top in sys.stdlib_module_names, imported


@pytest.mark.parametrize("floor", MAY_IMPORT)
def test_the_lower_floors_bring_nothing_along(floor):
    """Not through the floors below them either: the package's own door, which asks for estimators, is left shut."""
    code = f"""
import importlib, pathlib, sys, types
package = types.ModuleType("skldp")
package.__path__ = [{str(PACKAGE)!r}]
sys.modules["skldp"] = package
for path in pathlib.Path({str(PACKAGE / floor)!r}).rglob("*.py"):
    name = ".".join(path.relative_to({str(PACKAGE)!r}).with_suffix("").parts)
    importlib.import_module("skldp." + name.removesuffix(".__init__"))
print(sorted({{"sklearn", "joblib", "pandas"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
