"""Scores of the four models over people and over epsilon, which should never fall by more than noise.

``python benchmarks/learning_curves.py people [--people 1000 10000 100000 1000000] [--seeds 10] [--epsilon 4]``

For regressions: the R2 that is lost, beside the fit without privacy to the same people, with the worst in brackets.

``python benchmarks/learning_curves.py epsilon [--seeds 20] [--epsilon .1 .2 .3 .5 .7 1 1.4 2 3 4 6 10 20]``

For regressions: the R2 that is lost. For logistic regression: the fraction of what can be learnt that is lost, in log
loss; 0 for the fit without privacy, 1 for the shares alone. For the discriminant: the error rate above that of the fit
without privacy. For moments: the root mean square error of the means over the standard deviations. ``worst rise`` is
the largest rise to a larger epsilon in standard errors of its mean, over pairs with the same seeds.

``--figure FILE`` draws the curves.
"""

import argparse
import itertools
import warnings

import numpy as np
from hostile_designs import DESIGNS, clipped
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

from skldp import PrivateDiscriminant, PrivateLinearRegression, PrivateLogisticRegression
from skldp.exceptions import SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning._moments import MomentsProtocol
from skldp.learning._person import simulate
from skldp.mechanisms import noise_from

N_PEOPLE = 20_000


def binary(logits, rng):
    return (rng.random(len(logits)) < 1 / (1 + np.exp(-logits))).astype(int)


def one_hot(rng, n):
    """Three numbers and 20 categories, some held by a few people in a thousand."""
    shares = 0.75 ** np.arange(20)
    category = rng.choice(20, n, p=shares / shares.sum())
    numbers = rng.uniform(-1, 1, (n, 3))
    logits = 2 * numbers[:, 0] + numbers[:, 1] / 2 + rng.normal(0, 0.5, 20)[category]
    return np.hstack([numbers, 2 * np.eye(20)[category] - 1]), binary(logits, rng)


def rare_value(rng, n):
    X = rng.uniform(-1, 1, (n, 5))
    X[:, 0] = np.where(rng.random(n) < 0.02, 1, -1)
    return X, binary(X[:, 1] + 2 * (X[:, 0] > 0) - 0.5, rng)


def rare_class(rng, n):
    X = np.clip(rng.standard_normal((n, 5)) / 3, -1, 1)
    return X, binary(6 * X[:, 0] - 4, rng)


def skewed(rng, n):
    X = np.clip(rng.exponential(1, (n, 3)), 0, 8) / 4 - 1
    return X, binary(3 * X[:, 0] + 1, rng)


def ten_numbers(rng, n):
    X = np.clip(rng.standard_normal((n, 10)) / 3, -1, 1)
    return X, binary(3 * X @ rng.standard_normal(10), rng)


def separable(rng, n):
    X = np.clip(rng.standard_normal((n, 5)) / 3, -1, 1)
    return X, (X @ rng.standard_normal(5) > 0).astype(int)


def five_classes(rng, n):
    """Five ordered classes by collinear numbers under bounds of different widths."""
    parts = rng.standard_normal((n, 8)) * 10 ** (-np.arange(8) / 7)
    X = parts @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X /= 3 * X.std(axis=0) * np.exp(rng.uniform(0, 1.4, 8))
    logits = np.outer(2 * parts @ rng.standard_normal(8), np.linspace(-1, 1, 5)) + rng.normal(0, 0.7, 5)
    return np.clip(X, -1, 1), (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


CLASSES = {
    "one-hot": one_hot,
    "2% column": rare_value,
    "rare class": rare_class,
    "skewed": skewed,
    "normal, 10": ten_numbers,
    "separable": separable,
    "five classes, collinear": five_classes,
}


def of_regression(design, epsilon, seed, n=N_PEOPLE):
    X, y = clipped(design, np.random.default_rng(seed), n)
    clean = LinearRegression().fit(X, y)
    lost, most = ((np.square(y - p)).mean() for p in (clean.predict(X), y.mean()))
    found = np.square(y - PrivateLinearRegression(epsilon, seed=seed).fit(X, y).predict(X)).mean()
    return (found - lost) / most


def of_classes(design, epsilon, seed, private, clean):
    """Classes, and their probabilities by the shares, without privacy and with it."""
    X, y = CLASSES[design](np.random.default_rng(seed), N_PEOPLE)
    shares = np.tile(np.bincount(y) / len(y), (len(y), 1))
    found = private(epsilon, seed=seed, classes=np.arange(y.max() + 1)).fit(X, y)
    return y, shares, clean.fit(X, y).predict_proba(X), found.predict_proba(X)


def of_logistic(design, epsilon, seed):
    clean = LogisticRegression(C=1e6, max_iter=3_000)
    y, *probabilities = of_classes(design, epsilon, seed, PrivateLogisticRegression, clean)
    most, lost, found = (log_loss(y, one) for one in probabilities)
    return (found - lost) / (most - lost)


def of_discriminant(design, epsilon, seed):
    clean = LinearDiscriminantAnalysis(solver="lsqr")
    y, _, lost, found = of_classes(design, epsilon, seed, PrivateDiscriminant, clean)
    return (found.argmax(axis=1) != y).mean() - (lost.argmax(axis=1) != y).mean()


def of_moments(design, epsilon, seed):
    X, y = clipped(design, np.random.default_rng(seed), N_PEOPLE)
    table = np.column_stack([X[:, :5], y])
    d = table.shape[1]
    protocol = MomentsProtocol(d, len(table), epsilon=epsilon, low=[-1] * d, high=[1] * d)
    simulate(protocol, table, np.zeros(len(table)), noise_from(seed))
    return np.sqrt(np.mean(((protocol.estimates.location - table.mean(axis=0)) / table.std(axis=0)) ** 2))


OF_EPSILON = {
    "regression": (of_regression, [name for name in DESIGNS if name != "noise"]),
    "logistic": (of_logistic, list(CLASSES)),
    "discriminant": (of_discriminant, ["one-hot", "normal, 10", "separable", "five classes, collinear"]),
    "moments": (of_moments, [name for name in DESIGNS if name != "noise"]),
}


def worst_rise(losses):
    """Largest rise of a mean to a larger epsilon, in standard errors."""
    pairs = [losses[:, j] - losses[:, i] for i, j in itertools.combinations(range(losses.shape[1]), 2)]
    return max(one.mean() / max(one.std(ddof=1) / np.sqrt(len(one)), 1e-12) for one in pairs)


def over_epsilon(models, designs, epsilons, n_seeds):
    print(f"{'':38}" + "".join(f"{e:>8g}" for e in epsilons) + "  worst rise")
    for model in models:
        measure, names = OF_EPSILON[model]
        for design in [name for name in names if not designs or name in designs]:
            losses = np.array([[measure(design, e, seed) for e in epsilons] for seed in range(n_seeds)])
            cells = "".join(f"{one:>8.3f}" for one in losses.mean(axis=0))
            print(f"{model:13}{design:25}{cells}{worst_rise(losses):>12.1f}", flush=True)
            yield f"{model}, {design}", losses.mean(axis=0)


def over_people(designs, people, epsilon, n_seeds):
    print(f"{'':26}" + "".join(f"{f'{n:,}':>18}" for n in people))
    for design in [name for name in DESIGNS if name != "noise" and (not designs or name in designs)]:
        means, cells = [], ""
        for n in people:
            lost = [of_regression(design, epsilon, seed, n) for seed in range(n_seeds)]
            means.append(np.mean(lost))
            cells += f"{means[-1]:>10.4f} [{max(lost):5.2f}]"
        print(f"{design:26}{cells}", flush=True)
        yield design, np.array(means)


def draw(curves, over, label, file):
    import matplotlib.pyplot as plt

    axes = plt.figure(figsize=(9, 6), layout="constrained").gca()
    for name, values in curves:
        axes.plot(over, values, label=name)
    axes.set(xscale="log", xlabel=label, ylim=(-0.2, 1.2))
    axes.figure.legend(loc="outside right upper", fontsize=7)
    axes.figure.savefig(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("over", choices=["people", "epsilon"])
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--people", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--epsilon", type=float, nargs="+")
    parser.add_argument("--models", nargs="+", choices=list(OF_EPSILON), default=list(OF_EPSILON))
    parser.add_argument("--designs", nargs="+", choices=[*DESIGNS, *CLASSES])
    parser.add_argument("--figure")
    given = parser.parse_args()
    for category in (SeededNoiseWarning, TooFewPeopleWarning):
        warnings.simplefilter("ignore", category)
    if given.over == "people":
        curves = over_people(given.designs, given.people, (given.epsilon or [4.0])[0], given.seeds or 10)
        axis, label = given.people, "people"
    else:
        axis, label = given.epsilon or [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 10, 20], "epsilon"
        curves = over_epsilon(given.models, given.designs, axis, given.seeds or 20)
    curves = list(curves)
    if given.figure:
        draw(curves, axis, label, given.figure)


if __name__ == "__main__":
    main()
