"""Helpers of the benchmarks: medians of several runs, peak memory, and the system load."""

import os
import time
import tracemalloc
from unittest.mock import patch

import numpy as np


def median_seconds(call, repeats=5):
    """Median seconds on the clock, and median and least processor seconds; the first run does not count.

    Other work on the machine lengthens the clock's seconds, and through shared caches and cores the processor's too:
    the least of these is what it disturbs least.
    """
    call()
    runs = []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        call()
        runs.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    clock, processor = np.array(runs).T
    return np.median(clock), np.median(processor), processor.min()


def peak_mib(call):
    """Most that Python and numpy allocate during one call, in MiB, whatever it returns included."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def numpy_steps():
    """A context in which releases do not run compiled, even where numba is installed."""
    return patch("skldp.mechanisms.bits._mask_sampling.compiled_loops", lambda: None)


def load():
    """Say how busy the machine is."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
