"""A linear fit from moments that are known with errors: a predictor, and its intervals."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldp._arrays import as_numbers, kind_of
from skldp.learning._uncertainty import intervals_around

__all__ = ["LinearFit"]


@dataclass(frozen=True)
class LinearFit:
    """The least-squares line of one column on others.

    Parameters
    ----------
    coef_ : ndarray of shape (n_regressors,)
        Of moments that are held on to where noise is large: for predictions.
    intercept_ : float
    plain_ : ndarray of shape (n_regressors + 1,)
        Intercept and coefficients of the unbiased moments alone, to which the errors belong; NaN where noise leaves
        them unknown.
    covariance_ : ndarray of shape (n_regressors + 1, n_regressors + 1)
        Of the errors of `plain_`: the noise of the release and the choice of the people.
    bounds : (float, float)
        Predictions stay within.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning import LinearFit
    >>> fit = LinearFit(np.array([2.0]), 1.0, np.array([1.0, 2.0]), np.diag([0.01, 0.04]), (-3.0, 4.0))
    >>> fit.predict([[1.0], [2.0]])
    array([3., 4.])
    >>> fit.confidence_intervals(0.95).round(2)
    array([[0.8 , 1.2 ],
           [1.61, 2.39]])
    """

    coef_: npt.NDArray[np.float64]
    intercept_: float
    plain_: npt.NDArray[np.float64]
    covariance_: npt.NDArray[np.float64]
    bounds: tuple[float, float]

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Predict the column within its bounds.

        Parameters
        ----------
        X : array-like of shape (n, n_regressors)
            The other columns, in the order they were named in.

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If X has another shape.
        """
        rows = as_numbers(X, "X")
        if rows.ndim != 2 or rows.shape[1] != len(self.coef_):
            raise ValueError(f"X must have the shape (n, {len(self.coef_)}). Got {kind_of(rows)} instead.")
        return np.clip(rows @ self.coef_ + self.intercept_, *self.bounds)

    @property
    def standard_errors(self) -> npt.NDArray[np.float64]:
        """Of `plain_`, shape (n_regressors + 1,)."""
        return np.sqrt(np.diag(self.covariance_))

    def confidence_intervals(self, level: float = 0.95) -> npt.NDArray[np.float64]:
        """Normal intervals of the intercept and, after it, the coefficients.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_regressors + 1, 2)
            NaN where noise leaves them unknown.

        Raises
        ------
        ValueError
            If `level` is not inside (0, 1).
        """
        return intervals_around(self.plain_, self.standard_errors, level)
