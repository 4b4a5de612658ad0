"""Compare every release with plain numpy, a lower bound and other libraries: medians of several runs in one process.

    python benchmarks/run.py                                   # about a minute
    python benchmarks/run.py --rows 5000 --features 768 --bits 10 --growth

The lower bound is a copy of the input and the random bytes of the mechanism (2 or 8 a number).
Other libraries are measured if installed: diffprivlib and OpenDP for numbers, pure-ldp and multi-freq-ldpy for
categories.
The other files of this directory each measure one subject in detail.
"""

import argparse
import importlib
import warnings

import numpy as np
from bitrand import plain_equations, plain_integers
from measure import load, median_seconds, numpy_steps, peak_mib
from mechanisms import of_diffprivlib, of_opendp
from sklearn.random_projection import GaussianRandomProjection
from sklearn.utils import check_array

from skldp.estimators._bitrand import BitRandTransformer
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._labels import LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._vector import PrivUnitTransformer
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms.bits._mask_sampling import compiled_loops
from skldp.mechanisms.numeric._bounded_features import make_mechanism


class Table:
    """Prints one line a case, with what it costs beside something else."""

    def __init__(self, repeats):
        self.repeats = repeats
        print(f"{'case':<58}{'clock':>9}{'cpu':>9}{'least':>9}{'MiB':>8}   beside")

    def add(self, name, call, beside=None, memory=True):
        """Measure a call, print it, and give its least processor seconds; `beside` maps names to seconds."""
        *medians, least = median_seconds(call, self.repeats)
        peak = f"{peak_mib(call):8.1f}" if memory else f"{'':8}"
        ratios = "; ".join(f"{other / least:,.3g} x {label}" for label, other in (beside or {}).items())
        times = "".join(f"{seconds * 1e3:>9.2f}" for seconds in (*medians, least))
        print(f"{name:<58}{times}{peak}   {ratios}", flush=True)
        return least


def floor_of(X, n_bytes):
    out = np.empty_like(X)

    def call():
        np.copyto(out, X)
        noise_from().words(X.size, f"u{n_bytes}")

    return call


def bits(table, options):
    X = np.random.default_rng(0).uniform(-1, 1, (options.rows, options.features)).astype(np.float32)
    estimator = BitRandTransformer(1.0, n_bits=options.bits).fit(X)
    law = estimator.mechanism_.laws[0].error_probabilities[0]
    rng = np.random.default_rng(1)
    size = f"{options.rows:,} x {options.features} x {options.bits}"
    floor = table.add(f"floor: copy, 2 random bytes ({size})", floor_of(X, 2))
    printed = table.add("BitRand, plain numpy, (n, r, l) array, as printed", lambda: plain_equations(X, law, rng))
    shifts = table.add("BitRand, plain numpy, (n, r, l) array, shifts", lambda: plain_integers(X, law, rng))
    beside = {"faster than as printed": printed, "than shifts": shifts, "of its time is the floor": floor}
    with numpy_steps():
        table.add("BitRandTransformer.transform, numpy's steps", lambda: estimator.transform(X), beside)
    if compiled_loops() is None:
        print("  (numba is not installed: all that follows takes numpy's steps)")
    table.add("BitRandTransformer.transform", lambda: estimator.transform(X), beside)
    table.add("BitRandTransformer.fit_transform", lambda: estimator.fit_transform(X), beside)
    exact = BitRandTransformer(50.0, n_bits=options.bits, calibration="exact", n_sampled_features="all").fit(X)
    table.add("the same, calibration='exact'", lambda: exact.transform(X), beside)
    exact = BitRandTransformer(50.0, n_bits=options.bits, calibration="exact", debias=True).fit(X)
    table.add("the same, calibration='exact', debias=True", lambda: exact.transform(X), beside)


def numbers(table, options):
    X = np.random.default_rng(0).uniform(-1, 1, (options.rows, options.features))
    few = X[:64]
    peers = {}
    for ask in (of_diffprivlib, of_opendp):
        found, note = ask(few)
        print(f"  ({note})")
        for rows in found.values():
            peers.update((label, 1 / (rate * 1e6)) for label, rate in rows)
    floors = {n: table.add(f"floor: copy, {n} random bytes, float64", floor_of(X, n)) for n in (2, 8)}
    for name in ("duchi", "three_outputs", "piecewise", "laplace"):
        mechanism = make_mechanism(name, 1.0, 1, 0.0)
        floor = floors[2 if name == "duchi" else 8]
        beside = {"of its time is the floor": floor} | {label: each * X.size for label, each in peers.items()}
        each, out = X.reshape(-1, 1), np.empty((X.size, 1))
        table.add(
            f"{name}, each number", lambda m=mechanism, each=each, out=out: m.release(each, noise_from(), out), beside
        )
    estimator = NumericPrivatizer(1.0, mechanism="duchi").fit(X)
    table.add("NumericPrivatizer('duchi').transform, samples features", lambda: estimator.transform(X))


def vectors(table, options):
    X = np.random.default_rng(0).standard_normal((4 * options.rows, options.features), dtype=np.float32)
    ours = RandomProjectionPrivatizer(5.0).fit(X[:2])
    plain = GaussianRandomProjection(ours.n_components_, random_state=0).fit(X[:2])
    phi, out = ours.components_.T, np.empty((len(X), ours.n_components_), dtype=np.float32)

    def least():
        check_array(X, dtype=np.float32)
        np.matmul(X, phi, out=out)
        noise_from().words(out.size, np.uint32)

    floor = table.add(f"floor: check, product, 4 random bytes, {len(X):,} rows", least)
    bare = table.add("scikit-learn's projection.transform, no noise", lambda: plain.transform(X))
    fitted = table.add("scikit-learn's projection.fit_transform, no noise", lambda: plain.fit_transform(X))
    beside = {"of its time without noise": bare, "of its time is the floor": floor}
    table.add("RandomProjectionPrivatizer.transform", lambda: ours.transform(X), beside)
    beside = {"of its time without noise": fitted}
    table.add("RandomProjectionPrivatizer.fit_transform", lambda: ours.fit_transform(X), beside)
    few = X[: options.rows]
    floor = table.add(f"floor: copy, 8 random bytes, {options.rows:,} rows", floor_of(few, 8))
    unit = PrivUnitTransformer(5.0).fit(few)
    table.add("PrivUnitTransformer.transform", lambda: unit.transform(few), {"of its time is the floor": floor})


def labels(table, options):
    y = np.random.default_rng(0).integers(10, size=options.labels)
    names = np.arange(10)
    estimator = LabelRR(1.0, classes=names).fit(y)
    floor = table.add(f"floor: copy, 2 random bytes, {options.labels:,} labels", floor_of(y, 2))

    rng = np.random.default_rng(1)

    def plain():
        keep = rng.random(y.size) < np.e / (np.e + 9)
        return np.where(keep, y, (y + rng.integers(1, 10, y.size)) % 10)

    numpy_way = table.add("k-RR of labels, plain numpy", plain)
    beside = {"faster than plain": numpy_way, "of its time is the floor": floor}
    table.add("LabelRR.transform, 10 classes", lambda: estimator.transform(y), beside)
    column = y[: options.labels // 10, None]
    peers = {}
    some = column[:2000, 0].tolist()
    if (oracle := peer("multi_freq_ldpy.pure_frequency_oracles.GRR")) is not None:
        each = median_seconds(lambda: [oracle.GRR_Client(v, 10, 1.0) for v in some], 3)[-1]
        peers["multi-freq-ldpy GRR"] = each / len(some)
    if (oracle := peer("pure_ldp.frequency_oracles.direct_encoding")) is not None:
        client = oracle.DEClient(epsilon=1.0, d=10)
        peers["pure-ldp DE"] = median_seconds(lambda: [client.privatise(v + 1) for v in some], 3)[-1] / len(some)
    print(f"  (frequency peers here: {', '.join(peers) or 'none'})")
    for mechanism in ("krr", "oue"):
        encoder = CategoricalPrivatizer(1.0, mechanism=mechanism, categories=[names]).fit(column)
        beside = {label: each * len(column) for label, each in peers.items()}
        table.add(
            f"CategoricalPrivatizer('{mechanism}'), {len(column):,}", lambda e=encoder: e.transform(column), beside
        )


def peer(name):
    """Another library's module; None, and a line that says so, where it does not import."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"  ({name.split('.')[0]} does not import here: {error})")
        return None


def growth(options):
    """Time and memory against n, d and n_bits, each doubled four times, and the fitted exponents."""
    print("\ncost growth of BitRandTransformer.transform, numpy's steps (exponent e: cost ~ size^e)")
    base = {"rows": 1000, "features": 128, "bits": 10}
    ladders = {"rows": [4000, 8000, 16000, 32000], "features": [128, 256, 512, 1024], "bits": [4, 8, 12, 16, 32, 64]}
    for name, ladder in ladders.items():
        times, peaks = [], []
        for size in ladder:
            now = base | {name: size}
            X = np.random.default_rng(0).uniform(-1, 1, (now["rows"], now["features"])).astype(np.float32)
            estimator = BitRandTransformer(1.0, n_bits=now["bits"], calibration="exact", n_sampled_features="all")
            estimator.fit(X)
            times.append(median_seconds(lambda e=estimator, X=X: e.transform(X), options.repeats)[-1] * 1e3)
            peaks.append(peak_mib(lambda e=estimator, X=X: e.transform(X)) - X.nbytes / 2**20)
        exponent = np.polyfit(np.log(ladder), np.log(times), 1)[0]
        cells = ", ".join(f"{s:,}: {t:.2f} ms {p:.1f} MiB" for s, t, p in zip(ladder, times, peaks, strict=True))
        print(f"{name:<9} e = {exponent:4.2f}   {cells}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--bits", type=int, default=10)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--growth", action="store_true", help="also the table of cost growth")
    parser.add_argument("--only", choices=["bits", "numbers", "vectors", "labels"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "milliseconds; the least processor time decides the ratios; MiB is the most allocated, output included; "
        + load()
    )
    table = Table(options.repeats)
    for name, part in {"bits": bits, "numbers": numbers, "vectors": vectors, "labels": labels}.items():
        if options.only in (None, name):
            part(table, options)
    if options.growth:
        with numpy_steps():
            growth(options)
    print(load())


if __name__ == "__main__":
    main()
