r"""Piecewise mechanisms on a lattice (PM, PM-SUB, PM-OPT, the square wave), and their mixtures HM and HM-TP."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from skldp._arrays import Floats, Ints
from skldp._checks import check_choice, check_integer
from skldp.laws._integers import UnitLaw
from skldp.laws._numbers import LatticeLaw, MixtureLaw
from skldp.laws._odds import TWO_64, log_ratio
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._duchi import Duchi, ThreeOutputs
from skldp.mechanisms.numeric._unit_interval import UnitMechanism, calibration_epsilon, unit_values, worst_quadratic

_VARIANTS = ("pm", "sub", "opt", "square_wave")


def piecewise_shape(epsilon: float, variant: str = "pm") -> float:
    r"""Return the t that shapes a piecewise mechanism: its range is :math:`(1 + t)` times its inner interval."""
    if variant == "pm":
        return math.exp(epsilon / 2)
    if variant == "sub":
        return math.exp(epsilon / 3)
    if variant == "square_wave":
        return (math.expm1(epsilon) - epsilon) / (epsilon + math.expm1(-epsilon))
    check_choice("variant", variant, _VARIANTS)
    odds = math.exp(epsilon)
    # Divided by E^2: no overflow for large E.
    return float(brentq(lambda t: (t / odds) ** 2 * t**2 + 2 * t**3 / odds - 2 * t / odds - 1, 0.5, odds, xtol=1e-13))


def lattice_variance(law: LatticeLaw) -> tuple[float, float, float]:
    """Return the coefficients of a lattice law's variance, with its inner interval ending in mid-cell."""
    inner = law.n_inner * law.extra / law.total
    cells = (1 - inner) * (law.n_cells**2 - 1) / 12 + inner * ((law.n_inner**2 - 1) / 12 + 0.25)
    return law.step**2 * cells, 0.0, 1 / inner - 1


def _nearest_odd(value: float) -> int:
    return 2 * round((value - 1) / 2) + 1


def _uniform_below(total: int, noise: Noise, size: int) -> Ints:
    """Draw uniform integers below a total that is just under 2^63, so that few are drawn twice."""
    words = noise.words(size)
    words >>= np.uint64(1)
    drawn = words.view(np.int64)
    again = np.flatnonzero(drawn >= total)
    while again.size:
        drawn[again] = (noise.at(again, size).words(again.size) >> np.uint64(1)).view(np.int64)
        again = again[drawn[again] >= total]
    return drawn


@dataclass(frozen=True)
class Piecewise(UnitMechanism):
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
        check_choice("variant", self.variant, _VARIANTS)
        check_integer("lattice_bits", self.lattice_bits, least=3, most=30)

    @cached_property
    def lattice(self) -> tuple[int, int, int, int]:
        """The integers n, m, w and Q; the sum of all weights, n w + m Q, is below 2^63."""
        eps = calibration_epsilon(self.epsilon)
        t, excess = piecewise_shape(eps, self.variant), math.expm1(eps)
        n_inner = max(1, _nearest_odd(2 * (excess + 1 + t) / (t * excess) / self.step))
        n_cells = self._cells(n_inner, excess)
        base = math.floor(2.0**63 / ((n_cells + 4) + (n_inner + 4) * excess))
        extra = math.floor(base * Fraction(excess))
        if excess < 1:
            base = math.ceil(extra / Fraction(excess))
        return self._cells(n_inner, extra / base), n_inner, base, extra

    @cached_property
    def step(self) -> float:
        """The width of a cell, a power of two."""
        eps = calibration_epsilon(self.epsilon)
        t, excess = piecewise_shape(eps, self.variant), math.expm1(eps)
        return 2.0 ** math.ceil(math.log2(2 * (t + 1) * (excess + 1 + t) / (t * excess)) - self.lattice_bits)

    @cached_property
    def integer_law(self) -> LatticeLaw:
        """The law of `lattice` and `step`."""
        # The step is a power of two, and frexp's fraction lies from one half to 1.
        return LatticeLaw(*self.lattice, math.frexp(self.step)[1] - 1)

    @cached_property
    def reach(self) -> float:
        """Number of cells that the inner interval moves as x goes from 0 to 1."""
        return self.integer_law.reach

    @cached_property
    def exact_epsilon(self) -> float:
        """The log ratio of a cell wholly inside the inner interval and of one outside."""
        _, _, base, extra = self.lattice
        return log_ratio(base + extra, base, in_doubles=True)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """Coefficients of the lattice law, with its inner interval ending in mid-cell."""
        return lattice_variance(self.integer_law)

    def variance(self, x: npt.ArrayLike) -> Floats:
        """Return the variance of the released law, element by element."""
        n_cells, n_inner, _, extra = self.lattice
        inner = self._inner_probability
        start, part = self._start(unit_values(x))
        fraction = part / extra
        centre = start + fraction - (n_cells - n_inner) // 2
        spread = (1 - inner) * (n_cells**2 - 1) / 12 + inner * ((n_inner**2 - 1) / 12 + fraction * (1 - fraction))
        return self.step**2 * (spread + inner * (1 - inner) * centre**2)

    def output_law(self, x: float) -> tuple[Floats, list[int]]:
        """Return the outputs and their integer weights; meant for a coarse lattice."""
        n_cells, n_inner, base, extra = self.lattice
        start, part = (int(value[0]) for value in self._start(np.array([x], dtype=np.float64)))
        weights = [base] * n_cells
        for cell in range(start, start + n_inner):
            weights[cell] += extra
        if part:
            weights[start] -= part
            weights[start + n_inner] += part
        return (np.arange(n_cells, dtype=np.float64) - n_cells // 2) * self.step, weights

    @property
    def _inner_probability(self) -> float:
        return self.lattice[1] * self.lattice[3] / self.integer_law.total

    def _cells(self, n_inner: int, excess: float) -> int:
        """Count the cells of a range in which the inner interval reaches far enough for an exact mean."""
        least = (n_inner + 2 / self.step) / (1 - 2 / (n_inner * excess * self.step))
        return 2 * math.ceil((least * (1 + 2.0**-50) - 1) / 2) + 1

    def _start(self, x: Floats) -> tuple[Ints, Ints]:
        """Return the start of the inner interval: a cell, and parts of Q within it."""
        n_cells, n_inner, _, extra = self.lattice
        position = x * self.reach
        position += (n_cells - n_inner) // 2
        cell = np.floor(position)
        position -= cell
        position *= extra
        return cell.astype(np.int64), np.rint(position).astype(np.int64)

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        n_cells, _, base, extra = self.lattice
        word = _uniform_below(self.integer_law.total, noise, x.size)
        cell, part = self._start(x)
        near = word - n_cells * base
        part += near
        part //= extra
        part += cell
        word //= base
        # near >> 63 has all bits set for the whole range: a choice without branches.
        near >>= 63
        word ^= part
        word &= near
        word ^= part
        word -= n_cells // 2
        np.multiply(word, self.step, out=out, casting="same_kind")

    def _mean(self, x: float) -> Fraction:
        n_cells, n_inner, _, extra = self.lattice
        start, part = (int(value[0]) for value in self._start(np.array([x], dtype=np.float64)))
        centre = start + Fraction(part, extra) - (n_cells - n_inner) // 2
        return Fraction(self.step) * centre * n_inner * extra / self.integer_law.total


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


_ROOT = 405 * math.sqrt(241)
# About 0.60935: from here on a mixture has a lower worst variance than Duchi alone.
HYBRID_THRESHOLD = math.log((-5 + 2 * math.cbrt(6353 - _ROOT) + 2 * math.cbrt(6353 + _ROOT)) / 27)


@dataclass(frozen=True)
class _Mixture(UnitMechanism):
    """Base class of mixtures of two unbiased mechanisms, with chances that do not depend on the value."""

    lattice_bits: int = 24

    _variant: ClassVar[str]
    _few: ClassVar[type[Duchi] | type[ThreeOutputs]]

    def __post_init__(self) -> None:
        super().__post_init__()
        # Raises on invalid lattice_bits.
        Piecewise(self.epsilon, lattice_bits=self.lattice_bits)

    @cached_property
    def piecewise(self) -> Piecewise:
        """The piecewise mechanism."""
        return Piecewise(self.epsilon, self._variant, self.lattice_bits)

    @cached_property
    def few_valued(self) -> Duchi | ThreeOutputs:
        """The mechanism with few answers."""
        return self._few(self.epsilon)

    @property
    @abstractmethod
    def piecewise_probability(self) -> float:
        """Probability of the piecewise mechanism."""

    @cached_property
    def threshold(self) -> int:
        """The probability of the piecewise mechanism, out of 2^64."""
        return min(int(self.piecewise_probability * 2.0**64), TWO_64 - 1)

    @cached_property
    def exact_epsilon(self) -> float:
        """The larger of the two mechanisms' log ratios."""
        few = self.few_valued.exact_epsilon
        return max(few, self.piecewise.exact_epsilon) if self.threshold else few

    @property
    def integer_law(self) -> UnitLaw:
        """The laws of both mechanisms, and `threshold`."""
        few = self.few_valued.integer_law
        return MixtureLaw(self.threshold, self.piecewise.integer_law, few) if self.threshold else few

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """Mean of the two mechanisms' coefficients."""
        part = self.threshold / TWO_64
        pairs = zip(self.piecewise.variance_coefficients, self.few_valued.variance_coefficients, strict=True)
        constant, linear, square = (part * first + (1 - part) * second for first, second in pairs)
        return constant, linear, square

    def variance(self, x: npt.ArrayLike) -> Floats:
        """Return the variance of the released law, element by element."""
        part = self.threshold / TWO_64
        return part * self.piecewise.variance(x) + (1 - part) * self.few_valued.variance(x)

    def output_law(self, x: float) -> tuple[Floats, list[int]]:
        """Return the outputs and their integer weights; meant for a coarse lattice."""
        law: dict[float, int] = {}
        parts = [(self.threshold, self.piecewise), (TWO_64 - self.threshold, self.few_valued)]
        laws = [(part, *mechanism.output_law(x)) for part, mechanism in parts if part]
        totals = [sum(weights) for _, _, weights in laws]
        for i, (part, outputs, weights) in enumerate(laws):
            scale = part * math.prod(total for j, total in enumerate(totals) if j != i)
            for output, weight in zip(outputs.tolist(), weights, strict=True):
                law[output] = law.get(output, 0) + scale * weight
        return np.array(sorted(law)), [law[output] for output in sorted(law)]

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        if not self.threshold:
            self.few_valued._draw_numbers(x, noise, out)
            return
        chosen = noise.bernoulli(np.uint64(self.threshold), x.shape)
        mechanisms: tuple[UnitMechanism, UnitMechanism] = self.few_valued, self.piecewise
        for which in (1, 0):
            places, mechanism = np.flatnonzero(chosen == which), mechanisms[which]
            part = np.empty(places.size, dtype=out.dtype)
            mechanism._draw_numbers(x[places], noise.at(places, x.size), part)
            out[places] = part

    def _mean(self, x: float) -> Fraction:
        part = Fraction(self.threshold, TWO_64)
        few = (1 - part) * self.few_valued._mean(x)
        return few + part * self.piecewise._mean(x) if part else few


@dataclass(frozen=True)
class Hybrid(_Mixture):
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

    _variant: ClassVar[str] = "pm"
    _few: ClassVar[type[Duchi]] = Duchi

    @cached_property
    def piecewise_probability(self) -> float:
        """Probability of PM; 0 up to ``HYBRID_THRESHOLD``."""
        return -math.expm1(-self.epsilon / 2) if self.epsilon > HYBRID_THRESHOLD else 0.0


@dataclass(frozen=True)
class HybridThreeOutputs(_Mixture):
    """HM-TP: PM-SUB or Three-Outputs, in the proportion that makes the worst variance least.

    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.
    """

    _variant: ClassVar[str] = "sub"
    _few: ClassVar[type[ThreeOutputs]] = ThreeOutputs

    @cached_property
    def piecewise_probability(self) -> float:
        """Probability of PM-SUB; 0 up to an epsilon of about 0.610986."""

        def worst(part: float) -> float:
            return worst_quadratic(*(part * a + (1 - part) * b for a, b in zip(sub, three, strict=True)))

        sub, three = self.piecewise.variance_coefficients, self.few_valued.variance_coefficients
        found = minimize_scalar(worst, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
        return float(found.x) if worst(found.x) < worst(0.0) else 0.0
