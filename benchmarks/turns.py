"""Compare two checkouts with run.py, alternating so that changes in machine load affect both.

    python benchmarks/turns.py ../old . --rounds 5
    python benchmarks/turns.py ../old . --rounds 3 -- --only bits --repeats 15

What follows ``--`` goes to each checkout's own benchmarks/run.py. Milliseconds are least processor times: the least of
all rounds, and the median of the rounds. The ratio is new over old; above 1 is slower.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from measure import load

CASE = re.compile(r"(?P<name>\S.*?) +(?P<clock>[\d.]+) +(?P<cpu>[\d.]+) +(?P<least>[\d.]+)(?P<rest> +[\d.]+ .*)")


def run(checkout, options):
    """Least processor milliseconds by case, of one run of a checkout's own table."""
    root = Path(checkout).resolve()
    done = subprocess.run(
        [sys.executable, "benchmarks/run.py", *options],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = (CASE.fullmatch(line + " ") for line in done.stdout.splitlines())
    # A class may have had another suffix.
    return {re.sub("Privatizer|Transformer", "", case["name"]): float(case["least"]) for case in found if case}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=5)
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    asked, options = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    rounds = {"old": [], "new": []}
    for i in range(asked.rounds):
        for name, checkout in (("old", asked.old), ("new", asked.new)):
            rounds[name].append(run(checkout, options))
        print(f"round {i + 1} of {asked.rounds}, {load()}", file=sys.stderr, flush=True)
    print(f"{'':<58}{'least':>27}{'median':>27}")
    print(f"{'case':<58}" + 2 * f"{'old':>9}{'new':>9}{'ratio':>9}")
    for case in rounds["old"][0] | rounds["new"][0]:
        old, new = ([table[case] for table in tables if case in table] for tables in rounds.values())
        if not old or not new:
            print(f"{case:<58}  only in the {'old' if old else 'new'} one")
            continue
        cells = [(of(old), of(new)) for of in (min, statistics.median)]
        print(f"{case:<58}" + "".join(f"{one:>9.2f}{other:>9.2f}{other / one:>9.2f}" for one, other in cells))


if __name__ == "__main__":
    main()
