"""Compare BitRand with plain numpy: time, ratio, lower bound and peak memory, in one process.

    python benchmarks/bitrand.py --rows 5000 --features 768 --bits 10

Plain numpy draws one uniform number for every bit, an array of shape (rows, features, bits). The lower bound is one
copy of the rows and two random bytes for every feature. If numba is installed, the release is measured with numpy and
with compiled code, alternating with the lower bound.
"""

import argparse
import os
import time
import tracemalloc

import numpy as np
from measure import numpy_steps

from skldp.mechanisms import bitrand
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms.bits._mask_sampling import compiled_loops


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


def fastest(calls, repeats):
    """Least time on the clock, and of the processor, which other work disturbs less; every round runs each call."""
    clock, processor = ({name: [] for name in calls} for _ in range(2))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter(), time.process_time()
            call()
            clock[name].append(time.perf_counter() - start[0])
            processor[name].append(time.process_time() - start[1])
    return {name: np.array([min(clock[name]), min(processor[name])]) * 1e3 for name in calls}


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
        mechanism.release(X, noise_from(), out)

    def release_with_numpy():
        with numpy_steps():
            release()

    def floor():
        out[:] = X
        noise_from().words(X.shape, np.uint16)

    release()
    tracemalloc.start()
    release()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    flips = mechanism.laws[0].error_probabilities[0]
    rng = np.random.default_rng(1)
    plain = {
        "plain numpy, equations as printed": lambda: plain_equations(X, flips, rng),
        "plain numpy, shifts of integers": lambda: plain_integers(X, flips, rng),
    }
    ours = {"skldp, numpy's steps": release_with_numpy}
    if compiled_loops() is not None:
        ours["skldp, compiled steps"] = release
    least = fastest(plain, 3) | fastest({"floor, copy + 2 random bytes": floor} | ours, options.repeats)

    print(f"{options.rows:,} x {options.features} {options.dtype}, {options.bits} bits; {mechanism.guarantee()}")
    print("least milliseconds, and ratios          clock  processor")
    for name, (clock, processor) in least.items():
        print(f"{name:35s} {clock:9.1f}  {processor:9.1f}")
    for name in ours:
        for other in [*plain, "floor, copy + 2 random bytes"]:
            clock, processor = least[other] / least[name]
            print(f"{other:35s} {clock:9.3g}  {processor:9.3g}  x {name}")
    print(f"peak extra memory of the release {peak / 2**20:9.2f} MiB")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
