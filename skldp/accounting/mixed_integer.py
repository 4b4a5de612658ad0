"""Certified maximum of a sum of S-shaped functions by a mixed-integer relaxation, refined where it is loose.

Every answer's g is replaced by a piecewise-linear majorant: pieces of its range, chosen by binary variables, with a few
straight lines above g on each. HiGHS maximises the relaxation; where the majorant lies above g at the solution, a line is
added (on a concave piece) or the piece is cut there (on a convex one), until the relaxation's bound meets the sum at its
own solution. The work depends on the number of answers more than on the number of features.

The solver's bound is not taken as exact: its feasibility and optimality tolerances, times the number of columns they
apply to, are added to it. All columns lie in [0, 1] or [-1, 1], and all slopes are per unit of those.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from skldp.accounting.sigmoid_sum import SigmoidSum

__all__ = ["maximum_by_pieces"]

Floats = npt.NDArray[np.float64]

# HiGHS: primal and dual feasibility 1e-7, absolute gap 1e-6.
_SOLVER_TOLERANCE = 2e-7
_SOLVER_GAP = 1e-6
_FIRST_LINES = (0.0, 0.2, 0.5, 0.8, 1.0)


def maximum_by_pieces(
    problem: SigmoidSum,
    *,
    tol: float,
    start: tuple[float, Floats],
    max_nodes: int,
    at_most: float = -np.inf,
    above: float = np.inf,
    max_rounds: int = 40,
) -> tuple[float, float, Floats]:
    """Solve and refine the relaxation over the box [-1, 1]^d.

    Parameters and returned values are those of :func:`skldp.accounting.branch_and_bound.maximum_by_branching`;
    `max_nodes` limits the solver's nodes in each of at most `max_rounds` rounds.
    """
    lower, point = start
    upper = float(problem.count @ problem.value(problem.high))
    pieces = [_Piecewise(problem, row) for row in range(len(problem.weights))]
    for _ in range(max_rounds):
        if upper - lower <= tol or upper <= at_most or lower > above:
            break
        bound, solution = _solve(problem, pieces, max_nodes)
        upper = min(upper, bound)
        if solution is None:
            break
        candidate = np.clip(solution, -1.0, 1.0)
        value = float(problem.total(candidate[None, :])[0])
        if value > lower:
            lower, point = value, candidate
        arguments = problem.weights @ candidate + problem.offset
        looseness = np.array([p.above(v) for p, v in zip(pieces, arguments, strict=True)]) * problem.count
        wanted = max(looseness.sum() / (4 * len(pieces)), tol / (8 * len(pieces)))
        refined = [p.refine(v) for p, v, loose in zip(pieces, arguments, looseness, strict=True) if loose > wanted]
        if not any(refined):
            break
    return lower, upper, point


@dataclass
class _Piecewise:
    """A piecewise-linear majorant of one answer's g: pieces, each with lines above g on it."""

    problem: SigmoidSum
    row: int
    one: SigmoidSum = field(init=False)
    ends: list[float] = field(init=False)
    lines: list[list[tuple[float, float]]] = field(init=False)

    def __post_init__(self) -> None:
        self.one = self.problem.part(np.array([self.row]))
        self.ends = [float(self.one.low[0]), float(self.one.high[0])]
        self.lines = [self._lines(*self.ends)]

    def _lines(self, low: float, high: float) -> list[tuple[float, float]]:
        tangent = float(self.one.tangent_point(np.array([low]), np.array([high]))[0])
        first = max(low, tangent)
        places = [low] if tangent > low else []
        places += [first + fraction * (high - first) for fraction in _FIRST_LINES] if first < high else []
        lines = [self._line(low, high, place) for place in places]
        return list(dict.fromkeys(lines)) or [self._line(low, high, low)]

    def _line(self, low: float, high: float, at: float) -> tuple[float, float]:
        slope = self.one.envelope_slope(np.array([low]), np.array([high]), np.array([at]))
        return float(slope[0]), float(self.one.conjugate(slope, np.array([low]), np.array([high]))[0])

    def _piece(self, v: float) -> int:
        return int(np.clip(np.searchsorted(self.ends, v) - 1, 0, len(self.lines) - 1))

    def above(self, v: float) -> float:
        lines = self.lines[self._piece(v)]
        return min(slope * v + intercept for slope, intercept in lines) - float(self.one.value(np.array([v]))[0])

    def refine(self, v: float) -> bool:
        k = self._piece(v)
        low, high = self.ends[k], self.ends[k + 1]
        tangent = float(self.one.tangent_point(np.array([low]), np.array([high]))[0])
        if v >= tangent:
            line = self._line(low, high, v)
            if line in self.lines[k]:
                return False
            self.lines[k].append(line)
            return True
        if high - low < 1e-9 * (self.ends[-1] - self.ends[0]):
            return False
        margin = 0.1 * (high - low)
        cut = float(np.clip(v, low + margin, high - margin))
        self.ends.insert(k + 1, cut)
        self.lines[k : k + 1] = [self._lines(low, cut), self._lines(cut, high)]
        return True


def _solve(problem: SigmoidSum, pieces: list[_Piecewise], max_nodes: int) -> tuple[float, Floats | None]:
    """A bound on the relaxation's maximum, and where it peaks (None if the solver has no point)."""
    n_answers, n_features = problem.weights.shape
    rows: list[int] = []
    columns: list[int] = []
    entries: list[float] = []
    row_low: list[float] = []
    row_high: list[float] = []
    objective = [0.0] * n_features
    is_binary = [0] * n_features
    column_low, column_high = [-1.0] * n_features, [1.0] * n_features

    def add_row(terms: list[tuple[int, float]], low: float, high: float) -> None:
        for column, entry in terms:
            rows.append(len(row_low))
            columns.append(column)
            entries.append(entry)
        row_low.append(low)
        row_high.append(high)

    constant = 0.0
    for i, piecewise in enumerate(pieces):
        start, width = piecewise.ends[0], piecewise.ends[-1] - piecewise.ends[0]
        base = float(piecewise.one.value(np.array([start]))[0])
        constant += problem.count[i] * base
        link = [(j, -w / width) for j, w in enumerate(problem.weights[i]) if w != 0]
        chosen = []
        several = len(piecewise.lines) > 1
        for k, lines in enumerate(piecewise.lines):
            at, gain, chooser = len(objective), len(objective) + 1, len(objective) + 2
            low, high = ((end - start) / width for end in piecewise.ends[k : k + 2])
            objective += [0.0, problem.count[i]] + [0.0] * several
            is_binary += [0, 0] + [1] * several
            column_low += [0.0, 0.0] + [0.0] * several
            column_high += [1.0, np.inf] + [1.0] * several
            link.append((at, 1.0))
            if several:
                chosen.append((chooser, 1.0))
                add_row([(at, 1.0), (chooser, -low)], 0.0, np.inf)
                add_row([(at, 1.0), (chooser, -high)], -np.inf, 0.0)
            for slope, intercept in lines:
                # In units of the range: y <= slope (start + width u) + intercept - base.
                level = slope * start + intercept - base
                if several:
                    add_row([(gain, 1.0), (at, -slope * width), (chooser, -level)], -np.inf, 0.0)
                else:
                    add_row([(gain, 1.0), (at, -slope * width)], -np.inf, level)
        add_row(link, (problem.offset[i] - start) / width, (problem.offset[i] - start) / width)
        if several:
            add_row(chosen, 1.0, 1.0)
    n_columns = len(objective)
    matrix = csr_array((entries, (rows, columns)), shape=(len(row_low), n_columns))
    result = milp(
        -np.array(objective),
        integrality=np.array(is_binary),
        bounds=Bounds(np.array(column_low), np.array(column_high)),
        constraints=LinearConstraint(matrix, np.array(row_low), np.array(row_high)),
        options={"node_limit": max_nodes, "mip_rel_gap": 0.0},
    )
    scale = max(1.0, float(problem.count.max()))
    slack = scale * (_SOLVER_GAP + _SOLVER_TOLERANCE * (n_columns + len(row_low)))
    proved = result.mip_dual_bound if any(is_binary) else (result.fun if result.status == 0 else None)
    bound = np.inf if proved is None or not np.isfinite(proved) else constant - proved + slack
    return bound, None if result.x is None else result.x[:n_features]
