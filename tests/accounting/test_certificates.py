"""Attacks on the certificates: the integers that are sampled, over awkward boxes and queries, allow no slack at all."""

import numpy as np
import pytest
from accounting.reference import worst_sampled_loss

from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._realized_loss import realized_loss
from skldp.accounting.losses._relaxation import dual_bound
from skldp.accounting.losses._sampled_law import answer_law
from skldp.accounting.losses._sigmoid_sum import sigmoid_sum


@pytest.mark.parametrize("size", [1e3, 1e12, 1e16])
def test_huge_multipliers_on_arguments_that_hardly_move_stay_certified(size):
    """Multipliers of any size leave a bound: their products with the arguments cancel, their roundings do not."""
    rng = np.random.default_rng(0)
    box = np.array([[0.3, -1.0, -1.0], [0.3 + 1e-15, 1.0, 1.0]])
    queries = [RegressionQuery("linear", [1.0, 0.0, 0.0], 0.1 * i, (-1, 1 + i), 1.0) for i in range(6)]
    queries.append(RegressionQuery("logistic", [0.0, 2.0, -1.0], 0.0, (0, 1), 1.0))
    law = answer_law(queries, [1, 0, 1, 0, 1, 0, 1], box)
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


@pytest.mark.slow
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
    seen = worst_sampled_loss(queries, outputs, np.concatenate([points, [found.x_high, found.x_low]]))
    assert found.lower <= seen <= found.upper
