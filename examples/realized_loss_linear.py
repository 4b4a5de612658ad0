"""
How many linear regressions may be asked of one person?
=======================================================

A person's record x lies in [-1, 1]^9. An analyst asks linear regressions with random coefficients, each answered with
epsilon = 0.1, until the person's filter refuses (Pan 2025, Section 6.1). Basic composition stops after 10 queries; the
Bayesian filter looks at what the answers really gave away.

.. code-block:: bash

    python examples/realized_loss_linear.py             # a few runs
    python examples/realized_loss_linear.py --full      # the paper's 50 runs
"""

# %%
# The experiment: ask until refused, and note the realized loss after every answer.
import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

from skldp.accounting.filters import BayesianPrivacyFilter
from skldp.accounting.query import RegressionQuery
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms.randomness import noise_from

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--full", action="store_true", help="the paper's 50 runs instead of 4")
n_runs = 50 if parser.parse_args().full else 4

N_FEATURES = 9
BUDGETS = np.arange(0.2, 1.01, 0.2)

with warnings.catch_warnings():
    # Repeatable noise is what a study wants, and nobody's data are at stake.
    warnings.simplefilter("ignore", SeededNoiseWarning)
    noise = noise_from(0)


def random_query(rng):
    theta = rng.uniform(-1, 1, N_FEATURES + 1)
    theta /= np.abs(theta).sum()
    return RegressionQuery("linear", theta[1:], theta[0], output_bounds=(-1, 1), epsilon=0.1)


def ask_until_refused(rng, epsilon):
    person = BayesianPrivacyFilter(epsilon, bounds=(-1, 1))
    losses = [0.0]
    while person.admits(query := random_query(rng)):
        answer = int(query.sample(np.zeros((1, N_FEATURES)), noise)[0])
        person.record(query, answer)
        losses.append(person.realized_loss)
    return losses


# %%
# Accepted queries at a budget of 1, where the paper reports a median of 47.
began = time.process_time()
runs = [ask_until_refused(np.random.default_rng(run), 1.0) for run in range(n_runs)]
accepted = np.array([len(losses) - 1 for losses in runs])
low, median, high = np.percentile(accepted, [10, 50, 90])
print(f"{n_runs} runs in {time.process_time() - began:.1f} s of processor time: median {median:g} accepted,")
print(f"10th to 90th percentile {low:g} to {high:g}; basic composition accepts 10, the paper's filter a median of 47.")

# %%
# Accepted queries against the budget.
table = [
    np.percentile(
        [len(ask_until_refused(np.random.default_rng(run), budget)) - 1 for run in range(n_runs)], [10, 50, 90]
    )
    for budget in BUDGETS[:-1]
]
table = np.array([*table, (low, median, high)])
for budget, row in zip(BUDGETS, table, strict=True):
    print(f"budget {budget:.1f}: median {row[1]:g}, 10th to 90th percentile {row[0]:g} to {row[2]:g}")

# %%
# Pictures.
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("Install matplotlib for the pictures.")
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for losses in runs[:10]:
        left.plot(losses, linewidth=1)
    left.plot([0, 10], [0, 1], "k--", label="basic composition")
    left.set(xlabel="accepted queries", ylabel="realized privacy loss (nats)")
    left.legend()
    right.fill_between(BUDGETS, table[:, 0], table[:, 2], alpha=0.3, label="10th to 90th percentile")
    right.plot(BUDGETS, table[:, 1], label="median")
    right.plot(BUDGETS, BUDGETS / 0.1, "k--", label="basic composition")
    right.set(xlabel="privacy budget (nats)", ylabel="accepted queries")
    right.legend()
    if "SKLDP_FIGURES" in os.environ:
        figure.savefig(Path(os.environ["SKLDP_FIGURES"]) / "realized_loss_linear.png", dpi=150)
    plt.show()
