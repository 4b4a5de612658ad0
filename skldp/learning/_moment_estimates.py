r"""Estimates from the moments of a table: covariance, correlations, and the regression of any column on others."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from skldp._arrays import Floats, as_numbers, kind_of
from skldp.domains._domain import Box
from skldp.learning._levels import NormLevels
from skldp.learning._protocol import nearest_positive
from skldp.learning._reports import Report
from skldp.learning._tasks import Task
from skldp.learning._vectors import symmetric_matrix
from skldp.mechanisms.vector._privunit import PrivUnitBall


@dataclass(frozen=True)
class ReleasedProducts:
    r"""Distribution of the mean release of a task of the form ``"products"``.

    Terms :math:`v = (1, x)`, x with mean 0, are encoded as :math:`u = K v`, whose first number is a constant. The mean
    of the released products estimates :math:`M = E[v v^\top]`, of which numbers :math:`a^\top M b` are needed.

    Shapes: `functionals` K (k, k); `covariance` (k - 1, k - 1).

    A release z of the vector p of products, in units of the radius, has known second moments (``second_moments``):
    :math:`E[z z^\top \mid p] = \text{across}\, I + (\text{along} - \text{across})\, p p^\top`, and over all people

    .. math:: \operatorname{Cov} z = \text{across}\, I + (\text{along} - \text{across}) E[p p^\top] - E[p] E[p]^\top.

    The fourth moments :math:`E[p p^\top]` are taken as those of an elliptical law: a normal one's, and `kurtosis` times
    those of x alone. They count little while noise exceeds the spread of people. The square of the constant is known.

    Isserlis, "On a formula for the product-moment coefficient of any order of a normal frequency distribution",
    Biometrika, 1918. Muirhead, "Aspects of multivariate statistical theory", 1982, section 1.6, for elliptical laws.
    """

    task: Task
    n_people: int
    functionals: Floats
    covariance: Floats
    kurtosis: float = 0.0
    cut: float = 0.0

    def covariances(self, a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
        r"""Return the covariance of the estimates of :math:`a^\top M b` and :math:`c^\top M d`.

        Shapes: `a, b, c, d` (..., k); result (...).
        """
        along, across = PrivUnitBall(self.task.n_outputs, self.task.epsilon, 1.0).second_moments()
        a0, b0, c0, d0 = (one[..., 0] for one in (a, b, c, d))
        known = a0 * b0 * c0 * d0

        def centred(one: Floats, other: Floats) -> Floats:
            product: Floats = ((one[..., 1:] @ self.covariance) * other[..., 1:]).sum(axis=-1)
            return product

        ab, cd, ac, bd, ad, bc = (centred(*two) for two in ((a, b), (c, d), (a, c), (b, d), (a, d), (b, c)))
        of_people = (ac + a0 * c0) * (bd + b0 * d0) + (ad + a0 * d0) * (bc + b0 * c0) - 2 * known
        of_people = of_people + self.kurtosis * (ab * cd + ac * bd + ad * bc)
        # Coordinates of the release, in which the noise is isotropic.
        at = np.linalg.inv(self.functionals)
        a, b, c, d = (one @ at for one in (a, b, c, d))
        of_noise = ((a * c).sum(axis=-1) * (b * d).sum(axis=-1) + (a * d).sum(axis=-1) * (b * c).sum(axis=-1)) / 2
        of_noise = of_noise - a[..., 0] * b[..., 0] * c[..., 0] * d[..., 0]
        constant = self.functionals[0, 0] ** 2
        first = ab + a0 * b0 - constant * a[..., 0] * b[..., 0]
        second = cd + c0 * d0 - constant * c[..., 0] * d[..., 0]
        of_noise = of_noise * (1 + self.cut**2)
        total = self.task.radius**2 * across * of_noise + (along - across) * (of_people + first * second)
        return np.asarray((total - first * second) / self.n_people)


# Bounds of the factor from remembered moments to those of the last task.
_RESCALED = (0.5, 2.0)


@dataclass(frozen=True)
class LinearFit:
    """Least-squares fit of one column on others.

    Parameters
    ----------
    coef_ : ndarray of shape (n_regressors,)
    intercept_ : float
    bounds : (float, float)
        Predictions stay within.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning._moment_estimates import LinearFit
    >>> LinearFit(np.array([2.0]), 1.0, (-3.0, 4.0)).predict([[1.0], [2.0]])
    array([3., 4.])
    """

    coef_: Floats
    intercept_: float
    bounds: tuple[float, float]

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Predict the column within its bounds, from the others in the order in which they were named.

        Shapes: X (n, n_regressors); returns (n,).
        """
        rows = as_numbers(X, "X")
        if rows.ndim != 2 or rows.shape[1] != len(self.coef_):
            raise ValueError(f"X must have the shape (n, {len(self.coef_)}). Got {kind_of(rows)} instead.")
        return np.clip(rows @ self.coef_ + self.intercept_, *self.bounds)


@dataclass(frozen=True)
class MomentEstimates:
    r"""Mean and covariance of all columns, with their errors.

    Parameters
    ----------
    location : ndarray of shape (n_features,)
    raw_covariance : ndarray of shape (n_features, n_features)
        Unbiased, of the last task alone, and where noise is large with negative eigenvalues.
    covariance : ndarray of shape (n_features, n_features)
        The same with negative eigenvalues raised to 0, averaged with the earlier reports, which count as much as
        the noise. Its eigenvalues are above 0.
    units : ndarray of shape (n_features,)
        Half widths of the bounds.
    law : ReleasedProducts or None
        Law of the released products; None without reports of them.
    """

    location: Floats
    raw_covariance: Floats
    covariance: Floats
    units: Floats
    law: ReleasedProducts | None

    @property
    def location_error(self) -> Floats:
        """Standard errors of the means, shape (n_features,); NaN without reports of products."""
        if self.law is None:
            return np.full(len(self.location), np.nan)
        one, columns = self._functionals
        return np.sqrt(self.law.covariances(one, columns, one, columns))

    @property
    def covariance_error(self) -> Floats:
        """Standard errors of `raw_covariance`, shape (n_features, n_features); NaN without reports of products."""
        if self.law is None:
            return np.full(self.covariance.shape, np.nan)
        _, columns = self._functionals
        left, right = columns[:, None], columns[None]
        return np.sqrt(self.law.covariances(left, right, left, right))

    def correlations(self) -> Floats:
        """Return the correlations of `covariance`, shape (n_features, n_features)."""
        scale = np.sqrt(np.maximum(np.diag(self.covariance), np.finfo(float).tiny))
        result: Floats = np.clip(self.covariance / np.outer(scale, scale), -1, 1)
        np.fill_diagonal(result, 1.0)
        return result

    def regress(self, target: int, on: Sequence[int], bounds: tuple[float, float]) -> LinearFit:
        """Regress one column on others by least squares from the moments, with predictions within its bounds."""
        others = np.array(on, dtype=np.intp)
        gram, products = self.covariance[np.ix_(others, others)], self.covariance[others, target]
        scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
        # Standardized columns round alike; collinear ones get the minimum-norm solution.
        coef = linalg.pinvh(gram / np.outer(scale, scale)) @ (products / scale) / scale
        intercept = self.location[target] - coef @ self.location[others]
        return LinearFit(coef, float(intercept), bounds)

    @property
    def _functionals(self) -> tuple[Floats, Floats]:
        """The constant and the columns, as functionals of (1, centred columns in their units)."""
        one, *columns = np.eye(len(self.units) + 1)
        return one, self.units[:, None] * np.array(columns)


def estimates_of(
    box: Box, state: Mapping[str, Any], last: tuple[Task, Report] | None, levels: NormLevels
) -> MomentEstimates:
    """Return mean and covariance from the report of the last task, or from the state of a protocol alone."""
    center, whitening, remembered = (np.array(state[name]) for name in ("center", "whitening", "remembered"))
    k, unwhitened = len(center), np.linalg.inv(whitening).T
    best, law, mean = np.diag(remembered), None, np.zeros(k)
    raw = best
    if last is not None:
        task, report = last
        error = task.standard_error(report.n_people)
        moments = symmetric_matrix(task.mean(report), k + 1)
        mean = moments[0, 1:]
        raw = moments[1:, 1:] - np.outer(mean, mean)
        # Tight radii shrink remembered moments by about one factor in all directions.
        best = best * np.clip(np.trace(raw) / np.trace(best), *_RESCALED)
        weight = error * math.sqrt(k)
        best = (nearest_positive(raw) + weight * best) / (1 + weight)
        functionals = np.eye(k + 1)
        functionals[1:, 1:] = whitening.T
        functionals[1:, 0] = mean
        # Spread of a squared norm beyond that of a normal law.
        kurtosis = max(0.0, levels.kurtosis * k / (k + 2) - 1)
        cut = levels.bias(task.radius, share_of_tail(k)) / error
        law = ReleasedProducts(task, report.n_people, functionals, unwhitened @ best @ unwhitened.T, kurtosis, cut)
        # The square of a noisy mean is biased by its variance.
        one, each = np.eye(1, k + 1)[0], np.column_stack([np.zeros(k), whitening.T])
        raw = raw + law.covariances(one, each[:, None], one, each[None])
    units = box.radius[:-1]
    location = np.clip(box.center[:-1] + units * (center + unwhitened @ mean), box.low[:-1], box.high[:-1])
    scales = units[:, None] * unwhitened
    raw, best = (_symmetric(scales @ one @ scales.T) for one in (raw, best))
    return MomentEstimates(location, raw, best, units, law)


def share_of_tail(n_features: int) -> float:
    """Return the fraction of a usual tail's bias in one direction: it is in all of them, a rare value in one."""
    return 1 / math.sqrt(n_features)


def _symmetric(matrix: Floats) -> Floats:
    """Return a symmetric matrix, since products of matrices round asymmetrically."""
    return (matrix + matrix.T) / 2
