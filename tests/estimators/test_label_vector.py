"""LabelLaplaceVector: labels in, noisy one-hot rows out."""

import numpy as np
import pytest
from scipy import stats

from skldp.papers import LabelLaplaceVector

pytestmark = pytest.mark.filterwarnings(
    "ignore::skldp.exceptions.SeededNoiseWarning", "ignore::skldp.exceptions.LearntDomainWarning"
)
Y = np.array(["no", "yes", "maybe", "yes"])
CLASSES = ["no", "yes", "maybe"]


def test_columns_are_the_sorted_classes_and_the_guarantee_is_exact():
    noisy = LabelLaplaceVector(40.0, classes=CLASSES, seed=0)
    released = noisy.fit_transform(Y)
    assert (released.shape, released.dtype) == ((4, 3), np.float64)
    assert noisy.classes_.tolist() == ["maybe", "no", "yes"]
    # The scale of the noise is a twentieth of what the entries differ by.
    assert noisy.classes_[released.argmax(axis=1)].tolist() == Y.tolist()
    assert 40 - 1e-5 < noisy.privacy_guarantee_.epsilon <= 40
    assert (noisy.privacy_guarantee_.stated, noisy.privacy_guarantee_.unit) == (40.0, "label")


def test_frequencies_are_unbiased_with_their_standard_errors():
    y = np.repeat(CLASSES, [3_000, 9_000, 0])
    noisy = LabelLaplaceVector(1.0, classes=CLASSES, seed=1)
    estimate = noisy.estimate_frequencies(noisy.fit_transform(y))
    assert estimate.categories.tolist() == ["maybe", "no", "yes"]
    scores = (estimate.frequencies - [0.0, 0.25, 0.75]) / estimate.standard_errors
    assert stats.chi2(3).sf((scores**2).sum()) > 1e-6
    assert estimate.standard_errors == pytest.approx(np.full(3, (8 / 12_000) ** 0.5), rel=1e-6)
