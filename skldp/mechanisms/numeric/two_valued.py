r"""Mechanisms that answer one number with one of two or three: Duchi, LDP-FL, Three-Outputs."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.numeric.unit_interval import (
    PickledByFields,
    UnitMechanism,
    calibration_epsilon,
    check_positive_epsilon,
    log_ratio,
    output_dtype,
    two_signs,
    unit_values,
    worst_quadratic,
)
from skldp.mechanisms.randomness import Noise

__all__ = ["LDPFL", "Duchi", "ThreeOutputs", "three_outputs_zero_probability"]

_WORD = 2**64
# Of ends that are given in single precision.
_END_ROUNDING = 1e-6


def three_outputs_zero_probability(epsilon: float) -> float:
    r"""Find the probability a of answering 0 to the input 0 that makes the worst variance of Three-Outputs least.

    Parameters
    ----------
    epsilon : float
        Natural log, above 0.

    Returns
    -------
    float
        0 for :math:`\varepsilon < \ln 2`, :math:`E / (E + 2)` for :math:`E = e^\varepsilon > (3 + \sqrt{65}) / 2`,
        and found numerically between.

    References
    ----------
    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020, Eq. 27.

    Examples
    --------
    >>> from skldp.mechanisms.numeric.two_valued import three_outputs_zero_probability
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


def _floor_to_double(value: float | int) -> int:
    """Give the largest integer up to `value` that a double holds exactly."""
    nearest = float(value)
    return int(nearest) if int(nearest) <= value else int(np.nextafter(nearest, 0))


@dataclass(frozen=True)
class Duchi(UnitMechanism):
    r"""One number in [-1, 1] answered with one of two.

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
    The answer is :math:`\pm B` with

    .. math:: B = \frac{e^\varepsilon + 1}{e^\varepsilon - 1}, \quad
              P(+B) = \frac{1}{2} + \frac{x}{2} \cdot \frac{e^\varepsilon - 1}{e^\varepsilon + 1}, \quad
              \mathrm{Var} = B^2 - x^2.

    A signed 64-bit word is compared with the integer nearest to :math:`x D`, where D is an integer just below
    :math:`2^{63} \tanh(\varepsilon / 2)` that a double holds exactly. So :math:`x D` is monotone in x and never
    beyond :math:`\pm D`, the worst ratio is :math:`(2^{63} + D) / (2^{63} - D)`, and B is :math:`2^{63} / D`.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018.

    Examples
    --------
    >>> from skldp.mechanisms.numeric.two_valued import Duchi
    >>> round(Duchi(1.0).worst_variance, 3)
    4.683
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_positive_epsilon(self.epsilon)

    @cached_property
    def slope(self) -> int:
        """The integer D."""
        return _floor_to_double(int(math.tanh(calibration_epsilon(self.epsilon) / 2) * 2.0**63))

    @property
    def magnitude(self) -> float:
        """The size B of the answers."""
        return 2.0**63 / self.slope

    @cached_property
    def exact_epsilon(self) -> float:
        """The log ratio of the two answers' probabilities at the ends."""
        return log_ratio(2**63 + self.slope, 2**63 - self.slope)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """B^2, 0 and -1."""
        return self.magnitude**2, 0.0, -1.0

    def variance(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released law, element by element."""
        return self.magnitude**2 - unit_values(x) ** 2

    def output_law(self, x: float) -> tuple[npt.NDArray[np.float64], list[int]]:
        """Give the answers and their integer weights, whose sum is 2^64."""
        up = 2**63 + round(x * float(self.slope))
        return np.array([-self.magnitude, self.magnitude]), [_WORD - up, up]

    def _draw(self, x: npt.NDArray[np.float64], noise: Noise, out: np.ndarray) -> None:
        threshold = np.rint(x * float(self.slope)).astype(np.int64)
        up = noise.words(x.shape).view(np.int64) < threshold
        two_signs(up, self.magnitude, out)

    def _mean(self, x: float) -> Fraction:
        return Fraction(self.magnitude) * round(x * float(self.slope)) / 2**63


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
    With :math:`E = e^\varepsilon` and a from :func:`three_outputs_zero_probability`,

    .. math::
        P(0) &= a - a (1 - 1/E) |x|, \quad C = \frac{E (E + 1)}{(E - 1)(E - a)}, \\
        P(\text{wrong sign}) &= \tfrac{1 - a}{2} - \Bigl(\tfrac{1 - a}{2} - \tfrac{E - a}{E (E + 1)}\Bigr) |x|.

    Both are sampled as integers out of :math:`2^{64}` that fall linearly in abs(x) by slopes a double holds exactly.

    References
    ----------
    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.

    Examples
    --------
    >>> from skldp.mechanisms.numeric.two_valued import ThreeOutputs
    >>> round(ThreeOutputs(1.0).worst_variance, 4), round(ThreeOutputs(4.0).worst_variance, 4)
    (4.4555, 0.3182)
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_positive_epsilon(self.epsilon)

    @cached_property
    def integers(self) -> tuple[int, int, int, int]:
        """Out of 2^64: P(0) at 0, how much of it is lost at 1; P(wrong sign) at 0, how much of it is lost at 1."""
        eps = calibration_epsilon(self.epsilon)
        odds, less = math.exp(eps), math.exp(-eps)
        # A little below its largest value, at which the wrong sign loses nothing and rounding could make it gain.
        a = three_outputs_zero_probability(eps) * (1 - 2.0**-48)
        zero = 2 * _floor_to_double(int(a * 2.0**63))
        zero_lost = _floor_to_double(math.floor(Fraction(zero) * Fraction(1 - less)))
        wrong = (_WORD - zero) // 2
        # The rest at x = 1, once its zeros are taken out, is shared 1 : E between the wrong sign and the right one.
        at_one = math.ceil(Fraction(_WORD - zero + zero_lost) / (1 + Fraction(odds)))
        return zero, zero_lost, wrong, _floor_to_double(wrong - at_one)

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
        of_sign = log_ratio(_WORD - zero_end - wrong_end, wrong_end)
        return max(of_sign, log_ratio(zero, zero_end)) if zero else of_sign

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

    def _draw(self, x: npt.NDArray[np.float64], noise: Noise, out: np.ndarray) -> None:
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


@dataclass(frozen=True)
class LDPFL(PickledByFields):
    r"""Duchi's answer for a number near a public centre.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6.
    center : float, default=0.0
        Public, such as the model weight of the last round.
    radius : float, default=1.0
        The number lies within this distance of the centre.

    Raises
    ------
    ValueError
        If `epsilon` or `radius` is not a finite number above 0, or `center` is not finite.

    Notes
    -----
    With :class:`Duchi` on :math:`(w - c) / r`, the answer is :math:`c \pm r (e^\varepsilon + 1) / (e^\varepsilon - 1)`.

    References
    ----------
    Sun, Qian and Chen, "LDP-FL: practical private aggregation in federated learning with local differential
    privacy", IJCAI 2021.

    Examples
    --------
    >>> from skldp.mechanisms.numeric.two_valued import LDPFL
    >>> round(LDPFL(1.0, center=0.5, radius=0.1).worst_variance, 5)
    0.04683
    """

    epsilon: float
    center: float = 0.0
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_positive_epsilon(self.epsilon)
        if isinstance(self.radius, bool) or not 0 < self.radius < math.inf:
            raise ValueError(f"radius must be a finite number above 0. Got {self.radius!r} instead.")
        if isinstance(self.center, bool) or not math.isfinite(self.center):
            raise ValueError(f"center must be a finite number. Got {self.center!r} instead.")

    @cached_property
    def duchi(self) -> Duchi:
        """The mechanism of the number in [-1, 1]."""
        return Duchi(self.epsilon)

    @property
    def worst_variance(self) -> float:
        """The largest variance over all inputs, at the centre."""
        return self.radius**2 * self.duchi.worst_variance

    def sample(self, values: npt.ArrayLike, noise: Noise, out: np.ndarray | None = None) -> np.ndarray:
        """Release each value; those further from the centre than the radius are refused."""
        released = self.duchi.sample(self._to_unit(values), noise, out)
        released *= self.radius
        released += self.center
        return released

    def bias(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of the released law minus x."""
        return self.radius * self.duchi.bias(self._to_unit(x))

    def variance(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released law, element by element."""
        return self.radius**2 * self.duchi.variance(self._to_unit(x))

    def output_law(self, x: float) -> tuple[npt.NDArray[np.float64], list[int]]:
        """Give the answers and their integer weights, whose sum is 2^64."""
        outputs, weights = self.duchi.output_law(float(self._to_unit(x)))
        return self.center + self.radius * outputs, weights

    def guarantee(self) -> PrivacyGuarantee:
        """Give the exact guarantee of one release."""
        return self.duchi.guarantee()

    def _to_unit(self, values: npt.ArrayLike) -> Any:
        unit = (np.asarray(values, dtype=np.float64) - self.center) / self.radius
        # An end of the interval may come out just beyond 1; what is further out is refused by the mechanism.
        unit = np.where(np.abs(unit) <= 1 + _END_ROUNDING, np.clip(unit, -1, 1), unit)
        return unit.astype(output_dtype(values))
