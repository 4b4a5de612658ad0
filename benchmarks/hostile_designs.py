"""Regressions and moments on populations that clipping misleads, beside the fit without privacy.

``python benchmarks/hostile_designs.py [--seeds 10] [--people 20000 200000] [--epsilon 1 2 4 8] [--designs ...]``

Each cell is the mean R2, with the worst in brackets. ``moments`` is the root mean square over the seeds of the largest
distance of a column mean from that of the people asked, in its stated standard errors, at the last epsilon. ``clean``
is of seed 0.
"""

import argparse
import warnings

import numpy as np
from sklearn.linear_model import LinearRegression

from skldp import PrivateLinearRegression
from skldp.exceptions import SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning._moments import MomentsProtocol
from skldp.learning._person import simulate
from skldp.mechanisms import noise_from


def uniform(rng, n, d=5):
    return rng.uniform(-1, 1, (n, d))


def ones(share):
    def design(rng, n):
        return uniform(rng, n), np.where(rng.random(n) < share, 1.0, 0.0)

    return design


def zero_inflated(rng, n):
    X = uniform(rng, n)
    return X, np.where(rng.random(n) < 0.15 * (1 + X[:, 0]), np.minimum(2 * rng.exponential(0.1, n), 2), 0) - 1


def rare_column(rng, n):
    X = uniform(rng, n)
    X[:, 0] = np.where(rng.random(n) < 0.02, 1, -1)
    return X, 0.3 * X[:, 1] + 0.5 * (X[:, 0] > 0) + 0.1 * rng.standard_normal(n)


def exponential_column(rng, n):
    X = uniform(rng, n)
    X[:, 0] = 2 * np.minimum(np.where(rng.random(n) < 0.05, rng.exponential(0.3, n), 0), 1) - 1
    return X, 0.3 * X[:, 1] + 0.4 * (X[:, 0] + 1) + 0.1 * rng.standard_normal(n)


def above_a_threshold(rng, n):
    X = uniform(rng, n)
    more = (X[:, 1] > 0.5) & (rng.random(n) < 0.1)
    return X, -0.5 + 0.2 * X[:, 0] + 0.05 * rng.standard_normal(n) + more


def far_away(rng, n):
    far = rng.random(n) < 0.01
    X = np.where(far[:, None], 1, 0.1) * uniform(rng, n)
    return X, X[:, 0] / 2 - X[:, 1] / 2 + 0.02 * rng.standard_normal(n) + 0.5 * far


def square(rng, n):
    X = np.minimum(rng.exponential(1, (n, 2)), 8)
    return X / 4 - 1, np.minimum(X[:, 0] ** 2, 30) / 15 - 1


def normal(d, wide=1.0, r2=0.8):
    def design(rng, n):
        X, slopes = rng.standard_normal((n, d)), rng.standard_normal(d)
        y = np.sqrt(r2) * X @ slopes / np.linalg.norm(slopes) + np.sqrt(1 - r2) * rng.standard_normal(n)
        return X / (3 * wide), y / (3 * wide)

    return design


DESIGNS = {
    "1% ones": ones(0.01),
    "4% ones": ones(0.04),
    "10% ones": ones(0.1),
    "zero-inflated": zero_inflated,
    "2% column": rare_column,
    "5% exponential column": exponential_column,
    "10% above + 1": above_a_threshold,
    "1% far away": far_away,
    "y = x^2": square,
    "normal, 10": normal(10),
    "normal, 10, 5 times wide": normal(10, wide=5.0),
    "normal, 30": normal(30),
    "noise": normal(10, r2=0.0),
}


def clipped(design, rng, n):
    X, y = DESIGNS[design](rng, n)
    return np.clip(X, -1, 1), np.clip(y, -1, 1)


def score(design, n, epsilon, seed):
    X, y = clipped(design, np.random.default_rng(seed), n)
    return PrivateLinearRegression(epsilon).fit(X, y).score(X, y)


def miss(design, n, epsilon, seed):
    X, y = clipped(design, np.random.default_rng(seed), n)
    table = np.column_stack([X[:, :3], y])
    d = table.shape[1]
    protocol = MomentsProtocol(d, n, epsilon=epsilon, low=[-1] * d, high=[1] * d)
    simulate(protocol, table, np.zeros(n), noise_from())
    found = protocol.estimates
    return np.max(np.abs(found.location - table.mean(axis=0)) / found.location_error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--people", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    given = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    warnings.simplefilter("ignore", TooFewPeopleWarning)
    print(
        f"{'design':26}{'people':>9}{'clean':>8}" + "".join(f"{f'epsilon {e:g}':>18}" for e in given.epsilon), "moments"
    )
    for design in given.designs:
        for n in given.people:
            X, y = clipped(design, np.random.default_rng(0), n)
            cells = ""
            for epsilon in given.epsilon:
                scores = [score(design, n, epsilon, seed) for seed in range(given.seeds)]
                cells += f"{np.mean(scores):>10.4f} [{min(scores):.3f}]"
            misses = [miss(design, n, given.epsilon[-1], seed) for seed in range(given.seeds)]
            clean = LinearRegression().fit(X, y).score(X, y)
            print(f"{design:26}{n:9,}{clean:8.4f}{cells}  {np.sqrt(np.mean(np.square(misses))):.1f}", flush=True)


if __name__ == "__main__":
    main()
