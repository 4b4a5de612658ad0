"""Compare a ledger in a file with one on PostgreSQL: concurrent processes query the same people.

python benchmarks/ledger_hosts.py                                        # 4 processes x 100 queries x 50 people
python benchmarks/ledger_hosts.py --queries 500 --repeats 3
python benchmarks/ledger_hosts.py --queries 500 --epsilon 0.001 --kills 200 --server-kills 20
python benchmarks/ledger_hosts.py --url postgresql://role@host/database  # an empty database, in place of a server that
                                                                         # the script starts for itself

With --kills, so many processes are killed at random moments and followed by others, and with --server-kills the server
is killed and started again so often meanwhile, before the last four ask all their queries. Beside what many processes
get through, the time of one call of one person: asked, refused, and handed the recorded answer again.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from skldp import PrivacyLedger
from skldp.accounting import ledger_report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from ledger_children import answer_many, query_number, start
from postgres_server import PostgresServer, find_programs, run_at

N_PROCESSES, N_PEOPLE, BUDGET = 4, 50, 1.0
N_CALLS = 20
RECORDED = """SELECT q.key, p.identity, a.output FROM answers a JOIN releases r USING (release)
              JOIN queries q USING (query) JOIN people p USING (person)"""


class Client:
    """A process that asks, and all that it was handed."""

    def __init__(self, place, seed, n_queries, epsilon):
        self.process, output = start(answer_many, place, seed, n_queries, N_PEOPLE, epsilon)
        self.handed = []
        self._reader = threading.Thread(target=self._read, args=(output,))
        self._reader.start()

    def _read(self, output):
        with output:
            # A kill may cut the last line short: only whole lines were handed out.
            self.handed += [line[:-1] for line in output if line.endswith("\n")]

    def end(self):
        """Wait for its end, and give its exit code."""
        self._reader.join()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def kill(self, moment):
        """Kill it so many seconds from now."""
        time.sleep(moment)
        os.kill(self.process, signal.SIGKILL)
        return self.end()


def ask_and_kill(place, options, server):
    """Ask from all processes, kill and replace some; what they were handed, the killed among them, and the kills."""
    chance = random.Random(0)
    clients, ended, killed, crashes = [], [], 0, 0
    for seed in range(N_PROCESSES):
        clients.append(Client(place, seed, options.queries, options.epsilon))
    for number in range(options.kills):
        chosen = clients.pop(0)
        killed += chosen.kill(chance.uniform(0.2, 0.6)) == -signal.SIGKILL
        ended.append(chosen)
        if server is not None and crashes * options.kills < number * options.server_kills:
            server.kill()
            server.start()
            crashes += 1
        clients.append(Client(place, N_PROCESSES + number, options.queries, options.epsilon))
    for client in clients:
        if client.end() != 0:
            raise RuntimeError("A process that asked has failed.")
    return [line for client in ended + clients for line in client.handed], killed, crashes


def run(place, options, server):
    """Ask from all processes; the seconds it took, and what of it was lost, overspent or told twice."""
    PrivacyLedger(BUDGET, bounds=(-1, 1), path=place, rule=options.rule).close()
    began = time.perf_counter()
    handed, killed, crashes = ask_and_kill(place, options, server)
    seconds = time.perf_counter() - began
    recorded = run_at(place, RECORDED)
    answers = {f"{query} {person} {output}" for query, person, output in recorded}
    by_question = {}
    for line in handed:
        query, person, output = line.split()
        by_question.setdefault((query, person), []).append(output)
    report = ledger_report(place, verify=True)
    return {
        "seconds": seconds,
        "kills of clients": killed,
        "of the server": crashes,
        "answers handed out": len(handed),
        "of them again": len(handed) - len(by_question),
        "refused": report["refused"],
        "largest loss": f"{report['loss_quantiles']['1']:.6f} of {BUDGET:g}",
        "costs lost": len(set(handed) - answers),
        "budgets exceeded": int(report["loss_quantiles"]["1"] > BUDGET) + len(report["verification"]["problems"]),
        "answers told twice at different values": sum(len(set(told)) > 1 for told in by_question.values()),
    }


def show_calls(name, place, rule):
    """Medians of one person's calls: asked, refused, and handed what is recorded; by the clock and the processor."""
    ledger = PrivacyLedger(BUDGET, bounds=(-1, 1), path=place, rule=rule)
    times = {"asked": [], "refused": [], "handed again": []}
    for number in range(N_CALLS):
        small, large = query_number(10**6 + number, epsilon=1e-6), query_number(2 * 10**6 + number, epsilon=2.0)
        for what, query in (("asked", small), ("refused", large), ("handed again", small)):
            began = np.array([time.perf_counter(), time.process_time()])
            answers = ledger.answer(query, [N_PEOPLE], lambda rows: [0])
            times[what].append(1e3 * (np.array([time.perf_counter(), time.process_time()]) - began))
            assert answers.accepted.all() == (what != "refused")
    medians = {what: np.median(taken, axis=0) for what, taken in times.items()}
    shown = (
        f"{what} {clock:.1f} ms ({processor:.1f} of the processor)" for what, (clock, processor) in medians.items()
    )
    print(f"{name}, one person: " + ", ".join(shown))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100, help="of each process")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--rule", choices=["basic", "simplified", "bayesian"], default="basic")
    parser.add_argument("--repeats", type=int, default=1, help="in turns")
    parser.add_argument("--kills", type=int, default=0, help="of processes that ask")
    parser.add_argument("--server-kills", type=int, default=0, help="among those, at most as many")
    parser.add_argument("--url", help="an empty database to use")
    parser.add_argument("--only", choices=["file", "PostgreSQL"])
    options = parser.parse_args()
    server = None if options.url else PostgresServer(find_programs())
    seconds = {"file": [], "PostgreSQL": []}
    try:
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                url = options.url or server.url(schema=server.new_schema())
                for name, place in (("file", Path(folder) / "a.ledger"), ("PostgreSQL", url)):
                    if options.only not in (None, name):
                        continue
                    found = run(place, options, server if name == "PostgreSQL" else None)
                    seconds[name].append(found.pop("seconds"))
                    speed = (
                        "" if options.kills else f"{N_PROCESSES * options.queries / seconds[name][-1]:.1f} a second; "
                    )
                    print(f"{name}: {speed}" + "; ".join(f"{what} {number}" for what, number in found.items()))
                    show_calls(name, place, options.rule)
                    sys.stdout.flush()
    finally:
        if server is not None:
            server.stop()
    if options.only is None:
        ratio = np.median(seconds["file"]) / np.median(seconds["PostgreSQL"])
        print(f"throughput of PostgreSQL beside the file's (medians of {options.repeats}): {ratio:.2f}")


if __name__ == "__main__":
    main()
