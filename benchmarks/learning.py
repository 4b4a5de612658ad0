"""Measure score and time of linear models under local privacy, one release per person.

Usage: python benchmarks/learning.py [--data diamonds.csv] [--seeds 10] [--people 44000] [--only cut]
        [--speed 1000000] [--device 9 50 [--beside ../old]]

The table is not part of the project: 53,940 diamonds with the log price to be predicted from nine features within
public bounds, or the cut from the others. Means of fresh seeds, the worst in brackets, on 9,940 others. With --only
one of the two is shown; with --speed only the time and the memory of ``protocol="once"``, for so many made-up people
of 50 features; with --device only the processor time of one person's answers, for so many features, in this process
beside those of another checkout, in turns.
"""

import argparse
import csv
import importlib
import math
import resource
import sys
import time
import warnings

import numpy as np
from data_files import existing

from skldp import PrivateLinearRegression, PrivateLogisticRegression
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning import sufficiency

ORDERS = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("JIHGFED"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}
COLUMNS = ["carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z"]
BOUNDS = ([0, 0, 0, 0, 50, 50, 3, 3, 1.5], [3, 4, 6, 7, 75, 70, 10, 10, 6])
TARGET_BOUNDS = (math.log(300), math.log(20_000))


def read_diamonds(path):
    with open(existing(path), newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    X = [[ORDERS[c].index(row[c]) if c in ORDERS else float(row[c]) for c in COLUMNS] for row in table]
    y = [math.log(float(row["price"])) for row in table]
    order = np.random.RandomState(0).permutation(len(y))
    return np.array(X, dtype=float)[order], np.array(y)[order]


def show_scores(path, n_people, n_seeds):
    X, y = read_diamonds(path)
    test = slice(44_000, None)
    clean = np.linalg.lstsq(np.column_stack([np.ones(n_people), X[:n_people]]), y[:n_people], rcond=None)[0]
    predicted = np.clip(np.column_stack([np.ones(len(y) - 44_000), X[test]]) @ clean, *TARGET_BOUNDS)
    print(
        f"{n_people:,} people, {n_seeds} seeds; clean R2 {1 - ((y[test] - predicted) ** 2).mean() / y[test].var():.4f}"
    )
    print("epsilon     J  " + "".join(f"{protocol:>20}" for protocol in ("rounds", "once")))
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        line = f"{epsilon:7} {sufficiency(n_people, 9, epsilon):6.0f} "
        for protocol in ("rounds", "once"):
            scores = [
                PrivateLinearRegression(
                    epsilon, bounds=BOUNDS, target_bounds=TARGET_BOUNDS, protocol=protocol, seed=1_000 + seed
                )
                .fit(X[:n_people], y[:n_people])
                .score(X[test], y[test])
                for seed in range(n_seeds)
            ]
            line += f"     {np.mean(scores):.4f} [{min(scores):.4f}]"
        print(line, flush=True)


def show_accuracies(path, n_people, n_seeds):
    X, log_price = read_diamonds(path)
    cut, others = X[:, 1], np.column_stack([np.delete(X, 1, axis=1), log_price])
    bounds = [np.append(np.delete(end, 1), target) for end, target in zip(BOUNDS, TARGET_BOUNDS, strict=True)]
    print(f"The cut, {n_people:,} people, {n_seeds} seeds: accuracy and, after a comma, loss of the log")
    print("epsilon     J  " + "".join(f"{protocol:>26}" for protocol in ("rounds", "once")))
    test = np.clip(others[44_000:], *bounds)
    for epsilon in (1.0, 2.0, 4.0, 8.0):
        line = f"{epsilon:7} {sufficiency(n_people, 9, epsilon) / 4:6.0f} "
        for protocol in ("rounds", "once"):
            scores, losses = [], []
            for seed in range(n_seeds):
                model = PrivateLogisticRegression(
                    epsilon, bounds=bounds, classes=np.arange(5), protocol=protocol, seed=1_000 + seed
                ).fit(others[:n_people], cut[:n_people])
                scores.append(model.score(others[44_000:], cut[44_000:]))
                told = model.predict_log_proba(test)[np.arange(len(test)), cut[44_000:].astype(int)]
                losses.append(-told.mean())
            line += f"     {np.mean(scores):.4f} [{min(scores):.4f}], {np.mean(losses):.2f}"
        print(line, flush=True)


def show_speed(n):
    rng = np.random.default_rng(0)
    X = rng.random((n, 50)) * 2 - 1
    y = np.clip(X @ rng.standard_normal(50) * 0.05, -1, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, processor = time.perf_counter(), time.process_time()
    model = PrivateLinearRegression(1.0, protocol="once", n_jobs=2).fit(X, y)
    wall, processor = time.perf_counter() - start, time.process_time() - processor
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{n:,} x 50: {wall:.1f} s on two threads ({processor:.1f} s of processors), {more:.0f} MB beside the table")
    print(f"J {sufficiency(n, 50, 1.0):.0f}, R2 {model.score(X, y):.3f}")


def load_learning(checkout=None):
    """The part that devices run, of this checkout or of another one beside it."""
    ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "skldp"}
    if checkout is not None:
        for name in ours:
            del sys.modules[name]
        sys.path.insert(0, checkout)
    names = "skldp.learning", "skldp.learning._tasks", "skldp.mechanisms"
    found = [importlib.import_module(name) for name in names]
    # What a package imports when it is first asked.
    found[0].Person, found[0].RegressionProtocol, found[2].noise_from
    if checkout is not None:
        sys.path.remove(checkout)
        sys.modules.update(ours)
    return found


def asked_tasks(parts, n_features):
    """Every kind of task that a regression asks, as text, by its name."""
    learning, _, mechanisms = parts
    rng = np.random.default_rng(0)
    bounds = {"low": [-1] * (n_features + 1), "high": [1] * (n_features + 1)}
    asked = {}
    for kind in ("rounds", "once"):
        protocol = learning.RegressionProtocol(n_features, 10**9, epsilon=1.0, **bounds, kind=kind)
        task = protocol.first()
        while task is not None:
            asked.setdefault(f"{kind:6}, {f'{task.form}, {task.answer}':20}", task.to_json())
            X, y = rng.uniform(-1, 1, (20, n_features)), rng.uniform(-1, 1, 20)
            task = protocol.next(task.release(X, y, mechanisms.noise_from()))
    return asked


def time_answer(parts, text, n_features, *, calibrated):
    """Processor milliseconds of one answer; not calibrated, as on a device that has just read the program."""
    learning, tasks, _ = parts
    person = learning.Person(np.random.default_rng().uniform(-1, 1, n_features), 0.5, epsilon=2.0)
    if not calibrated:
        tasks._ball.cache_clear()
        tasks._scalar.cache_clear()
    start = time.process_time()
    person.answer(text)
    return (time.process_time() - start) * 1e3


def show_device(n_features, beside):
    """What one answer takes on a person's device, from the task's text to the report's: the first, and one more."""
    checkouts = [load_learning(), *(load_learning(path) for path in beside)]
    asked = [asked_tasks(parts, n_features) for parts in checkouts]
    for name in asked[0]:
        print(f"{n_features:3} features, {name}: ", end="")
        print(" beside ".join(f"{len(texts[name]):7,}" for texts in asked), "bytes", end="")
        for calibrated, repeats in ((False, 5), (True, 40)):
            times = [[] for _ in checkouts]
            for _ in range(repeats):
                for own, parts, texts in zip(times, checkouts, asked, strict=True):
                    own.append(time_answer(parts, texts[name], n_features, calibrated=calibrated))
            medians = [np.median(own) for own in times]
            shown = " beside ".join(f"{median:.2f}" for median in medians)
            ratio = "".join(f" ({medians[0] / other:.2f} times)" for other in medians[1:])
            print(f", {'next' if calibrated else 'first'} {shown} ms{ratio}", end="")
        print(flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/diamonds.csv")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--people", type=int, default=44_000)
    parser.add_argument("--only", choices=["price", "cut"])
    parser.add_argument("--speed", type=int, default=0)
    parser.add_argument("--device", type=int, nargs="*", default=[])
    parser.add_argument("--beside", nargs=1, default=[], help="another checkout, for --device")
    chosen = parser.parse_args()
    for category in (OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning):
        warnings.simplefilter("ignore", category)
    if chosen.device:
        for n_features in chosen.device:
            show_device(n_features, chosen.beside)
    elif chosen.speed:
        show_speed(chosen.speed)
    else:
        if chosen.only != "cut":
            show_scores(chosen.data, chosen.people, chosen.seeds)
        if chosen.only != "price":
            show_accuracies(chosen.data, chosen.people, chosen.seeds)
