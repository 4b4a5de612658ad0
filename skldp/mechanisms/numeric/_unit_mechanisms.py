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
    r"""Duchi's mechanism of `n_values` numbers in [-1, 1], released as one vector of signs times a constant B.

    Each value is first rounded to a sign, :math:`P(v_j = 1) = (1 + x_j) / 2`. The answer is B s, with s uniform on
    :math:`T^+ = \{s : s \cdot v > 0\}` with probability p, else on :math:`T^- = \{s : s \cdot v \le 0\}`. With
    C the size of :math:`T^+`, which is :math:`2^{d - 1}`, less :math:`\binom{d}{d / 2} / 2` for even d,

    .. math:: p = \frac{E C}{(E - 1) C + 2^d}, \quad
              B = \frac{2^d + C (E - 1)}{\binom{d - 1}{\lfloor d / 2 \rfloor} (E - 1)}, \quad E = e^\varepsilon.

    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018; Wang et al., ICDE
    2019, Algorithm 1, who put the ties of an even d on both sides, which gives :math:`\ln(1 + e^\varepsilon)` only.
    """

    @cached_property
    def integer_law(self) -> SignsLaw:
        """The law of p."""
        return duchi_vector(self.epsilon, self.n_outputs)


@dataclass(frozen=True)
class ThreeOutputs(UnitLawMechanism):
    r"""Three-Outputs: one number in [-1, 1], released as -C, 0 or C.

    With :math:`E = e^\varepsilon` and a from ``three_outputs_zero_probability``,

    .. math::
        P(0) &= a - a (1 - 1/E) |x|, \quad C = \frac{E (E + 1)}{(E - 1)(E - a)}, \\
        P(\text{wrong sign}) &= \tfrac{1 - a}{2} - \Bigl(\tfrac{1 - a}{2} - \tfrac{E - a}{E (E + 1)}\Bigr) |x|.

    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.
    """

    @cached_property
    def integer_law(self) -> ThreeAnswersLaw:
        """The law of both probabilities at 0 and at 1."""
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
    r"""Square wave: the piecewise mechanism of shape :math:`t = 1 / (2 b)`, to estimate distributions.

    For a number v in [0, 1], the paper's answer lies in :math:`[-b, 1 + b]`, with :math:`e^\varepsilon` times the
    density within b of v:

    .. math:: b = \frac{\varepsilon e^\varepsilon - e^\varepsilon + 1}
                       {2 e^\varepsilon (e^\varepsilon - 1 - \varepsilon)}

    Here it is scaled so that its mean is the number: releases serve for means and models as well.

    Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local differential privacy",
    SIGMOD 2020, Section 5.2.
    """

    variant: str = field(default="square_wave", init=False, repr=False)


@dataclass(frozen=True)
class Hybrid(UnitLawMechanism):
    r"""HM: the Piecewise mechanism with probability :math:`1 - e^{-\varepsilon/2}`, else Duchi's.

    Up to an epsilon of about 0.60935, it is Duchi's alone. Above, its variance is the same for all x:

    .. math:: \frac{h + 3}{3 h (h - 1)} + \frac{(E + 1)^2}{h (E - 1)^2}, \quad h = e^{\varepsilon/2}, E = e^\varepsilon.

    Wang et al., ICDE 2019, Section III-C.
    """

    lattice_bits: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("lattice_bits", self.lattice_bits, least=3, most=30)

    @cached_property
    def integer_law(self) -> UnitLaw:
        """The mixture, or Duchi's law alone."""
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
        """The mixture, or the law of Three-Outputs alone."""
        return hybrid_tp(self.epsilon, self.lattice_bits)
