"""Measure the coverage of a collector's intervals where a few people are far from all others.

Usage: python benchmarks/intervals.py [--surveys 1000] [--epsilon 0.5 2 8 20] [--people 50 100 1000 10000]
[--shares 0.001 0.01 0.03 0.1 0.2] [--least 0.93] [--seed 0]

A survey asks so many people, of whom each is in a rare tail with the given chance. "points": the tail is at the upper
bound, all others at the lower one. "spread": the tail lies in the last tenth of the bounds, all others in the lower
half. Numbers of square waves ("wave"), integers of square waves ("whole") and numbers of the piecewise mechanism
("piece") are reported at the given epsilon each. Intervals at 95% are those of the mean, of the shares of the first and
the last bin, and of the quantiles that lie just within the tail (at 2/3 of its share) and just outside (at 3/2).

The table has a line for every estimate: its coverage over all designs, the least of one, and how many lie below
--least; then the designs that do, by their coverage.
"""

import argparse
import itertools
from functools import lru_cache, partial

import numpy as np

from skldp import Collector
from skldp.client import Field, Policy
from skldp.collection import _survey_fields
from skldp.collection._report_tables import ReportColumns, answer_bytes
from skldp.laws._lattice import LatticeLaw, MixtureLaw
from skldp.mechanisms import Column, Piecewise
from skldp.mechanisms.numeric._unit_mechanisms import SquareWave

POPULATIONS = "points", "spread"


def fields_of(epsilon):
    """The three fields of a survey."""
    wave, piece = SquareWave(epsilon).integer_law, Piecewise(epsilon).integer_law
    whole = Field("whole", Column(0, 5, kind="integer"), wave)
    return Field("wave", Column(0, 1), wave), whole, Field("piece", Column(0, 1), piece)


def number_at(population, field, share, u):
    """The number below which a part u of the people lie; the tail of integers is the last one."""
    u = np.asarray(u)
    if population == "points":
        return np.where(u > 1 - share, field.column.high, field.column.low)
    below, within = u / (1 - share), (u - 1 + share) / share
    if field.column.whole:
        return np.where(u > 1 - share, field.column.high, np.clip(np.ceil(3 * below) - 1, 0, 2))
    return np.where(u > 1 - share, 0.9 + 0.1 * within, 0.5 * below)


def truths(population, field, share):
    """Truth of each estimate, as a part of the bounds."""
    first = {"points": 1.0, "spread": 1 / 3 if field.column.whole else 1 / 4}[population]
    of_tail, of_others = {"points": (1.0, 0.0), "spread": (1.0, 0.2) if field.column.whole else (0.95, 0.25)}[
        population
    ]
    levels = np.array([1 - share * 2 / 3, 1 - share * 3 / 2])
    return {
        "mean": share * of_tail + (1 - share) * of_others,
        "first bin": (1 - share) * first,
        "last bin": share,
        "quantile in the tail": number_at(population, field, share, levels[0]) / field.column.high,
        "quantile below it": number_at(population, field, share, levels[1]) / field.column.high,
    }


def intervals(collector, field, share):
    """Interval of each estimate, as a part of the bounds."""
    mean, bins = collector.mean(field.name), collector.histogram(field.name)
    found = collector.quantiles(field.name, [1 - share * 2 / 3, 1 - share * 3 / 2])
    scaled = [(one.low / field.column.high, one.high / field.column.high) for one in (mean, found)]
    return {
        "mean": (scaled[0][0][0], scaled[0][1][0]),
        "first bin": (bins.low[0], bins.high[0]),
        "last bin": (bins.low[-1], bins.high[-1]),
        "quantile in the tail": (scaled[1][0][0], scaled[1][1][0]),
        "quantile below it": (scaled[1][0][1], scaled[1][1][1]),
    }


def answers_of(law, places, rng):
    """Answers of a lattice to places in [-1, 1]."""
    n, positions = len(places), places * law.reach + (law.n_cells - law.n_inner) // 2
    inner = np.floor(positions + law.n_inner * rng.random(n)).astype(np.int64)
    is_inner = rng.random(n) < law.n_inner * law.extra / law.total
    return np.where(is_inner, inner, rng.integers(law.n_cells, size=n)).astype(f"u{answer_bytes(law.n_answers)}")


def coverage(population, epsilon, n, share, n_surveys, seed):
    """How often each interval held its truth, and its median length."""
    rng = np.random.default_rng([seed, POPULATIONS.index(population), n, int(1e6 * share), int(1e3 * epsilon)])
    fields = fields_of(epsilon)
    policy, true = Policy("a survey", fields), {one: truths(population, one, share) for one in fields}
    held, lengths = {}, {}
    ids = rng.integers(256, size=(n, 16)).astype(np.uint8)
    for _ in range(n_surveys):
        u, collector = rng.random(n), Collector(policy)
        answers = []
        for field in fields:
            places = (number_at(population, field, share, u) - field.column.center) / field.column.radius
            answers.append(answers_of(field.law, places, rng))
        # People in any order, with different ids.
        collector._parts = [ReportColumns(ids, tuple(answers))]
        for field in fields:
            for what, (low, high) in intervals(collector, field, share).items():
                name, truth = f"{what} of {field.name}", true[field][what]
                held[name] = held.get(name, 0) + bool(low <= truth + 1e-9 and truth - 1e-9 <= high)
                lengths.setdefault(name, []).append(high - low)
    return {name: (count / n_surveys, float(np.median(lengths[name]))) for name, count in held.items()}


def _of_bytes(real, law, knots, spread):
    return real(law, np.frombuffer(knots), spread=spread)


def quicker():
    """Leave out the likeliest shares, which no interval depends on."""
    for kind in (LatticeLaw, MixtureLaw):
        cached = lru_cache(maxsize=64)(partial(_of_bytes, kind.responses))
        kind.responses = lambda law, knots, *, spread=False, cached=cached: cached(law, knots.tobytes(), spread)
    _survey_fields.likeliest_shares = lambda counts, response: np.full(len(response), 1 / len(response))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--surveys", type=int, default=1000)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 2.0, 8.0, 20.0])
    parser.add_argument("--people", nargs="+", type=int, default=[50, 100, 1000, 10_000])
    parser.add_argument("--shares", nargs="+", type=float, default=[0.001, 0.01, 0.03, 0.1, 0.2])
    parser.add_argument("--least", type=float, default=0.93)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    quicker()
    table = {}
    for design in itertools.product(POPULATIONS, asked.epsilon, asked.people, asked.shares):
        for name, (rate, length) in coverage(*design, asked.surveys, asked.seed).items():
            table.setdefault(name, []).append((rate, *design, length))
    n_designs = len(next(iter(table.values())))
    print(f"{asked.surveys} surveys of each of {n_designs} designs, 95% intervals, seed {asked.seed}")
    print(f"{'':32}{'mean':>7}{'least':>7}{'below':>7}")
    for name, rows in table.items():
        rates = np.array([rate for rate, *_ in rows])
        print(f"{name:32}{rates.mean():7.3f}{rates.min():7.3f}{(rates < asked.least).sum():7}")
    for rate, name, *design in sorted((row[0], name, *row[1:]) for name, rows in table.items() for row in rows):
        if rate < asked.least:
            population, epsilon, n, share, length = design
            print(f"{rate:.3f}  {name}, {population}, epsilon {epsilon:g}, {n:,} people, share {share:g}: {length:.3g}")


if __name__ == "__main__":
    main()
