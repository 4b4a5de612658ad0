r"""Three-Outputs: one number answered with minus, zero or plus."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.unit_interval import UnitMechanism, calibration_epsilon, unit_values, worst_quadratic
from skldp.mechanisms._odds import floor_to_double, log_ratio

__all__ = ["ThreeOutputs", "three_outputs_zero_probability"]

_WORD = 2**64


def three_outputs_zero_probability(epsilon: float) -> float:
    r"""Find the probability a of answering 0 to the input 0 that makes the worst variance of Three-Outputs least.

    References
    ----------
    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020, Eq. 27.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.three_outputs import three_outputs_zero_probability
    >>> three_outputs_zero_probability(0.5), round(three_outputs_zero_probability(4.0), 4)
    (0.0, 0.9647)
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
    r"""One number in [-1, 1] answered with -C, 0 or C.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6. What exceeds 24 is not used.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6.

    Notes
    -----
    With :math:`E = e^\varepsilon` and a from ``three_outputs_zero_probability``,

    .. math::
        P(0) &= a - a (1 - 1/E) |x|, \quad C = \frac{E (E + 1)}{(E - 1)(E - a)}, \\
        P(\text{wrong sign}) &= \tfrac{1 - a}{2} - \Bigl(\tfrac{1 - a}{2} - \tfrac{E - a}{E (E + 1)}\Bigr) |x|.

    Both are sampled as integers out of :math:`2^{64}` that fall linearly in abs(x) by slopes a double holds exactly.

    References
    ----------
    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.

    Examples
    --------
    >>> from skldp.mechanisms import ThreeOutputs
    >>> round(ThreeOutputs(1.0).worst_variance, 4), round(ThreeOutputs(4.0).worst_variance, 4)
    (4.4555, 0.3182)
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
        wrong = (_WORD - zero) // 2
        # The rest at x = 1, once its zeros are taken out, is shared 1 : E between the wrong sign and the right one.
        at_one = math.ceil(Fraction(_WORD - zero + zero_lost) / (1 + Fraction(odds)))
        return zero, zero_lost, wrong, floor_to_double(wrong - at_one)

    @cached_property
    def magnitude(self) -> float:
        """The size C of the answers."""
        _, zero_lost, _, wrong_lost = self.integers
        return _WORD / (zero_lost + 2 * wrong_lost)

    @cached_property
    def exact_epsilon(self) -> float:
        """The larger log ratio of: 0 at the middle and at the end; the right sign at the end and the wrong one."""
        zero, zero_lost, wrong, wrong_lost = self.integers
        zero_end, wrong_end = zero - zero_lost, wrong - wrong_lost
        of_sign = log_ratio(_WORD - zero_end - wrong_end, wrong_end, in_doubles=True)
        return max(of_sign, log_ratio(zero, zero_end, in_doubles=True)) if zero else of_sign

    @property
    def loss_from_middle(self) -> float:
        """That of the right sign at an end; 0 is likeliest in the middle."""
        zero, zero_lost, wrong, wrong_lost = self.integers
        return log_ratio(_WORD - (zero - zero_lost) - (wrong - wrong_lost), wrong, in_doubles=True)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """From the probability of 0, which is linear in abs(x)."""
        zero, zero_lost, _, _ = self.integers
        return self.magnitude**2 * ((_WORD - zero) / _WORD), self.magnitude**2 * (zero_lost / _WORD), -1.0

    def variance(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released law, element by element."""
        constant, linear, square = self.variance_coefficients
        size = np.abs(unit_values(x))
        return constant + linear * size + square * size**2

    def output_law(self, x: float) -> tuple[npt.NDArray[np.float64], list[int]]:
        """Give the answers -C, C and, where it is one, 0, and their integer weights, whose sum is 2^64."""
        zero, zero_lost, wrong, wrong_lost = self.integers
        at_zero = zero - round(abs(x) * float(zero_lost))
        against = wrong - round(abs(x) * float(wrong_lost))
        along = _WORD - at_zero - against
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
        # In integers, which have one zero: -0.0 would tell the sign of x.
        sign *= (words >= to_zero).view(np.int8)
        np.multiply(sign, self.magnitude, out=out, casting="same_kind")

    def _mean(self, x: float) -> Fraction:
        _, weights = self.output_law(x)
        return Fraction(self.magnitude) * (weights[-1] - weights[0]) / _WORD
