"""Piecewise laws on a lattice (PM, PM-SUB, PM-OPT, the square wave), and their mixtures with laws of few answers."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skldp._arrays import Floats, Ints
from skldp._checks import check_choice
from skldp.laws._few_answers import FewAnswersLaw, duchi, three_outputs, worst_quadratic
from skldp.laws._integers import MOST_EXPONENT, Answers, Noise, UnitLaw
from skldp.laws._odds import TWO_64, calibration_epsilon

_TWO_63 = 2**63
VARIANTS = ("pm", "sub", "opt", "square_wave")


@dataclass(frozen=True)
class LatticeLaw(UnitLaw):
    """Piecewise law: cells of weight `base`, with `extra` in an interval around x. The answer is a cell's number."""

    name: ClassVar[str] = "lattice"
    n_cells: int
    n_inner: int
    base: int
    extra: int
    step_exponent: int

    def _check(self) -> None:
        odd = bool(self.n_cells % 2 and self.n_inner % 2) and 1 <= self.n_inner < self.n_cells <= 2**32
        if not odd or self.base < 1 or self.extra < 1 or not 2**60 < self.total <= _TWO_63:
            self._refuse("have odd numbers of cells whose weights add up to more than 2**60 and at most 2**63")
        if abs(self.step_exponent) > MOST_EXPONENT or self.reach > self._margin:
            self._refuse("keep its inner interval among its cells")

    @property
    def n_answers(self) -> int:
        return self.n_cells

    @property
    def ratio(self) -> tuple[int, int]:
        return self.base + self.extra, self.base

    def draw(self, x: float, words: Iterator[int]) -> int:
        drawn = next(words) >> 1
        while drawn >= self.total:
            drawn = next(words) >> 1
        near = drawn - self.n_cells * self.base
        if near < 0:
            return drawn // self.base
        position = x * self.reach + self._margin
        start = math.floor(position)
        part = min(self.extra, round((position - start) * float(self.extra)))
        return start + (near + part) // self.extra

    def draw_many(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        word = _uniform_below(self.total, noise, x.size)
        cell, part = self._start(x)
        near = word - self.n_cells * self.base
        part += near
        part //= self.extra
        part += cell
        word //= self.base
        # near >> 63 has all bits set for the whole range: a choice without branches.
        near >>= 63
        word ^= part
        word &= near
        word ^= part
        word -= self.n_cells // 2
        np.multiply(word, self.step, out=out, casting="same_kind")

    def value(self, answer: int) -> float:
        return math.ldexp(answer - self.n_cells // 2, self.step_exponent)

    @cached_property
    def step(self) -> float:
        return math.ldexp(1.0, self.step_exponent)

    @cached_property
    def total(self) -> int:
        return self.n_cells * self.base + self.n_inner * self.extra

    @cached_property
    def reach(self) -> float:
        """Number of cells that the inner interval moves as x goes from 0 to 1, as a double."""
        return math.ldexp(self.total / (self.n_inner * self.extra), -self.step_exponent)

    @property
    def moments(self) -> tuple[float, float, float]:
        """Coefficients of the variance, with the inner interval ending in mid-cell."""
        inner = self._inner_probability
        return self.step**2 * self._spread(0.25), 0.0, 1 / inner - 1

    def variance(self, x: Floats) -> Floats:
        inner = self._inner_probability
        start, part = self._start(x)
        fraction = part / self.extra
        centre = start + fraction - self._margin
        spread = self._spread(fraction * (1 - fraction))
        return np.asarray(self.step**2 * (spread + inner * (1 - inner) * centre**2))

    def mean(self, x: float) -> Fraction:
        start, part = (int(value[0]) for value in self._start(np.array([x], dtype=np.float64)))
        centre = start + Fraction(part, self.extra) - self._margin
        return Fraction(self.step) * centre * self.n_inner * self.extra / self.total

    def support(self, x: float) -> tuple[Floats, list[int]]:
        """Return the middle of each cell, and its weight; meant for a coarse lattice."""
        start, part = (int(value[0]) for value in self._start(np.array([x], dtype=np.float64)))
        weights = [self.base] * self.n_cells
        for cell in range(start, start + self.n_inner):
            weights[cell] += self.extra
        if part:
            weights[start] -= part
            weights[start + self.n_inner] += part
        return (np.arange(self.n_cells, dtype=np.float64) - self.n_cells // 2) * self.step, weights

    def responses(self, points: Floats, *, spread: bool = False) -> tuple[Floats, Callable[[Answers], Ints]]:
        """Return the chances of groups of cells, cut where a point's inner interval begins or ends, and the groups."""
        # With a large epsilon the interval is shorter than the distance of two points: numbers between must be spread.
        ends = bin_edges(points) if spread else points
        begin = ends * self.reach + self._margin
        kinks = np.rint(np.concatenate([begin, begin + self.n_inner])).astype(np.int64)
        # Rounding of the reach leaves a last cell or two at both ends, which are no group.
        inner_kinks = kinks[(kinks > 2) & (kinks < self.n_cells - 2)]
        starts = np.unique(np.concatenate([[0], inner_kinks, [self.n_cells]]))
        beyond = starts - begin[:, None]
        inner = np.clip(beyond, 0, self.n_inner)
        if spread:
            # The mean over a bin, from the integral of the clipped line.
            inner = -np.diff(inner * (beyond - inner / 2), axis=0) / np.diff(begin)[:, None]
        upto = starts * (self.base / self.total) + inner * (self.extra / self.total)
        return np.diff(
            upto, axis=1
        ), lambda answers: np.searchsorted(starts, answers.astype(np.int64), side="right") - 1

    def lattice_part(self, what: str) -> tuple["LatticeLaw", float]:
        return self, 1.0

    @property
    def _margin(self) -> int:
        """Number of cells before the inner interval of 0."""
        return (self.n_cells - self.n_inner) // 2

    @property
    def _inner_probability(self) -> float:
        return self.n_inner * self.extra / self.total

    def _spread(self, of_ends: Any) -> Any:
        """Return the variance within the range and within the inner interval, in cells."""
        inner = self._inner_probability
        return (1 - inner) * (self.n_cells**2 - 1) / 12 + inner * ((self.n_inner**2 - 1) / 12 + of_ends)

    def _start(self, x: Floats) -> tuple[Ints, Ints]:
        """Return the start of the inner interval: a cell, and parts of `extra` within it."""
        position = x * self.reach
        position += self._margin
        cell = np.floor(position)
        position -= cell
        position *= self.extra
        return cell.astype(np.int64), np.rint(position).astype(np.int64)


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


def bin_edges(points: Floats) -> Floats:
    return np.concatenate([points[:1], (points[1:] + points[:-1]) / 2, points[-1:]])


def piecewise(epsilon: float, variant: str = "pm", lattice_bits: int = 24) -> LatticeLaw:
    """Return the law of a piecewise mechanism of an epsilon, of up to ``2**lattice_bits`` cells."""
    eps = calibration_epsilon(epsilon)
    t, excess = piecewise_shape(eps, variant), math.expm1(eps)
    exponent = math.ceil(math.log2(2 * (t + 1) * (excess + 1 + t) / (t * excess)) - lattice_bits)
    step = 2.0**exponent
    n_inner = max(1, 2 * round((2 * (excess + 1 + t) / (t * excess) / step - 1) / 2) + 1)

    def cells(more: float) -> int:
        """Count the cells of a range in which the inner interval reaches far enough for an exact mean."""
        least = (n_inner + 2 / step) / (1 - 2 / (n_inner * more * step))
        return 2 * math.ceil((least * (1 + 2.0**-50) - 1) / 2) + 1

    base = math.floor(2.0**63 / ((cells(excess) + 4) + (n_inner + 4) * excess))
    extra = math.floor(base * Fraction(excess))
    if excess < 1:
        base = math.ceil(extra / Fraction(excess))
    return LatticeLaw(cells(extra / base), n_inner, base, extra, exponent)


def piecewise_shape(epsilon: float, variant: str = "pm") -> float:
    r"""Return the t that shapes a piecewise mechanism: its range is :math:`(1 + t)` times its inner interval."""
    check_choice("variant", variant, VARIANTS)
    if variant == "pm":
        return math.exp(epsilon / 2)
    if variant == "sub":
        return math.exp(epsilon / 3)
    if variant == "square_wave":
        return (math.expm1(epsilon) - epsilon) / (epsilon + math.expm1(-epsilon))
    from scipy.optimize import brentq

    odds = math.exp(epsilon)
    # Divided by E^2: no overflow for large E.
    return float(brentq(lambda t: (t / odds) ** 2 * t**2 + 2 * t**3 / odds - 2 * t / odds - 1, 0.5, odds, xtol=1e-13))


@dataclass(frozen=True)
class MixtureLaw(UnitLaw):
    """Mixture of a lattice law, for `lattice_count` of 2^64 words, and one of few answers, numbered after its cells."""

    name: ClassVar[str] = "mixture"
    lattice_count: int
    lattice: LatticeLaw
    few: FewAnswersLaw

    def _check(self) -> None:
        parts = isinstance(self.lattice, LatticeLaw) and isinstance(self.few, FewAnswersLaw)
        if not parts or not 1 <= self.lattice_count < TWO_64:
            self._refuse("have a chance of a lattice, and of few answers")

    @property
    def n_answers(self) -> int:
        return self.lattice.n_answers + self.few.n_answers

    @property
    def ratio(self) -> tuple[int, int]:
        """Larger ratio of both laws, since the choice is independent of x."""
        return max(self.lattice.ratio, self.few.ratio, key=lambda one: Fraction(*one))

    def draw(self, x: float, words: Iterator[int]) -> int:
        if next(words) < self.lattice_count:
            return self.lattice.draw(x, words)
        return self.lattice.n_answers + self.few.draw(x, words)

    def draw_many(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        chosen = noise.bernoulli(np.uint64(self.lattice_count), x.shape)
        for places, law in (np.flatnonzero(chosen), self.lattice), (np.flatnonzero(~chosen), self.few):
            part = np.empty(places.size, dtype=out.dtype)
            law.draw_many(x[places], noise.at(places, x.size), part)
            out[places] = part

    def value(self, answer: int) -> float:
        n = self.lattice.n_answers
        return self.lattice.value(answer) if answer < n else self.few.value(answer - n)

    @property
    def ends(self) -> tuple[float, float]:
        (low, high), (least, most) = self.lattice.ends, self.few.ends
        return min(low, least), max(high, most)

    @property
    def share(self) -> float:
        return self.lattice_count / TWO_64

    @property
    def moments(self) -> tuple[float, float, float]:
        pairs = zip(self.lattice.moments, self.few.moments, strict=True)
        constant, linear, square = (self.share * first + (1 - self.share) * second for first, second in pairs)
        return constant, linear, square

    def variance(self, x: Floats) -> Floats:
        return self.share * self.lattice.variance(x) + (1 - self.share) * self.few.variance(x)

    def mean(self, x: float) -> Fraction:
        share = Fraction(self.lattice_count, TWO_64)
        return share * self.lattice.mean(x) + (1 - share) * self.few.mean(x)

    def support(self, x: float) -> tuple[Floats, list[int]]:
        """Return the possible estimates of both laws, and their weights; meant for a coarse lattice."""
        (own, of_cells), (other, of_few) = self.lattice.support(x), self.few.support(x)
        # Weights of few answers sum up to 2^64, and those of cells to the lattice's total.
        scales = self.lattice_count * TWO_64, (TWO_64 - self.lattice_count) * self.lattice.total
        weights = [scale * one for scale, part in zip(scales, (of_cells, of_few), strict=True) for one in part]
        return np.concatenate([own, other]), weights

    def responses(self, points: Floats, *, spread: bool = False) -> tuple[Floats, Callable[[Answers], Ints]]:
        of_groups, group = self.lattice.responses(points, spread=spread)
        n_cells, n_groups = self.lattice.n_cells, of_groups.shape[1]

        def cells(answers: Answers) -> Ints:
            return np.where(answers < n_cells, group(answers), n_groups + answers.astype(np.int64) - n_cells)

        return np.hstack([self.share * of_groups, (1 - self.share) * self.few.chances(points)]), cells

    def lattice_part(self, what: str) -> tuple[LatticeLaw, float]:
        return self.lattice, self.share


def _mixture(share: float, lattice: LatticeLaw, few: FewAnswersLaw) -> UnitLaw:
    """Return the mixture, or the law of few answers alone if the share of the lattice is 0."""
    count = min(int(share * 2.0**64), TWO_64 - 1)
    return MixtureLaw(count, lattice, few) if count else few


_ROOT = 405 * math.sqrt(241)
# About 0.60935: from here on a mixture has a lower worst variance than Duchi alone.
HYBRID_THRESHOLD = math.log((-5 + 2 * math.cbrt(6353 - _ROOT) + 2 * math.cbrt(6353 + _ROOT)) / 27)


def hybrid(epsilon: float, lattice_bits: int = 24) -> UnitLaw:
    """Return the law of HM of an epsilon: Duchi's alone up to `HYBRID_THRESHOLD`."""
    share = -math.expm1(-epsilon / 2) if epsilon > HYBRID_THRESHOLD else 0.0
    return _mixture(share, piecewise(epsilon, "pm", lattice_bits), duchi(epsilon))


def hybrid_tp(epsilon: float, lattice_bits: int = 24) -> UnitLaw:
    """Return the law of HM-TP of an epsilon: Three-Outputs alone up to about 0.610986."""
    from scipy.optimize import minimize_scalar

    lattice, few = piecewise(epsilon, "sub", lattice_bits), three_outputs(epsilon)
    of_both = list(zip(lattice.moments, few.moments, strict=True))

    def worst(share: float) -> float:
        return worst_quadratic(*(share * first + (1 - share) * second for first, second in of_both))

    found = minimize_scalar(worst, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
    return _mixture(float(found.x) if worst(found.x) < worst(0.0) else 0.0, lattice, few)
