"""Count files, functions and moves between files in five calls of the package.

    python benchmarks/walks.py                       # this checkout
    python benchmarks/walks.py --list                # and every step
    PYTHONPATH=../other python benchmarks/walks.py   # another one, with this script

A function counts once, however often it is called; a generator or a lambda is a function of its own. A move is a call
that begins in another file than the call before it: returns do not count. Each count is the median of 51 calls, as some
steps are rarely drawn; but the query is walked once, which is these people's first, and so is the fit.
Compiled steps are left out.
"""

import ast
import importlib
import itertools
import pkgutil
import statistics
import sys
import warnings
from pathlib import Path

sys.modules["numba"] = None  # before anything imports it: compiled steps are left out

import numpy as np
from sklearn.linear_model import LogisticRegression

import skldp

PACKAGE = Path(skldp.__file__).parent
# Of the last walk, where they are asked for.
STEPS: list[str] = []


def walk(call):
    """Files, functions and moves between files of one call, as far as they are the package's own."""
    calls = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            calls.append(frame.f_code)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    if "--list" in sys.argv:
        STEPS[:] = [f"{Path(code.co_filename).relative_to(PACKAGE)}: {code.co_qualname}" for code in calls]
    files = [code.co_filename for code in calls]
    moves = sum(one != other for one, other in itertools.pairwise(files))
    return len(set(files)), len(set(calls)), moves


def usual(call):
    """Walk a call many times, and give the median of each count: what is drawn decides about the rare steps."""
    call()
    return tuple(map(statistics.median_low, zip(*(walk(call) for _ in range(51)), strict=True)))


def walks():
    """Yield the name of each call, and its walk."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 64)).astype(np.float32)
    few, y = X[:50, :8].astype(np.float64), np.arange(50) % 3
    survey = skldp.BayesianFilter(LogisticRegression()).fit(few, y > 0)
    yield "BayesianFilter.query", walk(lambda: survey.query(few, ids=range(50)))
    bits = skldp.BitRandTransformer(1.0, calibration="exact").fit(X)
    yield "BitRandTransformer.transform", usual(lambda: bits.transform(X))
    number = skldp.NumericPrivatizer(1.0).fit(few)
    yield "NumericPrivatizer.transform", usual(lambda: number.transform(few))
    labels = skldp.LabelRR(1.0, classes=[0, 1, 2])
    model = skldp.LabelPrivateClassifier(LogisticRegression(max_iter=500), label_mechanism=labels)
    yield "LabelPrivateClassifier.fit", usual(lambda: model.fit(few, y))
    people = rng.uniform(-1, 1, (20_000, 3))
    regression = skldp.PrivateLinearRegression(2.0).fit(people, people[:, 0])
    yield "PrivateLinearRegression.fit", walk(lambda: regression.fit(people, people[:, 0]))


def public_names():
    """The distinct names that modules without an underscore in their path offer."""
    names = set()
    for found in [skldp, *pkgutil.walk_packages([str(PACKAGE)], "skldp.")]:
        name = found.__name__ if found is skldp else found.name
        if any(part.startswith("_") for part in name.split(".")):
            continue
        module = importlib.import_module(name)
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        names.update(getattr(module, "__all__", None) or defined_names(tree))
    return names


def defined_names(tree):
    """Yield the names that a module without ``__all__`` defines for others."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


def main():
    warnings.simplefilter("ignore")
    print(f"{'call':<32}{'files':>7}{'functions':>11}{'moves':>7}")
    for name, (files, functions, moves) in walks():
        print(f"{name:<32}{files:>7}{functions:>11}{moves:>7}")
        print("".join(f"    {step}\n" for step in STEPS), end="")
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")]
    print(
        f"{len(lines)} files of {statistics.median(lines):.0f} lines in the median, {sum(lines):,} lines; "
        f"{len(public_names())} public names"
    )


if __name__ == "__main__":
    main()
