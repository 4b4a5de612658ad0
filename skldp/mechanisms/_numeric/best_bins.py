r"""The best bins to answer with about one number, under a public prior: by dynamic programming over equal parts.

Everything here is about the choice of a law, of which each one is private: numbers are doubles, and what is sampled is
certified elsewhere. The interval of the number is [-1, 1], and its prior is uniform within each of equal parts.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._categorical.randomized_response import RandomizedResponse

__all__ = ["Bins", "best_bins", "best_knots", "refined_prior"]

# A coarse prior is cut into at least so many equal parts, whose edges are what bins may begin at.
_LEAST_PARTS = 64
_MOST_TURNS = 50


@dataclass(frozen=True)
class Bins:
    """Where bins lie in [-1, 1], what each is answered with, and the expected square of an answer's error.

    Parameters
    ----------
    places : tuple of float
        The inner edges of bins, or the knots between which a number is rounded at random.
    answers : tuple of float
        Ascending.
    expected_loss : float
        Under the prior.
    """

    places: tuple[float, ...]
    answers: tuple[float, ...]
    expected_loss: float


def refined_prior(prior: tuple[float, ...] | None) -> npt.NDArray[np.float64]:
    """Probabilities of at least 64 equal parts, of those of fewer, or of none for the uniform prior.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.best_bins import refined_prior
    >>> refined_prior((0.75, 0.25)).shape, float(refined_prior((0.75, 0.25))[0] * 32)
    ((64,), 0.75)
    """
    mass = np.ones(1) if prior is None else np.asarray(prior, dtype=np.float64)
    times = -(-_LEAST_PARTS // mass.size)
    return np.repeat(mass / mass.sum() / times, times)


@lru_cache(maxsize=64)
def best_bins(epsilon: float, prior: tuple[float, ...] | None) -> Bins:
    r"""The bins of randomized response on bins that answer with the least expected square error.

    Notes
    -----
    Of k bins, each answered with :math:`a_j`, the expected loss is the sum over j of

    .. math:: \frac{E[(y - a_j)^2 (e^{-\varepsilon} + (1 - e^{-\varepsilon}) 1\{y \in B_j\})]}
              {1 + (k - 1) e^{-\varepsilon}}

    so that the best answer of a bin depends on this bin alone, and so does its part of the loss.

    References
    ----------
    Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Regression with label differential privacy", ICLR
    2023, Theorem 1 and Algorithm 2.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.best_bins import best_bins
    >>> [round(answer, 4) for answer in best_bins(1.0, None).answers]
    [-0.2311, 0.2311]
    """
    zeroth, first, second, edges = _moments(refined_prior(prior))
    other = math.exp(-epsilon)
    # Of every interval from one edge to another: weighted moments, the best answer, and its loss.
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
    return Bins(tuple(edges[chosen[1:-1]].tolist()), tuple(answers.tolist()), least[0])


@lru_cache(maxsize=64)
def best_knots(epsilon: float, prior: tuple[float, ...] | None) -> Bins:
    r"""The knots of unbiased randomized response, between which a number is rounded at random, of least variance.

    Notes
    -----
    A number between two knots is taken to either, so that its mean stays; the knot is released by randomized response
    that keeps it with probability p and gives each other one with q. Answers :math:`a_j = (v_j - q S) / (p - q)`, with
    S the sum of the knots, then are unbiased. With w_j the probability of knot j under the prior and its rounding,

    .. math:: (p - q)^2 E[a^2] = \sum_j (q + (p - q) w_j) v_j^2 - q^2 S^2 - 2 q (p - q) E[y] S

    where :math:`-S^2 = \min_\lambda \lambda^2 - 2 \lambda S`: for each :math:`\lambda` this is a sum over neighbouring
    knots, of which dynamic programming finds the best. The two minimisations alternate from several starts.

    References
    ----------
    Badanidiyuru, Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Optimal unbiased randomizers for
    regression with label differential privacy", NeurIPS 2023: the best of all unbiased laws, by linear programming.
    This family, whose law is known to the last bit for every number and not for a grid of them alone, has at most
    about a seventh more variance.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.best_bins import best_knots
    >>> [round(answer, 4) for answer in best_knots(1.0, None).answers]
    [-2.7459, 0.0, 2.7459]
    """
    mass = refined_prior(prior)
    zeroth, first, second, edges = _moments(mass)
    mean, square = float(first[-1]), float(second[-1])
    parts = [sums[None, :] - sums[:, None] for sums in (zeroth, first)]
    # E[linear interpolation of v^2 between two knots], of the numbers between them.
    between = (edges[:, None] + edges[None, :]) * parts[1] - np.outer(edges, edges) * parts[0]
    between[np.tri(edges.size, dtype=bool)] = math.inf
    best: Bins | None = None
    for k in range(2, edges.size + 1):
        inner = RandomizedResponse(epsilon, k)
        p, q = inner.support_probabilities()
        for start in (-1.0, 0.0, 1.0):
            sum_of_knots, knots = start * k / 2, edges
            # Each turn lowers the loss, but for rounding.
            for _ in range(_MOST_TURNS):
                slope = 2 * q * (q * sum_of_knots + (p - q) * mean)
                knots = edges[_best_path((p - q) * between, q * edges**2 - slope * edges, k)]
                if float(knots.sum()) == sum_of_knots:
                    break
                sum_of_knots = float(knots.sum())
            answers = (knots - q * sum_of_knots) / (p - q)
            weights = q + (p - q) * _weights(zeroth, first, edges, knots)
            loss = float(weights @ answers**2) - square
            if best is None or loss < best.expected_loss * (1 - 1e-9):
                best = Bins(tuple(knots.tolist()), tuple(answers.tolist()), loss)
    assert best is not None
    return best


def _moments(
    mass: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Moments of order 0, 1 and 2 below each edge of the parts, and the edges."""
    edges = np.linspace(-1, 1, mass.size + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    squares = middles**2 + (2 / mass.size) ** 2 / 12
    zeroth, first, second = (np.append(0.0, np.cumsum(mass * power)) for power in (1.0, middles, squares))
    return zeroth, first, second, edges


def _best_path(steps: npt.NDArray[np.float64], stops: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.int64]:
    """The k stops from the first to the last, with the least sum of stops and of steps between them."""
    best = np.full(stops.size, math.inf)
    best[0] = stops[0]
    sources = []
    for _ in range(k - 1):
        through = best[:, None] + steps
        sources.append(through.argmin(axis=0))
        best = through.min(axis=0) + stops
    return _traced(sources, stops.size - 1)


def _traced(sources: list[npt.NDArray[np.int64]], last: int) -> npt.NDArray[np.int64]:
    """The way back from the last place: where each step came from."""
    path = [last]
    for source in reversed(sources):
        path.append(int(source[path[-1]]))
    return np.array(path[::-1])


def _weights(
    zeroth: npt.NDArray[np.float64],
    first: npt.NDArray[np.float64],
    edges: npt.NDArray[np.float64],
    knots: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """How likely a number is rounded to each knot."""
    places = np.searchsorted(edges, knots)
    mass, moment = np.diff(zeroth[places]), np.diff(first[places])
    upward = (moment - knots[:-1] * mass) / np.diff(knots)
    weights: npt.NDArray[np.float64] = np.append(mass - upward, 0.0) + np.append(0.0, upward)
    return weights
