"""PrivateLogisticRegression: logistic regression from reports."""

from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp._checks import check_epsilon
from skldp.domains._domain import Box
from skldp.estimators._class_codes import declared_values, encode, labels_1d, learnt_values
from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee
from skldp.estimators._learning import ask_all, ask_more, takes_more, warn_moved, warn_too_few
from skldp.estimators._validation import (
    BOUNDS_BY_COLUMN,
    EPSILON,
    NOISE_PARAMETERS,
    StrOptions,
    check_bounds_by_column,
    fit_context,
    input_names,
    validate_finite,
)
from skldp.learning._classification import ClassificationProtocol
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.mechanisms._guarantee import PrivacyGuarantee


class LinearScores(ClassifierMixin):
    """Predictions of a classifier with `classes_`, and the `coef_` and `intercept_` of its logits."""

    classes_: np.ndarray
    coef_: npt.NDArray[np.float64]
    intercept_: npt.NDArray[np.float64]

    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the logits of the classes; of two classes, the log odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        rows = validate_finite(self, X, reset=False, dtype=np.float64)
        scores: npt.NDArray[np.float64] = rows @ self.coef_.T + self.intercept_
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
        """Return the class probabilities.

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
        """Return the logarithm of :meth:`predict_proba`.

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

    def _learn(
        self, classes: np.ndarray, coefficients: npt.NDArray[np.float64], intercepts: npt.NDArray[np.float64]
    ) -> None:
        """Set the coefficients of every class; of two classes, as in scikit-learn, of the second."""
        two = len(classes) == 2
        self.classes_ = classes
        self.coef_ = np.diff(coefficients, axis=0) if two else coefficients
        self.intercept_ = np.diff(intercepts) if two else intercepts


class PrivateLinearClassifier(GuaranteeMixin, LinearScores, BaseEstimator, ABC):
    """Base class of classifiers that learn by a protocol, in which every row reports once."""

    epsilon: float
    bounds: Any
    classes: Any
    seed: Any
    n_jobs: int | None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit the model; every row is one person who reports once.

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
        """Collect reports of more people for the open task. Each person may report once.

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
        rows, codes = self._records(X, y, declared, reset=True)
        protocol = self._protocol(len(rows))
        warn_too_few(protocol, "the classes' shares are")
        ask_all(self, protocol, self._prepared(rows), codes)
        self._warn_moved(rows, codes)
        self._learn(self.classes_, protocol.coefficients, protocol.intercepts)
        learnt = "the classes" if declared is None else ""
        attach_guarantee(self, self._promise(protocol.guarantee()), learnt, "classes=[...]")
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
                raise ValueError("y must have at least 2 classes. Got one class instead.")
        return rows, encode(labels, self.classes_, "y").astype(np.float64)

    @abstractmethod
    def _protocol(self, n_people: int) -> ClassificationProtocol | DiscriminantProtocol:
        """Return the protocol for this many people."""

    def _prepared(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the rows in the form that the protocol takes."""
        return rows

    def _promise(self, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        """Return the protocol's guarantee and its assumptions."""
        return guarantee

    def _warn_moved(self, rows: npt.NDArray[np.float64], codes: npt.NDArray[np.float64]) -> None:
        low, high = check_bounds_by_column(self.bounds, self)
        box = Box.of(np.append(low, 0), np.append(high, len(self.classes_) - 1))
        warn_moved(rows, codes, box, input_names(self))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks have too few people.
        tags.classifier_tags.poor_score = True
        return tags


class PrivateLogisticRegression(PrivateLinearClassifier):
    r"""Logistic regression, binary or multinomial, under local differential privacy of every record with its class.

    Each row of X with its y is a person, who releases one vector once, at the full epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record: all features and the class.
    bounds : (low, high), default=(-1, 1)
        Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list of
        one pair per feature. Values outside are clipped.
    classes : array-like of shape (n_classes,), default=None
        Declared classes, from public knowledge. None learns them from y, with a warning and an infinite guarantee.
    protocol : {"rounds", "once"}, default="rounds"
        ``"rounds"`` collects gradients at the current model from small cohorts in turn, and is the most accurate.
        ``"once"`` estimates the scale and a first model from some cohorts, and collects gradients at that model from
        all others by one task, which :meth:`partial_fit` continues with more people at any time.
    fit_intercept : bool, default=True
        If False, the log odds are 0 where all features are 0.
    class_weight : None, "balanced" or dict, default=None
        Factors of the odds by class; 1 for a class without one. They change the intercepts only, as weights in the
        likelihood do if the model holds. ``"balanced"`` is the inverse of the reported share of each class.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.
    n_jobs : int, default=None
        Number of threads, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    protocol_ : ClassificationProtocol
        Its public state at the end, with the open task of ``protocol="once"``.
    privacy_guarantee_ : PrivacyGuarantee
        For one release of record and class together; infinite if the classes were learnt.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        If X holds NaN or infinity, y a class that is not declared, or a parameter is out of range.

    Warns
    -----
    TooFewPeopleWarning
        If there are too few people. The shares of the classes are predicted then.
    LearntDomainWarning
        If `classes` is None.
    OutOfDomainWarning
        Reports the number of values that were moved into the bounds.

    See Also
    --------
    PrivateLinearRegression : The same for numbers.
    LabelPrivateClassifier : Protects the labels only.

    Notes
    -----
    `fit` simulates a :class:`~skldp.learning.ClassificationProtocol` on the rows: first cohorts report the shares of
    the classes, the centre and the second moments of the features; the others report gradients of the likelihood at
    the current model. One update combines all gradients by their known noise. The slopes are 0 if the ``sufficiency``
    of `protocol_`, that of a regression divided by the number of classes less one, is below 3. Records of people are
    clipped to `bounds`; rows to predict are not. There is no `sample_weight`, because a weight would reveal information
    about a person.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, section 4. King and
    Zeng, "Logistic regression in rare events data", 2001, equation 7.

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
        "bounds": BOUNDS_BY_COLUMN,
        "classes": ["array-like", None],
        "protocol": [StrOptions({"rounds", "once"})],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        **NOISE_PARAMETERS,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        classes: Any = None,
        protocol: Literal["rounds", "once"] = "rounds",
        fit_intercept: bool = True,
        class_weight: Any = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.protocol = protocol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.seed = seed
        self.n_jobs = n_jobs

    def _protocol(self, n_people: int) -> ClassificationProtocol:
        low, high = check_bounds_by_column(self.bounds, self)
        return ClassificationProtocol(
            self.n_features_in_,
            n_people,
            len(self.classes_),
            epsilon=float(self.epsilon),
            low=low,
            high=high,
            kind=self.protocol,
            fit_intercept=self.fit_intercept,
            class_weight=self._weights(),
        )

    def _weights(self) -> Literal["balanced"] | list[float] | None:
        """Return the weights of the classes, in their order."""
        given = self.class_weight
        if not isinstance(given, dict):
            return given
        if not set(given) <= set(self.classes_.tolist()):
            raise ValueError(f"class_weight must be a dict of weights by declared class. Got {given!r} instead.")
        return [given.get(one, 1.0) for one in self.classes_.tolist()]
