"""PrivUnit of several numbers in [-1, 1], released together."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from skldp.laws._integers import IntegerLaw
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.numeric._unit_mechanisms import JointMechanism
from skldp.mechanisms.vector._privunit import PrivUnitBall


@dataclass(frozen=True)
class PrivUnitBox(JointMechanism):
    """Several numbers in [-1, 1], released by PrivUnit as one vector of the ball of radius sqrt(d) around their box."""

    # With second moments a along and b across a direction, the variance of a value x is d b + (a - b - 1) x^2; a - b is
    # 1 but for a billionth. The guarantee is PrivUnit's: proved for the law of real numbers, not from integers.

    _fewest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.n_values == 1:
            raise ValueError("PrivUnit needs at least two numbers in a row; got n_features = 1.")
        super().__post_init__()

    @cached_property
    def inner(self) -> PrivUnitBall:
        return PrivUnitBall(int(self.n_values), float(self.epsilon), math.sqrt(self.n_values))

    @cached_property
    def device_law(self) -> IntegerLaw:
        return self.inner.sphere.closest_law(self.n_outputs, self.n_outputs)

    @property
    def exact_epsilon(self) -> float:
        return self.inner.guarantee().epsilon

    def guarantee(self) -> PrivacyGuarantee:
        return self.inner.guarantee()

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        along, across = self.inner.second_moments()
        return self.n_values * across, 0.0, along - across - 1

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        shape = (-1, self.n_outputs)
        self.inner._draw(x.reshape(shape), noise, out.reshape(shape), Workspace())

    def _mean(self, x: float) -> Fraction:
        return Fraction(x)
