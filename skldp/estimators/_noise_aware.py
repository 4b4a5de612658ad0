r"""Models of released rows that account for the noise of the release."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp._arrays import Floats, as_numbers
from skldp.estimators._base import law_of_releases
from skldp.estimators._class_codes import encode, labels_1d, learnt_values
from skldp.estimators._guarantee_mixin import GuaranteeMixin, own_guarantee
from skldp.estimators._labels import LabelReleaser
from skldp.estimators._private_logistic import LinearScores
from skldp.estimators._validation import HasMethods, as_table, fit_context, is_fitted, validate_finite, warn
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning._errors_in_variables import least_squares_of_releases
from skldp.learning._linear_rule import discriminant_of_releases, unbiased_members
from skldp.learning._uncertainty import intervals_around
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._rows import RowMechanism


class NoiseAwareLinearRegression(GuaranteeMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression on released rows: least squares corrected for the known noise of the regressors.

    Use it only if rows must be released: a release made for the model carries far more information at the same epsilon.

    Parameters
    ----------
    mechanism : transformer or RowMechanism
        Mechanism that released the rows: a fitted transformer, its ``mechanism_``, or an unfitted transformer, a clone
        of which is fitted to the shape of X. If it releases one number more than X has columns, the last number is the
        target. Releases must be unbiased and identify second moments, as do PrivUnit, multivariate Laplace noise, and
        Laplace, Gaussian or Piecewise numbers with at least two features per row.
    target_mechanism : transformer or RowMechanism, default=None
        Unbiased mechanism that released the target separately. None if the target is true, or released with the row.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        Coefficients and intercept.
    coef_covariance_ : ndarray of shape (n_features + 1, n_features + 1)
        Covariance of the errors of intercept and coefficients, in this order. NaN if noise hides a direction of the
        rows.
    mechanism_ : RowMechanism
        Sampled mechanism.
    privacy_guarantee_ : PrivacyGuarantee
        Guarantee of the releases, at no further cost.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if the releases have names.

    Raises
    ------
    ValueError
        If the release does not identify second moments, as with one sampled feature per row.

    Warns
    -----
    TooFewPeopleWarning
        If noise hides a direction of the rows, with the number of people needed. Coefficients are shrunk then.

    See Also
    --------
    PrivateLinearRegression : More accurate, from a release made for the model.
    PrivateMoments : Regressions of every column as the target.

    Notes
    -----
    The known effect of the mechanism on second moments is inverted; plain least squares on releases has coefficients
    that are too small. Standard errors are a sandwich of up to 200 groups of rows, which must be of different people
    and not in order of time.

    References
    ----------
    Fuller, "Measurement Error Models", 1987, section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import NoiseAwareLinearRegression, NumericPrivatizer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (40_000, 2))
    >>> y = X @ [0.5, -0.3] + 0.1 * rng.standard_normal(40_000)
    >>> release = NumericPrivatizer(epsilon=8.0, mechanism="piecewise", n_sampled_features=2)
    >>> model = NoiseAwareLinearRegression(release).fit(release.fit_transform(X), y)
    >>> bool(np.abs(model.coef_ - [0.5, -0.3]).max() < 0.05)
    True
    """

    _learns_from_releases = True
    _parameter_constraints: dict = {
        "mechanism": [HasMethods(["fit", "transform"]), RowMechanism],
        "target_mechanism": [HasMethods(["fit", "transform"]), RowMechanism, None],
    }

    def __init__(self, mechanism: Any, *, target_mechanism: Any = None) -> None:
        self.mechanism = mechanism
        self.target_mechanism = target_mechanism

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Fit the model to released rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Released rows.
        y : array-like of shape (n_samples,)
            The target, released or true.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._forget_guarantee()
        rows, target = validate_finite(self, X, y=y, reset=True, dtype=np.float64, y_numeric=True)
        d = rows.shape[1]
        # A target is released on its own or with the row, not both.
        mechanism, guarantee = law_of_releases(self.mechanism, d, "mechanism", or_target=self.target_mechanism is None)
        together = mechanism.n_outputs == d + 1
        fit = least_squares_of_releases(rows, as_numbers(target, "y"), mechanism, together=together)
        if fit.n_needed > len(rows):
            warn(
                "Noise hides at least one direction of the rows: coefficients are shrunk and have no standard errors; "
                f"got {len(rows):,} released rows. Use at least {fit.n_needed:,} people, fewer features, or a larger "
                "epsilon.",
                TooFewPeopleWarning,
            )
        self.coef_, self.intercept_, self.coef_covariance_ = fit.coef, fit.intercept, fit.covariance
        self.mechanism_ = mechanism
        claims = ["the target is as it was given"] if self.target_mechanism is None and not together else []
        given = self.target_mechanism
        self._label_guarantee = None if given is None else law_of_releases(given, 1, "target_mechanism")[1]
        self.privacy_guarantee_ = _computed_from(guarantee, self._label_guarantee, claims)
        return self

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return the predicted targets of clean rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows encoded by the mechanism.
        """
        check_is_fitted(self)
        return validate_finite(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_

    def confidence_intervals(self, level: float = 0.95) -> Floats:
        """Return normal intervals of the intercept and the coefficients, shape (n_features + 1, 2).

        The ends are NaN if noise hides a direction of the rows.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside (0, 1) that an interval covers its coefficient.
        """
        check_is_fitted(self)
        values = np.append(self.intercept_, self.coef_)
        return intervals_around(values, np.sqrt(np.diag(self.coef_covariance_)), level)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks fit rows that were not released.
        tags.regressor_tags.poor_score = True
        return tags


class NoiseAwareDiscriminant(GuaranteeMixin, LinearScores, BaseEstimator):
    r"""Linear discriminant analysis of released rows, corrected for the known noise of their mechanism.

    It predicts clean rows encoded by the mechanism (``transform`` with ``transform_noise=False``), and new releases
    less accurately.

    Parameters
    ----------
    mechanism : transformer or RowMechanism
        Mechanism that released the rows, as in :class:`NoiseAwareLinearRegression`, without a target.
    label_mechanism : LabelRR or LabelLaplace, default=None
        Mechanism that released the labels, fitted or with declared `classes`. None if the labels are true.
    public : array-like of shape (n_public, n_features), default=None
        Clean public vectors of the same kind, encoded by the mechanism. Their covariance shows in
        which directions classes are likely to differ.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes.
    coef_, intercept_ : ndarray of shape (n_logits, n_features), ndarray of shape (n_logits,)
        Coefficients and intercepts; n_logits is 1 for two classes, else n_classes.
    mechanism_ : RowMechanism
        Sampled mechanism.
    privacy_guarantee_ : PrivacyGuarantee
        Guarantee of the releases, at no further cost.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if the releases have names.

    Raises
    ------
    ValueError
        If the release does not identify second moments, or a label is not among the mechanism's classes.

    See Also
    --------
    PrivateDiscriminant : More accurate, from a release made for the model.
    LabelPrivateClassifier : Protects the labels only.

    Notes
    -----
    Class means of releases are unbiased; randomized labels are weighted by the inverse of the flip matrix. The
    covariance is that of the releases, corrected by ``original_second_moment``, with the noise's edge as its ridge.

    References
    ----------
    Fuller, "Measurement Error Models", 1987.

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

    _learns_from_releases = True
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
        """Fit the model to released rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Released rows.
        y : array-like of shape (n_samples,)
            Labels, released by `label_mechanism` where there is one.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._forget_guarantee()
        # A variance needs two rows.
        rows = validate_finite(self, X, reset=True, dtype=np.float64, ensure_min_samples=2)
        labels = labels_1d(y)
        check_consistent_length(rows, labels)
        mechanism, guarantee = law_of_releases(self.mechanism, rows.shape[1], "mechanism")
        law, public = self._of_the_labels(), None
        classes = learnt_values(labels) if law is None else law.classes_
        if len(classes) < 2:
            raise ValueError("y must have at least 2 classes; got one class.")
        flip_matrix = np.eye(len(classes)) if law is None else law.flip_matrix_
        members = unbiased_members(encode(labels, classes, "y"), flip_matrix)
        claims = ["labels are as they were given"] if law is None else []
        if self.public is not None:
            public = as_table(self.public, "public", rows.shape[1]).astype(np.float64)
            claims.append("`public` is assumed to be public and independent of these people")
        learnt = discriminant_of_releases(rows, members, mechanism, public)
        self.mechanism_, self.classes_ = mechanism, classes
        self._set_logits(*learnt)
        self._label_guarantee = None if law is None else own_guarantee(law)
        self.privacy_guarantee_ = _computed_from(guarantee, self._label_guarantee, claims)
        return self

    def _of_the_labels(self) -> Any:
        """Return the fitted label mechanism."""
        mechanism = self.label_mechanism
        if mechanism is None or is_fitted(mechanism):
            return mechanism
        if mechanism.get_params().get("classes") is None:
            raise ValueError(
                "label_mechanism must be fitted, or have declared classes; "
                f"got an unfitted {type(mechanism).__name__}(classes=None)."
            )
        return clone(mechanism).fit(mechanism.classes)


def _computed_from(releases: PrivacyGuarantee, labels: PrivacyGuarantee | None, claims: list[str]) -> PrivacyGuarantee:
    """Return the guarantee of what is computed from releases of rows and of their labels or targets."""
    both = releases if labels is None else releases + labels
    basis = f"computed from releases, which costs nothing more: {both.basis}"
    return replace(both, basis="; ".join([basis, *claims]))
