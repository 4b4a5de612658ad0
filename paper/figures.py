"""Write the figures of paper.md: ``python paper/figures.py``, about a minute and a half on two cores.

Noise is new in every run, so the curves move within their bands.
"""

import runpy
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from skldp import BayesianFilter, PrivacyLedger

HERE = Path(__file__).parent


def accuracy(path):
    """Draw the gallery's comparison of models that ask with models on released records."""
    runpy.run_path(str(HERE.parent / "examples" / "honest_epsilon.py"))
    plt.gcf().savefig(path, dpi=200)
    plt.close("all")


def losses(path, n_people=300, n_questions=12):
    """Draw the certified loss of people who are asked one regression after another."""
    rng = np.random.default_rng(0)
    public, people = rng.uniform(-1, 1, (200, 3)), rng.uniform(-1, 1, (n_people, 3))
    ledger = PrivacyLedger(3.0, bounds=(-1, 1))
    spent = []
    for _ in range(n_questions):
        survey = BayesianFilter(LinearRegression(), epsilon=0.5, ledger=ledger)
        survey.fit(public, public @ rng.uniform(-1, 1, 3)).query(people, ids=range(n_people))
        spent.append(ledger.realized_loss(range(n_people)))
    asked = np.arange(1, n_questions + 1)
    figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
    axis.fill_between(asked, np.min(spent, axis=1), np.max(spent, axis=1), alpha=0.25, lw=0)
    axis.plot(asked, np.median(spent, axis=1), "o-", label="certified loss, median and range")
    axis.plot(asked, asked / 2, "k--", lw=1, label="sum of epsilons")
    axis.axhline(3, color="tab:red", lw=1, label="budget")
    axis.set(xlabel="questions", ylabel="nats", ylim=(0, 6.2))
    axis.legend()
    figure.savefig(path, dpi=200)
    plt.close(figure)


if __name__ == "__main__":
    accuracy(HERE / "accuracy.png")
    losses(HERE / "losses.png")
