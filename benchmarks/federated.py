"""Measure federated learning on news by ``examples/papers/federated_learning.py``, for the documentation.

Usage: python benchmarks/federated.py --data ag_news_minilm.npz [--seeds 10] [--save NAME]

``--save`` writes NAME_features, NAME_gradients, NAME_mixed and NAME_labels. Cells are the mean accuracy over trainings,
its standard error, and the exact epsilon of the whole training in brackets.
"""

import argparse
import os
import runpy
import sys
from pathlib import Path

import results
from data_files import existing

NAMES = ("features", "gradients", "mixed", "labels")
EXAMPLE = Path(__file__).parents[1] / "examples" / "papers" / "federated_learning.py"


def cell(row):
    exact = row.exact_epsilon
    shown = f"{exact:,.0f}" if exact >= 100 else f"{exact:.3g}"
    if row.shuffled_epsilon < exact:
        shown += f"; shuffled {row.shuffled_epsilon:.3g}"
    return f"{row.accuracy_mean:.3f} ± {row.accuracy_std / (row.n_runs - 1) ** 0.5:.3f} ({shown})"


def wide(table):
    """Return one row for each setting, with a cell for each stated epsilon."""
    found = {}
    for row in table:
        found.setdefault(row.setting, {})[row.epsilon] = row
    epsilons = max(found.values(), key=len)
    for name, rows in found.items():
        cells = [cell(rows[one]) for one in rows] if len(rows) > 1 else []
        yield [name, *(cells or [f"{next(iter(rows.values())).accuracy_mean:.3f}"] * len(epsilons))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/ag_news_minilm.npz")
    parser.add_argument("--seeds", type=int, default=10)
    results.add_option(parser)
    chosen = parser.parse_args()
    os.environ |= {"SKLDP_AG_NEWS": str(existing(chosen.data)), "SKLDP_SEEDS": str(chosen.seeds), "MPLBACKEND": "Agg"}
    sys.path.append(str(EXAMPLE.parent))
    asked, sys.argv[0] = sys.argv[0], str(EXAMPLE)
    tables = runpy.run_path(str(EXAMPLE), run_name="__main__")["tables"]
    sys.argv[0] = asked
    for name, table in zip(NAMES, tables.values(), strict=True):
        if chosen.save:
            header = ["accuracy (exact epsilon) at a stated epsilon of", "1", "2", "5", "10"]
            results.save(f"{chosen.save}_{name}", header, list(wide(table)))
