import math
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skldp import PrivacyGuarantee
from skldp.domains._domain import Anywhere
from skldp.estimators._base import LocalTransformer
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.estimators._labels import LabelRR
from skldp.mechanisms import RowMechanism

X = np.random.default_rng(0).normal(size=(30, 4))
y = (X[:, 0] > 0).astype(int)


@dataclass(frozen=True)
class AddUniform(RowMechanism):
    epsilon: float
    n_features: int

    @property
    def domain(self):
        return Anywhere(self.n_features)

    @property
    def n_outputs(self):
        return self.n_features

    def guarantee(self):
        return PrivacyGuarantee(self.epsilon, stated=self.epsilon)

    def _encode(self, rows, out, workspace):
        out[...] = rows

    def _draw(self, rows, noise, out, workspace):
        out[...] = rows + noise.uniform(rows.shape)


class Private(OneToOneFeatureMixin, LocalTransformer):
    def __init__(self, epsilon=1.0, *, transform_noise=True, seed=None, n_jobs=None):
        self.epsilon = epsilon
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs

    def _make_mechanism(self, X):
        return AddUniform(self.epsilon, X.shape[1])


class LabelPrivate(LogisticRegression):
    def fit(self, X, y):
        self.privacy_guarantee_ = PrivacyGuarantee(0.5, unit="label", stated=0.5)
        return super().fit(X, y)


def test_a_pipeline_adds_its_steps_and_its_labels(fixed_noise):
    total = privacy_guarantee(make_pipeline(Private(2.0), Private(1.0), LabelPrivate()).fit(X, y))
    assert (total.epsilon, total.unit, total.stated) == (3.5, "record", 3.5)
    assert "not protected" not in total.headline()


def test_says_that_labels_or_features_are_bare(fixed_noise):
    of_rows = privacy_guarantee(make_pipeline(Private(), LinearRegression()).fit(X, y))
    assert of_rows.headline() == "epsilon 1 per record (stated 1); target not protected"
    assert ">not protected</th>" in of_rows._repr_html_()
    total = privacy_guarantee(make_pipeline(StandardScaler(), LabelPrivate()).fit(X, y))
    assert "features not protected" in total.headline()
    assert total.unit == "label"
    # What one of two fits exposed stays exposed.
    assert (total + of_rows).unprotected == ("features", "target")


def test_a_classifier_of_randomized_labels_adds_the_private_steps_within(fixed_noise):
    inner = make_pipeline(Private(2.0), LogisticRegression())
    label_rr = LabelRR(0.5, classes=[0, 1])
    classifier = LabelPrivateClassifier(inner, label_mechanism=label_rr).fit(X, y)
    total = privacy_guarantee(classifier)
    assert (total.epsilon, total.unit) == (2.0 + classifier.privacy_guarantee_.epsilon, "record")
    assert "not protected" not in total.headline()
    bare = LabelPrivateClassifier(LogisticRegression(), label_mechanism=label_rr).fit(X, y)
    assert "features not protected" in privacy_guarantee(bare).headline()


def test_columns_add_up_and_bare_columns_are_infinite():
    both = ColumnTransformer([("a", Private(1.0), [0, 1]), ("b", Private(2.0), [2])])
    assert privacy_guarantee(both.fit(X)).epsilon == 3.0
    bare = ColumnTransformer([("a", Private(1.0), [0, 1]), ("b", "passthrough", [2])])
    total = privacy_guarantee(bare.fit(X))
    assert math.isinf(total.epsilon)
    assert "b pass unprotected" in total.basis
    kept = ColumnTransformer([("a", Private(1.0), [0, 1])], remainder="passthrough")
    assert math.isinf(privacy_guarantee(kept.fit(X)).epsilon)


def test_what_has_no_private_step_is_infinite_for_that_reason():
    search = GridSearchCV(
        Pipeline([("release", Private()), ("model", LinearRegression())]), {"release": ["passthrough"]}
    )
    for bare in (LinearRegression().fit(X, y), search.fit(X, y).best_estimator_, StandardScaler().fit(X)):
        guarantee = privacy_guarantee(bare)
        assert math.isinf(guarantee.epsilon)
        assert guarantee.basis == f"infinite: {type(bare).__name__} has no private step"
        assert guarantee.headline().startswith("epsilon inf per record; features")


def test_refuses_what_is_not_fitted():
    with pytest.raises(NotFittedError):
        privacy_guarantee(Private())
    with pytest.raises(TypeError, match="class"):
        privacy_guarantee(BaseEstimator)
