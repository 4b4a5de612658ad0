"""The protocol: what it learns, from one release of each person, through public documents alone."""

from fractions import Fraction

import numpy as np
import pytest
from laws import seeded

from skldp.learning import RegressionProtocol, n_people_needed, sufficiency
from skldp.learning._constants import DETECTED
from skldp.learning._person import simulate

SLOPES = np.array([0.5, -0.3, 0.2])


def people(n, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    # Features that are nearly one another's copy, as those of real tables.
    X[:, 1] = 0.9 * X[:, 0] + 0.1 * X[:, 1]
    return X, np.clip(X @ SLOPES + 0.15 + noise * rng.standard_normal(n), -1, 1)


def protocol(n, kind="rounds", epsilon=4.0, **settings):
    return RegressionProtocol(3, n, epsilon=epsilon, low=[-1] * 4, high=[1] * 4, kind=kind, **settings)


def score(learnt, X, y):
    return 1 - ((y - X @ learnt.coefficients - learnt.intercept) ** 2).mean() / y.var()


@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_cohorts_may_answer_in_part_or_not_at_all(kind):
    X, y = people(20_000)
    learnt, rng = protocol(20_000, kind), np.random.default_rng(1)
    task, asked, step, noise = learnt.first(), 0, 0, seeded()
    while task is not None:
        cohort = np.flatnonzero(rng.random(learnt.n_wanted) < 0.6) + asked
        asked, step = asked + learnt.n_wanted, step + 1
        name = learnt._steps[learnt._state["step"]][0]
        # Of every kind of step but the products some are not answered by anybody.
        nobody = name != "products" and step % 4 == 0
        task = learnt.next(None if nobody else task.release(X, y, noise, rows=cohort))
    assert score(learnt, X, y) > 0.8
    silent = protocol(20_000, kind)
    task = silent.first()
    while task is not None:
        task = silent.next([])
    np.testing.assert_array_equal(silent.coefficients, 0)
    assert silent.intercept == 0


def test_too_few_people_are_told_how_many_it_takes():
    """Sums of squares of pure noise: n_people_needed is where the gradient of a full fit exceeds them by 4 errors."""
    d, epsilon = 9, 1.0
    n = n_people_needed(d, epsilon)
    variance = float(Fraction(n, 100)) / sufficiency(n, d, epsilon)
    noise = np.sqrt((variance + 1 / (d + 1)) / n) * np.random.default_rng(0).normal(size=(20_000, d + 1))
    assert (noise**2).sum(axis=1).std() == pytest.approx(1 / (d + 1) / DETECTED, rel=0.05)
    X, y = people(200)
    learnt = protocol(200, epsilon=0.5)
    assert learnt.n_needed == n_people_needed(3, 0.5)
    simulate(learnt, X, y, seeded())
    np.testing.assert_array_equal(learnt.coefficients, 0)
    assert abs(learnt.intercept - y.mean()) < 1


def test_expected_moments_follow_every_change_of_the_state():
    learnt = RegressionProtocol(3, 4_000, epsilon=4.0, low=[-1] * 4, high=[1] * 4)
    rows = learnt._rows()
    found = [learnt._expected_moments(rows)[0]]
    one = [rows.tolist(), (np.eye(4) + 0.1).tolist(), np.full((4, 4), 0.1).tolist()]
    changes = ("width", [0.2, 0.3, 0.4]), ("center_error", 0.01), ("moments", [one]), ("moments", [one] * 2)
    for name, value in changes:
        learnt._state = learnt._state | {name: value}
        found.append(learnt._expected_moments(rows)[0])
        fresh = RegressionProtocol.from_json(learnt.to_json())
        np.testing.assert_array_equal(found[-1], fresh._expected_moments(rows)[0])
    found += [learnt._expected_moments(rows, 1)[0], learnt._expected_moments(2 * rows, 1)[0]]
    assert len({one.tobytes() for one in found}) == 6
    np.testing.assert_array_equal(found[3], found[5])


@pytest.mark.parametrize(("n", "d", "epsilon"), [(3_000, 10, 1.0), (44_000, 9, 1.0), (44_000, 9, 8.0), (400, 3, 8.0)])
def test_whitening_has_as_many_stages_as_noise_and_levels_permit(n, d, epsilon):
    plan = RegressionProtocol(d, n, epsilon=epsilon, low=[-1] * (d + 1), high=[1] * (d + 1))._steps
    stages = [people for name, people in plan if name == "products"]
    # Each has a sufficiency of about 1 for each term, if the levels are some of its people.
    enough = sufficiency(n, d, epsilon) / n / (d + 1)
    assert len(stages) <= 20
    assert all(people * enough > 0.55 for people in stages)
    share = 0.3 / (1 + 2 / (n * enough))
    # Four people of each stage report levels.
    assert bool(stages) == (share * n * enough > 0.5 and share * n * 0.03 > 4)


def test_people_report_at_the_model_that_holds_if_there_is_something_to_learn():
    X, y = people(4_000)
    learnt, asked = protocol(4_000, epsilon=1.0), 0
    learnt.first()
    while learnt.task.form != "gradient" or not np.any(learnt._state["beta"]):
        stop = asked + learnt.n_wanted
        learnt.next(learnt.task.release(X[asked:stop], y[asked:stop], seeded()))
        asked = stop
    reported_at = -np.array(learnt.task.matrix)[-1, 1:-1]
    estimate, nothing = np.array(learnt._state["beta"])[1:], learnt._state["of_priors"][0][0][1:]
    assert not np.any(nothing)
    # Nothing to learn is a model too, without slopes: it has a part in the estimate only.
    ratios = reported_at / estimate
    np.testing.assert_allclose(ratios, ratios[0])
    assert ratios[0] > 1 + 1e-6


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"kind": "twice"}, "kind"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"low": [-1] * 3}, "low"),
        ({"high": [-1] * 4}, "low"),
    ],
)
def test_settings_are_checked(wrong, match):
    with pytest.raises(ValueError, match=match):
        RegressionProtocol(3, 100, **({"epsilon": 1.0, "low": [-1] * 4, "high": [1] * 4} | wrong))
    for n_features, n_people in ((0, 10), (3, 0), (True, 10), (3, 1.5)):
        with pytest.raises(ValueError, match=r"whole number"):
            RegressionProtocol(n_features, n_people, epsilon=1.0, low=[-1] * 4, high=[1] * 4)
    with pytest.raises(ValueError, match="left for everybody"):
        simulate(protocol(4), *people(5), seeded())
