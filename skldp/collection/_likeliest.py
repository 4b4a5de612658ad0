r"""Likeliest shares of categories, from the distinct reports and two fast products.

A report y that supports a set S(y) of categories has the chance :math:`1 + (e^\varepsilon - 1) \sum_{x \in S(y)} f_x`
under shares f, times a constant. Expectation and maximization need these sums for all distinct reports, and the sums of
weights of the reports that support each category.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from skldp.laws._categories import HadamardLaw, HashingLaw, ResponseLaw, SubsetLaw, UnaryLaw
from skldp.laws._integers import CodeLaw
from skldp.laws._longitudinal_laws import LongitudinalBitsLaw, LongitudinalHashingLaw, LongitudinalResponseLaw
from skldp.learning._answer_scores import Answers, bits
from skldp.mechanisms.categorical._hadamard import hadamard_transform
from skldp.mechanisms.categorical._local_hashing import linear_hashes
from skldp.mechanisms.numeric._distribution import ascend

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]
# Rows of bits that are turned into numbers at once, and numbers of bits that are kept as such.
_ROWS, _MOST_KEPT = 1 << 14, 1 << 27
# Parts of the people of the first estimates, each the start of the next.
_FIRST_PARTS = (64, 8)
_LEAST_FIRST = 2048
# Part of the truth's distance in log-likelihood that is left: with bits, of at most 4,096 categories, and else. Even
# shares of very many categories may lie within an eighth.
_PART_OF_BITS, _PART = 1 / 8, 1 / 64


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
    shares = np.full(law.n_codes, 1 / law.n_codes)
    # Reports of bits are seldom alike; the likeliest shares of some of them are a start near those of all.
    of_bits = isinstance(law, UnaryLaw | SubsetLaw | LongitudinalBitsLaw)
    first = [len(answers) // part for part in _FIRST_PARTS if of_bits and len(answers) >= _LEAST_FIRST * part]
    for n in [*first, len(answers)]:
        found = _products(law, answers[:n])
        shares = _ascend(found, more, 0.9 * shares + 0.1 / law.n_codes, _PART_OF_BITS if of_bits else _PART)
    return shares


def _ascend(found: _Products, more: float, start: _Floats, part: float) -> _Floats:
    return ascend(
        lambda shares: 1 + more * found.supported(shares),
        lambda parts: parts.sum() + more * found.supporting(parts),
        found.counts,
        len(start),
        start,
        part=part,
    )


def _products(law: CodeLaw, answers: Answers) -> _Products:
    if isinstance(law, ResponseLaw | LongitudinalResponseLaw):
        return _of_codes(law.n_codes, answers)
    if isinstance(law, HashingLaw | LongitudinalHashingLaw):
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
    """Return the products of reports of a bit for each category, in single precision."""
    if answers.ndim == 1:
        answers, found = np.unique(answers, return_counts=True)
        counts = found.astype(np.float64)
    else:
        counts = np.ones(len(answers))
    starts = range(0, len(answers), _ROWS)

    def block(i: int) -> npt.NDArray[np.float32]:
        return bits(answers[i : i + _ROWS], n_codes).astype(np.float32)

    kept = [block(i) for i in starts] if len(answers) * n_codes <= _MOST_KEPT else None

    def blocks() -> Iterator[npt.NDArray[np.float32]]:
        return iter(kept) if kept is not None else map(block, starts)

    def supported(shares: _Floats) -> _Floats:
        return np.concatenate([held @ shares.astype(np.float32) for held in blocks()]).astype(np.float64)

    def supporting(parts: _Floats) -> _Floats:
        sums = np.zeros(n_codes)
        for i, held in zip(starts, blocks(), strict=True):
            sums += parts[i : i + _ROWS].astype(np.float32) @ held
        return sums

    return _Products(counts, supported, supporting)


def _of_hashes(n_codes: int, g: int, answers: Answers) -> _Products:
    hashes = linear_hashes(n_codes, g)
    keys, counts = np.unique(hashes.keys(answers.astype(np.int64)), return_counts=True)
    return _Products(counts.astype(np.float64), partial(hashes.supported, keys), partial(hashes.supporting, keys))
