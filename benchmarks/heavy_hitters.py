"""Measure precision and recall of heavy hitters in a domain of 2^32 or 2^64 codes.

    python benchmarks/heavy_hitters.py
    python benchmarks/heavy_hitters.py --bits 64 --epsilons 2 --seeds 3 --kept 64 --candidates 65536

People are drawn from a Zipf law (exponent 1.5) over 100,000 codes, which are drawn anew from the whole domain for each
seed, and are divided at random into groups of the advised sizes. Mean and worst over the seeds: how many codes are
found, how many of them nobody has (false), precision (which of the m that are found are among the m most frequent of
all people), recall of the most frequent ten and twenty, how often an interval of what is found holds its share among
all people, and the share from which on a code is found. Seconds are of one run, of all groups.
"""

import argparse
import time
import warnings

import numpy as np

from skldp import HeavyHitters
from skldp.client import PrefixDomain
from skldp.collection._report_files import Found
from skldp.collection._report_tables import ReportColumns, answer_bytes
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import LocalHashing, RandomizedResponse, noise_from

# Of the population.
N_CODES, EXPONENT = 100_000, 1.5


def population(n_bits, n_people, rng):
    """The codes of all people, in random order."""
    codes = np.unique(rng.integers(0, 2**n_bits, 2 * N_CODES, dtype=np.uint64))
    codes = rng.permutation(codes)[:N_CODES]
    law = np.arange(1, N_CODES + 1) ** -EXPONENT
    return codes[rng.choice(N_CODES, n_people, p=law / law.sum())]


def reports_of(hitters, codes, seed):
    """One group's reports, by the mechanism for tables whose law is that of the task."""
    task = hitters.task
    place = {word: i for i, word in enumerate(task.candidates)}
    own = np.array([place.get(task.domain.prefix(int(code), task.length), len(place)) for code in codes])
    law = task.policy.fields[0].law
    made = [kind(hitters.epsilon, law.n_codes) for kind in (RandomizedResponse, LocalHashing)]
    mechanism = next(one for one in made if one.integer_law == law)
    answers = mechanism.release(own[:, None], noise_from(seed)).rows[:, 0]
    ids = np.random.default_rng([seed, 7]).integers(0, 256, (len(codes), 16)).astype(np.uint8)
    columns = ReportColumns(ids, (answers.astype(f"u{answer_bytes(law.n_answers)}"),))
    return Found(columns, 0, 0)


def run(options, epsilon, seed):
    """The figures of one seed."""
    rng = np.random.default_rng(seed)
    people = population(options.bits, options.people, rng)
    domain = PrefixDomain.of_bits(options.bits)
    hitters = HeavyHitters(
        domain,
        epsilon,
        "a test",
        n_kept=options.kept,
        n_candidates=options.candidates,
        false_positives=options.false_positives,
    )
    groups = np.split(people, np.rint(np.cumsum(hitters.group_shares)[:-1] * len(people)).astype(int))
    for i, group in enumerate(groups):
        hitters.collector._take(reports_of(hitters, group, 1000 * seed + i))
        hitters.close_round()
    codes, counts = np.unique(people, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shares = dict(zip(codes.tolist(), (counts / len(people)).tolist(), strict=True))
    found, ranked = set(hitters.found), codes[order].tolist()
    estimate = hitters.estimate()
    held = [
        low <= shares.get(int(label), 0.0) <= high
        for label, low, high in zip(estimate.labels, estimate.low, estimate.high, strict=True)
    ]
    return {
        "found": len(found),
        "false": sum(one not in shares for one in found),
        "precision": len(found & set(ranked[: len(found)])) / max(1, len(found)),
        "top 10": len(found & set(ranked[:10])) / 10,
        "top 20": len(found & set(ranked[:20])) / 20,
        "held": float(np.mean(held)) if held else 1.0,
        "least share": hitters.least_share,
    }, hitters


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kept", type=int, default=32)
    parser.add_argument("--candidates", type=int, default=4096)
    parser.add_argument("--false-positives", type=float, default=0.05)
    options = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print(f"codes of {options.bits} bits, {options.people:,} people, seeds 0 to {options.seeds - 1}: mean [worst]")
    for epsilon in options.epsilons:
        start = time.perf_counter()
        rows, hitters = zip(*(run(options, epsilon, seed) for seed in range(options.seeds)), strict=True)
        seconds = (time.perf_counter() - start) / options.seeds
        lengths = ", ".join(map(str, hitters[0].lengths))
        print(f"epsilon {epsilon:g}, prefixes of {lengths} bits, {seconds:.1f} s a run")
        for name in rows[0]:
            values = [row[name] for row in rows]
            worst = max(values) if name in ("false", "least share") else min(values)
            print(f"    {name:12}{np.mean(values):7.3f} [{worst:.3f}]", flush=True)


if __name__ == "__main__":
    main()
