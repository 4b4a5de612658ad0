"""Coverage of the intervals of laws of two steps, as fields of a policy, over whole simulated surveys.

Usage: python benchmarks/longitudinal.py [--surveys 2000] [--people 300] [--first 0]

In each survey people are drawn anew, each reports one record of six fields in one wave, with random bytes of the
survey's own generator, and the collector estimates. Printed is how often the nominal 95% intervals hold the truth
of the population: over all of an estimate's cells, and of the worst of them, with the standard error that chance
leaves. The numbers of surveys seed the generators, so that two halves are the whole.
"""

import argparse
import time

import numpy as np

from skldp import Collector
from skldp.client import CategoryField, NumberField, Policy
from skldp.mechanisms import (
    LongitudinalCategories,
    LongitudinalHistogram,
    LongitudinalMean,
    integer_law,
    law_within_bounds,
)

VALUES = tuple("abcde")
SHARES = np.array([0.45, 0.25, 0.15, 0.1, 0.05])
METHODS = ("hashing", "sue", "krr")
POLICY = Policy(
    "simulated surveys",
    (
        NumberField("hours", 0.0, 24.0, law_within_bounds(LongitudinalMean(4.0, 3.0, 0.0, 24.0))),
        NumberField("age", 0.0, 100.0, law_within_bounds(LongitudinalHistogram(4.0, 3.0, 0.0, 100.0, 8, 3))),
        NumberField("alone", 0.0, 100.0, law_within_bounds(LongitudinalHistogram(4.0, 3.0, 0.0, 100.0, 4, 1))),
        *(CategoryField(one, VALUES, integer_law(LongitudinalCategories(4.0, 3.0, 5, one))) for one in METHODS),
    ),
    memo="permanent",
)
# More words than the laws of the policy read.
_RANDOM_BYTES = 8 * 64
# Of a triangle: the mean of hours, and the shares of ages in bins of one width.
HOURS = 24 / 3


def triangle(bins):
    """The shares of bins of a density that falls from 0 to nothing at 1."""
    below = 1 - (1 - np.linspace(0, 1, bins + 1)) ** 2
    return np.diff(below)


def estimates(collector):
    """Of each field the estimate, and what it is of in the population."""
    yield "mean, one bit", collector.mean("hours"), np.array([HOURS])
    yield "histogram, 3 of 8 buckets", collector.histogram("age"), triangle(8)
    yield "histogram, 1 of 4 buckets", collector.histogram("alone"), triangle(4)
    yield "cumulative, 3 of 8 buckets", collector.cumulative("age"), np.cumsum(triangle(8))[:-1]
    for method in METHODS:
        yield f"frequencies, {method}", collector.frequencies(method), SHARES


def survey(number, people):
    """One survey, from people to what a collector holds."""
    rng = np.random.default_rng(number)
    numbers = 1 - np.sqrt(1 - rng.random((3, people)))
    codes = rng.choice(5, p=SHARES, size=(3, people))
    collector = Collector(POLICY)
    for i in range(people):
        record = {"hours": 24 * numbers[0, i], "age": 100 * numbers[1, i], "alone": 100 * numbers[2, i]}
        record |= {method: VALUES[code] for method, code in zip(METHODS, codes[:, i], strict=True)}
        collector.add(POLICY.vector(record, rng.bytes(_RANDOM_BYTES)))
    return collector


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=2000)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    held, begun = {}, time.process_time()
    for number in range(asked.first, asked.first + asked.surveys):
        for name, found, truth in estimates(survey(number, asked.people)):
            held.setdefault(name, []).append((found.low <= truth) & (truth <= found.high))
    chance = np.sqrt(0.95 * 0.05 / asked.surveys)
    print(f"epsilon of a report {POLICY.epsilon:.6g}, of a lifetime {POLICY.lifetime_epsilon:.6g}, six fields")
    print(f"{asked.surveys} surveys of {asked.people} people, from number {asked.first}; chance leaves {chance:.4f}")
    for name, each in held.items():
        of_cells = np.mean(each, axis=0)
        print(f"  {name:28} {of_cells.mean():.4f}, cells from {of_cells.min():.4f} to {of_cells.max():.4f}")
    print(f"{time.process_time() - begun:.0f} s of processor")


if __name__ == "__main__":
    main()
