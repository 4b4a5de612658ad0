"""Compare regressions of few people with one-gradient rules, on the same people and seeds.

``python benchmarks/few_people.py [--data diamonds.csv] [--seeds 10] [--epsilon 1] [--sufficiencies 8 16 32 48]``

Each cell is the mean R2 on a test set, with the worst in brackets, at the number of people with that sufficiency J.
Smaller tables are sampled with replacement, and simulated ones are drawn anew.
``--tables`` without ``diamonds`` needs no file.
"""

import argparse
import math
import warnings

import numpy as np
import results
from baselines import GRADIENTS, mechanism, shown
from learning import BOUNDS, TARGET_BOUNDS, read_diamonds
from one_gradient import OneGradientRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression

from skldp import PrivateLinearRegression
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning import sufficiency

N_TEST = 5_000


def to_unit(values, low, high):
    return np.clip((values - low) / (np.asarray(high) - low) * 2 - 1, -1, 1)


def line(X, rng, center, spread, explained):
    """A target that a line tells so much of, about a centre."""
    signal = X @ rng.standard_normal(X.shape[1])
    noise = rng.standard_normal(len(X))
    parts = math.sqrt(explained) * (signal - signal.mean()) / signal.std() + math.sqrt(1 - explained) * noise
    return np.clip(center + spread * parts, -1, 1)


def drawn(rows, y, n, rng):
    chosen = rng.integers(len(y), size=n)
    return rows[chosen], y[chosen]


def diabetes(n, rng):
    table = load_diabetes(scaled=False)
    rows = to_unit(table.data, table.data.min(axis=0), table.data.max(axis=0))
    return drawn(rows, to_unit(table.target, 0, 400), n, rng)


def breast_cancer(n, rng):
    """The worst radius from the ten means."""
    table = load_breast_cancer().data
    rows = to_unit(table, table.min(axis=0), table.max(axis=0))
    return drawn(rows[:, :10], rows[:, 20], n, rng)


def correlated(d):
    def make(n, rng):
        X = rng.standard_normal((n, d))
        for j in range(1, d):
            X[:, j] = 0.5 * X[:, j - 1] + math.sqrt(0.75) * X[:, j]
        X = np.clip(X / 3, -1, 1)
        return X, line(X, rng, 0.0, 0.3, 0.9)

    return make


def binary(d):
    def make(n, rng):
        X = np.where(rng.random((n, d)) < rng.uniform(0.1, 0.9, d), 1.0, -1.0)
        return X, line(X, rng, 0.0, 0.3, 0.9)

    return make


def heavy_tails(n, rng):
    X = np.clip(rng.standard_t(2.5, (n, 8)) / 10, -1, 1)
    return X, line(X, rng, 0.0, 0.2, 0.8)


def two_factors(n, rng):
    factors = rng.standard_normal((n, 2))
    X = factors @ rng.standard_normal((2, 10)) * 0.25 + 0.15 * rng.standard_normal((n, 10)) + rng.uniform(-0.3, 0.3, 10)
    return np.clip(X, -1, 1), line(factors, rng, -0.3, 0.2, 0.8)


def nearly_constant(n, rng):
    X = rng.uniform(-1, 1, (n, 10)) * np.tile([0.8, 0.02], 5) + np.tile([0.1, -0.8], 5)
    return X, line(X[:, ::2], rng, 0.1, 0.25, 0.8)


def wide_bounds(n, rng):
    X = np.clip(0.1 * rng.standard_normal((n, 6)) - 0.3, -1, 1)
    return X, line(X, rng, -0.6, 0.06, 0.8)


def mostly_noise(n, rng):
    X = rng.uniform(-1, 1, (n, 5))
    return X, line(X, rng, 0.0, 0.3, 0.3)


def nothing_to_learn(n, rng):
    X = np.clip(rng.standard_t(2.5, (n, 3)) / 10, -1, 1)
    return X, line(X, rng, 0.0, 0.2, 0.0)


TABLES = {
    "diabetes": (10, diabetes),
    "breast cancer": (10, breast_cancer),
    "correlated, d = 5": (5, correlated(5)),
    "correlated, d = 20": (20, correlated(20)),
    "binary, d = 8": (8, binary(8)),
    "heavy tails, d = 8": (8, heavy_tails),
    "two factors, d = 10": (10, two_factors),
    "nearly constant, d = 10": (10, nearly_constant),
    "wide bounds, d = 6": (6, wide_bounds),
    "mostly noise, d = 5": (5, mostly_noise),
    "nothing to learn, d = 3": (3, nothing_to_learn),
}


def of_people(table, n, name):
    """So many people to ask, and others to test on."""
    rng = np.random.default_rng(sum(map(ord, name)))
    if name == "diamonds":
        X, y = table
        return X[:n], y[:n], X[-N_TEST:], y[-N_TEST:]
    X, y = table(n + N_TEST, rng)
    return X[:n], y[:n], X[n:], y[n:]


def scores(make, people, n_seeds):
    X, y, X_test, y_test = people
    errors = [((y_test - make(1_000 + s).fit(X, y).predict(X_test)) ** 2).mean() for s in range(n_seeds)]
    return 1 - np.array(errors) / y_test.var()


def show(name, d, table, epsilon, sufficiencies, n_seeds):
    """Print the scores of one table, and return them as rows of cells."""
    rows = []
    for enough in sufficiencies:
        n = math.ceil(enough / sufficiency(1, d, epsilon))
        if name == "diamonds" and n > len(table[1]) - N_TEST:
            continue
        people = of_people(table, n, name)
        cells = [scores(lambda seed: LinearRegression(), people, 1)[0]]
        makers = [lambda seed: PrivateLinearRegression(epsilon, seed=seed)]
        makers += [
            lambda seed, law=law: OneGradientRegressor(mechanism(law, epsilon, seed), seed=seed) for law in GRADIENTS
        ]
        found = [scores(make, people, n_seeds) for make in makers]
        rows.append([f"{n:,}", f"{enough:g}", f"{cells[0]:.3f}", *map(results.cell, found)])
        cells = [f"{cells[0]:7.3f}", *map(shown, found)]
        print(f"{name:>24}{enough:>4g}{n:>9,}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/diamonds.csv")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    results.add_option(parser)
    parser.add_argument("--sufficiencies", type=float, nargs="+", default=[8, 16, 32, 48])
    parser.add_argument("--tables", nargs="+", default=["diamonds", *TABLES], choices=["diamonds", *TABLES])
    chosen = parser.parse_args()
    for category in (OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning):
        warnings.simplefilter("ignore", category)
    tables = dict(TABLES)
    if "diamonds" in chosen.tables:
        X, y = read_diamonds(chosen.data)
        tables["diamonds"] = (9, (to_unit(X, np.array(BOUNDS[0]), BOUNDS[1]), to_unit(y, *TARGET_BOUNDS)))
    print(f"epsilon {chosen.epsilon:g}, {chosen.seeds} seeds; rounds beside one gradient a person by other rules")
    header = ["clean", "rounds", *GRADIENTS]
    print(f"{'':>24}{'J':>4}{'people':>9}" + "".join(f"{name:>18}" for name in header))
    saved = [show(name, *tables[name], chosen.epsilon, chosen.sufficiencies, chosen.seeds) for name in chosen.tables]
    if chosen.save:
        results.save(chosen.save, ["people", "sufficiency", "without privacy", "rounds", *GRADIENTS], saved[0])
