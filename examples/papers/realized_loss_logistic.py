"""
Realized loss: questions by logistic regression
===============================================

As for linear regressions, with logistic ones (Pan 2025, Section 6.2). The paper draws ten coefficients from [-10, 10]
without normalizing them, and reports a median of 21 accepted queries at a budget of 1. With such steep regressions no
sound filter reaches 21: points x already realise a loss above 1 much earlier. So both readings are run: the
coefficients as printed ("box"), and the same directions scaled to an L1 norm of 10 ("norm").

.. code-block:: bash

    python examples/papers/realized_loss_logistic.py      # two runs of each
    python examples/papers/realized_loss_logistic.py --runs 50 --readings box --budgets 0.25 0.5 0.75 1
"""

# %%
# The experiment, with two ways to draw the coefficients. A larger budget goes on from where a smaller one stopped, with
# the same queries and the same answers.
import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

from skldp.accounting import BayesianPrivacyFilter, RegressionQuery
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import noise_from

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--runs", type=int, default=2)
parser.add_argument("--budgets", type=float, nargs="+", default=[0.25, 0.5, 0.75])
parser.add_argument("--readings", nargs="+", choices=["box", "norm"], default=["box", "norm"])
options = parser.parse_args()

N_FEATURES = 9
budgets = sorted(options.budgets)


def random_query(rng, reading):
    theta = rng.uniform(-10, 10, N_FEATURES + 1)
    if reading == "norm":
        theta *= 10 / np.abs(theta).sum()
    return RegressionQuery("logistic", theta[1:], theta[0], output_bounds=(0, 1), epsilon=0.1)


def ask_until_refused(run, reading):
    """How many answers each budget allows, the answers to the largest, and the seconds of the slowest decision."""
    rng = np.random.default_rng(run)
    with warnings.catch_warnings():
        # Repeatable noise is what a study wants, and no person's data are at stake.
        warnings.simplefilter("ignore", SeededNoiseWarning)
        noise = noise_from(run)
    query, history, accepted, slowest = random_query(rng, reading), [], [], 0.0
    for budget in budgets:
        person = BayesianPrivacyFilter(budget, bounds=(-1, 1))
        for answer in history:
            person.record(*answer)
        while True:
            began = time.process_time()
            admitted = person.admits(query)
            slowest = max(slowest, time.process_time() - began)
            if not admitted:
                break
            person.record(query, int(query.sample(np.zeros((1, N_FEATURES)), noise)[0]))
            query = random_query(rng, reading)
        history = person.history
        accepted.append(len(history))
    return accepted, history, slowest


# %%
# Accepted queries against the budget.
runs, tables = {}, {}
for reading in options.readings:
    began = time.process_time()
    runs[reading] = []
    for run in range(options.runs):
        runs[reading].append(ask_until_refused(run, reading))
        if options.runs > 3:
            print(f"  {reading} {run}: {runs[reading][-1][0]}", flush=True)
    tables[reading] = np.percentile([accepted for accepted, _, _ in runs[reading]], [10, 50, 90], axis=0)
    print(
        f"reading {reading!r}: {options.runs} runs in {time.process_time() - began:.1f} s of processor time, slowest "
        f"decision {max(slowest for _, _, slowest in runs[reading]):.1f} s"
    )
    for budget, (low, median, high) in zip(budgets, tables[reading].T, strict=True):
        print(
            f"  budget {budget:g}: median {median:g} accepted, 10th to 90th percentile {low:g} to {high:g}; "
            f"basic composition {int(budget / 0.1 + 1e-9)}",
            flush=True,
        )

# %%
# Pictures: the realized loss after every answer of the first runs, and the table.
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("Install matplotlib for the pictures.")
else:
    figure, axes = plt.subplots(
        2, len(options.readings), figsize=(5 * len(options.readings), 7), layout="constrained", squeeze=False
    )
    for (above, below), reading in zip(axes.T, options.readings, strict=True):
        for _, history, _ in runs[reading][:3]:
            person = BayesianPrivacyFilter(budgets[-1], bounds=(-1, 1), tol=0.01)
            losses = [0.0]
            for answer in history:
                person.record(*answer)
                losses.append(person.realized_loss)
            above.plot(losses, linewidth=1)
        above.plot([0, budgets[-1] / 0.1], [0, budgets[-1]], "k--", label="basic composition")
        above.set(xlabel="accepted queries", ylabel="realized privacy loss (nats)", title=reading)
        above.legend()
        low, median, high = tables[reading]
        below.fill_between(budgets, low, high, alpha=0.3, label="10th to 90th percentile")
        below.plot(budgets, median, "o-", label="median")
        below.plot(budgets, [int(budget / 0.1 + 1e-9) for budget in budgets], "k--", label="basic composition")
        below.set(xlabel="privacy budget (nats)", ylabel="accepted queries")
        below.legend()
    if "SKLDP_FIGURES" in os.environ:
        figure.savefig(Path(os.environ["SKLDP_FIGURES"]) / "realized_loss_logistic.png", dpi=150)
    plt.show()
