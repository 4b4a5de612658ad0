"""Exact loss of a release of randomized bits, and laws calibrated to a given exact loss."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skldp._arrays import Bools, Floats, Ints, Words
from skldp.domains._domain import Box
from skldp.mechanisms.bits._fixed_point import FixedPoint, code_moments, fixed_point_decoder, plain_bits
from skldp.mechanisms.bits._flip_laws import LARGEST_LOSS, BitLaw, optimal_losses, symmetric_law


def least_integer(objective: Callable[[int], float], most: int) -> int:
    """Return the integer from 1 to `most` with the least objective, which has one valley; O(log `most`) evaluations."""
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


_CHUNK = 1024
_PAIR_ROUNDING = 1 + 128 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Intervals:
    """Distinct intervals of reachable codes, as :meth:`FixedPoint.reachable` returns them, and features of each."""

    ends: Words
    counts: Ints

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Intervals) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[bytes, bytes]:
        return self.ends.tobytes(), self.counts.tobytes()

    @classmethod
    def of(cls, encoding: FixedPoint, bounds: Box, n_laws: int = 1) -> tuple["Intervals", ...]:
        """Return the intervals of the features that follow each law: j follows law ``j % n_laws``."""
        ends, starts = bounds.shared or bounds.ends, range(min(n_laws, bounds.n_features))
        codes = np.stack([encoding.encode(np.atleast_1d(end)) for end in ends], axis=1)
        if bounds.shared:
            counts = [len(range(start, bounds.n_features, n_laws)) for start in starts]
            return tuple(cls(encoding.reachable(codes), np.array([count])) for count in counts)
        return tuple(cls._distinct(encoding, np.ascontiguousarray(codes[start::n_laws])) for start in starts)

    @classmethod
    def _distinct(cls, encoding: FixedPoint, codes: np.ndarray) -> "Intervals":
        # Sorting short integers takes a hundredth of the time of sorting pairs.
        if codes.itemsize < 8:
            pairs, counts = np.unique(codes.view(f"u{2 * codes.itemsize}"), return_counts=True)
        else:
            pairs, counts = np.unique(codes, return_counts=True, axis=0)
        return cls(encoding.reachable(pairs.view(codes.dtype).reshape(-1, 2)), counts)


def worst_pair_losses(losses: Floats, ends: Words) -> Floats:
    """Return the largest loss between two codes of each interval; losses of shape (n_bits, 2, 2)."""
    worst = np.zeros(len(ends))
    # If losses are symmetric, the last two pairs of signs lose the same.
    signs = np.array([(0, 0), (1, 1), (0, 1), (1, 0)])[: 3 if np.array_equal(losses, losses.swapaxes(1, 2)) else 4]
    for start in range(0, len(ends), _CHUNK):
        part = ends[start : start + _CHUNK]
        pairs = part[:, signs]
        exist = (pairs[..., 0] <= pairs[..., 1]).all(axis=2)
        found = np.zeros(exist.shape)
        found[exist] = _magnitude_losses(losses[1:], pairs[exist, 0], pairs[exist, 1])
        found[exist] += np.broadcast_to(losses[0][tuple(signs.T)], exist.shape)[exist]
        worst[start : start + _CHUNK] = found.max(axis=1)
    return worst * _PAIR_ROUNDING


def _magnitude_losses(losses: Floats, one: Words, other: Words) -> Floats:
    """Return the largest loss between two magnitudes, of two intervals each; one bit after the other, from the last."""
    # Axes: whether the bits above equal those of the first and of the last magnitude of `one`, and of `other`.
    best = np.zeros((2, 2, 2, 2, len(one)))
    for place, loss in enumerate(losses[::-1]):
        digits, others = ((ends >> np.uint64(place) & np.uint64(1)).astype(bool).T for ends in (one, other))
        after = _with_bit(_with_bit(best, *digits).transpose(3, 4, 0, 1, 2, 5), *others)
        after += loss.T[:, None, None, :, None, None, None]
        best = after.max(axis=(0, 3)).transpose(2, 3, 0, 1, 4)
    worst: Floats = best[1, 1, 1, 1]
    return worst


def _with_bit(best: Floats, first: Bools, last: Bools) -> Floats:
    """Return the best with 0 and with 1 in front, which may not leave the interval, and may untie it from its ends."""
    after = np.empty((2, *best.shape))
    after[:, 0] = best[0]
    after[0, 1] = np.where(first, -np.inf, best[1])
    after[1, 1] = np.where(first, best[1], best[0])
    after[0, :, 1] = np.where(last, after[0, :, 0], after[0, :, 1])
    after[1, :, 1] = np.where(last, after[1, :, 1], -np.inf)
    return after


# A calibrated loss is at most the stated epsilon, and at least this share below it.
_SHORT = 1e-9
_ROUNDING = 1 + 2.0**-50
_UPPER_HALF = np.uint64(2**64 - 2**27)
# Number of values over which an error is averaged.
_GRID = 128


@lru_cache(maxsize=64)
def worst_losses(laws: tuple[BitLaw, ...], intervals: tuple[Intervals, ...], n_sampled: int) -> tuple[float, float]:
    """Return the exact loss of a record that releases `n_sampled` features, and the largest one of a feature."""
    pairs = zip(laws, intervals, strict=False)
    losses = np.concatenate([worst_pair_losses(law.losses, some.ends) for law, some in pairs])
    order = np.argsort(-losses)
    counts = np.concatenate([some.counts for some in intervals])[order]
    taken = np.diff(np.minimum(counts.cumsum(), n_sampled), prepend=0)
    # Half the bits of a loss times a count of fewer than 2^26 is exact, so that the sum is rounded once.
    losses = losses[order]
    upper = (losses.view(np.uint64) & _UPPER_HALF).view(np.float64)
    return math.fsum([*(upper * taken), *((losses - upper) * taken)]) * _ROUNDING, float(losses[0])


@lru_cache(maxsize=16)
def exact_bitrand_law(epsilon: float, encoding: FixedPoint, intervals: tuple[Intervals, ...], n_sampled: int) -> BitLaw:
    """Return the law of least expected error whose exact loss is `epsilon`."""
    counts = _counting_bits(encoding, intervals)

    @cache
    def loss(budget: float) -> float:
        return worst_losses((_optimal_law(budget, encoding, counts),), intervals, n_sampled)[0]

    if not counts.any():
        return _optimal_law(1.0, encoding, counts)
    ceiling = 2.0 * LARGEST_LOSS * encoding.n_bits
    budget = _largest_argument(loss, epsilon, epsilon / n_sampled, ceiling)
    if loss(budget) == 0:
        least = f"about {n_sampled * 2.0**-61:.3g}"
        raise ValueError(f"epsilon must be at least {least}, or all probabilities round to 1/2; got {epsilon!r}.")
    return _optimal_law(budget, encoding, counts)


def least_error_sample(epsilon: float, encoding: FixedPoint, bounds: Box, intervals: tuple[Intervals, ...]) -> int:
    """Return the number of features to release per record that predicts the values best."""
    ends = [[end] for end in bounds.shared] if bounds.shared else np.unique(bounds.ends, axis=1).tolist()
    return _least_error_sample(epsilon, encoding, tuple(map(tuple, ends)), bounds.n_features, intervals)


@lru_cache(maxsize=16)
def _least_error_sample(
    epsilon: float, encoding: FixedPoint, pairs: tuple[Any, ...], n_features: int, intervals: tuple[Intervals, ...]
) -> int:
    # Theorem 4's error cannot choose: it is the error of the number itself, not of what can be learnt.
    counts, ends = _counting_bits(encoding, intervals), np.array(pairs)
    x = ends[0] + (ends[1] - ends[0]) * (np.arange(_GRID)[:, None] + 0.5) / _GRID
    codes, places = np.unique(encoding.encode(x), return_inverse=True)
    decoder = fixed_point_decoder(encoding, plain_bits(encoding.n_bits))
    spread = x - x.mean(axis=0)

    def error(n_sampled: int) -> float:
        # A fast approximation of the final law: it only chooses k, and has no part in the guarantee.
        law = _optimal_law(epsilon / n_sampled, encoding, counts)
        mean, square = (moment[places] for moment in code_moments(codes, law, decoder))
        variance = square.mean(axis=0) * (n_features / n_sampled) - mean.mean(axis=0) ** 2
        together = (spread * mean).mean(axis=0) ** 2
        # A feature whose bounds reach one code only is released as a constant, which explains nothing.
        explained = np.divide(together, (spread**2).mean(axis=0) * variance, out=together, where=variance > 0)
        return float(1 - explained.mean())

    return least_integer(error, n_features)


@lru_cache(maxsize=16)
def exact_published_laws(
    make_laws: Callable[[float, int, float], tuple[BitLaw, ...]],
    alpha: float,
    epsilon: float,
    encoding: FixedPoint,
    intervals: tuple[Intervals, ...],
    n_sampled: int,
) -> tuple[BitLaw, ...]:
    """Choose the one free number of LATENT or OME, the share of one bit, so that the exact loss is `epsilon`."""
    n_bits = encoding.n_bits

    @cache
    def loss(share: float) -> float:
        return worst_losses(make_laws(share, n_bits, alpha), intervals, n_sampled)[0]

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


def _counting_bits(encoding: FixedPoint, intervals: Sequence[Intervals]) -> Bools:
    """Return which bits differ between two reachable codes of some feature."""
    reachable = np.concatenate([some.ends for some in intervals])
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
