r"""The concave relaxations of many nodes at once, for the multipliers that bound them.

In a node every argument :math:`v_i = w_i s + c_i` is kept to an interval, and its function is replaced by its least
concave majorant there: a smooth concave function less a few kinks :math:`J \max(0, v - p)`. An interval's ends are
kinks too, steep enough to keep the argument inside, so that every node has a solution. The sum's maximum over the box
is found by a primal-dual interior-point method, with two slacks for a kink: y and y - J (v - p), whose multipliers add
up to 1 (Wright 1997). All nodes take their steps together, as one stack of small matrices.

Nothing here is a bound. The majorants' slopes, where the search stands, are multipliers, and :func:`dual_bound` holds
for any.

References
----------
S. J. Wright, "Primal-Dual Interior-Point Methods", 1997, Chapters 1 and 5.
"""

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.ascent import solved
from skldp.accounting._extrema.sampled_law import Floats
from skldp.accounting._extrema.sigmoid_sum import SigmoidSum

__all__ = ["dual_bound", "relaxed"]

# What leaves its interval by half of its range costs all that the answers can give.
_STEEPNESS = 2.0
_LAST_GAP = 1e-5
_ROUGHLY = 0.5
# How much of the complementarity a step leaves, if it is not cut short.
_CENTRING = 0.2
_MAX_STEPS = 16


def dual_bound(
    problem: SigmoidSum, multipliers: Floats, low: Floats, high: Floats, offset: Floats | None = None
) -> Floats:
    """Upper bounds of the sum over nodes, from any multipliers.

    Shapes: multipliers, low, high (k, n), offset (k, n); returns (k,).
    """
    height = problem.conjugate(multipliers, low, high)
    scaled = multipliers * problem.count
    tilt = np.abs(scaled @ problem.weights).sum(axis=1)
    still = scaled @ problem.offset if offset is None else (scaled * offset).sum(axis=1)
    bounds: Floats = height @ problem.count + still + tilt + problem.slack(multipliers)
    return bounds


def relaxed(
    problem: SigmoidSum,
    low: Floats,
    high: Floats,
    tangent: Floats,
    start: Floats,
    goal: float,
    offset: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Solve the relaxations of some nodes, each until its bound is at most `goal` or about as good as it gets.

    Shapes: low, high (k, n), tangent (k, n), start (k, d), offset (k, n); returns bounds (k,), multipliers (k, n),
    peaks (k, d).
    """
    bounds, multipliers, peaks = np.full(len(low), np.inf), np.zeros(low.shape), start.copy()
    own = np.broadcast_to(problem.offset, low.shape) if offset is None else offset
    active, path = np.arange(len(low)), _Path(problem, low, high, tangent, start, own)
    for _ in range(_MAX_STEPS):
        slopes = path.slopes
        found = dual_bound(problem, slopes, path.low, path.high, path.offset)
        better = found < bounds[active]
        rows = active[better]
        bounds[rows], multipliers[rows] = found[better], slopes[better]
        peaks[active] = path.point
        # What lies well above the goal will be cut in any case, and needs no more than a rough bound.
        enough = np.maximum(_LAST_GAP, _ROUGHLY * (bounds[active] - goal) if np.isfinite(goal) else 0.0)
        going = np.flatnonzero((bounds[active] > goal) & (path.gap > enough))
        if not len(going):
            break
        if len(going) < len(active):
            active = active[going]
            path.keep(going)
        path.step()
    return bounds, multipliers, peaks


class _Path:
    """Where each node's search stands.

    Parameters
    ----------
    problem, low, high, tangent, start, offset
        As in :func:`relaxed`.

    Attributes
    ----------
    point : ndarray of shape (k, d)
    slopes : ndarray of shape (k, n)
        Of the majorants, with a share of each kink.
    gap : ndarray of shape (k,)
        The products of slacks and their multipliers, summed up: about how far the bound is from the maximum.
    """

    def __init__(
        self, problem: SigmoidSum, low: Floats, high: Floats, tangent: Floats, start: Floats, offset: Floats
    ) -> None:
        self.problem, self.low, self.high, self._tangent, self.offset = problem, low, high, tangent, offset
        last = np.where(problem.logistic, np.inf, 0.0 if problem.flipped else 1.0)
        # Where a majorant turns flat, or its interval ends.
        self._end = np.maximum(np.minimum(high, last), low)
        run = tangent - low
        with np.errstate(divide="ignore", invalid="ignore"):
            self._chord = np.where(run > 0, (problem.value(tangent) - problem.value(low)) / run, 0.0)
        steep = _STEEPNESS * (problem.count @ problem.epsilon) / np.maximum(2 * problem.spread, 1e-6)
        drop = np.where((tangent >= self._end) & (run > 0), self._chord, problem.slope(self._end))
        # The kinks of each majorant, J and p: at either end of the interval, and where a ramp ends.
        jumps = (
            np.where(low > offset - problem.spread, -steep, 0.0),
            np.where(high < offset + problem.spread, steep, 0.0),
            np.where((low < last) & (last < high), drop, 0.0),
        )
        self._jump, self._place = np.stack(jumps, axis=1), np.stack([low, high, self._end], axis=1)
        self.point = np.clip(start, -0.95, 0.95)
        self._move_to(self.point)
        # Every slack times its multiplier is as large as what an answer can give.
        each = float(problem.count @ problem.epsilon) / len(problem.count)
        first = each / problem.count
        self._over = (self._passed + 2 * first + np.hypot(self._passed, 2 * first)) / 2
        with np.errstate(divide="ignore"):
            # Either form, where it does not cancel.
            beyond = first * self._over / (self._over - first)
        self._under = np.where(self._passed > 0, beyond, self._over - self._passed)
        self._over_dual, self._under_dual = first / self._over, first / self._under
        self._low_dual = each / (1 + self.point)
        self._high_dual = each / (1 - self.point)

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Go on with some of the nodes alone."""
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, values[rows])

    @property
    def slopes(self) -> Floats:
        slopes: Floats = self._smooth - (self._jump * self._under_dual).sum(axis=1)
        return slopes

    @property
    def gap(self) -> Floats:
        kinks = self._over * self._over_dual + self._under * self._under_dual
        sides = (1 + self.point) * self._low_dual + (1 - self.point) * self._high_dual
        gap: Floats = (kinks @ self.problem.count).sum(axis=1) + sides.sum(axis=1)
        return gap

    def step(self) -> None:
        """Take one Newton step towards a smaller complementarity, as far as all slacks stay positive."""
        count, weights = self.problem.count, self.problem.weights
        aim = _CENTRING * self.gap[:, None] / (2 * (self._over[0].size + self.point.shape[1]))
        each = (aim / count)[:, None, :]
        softness = self._under / self._under_dual + self._over / self._over_dual
        excess = each / self._under_dual - each / self._over_dual + self._passed
        pull = self._smooth - (self._jump * (self._under_dual + excess / softness)).sum(axis=1)
        bent = self._curvature - (self._jump**2 / softness).sum(axis=1)
        below, above = 1 + self.point, 1 - self.point
        gradient = (count * pull) @ weights + aim / below - aim / above
        stiffness = self._low_dual / below + self._high_dual / above
        move = solved(stiffness, -count * bent, weights, gradient)
        passed = self._jump * (move @ weights.T)[:, None, :]
        under_dual = (passed + excess) / softness
        over = (each + self._over * under_dual) / self._over_dual - self._over
        under = over - passed
        low_dual = (aim - self._low_dual * move) / below - self._low_dual
        high_dual = (aim + self._high_dual * move) / above - self._high_dual
        share = np.ones(len(move))
        for now, change in (
            (self._over, over),
            (self._under, under),
            (self._over_dual, -under_dual),
            (self._under_dual, under_dual),
            (self._low_dual, low_dual),
            (self._high_dual, high_dual),
            (below, move),
            (above, -move),
        ):
            # 0.95 of the way to where the first of them would be 0.
            fastest = (-change / now).reshape(len(move), -1).max(axis=1)
            share = np.minimum(share, 0.95 / np.maximum(fastest, 0.95))
        self.point = self.point + share[:, None] * move
        self._low_dual += share[:, None] * low_dual
        self._high_dual += share[:, None] * high_dual
        share = share[:, None, None]
        self._over += share * over
        self._under += share * under
        self._over_dual -= share * under_dual
        self._under_dual += share * under_dual
        self._move_to(self.point)

    def _move_to(self, point: Floats) -> None:
        problem = self.problem
        arguments = point @ problem.weights.T + self.offset
        self._passed = self._jump * (arguments[:, None, :] - self._place)
        inside = np.clip(arguments, self.low, self._end)
        on_chord = (inside <= self._tangent) & (self._tangent > self.low)
        is_flat = ~problem.logistic & (self.low >= (0.0 if problem.flipped else 1.0))
        self._smooth = np.where(is_flat, 0.0, np.where(on_chord, self._chord, problem.slope(inside)))
        straight = on_chord | is_flat | (arguments <= self.low) | (arguments >= self._end)
        self._curvature = np.where(straight, 0.0, problem.curvature(inside))
