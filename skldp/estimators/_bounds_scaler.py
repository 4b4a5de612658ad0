"""BoundsScaler: scale features from declared bounds."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skldp.domains._domain import Box
from skldp.estimators._base import warn_moved_rows
from skldp.estimators._validation import (
    BOUNDS_BY_COLUMN,
    check_bounds_by_column,
    fit_context,
    in_family,
    validate_finite,
)


class BoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Scale every feature from declared bounds to [-1, 1].

    A StandardScaler or MinMaxScaler in front of a private step learns from private rows, which no epsilon covers; this
    scaler learns nothing.

    Parameters
    ----------
    bounds : (low, high), default=(-1, 1)
        Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list of
        one pair per feature. Values outside are clipped.

    Attributes
    ----------
    bounds_ : tuple of ndarray of shape (n_features,)
        Lower and upper bounds.
    scale_ : ndarray of shape (n_features,)
        Factor of each feature.
    max_stretch_ : float
        Bound on the stretch of a Euclidean distance between two rows.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Warns
    -----
    OutOfDomainWarning
        Reports the number of clipped values.

    See Also
    --------
    sklearn.preprocessing.MinMaxScaler : The same with bounds that are learnt.
    privacy_guarantee : Guarantee of a pipeline.

    Notes
    -----
    With bounds [a, b], :math:`x \mapsto 2 (x - a) / (b - a) - 1`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import BoundsScaler, NumericPrivatizer, privacy_guarantee
    >>> people = [[50.0, 1.5], [90.0, 1.9]]  # kilograms and metres
    >>> BoundsScaler(bounds=([30, 1.0], [230, 2.5])).fit_transform(people).round(2).tolist()
    [[-0.8, -0.33], [-0.4, 0.2]]
    >>> pipeline = make_pipeline(BoundsScaler(bounds=([30, 1.0], [230, 2.5])), NumericPrivatizer(epsilon=1.0))
    >>> privacy_guarantee(pipeline.fit(people)).stated
    1.0
    """

    __sklearn_clone__ = in_family
    _parameter_constraints: dict = {"bounds": BOUNDS_BY_COLUMN}

    def __init__(self, bounds: Any = (-1, 1)) -> None:
        self.bounds = bounds

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Take the scale from the declared bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its shape and feature names are used.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        validate_finite(self, X, reset=True)
        low, high = self.bounds_ = check_bounds_by_column(self.bounds, self)
        self.scale_ = 1.0 / (high / 2 - low / 2)
        # Three roundings of half a unit in the last place, rounded to the safe side.
        self.max_stretch_ = float(self.scale_.max() * (1 + 2**-50))
        return self

    def transform(self, X: Any) -> Any:
        """Return every row clipped to the bounds and scaled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        X = validate_finite(self, X, reset=False)
        box = Box.of(*self.bounds_)
        inside = box.clip(X)
        warn_moved_rows(self, inside.n_moved, X, box)
        # Halves cannot overflow.
        low, high = self.bounds_
        share = (inside.rows / 2 - low / 2) / (high / 2 - low / 2)
        # A value outside the range by rounding would be clipped, and counted, by the next step.
        return np.clip((share - (1 - share)).astype(X.dtype, copy=False), -1, 1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
