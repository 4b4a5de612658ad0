"""The smallest private estimators, for tests of what is built around private estimators."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, OneToOneFeatureMixin, clone

from skldp import PrivacyGuarantee
from skldp.domains._domain import Anywhere
from skldp.estimators._base import LocalTransformer
from skldp.mechanisms import RowMechanism, noise_from


@dataclass(frozen=True)
class Signs(RowMechanism):
    """Randomized response on the sign of every feature."""

    epsilon: float
    n_features: int
    exact_over_stated: float

    @property
    def domain(self):
        return Anywhere(self.n_features)

    @property
    def n_outputs(self):
        return self.n_features

    def guarantee(self):
        return PrivacyGuarantee(self.epsilon * self.exact_over_stated, stated=self.epsilon)

    def _encode(self, rows, out, workspace):
        out[...] = np.where(rows >= 0, 1.0, -1.0)

    def _draw(self, rows, noise, out, workspace):
        flipped = noise.uniform(rows.shape) < 1 / (1 + np.exp(self.epsilon / self.n_features))
        out[...] = np.where((rows >= 0) ^ flipped, 1.0, -1.0)


class ToySigns(OneToOneFeatureMixin, LocalTransformer):
    """A private transformer that can be told to state less than it spends."""

    _parameter_constraints = {**LocalTransformer._parameter_constraints, "exact_over_stated": [float]}

    def __init__(self, epsilon=1.0, *, exact_over_stated=1.0, transform_noise=True, seed=None, n_jobs=None):
        self.epsilon = epsilon
        self.exact_over_stated = exact_over_stated
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs

    def _make_mechanism(self, X):
        return Signs(self.epsilon, X.shape[1], self.exact_over_stated)


class ToyLabels(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Randomized labels 0 and 1 for any classifier."""

    def __init__(self, estimator, *, epsilon=1.0, seed=None):
        self.estimator = estimator
        self.epsilon = epsilon
        self.seed = seed

    def fit(self, X, y):
        flipped = noise_from(self.seed).uniform(len(y)) < 1 / (1 + np.exp(self.epsilon))
        self.estimator_ = clone(self.estimator).fit(X, np.asarray(y) ^ flipped)
        self.classes_ = self.estimator_.classes_
        self.privacy_guarantee_ = PrivacyGuarantee(self.epsilon, unit="label", stated=self.epsilon)
        return self

    def predict(self, X):
        return self.estimator_.predict(X)
