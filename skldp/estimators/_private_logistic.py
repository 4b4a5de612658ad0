"""PrivateLogisticRegression: logistic regression from reports."""

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp._arrays import Floats
from skldp.domains._domain import Box
from skldp.estimators._class_codes import classes_of, declared_values, encode, labels_1d, learnt_values
from skldp.estimators._learning import SCORE_SHARE, ProtocolEstimator, takes_more, unqualified
from skldp.estimators._validation import StrOptions, check_bounds_by_column, fit_context, validate_finite
from skldp.learning._classification import ClassificationProtocol


class LinearScores(ClassifierMixin):
    """Predictions of a classifier with `classes_`, and the `coef_` and `intercept_` of its logits."""

    classes_: np.ndarray
    coef_: Floats
    intercept_: Floats

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Return the logits, shape (n_samples, n_classes); of two classes the log odds of the second, (n_samples,).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        scores = validate_finite(self, X, reset=False, dtype=np.float64) @ self.coef_.T + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return the probabilities of the classes, in the order of ``classes_``, shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: npt.ArrayLike) -> Floats:
        """Return the logarithm of :meth:`predict_proba`, of the same shape.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        scores = self.decision_function(X)
        both = np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores
        return special.log_softmax(both, axis=1)

    def _set_logits(self, coefficients: Floats, intercepts: Floats) -> None:
        """Set the coefficients of every class; of two classes, as in scikit-learn, of the second."""
        two = len(self.classes_) == 2
        self.coef_ = np.diff(coefficients, axis=0) if two else coefficients
        self.intercept_ = np.diff(intercepts) if two else intercepts


class PrivateLinearClassifier(LinearScores, ProtocolEstimator):
    """Base class of classifiers that learn by a protocol."""

    classes: Any
    _without_features = "the classes' shares are"
    _parameter_constraints: dict = {**ProtocolEstimator._parameter_constraints, **SCORE_SHARE}

    @available_if(takes_more)
    @fit_context(prefer_skip_nested_validation=True)
    @unqualified
    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Return self with the reports of more people for the open tasks. Each person may report once.

        Parameters
        ----------
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            As of `fit`.
        classes : array-like of shape (n_classes,), default=None
            Declared classes, for a first call where the parameter `classes` is None. Others must not contradict these.
        """
        is_first = "_guarantee_at_fit" not in vars(self)
        known = self.classes if is_first else self.classes_
        if classes is not None and known is not None:
            given, known = (declared_values(one, "classes") for one in (classes, known))
            if not np.array_equal(given, known):
                raise ValueError("classes must be those of the parameter or of the first call; got others.")
        return self._fit(X, y, classes, is_stream=True) if is_first else self._fit_more(X, y)

    def _fit(self, X: Any, y: Any, classes: Any = None, *, is_stream: bool = False) -> Self:
        self._declared = classes if self.classes is None else self.classes
        self._learnt = "the classes" if self._declared is None else ""
        return super()._fit(X, y, is_stream=is_stream)

    def _records(self, X: Any, y: Any, *, reset: bool) -> tuple[Floats, Floats]:
        rows = validate_finite(self, X, reset=reset, dtype=np.float64)
        labels, declared = labels_1d(y), self._declared
        check_consistent_length(rows, labels)
        if reset:
            self.classes_ = learnt_values(labels) if declared is None else classes_of(labels, declared)
            if len(self.classes_) < 2:
                raise ValueError("y must have at least 2 classes; got one class.")
        return rows, encode(labels, self.classes_, "y").astype(np.float64)

    def _bounds(self) -> tuple[Floats, Floats]:
        """Return the declared bounds of the features."""
        return check_bounds_by_column(self.bounds, self)

    def _domain(self) -> Box:
        low, high = self._bounds()
        return Box.of(np.append(low, 0), np.append(high, len(self.classes_) - 1))

    def _settings(self, n_people: int) -> dict[str, Any]:
        low, high = self._bounds()
        return super()._settings(n_people) | {"n_classes": len(self.classes_), "low": low, "high": high}

    def _learn(self) -> None:
        super()._learn()
        self._set_logits(self.protocol_.coefficients, self.protocol_.intercepts)

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
        ``"rounds"`` collects gradients at the current model from small cohorts in turn.
        ``"once"`` estimates the scale and a first model from some cohorts, and collects gradients at that model from
        all others by one task, which :meth:`partial_fit` continues with more people at any time.
    score_share : float, default=0.05
        Fraction of the people of `fit` who do not train the model and report a loss for `score_estimate_`.
    n_people : int, default=None
        Number of people to plan for in :meth:`partial_fit`, about as many as will come. None plans for those of the
        first call, or for ten times the number needed if that is more.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.
    n_jobs : int, default=None
        Number of threads, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes.
    coef_, intercept_ : ndarray of shape (n_logits, n_features), ndarray of shape (n_logits,)
        Coefficients and intercepts; n_logits is 1 for two classes, else n_classes.
    undetected_share_ : float
        Largest share of people with outlying values that `fit` may miss. Such values are clipped.
    score_estimate_ : ScoreEstimate or None
        Share of the log loss that the model explains, by people who did not train it, with `value`,
        `error`, `interval` (95%) and `n_people`. None with too few people, or after :meth:`partial_fit`.
    protocol_ : ClassificationProtocol
        Final state of the protocol, computed from reports alone, with the open task of ``protocol="once"``.
    privacy_guarantee_ : PrivacyGuarantee
        For one release of record and class together; infinite if the classes were learnt.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

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
    `fit` simulates a :class:`~skldp.learning.ClassificationProtocol`, which has the references. The slopes are 0 if
    there are fewer people than ``protocol_.n_needed``. Rows to predict are not clipped to `bounds`. A `sample_weight`
    would reveal information about a person. To weight the classes, add the logarithms of the weights to `intercept_`.
    Coefficients have no intervals, because the prior shrinks them.

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
        **PrivateLinearClassifier._parameter_constraints,
        "classes": ["array-like", None],
        "protocol": [StrOptions({"rounds", "once"})],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        classes: Any = None,
        protocol: Literal["rounds", "once"] = "rounds",
        score_share: float = 0.05,
        n_people: int | None = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.protocol = protocol
        self.score_share = score_share
        self.n_people = n_people
        self.seed = seed
        self.n_jobs = n_jobs

    def _protocol(self, n_people: int) -> ClassificationProtocol:
        return ClassificationProtocol(**self._settings(n_people), kind=self.protocol)
