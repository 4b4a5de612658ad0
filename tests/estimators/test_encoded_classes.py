"""scikit-learn's wrappers encode y before `fit`: classifiers with declared classes take the codes, and no others."""

import numpy as np
import pytest
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skldp import LabelPrivateClassifier, LabelRR, PrivateDiscriminant, PrivateLogisticRegression
from skldp.papers import LabelLaplace

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (3_000, 2))
CODES = (X[:, 0] > 0).astype(int)
NAMES = ["home", "work"]
Y = np.array(NAMES)[CODES]


def labels(mechanism, **options):
    return LabelPrivateClassifier(LogisticRegression(), label_mechanism=mechanism, **options)


MODELS = {
    "logistic": lambda classes: PrivateLogisticRegression(6, classes=classes),
    "discriminant": lambda classes: PrivateDiscriminant(6, classes=classes),
    "labels": lambda classes: labels(LabelRR(4, classes=classes)),
    "noisy labels": lambda classes: labels(LabelLaplace(8, classes=classes), correction="forward"),
}


@pytest.mark.parametrize("name", MODELS)
def test_texts_survive_what_encodes_y(name, fixed_noise):
    model = MODELS[name](NAMES)
    probabilities = cross_val_predict(model, X, Y, method="predict_proba", cv=2)
    assert probabilities.shape == (3_000, 2)
    assert np.mean(probabilities.argmax(axis=1) == CODES) > 0.7
    wrappers = [VotingClassifier([("one", model), ("other", model)], voting=how) for how in ("hard", "soft")]
    for wrapper in [*wrappers, StackingClassifier([("one", model)], cv=2)]:
        predicted = wrapper.fit(X, Y).predict(X)
        assert set(predicted) <= set(NAMES)
        assert np.mean(predicted == Y) > 0.7


@pytest.mark.parametrize("name", MODELS)
def test_classes_are_those_that_fit_was_given(name, fixed_noise):
    texts, codes = (MODELS[name](NAMES).fit(X, y) for y in (Y, CODES.astype(np.uint8)))
    assert texts.classes_.tolist() == NAMES
    assert codes.classes_.tolist() == [0, 1]
    assert set(codes.predict(X)) <= {0, 1}
    assert codes.score(X, CODES) > 0.7
    assert codes.privacy_guarantee_ == texts.privacy_guarantee_


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("classes", "y"),
    [
        # A code is a declared class: 1 would be the first class or the second one.
        ([1, 2], CODES),
        ([1, 2], np.zeros(3_000, int)),
        ([2, 0], CODES),
        (NAMES, CODES * 2),
        (NAMES, CODES - 1),
        (NAMES, CODES.astype(float)),
        (NAMES, CODES.astype(bool)),
        (NAMES, CODES.astype(str)),
        (NAMES, np.array(["work", 0] * 1_500, dtype=object)),
        (NAMES, CODES.astype("timedelta64[s]")),
    ],
)
def test_nothing_else_is_taken_for_codes(name, classes, y):
    with pytest.raises(ValueError, match=r"^y must hold only the declared 2 values") as refused:
        MODELS[name](classes).fit(X, y)
    # The habit of the wrappers is told where it may be the reason.
    is_code = y.dtype.kind in "iu" and set(y) <= {0, 1}
    assert ("inside them declare classes=range(2))" in str(refused.value)) == is_code
