"""Measure the time of each release with pytest-benchmark, which saves the times and compares them.

    python -m pytest benchmarks/bench_releases.py --benchmark-autosave
    python -m pytest benchmarks/bench_releases.py --benchmark-compare --benchmark-compare-fail=min:10%

run.py compares the same releases with a lower bound and with other libraries.
"""

import time

import numpy as np
import pytest

from skldp import (
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelRR,
    NumericPrivatizer,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
)

BITS = {"n_bits": 10, "calibration": "exact"}
ESTIMATORS = {
    "bitrand": BitRandTransformer(1.0, **BITS),
    "bitrand, all features": BitRandTransformer(50.0, n_sampled_features="all", **BITS),
    "bitrand, unbiased": BitRandTransformer(50.0, debias=True, **BITS),
    **{name: NumericPrivatizer(1.0, mechanism=name) for name in ("duchi", "three_outputs", "piecewise", "laplace")},
    "privunit": PrivUnitTransformer(5.0),
    "projection": RandomProjectionPrivatizer(5.0, sensitivity="spectral"),
}
pytestmark = [
    pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, disable_gc=True),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning"),
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows(name, benchmark):
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 768)).astype(np.float32)
    benchmark(ESTIMATORS[name].fit(X).transform, X)


def test_labels(benchmark):
    y = np.random.default_rng(0).integers(10, size=1_000_000)
    benchmark(LabelRR(1.0, classes=range(10)).fit(y).transform, y)


@pytest.mark.parametrize("mechanism", ["krr", "oue"])
def test_categories(mechanism, benchmark):
    column = np.random.default_rng(0).integers(10, size=(100_000, 1))
    encoder = CategoricalPrivatizer(1.0, mechanism=mechanism, categories=[np.arange(10)])
    benchmark(encoder.fit(column).transform, column)
