"""Exact loss of a release of randomized bits, and laws calibrated to a given exact loss."""

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from skldp._arrays import Bools, Floats, Words
from skldp.domains._domain import Box
from skldp.mechanisms.bits._fixed_point import FixedPoint, code_moments, fixed_point_decoder, plain_bits
from skldp.mechanisms.bits._flip_laws import LARGEST_LOSS, BitLaw, optimal_losses, symmetric_law


def least_integer(objective: Callable[[int], float], most: int) -> int:
    """Return the integer from 1 to `most` with the least objective, for one with a single valley.

    Powers of two find the valley, and halving steps its minimum: about ``4 log2(most)`` evaluations.
    """
    known = cache(objective)
    starts = [2**i for i in range(most.bit_length()) if 2**i <= most]
    best: int = min([*starts, most], key=known)
    step = max(1, best // 4)
    while step:
        nearest = min((k for k in (best, best - step, best + step) if 1 <= k <= most), key=known)
        if nearest == best:
            step //= 2
        best = nearest
    return best


_CHUNK = 2048
# State: whether the bits so far equal those of the first, and of the last, reachable magnitude.
_TIED_FIRST = np.array([False, False, True, True])
_TIED_LAST = np.array([False, True, False, True])
_PAIR_ROUNDING = 1 + 128 * np.finfo(np.float64).eps


def worst_pair_losses(losses: Floats, reachable: Words) -> Floats:
    """Return the largest loss between two reachable codes, for each interval of codes.

    Shapes: losses (n_bits, 2, 2); returns (n,).
    """
    distinct, inverse = np.unique(reachable.reshape(len(reachable), 4), axis=0, return_inverse=True)
    ends = distinct.reshape(-1, 2, 2)
    worst = np.zeros(len(ends))
    for sign in range(2):
        for other in range(2):
            exists = (ends[:, sign, 0] <= ends[:, sign, 1]) & (ends[:, other, 0] <= ends[:, other, 1])
            for rows in np.array_split(np.flatnonzero(exists), max(1, len(ends) // _CHUNK)):
                magnitudes = _magnitude_losses(losses[1:], ends[rows, sign], ends[rows, other])
                worst[rows] = np.maximum(worst[rows], losses[0, sign, other] + magnitudes)
    return worst[inverse.reshape(-1)] * _PAIR_ROUNDING


def _magnitude_losses(losses: Floats, one: Words, other: Words) -> Floats:
    rows = np.arange(len(one))[:, None, None, None, None]
    best = np.zeros((len(one), 4, 4))
    for place in range(len(losses)):
        loss = losses[len(losses) - 1 - place]
        next_one, legal_one = _step(one, place)
        next_other, legal_other = _step(other, place)
        so_far = best[rows, next_one[:, :, :, None, None], next_other[:, None, None, :, :]]
        after = so_far + loss[None, None, :, None, :]
        legal = legal_one[:, :, :, None, None] & legal_other[:, None, None, :, :]
        best = np.where(legal, after, -np.inf).max(axis=(2, 4))
    return best[:, 3, 3]


def _step(ends: Words, place: int) -> tuple[npt.NDArray[np.intp], Bools]:
    """Return the next state and the legality of bit values 0 and 1 at a place (0 the last), shape (n, 4, 2)."""
    digits = ((ends >> np.uint64(place)) & np.uint64(1)).astype(bool)
    first, last = digits[:, :1, None], digits[:, 1:, None]
    value = np.array([False, True])
    tied_first, tied_last = _TIED_FIRST[:, None], _TIED_LAST[:, None]
    legal = ~(tied_first & ~value & first) & ~(tied_last & value & ~last)
    state = 2 * (tied_first & (value == first)) + 1 * (tied_last & (value == last))
    return state.astype(np.intp), legal


# A calibrated loss is at most the stated epsilon, and at least this share below it.
_SHORT = 1e-9
_ROUNDING = 1 + 2.0**-50
# Number of values over which an error is averaged.
_GRID = 128


def feature_losses(laws: Sequence[BitLaw], reachable: Words) -> Floats:
    """Return the exact loss of each feature alone; feature j follows ``laws[j % len(laws)]``."""
    losses = np.zeros(len(reachable))
    for start, law in enumerate(laws):
        losses[start :: len(laws)] = worst_pair_losses(law.losses, reachable[start :: len(laws)])
    return losses


def record_loss(losses: Floats, n_sampled: int) -> float:
    """Return the exact loss of a record that releases `n_sampled` features, drawn independently of the data."""
    return math.fsum(np.sort(losses)[len(losses) - n_sampled :]) * _ROUNDING


def exact_bitrand_law(epsilon: float, encoding: FixedPoint, reachable: Words, n_sampled: int) -> BitLaw:
    """Return the law of least expected error whose exact loss is `epsilon`.

    Shapes: reachable (n_features, 2, 2).
    """
    counts = _counting_bits(encoding, reachable)

    @cache
    def loss(budget: float) -> float:
        return record_loss(feature_losses([_optimal_law(budget, encoding, counts)], reachable), n_sampled)

    if not counts.any():
        return _optimal_law(1.0, encoding, counts)
    ceiling = 2.0 * LARGEST_LOSS * encoding.n_bits
    budget = _largest_argument(loss, epsilon, epsilon / n_sampled, ceiling)
    if loss(budget) == 0:
        least = f"about {n_sampled * 2.0**-61:.3g}"
        raise ValueError(f"epsilon must be at least {least}, or all probabilities round to 1/2; got {epsilon!r}.")
    return _optimal_law(budget, encoding, counts)


def least_error_sample(epsilon: float, encoding: FixedPoint, low: Floats, high: Floats) -> int:
    """Return the number of features to release per record that predicts the values best.

    Theorem 4's error cannot choose: it is the error of the number itself, not of what can be learnt.
    """
    n_features = len(low)
    counts = _counting_bits(encoding, encoding.reachable(low, high))
    ends = np.unique(np.stack([low, high]), axis=1)
    x = ends[0] + (ends[1] - ends[0]) * (np.arange(_GRID)[:, None] + 0.5) / _GRID
    codes = encoding.encode(x)
    decoder = fixed_point_decoder(encoding, plain_bits(encoding.n_bits))
    spread = x - x.mean(axis=0)

    def error(n_sampled: int) -> float:
        # A fast approximation of the final law: it only chooses k, and has no part in the guarantee.
        law = _optimal_law(epsilon / n_sampled, encoding, counts)
        mean, square = code_moments(codes, law, decoder)
        variance = square.mean(axis=0) * (n_features / n_sampled) - mean.mean(axis=0) ** 2
        together = (spread * mean).mean(axis=0) ** 2
        # A feature whose bounds reach one code only is released as a constant, which explains nothing.
        explained = np.divide(together, (spread**2).mean(axis=0) * variance, out=together, where=variance > 0)
        return float(1 - explained.mean())

    return least_integer(error, n_features)


@lru_cache(maxsize=64)
def exact_published_laws(
    make_laws: Callable[[float, int, float], tuple[BitLaw, ...]],
    alpha: float,
    epsilon: float,
    encoding: FixedPoint,
    bounds: Box,
    n_sampled: int,
) -> tuple[BitLaw, ...]:
    """Choose the one free number of LATENT or OME, the share of one bit, so that the exact loss is `epsilon`."""
    n_bits, reachable = encoding.n_bits, encoding.reachable(*bounds.ends)

    @cache
    def loss(share: float) -> float:
        return record_loss(feature_losses(make_laws(share, n_bits, alpha), reachable), n_sampled)

    least = loss(0.0)
    if least > epsilon:
        raise ValueError(f"epsilon must be at least {least:.4g} with this alpha, else use alpha=1; got {epsilon!r}.")
    share = _largest_argument(loss, epsilon, epsilon / (n_sampled * n_bits), 2.0 * LARGEST_LOSS)
    return make_laws(share, n_bits, alpha)


def _optimal_law(budget: float, encoding: FixedPoint, counts: Bools) -> BitLaw:
    """Spend the budget of one feature on the bits that count, and leave the others alone."""
    losses = np.full(encoding.n_bits, 2 * LARGEST_LOSS)
    if counts.any():
        losses[counts] = optimal_losses(budget, encoding.sensitivities[counts])
    return symmetric_law(losses)


def _counting_bits(encoding: FixedPoint, reachable: Words) -> Bools:
    """Return which bits differ between two reachable codes of some feature."""
    exists = reachable[:, :, 0] <= reachable[:, :, 1]
    # The magnitudes of one sign run from the first to the last, so that all bits below their common prefix vary.
    varying = np.where(exists, reachable[:, :, 0] ^ reachable[:, :, 1], 0)
    n_varying = int(np.bitwise_or.reduce(varying.reshape(-1))).bit_length()
    counts = np.arange(encoding.n_bits) >= encoding.n_bits - n_varying
    counts[0] = exists.all(axis=1).any()
    return counts


def _largest_argument(loss: Callable[[float], float], target: float, start: float, ceiling: float) -> float:
    """Return the largest argument, up to `ceiling`, whose loss does not exceed the target; the loss increases."""
    low = start
    while loss(low) > target:
        low *= min(1 - 1e-12, target / loss(low))
    if loss(low) >= target * (1 - _SHORT / 10):
        return low
    high = low
    while loss(high) <= target:
        if high >= ceiling:
            return high
        low, high = high, min(2 * high, ceiling)
    root = math.exp(brentq(lambda z: loss(math.exp(z)) - target, math.log(low), math.log(high), xtol=1e-13))
    while loss(root) > target:
        root *= 1 - 1e-12
    return max(root, low)
