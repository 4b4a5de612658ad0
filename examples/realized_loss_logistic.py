"""
How many logistic regressions may be asked of one person?
=========================================================

As for linear regressions, with logistic ones (Pan 2025, Section 6.2). The paper draws ten coefficients from [-10, 10]
without normalising them, and reports a median of 21 accepted queries at a budget of 1. With such steep regressions no
sound filter reaches 21: points x already realise a loss above 1 much earlier. So both readings are run: the
coefficients as printed ("box"), and the same directions scaled to an L1 norm of 10 ("norm").

.. code-block:: bash

    python examples/realized_loss_logistic.py                # one run of each
    python examples/realized_loss_logistic.py --runs 50      # the paper's 50 runs: takes a while
"""

# %%
# The experiment, with two ways to draw the coefficients.
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
parser.add_argument("--runs", type=int, default=1)
parser.add_argument("--budget", type=float, default=None, help="default 0.3 with one run (quick), else 1")
parser.add_argument("--reading", choices=["box", "norm", "both"], default="both")
options = parser.parse_args()
budget = options.budget or (0.3 if options.runs == 1 else 1.0)
readings = ["box", "norm"] if options.reading == "both" else [options.reading]

N_FEATURES = 9


def random_query(rng, reading):
    theta = rng.uniform(-10, 10, N_FEATURES + 1)
    if reading == "norm":
        theta *= 10 / np.abs(theta).sum()
    return RegressionQuery("logistic", theta[1:], theta[0], output_bounds=(0, 1), epsilon=0.1)


def ask_until_refused(rng, noise, reading):
    person = BayesianPrivacyFilter(budget, bounds=(-1, 1))
    seconds = []
    while True:
        query = random_query(rng, reading)
        began = time.process_time()
        admitted = person.admits(query)
        seconds.append(time.process_time() - began)
        if not admitted:
            return person, seconds
        person.record(query, int(query.sample(np.zeros((1, N_FEATURES)), noise)[0]))


# %%
# How many are accepted.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", SeededNoiseWarning)
    noise = noise_from(0)
found = {}
for reading in readings:
    people = []
    for run in range(options.runs):
        person, seconds = ask_until_refused(np.random.default_rng(run), noise, reading)
        people.append(person)
        print(
            f"{reading} {run}: {len(person.history)} accepted, {sum(seconds):.1f} s of processor time, "
            f"slowest decision {max(seconds):.1f} s",
            flush=True,
        )
    found[reading] = people
    low, median, high = np.percentile([len(person.history) for person in people], [10, 50, 90])
    print(
        f"reading {reading!r}, budget {budget:g}, {options.runs} runs: median {median:g}, 10th to 90th percentile "
        f"{low:g} to {high:g}; basic composition {budget / 0.1:.0f}",
        flush=True,
    )

# %%
# The realized loss after every answer, for the first runs.
try:
    import matplotlib.pyplot as plt
except ImportError:
    print("Install matplotlib for the picture.")
else:
    figure, axes = plt.subplots(1, len(readings), figsize=(5 * len(readings), 4), layout="constrained", squeeze=False)
    for axis, reading in zip(axes[0], readings, strict=True):
        for person in found[reading][:3]:
            again = BayesianPrivacyFilter(budget, bounds=(-1, 1), tol=0.05)
            losses = [0.0]
            for query, output in person.history:
                again.record(query, output)
                losses.append(again.realized_loss)
            axis.plot(losses, linewidth=1)
        axis.plot([0, budget / 0.1], [0, budget], "k--", label="basic composition")
        axis.set(xlabel="accepted queries", ylabel="realized privacy loss (nats)", title=reading)
        axis.legend()
    if "SKLDP_FIGURES" in os.environ:
        figure.savefig(Path(os.environ["SKLDP_FIGURES"]) / "realized_loss_logistic.png", dpi=150)
    plt.show()
