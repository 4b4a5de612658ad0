"""Imports run down the layers only: the contracts of pyproject.toml, and what each lower layer may import at all."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skldp

PACKAGE = Path(skldp.__file__).parent
MAY_IMPORT = {
    "laws": {"numpy", "scipy", "cryptography", "skldp", *sys.stdlib_module_names},
    "domains": {"numpy", "scipy", "skldp", *sys.stdlib_module_names},
    "mechanisms": {"numpy", "scipy", "cryptography", "numba", "skldp", *sys.stdlib_module_names},
    "shuffle": {"numpy", "scipy", "skldp", *sys.stdlib_module_names},
    # Who calls a ledger brings the workers: no scikit-learn, no joblib. pandas only where somebody wants a table,
    # a database's only where somebody gives a URL; rows that are kept are encrypted.
    "accounting": {
        "numpy",
        "scipy",
        "cryptography",
        "pandas",
        "sqlalchemy",
        "psycopg",
        "skldp",
        *sys.stdlib_module_names,
    },
    "learning": {"numpy", "scipy", "skldp", *sys.stdlib_module_names},
    # A person's own device; cryptography comes with the layers below.
    "client": {"numpy", "skldp", *sys.stdlib_module_names},
}


def test_contracts_of_pyproject_hold(monkeypatch, capsys):
    linter = pytest.importorskip("importlinter.cli")
    monkeypatch.syspath_prepend(str(PACKAGE.parent))
    code = linter.lint_imports(config_filename=str(PACKAGE.parent / "pyproject.toml"), no_cache=True)
    assert code == 0, capsys.readouterr().out


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def modules_of(*layers):
    return [(layer, path) for layer in layers for path in sorted((PACKAGE / layer).rglob("*.py"))]


@pytest.mark.parametrize(("layer", "path"), modules_of(*MAY_IMPORT), ids=lambda p: getattr(p, "name", p))
def test_the_lower_layers_know_only_arrays(layer, path):
    assert {name.partition(".")[0] for name in imported_modules(path)} <= MAY_IMPORT[layer]


@pytest.mark.slow
def test_the_lower_layers_bring_nothing_along():
    """Not through the layers below them either: the top module, which asks for estimators, is not imported."""
    code = f"""
import importlib, pathlib, sys, types
package = types.ModuleType("skldp")
package.__path__ = [{str(PACKAGE)!r}]
sys.modules["skldp"] = package
for layer in {list(MAY_IMPORT)!r}:
    for path in pathlib.Path({str(PACKAGE)!r}, layer).rglob("*.py"):
        name = ".".join(path.relative_to({str(PACKAGE)!r}).with_suffix("").parts)
        importlib.import_module("skldp." + name.removesuffix(".__init__"))
    along = sorted({{"sklearn", "joblib", "pandas", "sqlalchemy", "psycopg"}} & set(sys.modules))
    if along:
        print(layer, along)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
