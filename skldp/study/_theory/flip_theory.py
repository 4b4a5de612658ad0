"""The figures that theory gives for randomized bits: flip probabilities, Theorem 4's errors, corrected ratios."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bits.fixed_point import FixedPoint
from skldp.mechanisms._bits.flip_laws import (
    BitLaw,
    bitrand_law,
    latent_corrected_ratio,
    latent_law,
    ome_corrected_ratio,
    ome_laws,
    optimal_costs,
    symmetric_law,
)

__all__ = ["bit_errors", "corrected_ratio", "expected_error", "flip_law", "flip_probabilities", "top_k_means"]

_DEFAULT_ALPHA = {"latent": 7.0, "ome": 1.0}


def flip_law(mechanism: str, epsilon: float, n_features: int, n_bits: int, alpha: float | None = None) -> BitLaw:
    """Give the law of the bits of one feature.

    Parameters
    ----------
    mechanism : {"bitrand", "latent", "ome", "uniform", "exact"}
        "uniform" is BitRand without its bit-aware term, every bit flipped alike; "exact" is the optimal allocation
        with all features released, whose exact level is epsilon.
    epsilon : float
        Of the record, natural log.
    n_features, n_bits : int
    alpha : float, default=None
        None is the bound of Theorem 2 (bitrand), 7 (latent) or 1 (ome).

    Returns
    -------
    BitLaw
        For OME with an odd number of bits, that of the features at even places.

    Raises
    ------
    ValueError
        If the mechanism is unknown.
    """
    share = epsilon / (n_features * n_bits)
    if mechanism == "bitrand":
        return bitrand_law(epsilon, n_features, n_bits, alpha)
    if mechanism == "latent":
        return latent_law(share, n_bits, _DEFAULT_ALPHA["latent"] if alpha is None else alpha)
    if mechanism == "ome":
        return ome_laws(share, n_bits, _DEFAULT_ALPHA["ome"] if alpha is None else alpha)[0]
    if mechanism == "uniform":
        # Theorem 2's bound with every exponential at 1, as its proof gives it for q_i = alpha / (1 + alpha).
        return symmetric_law(np.full(n_bits, -0.5 * np.log((share + 1) / 2)))
    if mechanism == "exact":
        return symmetric_law(optimal_costs(epsilon / n_features, FixedPoint(n_bits, 0).sensitivities))
    raise ValueError(f"mechanism must be 'bitrand', 'latent', 'ome', 'uniform' or 'exact'. Got {mechanism!r} instead.")


def flip_probabilities(law: BitLaw) -> npt.NDArray[np.float64]:
    """Probability that a bit comes out wrong, for bits that are 0 and 1 equally often, shape (n_bits,).

    Examples
    --------
    >>> from skldp.study._theory.flip_theory import flip_law, flip_probabilities
    >>> flip_probabilities(flip_law("bitrand", 1.0, 768, 10))[[0, -1]].round(4).tolist()
    [0.2939, 0.5059]
    """
    return law.error_probabilities.mean(axis=0)


def bit_errors(law: BitLaw, n_integer_bits: int) -> npt.NDArray[np.float64]:
    r"""Give the expected error of each bit, :math:`\xi_i = q_i \Delta_i`, shape (n_bits,).

    References
    ----------
    BitRand, Section 5, Figures 4 and 11.
    """
    return flip_probabilities(law) * FixedPoint(law.n_bits, n_integer_bits).sensitivities


def expected_error(law: BitLaw, n_integer_bits: int) -> float:
    r"""Give Theorem 4's bound on the expected error of a feature, :math:`\xi = \sum_i q_i \Delta_i`.

    Notes
    -----
    An upper bound and not, as the theorem says, the expected error itself: flips of several bits can cancel, and a
    flipped sign moves the number by twice its magnitude, not by twice the largest one.

    References
    ----------
    BitRand, Theorem 4, Figure 3.

    Examples
    --------
    >>> from skldp.study._theory.flip_theory import expected_error, flip_law
    >>> round(expected_error(flip_law("bitrand", 1.0, 768, 10), 5), 2)
    29.58
    """
    return float(bit_errors(law, n_integer_bits).sum())


def top_k_means(per_bit: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean of the first k + 1 bits, for k from 0 on, as the top-k figures show it.

    Notes
    -----
    The paper writes the sum of bits 0 to k over k, which is off by one and undefined at k = 0; this divides by k + 1.

    References
    ----------
    BitRand, Section 5, Figures 11 and 12.

    Examples
    --------
    >>> from skldp.study._theory.flip_theory import top_k_means
    >>> top_k_means([3.0, 1.0, 2.0]).tolist()
    [3.0, 2.0, 2.0]
    """
    values = np.asarray(per_bit, dtype=np.float64)
    return np.cumsum(values) / np.arange(1, len(values) + 1)


def corrected_ratio(mechanism: str, epsilon: float, n_features: int, n_bits: int, alpha: float) -> float:
    """Give the paper's corrected epsilon over the stated one; for OME with the sign as printed.

    References
    ----------
    BitRand, Theorems 5 and 6, Figure 9.

    Examples
    --------
    >>> from skldp.study._theory.flip_theory import corrected_ratio
    >>> round(corrected_ratio("latent", 0.1, 1000, 10, 7.0), 3), round(corrected_ratio("ome", 0.1, 1000, 10, 1.0), 3)
    (4.571, 2.0)
    """
    if mechanism == "latent":
        return latent_corrected_ratio(epsilon / (n_features * n_bits), alpha)
    if mechanism == "ome":
        return ome_corrected_ratio(epsilon, n_features * n_bits, alpha)
    raise ValueError(f"mechanism must be 'latent' or 'ome'. Got {mechanism!r} instead.")
