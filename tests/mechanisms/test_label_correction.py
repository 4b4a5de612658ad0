"""From probabilities of randomized labels back to those of the true ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms.categorical._frequency import clean_probabilities, project_onto_simplex
from skldp.mechanisms.categorical._label_laws import LabelLaplaceMechanism, RandomizedResponseWithPrior


@given(st.floats(0.05, 30), st.integers(1, 12), st.integers(0, 2**32))
def test_what_the_flip_matrix_does_is_undone(epsilon, n_classes, seed):
    clean = np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=5)
    for law in (RandomizedResponse(epsilon, n_classes), LabelLaplaceMechanism(epsilon, n_classes)):
        np.testing.assert_allclose(clean_probabilities(clean @ law.flip_matrix, law.flip_matrix), clean, atol=1e-9)


def test_classes_never_released_get_no_probability():
    law = RandomizedResponseWithPrior(2.0, (0.0, 0.4, 0.6))
    clean = np.array([[0.0, 0.3, 0.7]])
    np.testing.assert_allclose(clean_probabilities(clean @ law.flip_matrix, law.flip_matrix), clean, atol=1e-12)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5))
def test_projection_is_the_nearest_point_of_the_simplex(row):
    row = np.array(row)
    (projected,) = project_onto_simplex(row[None, :])
    assert projected.sum() == pytest.approx(1)
    assert (projected >= 0).all()
    # Nearest exactly when no vertex lies further along the direction from the projection to the row.
    assert ((row - projected) @ (np.eye(row.size) - projected).T <= 1e-9).all()


def test_a_flip_matrix_that_is_not_symmetric_is_solved_the_right_way_round():
    flips = np.array([[0.9, 0.1], [0.4, 0.6]])
    clean = np.array([[0.2, 0.8], [0.7, 0.3]])
    np.testing.assert_allclose(clean_probabilities(clean @ flips, flips), clean, atol=1e-12)
