"""Compare BitRand with plain numpy: time, ratio, lower bound and peak memory, in one process.

    python benchmarks/bitrand.py --rows 5000 --features 768 --bits 10
    python benchmarks/bitrand.py --waits                   # what people wait for, as ratios: fits, small fits, sizes
    PYTHONPATH=../other python benchmarks/bitrand.py --waits    # another checkout

Plain numpy draws one uniform number for every bit, an array of shape (rows, features, bits). The lower bound is one
copy of the rows and two random bytes for every feature. If numba is installed, the release is measured with numpy and
with compiled code, alternating with the lower bound.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
import warnings

import numpy as np
from measure import load, numpy_steps
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import skldp
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


FIRST_FITS = {
    "TargetPrivatizer": "skldp.TargetPrivatizer(1.0, bounds=(0, 1)), X[:, 0]",
    "mechanism='best'": "skldp.NumericPrivatizer(1.0, mechanism='best'), X",
    "debias=True": "skldp.BitRandTransformer(1.0, calibration='exact', debias=True), X",
}
# scikit-learn's own first fit imports its callbacks.
FIRST = """
import time, warnings, numpy as np, sklearn.preprocessing, skldp
warnings.simplefilter("ignore")
X = np.random.default_rng(0).uniform(0, 1, (10, 5))
sklearn.preprocessing.StandardScaler().fit(X)
estimator, given = {}
start = time.process_time()
estimator.fit(given)
print(time.process_time() - start)
"""


def ratio(call, other, timer, repeats=15):
    """Medians of a call and of another one that take turns: the ratio, and milliseconds of the first."""
    call(), other()
    times = []
    for _ in range(repeats):
        at = [timer()]
        for one in (call, other):
            one()
            at.append(timer())
        times.append(np.diff(at))
    one, two = np.median(times, axis=0)
    return one / two, one * 1e3


def waits():
    """Print the time of each call over that of what it is compared with: medians of processor time, one thread."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    print(f"skldp of {os.path.dirname(skldp.__file__)}, {load()}\n{'':58}{'ratio':>9}{'ms':>11}")
    for n in (10**4, 10**6, 10**7):
        X = rng.uniform(-1, 1, (n // 1000, 1000)).astype(np.float32)
        out, mechanism = np.empty_like(X), bitrand(1.0, (-np.ones(1000), np.ones(1000)))

        def release(X=X, out=out, mechanism=mechanism):
            mechanism.release(X, noise_from(), out)

        def floor(X=X, out=out):
            out[:] = X
            noise_from().words(X.shape, np.uint16)

        if compiled_loops() is not None:
            row(f"BitRand over copy and 2 random bytes, {n:,} numbers", *ratio(release, floor, time.process_time))
        with numpy_steps():
            row(f"the same, numpy's steps, {n:,} numbers", *ratio(release, floor, time.process_time))
    X, one, two = (np.repeat(X, 2, axis=0), *(skldp.BitRandTransformer(1.0, n_jobs=n).fit(X) for n in (1, 2)))
    row(
        "2 threads: 1 thread's time over theirs (clock)",
        *ratio(lambda: one.transform(X), lambda: two.transform(X), time.perf_counter, 7),
    )
    for d in (10**6, 10**7):
        X = rng.uniform(-1, 1, (1, d)).astype(np.float32)
        for calibration in ("published", "exact"):
            name = f"fit over transform, {calibration}, {d:,} features"
            row(name, *fit_over_transform(skldp.BitRandTransformer(1.0, calibration=calibration), X))
    for d in (1000, 4000):
        X, low = rng.uniform(-1, 1, (1, d)), rng.uniform(-1, 0, d)
        own = skldp.BitRandTransformer(1.0, calibration="exact", bounds=(low, low + 1))
        row(f"fit over transform, exact, {d:,} bounds", *fit_over_transform(own, X))
    few = rng.uniform(-1, 1, (10, 5))
    for name, estimator in {
        "BitRand": skldp.BitRandTransformer(1.0),
        "exact": skldp.BitRandTransformer(1.0, calibration="exact"),
        "table": skldp.TablePrivatizer(1.0),
    }.items():
        row(f"10 rows, fit and transform, over StandardScaler: {name}", *over_scaler(estimator, few, [1.0] * 62))
        row(f"the same, another epsilon in each fit: {name}", *over_scaler(estimator, few, np.linspace(0.5, 2, 32)))
    for name, made in FIRST_FITS.items():
        first = [sys.executable, "-c", FIRST.format(made)]
        seconds = [float(subprocess.run(first, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
        row(f"first fit in a process: {name}", float("nan"), statistics.median(seconds) * 1e3)


def fit_over_transform(estimator, X):
    """Ratio of a fit to another epsilon and a transform, and milliseconds of the fit."""
    left, fitted = iter(np.linspace(1, 2, 6)), clone(estimator).fit(X)
    calls = lambda: estimator.set_params(epsilon=next(left)).fit(X), lambda: fitted.transform(X)
    return ratio(*calls, time.process_time, 5)


def over_scaler(estimator, X, epsilons):
    """Ratio of fit and transform of an estimator and of StandardScaler, and milliseconds of the first."""
    left, scaler = iter(epsilons), StandardScaler()
    return ratio(
        lambda: estimator.set_params(epsilon=next(left)).fit(X).transform(X),
        lambda: scaler.fit(X).transform(X),
        time.process_time,
        len(epsilons) - 1,
    )


def row(name, times, milliseconds):
    print(f"{name:58}{times:9.1f}{milliseconds:11.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--bits", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--calibration", choices=["published", "exact"], default="published")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--waits", action="store_true")
    options = parser.parse_args()
    if options.waits:
        waits()
        return

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
