r"""The law of one number with the least worst-case or mean squared error, by linear programming.

A number is rounded at random to one of k even points :math:`v_i` of [-1, 1]. Point i is answered with value
:math:`y_j` with chance :math:`P_{ij}`. Over all laws with

.. math:: \sum_j P_{ij} = 1, \quad \sum_j P_{ij} y_j = v_i, \quad t_j \le P_{ij} \le e^\varepsilon t_j,

the squared error at x between two points is that of their mixture, linear in P, less :math:`x^2`. Its largest value,
or its mean over a prior, is minimized. Answers come from an even grid; those that the solution gives no weight are
left out. The solution is then rounded to integers out of 2^64 whose sums and means are exact, and epsilon is computed
from these.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from skldp.laws._few_answers import duchi
from skldp.laws._odds import TWO_64
from skldp.laws._points_law import PointsLaw
from skldp.mechanisms.numeric._unit_mechanisms import UnitLawMechanism

_Floats = npt.NDArray[np.float64]
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

    def original_squares(self, squares: _Floats) -> _Floats:
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
    epsilon: float, n_points: int, values: _Floats, prior: tuple[float, ...], least: float
) -> tuple[_Floats, _Floats]:
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


def _weights_of_points(prior: _Floats, points: _Floats) -> _Floats:
    """Return the mean weight of rounding to each point below 0 or its mirror image, under a prior of bins."""
    fine = (np.arange(4096) + 0.5) / 2048 - 1
    weights = prior[((fine + 1) / 2 * len(prior)).astype(np.int64)] / prior.sum()
    size = np.minimum(-np.abs(fine), points[-1])
    near = np.maximum(1 - np.abs(size[:, None] - points) / (points[1] - points[0]), 0.0)
    return np.asarray(weights @ near * (len(prior) / 4096))


def _rounded(table: _Floats, least: _Floats, epsilon: float, places: list[int], unit: float) -> tuple[int, ...]:
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
