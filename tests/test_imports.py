"""``import skldp`` asks for the core dependencies only; scikit-learn may bring others along where they are there."""

import importlib
import inspect
import json
import subprocess
import sys

import pytest

WATCH = """
import builtins, json, sys

asked, own_import = set(), builtins.__import__
EXTRAS = {"pandas", "polars", "pyarrow", "matplotlib", "jinja2", "rich", "typer", "dask", "imblearn", "numba"}


def watched(name, globals=None, locals=None, fromlist=(), level=0):
    if (globals or {}).get("__name__", "").split(".")[0] == "skldp" and name.split(".")[0] in EXTRAS:
        asked.add(name)
    return own_import(name, globals, locals, fromlist, level)


builtins.__import__ = watched
import skldp

skldp.privacy_guarantee(skldp.BitRandTransformer(calibration="exact").fit([[0.5, 0.1]]))
print(json.dumps([sorted(asked), sorted(name for name in sys.modules if name.startswith("skldp.cli"))]))
"""


@pytest.mark.slow
def test_extras_are_imported_only_where_they_are_used():
    done = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], []]


@pytest.mark.slow
def test_the_core_works_without_the_extras():
    extras = ["matplotlib", "jinja2", "typer", "polars", "dask", "imblearn", "numba"]
    blocked = f"import sys; sys.modules.update(dict.fromkeys({extras}));"
    code = blocked + "import skldp; print(skldp.LabelRR(classes=[0, 1]).fit([0, 1]).privacy_guarantee_.epsilon <= 1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_the_list_of_commands_imports_none_of_them():
    commands = pytest.importorskip("skldp.cli._app", reason="typer is not there", exc_type=ImportError).COMMANDS
    code = (
        "import sys; from skldp.cli import main\ntry: main(['--help'])\nexcept SystemExit: print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f" {name} " in done.stdout for name in commands)
    # Neither the studies nor what they stand on.
    imported = done.stdout.splitlines()[-1]
    assert "'skldp.cli._app'" in imported
    assert not any(f"'{name}'" in imported for name in ("numpy", "sklearn", "skldp.study", "skldp.cli._study"))


def test_the_list_says_of_each_command_what_its_own_help_does():
    commands = pytest.importorskip("skldp.cli._app", reason="typer is not there", exc_type=ImportError).COMMANDS
    for name, command in commands.items():
        function = getattr(importlib.import_module(f"skldp.cli.{command.module}"), name)
        if inspect.isfunction(function):
            assert inspect.getdoc(function).partition("\n\n")[0].replace("\n", " ") == command.line
