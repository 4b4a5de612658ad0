"""Measure regressors on released targets, by mechanism, and classifiers on released tables.

Usage: python benchmarks/targets.py [--seeds 5] [--diamonds path/to/diamonds.csv]

Targets: five-fold R2 of a linear model on the diabetes data (442 rows, bounds 0 to 350, its y alone is private), and
with --diamonds that of the log price of 44,000 diamonds on the other 9,940. Tables: five-fold accuracy of a logistic
regression on wine (178 rows), which is trained on releases and predicts clean rows in the same encoding, beside the
same by the best mechanism for a single number. Means over seeds, and the worst of them behind.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
import results
from data_files import existing
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import BoundsScaler, LabelPrivateRegressor, NumericPrivatizer, PrivUnitTransformer, TargetPrivatizer
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning
from skldp.mechanisms.numeric._points import ResponseOnBins

EPSILONS = (1.0, 2.0, 4.0, 8.0)
TARGETS = {
    "bins": {"mechanism": "bins"},
    "unbiased_bins": {"mechanism": "unbiased_bins"},
    "duchi": {"mechanism": "duchi"},
    "piecewise_opt": {"mechanism": "piecewise_opt"},
    "laplace": {"mechanism": "laplace"},
    "best": {"mechanism": "best"},
}
# From what is known of wines, with room, and the same for all samples.
WINE_LOW = (10, 0, 1, 9, 60, 0.5, 0, 0, 0, 0, 0.3, 1, 200)
WINE_HIGH = (16, 7, 4, 31, 180, 5, 6, 1, 5, 15, 2, 5, 2000)
WINE_BOUNDS = (WINE_LOW, WINE_HIGH)


def shown(name, scores):
    """Print one line of the table, and return it as cells."""
    cells = "".join(f"{np.mean(row):9.3f} ({np.min(row):6.3f})" for row in scores)
    print(f"{name:32}{cells}", flush=True)
    return [name, *map(results.cell, scores)]


def diamonds(path):
    table = pd.read_csv(existing(path)).sample(frac=1, random_state=0)
    steps = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    for name, values in steps.items():
        table[name] = table[name].map({value: j / (len(values) - 1) for j, value in enumerate(values)})
    return table.drop(columns="price").to_numpy(float), np.log(table["price"].to_numpy(float))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--diamonds")
    results.add_option(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    warnings.simplefilter("ignore", OutOfDomainWarning)
    print(f"{'epsilon':32}" + "".join(f"{epsilon:18g}" for epsilon in EPSILONS))

    def model(epsilon, bounds, parameters, seed):
        mechanism = TargetPrivatizer(epsilon, bounds=bounds, seed=np.random.default_rng(seed), **parameters)
        return LabelPrivateRegressor(LinearRegression(), target_mechanism=mechanism)

    X, y = load_diabetes(return_X_y=True)
    clean = cross_val_score(LinearRegression(), X, y, cv=KFold(5, shuffle=True, random_state=0)).mean()
    print(f"diabetes, R2; with the true targets {clean:.3f}")
    saved = [["diabetes, true targets", *[f"{clean:.3f}"] * len(EPSILONS)]]
    for name, parameters in TARGETS.items():
        folds = [KFold(5, shuffle=True, random_state=seed) for seed in range(given.seeds)]
        fits = [
            [
                cross_val_score(model(epsilon, (0, 350), parameters, seed), X, y, cv=cv).mean()
                for seed, cv in enumerate(folds)
            ]
            for epsilon in EPSILONS
        ]
        saved.append(shown(f"diabetes, {name}", fits))
    if given.diamonds:
        X, y = diamonds(given.diamonds)
        train, test, bounds = slice(0, 44_000), slice(44_000, None), (np.log(300), np.log(20_000))
        clean = LinearRegression().fit(X[train], y[train]).score(X[test], y[test])
        print(f"diamonds, R2; with the true targets {clean:.3f}")
        saved.append(["diamonds, true targets", *[f"{clean:.3f}"] * len(EPSILONS)])
        for name, parameters in TARGETS.items():
            fits = [
                [
                    model(epsilon, bounds, parameters, seed).fit(X[train], y[train]).score(X[test], y[test])
                    for seed in range(given.seeds)
                ]
                for epsilon in EPSILONS
            ]
            saved.append(shown(f"diamonds, {name}", fits))
    if given.save:
        results.save(given.save, ["R2 at epsilon", *map("{:g}".format, EPSILONS)], saved)

    print("the expected square error of one answer in [-1, 1], uniform prior")
    for unbiased in (False, True):
        losses = [[ResponseOnBins(epsilon, -1.0, 1.0, unbiased=unbiased).expected_loss] for epsilon in EPSILONS]
        shown("unbiased_bins" if unbiased else "bins", losses)

    X, y = load_wine(return_X_y=True)
    print("wine, accuracy")
    parts = {
        "PrivUnitTransformer(bounds=...)": lambda epsilon, seed: [
            PrivUnitTransformer(epsilon, bounds=WINE_BOUNDS, transform_noise=False, seed=np.random.default_rng(seed))
        ],
        "NumericPrivatizer, best": lambda epsilon, seed: [
            BoundsScaler(WINE_BOUNDS),
            NumericPrivatizer(epsilon, mechanism="best", transform_noise=False, seed=np.random.default_rng(seed)),
        ],
    }
    for name, steps in parts.items():
        scores = [
            [
                cross_val_score(
                    make_pipeline(*steps(epsilon, seed), LogisticRegression(max_iter=2_000)),
                    X,
                    y,
                    cv=StratifiedKFold(5, shuffle=True, random_state=seed),
                ).mean()
                for seed in range(given.seeds)
            ]
            for epsilon in EPSILONS
        ]
        shown(name, scores)


if __name__ == "__main__":
    main()
