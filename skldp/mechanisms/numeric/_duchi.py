r"""Mechanisms with few answers: Duchi's for one number and for several together, and Three-Outputs."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from skldp.laws._few_answers import ThreeAnswersLaw, TwoAnswersLaw, duchi, three_outputs
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
    >>> from skldp.mechanisms import Duchi
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
