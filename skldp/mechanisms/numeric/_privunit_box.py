"""PrivUnit of several numbers in [-1, 1], released together."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from skldp._checks import check_integer
from skldp.laws._integers import IntegerLaw
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.numeric._duchi import MOST_VALUES
from skldp.mechanisms.numeric._unit_interval import UnitMechanism
from skldp.mechanisms.vector._privunit import PrivUnitBall


@dataclass(frozen=True)
class PrivUnitBox(UnitMechanism):
    r"""Several numbers in [-1, 1], released as one vector of the ball around their box.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6, for all values together; values above 150 count as 150.
    n_values : int
        Number d of values released together, from 2 to 100,000.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The box lies in the ball of radius :math:`R = \sqrt d`, whose vectors are released by PrivUnit. With the second
    moments a along a direction and b across it, the variance of one value x is
    :math:`R^2 b + (a - b - 1) x^2`, and the mean of a product of two values is :math:`a - b` times theirs. The cap of
    least variance has :math:`a - b = 1` but for a billionth. The guarantee is PrivUnit's: proved for the law of real
    numbers, not from integers.

    References
    ----------
    Asi, Feldman and Talwar, "Optimal algorithms for mean estimation under local differential privacy", ICML 2022.

    Examples
    --------
    >>> from skldp.mechanisms import DuchiVector
    >>> from skldp.mechanisms.numeric._privunit_box import PrivUnitBox
    >>> round(PrivUnitBox(4.0, 10).worst_variance, 2), round(DuchiVector(4.0, 10).worst_variance, 2)
    (3.73, 10.34)
    """

    n_values: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_values == 1:
            raise ValueError("PrivUnit needs at least two numbers in a row; got n_features = 1.")
        check_integer("n_values of PrivUnit", self.n_values, least=2, most=MOST_VALUES)

    @cached_property
    def inner(self) -> PrivUnitBall:
        """The mechanism of the ball."""
        return PrivUnitBall(int(self.n_values), float(self.epsilon), math.sqrt(self.n_values))

    @property
    def n_outputs(self) -> int:
        """The number of values d."""
        return int(self.n_values)

    @cached_property
    def device_law(self) -> IntegerLaw:
        """The law that a device samples, on random directions; see :meth:`PrivUnit.closest_law`."""
        return self.inner.sphere.closest_law(self.n_outputs, self.n_outputs)

    @property
    def exact_epsilon(self) -> float:
        """The epsilon of PrivUnit, from its density ratio."""
        return self.inner.guarantee().epsilon

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee of PrivUnit."""
        return self.inner.guarantee()

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """R^2 b, 0 and a - b - 1."""
        along, across = self.inner.second_moments()
        return self.n_values * across, 0.0, along - across - 1

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        shape = (-1, self.n_outputs)
        self.inner._draw(x.reshape(shape), noise, out.reshape(shape), Workspace())

    def _mean(self, x: float) -> Fraction:
        return Fraction(x)
