r"""Errors of coefficients: Newton steps from a known model, and the spread of their parts."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from skldp._arrays import Floats
from skldp._checks import check_fraction
from skldp.learning._constants import LEAST_VARIANCE
from skldp.learning._tasks import noise_variance
from skldp.learning._vectors import n_products


def intervals_around(values: Floats, errors: Floats, level: float, degrees: float = math.inf) -> Floats:
    """Return intervals by Student's distribution; infinite degrees of freedom give the normal one.

    Shapes: values, errors (n,); returns (n, 2).
    """
    check_fraction("level", level)
    half = special.stdtrit(degrees, (1 + level) / 2) * errors
    return np.column_stack([values - half, values + half])


@dataclass(frozen=True)
class Estimate:
    r"""Coefficients without a ridge and their errors, in the units of the data.

    Parameters
    ----------
    values : ndarray of shape (n_terms,)
        The intercept, where there is one, and the coefficients.
    covariance : ndarray of shape (n_terms, n_terms)
        Of their errors: the noise of the releases and the choice of the people.
    noise : ndarray of shape (n_terms,)
        The part of each variance that the noise of the releases alone has.
    degrees : int
        Degrees of freedom of the scatter of which `covariance` is made.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning._uncertainty import Estimate
    >>> estimate = Estimate(np.array([0.5]), np.array([[0.04]]), np.array([0.03]), 48)
    >>> estimate.intervals(0.95).round(2), estimate.noise_shares.round(2)
    (array([[0.1, 0.9]]), array([0.5]))
    """

    values: Floats
    covariance: Floats
    noise: Floats
    degrees: int

    @property
    def standard_errors(self) -> Floats:
        """Standard errors of all values."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

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
        """Fraction of each standard error that is due to privacy noise."""
        variances = np.diag(self.covariance)
        part = np.divide(self.noise, variances, out=np.full_like(variances, np.nan), where=variances > 0)
        return np.asarray(1 - np.sqrt(np.maximum(0, 1 - part)))

    def intervals(self, level: float) -> Floats:
        """Return the lower and upper confidence limits of all values, by Student's distribution, shape (n_terms, 2)."""
        return intervals_around(self.values, self.standard_errors, level, self.degrees)


def semicircle(variances: Floats) -> float:
    """Return the spectral edge of a symmetric noise matrix with these entry variances."""
    return 2 * math.sqrt(float(np.mean(variances)) * len(variances))


def gram_edge(radius: float, n_terms: int, epsilon: float, n_people: int) -> float:
    """Return the spectral edge for the mean of released products of terms within a radius."""
    # Off-diagonal products are released times sqrt(2).
    variance = noise_variance(n_products(n_terms), epsilon) / n_people
    return radius * semicircle(np.full((n_terms,) * 2, variance / 2) + np.eye(n_terms) * variance / 2)


def inverse_where_known(gram: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Invert second moments in directions above the noise, and return the other directions.

    Shapes: gram (n_terms, n_terms), variances (n_terms, n_terms); returns inverse (n_terms, n_terms), unknown
    (n_terms, n_unknown).
    """
    values, vectors = np.linalg.eigh(gram)
    # Variance of v'Nv for symmetric noise N with independent entries.
    squares = vectors**2
    own = 2 * np.einsum("ik,ij,jk->k", squares, variances, squares) - np.diag(variances) @ squares**2
    known = values >= np.maximum(LEAST_VARIANCE, np.sqrt(2 * len(values) * own))
    return (vectors[:, known] / values[known]) @ vectors[:, known].T, vectors[:, ~known]


def scatter(so_far: dict[str, Any] | None, mean: Floats, n_people: int) -> dict[str, Any]:
    """Sums over cohorts of their people, and of these times the means and squared means.

    Shapes: mean (n_terms,).
    """
    so_far = so_far or {"cohorts": 0, "people": 0, "sum": np.zeros(len(mean)), "squares": np.zeros((len(mean),) * 2)}
    return {
        "cohorts": so_far["cohorts"] + 1,
        "people": so_far["people"] + n_people,
        "sum": (np.array(so_far["sum"]) + n_people * mean).tolist(),
        "squares": (np.array(so_far["squares"]) + n_people * np.outer(mean, mean)).tolist(),
    }


def newton_steps(
    beta: Floats,
    scaling: Floats,
    gram: tuple[Floats, Floats],
    first: dict[str, Any],
    second: dict[str, Any],
    variance: float,
    cut: float = 0.0,
) -> Estimate:
    r"""Return two Newton steps from a model, weighted by their numbers of people.

    Shapes: beta (n_terms,), scaling (n_terms, n_terms), gram (n_terms, n_terms).

    Notes
    -----
    With the mean :math:`\bar g_1` over :math:`N_1` people of gradients :math:`g = P'x (y - x'\beta)`, and H the second
    moments, the first step is :math:`P H^{-1} \bar g_1`; the second, from there, is :math:`\lambda P H^{-1} \bar g_2`
    with :math:`\lambda = N_2 / (N_1 + N_2)`. For given H, with G the true second moments, the error is

    .. math:: P H^{-1} \{(I - \lambda G H^{-1}) e_1 + \lambda e_2\}
              + P (I - \lambda H^{-1} G)(I - H^{-1} G)(\beta - \beta^*),

    of the errors :math:`e` of the two means. If H = G, the covariance is
    :math:`P H^{-1} ((1 - \lambda)^2 S_1 / N_1 + \lambda^2 S_2 / N_2) H^{-1} P'`, with the scatters S of the cohorts'
    means, each times the root of its people: a sandwich of noise, sampling and unequal variances. If H is too small by
    up to :math:`1 - \lambda / (2 - \lambda)` of G, the weight of :math:`e_1` grows in no direction: clipped second
    moments make intervals wider, not wrong. A full second step would forget the first one.

    The noise in H adds :math:`E[(H - G)(\lambda^2 A + (1 - \lambda)^2 d d')(H - G)]`, with A the covariance of the
    first step's error in the units of P'x, and d the step. Clipping of gradients biases every coefficient by at most
    `cut` times its standard error from noise, which counts as one more error.

    References
    ----------
    White, "A heteroskedasticity-consistent covariance matrix estimator and a direct test for heteroskedasticity",
    Econometrica 1980, Theorem 1 (the sandwich). Van der Vaart, "Asymptotic Statistics", 1998, section 5.7 (one-step
    estimators). Armstrong and Kolesár, "Optimal inference in a class of regression models", Econometrica 2018, section
    3 (intervals that count a bias at its worst).
    """
    inverse, _ = inverse_where_known(*gram)
    (n_first, mean_first, spread_first), (n_second, mean_second, spread_second) = map(_spread, (first, second))
    n = n_first + n_second
    part = n_second / n
    way = inverse @ mean_first
    before = part**2 * inverse @ spread_first @ inverse / n_first + (1 - part) ** 2 * np.outer(way, way)
    # Entries of the noise in H are independent up to symmetry.
    by_gram = np.diag(gram[1] @ np.diag(before)) + gram[1] * before * (1 - np.eye(len(before)))
    change = scaling @ inverse
    noise = variance / n * change @ change.T
    # Weights (1 - part)^2 over the first people and part^2 over the second.
    of_people = (n_first * spread_first + n_second * spread_second) / n**2
    covariance = change @ (of_people + by_gram) @ change.T + cut**2 * noise
    values = beta + change @ (mean_first + part * mean_second)
    return Estimate(values, covariance, np.diag(noise), first["cohorts"] + second["cohorts"] - 2)


def _spread(sums: dict[str, Any]) -> tuple[int, Floats, Floats]:
    """Return the number of people, the mean, and the standard deviation of one person, from cohort means."""
    n, mean = sums["people"], np.array(sums["sum"]) / sums["people"]
    return n, mean, (np.array(sums["squares"]) - n * np.outer(mean, mean)) / (sums["cohorts"] - 1)
