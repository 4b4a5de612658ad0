"""Each call warns once of each fault, also inside a pipeline, and each fit of a search warns for itself."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
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


def warned(category, call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if one.category is category]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_warns_once(name):
    assert len(warned(*CALLS[name])) == 1


def test_each_fit_of_a_search_warns_of_its_own_rows(fixed_noise):
    rows, classes = np.tile([[0.0], [2.0]], (12, 1)), np.arange(24) // 2 % 2
    model = make_pipeline(skldp.NumericPrivatizer(), LogisticRegression())
    search = GridSearchCV(model, {"numericprivatizer__epsilon": [1.0, 2.0]}, cv=3)
    texts = warned(OutOfDomainWarning, lambda: search.fit(rows, classes))
    counts = [text.partition(" lay outside")[0] for text in texts]
    # Two candidates on three splits: fit on 16 rows, predict on 8. The last fit is on all rows.
    assert counts == ["8 of 16 values (50.0%)", "4 of 8 values (50.0%)"] * 6 + ["12 of 24 values (50.0%)"]
