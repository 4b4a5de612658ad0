"""What it costs to make releases repeatable: rows in blocks and one record on a device, with a secret and without.

``python benchmarks/keyed.py`` prints the table; `repeats` as an argument, 5 by default. Both sides run in turns in one
process; the least processor time of each, and their ratio.
"""

import sys
import time

import numpy as np

from skldp import (
    BitRandTransformer,
    FieldKey,
    LabelRR,
    NumericPrivatizer,
    PrivUnitTransformer,
    ReleaseKey,
    release_blocks,
)
from skldp.client import CategoryField, NumberField, Policy
from skldp.mechanisms import Hybrid, RandomizedResponse, integer_law

KEY = ReleaseKey(bytes(range(100, 132)))
RNG = np.random.default_rng(0)
N_RECORDS = 2000


def cases():
    """Names with two calls each: fresh, and bound to a secret."""
    wide, narrow = RNG.uniform(-1, 1, (2_000, 768)).astype(np.float32), RNG.uniform(-1, 1, (100_000, 4))
    labels = RNG.integers(0, 10, 100_000)
    tables = {
        "BitRand, 2,000 x 768": (BitRandTransformer(5.0, calibration="exact"), wide),
        "PrivUnit, 2,000 x 768": (PrivUnitTransformer(5.0), wide),
        "numbers, 100,000 x 4": (NumericPrivatizer(2.0), narrow),
        "labels, 100,000": (LabelRR(1.0, classes=range(10)), labels),
    }
    for name, (estimator, X) in tables.items():
        yield name, *_pair(estimator.fit(X[:1]), X)
    fields = (
        NumberField("age", 0.0, 120.0, integer_law(Hybrid(1.0))),
        CategoryField("city", ("Bonn", "Ulm", None), integer_law(RandomizedResponse(1.0, 3))),
    )
    policy, record = Policy("a survey", fields), {"age": 37.5, "city": "Bonn"}
    permanent = policy.permanent()

    def fresh():
        for _ in range(N_RECORDS):
            policy.release(record)

    def kept():
        for _ in range(N_RECORDS):
            permanent.release(record, secret=KEY)

    yield f"a device, {N_RECORDS:,} records", fresh, kept


def _pair(estimator, X):
    empty = estimator._empty_release(0, X.dtype)
    out, ids = np.empty((len(X), *empty.shape[1:]), dtype=empty.dtype), np.arange(len(X))
    key = FieldKey(KEY, "a field")
    return lambda: release_blocks(estimator, X, out), lambda: release_blocks(
        estimator, X, out, release_key=key, ids=ids
    )


def main(repeats: int) -> None:
    print(f"{'':28} fresh ms  keyed ms  ratio")
    for name, *calls in cases():
        least = [float("inf")] * 2
        for _ in range(repeats):
            for side, call in enumerate(calls):
                start = time.process_time()
                call()
                least[side] = min(least[side], 1e3 * (time.process_time() - start))
        print(f"{name:28} {least[0]:8.1f} {least[1]:9.1f} {least[1] / least[0]:6.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
