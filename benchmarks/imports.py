"""How long imports and the command line take to start, beside scikit-learn, in turns.

    python benchmarks/imports.py [--runs 10]

Each line is a new process: seconds of processor time, which other jobs on the machine change less than the clock's, and
of the clock. The files are read once before, so that no disk is measured.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

LINES = {
    "import sklearn.linear_model": ["-c", "import sklearn.linear_model"],
    "import skldp": ["-c", "import skldp"],
    "from skldp import PrivateLinearRegression": ["-c", "from skldp import PrivateLinearRegression"],
    "import skldp, and all its names": ["-c", "import skldp; [getattr(skldp, name) for name in skldp.__all__]"],
    "skldp --help": ["-m", "skldp", "--help"],
}


def seconds(arguments):
    """Processor time and time by the clock of one new process."""
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    clock, after = time.perf_counter() - began, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, clock


parser = argparse.ArgumentParser()
parser.add_argument("--runs", type=int, default=10)
runs = parser.parse_args().runs
for arguments in LINES.values():
    seconds(arguments)
found = {line: [] for line in LINES}
for _ in range(runs):
    for line, arguments in LINES.items():
        found[line].append(seconds(arguments))
beside = statistics.median(spent for spent, _ in found["import sklearn.linear_model"])
print(f"median of {runs} runs: processor s, clock s, processor s above scikit-learn")
for line, both in found.items():
    spent, clock = (statistics.median(column) for column in zip(*both, strict=True))
    print(f"{line:42} {spent:6.2f} {clock:6.2f} {spent - beside:+6.2f}")
