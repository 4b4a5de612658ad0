"""PrivateMoments: mean and covariance from reports."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import Floats
from skldp._checks import is_integer
from skldp.domains._domain import Box
from skldp.estimators._base import warn_moved_rows
from skldp.estimators._learning import ProtocolEstimator
from skldp.estimators._validation import check_bounds_by_column, fit_context, validate_finite
from skldp.learning._moments import MomentsProtocol


class PrivateMoments(ProtocolEstimator):
    r"""Mean and covariance of all columns under local differential privacy of every record.

    Each row of X is a person, who releases one vector once, at the full epsilon. The regression of any column on others
    and correlations follow at no further cost; principal components are the eigenvectors of `covariance_`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its columns together.
    bounds : (low, high), default=(-1, 1)
        Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list of
        one pair per feature. Values outside are clipped.
    n_people : int, default=None
        Number of people to plan for in :meth:`partial_fit`, about as many as will come. None plans for those of the
        first call, or for ten times the number needed if that is more.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.
    n_jobs : int, default=None
        Number of threads, as in joblib.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The means.
    covariance_ : ndarray of shape (n_features, n_features)
        Positive definite: eigenvalues are replaced by their expectation given that they are positive.
    raw_covariance_ : ndarray of shape (n_features, n_features)
        Unbiased but for clipping. Noise may cause negative eigenvalues.
    location_error_ : ndarray of shape (n_features,)
        Standard errors of `location_`: noise, sampling of people, and the bound of the bias of clipping. NaN if there
        are too few people for products.
    covariance_error_ : ndarray of shape (n_features, n_features)
        Standard errors of `raw_covariance_`, likewise.
    undetected_share_ : float
        Share of people far outside the rest who may go unseen. Errors do not count those beyond twice the radius.
    protocol_ : MomentsProtocol
        Final state of the protocol, computed from reports alone, with the open task.
    privacy_guarantee_ : PrivacyGuarantee
        For one release of one record.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If X holds NaN or infinity, or a parameter is out of range.

    Warns
    -----
    TooFewPeopleWarning
        If there are too few people for products. `covariance_` then has equal variances in units of the bounds.
    OutOfDomainWarning
        Reports the number of values that were moved into the bounds.

    See Also
    --------
    PrivateLinearRegression : More precise for one target that is known in advance, with intervals.
    sklearn.covariance.EmpiricalCovariance : The same without privacy.

    Notes
    -----
    `fit` simulates a ``MomentsProtocol``. Noise hides a few extreme records, such as typing
    errors, and part of the tail of a skewed column, such as an income, whose variance is then too small: choose bounds
    that exclude the former, and take the logarithm of the latter.

    References
    ----------
    Zheng, Mou and Wang, "Collect at once, use effectively: making non-interactive locally private learning possible",
    ICML 2017. Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications in
    private federated learning", 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivateMoments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (40_000, 3))
    >>> X[:, 2] = 0.5 * X[:, 0] + 0.2 * X[:, 2]
    >>> moments = PrivateMoments(epsilon=4.0).fit(X)
    >>> fit = moments.regress(2, on=[0, 1])
    >>> bool(np.abs(fit.coef_ - [0.5, 0.0]).max() < 0.1)
    True
    """

    _without_features = "no more than the means and one spread are"

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        n_people: int | None = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.n_people = n_people
        self.seed = seed
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Estimate the moments; every row is one person who reports once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private records.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return self._fit(X, y)

    def partial_fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Return self with the reports of more people for the open tasks. Each person may report once.

        Parameters
        ----------
        X, y : array-like and None
            As of `fit`.
        """
        return super().partial_fit(X, y)

    def correlations(self) -> Floats:
        """Return the correlations of all columns, from `covariance_`, shape (n_features, n_features)."""
        check_is_fitted(self)
        return self._estimates.correlations()

    def regress(self, target: int | str, on: int | str | Sequence[int | str] | None = None) -> LinearRegression:
        """Regress a column on others, at no further cost.

        Parameters
        ----------
        target : int or str
            A column, by position or name.
        on : int, str or a sequence of them, default=None
            None takes all other columns.

        Returns
        -------
        LinearRegression
            Fitted; it predicts from the columns in the order in which they were named.

        Raises
        ------
        ValueError
            If a column is not in X or named twice.
        """
        check_is_fitted(self)
        of_target = self._column(target)
        chosen = [j for j in range(self.n_features_in_) if j != of_target] if on is None else on
        others = list(map(self._column, [chosen] if isinstance(chosen, int | str) else chosen))
        if not others or len({*others, of_target}) <= len(others):
            raise ValueError(f"on must name at least one column, each once and not the target; got {on!r}.")
        fit = LinearRegression()
        fit.coef_, fit.intercept_ = self._estimates.regress(of_target, others)
        fit.n_features_in_ = len(others)
        if hasattr(self, "feature_names_in_"):
            fit.feature_names_in_ = self.feature_names_in_[others]
        return fit

    def _column(self, named: Any) -> int:
        """Return the position of a column given by position or name."""
        if isinstance(named, str):
            found = np.flatnonzero(getattr(self, "feature_names_in_", np.array([], dtype=object)) == named)
            if len(found) == 1:
                return int(found[0])
        elif is_integer(named) and 0 <= named < self.n_features_in_:
            return int(named)
        raise ValueError(f"A column must be a position or a name of a column of X; got {named!r}.")

    def _domain(self) -> Box:
        return Box.of(*check_bounds_by_column(self.bounds, self))

    def _records(self, X: Any, y: Any, *, reset: bool) -> tuple[Floats, Floats]:
        rows = validate_finite(self, X, reset=reset, dtype=np.float64)
        return rows, np.zeros(len(rows))

    def _protocol(self, n_people: int) -> MomentsProtocol:
        box = self._domain()
        return MomentsProtocol(self.n_features_in_, n_people, epsilon=float(self.epsilon), low=box.low, high=box.high)

    def _warn_moved(self, rows: Floats, target: Floats) -> None:
        box = self._domain()
        warn_moved_rows(self, box.clip(rows).n_moved, rows, box)

    def _learn(self) -> None:
        super()._learn()
        estimates = self._estimates = self.protocol_.estimates
        self.location_, self.covariance_ = estimates.location, estimates.covariance
        self.raw_covariance_ = estimates.raw_covariance
        self.location_error_, self.covariance_error_ = estimates.location_error, estimates.covariance_error
