"""Measure the likeliest shares of categories: processor seconds, and the squared error beside the projection's.

Run ``python benchmarks/likelihood.py [--people 100000 1000000] [--categories 1000 100000] [--epsilon 1 4]``.
A line is one law: the mean squared errors of the unbiased shares projected to a distribution and of the likeliest ones,
and the mean seconds of these. ``--only LAW`` takes one. ``--shuffled`` numbers categories at random, not by frequency.
"""

import argparse
import itertools
import time

import numpy as np

from skldp.collection._answer_scores import CodeScores
from skldp.collection._likeliest import likeliest_codes
from skldp.mechanisms import RandomizedResponse, noise_from
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._frequency import project_onto_simplex
from skldp.mechanisms.categorical._one_hot import OneHotHadamard, OneHotLocalHashing, SubsetSelection, UnaryEncoding

KINDS = RandomizedResponse, OneHotLocalHashing, OneHotHadamard, SubsetSelection, UnaryEncoding
MOST_BITS = 4096


def reports(mechanism, codes, seed):
    """Answers of a law as a collector holds them."""
    noise, law = noise_from(np.random.default_rng([seed, 1])), mechanism.integer_law
    parts = []
    for block in np.array_split(codes, -(-len(codes) // 20_000)):
        if mechanism.n_outputs == 1 or isinstance(mechanism, OneHotLocalHashing | OneHotHadamard):
            drawn = np.empty((len(block), 1), dtype=np.int64)
            law.draw_many(block[:, None], noise, drawn, Workspace())
            parts.append(drawn[:, 0].astype(np.uint32))
        else:
            rows = mechanism.release(block[:, None], noise).rows
            # The first byte is the one that is not full.
            parts.append(np.packbits(np.pad(rows, ((0, 0), (-rows.shape[1] % 8, 0))), axis=1))
    return np.concatenate(parts)


def measured(n, k, epsilon, kind, runs, shuffled=False):
    """Squared errors of projected and of likeliest shares, and the seconds of the latter: one row a run."""
    law, found = (mechanism := kind(epsilon, k)).integer_law, []
    for seed in range(runs):
        rng = np.random.default_rng([k, seed])
        population = 1 / np.arange(1, k + 1)
        if shuffled:
            rng.shuffle(population)
        codes = rng.choice(k, n, p=population / population.sum())
        truth = np.bincount(codes, minlength=k) / n
        answers = reports(mechanism, codes, seed)
        raw = CodeScores(law).sums(answers, np.ones(n))[0] / n
        projected = ((project_onto_simplex(raw[None])[0] - truth) ** 2).sum()
        begun = time.process_time()
        likeliest = ((likeliest_codes(law, answers) - truth) ** 2).sum()
        found.append((projected, likeliest, time.process_time() - begun))
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--categories", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--shuffled", action="store_true")
    asked = parser.parse_args()
    print(
        f"{'':20}{'people':>10}{'categories':>11}{'epsilon':>8}{'projected':>11}{'likeliest':>11}{'ratio':>7}{'seconds':>9}"
    )
    for n, k, epsilon, kind in itertools.product(asked.people, asked.categories, asked.epsilon, KINDS):
        if asked.only not in kind.__name__ or (kind in KINDS[3:] and k > MOST_BITS):
            continue
        found = measured(n, k, epsilon, kind, asked.runs, asked.shuffled)
        projected, likeliest, took = np.mean(found, axis=0)
        line = f"{kind.__name__:20}{n:10,}{k:11,}{epsilon:8g}{projected:11.3g}{likeliest:11.3g}"
        print(f"{line}{likeliest / projected:7.2f}{took:9.2f}", flush=True)


if __name__ == "__main__":
    main()
