"""
Realized loss: questions by linear regression
=============================================

A person's record x lies in [-1, 1]^9. An analyst asks linear regressions with random coefficients, each answered with
epsilon = 0.1, until the person's filter refuses (Pan 2025, Section 6.1). Basic composition stops after 10 queries at a
budget of 1; the Bayesian filter looks at what the answers really gave away.

.. code-block:: bash

    python examples/papers/realized_loss_linear.py                # a few runs
    python examples/papers/realized_loss_linear.py --runs 50      # as many as the paper
    python examples/papers/realized_loss_linear.py --runs 50 --group-size 10      # in groups (Appendix C), both extrema
"""

# %%
# The experiment: ask until refused. A larger budget goes on from where a smaller one stopped, with the same queries and
# the same answers.
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
parser.add_argument("--runs", type=int, default=4)
parser.add_argument("--budgets", type=float, nargs="+", default=[0.25, 0.5, 0.75, 1.0])
parser.add_argument("--group-size", type=int, help="bound so many answers at a time, as the paper does with 10")
options = parser.parse_args()

N_FEATURES = 9
budgets = sorted(options.budgets)


def random_query(rng):
    theta = rng.uniform(-1, 1, N_FEATURES + 1)
    theta /= np.abs(theta).sum()
    return RegressionQuery("linear", theta[1:], theta[0], output_bounds=(-1, 1), epsilon=0.1)


def new_person(budget):
    return BayesianPrivacyFilter(budget, bounds=(-1, 1), group_size=options.group_size)


def ask_until_refused(run):
    """How many answers each budget allows, and the answers that the largest one allows."""
    rng = np.random.default_rng(run)
    with warnings.catch_warnings():
        # Repeatable noise is what a study wants, and no person's data are at stake.
        warnings.simplefilter("ignore", SeededNoiseWarning)
        noise = noise_from(run)
    query, history, accepted = random_query(rng), [], []
    for budget in budgets:
        person = new_person(budget)
        for answer in history:
            person.record(*answer)
        while person.admits(query):
            person.record(query, int(query.sample(np.zeros((1, N_FEATURES)), noise)[0]))
            query = random_query(rng)
        history = person.history
        accepted.append(len(history))
    return accepted, history


# %%
# Accepted queries against the budget. At a budget of 1 the paper reports a median of 47, with groups of ten answers.
began = time.process_time()
runs = [ask_until_refused(run) for run in range(options.runs)]
table = np.percentile([accepted for accepted, _ in runs], [10, 50, 90], axis=0)
print(f"{options.runs} runs in {time.process_time() - began:.1f} s of processor time")
for budget, (low, median, high) in zip(budgets, table.T, strict=True):
    print(
        f"budget {budget:g}: median {median:g} accepted, 10th to 90th percentile {low:g} to {high:g}; "
        f"basic composition {int(budget / 0.1 + 1e-9)}"
    )

# %%
# Pictures: the realized loss along ten runs, and the table.
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("Install matplotlib for the pictures.")
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for _, history in runs[:10]:
        person = new_person(budgets[-1])
        numbers, losses = [0], [0.0]
        for number, answer in enumerate(history, start=1):
            person.record(*answer)
            # Every loss of a short history, some of a long one.
            if number % (1 + len(history) // 50) == 0:
                numbers.append(number)
                losses.append(person.realized_loss)
        left.plot(numbers, losses, linewidth=1)
    left.plot([0, budgets[-1] / 0.1], [0, budgets[-1]], "k--", label="basic composition")
    left.set(xlabel="accepted queries", ylabel="realized privacy loss (nats)")
    left.legend()
    right.fill_between(budgets, table[0], table[2], alpha=0.3, label="10th to 90th percentile")
    right.plot(budgets, table[1], "o-", label="median")
    right.plot(budgets, [int(budget / 0.1 + 1e-9) for budget in budgets], "k--", label="basic composition")
    right.set(xlabel="privacy budget (nats)", ylabel="accepted queries")
    right.legend()
    if "SKLDP_FIGURES" in os.environ:
        figure.savefig(Path(os.environ["SKLDP_FIGURES"]) / "realized_loss_linear.png", dpi=150)
    plt.show()
