"""What attackers recover from releases: never surely more than epsilon leaves, and all where nothing is hidden."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from scipy.stats import binomtest
from sklearn.base import BaseEstimator

from skldp import (
    MultivariateLaplacePrivatizer,
    NumericPrivatizer,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
)
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study import audit_inversion
from skldp.study._inversion import inversion_bound, pairwise_share

WORDS = np.random.default_rng(0).normal(size=(40, 6))
WORDS /= np.linalg.norm(WORDS, axis=1, keepdims=True)


class Bare(BaseEstimator):
    """Claims much and hides nothing."""

    privacy_guarantee_ = PrivacyGuarantee(1.0)

    def transform(self, X):
        return X


def best_of_all_attackers(law):
    """The largest share over all maps from outputs to candidates, one by one."""
    k, m = law.shape
    return max(sum(law[guess[z], z] for z in range(m)) / k for guess in product(range(k), repeat=m))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_attains_the_bound_and_no_attacker_surpasses_it(epsilon):
    mechanism = RandomizedResponse(epsilon, 4)
    law = mechanism.flip_matrix
    best, bound = best_of_all_attackers(law), inversion_bound(mechanism.exact_epsilon, 4)
    assert best <= bound <= best + 1e-8


def test_the_bound_is_above_the_exact_one_and_by_less_than_a_millionth():
    for epsilon, k, delta in product([0.0, 0.3, 5.0, 40.0], [2, 17, 10**6], [0.0, 1e-6, 0.25]):
        odds, d = Fraction(math.exp(epsilon)), Fraction(delta)
        exact = (odds + (k - 1) * d) / (odds + k - 1)
        assert exact <= Fraction(inversion_bound(epsilon, k, delta=delta)) * (1 + Fraction(1, 10**12))
        assert inversion_bound(epsilon, k, delta=delta) <= float(exact) * (1 + 1e-6)
    assert inversion_bound(math.inf, 5) == 1.0


def test_a_law_that_fails_with_probability_delta_attains_the_bound_with_delta():
    """Randomized response, but the secret itself with probability delta: recovered by delta + (1 - delta) share."""
    delta, k = 0.1, 3
    law = delta * np.eye(k) + (1 - delta) * RandomizedResponse(1.0, k).flip_matrix
    share = best_of_all_attackers(law)
    assert inversion_bound(1.0, k) < share <= inversion_bound(1.0, k, delta=delta)


@pytest.mark.parametrize("n", [3, 12])
def test_the_bound_of_pairs_holds_and_is_near_the_linear_program(n):
    points = np.random.default_rng(n).normal(size=(n, 2))
    epsilons = 1.5 * cdist(points, points)
    # The attacker's probabilities themselves as unknowns, by another solver.
    best = -linprog(-np.ones(n), A_ub=np.exp(-epsilons), b_ub=np.ones(n), bounds=(0, 1)).fun / n
    assert best <= pairwise_share(epsilons) <= best * 1.2
    # The plain certificate, which is never left for a worse one.
    assert pairwise_share(epsilons) <= 1 / np.exp(-epsilons).sum(axis=1).min() * (1 + 1e-8)


def private(name):
    transformers = {
        "privunit": PrivUnitTransformer(4.0),
        "laplace": NumericPrivatizer(4.0, mechanism="laplace", bounds=(-1, 1)),
        "gaussian": NumericPrivatizer(4.0, mechanism="gaussian", delta=1e-3, bounds=(-1, 1)),
        "metric": MultivariateLaplacePrivatizer(4.0),
        "projected": RandomProjectionPrivatizer(epsilon=4.0, n_components=3, sensitivity="spectral"),
    }
    return transformers[name].fit(WORDS)


@pytest.mark.parametrize("name", ["privunit", "laplace", "gaussian", "metric", "projected"])
def test_a_private_release_is_not_refuted(name, fixed_noise):
    result = audit_inversion(private(name), WORDS, n_trials=2_000, confidence=0.999999, seed=0)
    assert not result.refutes_claim
    assert result.chance < result.best.recovered < result.bound


@pytest.mark.parametrize("name", ["privunit", "metric", "projected"])
def test_nobody_is_surely_better_than_the_likelihood(name, fixed_noise):
    shares = {a.name: a for a in audit_inversion(private(name), WORDS, confidence=0.999999, seed=0).attacks}
    assert set(shares) == {"nearest", "likelihood", "decoder"}
    assert all(other.low <= shares["likelihood"].high for other in shares.values())
    # The decoder, which is told nothing of the law, comes near what the likelihood recovers.
    assert shares["decoder"].high > 0.8 * shares["likelihood"].low


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"n_trials": 0}, "n_trials must be a whole number of at least 1"),
        ({"confidence": 1.0}, "confidence must lie inside"),
        ({"candidates": WORDS[:1]}, "candidates must be at least two"),
        ({"candidates": WORDS[[0, 1, 0]]}, "candidates must be two or more, all different"),
        ({"candidates": [[1.0], [2.0, 3.0]]}, "inhomogeneous shape"),
        ({"release": lambda rows: rows[:1]}, "one output, a number or a vector"),
        ({"attacks": {"none": lambda outputs: [0]}}, "The attack 'none' must name one candidate for each of 100"),
    ],
)
def test_bad_input_is_refused(changes, rule):
    arguments = {"release": Bare(), "candidates": WORDS, "n_trials": 100} | changes
    with pytest.raises(ValueError, match=rule):
        audit_inversion(**arguments)


def test_intervals_hold_for_all_attacks_together():
    result = audit_inversion(
        lambda rows: rows[:, 0], WORDS, attacks={"first": lambda outputs: np.zeros(len(outputs), int)}, n_trials=500,
        confidence=0.9, seed=0,
    )  # fmt: skip
    assert len(result.attacks) == 2
    for attack in result.attacks:
        exact = binomtest(round(500 * attack.recovered), 500).proportion_ci(0.95, "exact")
        np.testing.assert_allclose([attack.low, attack.high], exact, rtol=1e-8)
