"""Logistic regression whose training data never leave the people they are about."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._class_codes import declared_values, encode, labels_1d, learnt_values, warn_learnt
from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee
from skldp.estimators._learning import UntoldScore, warn_moved, warn_too_few
from skldp.estimators._validation import (
    BOUNDS,
    EPSILON,
    NOISE_PARAMETERS,
    check_bounds,
    check_epsilon,
    check_same_length,
    fit_context,
    validate_finite,
)
from skldp.learning._classification import ClassificationProtocol
from skldp.learning._simulation import simulate
from skldp.mechanisms._domain import Box
from skldp.mechanisms._noise import noise_from

__all__ = ["PrivateLogisticRegression"]


class PrivateLogisticRegression(GuaranteeMixin, UntoldScore, ClassifierMixin, BaseEstimator):
    r"""Logistic regression, binary or multinomial, under local differential privacy of every record with its class.

    Each row of X with its y is a person, who releases one vector once, at the whole epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of the whole record: all features and the class.
    bounds : (low, high), default=(-1, 1)
        The declared domain, each end a number or one number per feature. What lies outside is moved to the nearest end.
    classes : array-like of shape (n_classes,), default=None
        The declared classes, from public knowledge. None takes those seen in y, with a warning: which classes occur is
        a fact about private data.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call. Anything else is for tests and studies, and voids the guarantee
        against whoever knows it.
    n_jobs : int, default=None
        Threads, as joblib counts them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    protocol_ : ClassificationProtocol
        Its public state at the end.
    privacy_guarantee_ : PrivacyGuarantee
        Of one person's release, record and class together; infinite where the classes were learnt.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Raises
    ------
    ValueError
        If X holds NaN or infinity, y a class that is not declared, or a parameter is not as above.

    Warns
    -----
    TooFewPeopleWarning
        If there are too few people for anything to be learnt: then the classes' shares are predicted.
    LearntDomainWarning
        If `classes` is None.
    OutOfDomainWarning
        With the number of values that were moved into the bounds.

    See Also
    --------
    PrivateLinearRegression : The same for numbers.
    LabelPrivateClassifier : Where only the labels are private.

    Notes
    -----
    `fit` simulates a :class:`~skldp.learning.ClassificationProtocol`: a first part of the people tells the features'
    products, the others gradients of the likelihood at the model so far, cohort by cohort.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 3))
    >>> y = np.where(X @ [2.0, -1.0, 0.5] > 0.2, "yes", "no")
    >>> model = PrivateLogisticRegression(epsilon=2.0, classes=["no", "yes"]).fit(X, y)
    >>> model.score(X, y) > 0.85, round(model.privacy_guarantee_.epsilon, 6)
    (True, 2.0)
    """

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "bounds": BOUNDS,
        "classes": ["array-like", None],
        **NOISE_PARAMETERS,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        classes: Any = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.seed = seed
        self.n_jobs = n_jobs

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
        self._forget_guarantee()
        check_epsilon(self.epsilon)
        rows = validate_finite(self, X, reset=True, dtype=np.float64)
        labels = labels_1d(y)
        check_same_length(rows, labels)
        learnt = self.classes is None
        classes = learnt_values(labels) if learnt else declared_values(self.classes, "classes")
        if len(classes) < 2:
            raise ValueError("There must be at least 2 classes. Got one class instead.")
        codes = encode(labels, classes, "y").astype(np.float64)
        low, high = check_bounds(self.bounds, rows.shape[1])
        protocol = ClassificationProtocol(
            rows.shape[1], len(rows), len(classes), epsilon=float(self.epsilon), low=low, high=high
        )
        if learnt:
            warn_learnt("The classes", "classes=[...]")
        warn_too_few(protocol, "the classes' shares are")
        simulate(protocol, rows, codes, noise_from(self.seed), n_threads=effective_n_jobs(self.n_jobs))
        warn_moved(rows, codes, Box.of(np.append(low, 0), np.append(high, len(classes) - 1)))
        self.classes_, self.protocol_ = classes, protocol
        self.coef_, self.intercept_ = protocol.coefficients, protocol.intercepts
        if len(classes) == 2:
            # As scikit-learn's: the log odds of the second class.
            self.coef_, self.intercept_ = np.diff(self.coef_, axis=0), np.diff(self.intercept_)
        attach_guarantee(self, protocol.guarantee(), "the classes" if learnt else "")
        return self

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
        scores = validate_finite(self, X, reset=False, dtype=np.float64) @ self.coef_.T + self.intercept_
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
        scores = self.decision_function(X)
        return special.softmax(np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores, axis=1)

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
        return special.log_softmax(np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores, axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        # The tables of scikit-learn's checks are of far too few people.
        tags.classifier_tags.poor_score = True
        return tags
