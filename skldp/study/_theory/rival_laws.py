"""The bit laws that the BitRand paper compares, each at the same stated epsilon."""

import math

import numpy as np
from scipy.optimize import brentq

from skldp.mechanisms._bits.calibration import exact_bitrand_law
from skldp.mechanisms._bits.fixed_point import FixedPoint
from skldp.mechanisms._bits.flip_laws import (
    bitrand_law,
    latent_corrected_ratio,
    latent_law,
    ome_corrected_ratio,
    ome_laws,
    symmetric_law,
)

__all__ = ["error_probabilities", "exact_epsilon", "rival_laws"]

_LATENT_ALPHA = 7.0
_OME_ALPHA = 1.0


def rival_laws(epsilon, n_features, n_bits, n_integer_bits=None):
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
    >>> from skldp.study._theory.rival_laws import exact_epsilon, rival_laws
    >>> for name, laws in rival_laws(1.0, 768, 10).items():
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
    everything = encoding.reachable(np.full(n_features, -math.ldexp(1.0, m)), np.full(n_features, math.ldexp(1.0, m)))
    latent_budget = _uncorrected(lambda budget: latent_corrected_ratio(budget / total, _LATENT_ALPHA), epsilon)
    ome_budget = _uncorrected(lambda budget: ome_corrected_ratio(budget, total, _OME_ALPHA), epsilon)
    return {
        "f-RR": (bitrand_law(epsilon, n_features, n_bits),),
        "f-RR without bit-awareness": (_without_bit_awareness(epsilon, n_features, n_bits),),
        "f-RR exact": (exact_bitrand_law(epsilon, encoding, everything, n_features),),
        "LATENT corrected": (latent_law(latent_budget / total, n_bits, _LATENT_ALPHA),),
        "OME corrected": ome_laws(ome_budget / total, n_bits, _OME_ALPHA),
    }


def error_probabilities(laws):
    """Give the probability that each bit comes out wrong, for a bit that is as often 0 as 1.

    Parameters
    ----------
    laws : tuple of BitLaw
        Where there are two, for features at even and at odd places, their mean is taken.

    Returns
    -------
    ndarray of shape (n_bits,)
    """
    return np.mean([law.error_probabilities.mean(axis=0) for law in laws], axis=0)


def exact_epsilon(laws, n_features):
    """Give the exact worst-case loss of a record whose features use all codes.

    Parameters
    ----------
    laws : tuple of BitLaw
        Feature j follows ``laws[j % len(laws)]``.
    n_features : int

    Returns
    -------
    float
    """
    levels = [float(law.costs.max(axis=(1, 2)).sum()) for law in laws]
    return math.fsum(levels[j] * len(range(j, n_features, len(laws))) for j in range(len(laws)))


def _uncorrected(ratio, epsilon):
    """The budget that a correction by `ratio` turns into epsilon."""
    return brentq(lambda budget: budget * ratio(budget) - epsilon, epsilon * 1e-3, epsilon, xtol=1e-15, rtol=1e-12)


def _without_bit_awareness(epsilon, n_features, n_bits):
    """Theorem 2's law with the exponents i / l left out."""
    alpha = math.sqrt((epsilon + n_features * n_bits) / (2 * n_features * n_bits))
    return symmetric_law(np.full(n_bits, -math.log(alpha)))
