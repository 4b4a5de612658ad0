import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skldp.accounting import shuffled
from skldp.mechanisms._guarantee import PrivacyGuarantee


@pytest.mark.parametrize("epsilon", [-1, float("nan"), True, "1", None])
def test_refuses_what_is_no_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a number from 0 to inf"):
        PrivacyGuarantee(epsilon)


@pytest.mark.parametrize("arguments", [{"delta": 1.5}, {"delta": float("nan")}, {"unit": "row"}, {"model": "global"}])
def test_refuses_other_nonsense(arguments):
    with pytest.raises(ValueError, match="must be"):
        PrivacyGuarantee(1.0, **arguments)


def test_same_units_add_up():
    total = PrivacyGuarantee(1.0, 1e-6, stated=1.0) + PrivacyGuarantee(2.0, 2e-6, stated=0.5, seeded=True)
    assert (total.epsilon, total.stated, total.unit, total.seeded) == (3.0, 1.5, "record", True)
    assert total.delta == pytest.approx(3e-6)


def test_record_and_label_make_a_record():
    total = PrivacyGuarantee(1.0) + PrivacyGuarantee(0.5, unit="label")
    assert (total.epsilon, total.unit, total.stated) == (1.5, "record", None)


def test_distance_needs_a_diameter_to_join_a_record():
    distance = PrivacyGuarantee(0.5, unit="distance")
    with pytest.raises(ValueError, match="diameter"):
        distance + PrivacyGuarantee(1.0)
    declared = PrivacyGuarantee(0.5, unit="distance", diameter=4.0)
    assert (declared + PrivacyGuarantee(1.0)).epsilon == 3.0
    assert declared.plain_epsilon == 2.0
    assert (declared + declared).unit == "distance"


def test_local_and_central_do_not_add_up():
    with pytest.raises(ValueError, match="central"):
        PrivacyGuarantee(1.0) + PrivacyGuarantee(1.0, model="central")


def test_comparison_is_a_partial_order():
    weak, strong = PrivacyGuarantee(2.0), PrivacyGuarantee(1.0)
    assert strong <= weak
    assert weak >= strong
    assert not weak <= strong
    assert not strong <= PrivacyGuarantee(2.0, unit="label")
    assert not PrivacyGuarantee(1.0, 1e-5) <= weak


def test_prints_both_figures_in_one_line():
    guarantee = PrivacyGuarantee(3311.2, stated=1.0, per_feature=4.311, figures=(("corrected", 4.571),), seeded=True)
    line = str(guarantee)
    assert line == (
        "epsilon 3311 per record (stated 1, per feature 4.311, corrected 4.571); exact; "
        "void for anyone who knows the seed"
    )
    markup = guarantee._repr_html_()
    assert markup.startswith("<table>")
    assert "3311" in markup
    assert "&lt;" in PrivacyGuarantee(1.0, basis="a < b")._repr_html_()


def test_what_is_larger_than_every_float_is_infinite():
    huge = PrivacyGuarantee(1e300, unit="distance", diameter=1e10)
    assert huge.plain_epsilon == huge.over_diameter().epsilon == float("inf")
    assert "over the declared diameter inf" in str(huge)


def test_shuffling_needs_a_pure_local_guarantee():
    with pytest.raises(ValueError, match="pure"):
        shuffled(PrivacyGuarantee(1.0, 1e-9), 1000, 1e-6)
    with pytest.raises(ValueError, match="unit of distance"):
        shuffled(PrivacyGuarantee(1.0, unit="distance", diameter=1.0), 1000, 1e-6)
    with pytest.raises(ValueError, match="central model"):
        shuffled(PrivacyGuarantee(1.0, model="central"), 1000, 1e-6)
    for n in (0, 2.5, True, float("inf"), float("nan"), 10**400):
        with pytest.raises(ValueError, match="whole number"):
            shuffled(PrivacyGuarantee(1.0), n, 1e-6)
    for delta in (0, 1, float("nan")):
        with pytest.raises(ValueError, match="delta"):
            shuffled(PrivacyGuarantee(1.0), 10_000, delta)


def test_shuffling_covers_the_exact_loss_of_shuffled_binary_responses():
    """The count of ones after shuffling is binomial: its exact (epsilon, delta) curve is below what is proved."""
    from scipy import stats

    n, delta, local = 2_000, 1e-6, 1.0
    lie = 1 / (1 + math.exp(local))
    others = stats.binom(n - 1, lie)
    with_one, with_zero = (
        [p * others.pmf(k - 1) + (1 - p) * others.pmf(k) for k in range(n + 1)] for p in (1 - lie, lie)
    )
    central = shuffled(PrivacyGuarantee(local), n, delta)
    exact_delta = sum(max(0.0, a - math.exp(central.epsilon) * b) for a, b in zip(with_one, with_zero, strict=True))
    assert (central.model, central.delta, central.figures) == ("central", delta, ())
    assert exact_delta <= delta
    assert central.epsilon < 0.15


def test_two_guarantees_per_distance_keep_the_larger_diameter():
    near = PrivacyGuarantee(1.0, unit="distance", diameter=2.0)
    far = PrivacyGuarantee(1.0, unit="distance", diameter=8.0)
    assert (near + far).plain_epsilon == (far + near).plain_epsilon == 16.0
    assert (near + PrivacyGuarantee(1.0, unit="distance")).diameter is None


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_sums_and_products_are_never_below_the_exact_ones(left, right):
    total = PrivacyGuarantee(left) + PrivacyGuarantee(right)
    assert Fraction(total.epsilon) >= Fraction(left) + Fraction(right)
    over = PrivacyGuarantee(left, unit="distance", diameter=right)
    assert Fraction(over.plain_epsilon) >= Fraction(left) * Fraction(right)
    assert over.over_diameter().epsilon == over.plain_epsilon


def test_an_infinite_epsilon_adds_up_to_one():
    assert (PrivacyGuarantee(math.inf) + PrivacyGuarantee(1.0)).epsilon == math.inf


def test_single_precision_adds_up_like_double_precision():
    half, quarter = np.float32(0.5), np.float32(0.25)
    assert (PrivacyGuarantee(half) + PrivacyGuarantee(quarter)).epsilon == 0.75
    assert PrivacyGuarantee(half, unit="distance", diameter=quarter).plain_epsilon == 0.125
    assert PrivacyGuarantee(math.inf, unit="distance", diameter=0.0).plain_epsilon == math.inf
