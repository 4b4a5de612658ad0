"""What linear classifiers have in common: how they predict, and how those that ask people are fitted."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp.estimators._class_codes import declared_values, encode, labels_1d, learnt_values, warn_learnt
from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee
from skldp.estimators._learning import ask_more, takes_more, warn_moved, warn_too_few
from skldp.estimators._validation import (
    check_bounds_by_column,
    check_epsilon,
    fit_context,
    input_names,
    validate_finite,
)
from skldp.learning._classification import ClassificationProtocol
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._simulation import simulate
from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from

__all__ = ["LinearScores", "PrivateLinearClassifier"]


class LinearScores(ClassifierMixin):
    """Predictions of a classifier with `classes_`, and the `coef_` and `intercept_` of its logits."""

    classes_: np.ndarray
    coef_: npt.NDArray[np.float64]
    intercept_: npt.NDArray[np.float64]

    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logits of the classes, or with two of them the log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        scores: npt.NDArray[np.float64] = self._checked(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Predict the most likely class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Natural logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        both = np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores
        result: npt.NDArray[np.float64] = special.log_softmax(both, axis=1)
        return result

    def _checked(self, X: Any) -> npt.NDArray[np.float64]:
        result: npt.NDArray[np.float64] = validate_finite(self, X, reset=False, dtype=np.float64)
        return result

    def _learn(
        self, classes: np.ndarray, coefficients: npt.NDArray[np.float64], intercepts: npt.NDArray[np.float64]
    ) -> None:
        """Keep what was learnt for every class; of two, as scikit-learn does, the log odds of the second."""
        two = len(classes) == 2
        self.classes_ = classes
        self.coef_ = np.diff(coefficients, axis=0) if two else coefficients
        self.intercept_ = np.diff(intercepts) if two else intercepts


class PrivateLinearClassifier(GuaranteeMixin, LinearScores, BaseEstimator, ABC):
    """A classifier whose `fit` asks everybody in X once, as a protocol says that a subclass makes."""

    epsilon: float
    bounds: Any
    classes: Any
    seed: Any
    n_jobs: int | None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Ask everybody once, and learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private records.
        y : array-like of shape (n_samples,)
            Their private classes.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, self.classes)

    @available_if(takes_more)
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Ask more people, who were not asked before, the question that stays open.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            Declared classes, for a first call where the parameter `classes` is None.

        Returns
        -------
        self : object
        """
        if "_guarantee_at_fit" not in vars(self):
            return self._fit(X, y, classes if self.classes is None else self.classes)
        self._check_unchanged()
        rows, codes = self._records(X, y, self.classes_, reset=False)
        ask_more(self, self._prepared(rows), codes)
        self._warn_moved(rows, codes)
        self._learn(self.classes_, self.protocol_.coefficients, self.protocol_.intercepts)
        return self

    def _fit(self, X: Any, y: Any, declared: Any) -> Self:
        self._forget_guarantee()
        check_epsilon(self.epsilon)
        learnt = declared is None
        rows, codes = self._records(X, y, declared, reset=True)
        protocol = self._protocol(len(rows))
        if learnt:
            warn_learnt("The classes", "classes=[...]")
        warn_too_few(protocol, "the classes' shares are")
        prepared, n_threads = self._prepared(rows), effective_n_jobs(self.n_jobs)
        simulate(protocol, prepared, codes, noise_from(self.seed), n_threads=n_threads)
        self._warn_moved(rows, codes)
        self.protocol_, self._n_calls = protocol, 0
        self._learn(self.classes_, protocol.coefficients, protocol.intercepts)
        attach_guarantee(self, self._promise(protocol.guarantee()), "the classes" if learnt else "")
        return self

    def _records(
        self, X: Any, y: Any, classes: Any, *, reset: bool
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        rows = validate_finite(self, X, reset=reset, dtype=np.float64)
        labels = labels_1d(y)
        check_consistent_length(rows, labels)
        if reset:
            self.classes_ = learnt_values(labels) if classes is None else declared_values(classes, "classes")
            if len(self.classes_) < 2:
                raise ValueError("There must be at least 2 classes. Got one class instead.")
        return rows, encode(labels, self.classes_, "y").astype(np.float64)

    @abstractmethod
    def _protocol(self, n_people: int) -> ClassificationProtocol | DiscriminantProtocol:
        """For so many people, once features and classes are counted."""

    def _prepared(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Rows as people bring them into the protocol."""
        return rows

    def _promise(self, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        """The protocol's guarantee, with what else is assumed."""
        return guarantee

    def _warn_moved(self, rows: npt.NDArray[np.float64], codes: npt.NDArray[np.float64]) -> None:
        low, high = check_bounds_by_column(self.bounds, self)
        box = Box.of(np.append(low, 0), np.append(high, len(self.classes_) - 1))
        warn_moved(rows, codes, box, input_names(self))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        # The tables of scikit-learn's checks are of far too few people.
        tags.classifier_tags.poor_score = True
        return tags
