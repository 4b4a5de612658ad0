"""A classifier that sees only randomized labels, and can predict the true ones through the known flip matrix."""

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skldp._untold import untold
from skldp.estimators._label_matrix import LabelMatrixRR
from skldp.estimators._label_private import LabelPrivate, inner_has
from skldp.estimators._labels import LabelRR
from skldp.estimators._validation import HasMethods, StrOptions, fit_context
from skldp.mechanisms._categorical.frequency import clean_probabilities

__all__ = ["LabelPrivateClassifier"]


def _decides_on_true_labels(self: Any) -> bool:
    # A decision function of the randomized labels would contradict the corrected predictions.
    return self.correction == "none" and inner_has("decision_function")(self)


class LabelPrivateClassifier(LabelPrivate, ClassifierMixin, BaseEstimator):
    r"""Train any classifier on labels that were randomized under local differential privacy.

    Only the labels are protected: the classifier sees X as it is.

    Parameters
    ----------
    estimator : classifier
        Cloned and fitted on the randomized labels.
    label_mechanism : LabelRR or LabelLaplace, default=None
        Cloned and applied to y in `fit`. None is ``LabelRR()``. For several labels a row, :class:`LabelMatrixRR`.
    correction : {"none", "forward"}, default="none"
        ``"none"`` predicts what `estimator` learnt: the randomized labels. ``"forward"`` turns its probabilities of
        the randomized labels into those of the true ones, through the known flip matrix.

    Attributes
    ----------
    estimator_ : the fitted classifier of randomized labels
    label_mechanism_ : the fitted mechanism
    classes_ : ndarray of shape (n_classes,), or list of such
        All classes of the mechanism, also those that no randomized label happened to show.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label; infinite where the mechanism learnt its classes.
    n_features_in_ : int
        Where `estimator` sets it.
    feature_names_in_ : ndarray of shape (n_features,)
        Where `estimator` sets it.

    Raises
    ------
    ValueError
        If a label is not declared, or ``correction="forward"`` meets a classifier without ``predict_proba``.

    Warns
    -----
    LearntDomainWarning
        If the mechanism learns its classes from y.

    See Also
    --------
    LabelRR : The default mechanism, whose `classes` should be declared.

    Notes
    -----
    With the flip matrix T, :math:`P(y' | x) = T^\top P(y | x)`. The correction happens at prediction time and works
    with any classifier that has ``predict_proba``: it solves that system and takes the nearest point of the
    probability simplex. It corrects the bias of the probabilities; with `LabelRR` and `LabelLaplace` without a prior
    it never changes which class is the most likely. It can be no better than `estimator`'s probabilities of the
    randomized labels are.

    Anything else that is passed to ``fit`` goes to ``estimator.fit`` (by metadata routing where that is enabled).
    What holds the true labels, or was computed from them (weights, an evaluation set), is not protected there.

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
        "estimator": [HasMethods(["fit", "predict"])],
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

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: npt.ArrayLike, **fit_params: Any) -> Self:
        """Randomize the labels and train the classifier on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Handed to `estimator` unprotected.
        y : array-like of shape (n_samples,)
            The private labels.
        **fit_params : dict
            Such as `sample_weight`, for ``estimator.fit``.

        Returns
        -------
        self : object
        """
        return self._train(X, y, fit_params)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most likely class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self.correction == "none":
            return self._ask("predict", X)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @available_if(inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes: of the true labels with ``correction="forward"``, else of randomized ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        if isinstance(self.classes_, list):
            return self._ask("predict_proba", X)
        probabilities = self._of_all_classes(self._ask("predict_proba", X))
        if self.correction == "none":
            return probabilities
        return clean_probabilities(probabilities, self.label_mechanism_.flip_matrix_).astype(
            probabilities.dtype, copy=False
        )

    @available_if(inner_has("predict_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Natural logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Minus infinity where a probability is 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(_decides_on_true_labels)
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of the classifier of randomized labels; there are none with a correction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            In the order of ``estimator_.classes_``.
        """
        check_is_fitted(self)
        return self._ask("decision_function", X)

    def score(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Accuracy of :meth:`predict`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The true labels, which are not randomized here.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        with untold("y must hold one label for each row", y):
            return super().score(X, y, sample_weight)

    def _default_mechanism(self) -> Any:
        return LabelRR()

    def _check_inner(self) -> None:
        if is_regressor(self.estimator):
            raise ValueError(
                "estimator must be a classifier; LabelPrivateRegressor trains regressors on released numbers. "
                f"Got {type(self.estimator).__name__} instead."
            )
        if self.correction == "forward" and isinstance(self.label_mechanism, LabelMatrixRR):
            raise ValueError("correction='forward' is for one label a row. Got a LabelMatrixRR instead.")
        if self.correction == "forward" and not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                "correction='forward' needs an estimator with predict_proba. "
                f"Got {type(self.estimator).__name__} without it instead."
            )

    def _partly(self, mechanism: Any) -> dict[str, Any]:
        return {"classes": mechanism.classes_}

    def _keep(self, mechanism: Any, estimator: Any) -> Self:
        self.classes_ = mechanism.classes_
        return super()._keep(mechanism, estimator)

    def _of_all_classes(self, probabilities: np.ndarray) -> np.ndarray:
        """Add columns of zeros for the classes that no randomized label showed."""
        seen = np.isin(self.classes_, self.estimator_.classes_)
        if seen.all():
            return probabilities
        full = np.zeros((probabilities.shape[0], self.classes_.size), dtype=probabilities.dtype)
        full[:, seen] = probabilities
        return full

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        if inner.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags
