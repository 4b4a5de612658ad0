"""How to spend a budget on a sign and a few magnitude bits so that the unbiased number varies least."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from skldp.mechanisms.bits.integer_search import least_integer

__all__ = ["least_variance_costs", "least_variance_sample", "worst_variance"]

# A double holds the magnitudes of a grid with this many bits exactly.
_MOST_MAGNITUDE_BITS = 52


def worst_variance(costs: npt.ArrayLike, n_features: int = 1, n_released: int = 1) -> float:
    r"""Largest variance of the unbiased number over [-1, 1].

    Parameters
    ----------
    costs : array-like of shape (1 + J,)
        :math:`c_i = \ln((1 - q_i) / q_i)` of the sign and of the J magnitude bits.
    n_features, n_released : int
        r and k; the unreleased features count as 0 and the released ones are scaled by r / k.

    Notes
    -----
    With :math:`w_i = 2^{J - i} / (2^J - 1)` and x rounded at random to the neighbouring magnitudes,

    .. math:: \operatorname{Var}(x) = \frac{r}{k} \coth^2 \tfrac{c_0}{2} \Bigl(\mathbb{E}[\text{mag}^2 \mid x]
              + \sum_i \frac{w_i^2}{4 \sinh^2(c_i / 2)}\Bigr) - x^2

    whose maximum lies in the outermost cell of the grid (at x = 0 where J = 0).

    Examples
    --------
    >>> from skldp.mechanisms.bits.unbiased_allocation import worst_variance
    >>> round(worst_variance([1.0]), 3)
    4.683
    """
    sign, *magnitude = np.asarray(costs, dtype=np.float64)
    scale = n_features / n_released / math.tanh(sign / 2) ** 2
    return _outermost(scale, len(magnitude)) + scale * _spread(np.array(magnitude))


@lru_cache(maxsize=4096)
def least_variance_costs(budget: float, most_bits: int, n_features: int = 1, n_released: int = 1) -> tuple[float, ...]:
    """Split a budget over the sign and as many magnitude bits as pay, so that the worst variance is least.

    Parameters
    ----------
    budget : float
        Of one feature, natural log.
    most_bits : int
        Of a code, the sign among them.
    n_features, n_released : int
        r and k.

    Returns
    -------
    tuple of float, of length 1 to `most_bits`
        Costs that add up to `budget`.

    Examples
    --------
    >>> from skldp.mechanisms.bits.unbiased_allocation import least_variance_costs
    >>> least_variance_costs(1.0, 10)
    (1.0,)
    >>> len(least_variance_costs(8.0, 10))
    3
    """
    best: tuple[float, ...] = (budget,)
    least = worst_variance([budget], n_features, n_released)
    for n_magnitude in range(1, min(most_bits - 1, _MOST_MAGNITUDE_BITS) + 1):
        costs = _split(budget, n_magnitude, n_features, n_released)
        variance = worst_variance(costs, n_features, n_released)
        if variance >= least:
            break
        best, least = costs, variance
    return best


def least_variance_sample(epsilon: float, most_bits: int, n_features: int) -> int:
    """How many features to release per record so that the worst variance of one is least.

    Parameters
    ----------
    epsilon : float
        Budget of a record.
    most_bits, n_features : int

    Examples
    --------
    >>> from skldp.mechanisms.bits.unbiased_allocation import least_variance_sample
    >>> least_variance_sample(1.0, 10, 768), least_variance_sample(10.0, 10, 768)
    (1, 5)
    """

    def variance(n_released: int) -> float:
        costs = least_variance_costs(epsilon / n_released, most_bits, n_features, n_released)
        return worst_variance(costs, n_features, n_released)

    return least_integer(variance, n_features)


def _split(budget: float, n_magnitude: int, n_features: int, n_released: int) -> tuple[float, ...]:
    def costs(share: float) -> npt.NDArray[np.float64]:
        return np.append(budget * share, _magnitude_costs(budget * (1 - share), n_magnitude))

    found = minimize_scalar(
        lambda share: worst_variance(costs(share), n_features, n_released),
        bounds=(1e-3, 1 - 1e-3),
        method="bounded",
        options={"xatol": 1e-5},
    )
    return tuple(float(cost) for cost in costs(found.x))


def _magnitude_costs(budget: float, n_magnitude: int) -> npt.NDArray[np.float64]:
    r"""Least sum of :math:`w_i^2 / (4 \sinh^2(c_i / 2))`: the derivatives in the costs are equal."""
    log_weights = 2 * math.log(2) * np.arange(n_magnitude)

    def costs(level: float) -> npt.NDArray[np.float64]:
        # With z = 1 / sinh^2(c / 2), a derivative is w^2 z sqrt(1 + z) / 4: solve z sqrt(1 + z) = mu by Newton.
        target = level + log_weights
        log_z = np.where(target < 0, target, target / 1.5)
        for _ in range(6):
            z = np.exp(log_z)
            log_z -= (log_z + 0.5 * np.log1p(z) - target) / (1 + 0.5 * z / (1 + z))
        return 2 * np.arcsinh(np.exp(-log_z / 2))

    low, high = -1.0, 1.0
    while costs(low).sum() < budget:
        low *= 2
    while costs(high).sum() > budget:
        high *= 2
    found = costs(brentq(lambda level: costs(level).sum() - budget, low, high))
    return found * (budget / found.sum())


def _spread(costs: npt.NDArray[np.float64]) -> float:
    n_magnitude = len(costs)
    weights = np.ldexp(1.0, n_magnitude - 1 - np.arange(n_magnitude)) / max(1, 2**n_magnitude - 1)
    return float((weights**2 / (4 * np.sinh(costs / 2) ** 2)).sum())


def _outermost(scale: float, n_magnitude: int) -> float:
    """Maximum over x of ``scale * E[mag^2 | x] - x^2``."""
    if n_magnitude == 0:
        return scale
    inner = 1 - 1 / (2**n_magnitude - 1)
    x = min(max(scale * (1 + inner) / 2, inner), 1.0)
    return scale * ((1 + inner) * x - inner) - x**2
