"""Measure the throughput of numeric mechanisms, with diffprivlib and OpenDP for comparison.

All in one process, by its own processor time, the best of several runs. "each" releases every number with the whole
epsilon (the joint mechanisms: a row), "sampled" one number a row as NumericPrivatizer does; "others" are single numbers
and the ratio of "each" to them. Both are optional: without them the last line says so. diffprivlib releases one number
a call, so that it is given fewer; where its package does not import with the installed scikit-learn, its mechanisms
are imported alone.

Run ``python benchmarks/mechanisms.py``.
"""

import importlib
import importlib.util
import sys
import time
import types
import warnings

import numpy as np

from skldp.mechanisms._noise import noise_from
from skldp.mechanisms.numeric._bounded_features import (
    JOINT_MECHANISMS,
    NUMERIC_MECHANISMS,
    BoundedFeatures,
    make_mechanism,
    number_of_sampled_features,
)

EPSILON, DELTA, N_FEATURES = 1.0, 1e-5, 64
# What one block of a transformer holds.
N_ROWS = 32_768 // N_FEATURES
N_SCALAR_CALLS = 2_000


def million_a_second(release, n_numbers, n_runs=40):
    """Numbers released in a million a second of processor time, in the best run."""
    release()
    best = np.inf
    for _ in range(n_runs):
        start = time.process_time()
        release()
        best = min(best, time.process_time() - start)
    return n_numbers / best / 1e6


def diffprivlib_mechanisms():
    """Give diffprivlib.mechanisms, and how it was imported."""
    if importlib.util.find_spec("diffprivlib") is None:
        return None, "diffprivlib is not installed"
    try:
        return importlib.import_module("diffprivlib.mechanisms"), "diffprivlib imports"
    except ImportError as error:
        reason = f"diffprivlib does not import here ({error}); its mechanisms alone do"
    for name in [name for name in sys.modules if name.split(".")[0] == "diffprivlib"]:
        del sys.modules[name]
    package = types.ModuleType("diffprivlib")
    package.__path__ = list(importlib.util.find_spec("diffprivlib").submodule_search_locations)
    sys.modules["diffprivlib"] = package
    try:
        return importlib.import_module("diffprivlib.mechanisms"), reason
    except ImportError as error:
        return None, f"diffprivlib does not import here, nor do its mechanisms alone ({error})"


def of_diffprivlib(values):
    """Numbers a second of its scalar mechanisms, by the name of ours."""
    mechanisms, note = diffprivlib_mechanisms()
    if mechanisms is None:
        return {}, note
    alike = {
        "laplace": [
            ("Laplace", mechanisms.Laplace(epsilon=EPSILON, sensitivity=2.0)),
            ("Snapping", mechanisms.Snapping(epsilon=EPSILON, sensitivity=2.0, lower=-100.0, upper=100.0)),
        ],
        "gaussian": [("GaussianAnalytic", mechanisms.GaussianAnalytic(epsilon=EPSILON, delta=DELTA, sensitivity=2.0))],
    }
    few = values.ravel()[:N_SCALAR_CALLS].tolist()
    return {
        ours: [
            (f"diffprivlib {name}", million_a_second(lambda m=m: [m.randomise(x) for x in few], len(few), 3))
            for name, m in theirs
        ]
        for ours, theirs in alike.items()
    }, note


def of_opendp(values):
    """Numbers a second of its vector measurements, by the name of ours."""
    if importlib.util.find_spec("opendp") is None:
        return {}, "OpenDP is not installed"
    from importlib.metadata import version

    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    alike = {
        "laplace": dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=2 / EPSILON),
        "gaussian": dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=60.0),
    }
    numbers = values.ravel().tolist()
    return {
        ours: [("OpenDP vector", million_a_second(lambda m=m: m(numbers), len(numbers), 3))]
        for ours, m in alike.items()
    }, f"OpenDP {version('opendp')} imports"


def main():
    warnings.simplefilter("ignore")
    values = np.random.default_rng(0).uniform(-1, 1, (N_ROWS, N_FEATURES))
    others, notes = {}, []
    for ask in (of_diffprivlib, of_opendp):
        found, note = ask(values)
        notes.append(note)
        for ours, rows in found.items():
            others.setdefault(ours, []).extend(rows)
    # Neither has a two-valued mechanism for a number: beside it stands what they offer for the same task.
    others["duchi"] = others.get("laplace", [])

    noise = noise_from()
    copied = million_a_second(lambda: values + 0.0, values.size)
    drawn = million_a_second(lambda: noise.words(values.shape), values.size)
    print(f"{values.size:,} numbers in rows of {N_FEATURES}, epsilon {EPSILON}; million numbers a second")
    print(f"for scale: one copy {copied:,.0f}, one 64-bit word of noise a number {drawn:,.0f}\n")
    print(f"{'mechanism':<16}{'each':>9}{'sampled':>9}   others")
    ends = (-1.0,) * N_FEATURES, (1.0,) * N_FEATURES
    for name in NUMERIC_MECHANISMS:
        delta = DELTA if name == "gaussian" else 0.0
        mechanism = make_mechanism(name, EPSILON, N_FEATURES if name in JOINT_MECHANISMS else 1, delta)
        each = values.reshape(-1, mechanism.n_outputs)
        speed = million_a_second(lambda m=mechanism, each=each: m.release(each, noise), values.size)
        sampled = "-"
        if name not in JOINT_MECHANISMS:
            k = number_of_sampled_features("auto", name, EPSILON, N_FEATURES)
            rows = BoundedFeatures(make_mechanism(name, EPSILON, k), *ends, n_sampled=k, stated=EPSILON)
            sampled = f"{million_a_second(lambda m=rows: m.release(values, noise), values.size):,.0f}"
        beside = "; ".join(f"{label} {theirs:.3g} (x{speed / theirs:,.0f})" for label, theirs in others.get(name, []))
        print(f"{name:<16}{speed:>9.1f}{sampled:>9}   {beside}")
    print("\n" + "; ".join(notes))


if __name__ == "__main__":
    main()
