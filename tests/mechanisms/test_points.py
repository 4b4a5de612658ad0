from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import ScriptedNoise, released

from skldp import NumericPrivatizer, policy_from_estimator
from skldp.client import Policy
from skldp.laws._few_answers import PointsLaw
from skldp.laws._integers import law_from_dict
from skldp.mechanisms.numeric import _points
from skldp.mechanisms.numeric._bounded_features import (
    JOINT_MECHANISMS,
    NUMERIC_MECHANISMS,
    best_mechanism,
    make_mechanism,
    mean_sampled_variance,
)
from skldp.mechanisms.numeric._points import Points, _program
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

EPSILONS = (0.1, 0.25, 0.7, 1.0, 2.0, 4.0)
T = 2**64


def exact_law(law, x):
    """Chances of the answers to x as fractions, from the definition: even rounding to a point, and its row."""
    place = (Fraction(round(x * 2.0**53), 2**53) + 1) / 2 * (law.n_points - 1)
    point = min(int(place), law.n_points - 2)
    part = place - point
    return [((1 - part) * a + part * b) / T for a, b in zip(law.rows[point], law.rows[point + 1], strict=True)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_means_are_exact_and_epsilon_is_that_of_the_integers(epsilon):
    mechanism = Points(epsilon)
    law = mechanism.integer_law
    values = [law.exact_value(answer) for answer in range(law.n_answers)]
    for x in (-1.0, -0.3, 0.0, 1e-9, 0.5, 0.777, 1.0):
        chances = exact_law(law, x)
        assert sum(chances) == 1
        assert sum(c * y for c, y in zip(chances, values, strict=True)) == Fraction(round(x * 2.0**53), 2**53)
        of_squares = float(sum(c * y * y for c, y in zip(chances, values, strict=True)))
        assert mechanism.variance([x])[0] == pytest.approx(of_squares - x**2, rel=1e-9)
        assert abs(mechanism.bias([x])[0]) < 1e-14 * float(max(values))
    worst = max(Fraction(max(column), min(column)) for column in zip(*law.rows, strict=True))
    assert epsilon * (1 - 1e-6) < float(np.log(float(worst))) <= law.epsilon * (1 + 1e-15) <= epsilon * (1 + 1e-15)
    assert mechanism.guarantee().epsilon == law.epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_drawn_is_the_law(epsilon):
    """At every end of a row, one word below it and at it; the rounding at, below and above its threshold."""
    mechanism = Points(epsilon)
    law = mechanism.integer_law
    for x in (-1.0, -0.37, 0.0, 0.61, 1.0):
        u = (round(x * 2.0**53) + 2**53) * (law.n_points - 1)
        point, part = divmod(u, 2**54)
        firsts = [0, (part << 10) - 1, part << 10, T - 1] if part else [0, T - 1]
        for first in firsts:
            row = law.rows[point + (first < part << 10)]
            ends = list(accumulate(row))
            seconds = sorted({0, T - 1, *(end + change for end in ends[:-1] for change in (-1, 0))})
            expected = [next(j for j, end in enumerate(ends) if second < end) for second in seconds]
            assert [law.draw(x, iter([first, second])) for second in seconds] == expected
            words = np.array([[first, second] for second in seconds], dtype=np.uint64).reshape(-1)
            drawn = released(mechanism, np.full(len(seconds), x), ScriptedNoise(words.tolist()))
            assert drawn.tolist() == [law.value(answer) for answer in expected]


@settings(max_examples=6, deadline=None)
@given(epsilon=st.floats(0.25, 5.0))
def test_every_epsilon_has_a_law(epsilon):
    law = Points(epsilon).integer_law
    assert epsilon * (1 - 1e-3) < law.epsilon <= epsilon
    assert law_from_dict(law.to_dict()) == law


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 3.0, 4.0])
def test_the_worst_variance_is_within_two_hundredths_of_a_larger_programs(epsilon):
    """Twice the points and answers, and no rounding; and better than all other mechanisms."""
    unit = 1.4 / np.tanh(epsilon / 2)
    table, _ = _program(epsilon, 48, np.linspace(-unit, unit, 97), (), 0.0)
    squares = table @ np.linspace(-unit, unit, 97) ** 2
    points = np.linspace(-1, 1, 48)[:24]
    x = np.linspace(-1, 0, 1001)
    best = (np.interp(np.minimum(x, points[-1]), points, squares) - x**2).max()
    found = Points(epsilon).worst_variance
    assert found <= 1.02 * best
    others = [
        make_mechanism(name, epsilon).worst_variance for name in NUMERIC_MECHANISMS if name not in JOINT_MECHANISMS
    ]
    assert found == min(others)
    grid = Points(epsilon).variance(np.linspace(-1, 1, 10_001))
    assert grid.max() <= found * (1 + 1e-12) <= grid.max() * (1 + 1e-4)


def test_small_epsilons_are_duchis_and_large_ones_are_eight():
    assert Points(0.1).worst_variance == pytest.approx(Duchi(0.1).worst_variance)
    assert Points(0.1).guarantee().epsilon == pytest.approx(Duchi(0.1).guarantee().epsilon, rel=1e-12)
    # The law of 8 takes seconds; it is asked for by the same key.
    seen = []
    original = _points._solved
    try:
        _points._solved = lambda epsilon, prior: seen.append(epsilon) or original(1.0, prior)
        _ = Points(20.0).integer_law
    finally:
        _points._solved = original
    assert seen == [8.0]


def test_a_prior_has_a_law_of_its_own():
    for prior in ((1.0,), (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 1.0, 0.0)):
        own, worst = Points(2.0, prior), Points(2.0)
        means = [mean_sampled_variance(one, 1, 1, prior) for one in (own, worst)]
        assert means[0] < means[1] * 0.999
        others = [make_mechanism(name, 2.0) for name in NUMERIC_MECHANISMS if name not in JOINT_MECHANISMS]
        assert means[0] <= min(mean_sampled_variance(one, 1, 1, prior) for one in others)
        assert own.integer_law.epsilon <= 2.0
        best = best_mechanism(2.0, 1, prior=prior, with_points=True)
        assert best[:2] == ("points", own)
    # A prior counts as its mean with its mirror image.
    one_side, both = ((mean_sampled_variance(Points(2.0, p), 1, 1, (1.0, 1.0))) for p in ((1.0, 0.0), (1.0, 1.0)))
    assert one_side == pytest.approx(both)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ([], "at least one bin"),
        ([0.0, 0.0], "not all of them 0"),
        ([1.0, -1.0], "weights >= 0"),
        ([1.0, np.nan], "weights >= 0"),
        ([1.0] * 65, "at most 64 equal bins"),
        ([[1.0]], "at most 64 equal bins"),
    ],
)
def test_objectives_that_are_none_are_refused(objective, message):
    with pytest.raises(ValueError, match=message):
        NumericPrivatizer(mechanism="best", objective=objective).fit(np.zeros((2, 1)))


def test_objectives_of_other_mechanisms_are_refused():
    with pytest.raises(ValueError, match="needs mechanism 'best' or 'points'"):
        NumericPrivatizer(mechanism="hybrid", objective="mean").fit(np.zeros((2, 1)))


def test_a_privatizer_has_the_law_of_its_objective():
    X = np.zeros((2, 3))
    means = [
        NumericPrivatizer(2.0, mechanism="best", n_sampled_features=1, objective=objective).fit(X).mechanism_.mechanism
        for objective in ("worst", "mean", [1.0, 2.0])
    ]
    assert [one.prior for one in means] == [(), (1.0,), (1.0, 2.0)]
    by_name = NumericPrivatizer(2.0, mechanism="points", n_sampled_features=1, objective="mean").fit(X)
    assert by_name.mechanism_.mechanism == means[1]


def test_squares_are_not_identified():
    with pytest.raises(ValueError, match="does not identify the squares"):
        Points(1.0).original_squares(np.ones(2))


def test_a_policy_has_the_law():
    privatizer = NumericPrivatizer(1.0, mechanism="best", bounds=(0, 10)).fit(np.zeros((2, 1)))
    policy = policy_from_estimator(privatizer, purpose="a test")
    assert Policy.from_json(policy.to_json()) == policy
    assert policy.fields[0].law.name == "points"
    assert policy.epsilon <= 1.0


SMALL = {"n_points": 2, "places": (-3, -1, 1, 3), "counts": (T // 2, T // 4, T // 8, T // 8)}


def test_documents_are_checked():
    law = PointsLaw(**SMALL)
    assert law.epsilon == pytest.approx(np.log(4))
    for change, message in [
        ({"n_points": 3}, "even number"),
        ({"n_points": 0}, "even number"),
        ({"n_points": 512}, "even number"),
        ({"places": (-3, -1, 2, 3)}, "same on both sides"),
        ({"places": (-1, -3, 3, 1)}, "ascend"),
        ({"places": (0,), "counts": (T,)}, "ascend"),
        ({"places": [-3, -1, 1, 3]}, "lists of integers"),
        ({"counts": (T // 2, T // 4, T // 8, T // 8 - 1)}, "words"),
        ({"counts": (T // 2, T // 4, T // 4, 0)}, "words"),
        ({"counts": (T // 2, T // 4, T // 4)}, "words"),
        # The same on both sides, and the wrong order.
        ({"counts": (T // 4, T // 4, T // 4, T // 4)}, "means"),
        ({"counts": (T // 8, T // 8, T // 4, T // 2)}, "means"),
        # Inner points whose means are not theirs.
        ({"n_points": 4, "counts": SMALL["counts"] * 2}, "means"),
    ]:
        with pytest.raises(ValueError, match=message):
            PointsLaw(**(SMALL | change))
