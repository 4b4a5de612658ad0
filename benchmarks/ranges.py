"""Compare ranges and quantiles of one number from square waves with those of a hierarchy of bins.

Run ``python benchmarks/ranges.py [--people 100000] [--epsilon 1 2 4] [--runs 10]``. Each person of the hierarchy
answers on one of five levels of 4 to 1,024 bins, at the whole epsilon, by the best mechanism for that many categories
(its exact variance, drawn as normal noise). "least squares" makes the levels consistent (Hay, Rastogi, Miklau and
Suciu, VLDB 2010). "projected" also makes each family's shares non-negative, from the top (Norm-Sub). Figures are mean
squared errors over those of the likeliest distribution of square waves of the same people: of 200 ranges with random
ends, and of five quantiles.
"""

import argparse
import warnings

import numpy as np
from medians import distribution

from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms.categorical._frequency import project_onto_simplex
from skldp.mechanisms.categorical._one_hot import best_categorical_mechanism

FAN, LEVELS = 4, 5
LEAVES = FAN**LEVELS
EDGES = np.arange(LEAVES + 1) / LEAVES
QUANTILES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def populations(n, rng):
    """Numbers of [0, 1) by name: three that are smooth, three with heaps."""
    yield "beta", rng.beta(2, 5, n)
    low = rng.random(n) < 0.5
    yield "bimodal", np.clip(np.where(low, rng.normal(0.3, 0.1, n), rng.normal(0.7, 0.1, n)), 0, 1)
    yield "skewed", np.minimum(rng.exponential(0.05, n), 1.0)
    yield "half on tenths", np.where(rng.random(n) < 0.5, np.rint(10 * rng.beta(4, 6, n)) / 10, rng.beta(4, 6, n))
    spikes = rng.choice([0.13, 0.37, 0.371, 0.62, 0.9], n, p=[0.1, 0.3, 0.2, 0.3, 0.1])
    yield "five spikes", np.where(rng.random(n) < 0.7, spikes, rng.random(n))
    yield "one value", np.full(n, 0.37)


def hierarchy(leaves, epsilon, rng):
    """Return the shares of the leaves, by least squares and projected."""
    groups = np.array_split(rng.permutation(leaves), LEVELS)
    shares, variances = [], []
    for level, group in enumerate(groups, start=1):
        k = FAN**level
        variances.append(best_categorical_mechanism(epsilon, k)[1].worst_case_variance / len(group))
        own = np.bincount(group // (LEAVES // k), minlength=k) / len(group)
        shares.append(own + rng.normal(0, np.sqrt(variances[-1]), k))
    variance = variances[-1]
    for level in range(LEVELS - 2, -1, -1):
        # The mean of a node's own share and its children's sum, weighted by their precision.
        sums, variance = shares[level + 1].reshape(-1, FAN).sum(axis=1), FAN * variance
        weight = variance / (variance + variances[level])
        shares[level] = weight * shares[level] + (1 - weight) * sums
        variance *= variances[level] / (variance + variances[level])
    above, projected = np.ones(1), np.ones(1)
    for level in shares:
        family = level.reshape(-1, FAN)
        family += (above - family.sum(axis=1))[:, None] / FAN
        above = level
        parts = project_onto_simplex(family / np.maximum(projected, 1e-12)[:, None])
        projected = (parts * projected[:, None]).ravel()
    return shares[-1], projected


def measured(people, epsilon, runs):
    """Squared errors of each population: rows of runs, columns of the three ways, for ranges and for quantiles."""
    found = {}
    ends = np.sort(np.random.default_rng(77).integers(0, LEAVES + 1, (200, 2)), axis=1)
    for run in range(runs):
        for name, values in populations(people, np.random.default_rng(run)):
            leaves = np.minimum((values * LEAVES).astype(int), LEAVES - 1)
            truth = np.append(0.0, np.cumsum(np.bincount(leaves, minlength=LEAVES) / people))
            wave = distribution(values, epsilon, run)
            ways = hierarchy(leaves, epsilon, np.random.default_rng([run, 5]))
            sums = [wave.cumulative(EDGES), *(np.append(0.0, np.cumsum(shares)) for shares in ways)]
            ranges = [(((each - truth)[ends[:, 1]] - (each - truth)[ends[:, 0]]) ** 2).mean() for each in sums]
            rising = [np.maximum.accumulate(np.clip(each, 0, 1)) + 1e-12 * np.arange(LEAVES + 1) for each in sums[1:]]
            places = [wave.quantile(QUANTILES), *(np.interp(QUANTILES, each, EDGES) for each in rising)]
            quantiles = [((each - np.quantile(values, QUANTILES)) ** 2).mean() for each in places]
            found.setdefault(name, []).append((ranges, quantiles))
    return {name: np.array(each).transpose(1, 0, 2) for name, each in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--runs", type=int, default=10)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print(f"{'':24}{'ranges: least squares, projected':>34}{'quantiles: least squares, projected':>38}")
    for epsilon in asked.epsilon:
        for name, errors in measured(asked.people, epsilon, asked.runs).items():
            ratios = [each[:, 1:].mean(axis=0) / each[:, 0].mean() for each in errors]
            print(f"{name:16}{epsilon:8g}" + "".join(f"{one:22.2f}{two:12.2f}" for one, two in ratios), flush=True)


if __name__ == "__main__":
    main()
