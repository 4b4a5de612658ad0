"""The public packages import what is asked for, and their stubs say what there is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from doors import LAZY


def test_import_brings_nothing_that_nobody_asked_for():
    doors = ", ".join(door.__name__ for door in LAZY)
    code = f"import sys, {doors}; print(sorted({{'numpy', 'scipy', 'sklearn'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("door", LAZY, ids=lambda door: door.__name__)
def test_the_stub_lists_what_it_imports(door):
    stub = ast.parse(Path(door.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    (listed,) = (ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(listed) == sorted(door.__all__)
    assert set(door.__all__) <= set(dir(door))


@pytest.mark.parametrize("door", LAZY, ids=lambda door: door.__name__)
@pytest.mark.parametrize("name", ["NoSuchName", "_no_such_name", "__no_such_name__"])
def test_an_unknown_name_is_refused_as_by_any_module(door, name):
    with pytest.raises(AttributeError, match=f"module '{door.__name__}' has no attribute '{name}'"):
        getattr(door, name)


@pytest.mark.slow
def test_public_packages_need_no_import_of_their_own():
    code = "import skldp; print(skldp.private_model.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "private_model\n"


# Most modules of skldp that an import loads, and the parts of the package that it leaves out.
LOADED = [
    ("from skldp import BitRandTransformer", 44, "learning collection study client accounting"),
    ("from skldp import privacy_guarantee", 42, "learning collection study client accounting"),
    ("from skldp.study import privacy_utility_curve", 80, "learning collection client accounting"),
    ("from skldp import TablePrivatizer", 76, "learning collection study client accounting"),
    ("from skldp.client import Policy", 28, "learning collection study estimators accounting"),
    ("import skldp.client", 3, "laws learning collection study estimators accounting"),
    ("from skldp import PrivateLinearRegression", 96, "collection study client accounting"),
    ("from skldp import private_model", 80, "collection study client accounting"),
    ("from skldp import BayesianFilter", 104, "learning collection study client"),
]


@pytest.mark.parametrize(("statement", "most", "without"), LOADED, ids=[statement for statement, _, _ in LOADED])
def test_an_import_loads_only_what_the_name_needs(statement, most, without):
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    own = [name for name in loaded if name.partition(".")[0] == "skldp"]
    assert len(own) <= most
    unwanted = {f"skldp.{part}" for part in without.split()} | {"sqlite3", "sqlalchemy", "psycopg"}
    assert not unwanted & {*loaded}
