"""LabelPrivateClassifier: a classifier on randomized labels, corrected by the known flip matrix."""

from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._class_codes import classes_of, labels_1d
from skldp.estimators._label_private import LabelPrivate, inner_has
from skldp.estimators._label_vectors import LabelMatrixRR
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._validation import HasMethods, StrOptions
from skldp.mechanisms.categorical._frequency import clean_probabilities


def _of_all_classes(probabilities: np.ndarray, model: Any, classes: np.ndarray) -> np.ndarray:
    """Add columns of zeros for classes that a model has not seen."""
    seen = np.isin(classes, model.classes_)
    if seen.all():
        return probabilities
    full = np.zeros((probabilities.shape[0], classes.size), dtype=probabilities.dtype)
    full[:, seen] = probabilities
    return full


def _decides_on_true_labels(self: Any) -> bool:
    # Decision values of randomized labels would contradict the corrected predictions.
    return self.correction == "none" and inner_has("decision_function")(self)


class LabelPrivateClassifier(LabelPrivate, ClassifierMixin, BaseEstimator):
    r"""Train any classifier on labels randomized under local differential privacy.

    Only the labels are protected, not X.

    Parameters
    ----------
    estimator : classifier
        Cloned and fitted on the randomized labels.
    label_mechanism : LabelRR or LabelLaplace, default=None
        Cloned and applied to y in `fit`. None is ``LabelRR()``. For several labels a row,
        :class:`~skldp.papers.LabelMatrixRR`.
    correction : {"none", "forward"}, default="none"
        ``"none"`` returns the predictions of `estimator`, for randomized labels. ``"forward"`` converts its
        probabilities of randomized labels to those of true labels, through the known flip matrix.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on randomized labels.
    label_mechanism_ : LabelRR or LabelLaplace
        Fitted mechanism.
    classes_ : ndarray of shape (n_classes,), or list of such
        All classes of the mechanism, including those that no randomized label has.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label; infinite if the mechanism learnt its classes.
    n_features_in_ : int
        If `estimator` sets it.
    feature_names_in_ : ndarray of shape (n_features,)
        If `estimator` sets it.

    Raises
    ------
    ValueError
        If a label is not declared, or ``correction="forward"`` is used with a classifier without ``predict_proba``.

    Warns
    -----
    LearntDomainWarning
        If the mechanism learns its classes from y.

    See Also
    --------
    skldp.LabelRR : The default mechanism, whose `classes` should be declared.

    Notes
    -----
    With the flip matrix T, :math:`P(y' | x) = T^\top P(y | x)`. The correction happens at prediction time and works
    with any classifier that has ``predict_proba``: it solves that system and takes the nearest point of the
    probability simplex. It corrects the bias of the probabilities; with `LabelRR` and `LabelLaplace` without a prior
    it never changes which class is the most likely. It can be no better than `estimator`'s probabilities of the
    randomized labels are.

    Further arguments of ``fit`` go to ``estimator.fit`` (by metadata routing if enabled). Arguments that hold true
    labels, or were computed from them (weights, an evaluation set), are not protected.

    References
    ----------
    Patrini, Rozza, Menon, Nock and Qu, "Making deep neural networks robust to label noise: a loss correction
    approach", CVPR 2017, Theorem 2, for the flip matrix in front of the likelihood.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skldp import LabelPrivateClassifier, LabelRR
    >>> X, y = load_iris(return_X_y=True)
    >>> label_rr = LabelRR(epsilon=4.0, classes=[0, 1, 2])
    >>> classifier = LabelPrivateClassifier(GaussianNB(), label_mechanism=label_rr, correction="forward").fit(X, y)
    >>> classifier.predict_proba(X).shape, classifier.privacy_guarantee_.epsilon
    ((150, 3), 4.0)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"])],
        "label_mechanism": [HasMethods(["fit_transform"]), None],
        "correction": [StrOptions({"none", "forward"})],
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        label_mechanism: BaseEstimator | None = None,
        correction: Literal["none", "forward"] = "none",
    ) -> None:
        self.estimator = estimator
        self.label_mechanism = label_mechanism
        self.correction = correction

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public features.
        """
        check_is_fitted(self)
        if self.correction == "none":
            return self._ask("predict", X)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities: of true labels with ``correction="forward"``, else of randomized ones.

        Columns are in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public features.
        """
        check_is_fitted(self)
        if isinstance(self.classes_, list):
            return self._ask("predict_proba", X)
        probabilities = _of_all_classes(self._ask("predict_proba", X), self.estimator_, self.classes_)
        if self.correction == "none":
            return probabilities
        self._check_inner()  # It may have been set after `fit`.
        return clean_probabilities(probabilities, self.label_mechanism_.flip_matrix_).astype(
            probabilities.dtype, copy=False
        )

    @available_if(inner_has("predict_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of :meth:`predict_proba`; minus infinity where a probability is 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public features.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(_decides_on_true_labels)
    def decision_function(self, X: Any) -> np.ndarray:
        """Return decision values of the classifier of randomized labels; not available with a correction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public features.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the order of ``estimator_.classes_``.
        """
        check_is_fitted(self)
        return self._ask("decision_function", X)

    def _targets(self, y: Any) -> Any:
        return y if isinstance(self.label_mechanism, LabelMatrixRR) else labels_1d(y)

    def _new_mechanism(self, y: Any = None) -> Any:
        mechanism = super()._new_mechanism()
        # A prior is in the order of the declared classes.
        if type(mechanism) in (LabelRR, LabelLaplace) and getattr(mechanism, "prior", None) is None:
            mechanism.classes = None if mechanism.classes is None else classes_of(y, mechanism.classes)
        return mechanism

    def _check_inner(self) -> None:
        if is_regressor(self.estimator):
            raise ValueError(
                "estimator must be a classifier; LabelPrivateRegressor trains regressors on released numbers; "
                f"got {type(self.estimator).__name__}."
            )
        if self.correction == "none":
            return
        if isinstance(self.label_mechanism, LabelMatrixRR):
            raise ValueError("correction='forward' needs one label per row; got a LabelMatrixRR.")
        if not hasattr(self.estimator, "predict_proba"):
            name = type(self.estimator).__name__
            raise ValueError(f"correction='forward' needs an estimator with predict_proba; got {name} without it.")
