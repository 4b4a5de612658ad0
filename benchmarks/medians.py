"""Measure the error of a median: from one survey, and from thresholds that come nearer to it from group to group.

Run ``python benchmarks/medians.py [--people 100000] [--epsilon 1 4] [--runs 20]``. "one survey" is the likeliest median
of square waves of all people. "thresholds": a twentieth of the people answer a square wave. Each later group answers
whether a number is above one of two thresholds around the median so far, half of the group each, by randomized
response; the median is interpolated between the two shares. The last two medians are averaged, weighted by the sizes
of their groups. Errors are root mean squares over the runs. The unit is the standard error of such a bit of all people
at the true median, if the slope there were known. With heaps there is no slope, and the density is taken as 1.
"""

import argparse
import warnings

import numpy as np

from skldp import Collector
from skldp.client import NumberField, Policy
from skldp.collection._report_files import Found
from skldp.collection._report_tables import ReportColumns, answer_bytes
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import noise_from
from skldp.mechanisms.numeric._duchi import Duchi
from skldp.mechanisms.numeric._piecewise import SquareWave

# Of the people, for the square wave and for each pair of thresholds.
PARTS = 0.05, 0.1, 0.15, 0.7


def populations(n, rng):
    """Numbers of [0, 1] with the median and the density there of the law that they are drawn from."""
    yield "even", rng.random(n), 0.5, 1.0
    yield "skewed", np.minimum(rng.exponential(0.1, n), 1.0), 0.1 * np.log(2), 5.0
    low = rng.random(n) < 0.5
    two = np.where(low, rng.normal(0.3, 0.1, n), rng.normal(0.7, 0.1, n))
    yield "bimodal", np.clip(two, 0, 1), 0.5, np.exp(-2) / (0.1 * np.sqrt(2 * np.pi))
    heaped = np.where(rng.random(n) < 0.3, np.rint(10 * rng.beta(2, 4, n)) / 10, rng.beta(2, 4, n))
    yield "heaped", heaped, np.median(heaped), 1.0


def quantiles(values, epsilon, levels, seed):
    """Likeliest quantiles of a survey by square waves."""
    mechanism = SquareWave(epsilon)
    law = mechanism.integer_law
    policy = Policy("a benchmark", (NumberField("x", 0.0, 1.0, law),))
    released = mechanism.release(2 * values[:, None] - 1, noise_from(seed)).rows[:, 0]
    first, step = law.value(0), law.value(1) - law.value(0)
    answers = np.rint((released - first) / step).astype(f"u{answer_bytes(law.n_answers)}")
    ids = np.random.default_rng([seed, 7]).integers(0, 256, (len(values), 16)).astype(np.uint8)
    collector = Collector(policy)
    collector._take(Found(ReportColumns(ids, (answers,)), 0, 0))
    return collector.quantiles("x", levels)


def share_below(values, threshold, epsilon, seed):
    """Unbiased share of the numbers below a threshold, of which a tie is half."""
    signs = np.sign(values - threshold)
    return (1 - Duchi(epsilon).release(signs[:, None], noise_from(seed)).rows.mean()) / 2


def narrowed(values, epsilon, seed):
    """Median by thresholds on both sides of the last estimate, at a distance of three of its standard errors."""
    groups = np.split(values, (np.cumsum(PARTS)[:-1] * len(values)).astype(int))
    errors = [np.sqrt(Duchi(epsilon).worst_variance / 4 / len(group)) for group in groups]
    apart = min(0.4, 6 * errors[0])
    ends = quantiles(groups[0], epsilon, [0.5 - apart, 0.5 + apart], seed).values
    medians = []
    for i, group in enumerate(groups[1:]):
        halves = np.array_split(group, 2)
        low, high = (share_below(halves[k], ends[k], epsilon, 100 * seed + 2 * i + k) for k in (0, 1))
        slope = max(high - low, errors[i + 1]) / (ends[1] - ends[0])
        width = ends[1] - ends[0]
        medians.append(ends[0] + np.clip((0.5 - low) / slope, -width / 2, 1.5 * width))
        reach = min(3 * errors[i + 1] / slope, width / 2)
        ends = medians[-1] - reach, medians[-1] + reach
    return np.average(medians[-2:], weights=PARTS[-2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--runs", type=int, default=50)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print(f"{'':10}{'epsilon':>8}{'unit':>10}{'one survey':>12}{'thresholds':>16}")
    for epsilon in asked.epsilon:
        bit = np.sqrt(Duchi(epsilon).worst_variance / 4 / asked.people)
        errors = {}
        for run in range(asked.runs):
            for name, values, median, density in populations(asked.people, np.random.default_rng(run)):
                (whole,) = quantiles(values, epsilon, [0.5], run).values
                found = np.array([whole, narrowed(values, epsilon, 1_000 + run)])
                errors.setdefault((name, density), []).append(found - median)
        for (name, density), found in errors.items():
            unit = bit / density
            roots = np.sqrt(np.mean(np.square(found), axis=0)) / unit
            print(f"{name:10}{epsilon:8g}{unit:10.2g}{roots[0]:12.2f}{roots[1]:16.2f}", flush=True)


if __name__ == "__main__":
    main()
