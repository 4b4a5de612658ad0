"""PrivateLogisticRegression: scikit-learn's rules, declared domains, the guarantee, and warnings."""

import pickle
import warnings

import numpy as np
import pytest

from skldp import PrivateLogisticRegression
from skldp.exceptions import ChangedAfterFitError, LearntDomainWarning, OutOfDomainWarning, TooFewPeopleWarning

RNG = np.random.default_rng(0)
N = 20_000
X = RNG.uniform(-1, 1, (N, 4))
Y = X @ [0.4, -0.2, 0.1, 0.2] + 0.05 + 0.03 * RNG.standard_normal(N)


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


def test_classes_that_are_learnt_are_covered_by_no_epsilon():
    with pytest.warns(LearntDomainWarning):
        model = PrivateLogisticRegression(3.0).fit(X, LABELS)
    assert model.privacy_guarantee_.epsilon == np.inf
    with pytest.raises(ValueError, match="declared") as caught:
        PrivateLogisticRegression(3.0, classes=["low", "top"]).fit(X, LABELS)
    assert "middle" not in str(caught.value)


def test_of_too_few_people_the_shares_of_classes_are_told():
    labels = np.where(np.arange(300) < 260, "no", "yes")
    model = PrivateLogisticRegression(1.0, classes=["no", "yes"], seed=0)
    with pytest.warns(TooFewPeopleWarning, match="shares"):
        model.fit(X[:300], labels)
    assert np.ptp(model.predict_proba(X)[:, 0]) < 1e-12
    assert (model.predict(X) == "no").all()


def test_more_people_by_partial_fit():
    model = PrivateLogisticRegression(2.0, protocol="once", classes=CLASSES, seed=0)
    model.partial_fit(X[:12_000], LABELS[:12_000])
    before, guarantee = model.coef_, model.privacy_guarantee_
    model.partial_fit(X[12_000:], LABELS[12_000:])
    assert not np.array_equal(model.coef_, before)
    assert model.score(X, LABELS) > 0.7
    assert model.privacy_guarantee_ == guarantee
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="declared") as caught:
        model.partial_fit(X[:2], ["low", "secret"])
    assert "secret" not in str(caught.value)
    rows = X[:3].copy()
    rows[0, 0] = 7.0
    with pytest.warns(OutOfDomainWarning, match="1 of 12 values"):
        model.partial_fit(rows, LABELS[:3])
    assert not hasattr(PrivateLogisticRegression(), "partial_fit")
    model.set_params(bounds=(-2, 2))
    with pytest.raises(ChangedAfterFitError):
        model.partial_fit(X, LABELS)
    few = PrivateLogisticRegression(1.0, protocol="once", seed=0)
    with pytest.warns(TooFewPeopleWarning):
        few.partial_fit(X[:100], LABELS[:100], classes=CLASSES)
    # Declared at the first call, which is as good as a parameter.
    assert few.privacy_guarantee_.epsilon <= 1.0


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


def test_weights_of_people_are_refused_and_no_value_is_told():
    with pytest.raises(TypeError, match="sample_weight"):
        PrivateLogisticRegression().fit(X, LABELS, sample_weight=np.ones(N))
    rows = np.full((10, 2), 0.123456)
    rows[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN") as caught:
        PrivateLogisticRegression(classes=[0, 1]).fit(rows, np.arange(10) % 2)
    assert "0.123456" not in str(caught.value)


def test_labels_that_are_passed_as_classes_are_not_shown():
    """As classes=y: everybody's labels were in the message."""
    y = np.array(["secret", "other"] * 50)
    with pytest.raises(ValueError, match=r"classes must be distinct.*ndarray of str_ with shape") as error:
        PrivateLogisticRegression(classes=y).fit(np.zeros((100, 1)), y)
    assert "secret" not in str(error.value)
