"""Measure the error of a median: from one survey, and from thresholds that come nearer to it from group to group.

Run ``python benchmarks/medians.py [--people 100000] [--epsilon 1 4] [--runs 200]``. "survey" is the likeliest median
of square waves of all people. "pilot": a tenth of the people answer a square wave, all others whether their number is
above its median, and the slope is that of the wave's distribution. "groups": the first of six groups answers a square
wave. Each later one answers whether a number is above one of two thresholds around the median so far, half of the group
each, by randomized response. A line is fitted to the shares of all groups by least squares, and without the first ones
while it does not fit them (chi-square at one in a thousand); the median is where it is one half.

Figures are mean squared errors, with their standard errors, over the bound of any protocol at this epsilon: the
variance of one randomized bit of all people at the true median, if the density there were known. With heaps there is no
density, and it is taken as 1: compare the columns.
"""

import argparse
import warnings

import numpy as np
from scipy.stats import chi2

from skldp.client import Field
from skldp.collection._report_tables import answer_bytes
from skldp.collection._survey_fields import distribution_of
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import Column, noise_from
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, SquareWave

# Of the people, for the square wave and for each pair of thresholds.
PARTS = 0.03, 0.03, 0.06, 0.12, 0.24, 0.52
# Thresholds are three standard errors from the median so far. The first groups are left out until a line fits.
REACH, FITS = 3.0, 0.999
# Of these, errors are compared with a pilot's.
HEAPED = "tenths", "percent", "one value"


def populations(n, rng):
    """Numbers of [0, 1] with the median and the density there of the law that they are drawn from."""
    yield "even", rng.random(n), 0.5, 1.0
    yield "normal", np.clip(rng.normal(0.4, 0.12, n), 0, 1), 0.4, 1 / (0.12 * np.sqrt(2 * np.pi))
    yield "skewed", np.minimum(rng.exponential(0.1, n), 1.0), 0.1 * np.log(2), 5.0
    low = rng.random(n) < 0.5
    two = np.where(low, rng.normal(0.3, 0.1, n), rng.normal(0.7, 0.1, n))
    yield "bimodal", np.clip(two, 0, 1), 0.5, np.exp(-2) / (0.1 * np.sqrt(2 * np.pi))
    # A heap ends at the median of the first, the median of the second lies within a heap.
    yield "tenths", np.where(rng.random(n) < 0.3, np.rint(10 * rng.beta(2, 4, n)) / 10, rng.beta(2, 4, n)), 0.3, 1.0
    yield "percent", np.clip(np.rint(rng.normal(38, 18, n)), 0, 100) / 100, 0.38, 1.0
    yield "one value", np.where(rng.random(n) < 0.4, 0.37, rng.random(n)), 0.37, 1.0


def distribution(values, epsilon, seed):
    """Likeliest distribution of a survey by square waves."""
    mechanism = SquareWave(epsilon)
    law = mechanism.integer_law
    released = mechanism.release(2 * values[:, None] - 1, noise_from(seed)).rows[:, 0]
    first, step = law.value(0), law.value(1) - law.value(0)
    answers = np.rint((released - first) / step).astype(f"u{answer_bytes(law.n_answers)}")
    return distribution_of(Field("x", Column(0.0, 1.0), law), answers)[0]


def share_below(values, threshold, epsilon, seed):
    """Unbiased share of the numbers below a threshold, of which a tie is half."""
    signs = np.sign(values - threshold)
    return (1 - Duchi(epsilon).release(signs[:, None], noise_from(seed)).rows.mean()) / 2


def piloted(values, epsilon, seed):
    """Median by one threshold, at the median of a pilot; the slope is that of its middle fifth."""
    n = len(values) // 10
    found = distribution(values[:n], epsilon, seed)
    low, threshold, high = found.quantile([0.4, 0.5, 0.6])
    return np.clip(threshold + (0.5 - share_below(values[n:], threshold, epsilon, seed)) * (high - low) / 0.2, 0, 1)


def narrowed(values, epsilon, seed):
    """Median by thresholds on both sides of the last estimate, and a line through the shares of the last groups."""
    groups = np.split(values, (np.cumsum(PARTS)[:-1] * len(values)).astype(int))
    apart = min(0.4, 2 * REACH * bit_error(epsilon, len(groups[0])))
    ends = distribution(groups[0], epsilon, seed).quantile([0.5 - apart, 0.5 + apart])
    places, shares, sizes = [], [], []
    for i, group in enumerate(groups[1:]):
        for k, half in enumerate(np.array_split(group, 2)):
            places.append(ends[k])
            shares.append(share_below(half, ends[k], epsilon, 100 * seed + 2 * i + k))
            sizes.append(len(half))
        for first in range(0, 2 * i + 1, 2):
            at, share, weight = (np.array(one[first:]) for one in (places, shares, sizes))
            center, height = np.average(at, weights=weight), np.average(share, weights=weight)
            slope = weight @ ((at - center) * (share - height)) / (weight @ (at - center) ** 2)
            left = weight @ (share - height - slope * (at - center)) ** 2 / bit_error(epsilon, 1) ** 2
            if left < chi2.ppf(FITS, max(len(at) - 2, 1)):
                break
        width, error = ends[1] - ends[0], bit_error(epsilon, weight.sum())
        slope = max(slope, error / width)
        median = center + np.clip((0.5 - height) / slope, -width, width)
        reach = min(REACH * error / slope, width / 2)
        ends = median - reach, median + reach
    return median


def bit_error(epsilon, n):
    """Standard error of a share of one half, from n randomized bits."""
    return np.sqrt(Duchi(epsilon).worst_variance / 4 / n)


def measured(people, epsilon, runs):
    """Mean squared errors over the bound, and their standard errors, of each population: survey, pilot and groups.

    A survey takes longest, and runs once in ten times.
    """
    errors = {}
    for run in range(runs):
        for name, values, median, density in populations(people, np.random.default_rng(run)):
            whole = np.nan if run % 10 else distribution(values, epsilon, run).quantile([0.5])[0]
            found = np.array([whole, piloted(values, epsilon, 1_000 + run), narrowed(values, epsilon, 2_000 + run)])
            errors.setdefault(name, []).append(((found - median) * density / bit_error(epsilon, people)) ** 2)
    return {
        name: (np.nanmean(each, axis=0), np.nanstd(each, axis=0) / np.sqrt(np.isfinite(each).sum(axis=0)))
        for name, each in errors.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print(f"{'':10}{'epsilon':>8}{'survey':>18}{'pilot':>18}{'groups':>18}")
    for epsilon in asked.epsilon:
        for name, (means, spreads) in measured(asked.people, epsilon, asked.runs).items():
            figures = "".join(f"{m:11.2f} ±{s:5.2f}" for m, s in zip(means, spreads, strict=True))
            print(f"{name:10}{epsilon:8g}{figures}", flush=True)


if __name__ == "__main__":
    main()
