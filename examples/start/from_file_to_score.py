"""
Go from a file to a private model
=================================

Four files with categories, missing values, a numeric target or dates. Each function below goes from the file to a
fitted model and its score, in at most ten lines.

Diabetes is scikit-learn's own. The other three are simulated, with columns, types and missing values of the tables that
they are named after: 2,000 penguins, 500 tips in a restaurant, 50,000 customers.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skldp import LabelPrivateRegressor, TablePrivatizer, TargetPrivatizer, privacy_guarantee, private_model

# %%
# Categories and missing values
# -----------------------------
# A schema declares what each column can hold and how to treat missing values. The species is public.


def penguins(path, epsilon):
    people = pd.read_csv(path)
    schema = {
        "island": ["Biscoe", "Dream", "Torgersen"],
        "bill_length_mm": {"type": "number", "low": 30, "high": 60, "missing": "middle"},
        "bill_depth_mm": (13, 22),
        "sex": {"type": "category", "values": ["female", "male"], "missing": "category"},
    }
    table = TablePrivatizer(epsilon, schema=schema, transform_noise=False)
    model = make_pipeline(table, StandardScaler(), LogisticRegression()).fit(people[[*schema]], people["species"])
    return model, model.score(people[[*schema]], people["species"])


# %%
# A number to predict
# -------------------
# The bill is public and the tip is private, so only the target is released. Any regressor works.


def tips(path, epsilon):
    bills = pd.read_csv(path)
    features = make_column_transformer((OneHotEncoder(), ["smoker"]), ("passthrough", ["total_bill", "size"]))
    tip = TargetPrivatizer(epsilon, bounds=(0, 10))
    model = LabelPrivateRegressor(make_pipeline(features, Ridge()), target_mechanism=tip)
    model.fit(bills.drop(columns="tip"), bills["tip"])
    return model, model.score(bills.drop(columns="tip"), bills["tip"])


def diabetes(path, epsilon):
    people = pd.read_csv(path)
    X, y = people.drop(columns="target"), people["target"]
    release = TargetPrivatizer(epsilon, bounds=(0, 350))
    model = LabelPrivateRegressor(Ridge(0.1), target_mechanism=release).fit(X, y)
    return model, model.score(X, y)


# %%
# Fifty thousand rows, with dates
# -------------------------------
# With this many people, a model can ask each of them for one report, under one epsilon for the record and its label.
# The encoder uses declared categories and dates, so it learns nothing from the data.


def customers(path, epsilon):
    people = pd.read_csv(path, parse_dates=["since"])
    schema = {
        "age": (18, 90),
        "city": {"type": "category", "values": ["Bonn", "Kiel", "Ulm"], "missing": "category"},
        "since": ("2020-01-01", "2024-12-31"),
        "buys": [False, True],
    }
    model = private_model(schema, target="buys", epsilon=epsilon).fit(people, people["buys"])
    return model, model.score(people, people["buys"])


# %%
# What the files hold
# -------------------


def penguin_columns(draw, n=2_000):
    species = draw.integers(0, 3, n)
    home = np.array(["Torgersen", "Dream", "Biscoe"])[species]
    return {
        "island": np.where(draw.uniform(size=n) < 0.8, home, "Dream"),
        "bill_length_mm": np.where(np.arange(n) % 50, np.array([39, 49, 47])[species] + draw.uniform(-6, 6, n), np.nan),
        "bill_depth_mm": np.array([18, 18.5, 15])[species] + draw.uniform(-2, 2, n),
        "sex": np.where(np.arange(n) % 30, draw.choice(["female", "male"], n), None),
        "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[species],
    }


def tip_columns(draw, n=500):
    bill, size = draw.uniform(3, 50, n), draw.integers(1, 7, n)
    tip = (0.5 + 0.12 * bill + 0.2 * size + 0.5 * draw.standard_normal(n)).clip(0, 10)
    return {"total_bill": bill, "smoker": draw.choice(["No", "Yes"], n), "size": size, "tip": tip}


def customer_columns(draw, n=50_000):
    age, city = draw.uniform(18, 90, n), draw.choice(["Bonn", "Kiel", "Ulm"], n)
    return {
        "age": age,
        "city": np.where(np.arange(n) % 7, city, None),
        "since": np.datetime64("2020-01-01") + draw.integers(0, 1_800, n).astype("timedelta64[D]"),
        "buys": (age > 50) ^ (city == "Ulm") & (draw.uniform(size=n) < 0.2),
    }


def write_files(folder):
    """Write the four files, and give what goes from each to its score."""
    columns = {
        penguins: penguin_columns,
        tips: tip_columns,
        diabetes: lambda draw: load_diabetes(as_frame=True).frame,
        customers: customer_columns,
    }
    for pipeline, made in columns.items():
        path = Path(folder) / f"{pipeline.__name__}.csv"
        pd.DataFrame(made(np.random.default_rng(0))).to_csv(path, index=False)
    return list(columns)


# %%
# The scores
# ----------
# Training data are noisy; test rows stay with their people. Epsilon covers the features of a penguin, the target of a
# tip or a patient, and the complete record of a customer. At epsilon 64 little noise is left, so the score is close to
# that without privacy.

if __name__ == "__main__":
    EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    with tempfile.TemporaryDirectory() as folder:
        for pipeline in write_files(folder):
            path = Path(folder) / f"{pipeline.__name__}.csv"
            fitted = [pipeline(path, epsilon) for epsilon in EPSILONS]
            print(f"{pipeline.__name__}, at epsilon 4: {privacy_guarantee(fitted[2][0]).headline()}")
            ax.plot(EPSILONS, [score for _, score in fitted], "o-", label=pipeline.__name__)
    ax.set(xscale="log", xticks=EPSILONS, xticklabels=[f"{one:g}" for one in EPSILONS], ylim=(-0.1, 1.05))
    ax.set(xlabel="exact epsilon", ylabel="accuracy, or R2 of numbers")
    ax.legend()
    plt.show()
