"""Regression on rows that were released with their target."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import Floats, as_numbers
from skldp.domains._domain import Box
from skldp.estimators._base import warn_moved
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._validation import check_bounds, check_bounds_by_column, validate_finite
from skldp.mechanisms._guarantee import PrivacyGuarantee


class ReleasedRowsRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Regression on rows that were released with their target by one mechanism.

    Parameters
    ----------
    mechanism : transformer or None
        Releases rows between -1 and 1, with the same columns and on the same scale: PrivUnit with a declared `norm`,
        since a direction divides the target by the norm of its row. None fits on the rows as they are: no privacy.
    estimator : regressor
        Cloned and fitted.
    bounds, target_bounds : (low, high), default=(-1, 1)
        Declared bounds. Rows, targets and predictions are clipped to them.

    Attributes
    ----------
    estimator_, mechanism_ : regressor, transformer or None
        Fitted clones.
    privacy_guarantee_ : PrivacyGuarantee
        Guarantee of the mechanism, for the record with its target. There is none without a mechanism.

    Raises
    ------
    ValueError
        If a release has other columns than its row, so that none of them is the target's.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study import ReleasedRowsRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5_000, 2))
    >>> mechanism = NumericPrivatizer(40.0, mechanism="piecewise", transform_noise=False)
    >>> model = ReleasedRowsRegressor(mechanism, LinearRegression()).fit(X, X @ [0.5, 0.2])
    >>> model.score(X, X @ [0.5, 0.2]) > 0.9
    True
    """

    def __init__(self, mechanism: Any, estimator: Any, *, bounds: Any = (-1, 1), target_bounds: Any = (-1, 1)) -> None:
        self.mechanism = mechanism
        self.estimator = estimator
        self.bounds = bounds
        self.target_bounds = target_bounds

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Release the rows with their targets, and fit the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private targets.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        rows, target = self._records(X, y)
        self.mechanism_ = None if self.mechanism is None else clone(self.mechanism)
        if self.mechanism_ is not None:
            released = np.asarray(self.mechanism_.fit_transform(np.column_stack([rows, target])), dtype=np.float64)
            names = [f"x{i}" for i in range(rows.shape[1] + 1)]
            if list(self.mechanism_.get_feature_names_out(names)) != names:
                raise ValueError(
                    "A release must have the columns of its row, of which the last is the target; "
                    "got a mechanism that makes other columns of them."
                )
            rows, target = released[:, :-1], released[:, -1:]
        self.estimator_ = clone(self.estimator).fit(rows, target[:, 0])
        return self

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return predictions within the declared bounds, from rows as the mechanism transforms them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        rows = self._unit(validate_finite(self, X, reset=False, dtype=np.float64))
        if self.mechanism_ is not None:
            # An unknown target is the middle of its bounds.
            rows = np.asarray(self.mechanism_.transform(np.column_stack([rows, np.zeros(len(rows))])))[:, :-1]
        return self._from_unit(self.estimator_.predict(rows))

    def _records(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return features and targets, clipped and scaled to [-1, 1]."""
        rows, target = validate_finite(self, X, y=y, reset=True, dtype=np.float64, y_numeric=True)
        target = as_numbers(target, "y")
        low, high = check_bounds_by_column(self.bounds, self)
        of_target = self._of_target()
        box = Box.of(np.append(low, of_target.low), np.append(high, of_target.high))
        warn_moved(self, rows, target[:, None], box)
        return self._unit(rows), _to_unit(target[:, None], of_target)

    def _unit(self, rows: Floats) -> Floats:
        return _to_unit(rows, Box.of(*check_bounds_by_column(self.bounds, self)))

    def _of_target(self) -> Box:
        return Box.of(*check_bounds(self.target_bounds, 1, "target_bounds"))

    def _from_unit(self, predicted: Floats) -> Floats:
        box = self._of_target()
        result: Floats = box.center[0] + box.radius[0] * np.clip(predicted, -1, 1)
        return result

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The targets of scikit-learn's checks lie outside the default bounds and are clipped.
        tags.regressor_tags.poor_score = True
        return tags

    @property
    def privacy_guarantee_(self) -> PrivacyGuarantee:
        """Guarantee of the mechanism."""
        if getattr(self, "mechanism_", None) is None:
            raise AttributeError("Rows that were not released have no privacy guarantee.")
        return privacy_guarantee(self.mechanism_)


def _to_unit(rows: Floats, box: Box) -> Floats:
    inside: Floats = box.clip(np.ascontiguousarray(rows)).rows
    return np.clip((inside - box.center) / box.radius, -1, 1)
