"""Data that several studies of rounds learn from, and no figure left open."""

import sys

import pytest
from sklearn.datasets import load_digits, load_iris


@pytest.fixture(autouse=True)
def close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X / 8 - 1
    return X[:1200], y[:1200], X[1200:], y[1200:]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / 4
    return X[::2], y[::2], X[1::2], y[1::2]
