"""Attacks on the certificates: the integers that are sampled, over awkward boxes and queries, allow no slack at all."""

import itertools
import math

import numpy as np
import pytest
from accounting.reference import sampled_losses
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting.extrema.dual_branching import dual_bound
from skldp.accounting.extrema.realized_loss import realized_loss
from skldp.accounting.extrema.sampled_law import sampled_law
from skldp.accounting.extrema.sigmoid_sum import sigmoid_sum
from skldp.accounting.query import FiniteQuery, RegressionQuery


def sampled_loss(queries, outputs, points):
    total = sampled_losses(queries, outputs, points)
    return np.ptp(total), points[total.argmax()], points[total.argmin()]


def suspicious_points(queries, box, rng):
    """Corners, a lattice, places where a prediction touches its output bounds, and their neighbours."""
    d = box.shape[1]
    corners = np.array(list(itertools.product(*box.T)))
    lattice = box[0] + (box[1] - box[0]) * rng.integers(0, 9, (400, d)) / 8
    inside = rng.uniform(size=(400, d)) * (box[1] - box[0]) + box[0]
    touching = []
    for query in {query.key: query for query in queries}.values():
        for feature in np.flatnonzero(query.coef):
            rest = inside[:60].copy()
            rest[:, feature] = 0.0
            for level in (*query.output_bounds, -query.epsilon / 2, 0.0):
                rest[:, feature] = (level - query.intercept - rest @ query.coef) / query.coef[feature]
                touching.append(rest.copy())
    points = np.concatenate([corners, lattice, inside, *touching])
    points = points[np.isfinite(points).all(axis=1)]
    points = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])
    return np.clip(points, box[0], box[1])


def climbed(queries, outputs, points, box, rng, n_rounds=25):
    """The worst loss that random local search finds from the worst points on."""
    worst, *ends = sampled_loss(queries, outputs, points)
    width = box[1] - box[0]
    for step in 2.0 ** -np.arange(n_rounds):
        near = [end + step * width * rng.normal(size=(40, box.shape[1])) for end in ends]
        found, *places = sampled_loss(queries, outputs, np.clip(np.concatenate([ends, *near]), box[0], box[1]))
        if found >= worst:
            worst, ends = found, places
    return worst


@st.composite
def awkward_cases(draw):
    """Near-ties, huge and tiny coefficients, thin and flat boxes, touched output bounds, repeats, epsilon up to 30."""
    d = draw(st.integers(1, 3))
    low = np.array(draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, -3.0, 1e3, 0.1]), min_size=d, max_size=d)))
    width = np.array(draw(st.lists(st.sampled_from([2.0, 1.0, 0.0, 1e-15, 1e-9, 90.0]), min_size=d, max_size=d)))
    box = np.stack([low, low + width])
    queries, outputs = [], []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["linear", "truncated", "logistic"]))
        size = 10.0 ** draw(st.sampled_from([0, 0, 0, 1, -8, -120, 6]))
        numbers = st.sampled_from([0.0, 1.0, -1.0, 0.3, -0.7, 1e-9, 0.5])
        coef = size * np.array(draw(st.lists(numbers, min_size=d, max_size=d)))
        centre = draw(st.sampled_from([0.0, -coef @ box.mean(axis=0), -coef @ box[0], -coef @ box[1], 0.37]))
        epsilon = draw(st.sampled_from([1e-9, 0.1, 1.0, 4.0, 12.0, 30.0]))
        ends = (0.0, 1.0)
        if kind != "logistic":
            reach = np.abs(coef) @ width / 2
            middle = coef @ box.mean(axis=0) + centre
            # Touched exactly, left a little, left by far, or far away from everything that is predicted.
            room = draw(st.sampled_from([1.0, 1.0 - 1e-12, 0.25, 1e-6, 3.0]))
            away = draw(st.sampled_from([0.0, 0.0, 0.5, 5.0]))
            ends = (middle + away * reach - room * reach, middle + away * reach + room * reach)
            if not ends[1] - ends[0] > 1e-99:
                ends = (ends[0] - 1.0, ends[0] + 1.0)
        query = RegressionQuery(kind, coef, centre, ends, epsilon)
        for output in draw(st.sampled_from([[0], [1], [0, 1], [1, 1], [0] * 7, [1] * 40 + [0] * 39])):
            queries.append(query)
            outputs.append(output)
    return queries, outputs, box


@pytest.fixture(scope="module", params=[4, 0], ids=["on the box", "on the answers"])
def short_searches(request):
    """Bounds hold however early the search ends: the awkward cases are the slowest to converge."""
    with pytest.MonkeyPatch.context() as patch:
        limits = {"_MAX_BOX_NODES": 1_500, "_MAX_DUAL_NODES": 100, "_FEW_FEATURES": request.param}
        for name, limit in limits.items():
            patch.setattr(f"skldp.accounting.extrema.loss_search.{name}", limit)
        yield


@pytest.mark.usefixtures("short_searches")
@given(awkward_cases(), st.integers(0, 2**32 - 1), st.one_of(st.none(), st.floats(0.01, 8)))
@settings(max_examples=20, deadline=None)
def test_no_point_loses_more_than_is_certified(case, seed, threshold):
    queries, outputs, box = case
    rng = np.random.default_rng(seed)
    found = realized_loss(queries, outputs, bounds=(box[0], box[1]), tol=1e-2, threshold=threshold)
    points = suspicious_points(queries, box, rng)
    if found.x_high is not None:
        points = np.concatenate([points, [found.x_high, found.x_low]])
    assert climbed(queries, outputs, points, box, rng) <= found.upper
    assert 0 <= found.lower <= found.upper
    if found.x_high is not None:
        # What is said to be lost at least is lost between the two points that come with it.
        assert found.lower <= sampled_loss(queries, outputs, np.stack([found.x_high, found.x_low]))[0] + 1e-15
    grouped = realized_loss(queries, outputs, bounds=(box[0], box[1]), tol=1e-2, group_size=2)
    assert sampled_loss(queries, outputs, points)[0] <= grouped.upper


@pytest.mark.parametrize("size", [1e3, 1e12, 1e16])
def test_huge_multipliers_on_arguments_that_hardly_move_stay_certified(size):
    """Multipliers of any size leave a bound: their products with the arguments cancel, their roundings do not."""
    rng = np.random.default_rng(0)
    box = np.array([[0.3, -1.0, -1.0], [0.3 + 1e-15, 1.0, 1.0]])
    queries = [RegressionQuery("linear", [1.0, 0.0, 0.0], 0.1 * i, (-1, 1 + i), 1.0) for i in range(6)]
    queries.append(RegressionQuery("logistic", [0.0, 2.0, -1.0], 0.0, (0, 1), 1.0))
    law = sampled_law(queries, [1, 0, 1, 0, 1, 0, 1], box)
    problem = sigmoid_sum(law)
    value = problem.total(rng.uniform(-1, 1, (500, 3))).max() - law.allowance
    multipliers = size * rng.normal(size=(2000, len(problem.weights)))
    low, high = (np.broadcast_to(end, multipliers.shape) for end in (problem.low, problem.high))
    assert (dual_bound(problem, multipliers, low, high) >= value).all()


def test_what_rounding_swallows_costs_the_whole_epsilon():
    query = RegressionQuery("truncated", [1e90, 1.0], 0.0, (-1, 1), 0.4)
    found = realized_loss([query, query], [1, 0], bounds=(-1, 1))
    assert found.upper == pytest.approx(0.8, abs=1e-12)
    assert not found.converged
    assert "too large" in found.reason


def test_long_sums_are_certified():
    """Thousands of different answers, whose roundings add up."""
    rng = np.random.default_rng(5)
    theta = rng.dirichlet(np.ones(2), 3000)
    queries = [RegressionQuery("linear", row, 0.0, (-1, 1), 0.5) for row in theta]
    outputs = rng.integers(0, 2, len(queries)).tolist()
    found = realized_loss(queries, outputs, bounds=(-1, 1))
    side = np.linspace(-1, 1, 21)
    points = np.stack([axis.ravel() for axis in np.meshgrid(side, side)], axis=1)
    assert found.gap < 1e-3
    seen = sampled_loss(queries, outputs, np.concatenate([points, [found.x_high, found.x_low]]))[0]
    assert found.lower <= seen <= found.upper


def test_the_order_of_finite_answers_does_not_matter():
    rng = np.random.default_rng(1)
    queries = [FiniteQuery.from_probabilities(rng.dirichlet(np.ones(3) * 5, 7)) for _ in range(12)]
    outputs = rng.integers(0, 3, 12).tolist()
    first = realized_loss(queries, outputs)
    for _ in range(20):
        order = rng.permutation(12)
        again = realized_loss([queries[i] for i in order], [outputs[i] for i in order])
        assert (again.lower, again.upper) == (first.lower, first.upper)
    exact = [math.prod(int(q.weights[point, o]) for q, o in zip(queries, outputs, strict=True)) for point in range(7)]
    assert first.lower <= math.log(max(exact)) - math.log(min(exact)) + 1e-13
    assert math.log(max(exact)) - math.log(min(exact)) <= first.upper
