"""What is typed twice says the same: the conda recipe, the oldest versions, and what pyproject.toml requires."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(lines):
    return {re.sub(r"[\s]|\[.*\]", "", line) for line in lines}


def test_the_conda_recipe_requires_what_the_project_does():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1]
    listed = requirements(line.strip("- ") for line in run.splitlines())
    assert listed == requirements(PROJECT["dependencies"]) | {f"python{PROJECT['requires-python']}"}


def test_the_oldest_versions_are_those_that_the_project_names():
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    extras = PROJECT["optional-dependencies"]
    for line in {*PROJECT["dependencies"], *extras["study"], *extras["fast"], "polars>=1.0", "imbalanced-learn>=0.13"}:
        name, least = line.split(">=")
        assert pinned[name].startswith(least), f"{name} is pinned to {pinned[name]}, and {line} is promised"
