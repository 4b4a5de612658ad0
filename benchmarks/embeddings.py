"""Measure classifiers trained on released embeddings, by mechanism, at the exact epsilon of a complete vector.

Usage: python benchmarks/embeddings.py --data ag_news_minilm.npz [--seeds 10] [--save NAME]

Mechanisms and classifiers come from ``examples/tasks/embeddings_frontier.py``. 8,000 people release one vector each,
and 2,000 clean vectors test the classifier. Cells are means of seeds, with standard error and worst.
"""

import argparse
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import results
from data_files import existing
from sklearn.linear_model import LogisticRegression

from skldp import PrivUnitTransformer
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning

sys.path.append(str(Path(__file__).parents[1] / "examples" / "tasks"))
import embeddings_frontier as frontier

EPSILONS = (1, 2, 5, 10)
# At these epsilons their guarantee has a delta, or is in the thousands.
NOT_ON_THE_AXIS = ("gordon", "as published")
N_PUBLIC = 200


def scores(epsilon, seed, X, y, test, y_test):
    """Return the accuracy of every mechanism, by its name."""
    found = {
        name: frontier.evaluate(privatizer, make, X, y, test, y_test)
        for name, privatizer, make in frontier.cases(epsilon, X.shape[1], 128, seed)
        if not any(part in name for part in NOT_ON_THE_AXIS)
    }
    public, hidden = np.split(np.random.default_rng(seed).permutation(len(X)), [N_PUBLIC])
    privatizer = PrivUnitTransformer(epsilon, seed=seed, transform_noise=False)
    make = partial(frontier.discriminant, public=X[public])
    name = f"PrivUnit, noise-aware, {N_PUBLIC} public vectors"
    found[name] = frontier.evaluate(privatizer, make, X[hidden], y[hidden], test, y_test)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/ag_news_minilm.npz")
    parser.add_argument("--seeds", type=int, default=10)
    results.add_option(parser)
    chosen = parser.parse_args()
    for category in (OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning):
        warnings.simplefilter("ignore", category)
    os.environ["SKLDP_DATA"] = str(existing(chosen.data).parent)
    X, y, test, y_test = frontier.load()
    clean = LogisticRegression(C=10, max_iter=500).fit(X, y).score(test, y_test)
    rows = {}
    for epsilon in EPSILONS:
        runs = [scores(epsilon, seed, X, y, test, y_test) for seed in range(chosen.seeds)]
        for name in runs[0]:
            rows.setdefault(name, []).append(results.cell([run[name] for run in runs]))
            print(f"{epsilon:4} {name:50} {rows[name][-1]}", flush=True)
    table = [["without privacy", *[f"{clean:.3f}"] * 4], *([name, *cells] for name, cells in rows.items())]
    if chosen.save:
        results.save(chosen.save, ["accuracy at exact epsilon", *map(str, EPSILONS)], table)
