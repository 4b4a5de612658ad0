"""A seed for noise is set by the caller's own hand, and by nothing that scikit-learn nests."""

from inspect import signature

import numpy as np
import pytest
from doors import ESTIMATORS
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skldp import LabelPrivateClassifier, LabelRR, NumericPrivatizer

X, Y = load_iris(return_X_y=True)


def private_model(**seed):
    features = NumericPrivatizer(8.0, bounds=(0, 10), **seed)
    labels = LabelPrivateClassifier(LogisticRegression(), label_mechanism=LabelRR(2.0, classes=range(3), **seed))
    return make_pipeline(features, labels)


def private_steps(model):
    """The steps that draw noise, clones inside of ensembles too."""
    pipeline = model if hasattr(model, "steps") else model.estimator
    return pipeline[0], pipeline[-1].label_mechanism


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_has_a_parameter_that_scikit_learn_writes_to(name):
    names = signature(ESTIMATORS[name]).parameters
    assert not [one for one in names if one.endswith("random_state")]


def test_ensembles_seed_no_noise():
    np.random.seed(7)
    model = BaggingClassifier(private_model(), n_estimators=3, random_state=0).fit(X, Y)
    for member in model.estimators_:
        assert [step.seed for step in private_steps(member)] == [None, None]


def test_the_global_seed_does_not_repeat_what_an_ensemble_releases():
    def coefficients():
        np.random.seed(7)
        model = BaggingClassifier(private_model(), n_estimators=2, n_jobs=2).fit(X, Y)
        return np.concatenate([member[-1].estimator_.coef_.ravel() for member in model.estimators_])

    # Coefficients of models trained on unseeded noise: the chance that all 24 repeat is far below 1e-9.
    assert not np.array_equal(coefficients(), coefficients())
