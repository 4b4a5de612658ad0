"""Label-Laplace as a vector: its law by enumeration, through the code that samples it."""

import itertools
import math

import numpy as np
import pytest
from laws import THRESHOLD, chi_square_pvalue, seeded
from scipy import stats

from skldp.mechanisms.categorical._label_laws import LabelLaplaceVectorMechanism


def log_likelihood(law, rows, code):
    """Log of the chance of rows for a code: noise of the law of one number on every entry of the one-hot label."""
    return law.law.log_likelihood(rows, np.eye(law.n_classes)[[code]]).sum(axis=1)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 2.5, 20.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_exact_epsilon_is_attained_and_never_above_the_stated(epsilon, n_classes):
    law = LabelLaplaceVectorMechanism(epsilon, n_classes)
    assert epsilon * (1 - 1e-6) < law.exact_epsilon <= epsilon
    # Beyond both ones, each entry tells as much as it can.
    far = np.zeros((1, n_classes))
    far[0, :2] = 2.0, -1.0
    assert log_likelihood(law, far, 0)[0] - log_likelihood(law, far, 1)[0] == pytest.approx(law.exact_epsilon)
    between = np.full((1, n_classes), 0.5)
    assert log_likelihood(law, between, 0)[0] == pytest.approx(log_likelihood(law, between, 1)[0])


def test_no_pair_of_labels_is_told_apart_by_more():
    law = LabelLaplaceVectorMechanism(2.0, 3)
    grid = np.array(list(itertools.product(np.linspace(-1.5, 2.5, 17), repeat=3)))
    logs = np.array([log_likelihood(law, grid, code) for code in range(3)])
    assert (logs.max(axis=0) - logs.min(axis=0)).max() <= law.exact_epsilon * (1 + 1e-9)


def test_the_noise_of_every_entry_is_the_discrete_laplace_law():
    law = LabelLaplaceVectorMechanism(1.5, 3)
    codes = np.arange(60_000)[:, None] % 3
    rows = law.release(codes, seeded(1)).rows
    steps = np.ldexp(rows - (codes == np.arange(3)), law.law.lattice_exponent)
    assert (steps == np.floor(steps)).all()
    edges = stats.laplace(scale=law.law.scale).ppf(np.linspace(0, 1, 17)[1:-1])
    for column in range(3):
        counts = np.bincount(np.searchsorted(edges, steps[:, column]), minlength=16)
        assert chi_square_pvalue(counts, np.full(16, 1 / 16)) > THRESHOLD
    assert abs(np.corrcoef(steps.T)[0, 1]) < 5 / math.sqrt(60_000)
    assert law.noise_variance == pytest.approx(2 * (2 / 1.5) ** 2, rel=1e-6)


def test_a_single_class_is_released_as_it_is_at_no_cost():
    law = LabelLaplaceVectorMechanism(1.0, 1)
    rows = law.release([[0], [0]], seeded(3)).rows
    assert (law.exact_epsilon, law.noise_variance, rows.tolist()) == (0.0, 0.0, [[1.0], [1.0]])
