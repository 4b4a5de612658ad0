"""What all tests and doctests share."""

import gc
import os
import sys

# Two tests at once, each with a thread for every core, wait for each other: this must stand before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector off while tests are collected, and then off what they are: none of it is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def no_open_figures():
    """Close what a test drew: a figure left open makes a later change of matplotlib's backend warn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
