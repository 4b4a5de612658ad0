"""Randomized response with a prior for every row: the law of each, its guarantee, and priors of any kind."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import THRESHOLD, binomial_pvalue

from skldp.mechanisms import noise_from
from skldp.mechanisms.categorical._label_laws import RandomizedResponseWithPrior, RowPriorResponse, as_priors

weights = st.lists(st.floats(0.001, 1), min_size=2, max_size=6)


@given(weights, st.floats(0.05, 6))
def test_each_row_has_the_law_of_its_own_prior(weight, epsilon):
    prior = as_priors([weight])
    alone = RandomizedResponseWithPrior(epsilon, tuple(prior[0]))
    law = RowPriorResponse(epsilon, len(weight))
    matrix = alone.flip_matrix
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
    # The epsilon of the law itself, from its probabilities.
    released = matrix[:, matrix.any(axis=0)]
    ratio = math.log((released.max(axis=0) / released.min(axis=0)).max())
    assert ratio <= law.guarantee().epsilon + 1e-12
    assert alone.exact_epsilon <= law.guarantee().epsilon <= epsilon


def test_the_guarantee_is_that_of_the_worst_number_of_classes():
    # At 20, fewer classes than all cost a hair more.
    for epsilon in (0.1, 1.0, 20.0):
        law = RowPriorResponse(epsilon, 9)
        assert law.guarantee().epsilon == max(one.exact_epsilon for one in law.laws)
        assert law.guarantee().unit == "label"


@pytest.mark.parametrize("epsilon", [0.7, 2.0])
def test_what_is_sampled_has_the_law(epsilon):
    n, law = 20_000, RowPriorResponse(epsilon, 4)
    kinds = as_priors([[1, 1, 1, 1], [0.6, 0.3, 0.05, 0.05], [0.01, 0.01, 0.49, 0.49], [0, 0, 0.999, 0.001]])
    matrices = [RandomizedResponseWithPrior(epsilon, tuple(kind)).flip_matrix for kind in kinds]
    assert len({tuple(matrix.any(axis=0)) for matrix in matrices}) == 4
    with pytest.warns(match="seed"):
        noise = noise_from(5)
    for true in range(4):
        released = law.release(np.full(4 * n, true), np.tile(kinds, (n, 1)), noise)
        for kind, matrix in enumerate(matrices):
            counts = np.bincount(released[kind::4], minlength=4)
            for j in range(4):
                assert binomial_pvalue(counts[j], n, matrix[true, j]) > THRESHOLD


def test_a_row_alone_is_not_told_from_its_prior_by_the_noise_of_others(fixed_noise):
    """Two people with one prior and one label do not share their noise."""
    law = RowPriorResponse(0.1, 2)
    released = law.release(np.zeros(200, int), as_priors([[1, 1]] * 200), noise_from())
    assert 0 < released.sum() < 200


def test_what_a_model_says_is_taken_whatever_it_is():
    said = [[np.nan, 1], [np.inf, 1], [-np.inf, 1], [-1, 3], [0, 0], [1e308, 1e308], [5e-324, 0], [2, 6]]
    priors = as_priors(said)
    np.testing.assert_allclose(priors.sum(axis=1), 1)
    assert priors.tolist()[3] == [0, 1]
    assert priors.tolist()[7] == [0.25, 0.75]
    assert priors.tolist()[6] == [1, 0]
    uniform = [0, 1, 2, 4, 5]
    np.testing.assert_array_equal(priors[uniform], 0.5)


@pytest.mark.parametrize(("epsilon", "rule"), [(0.0, "epsilon must be"), (1e-19, "epsilon must be large enough")])
def test_refuses_an_epsilon_that_cannot_be_sampled(epsilon, rule):
    with pytest.raises(ValueError, match=rule):
        RowPriorResponse(epsilon, 5)


def test_a_prior_that_is_edited_later_is_the_one_that_was_given():
    prior = np.array([0.1, 0.5, 0.4])
    mechanism = RandomizedResponseWithPrior(1.0, prior)
    prior[:] = [0.8, 0.1, 0.1]
    assert mechanism == RandomizedResponseWithPrior(1.0, (0.1, 0.5, 0.4))
    assert mechanism.support.tolist() == [1, 2]
