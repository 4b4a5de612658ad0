r"""Mechanisms with few answers: Duchi's for one number and for several together, and Three-Outputs."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from skldp._arrays import Bools, Floats, Ints, Words
from skldp.laws._numbers import SignsLaw, ThreeAnswersLaw, TwoAnswersLaw
from skldp.laws._odds import TWO_64, floor_to_double, log_ratio
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._unit_interval import JointMechanism, UnitMechanism, calibration_epsilon, worst_quadratic

# Up to here a threshold's first 16 bits, rounded, are still a signed 16-bit integer.
_LARGEST_FIRST = 2.0**15 - 2
# Largest rounding error: one from the product in single precision, one from truncation below zero.
_FIRST_ERROR = 2


@dataclass(frozen=True)
class Duchi(UnitMechanism):
    r"""Duchi's mechanism: one number in [-1, 1], released as one of two.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6; values above 24 count as 24.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6.

    Notes
    -----
    The answer is :math:`\pm B` with

    .. math:: B = \frac{e^\varepsilon + 1}{e^\varepsilon - 1}, \quad
              P(+B) = \frac{1}{2} + \frac{x}{2} \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}, \quad
              \mathrm{Var} = B^2 - x^2.

    A signed 64-bit word is compared with the integer nearest to :math:`x D`, where D is an integer just below
    :math:`2^{63} \tanh(\varepsilon / 2)` that a double holds exactly. So :math:`x D` is monotone in x and never
    beyond :math:`\pm D`, the worst ratio is :math:`(2^{63} + D) / (2^{63} - D)`, and B is :math:`2^{63} / D`.
    The word's first 16 bits decide unless they are next to those of the integer; only then the rest is drawn.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018.

    Examples
    --------
    >>> from skldp.mechanisms import Duchi
    >>> round(Duchi(1.0).worst_variance, 3)
    4.683
    """

    takes_singles: ClassVar[bool] = True

    @cached_property
    def slope(self) -> int:
        """The integer D."""
        return floor_to_double(int(math.tanh(calibration_epsilon(self.epsilon) / 2) * 2.0**63))

    @property
    def integer_law(self) -> TwoAnswersLaw:
        """The law of `slope`."""
        return TwoAnswersLaw(self.slope)

    @cached_property
    def magnitude(self) -> float:
        """The size B of the answers."""
        return 2.0**63 / self.slope

    @cached_property
    def exact_epsilon(self) -> float:
        """The log ratio of the two answers' probabilities at the ends."""
        return log_ratio(2**63 + self.slope, 2**63 - self.slope, in_doubles=True)

    @property
    def loss_from_middle(self) -> float:
        """Loss of an end's likelier answer, which has chance 1/2 in the middle."""
        return log_ratio(2**63 + self.slope, 2**63, in_doubles=True)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """B^2, 0 and -1."""
        return self.magnitude**2, 0.0, -1.0

    def output_law(self, x: float) -> tuple[Floats, list[int]]:
        """Return the answers and their integer weights, whose sum is 2^64."""
        up = 2**63 + round(x * float(self.slope))
        return np.array([-self.magnitude, self.magnitude]), [TWO_64 - up, up]

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        scale = self.slope * 2.0**-48
        if scale > _LARGEST_FIRST:
            up = noise.words(x.shape).view(np.int64) < self._thresholds(x)
        else:
            first = noise.words(x.shape, np.uint16).view(np.int16)
            near = (x * x.dtype.type(scale)).astype(np.int16)
            up = first < near
            # Their difference modulo 2^16: where it wraps, it only adds numbers for all 64 bits to decide.
            near -= first
            near += _FIRST_ERROR
            close = (near.view(np.uint16) <= 2 * _FIRST_ERROR).nonzero()[0]
            words = noise.at(close, x.size).words(close.size) >> np.uint64(16)
            words |= first[close].astype(np.uint64) << np.uint64(48)
            up[close] = words.view(np.int64) < self._thresholds(x[close])
        _two_signs(up, self.magnitude, out)

    def _thresholds(self, x: np.ndarray) -> Ints:
        return np.rint(x.astype(np.float64, copy=False) * float(self.slope)).astype(np.int64)

    def _mean(self, x: float) -> Fraction:
        return Fraction(self.magnitude) * round(x * float(self.slope)) / 2**63


@dataclass(frozen=True)
class DuchiVector(JointMechanism):
    r"""Duchi's mechanism of several numbers in [-1, 1], released as one vector of signs times a constant.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6, for all values together; values above 24 count as 24.
    n_values : int
        Number d of values released together, from 1 to 100,000.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Each value is first rounded to a sign, :math:`P(v_j = 1) = (1 + x_j) / 2`. The answer is B s, with s uniform on
    :math:`T^+ = \{s : s \cdot v > 0\}` with probability p, else on :math:`T^- = \{s : s \cdot v \le 0\}`. With
    C the size of :math:`T^+`, which is :math:`2^{d - 1}`, less :math:`\binom{d}{d / 2} / 2` for even d,

    .. math:: p = \frac{E C}{(E - 1) C + 2^d}, \quad
              B = \frac{2^d + C (E - 1)}{\binom{d - 1}{\lfloor d / 2 \rfloor} (E - 1)}, \quad E = e^\varepsilon.

    Wang et al. 2019 put the ties of an even d on both sides, which gives :math:`\ln(1 + e^\varepsilon)` only.

    A uniform s needs one random bit per value: draw all signs, and negate the row if it lies in the wrong half (odd d),
    or redraw it if it is a tie, or lies in :math:`T^+` instead of :math:`T^-` (even d). The law is exact in any
    dimension: p is an integer out of :math:`2^{64}`, and C an exact integer.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018; Wang et al.,
    "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019, Algorithm 1.

    Examples
    --------
    >>> from skldp.mechanisms.numeric._duchi import DuchiVector
    >>> round(DuchiVector(1.0, 768).worst_variance)
    5503
    """

    @cached_property
    def agreeing_share(self) -> Fraction:
        """The share C / 2^d of all sign vectors that agree with a given one in more places than not."""
        d = int(self.n_values)
        return Fraction(1, 2) if d % 2 else Fraction(1, 2) - Fraction(math.comb(d, d // 2), 2 ** (d + 1))

    @cached_property
    def threshold(self) -> int:
        """The probability p of an agreeing answer, out of 2^64."""
        share = float(self.agreeing_share)
        eps = calibration_epsilon(self.epsilon)
        # p = 1 - (1 - share) / (1 + (E - 1) share), whose complement keeps its digits where E is large.
        return TWO_64 - math.ceil((1 - share) / (1 + math.expm1(eps) * share) * 2.0**64)

    @property
    def integer_law(self) -> SignsLaw:
        """The law of `threshold`."""
        return SignsLaw(self.n_outputs, self.threshold)

    @cached_property
    def magnitude(self) -> float:
        """The size B of each answer, which makes the mean exact for the sampled p."""
        return float(1 / self._agreement)

    @cached_property
    def _agreement(self) -> Fraction:
        """The mean of s_j v_j, from the sampled p."""
        d, share = int(self.n_values), self.agreeing_share
        p = Fraction(self.threshold, TWO_64)
        # Over T+, and so over T- with the other sign, s_j v_j sums to binom(d - 1, floor(d / 2)).
        return Fraction(math.comb(d - 1, d // 2), 2**d) * (p / share - (1 - p) / (1 - share))

    @cached_property
    def exact_epsilon(self) -> float:
        """The log ratio of a sign vector's probabilities from an agreeing and from another input."""
        share = self.agreeing_share
        agree = self.threshold * (share.denominator - share.numerator)
        other = (TWO_64 - self.threshold) * share.numerator
        return log_ratio(agree, other, in_doubles=True)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """B^2, 0 and -1, for each value."""
        return self.magnitude**2, 0.0, -1.0

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        values = x.reshape(-1, self.n_outputs)
        disagree = (noise.words(values.shape) >> np.uint64(1)) < _sign_threshold(values)
        disagree ^= self._signs(len(values), noise)
        _two_signs(disagree, self.magnitude, out.reshape(values.shape))

    def _mean(self, x: float) -> Fraction:
        return Fraction(self.magnitude) * self._agreement * _sign_mean(x)

    def _signs(self, n: int, noise: Noise) -> Bools:
        """Draw where answers disagree with the rounded values: uniform in one half or the other, by a coin."""
        d = self.n_outputs
        want = noise.bernoulli(np.uint64(self.threshold), n)
        disagree = _random_bits(n, d, noise)
        n_disagree = np.count_nonzero(disagree, axis=1)
        # For even d, draw again: ties where agreement is wanted, and agreeing rows where the other side is.
        again = np.arange(n if d % 2 == 0 else 0)
        while again.size:
            twice = 2 * n_disagree[again]
            again = again[np.where(want[again], twice == d, twice < d)]
            disagree[again] = _random_bits(again.size, d, noise.at(again, n))
            n_disagree[again] = np.count_nonzero(disagree[again], axis=1)
        negate = (2 * n_disagree < d) != want
        # Ties, which are left only where the other side is wanted, stay as they are.
        negate &= 2 * n_disagree != d
        disagree ^= negate[:, None]
        return disagree


def _two_signs(up: Bools, magnitude: float, out: np.ndarray) -> None:
    """Write `magnitude` where `up`, else its negative, without branches."""
    # All steps are exact: 2 m - m and 0 - m.
    size = out.dtype.type(magnitude)
    np.copyto(out, up)
    out *= 2 * size
    out -= size


def _random_bits(n: int, d: int, noise: Noise) -> Bools:
    """Draw n rows of d random bits, each row from bytes of its own."""
    return np.unpackbits(noise.words((n, -(-d // 8)), np.uint8), axis=1, count=d).view(np.bool_)


def _sign_threshold(x: Floats) -> Words:
    """Return P(v = 1) out of 2^63; -1 and 1 are certain."""
    return (np.rint(x * 2.0**62).astype(np.int64) + 2**62).astype(np.uint64)


def _sign_mean(x: float) -> Fraction:
    """Return the exact mean of v."""
    return Fraction(int(_sign_threshold(np.array([x]))[0]), 2**62) - 1


def three_outputs_zero_probability(epsilon: float) -> float:
    r"""Return the probability a of answering 0 to the input 0 that makes the worst variance of Three-Outputs least.

    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020, Eq. 27.
    """
    odds = math.exp(min(epsilon, 700.0))
    most = odds / (odds + 2)
    if odds < 2:
        return 0.0
    if odds > (3 + math.sqrt(65)) / 2:
        return most
    found = minimize_scalar(
        lambda a: worst_quadratic(*_three_outputs_variance(odds, a)),
        bounds=(0.0, most),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(found.x)


def _three_outputs_variance(odds: float, a: float) -> tuple[float, float, float]:
    magnitude = odds * (odds + 1) / ((odds - 1) * (odds - a))
    return magnitude**2 * (1 - a), magnitude**2 * a * (1 - 1 / odds), -1.0


@dataclass(frozen=True)
class ThreeOutputs(UnitMechanism):
    r"""Three-Outputs: one number in [-1, 1], released as -C, 0 or C.

    With :math:`E = e^\varepsilon` and a from ``three_outputs_zero_probability``,

    .. math::
        P(0) &= a - a (1 - 1/E) |x|, \quad C = \frac{E (E + 1)}{(E - 1)(E - a)}, \\
        P(\text{wrong sign}) &= \tfrac{1 - a}{2} - \Bigl(\tfrac{1 - a}{2} - \tfrac{E - a}{E (E + 1)}\Bigr) |x|.

    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.
    """

    @cached_property
    def integers(self) -> tuple[int, int, int, int]:
        """Out of 2^64: P(0) at 0, how much of it is lost at 1; P(wrong sign) at 0, how much of it is lost at 1."""
        eps = calibration_epsilon(self.epsilon)
        odds, less = math.exp(eps), math.exp(-eps)
        # A little below its largest value, at which the wrong sign loses nothing and rounding could make it gain.
        a = three_outputs_zero_probability(eps) * (1 - 2.0**-48)
        zero = 2 * floor_to_double(int(a * 2.0**63))
        zero_lost = floor_to_double(math.floor(Fraction(zero) * Fraction(1 - less)))
        wrong = (TWO_64 - zero) // 2
        # The rest at x = 1, once its zeros are taken out, is shared 1 : E between the wrong sign and the right one.
        at_one = math.ceil(Fraction(TWO_64 - zero + zero_lost) / (1 + Fraction(odds)))
        return zero, zero_lost, wrong, floor_to_double(wrong - at_one)

    @property
    def integer_law(self) -> ThreeAnswersLaw:
        """The law of `integers`."""
        return ThreeAnswersLaw(*self.integers)

    @cached_property
    def magnitude(self) -> float:
        """The size C of the answers."""
        _, zero_lost, _, wrong_lost = self.integers
        return TWO_64 / (zero_lost + 2 * wrong_lost)

    @cached_property
    def exact_epsilon(self) -> float:
        """The larger log ratio of: 0 at the middle and at the end; the right sign at the end and the wrong one."""
        zero, zero_lost, wrong, wrong_lost = self.integers
        zero_end, wrong_end = zero - zero_lost, wrong - wrong_lost
        of_sign = log_ratio(TWO_64 - zero_end - wrong_end, wrong_end, in_doubles=True)
        return max(of_sign, log_ratio(zero, zero_end, in_doubles=True)) if zero else of_sign

    @property
    def loss_from_middle(self) -> float:
        """Loss of the right sign at an end; 0 is likeliest in the middle."""
        zero, zero_lost, wrong, wrong_lost = self.integers
        return log_ratio(TWO_64 - (zero - zero_lost) - (wrong - wrong_lost), wrong, in_doubles=True)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """Coefficients from the probability of 0, which is linear in abs(x)."""
        zero, zero_lost, _, _ = self.integers
        return self.magnitude**2 * ((TWO_64 - zero) / TWO_64), self.magnitude**2 * (zero_lost / TWO_64), -1.0

    def output_law(self, x: float) -> tuple[Floats, list[int]]:
        """Return the answers -C, C and, where it is one, 0, and their integer weights, whose sum is 2^64."""
        zero, zero_lost, wrong, wrong_lost = self.integers
        at_zero = zero - round(abs(x) * float(zero_lost))
        against = wrong - round(abs(x) * float(wrong_lost))
        along = TWO_64 - at_zero - against
        weights = [against, at_zero, along] if x >= 0 else [along, at_zero, against]
        outputs = np.array([-self.magnitude, 0.0, self.magnitude])
        return (outputs, weights) if zero else (outputs[::2], weights[::2])

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        zero, zero_lost, wrong, wrong_lost = self.integers
        size = np.abs(x)
        to_zero = np.uint64(zero) - np.rint(size * float(zero_lost)).astype(np.uint64)
        to_wrong = to_zero + (np.uint64(wrong) - np.rint(size * float(wrong_lost)).astype(np.uint64))
        words = noise.words(x.shape)
        sign = ((words < to_wrong) == (x < 0)).view(np.int8)
        sign += sign
        sign -= 1
        # Integers have one zero; -0.0 would reveal the sign of x.
        sign *= (words >= to_zero).view(np.int8)
        np.multiply(sign, self.magnitude, out=out, casting="same_kind")

    def _mean(self, x: float) -> Fraction:
        _, weights = self.output_law(x)
        return Fraction(self.magnitude) * (weights[-1] - weights[0]) / TWO_64
