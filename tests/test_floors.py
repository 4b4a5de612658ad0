"""Imports run down the floors only: the contracts of pyproject.toml, and what the lowest floor may import at all."""

import ast
import sys
from pathlib import Path

import pytest

import skldp

PACKAGE = Path(skldp.__file__).parent
FLOOR_ONE_MAY_IMPORT = {"numpy", "scipy", "cryptography", "numba", "skldp", *sys.stdlib_module_names}


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


@pytest.mark.parametrize("path", sorted((PACKAGE / "mechanisms").rglob("*.py")), ids=lambda p: p.name)
def test_floor_one_knows_only_arrays(path):
    assert {name.partition(".")[0] for name in imported_modules(path)} <= FLOOR_ONE_MAY_IMPORT
