"""BoundsScaler: a scaler that learns nothing, because the bounds of the features are declared."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp.estimators._base import outside_by_name, warn_out_of_domain
from skldp.estimators._diagram import DocumentedMixin
from skldp.estimators._validation import (
    BOUNDS_BY_COLUMN,
    FLOATS,
    as_table,
    check_bounds_by_column,
    fit_context,
    input_names,
    validate_finite,
)
from skldp.mechanisms._domain import Box, round_inward

__all__ = ["BoundsScaler"]


class BoundsScaler(DocumentedMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Scale every feature from declared bounds to a common range, and learn nothing.

    A StandardScaler or a MinMaxScaler in front of a private step learns from the private rows, which no epsilon
    covers. This one takes its scale from public knowledge, so that it may stand there.

    Parameters
    ----------
    bounds : (low, high), default=(-1, 1)
        The declared domain, each end a number or one number per feature. What lies outside is moved to the nearest end.
        Or a dict that names every column of a frame, like ``{"age": (0, 100), "weight": (30, 200)}``, or a list of one
        such pair per feature.
    feature_range : (low, high), default=(-1, 1)
        What they are scaled to, each end a number or one number per feature.

    Attributes
    ----------
    bounds_ : tuple of ndarray of shape (n_features,)
    scale_ : ndarray of shape (n_features,)
        What each feature is multiplied by.
    max_stretch_ : float
        How far a Euclidean distance between two rows can be stretched, at most.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Warns
    -----
    OutOfDomainWarning
        With the number of values that were moved into the bounds.

    See Also
    --------
    sklearn.preprocessing.MinMaxScaler : The same with bounds that are learnt.
    privacy_guarantee : What a whole pipeline guarantees.

    Notes
    -----
    With bounds [a, b] and a range [c, d], :math:`x \mapsto c + (d - c) (x - a) / (b - a)`.

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

    _parameter_constraints: dict = {"bounds": BOUNDS_BY_COLUMN, "feature_range": BOUNDS_BY_COLUMN}

    def __init__(self, bounds: Any = (-1, 1), *, feature_range: Any = (-1, 1)) -> None:
        self.bounds = bounds
        self.feature_range = feature_range

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
        """
        validate_finite(self, X, reset=True)
        # Both before either is set: of two fits, halves stretch distances by another factor.
        bounds = check_bounds_by_column(self.bounds, self)
        feature_range = check_bounds_by_column(self.feature_range, self, "feature_range")
        self.bounds_, self.feature_range_ = bounds, feature_range
        widths = [high / 2 - low / 2 for low, high in (bounds, feature_range)]
        self.scale_ = widths[1] / widths[0]
        # Three roundings of halves of the least digit; the bound lies on the safe side.
        self.max_stretch_ = float(self.scale_.max() * (1 + 2**-50))
        return self

    def transform(self, X: Any) -> Any:
        """Move every row into the bounds, and scale it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_scaled : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=FLOATS, ensure_all_finite=False)
        # The box refuses NaN and infinity when it looks at the numbers.
        box = Box.of(*self.bounds_)
        inside = box.clip(X)
        warn_out_of_domain(inside.n_moved, X.size, names=lambda: outside_by_name(X, box, input_names(self)))
        scaled = _mapped(inside.rows, self.bounds_, self.feature_range_).astype(X.dtype, copy=False)
        # What left the range by one rounding would be clipped, and counted, by the step behind.
        low, high = self.feature_range_
        return np.clip(scaled, *round_inward(low, high, X.dtype))

    def inverse_transform(self, X: Any) -> Any:
        """Scale back.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            What lies outside of `feature_range`, as released numbers may, comes to lie outside of `bounds`.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = as_table(X, dtype=FLOATS)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} columns. Got {X.shape[1]} instead.")
        return _mapped(X, self.feature_range_, self.bounds_).astype(X.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _mapped(X, source, target):
    """The affine map that takes the ends of `source` to those of `target`, in halves that cannot overflow."""
    share = (X / 2 - source[0] / 2) / (source[1] / 2 - source[0] / 2)
    return target[0] * (1 - share) + target[1] * share
