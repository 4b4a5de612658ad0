r"""Mixtures of a piecewise mechanism and one with few answers: HM and HM-TP."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.duchi import Duchi
from skldp.mechanisms._numeric.piecewise import Piecewise
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs
from skldp.mechanisms._numeric.unit_interval import UnitMechanism, worst_quadratic

__all__ = ["HYBRID_THRESHOLD", "Hybrid", "HybridThreeOutputs"]

_WORD = 2**64
_ROOT = 405 * math.sqrt(241)
# About 0.60935: from here on a mixture has a lower worst variance than Duchi alone.
HYBRID_THRESHOLD = math.log((-5 + 2 * math.cbrt(6353 - _ROOT) + 2 * math.cbrt(6353 + _ROOT)) / 27)


@dataclass(frozen=True)
class _Mixture(UnitMechanism):
    """Base of the mixtures: a chance, which does not depend on the value, of each of two unbiased mechanisms."""

    lattice_bits: int = 24

    def __post_init__(self) -> None:
        super().__post_init__()
        # Refuses bad lattice_bits now, and not at the first release.
        Piecewise(self.epsilon, lattice_bits=self.lattice_bits)

    @property
    @abstractmethod
    def piecewise(self) -> Piecewise:
        """The piecewise mechanism."""

    @property
    @abstractmethod
    def few_valued(self) -> Duchi | ThreeOutputs:
        """The mechanism with few answers."""

    @property
    @abstractmethod
    def piecewise_probability(self) -> float:
        """How often the piecewise mechanism is chosen."""

    @cached_property
    def threshold(self) -> int:
        """The probability of the piecewise mechanism, out of 2^64."""
        return min(int(self.piecewise_probability * 2.0**64), _WORD - 1)

    @cached_property
    def exact_epsilon(self) -> float:
        """The larger of the two mechanisms' log ratios."""
        few = self.few_valued.exact_epsilon
        return max(few, self.piecewise.exact_epsilon) if self.threshold else few

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """The mean of the two mechanisms' coefficients."""
        part = self.threshold / _WORD
        pairs = zip(self.piecewise.variance_coefficients, self.few_valued.variance_coefficients, strict=True)
        constant, linear, square = (part * first + (1 - part) * second for first, second in pairs)
        return constant, linear, square

    def variance(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released law, element by element."""
        part = self.threshold / _WORD
        return part * self.piecewise.variance(x) + (1 - part) * self.few_valued.variance(x)

    def output_law(self, x: float) -> tuple[npt.NDArray[np.float64], list[int]]:
        """Give the outputs and their integer weights; meant for a coarse lattice."""
        law: dict[float, int] = {}
        parts = [(self.threshold, self.piecewise), (_WORD - self.threshold, self.few_valued)]
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
        mechanism: UnitMechanism
        for places, mechanism in (
            (np.flatnonzero(chosen), self.piecewise),
            (np.flatnonzero(~chosen), self.few_valued),
        ):
            part = np.empty(places.size, dtype=out.dtype)
            mechanism._draw_numbers(x[places], noise.at(places, x.size), part)
            out[places] = part

    def _mean(self, x: float) -> Fraction:
        part = Fraction(self.threshold, _WORD)
        few = (1 - part) * self.few_valued._mean(x)
        return few + part * self.piecewise._mean(x) if part else few


@dataclass(frozen=True)
class Hybrid(_Mixture):
    r"""HM: the Piecewise mechanism with probability :math:`1 - e^{-\varepsilon/2}`, else Duchi's.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6. What exceeds 24 is not used.
    lattice_bits : int, default=24
        As in :class:`~skldp.mechanisms._numeric.piecewise.Piecewise`.

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
    >>> from skldp.mechanisms import Hybrid
    >>> round(Hybrid(1.0).worst_variance, 3)
    4.289
    """

    @cached_property
    def piecewise(self) -> Piecewise:
        """PM."""
        return Piecewise(self.epsilon, "pm", self.lattice_bits)

    @cached_property
    def few_valued(self) -> Duchi:
        """Duchi's mechanism."""
        return Duchi(self.epsilon)

    @cached_property
    def piecewise_probability(self) -> float:
        """How often PM is chosen; 0 up to ``HYBRID_THRESHOLD``."""
        return -math.expm1(-self.epsilon / 2) if self.epsilon > HYBRID_THRESHOLD else 0.0


@dataclass(frozen=True)
class HybridThreeOutputs(_Mixture):
    r"""HM-TP: PM-SUB or Three-Outputs, in the proportion that makes the worst variance least.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6. What exceeds 24 is not used.
    lattice_bits : int, default=24
        As in :class:`~skldp.mechanisms._numeric.piecewise.Piecewise`.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6, or `lattice_bits` is out of its range.

    Notes
    -----
    The variance is the mean of the two. Its maximum over x is convex in the proportion, and minimised numerically; up
    to an epsilon of about 0.610986 the best proportion of PM-SUB is 0.

    References
    ----------
    Zhao et al., "Local differential privacy based federated learning for Internet of Things", 2020.

    Examples
    --------
    >>> from skldp.mechanisms import HybridThreeOutputs
    >>> HybridThreeOutputs(0.61).piecewise_probability, HybridThreeOutputs(0.62).piecewise_probability > 0
    (0.0, True)
    """

    @cached_property
    def piecewise(self) -> Piecewise:
        """PM-SUB."""
        return Piecewise(self.epsilon, "sub", self.lattice_bits)

    @cached_property
    def few_valued(self) -> ThreeOutputs:
        """Three-Outputs."""
        return ThreeOutputs(self.epsilon)

    @cached_property
    def piecewise_probability(self) -> float:
        """How often PM-SUB is chosen; 0 up to an epsilon of about 0.610986."""

        def worst(part: float) -> float:
            return worst_quadratic(*(part * a + (1 - part) * b for a, b in zip(sub, three, strict=True)))

        sub, three = self.piecewise.variance_coefficients, self.few_valued.variance_coefficients
        found = minimize_scalar(worst, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
        return float(found.x) if worst(found.x) < worst(0.0) else 0.0
