"""Randomized response on bins of a number, the best bins under a public prior, and a private question for the prior."""

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints
from skldp._checks import check_epsilon
from skldp.domains._domain import Box
from skldp.laws._categories import ResponseLaw
from skldp.laws._integers import IntegerLaw
from skldp.laws._numbers import PLACES, BinsLaw, KnotsLaw
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.categorical._frequency import (
    checked_prior,
)
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse

# A coarse prior is divided into at least this many equal parts, whose edges are candidates for the bins.
_LEAST_PARTS = 64
_MOST_TURNS = 150


@dataclass(frozen=True)
class AnswerBins:
    """Places of bins in [-1, 1], their answers, and the expected square error of an answer."""

    places: tuple[float, ...]
    answers: tuple[float, ...]
    expected_loss: float


def refined_prior(prior: tuple[float, ...] | None) -> Floats:
    """Return the probabilities of at least 64 equal parts; None is the uniform prior."""
    mass = np.ones(1) if prior is None else np.asarray(prior, dtype=np.float64)
    times = -(-_LEAST_PARTS // mass.size)
    return np.repeat(mass / mass.sum() / times, times)


@lru_cache(maxsize=64)
def best_bins(epsilon: float, prior: tuple[float, ...] | None) -> AnswerBins:
    """Return the bins and answers of least expected square error (Ghazi et al., ICLR 2023, Algorithm 2)."""
    zeroth, first, second, edges = _moments(refined_prior(prior))
    other = math.exp(-epsilon)
    # Weighted moments, best answer and its loss of every interval between two edges.
    weighted = [other * sums[-1] + (1 - other) * (sums[None, :] - sums[:, None]) for sums in (zeroth, first, second)]
    answer = weighted[1] / np.maximum(weighted[0], np.finfo(float).tiny)
    loss = np.where(np.tri(edges.size, dtype=bool), math.inf, weighted[2] - weighted[1] * answer)
    best = np.full(edges.size, math.inf)
    best[0] = 0.0
    sources, least = [], (math.inf, 0)
    for k in range(1, edges.size):
        through = best[:, None] + loss
        sources.append(through.argmin(axis=0))
        best = through.min(axis=0)
        # Fewer bins where more are no better.
        least = min(least, (float(best[-1]) / (1 + (k - 1) * other), k))
    chosen = _traced(sources[: least[1]], edges.size - 1)
    answers = answer[chosen[:-1], chosen[1:]]
    return AnswerBins(tuple(edges[chosen[1:-1]].tolist()), tuple(answers.tolist()), least[0])


@lru_cache(maxsize=64)
def best_knots(epsilon: float, prior: tuple[float, ...] | None) -> AnswerBins:
    """Return the knots of unbiased randomized response with the least variance (Badanidiyuru et al., NeurIPS 2023)."""
    # With answers a_j = (v_j - q S) / (p - q) and -S^2 = min over l of l^2 - 2 l S, dynamic programming and the choice
    # of l alternate. The variance is a seventh above the least of any law.
    mass = refined_prior(prior)
    zeroth, first, second, edges = _moments(mass)
    mean, square = float(first[-1]), float(second[-1])
    parts = [sums[None, :] - sums[:, None] for sums in (zeroth, first)]
    # E[linear interpolation of v^2 between two knots], of the numbers between them.
    between = (edges[:, None] + edges[None, :]) * parts[1] - np.outer(edges, edges) * parts[0]
    between[np.tri(edges.size, dtype=bool)] = math.inf
    best: AnswerBins | None = None
    for k in range(2, edges.size + 1):
        inner = RandomizedResponse(epsilon, k)
        p, q = inner.support_probabilities()
        # The outer answers alone and the numbers, rounded to nothing, have at least this loss, which grows with k.
        if best is not None and 2 * q / (p - q) ** 2 + (square - mean**2) / (p - q) - square > best.expected_loss:
            break
        turned: set[float] = set()
        for start in (-k / 2, 0.0, k / 2):
            sum_of_knots, knots = start, None
            # Each turn lowers the loss, but for rounding; from where an earlier start has been it goes the same way.
            while sum_of_knots not in turned and len(turned) < _MOST_TURNS:
                turned.add(sum_of_knots)
                slope = 2 * q * (q * sum_of_knots + (p - q) * mean)
                knots = edges[_best_path((p - q) * between, q * edges**2 - slope * edges, k)]
                sum_of_knots = float(knots.sum())
            if knots is None:
                continue
            answers = (knots - q * sum_of_knots) / (p - q)
            weights = q + (p - q) * _weights(zeroth, first, edges, knots)
            loss = float(weights @ answers**2) - square
            if best is None or loss < best.expected_loss * (1 - 1e-9):
                best = AnswerBins(tuple(knots.tolist()), tuple(answers.tolist()), loss)
    assert best is not None
    return best


def _moments(mass: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return moments of order 0, 1 and 2 below each edge of the parts, and the edges."""
    edges = np.linspace(-1, 1, mass.size + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    squares = middles**2 + (2 / mass.size) ** 2 / 12
    zeroth, first, second = (np.append(0.0, np.cumsum(mass * power)) for power in (1.0, middles, squares))
    return zeroth, first, second, edges


def _best_path(steps: Floats, stops: Floats, k: int) -> Ints:
    """Return the k stops from the first to the last with the least sum of stops and steps."""
    best = np.full(stops.size, math.inf)
    best[0] = stops[0]
    sources, places, backward = [], np.arange(stops.size), np.ascontiguousarray(steps.T)
    for _ in range(k - 1):
        through = best + backward
        sources.append(through.argmin(axis=1))
        best = through[places, sources[-1]] + stops
    return _traced(sources, stops.size - 1)


def _traced(sources: list[Ints], last: int) -> Ints:
    """Return the path to the last place, from the source of each step."""
    path = [last]
    for source in reversed(sources):
        path.append(int(source[path[-1]]))
    return np.array(path[::-1])


def _weights(zeroth: Floats, first: Floats, edges: Floats, knots: Floats) -> Floats:
    """Return the probability that a number is rounded to each knot."""
    places = np.searchsorted(edges, knots)
    mass, moment = np.diff(zeroth[places]), np.diff(first[places])
    upward = (moment - knots[:-1] * mass) / np.diff(knots)
    weights: Floats = np.append(mass - upward, 0.0) + np.append(0.0, upward)
    return weights


_MOST_PARTS = 1024


@dataclass(frozen=True)
class ResponseOnBins(RowMechanism):
    """Randomized response on bins (Ghazi et al., ICLR 2023, Theorem 1), or unbiased on knots."""

    epsilon: float
    low: float = field(repr=False)
    high: float = field(repr=False)
    prior: tuple[float, ...] | None = None
    unbiased: bool = False

    has_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.prior is not None:
            object.__setattr__(self, "prior", checked_prior(self.prior, _MOST_PARTS))
        # Raises on invalid bounds, or an epsilon that is too small.
        _ = self.domain, self.inner

    @cached_property
    def domain(self) -> Box:
        return Box((self.low,), (self.high,))

    @cached_property
    def inner(self) -> RandomizedResponse:
        return RandomizedResponse(float(self.epsilon), len(self.unit_bins.answers))

    @property
    def integer_law(self) -> IntegerLaw:
        """The law of the response, with places and answers rounded to multiples of 2^-53: epsilon is the same."""
        if self.answers.size == 1:
            return super().integer_law
        response = ResponseLaw(*self.inner.code_counts[:2])
        numbers = (self.unit_bins.places, self.unit_bins.answers)
        places, answers = (tuple(round(one * PLACES) for one in part) for part in numbers)
        return KnotsLaw(response, places) if self.unbiased else BinsLaw(response, places, answers)

    @cached_property
    def answers(self) -> Floats:
        """Possible releases, ascending."""
        return self._of_unit(self.unit_bins.answers)

    @cached_property
    def places(self) -> Floats:
        """The inner edges of the bins; with ``unbiased=True`` the knots, of which the bounds are the outer ones."""
        return self._of_unit(self.unit_bins.places)

    @property
    def expected_loss(self) -> float:
        return float(self.domain.radius[0] ** 2 * self.unit_bins.expected_loss)

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.inner.exact_epsilon

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        basis = f"exact, of randomized response over {self.answers.size} answers, from its 64-bit integers"
        return PrivacyGuarantee(self.exact_epsilon, unit=unit, stated=float(self.epsilon), basis=basis)

    def output_law(self, values: npt.ArrayLike) -> Floats:
        """Return the probability of each answer for each of n values: shape (n, n_answers)."""
        inside = self._inside(values).reshape(-1)
        place, share = self._place_and_share(inside)
        law: Floats = self.inner.flip_matrix[place]
        if self.unbiased:
            law = law * (1 - share[:, None]) + self.inner.flip_matrix[place + 1] * share[:, None]
        return law

    def bias(self, values: npt.ArrayLike) -> Floats:
        """Return the mean of the answers minus each of n values: shape (n,)."""
        inside = self._inside(values).reshape(-1)
        return np.asarray(self.output_law(values) @ self.answers - inside)

    def variance(self, values: npt.ArrayLike) -> Floats:
        """Return the variance of the answers for each of n values: shape (n,)."""
        law = self.output_law(values)
        # About the middle: bounds far from 0 would lose digits.
        about = self.answers - self.domain.center[0]
        return np.asarray(law @ about**2 - (law @ about) ** 2)

    @cached_property
    def unit_bins(self) -> AnswerBins:
        """Bins or knots within [-1, 1], and their answers."""
        return (best_knots if self.unbiased else best_bins)(float(self.epsilon), self.prior)

    def _of_unit(self, unit: tuple[float, ...]) -> Floats:
        return np.asarray(self.domain.center + self.domain.radius * np.asarray(unit, dtype=np.float64))

    def _place_and_share(self, values: np.ndarray) -> tuple[Ints, Floats]:
        """Return the bin of each value, or the knot below it and the relative distance from that knot."""
        if not self.unbiased:
            return np.searchsorted(self.places, values, side="right"), np.empty(0)
        lower = np.searchsorted(self.places[1:-1], values, side="right")
        knots = self.places
        return lower, np.clip((values - knots[lower]) / (knots[lower + 1] - knots[lower]), 0.0, 1.0)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        codes, share = self._place_and_share(rows)
        if self.unbiased:
            codes = codes + (noise.uniform(rows.shape) < share)
        drawn = workspace.take("drawn", rows.shape, np.int64)
        self.inner._draw(np.ascontiguousarray(codes, dtype=np.int64), noise, drawn, workspace)
        out[...] = self.answers[drawn]
