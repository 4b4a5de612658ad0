"""What a person's regressions, labels, numbers and table row cost together: certified, added up, and enumerated.

Usage: python benchmarks/mixed_history.py [--seeds 10] [--questions 12] [--budget 3.0]

A record is one of five values of x in [-1, 1], one of three classes and one of two table rows: thirty records, so that
the worst log-ratio of everything that was released is known exactly. The ledger knows the interval, not the values. Two
labels are released by randomized response and two by a unary encoding, x itself twice by Duchi's mechanism. "No part"
is what the ledger certifies where none of these is named as a part, and each counts in full. Releases are drawn with
secure noise, so that figures move from run to run. Then it is counted how many questions a budget allows beside the
releases, with each rule.
"""

import argparse
import itertools
import warnings
from contextlib import closing

import numpy as np

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import CategoricalRecord, Duchi, RandomizedResponse, UnaryEncoding, noise_from

VALUES = np.linspace(-1, 1, 5)
LABELS = [RandomizedResponse(0.5, 3), UnaryEncoding(0.5, 3, "oue")] * 2
NUMBER, TABLE = Duchi(0.4), CategoricalRecord(0.4, (2,), "krr")
RULES = ("basic", "simplified", "bayesian")


def questions(rng, n):
    for _ in range(n):
        slope, center = rng.uniform(0.5, 2), rng.uniform(-0.3, 0.3)
        kind = rng.choice(["linear", "logistic"])
        ends = (0, 1) if kind == "logistic" else (center - slope, center + slope)
        yield RegressionQuery(str(kind), [float(slope)], float(center), ends, 0.3)


def asked(ledger, query, x, noise):
    answers = ledger.answer(query, ["ann"], lambda people: query.sample([[x]] * len(people), noise), repeat=True)
    return int(answers.outputs[0])


def released(ledger, x, part):
    """Release labels, numbers and a table row, the first two as named parts or in full; give the labels' rows."""
    rows = [ledger.release(law, [[1]], ["ann"], part="label" if part else None).rows[0] for law in LABELS]
    for _ in range(2):
        ledger.release(NUMBER, [[x]], ["ann"], part="x" if part else None)
    ledger.release(TABLE, [[1]], ["ann"])
    return rows


def of_labels(rows):
    """The log-likelihood of each label, given what was released of it."""
    found = np.zeros(3)
    for law, row in zip(LABELS, rows, strict=True):
        told = [row[0]] * 3 if isinstance(law, RandomizedResponse) else row
        found += law.log_likelihood(told, range(3) if isinstance(law, RandomizedResponse) else np.arange(3)[:, None])
    return found


def enumerated(history, label_rows):
    """The worst log-ratio of two of the thirty records, for the worst table row that may have been released."""
    of_x = sum((query.log_likelihood(output, VALUES[:, None]) for query, output in history), np.zeros(len(VALUES)))
    of_label = of_labels(label_rows)
    half = TABLE.guarantee().epsilon / 2
    worst = 0.0
    for released in (0, 1):
        of_row = np.where(np.arange(2) == released, half, -half)
        joint = [a + b + c for a, b, c in itertools.product(of_x, of_label, of_row)]
        worst = max(worst, max(joint) - min(joint))
    return worst


def show_losses(seeds, n, rng):
    names = ("seed", "answers", "epsilons", "certified", "exact", "no part", "verified")
    print(" ".join(f"{name:>9}" for name in names))
    rows = []
    for seed in range(seeds):
        noise, x = noise_from(int(rng.integers(2**32))), float(rng.choice(VALUES))
        with (
            closing(PrivacyLedger(100.0, bounds=(-1, 1))) as named,
            closing(PrivacyLedger(100.0, bounds=(-1, 1))) as full,
        ):
            for query in questions(rng, n):
                output = asked(named, query, x, noise)
                full.answer(query, ["ann"], lambda people, o=output: [o], repeat=True)
            for ledger in (named, full):
                ledger.declare(features=["x"])
            labels = released(named, x, part=True)
            released(full, x, part=False)
            told = [(one["query"], one["output"]) for one in named.history("ann")]
            history = [(query, output) for query, output in told if isinstance(query, RegressionQuery)]
            losses = [float(ledger.realized_loss(["ann"])[0]) for ledger in (named, full)]
            total = sum(query.epsilon for query, _ in told)
            exact, right = enumerated(history, labels), named.verify().ok and full.verify().ok
        assert exact <= losses[0] <= losses[1] + 1e-12 <= total + 1e-9, "a certified loss is below the truth"
        rows.append((total, losses[0], exact, losses[1]))
        print(f"{seed:>9} {len(told):>9} {total:>9.3f} {losses[0]:>9.3f} {exact:>9.3f} {losses[1]:>9.3f} {right!s:>9}")
    for name, some in (("mean", np.mean), ("most", np.max)):
        total, certified, exact, without = some(rows, axis=0)
        print(f"{name:>9} {n:>9} {total:>9.3f} {certified:>9.3f} {exact:>9.3f} {without:>9.3f}")


def show_questions(seeds, budget, rng):
    print(f"\nQuestions answered at budget {budget:g} beside these releases, of 60")
    found = {rule: [] for rule in RULES}
    for seed in rng.integers(2**32, size=seeds):
        for rule in RULES:
            own = np.random.default_rng(seed)
            noise, x = noise_from(int(seed)), float(own.choice(VALUES))
            with closing(PrivacyLedger(budget, bounds=(-1, 1), rule=rule)) as ledger:
                ledger.declare(features=["x"])
                released(ledger, x, part=True)
                found[rule].append(sum(asked(ledger, query, x, noise) >= 0 for query in questions(own, 60)))
    for rule, counts in found.items():
        print(f"{rule:>11}: mean {np.mean(counts):5.1f}, least {min(counts):3d}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--questions", type=int, default=12)
    parser.add_argument("--budget", type=float, default=3.0)
    chosen = parser.parse_args()
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        show_losses(chosen.seeds, chosen.questions, rng)
        show_questions(chosen.seeds, chosen.budget, rng)


if __name__ == "__main__":
    main()
