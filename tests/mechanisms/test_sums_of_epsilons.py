"""Sums, multiples and shares of epsilons are rounded to the private side."""

import math
from dataclasses import replace
from fractions import Fraction

from hashed_labels import HashedLabels
from hypothesis import given
from hypothesis import strategies as st

from skldp import NumericPrivatizer, PrivacyGuarantee
from skldp.laws._odds import product_above, split_epsilon, sum_above
from skldp.study._comparison import ComparisonSettings
from skldp.study._datasets import load_study_data
from skldp.study._federated_parts import GradientRelease, _repeated

EPSILONS = st.floats(1e-3, 1e3)
PARTS = st.integers(1, 10**6)


@given(EPSILONS, PARTS)
def test_shares_add_up_to_no_more_and_multiples_to_no_less(epsilon, n):
    share = split_epsilon(epsilon, n)
    assert share * Fraction(n) <= Fraction(epsilon) < Fraction(math.nextafter(share, math.inf)) * n
    product = product_above(epsilon, n)
    assert Fraction(math.nextafter(product, 0.0)) < Fraction(epsilon) * n <= Fraction(product)


@given(st.lists(EPSILONS, min_size=1, max_size=30))
def test_sums_are_the_next_float(epsilons):
    exact = sum(map(Fraction, epsilons))
    total = sum_above(*epsilons)
    assert Fraction(math.nextafter(total, 0.0)) < exact <= Fraction(total)
    assert sum_above(*epsilons, math.inf) == math.inf


@given(EPSILONS, st.integers(1, 1_000))
def test_rounds_of_gradients_keep_within_the_epsilon_of_the_study(epsilon, n_rounds):
    mechanism = NumericPrivatizer(epsilon, mechanism="laplace")
    release = GradientRelease(mechanism, "gradients", 1.0, n_rounds)
    assert Fraction(release.mechanism.epsilon) * n_rounds <= Fraction(epsilon)
    once = PrivacyGuarantee(epsilon, delta=1e-9)
    counted = _repeated(once, n_rounds, "rounds")
    assert Fraction(counted.epsilon) >= Fraction(epsilon) * n_rounds
    assert Fraction(counted.delta) >= Fraction(once.delta) * n_rounds


def test_features_and_label_together_spend_no_more_than_the_budget():
    epsilons, data = (0.1, 0.7, 1.1, 2.3, 5e-324), load_study_data("wine")
    settings = ComparisonSettings(epsilons)
    assert settings.budgets("discriminant", data) == settings.budgets("none", data) == epsilons
    halves = settings.budgets("duchi", data)
    assert all(2 * Fraction(half) <= Fraction(epsilon) for half, epsilon in zip(halves, epsilons, strict=True))
    assert replace(settings, labels="none").budgets("duchi", data) == epsilons


@given(EPSILONS.filter(lambda epsilon: epsilon < 30), st.integers(1, 6))
def test_hashed_labels_spend_no_more_than_they_state(epsilon, n_hashes):
    labels = HashedLabels(epsilon, mechanism="rappor", classes=[0, 1, 2], n_bits=64, n_hashes=n_hashes)
    labels.fit_transform([0, 1, 2])
    assert labels.privacy_guarantee_.epsilon <= epsilon
