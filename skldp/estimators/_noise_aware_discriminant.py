"""A linear discriminant of released rows, from which the known noise of the release is taken."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp.estimators._class_codes import encode, labels_1d, learnt_values
from skldp.estimators._guarantee_mixin import GuaranteeMixin, own_guarantee
from skldp.estimators._labels import LabelReleaser
from skldp.estimators._linear_classifier import LinearScores
from skldp.estimators._released_rows import law_of_releases
from skldp.estimators._validation import HasMethods, as_table, fit_context, validate_finite
from skldp.learning._releases import discriminant_of_releases, unbiased_members
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._rows import RowMechanism

__all__ = ["NoiseAwareDiscriminant"]


class NoiseAwareDiscriminant(GuaranteeMixin, LinearScores, BaseEstimator):
    r"""Linear discriminant analysis of released rows, corrected for the noise that their mechanism is known to add.

    It is fitted on releases, and predicts clean rows as the mechanism encodes them: ``transform`` of a transformer with
    ``transform_noise=False``. On new releases it works, too, with their noise.

    Parameters
    ----------
    mechanism : transformer or RowMechanism
        What released the rows: a fitted transformer, its ``mechanism_``, or a transformer that is not fitted, of which
        a clone is fitted to the shape of the releases. Releases must be unbiased, and second moments be identified, as
        by PrivUnit, multivariate Laplace noise and numeric mechanisms with at least two features of a row.
    label_mechanism : LabelRR or LabelLaplace, default=None
        What released the labels, fitted, or not and with declared `classes`. None takes the labels as true ones.
    public : array-like of shape (n_public, n_features), default=None
        Clean vectors of the same kind, encoded as the mechanism encodes them, that are nobody's secret. Class means are
        then expected to differ in the directions in which these do.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    mechanism_ : RowMechanism
    privacy_guarantee_ : PrivacyGuarantee
        That of the releases: what is computed from them costs nothing more.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where the releases have them.

    Raises
    ------
    ValueError
        If the mechanism's law does not identify second moments, or releases numbers of another kind; if a label is not
        one of the mechanism's classes, or a parameter is not as above.

    See Also
    --------
    PrivateDiscriminant : Learns far more from a release that is made for the model.
    LabelPrivateClassifier : Where only the labels are private.

    Notes
    -----
    Class means of releases are unbiased; labels that were randomised belong to the classes by weights that undo the
    flip matrix in the mean. The covariance within the classes is that of the releases, undone by
    ``original_second_moment``, less that between the means, moved to the nearest positive semidefinite matrix. Ridge
    and intercepts follow from the size of the noise alone.

    References
    ----------
    Fuller, "Measurement Error Models", 1987. James and Stein, "Estimation with quadratic loss", 1961, for the shrunk
    intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LabelRR, NoiseAwareDiscriminant, PrivUnitTransformer
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=20_000)
    >>> X = rng.normal(np.eye(2, 20)[y], 0.3)
    >>> rows, labels = PrivUnitTransformer(epsilon=3.0, transform_noise=False), LabelRR(epsilon=1.0, classes=[0, 1])
    >>> model = NoiseAwareDiscriminant(rows, label_mechanism=labels)
    >>> model.fit(rows.fit_transform(X), labels.fit_transform(y)).score(rows.transform(X), y) > 0.9
    True
    >>> round(model.privacy_guarantee_.epsilon, 6)
    4.0
    """

    _parameter_constraints: dict = {
        "mechanism": [HasMethods(["fit", "transform"]), RowMechanism],
        "label_mechanism": [LabelReleaser, None],
        "public": ["array-like", None],
    }

    def __init__(self, mechanism: Any, *, label_mechanism: Any = None, public: Any = None) -> None:
        self.mechanism = mechanism
        self.label_mechanism = label_mechanism
        self.public = public

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn from releases.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Released rows.
        y : array-like of shape (n_samples,)
            Labels, released by `label_mechanism` where there is one.

        Returns
        -------
        self : object
        """
        self._forget_guarantee()
        # Of one row nothing varies.
        rows = validate_finite(self, X, reset=True, dtype=np.float64, ensure_min_samples=2)
        labels = labels_1d(y)
        check_consistent_length(rows, labels)
        mechanism, guarantee = law_of_releases(self.mechanism, rows.shape[1], "mechanism")
        label_mechanism = self._of_the_labels()
        classes = learnt_values(labels) if label_mechanism is None else label_mechanism.classes_
        if len(classes) < 2:
            raise ValueError("There must be at least 2 classes. Got one class instead.")
        codes = encode(labels, classes, "y")
        flip_matrix = np.eye(len(classes)) if label_mechanism is None else label_mechanism.flip_matrix_
        public = None
        if self.public is not None:
            public = as_table(self.public, "public").astype(np.float64)
            if public.shape[1] != rows.shape[1]:
                raise ValueError(f"public must have {rows.shape[1]} columns. Got {public.shape[1]} instead.")
        learnt = discriminant_of_releases(rows, unbiased_members(codes, flip_matrix), mechanism, public)
        self.mechanism_ = mechanism
        self._learn(classes, *learnt)
        self.privacy_guarantee_ = self._of_both(guarantee, label_mechanism)
        return self

    @property
    def label_guarantee_(self) -> PrivacyGuarantee | None:
        """The part of the guarantee that the labels' release has; None where labels are taken as they are."""
        self._check_unchanged()
        mechanism = self._of_the_labels()
        return None if mechanism is None else own_guarantee(mechanism)

    def _of_the_labels(self) -> Any:
        """What released the labels, fitted."""
        mechanism = self.label_mechanism
        if mechanism is None or _is_fitted(mechanism):
            return mechanism
        if mechanism.get_params().get("classes") is None:
            raise ValueError(
                "label_mechanism must be fitted, or declare its classes. "
                f"Got {type(mechanism).__name__}(classes=None), not fitted, instead."
            )
        return clone(mechanism).fit(mechanism.classes)

    def _of_both(self, guarantee: PrivacyGuarantee, label_mechanism: Any) -> PrivacyGuarantee:
        whole = guarantee if label_mechanism is None else guarantee + own_guarantee(label_mechanism)
        basis = f"computed from releases, which costs nothing more: {whole.basis}"
        if label_mechanism is None:
            basis += "; labels are as they were given"
        if self.public is not None:
            basis += "; `public` is assumed to be nobody's secret, and about none of these people"
        return replace(whole, basis=basis)


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
