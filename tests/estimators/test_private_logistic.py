"""PrivateLogisticRegression: scikit-learn's rules, declared domains, the guarantee, and warnings."""

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skldp import PrivateLogisticRegression
from skldp.exceptions import (
    LearntDomainWarning,
    TooFewPeopleWarning,
)

RNG = np.random.default_rng(0)
N = 20_000
X = RNG.uniform(-1, 1, (N, 4))
Y = X @ [0.4, -0.2, 0.1, 0.2] + 0.05 + 0.03 * RNG.standard_normal(N)

_NEW_NOISE = "every fit draws new noise, and no seed that scikit-learn writes can reach it"


def expected_failures(estimator):
    if estimator.seed is not None:
        return {}
    return dict.fromkeys(
        [
            "check_fit_idempotent",
            "check_classifier_data_not_an_array",
            "check_supervised_y_2d",
        ],
        _NEW_NOISE,
    )


pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.LearntDomainWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        PrivateLogisticRegression(),
        PrivateLogisticRegression(seed=0),
        PrivateLogisticRegression(100.0, seed=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check, fixed_noise):
    check(estimator)


CLASSES = np.array(["low", "middle", "top"])
LABELS = CLASSES[np.digitize(X @ [1.0, -0.5, 0.2, 0.0], [-0.3, 0.4])]


@pytest.mark.parametrize("classes", [CLASSES, CLASSES[[2, 0]]], ids=["three", "two"])
def test_a_classifier_learns_nearly_what_its_records_tell(classes):
    chosen = np.isin(LABELS, classes)
    rows, labels = X[chosen], LABELS[chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateLogisticRegression(3.0, classes=classes).fit(rows, labels)
    assert model.score(rows, labels) > 0.85
    assert model.classes_.tolist() == sorted(classes)
    k = 1 if len(classes) == 2 else 3
    assert (model.coef_.shape, model.intercept_.shape) == ((k, 4), (k,))
    probabilities = model.predict_proba(rows)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(rows))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), probabilities)
    guarantee = model.privacy_guarantee_
    assert 3 * (1 - 1e-6) <= guarantee.epsilon <= 3 == guarantee.stated
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
