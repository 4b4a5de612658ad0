"""The exact level of a release of randomized bits, and the laws whose exact level is the one that was asked for."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from skldp.mechanisms.fixed_point import FixedPoint
from skldp.mechanisms.flip_laws import LARGEST_COST, BitLaw, optimal_costs, symmetric_law
from skldp.mechanisms.worst_pair import worst_pair_costs

__all__ = ["exact_bitrand_law", "exact_published_laws", "feature_levels", "record_level"]

# A calibrated level is at most the stated epsilon, and short of it by no more than this share.
_SHORT = 1e-9
_ROUNDING = 1 + 2.0**-50


def feature_levels(laws: Sequence[BitLaw], reachable: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Exact level of each feature alone; feature j follows ``laws[j % len(laws)]``."""
    levels = np.zeros(len(reachable))
    for start, law in enumerate(laws):
        levels[start :: len(laws)] = worst_pair_costs(law.costs, reachable[start :: len(laws)])
    return levels


def record_level(levels: npt.NDArray[np.float64], n_released: int) -> float:
    """Exact level of a record of which `n_released` features, drawn apart from the data, are released."""
    return math.fsum(np.sort(levels)[len(levels) - n_released :]) * _ROUNDING


def exact_bitrand_law(
    epsilon: float, encoding: FixedPoint, reachable: npt.NDArray[np.uint64], n_released: int
) -> BitLaw:
    """Give the law of least expected error whose exact level is `epsilon`.

    Parameters
    ----------
    epsilon : float
        For the record, natural log.
    encoding : FixedPoint
    reachable : ndarray of shape (n_features, 2, 2)
        Of ``encoding.reachable``.
    n_released : int
        How many features of a record are released.

    Returns
    -------
    BitLaw
        Its level is never above `epsilon`, and at least (1 - 1e-9) of it unless every bit is as certain as 64-bit
        integers can make it. Bits in which no two reachable codes differ are left alone, and cost nothing.

    Raises
    ------
    ValueError
        If epsilon is so small that every probability rounds to one half.
    """
    counts = _counting_bits(encoding, reachable)

    def law(budget: float) -> BitLaw:
        costs = np.full(encoding.n_bits, 2 * LARGEST_COST)
        if counts.any():
            costs[counts] = optimal_costs(budget, encoding.sensitivities[counts])
        return symmetric_law(costs)

    def level(budget: float) -> float:
        return record_level(feature_levels([law(budget)], reachable), n_released)

    if not counts.any():
        return law(1.0)
    ceiling = 2.0 * LARGEST_COST * encoding.n_bits
    budget = _largest_argument(level, epsilon, epsilon / n_released, ceiling)
    if level(budget) == 0:
        raise ValueError(
            "epsilon is too small: every probability rounds to one half. "
            f"The least usable one here is about {n_released * 2.0**-61:.3g}. Got {epsilon!r} instead."
        )
    return law(budget)


def exact_published_laws(
    make_laws: Callable[[float], Sequence[BitLaw]],
    epsilon: float,
    reachable: npt.NDArray[np.uint64],
    n_released: int,
    n_bits: int,
) -> tuple[BitLaw, ...]:
    """Choose the one free number of LATENT or OME, the share of one bit, so that the exact level is `epsilon`.

    Parameters
    ----------
    make_laws : callable
        From the share of one bit to the laws.
    epsilon : float
    reachable : ndarray of shape (n_features, 2, 2)
    n_released, n_bits : int

    Raises
    ------
    ValueError
        If the level exceeds `epsilon` with no share at all.
    """

    def level(share: float) -> float:
        return record_level(feature_levels(make_laws(share), reachable), n_released)

    least = level(0.0)
    if least > epsilon:
        raise ValueError(
            f"With this alpha the exact level is {least:.4g} however small the budget, above epsilon. "
            f"Use alpha=1. Got epsilon {epsilon!r} instead."
        )
    share = _largest_argument(level, epsilon, epsilon / (n_released * n_bits), 2.0 * LARGEST_COST)
    return tuple(make_laws(share))


def _counting_bits(encoding: FixedPoint, reachable: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Bits in which two reachable codes of some feature differ."""
    exists = reachable[:, :, 0] <= reachable[:, :, 1]
    # The magnitudes of one sign run from the first to the last, so that all bits below their common prefix vary.
    varying = np.where(exists, reachable[:, :, 0] ^ reachable[:, :, 1], 0)
    n_varying = int(np.bitwise_or.reduce(varying.reshape(-1))).bit_length()
    counts = np.arange(encoding.n_bits) >= encoding.n_bits - n_varying
    counts[0] = exists.all(axis=1).any()
    return counts


def _largest_argument(level: Callable[[float], float], target: float, start: float, ceiling: float) -> float:
    """The largest argument, up to `ceiling`, whose level does not exceed the target; the level increases."""
    low = start
    while level(low) > target:
        low *= min(1 - 1e-12, target / level(low))
    if level(low) >= target * (1 - _SHORT / 10):
        return low
    high = low
    while level(high) <= target:
        if high >= ceiling:
            return high
        low, high = high, min(2 * high, ceiling)
    root = math.exp(brentq(lambda z: level(math.exp(z)) - target, math.log(low), math.log(high), xtol=1e-13))
    while level(root) > target:
        root *= 1 - 1e-12
    return max(root, low)
