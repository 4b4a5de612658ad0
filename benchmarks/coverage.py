"""How often intervals of coefficients learnt under local privacy hold the truth, where they should 95 times of 100.

Usage: python benchmarks/coverage.py [--designs normal skewed ...] [--features 3 5 10] [--people 20000 100000]
[--epsilon 1 2 4 8] [--protocol once rounds] [--seeds 200]

Every line is one design: how often the intervals of the intercept and of the coefficients held the truth, the mean of
all of them and the worst of one; the standard errors' median in units of the residuals' deviation; the median of their
parts that are due to privacy; and how many seeds got no intervals, because the protocol refused.

normal: uniform features, normal errors, R2 about .9. low: R2 about .2. heavy: features and errors of Student's law with
3 degrees of freedom. unequal: errors whose size follows a feature. onehot: a feature that is 1 for one person in ten;
rare: for one in twenty. skewed: exponential errors. tied: lognormal features, exponential errors, and a size that
follows a feature: the most that what is cut off can bias.
"""

import argparse
import warnings
from functools import lru_cache

import numpy as np

from skldp.exceptions import SeededNoiseWarning
from skldp.learning import InferenceProtocol, Task, simulate
from skldp.mechanisms import noise_from

NAMES = ("normal", "low", "heavy", "unequal", "onehot", "rare", "skewed", "tied")


def draw(name, n, d, rng):
    """Features within -1 and 1, and errors of mean 0 given them, within -1.5 and 1.5."""
    X, error = rng.uniform(-1, 1, (n, d)), 0.1 * rng.standard_normal(n)
    if name == "low":
        error *= 6
    elif name == "heavy":
        X, error = np.clip(0.15 * rng.standard_t(3, (n, d)), -1, 1), 0.1 * np.clip(rng.standard_t(3, n), -10, 10)
    elif name == "unequal":
        error *= 0.2 + np.abs(X[:, 0])
    elif name in ("onehot", "rare"):
        X[:, 0] = 2.0 * (rng.random(n) < (0.1 if name == "onehot" else 0.05)) - 1
    elif name == "skewed":
        error = 0.1 * (rng.exponential(1, n) - 1)
    elif name == "tied":
        normal = rng.standard_normal((n, d))
        X = np.clip(0.1 * (np.exp(0.7 * normal) - 1), -1, 1)
        error = 0.05 * (rng.exponential(1, n) - 1) * np.exp(0.4 * normal[:, 0])
    return X, error


class Quick(InferenceProtocol):
    """The same protocol, which makes the one task of many cohorts once."""

    _made = None

    def _task_of(self, name):
        if name not in ("first", "second"):
            return super()._task_of(name)
        state = {key: value for key, value in self._state.items() if key not in ("step", "first", "second")}
        if name == "first":
            del state["start"]
        if self._made is None or self._made[:2] != (name, state):
            self._made = name, state, super()._task_of(name)
        return self._made[2]


def show(name, d, n, epsilon, protocol, n_seeds):
    truth = np.append(0.1, np.array([0.4, -0.3, 0.2] + [0.1] * (d - 3)) / (1 if d < 6 else 1.5))
    hits, errors, shares, refused = [], [], [], 0
    for seed in range(n_seeds):
        X, error = draw(name, n, d, np.random.default_rng([seed, 1]))
        settings = {"epsilon": epsilon, "low": [-1] * d + [-3], "high": [1] * d + [3], "kind": protocol}
        learnt = Quick(d, n, **settings)
        if not learnt.asks_for_errors:
            print(f"{name:8} {d:3} {n:7,} {epsilon:4} {protocol:>6}  {learnt.refusal}", flush=True)
            return
        y = truth[0] + X @ truth[1:] + error
        simulate(learnt, X, y, noise_from(seed))
        if not seed:
            plain = InferenceProtocol(d, n, **settings)
            simulate(plain, X, y, noise_from(seed))
            assert plain.to_json() == learnt.to_json()
        if learnt.refusal:
            refused += 1
            continue
        found = learnt.estimate()
        low, high = found.intervals(0.95).T
        hits.append((low <= truth) & (truth <= high))
        errors.append(found.standard_errors / error.std())
        shares.append(found.noise_shares)
    line = f"{name:8} {d:3} {n:7,} {epsilon:4} {protocol:>6}"
    if hits:
        held = np.mean(hits, axis=0)
        line += f"  {held[0]:9.3f} {held[1:].mean():6.3f} {held.mean():6.3f} {held.min():6.3f}"
        line += f" {np.median(errors):8.3f} {np.median(shares):8.2f}"
    else:
        line += " " * 47
    print(f"{line} {refused:4} of {n_seeds}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--features", nargs="+", type=int, default=[3, 5, 10])
    parser.add_argument("--people", nargs="+", type=int, default=[20_000, 100_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--protocol", nargs="+", choices=("once", "rounds"), default=["once"])
    parser.add_argument("--seeds", type=int, default=200)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    # The same text is the same task.
    Task.from_json = lru_cache(maxsize=4)(Task.from_json)
    print("design     d  people  eps  asked  intercept slopes    all  worst std. err due to p.  refused")
    for n in chosen.people:
        for d in chosen.features:
            for name in chosen.designs:
                for epsilon in chosen.epsilon:
                    for protocol in chosen.protocol:
                        show(name, d, n, epsilon, protocol, chosen.seeds)
