r"""Unbiased frequencies of categories from randomized answers, with their standard errors."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from skldp._untold import as_numbers

__all__ = ["FrequencyEstimate", "estimate_frequencies"]


def estimate_frequencies(
    counts: npt.ArrayLike,
    n: int,
    p: float,
    q: float,
    of: Literal["sample", "population"] = "sample",
    categories: np.ndarray | None = None,
) -> "FrequencyEstimate":
    r"""Unbiased frequencies of categories from how often each was reported.

    Parameters
    ----------
    counts : array-like of shape (n_categories,)
        How many of the reports support each category.
    n : int
        How many people reported, at least 1 (2 for ``of="population"``).
    p, q : float
        The probability that a person supports their own category, and that they support any other one.
    of : {"sample", "population"}, default="sample"
        Whether the standard error is that of the frequencies among these n people (only the noise is random), or
        in the population that they were drawn from at random.
    categories : ndarray of shape (n_categories,), default=None
        Handed on to the estimate.

    Returns
    -------
    FrequencyEstimate

    Raises
    ------
    ValueError
        If p is not larger than q, or there are too few reports.

    Notes
    -----
    .. math:: \hat f = \frac{c / n - q}{p - q}, \quad
              \widehat{\mathrm{Var}} = \frac{\hat f\, p (1 - p) + (1 - \hat f)\, q (1 - q)}{n (p - q)^2}

    Both are exactly unbiased. For ``of="population"`` the estimated variance is
    :math:`\frac{(c/n)(1 - c/n)}{(n - 1)(p - q)^2}`. Frequencies are never clipped to [0, 1] or made to sum to 1,
    which would bias them.

    References
    ----------
    Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation", USENIX Security
    2017, Eqs. 1 and 2.

    Examples
    --------
    >>> from skldp.mechanisms._categorical.frequency import estimate_frequencies
    >>> estimate_frequencies([60, 40], n=100, p=0.75, q=0.25).frequencies.tolist()
    [0.7, 0.30000000000000004]
    """
    if of not in ("sample", "population"):
        raise ValueError(f"of must be 'sample' or 'population'. Got {of!r} instead.")
    if n < (1 if of == "sample" else 2):
        raise ValueError(f"Frequencies of the {of} need more reports. Got {n!r} instead.")
    if not 0 <= q < p <= 1:
        raise ValueError(f"p must be larger than q, both probabilities. Got p={p!r} and q={q!r} instead.")
    share = as_numbers(counts, "counts") / n
    frequencies = (share - q) / (p - q)
    if of == "sample":
        variance = (frequencies * p * (1 - p) + (1 - frequencies) * q * (1 - q)) / n
    else:
        variance = share * (1 - share) / (n - 1)
    # At p = 1 and q = 0 the variance is 0, and rounding may leave a number just below it.
    errors = np.sqrt(np.maximum(variance, 0.0)) / (p - q)
    return FrequencyEstimate(frequencies, errors, n, categories)


@dataclass(frozen=True)
class FrequencyEstimate:
    """Unbiased frequencies of categories with their standard errors.

    Attributes
    ----------
    frequencies : ndarray of shape (n_categories,)
        May lie outside [0, 1] and need not sum to 1.
    standard_errors : ndarray of shape (n_categories,)
    n : int
        How many reports they are made from.
    categories : ndarray of shape (n_categories,) or None
        The categories they belong to, where known.
    """

    frequencies: npt.NDArray[np.float64]
    standard_errors: npt.NDArray[np.float64]
    n: int
    categories: np.ndarray | None = None
