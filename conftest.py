"""What all tests and doctests share."""

import os
import sys

# Two tests at once, each with a thread for every core, wait for each other: this must stand before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest


@pytest.fixture(autouse=True)
def no_open_figures():
    """Close what a test drew: a figure left open makes a later change of matplotlib's backend warn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
