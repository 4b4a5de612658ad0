"""Exact p-values for tests of laws, over fixed seeds, with one threshold."""

import numpy as np
from scipy import stats

# For fixed seeds: what passes once passes always.
THRESHOLD = 1e-6
# For noise that is new in every run, where workers cannot be given keys. The chi-square law is an approximation, but
# not by so much: with five expected in the rarest cell a p-value is below this with a chance of less than 1e-10.
UNSEEDED_THRESHOLD = 1e-13


def binomial_pvalue(successes, trials, probability):
    """Two-sided exact p-value of a count."""
    return stats.binomtest(int(successes), int(trials), float(probability)).pvalue


def chi_square_pvalue(counts, probabilities):
    """P-value of observed counts against a finite law; outcomes expected less than 5 times are pooled."""
    counts = np.asarray(counts, dtype=float).ravel()
    expected = np.asarray(probabilities, dtype=float).ravel() * counts.sum()
    assert counts[expected == 0].sum() == 0, "an impossible outcome was drawn"
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = np.searchsorted(np.cumsum(expected), 5.0) + 1 if expected[0] < 5 else 0
    if rare:
        counts = np.append(counts[rare:], counts[:rare].sum())
        expected = np.append(expected[rare:], expected[:rare].sum())
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)


def ks_pvalue(sample, cdf):
    """P-value of a sample against a continuous distribution function."""
    return stats.kstest(np.asarray(sample).ravel(), cdf).pvalue
