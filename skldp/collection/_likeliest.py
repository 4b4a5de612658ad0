r"""Likeliest shares of categories, from the distinct reports and two fast products.

A report y that supports a set S(y) of categories has the chance :math:`1 + (e^\varepsilon - 1) \sum_{x \in S(y)} f_x`
under shares f, times a constant. Expectation and maximization need these sums for all distinct reports, and the sums of
weights of the reports that support each category.
"""

import math

import numpy as np
import numpy.typing as npt

from skldp.laws._categories import BitsOfCodes
from skldp.laws._integers import AnswerProducts, Answers, CodeLaw
from skldp.mechanisms.categorical._frequency import project_onto_simplex
from skldp.mechanisms.numeric._distribution import ascend

_Floats = npt.NDArray[np.float64]
# Part of the truth's distance in log-likelihood that is left: with bits, of at most 4,096 categories, and else. Even
# shares of very many categories may lie within an eighth.
_PART_OF_BITS, _PART = 1 / 8, 1 / 64
# Quadratic models of the log-likelihood that are made of reports of bits, and steps on each.
_MODELS, _STEPS = 8, 1_000


def likeliest_codes(law: CodeLaw, answers: Answers) -> _Floats:
    """Return the maximum-likelihood shares of codes."""
    # Likelihood ratio of a code that an answer supports.
    more = math.expm1(law.epsilon)
    found, shares, part = law.products(answers), np.full(law.n_codes, 1 / law.n_codes), _PART
    if isinstance(law, BitsOfCodes):
        part, (p, q) = _PART_OF_BITS, law.support
        unbiased = (found.supporting(found.counts) / len(answers) - q) / (p - q)
        start = project_onto_simplex(unbiased[None])[0]
        shares, near = _ascend_models(found, more, start, part * law.n_codes / 2)
        if near:
            return shares
    return ascend(
        lambda shares: 1 + more * found.supported(shares),
        lambda parts: parts.sum() + more * found.supporting(parts),
        found.counts,
        law.n_codes,
        0.9 * shares + 0.1 / law.n_codes,
        part=part,
    )


def _ascend_models(found: AnswerProducts, more: float, start: _Floats, slack: float) -> tuple[_Floats, bool]:
    """Ascend quadratic models of the log-likelihood from even shares; return whether at most the slack is left."""
    n, even = found.counts.sum(), np.full(len(start), 1 / len(start))
    shares = start
    for i in range(_MODELS):
        chances = 1 + more * found.supported(shares)
        weights = found.counts / chances
        slopes = weights.sum() + more * found.supporting(weights)
        if i and slopes.max() - n < slack:
            return shares, True
        bends = more**2 * found.supporting(weights / chances)
        shares = _ascend_model(even if i == 0 else shares, slopes + bends * shares, bends, 0.9 * slack)
    return shares, False


def _ascend_model(shares: _Floats, slopes: _Floats, bends: _Floats, slack: float) -> _Floats:
    """Take multiplicative steps on a quadratic model of given slopes at 0, until at most the slack is left."""
    for _ in range(_STEPS):
        gains = slopes - bends * shares
        gains -= shares @ gains
        if gains.max() < slack:
            break
        moved = shares * np.exp(np.clip(gains / (2 * (bends * shares).max()), -2, 2))
        shares = moved / moved.sum()
    return shares
