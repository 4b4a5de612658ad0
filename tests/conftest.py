"""Tests that are the same in every run: fixed examples, and fixed noise where a test judges what unseeded code draws.

``pytest`` is the same on every run. ``pytest -m statistical`` draws fresh hypothesis examples for the long tests, and
``pytest --hypothesis-profile fresh`` for all. What either finds is kept as an ``@example`` or a test of its own.
"""

import hashlib
import itertools
import os

import pytest
from hypothesis import settings

from skldp.mechanisms import _noise as randomness

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("fresh", derandomize=False, deadline=None, database=None, print_blob=True)
settings.load_profile("fixed")


def pytest_configure(config):
    chosen = config.getoption("--hypothesis-profile", None)
    long = config.option.markexpr.strip() == "statistical"
    settings.load_profile(chosen or ("fresh" if long else "fixed"))


class FixedKeys:
    """The module `os` as the noise sees it, with keys that come from a counter."""

    def __init__(self):
        self._numbers = itertools.count()

    def __getattr__(self, name):
        return getattr(os, name)

    def urandom(self, n):
        return hashlib.shake_256(b"fixed key %d" % next(self._numbers)).digest(n)


@pytest.fixture
def fixed_noise(monkeypatch):
    """Key every stream of this process from a counter: a test that compares with a threshold cannot fail by chance."""
    monkeypatch.setattr(randomness, "os", FixedKeys())
