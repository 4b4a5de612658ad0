"""The oldest versions that are tested are those that pyproject.toml requires."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_oldest_versions_are_those_that_the_project_names():
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    extras = PROJECT["optional-dependencies"]
    for line in {*PROJECT["dependencies"], *extras["study"], *extras["fast"], "polars>=1.0", "imbalanced-learn>=0.13"}:
        name, least = line.split(">=")
        assert pinned[name].startswith(least), f"{name} is pinned to {pinned[name]}, and {line} is promised"
