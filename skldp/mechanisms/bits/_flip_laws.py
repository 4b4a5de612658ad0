r"""Flip probabilities of bits: the laws of BitRand, LATENT and OME as published, and the optimal allocation.

A law has two 64-bit integers per bit: the chances of a 1 from a 1 and from a 0. These integers are sampled, and all
guarantees are computed from them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp

from skldp._arrays import Floats, Words
from skldp._checks import check_positive
from skldp.laws._odds import flip_threshold

# A log odds of 64-bit integers never exceeds ln(2^64 - 1).
LARGEST_LOSS = 64 * math.log(2)
_ROUNDING = 1 + 64 * np.finfo(np.float64).eps


def symmetric_law(log_odds: npt.ArrayLike) -> "BitLaw":
    """Return the law that flips bit i, either way, with log odds ``log_odds[i]`` against it."""
    flip = flip_threshold(log_odds)
    return BitLaw(from_one=~flip + np.uint64(1), from_zero=flip)


@lru_cache(maxsize=64)
def log_alpha_bound(epsilon: float, n_features: int, n_bits: int) -> float:
    """Return ln sqrt((epsilon + r l) / (2 r sum_i e^(2 epsilon i / l))), the upper bound of ln alpha (Theorem 2)."""
    exponents = 2 * epsilon * np.arange(n_bits) / n_bits
    spread = float(logsumexp(exponents))
    return 0.5 * (math.log(epsilon + n_features * n_bits) - math.log(2 * n_features) - spread)


def bitrand_law(epsilon: float, n_features: int, n_bits: int, alpha: float | None = None) -> "BitLaw":
    """Return f-RR's published law: bit i flips with odds alpha e^(i epsilon / l) (BitRand, Equation 2)."""
    # At a large epsilon the low bits flip with more than one half, as the paper defines.
    bound = log_alpha_bound(epsilon, n_features, n_bits)
    log_alpha = bound
    if alpha is not None:
        log_alpha = _log_alpha(alpha)
        if log_alpha > bound + 1e-12:
            raise ValueError(f"alpha must be at most {math.exp(bound):.6g}, the bound of Theorem 2; got {alpha!r}.")
    return symmetric_law(-(log_alpha + epsilon * np.arange(n_bits) / n_bits))


def latent_laws(budget: float, n_bits: int, alpha: float) -> tuple["BitLaw", ...]:
    """Return LATENT's law: P(1 -> 1) = 1 / (1 + alpha), P(0 -> 1) = 1 / (1 + alpha e^budget) (BitRand, Equation 27)."""
    log_alpha = _log_alpha(alpha)
    from_one, from_zero = (flip_threshold(np.full(n_bits, odds)) for odds in (log_alpha, log_alpha + budget))
    return (BitLaw(from_one, from_zero),)


def ome_laws(budget: float, n_bits: int, alpha: float) -> tuple["BitLaw", ...]:
    """Return OME's laws (BitRand, Equation 33): P(1 -> 1) is alpha / (1 + alpha) at even places of a record's bits."""
    log_alpha = _log_alpha(alpha)
    from_zero = flip_threshold(np.full(n_bits, log_alpha + budget))
    # At odd places P(1 -> 1) is 1 / (1 + alpha^3). An odd number of bits gives odd features a law of their own.
    places = np.arange(n_bits)
    starts = (0,) if n_bits % 2 == 0 else (0, 1)
    return tuple(
        BitLaw(flip_threshold(np.where((start + places) % 2 == 0, -log_alpha, 3 * log_alpha)), from_zero)
        for start in starts
    )


def latent_corrected_ratio(budget: float, alpha: float) -> float:
    """Return (1 + alpha)(1 + alpha e^s) / (alpha (1 + e^s)), LATENT's corrected over its stated epsilon (Theorem 5)."""
    log_alpha = _log_alpha(alpha)
    return (1 + alpha) / alpha * math.exp(_log1p_exp(log_alpha + budget) - _log1p_exp(budget))


def ome_corrected_ratio(epsilon: float, n_total_bits: int, alpha: float) -> float:
    """Return OME's corrected over its stated epsilon, with the sign as printed (BitRand, Theorem 6)."""
    log_alpha, budget = _log_alpha(alpha), epsilon / n_total_bits
    even, odd, zero = (_expit(x) for x in (log_alpha, -3 * log_alpha, -(log_alpha + budget)))
    first = even * (1 - zero) + zero * (1 - even)
    second = odd * (1 - zero) + zero * (1 - odd)
    corrected = n_total_bits * (1 / first - 1 / second) * log_alpha + epsilon / (2 * first) + epsilon / (2 * second)
    return corrected / epsilon


def optimal_losses(budget: float, sensitivities: Sequence[float] | Floats) -> Floats:
    """Split a budget over bits so that the expected error, the sum of q_i Delta_i, is least."""
    # The solution is q_i = (1 - sqrt(1 - 4 lambda / Delta_i)) / 2, or 1/2 where Delta_i <= 4 lambda.
    delta = np.asarray(sensitivities, dtype=np.float64)
    # With y = ln(Delta_max / (4 lambda)), 1 - 4 lambda / Delta_i is 1 - exp(-(y - gap_i)): no cancellation at any size.
    gaps = np.log(delta.max()) - np.log(delta)

    def losses(y: float) -> Floats:
        height = np.maximum(y - gaps, 0.0)
        return np.asarray(2 * np.log1p(np.sqrt(-np.expm1(-height))) + height)

    # A height of at least the budget is enough for the widest bit alone; the least one is found on a log scale.
    upper = math.log(budget)
    lower = upper
    while losses(math.exp(lower)).sum() > budget:
        lower -= 4.0
    if lower == upper:
        return losses(math.exp(upper))
    log_height = brentq(lambda z: losses(math.exp(z)).sum() - budget, lower, upper, xtol=1e-14, rtol=1e-14)
    return losses(math.exp(log_height))


@dataclass(frozen=True, eq=False)
class BitLaw:
    """Law of independent bits, the most significant first: 2^64 times the chances of a 1, positive uint64 (n_bits,)."""

    from_one: Words
    from_zero: Words

    def __post_init__(self) -> None:
        # The guarantee is computed from these integers: the caller must not be able to change them.
        for name in ("from_one", "from_zero"):
            own = np.array(getattr(self, name))
            own.flags.writeable = False
            object.__setattr__(self, name, own)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BitLaw):
            return NotImplemented
        return np.array_equal(self.from_one, other.from_one) and np.array_equal(self.from_zero, other.from_zero)

    def __hash__(self) -> int:
        return hash((self.from_one.tobytes(), self.from_zero.tobytes()))

    @property
    def n_bits(self) -> int:
        """The number of bits."""
        return len(self.from_one)

    @property
    def symmetric(self) -> bool:
        """True if every bit flips from 0 to 1 as often as back."""
        return bool((self.from_one == ~self.from_zero + np.uint64(1)).all())

    @property
    def ones(self) -> Floats:
        """Probability of a 1, shape (2, n_bits): the first row from a 0, the second from a 1."""
        return np.stack([self.from_zero, self.from_one]).astype(np.float64) * 2.0**-64

    @property
    def error_probabilities(self) -> Floats:
        """Probability that a bit comes out wrong, shape (2, n_bits): the first row from a 0, the second from a 1."""
        return np.stack([self.from_zero, ~self.from_one + np.uint64(1)]).astype(np.float64) * 2.0**-64

    @property
    def losses(self) -> Floats:
        """Largest log-likelihood ratio of output bit i between inputs b and c, shape (n_bits, 2, 2), rounded up."""
        ones = _log_ratio(self.from_one, self.from_zero)
        zeros = _log_ratio(~self.from_one + np.uint64(1), ~self.from_zero + np.uint64(1))
        losses = np.zeros((self.n_bits, 2, 2))
        losses[:, 1, 0] = np.maximum(ones, zeros)
        losses[:, 0, 1] = np.maximum(-ones, -zeros)
        return losses


def _log_ratio(over: Words, under: Words) -> Floats:
    """Return ln(over / under), its magnitude rounded up; the difference of the integers is exact."""
    larger, smaller = np.maximum(over, under), np.minimum(over, under)
    magnitude = np.log1p((larger - smaller).astype(np.float64) / smaller.astype(np.float64)) * _ROUNDING
    return np.where(over >= under, magnitude, -magnitude)


def _log_alpha(alpha: float) -> float:
    check_positive("alpha", alpha)
    return math.log(alpha)


def _log1p_exp(x: float) -> float:
    return float(np.logaddexp(0.0, x))


def _expit(x: float) -> float:
    return math.exp(-_log1p_exp(-x))
