r"""Shares of candidate texts from Bloom filters in cohorts.

The unbiased bits of a report, placed in its cohort, have the mean :math:`X \beta`. X has a row for each cohort and bit,
a column with the filters of each candidate, and a last column with the mean of a filter of any other text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from skldp.client import TextField
from skldp.collection._survey_estimates import Sums, SurveyEstimate, made_consistent, quotients
from skldp.laws._bits_of_codes import bits
from skldp.laws._bloom_law import BloomLaw
from skldp.laws._odds import TWO_64

_Floats = npt.NDArray[np.float64]
# Entries of X, and bits of reports, that are in memory at once.
_MOST_ENTRIES, _BITS = 2**24, 2**24
# Larger condition numbers of X'X mean that candidates share nearly all bits.
_WORST_CONDITION = 1e8


def text_shares(field: TextField, answers: npt.NDArray[Any], candidates: Any, level: float) -> SurveyEstimate:
    """Estimate the shares of candidates and of all other texts by nonnegative least squares."""
    if not isinstance(candidates, list | tuple) or not candidates or not all(isinstance(o, str) for o in candidates):
        raise ValueError(f"candidates must be a list of texts, at least one; got {type(candidates).__name__}.")
    law, n, texts = field.law, len(answers), list(map(field.encode, candidates))
    c, k, m = law.n_cohorts, law.n_bits, len(texts) + 1
    if len(set(texts)) < len(texts):
        raise ValueError("candidates must be different texts after normalization to NFC; got two that are equal.")
    if c * k * max(m, k) > _MOST_ENTRIES:
        raise ValueError(f"candidates times cohorts times bits must be at most 2^24; got {len(texts)} texts.")
    cells = _cells(law, texts)
    gram = np.einsum("ckm,ckl->ml", cells, cells, optimize=True)
    if not np.linalg.cond(gram) < _WORST_CONDITION:
        raise ValueError("candidates must differ in their bits; got texts that share them, or too many for the law.")
    root, inverse = np.linalg.cholesky(gram), np.linalg.inv(gram)
    # Scores of a report are these weights times its unbiased bits.
    weights = c * np.einsum("ml,ckl->cmk", inverse, cells, optimize=True)
    own, other = 1 - law.flip_count / TWO_64, law.flip_count / TWO_64
    bit_ends = -other / (own - other), (1 - other) / (own - other)
    means, products = _moments(law, answers, *bit_ends)
    shares = np.einsum("cmk,ck->m", weights, means)
    squares = np.einsum("cmk,ckl,cml->m", weights, products, weights, optimize=True)
    # Other texts are no multiple of their mean: what noise does not explain of the residuals adds to the errors.
    noise = c**2 * (np.einsum("ckk->", products) - (means**2).sum())
    fitted = c * np.einsum("ckm,cml,ckl->", cells, weights, products, optimize=True) - shares @ gram @ shares
    residual = ((c * means - cells @ shares) ** 2).sum() - (noise - fitted) / (n - 1)
    squares += max(residual, 0.0) / max(c * k - m, 1) * np.diag(inverse) * (n - 1)
    ends = np.stack([weights * end for end in bit_ends])
    low, high = ends.min(axis=0).sum(axis=2).min(axis=0), ends.max(axis=0).sum(axis=2).max(axis=0)
    sums = Sums(n * shares, n * squares, n * shares, float(n), float(n), low, high, 1.0, 1.0)
    raw = quotients(sums, n, level, f"shares of {field.name}", [*texts, "(other texts)"])
    solved, _ = nnls(root.T, solve_triangular(root, gram @ shares, lower=True))
    # The solution moves no further than the raw shares in the norm of X'X.
    moved = np.sqrt(np.diag(inverse) * np.linalg.eigvalsh(gram)[-1] * (raw.moved**2).sum())
    return made_consistent(raw, np.minimum(solved, 1.0), moved)


def _cells(law: BloomLaw, texts: Sequence[str]) -> _Floats:
    """Return X, shape (n_cohorts, n_bits, n_texts + 1)."""
    c, k, width = law.n_cohorts, law.n_bits, -(-law.n_bits // 8)
    data = b"".join(law.filter_of(text, cohort).to_bytes(width, "big") for cohort in range(c) for text in texts)
    filters = bits(np.frombuffer(data, dtype=np.uint8).reshape(-1, width), k).reshape(c, len(texts), k)
    others = np.full((c, k, 1), 1 - (1 - 1 / k) ** law.n_hashes)
    return np.concatenate([filters.transpose(0, 2, 1), others], axis=2)


def _moments(law: BloomLaw, answers: npt.NDArray[Any], low: float, high: float) -> tuple[_Floats, _Floats]:
    """Return sums of the unbiased bits of each cohort, and of their products, over the number of all reports.

    Shapes: (n_cohorts, n_bits), (n_cohorts, n_bits, n_bits).
    """
    c, k, n_digits = law.n_cohorts, law.n_bits, (law.n_cohorts - 1).bit_length()
    counts, size = np.zeros((c, k + 1, k + 1)), max(_BITS // law.n_bits, 1)
    for start in range(0, len(answers), size):
        read = bits(answers[start : start + size], n_digits + k)
        cohorts = read[:, :n_digits].astype(np.int64) @ (1 << np.arange(n_digits)[::-1])
        held = np.pad(read[np.argsort(cohorts), n_digits:].astype(np.float64), ((0, 0), (1, 0)), constant_values=1.0)
        # Sums of zeros and ones are exact, for any order and size of the batches.
        parts = np.split(held, np.cumsum(np.bincount(cohorts, minlength=c))[:-1])
        counts += np.array([part.T @ part for part in parts])
    unbiased = np.hstack([np.full((k, 1), low), (high - low) * np.eye(k)])
    return counts[:, 0] @ unbiased.T / len(answers), unbiased @ counts @ unbiased.T / len(answers)
