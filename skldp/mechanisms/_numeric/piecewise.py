r"""The Piecewise family on a lattice of outputs: PM, PM-SUB, PM-OPT and the square wave."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from skldp._checks import check_whole
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.unit_interval import UnitMechanism, calibration_epsilon, unit_values
from skldp.mechanisms._odds import log_ratio

__all__ = ["Piecewise", "lattice_variance", "piecewise_shape"]

_VARIANTS = ("pm", "sub", "opt", "square_wave")


def piecewise_shape(epsilon: float, variant: str = "pm") -> float:
    r"""Give the t that shapes a piecewise mechanism: its range is :math:`(1 + t)` times its inner interval.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.piecewise import piecewise_shape
    >>> round(piecewise_shape(1.0), 4), round(piecewise_shape(1.0, "sub"), 4), round(piecewise_shape(1.0, "opt"), 4)
    (1.6487, 1.3956, 1.2888)
    """
    if variant == "pm":
        return math.exp(epsilon / 2)
    if variant == "sub":
        return math.exp(epsilon / 3)
    if variant == "square_wave":
        return (math.expm1(epsilon) - epsilon) / (epsilon + math.expm1(-epsilon))
    if variant != "opt":
        raise ValueError(f"variant must be one of {_VARIANTS}. Got {variant!r} instead.")
    odds = math.exp(epsilon)
    # Divided by E^2, so that nothing overflows where E is large.
    return float(brentq(lambda t: (t / odds) ** 2 * t**2 + 2 * t**3 / odds - 2 * t / odds - 1, 0.5, odds, xtol=1e-13))


def lattice_variance(n_cells: int, n_inner: int, base: int, extra: int, step: float) -> tuple[float, float, float]:
    """The coefficients of a lattice law's variance, with its inner interval ending in mid-cell."""
    inner = n_inner * extra / (n_cells * base + n_inner * extra)
    cells = (1 - inner) * (n_cells**2 - 1) / 12 + inner * ((n_inner**2 - 1) / 12 + 0.25)
    return step**2 * cells, 0.0, 1 / inner - 1


def _nearest_odd(value: float) -> int:
    return 2 * round((value - 1) / 2) + 1


def _uniform_below(total: int, noise: Noise, size: int) -> npt.NDArray[np.int64]:
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
    r"""One number in [-1, 1] answered with a number near it, or anywhere in a range.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6. What exceeds 24 is not used.
    variant : {"pm", "sub", "opt", "square_wave"}, default="pm"
        See ``piecewise_shape``.
    lattice_bits : int, default=24
        The outputs are up to 2^lattice_bits whole multiples of a power of two.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6, or another parameter is not as above.

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
        if self.variant not in _VARIANTS:
            raise ValueError(f"variant must be one of {_VARIANTS}. Got {self.variant!r} instead.")
        check_whole("lattice_bits", self.lattice_bits, least=3, most=30)

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
    def reach(self) -> float:
        """How many cells the inner interval moves as x goes from 0 to 1."""
        n_cells, n_inner, base, extra = self.lattice
        return (n_cells * base + n_inner * extra) / (n_inner * extra) / self.step

    @cached_property
    def exact_epsilon(self) -> float:
        """The log ratio of a cell wholly inside the inner interval and of one outside."""
        _, _, base, extra = self.lattice
        return log_ratio(base + extra, base, in_doubles=True)

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """Of the lattice law, with its inner interval ending in mid-cell."""
        return lattice_variance(*self.lattice, self.step)

    def variance(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released law, element by element."""
        n_cells, n_inner, _, extra = self.lattice
        inner = self._inner_probability
        start, part = self._start(unit_values(x))
        fraction = part / extra
        centre = start + fraction - (n_cells - n_inner) // 2
        spread = (1 - inner) * (n_cells**2 - 1) / 12 + inner * ((n_inner**2 - 1) / 12 + fraction * (1 - fraction))
        return self.step**2 * (spread + inner * (1 - inner) * centre**2)

    def output_law(self, x: float) -> tuple[npt.NDArray[np.float64], list[int]]:
        """Give the outputs and their integer weights; meant for a coarse lattice."""
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
        n_cells, n_inner, base, extra = self.lattice
        return n_inner * extra / (n_cells * base + n_inner * extra)

    def _cells(self, n_inner: int, excess: float) -> int:
        """Count the cells of a range in which the inner interval reaches far enough for an exact mean."""
        least = (n_inner + 2 / self.step) / (1 - 2 / (n_inner * excess * self.step))
        return 2 * math.ceil((least * (1 + 2.0**-50) - 1) / 2) + 1

    def _start(self, x: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where the inner interval starts: the whole cell, and how many parts of Q further."""
        n_cells, n_inner, _, extra = self.lattice
        position = x * self.reach
        position += (n_cells - n_inner) // 2
        cell = np.floor(position)
        position -= cell
        position *= extra
        return cell.astype(np.int64), np.rint(position).astype(np.int64)

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        n_cells, n_inner, base, extra = self.lattice
        word = _uniform_below(n_cells * base + n_inner * extra, noise, x.size)
        cell, part = self._start(x)
        near = word - n_cells * base
        part += near
        part //= extra
        part += cell
        word //= base
        # All bits of near >> 63 are set where the whole range is meant: a choice without branches.
        near >>= 63
        word ^= part
        word &= near
        word ^= part
        word -= n_cells // 2
        np.multiply(word, self.step, out=out, casting="same_kind")

    def _mean(self, x: float) -> Fraction:
        n_cells, n_inner, base, extra = self.lattice
        start, part = (int(value[0]) for value in self._start(np.array([x], dtype=np.float64)))
        centre = start + Fraction(part, extra) - (n_cells - n_inner) // 2
        return Fraction(self.step) * centre * n_inner * extra / (n_cells * base + n_inner * extra)
