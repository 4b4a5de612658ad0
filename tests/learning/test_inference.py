"""The protocol that asks for errors: one release a person, units, people who stay away, and what it promises."""

import numpy as np
import pytest
from laws import seeded
from scipy import stats

from skldp.learning import n_people_needed
from skldp.learning._inference import InferenceProtocol
from skldp.learning._person import simulate

N = 12_000
SLOPES = np.array([0.5, -0.3, 0.2])


def people(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, 0.1 + X @ SLOPES + noise * rng.standard_normal(n)


def protocol(n=N, kind="once", epsilon=8.0, **settings):
    return InferenceProtocol(3, n, epsilon=epsilon, low=[-1] * 3 + [-2], high=[1] * 3 + [2], kind=kind, **settings)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 8.0])
def test_intervals_are_asked_for_from_the_stated_number_of_people(epsilon):
    n = n_people_needed(3, epsilon, intervals=True)
    assert [protocol(people, epsilon=epsilon).asks_for_errors for people in (n - 1, n)] == [False, True]
    with pytest.raises(ValueError, match="n_classes must be 2 with intervals"):
        n_people_needed(3, epsilon, 3, intervals=True)


def test_everything_is_in_the_units_of_the_data():
    X, y = people(N)
    wide, offset = np.array([10.0, 0.5, 1.0]), np.array([5.0, 0.0, -30.0])
    same = protocol()
    simulate(same, X, y, seeded())
    learnt = InferenceProtocol(
        3,
        N,
        epsilon=8.0,
        low=np.append(offset - wide, 30),
        high=np.append(offset + wide, 70),
        kind="once",
    )
    simulate(learnt, X * wide + offset, 50 + 10 * y, seeded())
    first, second = same.estimate(), learnt.estimate()
    # The plane is the same one: its slopes, and its height where the features are in the middle of their bounds.
    change = np.zeros((4, 4))
    change[0, 0] = 10
    change[1:, 1:] = np.diag(10 / wide)
    change[0, 1:] = -10 / wide * offset
    np.testing.assert_allclose(second.values, change @ first.values + np.array([50, 0, 0, 0]), rtol=1e-4)
    expected, unit = change @ first.covariance @ change.T, np.outer(second.standard_errors, second.standard_errors)
    np.testing.assert_allclose(second.covariance / unit, expected / unit, atol=1e-4)


def test_no_record_reaches_beyond_a_radius_that_is_declared():
    """Where the people are many, radii are the largest norm that the bounds allow, and nothing is cut off."""
    X, y = people(N)
    # As far from the model as the bounds let anybody be.
    y = np.where(np.random.default_rng(1).random(N) < 0.5, 1.0, -1.0)
    learnt = InferenceProtocol(3, N, epsilon=60.0, low=[-1] * 4, high=[1] * 4, kind="once")
    task, start = learnt.first(), 0
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    seen = 0
    while task is not None:
        name = learnt._steps[learnt._state["step"]][0]
        if name in ("moments", "first", "second"):
            # No record in the bounds reaches beyond the radius of a gradient, and few people beyond that of products.
            records = np.column_stack([X, y]) if name == "moments" else corners
            beyond = (np.linalg.norm(task._vectors(records), axis=1) > 1 + 1e-9).mean()
            seen += beyond <= (0.02 if name == "moments" else 0)
        people_of = slice(start, start + learnt.n_wanted)
        start = people_of.stop
        task = learnt.next(task.release(X[people_of], y[people_of], seeded(seen)))
    assert seen == 53


@pytest.mark.few(1)
@pytest.mark.parametrize("silent", ["moments_levels", "moments", "first_levels", "gradient"])
def test_cohorts_may_answer_in_part_or_not_at_all(silent):
    X, y = people(N)
    learnt, rng, noise = protocol(), np.random.default_rng(1), seeded()
    task, start, n_silent = learnt.first(), 0, 0
    while task is not None:
        cohort = np.flatnonzero(rng.random(learnt.n_wanted) < 0.8) + start
        start += learnt.n_wanted
        name = learnt._steps[learnt._state["step"]][0]
        # The first of its kind stays away.
        n_silent += name == silent
        nobody = (name == silent and n_silent == 1) or not cohort.size
        task = learnt.next(None if nobody else task.release(X, y, noise, rows=cohort))
    found = learnt.estimate()
    assert (np.abs(found.values - np.append(0.1, SLOPES)) < 5 * found.standard_errors).all()


@pytest.mark.few(2)
@pytest.mark.parametrize("silent", [{"moments"}, {"first"}, {"second"}, {"moments_levels"}])
def test_without_answers_there_are_no_errors(silent):
    X, y = people(N)
    learnt, noise = protocol(), seeded()
    task, start = learnt.first(), 0
    while task is not None:
        cohort = slice(start, start + learnt.n_wanted)
        start = cohort.stop
        name = learnt._steps[learnt._state["step"]][0]
        task = learnt.next(None if name in silent else task.release(X[cohort], y[cohort], noise))
    with pytest.raises(ValueError, match="must have answered"):
        learnt.estimate()
    assert np.abs(learnt.coefficients - SLOPES).max() < 0.2


def test_features_that_cannot_be_told_apart_have_no_intervals_and_are_named():
    X, y = people(N)
    X[:, 1] = 0.999 * X[:, 0] + 0.001 * X[:, 1]
    learnt = protocol()
    simulate(learnt, X, y, seeded())
    with pytest.raises(ValueError, match=r"features \[0, 1\]"):
        learnt.estimate()


def rare(n, share, seed):
    X, _ = people(n, seed)
    X[:, 0] = 2.0 * (np.random.default_rng([seed, 7]).random(n) < share) - 1
    return X, 0.1 + X @ SLOPES + 0.1 * np.random.default_rng([seed, 8]).standard_normal(n)


@pytest.mark.few(1)
def test_people_whom_noise_may_hide_widen_intervals():
    """The attack: one person in 23 far away, with skewed errors: 78 of 100 intervals held."""
    X, y = people(N)
    learnt = protocol()
    simulate(learnt, X, y, seeded())
    task, before = learnt._task_of("second"), learnt.estimate().standard_errors
    levels = learnt._levels_of("first", 1.0)
    beyond = int(np.flatnonzero(levels._levels > task.radius)[-1])
    told = learnt._state["levels"]["first"]
    told["shares"][beyond] += 2 * levels.error
    assert learnt._task_of("second").radius == task.radius
    assert (learnt.estimate().standard_errors > 1.02 * before).all()


def held(shape, kind, n, seeds):
    """How many of four intervals a seed hold the truth, and of how many seeds there are any."""
    n_told, hits, truth = 0, 0, np.append(0.1, SLOPES)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, _ = rare(n, 0.05, seed) if shape == "rare" else people(n, seed)
        error = rng.standard_normal(n)
        if shape == "low":
            error *= 6
        elif shape == "unequal":
            error *= 0.2 + np.abs(X[:, 0])
        elif shape == "skewed":
            error = rng.exponential(1, n) - 1
        elif shape == "tied":
            # Features of long tails, errors of one, whose size follows a feature: what is cut off adds up.
            normal = rng.standard_normal((n, 3))
            X = np.clip(0.1 * (np.exp(0.7 * normal) - 1), -1, 1)
            error = 0.5 * (rng.exponential(1, n) - 1) * np.exp(0.4 * normal[:, 0])
        learnt = protocol(n, kind=kind)
        simulate(learnt, X, 0.1 + X @ SLOPES + 0.1 * error, seeded(seed))
        if not learnt.refusal:
            n_told += 1
            low, high = learnt.estimate().intervals(0.95).T
            hits += int(((low <= truth) & (truth <= high)).sum())
    return hits, n_told


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["rounds", "once"])
@pytest.mark.parametrize("shape", ["normal", "low", "unequal", "skewed", "tied"])
def test_coverage(kind, shape):
    """Of nominal 95 out of 100: not refuted at 1e-6 to lie between 93 and 97.5."""
    hits, n_told = held(shape, kind, N, range(60))
    # Of lognormal features too much may be cut off for intervals.
    assert n_told > (36 if shape == "tied" else 48)
    # Of one seed, intervals of coefficients are as good as independent.
    assert stats.binom.cdf(hits, 4 * n_told, 0.93) > 1e-6
    assert stats.binom.sf(hits - 1, 4 * n_told, 0.975) > 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("n", [10_000, 24_000])
def test_intervals_of_a_rare_category_hold_or_are_not_told(n):
    """The attack: one person in twenty, of whom 40% of the second moment was cut off: 61 of 100 intervals held."""
    hits, n_told = held("rare", "once", n, range(60))
    assert n_told > 20
    assert stats.binom.cdf(hits, 4 * n_told, 0.93) > 1e-6


def test_a_category_of_few_people_that_may_be_cut_off_has_no_intervals():
    refusals = []
    for seed in range(5):
        learnt = protocol(epsilon=6.0)
        simulate(learnt, *rare(N, 0.02, seed), seeded(seed))
        refusals.append(learnt.refusal)
    assert sum("cut off" in one for one in refusals) >= 2
