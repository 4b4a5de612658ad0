r"""Likeliest shares of categories, from the distinct reports and two fast products.

A report y that supports a set S(y) of categories has the chance :math:`1 + (e^\varepsilon - 1) \sum_{x \in S(y)} f_x`
under shares f, times a constant. Expectation and maximization need these sums for all distinct reports, and the sums of
weights of the reports that support each category.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from skldp.collection._answer_scores import SupportScores, code_scores
from skldp.laws._categories import HadamardLaw, HashingLaw, ResponseLaw, SubsetLaw, UnaryLaw
from skldp.laws._integers import Answers, CodeLaw
from skldp.mechanisms.categorical._frequency import project_onto_simplex
from skldp.mechanisms.categorical._hadamard import hadamard_transform
from skldp.mechanisms.categorical._local_hashing import linear_hashes
from skldp.mechanisms.numeric._distribution import ascend

_Floats = npt.NDArray[np.float64]
# Part of the truth's distance in log-likelihood that is left: with bits, of at most 4,096 categories, and else. Even
# shares of very many categories may lie within an eighth.
_PART_OF_BITS, _PART = 1 / 8, 1 / 64
# Quadratic models of the log-likelihood that are made of reports of bits, and steps on each.
_MODELS, _STEPS = 8, 1_000
_BITS_OF_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)


@dataclass(frozen=True)
class _Products:
    """Distinct reports with their counts, the share that each supports, and the weights that support each category."""

    counts: _Floats
    supported: Callable[[_Floats], _Floats]
    supporting: Callable[[_Floats], _Floats]


def likeliest_codes(law: CodeLaw, answers: Answers) -> _Floats:
    """Return the maximum-likelihood shares of codes."""
    # Likelihood ratio of a code that an answer supports.
    more = math.expm1(law.epsilon)
    found, shares, part = _products(law, answers), np.full(law.n_codes, 1 / law.n_codes), _PART
    scores = code_scores(law)
    if isinstance(law, UnaryLaw | SubsetLaw) and isinstance(scores, SupportScores):
        part = _PART_OF_BITS
        unbiased = (found.supporting(found.counts) / len(answers) - scores.q) / (scores.p - scores.q)
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


def _ascend_models(found: _Products, more: float, start: _Floats, slack: float) -> tuple[_Floats, bool]:
    """Ascend quadratic models of the log-likelihood from even shares, and return whether at most the slack is left.

    The first model is that at the given start.

    The bits of a report are independent given its category. The second derivatives are therefore nearly a diagonal plus
    a constant, which is without effect on shares of one sum.
    """
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
    """Take multiplicative steps on a quadratic model of given slopes at 0, until at most the slack is left.

    From even shares, such steps leave the shares as even as the slack allows, as expectation and maximization does.
    """
    for _ in range(_STEPS):
        gains = slopes - bends * shares
        gains -= shares @ gains
        if gains.max() < slack:
            break
        moved = shares * np.exp(np.clip(gains / (2 * (bends * shares).max()), -2, 2))
        shares = moved / moved.sum()
    return shares


def _products(law: CodeLaw, answers: Answers) -> _Products:
    if isinstance(law, ResponseLaw):
        return _of_codes(law.n_codes, answers)
    if isinstance(law, HashingLaw):
        return _of_hashes(law.n_codes, law.n_buckets, answers)
    if isinstance(law, HadamardLaw):
        return _of_blocks(law, answers)
    return _of_bits(law.n_codes, answers)


def _of_codes(n_codes: int, answers: Answers) -> _Products:
    counts = np.bincount(answers, minlength=n_codes).astype(np.float64)
    given = np.flatnonzero(counts)

    def supporting(parts: _Floats) -> _Floats:
        return np.bincount(given, parts, n_codes).astype(np.float64)

    return _Products(counts[given], lambda shares: shares[given], supporting)


def _of_blocks(law: HadamardLaw, answers: Answers) -> _Products:
    """Return the products of Hadamard response, by transforms of its blocks."""
    counts = np.bincount(answers, minlength=law.n_answers).astype(np.float64)
    given, shape = np.flatnonzero(counts), (law.n_blocks, law.block_size)

    def supported(shares: _Floats) -> _Floats:
        table = np.zeros((law.n_blocks, law.block_size - 1))
        table.reshape(-1)[: law.n_codes] = shares
        signed = hadamard_transform(np.insert(table, 0, 0.0, axis=1))
        return np.asarray((table.sum(axis=1, keepdims=True) + signed).reshape(-1)[given] / 2)

    def supporting(parts: _Floats) -> _Floats:
        table = np.bincount(given, parts, law.n_answers).reshape(shape)
        signed = hadamard_transform(table)[:, 1:]
        return np.asarray((table.sum(axis=1, keepdims=True) + signed).reshape(-1)[: law.n_codes] / 2)

    return _Products(counts[given], supported, supporting)


def _of_bits(n_codes: int, answers: Answers) -> _Products:
    """Return the products of reports of a bit for each category, by tables over each two bytes of them."""
    counts = np.ones(len(answers))
    if answers.ndim == 1:
        answers, found = np.unique(answers, return_counts=True)
        counts, answers = found.astype(np.float64), answers.astype(answers.dtype.newbyteorder(">")).view(np.uint8)
    in_bytes = answers.reshape(len(counts), -1)
    padded = np.pad(in_bytes, ((0, 0), (in_bytes.shape[1] % 2, 0)))
    pairs = np.ascontiguousarray(padded.view(">u2").T, dtype=np.uint16)
    n_bytes = 2 * len(pairs)

    def supported(shares: _Floats) -> _Floats:
        tables = np.pad(shares, (8 * n_bytes - n_codes, 0)).reshape(n_bytes, 8) @ _BITS_OF_BYTES.T
        total = np.zeros(len(counts))
        for pair, high, low in zip(pairs, tables[::2], tables[1::2], strict=True):
            total += np.add.outer(high, low).reshape(-1)[pair]
        return total

    def supporting(parts: _Floats) -> _Floats:
        sums = np.empty((n_bytes, 256))
        for i, pair in enumerate(pairs):
            held = np.bincount(pair, parts, 1 << 16).reshape(256, 256)
            sums[2 * i], sums[2 * i + 1] = held.sum(axis=1), held.sum(axis=0)
        return np.asarray((sums @ _BITS_OF_BYTES).reshape(-1)[-n_codes:])

    return _Products(counts, supported, supporting)


def _of_hashes(n_codes: int, g: int, answers: Answers) -> _Products:
    hashes = linear_hashes(n_codes, g)
    keys, counts = np.unique(hashes.keys(answers.astype(np.int64)), return_counts=True)
    return _Products(counts.astype(np.float64), partial(hashes.supported, keys), partial(hashes.supporting, keys))
