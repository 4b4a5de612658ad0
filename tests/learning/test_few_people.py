"""What a regression learns of few people: where they lie, how far they reach, and steps of known noise."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from skldp.learning import RegressionProtocol, Report, n_people_needed, simulate
from skldp.learning._few_people import kalman_steps
from skldp.mechanisms import Noise

SLOPES = np.array([0.5, -0.3, 0.2])


def people(n):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    # Features that are nearly one another's copy, as those of real tables.
    X[:, 1] = 0.9 * X[:, 0] + 0.1 * X[:, 1]
    return X, np.clip(X @ SLOPES + 0.15 + 0.05 * rng.standard_normal(n), -1, 1)


def protocol(n):
    return RegressionProtocol(3, n, epsilon=1.0, low=[-1] * 4, high=[1] * 4)


def seeded(number=0):
    return Noise(bytes([number]) * 32, secure=False)


def score(learnt, X, y):
    return 1 - ((y - X @ learnt.coefficients - learnt.intercept) ** 2).mean() / y.var()


def test_few_people_tell_gradients_alone():
    X, y = people(2_500)
    scores = []
    for seed in range(10):
        learnt = protocol(2_500)
        assert 8 < learnt.sufficiency < 50
        assert {"squares", "products", "size"}.isdisjoint(name for name, _ in learnt._steps)
        simulate(learnt, X, y, seeded(seed))
        scores.append(score(learnt, X, y))
    assert np.mean(scores) > 0.85
    assert min(scores) > 0.7


def test_few_people_without_an_intercept_count_from_zero():
    """Bounds whose middle is far from zero: records are as long as they are from there."""
    X, y = people(2_500)
    X, y = X + 3, (X + 3) @ SLOPES
    scores = []
    for seed in range(5):
        learnt = RegressionProtocol(3, 2_500, epsilon=1.0, low=[2, 2, 2, 0], high=[4, 4, 4, 3], fit_intercept=False)
        assert {name for name, _ in learnt._steps} == {"reach", "width", "step"}
        simulate(learnt, X, y, seeded(seed))
        assert learnt.intercept == 0
        scores.append(1 - ((y - X @ learnt.coefficients) ** 2).mean() / (y**2).mean())
    assert min(scores) > 0.9


def told_by(task, value, n=10**9):
    """A report whose mean is this number."""
    return Report(task.hash, n, (round(value / task.radius / task._unit * n),))


def test_locations_of_few_people_count_what_their_radius_cuts_off():
    """A mean of what lies within a deviation and a half grows by less than the target moves: the normal law's part."""
    learnt = protocol(2_500)
    # A third of half the range is expected, and its usual distance from the centre.
    assert learnt.task.radius == pytest.approx(0.5)
    assert learnt._state["residual"] == pytest.approx(0.53 / 3)
    learnt._take_location(learnt.task, told_by(learnt.task, 0.1))
    part = quad(lambda x: math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi), -1.5, 1.5)[0]
    assert learnt._state["center"][-1] == pytest.approx(0.1 / part, rel=1e-3)


@pytest.mark.parametrize("n", [60, 6_000])
def test_what_is_expected_of_a_reach_counts_as_much_as_its_error_says(n):
    learnt = protocol(2_500)
    learnt._state["step"] = 1
    task, told, expected = learnt.task, math.log(0.05), math.log(0.53 / 3)
    share = 2 * math.log(0.05 / task.least) / math.log(task.radius / task.least) - 1
    report = Report(task.hash, n, (round(share / task._unit * n),))
    learnt._take_reach(task, report)
    weights = task.log_error(n) ** -2, 0.7**-2
    by_hand = (told * weights[0] + expected * weights[1]) / sum(weights)
    assert math.log(learnt._state["residual"]) == pytest.approx(by_hand, abs=0.02)


def test_a_middle_that_is_no_larger_than_its_noise_is_none():
    for told, moves in ((0.001, False), (2.0, True)):
        learnt = protocol(2_500)
        learnt._state["step"] = [name for name, _ in learnt._steps].index("middle")
        task = learnt.task
        error = task.standard_error(1_000)
        whole = [round(told * 2 * error / task.radius / task._unit * 1_000)] * 4
        learnt._take_middle(task, Report(task.hash, 1_000, tuple(whole)))
        # Four numbers of four errors: a sixteenth of their squares is noise.
        by_hand = (1 - 1 / 16) * 4 * error if moves else 0.0
        np.testing.assert_allclose(learnt._state["center"][:-1], by_hand, rtol=1e-2)
        assert learnt._state["center"][-1] == 0


def test_steps_of_few_people_are_those_of_a_kalman_filter():
    before, noise = np.array([0.04, 0.02, 0.02, 0.02]), 0.25
    steps, left = kalman_steps(before, noise, np.full(4, 0.5))
    # Precisions add up.
    after = 1 / (1 / before + 1 / noise)
    np.testing.assert_allclose(steps, after / noise)
    np.testing.assert_allclose(left, after)
    steps, left = kalman_steps(before, 1e-9, np.full(4, 0.5))
    assert steps.tolist() == [0.5] * 4
    np.testing.assert_allclose(left, before / 4, rtol=1e-6)


def test_what_is_expected_of_terms_is_what_the_reach_was_told_to_hold():
    learnt = protocol(2_500)
    learnt._state |= {"residual": 0.53, "target_error": 0.3}
    # Half of the variance, of which the error of the target's centre is the constant's.
    np.testing.assert_allclose(learnt._variances(), [0.09, *[0.41 / 3] * 3])
    learnt._state["step"] = len(learnt._steps) - 1
    before = learnt.task.radius
    learnt._state["variances"] = [0.0] * 4
    # A short gradient's, of what the model leaves of the variance.
    np.testing.assert_allclose([before, learnt.task.radius], 0.35 * 0.53 * np.sqrt([4.0, 2.0]))


@pytest.mark.parametrize(("d", "longest"), [(3, 0.2), (39, 0.05)])
def test_no_step_is_so_long_that_features_which_are_all_alike_diverge(d, longest):
    n_people = 2 * n_people_needed(d, 1.0)
    learnt = RegressionProtocol(d, n_people, epsilon=1.0, low=[-1] * (d + 1), high=[1] * (d + 1))
    learnt._state |= {"residual": 0.53, "target_error": 0.3}
    task, n = learnt._task_of("step"), 10**12
    learnt._take_step(task, Report(task.hash, n, tuple([round(n * 0.01 / task._unit)] * (d + 1))))
    moved = np.array(learnt._state["beta"]) / (0.01 * task.radius) * math.erf(0.35 * 0.53 / math.sqrt(2))
    np.testing.assert_allclose(moved, [0.3] + [longest] * d, rtol=1e-3)


def test_however_large_features_are_within_their_bounds_few_people_learn_the_same():
    """Bounds that are ten times too wide: what is told of widths makes up for it."""
    X, y = people(4_000)
    scores = []
    for wide in (1, 10):
        learnt = RegressionProtocol(3, 4_000, epsilon=1.0, low=[-wide] * 3 + [-1], high=[wide] * 3 + [1])
        simulate(learnt, X, y, seeded())
        scores.append(score(learnt, X, y))
    assert min(scores) > 0.85


@pytest.mark.parametrize(
    ("missing", "least"),
    [("location", 0.8), ("reach", 0.8), ("length", 0.8), ("middle", 0.8), ("width", 0.8), ("step", -0.2)],
)
def test_steps_that_nobody_answers_cost_what_they_would_have_told(missing, least):
    X, y = people(4_000)
    learnt, noise, asked = protocol(4_000), seeded(), 0
    task = learnt.first()
    while task is not None:
        name = learnt._steps[learnt._state["step"]][0]
        rows = slice(asked, asked + learnt.n_wanted)
        asked = rows.stop
        task = learnt.next(None if name == missing else task.release(X[rows], y[rows], noise))
    assert asked == 4_000
    assert score(learnt, X, y) > least
    assert np.any(learnt.coefficients) == (missing != "step")
