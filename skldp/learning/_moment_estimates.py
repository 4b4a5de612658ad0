r"""Estimates from the moments of a table: covariance, correlations, and the regression of any column on others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from skldp._arrays import Floats
from skldp.learning._tasks import Task, products_law


@dataclass(frozen=True)
class ReleasedProducts:
    """Law of the mean of released products of K (1, x), x elliptical (Muirhead, "Aspects", 1982, section 1.6)."""

    task: Task
    n_people: int
    functionals: Floats
    covariance: Floats
    kurtosis: float = 0.0
    cut: float = 0.0

    def covariances(self, a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
        r"""Return the covariance of the estimates of :math:`a^\top M b` and :math:`c^\top M d`, for a to d (..., k)."""
        law, radius = products_law(len(self.functionals), self.task.epsilon), self.task.radius
        isotropic, second_moments, fourth_moments = law.fourth_moments()
        a0, b0, c0, d0 = (one[..., 0] for one in (a, b, c, d))

        def inner(matrix: Floats, *four: Floats) -> list[Floats]:
            a, b, c, d = four
            return [((x @ matrix) * y).sum(axis=-1) for x, y in ((a, b), (c, d), (a, c), (b, d), (a, d), (b, c))]

        ab, cd, ac, bd, ad, bc = inner(self.covariance, *(one[..., 1:] for one in (a, b, c, d)))
        of_people = (ac + a0 * c0) * (bd + b0 * d0) + (ad + a0 * d0) * (bc + b0 * c0) - 2 * a0 * b0 * c0 * d0
        of_people = of_people + self.kurtosis * (ab * cd + ac * bd + ad * bc)
        # Coordinates of the release, and what is lost there with the square of the constant.
        at, constant = np.linalg.inv(self.functionals), self.functionals[0, 0]
        a, b, c, d = (one @ at for one in (a, b, c, d))
        ra0, rb0, rc0, rd0 = (one[..., 0] for one in (a, b, c, d))
        rab, rcd, rac, rbd, rad, rbc = inner(np.eye(len(at)), a, b, c, d)
        trace, other_trace = rab - ra0 * rb0, rcd - rc0 * rd0
        of_both = (rac * rbd + rad * rbc) / 2 - ra0 * rb0 * rc0 * rd0
        first = ab + a0 * b0 - constant**2 * ra0 * rb0
        second = cd + c0 * d0 - constant**2 * rc0 * rd0
        through = rbc * (ad + a0 * d0) + rbd * (ac + a0 * c0) + rac * (bd + b0 * d0) + rad * (bc + b0 * c0)
        through = through / 4 - constant / 2 * (rc0 * rd0 * (ra0 * b0 + rb0 * a0) + ra0 * rb0 * (rc0 * d0 + rd0 * c0))
        through = through + constant**2 * ra0 * rb0 * rc0 * rd0
        total = isotropic * radius**2 * (trace * other_trace + 2 * of_both)
        total = total + second_moments * radius * (trace * second + other_trace * first + 4 * through)
        total = total + fourth_moments * (of_people + first * second)
        rest = (1 - law.mean_square) / len(self.functionals) * radius
        means = (law.slope * first + rest * trace) * (law.slope * second + rest * other_trace)
        cut = (self.task.standard_error(1) * self.cut) ** 2 * of_both
        return np.asarray(((total - means) / law.slope**2 + cut) / self.n_people)

    def covariances_of_means(self) -> Floats:
        """Return the covariance of the means of x, shape (k - 1, k - 1)."""
        one, columns = np.split(np.eye(len(self.functionals)), [1])
        return self.covariances(one, columns[:, None], one, columns)

    def variances_of_products(self) -> Floats:
        """Return the variances of the means of the products of x, shape (k - 1, k - 1)."""
        columns = np.eye(len(self.functionals))[1:]
        return self.covariances(columns[:, None], columns, columns[:, None], columns)


@dataclass(frozen=True)
class MomentEstimates:
    """Mean and covariance of all columns, raw (unbiased but for clipping) and positive definite, with their errors."""

    location: Floats
    location_covariance: Floats
    raw_covariance: Floats
    covariance: Floats
    law: ReleasedProducts | None

    @property
    def location_error(self) -> Floats:
        """Standard errors of the means, shape (n_features,); NaN without reports of products."""
        return np.asarray(np.sqrt(np.diag(self.location_covariance)))

    @property
    def covariance_error(self) -> Floats:
        """Standard errors of `raw_covariance`, shape (n_features, n_features); NaN without reports of products."""
        if self.law is None:
            return np.full(self.covariance.shape, np.nan)
        return np.sqrt(self.law.variances_of_products())

    def correlations(self) -> Floats:
        """Return the correlations of `covariance`, shape (n_features, n_features)."""
        scale = np.sqrt(np.maximum(np.diag(self.covariance), np.finfo(float).tiny))
        result: Floats = np.clip(self.covariance / np.outer(scale, scale), -1, 1)
        np.fill_diagonal(result, 1.0)
        return result

    def regress(self, target: int, on: Sequence[int]) -> tuple[Floats, float]:
        """Return the coefficients, shape (n_regressors,), and the intercept of a column's regression on others."""
        others = np.array(on, dtype=np.intp)
        gram, products = self.covariance[np.ix_(others, others)], self.covariance[others, target]
        scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
        # Standardized columns round alike; collinear ones get the minimum-norm solution.
        coef = linalg.pinvh(gram / np.outer(scale, scale)) @ (products / scale) / scale
        return coef, float(self.location[target] - coef @ self.location[others])
