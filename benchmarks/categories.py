"""Frequencies of many categories: the L1 error, seconds and report size beside pure-LDP's and multi-freq-ldpy's.

    python benchmarks/categories.py
    python benchmarks/categories.py --categories 64 --people 20000 --epsilon 2 --runs 5
    python benchmarks/categories.py --people 1000000 --runs 1 --only skldp

All sides run in one process, on the same people, who are drawn from a Zipf law (exponent 1) over all categories. `raw`
is the L1 distance to the people's own frequencies of what a library gives, `projected` that of its nearest point of the
probability simplex, which is one and the same function for all; mean and worst of the runs. multi-freq-ldpy clips and
normalises what it gives. Seconds are of all releases and of one estimate, the least of the runs, for each million
reports: those of the people times a million over how many they are. Libraries that are not installed are left out:
`pip install pure-ldp statsmodels bitarray "xxhash<4" numba`, of which pure-ldp does not name the second, and
`pip install --no-deps multi-freq-ldpy==0.2.5`.
"""

import argparse
import statistics
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import (
    HadamardResponse,
    LocalHashing,
    OneHotRandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
    estimate_frequencies,
    noise_from,
)
from skldp.mechanisms._categorical.frequency import project_onto_simplex


def own_sides(epsilon, k):
    """Ours: what releases codes, and what makes frequencies of it."""
    one_hot = {
        "k-RR": OneHotRandomizedResponse(epsilon, k),
        "SUE": UnaryEncoding(epsilon, k, "sue"),
        "OUE": UnaryEncoding(epsilon, k, "oue"),
        "subset selection": SubsetSelection(epsilon, k),
    }
    reports = {"local hashing": LocalHashing(epsilon, k), "Hadamard response": HadamardResponse(epsilon, k)}

    def of_bits(law, released):
        return estimate_frequencies(released.sum(axis=0), len(released), law.p, law.q)

    for name, law in {**one_hot, **reports}.items():
        estimate = partial(of_bits, law) if name in one_hot else law.estimate_frequencies
        yield f"skldp {name}", law.report_bits, partial(released_by, law), lambda rows, e=estimate: e(rows).frequencies


def released_by(law, codes, seed):
    """One release a person."""
    return law.release(codes[:, None], noise_from(seed)).rows


def pure_ldp_sides(epsilon, k):
    """Those of pure-LDP, one call a person."""
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    def index(item):
        return item

    def hashing(reports):
        server = LHServer(epsilon, k, use_olh=True, index_mapper=index)
        for report in reports:
            server.aggregate(report)
        return np.array([server.estimate(item, suppress_warnings=True) for item in range(k)]) / len(reports)

    client = LHClient(epsilon, k, use_olh=True, index_mapper=index)
    yield "pure-LDP local hashing", None, lambda codes, seed: [client.privatise(int(x)) for x in codes], hashing
    hadamard = HadamardResponseServer(epsilon, k, index_mapper=index)
    answering = HadamardResponseClient(epsilon, k, hadamard.get_hash_funcs(), index_mapper=index)

    def response(reports):
        server = HadamardResponseServer(epsilon, k, index_mapper=index)
        for report in reports:
            server.aggregate(report)
        return np.array([server.estimate(item, suppress_warnings=True) for item in range(k)]) / len(reports)

    yield "pure-LDP Hadamard response", None, lambda codes, seed: [answering.privatise(int(x)) for x in codes], response


def multi_freq_sides(epsilon, k):
    """Those of multi-freq-ldpy, one call a person."""
    # numba, which it needs, looks for the package coverage, which is not the script of that name beside this one.
    sys.path = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client

    for name, client, aggregate in (
        ("local hashing", LH_Client, LH_Aggregator_MI),
        ("subset selection", SS_Client, SS_Aggregator_MI),
    ):
        yield (
            f"multi-freq-ldpy {name}",
            None,
            lambda codes, seed, client=client: [client(int(x), k, epsilon) for x in codes],
            lambda reports, aggregate=aggregate: aggregate(reports, k, epsilon),
        )


def all_sides(epsilon, k, begins):
    """Every side that is installed, and whose name begins so."""
    for sides in (own_sides, pure_ldp_sides, multi_freq_sides):
        try:
            yield from (side for side in sides(epsilon, k) if side[0].startswith(begins))
        except ImportError as error:
            print(f"left out: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--categories", type=int, default=1024)
    parser.add_argument("--people", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="sides whose name begins so")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    k, n = options.categories, options.people
    law = 1 / np.arange(1, k + 1)
    law /= law.sum()
    print(
        f"epsilon {options.epsilon}, {k} categories, {n} people, {options.runs} runs, seeds from 0; s a million reports"
    )
    print(
        f"{'':34}{'bits':>6}{'raw L1':>9}{'worst':>8}{'projected':>11}{'worst':>8}{'release s':>11}{'estimate s':>12}"
    )
    for name, bits, release, estimate in all_sides(options.epsilon, k, options.only):
        raw, projected, seconds = [], [], []
        for run in range(options.runs):
            codes = np.random.default_rng(run).choice(k, n, p=law)
            truth = np.bincount(codes, minlength=k) / n
            start = time.perf_counter()
            released = release(codes, run)
            middle = time.perf_counter()
            found = np.asarray(estimate(released), dtype=float)
            seconds.append((middle - start, time.perf_counter() - middle))
            raw.append(np.abs(found - truth).sum())
            projected.append(np.abs(project_onto_simplex(found[None])[0] - truth).sum())
        releasing, estimating = np.min(seconds, axis=0) * 1e6 / n
        print(
            f"{name:34}{'' if bits is None else bits:>6}{statistics.mean(raw):9.3f}{max(raw):8.3f}"
            f"{statistics.mean(projected):11.3f}{max(projected):8.3f}{releasing:11.3f}{estimating:12.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
