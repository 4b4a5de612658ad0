r"""Mechanisms of numbers in [-1, 1], and their base classes.

Every released number follows an exact integer law, of integers chosen from the requested epsilon and rounded to the
private side. The law samples with exactly these integers, and the guarantee is computed from them. Most mechanisms are
no more than a name, parameters and a source.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, as_numbers
from skldp._checks import check_choice, check_epsilon, check_integer
from skldp.domains._domain import Box
from skldp.laws._few_answers import ThreeAnswersLaw, TwoAnswersLaw, duchi, three_outputs, worst_quadratic
from skldp.laws._integers import IntegerLaw, NumbersLaw, UnitLaw
from skldp.laws._lattice import VARIANTS, LatticeLaw, hybrid, hybrid_tp, piecewise
from skldp.laws._numbers import MOST_TOGETHER, SignsLaw, duchi_vector
from skldp.laws._odds import LEAST_EPSILON, log_ratio
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace


def unit_values(values: npt.ArrayLike) -> Floats:
    """Return values in [-1, 1] as float64; raises ValueError for others."""
    x: Floats = as_numbers(values, dtype=np.float64)
    if x.size and not (x.min() >= -1 and x.max() <= 1):
        n_outside = x.size - np.count_nonzero((x >= -1) & (x <= 1))
        raise ValueError(f"values must lie in [-1, 1]; got {n_outside:,} of {x.size:,} outside or NaN.")
    return x


@dataclass(frozen=True)
class UnitMechanism(RowMechanism):
    """Base class of mechanisms that release numbers in [-1, 1], unbiased and with an exact epsilon.

    A row is what is released under one guarantee: one number, or the `n_outputs` that a mechanism releases together.
    A subclass is a frozen dataclass; it gives `exact_epsilon`, `variance_coefficients`, `variance` and the two hooks
    ``_draw_numbers`` and ``_mean``. One of an integer law is an :class:`UnitLawMechanism`.
    """

    epsilon: float
    takes_singles: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon must be at least {LEAST_EPSILON} for each released value; got {self.epsilon!r}.")

    @property
    def n_outputs(self) -> int:
        return 1

    @cached_property
    def domain(self) -> Box:
        return Box((-1.0,) * self.n_outputs, (1.0,) * self.n_outputs)

    @property
    @abstractmethod
    def exact_epsilon(self) -> float:
        """The largest log-likelihood ratio of the sampled law over all pairs of inputs."""

    @property
    def loss_from_middle(self) -> float:
        """The largest log-likelihood ratio of the law of any input to that of 0, rounded up, or more."""
        return self.exact_epsilon

    @property
    @abstractmethod
    def variance_coefficients(self) -> tuple[float, float, float]:
        """Coefficients c of c[0] + c[1] abs(x) + c[2] x^2, an upper bound of the variance."""

    def variance(self, x: npt.ArrayLike) -> Floats:
        """Return the variance of the released law, element by element."""
        constant, linear, square = self.variance_coefficients
        size = np.abs(unit_values(x))
        return constant + linear * size + square * size**2

    @property
    def worst_variance(self) -> float:
        """The largest variance over all inputs."""
        return worst_quadratic(*self.variance_coefficients)

    def bias(self, x: npt.ArrayLike) -> Floats:
        """Return the mean of the released law minus x, from exact fractions: the rounding of probabilities.

        Parameters
        ----------
        x : array-like of float
            Numbers in [-1, 1].
        """
        points = unit_values(x)
        exact = [float(self._mean(value) - Fraction(value)) for value in points.ravel().tolist()]
        return np.array(exact).reshape(points.shape)

    def guarantee(self) -> PrivacyGuarantee:
        basis = "exact, from the sampled integers"
        return PrivacyGuarantee(self.exact_epsilon, stated=float(self.epsilon), basis=basis)

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        original = np.array(second_moment, dtype=np.float64)
        np.fill_diagonal(original, self.original_squares(np.diag(original)))
        return original

    def original_squares(self, squares: Floats) -> Floats:
        """Convert the mean of released squares to that of the squares of the values, or raise ValueError.

        With a variance of :math:`c_0 + c_1 |x| + c_2 x^2`, the mean of a released square is :math:`c_0 + c_1 |x| + (1 +
        c_2) x^2`, from which :math:`x^2` follows if :math:`c_1 = 0` and :math:`c_2 > -1`.
        """
        constant, linear, square = self.variance_coefficients
        if linear or square <= -1:
            why = "depends on abs(x) as well" if linear else "is the same for all numbers"
            raise ValueError(f"{self!r} does not identify the squares of values: the mean of a released square {why}.")
        return (squares - constant) / (1 + square)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        x = np.ascontiguousarray(rows, dtype=rows.dtype if self.takes_singles else np.float64)
        self._draw_numbers(x.reshape(-1), noise, out.reshape(-1))

    @abstractmethod
    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        """Release numbers of shape (n,), each run of `n_outputs` of them under one guarantee."""

    @abstractmethod
    def _mean(self, x: float) -> Fraction:
        """Return the exact mean of the released law."""


@dataclass(frozen=True)
class UnitLawMechanism(UnitMechanism):
    """Base class of mechanisms that sample the integers of their `integer_law`, from which everything follows."""

    @property
    @abstractmethod
    def integer_law(self) -> IntegerLaw:
        """The law that is sampled."""

    @property
    def _law(self) -> NumbersLaw:
        return cast("NumbersLaw", self.integer_law)

    @cached_property
    def exact_epsilon(self) -> float:
        return log_ratio(*self._law.ratio, in_doubles=True)

    @property
    def loss_from_middle(self) -> float:
        return log_ratio(*self._law.ratio_from_middle, in_doubles=True)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        return self._law.moments

    def variance(self, x: npt.ArrayLike) -> Floats:
        return self._law.variance(unit_values(x))

    def output_law(self, x: float) -> tuple[Floats, list[int]]:
        """Return the outputs for one number and their integer weights; meant for a coarse lattice."""
        return self._law.support(x)

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        self._law.draw_many(x, noise, out)

    def _mean(self, x: float) -> Fraction:
        return self._law.mean(x)


@dataclass(frozen=True)
class JointMechanism(UnitMechanism):
    """Base class of mechanisms that release `n_values` numbers together; the least number is `_fewest`."""

    n_values: int
    _fewest: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("n_values", self.n_values, least=self._fewest, most=MOST_TOGETHER)

    @property
    def n_outputs(self) -> int:
        return int(self.n_values)


@dataclass(frozen=True)
class Duchi(UnitLawMechanism):
    """Duchi's mechanism: +-B with B = (e^eps + 1) / (e^eps - 1) (Duchi, Jordan and Wainwright, 2018)."""

    takes_singles: ClassVar[bool] = True

    @cached_property
    def integer_law(self) -> TwoAnswersLaw:
        return duchi(self.epsilon)


@dataclass(frozen=True)
class DuchiVector(UnitLawMechanism, JointMechanism):
    """Duchi's mechanism of `n_values` numbers in [-1, 1], released as one vector of signs times a constant."""

    # Wang et al., ICDE 2019, Algorithm 1, put the ties of an even number of signs on both sides, which costs more.

    @cached_property
    def integer_law(self) -> SignsLaw:
        return duchi_vector(self.epsilon, self.n_outputs)


@dataclass(frozen=True)
class ThreeOutputs(UnitLawMechanism):
    """Three-Outputs: one number in [-1, 1], released as -C, 0 or C (Zhao et al., 2020)."""

    @cached_property
    def integer_law(self) -> ThreeAnswersLaw:
        return three_outputs(self.epsilon)


@dataclass(frozen=True)
class Piecewise(UnitLawMechanism):
    r"""Piecewise mechanism: one number in [-1, 1], released as a number near it or anywhere in a range.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6; values above 24 count as 24.
    variant : {"pm", "sub", "opt", "square_wave"}, default="pm"
        See ``piecewise_shape``.
    lattice_bits : int, default=24
        The outputs are up to 2^lattice_bits whole multiples of a power of two.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The paper's density is constant on the inner interval :math:`f (x t \mp 1)`, which has probability
    :math:`E / (E + t)`, and on the rest of :math:`[-f (t + 1), f (t + 1)]`, where :math:`f = (E + t) / (t (E - 1))`:

    .. math:: \mathrm{Var} = \frac{(t + 1) x^2}{E - 1} + \frac{(t + E)((t + 1)^3 + E - 1)}{3 t^2 (E - 1)^2}.

    Here the range is n cells of a power-of-two width and the inner interval m cells long, both odd. Each cell has
    the integer weight w, and Q more for the part of it that lies in the inner interval, which starts and ends at any
    multiple of 1/Q of a cell. So the mean moves linearly with the interval, the worst ratio is :math:`(w + Q) / w`,
    and every cell can be the answer to every input.

    References
    ----------
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019,
    Algorithm 2; Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.

    Examples
    --------
    >>> from skldp.mechanisms import Piecewise
    >>> round(Piecewise(1.0).worst_variance, 3)
    5.224
    """

    variant: str = "pm"
    lattice_bits: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, VARIANTS)
        check_integer("lattice_bits", self.lattice_bits, least=3, most=30)

    @cached_property
    def integer_law(self) -> LatticeLaw:
        """The law of n, m, w, Q and the width of a cell."""
        return piecewise(self.epsilon, self.variant, self.lattice_bits)


@dataclass(frozen=True)
class SquareWave(Piecewise):
    """Square wave of Li et al., SIGMOD 2020, Section 5.2, scaled so that its mean is the number."""

    variant: str = field(default="square_wave", init=False, repr=False)


@dataclass(frozen=True)
class Hybrid(UnitLawMechanism):
    """HM: Piecewise with probability 1 - exp(-epsilon / 2), else Duchi's (Wang et al., ICDE 2019, Section III-C)."""

    lattice_bits: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("lattice_bits", self.lattice_bits, least=3, most=30)

    @cached_property
    def integer_law(self) -> UnitLaw:
        return hybrid(self.epsilon, self.lattice_bits)

    @property
    def loss_from_middle(self) -> float:
        """The largest log-likelihood ratio of any two inputs, also where the law is Duchi's alone."""
        return self.exact_epsilon


@dataclass(frozen=True)
class HybridThreeOutputs(Hybrid):
    """HM-TP: PM-SUB or Three-Outputs, in the proportion of the least worst variance (Zhao et al., 2020)."""

    @cached_property
    def integer_law(self) -> UnitLaw:
        return hybrid_tp(self.epsilon, self.lattice_bits)
