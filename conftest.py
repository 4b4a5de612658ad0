"""What all tests and doctests share."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_open_figures():
    """Close what a test drew: a figure left open makes a later change of matplotlib's backend warn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
