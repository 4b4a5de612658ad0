r"""Mechanisms of numbers in [-1, 1] whose integer laws do everything: each is a name, parameters and a source."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from skldp._checks import check_choice, check_integer
from skldp.laws._few_answers import ThreeAnswersLaw, TwoAnswersLaw, duchi, three_outputs
from skldp.laws._integers import UnitLaw
from skldp.laws._lattice import VARIANTS, LatticeLaw, hybrid, hybrid_tp, piecewise
from skldp.laws._numbers import SignsLaw, duchi_vector
from skldp.mechanisms.numeric._unit_interval import JointMechanism, UnitLawMechanism


@dataclass(frozen=True)
class Duchi(UnitLawMechanism):
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
    >>> from skldp.mechanisms.numeric._unit_mechanisms import Duchi
    >>> round(Duchi(1.0).worst_variance, 3)
    4.683
    """

    takes_singles: ClassVar[bool] = True

    @cached_property
    def integer_law(self) -> TwoAnswersLaw:
        """The law of D."""
        return duchi(self.epsilon)


@dataclass(frozen=True)
class DuchiVector(UnitLawMechanism, JointMechanism):
    """Duchi's mechanism of `n_values` numbers in [-1, 1], released as one vector of signs times a constant.

    Wang et al., ICDE 2019, Algorithm 1, put the ties of an even number of signs on both sides, which costs more.
    """

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
    r"""HM: the Piecewise mechanism with probability :math:`1 - e^{-\varepsilon/2}`, else Duchi's.

    Up to an epsilon of about 0.60935, it is Duchi's alone. Wang et al., ICDE 2019, Section III-C.
    """

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
    """HM-TP: PM-SUB or Three-Outputs, in the proportion that makes the worst variance least.

    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.
    """

    @cached_property
    def integer_law(self) -> UnitLaw:
        return hybrid_tp(self.epsilon, self.lattice_bits)
