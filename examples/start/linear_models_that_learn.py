"""
Find out how many people a model needs
======================================

At a protective epsilon, an ordinary regression on released rows predicts the mean.
:class:`~skldp.PrivateLinearRegression` and :class:`~skldp.PrivateLogisticRegression` ask each person for one report
instead, made for the model, at the same exact epsilon of the same record with its target. This example shows how many
people they need.
"""

# %%
# The data
# --------
# Friedman's first problem, which scikit-learn makes up: ten features between 0 and 1, of which five matter. With
# ``SKLDP_DIAMONDS`` set to the path of the table of 53,940 diamonds that comes with ggplot2, as a CSV file, the log
# price of diamonds is learnt as well, from nine features within public bounds.

import csv
import math
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import LearningCurveDisplay, ShuffleSplit

from skldp import NumericPrivatizer, PrivateLinearRegression, PrivateLogisticRegression
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning import sufficiency
from skldp.study import ReleasedRowsRegressor

for category in (OutOfDomainWarning, SeededNoiseWarning):
    warnings.simplefilter("ignore", category)
EPSILONS = (1.0, 2.0, 4.0, 8.0)
N_SEEDS = int(os.environ.get("SKLDP_SEEDS", "4"))


def friedman():
    X, y = make_friedman1(50_000, noise=1.0, random_state=0)
    return X, y, {"bounds": (0, 1), "target_bounds": (0, 30)}


def diamonds(path):
    orders = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    columns = ["carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z"]
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    X = [[orders[c].index(row[c]) if c in orders else float(row[c]) for c in columns] for row in rows]
    y = [math.log(float(row["price"])) for row in rows]
    bounds = ([0, 0, 0, 0, 50, 50, 3, 3, 1.5], [3, 4, 6, 7, 75, 70, 10, 10, 6])
    return np.array(X), np.array(y), {"bounds": bounds, "target_bounds": (math.log(300), math.log(20_000))}


tables = {"friedman": friedman()}
if "SKLDP_DIAMONDS" in os.environ:
    tables["diamonds"] = diamonds(Path(os.environ["SKLDP_DIAMONDS"]))
for name, (X, y, _) in tables.items():
    order = np.random.default_rng(0).permutation(len(y))
    tables[name] = (X[order], y[order], tables[name][2])

# %%
# A release for the model, and released rows
# ------------------------------------------
# The same people, the same epsilon, one release each. Rows are released with their target, by the best numeric
# mechanism at each epsilon.

for name, (X, y, declared) in tables.items():
    n = len(y) - 8_000
    print(f"{name}, {n:,} people:")
    for epsilon in EPSILONS:
        models = {
            "rounds": PrivateLinearRegression(epsilon, seed=0, **declared),
            "once": PrivateLinearRegression(epsilon, protocol="once", seed=0, **declared),
            "rows": ReleasedRowsRegressor(
                NumericPrivatizer(epsilon, mechanism="best", transform_noise=False, seed=0),
                LinearRegression(),
                **declared,
            ),
        }
        scores = [f"{key} {model.fit(X[:n], y[:n]).score(X[n:], y[n:]):6.3f}" for key, model in models.items()]
        print(f"  epsilon {epsilon:g}: R2 of " + ", ".join(scores))

# %%
# How many people
# ---------------
# scikit-learn draws the learning curve of each epsilon, with the spread of ten splits, each with new noise. Models with
# too few people warn, and the figure shows it.

figure, axes = plt.subplots(1, len(tables), figsize=(6 * len(tables), 4.5), squeeze=False, layout="constrained")
for ax, (name, (X, y, declared)) in zip(axes[0], tables.items(), strict=True):
    models = {f"epsilon {epsilon:g}": PrivateLinearRegression(epsilon, **declared) for epsilon in EPSILONS}
    models["without privacy"] = LinearRegression()
    splits = {"cv": ShuffleSplit(10, test_size=0.25, random_state=0), "train_sizes": np.geomspace(1 / 16, 1, 5)}
    for label, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TooFewPeopleWarning)
            drawn = LearningCurveDisplay.from_estimator(model, X, y, score_type="test", ax=ax, **splits)
        drawn.lines_[0].set_label(label)
    ax.set(xscale="log", xlabel="people", ylabel="R2", ylim=(-0.1, 1), title=name)
    ax.set_xticks(drawn.train_sizes, labels=[f"{n:,}" for n in drawn.train_sizes])
    ax.minorticks_off()
    ax.legend()

# %%
# One number on tables like these
# -------------------------------
# On tables with even columns, the loss of accuracy depends on one number that is known in advance: J,
# :func:`skldp.learning.sufficiency`, computed from the number of people, the number of features, and epsilon. If the
# target is linear in the features, the gap to the fit without privacy is about 1 / J of the explained variance. Skewed
# columns and rare classes lose more: :func:`skldp.study.recommend` predicts the loss for declared columns, or says that
# it is not known. With fewer people than :func:`skldp.learning.n_people_needed` the regression predicts the mean, and
# the classifier the shares of the classes. Both warn.


def gaps_of_regression(X, y, declared, n_people):
    """Sufficiency and gap at each number of people and epsilon."""
    test = slice(len(y) - 8_000, None)
    clean = ReleasedRowsRegressor(None, LinearRegression(), **declared).fit(X[: test.start], y[: test.start])
    best = clean.score(X[test], y[test])
    for n in n_people:
        for epsilon in EPSILONS:
            enough = sufficiency(n, X.shape[1], epsilon)
            if enough >= 8:
                scores = [
                    PrivateLinearRegression(epsilon, seed=seed, **declared).fit(X[:n], y[:n]).score(X[test], y[test])
                    for seed in range(N_SEEDS)
                ]
                yield enough, (best - np.mean(scores)) / best


def gaps_of_classification(n_features, n_people):
    """The same of three made-up classes, as a part of what is better than the largest class."""
    rng = np.random.default_rng(n_features)
    X = rng.uniform(-1, 1, (max(n_people) + 8_000, n_features))
    logits = X @ rng.standard_normal((n_features, 3)) * 3 / math.sqrt(n_features)
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    test = slice(len(y) - 8_000, None)
    best = LogisticRegression().fit(X[: test.start], y[: test.start]).score(X[test], y[test])
    nothing = np.bincount(y[test]).max() / 8_000
    for n in n_people:
        for epsilon in EPSILONS:
            # Two contrasts between three classes.
            enough = sufficiency(n, n_features, epsilon) / 2
            if enough >= 8:
                scores = [
                    PrivateLogisticRegression(epsilon, classes=range(3), seed=seed)
                    .fit(X[:n], y[:n])
                    .score(X[test], y[test])
                    for seed in range(N_SEEDS)
                ]
                yield enough, (best - np.mean(scores)) / (best - nothing)


def design(n_features, n_people):
    rng = np.random.default_rng(n_features)
    X = np.clip(rng.standard_normal((n_people, n_features)) / 3, -1, 1)
    signal = X @ rng.standard_normal(n_features)
    return X, np.clip(0.3 * signal / signal.std() + 0.1 * rng.standard_normal(n_people), -1, 1), {}


SIZES = (2_000, 8_000, 32_000)
points = {
    name: list(gaps_of_regression(*table, SIZES))
    for name, table in (tables | {f"{d} normal features": design(d, 40_000) for d in (5, 20)}).items()
}
points["three classes, 6 features"] = list(gaps_of_classification(6, SIZES))

figure, ax = plt.subplots(figsize=(8, 5.5), layout="constrained")
for (name, found), marker in zip(points.items(), "osD^vP", strict=False):
    # Where noise happened to help, there is no gap to draw.
    enough, gap = (np.array(column) for column in zip(*found, strict=True))
    ax.plot(enough, np.where(gap > 0, gap, np.nan), marker, ms=6, alpha=0.8, label=name)
line = np.geomspace(8, max(enough for found in points.values() for enough, _ in found), 50)
ax.plot(line, 1 / line, "k--", lw=1, label="1 / J")
ax.set(xscale="log", yscale="log", xlabel="Sufficiency J", ylabel="Gap to the fit without privacy")
ax.legend(fontsize="small", ncols=2)

# %%
# Too few people
# --------------
# 442 people are too few for ten features at these epsilons. The model warns, says how many people it needs, and
# predicts the mean.

X, y = load_diabetes(return_X_y=True)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always", TooFewPeopleWarning)
    model = PrivateLinearRegression(1.0, bounds=(-0.2, 0.2), target_bounds=(25, 346)).fit(X, y)
print(next(str(one.message) for one in said if one.category is TooFewPeopleWarning))
print(f"Predictions differ by {np.ptp(model.predict(X)):g}.")

if "SKLDP_FIGURES" in os.environ:
    figure.savefig(Path(os.environ["SKLDP_FIGURES"]) / "sufficiency.png", dpi=100)

plt.show()
