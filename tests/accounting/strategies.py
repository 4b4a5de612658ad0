"""Problems that aim at certificates: where rounding, ties and flat faces have broken one, or could."""

import itertools

import numpy as np
from accounting.reference import KINDS, sampled_losses
from hypothesis import strategies as st

from skldp.accounting._regression_query import RegressionQuery

NUMBERS = [0.0, 0.0, 1.0, -1.0, 0.5, 0.1, -0.6, 1 / 3, -0.7, 1e-9, 5e-324]
SIZES = [1.0, 1.0, 1.0, 1.0, 8.0, 1e3, 1e-8, 1e-120, 1e6, 1e90]
EPSILONS = [0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0, 30.0]
ANSWERS = [[0], [1], [0, 1], [1, 1], [0] * 7, [1] + [0] * 81, [0] * 20 + [1], [1] * 40 + [0] * 39]
SIDES = [
    (-1.0, 1.0),
    (-1.0, 1.0),
    (0.0, 1.0),
    (-0.5, 1.6),
    (0.1, 0.7),
    (0.3, 0.3),
    (0.0, 0.0),
    (1.0, float(np.nextafter(1.0, 2.0))),
    (0.3, 0.3 + 1e-9),
    (1e3, 1e3 + 90),
    (1e6, 1e6 + 1),
    (0.0, 5e-324),
    (-1e-300, 1e-300),
    (-1e99, 1e99),
]


@st.composite
def aimed_boxes(draw, n_features):
    """Boxes with sides that are points, a hair wide, odd decimals, or far away."""
    return np.array(draw(st.lists(st.sampled_from(SIDES), min_size=n_features, max_size=n_features))).T


@st.composite
def aimed_exponentials(draw, coef, low, high, epsilon):
    """The kinks at the ends of the range or across it, and a log-likelihood as good as straight between them."""
    middle, reach = low / 2 + high / 2, high / 2 - low / 2
    straight = np.log1p(np.expm1(epsilon))
    ends = draw(
        st.sampled_from(
            [
                (low, high),
                (np.nextafter(low, np.inf), np.nextafter(high, -np.inf)),
                (low - 0.3 * reach, high),
                (low + 0.5 * reach, high - 0.5 * reach),
                (middle, middle + straight),
                (middle, np.nextafter(middle + straight, np.inf)),
                (high, high + 1.0),
                (low - 1.0, low),
                (middle, middle + 1e-6),
                (middle - 15.0, middle + 15.0),
            ]
        )
    )
    # What is beyond what a logarithm of bounds can be is moved, with the intercept, to where it can.
    start = float(np.clip(ends[0], -1e90, 1e90))
    size = float(np.clip(ends[1] - ends[0], 1e-6, 29.9))
    place = draw(st.sampled_from([0.0, -3.0, 100.0]))
    a, b = float(np.exp(place)), float(np.exp(place + size))
    return RegressionQuery("exponential", coef, place - start, (a, b), epsilon)


@st.composite
def aimed_queries(draw, box, kinds=KINDS):
    """One query whose kinks lie where it hurts: at a corner of the box, a hair beside it, or through the middle."""
    kind = draw(st.sampled_from(kinds))
    numbers = st.one_of(st.sampled_from(NUMBERS), st.floats(-1, 1).map(lambda v: round(v, 1)))
    coef = np.array(draw(st.lists(numbers, min_size=box.shape[1], max_size=box.shape[1])))
    coef = coef * draw(st.sampled_from(SIZES))
    epsilon = draw(st.one_of(st.sampled_from(EPSILONS), st.floats(0.05, 30)))
    low, high = np.minimum(coef * box[0], coef * box[1]).sum(), np.maximum(coef * box[0], coef * box[1]).sum()
    middle, reach = float(low / 2 + high / 2), float(high / 2 - low / 2)
    if kind == "logistic":
        # The bend at an end or in the middle; saturated everywhere; or as it comes.
        turn = draw(st.sampled_from([low, high, middle]))
        away = draw(st.sampled_from([0.0, -epsilon / 2, 50.0, -50.0, 800.0]))
        intercept = draw(st.sampled_from([0.0, 0.4, float(np.clip(away - turn, -1e99, 1e99))]))
        return RegressionQuery(kind, coef, intercept, (0, 1), epsilon)
    if kind == "exponential":
        return draw(aimed_exponentials(coef, low, high, epsilon))
    intercept = draw(st.sampled_from([0.0, 0.4, -0.1, float(np.clip(-low, -1e99, 1e99))]))
    low, high = float(low + intercept), float(high + intercept)
    ends = draw(
        st.sampled_from(
            [
                (low, high),
                (low, high),
                (np.nextafter(low, np.inf), np.nextafter(high, -np.inf)),
                (np.nextafter(low, -np.inf), np.nextafter(high, np.inf)),
                (low, high + 1.0),
                (low - 0.3 * reach, high),
                (low - 2 * reach, high + 2 * reach),
                (low + 0.5 * reach, high - 0.5 * reach),
                (low + reach, low + 1.05 * reach),
                (high, high + 1.0),
                (low - 1.0, low),
                (middle + intercept, middle + intercept + 1e-6),
            ]
        )
    )
    a, b = (float(np.clip(end, -1e99, 1e99)) for end in ends)
    if not b - a > 1e-99:
        # A model that hardly moves, or rounding that swallowed the difference.
        a, b = a - 1.0 - abs(a) / 2, a + 1.0 + abs(a) / 2
    return RegressionQuery(kind, coef, intercept, (a, b), epsilon)


@st.composite
def aimed_problems(draw, n_features=(1, 3), kinds=KINDS, max_size=4):
    """Queries, outputs and a box."""
    box = draw(aimed_boxes(draw(st.integers(*n_features))))
    queries, outputs = [], []
    for query in draw(st.lists(aimed_queries(box, kinds), min_size=1, max_size=max_size)):
        for output in draw(st.sampled_from(ANSWERS)):
            queries.append(query)
            outputs.append(output)
    return queries, outputs, box


def suspicious_points(queries, box, rng, per_side):
    """A dense lattice with the corners, places where a prediction touches its output bounds, and their neighbours."""
    d = box.shape[1]
    corners = np.array(list(itertools.product(*box.T)))
    lattice = np.array(list(itertools.product(*(np.linspace(*side, per_side) for side in box.T))))
    inside = rng.uniform(size=(300, d)) * (box[1] - box[0]) + box[0]
    points = [corners, lattice, inside]
    bases = np.concatenate([inside[:20], corners[:20], lattice[:: max(1, len(lattice) // 20)]])
    with np.errstate(all="ignore"):
        for query in {query.key: query for query in queries}.values():
            for feature in np.flatnonzero(query.coef):
                rest = bases.copy()
                rest[:, feature] = 0.0
                for level in (*query.argument_bounds, -query.epsilon / 2, 0.0):
                    touching = rest.copy()
                    touching[:, feature] = (level - query.intercept - rest @ query.coef) / query.coef[feature]
                    points.append(touching)
    points = np.concatenate(points)
    points = points[np.isfinite(points).all(axis=1)]
    points = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])
    return np.clip(points, box[0], box[1])


def worst_loss_found(queries, outputs, box, rng, per_side=None, n_rounds=15, extra=None):
    """The most that is lost anywhere that is looked at, by the integers that are drawn with: never above the truth."""
    per_side = {1: 401, 2: 25, 3: 9}.get(box.shape[1], 3) if per_side is None else per_side
    points = suspicious_points(queries, box, rng, per_side)
    if extra is not None:
        points = np.concatenate([points, extra])
    totals = sampled_losses(queries, outputs, points)
    worst = float(np.ptp(totals))
    # Several starts, each the end of a random local search with shrinking steps.
    highest, lowest = points[np.argsort(-totals)[:3]], points[np.argsort(totals)[:3]]
    width = box[1] - box[0]
    for step in 2.0 ** -np.arange(1.0, 2 * n_rounds, 2):
        near = [ends + step * width * rng.normal(size=(8, *ends.shape)) for ends in (highest, lowest)]
        tried = np.concatenate([highest, lowest, *(one.reshape(-1, len(width)) for one in near)])
        tried = np.clip(tried, box[0], box[1])
        totals = sampled_losses(queries, outputs, tried)
        worst = max(worst, float(np.ptp(totals)))
        highest, lowest = tried[np.argsort(-totals)[:3]], tried[np.argsort(totals)[:3]]
    return worst
