"""What attackers recover from releases of words or records, at each mechanism and exact epsilon.

Usage: python examples/papers/inversion_words.py [--data ../shared/data/glove_words.npz] [--table] [--candidates 500]
       [--trials 4000] [--epsilons 1 4 16 64] [--csv inversion.csv] [--picture inversion.png]

The candidates are word vectors of norm 1 from the file, or with ``--data digits`` pictures of scikit-learn's digits.
Bounds of the mechanisms that work value by value are the least and the largest number among the candidates. With
``--table`` they are all records of a declared table instead: five cuts, seven colours, and the middles of eight cells
of carats.
"""

import argparse
import time
from itertools import product

import numpy as np
from data_files import existing
from inversion_study import InversionDisplay, inversion_study
from sklearn.datasets import load_digits

from skldp import MultivariateLaplacePrivatizer, PrivUnitTransformer, TablePrivatizer
from skldp.study._catalogue import make_named

BY_BOUNDS = ("bitrand-exact", "duchi-vector", "piecewise", "laplace")
SCHEMA = {"cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"], "color": list("DEFGHIJ"), "carat": (0.0, 4.0)}


def vectors(path, n):
    rows = np.unique(load_digits().data, axis=0) if path == "digits" else np.load(existing(path))["vectors"]
    rows = rows[:n].astype(np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def makers(rows):
    bounds = (rows.min(), rows.max())
    made = {name: (lambda eps, name=name: make_named(name, epsilon=eps, bounds=bounds)) for name in BY_BOUNDS}
    # No two of the vectors are further apart than this, so that the whole record has the epsilon that is asked for.
    furthest = max(np.linalg.norm(rows - row, axis=1).max() for row in rows)
    made["multivariate-laplace"] = lambda eps: MultivariateLaplacePrivatizer(eps / furthest)
    made["privunit"] = PrivUnitTransformer
    return made


def records():
    import pandas as pd

    carats = np.arange(0.25, 4.0, 0.5)
    return pd.DataFrame(product(SCHEMA["cut"], SCHEMA["color"], carats), columns=list(SCHEMA))


def tables():
    names = ("best", "piecewise", "square_wave", "laplace", "duchi")
    return {name: lambda eps, name=name: TablePrivatizer(eps, schema=SCHEMA, mechanism=name) for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/glove_words.npz")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--candidates", type=int, default=500)
    parser.add_argument("--trials", type=int, default=4_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0, 16.0, 64.0])
    parser.add_argument("--csv")
    parser.add_argument("--picture")
    arguments = parser.parse_args()
    rows, started = records() if arguments.table else vectors(arguments.data, arguments.candidates), time.perf_counter()
    made = tables() if arguments.table else makers(rows)
    table = inversion_study(made, rows, arguments.epsilons, n_trials=arguments.trials)
    print(table)
    print(f"{len(rows)} candidates of {rows.shape[1]} columns, {arguments.trials} trials, noise not seeded; ", end="")
    print(f"{time.perf_counter() - started:.0f} s")
    if arguments.csv:
        table.to_csv(arguments.csv)
    if arguments.picture:
        InversionDisplay.from_frame(table).figure_.savefig(arguments.picture, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
