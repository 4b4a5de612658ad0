r"""Laws of one number with the least error: on points by linear programming, on bins and knots by dynamic programming.

**Points.** A number is rounded at random to one of k even points :math:`v_i` of [-1, 1]. Point i is answered with value
:math:`y_j` with chance :math:`P_{ij}`. Over all laws with

.. math:: \sum_j P_{ij} = 1, \quad \sum_j P_{ij} y_j = v_i, \quad t_j \le P_{ij} \le e^\varepsilon t_j,

the squared error at x between two points is that of their mixture, linear in P, less :math:`x^2`. Its largest value,
or its mean over a prior, is minimized. Answers come from an even grid; those that the solution gives no weight are
left out. The solution is then rounded to integers out of 2^64 whose sums and means are exact, and epsilon is computed
from these.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from skldp._arrays import Floats, Ints
from skldp._checks import check_epsilon
from skldp.domains._domain import Box
from skldp.laws._categories import ResponseLaw
from skldp.laws._few_answers import PointsLaw, duchi
from skldp.laws._integers import IntegerLaw
from skldp.laws._numbers import PLACES, BinsLaw, KnotsLaw
from skldp.laws._odds import TWO_64
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.categorical._frequency import checked_prior
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._unit_mechanisms import UnitLawMechanism

# Below, Duchi's two answers are within 1% of the optimum; above, the points would have to be very many.
_FEW_EPSILON, _MOST_EPSILON = 0.25, 8.0
_MOST_BINS = 64
# Numbers of points and of places on the grid of answers, and its end over that of Duchi's answers, by largest epsilon.
_SIZES = ((2.5, 24, 65, 1.5), (4.0, 32, 65, 1.2), (6.5, 96, 65, 1.2), (_MOST_EPSILON, 112, 73, 1.05))
# Parts of epsilon left for rounding, each tried if the one before is too small; the chance from which an answer is one;
# and the least chance in the second solution.
_MARGINS, _SEEN, _LEAST = (2.0**-21, 2.0**-17, 2.0**-12), 1e-6, 1e-6


@dataclass(frozen=True)
class Points(UnitLawMechanism):
    """The best law of one number: rounded to points, with answers from a linear program; below 0.25 it is Duchi's."""

    # Epsilon is at most 8. A prior has weights of equal bins of [-1, 1] and counts as its mean with its mirror image.

    prior: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_weights(self.prior)

    @cached_property
    def integer_law(self) -> PointsLaw:
        if self.epsilon < _FEW_EPSILON:
            slope = duchi(self.epsilon).slope
            return PointsLaw(2, (-1, 1), (2**63 + slope, 2**63 - slope))
        return _solved(min(float(self.epsilon), _MOST_EPSILON), checked_weights(self.prior))

    @property
    def exact_epsilon(self) -> float:
        return self.integer_law.epsilon

    @property
    def loss_from_middle(self) -> float:
        """The largest log ratio of any two points."""
        return self.exact_epsilon

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance over all inputs: between two points it is a line less a square."""
        squares = self.integer_law.squares
        points = np.linspace(-1, 1, len(squares))
        slopes = np.diff(squares) / np.diff(points)
        peaks = np.clip(slopes / 2, points[:-1], points[1:])
        return float(self.variance(np.concatenate([points, peaks])).max())

    def original_squares(self, squares: Floats) -> Floats:
        """Raise ValueError: the mean of a released square is no function of that of the squares."""
        raise ValueError(f"{self!r} does not identify the squares of values: their releases are piecewise linear.")


def checked_weights(prior: npt.ArrayLike) -> tuple[float, ...]:
    """Return weights of bins as a tuple; raises ValueError for other ones."""
    weights = np.asarray(prior, dtype=np.float64)
    if weights.ndim != 1 or weights.size > _MOST_BINS:
        raise ValueError(f"A prior must have weights of at most {_MOST_BINS} equal bins; got {prior!r}.")
    if weights.size and not ((weights >= 0).all() and 0 < weights.sum() < math.inf):
        raise ValueError(f"A prior must have finite weights >= 0, not all of them 0; got {prior!r}.")
    return tuple(weights.tolist())


@lru_cache(maxsize=64)
def _solved(epsilon: float, prior: tuple[float, ...]) -> PointsLaw:
    """Return the law of an epsilon: solve, keep the answers with weight, solve again, round."""
    n_points, n_places, factor = next(size[1:] for size in _SIZES if epsilon <= size[0])
    grid = np.arange(1 - n_places, n_places, 2)
    unit = factor / math.tanh(epsilon / 2) / (n_places - 1)
    least = _program(epsilon, n_points, np.asarray(grid * unit), prior, 0.0)[1]
    seen = np.flatnonzero(np.maximum(least, least[::-1]) > _SEEN)
    places = grid[seen].tolist()
    for margin in _MARGINS:
        inside = epsilon * (1 - margin)
        table, least = _program(inside, n_points, np.asarray(grid[seen] * unit), prior, _LEAST)
        law = PointsLaw(n_points, tuple(places), _rounded(table, least, inside, places, unit))
        if law.epsilon <= epsilon:
            return law
    raise AssertionError("The rounded solution has a larger epsilon than asked for.")


def _program(
    epsilon: float, n_points: int, values: Floats, prior: tuple[float, ...], least: float
) -> tuple[Floats, Floats]:
    """Return the chances of the answers at points below 0, and the least chance of each answer at any point."""
    half, m, odds = n_points // 2, len(values), math.exp(epsilon)
    points = np.linspace(-1, 1, n_points)[:half]
    n, sides = half * m, np.minimum(np.arange(m), np.arange(m)[::-1])
    n_sides = (m + 1) // 2
    bound = sparse.csr_matrix((np.ones(n), (np.arange(n), np.tile(sides, half))), shape=(n, n_sides))
    squares = sparse.kron(sparse.eye(half), (values**2)[None])
    ones, empty = sparse.eye(n), sparse.csr_matrix((n, 1))
    equal = sparse.vstack([sparse.kron(sparse.eye(half), row[None]) for row in (np.ones(m), values)])
    equal = sparse.hstack([equal, sparse.csr_matrix((2 * half, n_sides + 1))]).tocsr()
    # At three numbers from each point to the next, and at 0.
    x = np.append((points[:-1, None] + np.diff(points)[:, None] * np.array([0, 0.5, 1])).reshape(-1), 0.0)
    near = np.maximum(1 - np.abs(np.minimum(x, points[-1])[:, None] - points) / (points[1] - points[0]), 0.0)
    worst = sparse.hstack(
        [sparse.csr_matrix(near) @ squares, sparse.csr_matrix((len(x), n_sides)), -np.ones((len(x), 1))]
    )
    most = sparse.vstack([sparse.hstack([ones, -odds * bound, empty]), sparse.hstack([-ones, bound, empty]), worst])
    cost = np.append(np.zeros(n + n_sides), 1.0)
    if prior:
        cost = np.append(squares.T @ _weights_of_points(np.array(prior), points), np.zeros(n_sides + 1))
    limits = [(0, None)] * n + [(least, None)] * n_sides + [(0, None)]
    right = np.concatenate([np.zeros(2 * n), x**2 if not prior else np.full(len(x), values[-1] ** 2)])
    found = linprog(
        cost,
        A_ub=most.tocsr(),
        b_ub=right,
        A_eq=equal,
        b_eq=np.concatenate([np.ones(half), points]),
        bounds=limits,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        raise AssertionError(f"The linear program of a law has no solution: {found.message}")
    return found.x[:n].reshape(half, m), found.x[n:-1][sides]


def _weights_of_points(prior: Floats, points: Floats) -> Floats:
    """Return the mean weight of rounding to each point below 0 or its mirror image, under a prior of bins."""
    fine = (np.arange(4096) + 0.5) / 2048 - 1
    weights = prior[((fine + 1) / 2 * len(prior)).astype(np.int64)] / prior.sum()
    size = np.minimum(-np.abs(fine), points[-1])
    near = np.maximum(1 - np.abs(size[:, None] - points) / (points[1] - points[0]), 0.0)
    return np.asarray(weights @ near * (len(prior) / 4096))


def _rounded(table: Floats, least: Floats, epsilon: float, places: list[int], unit: float) -> tuple[int, ...]:
    """Round chances to integers out of 2^64 whose sum and mean at each point are exact."""
    half, n_points = len(table), 2 * len(table)
    # The mean of place j at point i is (2 i - last) times this even integer.
    mean = 2 * math.floor(2.0**63 / (unit * (n_points - 1)))
    table = np.clip(table, least, math.exp(epsilon) * least)
    counts = []
    for i, row in enumerate(table):
        whole = [round(Fraction(chance) * TWO_64) for chance in row.tolist()]
        lacking = TWO_64 - sum(whole)
        moment = (2 * i - n_points + 1) * mean - sum(c * place for c, place in zip(whole, places, strict=True))
        # Two neighbors that have the most weight at every point take what rounding left.
        a = max(
            range(len(places) - 1), key=lambda j: min(least[j], least[j + 1]) if places[j + 1] - places[j] == 2 else 0
        )
        to_next = (moment - places[a] * lacking) // 2
        whole[a] += lacking - to_next
        whole[a + 1] += to_next
        counts += whole
    assert half * len(places) == len(counts)
    return tuple(counts)


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
