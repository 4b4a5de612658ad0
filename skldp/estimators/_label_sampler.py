"""A label mechanism as a step of an imbalanced-learn pipeline."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from skldp.estimators._label_private import HasTargetMechanism
from skldp.estimators._labels import LabelReleaser, LabelRR
from skldp.estimators._validation import fit_context

__all__ = ["LabelSampler"]


class LabelSampler(HasTargetMechanism, BaseEstimator):
    """A label mechanism as a step of an imbalanced-learn pipeline.

    imbalanced-learn releases labels by ``fit_resample`` of a step that has no ``transform``. The label mechanisms have
    a ``transform`` of y.

    Parameters
    ----------
    label_mechanism : LabelRR or LabelLaplace, default=None
        Cloned and applied to y in `fit`. None is ``LabelRR()``.

    Attributes
    ----------
    label_mechanism_ : the fitted mechanism
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label. X is handed through unprotected.

    Examples
    --------
    >>> from skldp import LabelRR, LabelSampler
    >>> sampler = LabelSampler(LabelRR(epsilon=2.0, classes=[0, 1]))
    >>> X, y_released = sampler.fit_resample([[0.1], [0.2]], [0, 1])
    >>> sampler.privacy_guarantee_.epsilon
    2.0
    """

    _parameter_constraints: dict = {"label_mechanism": [LabelReleaser, None]}

    def __init__(self, label_mechanism: BaseEstimator | None = None) -> None:
        self.label_mechanism = label_mechanism

    def _default_mechanism(self):
        return LabelRR()

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the label mechanism.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Not used.
        y : array-like of shape (n_samples,)
            The private labels.

        Returns
        -------
        self : object
        """
        check_consistent_length(X, y)
        self.label_mechanism_ = self._new_mechanism().fit(y)
        self.privacy_guarantee_ = self.label_mechanism_.privacy_guarantee_
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit_resample(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Hand X through and release every label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The private labels.

        Returns
        -------
        X : as it came in
        y_released : ndarray of shape (n_samples,)
        """
        check_consistent_length(X, y)
        self.label_mechanism_ = self._new_mechanism()
        released = self.label_mechanism_.fit_transform(y)
        self.privacy_guarantee_ = self.label_mechanism_.privacy_guarantee_
        return X, released

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # X is handed through, whatever it is.
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.target_tags.required = True
        return tags
