"""LabelPrivateClassifier: a classifier on randomized labels, corrected by the known flip matrix."""

import math
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp.estimators._class_codes import classes_of, decode, encode, labels_1d
from skldp.estimators._label_private import LabelPrivate, inner_has
from skldp.estimators._label_vectors import LabelMatrixRR
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._validation import HasMethods, NumberRange, StrOptions
from skldp.mechanisms._noise import Noise, noise_from
from skldp.mechanisms.categorical._frequency import clean_probabilities
from skldp.mechanisms.categorical._label_laws import RowPriorResponse, as_priors


def _cohorts(n: int, stages: int, noise: Noise) -> list[npt.NDArray[np.int64]]:
    """Divide people at random into cohorts of nearly equal size: the order of rows may reveal labels."""
    return [np.sort(part) for part in np.array_split(noise.permutation(n), stages)]


def _rows_of(table: Any, places: npt.NDArray[np.int64]) -> Any:
    """Return some rows of a frame, an array, a sparse matrix or a list."""
    if hasattr(table, "iloc"):
        return table.iloc[places]
    if isinstance(table, list | tuple):
        return [table[place] for place in places.tolist()]
    if hasattr(table, "tocsr"):
        return table.tocsr()[places]
    return (table if hasattr(table, "__getitem__") else np.asarray(table))[places]


def _of_people(fit_params: dict[str, Any], n: int, places: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Slice sample-aligned fit parameters to a subset of the samples."""
    return {name: _rows_of(value, places) if _one_each(value, n) else value for name, value in fit_params.items()}


def _one_each(value: Any, n: int) -> bool:
    if hasattr(value, "shape"):
        return bool(value.shape) and value.shape[0] == n
    return isinstance(value, list | tuple) and len(value) == n


def _of_all_classes(probabilities: np.ndarray, model: Any, classes: np.ndarray) -> np.ndarray:
    """Add columns of zeros for classes that a model has not seen."""
    seen = np.isin(classes, model.classes_)
    if seen.all():
        return probabilities
    full = np.zeros((probabilities.shape[0], classes.size), dtype=probabilities.dtype)
    full[:, seen] = probabilities
    return full


def _train_in_stages(
    estimator: Any, mechanism: Any, X: Any, y: Any, n_stages: int, fit_params: dict[str, Any]
) -> tuple[list[Any], RowPriorResponse]:
    """Release the labels cohort by cohort, and train a model after each on all releases so far.

    Shapes: `X` (n_samples, n_features); `y` (n_samples,).
    """
    y = labels_1d(y)
    check_consistent_length(X, y)
    if len(y) < n_stages:
        raise ValueError(f"stages must be at most the number of people; got {n_stages} with n_samples = {len(y)}.")
    classes = mechanism.fit(y).classes_
    response, models = RowPriorResponse(float(mechanism.epsilon), classes.size), []
    codes, released = encode(y, classes, "y"), np.empty(len(y), dtype=np.int64)
    # Separate streams for the cohorts and the releases: independent with a seed, too.
    split, *noises = noise_from(mechanism.seed).spawn(1 + n_stages)
    asked, model = np.empty(0, dtype=np.int64), None
    for cohort, noise in zip(_cohorts(len(y), n_stages, split), noises, strict=True):
        priors = _priors(model, classes, _rows_of(X, cohort), cohort.size)
        released[cohort] = response.release(codes[cohort], priors, noise)
        asked, model = np.sort(np.concatenate([asked, cohort])), None
        if asked.size == len(y) or np.ptp(released[asked]) > 0:
            labels = decode(released[asked], classes, y.dtype)
            model = clone(estimator).fit(_rows_of(X, asked), labels, **_of_people(fit_params, len(y), asked))
        models.append(model)
    return models, response


def _priors(model: Any, classes: np.ndarray, X: Any, n: int) -> np.ndarray:
    """Return the priors of people with the rows X: uniform without a model."""
    return as_priors(
        np.ones((n, classes.size)) if model is None else _of_all_classes(model.predict_proba(X), model, classes)
    )


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
    stages : int, default=1
        Number of random cohorts (LP-MST). Each person releases once; later cohorts answer by randomized response with
        a prior that a model of the earlier releases predicts from their features. For ``LabelRR`` without a prior or a
        ledger, and classifiers with ``predict_proba``. Each stage fits the classifier again: put a private step of
        features in front of LabelPrivateClassifier, or :func:`~skldp.privacy_guarantee` is infinite.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on randomized labels.
    label_mechanism_ : the fitted mechanism
        With stages, that of the first cohort.
    stages_ : list of fitted classifiers
        With stages: the model after each, trained on all releases so far; None while these have one class.
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
        If a label is not declared, ``correction="forward"`` or stages are used with a classifier without
        ``predict_proba``, or there are fewer people than stages.

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

    The priors of stages are the model's probabilities of the released labels, as published. If the best answer is the
    same for every class, it is constant and costs nothing. Stages help with many classes of which few are likely for a
    person, and hurt if the first cohort is too small. They have no single T for a correction.

    Further arguments of ``fit`` go to ``estimator.fit`` (by metadata routing if enabled). Arguments that hold true
    labels, or were computed from them (weights, an evaluation set), are not protected.

    References
    ----------
    Patrini, Rozza, Menon, Nock and Qu, "Making deep neural networks robust to label noise: a loss correction
    approach", CVPR 2017, Theorem 2, for the flip matrix in front of the likelihood.
    Ghazi, Golowich, Kumar, Manurangsi and Zhang, "Deep learning with label differential privacy", NeurIPS 2021,
    Algorithm 3, for the stages.

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
        "stages": [NumberRange(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        label_mechanism: BaseEstimator | None = None,
        correction: Literal["none", "forward"] = "none",
        stages: int = 1,
    ) -> None:
        self.estimator = estimator
        self.label_mechanism = label_mechanism
        self.correction = correction
        self.stages = stages

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

    def _train(self, X: Any, y: Any, fit_params: dict[str, Any]) -> Self:
        if self.stages == 1:
            return super()._train(X, y if isinstance(self.label_mechanism, LabelMatrixRR) else labels_1d(y), fit_params)
        mechanism = self._new_mechanism(labels_1d(y))
        self.stages_, response = _train_in_stages(self.estimator, mechanism, X, y, self.stages, fit_params)
        self._keep(mechanism, self.stages_[-1])
        of_labels = mechanism.privacy_guarantee_
        # Learnt classes void the guarantee.
        if not math.isinf(of_labels.epsilon):
            self.privacy_guarantee_ = replace(response.guarantee(), seeded=of_labels.seeded)
        return self

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
        if self.correction == "forward" and self.stages > 1:
            raise ValueError(
                f"correction='forward' needs stages=1: people of several stages have several flip matrices; "
                f"got stages={self.stages}."
            )
        if self.correction == "forward" and isinstance(self.label_mechanism, LabelMatrixRR):
            raise ValueError("correction='forward' needs one label per row; got a LabelMatrixRR.")
        asks = "correction='forward'" if self.correction == "forward" else "stages" if self.stages > 1 else ""
        if asks and not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"{asks} needs an estimator with predict_proba; got {type(self.estimator).__name__} without it."
            )
        given = self.label_mechanism
        if self.stages > 1 and not (
            given is None or (isinstance(given, LabelRR) and given.prior is None and given.ledger is None)
        ):
            raise ValueError(
                "stages needs a LabelRR without a prior or a ledger as label_mechanism; "
                f"got {type(given).__name__}, or one with a prior or a ledger."
            )

    def _guarantee_parameters(self) -> dict[str, Any]:
        return super()._guarantee_parameters() | {"stages": self.stages}

    def _keep(self, mechanism: Any, estimator: Any) -> Self:
        self.classes_ = mechanism.classes_
        return super()._keep(mechanism, estimator)
