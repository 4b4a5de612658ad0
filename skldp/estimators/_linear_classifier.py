"""What classifiers with one row of coefficients for each class predict."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._learning import UntoldScore
from skldp.estimators._validation import validate_finite

__all__ = ["LinearScores"]


class LinearScores(UntoldScore, ClassifierMixin):
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
