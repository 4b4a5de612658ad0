"""Measure the coverage of 95% intervals for coefficients learnt under local privacy.

Usage: python benchmarks/interval_coverage.py [--designs normal skewed ...] [--features 3 5 10] [--people 20000 100000]
[--epsilon 1 2 4 8] [--protocol once rounds] [--seeds 200] [--save NAME]

Every line is one design: how often the intervals of the intercept and of the coefficients held the truth, the mean of
all of them and the worst of one; the standard errors' median in units of the residuals' deviation; the median of their
parts that are due to privacy; and how many seeds got no intervals, because the protocol refused.

normal: uniform features, normal errors, R2 about .9. low: R2 about .2. heavy: features and errors of Student's law with
3 degrees of freedom. unequal: errors whose size follows a feature. onehot: a feature that is 1 for one person in ten;
rare: for one in twenty. skewed: exponential errors. tied: lognormal features, exponential errors, and a size that
follows a feature: the most that what is cut off can bias. far: one person in 23 is far away in a feature, with
exponential errors five times as large. hidden: one person in 50 has an error of 15 deviations, beyond what intervals
assume of people whom noise may hide.
"""

import argparse
import itertools
import warnings
from functools import lru_cache

import numpy as np
import results

from skldp.exceptions import SeededNoiseWarning
from skldp.learning._inference import InferenceProtocol
from skldp.learning._person import simulate
from skldp.learning._tasks import Task
from skldp.mechanisms import noise_from

NAMES = ("normal", "low", "heavy", "unequal", "onehot", "rare", "skewed", "tied", "far", "hidden")


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
    elif name == "hidden":
        error += 1.5 * ((rng.random(n) < 0.02) - 0.02)
    elif name == "far":
        X[:, 0] = 2 * np.minimum(1, rng.exponential(0.08, n)) - 1
        error = 0.05 * (rng.exponential(1, n) - 1) * np.where(X[:, 0] > -0.5, 1, 0.2)
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


class Cell:
    """One design, and what was counted so far."""

    def __init__(self, name, d, n, epsilon, protocol):
        self.name, self.d, self.n, self.epsilon, self.protocol = name, d, n, epsilon, protocol
        self.truth = np.append(0.1, np.array([0.4, -0.3, 0.2] + [0.1] * (d - 3)) / (1 if d < 6 else 1.5))
        self.hits, self.errors, self.shares, self.n_seeds = [], [], [], 0
        self.refusal = "" if self.learner().asks_for_errors else self.learner().refusal

    def learner(self, of=Quick):
        """A protocol before anybody is asked."""
        low, high = [-1] * self.d + [-3], [1] * self.d + [3]
        return of(self.d, self.n, epsilon=self.epsilon, low=low, high=high, kind=self.protocol)

    def add(self, seed):
        """Learn from the people of one seed."""
        X, error = draw(self.name, self.n, self.d, np.random.default_rng([seed, 1]))
        y = self.truth[0] + X @ self.truth[1:] + error
        learnt = self.learner()
        simulate(learnt, X, y, noise_from(seed))
        if not seed:
            plain = self.learner(InferenceProtocol)
            simulate(plain, X, y, noise_from(seed))
            assert plain.to_json() == learnt.to_json()
        self.n_seeds += 1
        if not learnt.refusal:
            found = learnt.estimate()
            low, high = found.intervals(0.95).T
            self.hits.append((low <= self.truth) & (self.truth <= high))
            self.errors.append(found.standard_errors / error.std())
            self.shares.append(found.noise_shares)

    def __str__(self):
        line = f"{self.name:8} {self.d:3} {self.n:7,} {self.epsilon:4} {self.protocol:>6}"
        if self.refusal:
            return f"{line}  {self.refusal}"
        if self.hits:
            held = np.mean(self.hits, axis=0)
            line += f"  {held[0]:9.3f} {held[1:].mean():6.3f} {held.mean():6.3f} {held.min():6.3f}"
            line += f" {np.median(self.errors):8.3f} {np.median(self.shares):8.2f}"
        else:
            line += " " * 47
        return f"{line} {self.n_seeds - len(self.hits):4} of {self.n_seeds}"

    def cells(self):
        """Return the cells of a row of the documentation."""
        held = np.mean(self.hits, axis=0) if self.hits else np.full(self.d + 1, np.nan)
        shares = [f"{held.mean():.1%}", f"{held.min():.1%}", f"{np.median(self.shares):.0%}" if self.hits else ""]
        return [self.name, f"{self.n:,}", f"{self.epsilon:g}", *shares, f"{len(self.hits)} of {self.n_seeds}"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--features", nargs="+", type=int, default=[3, 5, 10])
    parser.add_argument("--people", nargs="+", type=int, default=[20_000, 100_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--protocol", nargs="+", choices=("once", "rounds"), default=["once"])
    parser.add_argument("--seeds", type=int, default=200)
    results.add_option(parser)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    # The same text is the same task.
    Task.from_json = lru_cache(maxsize=4)(Task.from_json)
    several = itertools.product(chosen.people, chosen.features, chosen.designs, chosen.epsilon, chosen.protocol)
    cells = [Cell(name, d, n, *how) for n, d, name, *how in several]
    head = "design     d  people  eps  asked  intercept slopes    all  worst std. err due to p.  refused"
    print(head)
    for cell in cells:
        for seed in range(0 if cell.refusal else chosen.seeds):
            cell.add(seed)
        print(cell, flush=True)
    if chosen.save:
        header = ["design", "people", "epsilon", "all", "worst", "privacy", "intervals given"]
        results.save(chosen.save, header, [cell.cells() for cell in cells])
