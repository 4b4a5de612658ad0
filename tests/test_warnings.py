"""Warnings are of the line that called the package, so that Python's filters show them once for each such line."""

import gc
import warnings
import weakref

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skldp
from skldp.exceptions import (
    LearntDomainWarning,
    OutOfDomainWarning,
    PrivacyGuaranteeWarning,
    SeededNoiseWarning,
)

X, y = np.array([[0.5], [9.0], [0.1], [0.2]]), np.array([0, 1, 0, 1])
EXACT = skldp.BitRandTransformer(2.0, calibration="exact")
CALLS = {
    "transform": (OutOfDomainWarning, lambda: EXACT.fit(X).transform(X)),
    "fit_transform": (OutOfDomainWarning, lambda: EXACT.fit_transform(X)),
    "in a pipeline": (OutOfDomainWarning, lambda: make_pipeline(EXACT, LogisticRegression()).fit(X, y)),
    "block by block": (OutOfDomainWarning, lambda: skldp.release_blocks(EXACT.fit(X), X, np.empty_like(X))),
    "numbers": (OutOfDomainWarning, lambda: skldp.NumericPrivatizer(1.0).fit_transform(X)),
    "published": (PrivacyGuaranteeWarning, lambda: skldp.BitRandTransformer().fit(X)),
    "seeded": (SeededNoiseWarning, lambda: skldp.LabelRR(1.0, classes=[0, 1], seed=0).fit_transform(y)),
    "learnt labels": (LearntDomainWarning, lambda: skldp.LabelRR(1.0).fit_transform(y)),
    "learnt categories": (LearntDomainWarning, lambda: skldp.CategoricalPrivatizer(1.0).fit(y[:, None])),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_is_of_the_callers_line(name):
    category, call = CALLS[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    ours = [warning for warning in caught if warning.category is category]
    assert len(ours) == 1
    assert ours[0].filename == __file__


class Rows(np.ndarray):
    """Of which a weak reference can be kept, unlike of numpy's own."""


def warned_of():
    rows = X.copy().view(Rows)
    EXACT.fit_transform(rows)
    return weakref.ref(rows)


def test_a_warning_keeps_nobodys_rows():
    gc.collect()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert warned_of()() is None
    finally:
        gc.enable()
