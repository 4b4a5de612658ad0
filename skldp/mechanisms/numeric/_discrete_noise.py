r"""Exact samplers of the discrete Laplace and the discrete Gaussian law on the integers.

The sampled law is exactly the stated one, for every integer, without truncation. A uniform real number starts with 63
bits; its logarithm is computed in double precision with a bound on the error. If that leaves two answers (a few in a
million), more bits are drawn and the logarithm is computed in decimal arithmetic to as many digits as needed. The only
assumption about the machine is that ``numpy.log`` is within 2^-46 on [2^-45, 1], four units in the last place of its
largest values there.

The scale parameters are integers, so that guarantees include all rounding.

References
----------
Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, Algorithms 2 and 3 (whose
rational Bernoulli trials are replaced by the comparison of an exponential variable).
"""

import decimal
import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from skldp._arrays import Bools, Floats, Ints, Words
from skldp._checks import check_integer
from skldp.mechanisms._noise import Noise

# A uniform number of 2^-17 or more (as an integer out of 2^63) whose 63 bits are known, or a smaller one whose 127
# bits are known, has a logarithm that is uncertain by up to 2^-46 for the bits and less than 2^-46 for numpy.
_LEAST_FAST = 2.0**46
_LOG_ERROR = 2.0**-45
# Words from here on have a uniform number of at least 2^-45.
_LEAST_DOUBLE = np.uint64(2**19)
_LEAST_POSSIBLE = 2.0**17
_LARGEST_SCALE = 2**40
# Number of proposals for each missing number in the first rounds; the last figure holds for all later rounds, where the
# first accepted proposal counts. Three in four are accepted, and a round of few numbers costs as much as one proposal.
_PROPOSALS = (1, 1, 1, 8)


def discrete_laplace(scale: int, size: int, noise: Noise) -> Ints:
    """Draw integers z with probability tanh(1 / 2s) exp(-|z| / s): magnitude floor(-s ln U) and a fair sign."""
    check_integer("The scale", scale, least=1, most=_LARGEST_SCALE)
    words = noise.words(size)
    drawn = _signed_geometric(words, scale, noise)
    again = np.flatnonzero(drawn == 0)
    again = again[_is_odd(words[again])]
    while again.size:
        anew = noise.at(again, size)
        words = anew.words(again.size)
        drawn[again] = _signed_geometric(words, scale, anew)
        again = again[(drawn[again] == 0) & _is_odd(words)]
    return drawn


def discrete_gaussian(sigma: int, size: int, noise: Noise) -> Ints:
    """Draw z with probability ~ exp(-z^2 / 2 sigma^2): a discrete Laplace, kept by an exponential coin."""
    check_integer("The scale", sigma, least=1, most=_LARGEST_SCALE)
    drawn = np.empty(size, dtype=np.int64)
    missing = np.arange(size)
    rounds = itertools.chain(_PROPOSALS, itertools.repeat(_PROPOSALS[-1]))
    while missing.size:
        n_each, anew = next(rounds), noise.at(missing, size)
        proposed = discrete_laplace(sigma, missing.size * n_each, anew)
        kept = _accepted(proposed, sigma, anew)
        if n_each > 1:
            several = kept.reshape(-1, n_each)
            proposed = proposed.reshape(several.shape)[np.arange(len(several)), several.argmax(axis=1)]
            kept = several.max(axis=1)
        # A refused proposal stands only until the next one.
        drawn[missing] = proposed
        missing = missing[np.flatnonzero(~kept)]
    return drawn


def _is_odd(words: Words) -> Bools:
    return (words & np.uint64(1)).astype(bool)


def _log_uniform(words: Words, noise: Noise) -> tuple[Floats, dict[int, int]]:
    """Return ln U within the bound, and the 64 further bits of the few small U that need them."""
    u = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
    further = {}
    small = np.flatnonzero(u < _LEAST_FAST)
    if small.size:
        drawn = noise.at(small, words.size).words(small.size)
        # Smaller numbers do not occur in practice; _doubtful settles them in decimals.
        u[small] = np.maximum(u[small] + drawn * 2.0**-64, _LEAST_POSSIBLE)
        further = dict(zip(small.tolist(), drawn.tolist(), strict=True))
    u *= 2.0**-63
    np.log(u, out=u)
    return u, further


def _doubtful(unclear: Bools, words: Words) -> list[int]:
    """Return the places to settle in decimals: doubles leave two answers, or U needs more than 127 bits."""
    return np.flatnonzero(unclear | (words < _LEAST_DOUBLE)).tolist()


def _bits(i: int, words: Words, further: dict[int, int]) -> tuple[int, int]:
    """Return all bits of the i-th U that are known, and how many."""
    leading = int(words[i]) >> 1
    return (leading << 64 | further[i], 127) if i in further else (leading, 63)


def _of_one(noise: Noise, i: int, words: Words) -> Noise:
    return noise.at(np.array([i]), words.size)


def _signed_geometric(words: Words, scale: int, noise: Noise) -> Ints:
    """Return floor(-scale ln U), negated where a word is odd."""
    value, further = _log_uniform(words, noise)
    value *= -scale
    magnitude = value.astype(np.int64)
    # Distance from the middle between two integers.
    value -= magnitude
    value -= 0.5
    np.abs(value, out=value)
    for i in _doubtful(value > 0.5 - scale * _LOG_ERROR, words):
        magnitude[i] = _settle(*_bits(i, words, further), _of_one(noise, i, words), partial(_same_floor, scale=scale))
    # -1 for odd words: negation without a branch, m xor -1 being -m - 1.
    sign = (words & np.uint64(1)).view(np.int64)
    np.negative(sign, out=sign)
    magnitude ^= sign
    magnitude -= sign
    return magnitude


def _accepted(proposed: Ints, sigma: int, noise: Noise) -> Bools:
    """Keep each proposal with probability exp(-(|z| - sigma)^2 / (2 sigma^2))."""
    words = noise.words(proposed.shape)
    value, further = _log_uniform(words, noise)
    cost = np.abs(proposed).astype(np.float64)
    cost -= sigma
    cost *= math.sqrt(0.5) / sigma
    cost *= cost
    value += cost
    kept = value <= 0
    # The cost is within 2^-49 of its size.
    cost += 1
    cost *= _LOG_ERROR
    for i in _doubtful(np.abs(value) < cost, words):
        decide = partial(_same_side, numerator=(abs(int(proposed[i])) - sigma) ** 2, denominator=2 * sigma**2)
        kept[i] = _settle(*_bits(i, words, further), _of_one(noise, i, words), decide)
    return kept


def _settle(
    leading: int, n_bits: int, noise: Noise, decide: Callable[[decimal.Decimal, decimal.Decimal], int | None]
) -> int:
    """Extend the leading bits of U until `decide`, given certified bounds of -ln U, has an answer."""
    while True:
        with decimal.localcontext() as context:
            context.prec = 40 + n_bits // 3
            context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
            slack = decimal.Decimal(10) ** -(n_bits // 3 + 10)
            unit = decimal.Decimal(2) ** n_bits
            if leading:
                low = -(decimal.Decimal(leading + 1) / unit).ln() - slack
                high = -(decimal.Decimal(leading) / unit).ln() + slack
                answer = decide(low, high)
                if answer is not None:
                    return answer
        leading = (leading << 64) | int(noise.words(1)[0])
        n_bits += 64


def _same_floor(low: decimal.Decimal, high: decimal.Decimal, scale: int) -> int | None:
    # A little below 0 can only be the slack: -ln U is positive.
    down, up = max(0, math.floor(low * scale)), math.floor(high * scale)
    return down if down == up else None


def _same_side(low: decimal.Decimal, high: decimal.Decimal, numerator: int, denominator: int) -> int | None:
    if low * denominator >= numerator:
        return 1
    return 0 if high * denominator < numerator else None
