r"""Unbiased frequencies from randomized answers, and corrected class probabilities."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, as_numbers
from skldp._checks import check_choice
from skldp._tables import as_frame, html_table
from skldp._value_labels import value_labels


def unbiased_share(answered: npt.NDArray[Any], p: float, q: float) -> Floats:
    """Return the unbiased share, or a record's indicator: true ones are answered with chance p, others with q."""
    share: Floats = (answered - q) / (p - q)
    return share


def mean_variance(p: float, q: float, n_classes: int) -> float:
    """Return the mean over the categories of the variance that one report gives to an unbiased frequency."""
    # p = q carries no information; it is refused before anything is released.
    return (p * (1 - p) + (n_classes - 1) * q * (1 - q)) / (n_classes * (p - q) ** 2) if p > q else math.inf


def estimate_frequencies(
    counts: npt.ArrayLike,
    n: int,
    p: float,
    q: float,
    of: Literal["sample", "population"] = "sample",
    categories: np.ndarray | None = None,
    *,
    n_people: int | None = None,
) -> "FrequencyEstimate":
    r"""Return unbiased frequencies of categories, with standard errors, from how often each was reported.

    Parameters
    ----------
    counts : array-like of shape (n_categories,)
        Number of reports that support each category.
    n : int
        Number of people who reported, at least 1 (2 for ``of="population"``).
    p, q : float
        Probabilities that a report supports the true category, and any single other one.
    of : {"sample", "population"}, default="sample"
        Whether the standard error is of the frequencies among these n people (only the noise is random), or of those in
        the population from which they were sampled.
    categories : ndarray of shape (n_categories,), default=None
        Stored in the estimate.
    n_people : int, default=None
        Number of people of whom those who reported are a random sample, at least n. None is n: all of them.

    Raises
    ------
    ValueError
        If p is not larger than q, or there are too few reports.

    Notes
    -----
    .. math:: \hat f = \frac{c / n - q}{p - q}, \quad
              \widehat{\mathrm{Var}} = \frac{\hat f\, p (1 - p) + (1 - \hat f)\, q (1 - q)}{n (p - q)^2}

    Both are exactly unbiased. For ``of="population"`` the estimated variance is
    :math:`\frac{(c/n)(1 - c/n)}{(n - 1)(p - q)^2}`. If only n of N people reported, chosen at random, the variance for
    the N people is n / N times the first one plus 1 - n / N times the second one. Frequencies are never clipped to
    [0, 1] or made to sum to 1, which would bias them.

    References
    ----------
    Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation", USENIX Security
    2017, Eqs. 1 and 2.

    Examples
    --------
    >>> from skldp.mechanisms import estimate_frequencies
    >>> estimate_frequencies([60, 40], n=100, p=0.75, q=0.25).frequencies.tolist()
    [0.7, 0.30000000000000004]
    """
    check_choice("of", of, ("sample", "population"))
    if n < (1 if of == "sample" else 2):
        raise ValueError(f"Frequencies of the {of} need more reports; got {n!r}.")
    if not 0 <= q < p <= 1:
        raise ValueError(f"p must be larger than q, both probabilities; got p={p!r} and q={q!r}.")
    left_out = 0.0 if n_people is None else 1 - n / n_people
    if not 0 <= left_out < 1 or (left_out and n < 2):
        raise ValueError(f"n_people must be at least n, and n at least 2 below it; got n={n!r} and {n_people!r}.")
    share = as_numbers(counts, "counts") / n
    frequencies = unbiased_share(share, p, q)
    if of == "sample":
        variance = (1 - left_out) * (frequencies * p * (1 - p) + (1 - frequencies) * q * (1 - q)) / n
        if left_out:
            variance += left_out * share * (1 - share) / (n - 1)
    else:
        variance = share * (1 - share) / (n - 1)
    # At p = 1 and q = 0 the variance is 0, and rounding may leave a number just below it.
    errors = np.sqrt(np.maximum(variance, 0.0)) / (p - q)
    return FrequencyEstimate(frequencies, errors, n, categories)


def checked_prior(prior: npt.ArrayLike, most: int | None = None) -> tuple[float, ...]:
    """Return public probabilities as a tuple; raises ValueError unless they are at most `most` and sum to 1."""
    mass = np.asarray(prior, dtype=np.float64)
    sizes = mass.ndim == 1 and 1 <= mass.size <= (most or mass.size)
    if not sizes or not (mass >= 0).all() or not abs(mass.sum() - 1) <= 1e-6:
        limit = f"at most {most:,} " if most else ""
        raise ValueError(f"prior must be {limit}probabilities that sum to 1; got {prior!r}.")
    return tuple(mass.tolist())


def clean_probabilities(noisy: npt.NDArray[np.floating], flip_matrix: Floats) -> Floats:
    r"""Return the probabilities of the true classes from those of the randomized ones."""
    released = np.flatnonzero(flip_matrix.any(axis=0))
    law = flip_matrix[np.ix_(released, released)]
    solved = np.asarray(np.linalg.solve(law.T, noisy[:, released].T).T, dtype=np.float64)
    clean = np.zeros(noisy.shape)
    clean[:, released] = project_onto_simplex(solved)
    return clean


def project_onto_simplex(rows: Floats) -> Floats:
    """Return the nearest point of the simplex to each row (Duchi et al., ICML 2008, Figure 1)."""
    descending = -np.sort(-rows, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    ranks = np.arange(1, rows.shape[1] + 1)
    support = np.count_nonzero(descending * ranks > excess, axis=1)
    shift = excess[np.arange(rows.shape[0]), support - 1] / support
    nearest: Floats = np.maximum(rows - shift[:, None], 0.0)
    return nearest


@dataclass(frozen=True)
class FrequencyEstimate:
    """Unbiased frequencies of categories with their standard errors.

    Attributes
    ----------
    frequencies : ndarray of shape (n_categories,)
        May lie outside [0, 1] and need not sum to 1.
    standard_errors : ndarray of shape (n_categories,)
        Standard errors of the frequencies.
    n : int
        Number of reports.
    categories : ndarray of shape (n_categories,) or None
        The categories, if known.
    """

    frequencies: Floats
    standard_errors: Floats
    n: int
    categories: np.ndarray | None = None

    def to_frame(self) -> Any:
        """Return one row per category, with the columns ``frequency`` and ``standard_error``."""
        columns = {"frequency": self.frequencies, "standard_error": self.standard_errors}
        return as_frame(columns, index=None if self.categories is None else list(self.categories))

    def _repr_html_(self) -> str:
        names = value_labels(range(len(self.frequencies)) if self.categories is None else self.categories)
        rows = zip(names, self.frequencies, self.standard_errors, strict=True)
        return html_table(
            f"Frequencies from {self.n:,} reports",
            [(name, f"{share:.4g}", f"{error:.2g}") for name, share, error in rows],
            ("", "frequency", "standard error"),
        )
