"""Compare what `recommend` predicts with fits to tables as people have them.

``python benchmarks/recommendations.py [--tables demand savings] [--seeds 10] [--data diamonds.csv]``

The tables are simulated: yearly costs of insurances, hourly demand, credit default, savings in euros, collinear
columns, and squares and products of skewed columns; with `--data`, the price and the cut of diamonds. The bounds are
1.5 to 3 times too wide, as a user would declare them. `recommend` gets the columns, the shares of the classes, and what
a model without privacy explains. A loss is the fraction of that which privacy removes, at least .01 and at most 1.

Shown for each table and epsilon and the default model: the predicted loss or "not known", its range, the mean of the
measured ones, their ratio, and whether the measured mean lies in the range.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from skldp import ColumnEncoder
from skldp.study import recommend

N_PEOPLE, N_TEST = 100_000, 20_000
EPSILONS = (1.0, 2.0, 4.0, 8.0)
# Number of skewed columns in the table of products.
N_SKEWED = 5


def categories(values, ordered=False):
    return {"type": "categories", "values": list(values), "ordered": ordered}


def claims(rng, n):
    """Logarithm of the yearly cost of an insurance: 92% zeros."""
    age, bonus = rng.gamma(9, 5, n).clip(18, 95), np.where(rng.random(n) < 0.6, 50, rng.integers(50, 150, n))
    density, power = rng.lognormal(5.5, 1.8, n).clip(1, 27_000), rng.integers(4, 16, n)
    years, brand = rng.exponential(6, n).clip(0, 40), rng.choice(8, n, p=[0.3, 0.25, 0.15, 0.1, 0.1, 0.05, 0.03, 0.02])
    log_rate = 0.012 * (bonus - 60) + 0.35 * (age < 25) + 0.1 * (np.log(density) - 5.5) / 1.8
    log_rate += 0.03 * (power - 6) - 0.02 * years + 0.1 * (brand == 6)
    cost = np.array([rng.lognormal(7.1, 1.1, k).sum() for k in rng.poisson(0.08 * np.exp(log_rate))])
    X = {"age": age, "power": power, "years": years, "bonus": bonus, "density": density, "log": np.log(density)}
    X |= {"gas": rng.integers(2, size=n), "area": rng.choice(6, n, p=[0.1, 0.2, 0.3, 0.2, 0.15, 0.05]), "brand": brand}
    ends = {"age": (0, 120), "power": (0, 25), "years": (0, 100), "bonus": (0, 350), "density": (0, 60_000)}
    ends |= {"log": (0, 15), "gas": categories(range(2)), "area": categories(range(6)), "brand": categories(range(8))}
    return X, np.log1p(cost), ends, (0, 14)


def demand(rng, n):
    """Root of the hourly demand of bikes."""
    hour, day, month = rng.integers(24, size=n), rng.integers(7, size=n), rng.integers(12, size=n)
    heat = 12 - 11 * np.cos(np.pi * (month - 0.5) / 6) + 4 * np.sin(np.pi * (hour - 9) / 12) + rng.normal(0, 3, n)
    damp, wind = (65 - 0.6 * heat + rng.normal(0, 12, n)).clip(5, 100), rng.gamma(3, 4, n)
    rain = np.where(rng.random(n) < 0.1, rng.exponential(2, n), 0)
    rush = 1 + 1.6 * np.exp(-((hour - 8) ** 2) / 2) + 1.8 * np.exp(-((hour - 17) ** 2) / 4) - 0.9 * (hour < 6)
    profile = np.where(day < 5, rush, 0.5 + 1.2 * np.exp(-(((hour - 14) / 5) ** 2)))
    log_mean = 0.035 * (heat - 12) - 0.006 * (damp - 60) - 0.012 * (wind - 12) - 0.25 * np.sqrt(rain)
    y = np.sqrt(rng.poisson(150 * profile * np.exp(log_mean) * rng.gamma(6, 1 / 6, n)))
    X = {"hour": hour, "day": day, "heat": heat, "damp": damp, "wind": wind, "rain": rain}
    ends = {"hour": categories(range(24)), "day": categories(range(7)), "heat": (-30, 50), "damp": (0, 100)}
    return X, y, ends | {"wind": (0, 100), "rain": (0, 50)}, (0, 60)


def default(rng, n):
    """Default of a credit: 3% of people."""
    income, used = rng.lognormal(10.4, 0.6, n), rng.beta(1, 2, n)
    late = rng.poisson(0.25, n) * (1 + (rng.random(n) < 0.1) * rng.integers(0, 8, n))
    age, loan = rng.normal(46, 14, n).clip(18, 95), income * rng.lognormal(-1.1, 0.5, n)
    debts, asked, job = loan / income + rng.exponential(0.15, n), rng.poisson(0.7, n), rng.exponential(7, n).clip(0, 50)
    own, grade = rng.integers(2, size=n), rng.choice(5, n, p=[0.35, 0.3, 0.2, 0.1, 0.05])
    logit = 2.2 * used + 0.45 * late.clip(0, 6) - 0.02 * (age - 46) + 0.7 * debts + 0.25 * asked + 0.35 * grade
    logit += -5.6 - 0.3 * own - 0.03 * job - 0.25 * np.log(income / 33_000)
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    X = {"income": income, "used": used, "late": late, "age": age, "loan": loan, "debts": debts, "asked": asked}
    ends = {"income": (0, 300_000), "used": (0, 2), "late": (0, 50), "age": (18, 120), "loan": (0, 300_000)}
    ends |= {"debts": (0, 5), "asked": (0, 20), "job": (0, 60), "own": categories(range(2))}
    return X | {"job": job, "own": own, "grade": grade}, y, ends | {"grade": categories(range(5))}, [0, 1]


def savings(rng, n):
    """Yearly savings in euros, with the tail of a lognormal."""
    age, own, kids = rng.normal(45, 15, n).clip(18, 95), rng.integers(2, size=n), rng.poisson(0.9, n)
    income = np.exp(9.6 + 0.02 * np.minimum(age - 20, 35) + rng.normal(0, 0.55, n))
    y = income * np.exp(-2.1 + 0.03 * (age - 40) + 0.3 * own - 0.1 * kids + rng.normal(0, 0.7, n))
    X = {"age": age, "income": income, "kids": kids, "own": own, "married": rng.integers(2, size=n)}
    X |= {"school": rng.normal(12.5, 3, n).clip(0, 25), "region": rng.integers(5, size=n)}
    ends = {"age": (18, 120), "income": (0, 500_000), "kids": (0, 20), "own": categories(range(2))}
    ends |= {"married": categories(range(2)), "school": (0, 30), "region": categories(range(5))}
    return X, y, ends, (0, 300_000)


def collinear(rng, n):
    factors = rng.normal(size=(n, 2))
    X = np.repeat(factors, 6, axis=1) + rng.normal(0, 0.15, (n, 12))
    y = factors @ [1, -0.7] + 0.5 * (X[:, 0] - X[:, 1]) + rng.normal(0, 0.5, n)
    return {f"x{j}": X[:, j] for j in range(12)}, y, {f"x{j}": (-6, 6) for j in range(12)}, (-10, 10)


def products(rng, n):
    x = rng.gamma(3, 1 / 3, (n, N_SKEWED)).clip(0, 4)
    pairs = [(i, j) for i in range(N_SKEWED) for j in range(i, N_SKEWED)]
    y = x @ [1, 0.5, 0, 0, 0] - 0.6 * x[:, 0] * x[:, 2] + 0.3 * x[:, 3] ** 2 + rng.normal(0, 0.5, n)
    X = {f"x{j}": x[:, j] for j in range(N_SKEWED)} | {f"x{i}x{j}": x[:, i] * x[:, j] for i, j in pairs}
    return X, y, {name: (0, 5) if len(name) == len("x0") else (0, 15) for name in X}, (-20, 20)


def diamonds(path, target):
    def table(rng, _):
        rows = pd.read_csv(path).sample(frac=1, random_state=int(rng.integers(2**31)))
        cuts = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
        ends = {"carat": (0, 5), "color": categories("JIHGFED", True), "depth": (40, 80), "table": (40, 100)}
        ends["clarity"] = categories(["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"], target == "price")
        if target == "cut":
            ends, y, domain = (
                ends | {"price": (300, 20_000)},
                np.array([cuts.index(cut) for cut in rows["cut"]]),
                [*range(5)],
            )
        else:
            ends |= {"cut": categories(cuts, True), "x": (0, 15), "y": (0, 15), "z": (0, 15)}
            y, domain = np.log(rows["price"].to_numpy()), (float(np.log(100)), float(np.log(100_000)))
        return rows[list(ends)], y, ends, domain

    return table


def explained(model, X, y, shares):
    """Return the share of the variance or of the log loss that a model explains."""
    if not is_classifier(model):
        return model.score(X, y)
    labels = range(len(shares))
    return 1 - log_loss(y, model.predict_proba(X), labels=labels) / log_loss(y, [shares] * len(y), labels=labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {one.__name__: one for one in (claims, demand, default, savings, collinear, products)}
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", help="a file with the columns of ggplot2's diamonds")
    asked = parser.parse_args()
    if asked.data:
        tables |= {"diamonds": diamonds(asked.data, "price"), "cut": diamonds(asked.data, "cut")}
    warnings.simplefilter("ignore")
    print("table      epsilon  clean  predicted           range  measured  ratio  in range")
    for name in asked.tables or tables:
        X, y, schema, domain = tables[name](np.random.default_rng(0), N_PEOPLE + N_TEST)
        X, n = pd.DataFrame(X), min(N_PEOPLE, len(y) * 3 // 4)
        is_regression = isinstance(domain, tuple)
        shares = None if is_regression else np.bincount(y[:n]) / n
        plain = LinearRegression() if is_regression else LogisticRegression(C=1e4, max_iter=2_000)
        clean = explained(make_pipeline(ColumnEncoder(schema), plain).fit(X[:n], y[:n]), X[n:], y[n:], shares)
        task = "regression" if is_regression else "classification"
        for epsilon in EPSILONS:
            advice = recommend(schema, task, epsilon, n, target=domain, explained=clean, shares=shares)
            option = next(
                one for one in advice.options if one.name in ("PrivateLinearRegression", "PrivateLogisticRegression")
            )
            scores = [explained(option.estimator.fit(X[:n], y[:n]), X[n:], y[n:], shares) for _ in range(asked.seeds)]
            measured = float(np.clip(1 - np.mean(scores) / clean, 0.01, 1))
            low, high = option.range
            print(
                f"{name:11}{epsilon:7g}{clean:7.3f}{option.figure:11.3f}{low:9.3f} {high:.3f}{measured:10.3f}", end=""
            )
            print(f"{option.figure / measured:7.2f}  {low <= measured <= high}", flush=True)


if __name__ == "__main__":
    main()
