"""Compare a three-class discriminant over Flower with the same protocol in one process.

Usage: python benchmarks/flower.py [--people 600] [--runs 10] [--epsilon 4]

A real SuperLink and two SuperNodes on the loopback address, over TLS, one of which is killed in the first run between a
person's charge and the answer, and comes back. Noise is drawn on people's devices, by the operating system's secure
source, so that the two sides have no seed in common: both are run as often, and means, worst and standard errors are
printed. The reports that the server got are given to the protocol in this process as well, which must come to the same
state, to the bit. Everybody's ledger, on their own device, tells how often they took part.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from skldp.client import DeviceLedger
from skldp.exceptions import SeededNoiseWarning
from skldp.learning import Report
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._person import simulate
from skldp.mechanisms import noise_from

# The programs of Flower's, and what a node and a server are told.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/collection"))
from test_flower_nodes import SETTINGS, Flower

APP = '''
import os
import signal
from pathlib import Path

import numpy as np

from skldp.flower import flower_client_app, flower_server_app
from skldp.client import DeviceLedger
from skldp.learning._discriminant import DiscriminantProtocol

FOLDER = Path({folder!r})
RUN = (FOLDER / "run").read_text()


class Device(DeviceLedger):
    """Whose program is killed between the charge and the answer, once, when it is told."""

    def charge(self, policy, epsilon):
        super().charge(policy, epsilon)
        try:
            (FOLDER / "kill").unlink()
        except FileNotFoundError:
            return
        (FOLDER / "killed").write_text(self.path)
        os.kill(os.getpid(), signal.SIGKILL)


def people(context):
    part = context.node_config["part"]
    X, y = np.load(FOLDER / "X.npy"), np.load(FOLDER / "y.npy")
    for i in range(part, {n}, 2):
        # Only the second node's.
        kind = Device if part else DeviceLedger
        yield X[i], y[i], kind(FOLDER / RUN / f"{{i}}.sqlite", lifetime_epsilon={epsilon})


class Recorded(DiscriminantProtocol):
    def next(self, reports):
        reports = list(reports)
        with open(FOLDER / RUN / "reports.txt", "a", encoding="utf-8") as file:
            file.write(" ".join(report.to_json().replace(" ", "") for report in reports) + "\\n")
        return super().next(reports)


def protocol(context):
    return Recorded(2, {n}, 3, epsilon={epsilon}, low=[-1, -1], high=[1, 1])


client = flower_client_app(people, purpose="rounds " + RUN)
server = flower_server_app(protocol, FOLDER / RUN / "state.json", least_nodes=2, timeout=60)
'''


def rows(n, seed):
    """People who were made up."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return np.clip(rng.normal(np.array([[-0.4, 0], [0.4, 0], [0, 0.5]])[y], 0.25), -1, 1), y


def made(asked):
    """The protocol, before anybody was asked."""
    return DiscriminantProtocol(2, asked.people, 3, epsilon=asked.epsilon, low=[-1, -1], high=[1, 1])


def score(protocol):
    """Accuracy on others than who took part."""
    X, y = rows(2_000, 1)
    return np.mean((X @ protocol.coefficients.T + protocol.intercepts).argmax(axis=1) == y)


def one_run(flower, run, app, asked, killed):
    """Everybody takes part over Flower, and the state is made again from the reports."""
    folder = flower.folder / run
    folder.mkdir()
    (flower.folder / "run").write_text(run)
    if killed:
        (flower.folder / "kill").touch()
    flower.start(run, "flwr", "run", str(app), "here")
    if killed:
        flower.until((flower.folder / "killed").exists)
        flower.kill("node1")
        flower.node(1)

    def found():
        path = folder / "state.json"
        return DiscriminantProtocol.from_json(path.read_text(encoding="utf-8")) if path.exists() else None

    flower.until(lambda: (state := found()) is not None and state.task is None)
    flower.running.pop(run).wait()
    again = made(asked)
    lines = (folder / "reports.txt").read_text(encoding="utf-8").splitlines()
    cohorts = [list(map(Report.from_json, line.split())) for line in lines]
    for cohort in cohorts:
        again.next(cohort)
    assert json.loads(again.to_json()) == json.loads(found().to_json()), "not the state of these reports"
    key = hashlib.sha256(b"skldp: rounds\0rounds " + run.encode()).hexdigest()
    ledgers = [DeviceLedger(folder / f"{i}.sqlite", lifetime_epsilon=asked.epsilon) for i in range(asked.people)]
    answered = [ledger.reports().get(key, 0) for ledger in ledgers]
    counted = sum(report.n_people for cohort in cohorts for report in cohort)
    return score(found()), len(cohorts), counted, sum(answered), max(answered)


def main():
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=4.0)
    asked = parser.parse_args()
    X, y = rows(asked.people, 0)
    alone = []
    # The noise of this side comes from seeds, so that it can be run again.
    warnings.simplefilter("ignore", SeededNoiseWarning)
    for seed in range(asked.runs):
        protocol = made(asked)
        simulate(protocol, X, y, noise_from(seed))
        alone.append(score(protocol))
    tell("one process", alone)
    scores = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        app = folder / "app"
        (app / "rounds").mkdir(parents=True)
        (app / "pyproject.toml").write_text(SETTINGS)
        (app / "LICENSE").write_text("None.")
        (app / "rounds/__init__.py").write_text("")
        (app / "rounds/app.py").write_text(APP.format(folder=temporary, n=asked.people, epsilon=asked.epsilon))
        flower = Flower(folder)
        try:
            flower.link()
            flower.node(0)
            flower.node(1)
            for run in range(asked.runs):
                start = time.perf_counter()
                accuracy, n_steps, counted, answered, most = one_run(flower, f"run{run}", app, asked, killed=run == 0)
                seconds = time.perf_counter() - start
                scores.append(accuracy)
                print(
                    f"Flower, run {run}{', a node killed' if run == 0 else ''}: accuracy {accuracy:.4f}, "
                    f"{n_steps} cohorts, {seconds:.0f} s; {answered} of {asked.people} people charged, "
                    f"at most {most} time each; {counted} people's answers came",
                    flush=True,
                )
        finally:
            for name in list(flower.running):
                flower.kill(name)
    tell("Flower", scores)


def tell(where, scores):
    """Mean, worst and error."""
    error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else float("nan")
    print(
        f"{where}: accuracy {np.mean(scores):.4f} +- {error:.4f}, worst {min(scores):.4f} of {len(scores)} runs",
        flush=True,
    )


if __name__ == "__main__":
    main()
