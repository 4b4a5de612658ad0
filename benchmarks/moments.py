"""Measure errors of mean and covariance under local privacy, of regressions on them, and coverage of intervals.

Usage: python benchmarks/moments.py [--data diamonds.csv] [--seeds 10] [--people 44000] [--coverage 2000] [--rows]
[--kinds normal skewed ...] [--epsilons 1 2 4 8]

The table is not part of the project: 53,940 diamonds with nine features and the log price within public bounds. Means
of fresh seeds, the worst in brackets. Without more options: the error of all entries of the covariance in units of the
columns' deviations, and R2 of the log price, on 9,940 others, by the regression that follows, beside the one that is
asked for directly. With --rows rows are released with the target, and least squares know their noise or do not. With
--coverage so many tables of made-up people show how often intervals of nominally 95% hold the truth.
"""

import argparse
import warnings

import numpy as np
from learning import BOUNDS, TARGET_BOUNDS, read_diamonds
from sklearn.linear_model import LinearRegression

from skldp import NoiseAwareLinearRegression, NumericPrivatizer, PrivateLinearRegression, PrivateMoments
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning._moments import MomentsProtocol
from skldp.learning._person import simulate
from skldp.mechanisms import Noise

EPSILONS = (1.0, 2.0, 4.0, 8.0)


def bounds_of_all():
    return [np.append(end, one) for end, one in zip(BOUNDS, TARGET_BOUNDS, strict=True)]


def r2(target, predicted):
    return 1 - ((target - np.clip(predicted, *TARGET_BOUNDS)) ** 2).mean() / target.var()


def shown(values, worst=min):
    return f"{np.mean(values):9.4f} [{worst(values):.4f}]"


def show_diamonds(path, n_people, n_seeds):
    X, y = read_diamonds(path)
    table, bounds = np.column_stack([X, y]), bounds_of_all()
    people, others, target = np.clip(table[:n_people], *bounds), X[44_000:], y[44_000:]
    truth = np.cov(people.T)
    deviations = np.sqrt(np.diag(truth))
    unit = np.outer(deviations, deviations)
    names = ("covariance_", "raw_covariance_", "R2 of moments", "R2 of once")
    print(f"{n_people:,} people, {n_seeds} seeds")
    print("epsilon  " + "".join(f"{name:>18}" for name in names))
    for epsilon in EPSILONS:
        found = {name: [] for name in names}
        for seed in range(n_seeds):
            moments = PrivateMoments(epsilon, bounds=bounds, seed=1_000 + seed).fit(table[:n_people])
            for name in names[:2]:
                found[name].append(np.abs((getattr(moments, name) - truth) / unit).mean())
            found[names[2]].append(r2(target, moments.regress(9).predict(others)))
            asked = PrivateLinearRegression(
                epsilon, bounds=BOUNDS, target_bounds=TARGET_BOUNDS, protocol="once", seed=1_000 + seed
            )
            found[names[3]].append(r2(target, asked.fit(X[:n_people], y[:n_people]).predict(others)))
        worst = (max, max, min, min)
        print(f"{epsilon:7}  " + " ".join(shown(found[name], one) for name, one in zip(names, worst, strict=True)))


def show_rows(path, n_people, n_seeds):
    X, y = read_diamonds(path)
    table, bounds = np.column_stack([X, y])[:n_people], bounds_of_all()
    others, target = X[44_000:], y[44_000:]
    names = ("all: plain", "all: aware", "carat: plain", "carat: aware")
    print(f"{n_people:,} released rows with their targets, Piecewise, {n_seeds} seeds")
    print("epsilon  " + "".join(f"{name:>18}" for name in names))
    for epsilon in (1.0, 2.0, 4.0, 8.0, 16.0):
        found = {name: [] for name in names}
        for seed in range(n_seeds):
            for what, columns in (("all", [*range(10)]), ("carat", [0, 9])):
                n_sampled = int(np.clip(epsilon // 2.5, 2, len(columns)))
                release = NumericPrivatizer(
                    epsilon,
                    mechanism="piecewise",
                    bounds=[end[columns] for end in bounds],
                    n_sampled_features=n_sampled,
                    seed=1_000 + seed,
                )
                rows = release.fit_transform(table[:, columns])
                for kind, model in (("plain", LinearRegression()), ("aware", NoiseAwareLinearRegression(release))):
                    predicted = model.fit(rows[:, :-1], rows[:, -1]).predict(others[:, columns[:-1]])
                    found[f"{what}: {kind}"].append(r2(target, predicted))
        print(f"{epsilon:7}  " + " ".join(shown(found[name]) for name in names), flush=True)


def drawn(kind, d, n, rng):
    """People of a kind within -1 and 1."""
    if kind == "uniform":
        X = rng.uniform(-1, 1, (n, d))
        X[:, 1] = (X[:, 0] + X[:, 1]) / 2
    elif kind == "skewed":
        X = rng.exponential(0.2, (n, d)) - 0.8
        X[:, 1] += 0.5 * (X[:, 0] + 0.8)
    else:
        mixing = np.eye(d) + 0.5 * np.tril(np.ones((d, d)), -1)
        sizes = rng.standard_normal((n, d)) if kind == "normal" else rng.standard_t(5, (n, d)) / 2
        X = 0.12 * sizes @ mixing.T
        if kind == "with a bit":
            X[:, 0] = np.where(rng.random(n) < 0.3, 0.8, -0.2)
            X[:, 1] += 0.2 * X[:, 0]
    return np.clip(X, -1, 1)


def show_coverage(n_simulations, n, d, kinds, epsilons):
    print(
        f"{n_simulations:,} tables of {n:,} x {d}: part of intervals that hold the truth [least, most of one number];"
    )
    print("in brackets the part of those that are told")
    for kind in kinds:
        many = drawn(kind, d, 2_000_000, np.random.default_rng(2**32))
        location, covariance = many.mean(axis=0), np.cov(many.T)
        for epsilon in epsilons:
            held = {"mean": [], "covariance": []}
            for seed in range(n_simulations):
                X = drawn(kind, d, n, np.random.default_rng(seed))
                protocol = MomentsProtocol(d, n, epsilon=epsilon, low=[-1] * d, high=[1] * d)
                simulate(protocol, X, np.zeros(n), Noise(seed.to_bytes(32, "little"), secure=False))
                found = protocol.estimates
                upper = np.triu_indices(d)
                of_covariance = np.abs(found.raw_covariance - covariance) - 1.96 * found.covariance_error
                held["mean"].append(np.abs(found.location - location) - 1.96 * found.location_error)
                held["covariance"].append(of_covariance[upper])
            text = f"{kind:>10} epsilon {epsilon:.0f} "
            for name, distances in held.items():
                beyond = np.array(distances)
                known = ~np.isnan(beyond)
                if known.any(axis=0).all():
                    parts = (beyond < 0).sum(axis=0) / known.sum(axis=0)
                    text += f" {name} {parts.mean():.3f} [{parts.min():.3f}, {parts.max():.3f}] ({known.mean():.2f})"
                else:
                    text += f" {name} none"
            print(text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/diamonds.csv")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--people", type=int, default=44_000)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--coverage", type=int, default=0)
    parser.add_argument("--columns", type=int, default=3)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--kinds", nargs="+", default=["normal", "heavy", "uniform", "skewed", "with a bit"])
    chosen = parser.parse_args()
    for category in (OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning):
        warnings.simplefilter("ignore", category)
    if chosen.coverage:
        show_coverage(chosen.coverage, chosen.people, chosen.columns, chosen.kinds, chosen.epsilons)
    elif chosen.rows:
        show_rows(chosen.data, chosen.people, chosen.seeds)
    else:
        show_diamonds(chosen.data, chosen.people, chosen.seeds)
