"""PrivateLogisticRegression: scikit-learn's rules, declared domains, the guarantee, and warnings."""

import warnings

import numpy as np
import pytest

from skldp import PrivateLogisticRegression

RNG = np.random.default_rng(0)
N = 20_000
X = RNG.uniform(-1, 1, (N, 4))
pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


CLASSES = np.array(["low", "middle", "top"])
LABELS = CLASSES[np.digitize(X @ [1.0, -0.5, 0.2, 0.0], [-0.3, 0.4])]


@pytest.mark.few(2)
@pytest.mark.parametrize("protocol", ["rounds", "once"])
@pytest.mark.parametrize("classes", [CLASSES, CLASSES[[2, 0]]], ids=["three", "two"])
def test_a_classifier_learns_nearly_what_its_records_tell(classes, protocol):
    chosen = np.isin(LABELS, classes)
    rows, labels = X[chosen], LABELS[chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateLogisticRegression(6.0, classes=classes, protocol=protocol).fit(rows, labels)
    assert model.score(rows, labels) > (0.7 if protocol == "once" else 0.85)
    assert model.classes_.tolist() == sorted(classes)
    k = 1 if len(classes) == 2 else 3
    assert (model.coef_.shape, model.intercept_.shape) == ((k, 4), (k,))
    probabilities = model.predict_proba(rows)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(rows))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), probabilities)
    guarantee = model.privacy_guarantee_
    assert 6 * (1 - 1e-6) <= guarantee.epsilon <= 6 == guarantee.stated
    assert (guarantee.delta, guarantee.unit) == (0.0, "record")


@pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning")
def test_classes_that_contradict_are_refused():
    others = ["low", "middle", "very high"]
    declared = PrivateLogisticRegression(1.0, protocol="once", classes=CLASSES, seed=0)
    first = PrivateLogisticRegression(1.0, protocol="once", seed=0).partial_fit(X[:100], LABELS[:100], classes=CLASSES)
    for model in (declared, first):
        with pytest.raises(ValueError, match="classes must be those"):
            model.partial_fit(X[:100], LABELS[:100], classes=others)
    assert not hasattr(declared, "classes_")
    declared.partial_fit(X[:100], LABELS[:100], classes=CLASSES[::-1])
    np.testing.assert_array_equal(declared.classes_, CLASSES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": True},
        {"bounds": (1, -1)},
        {"classes": ["low", "low"]},
        {"protocol": "twice"},
        {"seed": -1},
    ],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PrivateLogisticRegression(**{"classes": CLASSES, **wrong}).fit(X, LABELS)


def test_labels_that_are_passed_as_classes_are_not_shown():
    """As classes=y: everybody's labels were in the message."""
    y = np.array(["secret", "other"] * 50)
    with pytest.raises(ValueError, match=r"classes must be distinct.*ndarray of str_ with shape") as error:
        PrivateLogisticRegression(classes=y).fit(np.zeros((100, 1)), y)
    assert "secret" not in str(error.value)
