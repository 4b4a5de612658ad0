"""Two threads beside one: BitRand with numpy's steps and with compiled ones, and what the machine itself gives.

    python benchmarks/threads.py --rows 49152 --features 768

Every case runs once with one thread and once with two in each round, so that other work disturbs both. The ceiling is
SHA-256, which needs neither memory nor the interpreter's lock: on virtual cores it is often far from 2. `release`
writes into an array that exists; `transform` also checks its input, in one thread, and makes its output.
"""

import argparse
import hashlib
import time
import warnings
from threading import Thread

import numpy as np
from measure import load, numpy_steps

from skldp import BitRandTransformer
from skldp.mechanisms._bits.kernels import compiled_loops

BYTES = bytes(1 << 24)


def hash_twice(n_threads):
    if n_threads == 1:
        hashlib.sha256(BYTES)
        hashlib.sha256(BYTES)
        return
    threads = [Thread(target=hashlib.sha256, args=(BYTES,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def with_numpy(call):
    def patched(n_threads):
        with numpy_steps():
            call(n_threads)

    return patched


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=49_152)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    X = np.random.default_rng(0).uniform(-1, 1, (options.rows, options.features)).astype(np.float32)
    out = np.empty_like(X)
    estimator = {n: BitRandTransformer(1.0, n_jobs=n).fit(X[:1]) for n in (1, 2)}

    def release(n_threads):
        estimator[n_threads]._release(X, out)

    def transform(n_threads):
        estimator[n_threads].transform(X)

    cases = {
        "ceiling: SHA-256": hash_twice,
        "release, numpy": with_numpy(release),
        "transform, numpy": with_numpy(transform),
    }
    if compiled_loops() is not None:
        cases |= {"release, compiled": release, "transform, compiled": transform}
    seconds = {case: {1: [], 2: []} for case in cases}
    for round_ in range(options.repeats + 1):
        for case, call in cases.items():
            for n_threads in (1, 2):
                start = time.perf_counter()
                call(n_threads)
                if round_:
                    seconds[case][n_threads].append(time.perf_counter() - start)
    print(f"{options.rows:,} x {options.features} float32; {load()}")
    print(f"{'milliseconds, least and median':32}{'one thread':>18}{'two threads':>18}   times as fast")
    for case, runs in seconds.items():
        least, median = ({n: pick(times) for n, times in runs.items()} for pick in (min, np.median))
        cells = "".join(f"{least[n] * 1e3:>9.1f}{median[n] * 1e3:>9.1f}" for n in (1, 2))
        print(f"{case:32}{cells}   {least[1] / least[2]:.2f} and {median[1] / median[2]:.2f}")


if __name__ == "__main__":
    main()
