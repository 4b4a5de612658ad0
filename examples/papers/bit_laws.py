"""The bit laws that the BitRand paper compares, each at the same stated epsilon, and their theory figures."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from skldp.domains._domain import Box
from skldp.laws._odds import product_above, sum_above
from skldp.mechanisms.bits._calibration import Intervals, exact_bitrand_law
from skldp.mechanisms.bits._fixed_point import FixedPoint
from skldp.mechanisms.bits._flip_laws import (
    BitLaw,
    bitrand_law,
    latent_corrected_ratio,
    latent_laws,
    ome_corrected_ratio,
    ome_laws,
    symmetric_law,
)

__all__ = ["baseline_laws", "bit_errors", "error_probabilities", "exact_epsilon", "expected_error", "top_k_means"]

_LATENT_ALPHA = 7.0
_OME_ALPHA = 1.0


def baseline_laws(
    epsilon: float, n_features: int, n_bits: int, n_integer_bits: int | None = None
) -> dict[str, tuple[BitLaw, ...]]:
    """Give the laws of f-RR as published, f-RR without its bit-aware term, f-RR exact, and corrected LATENT and OME.

    Parameters
    ----------
    epsilon : float
        Stated; LATENT (alpha = 7) and OME (alpha = 1) run at the budget whose corrected level this is.
    n_features, n_bits : int
        r and l.
    n_integer_bits : int, default=None
        m, which the exact calibration needs; None is l // 2.

    Returns
    -------
    dict of str to tuple of BitLaw

    Examples
    --------
    >>> from bit_laws import exact_epsilon, baseline_laws
    >>> for name, laws in baseline_laws(1.0, 768, 10).items():
    ...     print(f"{name}: {exact_epsilon(laws, 768):.4g}")
    f-RR: 3311
    f-RR without bit-awareness: 2661
    f-RR exact: 1
    LATENT corrected: 0.1914
    OME corrected: 0.25
    """
    total = n_features * n_bits
    m = n_bits // 2 if n_integer_bits is None else n_integer_bits
    encoding = FixedPoint(n_bits, m)
    everything = Intervals.of(encoding, Box((-math.ldexp(1.0, m),) * n_features, (math.ldexp(1.0, m),) * n_features))
    latent_budget = _uncorrected(lambda budget: latent_corrected_ratio(budget / total, _LATENT_ALPHA), epsilon)
    ome_budget = _uncorrected(lambda budget: ome_corrected_ratio(budget, total, _OME_ALPHA), epsilon)
    return {
        "f-RR": (bitrand_law(epsilon, n_features, n_bits),),
        "f-RR without bit-awareness": (_without_bit_awareness(epsilon, n_features, n_bits),),
        "f-RR exact": (exact_bitrand_law(epsilon, encoding, everything, n_features),),
        "LATENT corrected": latent_laws(latent_budget / total, n_bits, _LATENT_ALPHA),
        "OME corrected": ome_laws(ome_budget / total, n_bits, _OME_ALPHA),
    }


def error_probabilities(laws: tuple[BitLaw, ...]) -> npt.NDArray[np.float64]:
    """Give the probability that each bit comes out wrong, for a bit that is as often 0 as 1.

    Shapes: returns (n_bits,).
    """
    return np.mean([law.error_probabilities.mean(axis=0) for law in laws], axis=0)


def bit_errors(laws: tuple[BitLaw, ...], n_integer_bits: int) -> npt.NDArray[np.float64]:
    r"""Give the expected error that each bit adds, :math:`\xi_i = q_i \Delta_i`.

    Shapes: result (n_bits,).

    BitRand, Section 5, Figures 4 and 11.
    """
    return error_probabilities(laws) * FixedPoint(laws[0].n_bits, n_integer_bits).sensitivities


def expected_error(laws: tuple[BitLaw, ...], n_integer_bits: int) -> float:
    r"""Give Theorem 4's bound on the expected error of a feature, :math:`\xi = \sum_i q_i \Delta_i`.

    Parameters
    ----------
    laws : tuple of BitLaw
    n_integer_bits : int
        m.

    Returns
    -------
    float

    Notes
    -----
    An upper bound and not, as the theorem says, the expected error itself: flips of several bits can cancel, and a
    flipped sign moves the number by twice its magnitude, not by twice the largest one.

    References
    ----------
    BitRand, Theorem 4, Figure 3.

    Examples
    --------
    >>> from bit_laws import expected_error, baseline_laws
    >>> round(expected_error(baseline_laws(1.0, 768, 10)["f-RR"], 5), 2)
    29.58
    """
    return float(error_probabilities(laws) @ FixedPoint(laws[0].n_bits, n_integer_bits).sensitivities)


def top_k_means(per_bit: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean of the first k + 1 bits, for k from 0 on, as the top-k figures show it.

    The paper writes the sum of bits 0 to k over k, which is off by one and undefined at k = 0; this divides by k + 1.

    BitRand, Section 5, Figures 11 and 12.
    """
    return np.cumsum(per_bit) / np.arange(1, len(per_bit) + 1)


def exact_epsilon(laws: tuple[BitLaw, ...], n_features: int) -> float:
    """Give the exact worst-case loss of a record whose features use all codes."""
    losses = [sum_above(*law.losses.max(axis=(1, 2)).tolist()) for law in laws]
    return sum_above(*(product_above(loss, len(range(j, n_features, len(laws)))) for j, loss in enumerate(losses)))


def _uncorrected(ratio: Callable[[float], float], epsilon: float) -> float:
    """The budget that a correction by `ratio` turns into epsilon."""
    return brentq(lambda budget: budget * ratio(budget) - epsilon, epsilon * 1e-3, epsilon, xtol=1e-15, rtol=1e-12)


def _without_bit_awareness(epsilon: float, n_features: int, n_bits: int) -> BitLaw:
    """Theorem 2's law with the exponents i / l left out."""
    alpha = math.sqrt((epsilon + n_features * n_bits) / (2 * n_features * n_bits))
    return symmetric_law(np.full(n_bits, -math.log(alpha)))
