r"""Distributions of numbers from answers of a lattice law: response to knots, and maximum likelihood shares."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints
from skldp.laws._lattice import LatticeLaw, bin_edges

_MOST_ITERATIONS = 20_000
_MOST_STEPS = 512


@dataclass(frozen=True)
class DistributionEstimate:
    """Maximum likelihood estimate of the shares of bins from n answers; the outer bins are half as wide."""

    edges: Floats
    shares: Floats
    n: int

    @classmethod
    def around(cls, knots: Floats, shares: Floats, n: int) -> Self:
        """Spread the share of each knot over a bin that ends halfway to its neighbours."""
        return cls(bin_edges(knots), shares, n)

    def cumulative(self, values: npt.ArrayLike) -> Floats:
        """Return the share of numbers up to each value, with even spread within bins."""
        sums = np.append(0.0, np.cumsum(self.shares))
        return np.asarray(np.interp(np.asarray(values, dtype=np.float64), self.edges, sums))

    def quantile(self, levels: npt.ArrayLike) -> Floats:
        """Return the number below which each share lies."""
        wanted = np.asarray(levels, dtype=np.float64)
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError("levels must be from 0 to 1; got others among them.")
        filled = np.flatnonzero(self.shares > 0)
        sums = np.append(0.0, np.cumsum(self.shares[filled]))
        bins = np.clip(np.searchsorted(sums, wanted, side="left") - 1, 0, len(filled) - 1)
        inside = np.clip((wanted - sums[bins]) / self.shares[filled][bins], 0.0, 1.0)
        starts, ends = self.edges[filled[bins]], self.edges[filled[bins] + 1]
        return np.asarray(starts + inside * (ends - starts))


def ramp_width(law: LatticeLaw, n: float) -> float:
    """Return the width of the ramps for n answers, whose bias is f/40 standard errors at f times the even density."""
    # A ramp is at least some cells wide.
    return float(np.clip((0.0025 * _unit_variance(law) / n) ** (1 / 3), 4 / law.reach, 0.125))


def quantile_knots(law: LatticeLaw, n: float) -> Floats:
    """Return knots of [-1, 1] to read quantiles of n answers from, a fifth of a standard error apart."""
    n_steps = math.ceil((n / (0.04 * _unit_variance(law))) ** (1 / 3))
    return np.linspace(-1.0, 1.0, max(4, min(n_steps, _MOST_STEPS)) + 1)


class Ramps:
    """Unbiased scores of the shares of numbers below places, from cells of a lattice: one for each of several ramps."""

    # The inner interval, m cells from the number's start on, has left the w cells of a ramp when the number passes
    # that. Cells of the ramp and those a multiple of m before it are w inner cells for numbers below it, and none for
    # those above; those after it the reverse. The score is the mean of both with the least variance for a uniform
    # answer.

    def __init__(self, law: LatticeLaw, tops: Floats, width: Floats, share: float) -> None:
        self._law = law
        # Rounded down: a number at a top is not below it.
        ends = np.floor(tops * law.reach + (law.n_cells - law.n_inner) // 2).astype(np.int64)
        cells = np.clip(np.rint(width * law.reach).astype(np.int64), 1, law.n_inner)
        starts = ends - cells

        def before(u: Ints) -> Ints:
            turns, rest = np.divmod(u - starts, law.n_inner)
            return np.asarray(turns * cells + np.minimum(rest, cells))

        zero, last = np.zeros_like(ends), np.full_like(ends, law.n_cells)
        lower, upper = before(ends) - before(zero), before(last) - before(np.minimum(ends - cells + law.n_inner, last))
        total = law.total
        self._starts, self._cells, self._weight = starts, cells, upper / (lower + upper)
        self._chances = share * law.base / total * np.stack([lower, upper])
        self._gain = share * law.extra / total * cells
        weight, gain = self._weight, self._gain
        other = 1 - weight - weight / gain * self._chances[0] + (1 - weight) / gain * self._chances[1]
        self.levels = np.stack([other + weight / gain, other, other - (1 - weight) / gain])

    def kinds(self, cells: Ints, ramp: int) -> Ints:
        """Return which of the three scores each answer has."""
        turns, rest = np.divmod(cells - self._starts[ramp], self._law.n_inner)
        is_hit = (rest < self._cells[ramp]) & (cells < self._law.n_cells)
        return np.where(is_hit, np.where(turns > 0, 2, 0), 1)

    def variances(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variances (n_ramps,) of one report's scores and covariances (n_ramps - 1,) with the next ramp."""
        before, after = self._chances + self._gain * np.stack([shares, 1 - shares])
        high, other, low = self.levels
        variances = high**2 * before + other**2 * (1 - before - after) + low**2 * after - shares**2
        # Hits of both have a remainder of both.
        turned, size = np.diff(self._starts) % self._law.n_inner, self._cells[1:]
        common = (np.maximum(size - turned, 0) + np.maximum(size + turned - self._law.n_inner, 0)) / size
        first, second = before[:-1], after[1:]
        between = np.maximum((before + after)[1:] - first - second, 0.0)
        (one, _), (two, last) = ((x[:-1], x[1:]) for x in (high - other, low - other))
        both = common * (one * (high - other)[1:] * first + two * (high - other)[1:] * between + two * last * second)
        return variances, both - (shares - other)[:-1] * (shares - other)[1:]

    def counts(self, cells: Ints) -> Ints:
        """Return the number of answers with each of the three scores, shape (3, n_ramps)."""
        m, inside = self._law.n_inner, cells[cells < self._law.n_cells]
        order = np.argsort(inside % m)
        inside, rests = inside[order], inside[order] % m
        # A hit has one of some remainders from that of the start on, in a circle.
        first = self._starts % m
        begin, stop, wrapped = np.searchsorted(rests, [first, first + self._cells, first + self._cells - m])
        hits, after = stop - begin + wrapped, np.zeros_like(first)
        for i in np.flatnonzero(hits):
            parts = inside[begin[i] : stop[i]], inside[: wrapped[i]]
            after[i] = sum(np.count_nonzero(part >= self._starts[i] + m) for part in parts)
        return np.stack([hits - after, len(cells) - hits, after])


def likeliest_shares(counts: Floats, response: Floats) -> Floats:
    """Return the likeliest shares of inputs (Li et al., SIGMOD 2020, Section 5.4, without its biased smoothing)."""
    given = np.flatnonzero(counts > 0)
    chances = response[:, given]
    return ascend(lambda shares: shares @ chances, lambda parts: chances @ parts, counts[given], len(response))


def ascend(
    mixture: Callable[[Floats], Floats],
    back: Callable[[Floats], Floats],
    counts: Floats,
    n_inputs: int,
    start: Floats | None = None,
    *,
    part: float = 1 / 8,
) -> Floats:
    """Maximize the likelihood of shares: SQUAREM (Varadhan and Roland, 2008, S3), stopped by Lindsay's bound (1983)."""
    slack = part * n_inputs / 2
    n, shares = float(counts.sum()), np.full(n_inputs, 1 / n_inputs) if start is None else start
    chances = mixture(shares)
    for _ in range(_MOST_ITERATIONS // 2):
        path = [shares]
        for _ in range(2):
            factors = back(counts / n / chances)
            if n * (factors.max() - 1) < slack:
                return np.asarray(path[-1], dtype=np.float64)
            moved = path[-1] * factors
            path.append(moved / moved.sum())
            chances = mixture(path[-1])
        first, shares = path[1] - path[0], path[2]
        bend = path[2] - path[1] - first
        scale = math.sqrt(float(first @ first) / max(float(bend @ bend), 1e-300))
        ahead = np.maximum(path[0] + 2 * scale * first + scale**2 * bend, 0.1 * path[2])
        ahead /= ahead.sum()
        chances_ahead = mixture(ahead)
        if counts @ np.log(chances_ahead) > counts @ np.log(chances):
            shares, chances = ahead, chances_ahead
    return np.asarray(shares, dtype=np.float64)


def _unit_variance(law: LatticeLaw) -> float:
    """Return the variance of one report's score of a share, times the width of its ramp."""
    return (law.total / law.extra) ** 2 / (8 * law.n_inner * law.reach)
