"""Least squares of released rows, corrected for the known noise of their release."""

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import as_numbers
from skldp.estimators._guarantee_mixin import GuaranteeMixin
from skldp.estimators._released_rows import law_of_releases
from skldp.estimators._validation import HasMethods, fit_context, validate_finite
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning._errors_in_variables import least_squares_of_releases
from skldp.learning._uncertainty import intervals_around
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._rows import RowMechanism

__all__ = ["NoiseAwareLinearRegression"]


class NoiseAwareLinearRegression(GuaranteeMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression on released rows: least squares that know the noise of their regressors.

    It is for those who must have rows. A release that is made for the model tells far more at the same epsilon.

    Parameters
    ----------
    mechanism : transformer or RowMechanism
        What released the rows: a fitted transformer, its ``mechanism_``, or a transformer that is not fitted, of which
        a clone is fitted to the shape of X. If it releases one number more than X has columns, the target was released
        with the row, as its last number. Releases must be unbiased and their second moments identified, as by PrivUnit,
        multivariate Laplace noise, and Laplace, Gaussian or Piecewise numbers, with at least two features of a row.
    target_mechanism : transformer or RowMechanism, default=None
        What released the target on its own, without bias. None takes the target as true, or released with the row.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    coef_covariance_ : ndarray of shape (n_features + 1, n_features + 1)
        Of the errors of intercept and coefficients, in this order. NaN if noise hides a direction of the rows.
    mechanism_ : RowMechanism
    privacy_guarantee_ : PrivacyGuarantee
        That of the releases: what is computed from them costs nothing more.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where the releases have them.

    Raises
    ------
    ValueError
        If the law of the release does not identify second moments: a row of which one feature is sampled tells no
        product of two.

    Warns
    -----
    TooFewPeopleWarning
        If noise hides a direction of the rows, with how many people it takes at least. Coefficients are shrunk then.

    See Also
    --------
    PrivateLinearRegression : Learns far more from a release that is made for the model.
    PrivateMoments : The same for every column as a target.

    Notes
    -----
    The second moments of the releases are turned into those of the rows by what the mechanism is known to do to them;
    products of features that were sampled are weighed by their chance of being released together. Plain least squares
    on the releases has coefficients that are too small. Standard errors are a sandwich of up to 200 groups of rows, so
    that rows must be of different people and in no order of time. At an equal error of a prediction, clean rows are
    predicted better than released ones.

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

    _parameter_constraints: dict = {
        "mechanism": [HasMethods(["fit", "transform"]), RowMechanism],
        "target_mechanism": [HasMethods(["fit", "transform"]), RowMechanism, None],
        "fit_intercept": ["boolean"],
    }

    def __init__(self, mechanism: Any, *, target_mechanism: Any = None, fit_intercept: bool = True) -> None:
        self.mechanism = mechanism
        self.target_mechanism = target_mechanism
        self.fit_intercept = fit_intercept

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn from releases.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Released rows.
        y : array-like of shape (n_samples,)
            The target, released or true.

        Returns
        -------
        self : object
        """
        self._forget_guarantee()
        rows, target = validate_finite(self, X, y=y, reset=True, dtype=np.float64, y_numeric=True)
        d = rows.shape[1]
        # A target that was released on its own was not released with the row.
        mechanism, guarantee = law_of_releases(self.mechanism, d, "mechanism", or_target=self.target_mechanism is None)
        together = mechanism.n_outputs == d + 1
        fit = least_squares_of_releases(
            rows, as_numbers(target, "y"), mechanism, together=together, fit_intercept=self.fit_intercept
        )
        if fit.n_needed > len(rows):
            warnings.warn(
                f"With {len(rows):,} released rows, noise hides at least one direction of them: coefficients are "
                f"shrunk, and their errors are not told. It takes at least {fit.n_needed:,} people, a larger epsilon, "
                "or fewer features.",
                TooFewPeopleWarning,
                stacklevel=2,
            )
        self.coef_, self.intercept_, self.coef_covariance_ = fit.coef, fit.intercept, fit.covariance
        self.mechanism_ = mechanism
        self.privacy_guarantee_ = self._of_both(guarantee, together)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Predict targets of clean rows, as the mechanism encodes them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = validate_finite(self, X, reset=False, dtype=np.float64)
        result: npt.NDArray[np.float64] = rows @ self.coef_ + self.intercept_
        return result

    def confidence_intervals(self, level: float = 0.95) -> npt.NDArray[np.float64]:
        """Normal intervals of the intercept and, after it, the coefficients.

        Parameters
        ----------
        level : float, default=0.95
            Inside (0, 1).

        Returns
        -------
        ndarray of shape (n_features + 1, 2)
            NaN where noise hides a direction of the rows.
        """
        check_is_fitted(self)
        values = np.append(self.intercept_, self.coef_)
        return intervals_around(values, np.sqrt(np.diag(self.coef_covariance_)), level)

    @property
    def label_guarantee_(self) -> PrivacyGuarantee | None:
        """The part of the guarantee that the target's own release has; None where it has none of its own."""
        self._check_unchanged()
        if self.target_mechanism is None:
            return None
        return law_of_releases(self.target_mechanism, 1, "target_mechanism")[1]

    def _of_both(self, guarantee: PrivacyGuarantee, together: bool) -> PrivacyGuarantee:
        whole = guarantee
        if self.target_mechanism is not None:
            whole = whole + law_of_releases(self.target_mechanism, 1, "target_mechanism")[1]
        basis = f"computed from releases, which costs nothing more: {whole.basis}"
        if self.target_mechanism is None and not together:
            basis += "; the target is as it was given"
        return replace(whole, basis=basis)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The tables of scikit-learn's checks are no releases.
        tags.regressor_tags.poor_score = True
        return tags
