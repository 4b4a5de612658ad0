"""What a regression learns of few people: where they lie, how far they reach, and steps of known noise."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from skldp.learning import ClassificationProtocol, RegressionProtocol, Report, n_people_needed, sufficiency
from skldp.learning._few_people import kalman_steps
from skldp.learning._person import simulate
from skldp.learning._tasks import number_variance
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
    # Whose noise is counted, and how far people's own logarithms are apart.
    weights = 1 / (task.log_error(n) ** 2 + np.pi**2 / 8 / n), 0.7**-2
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


def score_of(d, n, epsilon, signal, seeds=10):
    """Of a line that tells so much of the target's variance, the scores of some seeds."""
    scores = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n])
        X = rng.uniform(-1, 1, (n + 2_000, d))
        line = X.mean(axis=1) * math.sqrt(3 * d)
        y = np.clip(0.2 * (math.sqrt(signal) * line + math.sqrt(1 - signal) * rng.standard_normal(len(X))), -1, 1)
        learnt = RegressionProtocol(d, n, epsilon=epsilon, low=[-1] * (d + 1), high=[1] * (d + 1))
        simulate(learnt, X[:n], y[:n], seeded(seed))
        scores.append(score(learnt, X[n:], y[n:]))
    return scores


def asks_products(d, n, epsilon, kind="rounds"):
    learnt = RegressionProtocol(d, n, epsilon=epsilon, low=[-1] * (d + 1), high=[1] * (d + 1), kind=kind)
    return any(name == "products" for name, _ in learnt._steps)


def test_no_products_are_asked_for_before_people_tell_how_large_records_are():
    """Of one feature J = 80 is 1,700 people: 25 told a size, which products were then told in units of."""
    for d, epsilon in ((1, 1.0), (3, 1.0), (3, 10.0)):
        # The error that one over the root of people has is at most a half.
        of_noise = (math.log(2_000) / 2) ** 2 * number_variance(epsilon)
        least = (of_noise + 1) / 0.015 / 0.5**2
        few, many = math.floor(least * 0.999), math.ceil(least * 1.001)
        assert sufficiency(few, d, epsilon) > 70
        assert not asks_products(d, few, epsilon)
        assert asks_products(d, many, epsilon)
        # Of classes, too, however many there are.
        for n, asks in ((few, False), (many, True)):
            learnt = ClassificationProtocol(d, n, 3, epsilon=epsilon, low=[-1] * d, high=[1] * d)
            assert any(name == "products" for name, _ in learnt._steps) == asks
        # Where one question is asked, it is that.
        assert asks_products(d, few, epsilon, "once")
    assert min(score_of(1, 1_700, 1.0, 0.9)) > 0.6


@pytest.mark.slow
def test_what_is_not_there_is_not_learnt_of_few_people():
    """Without any signal: what noise tells is shrunk, and a large epsilon does not make ten people many."""
    for d, n, epsilon in ((3, 2_700, 1.0), (3, 7_200, 1.0), (3, 64, 10.0)):
        assert sufficiency(n, d, epsilon) > 25
        scores = score_of(d, n, epsilon, 0.0)
        assert np.mean(scores) > -0.15
        assert min(scores) > -0.4


def test_people_differ_where_there_is_no_noise():
    """At epsilon 30 nothing else is left: variances are those of a mean of so many people."""
    learnt = RegressionProtocol(3, 40, epsilon=30.0, low=[-1] * 4, high=[1] * 4)
    task = learnt.task
    assert task.standard_error(2) < 1e-3
    learnt._take_location(task, Report(task.hash, 2, (0,)))
    by_hand = (1 / 3) ** 2 / 2
    assert learnt._state["target_error"] ** 2 == pytest.approx(by_hand / (1 + by_hand), rel=1e-3)
    task = learnt._task_of("step")
    before = learnt._variances()
    learnt._take_step(task, Report(task.hash, 2, (0,) * 4))
    noise = task.radius**2 / 4 / 2 / math.erf(0.35 * 0.53 / math.sqrt(2)) ** 2
    steps = np.minimum(before / (before + noise), [0.3] + [0.2] * 3)
    by_hand = (1 - steps) ** 2 * before + steps**2 * noise
    np.testing.assert_allclose(learnt._state["variances"], by_hand, rtol=1e-2)


def test_no_fewer_than_five_people_a_number_learn_a_line():
    for kind in ("rounds", "once"):
        for n, learns in ((19, False), (20, True)):
            learnt = RegressionProtocol(3, n, epsilon=20.0, low=[-1] * 4, high=[1] * 4, kind=kind)
            assert learnt.sufficiency > 50
            assert learnt.is_enough == learns
            assert ({"target"} >= {name for name, _ in learnt._steps} - {"residual"}) != learns
            assert learnt.n_needed == 20
    assert n_people_needed(3, 20.0) == 20
    assert ClassificationProtocol(3, 19, 2, epsilon=20.0, low=[-1] * 3, high=[1] * 3)._steps == [("shares", 19)]
    assert len(ClassificationProtocol(3, 20, 2, epsilon=20.0, low=[-1] * 3, high=[1] * 3)._steps) > 1
