"""A ledger in a file beside one on a PostgreSQL server: processes that ask the same people at once.

python benchmarks/ledger_hosts.py                                        # 4 processes x 100 queries x 50 people
python benchmarks/ledger_hosts.py --queries 500 --repeats 3
python benchmarks/ledger_hosts.py --url postgresql://role@host/database  # an empty database, in place of a server that
                                                                         # the script starts for itself
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from skldp.accounting import PrivacyLedger, ledger_report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from ledger_children import answer_many, start
from postgres_server import PostgresServer, find_programs, run_at

N_PROCESSES, N_PEOPLE, BUDGET = 4, 50, 1.0
RECORDED = """SELECT q.key, p.identity, a.output FROM answers a JOIN releases r USING (release)
              JOIN queries q USING (query) JOIN people p USING (person)"""


def run(place, n_queries, epsilon):
    """Ask from all processes; the seconds it took, and what of it was lost, overspent or told twice."""
    PrivacyLedger(BUDGET, bounds=(-1, 1), path=place, rule="basic").close()
    began = time.perf_counter()
    children = [start(answer_many, place, seed, n_queries, N_PEOPLE, epsilon) for seed in range(N_PROCESSES)]
    handed = []
    for child, output in children:
        with output:
            handed += output.read().splitlines()
        if os.waitpid(child, 0)[1] != 0:
            raise RuntimeError("A process that asked has failed.")
    seconds = time.perf_counter() - began
    recorded = run_at(place, RECORDED)
    n_handed = {}
    for line in handed:
        query, person, output = line.split()
        n_handed.setdefault((query, person), set()).add(output)
    answers = {f"{query} {person} {output}" for query, person, output in recorded}
    report = ledger_report(place, verify=True)
    return {
        "seconds": seconds,
        "costs lost": len(set(handed) - answers),
        "budgets exceeded": int(report["loss_quantiles"]["1"] > BUDGET) + len(report["verification"]["problems"]),
        "answers told twice at different values": sum(len(outputs) > 1 for outputs in n_handed.values()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100, help="of each process")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=1, help="in turns")
    parser.add_argument("--url", help="an empty database to use")
    options = parser.parse_args()
    server = None if options.url else PostgresServer(find_programs())
    seconds = {"file": [], "PostgreSQL": []}
    try:
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                url = options.url or server.url(schema=server.new_schema())
                for name, place in (("file", Path(folder) / "a.ledger"), ("PostgreSQL", url)):
                    found = run(place, options.queries, options.epsilon)
                    seconds[name].append(found["seconds"])
                    calls = N_PROCESSES * options.queries / found.pop("seconds")
                    print(
                        f"{name:10}  {calls:7.1f} calls a second  " + "  ".join(f"{k}: {v}" for k, v in found.items())
                    )
    finally:
        if server is not None:
            server.stop()
    ratio = np.median(seconds["file"]) / np.median(seconds["PostgreSQL"])
    print(f"throughput of PostgreSQL beside the file's (medians of {options.repeats}): {ratio:.2f}")


if __name__ == "__main__":
    main()
