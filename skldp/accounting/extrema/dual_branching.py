r"""Certified maximum of a sum of S-shaped functions by branching on the answers' arguments.

A node restricts every argument :math:`v_i = w_i s + c_i` to an interval. For any multipliers :math:`\lambda`

.. math:: \max_s \sum_i m_i g_i(v_i) \le \sum_i m_i \max_{l_i \le v \le u_i} (g_i(v) - \lambda_i v)
          + \max_{s \in [-1, 1]^d} \sum_i m_i \lambda_i (w_i s + c_i),

and both maxima have closed forms. So the bound is certified whatever the multipliers are; subgradient steps, towards
the value that has to be proved and for hundreds of nodes at a time, make it tight. A child starts from its parent's
multipliers. The work depends on the number of answers more than on the number of features.
"""

import numpy as np
import numpy.typing as npt

from skldp.accounting.extrema.sigmoid_sum import SigmoidSum

__all__ = ["dual_bound", "maximum_by_dual_branching"]

Floats = npt.NDArray[np.float64]

_BATCH = 256
_ROOT_STEPS = 400
_STEPS = 24


def dual_bound(problem: SigmoidSum, multipliers: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Upper bounds of the sum over nodes, from any multipliers.

    Parameters
    ----------
    problem : SigmoidSum
    multipliers, low, high : ndarray of shape (k, n)

    Returns
    -------
    bounds : ndarray of shape (k,)
    corners : ndarray of shape (k, d)
        Where the affine part peaks.
    mismatch : ndarray of shape (k, n)
        The arguments at the corner minus those where the separate parts peak: a subgradient with respect to
        ``count * multipliers``.
    """
    height, place = problem.conjugate_and_place(multipliers, low, high)
    scaled = multipliers * problem.count
    tilt = scaled @ problem.weights
    corners = np.where(tilt >= 0, 1.0, -1.0)
    bounds = height @ problem.count + scaled @ problem.offset + np.abs(tilt).sum(axis=1) + problem.slack(multipliers)
    return bounds, corners, corners @ problem.weights.T + problem.offset - place


def maximum_by_dual_branching(
    problem: SigmoidSum,
    *,
    tol: float,
    start: tuple[float, Floats],
    max_nodes: int,
    at_most: float = -np.inf,
    above: float = np.inf,
) -> tuple[float, float, Floats]:
    """Best-first branch and bound over intervals of the arguments.

    Parameters and returned values are those of :func:`skldp.accounting.extrema.branch_and_bound.maximum_by_branching`.
    """
    lower, point = start
    low, high = problem.low[None, :].copy(), problem.high[None, :].copy()
    multipliers = problem.envelope_slope(low, high, (problem.weights @ point + problem.offset)[None, :])
    primal = point[None, :]
    goal = max(at_most, lower + tol)
    bounds, multipliers, primal = _tighten(problem, multipliers, low, high, primal, goal, _ROOT_STEPS)
    proved = -np.inf
    seen = 1
    while True:
        inside = np.clip(primal, -1.0, 1.0)
        totals = problem.total(inside) if len(inside) else np.array([-np.inf])
        if totals.max() > lower:
            lower, point = float(totals.max()), inside[totals.argmax()]
        upper = max(lower, proved, float(bounds.max(initial=-np.inf)))
        if upper - lower <= tol or upper <= at_most or lower > above or seen >= max_nodes:
            return lower, upper, point
        goal = max(at_most, lower + tol)
        order = np.argsort(-bounds, kind="stable")
        chosen, rest = order[:_BATCH], order[_BATCH:]
        child_low, child_high = _split(problem, low[chosen], high[chosen], primal[chosen])
        found = _tighten(
            problem,
            np.tile(multipliers[chosen], (2, 1)),
            child_low,
            child_high,
            np.tile(primal[chosen], (2, 1)),
            goal,
            _STEPS,
        )
        seen += 2 * len(chosen)
        bounds = np.concatenate([bounds[rest], np.minimum(found[0], np.tile(bounds[chosen], 2))])
        keep = bounds > goal
        proved = max(proved, float(bounds[~keep].max(initial=-np.inf)))
        low, high = (np.concatenate([old[rest], new])[keep] for old, new in ((low, child_low), (high, child_high)))
        multipliers = np.concatenate([multipliers[rest], found[1]])[keep]
        primal = np.concatenate([primal[rest], found[2]])[keep]
        bounds = bounds[keep]


def _tighten(
    problem: SigmoidSum,
    multipliers: Floats,
    low: Floats,
    high: Floats,
    primal: Floats,
    goal: float,
    n_steps: int,
) -> tuple[Floats, Floats, Floats]:
    """Improve multipliers by deflected Polyak steps; return the best bounds, their multipliers and mean corners."""
    width = np.maximum(problem.high - problem.low, 1e-300)
    result_bounds, result_multipliers, result_primal = np.full(len(low), np.inf), multipliers.copy(), primal.copy()
    active = np.arange(len(low))
    direction = np.zeros_like(multipliers)
    for step in range(n_steps):
        bounds, corners, mismatch = dual_bound(problem, multipliers, low, high)
        better = bounds < result_bounds[active]
        result_bounds[active[better]] = bounds[better]
        result_multipliers[active[better]] = multipliers[better]
        weight = max(1.0 / (step + 1.0), 1.0 / 64) if n_steps > _STEPS else 1.0 / 16
        result_primal[active] += weight * (corners - result_primal[active])
        still = result_bounds[active] > goal
        if not still.any():
            break
        if not still.all():
            active, multipliers, direction = active[still], multipliers[still], direction[still]
            bounds, mismatch = bounds[still], mismatch[still]
            low, high = low[still], high[still]
        # In units of each argument's own range, so that steep and flat answers move alike.
        gradient = mismatch / width
        size = (direction**2).sum(axis=1)
        turn = (gradient * direction).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            deflect = np.where((turn < 0) & (size > 0), -1.5 * turn / size, 0.0)
        direction = gradient + deflect[:, None] * direction
        size = (direction**2).sum(axis=1)
        target = goal - 0.1 * np.maximum(result_bounds[active] - goal, 0.0) - 1e-9
        length = np.where(size > 1e-200, (bounds - target) / np.maximum(size, 1e-200), 0.0)
        multipliers = multipliers - length[:, None] * direction / width / problem.count
    return result_bounds, result_multipliers, result_primal


def _split(problem: SigmoidSum, low: Floats, high: Floats, primal: Floats) -> tuple[Floats, Floats]:
    """Cut the answer whose majorant is loosest at the mean corner, there or near."""
    at = np.clip(np.clip(primal, -1, 1) @ problem.weights.T + problem.offset, low, high)
    # Half way along the majorant's straight piece it is about as loose as it gets: that gap shrinks with the interval,
    # while the mean corner may mislead.
    inside = (low + problem.tangent_point(low, high)) / 2
    seen = _looseness(problem, low, high, at)
    possible = 0.3 * _looseness(problem, low, high, inside)
    rows = np.arange(len(low))
    which = np.maximum(seen, possible).argmax(axis=1)
    place = np.where(seen >= possible, at, inside)[rows, which]
    start, end = low[rows, which], high[rows, which]
    margin = 0.2 * (end - start)
    cut = np.clip(place, start + margin, end - margin)
    left_high, right_low = high.copy(), low.copy()
    left_high[rows, which] = cut
    right_low[rows, which] = cut
    return np.concatenate([low, right_low]), np.concatenate([left_high, high])


def _looseness(problem: SigmoidSum, low: Floats, high: Floats, at: Floats) -> Floats:
    """How far the least concave majorant of each answer lies above it."""
    slope = problem.envelope_slope(low, high, at)
    return problem.count * (problem.conjugate(slope, low, high) + slope * at - problem.value(at))
