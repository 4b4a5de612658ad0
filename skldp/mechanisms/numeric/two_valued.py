r"""Mechanisms that answer one number with one of two: Duchi, and LDP-FL around a public centre."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.numeric.unit_interval import (
    PickledByFields,
    UnitMechanism,
    calibration_epsilon,
    check_positive_epsilon,
    floor_to_double,
    log_ratio,
    output_dtype,
    two_signs,
    unit_values,
)
from skldp.mechanisms.randomness import Noise
from skldp.untold import as_numbers

__all__ = ["LDPFL", "Duchi"]

_WORD = 2**64
# Up to here a threshold's first 16 bits, rounded, are still a signed 16-bit integer.
_LARGEST_FIRST = 2.0**15 - 2
# By how much rounding can move them: the product in single precision by one, cutting off below zero by another.
_FIRST_ERROR = 2
# Of ends that are given in single precision.
_END_ROUNDING = 1e-6


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
    The word's first 16 bits decide unless they are next to those of the integer; only then the rest is drawn.

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
    takes_singles: ClassVar[bool] = True
    chunk: ClassVar[int] = 32_768

    def __post_init__(self) -> None:
        check_positive_epsilon(self.epsilon)

    @cached_property
    def slope(self) -> int:
        """The integer D."""
        return floor_to_double(int(math.tanh(calibration_epsilon(self.epsilon) / 2) * 2.0**63))

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

    def _draw(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
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
            words = noise.words(close.shape) >> np.uint64(16)
            words |= first[close].astype(np.uint64) << np.uint64(48)
            up[close] = words.view(np.int64) < self._thresholds(x[close])
        two_signs(up, self.magnitude, out)

    def _thresholds(self, x: np.ndarray) -> npt.NDArray[np.int64]:
        return np.rint(x.astype(np.float64, copy=False) * float(self.slope)).astype(np.int64)

    def _mean(self, x: float) -> Fraction:
        return Fraction(self.magnitude) * round(x * float(self.slope)) / 2**63


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
        unit = (as_numbers(values) - self.center) / self.radius
        # An end of the interval may come out just beyond 1; what is further out is refused by the mechanism.
        unit = np.where(np.abs(unit) <= 1 + _END_ROUNDING, np.clip(unit, -1, 1), unit)
        return unit.astype(output_dtype(values))
