"""The realized loss written out from the paper's formulas, slowly, for comparison."""

import math

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import minimize

from skldp.accounting import FiniteQuery
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._cohorts import BoxTable
from skldp.accounting.losses._region import checked_box

KINDS = ("linear", "truncated", "logistic", "exponential")


def naive_probability(query, output, x):
    """Eq. 5 and Section 5.3, one point at a time."""
    z = math.fsum(c * v for c, v in zip(query.coef, x, strict=True)) + query.intercept
    low, high = query.output_bounds
    if query.kind == "logistic":
        y = 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))
    elif query.kind == "exponential":
        y = min(high, max(low, math.exp(min(z, 700.0))))
    else:
        y = min(high, max(low, z))
    growth = math.exp(query.epsilon)
    of_high = (y - low) / (high - low) * (growth - 1) / (growth + 1) + 1 / (growth + 1)
    return of_high if output == 1 else 1 - of_high


def log_likelihood(queries, outputs, x):
    return math.fsum(math.log(naive_probability(q, o, x)) for q, o in zip(queries, outputs, strict=True))


def grid_loss(queries, outputs, low, high, per_side):
    """Loss over a dense grid (ends included), then local search from its best points: never above the true loss."""
    if not queries:
        return 0.0
    sides = [np.linspace(a, b, per_side) for a, b in zip(low, high, strict=True)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*sides, indexing="ij")], axis=1)
    total = np.zeros(len(grid))
    for query, output in zip(queries, outputs, strict=True):
        total += query.log_likelihood(output, grid)
    extremes = []
    for sign, start in ((-1.0, grid[total.argmax()]), (1.0, grid[total.argmin()])):
        found = minimize(
            lambda x, sign=sign: sign * log_likelihood(queries, outputs, np.clip(x, low, high)),
            start,
            method="Nelder-Mead",
            options={"maxiter": 60},
        )
        here = log_likelihood(queries, outputs, start)
        there = log_likelihood(queries, outputs, np.clip(found.x, low, high))
        extremes.append(max(here, there) if sign < 0 else min(here, there))
    return extremes[0] - extremes[1]


@st.composite
def regression_queries(draw, n_features, kinds=KINDS, epsilons=(0.05, 2.0)):
    """Queries for a box of [-1, 1]^d, linear ones within their output bounds."""
    kind = draw(st.sampled_from(kinds))
    number = st.floats(-1, 1, allow_subnormal=False)
    coef = np.array(draw(st.lists(number, min_size=n_features, max_size=n_features)))
    intercept = draw(number)
    epsilon = draw(st.floats(*epsilons))
    reach = float(np.abs(coef).sum())
    if kind == "linear":
        room = draw(st.floats(0.01, 2))
        return RegressionQuery(kind, coef, intercept, (intercept - reach - room, intercept + reach + room), epsilon)
    if kind == "exponential":
        a = draw(st.floats(-1, 0.9))
        return RegressionQuery(kind, coef, intercept, (math.exp(a), math.exp(a + draw(st.floats(0.05, 4)))), epsilon)
    if kind == "truncated":
        a = draw(st.floats(-1, 0.9))
        return RegressionQuery(kind, coef, intercept, (a, a + draw(st.floats(0.05, 2))), epsilon)
    steepness = draw(st.sampled_from([1.0, 8.0]))
    return RegressionQuery(kind, steepness * coef, steepness * intercept, (0, 1), epsilon)


def sampled_log_ratio(query, output, X):
    """How likely an answer is, against the first row, by the very integers that are compared with the noise."""
    chance = query.thresholds(X)
    weight = chance if output == 1 else ~chance + np.uint64(1)
    first, more = weight[0], weight > weight[0]
    change = np.where(more, weight - first, first - weight).astype(np.longdouble) * np.where(more, 1, -1)
    change /= first.astype(np.longdouble)
    near = np.abs(change) < 0.5
    ratio = weight.astype(np.longdouble) / first.astype(np.longdouble)
    return np.where(near, np.log1p(np.where(near, change, 0)), np.log(ratio))


def sampled_losses(queries, outputs, points):
    """Log-likelihood of all answers at each point, against the first of them."""
    counts = {}
    for query, output in zip(queries, outputs, strict=True):
        counts.setdefault((query.key, output), [query, output, 0])[2] += 1
    total = np.zeros(len(points), dtype=np.longdouble)
    for query, output, count in counts.values():
        total += count * sampled_log_ratio(query, output, points)
    return total


def worst_sampled_loss(queries, outputs, points):
    return float(np.ptp(sampled_losses(queries, outputs, points)))


def running_example(power):
    high = 0.2 * (np.arange(11) / 10) ** power + 0.4
    return FiniteQuery.from_probabilities(np.column_stack([1 - high, high]))


def linear_decisions(queries, histories, query, *, epsilon, bounds, table=None):
    """Decisions of a new table of linear queries over a box, or of a given one."""
    if table is None:
        table = BoxTable(checked_box(bounds, n_features=getattr(query, "n_features", None)))
    return table.decisions(queries, histories, query, epsilon=epsilon)
