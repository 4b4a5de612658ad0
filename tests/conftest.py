"""Noise that is the same in every run, for tests that judge what unseeded code draws."""

import hashlib
import itertools
import os

import pytest

from skldp.mechanisms import randomness


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
