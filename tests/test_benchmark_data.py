"""A benchmark whose data file is missing says so and ends with an error; it runs on no other table."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["baselines", "few_people", "learning", "discriminant"])
def test_a_missing_data_file_ends_a_benchmark(name, tmp_path):
    command = [sys.executable, BENCHMARKS / f"{name}.py", "--data", tmp_path / "none.npz"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "There is no data file" in run.stderr
