"""Errors of coefficients: Newton steps from a known model, and the spread of their parts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from skldp._arrays import Floats
from skldp._checks import check_fraction
from skldp.learning._constants import LEAST_VARIANCE

# Number of people and mean gradient of each cohort.
Cohorts = Sequence[tuple[int, Sequence[float]]]


def intervals_around(values: Floats, errors: Floats, level: float, degrees: float = math.inf) -> Floats:
    """Return intervals by Student's distribution, shape (n, 2); infinite degrees of freedom give the normal one."""
    check_fraction("level", level)
    half = special.stdtrit(degrees, (1 + level) / 2) * errors
    return np.column_stack([values - half, values + half])


@dataclass(frozen=True)
class Estimate:
    """Intercept and coefficients without a ridge, the covariance of their errors, and the variances due to privacy."""

    values: Floats
    covariance: Floats
    noise: Floats
    degrees: int

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of all values."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def statistics(self) -> Floats:
        """Ratio of each value to its standard error; NaN without an error."""
        errors = self.standard_errors
        return np.divide(self.values, errors, out=np.full_like(errors, np.nan), where=errors > 0)

    @property
    def p_values(self) -> Floats:
        """Two-sided p-values of the hypotheses that a value is 0, by Student's distribution."""
        return np.asarray(2 * special.stdtr(self.degrees, -np.abs(self.statistics)))

    @property
    def noise_shares(self) -> Floats:
        """Fraction of each standard error that is due to privacy."""
        variances = np.diag(self.covariance)
        part = np.divide(self.noise, variances, out=np.full_like(variances, np.nan), where=variances > 0)
        return np.asarray(1 - np.sqrt(np.maximum(0, 1 - part)))

    def intervals(self, level: float) -> Floats:
        """Return the lower and upper confidence limits of all values, by Student's distribution, shape (n_terms, 2)."""
        return intervals_around(self.values, self.standard_errors, level, self.degrees)


def semicircle(variances: Floats) -> float:
    """Return the spectral edge of a symmetric noise matrix with these entry variances."""
    return 2 * math.sqrt(float(np.mean(variances)) * len(variances))


def errors_along(vectors: Floats, variances: Floats) -> Floats:
    """Return the errors of v'Gv for the columns v, with independent entries of a symmetric G up to symmetry."""
    squares = vectors**2
    own = 2 * np.einsum("ik,ij,jk->k", squares, variances, squares) - np.diag(variances) @ squares**2
    return np.asarray(np.sqrt(own))


def inverse_where_known(gram: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Invert second moments in directions above the noise, and return the others, shape (n_terms, n_unknown)."""
    values, vectors = np.linalg.eigh(gram)
    known = values >= np.maximum(LEAST_VARIANCE, math.sqrt(2 * len(values)) * errors_along(vectors, variances))
    return (vectors[:, known] / values[known]) @ vectors[:, known].T, vectors[:, ~known]


def newton_steps(
    beta: Floats,
    scaling: Floats,
    gram: tuple[Floats, Floats],
    first: Cohorts,
    second: Cohorts,
    variance: float,
    bias: float = 0.0,
) -> Estimate:
    """Return two Newton steps with their covariance: the error is P/H {(I - s G/H) e1 + s e2}, s = N2 / N, G true."""
    # If H is too small by up to 1 - s / (2 - s) of G, intervals are wider, not wrong. The bias counts at its worst
    # (White, 1980, Theorem 1; Armstrong and Kolesár, 2018, section 3).
    inverse, _ = inverse_where_known(*gram)
    (n_first, mean_first, spread_first), (n_second, mean_second, spread_second) = map(_spread, (first, second))
    n = n_first + n_second
    part = n_second / n
    way = inverse @ mean_first
    before = part**2 * inverse @ spread_first @ inverse / n_first + (1 - part) ** 2 * np.outer(way, way)
    # Entries of the noise in H are independent up to symmetry.
    by_gram = np.diag(gram[1] @ np.diag(before)) + gram[1] * before * (1 - np.eye(len(before)))
    change = scaling @ inverse
    noise = (variance / n + bias**2) * change @ change.T
    # Weights (1 - part)^2 over the first people and part^2 over the second.
    of_people = (n_first * spread_first + n_second * spread_second) / n**2
    covariance = change @ (of_people + by_gram + bias**2 * np.eye(len(before))) @ change.T
    values = beta + change @ (mean_first + part * mean_second)
    return Estimate(values, covariance, np.diag(noise), len(first) + len(second) - 2)


def _spread(cohorts: Cohorts) -> tuple[int, Floats, Floats]:
    """Return the number of people, the mean, and the covariance of one person, from cohort means."""
    people, means = map(np.array, zip(*cohorts, strict=True))
    mean = people @ means / people.sum()
    return people.sum(), mean, (people * (means - mean).T) @ (means - mean) / (len(people) - 1)
