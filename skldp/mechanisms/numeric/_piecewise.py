r"""Piecewise mechanisms on a lattice (PM, PM-SUB, PM-OPT, the square wave), and their mixtures HM and HM-TP."""

from dataclasses import dataclass, field
from functools import cached_property

from skldp._checks import check_choice, check_integer
from skldp.laws._integers import UnitLaw
from skldp.laws._lattice import VARIANTS, LatticeLaw, hybrid, hybrid_tp, piecewise
from skldp.mechanisms.numeric._unit_interval import UnitLawMechanism


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
    r"""Square wave: one number in [-1, 1], released near it or anywhere in a range, to estimate distributions.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6; values above 24 count as 24.
    lattice_bits : int, default=24
        The outputs are up to 2^lattice_bits whole multiples of a power of two.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6, or `lattice_bits` not from 3 to 30.

    See Also
    --------
    Piecewise : The family.
    skldp.Collector : Histograms and quantiles of the released numbers.

    Notes
    -----
    For a number v in [0, 1], the paper's answer lies in :math:`[-b, 1 + b]`, with :math:`e^\varepsilon` times the
    density within b of v:

    .. math:: b = \frac{\varepsilon e^\varepsilon - e^\varepsilon + 1}
                       {2 e^\varepsilon (e^\varepsilon - 1 - \varepsilon)}

    This is the piecewise mechanism of shape :math:`t = 1 / (2 b)`, scaled: an interval of one length that moves from
    one end of the range to the other as the number does. It is sampled as that, on its lattice, with the same exact
    integers, and scaled so that its mean is the number: what is released serves for means and models as well.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local differential privacy",
    SIGMOD 2020, Section 5.2 for the wave and its b, Section 5.4 for the estimate.

    Examples
    --------
    >>> from skldp.mechanisms.numeric._piecewise import SquareWave
    >>> round(SquareWave(2.0).worst_variance, 3)
    1.509
    """

    variant: str = field(default="square_wave", init=False, repr=False)


@dataclass(frozen=True)
class Hybrid(UnitLawMechanism):
    r"""HM: the Piecewise mechanism with probability :math:`1 - e^{-\varepsilon/2}`, else Duchi's.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6; values above 24 count as 24.
    lattice_bits : int, default=24
        As for :class:`Piecewise`.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6, or `lattice_bits` is out of its range.

    Notes
    -----
    Up to ``HYBRID_THRESHOLD``, about 0.60935, it is Duchi's alone. Above, its variance is the same for all x:

    .. math:: \frac{h + 3}{3 h (h - 1)} + \frac{(E + 1)^2}{h (E - 1)^2}, \quad h = e^{\varepsilon/2}, E = e^\varepsilon.

    References
    ----------
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019, Section
    III-C.

    Examples
    --------
    >>> from skldp.mechanisms.numeric._piecewise import Hybrid
    >>> round(Hybrid(1.0).worst_variance, 3)
    4.289
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
