"""Compare what `recommend` predicts with fits to random tables.

``python benchmarks/recommendations.py [--tables 100] [--first-seed 0]``

A table has 2 to 12 columns (uniform, normal, binary, categories; in half of the tables also lognormal ones and ones
with a point mass) that depend on each other, 2,000 to 100,000 people, and a linear or logistic target; or Gaussian
classes in 3 to 100 dimensions. Epsilon is 1, 2 or 4. A loss is the part of R2, or of the accuracy above the most
frequent class, that a fit without privacy has and the private one has not.

Shown for each model: the sufficiency of the people for half of what can be learnt, as predicted and as the median of
the fits; the share of losses above the prediction, below the range and above it; and how often the
recommended classifier was the better one, with the mean accuracy that the choice lost.
"""

import argparse
import math
import warnings
from collections import defaultdict

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from skldp import recommend
from skldp.exceptions import OutOfDomainWarning, TooFewPeopleWarning
from skldp.study._recommend import _FOR_HALF, _SPREAD

N_TEST = 20_000
PLAIN = ("uniform", "normal", "wide", "binary", "categories")
SKEWED = ("lognormal", "point mass")
# Less than this is nothing to learn.
LEAST_GAIN = 0.03


def column(kind, ranks, rng):
    """Features of one column from its uniform ranks, within -1 and 1."""
    if kind == "uniform":
        return [2 * ranks - 1]
    if kind == "normal":
        return [norm.ppf(ranks) / 3]
    if kind == "wide":
        return [norm.ppf(ranks) / rng.uniform(4, 8) + rng.uniform(-0.3, 0.3)]
    if kind == "binary":
        return [np.where(ranks < rng.uniform(0.05, 0.5), 1.0, -1.0)]
    if kind == "categories":
        shares = np.cumsum(rng.dirichlet(np.full(rng.integers(3, 7), 2.0)))
        codes = np.searchsorted(shares[:-1], ranks)
        return [np.where(codes == code, 1.0, -1.0) for code in range(len(shares))]
    if kind == "lognormal":
        values = np.exp(norm.ppf(ranks) * rng.uniform(0.5, 1.2))
        return [2 * values / np.quantile(values, 0.9995) - 1]
    return [np.where(ranks < 0.7, 0.0, -np.log(np.clip(1 - (ranks - 0.7) / 0.3, 1e-9, 1))) / 4 - 1]


def columns(n, rng, kinds):
    n_columns, n_factors = rng.integers(2, 13), rng.integers(1, 4)
    loadings = rng.normal(size=(n_columns, n_factors)) * rng.uniform()
    latent = rng.normal(size=(n, n_factors)) @ loadings.T + rng.normal(size=(n, n_columns))
    ranks = norm.cdf(latent / np.sqrt((loadings**2).sum(axis=1) + 1))
    features = [one for each in ranks.T for one in column(rng.choice(kinds), each, rng)]
    return np.clip(np.column_stack(features), -1, 1)


def numeric_target(X, rng, skewed):
    spread = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    signal, explained = spread @ rng.normal(size=X.shape[1]), rng.uniform(0.2, 0.95)
    y = signal / signal.std() * math.sqrt(explained) + rng.normal(size=len(X)) * math.sqrt(1 - explained)
    if skewed and rng.uniform() < 0.4:
        y = np.exp(y * rng.uniform(0.3, 0.8))
        return np.clip(2 * y / np.quantile(y, 0.9999) - 1, -1, 1)
    return np.clip(y / rng.uniform(3, 8) + rng.uniform(-0.1, 0.1), -1, 1)


def classes_of(X, rng):
    spread, k = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9), rng.choice([2, 2, 2, 3, 4])
    logits = spread @ rng.normal(size=(X.shape[1], k))
    logits = logits * rng.uniform(0.5, 4) / logits.std() + rng.normal(size=k) * rng.uniform()
    return (logits + rng.gumbel(size=(len(X), k))).argmax(axis=1)


def gaussian_classes(n, rng):
    d, k = round(math.exp(rng.uniform(math.log(3), math.log(100)))), rng.choice([2, 2, 3, 5])
    y = rng.choice(k, n, p=rng.dirichlet(np.full(k, 4.0)))
    loadings = rng.normal(size=(d, rng.integers(1, min(d, 10) + 1))) * rng.uniform(0, 2)
    root = np.linalg.cholesky(loadings @ loadings.T + np.eye(d))
    means = rng.normal(size=(k, d)) @ (root.T if rng.uniform() < 0.5 else np.eye(d))
    whitened = np.linalg.solve(root, means.T).T
    means *= rng.uniform(0.8, 4) / np.mean(
        [np.linalg.norm(whitened[a] - whitened[b]) for a in range(k) for b in range(a)]
    )
    X = means[y] + rng.normal(size=(n, d)) @ root.T
    return np.clip(X / (X.std(axis=0) * rng.uniform(3, 6)), -1, 1), y


def losses(task, seed):
    """Yield the option, its predicted and its measured loss, and the accuracy or R2, of one random table."""
    rng = np.random.default_rng([seed, len(task)])
    n, epsilon = round(math.exp(rng.uniform(math.log(2_000), math.log(100_000)))), rng.choice([1.0, 2.0, 4.0])
    if task == "gaussian classes":
        X, y = gaussian_classes(n + N_TEST, rng)
    else:
        skewed = rng.uniform() < 0.5
        X = columns(n + N_TEST, rng, PLAIN + SKEWED * skewed)
        y = numeric_target(X, rng, skewed) if task == "regression" else classes_of(X, rng)
    regression = task == "regression"
    clean = (LinearRegression() if regression else LogisticRegression(max_iter=500)).fit(X[:n], y[:n])
    trivial = 0.0 if regression else np.bincount(y[n:]).max() / N_TEST
    gain = clean.score(X[n:], y[n:]) - trivial
    target = (-1, 1) if regression else sorted(set(y.tolist()))
    if gain < LEAST_GAIN:
        return
    kind = "regression" if regression else "classification"
    for option in recommend(X, kind, epsilon, n, target=target).options:
        score = option.estimator.fit(X[:n], y[:n]).score(X[n:], y[n:])
        yield option, n, 1 - (score - trivial) / gain, score


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    asked = parser.parse_args()
    for category in (OutOfDomainWarning, TooFewPeopleWarning):
        warnings.simplefilter("ignore", category)
    print("model                          for half  fits  for half, measured  above  below range  above range")
    names = {f"Private{n}": key for n, key in (("LogisticRegression", "logistic"), ("Discriminant", "discriminant"))}
    names |= {"PrivateLinearRegression": "rounds", "PrivateLinearRegression, once": "once"}
    found, choices = defaultdict(list), []
    for task in ("regression", "classification", "gaussian classes"):
        for seed in range(asked.first_seed, asked.first_seed + asked.tables):
            fits = list(losses(task, seed))
            for option, n, loss, _ in fits:
                if option.figure < 1:
                    found[option.name].append((option.n_needed / n, loss))
            if fits and task != "regression":
                (*_, first), (*_, second) = fits
                choices.append((first >= second, max(first, second) - first))
    for name, measured in found.items():
        half, loss = np.array(measured).T
        low, high = (times * half / (times * half + 1) for times in (1 / _SPREAD, _SPREAD))
        # h / (h + n) = loss.
        ratio = np.clip(loss, 1e-3, 0.999) / (1 - np.clip(loss, 1e-3, 0.999)) / half
        times, key = np.median(ratio), names[name]
        shares = [np.mean(loss > half / (half + 1)), np.mean(loss < low), np.mean(loss > high)]
        print(f"{name:30} {_FOR_HALF[key]:8} {len(loss):5} {_FOR_HALF[key] * times:19.2g}", end="")
        print(f" {shares[0]:6.2f} {shares[1]:12.2f} {shares[2]:12.2f}")
    right, lost = np.transpose(choices)
    print(f"The recommended classifier was the better one of {len(right)} in {right.mean():.2f},", end="")
    print(f" and the choice lost {lost.mean():.4f} of the accuracy.")


if __name__ == "__main__":
    main()
