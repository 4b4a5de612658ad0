"""Simultaneous local ascents of many sums of the same functions with different counts.

The ascents find points, and therefore lower bounds. No proof depends on their quality. Two points whose loss exceeds a
budget suffice for a refusal: the exact decision would refuse too, since a certified bound exceeds the loss between any
two points.
"""

import numpy as np

from skldp._arrays import Floats
from skldp.accounting.losses._sigmoid_sum import SigmoidSum

_HALVINGS = 6
_N_SCATTERED = 512


def scattered(n_features: int) -> Floats:
    """Return points spread evenly over [-1, 1]^d, from a deterministic Weyl sequence, and nearby corners."""
    golden = 1.0
    for _ in range(30):
        golden = (1 + golden) ** (1 / (n_features + 1))
    steps = golden ** -np.arange(1.0, n_features + 1)
    points = 2.0 * (np.arange(1.0, _N_SCATTERED + 1)[:, None] * steps % 1.0) - 1.0
    return np.concatenate([points, np.sign(points)])


def totals(problem: SigmoidSum, counts: Floats, points: Floats) -> Floats:
    """Return the sum for each row of counts at its own point. Shapes: counts (k, n), points (k, d); returns (k,)."""
    found: Floats = (problem.value(points @ problem.weights.T + problem.offset) * counts).sum(axis=1)
    return found


def solved(stiffness: Floats, bent: Floats, weights: Floats, pull: Floats) -> Floats:
    """Solve a stack of systems (D + W' diag(h) W) x = b, each in its smaller form; return 0 after a failure."""
    # Shapes: stiffness (k, d), bent (k, n), weights (n, d), pull (k, d); returns (k, d).
    n, d = weights.shape
    give = 1 / stiffness
    try:
        if n < d:
            # Sherman-Morrison-Woodbury formula.
            root = np.sqrt(bent)
            inner = root[:, :, None] * ((weights * give[:, None, :]) @ weights.T) * root[:, None, :] + np.eye(n)
            first = give * pull
            rest = np.linalg.solve(inner, (root * (first @ weights.T))[:, :, None])[:, :, 0]
            found: Floats = first - give * ((root * rest) @ weights)
            return found
        moving = np.isfinite(stiffness)
        products = (weights[:, :, None] * weights[:, None, :]).reshape(n, d * d)
        system = np.where(moving[:, :, None] & moving[:, None, :], (bent @ products).reshape(-1, d, d), 0.0)
        system[:, np.arange(d), np.arange(d)] += np.where(moving, stiffness, 1.0)
        return np.linalg.solve(system, np.where(moving, pull, 0.0)[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return np.zeros_like(pull)


def stepped(
    problem: SigmoidSum, counts: Floats, points: Floats, values: Floats, arguments: Floats
) -> tuple[Floats, Floats]:
    """Take a projected Newton step of each row along the sum's concave part, halved until it improves the sum."""
    # Shapes: counts (k, n), points (k, d), values (k,), arguments (k, n); returns points (k, d), values (k,).
    slopes = (counts * problem.slope(arguments)) @ problem.weights
    bent = counts * np.maximum(-problem.curvature(arguments), 0.0)
    held = ((points >= 1.0) & (slopes > 0)) | ((points <= -1.0) & (slopes < 0))
    ridge = 1e-9 * np.maximum(bent @ (problem.weights**2).sum(axis=1), 1e-12) + 1e-14
    steps = solved(np.where(held, np.inf, ridge[:, None]), bent, problem.weights, slopes)
    points, values = points.copy(), values.copy()
    waiting = np.arange(len(points))
    for halving in range(_HALVINGS):
        tried = np.clip(points[waiting] + 0.5**halving * steps[waiting], -1.0, 1.0)
        reached = totals(problem, counts[waiting], tried)
        better = reached > values[waiting]
        points[waiting[better]], values[waiting[better]] = tried[better], reached[better]
        waiting = waiting[~better]
        if not len(waiting):
            break
    return points, values


def ascended(problem: SigmoidSum, counts: Floats, points: Floats, n_steps: int) -> tuple[Floats, Floats]:
    """Ascend from each point for at most `n_steps` steps, or until the gain is negligible."""
    # Shapes: counts (k, n), points (k, d); returns points (k, d), values (k,).
    points, values = points.copy(), totals(problem, counts, points)
    climbing = np.arange(len(points))
    for _ in range(n_steps):
        arguments = points[climbing] @ problem.weights.T + problem.offset
        before = values[climbing]
        points[climbing], values[climbing] = stepped(problem, counts[climbing], points[climbing], before, arguments)
        climbing = climbing[values[climbing] > before + 1e-9 * (1 + np.abs(before))]
        if not len(climbing):
            break
    return points, values
