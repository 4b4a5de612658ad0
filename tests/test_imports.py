"""``import skldp`` asks for the core dependencies only; scikit-learn may bring others along where they are there."""

import importlib
import inspect
import json
import re
import subprocess
import sys

import pytest

from skldp.cli import _names
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS
from skldp.mechanisms.numeric._bounded_features import JOINT_MECHANISMS, NUMERIC_MECHANISMS
from skldp.study._catalogue import GUARANTEED, LABEL_MECHANISMS, PRIVATE_MODELS
from skldp.study._datasets import BUNDLED, TASKS
from skldp.study._table_files import TABLE_FILES

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


HELP = [[], ["policy"], *(["policy", one] for one in ("new", "show", "plan", "secret", "check"))]
HELP += [[one] for one in ("study", "guarantee", "audit", "release", "collect", "ledger")]


def test_help_is_plain_and_imports_no_numbers():
    pytest.importorskip("typer")
    code = f"""
import sys
from skldp.cli import main

for command in {HELP}:
    try:
        main([*command, "--help"])
    except SystemExit:
        continue
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    text, _, imported = done.stdout.rstrip().rpartition("\n")
    assert not {"numpy", "sklearn", "skldp.client._policy"} & {*imported.split()}
    assert text.count("Usage: ") == len(HELP)
    assert not re.search(r"<\w|[│{}]", text)
    # A command of an example is not broken into lines.
    assert max(len(line) for line in text.splitlines() if "  skldp " not in line) <= 80


def test_names_in_help_are_those_of_the_package():
    assert {kind: tuple(names) for kind, names in GUARANTEED.items()} == _names.GUARANTEED
    assert {task: tuple(models) for task, models in PRIVATE_MODELS.items()} == _names.MODELS
    assert tuple(name for name in NUMERIC_MECHANISMS if name not in (*JOINT_MECHANISMS, "laplace")) == _names.NUMBERS
    assert (tuple(CATEGORICAL_MECHANISMS), tuple(LABEL_MECHANISMS)) == (_names.CATEGORIES, _names.LABELS)
    assert (tuple(BUNDLED), TASKS, TABLE_FILES) == (_names.DATA, _names.TASKS, _names.TABLE_FILES)


def test_the_list_says_of_each_command_what_its_own_help_does():
    commands = pytest.importorskip("skldp.cli._app", reason="typer is not there", exc_type=ImportError).COMMANDS
    for name, command in commands.items():
        function = getattr(importlib.import_module(f"skldp.cli.{command.module}"), name)
        if inspect.isfunction(function):
            assert inspect.getdoc(function).partition("\n\n")[0].replace("\n", " ") == command.line
