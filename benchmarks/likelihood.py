"""Measure the likeliest shares of categories: processor seconds, and the squared error beside the projection's.

Run ``python benchmarks/likelihood.py [--people 100000 1000000] [--categories 1000 100000] [--epsilon 1 4]``. A line is
one law: the squared errors of the unbiased shares projected to a distribution and of the likeliest shares, and the
seconds of these. ``--only LAW`` takes one. ``--old`` calls the function that went before, which refuses large tables.
"""

import argparse
import math
import time

import numpy as np

from skldp.learning._answer_scores import code_scores
from skldp.mechanisms import RandomizedResponse, noise_from
from skldp.mechanisms.categorical._frequency import project_onto_simplex
from skldp.mechanisms.categorical._hadamard import HadamardResponse
from skldp.mechanisms.categorical._local_hashing import LocalHashing
from skldp.mechanisms.categorical._unary import SubsetSelection, UnaryEncoding

KINDS = RandomizedResponse, LocalHashing, HadamardResponse, SubsetSelection, UnaryEncoding
MOST_BITS = 4096


def reports(mechanism, codes, seed):
    """Answers of a law as a collector holds them."""
    noise = noise_from(np.random.default_rng([seed, 1]))
    parts = []
    for block in np.array_split(codes, -(-len(codes) // 20_000)):
        rows = mechanism.release(block[:, None], noise).rows
        parts.append(np.packbits(rows, axis=1) if rows.shape[1] > 1 else rows[:, 0].astype(np.uint32))
    return np.concatenate(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--categories", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--only", default="")
    parser.add_argument("--old", action="store_true")
    asked = parser.parse_args()
    if asked.old:
        from skldp.learning._answer_scores import likeliest_codes
    else:
        from skldp.collection._likeliest import likeliest_codes
    print(
        f"{'':20}{'people':>10}{'categories':>11}{'epsilon':>8}{'projected':>11}{'likeliest':>11}{'ratio':>7}{'seconds':>9}"
    )
    for n in asked.people:
        for k in asked.categories:
            population = 1 / np.arange(1, k + 1)
            codes = np.random.default_rng(k).choice(k, n, p=population / population.sum())
            truth = np.bincount(codes, minlength=k) / n
            for epsilon in asked.epsilon:
                for kind in KINDS:
                    if asked.only not in kind.__name__ or (kind in KINDS[3:] and k > MOST_BITS):
                        continue
                    law = (mechanism := kind(epsilon, k)).integer_law
                    answers = reports(mechanism, codes, 0)
                    raw = code_scores(law).sums(answers, np.ones(n))[0] / n
                    projected = ((project_onto_simplex(raw[None])[0] - truth) ** 2).sum()
                    begun = time.process_time()
                    try:
                        likeliest = ((likeliest_codes(law, answers) - truth) ** 2).sum()
                    except ValueError:
                        likeliest = math.nan
                    took = time.process_time() - begun
                    line = f"{kind.__name__:20}{n:10,}{k:11,}{epsilon:8g}{projected:11.3g}{likeliest:11.3g}"
                    print(f"{line}{likeliest / projected:7.2f}{took:9.2f}", flush=True)


if __name__ == "__main__":
    main()
