"""BitRand beside the plain numpy way: time, ratio, floor and peak memory, in one process.

    python benchmarks/bitrand.py --rows 5000 --features 768 --bits 10

The plain way draws one uniform number for every bit, an array of shape (rows, features, bits). The floor is what no
release can avoid: one copy of the rows and two random bytes for every feature.
"""

import argparse
import os
import time
import tracemalloc

import numpy as np

from skldp.mechanisms.bits.flip_mechanisms import bitrand
from skldp.mechanisms.randomness import noise_from


def plain_equations(X, flip_probabilities, rng):
    """Equations 1 and 2 as they are printed (m = 0): every bit from the number, then one uniform number a bit."""
    n_bits = len(flip_probabilities)
    places = np.arange(1, n_bits)
    magnitude = np.minimum(np.abs(X), 1 - 2.0 ** (1 - n_bits))
    bits = np.empty((*X.shape, n_bits))
    bits[..., 0] = X >= 0
    bits[..., 1:] = np.floor(2.0**places * magnitude[..., None]) % 2
    flipped = np.where(rng.random(bits.shape) < flip_probabilities, 1 - bits, bits)
    return (2 * flipped[..., 0] - 1) * (flipped[..., 1:] @ 2.0**-places)


def plain_integers(X, flip_probabilities, rng):
    """The same by shifts of integer codes, which is faster; still one uniform number a bit."""
    n_bits = len(flip_probabilities)
    places = np.arange(n_bits)
    magnitude = np.minimum(np.abs(X), 1 - 2.0 ** (1 - n_bits))
    codes = np.floor(magnitude * 2 ** (n_bits - 1)).astype(int) + (X >= 0) * 2 ** (n_bits - 1)
    bits = codes[..., None] >> places[::-1] & 1
    flipped = np.where(rng.random(bits.shape) < flip_probabilities, 1 - bits, bits)
    return (2 * flipped[..., 0] - 1) * (flipped[..., 1:] @ 2.0 ** -places[1:])


def fastest(call, repeats):
    """Least seconds on the clock, and least seconds of processor time, which other work disturbs less."""
    clock, processor = [], []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        call()
        clock.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    return np.array([min(clock), min(processor)]) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--bits", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--calibration", choices=["published", "exact"], default="published")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()

    shape = (options.rows, options.features)
    X = np.random.default_rng(0).uniform(-1, 1, shape).astype(options.dtype)
    bounds = (-np.ones(options.features), np.ones(options.features))
    mechanism = bitrand(
        options.epsilon, bounds, n_bits=options.bits, calibration=options.calibration, n_sampled_features="all"
    )
    out = np.empty_like(X)

    def release():
        mechanism.sample(X, noise_from(), out=out)

    def floor():
        out[:] = X
        noise_from().words(X.shape, np.uint16)

    release()
    tracemalloc.start()
    release()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    fast, least = fastest(release, options.repeats), fastest(floor, options.repeats)
    flips = mechanism.laws[0].error_probabilities[0]
    rng = np.random.default_rng(1)
    equations = fastest(lambda: plain_equations(X, flips, rng), 3)
    integers = fastest(lambda: plain_integers(X, flips, rng), 3)

    print(f"{options.rows:,} x {options.features} {options.dtype}, {options.bits} bits; {mechanism.guarantee()}")
    rows = {
        "plain numpy, equations as printed": equations,
        "plain numpy, shifts of integers": integers,
        "skldp, secure noise": fast,
        "floor, copy + 2 random bytes": least,
        "equations / skldp": equations / fast,
        "integers / skldp": integers / fast,
        "skldp / floor": fast / least,
    }
    print("least milliseconds, and ratios          clock  processor")
    for name, (clock, processor) in rows.items():
        print(f"{name:35s} {clock:9.1f}  {processor:9.1f}")
    print(f"peak extra memory of the release {peak / 2**20:9.2f} MiB")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
